"""An exact private choice of a point by its rank: interior points, medians and quantiles.

Points are positions 0 .. last. The loss of a point z, for the quantile a/b of m values, is

    F(z) = max(b #{x < z} - a m,  a m - b #{x <= z})

in units of 1/b of a rank. It falls, then rises, so the points that lose no more than a given amount lie between two
values of known rank: a few hundred order statistics are enough for the law, however many values and points there are
(interior_point.md, theorem 2). Points weigh alike before they lose anything, or as line_weights.py says.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.number_line import Positions
from ..records.ordering import has_many_ties, sort_positions
from ..records.rank_search import RankSearch
from .line_weights import LineWeights
from .weighted_intervals import Interval, IntervalChoice, Levels

_SORTED = 8  # all values are sorted where those that are needed are more than an eighth of them

_LISTED = 2**12  # values that are Python's integers before they are asked for: 10 ns each, and 100 less for each asked
_KEPT = 128  # levels of a line of 64 bits: their gaps are kept for the next choice


class Ranks:
    """Values that can be asked for by rank, and for the ranks of a point; `values` is taken over, and reordered."""

    def __init__(self, values: Positions) -> None:
        self.m = len(values)
        self._objects = sorted(values.tolist()) if values.dtype == object else None
        self._values: NDArray[Any] = values
        self._first, self._stop = 0, 0  # the part that is sorted
        self._window: list[int] = []  # the same as Python's integers, where it is small

    def sort_between(self, low: int, high: int) -> None:
        """Make ready the values of ranks low .. high, counted from 1."""
        if self._objects is not None or not self.m:
            return
        first, stop = max(low, 1) - 1, min(high, self.m)
        self._sort(first, stop)
        if self._stop - self._first <= _LISTED:
            self._window = self._values[self._first : self._stop].tolist()

    def _sort(self, first: int, stop: int) -> None:
        if stop - first >= self.m // _SORTED or has_many_ties(self._values):
            sort_positions(self._values)
            self._first, self._stop = 0, self.m
            return
        # two steps with one pivot each: numpy has vector code for one, and takes ten times as long for two at once
        self._values.partition(first)
        if stop < self.m:
            self._values[first:].partition(stop - first)
        self._values[first:stop].sort()
        self._first, self._stop = first, stop

    def at(self, rank: int) -> int:
        """The value of a rank that was made ready."""
        if self._window:
            assert self._first < rank
            return self._window[rank - 1 - self._first]
        if self._objects is not None:
            return int(self._objects[rank - 1])
        assert self._first < rank <= self._stop
        return int(self._values[rank - 1])

    def lookup(self) -> tuple[Callable[[int], int], int]:
        """`at` as a function of the rank less a number, the shortest there is."""
        return (self._window.__getitem__, self._first + 1) if self._window else (self.at, 0)

    def of(self, z: int) -> tuple[int, int]:
        """How many values are below z, and how many are at most z."""
        if self._objects is not None:
            return bisect_left(self._objects, z), bisect_right(self._objects, z)
        if self._window and self._window[0] < z < self._window[-1]:
            return self._first + bisect_left(self._window, z), self._first + bisect_right(self._window, z)
        point, window = np.uint64(z), self._values[self._first : self._stop]
        if window.size and window[0] < point < window[-1]:
            below, up_to = np.searchsorted(window, point, "left"), np.searchsorted(window, point, "right")
            return self._first + int(below), self._first + int(up_to)
        return int(np.count_nonzero(self._values < point)), int(np.count_nonzero(self._values <= point))


class DistantRanks:
    """The same of values that are not here."""

    def __init__(self, values: RankSearch) -> None:
        self.m, self._values, self.at = values.m, values, values.at

    def sort_between(self, low: int, high: int) -> None:
        """Nothing: they are made ready when they are asked for."""

    def lookup(self) -> tuple[Callable[[int], int], int]:
        return self.at, 0

    def of(self, z: int) -> tuple[int, int]:
        return self._values.up_to(z - 1)[0], self._values.up_to(z)[0]


class RankLaw:
    """What public numbers alone decide about a choice on 0 .. last."""

    def __init__(self, tau: Fraction, last: int, eta: Fraction) -> None:
        self.a, self.b = tau.numerator, tau.denominator
        self.rate = eta / self.b
        self.full = last.bit_length() + 64  # 2^-full: what all points together may weigh and still not matter
        self.most = Levels(self.rate).first(self.full)
        self._kept = tuple(self._steps()) if self.full <= _KEPT else None

    @property
    def steps(self) -> Iterable[tuple[int, int]]:
        """The levels that gaps have, `full` the last, and the least gap beyond each."""
        return self._steps() if self._kept is None else self._kept

    def _steps(self) -> Iterator[tuple[int, int]]:
        levels, gap, level = Levels(self.rate), 0, -1
        while level < self.full:
            level = min(self.full, levels.of(gap))
            gap = max(gap + 1, levels.first(level + 1))
            yield level, gap


_law = lru_cache(256)(RankLaw)


def choose_by_rank(
    values: Positions | RankSearch, tau: Fraction, last: int, eta: Fraction, weights: LineWeights | None = None
) -> IntervalChoice:
    """The law with weights w(z) exp(-eta F(z) / b) on 0 .. last; w(z) = 1 without `weights`."""
    law = _law(tau, last, eta)
    ranks = DistantRanks(values) if isinstance(values, RankSearch) else Ranks(values)
    m, b, am, full, rate = ranks.m, law.b, law.a * ranks.m, law.full, law.rate
    ranks.sort_between((am - law.most) // b, (am + law.most) // b + 2)

    def loss(z: int) -> int:
        below, up_to = ranks.of(z)
        return max(b * below - am, am - b * up_to)

    (look, base), middle = ranks.lookup(), -(-am // b)  # the rank of a point that loses least
    least = loss(ranks.at(middle)) if m else 0
    intervals: list[Interval] = []
    left, right = last + 1, last  # where the intervals so far begin and end
    for level, next_gap in law.steps:
        if left <= 0 and right >= last:
            break
        low, high = 0, last
        if level < full and m:
            worst = least + next_gap - 1
            # beyond the middle rank where many values are equal, and worst is below 0: then only their point is meant
            first, stop = -((worst - am) // b), (am + worst) // b + 1
            first, stop = first if first < middle else middle, stop if stop > middle else middle
            assert base <= first or first < 1
            low = look(first - base) if first >= 1 else 0
            high = look(stop - base) if stop <= m else last
        if left > last:
            intervals.append((low, 1, high - low + 1, level))
        else:
            if left > low:
                intervals.append((left - 1, -1, left - low, level))
            if high > right:
                intervals.append((right + 1, 1, high - right, level))
        left, right = low, high
    intervals, shifts = (intervals, ()) if weights is None or weights.even else _of_one_weight(intervals, weights)
    return IntervalChoice(intervals, lambda z: rate * (loss(z) - least), shifts)


def _of_one_weight(intervals: list[Interval], weights: LineWeights) -> tuple[list[Interval], list[int]]:
    """The same points in the same order, as intervals in which all weigh alike, and what they weigh."""
    found: list[Interval] = []
    shifts: list[int] = []
    for first, side, size, level in intervals:
        runs = weights.runs(first, first + size - 1) if side > 0 else weights.runs(first - size + 1, first)
        for low, high, shift in runs:
            found.append((low if side > 0 else high, side, high - low + 1, level))
            shifts.append(shift)
    return found, shifts
