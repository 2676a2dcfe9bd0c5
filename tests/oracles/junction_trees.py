"""Distributions over few cells as products of tables, written out: what messages must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = tuple[Sequence[int], NDArray[Any]]  # columns, ascending, and an axis for each


def sum_of_tables(sizes: Sequence[int], tables: Iterable[Table]) -> NDArray[np.float64]:
    """For every cell the sum of the entries of the tables that it belongs to."""
    total = np.zeros(tuple(sizes))
    for columns, table in tables:
        total = total + table.reshape([size if p in columns else 1 for p, size in enumerate(sizes)])
    return total


def distribution_of(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def log_of_sum(logarithms: NDArray[np.float64]) -> float:
    top = logarithms.max()
    return float(top + np.log(np.exp(logarithms - top).sum()))


def marginal(joint: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.float64]:
    """With an axis for each column, in the order given."""
    summed = joint.sum(axis=tuple(p for p in range(joint.ndim) if p not in columns))
    return np.transpose(summed, [sorted(columns).index(p) for p in columns])


def nearest(joint_shape: Sequence[int], measured: Sequence[tuple[Table, float]], total: float) -> float:
    """The least sum of ((total share - value) / sigma)^2 of any distribution: nonnegative least squares (scipy)."""
    from scipy.optimize import nnls

    cells = int(np.prod(joint_shape))
    indices = np.indices(tuple(joint_shape)).reshape(len(joint_shape), -1)
    rows, values = [], []
    for (columns, table), sigma in measured:
        at = np.ravel_multi_index([indices[p] for p in columns], table.shape) if len(columns) else np.zeros(cells, int)
        part = np.zeros((table.size, cells))
        part[at, np.arange(cells)] = total / sigma
        rows.append(part)
        values.append(table.reshape(-1) / sigma)
    heavy = 1e6
    matrix = np.concatenate([*rows, np.full((1, cells), heavy)])
    target = np.concatenate([*values, [heavy]])
    found, _ = nnls(matrix, target, maxiter=100 * cells)
    found /= found.sum()
    return float(((matrix[:-1] @ found - target[:-1]) ** 2).sum())
