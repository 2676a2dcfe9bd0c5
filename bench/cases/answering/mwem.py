"""MWEM, released marginals, and all steps from records to new records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np

from fastdp import Domain, PrivateMultiplicativeWeights
from fastdp.answering.mwem import mwem
from fastdp.answering.queries import marginals
from fastdp.answering.release_marginals import release_marginals
from fastdp.support.errors import AccuracyWarning

from ...peers.inputs import binary_records
from ..registry import Call, Case, Side, beside, faster, make_case, within_seconds
from .inputs import BINARY, QUERIES, RECORDS, SAMPLED, binary, conjunction_mask, conjunctions

_case = partial(make_case, "answering")

ROUNDS = 10
FEW_QUERIES = 200
PAIRED, SIGMA = 16, 65.45  # columns of which all pairs are released; the noise that our guarantee takes
STEPS = 200  # of the others: after 50 the largest error is still seven times what it comes to


def records(domain: Domain, n: int = RECORDS) -> Any:
    return binary_records(n, len(domain))


def _mwem(k: int) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        domain = binary(n)
        queries, codes = conjunctions(domain, k), records(domain)
        return lambda: _fitted(codes, domain, queries, epsilon=1.0)

    return make


def _fitted(codes: Any, domain: Domain, queries: Any, **guarantee: Any) -> Any:
    with warnings.catch_warnings():  # that plain noise has a smaller bound than so few rounds
        warnings.simplefilter("ignore", AccuracyWarning)
        return mwem(codes, domain, queries, variant="average", rounds=ROUNDS, **guarantee)


def _numpy_mwem(n: int) -> Call:
    """np.dot(mask, x) for every query; the masks, a byte a cell, are made beforehand."""
    domain = binary(n)
    masks = [conjunction_mask(domain, query) for query in conjunctions(domain, QUERIES)]
    codes, rng = records(domain), np.random.default_rng()
    strides, rate = np.array(domain.strides), mwem_rate(domain)

    def call() -> Any:
        histogram = np.bincount(codes @ strides, minlength=domain.size).astype(np.float64)
        truth = np.array([np.dot(mask, histogram) for mask in masks])
        x = np.full(domain.size, 1 / domain.size)
        average = np.zeros(domain.size)
        for _ in range(ROUNDS):
            average += x / ROUNDS
            gaps = truth - RECORDS * np.array([np.dot(mask, x) for mask in masks])
            i = np.argmax(np.abs(gaps) / (2 * ROUNDS) + rng.gumbel(size=gaps.size))
            x *= np.exp(np.sign(gaps[i]) * rate * masks[i])
            x /= x.sum()
        return average

    return call


def _many_records(domain: Domain, n: int) -> Any:
    return records(domain, max(n, 200_000))  # fewer support no error bound below 1


def _end_to_end(d: int) -> Callable[[int], Call]:
    """From records to answers asked one after the other, to a distribution fitted to all of them, to new records."""

    def make(n: int) -> Call:
        domain = Domain.binary(d)
        codes, asked = _many_records(domain, n), marginals(domain, 2)
        guarantee: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "beta": 1e-9}

        def call() -> Any:
            with warnings.catch_warnings():  # that plain noise has a smaller bound for so few queries
                warnings.simplefilter("ignore", AccuracyWarning)
                online = PrivateMultiplicativeWeights(
                    codes, domain, max_queries=len(asked), variant="sharp", **guarantee
                )
            answers = online.answer_many(asked)
            return answers, online.alpha, _fitted(codes, domain, asked, **guarantee).sample(len(codes))

        return call

    return make


def _release_pairs(n: int) -> Call:
    domain = Domain.binary(PAIRED)
    codes, asked = binary_records(n, PAIRED), marginals(domain, 2)
    return lambda: release_marginals(codes, domain, asked, epsilon=1.0, delta=1e-6, fit="entropic").tables


def _drawn_pairs(n: int) -> tuple[Any, ...]:
    return binary_records(n, PAIRED), _release_pairs(n)(), SIGMA


def mwem_rate(domain: Domain) -> float:
    return sqrt(8 * log(domain.size) / ROUNDS)


def _drawn_fit(k: int) -> Callable[[int], tuple[Any, ...]]:
    def drawn(n: int) -> tuple[Any, ...]:
        domain = binary(n)
        return domain, records(domain), conjunctions(domain, k), _mwem(k)(n)(), mwem_rate(domain)

    return drawn


def _end_to_end_case(d: int, seconds: float) -> Case:
    return _case(
        f"end-to-end-{d}",
        f"{SAMPLED:,} records of {d} binary columns, {1 << d:,} cells: PMW on all two-way tables, mwem of "
        f"{ROUNDS} rounds, as many sampled records",
        SAMPLED,
        _end_to_end(d),
        (None, within_seconds(seconds)),
        oracle="two-way tables",
        drawn=lambda n: (_many_records(Domain.binary(d), n), marginals(Domain.binary(d), 2), *_end_to_end(d)(n)()),
    )


CASES = (
    _case(
        "mwem",
        f"mwem, 2^20 cells, {QUERIES:,} conjunctions, {ROUNDS} rounds, end to end",
        BINARY.size,
        _mwem(QUERIES),
        (Side("numpy", _numpy_mwem), faster("numpy", avx512=20, avx2=20)),
        oracle="a replay",
        drawn=_drawn_fit(QUERIES),
        headline=True,
    ),
    _case(
        "mwem-small",
        f"mwem, 2^12 cells, {FEW_QUERIES} conjunctions, {ROUNDS} rounds; beside cuboids, each of up to 8 conjunctions",
        1 << 12,
        _mwem(FEW_QUERIES),
        (beside("smartnoise_synth", "mwem", records=RECORDS, cuboids=FEW_QUERIES, rounds=ROUNDS), None),
        (beside("mbi", "mwem"), None),
        oracle="a replay",
        drawn=lambda n: _drawn_fit(FEW_QUERIES)(min(n, 1 << 12)),
        epsilon=1.0,
    ),
    _case(
        "release-pairs",
        f"release all two-way tables of {PAIRED} binary columns and fit a distribution; beside {STEPS} steps of "
        "mirror descent",
        RECORDS,
        _release_pairs,
        (beside("mbi", "fit_pairs", d=PAIRED, sigma=SIGMA, steps=STEPS), None),
        oracle="released tables",
        drawn=_drawn_pairs,
        epsilon=1.0,
        delta=1e-6,
    ),
    _end_to_end_case(16, 1.0),
    _end_to_end_case(23, 5.0),
)
