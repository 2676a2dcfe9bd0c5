"""A clipped mean with Laplace noise."""

from __future__ import annotations

from functools import partial

import numpy as np

import fastdp

from ...peers.inputs import int_values
from ..registry import Call, Side, beside, make_case
from .inputs import N

_case = partial(make_case, "noise")

MOST = 1_000  # of values that a mean is taken of


def _mean(n: int) -> Call:
    """The sum is exact, and so is its noise."""
    values = int_values(n)
    return lambda: fastdp.laplace(int(values.clip(0, MOST).sum()), sensitivity=MOST, epsilon=1.0) / n


def _numpy_mean(n: int) -> Call:
    values, rng = int_values(n), np.random.default_rng()
    return lambda: values.clip(0, MOST).mean() + rng.laplace(scale=MOST / n)


CASES = (
    _case(
        "mean",
        f"the mean of 10^6 int64 within 0 and {MOST:,}, clipped, with Laplace noise",
        N,
        _mean,
        (Side("numpy", _numpy_mean), None),
        (beside("diffprivlib", "mean", epsilon=1.0, most=MOST), None),
        oracle="a mean",
        drawn=lambda n: (int_values(n), _mean(n)()),
        epsilon=1.0,
    ),
)
