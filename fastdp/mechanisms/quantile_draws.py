"""Many quantiles of ordered records: the parts that a plan asks for, each divided by a private choice.

What is decided before (where a part ends, how often) is in quantile_plan.py, the law of one choice in cut_choice.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ..randomness.keys import Key, word_source
from ..records.number_line import NumberLine, Positions
from ..records.rank_search import RankSearch
from .cut_choice import CutChoice, Part
from .cut_line import CutLine, cut_line
from .cut_records import CutRecords
from .quantile_plan import Node, QuantilePlan


def draw_quantiles(
    positions: Positions | RankSearch, line: NumberLine, plan: QuantilePlan, key: Key,
    report: Callable[[int], object] | None = None,
) -> list[int]:  # fmt: skip
    """The positions of the plan's quantiles, in order: one column's part of the release.

    Nobody but the caller charges for it. `report` is told how many quantiles are drawn, after each level.
    """
    cuts, records = cut_line(line), CutRecords(positions, key)
    found = _Parts(cuts, records, len(plan.shares))
    words, done = word_source(key), 0
    for nodes in plan.nodes:
        for node in nodes:
            part = found.part(node)
            choice = CutChoice(records, cuts, part, node.tau, node.eta, divides=node.divides)
            found.add(node, choice.draw(words, node.middle))
        done += len(nodes)
        if report is not None:
            report(done)
    return found.numbers()


class _Parts:
    """The cuts that are drawn, and how many records are up to each; what no cut bounds ends with the line."""

    def __init__(self, line: CutLine, records: CutRecords, quantiles: int) -> None:
        self._line, self._records = line, records
        self._cuts = [0] * (quantiles + 2)
        self._ranks = [0] * (quantiles + 2)
        self._cuts[-1], self._ranks[-1] = line.size - 1, records.m

    def part(self, node: Node) -> Part:
        """Where a choice is made: between the neighbours of what it is to find."""
        first, stop = node.first, node.stop + 1
        return Part(self._cuts[first], self._cuts[stop], self._ranks[first], self._ranks[stop])

    def add(self, node: Node, cut: int) -> None:
        """A cut that was drawn."""
        self._cuts[node.middle + 1] = cut
        if node.divides:
            self._ranks[node.middle + 1] = self._records.up_to(*self._line.place(cut))

    def numbers(self) -> list[int]:
        return [self._line.place(cut)[0] for cut in self._cuts[1:-1]]
