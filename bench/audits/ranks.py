"""Audits of medians, quantiles and interior points: columns whose records are all at one end, or one at the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...mechanisms.interior_point import interior_point
from ...mechanisms.many_quantiles import quantiles
from ...mechanisms.quantiles import median, quantile
from ...privacy.guarantees import PureDP
from .registry import Accuracy, Audit, Floats, Many, Outputs, Score, looped

_TWO, _APART = np.array([0, 0]), np.array([0, 31])
_FOUR, _ONE_APART = np.zeros(4, np.int64), np.array([0, 0, 0, 31])
_MANY = np.sort(np.random.default_rng(3).integers(0, 32, 400))


def _ranks_off(qs: Any) -> Score:
    """By how many ranks of _MANY each output is off, the farthest of several quantiles."""
    targets = np.asarray(qs) * len(_MANY)

    def errors(outputs: Outputs) -> Floats:
        below, up_to = np.searchsorted(_MANY, outputs, "left"), np.searchsorted(_MANY, outputs, "right")
        off = np.maximum(np.maximum(below - targets, targets - up_to), 0.0)
        return np.asarray(off.reshape(len(off), -1).max(axis=1), np.float64)

    return errors


def _at_0(outputs: Outputs) -> Floats:
    return (outputs <= 0).astype(np.float64)


def _median(epsilon: float) -> Many:
    return looped(lambda v: median(v, domain_bits=5, epsilon=epsilon))


def _quantile(epsilon: float) -> Many:
    return looped(lambda v: quantile(v, 0.75, domain_bits=5, epsilon=epsilon))


def _quantiles(epsilon: float) -> Many:
    return looped(lambda v: quantiles(v, [0.25, 0.75], domain_bits=5, epsilon=epsilon))


def _interior(epsilon: float) -> Many:
    return looped(lambda v: interior_point(v, domain_bits=5, epsilon=epsilon))


def _outside(outputs: Outputs) -> Floats:
    """1 where an output is below all of eight records of 15 and 16, or above: its bound is a probability."""
    return ((outputs < 15) | (outputs > 16)).astype(np.float64)


AUDITS: tuple[Audit, ...] = (
    Audit(
        "median", PureDP(2.0), _median(2.0), _TWO, _APART, _at_0, sees=0.4, runs=2_000,
        accuracy=Accuracy(bounds.median(domain_bits=5, epsilon=2.0), _ranks_off(0.5), data=_MANY),
        mutants={"four times epsilon": _median(8.0)},
    ),
    Audit(
        "quantile", PureDP(2.0), _quantile(2.0), _FOUR, _ONE_APART, _at_0, sees=0.2, runs=1_500,
        accuracy=Accuracy(bounds.quantile(0.75, domain_bits=5, epsilon=2.0), _ranks_off(0.75), data=_MANY),
        mutants={"six times epsilon": _quantile(12.0)},
    ),
    Audit(
        "quantiles", PureDP(2.0), _quantiles(2.0), _FOUR, _ONE_APART, lambda out: _at_0(out[:, 1]), sees=0.0,
        runs=1_500,
        accuracy=Accuracy(
            bounds.quantiles([0.25, 0.75], len(_MANY), domain_bits=5, epsilon=2.0), _ranks_off([0.25, 0.75]), data=_MANY
        ),
        mutants={"twelve times epsilon": _quantiles(24.0)},
    ),
    Audit(
        "interior_point", PureDP(2.0), _interior(2.0), _TWO, _APART, _at_0, sees=0.4, runs=2_000,
        accuracy=Accuracy(
            bounds.interior_point(8, 5, epsilon=2.0), _outside, beta=None, data=np.array([15] * 4 + [16] * 4)
        ),
        mutants={"four times epsilon": _interior(8.0)},
    ),
)  # fmt: skip
