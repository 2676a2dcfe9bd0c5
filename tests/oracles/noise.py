"""Oracles of the noise: the geometric, discrete Laplace and discrete Gaussian laws.

docs/algorithms.md, conventions, 7.2 and 7.3. Certified probabilities as intervals of Fractions, and distribution
functions in floats for the statistical tests, which state their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.numbers import Interval, Real, exp_interval, over, pi_interval, sqrt_interval, times

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]
Cdf = Callable[[NDArray[Any]], Bounds]


@lru_cache(maxsize=4096)
def ratio(s: Fraction, bits: int) -> Interval:
    """q = e^{-1/s}."""
    return exp_interval(-1 / s, bits)


def geometric_tail(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[X >= k] = q^k for k >= 0, q = e^{-1/s}; relative width 2^-bits."""
    return exp_interval(-max(k, 0) / Fraction(s), bits)


def geometric_pmf(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[X = k] = (1 - q) q^k for k >= 0."""
    if k < 0:
        return Fraction(0), Fraction(0)
    lo, hi = ratio(Fraction(s), bits + 72)  # 1 - q loses about log2(s) bits
    return times((1 - hi, 1 - lo), geometric_tail(k, s, bits + 8))


def laplace_tail(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[Z >= k] for Pr[Z = z] proportional to e^{-|z|/s}: q^k/(1 + q) for k >= 1, one minus that of 1 - k else."""
    if k < 1:
        lo, hi = laplace_tail(1 - k, s, bits + 8)
        return 1 - hi, 1 - lo
    lo, hi = ratio(Fraction(s), bits + 8)
    return over(geometric_tail(k, s, bits + 8), (1 + lo, 1 + hi))


def laplace_pmf(z: int, s: Real, bits: int = 96) -> Interval:
    """Pr[Z = z] = (1 - q)/(1 + q) q^|z|."""
    lo, hi = ratio(Fraction(s), bits + 8)
    return over(geometric_pmf(abs(z), s, bits + 8), (1 + lo, 1 + hi))


@lru_cache(maxsize=256)
def gaussian_normaliser(sigma: Real, bits: int = 96) -> Interval:
    """Sum of e^{-z^2/(2 sigma^2)} over all integers z, of relative width about 2^-bits.

    sigma < 1: term by term; beyond z the terms fall by e^{-3/2} or faster, so the rest is below twice the next term.
    Otherwise Poisson summation: sigma sqrt(2 pi) (1 + 2 sum_k e^{-2 pi^2 sigma^2 k^2}); as 2 pi^2 > 19, a term
    is below 2^-(19 sigma^2 k^2), and the rest below twice its first term.
    """
    sigma = Fraction(sigma)
    p = bits + 16
    z = k = 1
    lo = hi = Fraction(1)
    if sigma < 1:
        while True:
            exponent = z * z / (2 * sigma * sigma)
            if exponent >= p:  # e^-exponent < 2^-p; both sides, and the rest
                return lo, hi + Fraction(4, 2**p)
            term = exp_interval(-exponent, p)
            lo, hi = lo + 2 * term[0], hi + 2 * term[1]
            z += 1
    pi_lo, pi_hi = pi_interval(p)
    while 19 * sigma * sigma * k * k < p:
        term_lo = exp_interval(-2 * pi_hi**2 * sigma**2 * k * k, p)[0]
        term_hi = exp_interval(-2 * pi_lo**2 * sigma**2 * k * k, p)[1]
        lo, hi = lo + 2 * term_lo, hi + 2 * term_hi
        k += 1
    hi += Fraction(4, 2**p)
    return times((sigma, sigma), sqrt_interval((2 * pi_lo, 2 * pi_hi), p), (lo, hi))


def gaussian_pmf(z: int, sigma: Real, bits: int = 96) -> Interval:
    """Pr[Z = z] = e^{-z^2/(2 sigma^2)} / normaliser."""
    weight = exp_interval(-z * z / (2 * Fraction(sigma) ** 2), bits + 8)
    return over(weight, gaussian_normaliser(sigma, bits + 8))


@dataclass(frozen=True)
class Law:
    """A law on the integers, for the statistical tests: `cdf(z)` bounds Pr[Z <= z] from below and from above."""

    name: str
    cdf: Cdf


CDF_ERROR = 1e-13  # covers every float computation of a distribution function below; each derives less than a third


def _around(value: NDArray[np.float64]) -> Bounds:
    return np.maximum(value - CDF_ERROR, 0.0), np.minimum(value + CDF_ERROR, 1.0)


def geometric_law(s: Real) -> Law:
    """Pr[X <= x] = 1 - e^{-(x+1)/s}. The relative error of y = (x+1)/s moves e^-y by y e^-y 2^-52 < 1e-15."""
    scale = float(s)

    def cdf(x: NDArray[Any]) -> Bounds:
        lo, hi = _around(-np.expm1(-np.maximum(np.asarray(x) + 1.0, 0.0) / scale))
        return lo, np.where(np.asarray(x) < 0, 0.0, hi)  # a negative outcome is impossible

    return Law(f"geometric(s={scale})", cdf)


def laplace_law(s: Real) -> Law:
    """Discrete Laplace: q^k/(1 + q) on either side; the error is that of `geometric_law`."""
    scale = float(s)
    q = math.exp(-1.0 / scale)

    def cdf(z: NDArray[Any]) -> Bounds:
        z = np.asarray(z, dtype=np.float64)
        outside = np.exp(-np.where(z >= 0, z + 1.0, -z) / scale) / (1.0 + q)
        return _around(np.where(z >= 0, 1.0 - outside, outside))

    return Law(f"laplace(s={scale})", cdf)


GAUSSIAN_BY_SUM = 64  # up to this sigma the distribution function is a table of certified terms


def gaussian_law(sigma: Real) -> Law:
    """Discrete Gaussian, Pr[Z = z] proportional to e^{-z^2/(2 sigma^2)}, for sigma from 2^-5 to 2^50.

    Below sigma = 0.3 almost every draw is 0 and no affordable sample tells a wrong scale; use `gaussian_pmf`.
    """
    by = _gaussian_cdf_by_sum if sigma < GAUSSIAN_BY_SUM else _gaussian_cdf_by_integral
    return Law(f"gaussian(sigma={float(sigma)})", by(sigma))


def _gaussian_cdf_by_sum(sigma: Real) -> Cdf:
    """Partial sums over |z| <= 10 sigma + 1, in units of 2^-120; the mass outside is below e^-50."""
    variance = Fraction(sigma) ** 2
    window = math.ceil(10 * sigma) + 1
    side = [math.floor(exp_interval(-z * z / (2 * variance), 128)[0] * 2**120) for z in range(1, window + 1)]
    weights = [*reversed(side), 2**120, *side]
    total, partial, table = sum(weights), 0, [0.0]
    for weight in weights:
        partial += weight
        table.append(partial / total)  # quotient of integers: correctly rounded
    values = np.array(table)

    def cdf(z: NDArray[Any]) -> Bounds:
        return _around(values[np.clip(z, -window - 1, window) + window + 1])

    return cdf


def _gaussian_cdf_by_integral(sigma: Real) -> Cdf:
    """Euler-Maclaurin at mid-points. With f the density of N(0, sigma^2) and x = z + 1/2,

        sum_{y <= z} f(y) = integral_{-oo}^x f - f'(x)/24 + 7 f'''(x)/5760 + R,   |R| <= 2 |B_6|/6! integral |f^(6)|,

    and integral |f^(6)| <= sqrt(6!)/sigma^6 (Cauchy-Schwarz for the Hermite polynomial He_6), so |R| < 0.0018/sigma^6:
    below 3e-14 from sigma = 64 on. The sum of f over all integers is 1 + 2 e^{-2 pi^2 sigma^2} + ... = 1 in a double.
    """
    scale = float(sigma)

    def cdf(z: NDArray[Any]) -> Bounds:
        u = (np.asarray(z, dtype=np.float64) + 0.5) / scale
        u = np.clip(u, -30.0, 30.0)
        below = 0.5 * np.array([math.erfc(v) for v in (-u / math.sqrt(2.0)).ravel()]).reshape(u.shape)
        density = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        first = u * density / (24.0 * scale**2)
        third = 7.0 * (u**3 - 3.0 * u) * density / (5760.0 * scale**4)
        return _around(below + first - third)

    return cdf


def finite_law(probabilities: Sequence[Real], name: str = "finite") -> Law:
    """The law on 0 .. len(probabilities) - 1 with these probabilities, which sum to 1 up to 1e-14.

    Its partial sums are correctly rounded and not widened, so that an impossible outcome keeps probability 0.
    (laws.cells_for puts light outcomes together; where each must be seen, count them and use laws.check_cells.)
    """
    partial = [Fraction(0)]
    for probability in probabilities:
        partial.append(partial[-1] + Fraction(probability))
    if abs(partial[-1] - 1) > 1e-14:
        raise ValueError(f"sum(probabilities)={float(partial[-1])}: must be 1")
    values = np.array([float(value) for value in partial])

    def cdf(z: NDArray[Any]) -> Bounds:
        value = values[np.clip(z, -1, len(probabilities) - 1) + 1]
        return value, value

    return Law(name, cdf)
