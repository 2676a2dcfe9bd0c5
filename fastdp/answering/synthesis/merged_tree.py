"""A distribution on a junction tree of columns some of whose values are one, with all of their values.

What values that are one have of it are shares that depend on no other column. Tables, means and samples are those of
the tree, spread over the values; nothing is held for all of them but these shares. synthesize.md, "Rare values".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import display_count
from ...support.frozen import Frozen
from .junction_tree import MOST_CELLS, JunctionTree
from .merged_values import Merge
from .tree_distribution import TreeDistribution
from .tree_layout import layout_of
from .tree_sampling import sample_shares


class MergedTree(Frozen):
    """A distribution on a tree of columns with fewer values, and what these stand for.

    merged  the distribution of the columns with fewer values
    merges  of those that have fewer
    sizes   how many values each column has
    """

    def __init__(self, merged: TreeDistribution, merges: Mapping[int, Merge]) -> None:
        self.merged, self.merges = merged, dict(merges)
        self.tree, self.total = merged.tree, merged.total
        own = merged.tree.sizes
        self.sizes = tuple(merges[p].codes.size if p in merges else size for p, size in enumerate(own))

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return self.merged.bytes + sum(each.shares.nbytes for each in self.merges.values())

    def marginal(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """The distribution of some columns, with an axis for each, in the order given."""
        table = self.merged.marginal(columns)
        for axis, p in enumerate(columns):
            if p in self.merges:
                table = self.merges[p].spread(table, axis)
        return table

    def expectation(self, allowed: Mapping[int, NDArray[Any]]) -> float:
        """The mean of a product of values of columns."""
        return self.merged.expectation({
            p: self.merges[p].mean(np.asarray(values, np.float64)) if p in self.merges else values
            for p, values in allowed.items()
        })  # fmt: skip

    def sample_into(self, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
        """Codes of records, as of a tree; values that are one are told apart in the end, each by as many records as its
        share."""
        self.merged.sample_into(key, out)
        for k, (p, merge) in enumerate(self.merges.items()):
            rare, at = merge.rare, np.flatnonzero(out[p] == merge.size - 1)
            stream, shares = len(self.tree.cliques) + k, np.ascontiguousarray(merge.shares[rare])
            common = np.flatnonzero(merge.codes != merge.size - 1)
            out[p] = np.append(common, 0)[out[p]]
            out[p, at] = rare[sample_shares(shares, at.size, key, stream)]

    @cached_property
    def whole(self) -> TreeDistribution:
        """The same distribution with cells for all values; ValueError where a clique has too many."""
        tree = JunctionTree(self.sizes, self.tree.cliques)
        if tree.largest > MOST_CELLS:
            raise ValueError(
                f"columns: {display_count(tree.largest)} cells of columns that hang together: must be at most "
                f"{MOST_CELLS:,} to hold them one by one"
            )
        layout = layout_of(tree)
        shares = np.empty(sum(prod(self.sizes[p] for p in clique) for clique in tree.cliques))
        for i, clique in enumerate(tree.cliques):
            layout.clique(shares, i)[...] = self.marginal(layout.axes(clique))
        return TreeDistribution(tree, shares, self.total)
