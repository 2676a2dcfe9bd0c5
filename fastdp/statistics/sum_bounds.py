"""The error bounds of sums, means and variances, and their inverses. Public as `fastdp.bounds`.

They hold with probability at least 1 - beta over the noise, for any numbers between the bounds: of integers, or of
floats as they are on the grid of statistics.md, lemma 1, which moves a number by at most 2^-31 of the range (variances
by 2^-26 of its square; less fine where epsilon is below 2^-8).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, inf
from typing import Any

from ..privacy.guarantees import Neighbors
from ..support import parameters
from ..support.checks import large_integer
from ..support.parameters import Missing
from ..support.rounding import up
from ..support.search import in_reach, least_integer
from .clamped import Bits, Grid, ends_of
from .count_bounds import largest_draw, least_epsilon

_BITS = 26  # of the units of a range, where numbers are no integers


def sum(
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the error of `statistics.sum`.

    Parameters
    ----------
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    statistics.md, theorem 2, and the tail of the noise. Rounding of floats adds at most
               n (high - low) / 2^31

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.sum(bounds=(0, 80), epsilon=1.0), 1)
    240.2
    """
    low, high = ends_of(bounds)
    unit = _unit(bounds)
    moved = high - low
    if not _knows_size(missing, neighbors):
        moved = max(abs(low), abs(high), moved if neighbors == "replace-one" else Fraction(0))
    units = _units(moved, unit)
    draw = largest_draw(1, units, units**2, epsilon, delta, beta, neighbors)
    return up(Fraction(draw) * unit) if draw < inf else inf


def sum_epsilon(
    *,
    bounds: tuple[float, float],
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `statistics.sum` keeps within an error.

    Parameters
    ----------
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    error : float > 0
        The error that is asked for.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Rounded up, to 6 digits.
    """
    options: dict[str, Any] = {
        "bounds": bounds, "delta": delta, "beta": beta, "missing": missing, "neighbors": neighbors,
    }  # fmt: skip
    return least_epsilon(error, lambda epsilon: sum(epsilon=epsilon, **options))


def mean(
    n: int,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the error of `statistics.mean`.

    Parameters
    ----------
    n : int
        How many numbers there are.
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    statistics.md, theorem 3, and the tail of the noise: t/n of the range, and t/(n - 2t) where n is
               private, for draws of at most t ranges

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.mean(1_000, bounds=(0, 100), epsilon=1.0), 2)
    0.3
    """
    low, high = ends_of(bounds)
    n = large_integer("n", n, least=1)
    units = _units(high - low, unit := _unit(bounds))
    share = _of_share(n, units, epsilon, delta, beta, missing, neighbors)
    return up(min(high - low, share * units * unit))


def mean_n(
    *,
    bounds: tuple[float, float],
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute of how many numbers `statistics.mean` keeps within an error.

    Parameters
    ----------
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    error : float > 0
        The error that is asked for.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
        The least number.
    """
    options: dict[str, Any] = {
        "bounds": bounds, "epsilon": epsilon, "delta": delta, "beta": beta, "missing": missing, "neighbors": neighbors,
    }  # fmt: skip
    return _least_size(error, lambda n: mean(n, **options))


def mean_epsilon(
    n: int,
    *,
    bounds: tuple[float, float],
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `statistics.mean` keeps within an error.

    Parameters
    ----------
    n : int
        How many numbers there are.
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    error : float > 0
        The error that is asked for.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Rounded up, to 6 digits.
    """
    options: dict[str, Any] = {
        "bounds": bounds, "delta": delta, "beta": beta, "missing": missing, "neighbors": neighbors,
    }  # fmt: skip
    return least_epsilon(error, lambda epsilon: mean(n, epsilon=epsilon, **options))


def variance(
    n: int,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the error of `statistics.variance`.

    Parameters
    ----------
    n : int
        How many numbers there are.
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    statistics.md, theorem 4, and the tail of the noise: t/n of the squared range, and t/(n - 2t) where n is
               private, for draws of at most t ranges

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.variance(1_000, bounds=(0, 100), epsilon=1.0), 1)
    30.0
    """
    low, high = ends_of(bounds)
    n = large_integer("n", n, least=1)
    units = _units(high - low, unit := _unit(bounds))
    share = _of_share(n, units, epsilon, delta, beta, missing, neighbors)
    return up(min((high - low) ** 2 / 4, share * (units * unit) ** 2))


def variance_n(
    *,
    bounds: tuple[float, float],
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute of how many numbers `statistics.variance` keeps within an error.

    Parameters
    ----------
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    error : float > 0
        The error that is asked for.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
        The least number.
    """
    options: dict[str, Any] = {
        "bounds": bounds, "epsilon": epsilon, "delta": delta, "beta": beta, "missing": missing, "neighbors": neighbors,
    }  # fmt: skip
    return _least_size(error, lambda n: variance(n, **options))


def variance_epsilon(
    n: int,
    *,
    bounds: tuple[float, float],
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    missing: Missing = "raise",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `statistics.variance` keeps within an error.

    Parameters
    ----------
    n : int
        How many numbers there are.
    bounds : pair of numbers
        The lower and the upper bound of the numbers.
    error : float > 0
        The error that is asked for.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    missing : {"raise", "skip"}
        Whether entries may be missing: how many numbers there are is private then.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        Rounded up, to 6 digits.
    """
    options: dict[str, Any] = {
        "bounds": bounds, "delta": delta, "beta": beta, "missing": missing, "neighbors": neighbors,
    }  # fmt: skip
    return least_epsilon(error, lambda epsilon: variance(n, epsilon=epsilon, **options))


def _least_size(error: Any, error_at: Callable[[int], float]) -> int:
    most: float = parameters.error(error)
    return in_reach("error", most, lambda: least_integer(lambda n: error_at(n) <= most, low=1))


def _knows_size(missing: Any, neighbors: Any) -> bool:
    """Whether how many numbers there are is public."""
    return bool(parameters.missing(missing) == "raise" and parameters.neighbors(neighbors) == "replace-one")


def _unit(bounds: Any) -> Fraction:
    """The unit of the integers that get noise: of integers between integer bounds 1, and otherwise a small one."""
    low, high = ends_of(bounds)
    whole = low.denominator == high.denominator == 1 and high - low <= 2**_BITS
    return Fraction(1) if whole else Fraction(Grid.of(bounds, "f", Bits(_BITS, _BITS)).unit)


def _units(moved: Fraction, unit: Fraction) -> int:
    """So many units at most, wherever the grid is."""
    return int(moved) if unit == 1 else ceil(moved / unit) + 1


def _of_share(n: int, units: int, epsilon: Any, delta: Any, beta: Any, missing: Any, neighbors: Any) -> Fraction:
    """Of a sum to which each of n records adds up to so many units, over the most that it could be."""
    known = _knows_size(missing, neighbors)
    entries, twice = (1, 1) if known else (2, 2 if neighbors == "replace-one" else 1)
    draw = largest_draw(entries, twice * units, twice * units**2, epsilon, delta, beta, neighbors)
    if not draw < inf:
        return Fraction(1)
    everything = n * units if known else n * units - 2 * Fraction(draw)
    return Fraction(draw) / everything if everything > 0 else Fraction(1)
