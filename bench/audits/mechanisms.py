"""The audits of every mechanism: inputs where one record moves what counts as far as it may."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import bounds
from ...answering.multiplicative_weights import PrivateMultiplicativeWeights
from ...answering.queries import Conjunction
from ...answering.release_ranges import release_ranges
from ...learning.conjunctions import learn_conjunction
from ...learning.finite_class import learn_from_class
from ...mechanisms.interior_point import interior_point
from ...mechanisms.noise import gaussian, gaussian_noise, laplace
from ...mechanisms.quantiles import median
from ...mechanisms.selection import exponential_mechanism, permute_and_flip, top_k
from ...mechanisms.sparse_vector import SparseVector
from ...optimizing.vector_sums import vector_sum
from ...privacy.gaussian_dp import GaussianDP
from ...privacy.guarantees import ApproxDP, PureDP
from ...records.domain import Domain
from ...statistics.counts import bincount, count
from ...statistics.groups import count_by
from ...statistics.means import mean
from .registry import Accuracy, Audit, looped
from .transcripts import (
    SharpTranscripts,
    above_threshold,
    above_threshold_once,
    conjunction_errors,
    conjunctions,
    sharp_once,
)

Floats = NDArray[np.float64]


def _distance(center: float) -> Any:
    return lambda outputs: np.abs(np.asarray(outputs, np.float64) - center)


def _is(value: int) -> Any:
    return lambda outputs: (outputs == value).astype(float)


# --- noise and choices


def _noise_of(scale: float) -> Any:
    return lambda value, n: laplace(np.full(n, value), sensitivity=scale, epsilon=1.0)


def _gaussian_of(sensitivity: float) -> Any:
    return lambda value, n: gaussian(np.full(n, value), sensitivity=sensitivity, rho=0.5)


_STATED = GaussianDP.of(gaussian_noise(True, 1, 8.0, 0.5, None, None, None, "replace-one").guarantee)


def _choices(sensitivity: float) -> Any:
    """So many choices, each a release of epsilon = 1."""
    return lambda scores, n: exponential_mechanism(scores, sensitivity=sensitivity, epsilon=float(n), size=n)


_CANDIDATES = 200
_LOW = np.zeros(_CANDIDATES, np.int64)
_HIGH = np.append(1, np.full(_CANDIDATES - 1, -1))  # one score rises, all others fall
_LABELS = np.array([0] * 20 + [1] * 20)
_FLIPPED = np.append(1, _LABELS[1:])
_TWO, _APART = np.array([0, 0]), np.array([0, 31])
_VALUES = np.arange(41) // 2  # a median of 10
_LOWER = np.append(_VALUES[:-1], 0)


def _below(cut: int) -> Any:
    return lambda outputs: (outputs <= cut).astype(float)


# --- a learner, and answers one by one

_X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2)
_AND = _X.min(axis=1)
_OTHER_Y = np.append(_AND[:-1], 1 - _AND[-1])


def _conjunctions(eta: float) -> Any:
    return lambda y, n: conjunctions(_X, y, 2, eta, n)


_DOMAIN = Domain(a=4)
_QUERIES = [Conjunction({"a": 0}), Conjunction({"a": 1}), Conjunction({"a": 0})]
_MANY, _NEAR = 600, 555  # records, and how many of them bring the first query near its threshold


def _online(zeros: int) -> PrivateMultiplicativeWeights:
    data = np.ones((_MANY, 1), np.int64)
    data[:zeros] = 0
    return PrivateMultiplicativeWeights(data, _DOMAIN, epsilon=1.0, max_queries=3, variant="sharp")


def _transcripts(noise: float) -> Any:
    def many(zeros: int, n: int) -> Floats:
        return SharpTranscripts(_online(zeros), _QUERIES, noise=noise).draw(n)

    return many


def _log_ratio() -> Floats:
    """By how much more likely each conjunction is on the first labels."""
    return np.subtract(conjunction_errors(_X, _OTHER_Y, 2), conjunction_errors(_X, _AND, 2), dtype=np.float64)


def _places(values: Any, sensitivity: float) -> Any:
    """Which of four values lie above, of up to two positives, as 0 and 1."""
    watch = SparseVector(10, sensitivity=sensitivity, epsilon=1.0, positives=2)
    found = np.zeros(len(values), np.int64)
    found[watch.places_above(values)] = 1
    return found


def _sums(clip: float) -> Any:
    return lambda points: vector_sum(points, clip=clip, epsilon=1.0, delta=0.01).value


_POINTS = np.array([[1.0, 0.0]] * 9 + [[0.6, 0.8]])
_TURNED = np.append(_POINTS[:-1], [[-0.6, -0.8]], axis=0)
_SPREAD = np.array([0.6, 0.8])


_CONSTANTS = np.array([[False] * 40, [True] * 40])


def _rule(y: Any, epsilon: float) -> int:
    return learn_from_class(_CONSTANTS, y, epsilon=epsilon).index


AUDITS: tuple[Audit, ...] = (
    Audit(
        "laplace", PureDP(1.0), _noise_of(1.0), 41, 42, lambda out: -out.astype(float), sees=0.95,
        accuracy=Accuracy(bounds.laplace(sensitivity=1, epsilon=1.0), _distance(41)),
        once=lambda value: laplace(value, sensitivity=1, epsilon=1.0),
        mutants={"half of the noise": _noise_of(0.5), "a tenth less noise": _noise_of(0.9)},
    ),
    Audit(
        "gaussian", _STATED, _gaussian_of(8.0), 0, 8, lambda out: -out.astype(float), sees=0.8,
        accuracy=Accuracy(bounds.gaussian(sensitivity=8, rho=0.5), _distance(0)),
        once=lambda value: gaussian(value, sensitivity=8, rho=0.5),
        mutants={"half of the noise": _gaussian_of(4.0), "a fifth less noise": _gaussian_of(6.4)},
    ),
    Audit(
        "exponential_mechanism", PureDP(1.0), _choices(1.0), _HIGH, _LOW, _is(0), sees=0.4,
        accuracy=Accuracy(
            bounds.exponential_mechanism(_CANDIDATES, sensitivity=1, epsilon=1.0), lambda out: 1.0 - _HIGH[out]
        ),
        once=lambda scores: exponential_mechanism(scores, sensitivity=1, epsilon=1.0),
        mutants={"a sensitivity of a half": _choices(0.5)},
    ),
    Audit(
        "permute_and_flip", PureDP(1.0), looped(lambda s: permute_and_flip(s, sensitivity=1, epsilon=1.0)),
        _HIGH[:2], _LOW[:2], _is(0), sees=0.5, runs=8_000,
        accuracy=Accuracy(
            bounds.permute_and_flip(2, sensitivity=1, epsilon=1.0), lambda out: 1.0 - _HIGH[out]
        ),
        mutants={"a sensitivity of a quarter": looped(lambda s: permute_and_flip(s, sensitivity=0.25, epsilon=1.0))},
    ),
    Audit(
        "top_k", PureDP(1.0), looped(lambda s: top_k(s, 2, sensitivity=1, epsilon=1.0)),
        np.array([1, 1, -1, -1]), np.array([0, 0, 0, 0]), lambda out: (out.sum(axis=1) == 1).astype(float),
        sees=0.15, runs=8_000,
        mutants={"a sensitivity of an eighth": looped(lambda s: top_k(s, 2, sensitivity=0.125, epsilon=1.0))},
    ),
    Audit(
        "AboveThreshold", PureDP(1.0), lambda v, n: above_threshold(10, v, 1.0, n), [9] * 8 + [11], [10] * 9,
        _is(8), sees=0.5,
        once=lambda values: above_threshold_once(10, values, 1.0),
        mutants={"a tenth of the noise of queries": lambda v, n: above_threshold(10, v, 1.0, n, query_scale=0.1)},
    ),
    Audit(
        "SparseVector", PureDP(1.0), looped(lambda v: _places(v, 1.0)), [9, 9, 11, 11], [10] * 4,
        lambda out: (out[:, 2:].sum(axis=1) - out[:, :2].sum(axis=1)).astype(float), sees=0.01, runs=8_000,
        mutants={"a tenth of the sensitivity": looped(lambda v: _places(v, 0.1))},
    ),
    Audit(
        "count", PureDP(1.0), looped(lambda v: count(v, epsilon=1.0).value), np.arange(8.0),
        np.append(np.arange(7.0), np.nan), lambda out: out.astype(float), sees=0.7, runs=8_000,
        accuracy=Accuracy(bounds.count(epsilon=1.0), _distance(8)),
        mutants={"half of the noise": looped(lambda v: count(v, epsilon=2.0).value)},
    ),
    Audit(
        "bincount", PureDP(1.0), looped(lambda v: bincount(v, 2, epsilon=1.0).counts), _LABELS, _FLIPPED,
        lambda out: (out[:, 0] - out[:, 1]).astype(float), sees=0.5, runs=8_000,
        accuracy=Accuracy(
            bounds.histogram(2, epsilon=1.0), lambda out: np.abs(out - np.bincount(_LABELS)).max(axis=1).astype(float)
        ),
        mutants={
            "a sensitivity of 1 where a record moves two counts": looped(
                lambda v: laplace(np.bincount(v, minlength=2), sensitivity=1, epsilon=1.0)
            )
        },
    ),
    Audit(
        "mean", PureDP(1.0), looped(lambda v: float(mean(v, bounds=(0, 20), epsilon=1.0))), np.append(_VALUES[:-1], 20),
        _LOWER, lambda out: out, sees=0.6, runs=8_000,
        accuracy=Accuracy(bounds.mean(41, bounds=(0, 20), epsilon=1.0), _distance(float(_VALUES.mean()))),
        mutants={"bounds of half the width": looped(lambda v: float(mean(v, bounds=(5, 15), epsilon=2.0)))},
    ),
    Audit(
        "count_by", ApproxDP(1.0, 0.01), looped(lambda v: len(count_by(v, epsilon=1.0, delta=0.01))), _LABELS,
        np.append(7, _LABELS[1:]), lambda out: -out.astype(float), sees=0.0, runs=4_000,
        mutants={"no threshold": looped(lambda v: len(np.unique(v)))},
    ),
    Audit(
        "median", PureDP(1.0), looped(lambda v: median(v, domain_bits=5, epsilon=1.0)), _TWO,
        _APART, _below(0), sees=0.2, runs=8_000,
        mutants={"four times epsilon": looped(lambda v: median(v, domain_bits=5, epsilon=4.0))},
    ),
    Audit(
        "interior_point", PureDP(1.0), looped(lambda v: interior_point(v, domain_bits=5, epsilon=1.0)),
        _TWO, _APART, _below(0), sees=0.2, runs=8_000,
        mutants={"four times epsilon": looped(lambda v: interior_point(v, domain_bits=5, epsilon=4.0))},
    ),
    Audit(
        "release_ranges", PureDP(1.0), looped(lambda v: release_ranges(v, [0, 1, 2], epsilon=1.0).counts),
        _LABELS, _FLIPPED, lambda out: (out[:, 0] - out[:, 1]).astype(float), sees=0.1, runs=1_500,
        mutants={"six times epsilon": looped(lambda v: release_ranges(v, [0, 1, 2], epsilon=6.0).counts)},
    ),
    Audit(
        "vector_sum", ApproxDP(1.0, 0.01), looped(_sums(1.0)), _POINTS, _TURNED, lambda out: out @ _SPREAD,
        sees=0.3, runs=8_000,
        accuracy=Accuracy(
            bounds.vector_sum_error(10, 2, clip=1.0, epsilon=1.0, delta=0.01),
            lambda out: np.linalg.norm(out - _POINTS.sum(axis=0), axis=1),
        ),
        mutants={
            "the clip for the sensitivity of a replacement": looped(
                lambda points: gaussian(points.sum(axis=0), sensitivity=1.0, epsilon=1.0, delta=0.01)
            )
        },
    ),
    Audit(
        "learn_from_class", PureDP(1.0), looped(lambda y: _rule(y, 1.0)), _LABELS, _FLIPPED, _is(0), sees=0.3,
        runs=4_000,
        mutants={"epsilon of twenty": looped(lambda y: _rule(y, 20.0))},
    ),
    Audit(
        "learn_conjunction", PureDP(1.0), _conjunctions(0.5), _AND, _OTHER_Y,
        lambda out: np.exp(_log_ratio()[out]), sees=0.45,
        once=lambda y: learn_conjunction(_X, y, method="exhaustive", epsilon=1.0, k=2),
        mutants={"a sensitivity of a third": _conjunctions(1.5)},
    ),
    Audit(
        "PrivateMultiplicativeWeights", PureDP(1.0), _transcripts(1.0), _NEAR, _NEAR - 1,
        lambda out: out[:, 0], sees=0.01, runs=300_000,
        once=lambda zeros: sharp_once(_online(zeros), _QUERIES),
        mutants={"a twentieth of the noise": _transcripts(0.05)},
    ),
)  # fmt: skip
