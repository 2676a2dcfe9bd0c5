"""Conversions between kinds of guarantees: from a Renyi curve or a rho to (epsilon, delta), from an epsilon or a
range to a rho and back.

All arithmetic rounds toward more privacy loss (support/rounding.py); guarantees.md has the theorems.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log, log1p
from numbers import Real
from typing import Any

from ..support import parameters, rounding
from ..support.checks import probability
from ..support.rounding import up
from ..support.shown import shown
from .curves import LARGE, ORDERS, SMALL, Curve


def positive_delta(delta: Any) -> float:
    try:
        return probability("delta", delta)
    except ValueError as error:
        if isinstance(delta, Real) and delta == 0:
            raise ValueError(
                f"{error}; a delta of 0 leaves pure DP only: compose() without delta gives its sum, where there is one"
            ) from None
        raise


@lru_cache(4096)
@rounding.sixty_digits
def rho_of_pure(epsilon: float) -> float:
    """epsilon tanh(epsilon / 2): guarantees.md, theorem 3."""
    if epsilon < SMALL:
        return up(Fraction(epsilon) ** 2 / 2)
    if epsilon > LARGE:
        return epsilon
    grown = rounding.exp(Decimal(epsilon))
    return min(epsilon, up(rounding.multiply(Decimal(epsilon), rounding.divide(grown - 1, grown + 1))))


@lru_cache(4096)
@rounding.sixty_digits
def rho_of_range(eta: float) -> float:
    """r - 1 - ln r with r = eta / (e^eta - 1), the least rho of eta-bounded range: guarantees.md, theorem 4."""
    if eta < SMALL:
        return up(Fraction(eta) ** 2 / 8)
    if eta > LARGE:  # r is less than 10^-400
        return up(Decimal(eta) - 1 - rounding.ln(Decimal(eta)))
    r = rounding.divide(Decimal(eta), rounding.exp(Decimal(eta)) - 1)
    return up(r - 1 - rounding.ln(r))


def range_of_rho(rho: float) -> float:
    """The largest bounded range, to 15 digits, whose rho is at most this one.

    Parameters
    ----------
    rho : float >= 0
        Of zero-concentrated DP.

    Returns
    -------
    float
        Rounded down.
    """
    return _greatest_with(rho_of_range, rho, (8 * rho) ** 0.5)


def pure_of_rho(rho: float) -> float:
    """The largest epsilon, to 15 digits, such that epsilon-DP implies this rho.

    Parameters
    ----------
    rho : float >= 0
        Of zero-concentrated DP.

    Returns
    -------
    float
        Rounded down.
    """
    return _greatest_with(rho_of_pure, rho, (2 * rho) ** 0.5)


def _greatest_with(rho_of: Callable[[float], float], rho: float, small: float) -> float:
    """The greatest x with rho_of(x) <= rho; `small` is that of a small rho, and a lower bound of all.

    The slope of ln rho_of over ln x lies between 1 and 2: steps that take it for 2 at least halve the distance.
    """
    if not 1e-200 < rho < LARGE / 2:  # the squares of floats, and of no use
        return min(small, rho) * (1 - 2.0**-50)
    x = max(small, rho)
    for _ in range(60):
        ratio = rho_of(x) / rho
        following = x * (1 - (ratio - 1) / (2 * ratio))
        if abs(following - x) < 1e-15 * x:
            break
        x = following
    margin = 2.0**-52
    while rho_of(x) > rho:
        x, margin = x * (1 - margin), 2 * margin
    return x


def _order_constant(order: Decimal) -> Decimal:
    """(a ln(1 - 1/a) - ln(a - 1)) / (a - 1), as ln(a - 1) - a ln(a) / (a - 1): nothing cancels when a is close to 1."""
    a1 = order - 1
    return rounding.subtract(rounding.ln(a1), rounding.divide(rounding.multiply(order, rounding.ln(order)), a1))


@lru_cache(1)
@rounding.sixty_digits
def _order_constants() -> tuple[tuple[Decimal, Decimal], ...]:
    return tuple((_order_constant(Decimal(order)), Decimal(order) - 1) for order in ORDERS)


@rounding.sixty_digits
def epsilon_of_curve(curve: Curve, delta: float) -> float:
    """The least epsilon at delta that follows from a Renyi curve, at the best of ORDERS.

    R(a) + (a ln(1 - 1/a) - ln(a - 1) - ln delta) / (a - 1)

    Parameters
    ----------
    curve : tuple of float
        A bound at each of ORDERS.
    delta : float in (0, 1)
        The delta of the result.

    Returns
    -------
    float
        Rounded up; inf where no order has a bound.

    Notes
    -----
    Proof    guarantees.md, theorem 1.
    """
    if type(curve) is not tuple or len(curve) != len(ORDERS) or set(map(type, curve)) != {float}:
        raise ValueError(f"curve={shown(curve)}: must be a tuple of {len(ORDERS)} floats, a bound at each of ORDERS")
    log = rounding.ln(Decimal(parameters.delta(delta)))
    found = (
        up(rounding.add(Decimal(value), rounding.subtract(constant, rounding.divide(log, a1))))
        for value, (constant, a1) in zip(curve, _order_constants(), strict=True)
        if value < inf
    )
    return max(min(found, default=inf), 0.0)


@lru_cache(4096)
@rounding.sixty_digits
def epsilon_of_rho(rho: float, delta: float) -> float:
    """The same for a rho, with the order searched beyond the grid."""
    if rho == 0:
        return 0.0

    log_delta = log(delta)

    def at(log_a1: float) -> float:
        a1 = exp(log_a1)
        return (1 + a1) * rho - ((1 + a1) * log1p(1 / a1) + log_a1 + log_delta) / a1

    low, high = -30.0, 60.0
    for _ in range(120):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, right) if at(left) < at(right) else (left, high)
    order = Decimal(max(1 + exp((low + high) / 2), 1 + 2.0**-40))
    value = (
        rounding.multiply(order, Decimal(rho))
        + _order_constant(order)
        - rounding.divide(rounding.ln(Decimal(delta)), order - 1)
    )
    return max(up(value), 0.0)


@rounding.sixty_digits
def epsilon_of_rho_simply(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1 / delta)): the textbook's conversion, for comparison.

    Parameters
    ----------
    rho : float >= 0
        Of zero-concentrated DP.
    delta : float in (0, 1)
        The delta of the result.

    Returns
    -------
    float
        Rounded up.
    """
    r, delta = Decimal(parameters.least_rho(rho)), parameters.delta(delta)
    return up(rounding.add(r, 2 * rounding.sqrt(rounding.multiply(r, -rounding.ln(Decimal(delta))))))


@rounding.sixty_digits
def geometric_sum(epsilon: float, size: int) -> float:
    """1 + e^epsilon + ... + e^((size - 1) epsilon)."""
    e = Decimal(epsilon)
    if size * e > 2 * Decimal(LARGE):
        return inf
    if size * e < Decimal("1e-20"):
        return up(size * (1 + 2 * size * e))
    grown = rounding.exp(e) - 1 if e > Decimal("1e-20") else e  # e <= e^e - 1
    return up(rounding.divide(rounding.exp(size * e) - 1, grown))
