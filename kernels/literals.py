"""Counting records on bit-packed columns: bit i % 64 of word i // 64 is record i."""

from typing import Any

import numpy as np

from ._jit import jit
from .lanes import I64Array, U64Array, int64, popcount, stack, uint64

BLOCK = 512  # words that stay in the L1 cache while all columns are looked at


@jit
def pack_allowed_into(codes: Any, table: Any, out: U64Array) -> None:
    """Bit i of `out` is table[codes[i]]; spare bits are 0.

    Shapes    codes uint8[n], uint16[n] or uint32[n], table uint8[v] of 0 and 1, out uint64[ceil(n / 64)]
    Cost      about 0.6 ns a record
    Used by   fastdp/answering/truth.py
    Oracle    numpy packbits
    """
    for w in range(out.size):
        part = codes[64 * w : min(64 * (w + 1), codes.size)]
        word = uint64(0)
        for i in range(part.size):
            word |= uint64(table[part[i]]) << uint64(i)
        out[w] = word


@jit
def count_all(columns: Any, chosen: I64Array) -> int:
    """How many records have a 1 in every chosen column.

    Shapes    columns uint64[m, W], chosen int64[k], k >= 1
    Cost      about 0.1 ns a word and column
    Used by   fastdp/answering/truth.py
    Oracle    numpy
    """
    both = stack(np.uint64, BLOCK)
    total = int64(0)
    for start in range(0, columns.shape[1], BLOCK):
        n = min(BLOCK, columns.shape[1] - start)
        both[:n] = columns[chosen[0]][start : start + n]
        for j in range(1, chosen.size):
            other = columns[chosen[j]][start : start + n]
            for w in range(n):
                both[w] &= other[w]
        for w in range(n):
            total += popcount(both[w])
    return total
