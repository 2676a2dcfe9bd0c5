"""Least squares from noisy second moments, alone and as `private_erm` takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp
from fastdp import sets

from ...peers.inputs import points as records
from ..registry import Call, Case, Side, faster, make_case
from ..traffic import read_once
from .inputs import DELTA, EPSILON, LOSSES, MILLION, RADIUS, calls

_case = partial(make_case, "optimizing")


def _least_squares(d: int) -> Callable[[int], Any]:
    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        return lambda: fastdp.noisy_least_squares(
            X, y, loss=LOSSES["squared"], over=sets.Ball(RADIUS), epsilon=EPSILON, delta=DELTA, noise="gaussian"
        )

    return make


def _numpy_moments(d: int) -> Callable[[int], Call]:
    """Neither cut to the bounds, nor with noise, nor minimised over the ball."""

    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        return lambda: np.linalg.solve(X.T @ X, X.T @ y)

    return make


def _erm(n: int) -> Any:
    X, y = records(n, 20, "float64")
    arguments: dict[str, Any] = {"loss": LOSSES["squared"], "over": sets.Ball(RADIUS)}
    return lambda: fastdp.private_erm(X, y, **arguments, epsilon=EPSILON, delta=DELTA)


def _drawn_minimum(n: int) -> Any:
    found = _erm(n)()
    return (*records(n, 20, "float64"), found.details)


def _moments_case(name: str, n: int, d: int, avx512: float, avx2: float) -> Case:
    return _case(
        name,
        f"noisy_least_squares, {d} columns, float64",
        n,
        calls(_least_squares(d), "w"),
        (Side("numpy X.T @ X", _numpy_moments(d)), faster("numpy X.T @ X", avx512=avx512, avx2=avx2)),
        traffic=read_once(8 * (d + 1)),
        oracle="noisy moments",
        drawn=lambda n: (*records(n, d, "float64"), _least_squares(d)(n)()),
    )


CASES = (
    _moments_case("least-squares", MILLION, 20, 1.2, 1),
    _moments_case("least-squares-1e5x200", 100_000, 200, 3, 1.5),
    _case(
        "private-erm",
        "private_erm, squared loss, 20 columns, float64: it takes noisy_least_squares",
        MILLION,
        calls(_erm, "w"),
        (Side("noisy_least_squares", calls(_least_squares(20), "w")), None),
        (Side("numpy X.T @ X", _numpy_moments(20)), None),
        traffic=read_once(8 * 21),
        oracle="noisy moments",
        drawn=_drawn_minimum,
        epsilon=EPSILON,
        delta=DELTA,
    ),
)
