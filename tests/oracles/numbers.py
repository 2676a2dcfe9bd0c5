"""Oracles of real numbers: certified exp, ln, pi and square roots.

Fixed-point sums rounded down and up, and a bound for the terms left out. An interval is a pair (lo, hi) of Fractions
with lo <= true value <= hi. A real parameter given as a float stands for the rational number that the float is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

Real = Fraction | float | int
Interval = tuple[Fraction, Fraction]


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _fixed(x: Fraction, p: int) -> tuple[int, int]:
    """Integers lo <= x 2^p <= hi, at most one apart."""
    scaled = x * 2**p
    return math.floor(scaled), math.ceil(scaled)


def _tight(interval: Interval, bits: int) -> bool:
    lo, hi = interval
    return (hi - lo) * (1 << bits) <= min(abs(lo), abs(hi))


def _twice_atanh(z: Fraction, p: int) -> Interval:
    """2 atanh z = 2 (z + z^3/3 + z^5/5 + ...) for 0 < z <= 1/3.

    The terms from z^n/n on sum to at most z^n / (1 - z^2) <= 2 z^n.
    """
    z_lo, z_hi = _fixed(z, p)
    power_lo, power_hi, n, lo, hi = z_lo, z_hi, 1, 0, 0
    while True:
        lo += power_lo // n
        hi += _ceil_div(power_hi, n)
        power_lo = power_lo * z_lo * z_lo >> 2 * p
        power_hi = _ceil_div(power_hi * z_hi * z_hi, 1 << 2 * p)
        n += 2
        if power_hi <= 1:
            return Fraction(2 * lo, 2**p), Fraction(2 * (hi + 2 * power_hi), 2**p)


@lru_cache(maxsize=64)
def _ln2(p: int) -> Interval:
    return _twice_atanh(Fraction(1, 3), p)


def ln_interval(x: Real, bits: int) -> Interval:
    """ln x for rational x > 0, of relative width at most 2^-bits (also where x is close to 1).

    x = m 2^e with 2/3 <= m <= 4/3, and ln m = 2 atanh((m - 1)/(m + 1)). Unless e = 0, |ln x| >= ln 2 - ln(4/3).
    """
    x = Fraction(x)
    if x <= 0:
        raise ValueError(f"x={x}: must be > 0")
    if x == 1:
        return Fraction(0), Fraction(0)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** e  # in (1/2, 2)
    if m > Fraction(4, 3):
        m, e = m / 2, e + 1
    elif m < Fraction(2, 3):
        m, e = m * 2, e - 1
    z = (m - 1) / (m + 1)
    p = bits + 16
    if z:
        p += max(0, z.denominator.bit_length() - abs(z.numerator).bit_length())
    while True:
        lo, hi = _twice_atanh(abs(z), p) if z else (Fraction(0), Fraction(0))
        if z < 0:
            lo, hi = -hi, -lo
        two_lo, two_hi = _ln2(p + abs(e).bit_length())
        result = lo + e * (two_lo if e > 0 else two_hi), hi + e * (two_hi if e > 0 else two_lo)
        if _tight(result, bits):
            return result
        p += 16


def exp_interval(x: Real, bits: int) -> Interval:
    """e^x for rational x, |x| <= 2^20, of relative width at most 2^-bits.

    x = k ln 2 + r with 0 <= r < 1, and e^r = 1 + r + r^2/2! + ...: after the term r^n/n!, n >= 1, the rest is at most
    r^n/n! (1/2 + 1/6 + ...) < r^n/n!.
    """
    x = Fraction(x)
    if x == 0:
        return Fraction(1), Fraction(1)
    if abs(x) > 2**20:
        raise ValueError(f"x={float(x)}: must be within -2^20 .. 2^20")
    p = bits + 16
    while True:
        two_lo, two_hi = _ln2(p + 24)
        k = math.floor(x / two_hi)
        r_lo = min(x - k * two_lo, x - k * two_hi)
        if r_lo < 0:
            k -= 1
        r_lo, r_hi = sorted((x - k * two_lo, x - k * two_hi))
        assert 0 <= r_lo <= r_hi < 1
        low, high = _fixed(r_lo, p)[0], _fixed(r_hi, p)[1]
        term_lo = term_hi = lo = hi = 1 << p
        n = 0
        while n == 0 or term_hi > 1:
            n += 1
            term_lo = term_lo * low // (n << p)
            term_hi = _ceil_div(term_hi * high, n << p)
            lo += term_lo
            hi += term_hi
        hi += term_hi
        if (hi - lo) << bits <= lo:
            scale = Fraction(2) ** (k - p)
            return lo * scale, hi * scale
        p += 16


def pi_interval(bits: int) -> Interval:
    """pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin), of relative width at most 2^-bits.

    The series of arctan(1/n) alternates and falls, so what is left out is below the first term left out; rounding
    down costs at most one unit for the power and one for the quotient of each term.
    """
    p = bits + 16

    def arctan_inverse(n: int) -> tuple[int, int]:
        power, total, count = (1 << p) // n, 0, 0
        while power:
            total += (-1) ** count * (power // (2 * count + 1))
            power //= n * n
            count += 1
        return total - 2 * count - 1, total + 2 * count + 1

    (five_lo, five_hi), (other_lo, other_hi) = arctan_inverse(5), arctan_inverse(239)
    result = Fraction(16 * five_lo - 4 * other_hi, 2**p), Fraction(16 * five_hi - 4 * other_lo, 2**p)
    assert _tight(result, bits)
    return result


def sqrt_interval(x: Interval, p: int) -> Interval:
    """Square root of a positive interval, rounded outwards to multiples of 2^-p."""
    lo, hi = math.isqrt(math.floor(x[0] * 4**p)), math.isqrt(math.floor(x[1] * 4**p)) + 1
    return Fraction(lo, 2**p), Fraction(hi, 2**p)


def times(*factors: Interval) -> Interval:
    """Product of intervals of non-negative numbers."""
    lo = hi = Fraction(1)
    for factor in factors:
        lo, hi = lo * factor[0], hi * factor[1]
    return lo, hi


def over(x: Interval, y: Interval) -> Interval:
    """Quotient of intervals, x non-negative, y positive."""
    return x[0] / y[1], x[1] / y[0]


def nearest_float(x: Fraction) -> float:
    """To nearest, ties to even: a quotient of integers is rounded correctly."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
