"""What the bounds share: logarithms of unions, the tail of discrete Laplace noise, inversion."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from ...support import rounding
from ...support.search import in_reach, least_float


@rounding.sixty_digits
def log_ratio(top: int, beta: float) -> Decimal:
    """ln(top / beta)."""
    return rounding.ln(rounding.divide(Decimal(top), Decimal(beta)))


@rounding.sixty_digits
def gaussian_tail(sigma: float, top: int, beta: float) -> Decimal:
    """sigma sqrt(2 ln(top / beta)): Gaussian noise exceeds it on one side with probability at most beta / top."""
    return rounding.multiply(Decimal(sigma), rounding.sqrt(rounding.multiply(Decimal(2), log_ratio(top, beta))))


@rounding.sixty_digits
def laplace_tail(scale: float, beta: float, count: int) -> Decimal:
    """The least t with count * 2 q^t / (1 + q) <= beta; as q < 1, it is positive."""
    q = rounding.exp(rounding.divide(Decimal(-1), Decimal(scale)))
    log = rounding.subtract(log_ratio(2 * count, beta), rounding.ln(rounding.add(Decimal(1), q)))
    return rounding.multiply(Decimal(scale), log)


def least_parameter(enough: Callable[[float], bool], name: str, value: float) -> float:
    """The least parameter that is enough, to 10 digits; more of it must never be worse."""
    return in_reach(name, value, lambda: least_float(enough))
