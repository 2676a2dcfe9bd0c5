"""Labelled records of bits, and how many of them falsify each literal: all that the learners of conjunctions read.

A literal is a column and the value that it asks for; literal 2 j asks for a 1 in column j, literal 2 j + 1 for a 0.
What comes out is integers; nothing here draws noise or knows a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..labels import column_values, label_array, positives, with_labels
from ..rows import Block, PackedRows, Rows, pack

Counts = NDArray[np.int64]
Key = NDArray[np.uint32]


class Falsified(NamedTuple):
    """Of the records that are left: how many there are, and how many falsify each of the 2d literals."""

    negatives: int
    positives: int
    of_negatives: Counts
    of_positives: Counts


class Examples:
    """n records of d bits and their labels.

    `may_be_empty` where the number of records is private, so that it must not decide about an error.

    Raises    ValueError for what has the wrong shape or type, before a record is read; DomainError when `read` does
    """

    def __init__(self, X: Any, y: Any, *, may_be_empty: bool = False) -> None:
        self.rows, labels = with_labels(X, y)
        self.n, self.d, self.names = self.rows.n, self.rows.width, self.rows.names
        if not self.n and not may_be_empty:
            raise ValueError("X: n=0 records: must be at least one")
        if labels is None:
            raise ValueError("y=None: must be the labels of the records, or the name of their column")
        self._given = labels if isinstance(labels, Rows) else label_array(labels, self.n, "0 and 1, or -1 and 1")
        self._positive = np.empty(0, np.bool_)
        self._kept: NDArray[np.uint64] | None = None  # the labels as bits

    def read(self, *, keep: bool) -> None:
        """Look at all labels; with `keep`, also pack all records, for learners that look at them several times."""
        given = column_values(self._given) if isinstance(self._given, Rows) else self._given
        self._positive = np.ascontiguousarray(positives(given))  # a column of an array packs 100 times as slowly
        if keep:
            self.rows = pack(self.rows)
            self._kept = self.labels()

    @property
    def positives(self) -> int:
        """How many records are labelled 1."""
        return int(np.count_nonzero(self._positive))

    @property
    def packed(self) -> PackedRows:
        assert isinstance(self.rows, PackedRows), "read(keep=True) comes first"
        return self.rows

    def labels(self, first: int = 0, n: int | None = None) -> NDArray[np.uint64]:
        """The labels of records first, first + 1, ... as bits, to be read."""
        if self._kept is not None:  # records are packed, and their blocks start with a word
            return self._kept[first // 64 :][: None if n is None else -(-n // 64)]
        some = self._positive[first:] if n is None else self._positive[first : first + n]
        words = np.zeros(-(-some.size // 64), "<u8")
        bits = np.packbits(some, bitorder="little")
        words.view(np.uint8)[: bits.size] = bits
        return words.astype(np.uint64, copy=False)

    def falsified(self, literals: Sequence[int] = ()) -> Falsified:
        """Counts over the records that satisfy all of these literals."""
        from ..kernels.literals import count_among_into, satisfying_into

        columns = np.array([literal // 2 for literal in literals], np.int64)
        values = np.array([1 - literal % 2 for literal in literals], np.int64)

        def statistic(block: Block) -> Counts:
            bits = block.bits()
            left = all_bits(block.n)
            counts = np.zeros((2, block.width + 1), np.int64)
            counts[0, -1] = satisfying_into(bits, columns, values, left)
            positive = left & self.labels(block.first, block.n)
            counts[1, -1] = satisfying_into(bits, columns[:0], values[:0], positive)  # counts them
            ones = np.zeros((2, block.width), np.int64)
            count_among_into(bits, left, positive, ones)
            counts[:, :-1] = ones
            return counts

        everyone, positive = self.rows.total(statistic)
        negative = everyone - positive
        return Falsified(int(negative[-1]), int(positive[-1]), _by_literal(negative), _by_literal(positive))


def _by_literal(ones: Counts) -> Counts:
    """From the numbers of ones in each column, and of records, to how many falsify each literal."""
    out = np.empty(2 * (ones.size - 1), np.int64)
    out[0::2] = ones[-1] - ones[:-1]
    out[1::2] = ones[:-1]
    return out


def all_bits(n: int) -> NDArray[np.uint64]:
    """n bits of 1, and spare bits of 0."""
    words = np.full(-(-n // 64), ~np.uint64(0))
    if n % 64:
        words[-1] = np.uint64((1 << n % 64) - 1)
    return words
