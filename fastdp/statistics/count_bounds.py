"""The error bounds of counts and histograms, and their inverses. Public as `fastdp.bounds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..mechanisms.bounds import gaussian, laplace
from ..privacy.guarantees import Neighbors
from ..randomness.noise_plans import LaplacePlan
from ..support import parameters
from ..support.checks import integer
from ..support.parameters import MOST_BINS
from ..support.rounding import root_up
from ..support.search import LARGEST, in_reach, least_float
from .noise import integer_noise_for


def count(
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the error of `statistics.count`.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    statistics.md, theorem 1, and the tail of the noise

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.count(epsilon=1.0), 3)
    3.376
    """
    parameters.neighbors(neighbors)
    return largest_draw(1, 1, 1, epsilon, delta, beta, neighbors)


def count_epsilon(
    *,
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `statistics.count` keeps within an error.

    Parameters
    ----------
    error : float > 0
        The error that is asked for.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Rounded up, to 6 digits.
    """
    return least_epsilon(error, lambda epsilon: count(epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors))


def histogram(
    bins: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the error of the counts of `statistics.histogram`: of all of them at once.

    Parameters
    ----------
    bins : int
        How many bins.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    statistics.md, theorem 1, and the tail of the noise

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.histogram(100, epsilon=1.0), 2)
    15.64
    """
    bins = integer("bins", bins, least=1, most=MOST_BINS)
    moved = 1 if parameters.neighbors(neighbors) == "add-remove" else 2
    return largest_draw(bins, moved, moved, epsilon, delta, beta, neighbors)


def histogram_epsilon(
    bins: int,
    *,
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which no count of `statistics.histogram` is off by more.

    Parameters
    ----------
    bins : int
        How many bins.
    error : float > 0
        The error that is asked for.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Rounded up, to 6 digits.
    """
    return least_epsilon(
        error, lambda epsilon: histogram(bins, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors)
    )


def largest_draw(
    entries: int, l1: int, squared_l2: int, epsilon: Any, delta: Any, beta: Any, neighbors: Neighbors
) -> float:
    """What none of so many draws exceeds: of the noise that the statistic takes."""
    delta = parameters.delta_or_none(delta)
    noise = integer_noise_for(entries, l1, squared_l2, epsilon, delta, neighbors) if delta else None
    if noise is None or isinstance(noise.plan, LaplacePlan):
        return laplace(sensitivity=l1, epsilon=epsilon, beta=beta, count=entries)
    return gaussian(sensitivity=root_up(squared_l2), epsilon=epsilon, delta=delta, beta=beta, count=entries)


def least_epsilon(error: Any, error_at: Callable[[float], float]) -> float:
    most: float = parameters.error(error)
    return in_reach(
        "error", most, lambda: least_float(lambda epsilon: error_at(epsilon) <= most, tolerance=1e-6, largest=LARGEST)
    )
