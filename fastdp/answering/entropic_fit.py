"""Making noisy tables of a workload fit together: least squares, and the entropic fit. Post-processing, in floats.

Both see the noisy tables alone. marginals.md derives the closed form of the first, and the method and the stopping rule
of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import log, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from ..support.threads import run_chunks
from .marginal_transform import CHUNK, marginal_tables, spread_tables
from .queries.marginals import Marginals

Table = NDArray[np.float64]
Axes = tuple[int, ...]
Report = Callable[[int, int, str], object]

MOST_STEPS = 4000  # of the entropic fit
PATIENCE = 2  # times the steps that it takes to come as near as the truth is; marginals.md, "Stopping"
_ARRAYS = 6  # of all cells that the entropic fit holds, those of tables.py included


# --- least squares


class Residuals:
    """Tables as sums of orthogonal pieces, one for each set S of attributes that lies in some table.

    The piece of S is what the marginal on S says beyond those of its subsets: its sums over any axis are 0. Each table
    with all of S measures it, with a variance that is proportional to the number of cells that it sums over; the
    weighted mean of these measurements is the least-squares solution (marginals.md, theorem 2).
    """

    def __init__(self, workload: Marginals) -> None:
        self.workload, self.sizes = workload, workload.domain.sizes
        subsets = {S for A in workload.positions for k in range(len(A) + 1) for S in combinations(A, k)}
        by_shape: dict[Axes, list[Axes]] = {}
        for S in sorted(subsets, key=lambda S: (len(S), S)):
            by_shape.setdefault(tuple(self.sizes[p] for p in S), []).append(S)
        self.subsets = by_shape
        self.place = {S: i for group in by_shape.values() for i, S in enumerate(group)}
        self.rank = sum(prod(size - 1 for size in shape) * len(group) for shape, group in by_shape.items())
        self.weight = {shape: np.zeros(len(group)) for shape, group in by_shape.items()}
        for axes, indices, shape, places in self._steps():
            np.add.at(self.weight[shape], places, 1 / _cells(axes, indices))

    def solve(self, tables: Sequence[Table]) -> dict[Axes, Table]:
        """The pieces of the tables, by shape: arrays with one more axis, the sets of that shape in order."""
        pieces = {shape: np.zeros((len(group), *shape)) for shape, group in self.subsets.items()}
        stacks = {
            shape: np.stack([np.asarray(tables[i], np.float64) for i in which])
            for shape, which in self._tables().items()
        }
        for axes, indices, shape, places in self._steps():
            out = tuple(i + 1 for i in range(len(axes)) if i not in indices)
            piece = stacks[axes].sum(axis=out)
            for i in range(len(shape)):
                piece = piece - piece.mean(axis=i + 1, keepdims=True)
            np.add.at(pieces[shape], places, piece / _cells(axes, indices))
        for shape, piece in pieces.items():
            piece /= self.weight[shape].reshape(-1, *[1] * len(shape))
        return pieces

    def build(self, pieces: dict[Axes, Table]) -> list[Table]:
        """The tables that have these pieces."""
        made = {shape: np.zeros((len(which), *shape)) for shape, which in self._tables().items()}
        for axes, indices, shape, places in self._steps():
            as_part = [size if i in indices else 1 for i, size in enumerate(axes)]
            made[axes] += (pieces[shape][places] / _cells(axes, indices)).reshape(-1, *as_part)
        tables: list[Any] = [None] * self.workload.tables
        for axes, which in self._tables().items():
            for i, table in zip(which, made[axes], strict=True):
                tables[i] = np.asarray(table)
        return tables

    def variance_of(self, S: Axes) -> float:
        """The variance of an entry of the fitted marginal on S, in units of that of the noise."""
        variance = 0.0
        for k in range(len(S) + 1):
            for part in combinations(S, k):
                shape = tuple(self.sizes[p] for p in part)
                centred = prod(1 - 1 / size for size in shape)
                rest = prod(self.sizes[p] for p in S if p not in part)
                variance += centred / float(self.weight[shape][self.place[part]]) / rest**2
        return variance

    def _tables(self) -> dict[Axes, list[int]]:
        """The tables of each shape."""
        by_shape: dict[Axes, list[int]] = {}
        for i, shape in enumerate(self.workload.shapes):
            by_shape.setdefault(shape, []).append(i)
        return by_shape

    def _steps(self) -> Iterator[tuple[Axes, Axes, Axes, NDArray[np.intp]]]:
        """For each shape of tables and each choice of axes: shape, choice, what is left, and where pieces belong."""
        for axes, which in self._tables().items():
            for k in range(len(axes) + 1):
                for indices in combinations(range(len(axes)), k):
                    parts = [tuple(self.workload.positions[i][j] for j in indices) for i in which]
                    places = np.array([self.place[part] for part in parts], np.intp)
                    yield axes, indices, tuple(axes[j] for j in indices), places


@lru_cache(maxsize=4)
def residuals_of(workload: Marginals) -> Residuals:
    """Workloads never change, and are told apart by identity."""
    return Residuals(workload)


def _cells(axes: Axes, indices: Axes) -> int:
    """How many cells of a table are summed into one of its marginal on these axes."""
    return prod(size for i, size in enumerate(axes) if i not in indices)


# --- the entropic fit


@dataclass(frozen=True)
class Fit:
    """What the entropic fit found."""

    probabilities: NDArray[np.float64]
    tables: list[Table]
    residual: float  # mean square of what is left, in units of the variance that the noise alone leaves there
    steps: int


def fit_entropic(
    target: Sequence[Table], residuals: Residuals, sigma: float, report: Report | None = None,
    *, start: NDArray[np.float64] | None = None,
) -> Fit:  # fmt: skip
    """The distribution near the product of the one-way tables whose tables come close to the target.

    target   consistent tables, as fractions (the least-squares solution: nothing is lost by it)
    sigma    of the noise, as a fraction
    start    another distribution to begin from, all positive: a fit that others follow, which ends once it is close

    Accelerated mirror descent with entropy (Tseng 2008, algorithm 1), whose steps are multiplicative weights with all
    queries of all tables at once. Once it is as close to the target as the noise has put the truth, it goes on for as
    many steps again.
    """
    workload = residuals.workload
    y = flat_of(target)
    noise = sigma * sigma * residuals.rank
    first = product_of_one_way(target, residuals, sigma) if start is None else start.copy()
    patience = PATIENCE if start is None else 1
    z = _Weights(first, workload)  # the mirror's side
    x = z.cells.copy()  # the average
    of_x = z.tables
    left = before = square_of(of_x - y) / noise
    near = 1 + sqrt(2 / residuals.rank)  # a standard deviation above what the noise amounts to on average
    smoothness, steps, most = max(1.0, workload.tables / 16), 0, 0 if left <= near else MOST_STEPS
    while steps < most:
        if report:
            report(steps, most, f"squared distance {left:.3g} of the noise's")
        steps += 1
        theta = 2 / (steps + 1)
        of_z = z.tables
        gap = (1 - theta) * of_x + theta * of_z - y
        gradient = spread_tables(cut_of(gap, workload), workload.domain, workload)
        while True:
            rate = 1 / (theta * smoothness)
            divergence = z.update(gradient, rate) - rate * float((gap * z.tables).sum())
            # holds for `smoothness` from tables / 2 on (marginals.md, lemma 2); mostly for far less
            if 2 * smoothness >= workload.tables or square_of(z.tables - of_z) <= 2 * smoothness * divergence:
                break
            z.update(gradient, -rate)
            smoothness *= 2
        z.mix_into(x, theta)
        of_x = (1 - theta) * of_x + theta * z.tables
        left = square_of(of_x - y) / noise
        if left <= near and most == MOST_STEPS:
            most = min(patience * steps, MOST_STEPS - 1)
        if steps >= 64 and steps.bit_count() == 1:  # a power of 2
            if left > 0.98 * before:  # no distribution comes closer
                break
            before = left
    x /= x.sum()
    tables = [np.maximum(table, 0.0) for table in marginal_tables(x, workload.domain, workload)]
    return Fit(x, tables, left, steps)


class _Weights:
    """Multiplicative weights that keep their logarithms and their tables."""

    def __init__(self, cells: NDArray[np.float64], workload: Marginals) -> None:
        self.workload = workload
        self.cells, self._total = cells, 1.0  # the distribution is cells / total
        self._logs, self._log_total = np.log(cells), 0.0
        self.tables = self._tables()

    def update(self, gradient: NDArray[np.float64], rate: float) -> float:
        """Multiply by e^(-rate gradient); returns by how much the logarithm of the sum of the weights falls."""
        from ..kernels import fits as kernels

        before = self._log_total
        top = max(self._over(lambda i, j: kernels.shift_logs(self._logs[i:j], gradient[i:j], rate)))
        parts = self._over(lambda i, j: kernels.exponentiate_into(self._logs[i:j], top, self.cells[i:j]))
        self._total = sum(parts)
        self._log_total = top + log(self._total)
        self.tables = self._tables()
        return before - self._log_total

    def mix_into(self, x: NDArray[np.float64], theta: float) -> None:
        """x = (1 - theta) x + theta times the distribution."""
        from ..kernels import fits as kernels

        self._over(lambda i, j: kernels.mix(x[i:j], self.cells[i:j], 1 - theta, theta / self._total))

    def _tables(self) -> NDArray[np.float64]:
        return flat_of(marginal_tables(self.cells, self.workload.domain, self.workload)) / self._total

    def _over(self, kernel: Callable[[int, int], Any]) -> list[Any]:
        return run_chunks(kernel, self.cells.size, CHUNK)


def product_of_one_way(target: Sequence[Table], residuals: Residuals, sigma: float) -> NDArray[np.float64]:
    """Where the fit starts: attributes independent, each with its fitted table, uniform where no table has it.

    A value whose fraction is lost in the noise gets a quarter of the noise's standard deviation: from 0 there is no way
    back.
    """
    workload = residuals.workload
    first: dict[int, Table] = {}
    for positions, table in zip(workload.positions, target, strict=True):
        for i, p in enumerate(positions):
            if p not in first:
                first[p] = table.sum(axis=tuple(j for j in range(len(positions)) if j != i))
    joint = np.ones(1)
    for p, size in enumerate(workload.domain.sizes):
        if p in first:
            floor = min(sigma * sqrt(residuals.variance_of((p,))) / 4, 1 / size)
            one = np.maximum(first[p], floor)
            one = one / one.sum()
        else:
            one = np.full(size, 1 / size)
        joint = np.multiply.outer(joint, one).reshape(-1)
    joint = np.maximum(joint, 1e-290)
    return joint / float(joint.sum())


def bytes_of_fit(domain: Domain) -> int:
    """What the entropic fit needs, at most."""
    return 8 * _ARRAYS * domain.size


def flat_of(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All entries of all tables, one table after the other."""
    return np.concatenate([table.reshape(-1) for table in tables])


def cut_of(flat: NDArray[Any], workload: Marginals) -> list[NDArray[Any]]:
    """The tables again."""
    ends = np.cumsum([prod(shape) for shape in workload.shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), workload.shapes, strict=True)]


def square_of(a: NDArray[np.float64]) -> float:
    """The squared L2 norm."""
    return float((a * a).sum())
