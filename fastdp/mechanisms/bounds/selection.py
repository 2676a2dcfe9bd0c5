"""Error bounds of choices: by how much a chosen score may fall short of the best."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf

from ...privacy.composition import compose
from ...privacy.guarantees import BoundedRange
from ...support import parameters, rounding
from ...support.checks import integer
from ...support.rounding import sixty_digits, up
from ...support.shown import shown
from ..scores import eta_of, pair_factor, range_of_each
from .tails import log_ratio


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


def _rounds(candidates: int, k: int) -> int:
    candidates = integer("candidates", candidates, least=1)
    if integer("k", k, least=1) > candidates:
        raise ValueError(f"k={k}: must be at most candidates={candidates}")
    return candidates


@sixty_digits
def _shortfall(
    events: int, rounds: int, sensitivity: float, epsilon: float, delta: float, beta: float, monotonic: bool
) -> float:
    """The least t with events e^(-eta t) <= beta, where so many rounds of the exponential mechanism share epsilon."""
    sensitivity, epsilon = parameters.sensitivity(sensitivity), parameters.epsilon(epsilon)
    eta = eta_of(range_of_each(epsilon, parameters.delta_or_none(delta), rounds), sensitivity, pair_factor(monotonic))
    log = log_ratio(events, parameters.beta(beta))
    return up(rounding.divide(log, Decimal(eta))) if eta else inf


@sixty_digits
def _enough(
    events: int, rounds: int, error: float, sensitivity: float, delta: float, beta: float, monotonic: bool
) -> float:
    """The least epsilon (to 10 digits) with which the shortfall is at most `error`."""
    pair_sensitivity = Fraction(parameters.sensitivity(sensitivity)) * pair_factor(monotonic)
    unit = up(pair_sensitivity / Fraction(parameters.error(error)))
    each = up(rounding.multiply(Decimal(unit), log_ratio(events, parameters.beta(beta))))
    delta = parameters.delta_or_none(delta)
    if each > 2.0**60:
        raise ValueError(f"error={shown(error)}: is out of reach")
    if delta:
        epsilon = compose((BoundedRange(each), rounds), delta=delta).to_approx(delta).epsilon
    else:
        epsilon = up(rounds * Fraction(each))
    return up(Fraction(epsilon) * (1 + Fraction(1, 10**10)))
