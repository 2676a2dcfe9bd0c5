"""Audits of tests against a noisy threshold: one positive, several, several with their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...mechanisms.numeric_sparse import NumericSparse
from ...mechanisms.sparse_vector import SparseVector
from ...privacy.guarantees import PureDP
from .registry import Accuracy, Audit, Floats, Many, Outputs, Score, equals, looped
from .transcripts import above_threshold, above_threshold_once

_THRESHOLD = 10
_TWO_ABOVE, _EQUAL = np.array([9, 9, 11, 11]), np.full(4, _THRESHOLD)


def _places(sensitivity: float) -> Many:
    """Which of some values lie above, of up to two positives, as 0 and 1."""

    def call(values: Any) -> Any:
        watch = SparseVector(_THRESHOLD, sensitivity=sensitivity, epsilon=1.0, positives=2)
        found = np.zeros(len(values), np.int64)
        found[watch.places_above(values)] = 1
        return found

    return looped(call)


def _values(epsilon: float) -> Many:
    """The place of the one positive and its value; one beyond the last place, and 0, where there is none."""

    def call(values: Any) -> Any:
        watch = NumericSparse(_THRESHOLD, sensitivity=1, epsilon=epsilon, positives=1)
        places, answers = watch.answer_many(values)
        return (places[0], answers[0]) if len(places) else (len(values), 0)

    return looped(call)


def wrong_by(positive: Outputs, values: Any, positives: int) -> Floats:
    """By how much the farthest of the answered values is on the other side of the threshold than was said."""
    answered = np.cumsum(positive, axis=1) - positive < positives
    wrong = np.where(positive, _THRESHOLD - np.asarray(values), np.asarray(values) - _THRESHOLD)
    return np.asarray(np.where(answered, np.maximum(wrong, 0), 0).max(axis=1), np.float64)


def _first(values: Any) -> Score:
    return lambda places: wrong_by(np.asarray(places)[:, None] == np.arange(len(values)), values, 1)


def _first_and_its_value(outputs: Outputs) -> Floats:
    places = outputs[:, 0].astype(int)
    found = places < len(_TWO_ABOVE)
    of_values = np.where(found, np.abs(outputs[:, 1] - _TWO_ABOVE[np.where(found, places, 0)]), 0)
    return np.maximum(_first(_TWO_ABOVE)(places), of_values)


_EIGHT_BELOW = [9] * 8 + [11]

AUDITS: tuple[Audit, ...] = (
    Audit(
        "AboveThreshold", PureDP(1.0), lambda v, n: above_threshold(_THRESHOLD, v, 1.0, n), _EIGHT_BELOW,
        [_THRESHOLD] * 9, equals(8), sees=0.5,
        accuracy=Accuracy(bounds.above_threshold(9, sensitivity=1, epsilon=1.0), _first(_EIGHT_BELOW)),
        once=lambda values: above_threshold_once(_THRESHOLD, values, 1.0),
        mutants={
            "a tenth of the noise of queries": lambda v, n: above_threshold(_THRESHOLD, v, 1.0, n, query_scale=0.1)
        },
    ),
    Audit(
        "SparseVector", PureDP(1.0), _places(1.0), _TWO_ABOVE, _EQUAL,
        lambda out: (out[:, 2:].sum(axis=1) - out[:, :2].sum(axis=1)).astype(float), sees=0.01, runs=10_000,
        accuracy=Accuracy(
            bounds.sparse_vector(4, positives=2, sensitivity=1, epsilon=1.0),
            lambda out: wrong_by(out, _TWO_ABOVE, 2),
        ),
        mutants={"a tenth of the sensitivity": _places(0.1)},
    ),
    Audit(
        "NumericSparse", PureDP(1.0), _values(1.0), _TWO_ABOVE, _EQUAL, lambda out: (out[:, 0] >= 2).astype(float),
        sees=0.01, runs=10_000,
        accuracy=Accuracy(
            bounds.numeric_sparse(4, positives=1, sensitivity=1, epsilon=1.0), _first_and_its_value
        ),
        mutants={"ten times epsilon": _values(10.0)},
    ),
)  # fmt: skip
