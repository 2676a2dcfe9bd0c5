"""Junction trees: cliques of columns such that a distribution on them has marginals by messages.

Made of public numbers alone: how many values each column has, and which columns shall be together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod

from ...support.frozen import Frozen

MOST_CELLS = 1 << 22  # of a clique
_ARRAYS = 4  # of all cells that a fit holds: logarithms, shares, their average, and tables beside them


class JunctionTree(Frozen):
    """A junction tree whose cliques contain these sets of columns; the same for the same arguments.

    The graph in which columns of one set are neighbours is triangulated by elimination: next comes the column whose
    neighbours lack the fewest edges among themselves (min-fill), of several the one whose clique has fewest cells, then
    the first. The cliques that are contained in no other hang together along the largest separators, from the one with
    most cells on. Columns that no set names are cliques of their own; parts that share no column hang together by
    the empty separator.

    sizes       the number of values of each column
    columns     sets of columns, as positions
    cliques     each ascending; a parent comes before its children
    parents     of each clique the number of its parent; -1 for the first
    separators  of each clique the columns that it shares with its parent
    """

    def __init__(self, sizes: Sequence[int], columns: Iterable[Iterable[int]]) -> None:
        self.sizes = tuple(sizes)
        masks = [sum(1 << p for p in set(each)) for each in columns]
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"sizes={self.sizes}: must be at least one number >= 1")
        if any(mask >> len(self.sizes) for mask in masks):
            raise ValueError(f"columns: must be positions below {len(self.sizes)}")
        found = _hang_together(self.sizes, _maximal_cliques(self.sizes, masks))
        self.cliques = tuple(_positions(clique) for clique, _, _ in found)
        self.parents = tuple(parent for _, parent, _ in found)
        self.separators = tuple(_positions(separator) for _, _, separator in found)
        self._masks = tuple(clique for clique, _, _ in found)

    @cached_property
    def clique_cells(self) -> tuple[int, ...]:
        """How many cells each clique has."""
        return tuple(prod(self.sizes[p] for p in clique) for clique in self.cliques)

    @property
    def cells(self) -> int:
        """How many cells all cliques have together."""
        return sum(self.clique_cells)

    @property
    def largest(self) -> int:
        """How many cells the largest clique has."""
        return max(self.clique_cells)

    @property
    def bytes(self) -> int:
        """What a fit holds in memory, roughly, without the measurements."""
        return 8 * _ARRAYS * self.cells

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All columns, in an order in which each clique's separator comes before its other columns."""
        return tuple(dict.fromkeys(p for clique in self.cliques for p in clique))

    def clique_of(self, columns: Iterable[int]) -> int | None:
        """The clique with fewest cells, of several the first, that contains all these columns; None if none does."""
        wanted = sum(1 << p for p in set(columns))
        holding = [i for i, mask in enumerate(self._masks) if not wanted & ~mask]
        return min(holding, key=lambda i: (self.clique_cells[i], i), default=None)

    def __eq__(self, other: object) -> bool:
        return type(other) is JunctionTree and (other.sizes, other.cliques) == (self.sizes, self.cliques)

    def __hash__(self) -> int:
        return hash((self.sizes, self.cliques))

    def __repr__(self) -> str:
        return f"JunctionTree({len(self.sizes)} columns, {len(self.cliques)} cliques, {self.cells:,} cells)"


def _positions(mask: int) -> tuple[int, ...]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


def _maximal_cliques(sizes: Sequence[int], masks: Iterable[int]) -> list[int]:
    """The cliques of the triangulated graph, as sets of bits."""
    near = [0] * len(sizes)
    for mask in masks:
        for p in _positions(mask):
            near[p] |= mask
    near = [mask & ~(1 << p) for p, mask in enumerate(near)]
    left = set(range(len(sizes)))
    costs: dict[int, tuple[int, int, int]] = {}
    cliques: list[int] = []
    while left:
        for p in left - costs.keys():
            neighbours = _positions(near[p])
            lacking = sum((near[p] & ~near[q] & ~(1 << q)).bit_count() for q in neighbours)
            costs[p] = lacking, sizes[p] * prod(sizes[q] for q in neighbours), p
        p = min(costs.values())[2]
        clique = near[p] | 1 << p
        if all(clique & ~other for other in cliques):
            cliques.append(clique)
        left.remove(p)
        del costs[p]
        for q in _positions(near[p]):  # their edges change, and the edges among the neighbours of their neighbours
            near[q] = (near[q] | near[p]) & ~(1 << p | 1 << q)
            for r in (q, *_positions(near[q])):
                costs.pop(r, None)
    return cliques


def _hang_together(sizes: Sequence[int], cliques: list[int]) -> list[tuple[int, int, int]]:
    """Cliques, parents first, with the number of their parent and what they share: a largest spanning tree (Prim)."""
    cells = [prod(sizes[p] for p in _positions(clique)) for clique in cliques]
    root = max(range(len(cliques)), key=lambda i: (cells[i], -i))
    found = [(cliques[root], -1, 0)]
    best = {i: (cliques[root] & clique, 0) for i, clique in enumerate(cliques) if i != root}
    while best:
        i = max(best, key=lambda i: (best[i][0].bit_count(), -i))
        shared, parent = best.pop(i)
        found.append((cliques[i], parent, shared))
        for j, (other, _) in best.items():
            if (cliques[i] & cliques[j]).bit_count() > other.bit_count():
                best[j] = cliques[i] & cliques[j], len(found) - 1
    return found
