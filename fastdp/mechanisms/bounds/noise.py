"""Error bounds of noise: Laplace, Gaussian, and AboveThreshold, which adds it twice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...privacy.calibration import MAX_EPSILON, gaussian_ratio, gaussian_sigma, zcdp_sigma
from ...support import parameters, rounding
from ...support.checks import integer
from ...support.rounding import up
from ...support.shown import shown
from ..above_threshold import split
from .tails import gaussian_tail, laplace_tail, least_parameter


def laplace(*, sensitivity: float, epsilon: float, beta: float = 0.05, count: int = 1) -> float:
    """The error that none of `count` entries of a `laplace` release exceeds, except with probability beta.

    Parameters
    ----------
    sensitivity : float > 0
        Of the values in L1.
    epsilon : float > 0
        The epsilon of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many entries the bound is for.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    Pr[|Z| > t] <= 2 q^t / (1 + q), q = exp(-1/s), s = sensitivity / epsilon; union over the entries

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.laplace(sensitivity=1, epsilon=1.0, beta=0.05), 3)
    3.376
    """
    sensitivity = parameters.sensitivity(sensitivity)
    scale = up(Fraction(sensitivity) / Fraction(parameters.epsilon(epsilon)))
    return up(laplace_tail(scale, parameters.beta(beta), integer("count", count, least=1)))


def laplace_epsilon(*, error: float, sensitivity: float, beta: float = 0.05, count: int = 1) -> float:
    """The least epsilon with which `laplace` keeps within this error.

    Parameters
    ----------
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the values in L1.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many entries the bound is for.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    error = parameters.error(error)
    options: dict[str, Any] = {"sensitivity": sensitivity, "beta": beta, "count": count}
    return least_parameter(lambda e: laplace(epsilon=e, **options) <= error, "error", error)


@rounding.sixty_digits
def gaussian(
    *,
    sensitivity: float,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    beta: float = 0.05,
    count: int = 1,
) -> float:
    """The error that none of `count` entries of a `gaussian` release exceeds, except with probability beta.

    Parameters
    ----------
    sensitivity : float > 0
        Of the values in L2.
    rho : float > 0, optional
        The rho of the release; or else epsilon and delta.
    epsilon : float > 0, optional
        The epsilon of the release.
    delta : float in (0, 1), optional
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many entries the bound is for.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    E e^(t Z) <= e^(t^2 sigma^2 / 2) for discrete Gaussian noise, hence
               Pr[|Z| >= t] <= 2 exp(-t^2 / (2 sigma^2)); union over the entries

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.gaussian(sensitivity=1, rho=0.5, beta=0.05), 3)
    2.716
    """
    sensitivity = parameters.sensitivity(sensitivity)
    count = integer("count", count, least=1)
    if rho is not None and epsilon is None and delta is None:
        sigma = zcdp_sigma(sensitivity, rho=parameters.rho(rho))
    elif rho is None and epsilon is not None and delta is not None:
        price = parameters.epsilon(epsilon), parameters.delta(delta)
        if price[0] > MAX_EPSILON:
            raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g}")
        of_integers = gaussian_sigma(sensitivity, epsilon=price[0], delta=price[1], dimension=count)
        sigma = max(of_integers, sensitivity * gaussian_ratio(*price))  # of floats
    else:
        raise ValueError(
            f"rho={shown(rho)}, epsilon={shown(epsilon)}, delta={shown(delta)}: give either rho, or epsilon and delta"
        )
    return up(gaussian_tail(sigma, 2 * count, parameters.beta(beta)))


def gaussian_rho(*, error: float, sensitivity: float, beta: float = 0.05, count: int = 1) -> float:
    """The least rho with which `gaussian` keeps within this error.

    Parameters
    ----------
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the values in L2.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many entries the bound is for.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    error = parameters.error(error)
    return least_parameter(
        lambda r: gaussian(sensitivity=sensitivity, rho=r, beta=beta, count=count) <= error, "error", error
    )


def gaussian_epsilon(*, error: float, sensitivity: float, delta: float, beta: float = 0.05, count: int = 1) -> float:
    """The least epsilon with which `gaussian` at this delta keeps within this error.

    Parameters
    ----------
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the values in L2.
    delta : float in (0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many entries the bound is for.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    error = parameters.error(error)
    delta = parameters.delta(delta)
    options: dict[str, Any] = {"sensitivity": sensitivity, "delta": delta, "beta": beta, "count": count}
    if gaussian(epsilon=MAX_EPSILON, **options) > error:
        raise ValueError(f"error={shown(error)}: is out of reach with an epsilon of at most {MAX_EPSILON:g}")
    return least_parameter(lambda e: gaussian(epsilon=min(e, MAX_EPSILON), **options) <= error, "error", error)


def above_threshold(queries: int, *, sensitivity: float, epsilon: float, beta: float = 0.05) -> float:
    """The margin of `AboveThreshold` over so many queries, except with probability beta.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    sensitivity : float > 0
        Of the values.
    epsilon : float > 0
        The epsilon of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    every query that was answered False has a value below threshold + margin, the one that was answered True
               a value of at least threshold - margin: margin = t1 + t2, where neither the noise of the threshold (t1,
               beta/2) nor any of the queries' (t2, beta/2, union) is larger

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.above_threshold(1000, sensitivity=1, epsilon=1.0), 1)
    46.0
    """
    queries = integer("queries", queries, least=1)
    beta = parameters.beta(beta)
    sensitivity = parameters.sensitivity(sensitivity)
    first, second = split(Fraction(sensitivity), parameters.epsilon(epsilon))
    return up(rounding.add(laplace_tail(first, beta, 2), laplace_tail(second, beta, 2 * queries)))


def above_threshold_epsilon(queries: int, *, error: float, sensitivity: float, beta: float = 0.05) -> float:
    """The least epsilon with which `AboveThreshold` keeps within this margin.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the values.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    error = parameters.error(error)
    options = {"sensitivity": sensitivity, "beta": beta}
    return least_parameter(lambda e: above_threshold(queries, epsilon=e, **options) <= error, "error", error)
