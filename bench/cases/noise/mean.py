"""A clipped mean with Laplace noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp

from ...peers.inputs import float_values, int_values
from ..registry import Call, Side, beside, faster, make_case
from ..traffic import NUMBERS
from .inputs import N

_case = partial(make_case, "noise")

MOST = 1_000  # of values that a mean is taken of


def _mean(n: int) -> Call:
    """The sum is exact, and so is its noise."""
    values = int_values(n)
    return lambda: fastdp.laplace(int(values.clip(0, MOST).sum()), sensitivity=MOST, epsilon=1.0) / n


def _statistic(n: int) -> Call:
    values = float_values(n)
    return lambda: float(fastdp.statistics.mean(values, bounds=(0, MOST), epsilon=1.0))


def _variance(n: int) -> Call:
    values = float_values(n)
    return lambda: float(fastdp.statistics.variance(values, bounds=(0, MOST), epsilon=1.0))


def _numpy_variance(n: int) -> Call:
    values, rng = float_values(n), np.random.default_rng()
    return lambda: values.clip(0, MOST).var() + rng.laplace(scale=MOST**2 / n)


def _sum(n: int) -> Call:
    values = int_values(n)
    return lambda: int(fastdp.statistics.sum(values, bounds=(0, MOST), epsilon=1.0))


def _numpy_sum(n: int) -> Call:
    values, rng = int_values(n), np.random.default_rng()
    return lambda: values.clip(0, MOST).sum() + rng.laplace(scale=MOST)


def _deviations(n: int) -> Any:
    """Squared, over the width of the bounds: the noise of their mean is then as large as that of a mean."""
    clipped = float_values(n).clip(0, MOST)
    return (clipped - clipped.mean()) ** 2 / MOST


def _numpy_mean(n: int, values_of: Callable[[int], Any] = int_values) -> Call:
    values, rng = values_of(n), np.random.default_rng()
    return lambda: values.clip(0, MOST).mean() + rng.laplace(scale=MOST / n)


CASES = (
    _case(
        "mean",
        f"the mean of 10^6 int64 within 0 and {MOST:,}, clipped, with Laplace noise",
        N,
        _mean,
        (Side("numpy", _numpy_mean), None),
        (beside("diffprivlib", "mean", epsilon=1.0, most=MOST), None),
        traffic=NUMBERS,
        oracle="a mean",
        drawn=lambda n: (int_values(n), _mean(n)()),
        epsilon=1.0,
    ),
    _case(
        "statistics-mean",
        f"the mean of 10^6 float64 within 0 and {MOST:,}, clipped, with Laplace noise: statistics.mean",
        N,
        _statistic,
        (Side("numpy", partial(_numpy_mean, values_of=float_values)), faster("numpy", avx512=4.0, avx2=3.0)),
        traffic=NUMBERS,
        oracle="a mean",
        drawn=lambda n: (float_values(n).clip(0, MOST), _statistic(n)()),
        epsilon=1.0,
    ),
    _case(
        "statistics-variance",
        f"the variance of 10^6 float64 within 0 and {MOST:,}, clipped, with Laplace noise: statistics.variance",
        N,
        _variance,
        (Side("numpy", _numpy_variance), None),
        traffic=NUMBERS,
        oracle="a mean",
        drawn=lambda n: (_deviations(n), _variance(n)() / MOST),
        epsilon=1.0,
    ),
    _case(
        "statistics-sum",
        f"the sum of 10^6 int64 within 0 and {MOST:,}, clipped, with Laplace noise: statistics.sum",
        N,
        _sum,
        (Side("numpy", _numpy_sum), None),
        traffic=NUMBERS,
        oracle="a mean",
        drawn=lambda n: (int_values(n).clip(0, MOST), _sum(n)() / n),
        epsilon=1.0,
    ),
)
