"""Many quantiles of ordered records: the parts that a plan asks for, each divided by a private choice.

What is decided before (where a part ends, how often) is in quantile_plan.py, the law of one choice in cut_choice.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..randomness.keys import Key, word_source
from ..records.number_line import NumberLine, Positions
from ..records.rank_search import RankSearch
from .cut_choice import CutChoice, Part
from .cut_line import cut_line
from .cut_records import CutRecords
from .quantile_plan import Node, QuantilePlan

Tell = Callable[[int], object]


def draw_quantiles(
    positions: Positions | RankSearch, line: NumberLine, plan: QuantilePlan, key: Key, tell: Tell | None = None
) -> list[int]:
    """The positions of the plan's quantiles, in order: one column's part of the release.

    Nobody but the caller charges for it. `tell` is told how many quantiles have been drawn, after each level.
    """
    division = Division(positions, line, key)
    cuts, _ = division.divide(plan.nodes, len(plan.shares), division.everything, 0, tell)
    return division.numbers(cuts)


class Division:
    """The records of a column, and the choices that divide them."""

    def __init__(self, positions: Positions | RankSearch, line: NumberLine, key: Key) -> None:
        self._line, self._records, self._words = cut_line(line), CutRecords(positions, key), word_source(key)
        self.everything = Part(0, self._line.size - 1, 0, self._records.m)

    def divide(
        self, levels: Iterable[Sequence[Node]], count: int, part: Part, first: int, tell: Tell | None = None
    ) -> tuple[list[int], list[int]]:
        """The cuts that so many choices within a part come to, and how many records are up to each that divides.

        The choices have numbers `first`, `first` + 1, ... of the release.
        """
        cuts, ranks, done = [part.low, *[0] * count, part.high], [part.first, *[0] * count, part.stop], 0
        for nodes in levels:
            for node in nodes:
                low, high = node.first, node.stop + 1
                inner = Part(cuts[low], cuts[high], ranks[low], ranks[high])
                choice = CutChoice(self._records, self._line, inner, node.tau, node.eta, divides=node.divides)
                cut = cuts[node.middle + 1] = choice.draw(self._words, first + node.middle)
                if node.divides:
                    ranks[node.middle + 1] = self._records.up_to(*self._line.place(cut))
            done += len(nodes)
            if tell is not None:
                tell(done)
        return cuts[1:-1], ranks[1:-1]

    def numbers(self, cuts: Sequence[int]) -> list[int]:
        """The positions of the numbers at cuts."""
        return [self._line.place(cut)[0] for cut in cuts]
