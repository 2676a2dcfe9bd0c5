"""Many quantiles of ordered records: the parts that a plan asks for, each divided by a private choice.

What is decided before (where a part ends, how often) is in quantile_plan.py, the law of one choice in cut_choice.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key, word_source
from ..records.number_line import NumberLine, Positions
from ..records.rank_search import RankSearch
from .cut_choice import CutChoice, Part, full_level
from .cut_line import CutLine, cut_line
from .cut_records import CutRecords
from .quantile_plan import Node, QuantilePlan
from .weighted_intervals import TRIALS

Tell = Callable[[int], object]
_LOW_HALF = 2**64 - 1
Drawn = tuple[int, int]  # a cut, and how many records are up to it


def draw_quantiles(
    positions: Positions | RankSearch, line: NumberLine, plan: QuantilePlan, key: Key, tell: Tell | None = None
) -> list[int]:
    """The positions of the plan's quantiles, in order: one column's part of the release.

    Nobody but the caller charges for it. `tell` is told how many quantiles have been drawn, after each level.
    """
    division = Division(positions, line, key)
    cuts, ranks = division.bounded([0] * len(plan.shares))
    division.divide(plan.nodes, cuts, ranks, 0, tell)
    return division.numbers(cuts[1:-1])


class Division:
    """The records of a column, and the choices that divide them."""

    def __init__(self, positions: Positions | RankSearch, line: NumberLine, key: Key) -> None:
        self._line, self._records, self._words = cut_line(line), CutRecords(positions, key), word_source(key)
        self._drawer = LevelDrawer.of(self._records, self._line, key)

    def bounded(self, cuts: list[int]) -> tuple[list[int], list[int]]:
        """Cuts that are to be found, and how many records are up to each, between the ends of everything."""
        return [0, *cuts, self._line.size - 1], [0, *[0] * len(cuts), self._records.m]

    def divide(
        self, levels: Iterable[Sequence[Node]], cuts: list[int], ranks: list[int], first: int, tell: Tell | None = None
    ) -> None:
        """Draw the cuts that nodes are to find, and how many records are up to those that divide.

        `cuts` has the ends of parts already. Its entry i + 1 is what node i is to find, choice number `first` + i of
        the release.
        """
        done = 0
        for nodes in levels:
            parts = [
                Part(cuts[node.first], cuts[node.stop + 1], ranks[node.first], ranks[node.stop + 1]) for node in nodes
            ]
            drawn = self._drawer.draw(nodes, parts, first) if self._drawer is not None else [None] * len(nodes)
            for node, inner, found in zip(nodes, parts, drawn, strict=True):
                cuts[node.middle + 1], ranks[node.middle + 1] = found or self._draw(node, inner, first + node.middle)
            done += len(nodes)
            if tell is not None:
                tell(done)

    def _draw(self, node: Node, part: Part, choice: int) -> Drawn:
        """By the definition; the rank matters only where the part is divided."""
        made = CutChoice(self._records, self._line, part, node.tau, node.eta, divides=node.divides, offset=node.offset)
        cut = made.draw(self._words, choice)
        return cut, self._records.up_to(*self._line.place(cut)) if node.divides else part.stop

    def numbers(self, cuts: Sequence[int]) -> list[int]:
        """The positions of the numbers at cuts."""
        return [self._line.place(cut)[0] for cut in cuts]


class LevelDrawer:
    """The choices of a level by a kernel, for records in memory; None for those that it leaves to the definition."""

    def __init__(
        self, arrays: tuple[NDArray[np.uint64], NDArray[np.uint32]], line: NDArray[np.uint64], key: Key
    ) -> None:
        self._values, self._lows, self._line, self._key = *arrays, line, key

    @classmethod
    def of(cls, records: CutRecords, line: CutLine, key: Key) -> LevelDrawer | None:
        """None where numbers or cuts are too wide for it, or records are not in memory."""
        rows, arrays = line.rows, records.arrays()
        return None if rows is None or arrays is None else cls(arrays, rows, key)

    def draw(self, nodes: Sequence[Node], parts: Sequence[Part], first: int) -> list[Drawn | None]:
        """A cut for each node in its part."""
        from ..kernels.cuts import MOST_FULL, NODE_COLUMNS, UNDECIDED, choose_cuts_into

        drawn: list[Drawn | None] = [None] * len(nodes)
        table, rates, ends, places = [], [], [], []
        for i, (node, part) in enumerate(zip(nodes, parts, strict=True)):
            a, b, step, bits, rate = node.terms
            full = full_level(part)
            if full > MOST_FULL or max(step * (full + 2), b * (part.stop - part.first + 1) + abs(node.offset)) >> 59:
                continue
            number = (first + node.middle) * TRIALS
            table.append((part.first, part.stop, a, b, step, bits, full, number, node.divides, node.offset))
            rates.append(rate)
            ends.append((part.low >> 64, part.low & _LOW_HALF, part.high >> 64, part.high & _LOW_HALF))
            places.append(i)
        cuts, ranks = np.empty((len(places), 2), np.uint64), np.empty(len(places), np.int64)
        choose_cuts_into(
            self._values, self._lows, self._line, np.array(table, np.int64).reshape(-1, NODE_COLUMNS),
            np.array(rates), np.array(ends, np.uint64).reshape(-1, 4), self._key, cuts, ranks,
        )  # fmt: skip
        for i, (high, low), rank in zip(places, cuts.tolist(), ranks.tolist(), strict=True):
            if rank != UNDECIDED:
                drawn[i] = (high << 64) + low, rank
        return drawn
