"""Small junction trees with tables and weights at random, for comparison with what is written out."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.tree_layout import TreeLayout

SEEDS = range(25)


def random_tree(rng: np.random.Generator) -> JunctionTree:
    d = int(rng.integers(1, 7))
    sizes = [int(size) for size in rng.integers(1, 5, d)]
    sets = [rng.choice(d, int(rng.integers(1, min(d, 3) + 1)), replace=False).tolist() for _ in range(rng.integers(6))]
    return JunctionTree(sizes, sets)


def random_tables(tree: JunctionTree, rng: np.random.Generator) -> list[tuple[int, ...]]:
    within = {table for clique in tree.cliques for k in range(len(clique) + 1) for table in combinations(clique, k)}
    return [table for table in sorted(within) if rng.random() < 0.4]


def clique_tables(layout: TreeLayout, cells: NDArray[np.float64]) -> list[Any]:
    """Columns, ascending, and the table of each clique."""
    return [(clique, layout.returned(layout.clique(cells, i), clique)) for i, clique in enumerate(layout.tree.cliques)]


def tables_of(layout: TreeLayout, flat: NDArray[np.float64]) -> list[Any]:
    """The same of the tables of a layout, one after the other."""
    starts = np.array(layout.starts) - 1
    return [
        (table, layout.returned(flat[i:j].reshape(layout.shape(table)), table))
        for table, i, j in zip(layout.tables, starts, starts[1:], strict=False)
    ]
