"""Divergences of Laplace noise in floats of 64 binary digits, with a bound of their errors.

Decimals of 60 digits need ten milliseconds for a curve. Where `long double` has 64 digits (x86, but for Windows and
some emulators), this takes a tenth of one. guarantees.md, arithmetic, proves the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from math import factorial, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.rounding import exp, ln, sixty_digits

_ERROR = 2.0**-58  # relative, of a divergence; at most 2^-59 is proven
_TERMS = 23  # of the exponential's series at |x| <= 1: what is left is below 2^-80


@lru_cache(1)
@sixty_digits
def has_64_bits() -> bool:
    """Whether long doubles have 64 digits here, and their functions are right to 2^-61 where that is tried."""
    one = np.longdouble(1)
    if np.finfo(np.longdouble).nmant < 63 or one + np.longdouble(2) ** -63 == one:
        return False
    for n in (-31, -7, -3, 5, 13, 47):
        x, exact = np.longdouble(n) / 64, Decimal(n) / 64
        for found, truth in ((np.expm1(x), exp(exact) - 1), (np.log1p(x), ln(1 + exact))):
            if abs(_decimal(found) - truth) > abs(truth) * Decimal(2) ** -61:
                return False
    return True


def _decimal(x: np.longdouble) -> Decimal:
    """Exactly: its first 53 digits, and the rest."""
    first = float(x)
    return Decimal(first) + Decimal(float(x - np.longdouble(first)))


def laplace_divergences(orders: Sequence[float], ratio: float) -> tuple[float, ...]:
    """ln(A e^((a-1) r) + (1-A) e^(-a r)) / (a-1) at every order a, A = a/(2a-1), rounded up.

    Parameters
    ----------
    orders : sequence of float
        Rising, all above 1.
    ratio : float in [1e-9, 1000]
        The L1 sensitivity over the scale.

    Returns
    -------
    tuple of float
        At most 1e-16 and a rounding above the exact ones, relative.
    """
    a, r = np.array(orders, dtype=np.longdouble), np.longdouble(ratio)
    width = (2 * a - 1) * r
    rest = (a - 1) / (2 * a - 1)
    far = r + np.log1p(rest * np.expm1(-width)) / (a - 1)
    near_r = np.minimum(r, 4 / (2 * a - 1))
    # the mean of the two exponents is 0: with e^x - 1 - x nothing cancels
    near = np.log1p((1 - rest) * _above_tangent((a - 1) * near_r) + rest * _above_tangent(-a * near_r)) / (a - 1)
    values = np.where(width < 4, near, far) * (1 + np.longdouble(_ERROR))
    nearest = values.astype(np.float64)
    above = np.where(nearest < values, np.nextafter(nearest, inf), nearest)
    rising = np.minimum.accumulate(above[::-1])[::-1]  # divergences grow with the order
    return tuple(np.minimum(rising, ratio).tolist())


def _above_tangent(x: NDArray[np.longdouble]) -> Any:
    """e^x - 1 - x."""
    small = np.clip(x, -1, 1)
    series = np.zeros_like(x)
    for k in range(_TERMS, 1, -1):
        series = series * small + np.longdouble(1) / np.longdouble(str(factorial(k)))
    return np.where(np.abs(x) <= 1, small * small * series, np.expm1(x) - x)
