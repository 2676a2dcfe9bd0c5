"""Weights on the cliques of a junction tree, their probabilities and tables, by messages.

Runs of small cliques are one call of a kernel; large cliques are cut into chunks for all threads. Which it is depends
on the shapes alone, and so do the bits.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from ...kernels import fits
from ...kernels import junction_trees as kernels
from ...support.threads import run_chunks
from ..marginal_transform import CHUNK, spread_step, sum_step
from .tree_layout import FIRST_ROW, LARGE, ROWS, RUN, TreeLayout

Flat = NDArray[np.float64]

LEAST = 1e-130  # a share whose logarithm is taken: from 0 there is no way back


class TreeWeights:
    """A distribution on a junction tree that is multiplied by functions of tables.

    logs    logarithms of weights of the cells of all cliques; taken over, and changed
    shares  the probabilities of the cells of all cliques
    tables  of the layout, one after the other: probabilities
    """

    def __init__(self, layout: TreeLayout, logs: Flat) -> None:
        self.layout, self.logs = layout, logs
        self.shares = np.empty(layout.cells)
        self._space = np.zeros(layout.space)
        self._units = np.empty((2, layout.units))
        self._log_sums = np.zeros(layout.rows)
        self._runs = _runs_of(layout)
        self.update(np.zeros(layout.starts[-1] - 1), 0.0)

    @property
    def tables(self) -> Flat:
        """Of the layout, one after the other; a new array."""
        return self._space[1 : self.layout.starts[-1]].copy()

    def update(self, gradient: Flat, rate: float) -> float:
        """Multiply by e^(-rate gradient of the tables); returns by how much the logarithm of the sum of weights falls.

        ValueError if no cell is left.
        """
        np.multiply(gradient, -rate, out=self._space[1 : self.layout.starts[-1]])
        for first, stop in reversed(self._runs):
            self._collect(first, stop)
        change = float(self._space[0])
        if not change > -np.inf:
            raise ValueError("zeros: exclude all cells: must leave at least one")
        self._space[0] = 1.0
        for first, stop in self._runs:
            self._distribute(first, stop)
        return -change

    def spread(self, gradient: Flat) -> Flat:
        """What `update` takes: the gradient itself, which messages spread."""
        return gradient

    def mix_into(self, x: Flat, theta: float) -> None:
        """x = (1 - theta) x + theta shares: the average of distributions on a tree has the average of their cliques."""
        run_chunks(lambda i, j: fits.mix(x[i:j], self.shares[i:j], 1 - theta, theta), x.size, CHUNK)

    def put(self, x: Flat) -> None:
        """Be the distribution with these probabilities of cliques; what cannot be stays so."""
        cannot = np.isneginf(self.logs)
        for i in range(len(self.layout.plan)):
            rows, share = self.layout.rows_of(self.logs, i), self.layout.rows_of(x, i)
            totals = share.sum(axis=1, keepdims=True)
            rows[...] = np.log(np.maximum(share, LEAST * totals) + LEAST) - np.log(totals + LEAST)
        self.logs[cannot] = -np.inf
        self._log_sums[:] = 0.0
        self.update(np.zeros(self.layout.starts[-1] - 1), 0.0)

    def copy(self) -> TreeWeights:
        """The same weights, which later updates do not change."""
        twin = copy(self)
        for name in ("logs", "shares", "_space", "_units", "_log_sums"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def conditional_logs(self, clique: int) -> Flat:
        """Logarithms of the probabilities of a clique's columns given its separator, in the order of the tree."""
        rows, first = self.layout.rows_of(self.logs, clique), int(self.layout.plan[clique, FIRST_ROW])
        made = rows - self._log_sums[first : first + len(rows), None]
        return made.reshape(self.layout.shape(self.layout.tree.cliques[clique]))

    # --- one run of cliques

    def _collect(self, first: int, stop: int) -> None:
        layout, space = self.layout, self._space
        if stop - first > 1 or layout.plan[first, ROWS] * layout.plan[first, RUN] < LARGE:
            args = self.logs, self.shares, space, self._units, self._log_sums, layout.plan, layout.steps
            kernels.collect(*args, first, stop)
            return
        at, rows, run, pieces, unit, row, separator, begin, end = layout.plan[first].tolist()
        logs, shares = self.logs[at : at + rows * run], self.shares[at : at + rows * run]
        tops, totals = self._units[:, unit : unit + rows * pieces]
        for step in range(end - 1, begin - 1, -1):
            spread_step(layout.steps[step], logs, space)
        each = max(1, CHUNK // -(-run // pieces))
        run_chunks(lambda i, j: kernels.find_tops(logs, run, pieces, i, j, tops), tops.size, each)
        kernels.join_tops(tops, pieces, rows)
        run_chunks(
            lambda i, j: kernels.exponentiate_rows(logs, run, pieces, i, j, tops, shares, totals), tops.size, each
        )
        kernels.tell_parent(tops, totals, pieces, self._log_sums[row : row + rows], space[separator:])

    def _distribute(self, first: int, stop: int) -> None:
        layout, space = self.layout, self._space
        if stop - first > 1 or layout.plan[first, ROWS] * layout.plan[first, RUN] < LARGE:
            kernels.distribute(self.shares, space, self._units, layout.plan, layout.steps, first, stop)
            return
        at, rows, run, pieces, unit, _, separator, begin, end = layout.plan[first].tolist()
        shares, totals = self.shares[at : at + rows * run], self._units[1, unit:]
        each = max(1, CHUNK // -(-run // pieces))
        run_chunks(
            lambda i, j: kernels.scale_rows(shares, run, pieces, i, j, totals, space[separator:]), rows * pieces, each
        )
        for step in range(begin, end):
            sum_step(layout.steps[step], shares, space)


def _runs_of(layout: TreeLayout) -> list[tuple[int, int]]:
    """Cliques that one call takes together: large ones one by one."""
    runs, first = [], 0
    for large in np.flatnonzero(layout.plan[:, ROWS] * layout.plan[:, RUN] >= LARGE).tolist():
        if first < large:
            runs.append((first, large))
        runs.append((large, large + 1))
        first = large + 1
    if first < len(layout.plan):
        runs.append((first, len(layout.plan)))
    return runs
