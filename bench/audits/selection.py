"""Audits of choices by score, in one call, in blocks, and among runs that are private themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import bounds
from ...mechanisms.gumbel_max import GumbelMax
from ...mechanisms.noise import laplace
from ...mechanisms.private_tuning import best_of
from ...mechanisms.selection import exponential_mechanism, permute_and_flip, top_k
from ...privacy.guarantees import PureDP
from .registry import Accuracy, Audit, Many, Score, equals, looped

_CANDIDATES = 200
_LOW = np.zeros(_CANDIDATES, np.int64)
_HIGH = np.append(1, np.full(_CANDIDATES - 1, -1))  # one score rises, all others fall


def _choices(sensitivity: float) -> Many:
    """So many choices, each a release of epsilon = 1."""
    return lambda scores, n: exponential_mechanism(scores, sensitivity=sensitivity, epsilon=float(n), size=n)


def _flips(sensitivity: float) -> Many:
    return looped(lambda scores: permute_and_flip(scores, sensitivity=sensitivity, epsilon=1.0))


def _falls_short(scores: NDArray[np.int64]) -> Score:
    """By how much the score of what is chosen is below the best."""
    return lambda chosen: np.asarray(scores.max() - scores[chosen], np.float64)


_FOUR = np.array([1, 1, -1, -1])


def _best_two(sensitivity: float) -> Many:
    return looped(lambda scores: top_k(scores, 2, sensitivity=sensitivity, epsilon=1.0))


def _in_blocks(sensitivity: float) -> Many:
    def choose(scores: Any) -> int:
        choice = GumbelMax(sensitivity=sensitivity, epsilon=1.0)
        choice.offer(scores[:2], 0)
        choice.offer(scores[2:], 2)
        return choice.winner()

    return looped(choose)


def _best_run(count: Any) -> float:
    """The score of the best of runs, two in the mean."""

    def run(budget: Any) -> tuple[int, float]:
        return 0, float(laplace(count, sensitivity=1, epsilon=budget.left.epsilon))

    return best_of(run, 2, epsilon=2.0).score


def _unpaid(count: Any) -> float:
    """The best of three runs, each of them for the price of all."""
    return float(laplace(np.full(3, count), sensitivity=1, epsilon=2.0).max())


AUDITS: tuple[Audit, ...] = (
    Audit(
        "exponential_mechanism", PureDP(1.0), _choices(1.0), _HIGH, _LOW, equals(0), sees=0.4,
        accuracy=Accuracy(
            bounds.exponential_mechanism(_CANDIDATES, sensitivity=1, epsilon=1.0), _falls_short(_HIGH)
        ),
        once=lambda scores: exponential_mechanism(scores, sensitivity=1, epsilon=1.0),
        mutants={"a sensitivity of a half": _choices(0.5)},
    ),
    Audit(
        "permute_and_flip", PureDP(1.0), _flips(1.0), _HIGH[:2], _LOW[:2], equals(0), sees=0.5, runs=8_000,
        accuracy=Accuracy(bounds.permute_and_flip(2, sensitivity=1, epsilon=1.0), _falls_short(_HIGH[:2])),
        mutants={"a sensitivity of a quarter": _flips(0.25)},
    ),
    Audit(
        "top_k", PureDP(1.0), _best_two(1.0), _FOUR, np.zeros(4, np.int64),
        lambda out: (out.sum(axis=1) == 1).astype(float), sees=0.15, runs=8_000,
        accuracy=Accuracy(
            bounds.top_k(4, 2, sensitivity=1, epsilon=1.0),
            lambda out: (_FOUR[:2] - _FOUR[out]).max(axis=1).astype(float),
        ),
        mutants={"a sensitivity of an eighth": _best_two(0.125)},
    ),
    Audit(
        "GumbelMax", PureDP(1.0), _in_blocks(1.0), _HIGH[:4], _LOW[:4], equals(0), sees=0.2, runs=3_000,
        accuracy=Accuracy(bounds.exponential_mechanism(4, sensitivity=1, epsilon=1.0), _falls_short(_HIGH[:4])),
        mutants={"a sensitivity of a quarter": _in_blocks(0.25)},
    ),
    Audit(
        "best_of", PureDP(2.0), looped(_best_run), 41, 42, lambda out: -out, sees=0.2, runs=500,
        mutants={"three runs for the price of one": looped(_unpaid)},
    ),
)  # fmt: skip
