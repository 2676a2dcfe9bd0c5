"""What a positive answer costs in zero-concentrated DP when the noise of the threshold is kept: sparse_vector.md.

A query is answered True with probability r = Pr[Z >= x] on one table and r' = Pr[Z >= x + d] on its neighbour. A
positive costs the largest KL(r, r') / r, however many queries come before it: lemma 2 there.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ..support import rounding
from ..support.rounding import up

_STEPS = 24  # of the bisection for the worst x, whose rest is charged


@lru_cache(4096)
@rounding.sixty_digits
def positive_rho(d: int, scale: float) -> float:
    """An upper bound of the largest KL(r, r') / r over all integers x, for discrete Laplace noise of this scale.

    It rises to x = -d, is concave from 1 - d to 0, and falls from 1 on: lemma 3.
    """
    if d > 100 * scale:
        return up(Fraction(d) / Fraction(scale))  # as r / r' is at most e^(d / scale)
    law = _Law(d, scale)
    low, high = Decimal(1 - d), Decimal(0)
    if law.slope(high) >= 0:
        low = high
    elif law.slope(low) <= 0:
        high = low
    for _ in range(_STEPS):
        middle = rounding.divide(low + high, Decimal(2))
        low, high = (middle, high) if law.slope(middle) > 0 else (low, middle)
    between = law.loss(low) + max(law.slope(low), Decimal(0)) * (high - low)
    return up(max(law.loss(Decimal(-d)), between, law.loss(Decimal(1))))


def scale_for(d: int, rho: float) -> float:
    """A scale whose `positive_rho` is at most rho, and hardly less."""
    scale: float = d / min(max(rho, rho**0.5), 1e6)
    for _ in range(60):
        following = scale * (positive_rho(d, scale) / rho) ** 0.5
        if abs(following - scale) < 1e-13 * scale:
            break
        scale = following
    margin = 2.0**-50
    while positive_rho(d, scale) > rho:
        scale, margin = scale * (1 + margin), 2 * margin
    return float(scale)


class _Law:
    """r and r' as functions of x, which need not be an integer between 1 - d and 0."""

    def __init__(self, d: int, scale: float) -> None:
        self.d, self.scale = Decimal(d), Decimal(scale)
        self.q = self.power(Decimal(1))

    def power(self, x: Decimal) -> Decimal:
        """q^x."""
        return rounding.exp(rounding.divide(-x, self.scale))

    def above(self, x: Decimal) -> tuple[Decimal, Decimal]:
        """Pr[Z >= x] and Pr[Z < x]."""
        if x >= 1:
            tail = rounding.divide(self.power(x), 1 + self.q)
            return tail, 1 - tail
        tail = rounding.divide(self.power(1 - x), 1 + self.q)
        return 1 - tail, tail

    def pair(self, x: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        """r, 1 - r, r', 1 - r'."""
        first = self.above(x)
        if 1 - self.d <= x <= 0:
            other = rounding.divide(self.power(x + self.d), 1 + self.q)
            return *first, other, 1 - other
        return *first, *self.above(x + self.d)

    def loss(self, x: Decimal) -> Decimal:
        """KL(r, r') / r."""
        r, not_r, other, not_other = self.pair(x)
        log = rounding.ln(rounding.divide(not_r, not_other))
        return rounding.ln(rounding.divide(r, other)) + rounding.divide(not_r, r) * log

    def slope(self, x: Decimal) -> Decimal:
        """Its derivative, for x from 1 - d to 0."""
        r, not_r, other, not_other = self.pair(x)
        log = rounding.ln(rounding.divide(not_other, not_r))
        falls = rounding.divide(not_r * other, r * not_other) + rounding.divide(not_r * log, r * r)
        return rounding.divide(1 - falls, self.scale)
