"""Order statistics of a column in a few passes, where its numbers are too many or too far away to be sorted here.

The number at a rank, and how many numbers are up to a point, are found by counting: a pass counts the numbers in each
of some thousand parts of a line, the next one those in the parts of the part that matters, until it holds so few that
they are listed. Counts are kept, so later searches need fewer passes.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from ..support.errors import DomainError
from .rows import Block, PerRecord, Rows

_GATHERED = 2**27  # numbers that are brought together in this process: 1 GiB
_PARTS = 2**12  # that a part of the line is cut into by one pass
_LISTED = 2**14  # numbers that one pass may list
_HALF = 31  # bits of the lower part of a position: sums of either part fit int64

Listed = tuple[NDArray[np.uint64], NDArray[np.int64]]  # distinct positions in order, and how many numbers are at each


def may_gather(rows: Rows) -> bool:
    """Whether one number for each record is brought together in this process; the results are the same if not."""
    return rows.gathers and (rows.n <= _GATHERED or rows.one_block() is not None)


_MOST_PASSES = 64  # for one rank: a pass cuts a part in thousands, or lists it, so six are enough


def _changed() -> DomainError:
    return DomainError("data: must not change during the call, and it did")


class RankSearch:
    """The ordered positions of all records, uint64 numbers 0 .. last.

    add    whether their sums are found as well
    m      how many there are, where not every record has one

    The line is cut into parts (c, d]; for each is known how many positions are up to d, and their sum. A part is
    resolved if all its positions are at d.
    """

    def __init__(self, rows: Rows, positions: PerRecord, last: int, *, add: bool = False, m: int | None = None) -> None:
        self._rows, self._positions, self._add = rows, positions, add
        self._ends, self._counts, self._sums = [last], [rows.n if m is None else m], [0]
        self._resolved, self._listed = [False], [False]
        self._cut(0)

    @property
    def m(self) -> int:
        """How many positions there are."""
        return self._counts[-1]

    @property
    def total(self) -> int:
        """Their sum, or 0 without `add`."""
        return self._sums[-1]

    def at(self, rank: int) -> int:
        """The position at a rank from 1 to m."""
        for _ in range(_MOST_PASSES):
            j = bisect_left(self._counts, rank)
            if j == len(self._ends):
                break
            if self._resolved[j]:
                return self._ends[j]
            self._refine(j)
        raise _changed()

    def up_to(self, z: int) -> tuple[int, int]:
        """How many positions are at most z, and their sum, or 0 without `add`."""
        if z < 0 or not self.m:
            return 0, 0
        z = min(z, self._ends[-1])
        for _ in range(_MOST_PASSES):
            j = bisect_left(self._ends, z)
            if self._ends[j] == z:
                return self._counts[j], self._sums[j]
            if self._resolved[j]:
                return (self._counts[j - 1], self._sums[j - 1]) if j else (0, 0)
            self._refine(j)
        raise _changed()

    def _before(self, j: int) -> tuple[int, int, int]:
        """Where a part begins, how many positions are before it, and their sum."""
        return (self._ends[j - 1] + 1, self._counts[j - 1], self._sums[j - 1]) if j else (0, 0, 0)

    def _refine(self, j: int) -> None:
        """List the positions in a part and in its neighbours; or cut the part, if they are too many."""
        if self._within(j, j) > _LISTED:
            self._cut(j)
            return
        first = stop = j
        growing = True
        while growing:  # to both sides in turn, as far as a pass may list: the next rank to be asked for is near
            growing = False
            if first and not self._listed[first - 1] and self._within(first - 1, stop) <= _LISTED:
                first, growing = first - 1, True
            if stop + 1 < len(self._ends) and not self._listed[stop + 1] and self._within(first, stop + 1) <= _LISTED:
                stop, growing = stop + 1, True
        self._list(first, stop)

    def _within(self, first: int, stop: int) -> int:
        return self._counts[stop] - self._before(first)[1]

    def _cut(self, j: int) -> None:
        """One pass: how many positions are in each of several thousand parts of a part."""
        (begin, count, total), end = self._before(j), self._ends[j]
        width = end - begin + 1
        parts = min(_PARTS, width)
        ends = [begin + (i + 1) * width // parts - 1 for i in range(parts)]
        positions, add = self._positions, self._add
        edges = np.array([begin, *ends], np.uint64)

        def statistic(block: Block) -> NDArray[np.int64]:
            found = _between(positions(block), edges[0], edges[-1])
            found.sort()
            places = np.searchsorted(found, edges[1:], "right")
            if not add:
                return places[None]
            sums = np.zeros((2, found.size + 1), np.int64)
            np.cumsum(found >> np.uint64(_HALF), out=sums[0, 1:], dtype=np.int64)
            np.cumsum(found & np.uint64(2**_HALF - 1), out=sums[1, 1:], dtype=np.int64)
            return np.concatenate([places[None], sums[:, places]])

        counts, *halves = self._rows.total(statistic).tolist()
        sums = [(high << _HALF) + low for high, low in zip(*halves, strict=True)] if add else [0] * parts
        steps = zip([begin - 1, *ends], ends, [0, *counts], counts, strict=False)
        self._replace(
            j, j, ends, [count + some for some in counts], [total + some for some in sums],
            [before == after or end - start == 1 for start, end, before, after in steps],
        )  # fmt: skip

    def _list(self, first: int, stop: int) -> None:
        """One pass: the distinct positions in these parts, and how many numbers are at each."""
        (begin, count, total), end = self._before(first), self._ends[stop]
        positions, low, high = self._positions, np.uint64(begin), np.uint64(end)

        def statistic(block: Block) -> Listed:
            return np.unique(_between(positions(block), low, high), return_counts=True)

        values, numbers = self._rows.merge(statistic, _together)
        ends, counts, sums = [], [], []
        for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
            count, total = count + number, total + value * number * self._add
            ends.append(value)
            counts.append(count)
            sums.append(total)
        if not ends or ends[-1] < end:
            ends, counts, sums = [*ends, end], [*counts, count], [*sums, total]
        self._replace(first, stop, ends, counts, sums, [True] * len(ends), listed=True)

    def _replace(
        self, first: int, stop: int, ends: list[int], counts: list[int], sums: list[int], resolved: list[bool],
        listed: bool = False,
    ) -> None:  # fmt: skip
        """Replace parts first .. stop by finer ones that cover the same."""
        if counts[-1] != self._counts[stop]:
            raise ValueError("data: must not change between two passes; there are other numbers than there were")
        part = slice(first, stop + 1)
        self._ends[part], self._counts[part], self._sums[part] = ends, counts, sums
        self._resolved[part], self._listed[part] = resolved, [listed] * len(ends)


def _between(positions: NDArray[np.uint64], low: np.uint64, high: np.uint64) -> NDArray[np.uint64]:
    return positions[(positions >= low) & (positions <= high)]


def _together(one: Listed, other: Listed) -> Listed:
    values, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.zeros(values.size, np.int64)
    np.add.at(counts, places, np.concatenate([one[1], other[1]]))
    return values, counts
