"""What several subjects of the learning room work on: labelled bits, and how numpy counts them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..registry import Call, Side

MILLION = 1_000_000
EPSILON = 1.0
DELTA = 1e-6
K = 10
SURE = 1e-9  # beta of what a test checks


@lru_cache(maxsize=1)  # all sides of a case read the same memory
def records(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Bits, a byte each: each of the first k columns is 1 so often that half of the records have all of them."""
    rng = np.random.default_rng(0)
    X = np.unpackbits(rng.integers(0, 256, (n, -(-d // 8)), np.uint8), axis=1, count=d).view(np.bool_)
    for j in range(k):
        X[:, j] = rng.random(n, np.float32) < 2 ** (-1 / k)
    return X, X[:, :k].all(axis=1)


def numpy_sums(d: int, k: int = 1) -> Side:
    def make(n: int) -> Call:
        X, y = records(n, d, k)
        return lambda: (X[y].sum(0), X[~y].sum(0))

    return Side("numpy", make)


_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def count_ones(words: Any) -> Any:
    """How many ones each row has; numpy counts them itself from 2.0 on."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words).sum(axis=-1)
    return _ONES[words.view(np.uint8)].sum(axis=-1)


def enough(n: int) -> int:
    """So many records that there is an error bound that is as good as certain."""
    return max(n, 500_000)
