"""Audits of counts, sums, means and variances, of groups, and of a summary of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import bounds
from ...mechanisms.noise import laplace
from ...privacy.budget import Budget
from ...privacy.guarantees import ApproxDP, PureDP
from ...records.partition import partition
from ...statistics.counts import bincount, count, histogram
from ...statistics.groups import count_by, sum_by
from ...statistics.means import mean, sum, variance
from ...statistics.summaries import describe
from .registry import Accuracy, Audit, Floats, Many, Outputs, distance, falls, looped

_LABELS = np.array([0] * 20 + [1] * 20)
_FLIPPED = np.append(1, _LABELS[1:])
_NUMBERS = np.append(np.arange(40) // 2, 20)  # 41 of them, between 0 and 20
_LOWER = np.append(_NUMBERS[:-1], 0)
_SAME = np.zeros(41, np.int64)
_ONE_AWAY = np.append(_SAME[:-1], 20)
_RANGE = (0, 20)


def _first_over_second(counts: Outputs) -> Floats:
    return (counts[:, 0] - counts[:, 1]).astype(np.float64)


def _column(name: str, values: Any) -> dict[str, NDArray[Any]]:
    return {name: values}


def _sums_by(epsilon: float) -> Many:
    """Of each of two labels the sum of its rows, of which each has a 1; 0 where the label is not released."""

    def call(labels: Any) -> list[float]:
        table = {"label": labels, "one": np.ones(len(labels))}
        found = sum_by(table, "one", "label", bounds=(0, 1), epsilon=epsilon, delta=0.01)
        sums = dict(zip(found.labels, found.sums, strict=True))
        return [float(sums.get(label, 0.0)) for label in (0, 1)]

    return looped(call)


def _mean_and_median(epsilon: float) -> Many:
    def call(values: Any) -> list[float]:
        of = describe(_column("v", values), {"v": _RANGE}, qs=(0.5,), epsilon=epsilon).numbers["v"].values
        return [of["mean"], of["50%"]]

    return looped(call)


def _parts(epsilon: float) -> Many:
    """A count of each of two parts: a record that changes its label leaves one and enters the other."""

    def call(labels: Any) -> list[float]:
        with Budget(epsilon=2 * epsilon):
            parts = partition(_column("label", labels), by="label", keys=[0, 1])
            return [count(part["label"], epsilon=epsilon, neighbors="add-remove").value for part in parts.values()]

    return looped(call)


AUDITS: tuple[Audit, ...] = (
    Audit(
        "count", PureDP(1.0), looped(lambda v: count(v, epsilon=1.0).value), np.arange(8.0),
        np.append(np.arange(7.0), np.nan), lambda out: out.astype(float), sees=0.5, runs=8_000,
        accuracy=Accuracy(bounds.count(epsilon=1.0), distance(8)),
        mutants={"half of the noise": looped(lambda v: count(v, epsilon=2.0).value)},
    ),
    Audit(
        "sum", PureDP(1.0), looped(lambda v: float(sum(v, bounds=_RANGE, epsilon=1.0))), _NUMBERS, _LOWER,
        lambda out: out, sees=0.4, runs=4_000,
        accuracy=Accuracy(bounds.sum(bounds=_RANGE, epsilon=1.0), distance(float(_NUMBERS.sum()))),
        mutants={"bounds of half the width": looped(lambda v: float(sum(v - 5, bounds=(-5, 5), epsilon=2.0)))},
    ),
    Audit(
        "mean", PureDP(1.0), looped(lambda v: float(mean(v, bounds=_RANGE, epsilon=1.0))), _NUMBERS, _LOWER,
        lambda out: out, sees=0.55, runs=4_000,
        accuracy=Accuracy(bounds.mean(41, bounds=_RANGE, epsilon=1.0), distance(float(_NUMBERS.mean()))),
        mutants={"bounds of half the width": looped(lambda v: float(mean(v, bounds=(5, 15), epsilon=2.0)))},
    ),
    Audit(
        "variance", PureDP(1.0), looped(lambda v: float(variance(v, bounds=_RANGE, epsilon=1.0))), _ONE_AWAY, _SAME,
        lambda out: out, sees=0.4, runs=4_000,
        accuracy=Accuracy(bounds.variance(41, bounds=_RANGE, epsilon=1.0), distance(float(_ONE_AWAY.var()))),
        mutants={"three times epsilon": looped(lambda v: float(variance(v, bounds=_RANGE, epsilon=3.0)))},
    ),
    Audit(
        "bincount", PureDP(1.0), looped(lambda v: bincount(v, 2, epsilon=1.0).counts), _LABELS, _FLIPPED,
        _first_over_second, sees=0.45, runs=8_000,
        accuracy=Accuracy(bounds.histogram(2, epsilon=1.0), distance(np.bincount(_LABELS))),
        mutants={
            "a sensitivity of 1 where a record moves two counts": looped(
                lambda v: laplace(np.bincount(v, minlength=2), sensitivity=1, epsilon=1.0)
            )
        },
    ),
    Audit(
        "histogram", PureDP(1.0), looped(lambda v: histogram(v, [0.0, 0.5, 1.0], epsilon=1.0).counts),
        _LABELS.astype(float), _FLIPPED.astype(float), _first_over_second, sees=0.1, runs=4_000,
        accuracy=Accuracy(bounds.histogram(2, epsilon=1.0), distance(np.bincount(_LABELS))),
        mutants={"three times epsilon": looped(lambda v: histogram(v, [0.0, 0.5, 1.0], epsilon=3.0).counts)},
    ),
    Audit(
        "count_by", ApproxDP(1.0, 0.01), looped(lambda v: len(count_by(v, epsilon=1.0, delta=0.01))), _LABELS,
        np.append(7, _LABELS[1:]), falls, sees=0.0, runs=4_000,
        mutants={"no threshold": looped(lambda v: len(np.unique(v)))},
    ),
    Audit(
        "sum_by", ApproxDP(2.0, 0.01), _sums_by(2.0), _LABELS, _FLIPPED, _first_over_second, sees=0.1, runs=3_000,
        mutants={"five times epsilon": _sums_by(10.0)},
    ),
    Audit(
        "describe", PureDP(2.0), _mean_and_median(2.0), _NUMBERS, _LOWER, lambda out: out[:, 0], sees=0.0, runs=250,
        mutants={"fifty times epsilon": _mean_and_median(100.0)},
    ),
    Audit(
        "partition", PureDP(1.0), _parts(0.5), _LABELS, _FLIPPED, _first_over_second, sees=0.05, runs=1_500,
        mutants={"parts of four times the epsilon": _parts(2.0)},
    ),
)  # fmt: skip
