"""A distribution on a junction tree as what a synthetic distribution is made of: on a domain, asked by queries."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Domain
from ..memory import check_memory
from ..queries.bound_query import BoundCells, BoundProduct, BoundQuery
from ..queries.marginals import Marginals
from .merged_tree import MergedTree
from .tree_distribution import TreeDistribution

OnTree = TreeDistribution | MergedTree


class TreePart:
    """A distribution on a junction tree, on a domain."""

    is_dense = False

    def __init__(self, distribution: OnTree, domain: Domain | None) -> None:
        if domain is None:
            raise ValueError("domain: must be given with a distribution on a tree")
        if domain.sizes != distribution.sizes:
            raise ValueError(f"domain: sizes {domain.sizes}: must be those of the tree, {distribution.sizes}")
        self.domain, self.distribution = domain, distribution

    @property
    def on_tree(self) -> TreeDistribution:
        """The distribution with cells for all values."""
        return self.distribution.whole if isinstance(self.distribution, MergedTree) else self.distribution

    @property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The attributes whose joint distribution is held."""
        return self.distribution.tree.cliques

    @property
    def independent(self) -> tuple[tuple[int, ...], ...]:
        """Sets of attributes that are independent of all others: what hangs by separators that are not empty."""
        tree = self.distribution.tree
        found: list[set[int]] = []
        of: list[int] = []
        for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
            if not separator:
                found.append(set())
            of.append(of[parent] if separator else len(found) - 1)
            found[of[-1]] |= set(clique)
        return tuple(sorted(tuple(sorted(each)) for each in found))

    def evaluate(self, bound: BoundQuery) -> float:
        """The query's value, up to rounding errors in [0, 1]."""
        if isinstance(bound, BoundCells):
            return float((self.joint() * bound.values).sum())
        assert isinstance(bound, BoundProduct)
        return self.distribution.expectation(dict(bound.allowed))

    def tables(self, workload: Marginals) -> list[NDArray[np.float64]]:
        """The tables of a workload."""
        return [self.distribution.marginal(positions) for positions in workload.positions]

    def joint(self) -> NDArray[np.float64]:
        """The probability of every cell."""
        everything = tuple(range(len(self.domain)))
        check_memory(self.domain, everything, "float64", "listing all cells would merge")
        made: NDArray[np.float64] = self.distribution.marginal(everything).reshape(-1)
        return made

    def sample_into(self, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
        """Codes of records."""
        self.distribution.sample_into(key, out)

    def factors(self) -> list[tuple[tuple[int, ...], NDArray[np.float64]]] | None:
        """As a product of blocks, where they are no larger than the cliques; otherwise None."""
        tree, blocks = self.distribution.tree, self.independent
        if any(prod(self.domain.sizes[p] for p in block) > tree.largest for block in blocks):
            return None
        return [(block, self.distribution.marginal(block).reshape(-1)) for block in blocks]
