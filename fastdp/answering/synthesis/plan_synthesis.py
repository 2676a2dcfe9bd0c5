"""What a synthesis will take and how much noise to expect, before a record is read or anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...privacy.guarantees import Neighbors
from ...records.domain import Domain
from ...support.checks import MAX_INT64, large_integer
from ...support.machine import display_bytes
from ...support.public_paths import public_as
from ...support.results import Displayed, DisplayLines
from ..queries.marginals import Marginals
from .gaussian_prices import squared_change
from .measuring import takes_network, whole_plan
from .network import CHOICE_SHARE
from .structure import MEAN_NOISE, Plan
from .synthesis_plan import CELLS_A_SECOND, Method, SynthesisPlan, synthesis_plan
from .whole_workload import plan_whole


@public_as("fastdp.answering")
@dataclass(frozen=True, repr=False)
class SynthesisEstimate(Displayed):
    """What a synthesis takes, and the noise to expect.

    Attributes
    ----------
    tables : int
        How many tables of several columns may be measured.
    whole : bool
        Whether all of them will be; otherwise distances from independence, which are released, choose some, or the
        choices of a network do. Under add-remove neighbours the noisy number of records decides, which is near `n`.
    network : bool
        Whether it is the choices of a network.
    column_error : float
        The expected L1 distance of a column's first noisy table from the true one, as a fraction of the records: the
        mean over the columns. What is measured later comes closer.
    table_error : float
        The same of tables of several columns: of all if `whole`, else of pairs if as many are chosen as there are
        columns. Fits come closer.
    distance_sigma : float
        The standard deviation of the noise of the distances, as a fraction; 0 if there are none.
    cells : int
        How many cells the tree has at most.
    seconds : float
        About what the fit takes at most on one core, compilation aside.
    bytes : int
        About what tables and the fit take at most in memory, the records aside.
    """

    tables: int
    whole: bool
    network: bool
    column_error: float
    table_error: float
    distance_sigma: float
    cells: int
    seconds: float
    bytes: int

    def _display(self) -> DisplayLines:
        which = "all measured" if self.whole else f"some chosen by distances of sigma {self.distance_sigma:.2g}"
        if self.network:
            which = "chosen one by one"
        return [
            ("tables", f"{self.tables:,}, {which}"),
            ("columns", f"mean L1 error {self.column_error:.3g} by noise, at first"),
            ("noise", f"mean L1 error {self.table_error:.3g} of a measured table, before the fit"),
            ("cells", f"at most {self.cells:,}"),
            ("time", f"at most about {self.seconds:.2g} s"),
            ("memory", f"at most about {display_bytes(self.bytes)}"),
        ]


def plan_synthesis(
    n: int,
    domain: Domain,
    *,
    epsilon: float,
    delta: float,
    workload: Marginals | Iterable[Iterable[str]] | None = None,
    importance: Iterable[float] | None = None,
    impossible: Iterable[Any] | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    method: Method = "auto",
    neighbors: Neighbors = "replace-one",
) -> SynthesisEstimate:
    """Estimate what `synthesize` takes and the noise to expect: by public numbers alone, nothing is read or spent.

    Parameters
    ----------
    n : int
        The number of records, or about what it is.
    domain : Domain
        The values that records may have.
    epsilon : float > 0
        As of `synthesize`.
    delta : float in (0, 1)
        As of `synthesize`.
    workload : Marginals or iterable of iterable of str, optional
        As of `synthesize`.
    importance : iterable of float, optional
        As of `synthesize`.
    impossible : iterable of Product, Conjunction or Range, optional
        As of `synthesize`.
    max_seconds : float, optional
        As of `synthesize`.
    max_bytes : int, optional
        As of `synthesize`.
    method : {"auto", "tree", "network"}
        As of `synthesize`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    SynthesisEstimate
        Expected values, no bounds.

    Raises
    ------
    ValueError
        As `synthesize`.

    Examples
    --------
    >>> from fastdp import Domain, plan_synthesis
    >>> estimate = plan_synthesis(50_000, Domain(age=90, sex=2, job=30, region=50), epsilon=1.0, delta=1e-6)
    >>> estimate.whole, estimate.tables
    (True, 6)
    >>> estimate.table_error < 0.5
    True
    """
    n = large_integer("n", n, least=1, most=MAX_INT64)
    plan = synthesis_plan(
        domain, epsilon=epsilon, delta=delta, workload=workload, importance=importance, impossible=impossible,
        max_seconds=max_seconds, max_bytes=max_bytes, method=method, neighbors=neighbors,
    )  # fmt: skip
    columns = [MEAN_NOISE * size * noise.sigma / n for size, noise in zip(domain.sizes, plan.singles, strict=True)]
    whole, cells = whole_plan(float(n), plan, plan.rest(plan.singles)), plan.limits.tree
    network = whole is None and takes_network(plan, float(n))
    if whole is not None:
        tables, error = len(whole.tables), _error_of_whole(plan, whole, n)
    else:
        tables = min(len(plan.pairs), len(domain) - 1) if network else len(plan.pairs)
        error = _error_of_pairs(plan, n, network)
    counted = sum(prod(shape) for shape in plan.workload().shapes)
    distances = 0.0 if network or whole is not None or plan.distances is None else plan.distances.sigma / n
    seconds, room = cells / CELLS_A_SECOND, 32 * cells + 24 * counted
    return SynthesisEstimate(
        tables, whole is not None, network, sum(columns) / len(columns), error, distances, cells, seconds, room
    )


def _error_of_whole(plan: SynthesisPlan, whole: Plan, n: int) -> float:
    """Of all tables of a workload."""
    weights = {each.columns: each.weight for each in whole.tables}
    of_all = plan_whole(plan, weights, float(n), plan.rest(plan.singles))
    if of_all is None:
        return -whole.value / len(weights) / n
    least_squares, noise = of_all
    deviations = np.sqrt(least_squares.variances_of_tables(noise.variances))
    sizes = [prod(shape) for shape in least_squares.workload.shapes]
    return float(MEAN_NOISE * np.dot(deviations, sizes) / len(sizes) / n)


def _error_of_pairs(plan: SynthesisPlan, n: int, network: bool) -> float:
    """Of as many pairs as there are columns, of middling size, with equal shares."""
    if not plan.pairs:
        return 0.0
    cells = sorted(plan.domain.sizes[p] * plan.domain.sizes[q] for p, q in plan.pairs)
    chosen = min(len(plan.domain), len(cells))
    spent = [] if network or plan.distances is None else [plan.distances]
    mu = plan.rest([*plan.singles, *spent]) / squared_change(plan.neighbors) ** 0.5
    mu *= float(1 - CHOICE_SHARE) ** 0.5 if network else 1.0
    return float(MEAN_NOISE * cells[len(cells) // 2] * chosen**0.5 / mu / n)
