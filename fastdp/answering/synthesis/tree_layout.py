"""How the cliques of a junction tree and tables on them lie in memory, and the steps that sum the tables up: what
kernels/junction_trees.py takes.

Each clique's columns come in the order of the tree, which puts the separator first: a row of cells for each of its
cells. Tables have their columns in that order, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..marginal_transform import sum_plan
from .junction_tree import JunctionTree

LARGE = 1 << 18  # cells of a clique that is worth calls of its own, on all threads
PIECE = 1 << 16  # cells of a row that one thread works on at a time, in a large clique

ROWS, RUN, FIRST_ROW = 1, 2, 5  # columns of the plan


class TreeLayout:
    """A junction tree with tables on its cliques.

    tables      the columns of each table, each within a clique
    plan        of each clique: first cell, rows, cells of a row, pieces of a row, first piece, first row, place of its
                separator's table, steps from and to
    steps       of all cliques, as of `run_sums`
    starts      where each table lies in `space`, and where the last one ends
    """

    def __init__(self, tree: JunctionTree, tables: Sequence[tuple[int, ...]]) -> None:
        self.tree, self.tables = tree, tuple(tables)
        self.rank = {p: i for i, p in enumerate(tree.order)}
        self.starts: list[int] = np.cumsum([1, *(self._cells(table) for table in tables)]).tolist()
        within: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in tree.cliques]  # tables, and where they lie
        for table, start in zip(tables, self.starts, strict=False):
            holder = tree.clique_of(table)
            if holder is None:
                raise ValueError(f"columns={table}: must lie within a clique of the tree")
            within[holder].append((table, start))
        end, separators = self.starts[-1], [0]  # the first clique's separator has one cell, the first of all
        for parent, separator in list(zip(tree.parents, tree.separators, strict=True))[1:]:
            within[parent].append((separator, end))
            separators.append(end)
            end += self._cells(separator)
        cells, units, rows, most = 0, 0, 0, 0
        plan: list[list[int]] = []
        steps: list[list[int]] = []
        for i, clique in enumerate(tree.cliques):
            mine, space = self._steps(self.axes(clique), within[i], end)
            most = max(most, space)
            count = self._cells(tree.separators[i])
            run = tree.clique_cells[i] // count
            pieces = -(-run // PIECE) if count * run >= LARGE else 1
            plan.append([cells, count, run, pieces, units, rows, separators[i], len(steps), len(steps) + len(mine)])
            steps += mine
            cells, units, rows = cells + count * run, units + count * pieces, rows + count
        self.plan = np.array(plan, np.int64)
        self.steps = np.array(steps, np.int64).reshape(-1, 6)
        self.cells, self.units, self.rows = cells, units, rows
        self.space: int = end + most

    def rows_of(self, cells: NDArray[np.float64], clique: int) -> NDArray[np.float64]:
        """One clique's part of an array of the cells of all, as rows: a view."""
        at, rows, run = self.plan[clique, :3].tolist()
        return cells[at : at + rows * run].reshape(rows, run)

    def clique(self, cells: NDArray[np.float64], clique: int) -> NDArray[np.float64]:
        """The same with an axis for each column, in the order of the tree: a view."""
        return self.rows_of(cells, clique).reshape(self.shape(self.tree.cliques[clique]))

    def axes(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Columns in the order of the tree."""
        return tuple(sorted(columns, key=self.rank.__getitem__))

    def shape(self, columns: Sequence[int]) -> tuple[int, ...]:
        """How many values these have, in the order of the tree."""
        return tuple(self.tree.sizes[p] for p in self.axes(columns))

    def turned(self, table: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.float64]:
        """A table of columns as given, with them in the order of the tree."""
        return np.array(table.transpose([list(columns).index(p) for p in self.axes(columns)]), order="C")

    def returned(self, table: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.float64]:
        """A table of columns in the order of the tree, with them as given."""
        return np.array(table.transpose([self.axes(columns).index(p) for p in columns]), order="C")

    def _cells(self, columns: Sequence[int]) -> int:
        return prod(self.tree.sizes[p] for p in columns)

    def _steps(
        self, axes: tuple[int, ...], tables: Sequence[tuple[tuple[int, ...], int]], end: int
    ) -> tuple[list[list[int]], int]:
        """The steps from a clique to its tables, and how many cells they need for sums on the way, from `end` on."""
        if not tables:
            return [], 0
        sizes = [self.tree.sizes[p] for p in axes]
        made = sum_plan(sizes, [[axes.index(p) for p in self.axes(table)] for table, _ in tables])
        relative = np.cumsum([0, *(self._cells(table) for table, _ in tables)]).tolist()
        places = dict(zip(relative, [start for _, start in tables], strict=False))
        steps = []
        for at, to, outer, size, inner, add in made.steps.tolist():
            at, to = (v if v < 0 else places[v] if v < made.room else v - made.room + end for v in (at, to))
            steps.append([at, to, outer, size, inner, 1 if at < 0 else add])
        return steps, made.space - made.room


@lru_cache(16)
def layout_of(tree: JunctionTree) -> TreeLayout:
    """The layout of a tree alone, without tables: a millisecond for a hundred cliques."""
    return TreeLayout(tree, ())
