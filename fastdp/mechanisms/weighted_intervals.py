"""An exact choice among very many points, which fall into intervals where weights hardly differ.

An interval is a run of points, and a power of two that is at least the weight of each of them. Sizes times powers are
exact integers, so a point is proposed with probability exactly proportional to the power of its interval; a coin then
accepts it with what the power exceeds its weight by. Nothing here rounds: positions and sizes are Python's integers, as
large as they need to be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, count
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..randomness import exact_draws as exact
from ..randomness.keys import word_source

TRIALS = 2**20  # word numbers kept for one choice, where a release makes several
LN2_UP = Fraction(818323753292969962227, 2**70)  # above ln 2, by less than 2^-70


class Levels:
    """By how many powers of two weights exp(-rate gap) have fallen: integers of gaps, and of levels."""

    def __init__(self, rate: Fraction) -> None:
        self._top = rate.numerator * LN2_UP.denominator
        self._bottom = rate.denominator * LN2_UP.numerator

    def of(self, gap: int) -> int:
        """The largest level that a gap surely has: level ln 2 <= rate gap."""
        return gap * self._top // self._bottom

    def first(self, level: int) -> int:
        """The least gap of a level or a higher one."""
        return -(-level * self._bottom // self._top)


class WeightedInterval(NamedTuple):
    """Points first, first + side, ...: so many, none of which weighs more than 2^-level."""

    first: int
    side: int
    size: int
    level: int


Interval = tuple[int, int, int, int]  # the same without names, a third as long to make


_level_of = itemgetter(3)


class IntervalChoice:
    """The law with weights exp(-loss(k)) on the points of some intervals, for losses of at least level ln 2.

    shifts    of each interval, the logarithm to base 2 of what its points weigh before they lose anything; () for 0
    """

    def __init__(
        self, intervals: Sequence[Interval], loss: Callable[[int], Fraction], shifts: Sequence[int] = ()
    ) -> None:
        self.intervals, self._loss = intervals, loss
        self._open = most = int(max(map(_level_of, intervals)))
        # by how many low bits a place in an interval is finer than a point
        self._finer = finer = [most - level for _, _, _, level in intervals]
        if shifts:
            self._finer = finer = [bits + shift for bits, shift in zip(finer, shifts, strict=True)]
        self._sums = list(accumulate([each[2] << bits for each, bits in zip(intervals, finer, strict=True)]))

    def draw(self, key: NDArray[np.uint32], choice: int = 0) -> int:
        """Choice number `choice` of a release.

        Its proposal t takes word t of streams 0, 2, 4, ..., its coin word t of streams 1, 3, 5, ..., counted from
        `choice` times TRIALS.
        """
        words = word_source(key)
        for t in count(choice * TRIALS):
            place = exact.uniform_below(self._sums[-1], exact.Uniform(0, 0, (words(s, t) for s in count(0, 2))))
            i = bisect_right(self._sums, place)
            first, side, _, level = self.intervals[i]
            within = place - (self._sums[i - 1] if i else 0) >> self._finer[i]
            k = first + side * within
            if exact.is_below_exp(exact.proposal_coin(words, t), -self._loss(k), level):
                return k
        raise AssertionError("a share of the proposals is accepted")
