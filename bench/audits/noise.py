"""Audits of noise: on one value, on a value of eight, and on running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...answering.continual_counter import ContinualCounter
from ...mechanisms.noise import gaussian, gaussian_noise, laplace
from ...privacy.gaussian_dp import GaussianDP
from ...privacy.guarantees import PureDP
from .registry import Accuracy, Audit, Floats, Many, Outputs, distance, falls, looped


def _noise_of(scale: float) -> Many:
    return lambda value, n: laplace(np.full(n, value), sensitivity=scale, epsilon=1.0)


def _gaussian_of(sensitivity: float) -> Many:
    return lambda value, n: gaussian(np.full(n, value), sensitivity=sensitivity, rho=0.5)


_STATED = GaussianDP.of(gaussian_noise(True, 1, 8.0, 0.5, None, None, None, "replace-one").guarantee)

_STEPS = np.zeros(8, np.int64)
_ONE_MORE = np.append(1, _STEPS[1:])


def _totals(rho: float) -> Many:
    return looped(lambda steps: ContinualCounter(rho=rho, length=8).add_many(steps))


def _total(outputs: Outputs) -> Floats:
    return -np.asarray(outputs.sum(axis=1), np.float64)


def _noisy_total(steps: Any) -> Any:
    """A counter that adds noise to each step as if nobody saw the totals of others."""
    return np.cumsum(steps) + gaussian(np.zeros(8, np.int64), sensitivity=1, rho=0.5)


AUDITS: tuple[Audit, ...] = (
    Audit(
        "laplace", PureDP(1.0), _noise_of(1.0), 41, 42, falls, sees=0.92,
        accuracy=Accuracy(bounds.laplace(sensitivity=1, epsilon=1.0), distance(41)),
        once=lambda value: laplace(value, sensitivity=1, epsilon=1.0),
        mutants={"half of the noise": _noise_of(0.5), "a tenth less noise": _noise_of(0.9)},
    ),
    Audit(
        "gaussian", _STATED, _gaussian_of(8.0), 0, 8, falls, sees=0.75,
        accuracy=Accuracy(bounds.gaussian(sensitivity=8, rho=0.5), distance(0)),
        once=lambda value: gaussian(value, sensitivity=8, rho=0.5),
        mutants={"half of the noise": _gaussian_of(4.0), "a quarter less noise": _gaussian_of(6.0)},
    ),
    Audit(
        "ContinualCounter", GaussianDP(1.0), _totals(0.5), _STEPS, _ONE_MORE, _total, sees=0.35, runs=4_000,
        accuracy=Accuracy(bounds.continual_counter(8, rho=0.5, length=8, count=8), distance(0)),
        mutants={"one share of the noise for each total": looped(_noisy_total)},
    ),
)  # fmt: skip
