"""Chordal graphs of columns, which edges are added to one by one: their maximal cliques are those of a junction tree.

Sets of columns are sets of bits. How many cells all cliques have is kept up to date, so that limits can be held without
a triangulation. Public: sizes and edges alone. synthesize.md, "Structure".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

Pair = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """How large a tree may be: cells of a clique, and of all cliques."""

    clique: int
    tree: int


@dataclass
class ChordalGraph:
    """A chordal graph of columns, as sets of bits, that edges are added to as long as it stays chordal."""

    sizes: Sequence[int]
    near: list[int] = field(default_factory=list)
    cells: int = 0  # of all maximal cliques

    @classmethod
    def of(cls, sizes: Sequence[int], cliques: Iterable[Iterable[int]]) -> ChordalGraph:
        """The graph of the cliques of a junction tree of all columns."""
        graph = cls(sizes, [0] * len(sizes))
        for clique in cliques:
            mask = sum(1 << p for p in clique)
            graph.cells += graph.cells_of(mask)
            for p in members(mask):
                graph.near[p] |= mask & ~(1 << p)
        return graph

    def copy(self) -> ChordalGraph:
        """Another one to grow."""
        return ChordalGraph(self.sizes, list(self.near), self.cells)

    def cells_of(self, mask: int) -> int:
        return prod(self.sizes[p] for p in members(mask))

    def joined(self, pair: Pair) -> bool:
        return bool(self.near[pair[0]] >> pair[1] & 1)

    def separator(self, pair: Pair) -> int | None:
        """What both columns are next to, if nothing else connects them: then an edge keeps the graph chordal."""
        first, second = pair
        shared = self.near[first] & self.near[second]
        seen = shared | 1 << first
        front = 1 << first
        while front:
            front = self._next_to(front) & ~seen
            seen |= front
            if front >> second & 1:
                return None
        return shared

    def cells_with(self, pair: Pair, separator: int) -> tuple[int, int]:
        """The cells of the clique that an edge would make, and of all maximal cliques then."""
        made = self.cells_of(separator | 1 << pair[0] | 1 << pair[1])
        return made, self.cells + made - sum(
            self.cells_of(separator | 1 << p) for p in pair if not self._common(separator | 1 << p)
        )

    def join(self, pair: Pair, cells: int) -> None:
        """Add the edge; all maximal cliques have so many cells then."""
        self.near[pair[0]] |= 1 << pair[1]
        self.near[pair[1]] |= 1 << pair[0]
        self.cells = cells

    def add(self, columns: Iterable[int], limits: Limits, *, fill: bool = False) -> bool | None:
        """Join all these columns: True. Where cliques would exceed the limits nothing changes, and it is False; where
        the graph would not be chordal it is None, unless more edges may be added that `fill` its cycles."""
        missing = [pair for pair in combinations(columns, 2) if not self.joined(pair)]
        grown = self.copy() if missing else self
        while missing:
            for pair in missing:
                if (separator := grown.separator(pair)) is not None:
                    if not grown._join_within(pair, separator, limits):
                        return False
                    break
            else:
                if not fill:
                    return None
                first, second = missing[0]
                ways = [grown._filled(first, second, limits), grown._filled(second, first, limits)]
                found = [way for way in ways if way is not None]
                if not found:
                    return False
                grown = min(found, key=lambda way: way.cells)
            missing = [pair for pair in missing if not grown.joined(pair)]
        self.near, self.cells = grown.near, grown.cells
        return True

    def _join_within(self, pair: Pair, separator: int, limits: Limits) -> bool:
        """Add the edge if that exceeds no limit."""
        made, cells = self.cells_with(pair, separator)
        if made > limits.clique or cells > limits.tree:
            return False
        self.join(pair, cells)
        return True

    def _filled(self, first: int, second: int, limits: Limits) -> ChordalGraph | None:
        """A copy with this edge, and with those from the first column that it needs; None beyond the limits.

        Of the columns that the first one's neighbours cut off from it, together with the second, one is next to all of
        those neighbours that border on them (Dirac 1961). An edge to it keeps the graph chordal: the nearest to the
        second is joined, until it is the second itself.
        """
        graph = self.copy()
        while not graph.joined((first, second)):
            other = graph._toward(first, second)
            if not graph._join_within((first, other), graph.near[first] & graph.near[other], limits):
                return None
        return graph

    def _toward(self, first: int, second: int) -> int:
        """Of the columns that may be joined to the first the nearest to the second; of several the smallest."""
        layers, behind = [1 << second], 1 << second
        while layers[-1]:
            layers.append(self._next_to(layers[-1]) & ~(behind | self.near[first]))
            behind |= layers[-1]
        border = self._next_to(behind) & self.near[first]
        for layer in layers:
            if complete := [p for p in members(layer) if not border & ~self.near[p]]:
                return min(complete, key=lambda p: (self.sizes[p], p))
        raise AssertionError("a column behind its border is next to all of it: the graph is not chordal")

    def _next_to(self, mask: int) -> int:
        """The columns next to any of these."""
        found = 0
        for p in members(mask):
            found |= self.near[p]
        return found

    @property
    def edges(self) -> tuple[Pair, ...]:
        """All pairs of columns that are next to each other."""
        return tuple((p, q) for p in range(len(self.sizes)) for q in members(self.near[p]) if p < q)

    def _common(self, mask: int) -> int:
        """The columns next to all of these."""
        common = -1
        for p in members(mask):
            common &= self.near[p]
        return common


def members(mask: int) -> list[int]:
    """The positions of the bits of a set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
