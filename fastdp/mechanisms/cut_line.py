"""The points at which ordered records may be cut: the numbers of a line, each with many cuts inside of it.

Records with equal numbers are told apart by random low bits, and a cut falls between them: a cut is a number and low
bits. Cuts are counted 0 .. size - 1 from the least; how many a number has is its weight in a choice among cuts. It is a
power of two that depends on the number alone (line_weights.py): many_quantiles.md, "The line".
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..records.number_line import NumberLine
from .line_weights import line_weights

LOW_BITS = 32  # that tell equal numbers apart
LOWEST, HIGHEST = -1, 2**LOW_BITS - 1  # of low bits: before all records of a number, and after them


@dataclass(frozen=True)
class CutLine:
    """Pieces of the line in which all numbers have equally many cuts.

    firsts    the first position of each piece
    starts    its first cut
    shifts    the logarithm of the number of cuts at each of its positions, at least LOW_BITS
    size      how many cuts there are
    """

    firsts: tuple[int, ...]
    starts: tuple[int, ...]
    shifts: tuple[int, ...]
    size: int

    def cut(self, position: int, low: int) -> int:
        """The first cut that has this record on its left; for LOWEST the first of the number itself."""
        piece = bisect_right(self.firsts, position) - 1
        shift = self.shifts[piece]
        return self.starts[piece] + (position - self.firsts[piece] << shift) + (max(low, 0) << shift - LOW_BITS)

    def end(self, position: int) -> int:
        """The last cut of a number."""
        piece = bisect_right(self.firsts, position) - 1
        return self.starts[piece] + (position - self.firsts[piece] + 1 << self.shifts[piece]) - 1

    @cached_property
    def rows(self) -> NDArray[np.uint64] | None:
        """The same for kernels; None where positions do not fit into 64 bits, or cuts into 127."""
        if self.size >> 127 or self.firsts[-1] >> 64:
            return None
        pieces = zip(self.firsts, self.starts, self.shifts, strict=True)
        return np.array([(first, start >> 64, start & 2**64 - 1, shift) for first, start, shift in pieces], np.uint64)

    def place(self, cut: int) -> tuple[int, int]:
        """The number at a cut, and the greatest low bits on its left."""
        piece = bisect_right(self.starts, cut) - 1
        shift = self.shifts[piece]
        within = cut - self.starts[piece]
        return self.firsts[piece] + (within >> shift), (within & (1 << shift) - 1) >> shift - LOW_BITS


@lru_cache(64)
def cut_line(line: NumberLine) -> CutLine:
    """The cuts of a line, by public numbers alone."""
    weights = line_weights(line)
    starts, size = [], 0
    for first, end, shift in weights.runs(0, line.last):
        starts.append(size)
        size += end - first + 1 << LOW_BITS + shift
    return CutLine(weights.firsts, tuple(starts), tuple(LOW_BITS + shift for shift in weights.shifts), size)
