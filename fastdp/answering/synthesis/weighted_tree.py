"""Weights on a junction tree that queries update: what a distribution on a tree is as the prior of online answers.

An update ties the attributes of its query together, so it may need a larger tree. One that would have too many cells
is left out: the distribution stays as it is, which costs accuracy alone.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Domain
from ..queries.bound_query import BoundCells, BoundProduct, BoundQuery
from .junction_tree import JunctionTree
from .merged_tree import MergedTree
from .tree_distribution import TreeDistribution
from .tree_layout import TreeLayout, layout_of
from .tree_messages import TreeWeights
from .tree_part import TreePart

MOST_CELLS = 1 << 16  # of a tree that updates make: a millisecond for each
_NOTHING = np.empty(0)


class WeightedTree:
    """Weights of all cells of a domain, on a junction tree that grows as queries demand.

    mixed    what each clique's columns, given its separator, have of the uniform distribution, in all cliques together
    """

    precision = "float64"

    def __init__(self, domain: Domain, prior: TreeDistribution, mixed: float) -> None:
        self.domain, self._total = domain, prior.total
        layout = layout_of(prior.tree)
        logs = np.exp(prior.logs_on(layout))
        part = mixed / len(prior.tree.cliques)
        for i in range(len(prior.tree.cliques)):
            rows = layout.rows_of(logs, i)
            rows *= (1 - part) / rows.sum(axis=1, keepdims=True)
            rows += part / rows.shape[1]
        self._take(layout, np.log(logs))

    def _take(self, layout: TreeLayout, logs: NDArray[np.float64]) -> None:
        self._weights = TreeWeights(layout, logs)
        self._cells: dict[tuple[int, ...], int] = {}
        self._show()

    def _show(self) -> None:
        tree = self._weights.layout.tree
        self.distribution = TreeDistribution(tree, self._weights.shares, self._total)

    def copy(self) -> WeightedTree:
        """The same weights, which later updates do not change."""
        twin = copy(self)
        twin._weights, twin._cells = self._weights.copy(), dict(self._cells)
        return twin

    @property
    def tree(self) -> JunctionTree:
        """The tree as it is now."""
        return self._weights.layout.tree

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return 4 * 8 * self.tree.cells

    def evaluate(self, bound: BoundQuery) -> float:
        """The query's value on the distribution."""
        return TreePart(self.distribution, self.domain).evaluate(bound)

    def cells_of(self, bound: BoundQuery | None) -> int:
        """How many cells the tree has that an update by this query would need; None: by one of all attributes."""
        attributes = tuple(range(len(self.domain))) if bound is None else bound.attributes
        if attributes not in self._cells:
            self._cells[attributes] = self._tree_with(attributes).cells
        return self._cells[attributes]

    def check(self, bound: BoundQuery) -> None:
        """Nothing: an update for which there is no room is left out."""

    def block_of(self, bound: BoundQuery) -> list[int]:
        """The positions of all attributes whose weights an update by the query may change."""
        return list(range(len(self.domain)))

    def scale(self, bound: BoundQuery, rate: float) -> None:
        """Multiply every weight by e^(rate f), f the query's value in its cell, if there is room for it."""
        attributes = bound.attributes
        if not attributes or self.cells_of(bound) > MOST_CELLS:
            return
        tree = self._tree_with(attributes)
        if tree is not self.tree:
            self._take(layout_of(tree), self._logs_on(tree))
        holder = tree.clique_of(attributes)
        assert holder is not None
        layout = self._weights.layout
        axes = layout.axes(tree.cliques[holder])
        cube = layout.clique(self._weights.logs, holder)
        if isinstance(bound, BoundProduct):
            inside = np.ones((1,) * len(axes), bool)
            for position, table in bound.allowed:
                inside = inside & table.reshape([-1 if p == position else 1 for p in axes])
            np.add(cube, rate, out=cube, where=inside)
        else:
            assert isinstance(bound, BoundCells)
            cube += rate * layout.turned(bound.values.reshape(self.domain.sizes).astype(np.float64), attributes)
        self._weights.update(_NOTHING, 0.0)
        self._show()

    def _tree_with(self, attributes: tuple[int, ...]) -> JunctionTree:
        if self.tree.clique_of(attributes) is not None:
            return self.tree
        return JunctionTree(self.tree.sizes, [*self.tree.cliques, attributes])

    def _logs_on(self, tree: JunctionTree) -> NDArray[np.float64]:
        """The same distribution on a tree whose cliques contain those of this one."""
        old, new = self._weights.layout, layout_of(tree)
        logs = np.zeros(new.cells)
        for i, clique in enumerate(old.tree.cliques):
            holder = tree.clique_of(clique)
            assert holder is not None
            table = old.returned(self._weights.conditional_logs(i), clique)
            shape = [tree.sizes[p] if p in clique else 1 for p in new.axes(tree.cliques[holder])]
            cube = new.clique(logs, holder)
            cube += new.turned(table, clique).reshape(shape)
        return logs


def part_of_tree(weights: Any, domain: Domain | None) -> TreePart | None:
    """What a synthetic distribution is made of for weights on a tree; None for other weights."""
    if isinstance(weights, WeightedTree):
        return TreePart(weights.distribution, weights.domain if domain is None else domain)
    return TreePart(weights, domain) if isinstance(weights, TreeDistribution | MergedTree) else None
