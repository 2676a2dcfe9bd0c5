"""How far private answers about a sample are from the population: the transfer theorem, in numbers.

Answers that are close to the sample and differentially private are close to the population that the sample was drawn
from, although each query was chosen after the answers before it. Theorem and proof: transfer_theorem.md.
"""

from __future__ import annotations

from decimal import Decimal
from math import inf

from ..privacy.guarantees import Guarantee
from ..support import parameters, rounding
from ..support.checks import instance_of
from ..support.rounding import down, up
from ..support.shown import shown

_DELTAS = tuple(10.0 ** (-k / 2) for k in range(4, 81))  # where the guarantee has many, the best of these


def transfer_theorem(error: float, *, guarantee: Guarantee, failure: float, beta: float = 0.05) -> float:
    """How far any of many adaptive answers is from the population, of which the records are a sample.

    Parameters
    ----------
    error : float > 0
        Within which all answers together are of the values on the sample: the error bound of a mechanism whose answers
        are averages over n records, of queries with values in [0, 1].
    guarantee : Guarantee
        Of all answers together.
    failure : float in (0, 1)
        The probability with which `error` may be exceeded: the beta of the mechanism's error bound. Much less than
        beta, as failure / beta is added to the result.
    beta : float in (0, 1)
        The probability with which the result may fail, over sample and noise.

    Returns
    -------
    float
        The bound, rounded up; at least `error`.

    Notes
    -----
    Theorem    if the answers are (epsilon, delta)-DP for replace-one neighbours, and all within `error` of the sample
               except with probability f, then all are within error + tanh(epsilon / 4) + (sqrt f + sqrt(2 delta))^2 /
               beta of the population, except with probability beta, for any number of queries and any population:
               transfer_theorem.md. The records are drawn independently

    Examples
    --------
    >>> from fastdp import ApproxDP, bounds
    >>> round(bounds.transfer_theorem(0.01, guarantee=ApproxDP(0.1, 1e-8), failure=1e-5), 4)
    0.0352
    """
    error = parameters.error(error)
    failure = _failure(failure)
    beta = parameters.beta(beta)
    instance_of(Guarantee, "guarantee", guarantee, "a guarantee, such as ApproxDP(0.1, 1e-8)")
    guarantee = guarantee.to_replace_one()
    least = guarantee.least_delta()
    candidates = [least, *(delta for delta in _DELTAS if delta > least)]
    return min(_total(error, _epsilon(guarantee, delta), delta, failure, beta) for delta in candidates)


def transfer_theorem_epsilon(
    error: float, *, sample_error: float, failure: float, delta: float = 0.0, beta: float = 0.05
) -> float:
    """The largest epsilon with which answers that are this close to the sample are within `error` of the population.

    Parameters
    ----------
    error : float > 0
        The error that is asked for, against the population.
    sample_error : float > 0
        Within which all answers together are of the values on the sample.
    failure : float in (0, 1)
        The probability with which `sample_error` may be exceeded.
    delta : float in [0, 1)
        The delta of all answers together.
    beta : float in (0, 1)
        The probability with which `error` may be exceeded, over sample and noise.

    Returns
    -------
    float
        Rounded down.

    Raises
    ------
    ValueError
        Where no epsilon is small enough.
    """
    error, sample_error = parameters.error(error), parameters.error(sample_error)
    failure, delta, beta = _failure(failure), parameters.delta_or_none(delta), parameters.beta(beta)
    left, others = _left(error, sample_error, delta, failure, beta)
    if left <= 0:
        raise ValueError(f"error={shown(error)}: is out of reach: other terms alone are {others!r}")
    return inf if left >= 1 else down(_four_artanh(left))


def _failure(failure: float) -> float:
    try:
        return parameters.beta(failure)
    except ValueError:
        raise ValueError(f"failure={shown(failure)}: must be in (0, 1)") from None


def _epsilon(guarantee: Guarantee, delta: float) -> float:
    try:
        return guarantee.to_approx(delta).epsilon
    except ValueError:  # it has none there
        return inf


@rounding.sixty_digits
def _slack(delta: float, failure: float, beta: float) -> Decimal:
    """(sqrt f + sqrt(2 delta))^2 / beta."""
    roots = rounding.sqrt(Decimal(failure)) + rounding.sqrt(2 * Decimal(delta))
    return rounding.divide(roots * roots, Decimal(beta))


@rounding.sixty_digits
def _total(error: float, epsilon: float, delta: float, failure: float, beta: float) -> float:
    if epsilon > 200:
        moved = Decimal(1)
    else:
        half = rounding.exp(rounding.divide(Decimal(epsilon), Decimal(2)))
        moved = rounding.divide(half - 1, half + 1)
    return up(Decimal(error) + moved + _slack(delta, failure, beta))


@rounding.sixty_digits
def _left(error: float, sample_error: float, delta: float, failure: float, beta: float) -> tuple[Decimal, float]:
    """What is left of the error for tanh(epsilon / 4), and what the other terms take."""
    others = Decimal(sample_error) + _slack(delta, failure, beta)
    return Decimal(error) - others, float(others)


@rounding.sixty_digits
def _four_artanh(x: Decimal) -> Decimal:
    return 2 * rounding.ln(rounding.divide(1 + x, 1 - x))
