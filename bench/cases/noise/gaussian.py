"""Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp

from ...peers.inputs import float_values, int_values
from ..registry import Call, Case, Side, beside, faster, make_case
from ..traffic import GAUSSIAN
from .inputs import PEER_N, N, in_words

_case = partial(make_case, "noise")


def _gaussian(values: Any, sigma: float) -> Any:
    return fastdp.gaussian(values, sensitivity=1, rho=1 / (2 * sigma**2))


def our_gaussian(sigma: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array = int_values(n)
        return lambda: _gaussian(array, sigma)

    return make


def numpy_gaussian(sigma: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        rng = np.random.default_rng()
        return lambda: rng.normal(scale=sigma, size=n)

    return make


def gaussian_drawn(sigma: float) -> Callable[[int], Any]:
    return lambda n: _gaussian(int_values(n), sigma) - int_values(n)


def _gaussian_case(sigma: float) -> Case:
    return _case(
        f"gaussian-int64-{in_words(sigma)}",
        f"Gaussian noise, int64, sigma {sigma:,.0f}",
        N,
        our_gaussian(sigma),
        (Side("numpy", numpy_gaussian(sigma)), faster("numpy", avx512=3.5, avx2=1.8)),
        (beside("opendp", "gaussian", PEER_N, scale=sigma), None),
        traffic=GAUSSIAN,
        oracle="gaussian_law",
        drawn=gaussian_drawn(sigma),
        headline=sigma == 100,
        sigma=sigma,
    )


def _float_gaussian(n: int) -> Call:
    array = float_values(n)
    return lambda: _gaussian(array, 100.0)


CASES = (
    *(_gaussian_case(sigma) for sigma in (1.0, 4.0, 100.0, 1e6)),
    _case(
        "gaussian-float64-100",
        "Gaussian noise, float64, sigma 100",
        N,
        _float_gaussian,
        (Side("numpy", numpy_gaussian(100.0)), None),
        traffic=GAUSSIAN,
        oracle="gaussian_law, rounded",
        drawn=lambda n: _float_gaussian(n)() - float_values(n),
        sigma=100.0,
    ),
)
