"""Columns of numbers as bits: whether a number is above each of some thresholds, which are private quantiles.

What the learners of trees read is the same as of bits: who is in a node, and how many have a 1 in a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ..mechanisms.quantile_draws import draw_quantiles
from ..mechanisms.quantile_plan import QuantilePlan
from ..randomness.charged_keys import ChargedKeys
from ..records.bit_words import Words, pack_flags
from ..records.packed import PackedRows, joined_words
from ..records.rows import Block, PerRecord, Rows
from ..support.parameters import Outside
from .examples import Examples
from .extremes import Lines, Numbers


class Above(NamedTuple):
    """Whether the number in a column is at a position beyond this one; None for a column of bits, whether it is 1."""

    column: int
    position: int | None


class BitTable(Protocol):
    """Records with d bits and labels, wherever they are."""

    d: int
    rows: Rows

    # functions that hold nothing else of the table: they travel to where the records are
    @property
    def bits(self) -> Callable[[Block], Words]: ...
    @property
    def positive(self) -> Callable[[Block], Words]: ...


class Bits:
    """Columns of 0 and 1."""

    def __init__(self, examples: Examples, outside: Outside) -> None:
        self.d, self.rows = examples.d, examples.rows
        self.bits, self.positive = partial(_bits_of, outside=outside), examples.labels
        self.comparisons = [Above(j, None) for j in range(examples.d)]


def _bits_of(block: Block, outside: Outside) -> Words:
    return block.bits(outside)


class Comparisons:
    """Columns of numbers, compared with thresholds; packed where the records are in this process."""

    def __init__(self, numbers: Numbers, comparisons: Sequence[Above]) -> None:
        self.d, self.rows, self.comparisons = len(comparisons), numbers.rows, list(comparisons)
        compare = _Compare(numbers.lines, tuple(comparisons), numbers.labels)
        self.bits: Callable[[Block], Words] = compare.of_columns
        self.positive: Callable[[Block], Words] = compare.of_labels
        if self.rows.gathers:
            words = joined_words(self.rows, self.d + 1, compare)
            self.rows = PackedRows(words[:-1], numbers.n)
            self.bits, self.positive = partial(_bits_of, outside="raise"), partial(_part_of, words[-1])


def _part_of(words: Words, block: Block) -> Words:
    return words[block.first // 64 :][: -(-block.n // 64)]


class _Compare:
    """The comparisons of a block as bits, and the labels after them."""

    def __init__(self, lines: Lines, comparisons: tuple[Above, ...], labels: PerRecord) -> None:
        self._lines, self._comparisons, self._labels = lines, comparisons, labels

    def __call__(self, block: Block) -> Words:
        words = np.empty((len(self._comparisons) + 1, -(-block.n // 64)), np.uint64)
        column, positions = -1, np.empty(0, np.uint64)
        for word, above in zip(words, self._comparisons, strict=False):
            if above.column != column:
                column, positions = above.column, self._lines.positions(block, above.column)
            word[:] = pack_flags(positions > np.uint64(above.position or 0))
        words[-1] = self.of_labels(block)
        return words

    def of_columns(self, block: Block) -> Words:
        return self(block)[:-1]

    def of_labels(self, block: Block) -> Words:
        return pack_flags(np.asarray(self._labels(block), np.bool_))


def bought(bits: Sequence[int], quantiles: int) -> int:
    """Of how many columns quantiles are bought: where the line is so short, all its points are thresholds."""
    return sum(1 << b > quantiles + 1 for b in bits)


def thresholds_of(numbers: Numbers, quantiles: int, plan: QuantilePlan | None, keys: ChargedKeys) -> list[Above]:
    """For each column its private quantiles, or all points of a short line."""
    found = []
    for i, line in enumerate(numbers.orders):
        points: Sequence[int] = range(line.last)
        if plan is not None and 1 << numbers.bits[i] > quantiles + 1:
            drawn = draw_quantiles(numbers.ordered(i), line, plan, keys.take())
            points = sorted({min(point, line.last - 1) for point in drawn})  # nothing is above the last one
        found += [Above(i, point) for point in points]
    return found


def shares_of(quantiles: int) -> tuple[Fraction, ...]:
    """So many, evenly."""
    return tuple(Fraction(k, quantiles + 1) for k in range(1, quantiles + 1))
