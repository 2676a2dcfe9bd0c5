"""The error bound of `release_marginals`, from public numbers: release_marginals.md, theorem 1; as `fastdp.bounds`."""

from __future__ import annotations

from collections.abc import Iterable
from math import log, sqrt
from typing import Any

from ..mechanisms import bounds
from ..privacy.guarantees import Neighbors
from ..randomness.noise_plans import LaplacePlan
from ..records.domain import Domain, check_domain
from ..support import parameters
from ..support.checks import MAX_INT64, large_integer, one_of, probability
from ..support.search import in_reach, least_float, least_integer
from .estimate import Estimate
from .marginal_fits import Fit, bytes_of_release
from .marginal_noise import NOISES, MarginalNoise, NoiseKind, marginal_noise
from .queries.marginals import Marginals
from .release_marginals import checked_workload

_MOST_EPSILON = 2.0**9


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
    neighbors: Neighbors = "replace-one",
) -> Estimate:
    """The error bound of `release_marginals` on n records for the tables as measured, and what it takes.

    It is that of the same noise on every cell. Where noise is planned its deviation is less, and fits come closer.

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
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Estimate
        With `.alpha`, within which every entry of every table is, as a fraction of n, and `.bytes`.
    """
    n, beta = large_integer("n", n, least=1, most=MAX_INT64), parameters.beta(beta)
    tables, planned = _tables(domain, workload, epsilon, delta, fit, neighbors, noise)
    return Estimate(_largest_noise(tables, planned, beta) / n, beta, 1, domain.size, *bytes_of_release(n, tables, fit))


def release_marginals_n(
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    alpha: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """The least number of records with which every entry that `release_marginals` measures is within alpha.

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
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
        The number of records.
    """
    asked, beta = probability("alpha", alpha), parameters.beta(beta)
    error = _largest_noise(*_tables(domain, workload, epsilon, delta, None, neighbors), beta)
    return in_reach("alpha", asked, lambda: least_integer(lambda n: error / n <= asked, low=1, largest=MAX_INT64))


def release_marginals_epsilon(
    n: int,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    alpha: float,
    delta: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The least epsilon (to 10 digits) with which every entry that `release_marginals` measures is within alpha.

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
    tables, _ = _tables(domain, workload, 1.0, delta, None, neighbors)

    def enough(epsilon: float) -> bool:
        try:
            noise = marginal_noise(tables, epsilon, delta, neighbors)
        except ValueError:  # too much noise, or too little, to be drawn
            return False
        return _largest_noise(tables, noise, beta) / n <= asked

    return in_reach("alpha", asked, lambda: least_float(enough, largest=_MOST_EPSILON))


def _tables(
    domain: Any, workload: Any, epsilon: Any, delta: Any, fit: Any, neighbors: Any, noise: Any = "auto"
) -> tuple[Marginals, MarginalNoise]:
    check_domain(domain)
    parameters.neighbors(neighbors)
    tables = checked_workload(domain, workload, fit)
    one_of("noise", noise, NOISES)
    return tables, marginal_noise(tables, epsilon, delta, neighbors, noise)


def _largest_noise(tables: Marginals, noise: MarginalNoise, beta: float) -> float:
    """What none of all entries' noises exceeds, in records, but with probability beta."""
    if isinstance(noise.plan, LaplacePlan):
        return bounds.laplace(sensitivity=noise.plan.scale, epsilon=1.0, beta=beta, count=len(tables))
    return noise.sigma * sqrt(2 * log(2 * len(tables) / beta))
