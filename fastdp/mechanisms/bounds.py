"""The error bounds of single mechanisms, and their inverses. Public as `fastdp.bounds`.

Functions are named after the mechanisms. The plain name gives the error for given parameters; the name with a parameter
behind it solves for that parameter. All hold with probability at least 1 - beta over the noise, for the noise that is
really drawn (discrete tails: docs/algorithms.md, conventions), and for any data. They are stated for integers; for
floats on their default grid add a thousandth, which the charge for the rounding costs, and two units of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

from ..privacy.calibration import MAX_EPSILON, gaussian_sigma, zcdp_sigma
from ..privacy.composition import compose
from ..privacy.guarantees import BoundedRange
from ..support import rounding
from ..support.checks import integer, positive, probability, small_delta
from ..support.rounding import up
from ..support.search import OutOfReachError, least_float
from .scores import eta_of, pair_factor, range_of_each
from .sparse_vector import split


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
    sensitivity = positive("sensitivity", sensitivity, toward=inf)
    scale = up(Fraction(sensitivity) / Fraction(positive("epsilon", epsilon, toward=0)))
    return up(_laplace_tail(scale, probability("beta", beta), integer("count", count, least=1)))


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
    error = positive("error", error, toward=0)
    options: dict[str, Any] = {"sensitivity": sensitivity, "beta": beta, "count": count}
    return _least(lambda e: laplace(epsilon=e, **options) <= error, "error", error)


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
    sensitivity = positive("sensitivity", sensitivity, toward=inf)
    count = integer("count", count, least=1)
    if rho is not None and epsilon is None and delta is None:
        sigma = zcdp_sigma(sensitivity, rho=positive("rho", rho, toward=0))
    elif rho is None and epsilon is not None and delta is not None:
        price = positive("epsilon", epsilon, toward=0), probability("delta", delta)
        if price[0] > MAX_EPSILON:
            raise ValueError(f"epsilon={epsilon!r}: must be at most {MAX_EPSILON:g}")
        sigma = gaussian_sigma(sensitivity, epsilon=price[0], delta=price[1], dimension=count)
    else:
        raise ValueError(f"rho={rho!r}, epsilon={epsilon!r}, delta={delta!r}: give either rho, or epsilon and delta")
    return up(rounding.multiply(Decimal(sigma), rounding.sqrt(2 * _log_ratio(2 * count, probability("beta", beta)))))


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
    error = positive("error", error, toward=0)
    return _least(lambda r: gaussian(sensitivity=sensitivity, rho=r, beta=beta, count=count) <= error, "error", error)


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
    error = positive("error", error, toward=0)
    delta = probability("delta", delta)
    options: dict[str, Any] = {"sensitivity": sensitivity, "delta": delta, "beta": beta, "count": count}
    if gaussian(epsilon=MAX_EPSILON, **options) > error:
        raise ValueError(f"error={error!r}: is out of reach with an epsilon of at most {MAX_EPSILON:g}")
    return _least(lambda e: gaussian(epsilon=min(e, MAX_EPSILON), **options) <= error, "error", error)


def exponential_mechanism(
    candidates: int,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    size: int = 1,
) -> float:
    """By how much the score of any of `size` draws may fall short of the best, except with probability beta.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    sensitivity : float > 0
        Of the scores.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.
    size : int >= 1
        How many draws share epsilon.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    Pr[score <= best - t] <= candidates e^(-eta t), eta as the mechanism has it: for one draw
               epsilon / (r sensitivity), r = 1 for scores that a record changes in one direction (monotonic), 2
               otherwise

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.exponential_mechanism(1000, sensitivity=1, epsilon=1.0), 2)
    19.81
    """
    size = integer("size", size, least=1)
    events = integer("candidates", candidates, least=1) * size
    return _shortfall(events, size, sensitivity, epsilon, delta, beta, monotonic)


def exponential_mechanism_epsilon(
    candidates: int,
    *,
    error: float,
    sensitivity: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    size: int = 1,
) -> float:
    """The least epsilon with which the exponential mechanism keeps within this error.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the scores.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.
    size : int >= 1
        How many draws share epsilon.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    size = integer("size", size, least=1)
    events = integer("candidates", candidates, least=1) * size
    return _enough(events, size, error, sensitivity, delta, beta, monotonic)


def permute_and_flip(
    candidates: int, *, sensitivity: float, epsilon: float, beta: float = 0.05, monotonic: bool = False
) -> float:
    """By how much the score that `permute_and_flip` chooses may fall short of the best, except with probability beta.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    sensitivity : float > 0
        Of the scores.
    epsilon : float > 0
        The epsilon of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    a candidate t or more below the best shows heads with probability at most e^(-eta t); union. The expected
               shortfall is at most that of the exponential mechanism, and half of it at best

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.permute_and_flip(1000, sensitivity=1, epsilon=1.0), 2)
    19.81
    """
    return exponential_mechanism(candidates, sensitivity=sensitivity, epsilon=epsilon, beta=beta, monotonic=monotonic)


def permute_and_flip_epsilon(
    candidates: int, *, error: float, sensitivity: float, beta: float = 0.05, monotonic: bool = False
) -> float:
    """The least epsilon with which `permute_and_flip` keeps within this error.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the scores.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    return exponential_mechanism_epsilon(
        candidates, error=error, sensitivity=sensitivity, beta=beta, monotonic=monotonic
    )


def top_k(
    candidates: int,
    k: int,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
) -> float:
    """By how much the i-th score that `top_k` chooses may fall short of the i-th best, for all i, with this beta.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    k : int >= 1
        How many are chosen.
    sensitivity : float > 0
        Of the scores.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    in round i one of the i best is left; union over the rounds of the exponential mechanism's bound

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.top_k(1000, 10, sensitivity=1, epsilon=10.0), 2)
    24.41
    """
    return _shortfall(_rounds(candidates, k) * k, k, sensitivity, epsilon, delta, beta, monotonic)


def top_k_epsilon(
    candidates: int,
    k: int,
    *,
    error: float,
    sensitivity: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
) -> float:
    """The least epsilon with which `top_k` keeps within this error.

    Parameters
    ----------
    candidates : int >= 1
        How many candidates there are.
    k : int >= 1
        How many are chosen.
    error : float > 0
        The error that is asked for.
    sensitivity : float > 0
        Of the scores.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all scores in one direction only.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    return _enough(_rounds(candidates, k) * k, k, error, sensitivity, delta, beta, monotonic)


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
    beta = probability("beta", beta)
    sensitivity = positive("sensitivity", sensitivity, toward=inf)
    first, second = split(Fraction(sensitivity), positive("epsilon", epsilon, toward=0))
    return up(rounding.add(_laplace_tail(first, beta, 2), _laplace_tail(second, beta, 2 * queries)))


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
    error = positive("error", error, toward=0)
    options = {"sensitivity": sensitivity, "beta": beta}
    return _least(lambda e: above_threshold(queries, epsilon=e, **options) <= error, "error", error)


# --- pieces


def _log_ratio(top: int, beta: float) -> Decimal:
    """ln(top / beta)."""
    return rounding.ln(rounding.divide(Decimal(top), Decimal(beta)))


def _rounds(candidates: int, k: int) -> int:
    candidates = integer("candidates", candidates, least=1)
    if integer("k", k, least=1) > candidates:
        raise ValueError(f"k={k}: must be at most candidates={candidates}")
    return candidates


def _shortfall(
    events: int, rounds: int, sensitivity: float, epsilon: float, delta: float, beta: float, monotonic: bool
) -> float:
    """The least t with events e^(-eta t) <= beta, where so many rounds of the exponential mechanism share epsilon."""
    sensitivity, epsilon = positive("sensitivity", sensitivity, toward=inf), positive("epsilon", epsilon, toward=0)
    eta = eta_of(range_of_each(epsilon, small_delta("delta", delta), rounds), sensitivity, pair_factor(monotonic))
    log = _log_ratio(events, probability("beta", beta))
    return up(rounding.divide(log, Decimal(eta))) if eta else inf


def _enough(
    events: int, rounds: int, error: float, sensitivity: float, delta: float, beta: float, monotonic: bool
) -> float:
    """The least epsilon (to 10 digits) with which the shortfall is at most `error`."""
    reach = Fraction(positive("sensitivity", sensitivity, toward=inf)) * pair_factor(monotonic)
    unit = up(reach / Fraction(positive("error", error, toward=0)))
    each = up(rounding.multiply(Decimal(unit), _log_ratio(events, probability("beta", beta))))
    delta = small_delta("delta", delta)
    if each > 2.0**60:
        raise ValueError(f"error={error!r}: is out of reach")
    if delta:
        epsilon = compose((BoundedRange(each), rounds), delta=delta).to_approx(delta).epsilon
    else:
        epsilon = up(rounds * Fraction(each))
    return up(Fraction(epsilon) * (1 + Fraction(1, 10**10)))


def _laplace_tail(scale: float, beta: float, count: int) -> Decimal:
    """The least t with count * 2 q^t / (1 + q) <= beta; as q < 1, it is positive."""
    q = rounding.exp(rounding.divide(Decimal(-1), Decimal(scale)))
    log = rounding.subtract(_log_ratio(2 * count, beta), rounding.ln(rounding.add(Decimal(1), q)))
    return rounding.multiply(Decimal(scale), log)


def _least(enough: Callable[[float], bool], name: str, value: float) -> float:
    """The least parameter that is enough, to 10 digits; more of it must never be worse."""
    try:
        return least_float(enough)
    except OutOfReachError:
        raise ValueError(f"{name}={value!r}: is out of reach") from None
