"""What it costs to release the best of several private runs, whose number is drawn from the logarithmic law.

However many candidates there are, the price is that of two runs for pure DP, and a little more than one run's Renyi
curve. best_of_runs.md has the law and the proofs; mechanisms/private_tuning.py makes the runs.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf

from ..support import parameters, rounding
from ..support.checks import instance_of, integer, positive
from ..support.parameters import MOST_STEPS
from ..support.rounding import down, up
from ..support.search import greatest_float, least_integer
from .conversions import epsilon_of_curve
from .curves import ORDERS
from .guarantees import A_GUARANTEE, ZCDP, AllOf, Guarantee, PureDP, Renyi
from .origin import with_origin


@lru_cache(1024)
@rounding.sixty_digits
def parameter_of(k: int) -> int:
    """The least m >= 2 for which (m - 1) / ln m, the mean of the logarithmic law with gamma = 1/m, is at least k."""
    return least_integer(lambda m: Decimal(m - 1) >= k * rounding.ln(Decimal(m)), low=2, guess=2 * k + 2)


def best_of_runs(guarantee: Guarantee, k: int) -> Guarantee:
    """What the best of several private runs guarantees, if their number is drawn as `best_of` draws it.

    Parameters
    ----------
    guarantee : Guarantee
        Of one run, its score included.
    k : int >= 1
        The mean number of runs.

    Returns
    -------
    Guarantee
        Twice the epsilon of a run; and its Renyi curve, with what choosing adds.

    Raises
    ------
    ValueError
        Where neither an epsilon nor a Renyi curve is known of a run but for a delta.

    Notes
    -----
    Proof    best_of_runs.md, theorems 1 and 2

    Examples
    --------
    >>> from fastdp import PureDP, ZCDP
    >>> from fastdp.privacy import best_of_runs
    >>> print(best_of_runs(PureDP(0.5), 1000).to_approx(1e-6))
    (0.999999, 1e-06)-DP, replace-one
    >>> print(best_of_runs(ZCDP(0.01), 20).to_approx(1e-6))
    (1.12518, 1e-06)-DP, replace-one
    """
    instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
    m = parameter_of(integer("k", k, least=1, most=MOST_STEPS))
    clean = [form for form in guarantee.forms() if not form.leak]
    pure = min((form.pure for form in clean), default=inf)
    found: list[Guarantee] = []
    if pure < inf:
        found.append(PureDP(up(2 * Fraction(pure)), neighbors=guarantee.neighbors))
    curve = tuple(map(min, *(form.full_curve() for form in clean))) if len(clean) > 1 else ()
    curve = clean[0].full_curve() if len(clean) == 1 else curve
    if any(value < inf for value in curve):
        found.append(Renyi(_chosen_curve(curve, pure, m), neighbors=guarantee.neighbors))
    if not found:
        raise ValueError(f"guarantee: {guarantee}: must hold of a run without a delta, as PureDP and ZCDP do")
    return with_origin(found[0] if len(found) == 1 else AllOf(*found), guarantee.origin)


@lru_cache(1024)
@rounding.sixty_digits
def _chosen_curve(curve: tuple[float, ...], pure: float, m: int) -> tuple[float, ...]:
    """R(a) + ln E[K] / (a - 1) + the least over b of (1 - 1/b) R(b) + ln(m) / b; at b = inf that is epsilon."""
    log_m = rounding.ln(Decimal(m))
    log_mean = rounding.ln(rounding.divide(Decimal(m - 1), log_m))
    added = [Decimal(pure)] if pure < inf else []
    for b, bound in zip(map(Decimal, ORDERS), curve, strict=True):
        if bound < inf:
            added.append(rounding.multiply(rounding.divide(b - 1, b), Decimal(bound)) + rounding.divide(log_m, b))
    least = min(added)
    return tuple(
        inf if bound == inf else up(rounding.add(Decimal(bound) + least, rounding.divide(log_mean, Decimal(a) - 1)))
        for a, bound in zip(ORDERS, curve, strict=True)
    )


def epsilon_of_run(epsilon: float) -> float:
    """The largest epsilon of one run such that the best is epsilon-DP."""
    return down(Fraction(positive("epsilon", epsilon, toward=0)) / 2)


@lru_cache(1024)
def rho_of_run(epsilon: float, delta: float, k: int) -> float:
    """The largest rho of one run, to 9 digits, such that the best of `k`, in the mean, is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float > 0
        Of the choice.
    delta : float in (0, 1)
        Of the choice.
    k : int >= 1
        The mean number of runs.

    Returns
    -------
    float
        0 where none is small enough: the choice alone costs ln E[K] at low orders.
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta(delta)

    def fits(rho: float) -> bool:
        (form,) = best_of_runs(ZCDP(rho), k).forms()
        return epsilon_of_curve(form.curve, delta) <= epsilon

    return greatest_float(fits, guess=epsilon**2 / 64, tolerance=1e-9, smallest=2.0**-100)


__all__ = ["best_of_runs", "epsilon_of_run", "parameter_of", "rho_of_run"]
