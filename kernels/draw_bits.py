"""The first bits of a draw, and how far they decide it: what discrete Laplace and discrete Gaussian noise share.

A draw is first taken in float64 on a prefix of its random bits. Where the proven error bound does not decide it, it is
taken again in double-double on 52 bits more (the `_pair` pieces); what even that leaves open is reported to the caller,
who resolves it in integers (fastdp/randomness/exact_draws.py, which is also the definition of every draw).
fastdp/mechanisms/noise.md proves the bounds; which words are the bits stands in layout.py.
"""

import numpy as np

from .arrays import seen_as
from .compile import jit
from .elementary import add_pairs, two_sum
from .lanes import F64Array, U16Array, U32Array, U64Array, bits_of, float64, float_of, int64, uint64
from .layout import COIN_BITS, COIN_STREAM, GROUP_HALVES, LONG_EXTRA, MEDIUM_EXTRA, U_EXTRA_STREAM, UNDECIDED
from .words import fill_groups_into


@jit(inline=True)
def is_open(y: float, floor: float, error: float) -> bool:
    """Whether floor(y') may differ from floor(y) for some y' within `error` of y."""
    return abs(y - floor - 0.5) > 0.5 - error


@jit(inline=True)
def with_sign(magnitude: float, sign: int) -> float:
    """magnitude, negated if the lowest bit of `sign` is set."""
    return float_of(bits_of(magnitude) | int64(sign << uint64(63)))


@jit
def count_nan(values: F64Array) -> int:
    """How many entries are NaN: a loop that vectorises, to find the stretches that hold one.

    Shapes    values float64[n] or float32[n]
    Cost      at memory speed
    Used by   noise, clamped_sums
    Oracle    numpy
    """
    count = 0
    for i in range(values.size):
        count += np.isnan(values[i])
    return count


@jit
def uniform_pair(prefix: int, more: int) -> tuple[float, float]:
    """prefix + (m + 1/2) 2^-52 as a double-double, m the first 52 bits of `more`; within a relative 2^-104.

    Shapes    prefix, more uint64; a double-double is returned
    Cost      a dozen operations
    Source    fastdp/mechanisms/noise.md, lemma 3
    Used by   noise
    Oracle    fractions
    """
    high, low = two_sum(float64(prefix >> uint64(32)) * 4294967296.0, float64(prefix & uint64(0xFFFFFFFF)))
    return add_pairs(high, low, (float64(more >> uint64(12)) + 0.5) * 2.0**-52, 0.0)


@jit
def floor_pair(y: float, y_low: float, error: float) -> float:
    """floor(y + y_low) if every number within `error` has the same floor, else NaN.

    Shapes    y + y_low a double-double
    Cost      a dozen operations
    Source    fastdp/mechanisms/noise.md, lemma 3
    Requires  error below 1/4, |y| below 2^52
    Used by   noise
    Oracle    fractions
    """
    floor = np.floor(y)
    rest = (y - floor) + y_low  # rounded, which the 2^-51 pays for
    error += 2.0**-51
    if rest < 0.0:
        floor -= 1.0
        rest += 1.0
    return UNDECIDED if rest < error or rest > 1.0 - error else floor


# --- the first bits of U: 31 of a 32-bit word, and 16 or 32 more where the scale asks for them


@jit(inline=True)
def short_prefix(halves: U32Array, more: U32Array, i: int) -> int:
    """31 bits of U."""
    return uint64(halves[i]) >> uint64(1)


@jit(inline=True)
def medium_prefix(halves: U32Array, more: U16Array, i: int) -> int:
    """47 bits of U."""
    return (uint64(halves[i]) >> uint64(1)) << uint64(MEDIUM_EXTRA) | uint64(more[i])


@jit(inline=True)
def long_prefix(halves: U32Array, more: U32Array, i: int) -> int:
    """63 bits of U."""
    return (uint64(halves[i]) >> uint64(1)) << uint64(LONG_EXTRA) | uint64(more[i])


@jit(inline=True)
def continued_prefix(halves: U32Array, beyond: U64Array, i: int) -> int:
    """63 bits of U: the first 32 of those that a second level takes follow on the short prefix."""
    return (uint64(halves[i]) >> uint64(1)) << uint64(32) | beyond[i] >> uint64(32)


@jit
def prefix_one(halves: U32Array, more: U32Array, extra: int, i: int) -> int:
    """The first 31 + extra bits of U of draw i, from the buffers as `fill_words_into` leaves them.

    Shapes    halves, more uint32[1024] as fill_words_into leaves them
    Cost      a dozen operations
    Requires  extra 0, 16 or 32
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    if extra == 0:
        return short_prefix(halves, more, i)
    if extra == MEDIUM_EXTRA:
        return medium_prefix(halves, seen_as(more, np.uint16), i)
    return long_prefix(halves, more, i)


@jit(inline=True)
def fill_words_into(
    key: U32Array, first: int, n: int, extra: int, streams: int, halves: U32Array, more: U32Array, coins: U32Array
) -> None:
    """The words of draws first .. first + n - 1: stream 0 to `halves`, 1 to `more`, 2 (of 3 streams) to `coins`.

    Shapes    key uint32[8]; halves, more, coins uint32[1024], of which as much is written as n draws take
    Cost      that of its words
    Source    fastdp/mechanisms/noise.md, Bits
    Requires  first a multiple of 1,024 or, with three streams, of 512; n at most as much; extra 0, 16 or 32
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    for stream in range(streams):
        target, width = halves, 32
        if stream == U_EXTRA_STREAM:
            target, width = more, extra or 32
        elif stream == COIN_STREAM:
            target, width = coins, COIN_BITS
        per_group = 32 * GROUP_HALVES // width
        used = -(-n // per_group) * GROUP_HALVES
        if stream != U_EXTRA_STREAM or extra:
            fill_groups_into(key, uint64(stream), uint64(first) // uint64(per_group), target[:used])
