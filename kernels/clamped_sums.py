"""Sums of numbers that are clamped between two ends and put on a grid of integers: what means and variances read.

A number x becomes the integer q(x), its nearest multiple of the grid's unit between the ends, counted from the lower
end; 0 <= q <= last. Sums are exact, and wrap beyond int64, which the callers exclude.
"""

from __future__ import annotations

from .compile import jit
from .draw_bits import count_nan
from .lanes import F64Array, I64Array, bits_of, float64, int64

_ROUND = (
    6755399441055744.0  # 1.5 * 2^52: so many units, added to less than 2^51, leave the nearest multiple in the bits
)
SHIFT = 26  # squares are summed in two parts: the low bits, and what is above them
_LOW = 2**SHIFT - 1


@jit
def sum_clamped_floats(values: F64Array, unit: float, low: float, high: float) -> tuple[int, int]:
    """The sum of q over floats, and how many of them are NaN, which count as 0.

    q = rint(min(max(values[i] / unit, low), high)) - low

    Shapes    values float64[n] or float32[n]
    Cost      about 0.1 ns a number in cache; the memory's speed beyond; twice that where a number is NaN
    Source    fastdp/statistics/statistics.md, lemma 1
    Requires  unit a power of two from 2^-900 to 2^900; low < high integers, both within 2^50; n (high - low) < 2^63
    Used by   fastdp/statistics/clamped.py
    Oracle    tests/statistics/test_statistics.py::integer_of
    """
    least, most, shift = low * unit, high * unit, _ROUND * unit
    first = bits_of(least + shift)
    total = seen = int64(0)
    for i in range(values.size):
        x = float64(values[i])
        inside = least if x < least else x  # a NaN compares false, and stays one
        inside = most if inside > most else inside
        bits = bits_of(inside + shift)
        total += bits
        seen |= bits  # asking each whether it is a NaN takes 15 % longer
    if seen >> 52 == bits_of(shift) >> 52:  # all have the exponent of `shift`
        return total - values.size * first, 0
    total = int64(0)
    for i in range(values.size):
        x = float64(values[i])
        inside = x if x > least else least  # of a NaN the lower end
        total += bits_of((inside if inside < most else most) + shift)
    return total - values.size * first, count_nan(values)


@jit
def sum_clamped_integers(values: I64Array, low: int, high: int) -> int:
    """The sum of q over integers, on the grid of all integers.

    q = min(max(values[i], low), high) - low

    Shapes    values int64[n]
    Cost      the memory's speed
    Source    fastdp/statistics/statistics.md, lemma 1
    Requires  n (high - low) < 2^63
    Used by   fastdp/statistics/clamped.py
    Oracle    tests/statistics/test_statistics.py::integer_of
    """
    total = int64(0)
    for i in range(values.size):
        x = values[i]
        inside = x if x > low else low
        total += (inside if inside < high else high) - low
    return total


@jit
def sum_clamped_squares(values: F64Array, unit: float, low: float, high: float) -> tuple[int, int, int, int]:
    """The sums of q, of the low bits of q^2, and of what is above them; and how many are NaN, which count as 0.

    q^2 = above * 2^26 + below

    Like      sum_clamped_floats
    Shapes    values float64[n] or float32[n]
    Cost      about 1 ns a number
    Source    fastdp/statistics/statistics.md, lemma 1
    Requires  high - low <= 2^26
    Used by   fastdp/statistics/clamped.py
    Oracle    tests/statistics/test_statistics.py::integer_of
    """
    least, most, shift = low * unit, high * unit, _ROUND * unit
    first = bits_of(least + shift)
    total = below = above = int64(0)
    nan = False
    for i in range(values.size):
        x = float64(values[i])
        inside = x if x > least else least
        inside = inside if inside < most else most
        q = bits_of(inside + shift) - first
        square = (q & 0xFFFFFFFF) * (q & 0xFFFFFFFF)
        total += q
        below += square & _LOW
        above += square >> SHIFT
        nan |= x != x
    return total, below, above, count_nan(values) if nan else 0
