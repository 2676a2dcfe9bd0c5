"""From noisy tables to released ones: which fit there is, by public numbers and the noisy total, and what it takes.

Post-processing. release_marginals.md, "Nearest tables" and "The entropic fit".
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt
from typing import Any, Literal

from ..records.domain import MOST_CELLS, display_count
from ..support.errors import AccuracyWarning, levels_to_caller
from .entropic_fit import MOST_STEPS, bytes_of_fit, fit_entropic
from .least_squares_fit import Axes, LeastSquares, Table
from .marginal_counts import bytes_of_records
from .marginals_release import Estimates, MarginalsRelease
from .memory import display_bytes, usable_memory
from .nearest_tables import nearest_consistent_tables
from .queries.marginals import Marginals
from .synthesis.junction_tree import MOST_CELLS as CLIQUE_CELLS
from .synthesis.junction_tree import JunctionTree
from .synthesis.measured import Residuals
from .synthesis.tree_fit import STEPS, fit_residuals
from .synthetic_distribution import SyntheticDistribution
from .table_noise import EqualNoise, TableNoise

Fit = Literal["auto", "entropic", "least-squares"]
FITS = ("auto", "entropic", "least-squares")

_FIT_CELLS = 2**24  # up to here "auto" fits a distribution
_DENSE_CELLS = 2**15  # up to here all of them take no longer than a tree, some tens of milliseconds
_FEWER = 16  # times fewer cells must a tree have up to _FIT_CELLS; 2^20 cells take 25 times as long as a chain of pairs
_FIT_STEPS = 1000  # and only if it is expected to take no more steps than this,
_FIT_WORK = 2**32  # and no more steps times cells: a minute or two
_TREE_CELLS = 2**21  # of a junction tree, up to which "auto" fits a distribution on it: half a minute
_TREE_COLUMNS = 1024  # which hang together in half a second; the time grows with their square
_ARRAYS = 4  # of all cells of all tables that are held at a time


@dataclass(frozen=True)
class Measured:
    """What has been measured, in records."""

    least_squares: LeastSquares
    noise: TableNoise
    components: dict[Axes, Table]
    tables: list[Table]  # as measured; none where residuals are


def fit_measured(measured: Measured, n: int | None, fit: Fit | None, guarantee: Any, report: Any) -> MarginalsRelease:
    """The release: n the number of records where it is public, otherwise the estimate of all tables is taken."""
    least_squares, components, noise = measured.least_squares, measured.components, measured.noise
    workload, variances = least_squares.workload, dict(noise.variances)
    total = float(max(1.0, components[()][0])) if n is None else n
    if n is not None:
        variances[()] = variances[()] * 0.0
    variances = {shape: of_shape / total**2 for shape, of_shape in variances.items()}
    if fit is not None:
        components[()][0] = total
    as_measured = [table / total for table in measured.tables]
    unbiased = as_measured if fit is None else [table / total for table in least_squares.build(components)]
    tables, synthetic, steps = unbiased, None, 0
    if fit == "auto":
        fit = "entropic" if is_quick(workload, least_squares, variances) else "least-squares"
    if fit == "entropic" and (tree := tree_for(workload)) is not None:
        on_tree = {shape: of_shape * total**2 for shape, of_shape in variances.items()}
        fitted = fit_residuals(tree, Residuals(least_squares, components, on_tree), total, report=report)
        _warn_of_steps(fitted.steps, STEPS, fitted.residual)
        synthetic = SyntheticDistribution(fitted.distribution, workload.domain, guarantee=guarantee, n=round(total))
        tables, steps = synthetic.marginal_tables(workload), fitted.steps
    elif fit == "entropic":
        equal = isinstance(noise, EqualNoise)
        found = fit_entropic(
            unbiased, least_squares, noise.sigma / total, report, variances=None if equal else variances
        )
        _warn_of_steps(found.steps, MOST_STEPS, found.residual)
        tables, steps = found.tables, found.steps
        synthetic = SyntheticDistribution(found.probabilities, workload.domain, guarantee=guarantee, n=round(total))
    elif fit == "least-squares":
        tables = nearest_consistent_tables(unbiased, least_squares)
    estimates = Estimates(tuple(unbiased), None if fit is None else variances, noise.sigma / total)
    return MarginalsRelease(guarantee, workload, tuple(tables), total, noise.sigma, fit, steps, synthetic, estimates)


def _warn_of_steps(steps: int, most: int, residual: float) -> None:
    if steps == most:
        warnings.warn(
            f"the entropic fit is still {sqrt(residual):.2g} times as far from the tables as the noise accounts for "
            f"after {steps:,} steps; fit='least-squares' is closer here",
            AccuracyWarning,
            stacklevel=levels_to_caller() + 1,
        )


def is_quick(workload: Marginals, least_squares: LeastSquares, variances: Mapping[Axes, Table]) -> bool:
    """Whether the entropic fit is worth its time, by the steps that it is likely to take (within a factor of 2)."""
    if not has_room(workload):
        return False
    squares = sum(
        float((variances[shape] * weight).sum()) * prod(size - 1 for size in shape)
        for shape, weight in least_squares.weight.items()
    )
    if not squares:
        return True
    tree, steps = tree_for(workload), sqrt(workload.tables / squares) / 10
    return steps <= _FIT_STEPS and steps * (workload.domain.size if tree is None else tree.cells) <= _FIT_WORK


def has_room(workload: Marginals) -> bool:
    """Whether "auto" may fit a distribution to these tables."""
    domain, tree = workload.domain, tree_for(workload)
    if tree is None:
        return domain.size <= _FIT_CELLS and bytes_of_fit(domain) <= usable_memory()
    return tree.cells <= _TREE_CELLS


@lru_cache(16)
def tree_for(workload: Marginals) -> JunctionTree | None:
    """The junction tree on which distributions are fitted to these tables: where it has far fewer cells than the
    domain, and of domains that are too large for all cells where there is one whose cliques are not."""
    sizes = workload.domain.sizes
    if workload.domain.size <= _DENSE_CELLS or len(sizes) > _TREE_COLUMNS:
        return None
    most = CLIQUE_CELLS if workload.domain.size > _FIT_CELLS else workload.domain.size // _FEWER
    near: dict[int, set[int]] = {}
    for positions in workload.positions:
        for p in positions:
            near.setdefault(p, set()).update(positions)
    # the first column that is eliminated has all of its neighbours in its clique
    if len(near) == len(sizes) and min(prod(sizes[q] for q in each) for each in near.values()) > most:
        return None
    tree = JunctionTree(sizes, workload.positions)
    few = tree.largest <= CLIQUE_CELLS if workload.domain.size > _FIT_CELLS else tree.cells <= most
    return tree if few and 2 * tree.bytes <= usable_memory() else None


def check_fit(workload: Marginals) -> None:
    """ValueError if the entropic fit would not fit into memory."""
    domain = workload.domain
    needed = bytes_of_fit(domain)
    if tree_for(workload) is None and (domain.size > MOST_CELLS or needed > usable_memory()):
        raise ValueError(
            f"domain: {display_count(domain.size)} cells: the entropic fit holds them all and needs "
            f"{display_bytes(needed)}, of at most {display_bytes(usable_memory())} and 2^31 cells, or a junction tree "
            "of the tables with cliques of at most 2^22 cells; fit='least-squares' works on tables alone"
        )


def check_tables_fit(workload: Marginals) -> None:
    """ValueError if the tables would not fit into memory."""
    if (needed := _bytes_of_tables(workload)) > usable_memory():
        raise ValueError(
            f"workload: {display_count(len(workload))} cells in all tables need {display_bytes(needed)}: must be at "
            f"most {display_bytes(usable_memory())}, half of the memory"
        )


def bytes_of_release(n: int, workload: Marginals, fit: Fit | None) -> tuple[int, int]:
    """What tables, with the fit, and records take at most."""
    needed, tree = _bytes_of_tables(workload), tree_for(workload)
    if fit == "entropic" or (fit == "auto" and has_room(workload)):
        needed += bytes_of_fit(workload.domain) if tree is None else 2 * tree.bytes
    return needed, bytes_of_records(n, workload)


def _bytes_of_tables(workload: Marginals) -> int:
    return _ARRAYS * 8 * len(workload)
