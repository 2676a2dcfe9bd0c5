"""Whether the time of a call depends on the values of the records: two classes of records of one shape.

Their calls are interleaved at random; Welch's t of the times that remain without the slowest tenth. Beyond 4.5,
the usual threshold of such tests, the time depends on the class.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from ...answering.queries import marginals
from ...answering.release_marginals import release_marginals
from ...mechanisms.noise import gaussian, laplace
from ...mechanisms.selection import exponential_mechanism
from ...optimizing import losses, sets
from ...optimizing.descent import noisy_projected_gradient_descent
from ...optimizing.moments import noisy_least_squares
from ...optimizing.vector_sums import vector_mean, vector_sum
from ...records.domain import Domain

THRESHOLD = 4.5


@dataclass(frozen=True)
class Case:
    """A call, two classes of records, and whether docs/security.md says that its time does not depend on them.

    Where the operations are the same and their speed is not, many calls show it: by how much is what matters there.
    """

    call: Callable[[Any], object]
    classes: list[Any]
    independent: bool = True
    runs: int = 100_000


def welch(a: Any, b: Any) -> float:
    """Welch's t of two samples."""
    return float((a.mean() - b.mean()) / sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))


def compare(case: Case, runs: int, seed: int) -> tuple[float, float]:
    """Welch's t of the times of two classes, and by what share calls on the second take longer.

    Records are made in one place before each call, by the same reads of both classes: copied from where each class
    stands, they left the caches in two states, and two copies of the same records gave a t of -187 over 100,000 calls.
    """
    first_bits, second_bits = (each.view(np.int64) for each in case.classes)
    apart, chosen, records = first_bits ^ second_bits, np.empty_like(first_bits), case.classes[0].copy()
    order = np.random.default_rng(seed).integers(2, size=runs)
    taken = np.zeros(runs)
    for i, kind in enumerate(order.tolist()):
        np.multiply(apart, kind, out=chosen)
        np.bitwise_xor(first_bits, chosen, out=records.view(np.int64))
        start = time.perf_counter_ns()
        case.call(records)
        taken[i] = time.perf_counter_ns() - start
    kept = taken <= np.quantile(taken, 0.9)
    first, second = taken[kept & (order == 0)], taken[kept & (order == 1)]
    return welch(first, second), float(second.mean() / first.mean() - 1)


def cases(rng: np.random.Generator) -> dict[str, Case]:
    """Of each call whose operations do not depend on the records, by docs/security.md: two classes of records."""
    n = 1000
    points = rng.normal(size=(n, 4))
    integers = [np.zeros(n, np.int64), rng.integers(-(2**40), 2**40, n)]
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    vectors = [np.full((n, 4), 0.1), unit]
    labels = np.ones(n), rng.choice([-1.0, 1.0], n)
    labelled = [np.column_stack(both) for both in zip(vectors, labels, strict=True)]
    domain = Domain(a=64, b=64)
    rows = [np.zeros((n, 2), np.int64), rng.integers(0, 64, (n, 2))]
    price: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    noisy = {"sensitivity": 1, **price}
    ball = sets.Ball(1.0)
    logistic: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "over": ball, "steps": 5, "curvature": "declared"}
    squared: dict[str, Any] = {"loss": losses.SquaredError(x_norm=1.0, y_bound=1.0), "over": ball}
    little: Any = partial(Case, independent=False, runs=10_000)
    return {
        "laplace": Case(lambda x: laplace(x, sensitivity=1, epsilon=1.0), integers),
        "gaussian": Case(lambda x: gaussian(x, **noisy), integers),
        "vector_sum": Case(lambda x: vector_sum(x, clip=1.0, **price), vectors),
        "vector_mean": Case(lambda x: vector_mean(x, clip=1.0, **price), vectors),
        "exponential_mechanism by buckets": little(
            lambda x: exponential_mechanism(x, sensitivity=2**40, epsilon=1.0, method="buckets"), integers
        ),
        "noisy_projected_gradient_descent": little(
            lambda x: noisy_projected_gradient_descent(x[:, :4], x[:, 4], **logistic, **price), labelled
        ),
        "noisy_least_squares": little(
            lambda x: noisy_least_squares(x[:, :4], x[:, 4], **squared, **price), labelled
        ),
        "release_marginals": little(
            lambda x: release_marginals(x, domain, marginals(domain, 2), fit=None, **price), rows
        ),
    }  # fmt: skip
