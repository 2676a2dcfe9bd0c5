"""From which noisy count on a label that nobody listed is released: statistics.md, theorems 5 and 6."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ..support import rounding
from ..support.rounding import decimal_of, lower, up
from ..support.search import OutOfReachError, least_integer


@lru_cache(1024)
def label_threshold(scale: float, delta: float) -> int:
    """The least count 1 + k with Pr[Z >= k] <= delta, for a draw Z of discrete Laplace noise."""
    return 1 + _least(scale, delta, _one_draw)


@lru_cache(1024)
def group_threshold(scale: float, delta: float, most: int) -> int:
    """The least `most` + k with Pr[Z + Z' >= k] <= delta, for two draws of discrete Laplace noise."""
    return most + _least(scale, delta, _two_draws)


@rounding.sixty_digits
def _least(scale: float, delta: float, tail: Callable[[Decimal, Decimal, int], Decimal]) -> int:
    step, allowed = decimal_of(-1 / Fraction(scale)), lower(delta)
    q = step.exp()

    def enough(k: int) -> bool:
        return Fraction(up(tail(step, q, k))) <= allowed

    try:
        return least_integer(enough, low=1, guess=int(float(scale)) + 1)
    except OutOfReachError:
        raise ValueError(
            f"delta={delta!r}: is out of reach of noise of scale {scale:g}; a larger epsilon is not"
        ) from None


def _one_draw(step: Decimal, q: Decimal, k: int) -> Decimal:
    """Pr[Z >= k] for k >= 0."""
    return (step * k).exp() / (1 + q)


def _two_draws(step: Decimal, q: Decimal, k: int) -> Decimal:
    """Pr[Z + Z' >= k] for k >= 0: Pr[Z + Z' = s] is ((1 - q)/(1 + q))^2 ((s + 1) q^s + 2 q^(s+2)/(1 - q^2))."""
    return (step * k).exp() / (1 + q) ** 2 * ((k + 1) * (1 - q) + q + 2 * q * q / (1 + q))
