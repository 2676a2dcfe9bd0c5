"""Labelled records of bits, and how many of them falsify each literal: all that the learners of conjunctions read.

A literal is a column and the value that it asks for; literal 2 j asks for a 1 in column j, literal 2 j + 1 for a 0.
What comes out is integers; nothing here draws noise or knows a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.bit_words import Words, all_bits, pack_flags
from ..records.labels import Labelled
from ..records.packed import PackedRows, pack_if_local
from ..records.rows import Block, PerRecord

Counts = NDArray[np.int64]


class Falsified(NamedTuple):
    """Of the records that are left: how many there are, and how many falsify each of the 2d literals."""

    negatives: int
    positives: int
    of_negatives: Counts
    of_positives: Counts


class Examples(Labelled):
    """n records of d bits and their labels."""

    def read(self, *, keep: bool) -> None:
        """Read all labels; with `keep`, also pack all records, for learners that read them several times."""
        positive, self.positives = self.read_labels()
        self.labels = _Labels(positive)
        if keep:
            self.rows = pack_if_local(self.rows, self.outside)
            block = self.rows.one_block()
            if isinstance(self.rows, PackedRows) and block is not None:  # its blocks start with a word
                self.labels = _Labels(positive, pack_flags(positive(block)))

    def falsified(self, literals: Sequence[int] = ()) -> Falsified:
        """Counts over the records that satisfy all of these literals."""
        columns, values = columns_and_values(literals)
        labels, outside = self.labels, self.outside

        def statistic(block: Block) -> Counts:
            counts = np.empty((2, 2 * block.width + 1), np.int64)
            bits = block.bits(outside)
            _kernels().count_falsified_into(bits, block.n, labels(block), columns, values, counts)
            return counts

        negative, positive = self.rows.total(statistic)
        return Falsified(int(negative[-1]), int(positive[-1]), negative[:-1], positive[:-1])

    def prefix_errors(self, literals: Sequence[int]) -> Counts:
        """How many records a conjunction of the first s of these literals is wrong about, s = 0, ..., all of them."""
        columns, values = columns_and_values(literals)
        labels, outside = self.labels, self.outside

        def statistic(block: Block) -> Counts:
            satisfying_into = _kernels().satisfying_into
            bits, left = block.bits(outside), all_bits(block.n)
            positive = labels(block).copy()
            counts = np.empty((2, columns.size + 1), np.int64)
            counts[:, 0] = block.n, satisfying_into(bits, columns[:0], values[:0], positive)  # counts them
            for i in range(columns.size):
                one = columns[i : i + 1], values[i : i + 1]
                counts[:, i + 1] = satisfying_into(bits, *one, left), satisfying_into(bits, *one, positive)
            return counts

        holds, rightly = self.rows.total(statistic)
        return np.asarray(rightly[0] - rightly + (holds - rightly))


class _Labels:
    """Those of a block, as bits, to be read; `words` are those of all records, where they have been packed."""

    def __init__(self, positive: PerRecord, words: Words | None = None) -> None:
        self._positive, self._words = positive, words

    def __call__(self, block: Block) -> Words:
        if self._words is not None:
            return self._words[block.first // 64 :][: -(-block.n // 64)]
        return pack_flags(self._positive(block))


def columns_and_values(literals: Sequence[int]) -> tuple[Counts, Counts]:
    """The column of each literal, and the value that it asks for."""
    if not literals:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    columns = np.array([literal // 2 for literal in literals], np.int64)
    return columns, np.array([1 - literal % 2 for literal in literals], np.int64)


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import literals

    return literals
