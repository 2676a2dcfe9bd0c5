"""The least-squares fit: consistent tables of a workload, nearest to noisy ones.

Post-processing, in floats: it sees the noisy tables alone; release_marginals.md derives its closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .queries.marginals import Marginals

Table = NDArray[np.float64]
Axes = tuple[int, ...]


class LeastSquares:
    """Tables as sums of orthogonal components, one for each set S of attributes of some table.

    The component of S is what the marginal on S adds to those of its subsets: its sums over any axis are 0. Each table
    with all of S measures it, with a variance that is proportional to the number of cells that it sums over; the
    weighted mean of these measurements is the least-squares solution (release_marginals.md, theorem 2).
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
        """The components of the tables, by shape: arrays with one more axis, the sets of that shape in order."""
        components = {shape: np.zeros((len(group), *shape)) for shape, group in self.subsets.items()}
        stacks = {
            shape: np.stack([np.asarray(tables[i], np.float64) for i in which])
            for shape, which in self.tables_by_shape().items()
        }
        for axes, indices, shape, places in self._steps():
            out = tuple(i + 1 for i in range(len(axes)) if i not in indices)
            component = stacks[axes].sum(axis=out)
            for i in range(len(shape)):
                component = component - component.mean(axis=i + 1, keepdims=True)
            np.add.at(components[shape], places, component / _cells(axes, indices))
        for shape, component in components.items():
            component /= self.weight[shape].reshape(-1, *[1] * len(shape))
        return components

    def build(self, components: dict[Axes, Table]) -> list[Table]:
        """The tables that have these components."""
        made = {shape: np.zeros((len(which), *shape)) for shape, which in self.tables_by_shape().items()}
        for axes, indices, shape, places in self._steps():
            as_part = [size if i in indices else 1 for i, size in enumerate(axes)]
            made[axes] += (components[shape][places] / _cells(axes, indices)).reshape(-1, *as_part)
        tables: list[Any] = [None] * self.workload.tables
        for axes, which in self.tables_by_shape().items():
            for i, table in zip(which, made[axes], strict=True):
                tables[i] = np.asarray(table)
        return tables

    def variance_of(self, S: Axes, variances: Mapping[Axes, Table] | None = None) -> float:
        """The variance of an entry of the fitted marginal on S, in units of that of the noise.

        variances   of the components, by shape; None for those of equal noise on all entries
        """
        variance = 0.0
        for k in range(len(S) + 1):
            for part in combinations(S, k):
                shape, place = tuple(self.sizes[p] for p in part), self.place[part]
                centred = prod(1 - 1 / size for size in shape)
                rest = prod(self.sizes[p] for p in S if p not in part)
                of_part = (
                    centred / float(self.weight[shape][place])
                    if variances is None
                    else (centred * float(variances[shape][place]))
                )
                variance += of_part / rest**2
        return variance

    def variances_of_tables(self, variances: Mapping[Axes, Table]) -> Table:
        """The variance of an entry of every fitted table; variances of the components, by shape."""
        of_tables = np.zeros(self.workload.tables)
        for axes, which in self.tables_by_shape().items():
            for indices, places in self.places_of(axes, which):
                shape = tuple(axes[i] for i in indices)
                centred = prod(1 - 1 / size for size in shape)
                of_tables[which] += centred * variances[shape][places] / _cells(axes, indices) ** 2
        return of_tables

    def variance_of_sum(self, S: Axes, taken: Sequence[NDArray[np.bool_]], variances: Mapping[Axes, Table]) -> float:
        """The variance of the sum over the entries of the fitted marginal on S whose values are all among those taken.

        taken       which of the values of each attribute of S
        variances   of the components, by shape
        """
        counts = {p: int(np.count_nonzero(of)) for p, of in zip(S, taken, strict=True)}
        variance = 0.0
        for k in range(len(S) + 1):
            for part in combinations(S, k):
                shape = tuple(self.sizes[p] for p in part)
                centred = prod(counts[p] * (1 - counts[p] / self.sizes[p]) for p in part)
                rest = prod(counts[p] / self.sizes[p] for p in S if p not in part)
                variance += centred * float(variances[shape][self.place[part]]) * rest**2
        return variance

    def variances(self, of_noise: float) -> dict[Axes, Table]:
        """Of the components, by shape, where every entry of every table has noise of this variance."""
        return {shape: of_noise / weight for shape, weight in self.weight.items()}

    def tables_by_shape(self) -> dict[Axes, list[int]]:
        """The tables of each shape."""
        by_shape: dict[Axes, list[int]] = {}
        for i, shape in enumerate(self.workload.shapes):
            by_shape.setdefault(shape, []).append(i)
        return by_shape

    def _steps(self) -> Iterator[tuple[Axes, Axes, Axes, NDArray[np.intp]]]:
        """For each shape of tables and each choice of axes: shape, choice, what is left, and where they belong."""
        for axes, which in self.tables_by_shape().items():
            for indices, places in self.places_of(axes, which):
                yield axes, indices, tuple(axes[j] for j in indices), places

    def places_of(self, axes: Axes, which: Sequence[int]) -> Iterator[tuple[Axes, NDArray[np.intp]]]:
        """For each choice of axes of tables of this shape: the choice, and where the sets of them belong."""
        for k in range(len(axes) + 1):
            for indices in combinations(range(len(axes)), k):
                parts = [tuple(self.workload.positions[i][j] for j in indices) for i in which]
                yield indices, np.array([self.place[part] for part in parts], np.intp)


@lru_cache(maxsize=4)
def least_squares_of(workload: Marginals) -> LeastSquares:
    """Workloads never change, and are equal only to themselves."""
    return LeastSquares(workload)


def _cells(axes: Axes, indices: Axes) -> int:
    """How many cells of a table are summed into one of its marginal on these axes."""
    return prod(size for i, size in enumerate(axes) if i not in indices)
