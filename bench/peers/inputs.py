"""What both sides work on: the arrays that fastdp's cases and their peers are given, made from numpy alone.

A peer makes them in its own process. The generators are seeded, so that it gets the same numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


def int_values(n: int) -> Any:
    """Counts, filled: an array of np.zeros would be one page of memory, however long it is."""
    return np.arange(n, dtype=np.int64) % 1000


def float_values(n: int) -> Any:
    return np.linspace(-1e3, 1e3, n)


def float_scores(n: int) -> Any:
    return np.random.default_rng(0).normal(0, 10, n)


def numbers(kind: str, n: int) -> Any:
    """Any int64, as this kind."""
    return np.random.default_rng(0).integers(-(2**63), 2**63 - 1, n).astype(kind)


def noise_scales(n: int) -> list[tuple[str, float]]:
    """n releases, no two alike: Laplace noise of so large a scale, and Gaussian noise of such a sigma, in turn."""
    return [("laplace", 100.0 + i) if i % 2 == 0 else ("gaussian", 100.0 + i / 8) for i in range(n)]


def save(to: str, made: dict[str, Any]) -> None:
    """Arrays by name, for the process that asked for them."""
    arrays: Any = {name: np.asarray(rows, float) for name, rows in made.items()}
    np.savez(to, **arrays)


@lru_cache(maxsize=1)  # all sides of a case read the same memory
def points(n: int, d: int, kind: str) -> tuple[Any, Any]:
    """Points a little within the unit ball, so that they still are in float32; labels within 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X /= (1.000001 * np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]
    y = X @ rng.normal(size=d) / 3 + rng.normal(0, 0.3, n)
    return X.astype(kind, copy=False), y.clip(-1, 1)


def labels_of(loss: str, y: Any) -> Any:
    return y if loss == "squared" else np.where(y > 0, 1.0, -1.0)


def binary_records(n: int, d: int) -> Any:
    """Attributes that are 1 in turn less and more often, each likelier after a 1 than after a 0."""
    rng = np.random.default_rng(0)
    codes = (rng.random((n, d)) < np.linspace(0.1, 0.6, d)).astype(np.uint8)
    for j in range(1, d):
        codes[:, j] |= codes[:, j - 1] & (rng.random(n) < 0.3)
    return codes


TREE_COLUMNS = 12


def tree_tables(cells: int) -> tuple[int, float, list[tuple[tuple[int, int], Any]]]:
    """Noisy two-way tables of columns each of which depends on the two before it, on a tree of about so many cells.

    Returns   the number of values of each column, the standard deviation of the noise, and columns with their table
    """
    size, rng = max(2, round((cells / (TREE_COLUMNS - 2)) ** (1 / 3))), np.random.default_rng(0)
    total, sigma = 1e5, 30.0
    given = rng.dirichlet(np.full(size, 0.3), size=(size, size))
    pair = rng.dirichlet(np.full(size * size, 0.3)).reshape(size, size)
    tables = []
    for j in range(TREE_COLUMNS - 2):
        triple = pair[:, :, None] * given
        tables += [((j, j + 1), triple.sum(axis=2)), ((j, j + 2), triple.sum(axis=1))]
        pair = triple.sum(axis=0)
    tables.append(((TREE_COLUMNS - 2, TREE_COLUMNS - 1), pair))
    return size, sigma, [(columns, total * table + sigma * rng.normal(size=table.shape)) for columns, table in tables]
