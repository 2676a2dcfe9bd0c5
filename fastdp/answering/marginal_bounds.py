"""The error bound of `release_marginals`, from public numbers; as `fastdp.bounds`.

release_marginals.md, theorem 1, for equal noise; residual_planning.md, "Error bound", for planned noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log, prod, sqrt
from typing import Any, Literal

import numpy as np

from ..mechanisms import bounds
from ..privacy.guarantees import Neighbors
from ..randomness.noise_plans import LaplacePlan
from ..records.domain import Domain, check_domain
from ..support import parameters
from ..support.checks import MAX_INT64, large_integer, one_of, probability
from ..support.search import in_reach, least_float, least_integer
from .estimate import Estimate
from .least_squares_fit import least_squares_of
from .marginal_fits import Fit, bytes_of_release
from .marginal_noise import NoiseKind
from .queries.marginals import Marginals
from .release_marginals import checked_workload, planned_noise
from .table_noise import EqualNoise, Objective, TableNoise

_MOST_EPSILON = 2.0**9
_MOST_DEVIATIONS = 2.0**10  # that an error is looked for within

EqualOrPlanned = Literal["equal", "planned"]


def release_marginals(
    n: int,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    fit: Fit | None = "auto",
    noise: NoiseKind = "auto",
    allocation: EqualOrPlanned = "equal",
    objective: Objective | Iterable[float] = "maximum",
    neighbors: Neighbors = "replace-one",
) -> Estimate:
    """The error bound of `release_marginals` on n records, and what it takes.

    With equal noise it is that of the tables as measured, with planned noise that of the unbiased tables,
    `table(names, unbiased=True)`. Fits come closer.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    workload : Marginals or iterable of iterable of str
        The tables: `marginals(domain, k)`, or sets of attributes.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    fit : {"auto", "entropic", "least-squares"}, optional
        As of `release_marginals`; memory depends on it.
    noise : {"auto", "laplace", "gaussian"}
        As of `release_marginals`, under no budget.
    allocation : {"equal", "planned"}
        The same noise on every cell, or noise that is planned, as of `release_marginals`.
    objective : {"maximum", "total"} or iterable of float
        Of planned noise, as of `release_marginals`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Estimate
        With `.alpha`, within which every entry of every table is, as a fraction of n, and `.bytes`.
    """
    n, beta = large_integer("n", n, least=1, most=MAX_INT64), parameters.beta(beta)
    tables = _tables(domain, workload, fit, neighbors)
    planned = _noise(tables, epsilon, delta, neighbors, allocation, objective, noise)
    return Estimate(_largest_noise(planned, beta) / n, beta, 1, domain.size, *bytes_of_release(n, tables, fit))


def release_marginals_n(
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    alpha: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    allocation: EqualOrPlanned = "equal",
    objective: Objective | Iterable[float] = "maximum",
    neighbors: Neighbors = "replace-one",
) -> int:
    """The least number of records with which every entry is as near as `bounds.release_marginals` states.

    Parameters
    ----------
    domain : Domain
        The values that records may have.
    workload : Marginals or iterable of iterable of str
        The tables: `marginals(domain, k)`, or sets of attributes.
    alpha : float in (0, 1)
        The accuracy asked for, as a fraction of the records.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    allocation : {"equal", "planned"}
        The same noise on every cell, or noise that is planned, as of `release_marginals`.
    objective : {"maximum", "total"} or iterable of float
        Of planned noise, as of `release_marginals`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
        The number of records.
    """
    asked, beta = probability("alpha", alpha), parameters.beta(beta)
    tables = _tables(domain, workload, None, neighbors)
    error = _largest_noise(_noise(tables, epsilon, delta, neighbors, allocation, objective), beta)
    return in_reach("alpha", asked, lambda: least_integer(lambda n: error / n <= asked, low=1, largest=MAX_INT64))


def release_marginals_epsilon(
    n: int,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    alpha: float,
    delta: float,
    beta: float = 0.05,
    allocation: EqualOrPlanned = "equal",
    objective: Objective | Iterable[float] = "maximum",
    neighbors: Neighbors = "replace-one",
) -> float:
    """The least epsilon (to 10 digits) with which every entry is as near as `bounds.release_marginals` states.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    workload : Marginals or iterable of iterable of str
        The tables: `marginals(domain, k)`, or sets of attributes.
    alpha : float in (0, 1)
        The accuracy asked for, as a fraction of the records.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    allocation : {"equal", "planned"}
        The same noise on every cell, or noise that is planned, as of `release_marginals`.
    objective : {"maximum", "total"} or iterable of float
        Of planned noise, as of `release_marginals`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The epsilon.

    Raises
    ------
    ValueError
        "alpha=1e-300: is out of reach".
    """
    n, beta = large_integer("n", n, least=1, most=MAX_INT64), parameters.beta(beta)
    asked = probability("alpha", alpha)
    tables = _tables(domain, workload, None, neighbors)
    _noise(tables, 1.0, delta, neighbors, allocation, objective)  # whose errors are those of parameters

    def enough(epsilon: float) -> bool:
        try:
            noise = _noise(tables, epsilon, delta, neighbors, allocation, objective)
        except ValueError:  # too much noise, or too little, to be drawn
            return False
        return _largest_noise(noise, beta) / n <= asked

    return in_reach("alpha", asked, lambda: least_float(enough, largest=_MOST_EPSILON))


def _tables(domain: Any, workload: Any, fit: Any, neighbors: Any) -> Marginals:
    check_domain(domain)
    parameters.neighbors(neighbors)
    return checked_workload(domain, workload, fit)


def _noise(
    tables: Marginals, epsilon: Any, delta: Any, neighbors: Neighbors, allocation: Any, objective: Any,
    noise: Any = "auto",
) -> TableNoise:  # fmt: skip
    one_of("allocation", allocation, ("equal", "planned"))
    return planned_noise(tables, epsilon, delta, neighbors, "least-squares", noise, allocation, objective, None)


def _largest_noise(noise: TableNoise, beta: float) -> float:
    """What none of all entries' noises exceeds, in records, but with probability beta."""
    if not isinstance(noise, EqualNoise):
        return _largest_of_planned(noise, beta)
    cells, plan = len(noise.tables), noise.noise.plan
    if isinstance(plan, LaplacePlan):
        return bounds.laplace(sensitivity=plan.scale, epsilon=1.0, beta=beta, count=cells)
    return noise.noise.sigma * sqrt(2 * log(2 * cells / beta))


def _largest_of_planned(noise: TableNoise, beta: float) -> float:
    """Entries have variances of their own: their chances of an error as large are added up."""
    least_squares = least_squares_of(noise.workload)
    variances = least_squares.variances_of_tables(noise.variances)
    cells = np.array([float(prod(shape)) for shape in noise.workload.shapes])
    some = variances > 0
    variances, cells = variances[some], cells[some]
    largest = sqrt(float(variances.max()))

    def rare(deviations: float) -> bool:
        return float((2 * cells * np.exp(-((deviations * largest) ** 2) / (2 * variances))).sum()) <= beta

    return largest * least_float(rare, largest=_MOST_DEVIATIONS)
