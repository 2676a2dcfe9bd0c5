"""The fit on a junction tree: the distribution on it whose tables come closest to noisy ones.

Post-processing, in floats: it sees the noisy tables alone. tree_fit.md derives the method and the stopping rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...randomness.keys import fill_words
from ...support.machine import display_bytes, usable_memory
from ...support.progress import Report
from ..component_metric import ComponentMetric
from ..least_squares_fit import LeastSquares
from ..marginal_transform import as_tables
from ..mirror_descent import SHIFT, MirrorDescent, Twin, descend
from .junction_tree import MOST_CELLS, JunctionTree
from .measured import Measured, Residuals, Zeros, check_measured, check_zeros
from .tree_distribution import TreeDistribution
from .tree_layout import TreeLayout
from .tree_messages import TreeWeights

Flat = NDArray[np.float64]
Columns = tuple[int, ...]

STEPS = 3000
TOLERANCE = 0.01
_SLACK = 0.06  # of the least risk that later steps may have: largest errors fall for longer than the mean
_ARRAYS = 4  # of all cells: logarithms, shares, their average, and the result


@dataclass(frozen=True)
class TreeFit:
    """What the fit found."""

    distribution: TreeDistribution
    residual: float  # mean square of what is left, in units of the variance of the noise
    left: float  # how far that mean square is above its least value, as the steps so far let expect
    risk: float | None  # mean square distance from the tables without noise, in the same units, as estimated
    steps: int


def fit_tree(
    tree: JunctionTree, measurements: Sequence[Measured], total: float, *, zeros: Sequence[Zeros] = (),
    start: TreeDistribution | None = None, tolerance: float = TOLERANCE, steps: int = STEPS,
    converged: bool = False, report: Report | None = None,
) -> TreeFit:  # fmt: skip
    """A distribution on a tree that is close to noisy tables: descent along sum of (total share - value)^2 / sigma^2,
    up to where the tables are nearest to those without noise, as estimated; or to the least sum, if `converged`.

    total      the number of records, as it is known in public
    zeros      cells that hold no record
    start      a distribution on any tree to begin from; without it columns are independent, each as its tables say
    tolerance  mean square distance of the fitted tables from the closest ones, in units of the variance of their noise,
               at which the descent ends in any case
    steps      at most so many
    """
    _check_size(tree)
    if not total > 0:
        raise ValueError(f"total={total}: must be > 0")
    tables, values, sigmas = _joined(tree.sizes, measurements)
    layout = TreeLayout(tree, tables)
    least = min(sigmas, default=1.0)
    each = np.array([(least / sigma) ** 2 for sigma in sigmas])
    weights = np.repeat(each, [value.size for value in values])

    def descent_to(values: Sequence[Flat]) -> MirrorDescent:
        if start is None:
            logs = _logs_of_columns(layout, _one_way(tree.sizes, tables, values, sigmas))
        else:
            logs = start.logs_on(layout)
        for zero in zeros:
            _exclude(layout, logs, zero)
        z = TreeWeights(layout, logs)
        y = _flat(layout, values) / total
        return MirrorDescent(z, z.shares.copy(), y, lambda gap: weights * gap, float(each.sum()) / 2)

    first, twin = descent_to(values), None
    if not values:
        return TreeFit(TreeDistribution(tree, first.x, total), 0.0, 0.0, None, 0)
    if not converged:
        signs = _signs(values)
        other = [value + SHIFT * sigma * sign for value, sigma, sign in zip(values, sigmas, signs, strict=True)]
        twin = Twin(first, descent_to(other), least / total / np.sqrt(weights), _flat(layout, signs))
    found = descend(first, twin, weights.size * (least / total) ** 2, tolerance, steps, report)
    distribution = TreeDistribution(tree, found.x, total)
    return TreeFit(distribution, found.distance, found.left, found.risk, found.steps)


def fit_residuals(
    tree: JunctionTree, residuals: Residuals, total: float, *, zeros: Sequence[Zeros] = (),
    report: Report | None = None,
) -> TreeFit:  # fmt: skip
    """The same for tables whose components have noise of their own: each counts by the inverse of its variance."""
    _check_size(tree)
    least_squares = residuals.least_squares
    workload, size = least_squares.workload, len(least_squares.workload)
    variances = {shape: values / total**2 for shape, values in residuals.variances.items()}
    metric = ComponentMetric(least_squares, variances)
    layout = TreeLayout(tree, workload.positions)
    place = _flat(layout, as_tables(np.arange(size, dtype=np.float64), workload)).astype(np.int64)
    back = np.argsort(place)

    def weigh(gap: Flat) -> Flat:
        weighed: Flat = metric.apply(gap[back])[place]
        return weighed

    def descent_to(components: dict[Columns, Flat]) -> MirrorDescent:
        tables = [table / total for table in least_squares.build(components)]
        logs = _logs_of_columns(layout, _one_way_of(least_squares, tables, variances))
        for zero in zeros:
            _exclude(layout, logs, zero)
        z = TreeWeights(layout, logs)
        return MirrorDescent(z, z.shares.copy(), _flat(layout, tables), weigh, workload.tables / 2)

    shifts = _shifts(least_squares, residuals.variances)
    moved = {shape: values + SHIFT * shifts[shape] for shape, values in residuals.components.items()}
    first, noise = descent_to(residuals.components), metric.unit**2 * least_squares.rank
    along = weigh(_flat(layout, least_squares.build(shifts)) / total) * (size / noise)
    found = descend(
        first, Twin(first, descent_to(moved), np.ones(1), along), noise, TOLERANCE, STEPS, report, slack=_SLACK
    )
    return TreeFit(TreeDistribution(tree, found.x, total), found.distance, found.left, found.risk, found.steps)


def _shifts(least_squares: LeastSquares, variances: dict[Columns, Flat]) -> dict[Columns, Flat]:
    """Components like the noise's, of signs that everybody knows."""
    empty = [np.empty((len(group), *shape)) for shape, group in least_squares.subsets.items()]
    found = {}
    for shape, signs in zip(least_squares.subsets, _signs(empty), strict=True):
        for axis in range(1, signs.ndim):
            signs = signs - signs.mean(axis=axis, keepdims=True)
        found[shape] = signs * np.sqrt(variances[shape]).reshape(-1, *[1] * len(shape))
    return found


def _one_way_of(
    least_squares: LeastSquares, tables: Sequence[Flat], variances: dict[Columns, Flat]
) -> list[Flat]:  # fmt: skip
    """Of each column its shares; a value that is lost in the noise gets a quarter of its standard deviation. Uniform
    where no table has it."""
    found: dict[int, Flat] = {}
    for columns, table in zip(least_squares.workload.positions, tables, strict=True):
        for p in set(columns) - found.keys():
            one = table.sum(axis=tuple(i for i, q in enumerate(columns) if q != p))
            least = min(least_squares.variance_of((p,), variances) ** 0.5 / 4, 1 / one.size)
            one = np.maximum(one, least)
            found[p] = one / one.sum()
    sizes = least_squares.workload.domain.sizes
    return [found.get(p, np.full(size, 1 / size)) for p, size in enumerate(sizes)]


def _flat(layout: TreeLayout, tables: Sequence[Flat]) -> Flat:
    """The tables of the layout, one after the other, in its order."""
    turned = [layout.turned(table, columns) for table, columns in zip(tables, layout.tables, strict=True)]
    return np.concatenate([np.empty(0), *(table.reshape(-1) for table in turned)])


def _signs(tables: Sequence[Flat]) -> list[Flat]:
    """1 and -1 for each cell, from a key that everybody knows: they only measure how the fit follows its target."""
    n = sum(table.size for table in tables)
    words = np.empty(-(-n // 64), np.uint64)
    fill_words(np.zeros(8, np.uint32), words)
    signs = 1.0 - 2.0 * np.unpackbits(words.view(np.uint8), count=n, bitorder="little")
    ends = np.cumsum([table.size for table in tables])[:-1]
    return [part.reshape(table.shape) for part, table in zip(np.split(signs, ends), tables, strict=True)]


def bytes_of_fit(tree: JunctionTree, measurements: Sequence[Columns]) -> int:
    """What the fit needs, roughly."""
    layout = TreeLayout(tree, measurements)
    return 8 * (_ARRAYS * layout.cells + 2 * layout.space + 8 * layout.starts[-1] + 3 * layout.units)


def _check_size(tree: JunctionTree) -> None:
    if tree.largest > MOST_CELLS:
        raise ValueError(f"tree: a clique of {tree.largest:,} cells: must be at most 2^22")
    if 2 * tree.bytes > usable_memory():
        raise ValueError(
            f"tree: {tree.cells:,} cells, whose fit takes {display_bytes(tree.bytes)}: twice that must fit into "
            f"{display_bytes(usable_memory())}, half of the memory"
        )


def _joined(sizes: Sequence[int], measurements: Sequence[Measured]) -> tuple[list[Columns], list[Flat], list[float]]:
    """Each table once: of several on the same columns the mean, weighted by the inverse of their variances."""
    sums: dict[Columns, Flat] = {}
    precisions: dict[Columns, float] = {}
    for each in measurements:
        values, precision = check_measured(sizes, each), each.sigma**-2.0
        sums[each.columns] = sums.get(each.columns, 0.0) + precision * values
        precisions[each.columns] = precisions.get(each.columns, 0.0) + precision
    tables = sorted(sums)
    return tables, [sums[t] / precisions[t] for t in tables], [precisions[t] ** -0.5 for t in tables]


def _one_way(
    sizes: Sequence[int], tables: Sequence[Columns], values: Sequence[Flat], sigmas: Sequence[float]
) -> list[Flat]:
    """Of each column the shares that all its tables together say; uniform where there is none.

    A value that is lost in the noise gets a quarter of its standard deviation: from 0 there is no way back.
    """
    found = []
    for p, size in enumerate(sizes):
        numbers, precision = np.zeros(size), 0.0
        for table, value, sigma in zip(tables, values, sigmas, strict=True):
            if p in table:
                weight = size / (sigma * sigma * value.size)
                numbers += weight * value.sum(axis=tuple(i for i, q in enumerate(table) if q != p))
                precision += weight
        if precision:
            numbers = np.maximum(numbers / precision, precision**-0.5 / 4)
            found.append(numbers / numbers.sum())
        else:
            found.append(np.full(size, 1 / size))
    return found


def _logs_of_columns(layout: TreeLayout, shares: Sequence[Flat]) -> Flat:
    """Logarithms of weights for independent columns."""
    logs = np.empty(layout.cells)
    for i, (clique, separator) in enumerate(zip(layout.tree.cliques, layout.tree.separators, strict=True)):
        axes = layout.axes(clique)
        cube = layout.clique(logs, i)
        cube[...] = 0.0
        for k, p in enumerate(axes):
            if p not in separator:
                cube += np.log(shares[p]).reshape([-1 if j == k else 1 for j in range(len(axes))])
    return logs


def _exclude(layout: TreeLayout, logs: Flat, zeros: Zeros) -> None:
    cells = check_zeros(layout.tree.sizes, zeros)
    i = layout.tree.clique_of(zeros.columns)
    if i is None:
        raise ValueError(f"zeros: columns={zeros.columns}: must lie within a clique of the tree")
    axes = layout.axes(layout.tree.cliques[i])
    turned = cells.transpose([zeros.columns.index(p) for p in layout.axes(zeros.columns)])
    shape = [layout.tree.sizes[p] if p in zeros.columns else 1 for p in axes]
    cube = layout.clique(logs, i)
    np.copyto(cube, -np.inf, where=turned.reshape(shape))
