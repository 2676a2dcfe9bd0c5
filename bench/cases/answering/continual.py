"""Counts that go on, one step at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fastdp import ContinualCounter, Randomness

from ..registry import Call, Case, Side, make_case, within_seconds

_case = partial(make_case, "answering")

STEPS = 1000  # of a call
ROW = 20_000  # what numpy goes back to: it has no recursion
MICROSECONDS = 5.0


def _steps(n: int) -> Call:
    counter = ContinualCounter(rho=0.5)

    def call() -> list[float]:
        return [counter.add(1) for _ in range(n)]

    return call


def _numpy_rows(n: int) -> Call:
    """The square root of the matrix row by row, at a step that has so many before it."""
    k = np.arange(1, ROW)
    row = np.concatenate(([1.0], np.cumprod((2 * k - 1) / (2 * k))))[::-1].copy()
    rng = np.random.default_rng()
    noise = rng.normal(size=ROW)

    def call() -> list[float]:
        found = []
        for t in range(n):
            noise[t % ROW] = rng.normal()
            found.append(t + float(row @ noise))
        return found

    return call


def _drawn(n: int) -> Any:
    seeds = [Randomness(seed=seed) for seed in range(64)]
    return np.array([ContinualCounter(rho=0.5, rng=rng).add_many(np.ones(300)) for rng in seeds])


CASES: tuple[Case, ...] = (
    _case(
        "continual-step",
        "a step of a continual counter whose length is not known",
        STEPS,
        _steps,
        (None, within_seconds(STEPS * MICROSECONDS * 1e-6)),
        (Side("numpy, rows of 20,000", _numpy_rows), None),
        oracle="running sums",
        drawn=_drawn,
        rho=0.5,
    ),
)
