"""Numbers as positions on a line: 0, 1, 2, ... in their order, whatever their type."""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import F64Array, I64Array, U64Array, bits_of, float_of, int64, stack, uint64

INFINITE = 0x7FF0_0000_0000_0000  # the bits of an infinity: so many floats are >= 0 and finite
MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF  # of the bits of a float
NAN, BEYOND = 1, 2  # flags that these kernels return
PARTS = 64  # of a sum


@jit
def place_floats_into(values: F64Array, out: U64Array) -> int:
    """out[i] is how many finite floats are less than values[i], where -0.0 is 0.0; infinities go to the ends.

    Shapes    values float64[n], out uint64[n]
    Cost      0.5 ns a number
    Returns   NAN if there is one (its place means nothing), BEYOND if there is an infinity, their sum, or 0
    Used by   fastdp/records/number_line.py
    Oracle    numpy sort
    """
    top = np.int64(0)
    infinite = np.int64(0)
    for i in range(values.size):
        bits = bits_of(values[i])
        size = bits & int64(MAGNITUDE)
        top = max(top, size)
        infinite |= int64(size == int64(INFINITE))
        size = min(size, int64(INFINITE - 1))
        out[i] = uint64(int64(INFINITE - 1) + (size if bits >= 0 else -size))
    return (NAN if top > int64(INFINITE) else 0) + (BEYOND if infinite else 0)


@jit
def place_integers_into(values: Any, least: Any, last: Any, out: U64Array) -> int:
    """out[i] = values[i] - least, clipped to 0 .. last.

    Shapes    values of any integer type, int64 and uint64 included, least of the same type, last uint64, out uint64[n]
    Cost      0.3 ns a number
    Returns   BEYOND if one is clipped, otherwise 0
    Used by   fastdp/records/number_line.py
    Oracle    Python's integers
    """
    beyond = False
    for i in range(values.size):
        place = uint64(values[i]) - uint64(least)  # of int64 and uint64 alike: differences wrap to what they are
        below = values[i] < least
        above = place > last
        beyond |= below | above
        out[i] = uint64(0) if below else (last if above else place)
    return BEYOND if beyond else 0


@jit
def sum_positions(values: Any, line: F64Array, out: I64Array) -> float:
    """Add up where numbers stand among evenly spaced points: the nearest of points `first` .. `last`, by its number.

    out[0] += sum of floor(k_i / 2^31),   out[1] += sum of k_i mod 2^31,   k_i = rint((v - low) scale), cut to first ..
    last, where v is values[i], cut to `limit` in magnitude

    Shapes    values float64 or float32[n]; line float64[5]: low, scale, first, last, limit, of which first and last are
              whole numbers of at most 2^62 in magnitude; out int64[2]
    Cost      one read of the values: 0.4 ns a number with AVX-512, 0.6 with AVX2
    Requires  n at most 2^22 in a call; sums mean nothing where a number is NaN
    Returns   the largest magnitude, or NaN if there is one
    Used by   fastdp/optimizing/one_dimension.py
    Oracle    Python's integers
    """
    low, scale, first, last, limit = line[0], line[1], line[2], line[3], line[4]
    # in 64 parts, so that no addition waits for another; they are whole numbers below 2^53
    high, rest, top = stack(line.dtype, PARTS), stack(line.dtype, PARTS), stack(out.dtype, PARTS)
    high[:], rest[:], top[:] = 0.0, 0.0, 0
    for start in range(0, values.size, PARTS):
        some = values[start : start + PARTS]
        for i in range(some.size):
            v = np.float64(some[i])
            size = bits_of(v) & int64(MAGNITUDE)  # which compares as floats do, and NaN above all
            top[i] = size if size > top[i] else top[i]
            v = v if v < limit else limit
            v = v if v > -limit else -limit
            k = (v - low) * scale
            k = k if k < last else last
            k = k if k > first else first
            k = np.rint(k)
            upper = np.floor(k * 2.0**-31)
            high[i] += upper
            rest[i] += k - upper * 2.0**31
    largest = int64(0)
    for i in range(PARTS):
        out[0] += int64(high[i])
        out[1] += int64(rest[i])
        largest = max(largest, top[i])
    return float_of(largest)
