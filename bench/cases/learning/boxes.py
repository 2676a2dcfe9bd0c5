"""Learn a box by every method."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Case, Side, make_case
from ..traffic import read_once
from .inputs import DELTA, EPSILON, MILLION, SURE, K, enough

_case = partial(make_case, "learning")

IN_PLANE, FEW_IN_PLANE = 2_000, 40  # records of which all boxes are tried; numpy's


@lru_cache(maxsize=1)
def numbers(n: int, d: int) -> tuple[Any, Any]:
    """A tenth of the records is outside in each column."""
    X = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (n, d))
    side = int(0.9 * 2**63)
    return X, (np.abs(X) < side).all(axis=1)


def _box(n: int, d: int, method: str, **arguments: Any) -> Any:
    X, y = numbers(n, d)
    arguments = dict[str, Any](epsilon=EPSILON, delta=DELTA, method=method, realizable=True) | arguments
    return lambda: fastdp.learn_box(X, y, **arguments)


def _numpy_box(n: int) -> Call:
    X, y = numbers(n, K)

    def call() -> Any:
        inside = X[y]
        return inside.min(axis=0), inside.max(axis=0)

    return call


@lru_cache(maxsize=1)
def plane(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).integers(0, 1 << 16, (n, 2))
    return X, (np.abs(X - (1 << 15)) < int(0.9 * (1 << 15))).all(axis=1)


def _any_box(n: int, **arguments: Any) -> Any:
    X, y = plane(n)
    arguments = dict[str, Any](domain_bits=16, signed=False, epsilon=EPSILON, method="exponential") | arguments
    return lambda: fastdp.learn_box(X, y, **arguments)


def _numpy_any_box(n: int) -> Call:
    """Gumbel noise for each of the n^4 / 4 boxes whose sides are at records; for each two of the one column, those of
    the other at once."""
    X, y = plane(n)
    by_first, by_second = np.sort(X[:, 0]), np.argsort(X[:, 1])
    first, gains, rng = X[by_second, 0], np.where(y[by_second], 1, -1), np.random.default_rng()
    upper = np.triu(np.ones((n + 1, n + 1), np.bool_))

    def call() -> Any:
        best, box = -np.inf, None
        for i, low in enumerate(by_first):
            for high in by_first[i:]:
                sums = np.concatenate(([0], np.cumsum(gains * ((first >= low) & (first <= high)))))
                scores = np.where(upper, EPSILON / 2 * (sums[None] - sums[:, None]), -np.inf)
                scores += rng.gumbel(size=scores.shape)
                at = int(np.argmax(scores))
                if scores.flat[at] > best:
                    best, box = scores.flat[at], (low, high, *divmod(at, n + 1))
        return box

    return call


def _box_case(method: str) -> Case:
    def drawn(n: int) -> Any:
        return (*numbers(enough(n), K), _box(enough(n), K, method, beta=SURE)())

    return _case(
        f"box-{method}",
        f"learn_box, {method}, {K} columns of 64-bit integers, beside the least and greatest of positives",
        MILLION,
        lambda n: _box(n, K, method),
        (Side("numpy", _numpy_box), None),
        traffic=read_once(8 * K + 1),
        oracle="a box",
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
    )


CASES = (
    *map(_box_case, ("peel", "interior-point")),
    _case(
        "box-exponential",
        "learn_box, exponential: all boxes in the plane, 2 columns of 16 bits",
        IN_PLANE,
        _any_box,
        (Side("numpy", _numpy_any_box, n=FEW_IN_PLANE), None),
        oracle="a box",
        drawn=lambda n: (*plane(IN_PLANE), _any_box(IN_PLANE, beta=SURE)()),
        rounds=5,
        epsilon=EPSILON,
    ),
)
