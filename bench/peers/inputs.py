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
