"""How far ranges are off: the error bounds of `release_ranges` from public numbers. Public as `fastdp.bounds`."""

from __future__ import annotations

from typing import Any

from ..privacy.guarantees import Neighbors
from ..support import parameters
from ..support.checks import MAX_INT64, large_integer, probability
from ..support.search import in_reach, least_float, least_integer
from .release_ranges import Method, domain_of, plan_ranges

_MOST_EPSILON = 2.0**9


def release_ranges(
    n: int,
    edges: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: Method = "auto",
    neighbors: Neighbors = "replace-one",
) -> float:
    """The error bound of `release_ranges` on n records, for all ranges that begin with the first bin at once.

    Before the fit to counts that are at least 0, which comes closer. Other ranges of one attribute are within twice as
    much.

    Parameters
    ----------
    n : int
        The number of records.
    edges : array_like, Bins or mapping from str
        As `release_ranges` takes them.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    method : {"auto", "digits", "square-root"}
        As of `release_ranges`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Within which every such count is, as a fraction of n.

    Notes
    -----
    Theorem    fastdp/answering/release_ranges.md, theorem 3

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.release_ranges(50_000, range(4097), epsilon=1.0), 4)
    0.0043
    """
    n, beta = large_integer("n", n, least=1, most=MAX_INT64), parameters.beta(beta)
    return plan_ranges(domain_of(edges).sizes, epsilon, delta, neighbors, method).largest(beta) / n


def release_ranges_n(
    edges: Any,
    *,
    alpha: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: Method = "auto",
    neighbors: Neighbors = "replace-one",
) -> int:
    """The least number of records with which every range from the first bin is within alpha, before the fit.

    Parameters
    ----------
    edges : array_like, Bins or mapping from str
        As `release_ranges` takes them.
    alpha : float in (0, 1)
        The accuracy asked for, as a fraction of the records.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    method : {"auto", "digits", "square-root"}
        As of `release_ranges`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
        The number of records.
    """
    asked, beta = probability("alpha", alpha), parameters.beta(beta)
    error = plan_ranges(domain_of(edges).sizes, epsilon, delta, neighbors, method).largest(beta)
    return in_reach("alpha", asked, lambda: least_integer(lambda n: error / n <= asked, low=1, largest=MAX_INT64))


def release_ranges_epsilon(
    n: int,
    edges: Any,
    *,
    alpha: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: Method = "auto",
    neighbors: Neighbors = "replace-one",
) -> float:
    """The least epsilon (to 10 digits) with which every range from the first bin is within alpha, before the fit.

    Parameters
    ----------
    n : int
        The number of records.
    edges : array_like, Bins or mapping from str
        As `release_ranges` takes them.
    alpha : float in (0, 1)
        The accuracy asked for, as a fraction of the records.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    method : {"auto", "digits", "square-root"}
        As of `release_ranges`. "auto" changes with epsilon to the one with less noise; the bound at the epsilon that is
        returned holds.
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
    asked, sizes = probability("alpha", alpha), domain_of(edges).sizes
    plan_ranges(sizes, 1.0, delta, neighbors, method)

    def enough(epsilon: float) -> bool:
        try:
            noise = plan_ranges(sizes, epsilon, delta, neighbors, method)
        except ValueError:  # too much noise, or too little, to be drawn
            return False
        return noise.largest(beta) / n <= asked

    return in_reach("alpha", asked, lambda: least_float(enough, largest=_MOST_EPSILON))
