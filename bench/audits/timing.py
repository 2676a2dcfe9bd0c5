"""Whether the time of a call depends on the values of the records: two classes of records of one shape.

Their calls are interleaved at random; Welch's t of the times that remain without the slowest tenth. Beyond 4.5,
the usual threshold of such tests, the time depends on the class.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from ...mechanisms.noise import gaussian, laplace
from ...optimizing.vector_sums import vector_sum

THRESHOLD = 4.5

Case = tuple[Callable[[Any], object], list[Any]]


def welch(a: Any, b: Any) -> float:
    """Welch's t of two samples."""
    return float((a.mean() - b.mean()) / sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))


def compare(call: Callable[[Any], object], classes: list[Any], runs: int, seed: int) -> float:
    """Welch's t of the times of two classes.

    Records are copied to one place before each call: a copy of the same records elsewhere, which the caches hold
    otherwise, gave a t of -187 over 100,000 calls.
    """
    records = classes[0].copy()
    order = np.random.default_rng(seed).integers(2, size=runs)
    taken = np.zeros(runs)
    for i, kind in enumerate(order.tolist()):
        records[...] = classes[kind]
        start = time.perf_counter_ns()
        call(records)
        taken[i] = time.perf_counter_ns() - start
    kept = taken <= np.quantile(taken, 0.9)
    return welch(taken[kept & (order == 0)], taken[kept & (order == 1)])


def cases(rng: np.random.Generator) -> dict[str, Case]:
    """Of each call that docs/security.md calls independent: the call, and two classes of records."""
    n = 1000
    points = rng.normal(size=(n, 4))
    integers = [np.zeros(n, np.int64), rng.integers(-(2**40), 2**40, n)]
    vectors = [np.full((n, 4), 0.1), points / np.linalg.norm(points, axis=1, keepdims=True)]
    return {
        "laplace": (lambda x: laplace(x, sensitivity=1, epsilon=1.0), integers),
        "gaussian": (lambda x: gaussian(x, sensitivity=1, epsilon=1.0, delta=1e-6), integers),
        "vector_sum": (lambda x: vector_sum(x, clip=1.0, epsilon=1.0, delta=1e-6), vectors),
    }
