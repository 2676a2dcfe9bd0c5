"""The fit on a junction tree: the distribution on it whose tables come closest to noisy ones.

Post-processing, in floats: it sees the noisy tables alone. tree_fit.md derives the method and the stopping rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...support.machine import display_bytes, usable_memory
from ...support.progress import Report
from ..mirror_descent import MirrorDescent
from .junction_tree import MOST_CELLS, JunctionTree
from .measured import Measured, Zeros, check_measured, check_zeros
from .tree_distribution import TreeDistribution
from .tree_layout import TreeLayout
from .tree_messages import TreeWeights

Flat = NDArray[np.float64]
Columns = tuple[int, ...]

STEPS = 3000
TOLERANCE = 0.01
_ARRAYS = 4  # of all cells: logarithms, shares, their average, and the result
_EASIER = 0.9  # what the smoothness falls by in each step, before it is tried
_CHECKS = 2**0.25  # between the steps at which the distance is compared


@dataclass(frozen=True)
class TreeFit:
    """What the fit found."""

    distribution: TreeDistribution
    residual: float  # mean square of what is left, in units of the variance of the noise
    left: float  # how far that mean square is above its least value, as the steps so far let expect
    steps: int


def fit_tree(
    tree: JunctionTree, measurements: Sequence[Measured], total: float, *, zeros: Sequence[Zeros] = (),
    start: TreeDistribution | None = None, tolerance: float = TOLERANCE, steps: int = STEPS,
    report: Report | None = None,
) -> TreeFit:  # fmt: skip
    """The distribution on a tree that is closest to noisy tables: least sum of (total share - value)^2 / sigma^2.

    total      the number of records, as it is known in public
    zeros      cells that hold no record
    start      a distribution on any tree to begin from; without it columns are independent, each as its tables say
    tolerance  mean square distance of the fitted tables from the closest ones, in units of the variance of their noise
    steps      at most so many
    """
    _check_size(tree)
    if not total > 0:
        raise ValueError(f"total={total}: must be > 0")
    tables, values, sigmas = _joined(tree.sizes, measurements)
    layout = TreeLayout(tree, tables)
    turned = [layout.turned(value, table).reshape(-1) for value, table in zip(values, tables, strict=True)]
    y = np.concatenate([np.empty(0), *turned]) / total
    least = min(sigmas, default=1.0)
    weights = np.repeat([(least / sigma) ** 2 for sigma in sigmas], [value.size for value in values])
    if start is None:
        logs = _logs_of_columns(layout, _one_way(tree.sizes, tables, values, sigmas))
    else:
        logs = start.logs_on(layout)
    for each in zeros:
        _exclude(layout, logs, each)
    z = TreeWeights(layout, logs)
    descent = MirrorDescent(z, z.shares.copy(), y, weights, sum((least / sigma) ** 2 for sigma in sigmas) / 2)
    done, left = _descend(descent, y.size * (least / total) ** 2, tolerance, steps if y.size else 0, report)
    distribution = TreeDistribution(tree, descent.x if done else z.shares, total)
    return TreeFit(distribution, descent.distance() * (total / least) ** 2 / max(y.size, 1), left, done)


def _descend(
    descent: MirrorDescent, noise: float, tolerance: float, most: int, report: Report | None
) -> tuple[int, float]:
    """Steps until the distance, in units of the noise's, is as near its least value as asked for.

    Returns   how many steps, and how far above it the distance is. It falls like 1 / steps^2, so what is left is a
              third of what the steps from half as many on have brought
    """
    smoothness, sum_of_rates, done, left = 1.0, 0.0, 0, 0.0
    seen: list[tuple[int, float]] = []
    check = 16

    def rate_of(smoothness: float) -> float:
        return (1 + sqrt(1 + 4 * smoothness * sum_of_rates)) / (2 * smoothness)

    def share(smoothness: float) -> float:
        return (rate := rate_of(smoothness)) / (sum_of_rates + rate)

    while done < most:
        smoothness = descent.step(max(smoothness * _EASIER, 1e-6), share)
        sum_of_rates += rate_of(smoothness)
        done += 1
        if done in (check, most):
            distance = descent.distance() / noise
            before = [d for k, d in seen if 2 * k <= done]
            left = (before[-1] - distance) / 3 if before else distance
            seen.append((done, distance))
            check = int(done * _CHECKS) + 1
            if report:
                report(done, most, f"mean squared distance {distance:.4g} of the noise's, {left:.2g} above the least")
            if left <= tolerance:
                break
    if report:
        report(most, most, "")
    return done, max(left, 0.0)


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
