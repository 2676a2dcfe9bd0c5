"""Labelled records of numbers, and the most extreme positives in each column: all that the learners of boxes read.

Nothing here draws noise or knows a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..labels import Labelled
from ..rows import Block, label_of
from .order import Order, Positions, bits_of_columns, check_signed

KEY_BITS = 32  # of a record, which tells apart records that stand at one position
Key = NDArray[np.uint32]


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
        self, X: Any, y: Any, bits: Any, signed: bool | None, outside: str, *, may_be_empty: bool = False
    ) -> None:
        if isinstance(X, Mapping):
            for name, column in X.items():
                if isinstance(column, list | tuple):  # its type, which decides about the domain, would be read off it
                    raise ValueError(f"X: column {name!r}: must be an array, whose type is declared, not a list")
        super().__init__(X, y, may_be_empty=may_be_empty)
        self.bits = bits_of_columns(bits, self.rows)
        self._signed, self._outside = check_signed(signed), outside
        self.orders: tuple[Order, ...] = ()
        self.labels = self.left = np.empty(0, np.bool_)

    def read(self) -> None:
        """Look at all labels and all numbers once."""
        self.labels = self.read_labels()
        self.left = self.labels.copy()

        def statistic(block: Block) -> tuple[Order, ...]:
            orders = []
            for i in range(self.d):
                values = block.column(i)
                orders.append(Order.of(values.dtype, self.bits[i], self._signed, label_of(i, self.names)))
                orders[i].positions(values, self._outside, label_of(i, self.names))
            return tuple(orders)

        def same(one: tuple[Order, ...], other: tuple[Order, ...]) -> tuple[Order, ...]:
            if one != other:
                raise ValueError("X: columns must have one type in all parts")
            return one

        self.orders = self.rows.merge(statistic, same)

    def positions(self, block: Block, i: int) -> Positions:
        return self.orders[i].positions(block.column(i), self._outside, label_of(i, self.names))

    def all_positions(self) -> NDArray[np.uint64]:
        """Of all records in all columns, as uint64[n, d]."""

        def statistic(block: Block) -> list[NDArray[np.uint64]]:
            return [np.stack([self.positions(block, i) for i in range(self.d)], axis=1)]

        return np.concatenate(self.rows.merge(statistic, lambda a, b: a + b))

    def delete_beyond(self, i: int, low: int, high: int, key: Key) -> None:
        """Delete who stands below `low` or above `high`, both with the bits of a key."""

        def statistic(block: Block) -> None:
            left = self.left[block.first : block.first + block.n]
            some = np.flatnonzero(left)
            places = self._places(block, i, some, key)
            left[some[_less(places, low) | _less(places, high, above=True)]] = False

        self.rows.merge(statistic, lambda a, b: None)

    def extremes(self, i: int, m: int, key: Key) -> Extremes:
        """The m least and the m greatest of those who are left; all of them if there are fewer."""

        def statistic(block: Block) -> Extremes:
            some = np.flatnonzero(self.left[block.first : block.first + block.n])
            positions = self.positions(block, i)[some]
            least = greatest = np.arange(some.size)
            if some.size > m:
                least = np.flatnonzero(positions <= np.partition(positions, m - 1)[m - 1])
                greatest = np.flatnonzero(positions >= np.partition(positions, -m)[-m])
            keys = _keys(key, block, some) if some.size else np.empty(0, np.uint64)
            places = Places(positions, keys)
            return Extremes(_first(places.of(least), m), _last(places.of(greatest), m))

        def combine(one: Extremes, other: Extremes) -> Extremes:
            least, greatest = (
                Places(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
                for a, b in zip(one, other, strict=True)
            )
            return Extremes(_first(least, m), _last(greatest, m))

        return self.rows.merge(statistic, combine)

    def _places(self, block: Block, i: int, some: NDArray[np.intp], key: Key) -> Places:
        return Places(self.positions(block, i)[some], _keys(key, block, some) if some.size else np.empty(0, np.uint64))


def _keys(key: Key, block: Block, some: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Of some records of a block: word i of stream 0 is of record i."""
    from ..kernels.chacha import words_into

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
