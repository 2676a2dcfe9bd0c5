"""Labelled records of numbers, and the most extreme positives in each column: all that the learners of boxes read.

Nothing here draws noise or knows a budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key
from ..records.column_names import label_of
from ..records.labels import Labelled
from ..records.number_column import read_positions
from ..records.number_line import NumberLine, Positions, bits_of_columns, check_signed
from ..records.rank_search import RankSearch
from ..records.rows import Block, PerRecord
from ..support.parameters import Outside

KEY_BITS = 32  # of a record, which separates records that stand at one position


class Places(NamedTuple):
    """Where some records stand: their positions in a column, and beyond the point their keys."""

    positions: NDArray[np.uint64]
    keys: NDArray[np.uint64]

    def of(self, chosen: Any) -> Places:
        return Places(self.positions[chosen], self.keys[chosen])

    def fine(self) -> list[int]:
        """Both in one number each, in ascending order."""
        return sorted(x << KEY_BITS | u for x, u in zip(self.positions.tolist(), self.keys.tolist(), strict=True))


class Extremes(NamedTuple):
    """The least and the greatest of some records."""

    least: Places
    greatest: Places


class Numbers(Labelled):
    """n records of d numbers and their labels. `left` are the positives that no cut has deleted.

    Raises    what `Labelled` does; DomainError for what is not in the domain
    """

    def __init__(
        self, X: Any, y: Any, bits: Any, signed: bool | None, outside: Outside, *, may_be_empty: bool = False
    ) -> None:
        if isinstance(X, Mapping):
            for name, column in X.items():
                if isinstance(column, list | tuple):  # its type, which decides about the domain, would be read off it
                    raise ValueError(f"X: column {name!r}: must be an array, whose type is declared, not a list")
        super().__init__(X, y, outside, may_be_empty=may_be_empty)
        self.bits = bits_of_columns(bits, self.rows)
        self._integers = bits is not None  # what objects are taken as
        self._signed = check_signed(signed)
        self.orders: tuple[NumberLine, ...] = ()

    def read(self) -> None:
        """Read all labels and all numbers once."""
        self.labels, self.positives = self.read_labels()
        self.left = self.labels
        bits, signed, outside, names = self.bits, self._signed, self.outside, self.names
        integers = self._integers

        def statistic(block: Block) -> tuple[NumberLine, ...]:
            orders = []
            for i in range(block.width):
                values = block.numbers(i)
                label = label_of(i, names)
                orders.append(NumberLine.of(values.values.dtype, bits[i], signed, label, integers=integers))
                orders[i].positions_of(values, outside, label)
            return tuple(orders)

        def same(one: tuple[NumberLine, ...], other: tuple[NumberLine, ...]) -> tuple[NumberLine, ...]:
            if one != other:
                raise ValueError("X: columns must have one type in all parts")
            return one

        self.orders = self.rows.merge(statistic, same)
        self.lines = Lines(self.orders, outside, names)

    def all_positions(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Of all records in all columns, as uint64[n, d], and their labels; in any order."""
        lines, labels = self.lines, self.labels

        def statistic(block: Block) -> list[NDArray[np.uint64]]:
            places = [lines.positions(block, i) for i in range(block.width)]
            return [np.stack([*places, labels(block).astype(np.uint64)], axis=1)]

        if self.rows.gathers:
            every = np.concatenate(self.rows.merge(statistic, lambda a, b: a + b))
        else:  # how many are at each place is all that is sent
            alike = self.rows.merge(lambda block: _alike(statistic(block)[0]), _added)
            every = np.repeat(alike[:, :-1], alike[:, -1].astype(np.int64), axis=0)
        return every[:, :-1], every[:, -1].astype(np.bool_)

    def ordered(self, i: int) -> Positions | RankSearch:
        """All records of column i, as choices by rank take them."""
        label = label_of(i, self.names)
        return read_positions(
            self.rows, i, self.bits[i], self._signed, self.outside, label, integers=self._integers
        )[1]  # fmt: skip

    def cells(self, i: int, ends: NDArray[np.uint64]) -> PerRecord:
        """In which cell of column i each record is, of those that end at `ends`; kept where that saves time."""
        return self.rows.keep(_CellOf(i, ends, self.lines), np.uint16)

    def prefix_errors(self, sides: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        """How many records a box with these sides in the first s columns is wrong about, s = 0 .. all of them."""
        lines, labels = self.lines, self.labels

        def statistic(block: Block) -> NDArray[np.int64]:
            positive, inside = labels(block), np.ones(block.n, np.bool_)
            errors = [block.n - np.count_nonzero(positive)]
            for i, (low, high) in enumerate(sides):
                positions = lines.positions(block, i)
                inside &= (positions >= np.uint64(low)) & (positions <= np.uint64(high))
                errors.append(np.count_nonzero(inside != positive))
            return np.array(errors, np.int64)

        return self.rows.total(statistic)

    def delete_beyond(self, i: int, low: int, high: int, key: Key) -> None:
        """Delete who stands below `low` or above `high`, both with the bits of a key."""
        cut, left = Cut(i, low, high, key), self.left
        if isinstance(left, _Left):  # where nothing is kept
            cuts = _Left(left.labels, (*left.cuts, cut), self.lines)
        else:
            cuts = _Left(left, (cut,), self.lines)
        self.left = self.rows.keep(cuts, np.bool_)

    def extremes(self, i: int, m: int, key: Key) -> Extremes:
        """The m least and the m greatest of those who are left; all of them if there are fewer."""
        lines, left = self.lines, self.left

        def statistic(block: Block) -> Extremes:
            some = np.flatnonzero(left(block))
            positions = lines.positions(block, i)[some]
            least = greatest = np.arange(some.size)
            if some.size > m:
                least = np.flatnonzero(positions <= np.partition(positions, m - 1)[m - 1])
                greatest = np.flatnonzero(positions >= np.partition(positions, -m)[-m])
            places = Places(positions, _keys(key, block, some))
            return Extremes(_first(places.of(least), m), _last(places.of(greatest), m))

        def combine(one: Extremes, other: Extremes) -> Extremes:
            least, greatest = (
                Places(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
                for a, b in zip(one, other, strict=True)
            )
            return Extremes(_first(least, m), _last(greatest, m))

        return self.rows.merge(statistic, combine)


@dataclass(frozen=True)
class Lines:
    """The lines that columns are on, and how to find positions on them."""

    orders: tuple[NumberLine, ...]
    outside: str
    names: tuple[str, ...] | None

    def positions(self, block: Block, i: int) -> Positions:
        return self.orders[i].positions_of(block.numbers(i), self.outside, label_of(i, self.names))

    def places(self, block: Block, i: int, some: NDArray[np.intp], key: Key) -> Places:
        """Of some records of a block."""
        return Places(self.positions(block, i)[some], _keys(key, block, some))


class Cut(NamedTuple):
    """Who stands below `low` or above `high` in a column is deleted, both with the bits of a key."""

    column: int
    low: int
    high: int
    key: Key


class _CellOf:
    """How many of some ends are below the positions of a block."""

    def __init__(self, column: int, ends: NDArray[np.uint64], lines: Lines) -> None:
        self._column, self._ends, self._lines = column, ends, lines

    def __call__(self, block: Block) -> NDArray[np.uint16]:
        return np.searchsorted(self._ends, self._lines.positions(block, self._column)).astype(np.uint16)


class _Left:
    """Which of the records that are labelled 1 no cut deletes."""

    def __init__(self, labels: PerRecord, cuts: tuple[Cut, ...], lines: Lines) -> None:
        self.labels, self.cuts, self._lines = labels, cuts, lines

    def __call__(self, block: Block) -> NDArray[np.bool_]:
        some = np.flatnonzero(self.labels(block))
        for cut in self.cuts:
            places = self._lines.places(block, cut.column, some, cut.key)
            some = some[~(_less(places, cut.low) | _less(places, cut.high, above=True))]
        left = np.zeros(block.n, np.bool_)
        left[some] = True
        return left


def _alike(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The distinct rows, each with how many there are."""
    return _added(np.empty((0, rows.shape[1] + 1), np.uint64), np.insert(rows, rows.shape[1], 1, axis=1))


def _added(some: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Rows that end with how many of them there are, each but once."""
    every = np.concatenate([some, more])
    every = every[np.lexsort(every[:, :-1].T)]
    starts = np.flatnonzero(np.append(True, (every[1:, :-1] != every[:-1, :-1]).any(axis=1))[: len(every)])
    found = every[starts]
    if len(found):
        found[:, -1] = np.add.reduceat(every[:, -1], starts)
    return found


def _keys(key: Key, block: Block, some: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Of some records of a block: word i of stream 0 is of record i."""
    from ..kernels.words import words_into

    if not some.size:
        return np.empty(0, np.uint64)
    words = np.empty(block.n, np.uint64)
    words_into(key, 0, block.first, words)
    return words[some] >> np.uint64(64 - KEY_BITS)


def _less(places: Places, bound: int, *, above: bool = False) -> NDArray[np.bool_]:
    """Who stands below a bound, or above it."""
    x, u = np.uint64(bound >> KEY_BITS), np.uint64(bound & (1 << KEY_BITS) - 1)
    if above:
        return np.asarray((places.positions > x) | (places.positions == x) & (places.keys > u))
    return np.asarray((places.positions < x) | (places.positions == x) & (places.keys < u))


def _first(places: Places, m: int) -> Places:
    return places if len(places.keys) <= m else places.of(np.lexsort(places[::-1])[:m])


def _last(places: Places, m: int) -> Places:
    return places if len(places.keys) <= m else places.of(np.lexsort(places[::-1])[-m:])
