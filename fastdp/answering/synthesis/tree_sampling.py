"""Records of a distribution on a junction tree, column by column from the first clique on.

Given the cell of a clique's separator, its other columns are drawn for all records at once: how many records each cell
has is what is expected, rounded up or down at random, so that tables of the sample are nearer to the distribution than
those of independent records. The same key gives the same records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import junction_trees as kernels
from .merged_tree import MergedTree
from .tree_distribution import TreeDistribution


def sample_into(distribution: TreeDistribution | MergedTree, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
    """Codes of records; values that are one are told apart in the end, each by as many records as its share.

    out     unsigned [d, n], of a type that holds all codes
    Cost    30 ns a record and clique, 2 ns a record and column, and 1 ns a cell
    """
    if isinstance(distribution, MergedTree):
        _sample_merged(distribution, key, out)
        return
    tree, n = distribution.tree, out.shape[1]
    rows, cells = np.zeros(n, np.int64), np.empty(n, np.int64)
    order = np.empty(n, np.uint32)
    for i, separator in enumerate(tree.separators):
        axes, shares = distribution.clique(i)
        given, new = _columns(distribution, axes[: len(separator)]), _columns(distribution, axes[len(separator) :])
        if separator:
            kernels.index_rows(out, *given, rows)
        else:
            rows[:] = 0
        count = int(given[1].prod())
        starts, words = np.empty(count + 1, np.int64), np.empty(n + count, np.uint64)
        flat = shares.reshape(-1)
        kernels.draw_rounded(key, i, flat, flat.size // count, rows, starts, words, order, cells)
        kernels.split_rows(cells, *new, out)


def _sample_merged(distribution: MergedTree, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
    sample_into(distribution.merged, key, out)
    for k, (p, merge) in enumerate(distribution.merges.items()):
        rare = merge.rare
        at = np.flatnonzero(out[p] == merge.size - 1)
        cells, drawn = np.empty(at.size, np.int64), np.empty(at.size + 1, np.uint64)
        rows, order = np.zeros(at.size, np.int64), np.empty(at.size, np.uint32)
        stream, shares = len(distribution.tree.cliques) + k, np.ascontiguousarray(merge.shares[rare])
        kernels.draw_rounded(key, stream, shares, rare.size, rows, np.empty(2, np.int64), drawn, order, cells)
        common = np.flatnonzero(merge.codes != merge.size - 1)
        out[p] = np.append(common, 0)[out[p]]
        out[p, at] = rare[cells]


def _columns(distribution: TreeDistribution, axes: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array(axes, np.int64), np.array([distribution.tree.sizes[p] for p in axes], np.int64)
