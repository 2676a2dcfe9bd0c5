"""Counting short strings that lie one after the other in memory, as Arrow holds them.

A string of up to 15 bytes is two words with its length in the last byte: made by three aligned loads and two masks
whatever its length is, and compared as such.
"""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import I64Array, U64Array, int64, uint64

I32Array = np.ndarray[Any, np.dtype[np.int32]]

LONGEST = 15  # bytes
TOO_LONG, TOO_MANY = -1, -2
_ALL = uint64(2**64 - 1)
_MIX_LOW = uint64(0x9E3779B97F4A7C15)
_MIX_HIGH = uint64(0xC2B2AE3D27D4EB4F)


@jit(inline=True)
def shifted_word(word: int, after: int, skip: int) -> int:
    """The word that begins so many bits, below 64, after the first one does."""
    return uint64((word >> skip) | ((after << (uint64(63) - skip)) << uint64(1)))


@jit(inline=True)
def lowest_bits(bits: int) -> int:
    """A mask of so many bits, and of all for 64 or more."""
    return _ALL if bits >= uint64(64) else uint64((uint64(1) << bits) - uint64(1))


@jit
def count_strings_into(
    words: U64Array, offsets: I64Array, start: int, known: int, seed: Any, table: I32Array, lows: U64Array,
    highs: U64Array, firsts: I64Array, counts: I64Array,
) -> int:  # fmt: skip
    """How often each different string occurs, in the order in which they do, by a table with open addresses.

    String i is the bytes offsets[i] .. offsets[i + 1] - 1;   firsts[k] = `start` and where the k-th different one
    occurs first,   counts[k] += how often

    Shapes    words uint64[w], the bytes; offsets int64[n + 1]; start, known int; seed uint64; table int32[2^s], -1
              where free; lows, highs uint64[m], firsts, counts int64[m], m at least 2^(s - 1)
    Cost      4 ns a string for 10^3 different ones
    Requires  offsets in order, offsets[n - 1] < 8 (w - 2); the table and the others hold the first `known` strings, as
              this function left them
    Returns   how many different ones are known; TOO_LONG where one has more than 15 bytes, TOO_MANY where they are more
              than 2^(s - 1): nothing that was written means anything then
    Used by   fastdp/support/arrow_strings.py
    Oracle    collections.Counter
    """
    last, bits = uint64(table.size - 1), uint64(0)
    while (uint64(1) << bits) < uint64(table.size):
        bits += uint64(1)
    drop = uint64(64) - bits
    first = offsets[0]
    for i in range(offsets.size - 1):
        stop = offsets[i + 1]
        size = uint64(stop - first)
        if size > uint64(LONGEST):
            return TOO_LONG
        at, skip = uint64(first) >> uint64(3), (uint64(first) & uint64(7)) << uint64(3)
        first = stop
        middle, length = words[at + uint64(1)], size << uint64(3)
        low = shifted_word(words[at], middle, skip) & lowest_bits(length)
        beyond = length - uint64(64) if length > uint64(64) else uint64(0)
        high = (shifted_word(middle, words[at + uint64(2)], skip) & lowest_bits(beyond)) | (size << uint64(56))
        mixed = uint64((low ^ seed) * _MIX_LOW)
        place = uint64((mixed ^ (mixed >> uint64(32)) ^ high) * _MIX_HIGH) >> drop
        k = table[place]
        while k >= 0 and (lows[uint64(k)] != low or highs[uint64(k)] != high):
            place = (place + uint64(1)) & last
            k = table[place]
        if k < 0:
            if 2 * known >= table.size:
                return TOO_MANY
            k = np.int32(known)
            table[place] = k
            lows[known], highs[known], firsts[known], counts[known] = low, high, start + i, 0
            known += 1
        counts[uint64(k)] += 1
    return int64(known)
