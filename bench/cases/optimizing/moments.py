"""Least squares from noisy second moments, alone and as `private_erm` takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp
from fastdp import sets

from ...peers.inputs import points as records
from ..registry import Call, Side, make_case
from .inputs import DELTA, EPSILON, LOSSES, MILLION, RADIUS

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


def _drawn_moments(n: int) -> Any:
    return (*records(n, 20, "float64"), _least_squares(20)(n)())


CASES = (
    _case(
        "least-squares",
        "noisy_least_squares, 20 columns, float64",
        MILLION,
        lambda n: lambda: _least_squares(20)(n)().w,
        (Side("numpy X.T @ X", _numpy_moments(20)), None),
        oracle="noisy moments",
        drawn=_drawn_moments,
    ),
    _case(
        "private-erm",
        "private_erm, squared loss, 20 columns, float64: it takes noisy_least_squares",
        MILLION,
        lambda n: lambda: _erm(n)().w,
        (Side("noisy_least_squares", lambda n: lambda: _least_squares(20)(n)().w), None),
        (Side("numpy X.T @ X", _numpy_moments(20)), None),
        oracle="noisy moments",
        drawn=_drawn_minimum,
        epsilon=EPSILON,
        delta=DELTA,
    ),
)
