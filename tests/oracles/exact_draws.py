"""Oracles of the exact draws: what a prefix of the random bits decides, and the law that follows.

docs/algorithms.md 7.2 and 7.3. A uniform U of which the first b bits are N lies in [N/2^b, (N+1)/2^b]. Every sampler
below is floor(h(U)) with h continuous and strictly decreasing, so the value is decided as soon as it is the same at
both ends; at U = 0, where h is infinite, it never is. (At the right end h is approached from above, and floor is
continuous from above: the end point itself gives the value next to it.) At rational U other than those treated
exactly, h is never an integer (Lindemann-Weierstrass: it would be an algebraic relation among powers of e), so
refining always ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from tests.oracles.noise import ratio
from tests.oracles.numbers import Interval, Real, exp_interval, ln_interval, over, times

Value = TypeVar("Value")
START_BITS = 128


def _certified_floor(h: Callable[[int], Interval | None]) -> int:
    """floor of the real number that h(bits) encloses, by doubling the precision until both ends agree."""
    bits = START_BITS
    while bits <= 2**15:
        interval = h(bits)
        if interval is not None and math.floor(interval[0]) == math.floor(interval[1]):
            return math.floor(interval[0])
        bits *= 2
    raise ArithmeticError("an integer to within 2^-32768: h(U) is rational, which the proof excludes")


def _decide(h: Callable[[Fraction, int], Interval | None], N: int, b: int) -> int | None:
    """floor(h(U)) for U in [N/2^b, (N+1)/2^b], or None while the prefix leaves it open."""
    if not 0 <= N < 2**b:
        raise ValueError(f"N={N}: must be within 0 .. 2^{b} - 1")
    if N == 0:
        return None
    least = _certified_floor(lambda bits: h(Fraction(N + 1, 2**b), bits))
    most = _certified_floor(lambda bits: h(Fraction(N, 2**b), bits))
    return least if least == most else None


def _minus_ln(lo: Fraction, hi: Fraction, scale: Fraction, bits: int) -> Interval:
    """-scale ln w for lo <= w <= hi."""
    below, above = ln_interval(hi, bits), ln_interval(lo, bits)
    return -scale * below[1], -scale * above[0]


def geometric_from_uniform(N: int, b: int, s: Real) -> int | None:
    """floor(-s ln U): Pr[X >= x] = e^{-x/s} (docs/algorithms.md 7.2)."""
    scale = Fraction(s)
    return _decide(lambda u, bits: _minus_ln(u, u, scale, bits), N, b)


def laplace_from_uniform(N: int, b: int, s: Real) -> int | None:
    """|Z| = floor(-s ln(U (1 + q)/2)), q = e^{-1/s}: Pr[|Z| >= x] = 2 q^x/(1 + q) (docs/algorithms.md 7.2)."""
    scale = Fraction(s)

    def h(u: Fraction, bits: int) -> Interval:
        lo, hi = ratio(scale, bits)
        return _minus_ln(u * (1 + lo) / 2, u * (1 + hi) / 2, scale, bits)

    return _decide(h, N, b)


@lru_cache(maxsize=4096)
def _tail_mass(sigma: Fraction, t: Fraction, a: int, bits: int) -> Interval:
    """T = g/(1 - q), g = exp(sigma^2/(2 t^2) - a/t), q = e^{-1/t}."""
    lo, hi = ratio(t, bits + 64)
    return over(exp_interval(sigma**2 / (2 * t**2) - a / t, bits), (1 - hi, 1 - lo))


def gaussian_magnitude_from_uniform(N: int, b: int, sigma: Real, t: Real, a: int) -> int | None:
    """The proposed |Z| of the discrete Gaussian sampler (docs/algorithms.md 7.3).

    R = U (B + T) with B = a - 1/2. If R < T: a + floor(-t ln(R/T)), a geometric tail from a on; otherwise
    floor(a - (R - T)), uniform on a-1 .. 0 with half a cell at 0.
    """
    sigma, t, body = Fraction(sigma), Fraction(t), Fraction(2 * a - 1, 2)

    def h(u: Fraction, bits: int) -> Interval | None:
        lo, hi = _tail_mass(sigma, t, a, bits)
        excess_lo, excess_hi = u * body - (1 - u) * hi, u * body - (1 - u) * lo  # R - T
        if excess_lo >= 0:
            return a - excess_hi, a - excess_lo
        if excess_hi >= 0:
            return None
        past_lo, past_hi = _minus_ln(u * (1 + body / hi), u * (1 + body / lo), t, bits)
        return a + past_lo, a + past_hi

    return _decide(h, N, b)


def _acceptance_exponent(m: int, sigma: Real, t: Real, a: int) -> Fraction:
    sigma, t = Fraction(sigma), Fraction(t)
    mu = Fraction(0) if m < a else sigma**2 / t
    return (m - mu) ** 2 / (2 * sigma**2)


def gaussian_accepts(N: int, b: int, m: int, sigma: Real, t: Real, a: int) -> bool | None:
    """Whether V <= exp(-(m - mu)^2/(2 sigma^2)) for V in [N/2^b, (N+1)/2^b]; mu = 0 below a, sigma^2/t from a on.

    None while the prefix of V leaves it open. At exponent 0 every V is accepted.
    """
    exponent = _acceptance_exponent(m, sigma, t, a)
    if exponent == 0:
        return True
    if exponent >= b:  # the bound is below 2^-b
        return False if N else None
    bits = START_BITS
    while True:  # the bound is irrational, so this ends
        lo, hi = exp_interval(-exponent, bits)
        if Fraction(N + 1, 2**b) <= lo:
            return True
        if Fraction(N, 2**b) >= hi:
            return False
        if Fraction(N, 2**b) <= lo and hi <= Fraction(N + 1, 2**b):
            return None
        bits *= 2


def gaussian_proposal_tail(m: int, sigma: Real, t: Real, a: int, bits: int = 96) -> Interval:
    """Pr[proposal >= m]: 1 at 0, (T + a - m)/(B + T) for 1 <= m <= a, T q^{m-a}/(B + T) from a on."""
    sigma, t = Fraction(sigma), Fraction(t)
    if m <= 0:
        return Fraction(1), Fraction(1)
    lo, hi = _tail_mass(sigma, t, a, bits + 64)
    total = lo + a - Fraction(1, 2), hi + a - Fraction(1, 2)
    if m <= a:
        return over((lo + a - m, hi + a - m), total)
    return over(times((lo, hi), exp_interval((a - m) / t, bits + 64)), total)


def gaussian_acceptance(m: int, sigma: Real, t: Real, a: int, bits: int = 96) -> Interval:
    """The probability with which the proposal m is accepted."""
    return exp_interval(-_acceptance_exponent(m, sigma, t, a), bits)


def gaussian_proposal_law(sigma: Real, t: Real, a: int, n: int, bits: int = 96) -> list[Interval]:
    """Pr[m is proposed and accepted] for m = 0 .. n-1. That it is proportional to e^{-m^2/(2 sigma^2)}, with half the
    weight at 0, is the correctness of the sampler: a fair sign, ignored at 0, completes the discrete Gaussian."""
    law = []
    for m in range(n):
        above, beyond = (gaussian_proposal_tail(m + i, sigma, t, a, bits + 64) for i in (0, 1))
        proposed = above[0] - beyond[1], above[1] - beyond[0]
        law.append(times(proposed, gaussian_acceptance(m, sigma, t, a, bits + 8)))
    return law


def resolve(
    decide: Callable[[int, int], Value | None], bits: Iterable[int], N: int = 0, b: int = 0
) -> tuple[Value, int]:
    """The value that `decide` takes for the prefix (N, b) followed by `bits`, and how many bits were read in all."""
    source = iter(bits)
    while (value := decide(N, b)) is None:
        N, b = 2 * N + next(source), b + 1
    return value, b


def enumerate_law(decide: Callable[[int, int], Value | None], depth: int) -> tuple[dict[Value, Fraction], Fraction]:
    """The exact probability of each value within `depth` bits, and the probability of being undecided by then."""
    law: dict[Value, Fraction] = {}
    prefixes = [0]
    for b in range(depth + 1):
        undecided = []
        for N in prefixes:
            value = decide(N, b)
            if value is None:
                undecided.append(N)
            else:
                law[value] = law.get(value, Fraction(0)) + Fraction(1, 2**b)
        prefixes = [2 * N + bit for N in undecided for bit in (0, 1)]
    return law, Fraction(len(undecided), 2**depth)
