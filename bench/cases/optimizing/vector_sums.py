"""Sums and means of vectors, cut to a norm."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Case, Side, faster, make_case
from ..traffic import read_once
from .inputs import DELTA, EPSILON, MILLION, calls

_case = partial(make_case, "optimizing")

VECTOR_CLIP = 4.0
VECTOR_NOISE = {"gaussian": 4.225 * 2 * VECTOR_CLIP, "laplace": 2 * VECTOR_CLIP * np.sqrt(20)}


@lru_cache(maxsize=1)
def vectors(n: int) -> Any:
    """About half of them are longer than the norm that they are cut to."""
    return np.random.default_rng(0).normal(size=(n, 20))


def release(function: Any, kind: str, n: int) -> Any:
    X = vectors(n)
    delta = DELTA if kind == "gaussian" else 0.0
    return lambda: function(X, clip=VECTOR_CLIP, epsilon=EPSILON, delta=delta, noise=kind)


def _numpy_release(kind: str, *, mean: bool) -> Side:
    def make(n: int) -> Call:
        X, rng = vectors(n), np.random.default_rng()
        draw = rng.normal if kind == "gaussian" else rng.laplace

        def call() -> Any:
            norms = np.sqrt(np.einsum("ij,ij->i", X, X))
            total = np.minimum(1, VECTOR_CLIP / norms) @ X + draw(scale=VECTOR_NOISE[kind], size=20)
            return total / n if mean else total

        return call

    return Side("numpy", make)


def _vector_case(function: Any, kind: str) -> Case:
    def drawn(n: int) -> Any:
        few, again = min(n, 5_000), release(function, kind, min(n, 5_000))
        return kind, vectors(few), VECTOR_CLIP, function is fastdp.vector_mean, [again() for _ in range(200)]

    name = function.__name__.replace("_", "-")
    return _case(
        f"{name}-{kind}",
        f"{function.__name__} of 20 coordinates, float64, {kind} noise",
        MILLION,
        calls(partial(release, function, kind), "value"),
        (_numpy_release(kind, mean=function is fastdp.vector_mean), faster("numpy", avx512=4, avx2=3)),
        traffic=read_once(8 * 20),
        oracle="clipped sums with noise",
        drawn=drawn,
        epsilon=EPSILON,
    )


CASES = (
    *(_vector_case(fastdp.vector_sum, kind) for kind in ("gaussian", "laplace")),
    _vector_case(fastdp.vector_mean, "gaussian"),
)
