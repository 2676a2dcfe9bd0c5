"""Audits of learners: one record whose label, or whose point, is another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...learning.boxes import learn_box
from ...learning.conjunctions import learn_conjunction
from ...learning.decision_lists import learn_decision_list
from ...learning.finite_class import learn_from_class
from ...learning.trees import learn_tree
from ...privacy.guarantees import PureDP
from .registry import Accuracy, Audit, Floats, Many, Outputs, Score, equals, looped
from .transcripts import conjunction_errors, conjunctions

_LABELS = np.array([0] * 20 + [1] * 20)
_FLIPPED = np.append(1, _LABELS[1:])
_MOSTLY_0 = np.array([0] * 30 + [1] * 10)  # one of the constants is wrong about half of the records more
_CONSTANTS = np.array([[False] * 40, [True] * 40])

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2)
_AND = X.min(axis=1)
_OTHER_Y = np.append(_AND[:-1], 1 - _AND[-1])
_COLUMN = np.array([[0], [1]] * 4)
_EVEN, _LESS_EVEN = np.array([0, 1, 1, 0, 0, 1, 1, 0]), np.array([1, 1, 1, 0, 0, 1, 1, 0])  # labels beside _COLUMN
_POINTS = np.array([[0], [1]])  # where hypotheses are read
_SURE = np.array([0, 1] * 4)  # which the column says
_OFTEN = 100  # times as many records, where the accuracy is measured


def _share_of_errors(labels: Any) -> Score:
    """Of hypotheses, each given by its predictions on _POINTS, on _COLUMN with these labels."""
    return lambda outputs: np.asarray((outputs[:, _COLUMN[:, 0]] != labels).mean(axis=1), np.float64)


def _predicts_1_at_0(outputs: Outputs) -> Floats:
    return -outputs[:, 0].astype(np.float64)


def _column(y: Any) -> Any:
    return np.tile(_COLUMN, (len(y) // len(_COLUMN), 1))


def _constants(epsilon: float) -> Many:
    return looped(lambda y: learn_from_class(_CONSTANTS, y, epsilon=epsilon).index)


def _conjunctions(eta: float) -> Many:
    return lambda y, n: conjunctions(_cells(y), y, 2, eta, n)


def _cells(y: Any) -> Any:
    return np.tile(X, (len(y) // len(X), 1))


def _log_ratio() -> Floats:
    """By how much more likely each conjunction is on the first labels."""
    return np.subtract(conjunction_errors(X, _OTHER_Y, 2), conjunction_errors(X, _AND, 2), dtype=np.float64)


def _box(epsilon: float) -> Many:
    return looped(lambda y: learn_box(_column(y), y, domain_bits=1, epsilon=epsilon).predict(_POINTS).astype(np.int64))


def _list(epsilon: float) -> Many:
    return looped(
        lambda y: learn_decision_list(_column(y), y, rules=1, epsilon=epsilon).predict(_POINTS).astype(np.int64)
    )


def _tree(epsilon: float) -> Many:
    return looped(lambda y: learn_tree(_column(y), y, depth=1, epsilon=epsilon).predict(_POINTS).astype(np.int64))


_N = len(_SURE) * _OFTEN
_CLEAR = np.tile(_SURE, _OFTEN)
_BOTH = np.tile(_AND, _OFTEN)
_WRONG = _share_of_errors(_SURE)

AUDITS: tuple[Audit, ...] = (
    Audit(
        "learn_from_class", PureDP(1.0), _constants(1.0), _LABELS, _FLIPPED, equals(0), sees=0.25, runs=3_000,
        accuracy=Accuracy(
            bounds.learn_from_class(40, 2, epsilon=1.0), lambda out: np.where(out == 0, 0.0, 0.5), data=_MOSTLY_0
        ),
        mutants={"epsilon of twenty": _constants(20.0)},
    ),
    Audit(
        "learn_conjunction", PureDP(1.0), _conjunctions(0.5), _AND, _OTHER_Y,
        lambda out: np.exp(_log_ratio()[out]), sees=0.45,
        accuracy=Accuracy(
            bounds.learn_conjunction(_N, 2, k=2, epsilon=1.0, method="exhaustive"),
            lambda out: conjunction_errors(_cells(_BOTH), _BOTH, 2)[out] / _N, data=_BOTH,
        ),
        once=lambda y: learn_conjunction(X, y, method="exhaustive", epsilon=1.0, k=2),
        mutants={"a sensitivity of a third": _conjunctions(1.5)},
    ),
    Audit(
        "learn_box", PureDP(2.0), _box(2.0), _EVEN, _LESS_EVEN, _predicts_1_at_0, sees=0.3, runs=600,
        accuracy=Accuracy(bounds.learn_box(_N, 1, domain_bits=1, epsilon=2.0), _WRONG, data=_CLEAR),
        mutants={"ten times epsilon": _box(20.0)},
    ),
    Audit(
        "learn_decision_list", PureDP(2.0), _list(2.0), _EVEN, _LESS_EVEN, _predicts_1_at_0, sees=0.0, runs=600,
        accuracy=Accuracy(bounds.learn_decision_list(_N, rules=1, epsilon=2.0), _WRONG, data=_CLEAR),
        mutants={"a hundred times epsilon": _list(200.0)},
    ),
    Audit(
        "learn_tree", PureDP(2.0), _tree(2.0), _EVEN, _LESS_EVEN, _predicts_1_at_0, sees=0.0, runs=600,
        accuracy=Accuracy(bounds.learn_tree(_N, depth=1, epsilon=2.0), _WRONG, data=_CLEAR),
        mutants={"a hundred times epsilon": _tree(200.0)},
    ),
)  # fmt: skip
