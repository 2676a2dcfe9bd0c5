"""Records of a distribution on a junction tree, column by column from the first clique on.

Given the cell of a clique's separator, its other columns are drawn for all records at once: how many records each cell
has is what is expected, rounded up or down at random, so that tables of the sample are nearer to the distribution than
those of independent records. The same key gives the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import junction_trees as kernels
from .junction_tree import JunctionTree

Clique = tuple[tuple[int, ...], NDArray[np.float64]]  # columns, and a table with an axis for each


def sample_cliques(tree: JunctionTree, cliques: Iterator[Clique], key: NDArray[np.uint32], out: NDArray[Any]) -> None:
    """Codes of records.

    cliques  their distributions, each with its columns in the order of the tree
    out      unsigned [d, n], of a type that holds all codes
    Cost     30 ns a record and clique, 2 ns a record and column, and 1 ns a cell
    """
    n = out.shape[1]
    rows, cells = np.zeros(n, np.int64), np.empty(n, np.int64)
    order = np.empty(n, np.uint32)
    for i, (separator, (axes, shares)) in enumerate(zip(tree.separators, cliques, strict=True)):
        given, new = _columns(tree, axes[: len(separator)]), _columns(tree, axes[len(separator) :])
        if separator:
            kernels.index_rows(out, *given, rows)
        else:
            rows[:] = 0
        count = int(given[1].prod())
        starts, words = np.empty(count + 1, np.int64), np.empty(n + count, np.uint64)
        flat = shares.reshape(-1)
        kernels.draw_rounded(key, i, flat, flat.size // count, rows, starts, words, order, cells)
        kernels.split_rows(cells, *new, out)


def sample_shares(shares: NDArray[np.float64], n: int, key: NDArray[np.uint32], stream: int) -> NDArray[np.int64]:
    """n places in an array of shares, each as many times as its share, rounded up or down at random."""
    places, words = np.empty(n, np.int64), np.empty(n + 1, np.uint64)
    rows, order = np.zeros(n, np.int64), np.empty(n, np.uint32)
    kernels.draw_rounded(key, stream, shares, shares.size, rows, np.empty(2, np.int64), words, order, places)
    return places


def _columns(tree: JunctionTree, axes: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array(axes, np.int64), np.array([tree.sizes[p] for p in axes], np.int64)
