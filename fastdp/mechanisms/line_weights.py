"""How much the numbers of a line weigh in a choice by rank: by their size, and by public parameters alone.

Ranks decide among numbers, and weights among those that lose the same. If all weighed alike, some hundred ages would
lose against the 2^63 integers that nobody has, and a median near 0 against all the floats next to 0:
interior_point.md, "Weights".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log2

import numpy as np

from ..records.number_line import NumberLine

_EVEN_BITS = 16  # up to which integers weigh alike: who declares so few bits knows the range
_FULL_EXPONENTS = 16  # powers of two of integers up to 2^16 have the full weight,
_FULL_SHARE = -6  # which is so much of what all numbers weigh at least: its logarithm to base 2
_MANTISSAS = {16: 10, 32: 23, 64: 52}
_SMALLER, _SMALL, _LARGE, _HUGE = -16, -8, 32, 96  # powers of two of floats from 2^-8 to 2^32 have the full weight
_TAIL = -5  # logarithm of the most that all the lightest powers of two weigh together
_ZERO = -4  # and of what 0 weighs, which records share more often than any other number


@dataclass(frozen=True)
class LineWeights:
    """Pieces of a line in which all numbers weigh alike.

    firsts    the first position of each piece
    shifts    the logarithm to base 2 of what each of its numbers weighs; the least is 0
    last      the last position of the line
    """

    firsts: tuple[int, ...]
    shifts: tuple[int, ...]
    last: int

    @property
    def even(self) -> bool:
        """Whether all numbers weigh alike."""
        return len(self.firsts) == 1

    @cached_property
    def total(self) -> int:
        """What all numbers weigh together."""
        return sum(end - begin + 1 << shift for begin, end, shift in self.runs(0, self.last))

    @cached_property
    def bits(self) -> float:
        """The logarithm to base 2 of that, which is how many times the lightest number."""
        return log2(self.total)

    def runs(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """The numbers low .. high as runs of one weight: the first of each, its last, and its shift."""
        piece = bisect_right(self.firsts, low) - 1
        while low <= high:
            after = self.firsts[piece + 1] if piece + 1 < len(self.firsts) else self.last + 1
            end = min(high, after - 1)
            yield low, end, self.shifts[piece]
            low, piece = end + 1, piece + 1


@lru_cache(64)
def line_weights(line: NumberLine) -> LineWeights:
    """The weights of a line, by public numbers alone."""
    if line.least is None:
        pieces = _of_floats(line)
    elif _EVEN_BITS < line.bits <= 64:
        pieces = _of_integers(line)
    else:
        pieces = [(0, 0)]
    assert min(shift for _, shift in pieces) == 0
    pieces = [one for one, following in pairwise([*pieces, (line.last + 1, 0)]) if one[0] < following[0]]
    pieces = [piece for i, piece in enumerate(pieces) if not i or piece[1] != pieces[i - 1][1]]
    firsts, shifts = zip(*pieces, strict=True)
    return LineWeights(firsts, shifts, line.last)


def widest_total(bits: int) -> int:
    """The largest total of a line of so many bits, in units of its lightest number."""
    lines = [NumberLine.of(np.dtype(object), bits, signed, "values") for signed in (False, True)]
    lines += [NumberLine.of(np.dtype(f"f{bits // 8}"), bits, None, "values")] if bits in _MANTISSAS else []
    return max(line_weights(line).total for line in lines)


def _of_integers(line: NumberLine) -> list[tuple[int, int]]:
    """From one power of two to the next all weigh as `_integer_weight` says together, and a number at least 1.

    Number z is in octave e if 2^e <= |z| + 1 < 2^(e + 1).
    """
    assert line.least is not None
    zero, octaves = -line.least, range(line.bits)
    shifts = [max(line.bits + _FULL_SHARE + _integer_weight(e) - e, 0) for e in octaves]
    above = [(zero + 2**e - 1, shifts[e]) for e in octaves if zero + 2**e - 1 <= line.last]
    if not zero:
        return above
    below = [(max(zero - 2 ** (e + 1) + 2, 0), shifts[e]) for e in octaves[1:] if zero - 2**e + 1 >= 0]
    return below[::-1] + above


def _integer_weight(exponent: int) -> int:
    """The logarithm of the weight of a power of two: 0 for exponents below 16, -2 for the next 32, and so on."""
    return -2 * ((exponent // _FULL_EXPONENTS + 1).bit_length() - 1)


def _of_floats(line: NumberLine) -> list[tuple[int, int]]:
    """The numbers of a power of two weigh alike, and as `_float_weight` says together; zero is a piece of its own."""
    mantissa = _MANTISSAS[line.bits]
    middle = line.last // 2
    bias = middle + 1 >> mantissa + 1  # the exponents of finite floats are 0 .. 2 bias, less the bias
    lightest = _TAIL - (line.bits - 1 - mantissa)
    shifts = [_float_weight(field - bias, lightest) for field in range(2 * bias + 1)]
    least = min(shifts)
    above = [(middle + (field << mantissa), shift - least) for field, shift in enumerate(shifts)]
    below = [(middle - (field + 1 << mantissa) + 1, shift - least) for field, shift in enumerate(shifts)]
    near = above[0][1]
    return [*below[::-1], (middle, mantissa + _ZERO - least), (middle + 1, near), *above[1:]]


def _float_weight(exponent: int, lightest: int) -> int:
    """The logarithm of the weight of a power of two, from 0 down to the lightest."""
    if exponent >= _LARGE:
        return -4 if exponent < _HUGE else lightest
    halvings = (min(max(exponent, _SMALLER) - _SMALL, 0) // 2) + min(exponent - _SMALLER, 0) // 4
    return max(halvings, lightest)
