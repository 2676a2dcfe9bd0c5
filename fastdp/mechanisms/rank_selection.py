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
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key
from ..records.number_line import Positions
from ..records.ordering import has_many_ties, sort_positions
from ..records.rank_search import RankSearch
from .line_weights import LineWeights
from .weighted_intervals import TRIALS, Interval, IntervalChoice, Levels

_SORTED = 8  # all values are sorted where those that are needed are more than an eighth of them

_LISTED = 2**12  # values that are Python's integers before they are asked for: 10 ns each, and 100 less for each asked
_KEPT = 128  # levels of a line of 64 bits: their gaps are kept for the next choice


def sort_ranks(values: NDArray[np.uint64], low: int, high: int) -> tuple[int, int]:
    """Put the values of ranks low .. high, counted from 1, in order: returns the ends of the part that is in order."""
    m = values.size
    first, stop = max(low, 1) - 1, min(high, m)
    if stop - first >= m // _SORTED or has_many_ties(values):
        sort_positions(values)
        return 0, m
    # two steps with one pivot each: numpy has vector code for one, and takes ten times as long for two at once
    values.partition(first)
    if stop < m:
        values[first:].partition(stop - first)
    values[first:stop].sort()
    return first, stop


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
        self._first, self._stop = sort_ranks(self._values, low, high)
        if self._stop - self._first <= _LISTED:
            self._window = self._values[self._first : self._stop].tolist()

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
    """What public numbers alone decide about a choice on 0 .. last, with weights w(z) exp(-eta F(z) / b).

    w(z) = 1 without `weights`.
    """

    def __init__(self, tau: Fraction, last: int, eta: Fraction, weights: LineWeights | None = None) -> None:
        self.a, self.b, self.last = tau.numerator, tau.denominator, last
        self.weights = None if weights is None or weights.even else weights
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

    def ranks_read(self, m: int) -> tuple[int, int]:
        """Which of m values are asked for by rank: from the first to the second."""
        return (self.a * m - self.most) // self.b, (self.a * m + self.most) // self.b + 2

    @cached_property
    def for_kernel(self) -> KernelLaw | None:
        """The same as the kernel reads it; None where positions do not fit into 64 bits, or gaps into 61."""
        if self._kept is None or (widest := self._kept[-1][1]) >> 61:
            return None
        most = ((1 << 61) - widest) // self.b - 1
        pieces = [(0, 0)]
        if self.weights is not None:
            pieces = list(zip(self.weights.firsts, self.weights.shifts, strict=True))
        line = np.array([*pieces, (self.last, 0)], np.uint64)
        return KernelLaw(most, self.a, self.b, float(self.rate), np.array(self._kept, np.int64), line)


class KernelLaw(NamedTuple):
    """A law in numbers of 64 bits.

    most      for so many values and fewer
    a, b      the share is a / b
    rate      by how much a unit of loss lowers the logarithm of a weight
    steps     levels, and the least gap beyond each
    line      the first point of each piece in which all points weigh alike, and the logarithm of that; the last point
    """

    most: int
    a: int
    b: int
    rate: float
    steps: NDArray[np.int64]
    line: NDArray[np.uint64]


rank_law = lru_cache(256)(RankLaw)


def draw_by_rank(
    values: Positions | RankSearch, law: RankLaw, take_key: Callable[[], Key], choice: int = 0
) -> int:  # fmt: skip
    """Choice number `choice` of a release: by the kernel, and what that leaves open by the definition.

    `values` is taken over, and reordered. `take_key` is called when all has been read, right before the draw.
    """
    given = law.for_kernel
    if given is None or isinstance(values, RankSearch) or values.dtype == object or values.size > given.most:
        made = choose_by_rank(values, law)
        return made.draw(take_key(), choice)
    first, stop = sort_ranks(values, *law.ranks_read(values.size))
    key = take_key()
    is_decided, point = _kernels().choose_point(
        values, first, stop, given.a, given.b, given.rate, given.steps, given.line, key, choice * TRIALS
    )
    return int(point) if is_decided else choose_by_rank(values, law).draw(key, choice)


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import ranks

    return ranks


def choose_by_rank(values: Positions | RankSearch, law: RankLaw) -> IntervalChoice:
    """The choice itself; `values` is taken over, and reordered."""
    ranks = DistantRanks(values) if isinstance(values, RankSearch) else Ranks(values)
    m, b, am, full, rate, last = ranks.m, law.b, law.a * ranks.m, law.full, law.rate, law.last
    ranks.sort_between(*law.ranks_read(m))

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
    intervals, shifts = (intervals, ()) if law.weights is None else _of_one_weight(intervals, law.weights)
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
