"""The points at which ordered records may be cut: the numbers of a line, each with many cuts inside of it.

Records with equal numbers are told apart by random low bits, and a cut falls between them: a cut is a number and low
bits. Cuts are counted 0 .. size - 1 from the least; how many a number has is its weight in a choice among cuts. It is a
power of two that depends on the number alone: many_quantiles.md, "The line".
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..records.number_line import NumberLine

LOW_BITS = 32  # that tell equal numbers apart
LOWEST, HIGHEST = -1, 2**LOW_BITS - 1  # of low bits: before all records of a number, and after them
_EVEN_BITS = 16  # up to which integers weigh alike: who declares so few bits knows the range
_FULL_EXPONENTS = 16  # powers of two up to 2^16, and from 2^-16, have the full weight
_ZERO_OCTAVES = 3  # zero weighs as much as 2^3 powers of two of full weight
_MANTISSAS = {16: 10, 32: 23, 64: 52}


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
    if line.least is None:
        pieces = _of_floats(line)
    elif _EVEN_BITS < line.bits <= 64:
        pieces = _of_integers(line)
    else:
        pieces = [(0, 0)]
    firsts, starts, shifts, size = [], [], [], 0
    for i, (first, shift) in enumerate(pieces):
        stop = pieces[i + 1][0] if i + 1 < len(pieces) else line.last + 1
        if stop == first:
            continue
        firsts.append(first)
        starts.append(size)
        shifts.append(LOW_BITS + shift)
        size += stop - first << LOW_BITS + shift
    return CutLine(tuple(firsts), tuple(starts), tuple(shifts), size)


def _of_integers(line: NumberLine) -> list[tuple[int, int]]:
    """From one power of two to the next all have together as much weight, up to 2^16: position and shift of each piece.

    Number z is in octave e if 2^e <= |z| + 1 < 2^(e + 1).
    """
    assert line.least is not None
    zero, octaves = -line.least, range(line.bits)
    shifts = [_weight(e) - e for e in octaves]
    shifts = [shift - min(shifts) for shift in shifts]
    above = [(zero + 2**e - 1, shifts[e]) for e in octaves if zero + 2**e - 1 <= line.last]
    if not zero:
        return above
    below = [(max(zero - 2 ** (e + 1) + 2, 0), shifts[e]) for e in octaves[1:] if zero - 2**e + 1 >= 0]
    return below[::-1] + above


def _weight(exponent: int) -> int:
    """The logarithm of the weight of a power of two: 0 for exponents within 16 of 0, -2 for the next 32, and so on."""
    return -2 * ((abs(exponent) // _FULL_EXPONENTS + 1).bit_length() - 1)


def _of_floats(line: NumberLine) -> list[tuple[int, int]]:
    """Powers of two are weighed like those of integers, the numbers of one of them alike.

    Zero has the weight of eight powers of two: it is the number that many records share.
    """
    mantissa = _MANTISSAS[line.bits]
    middle = line.last // 2
    bias = middle + 1 >> mantissa + 1  # the exponents of finite floats are 0 .. 2 bias, less the bias
    shifts = [_weight(field - bias) for field in range(2 * bias + 1)]
    least = min(shifts)
    above = [(middle + (field << mantissa), shift - least) for field, shift in enumerate(shifts)]
    below = [(middle - (field + 1 << mantissa) + 1, shift - least) for field, shift in enumerate(shifts)]
    near = above[0][1]
    pieces = [*below[::-1], (middle, mantissa + _ZERO_OCTAVES - least), (middle + 1, near), *above[1:]]
    return [piece for i, piece in enumerate(pieces) if not i or piece[1] != pieces[i - 1][1]]
