"""Audits of many answers at once: tables, ranges, synthetic distributions, and answers one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import bounds
from ...answering.multiplicative_weights import PrivateMultiplicativeWeights
from ...answering.mwem import mwem
from ...answering.queries import Conjunction, marginals
from ...answering.release_marginals import release_marginals
from ...answering.release_ranges import release_ranges
from ...answering.synthesis.synthesize import synthesize
from ...privacy.guarantees import ApproxDP, PureDP
from ...records.domain import Domain
from .registry import Accuracy, Audit, Floats, Many, Outputs, distance, looped
from .transcripts import SharpTranscripts, sharp_once

_LABELS = np.array([0] * 20 + [1] * 20)
_FLIPPED = np.append(1, _LABELS[1:])
_TABLE, _CHANGED = np.column_stack((_LABELS, _LABELS)), np.column_stack((_FLIPPED, _FLIPPED))
_PAIRS = Domain(a=2, b=2)
_SINGLE = marginals(_PAIRS, 1)
_CHOSEN = [Conjunction({"a": 1}), Conjunction({"b": 1})]
_CLAIM = ApproxDP(2.0, 0.01)  # whichever noise is less
_ONE = np.array([[1, 1]])


def _first_over_second(outputs: Outputs) -> Floats:
    return np.asarray(outputs[:, 0] - outputs[:, 1], np.float64)


def _prefix_errors(outputs: Outputs) -> Floats:
    """The largest error of a range that begins with the first bin."""
    away = np.abs(np.cumsum(outputs, axis=1) - np.cumsum(np.bincount(_LABELS)))
    return np.asarray(away.max(axis=1), np.float64)


def _ranges(epsilon: float) -> Many:
    return looped(lambda v: release_ranges(v, [0, 1, 2], epsilon=epsilon).counts)


def _tables(table: Any) -> Any:
    return np.concatenate(release_marginals(table, _PAIRS, _SINGLE, epsilon=2.0, delta=0.01).tables)


def _fitted(epsilon: float) -> Many:
    return looped(lambda table: mwem(table, _PAIRS, _CHOSEN, epsilon=epsilon, rounds=2).answer_many(_CHOSEN))


def _synthetic(table: Any) -> Any:
    return np.ravel(synthesize(table, _PAIRS, epsilon=2.0, delta=0.01).probabilities())


def _shares_of_columns(table: Any) -> Any:
    """What the released tables have to come near."""
    return np.concatenate([np.bincount(column, minlength=2) / len(table) for column in table.T])


def _shares(table: Any) -> Any:
    """What a synthetic distribution has to come near."""
    return np.bincount(2 * table[:, 0] + table[:, 1], minlength=4) / len(table)


# --- answers one by one

_DOMAIN = Domain(a=4)
QUERIES = [Conjunction({"a": 0}), Conjunction({"a": 1}), Conjunction({"a": 0})]
_MANY, NEAR = 600, 555  # records, and how many of them bring the first query near its threshold
_TRUTH = np.array([NEAR, _MANY - NEAR, NEAR]) / _MANY


def online(zeros: int) -> PrivateMultiplicativeWeights:
    """So many of the records are 0, all others 1."""
    data = np.ones((_MANY, 1), np.int64)
    data[:zeros] = 0
    return PrivateMultiplicativeWeights(data, _DOMAIN, epsilon=1.0, max_queries=3, variant="sharp")


def _transcripts(noise: float) -> Many:
    def many(zeros: int, n: int) -> NDArray[np.float64]:
        return SharpTranscripts(online(zeros), QUERIES, noise=noise).draw(n)

    return many


def _alpha(estimate: Any) -> float:
    """The error bound of an estimate, which has one."""
    return float(estimate.alpha)


AUDITS: tuple[Audit, ...] = (
    Audit(
        "release_ranges", PureDP(2.0), _ranges(2.0), _LABELS, _FLIPPED, _first_over_second, sees=0.2, runs=800,
        accuracy=Accuracy(bounds.release_ranges(40, [0, 1, 2], epsilon=2.0) * 40, _prefix_errors),
        mutants={"six times epsilon": _ranges(12.0)},
    ),
    Audit(
        "release_marginals", _CLAIM, looped(_tables), _TABLE, _CHANGED, _first_over_second, sees=0.0, runs=300,
        accuracy=Accuracy(
            _alpha(bounds.release_marginals(40, _PAIRS, _SINGLE, epsilon=2.0, delta=0.01)), distance(0.5)
        ),
        mutants={"no noise": looped(_shares_of_columns)},
    ),
    Audit(
        "mwem", PureDP(2.0), _fitted(2.0), _ONE, 1 - _ONE, lambda out: out.sum(axis=1), sees=0.0, runs=600,
        accuracy=Accuracy(_alpha(bounds.mwem(40, _PAIRS, _CHOSEN, epsilon=2.0, rounds=2)), distance(0.5), data=_TABLE),
        mutants={"ten times epsilon": _fitted(20.0)},
    ),
    Audit(
        "synthesize", _CLAIM, looped(_synthetic), _TABLE, _CHANGED, lambda out: out[:, 0] - out[:, 3], sees=0.0,
        runs=300,
        mutants={"no noise": looped(_shares)},
    ),
    Audit(
        "PrivateMultiplicativeWeights", PureDP(1.0), _transcripts(1.0), NEAR, NEAR - 1,
        lambda out: out[:, 0], sees=0.01, runs=300_000,
        accuracy=Accuracy(
            _alpha(bounds.private_multiplicative_weights(
                _MANY, _DOMAIN, epsilon=1.0, max_queries=3, variant="sharp"
            )),
            distance(_TRUTH),
        ),
        once=lambda zeros: sharp_once(online(zeros), QUERIES),
        mutants={"a twentieth of the noise": _transcripts(0.05)},
    ),
)  # fmt: skip
