"""Renyi curves: bounds of the Renyi divergence at fixed orders, of every kind of release that the library makes.

Each order by itself gives a valid delta, so a curve is a tuple of bounds at `ORDERS`. All arithmetic rounds upward
(support/rounding.py); guarantees.md has the theorems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from ..support.checks import non_negative, positive
from ..support.rounding import add, decimal_of, divide, exp, ln, multiply, sixty_digits, subtract, up
from .long_floats import has_64_bits, laplace_divergences

# Renyi divergences are kept at these orders. Each order by itself gives a valid delta, so a grid is safe; steps of 8 %
# cost less than 0.1 % of epsilon, and orders up to 10^6 let nearly pure guarantees come out as such.
ORDERS: tuple[float, ...] = tuple(1 + 10 ** (k / 28) for k in range(-84, 169))
Curve = tuple[float, ...]  # a bound of the Renyi divergence at each of ORDERS; inf where there is none
NO_CURVE: Curve = (inf,) * len(ORDERS)


def least(curves: Iterable[Curve]) -> Curve:
    """The lowest of some curves at every order."""
    return tuple(map(min, zip(*curves, NO_CURVE, strict=True)))


# --- curves. Below SMALL their terms would cancel beyond 60 digits; a x^2 / 2 and a x^2 / 8 hold too, and are as good
# (guarantees.md, arithmetic). Beyond LARGE a pure bound is all there is.

SMALL, LARGE = 1e-9, 1000.0


def on_orders(curve: Any) -> Curve:
    if isinstance(curve, tuple) and len(curve) == len(ORDERS):
        values = list(curve)
    elif isinstance(curve, Mapping):
        values = _between_orders({positive("order", order, toward=0): value for order, value in curve.items()})
    elif callable(curve):
        values = [curve(order) for order in ORDERS]
    else:
        raise ValueError(
            f"curve: type {type(curve).__name__}: must be a function of the order, or a mapping {{order: bound}}"
        )
    if all(type(value) is float and value > 0 for value in values):  # as of all curves here: a tenth of the time
        checked = tuple(values)
    else:
        checked = tuple(_bound(order, value) for order, value in zip(ORDERS, values, strict=True))
    if checked == NO_CURVE:
        raise ValueError(f"curve: no finite bound at an order between {ORDERS[0]} and {ORDERS[-1]:.0f}")
    return checked


def _bound(order: float, value: Any) -> float:
    if isinstance(value, float) and value == inf:
        return inf
    return non_negative(f"curve at order {order:.6g}", value, toward=inf)


def _between_orders(bounds: Mapping[float, Any]) -> list[float]:
    """Bounds at ORDERS: for each the lesser of that of the next order above, and the chord of (a - 1) R(a)."""
    if not bounds or min(bounds) <= 1:
        raise ValueError(f"curve: orders {sorted(bounds)}: must be at least one order, all > 1")
    points = [(Fraction(order), _bound(order, bounds[order])) for order in sorted(bounds)]
    finite = [(order, Fraction(value)) for order, value in points if value < inf]
    values = []
    for order in map(Fraction, ORDERS):
        above = [point for point in finite if point[0] >= order]
        below = [point for point in finite if point[0] < order]
        if not above:
            values.append(inf)
            continue
        found = [value for _, value in above]
        if below:
            (low, at_low), (high, at_high) = below[-1], above[0]
            chord = ((high - order) * (low - 1) * at_low + (order - low) * (high - 1) * at_high) / (high - low)
            found.append(chord / (order - 1))
        values.append(up(min(found)))
    return values


@lru_cache(4096)
def linear_curve(rho: float, bound: float = inf) -> Curve:
    """a rho, and at most `bound`."""
    if rho == inf:
        return (bound,) * len(ORDERS)
    return tuple(min(bound, up(Fraction(order) * Fraction(rho))) for order in ORDERS)


@lru_cache(4096)
@sixty_digits
def pure_curve(epsilon: float) -> Curve:
    """Randomised response dominates: (e^(a e) + e^((1-a) e)) / (1 + e^e), with e^((a-1) e) taken out."""
    e, one = Decimal(epsilon), Decimal(1)
    if epsilon < SMALL:
        return linear_curve(up(Fraction(epsilon) ** 2 / 2), epsilon)
    if epsilon > LARGE:
        return (epsilon,) * len(ORDERS)
    grown = exp(e)
    curve = []
    for order in ORDERS:
        a1 = Decimal(order) - one
        inside = divide(add(grown, exp(multiply(-2 * a1, e))), add(one, grown))
        curve.append(min(epsilon, up(add(e, divide(ln(inside), a1)))))
    return tuple(max(value, 0.0) for value in curve)


@lru_cache(4096)
@sixty_digits
def range_curve(eta: float) -> Curve:
    """The worst pair of eta-bounded range, in closed form: guarantees.md, theorem 4."""
    if eta < SMALL:
        return linear_curve(up(Fraction(eta) ** 2 / 8), eta)
    if eta > LARGE:
        return (eta,) * len(ORDERS)
    e, one = Decimal(eta), Decimal(1)
    shrunk = exp(-e)
    curve = []
    for order in ORDERS:
        a = Decimal(order)
        a1 = a - one
        far = exp(multiply(-a, e))
        x = divide(multiply(a1, one - far), multiply(a, subtract(shrunk, far)))
        rest = divide(subtract(one, far), multiply(a, subtract(one, shrunk)))
        curve.append(min(eta, up(add(ln(x), divide(ln(rest), a1)))))
    return tuple(max(value, 0.0) for value in curve)


def _mixture_curve(ratio: Decimal, weight: Callable[[Decimal], Decimal], bound: float) -> Curve:
    """ln(A e^((a-1) r) + (1-A) e^(-a r)) / (a-1) at every order a, A = weight(a)."""
    if bound < SMALL:
        return linear_curve(up(Fraction(bound) ** 2 / 2), bound)
    one = Decimal(1)
    curve = []
    for order in ORDERS:
        a = Decimal(order)
        share = weight(a)
        tail = multiply(subtract(one, share), exp(multiply(multiply(-2, a) + one, ratio)))
        curve.append(min(bound, up(add(ratio, divide(ln(add(share, tail)), a - one)))))
    return tuple(max(value, 0.0) for value in curve)


@lru_cache(4096)
@sixty_digits
def laplace_curve(ratio: float) -> Curve:
    """Of continuous noise, by floats of 64 bits where the machine has them: in decimals it takes ten times as long."""
    if SMALL <= ratio <= LARGE and has_64_bits():
        return laplace_divergences(ORDERS, ratio)
    return _mixture_curve(Decimal(ratio), lambda a: divide(a, multiply(2, a) - 1), ratio)


@lru_cache(4096)
@sixty_digits
def discrete_laplace_curve(scale: float, shift: float | Fraction) -> Curve:
    """Of one coordinate that moves by `shift`: exact for integers, else a bound (optimizing/descent.md, lemma 3)."""
    # noise on a finer grid has a lower curve, so steps below 10^-15, where terms would cancel, may be taken as that
    step = max(divide(Decimal(1), Decimal(scale)), Decimal("1e-15"))
    one, q = Decimal(1), exp(-step)

    def weight(a: Decimal) -> Decimal:
        top = subtract(one, exp(multiply(multiply(-2, a), step)))
        return divide(
            top,
            multiply(add(one, q), subtract(one, exp(multiply(one - 2 * a, step)))),
        )

    ratio = Fraction(shift) / Fraction(scale)  # of integers, floats and fractions alike
    return _mixture_curve(decimal_of(ratio), weight, up(ratio))
