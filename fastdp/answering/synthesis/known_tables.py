"""Tables that were released before, and the tree: which of them it holds, and what it has of the others.

Public: it reads sizes, limits, and what has been released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from .chordal_graph import Limits
from .junction_tree import JunctionTree
from .measured import Measured

Columns = tuple[int, ...]


def columns_held(
    sizes: Sequence[int], forced: Sequence[Columns], tables: Iterable[Measured], limits: Limits
) -> list[Columns]:
    """The columns of these tables, small ones first, that a tree within its limits holds besides what it must."""
    held: list[Columns] = []
    by_cells = sorted({(prod(sizes[p] for p in each.columns), each.columns) for each in tables})
    for _, columns in by_cells:
        tree = JunctionTree(sizes, [*forced, *held, columns])
        if tree.largest <= limits.clique and tree.cells <= limits.tree:
            held.append(columns)
    return held


def within(tree: JunctionTree, tables: Iterable[Measured]) -> list[Measured]:
    """The same tables as far as the tree holds them: where no clique has all columns, sums over those that it lacks."""
    found = []
    for each in tables:
        if tree.clique_of(each.columns) is not None:
            found.append(each)
            continue
        parts = {tuple(p for p in each.columns if p in clique) for clique in map(set, tree.cliques)}
        for part in sorted(parts):
            if part and not any(set(part) < set(other) for other in parts):
                out = tuple(axis for axis, p in enumerate(each.columns) if p not in part)
                summed = prod(each.values.shape[axis] for axis in out)
                found.append(Measured(part, each.values.sum(axis=out), each.sigma * summed**0.5))
    return found
