"""Plans of noise: what a kernel needs to know of a law, computed once.

A plan is the scale of the noise and the constants with which float64 decides nearly every draw; they are computed in 60
digits. Plans are cached, so nobody can write to them. mechanisms/noise.md derives them, kernels/layout.py states what
stands where.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from math import exp, expm1
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout
from ..support.frozen import frozen
from ..support.rounding import sixty_digits
from . import exact_draws as exact

MIN_SCALE, MAX_SCALE = 2.0**-20, 2.0**40

_DIGITS = Context(prec=60)


def _same_plan(one: tuple[Any, ...], other: object) -> bool:
    """Whether two plans are of the same scale, of which the law follows."""
    return type(one) is type(other) and isinstance(other, tuple) and one[:2] == other[:2]


class LaplacePlan(NamedTuple):
    """Discrete Laplace noise of scale s, as kernels/noise.py::add_laplace_into takes it; noise.md, lemmas 2 and 3."""

    extra: int  # bits of U beyond the first 31
    scale: float
    law: NDArray[np.float64]  # what stands where: kernels/layout.py

    def __eq__(self, other: object) -> bool:
        return _same_plan(self, other)

    def __ne__(self, other: object) -> bool:
        return not _same_plan(self, other)

    def __hash__(self) -> int:
        return hash(self[:2])


class GaussianPlan(NamedTuple):
    """Discrete Gaussian noise, as kernels/noise.py::add_gaussian_into takes it; noise.md, lemmas 4 and 5."""

    extra: int  # bits of U beyond the first 31
    sigma: float
    law: NDArray[np.float64]  # what stands where: kernels/layout.py

    def __eq__(self, other: object) -> bool:
        return _same_plan(self, other)

    def __ne__(self, other: object) -> bool:
        return not _same_plan(self, other)

    def __hash__(self) -> int:
        return hash(self[:2])


NoisePlan = LaplacePlan | GaussianPlan


def laplace_variance(scale: float) -> float:
    """Of discrete Laplace noise of this scale: 2 q / (1 - q)^2, q = e^(-1/scale)."""
    return 2 * exp(-1 / scale) / expm1(-1 / scale) ** 2


def scale_in_range(scale: float, name: str) -> float:
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ValueError(f"{name}={scale!r}: the noise scale must be between 2^-20 and 2^40")
    return scale


@lru_cache(1024)
@sixty_digits
def laplace_plan(scale: float) -> LaplacePlan:
    """The plan for discrete Laplace noise of this scale; noise.md, lemmas 2 and 3, derive the constants."""
    d = _DIGITS
    q = d.exp(d.divide(Decimal(-1), Decimal(scale)))
    half = d.divide(d.add(Decimal(1), q), Decimal(2))
    law = np.empty(layout.LAPLACE_LAW)
    law[layout.LAPLACE_SCALE] = scale
    law[[layout.LAPLACE_OFFSET, layout.LAPLACE_OFFSET_LOW]] = _pair(d.multiply(Decimal(-scale), d.ln(half)))
    law[layout.LAPLACE_ERROR] = layout.U * (5 * scale + 2)
    law[layout.LAPLACE_ERROR_PAIR] = 2.0**-78 * scale
    return LaplacePlan(exact.extra_bits(scale), scale, frozen(law))


@lru_cache(1024)
@sixty_digits
def gaussian_plan(sigma: float) -> GaussianPlan:
    """The plan for discrete Gaussian noise of this sigma; noise.md, lemmas 4 and 5, derive the constants."""
    d = _DIGITS
    proposal = exact.gaussian_proposal(sigma)
    tail, body = float(proposal.t), float(proposal.a)
    t, a, variance = Decimal(tail), Decimal(body), d.multiply(Decimal(sigma), Decimal(sigma))
    one = Decimal(1)
    log_g = d.subtract(d.divide(variance, d.multiply(Decimal(2), d.multiply(t, t))), d.divide(a, t))
    survive = d.subtract(one, d.exp(d.divide(-one, t)))
    log_tail_mass = d.subtract(log_g, d.ln(survive))
    tail_mass = d.exp(log_tail_mass)
    mass = d.add(d.subtract(a, Decimal("0.5")), tail_mass)
    start = d.add(a, d.multiply(t, d.subtract(log_tail_mass, d.ln(mass))))
    peak = float(d.divide(variance, t))
    size = body + 2 * float(mass) + 2 * abs(float(start))
    law = np.empty(layout.GAUSSIAN_LAW)
    law[layout.BODY], law[layout.TAIL] = body, tail
    law[[layout.START, layout.START_LOW]] = _pair(start)
    law[[layout.MASS, layout.MASS_LOW]] = _pair(mass)
    law[[layout.TAIL_MASS, layout.TAIL_MASS_LOW]] = _pair(tail_mass)
    law[layout.PEAK] = peak
    law[layout.CURVATURE] = float(d.divide(Decimal("0.5"), variance))
    law[layout.ERROR] = layout.U * (10 * tail + 8 * size + 2)
    law[layout.ERROR_OF_CELL] = 0.75 * float(mass) + 0.75 * tail
    law[layout.COIN_ERROR] = 2.0**-31 + layout.U * (8 + peak / sigma)
    law[layout.COIN_ERROR_PAIR] = 2.0**-51 + layout.U * (8 + peak / sigma)
    law[layout.ERROR_PAIR] = 2.0**-78 * (tail + size)
    return GaussianPlan(exact.extra_bits(sigma), sigma, frozen(law))


def _pair(x: Decimal) -> tuple[float, float]:
    high = float(x)
    return high, float(_DIGITS.subtract(x, Decimal(high)))
