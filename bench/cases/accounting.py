"""Cases of the accounting room: AboveThreshold over many queries, and the composition of many guarantees.

Both sides answer the same question with the same parameters; what differs stands in the row. An answer is one number,
so these cases return it instead of an array.
"""

from __future__ import annotations

import os
import tempfile
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import fastdp

from ...mechanisms.above_threshold import split
from ...mechanisms.sparse_vector_plan import scales
from ...privacy.choices import table_of
from ...privacy.conversions import epsilon_of_rho, rho_of_pure
from ...privacy.filters import Theorem
from ...privacy.profiles import Laplace, with_profile
from ..peers.inputs import noise_scales
from .registry import Call, Side, beside, faster, make_case, within, within_seconds
from .traffic import Traffic

QUERIES, GUARANTEES = 1_000_000, 1_000
THRESHOLD, EPSILON, POSITIVES = 10**6, 1.0, 100
DELTA, EQUAL, RANGE = 1e-6, 10.0, 0.02

CHARGED: tuple[Theorem, ...] = ("basic", "zcdp")
BATCH, BATCHES = 50, 20  # releases that are timed together, and how often: the difference is of two small times


# --- AboveThreshold


def query_values(n: int) -> Any:
    """Counts far below the threshold, filled, and one far above it at the end."""
    values = np.arange(n, dtype=np.int64) % 1000
    values[-1] = 2 * THRESHOLD
    return values


def _our_walk(n: int) -> Call:
    values = query_values(n)
    return lambda: fastdp.AboveThreshold(THRESHOLD, sensitivity=1, epsilon=EPSILON).first_above(values)


def _numpy_walk(n: int) -> Call:
    values, rng = query_values(n), np.random.default_rng()
    of_threshold, of_query = split(Fraction(1), EPSILON)

    def walk() -> int:
        noisy = THRESHOLD + rng.laplace(scale=of_threshold)
        return int((values + rng.laplace(scale=of_query, size=n) >= noisy).argmax())

    return walk


def _ask(n: int) -> Call:
    """A count far below the threshold, again and again."""
    test = fastdp.AboveThreshold(THRESHOLD, sensitivity=1, epsilon=EPSILON)
    return lambda: test.above(1000)


def _numpy_ask(n: int) -> Call:
    rng = np.random.default_rng()
    of_threshold, of_query = split(Fraction(1), EPSILON)
    noisy = THRESHOLD + rng.laplace(scale=of_threshold)
    return lambda: bool(1000 + rng.laplace(scale=of_query) >= noisy)


def _drawn_answers(n: int) -> tuple[list[bool], list[bool]]:
    """Far below and, at last, far above; and at the threshold itself, each by a test of its own."""
    tests = [fastdp.AboveThreshold(THRESHOLD, sensitivity=1, epsilon=EPSILON) for _ in range(1_000)]
    far = [*(tests[0].above(1000) for _ in range(1_000)), tests[0].above(2 * THRESHOLD)]
    return far, [test.above(THRESHOLD) for test in tests[1:]]


def _drawn_sparse_answers(n: int) -> tuple[list[bool], list[bool]]:
    """The same, each by an object of one positive."""
    tests = [fastdp.SparseVector(THRESHOLD, sensitivity=1, epsilon=EPSILON, positives=1) for _ in range(1_000)]
    far = [*(tests[0].above(1000) for _ in range(1_000)), tests[0].above(2 * THRESHOLD)]
    return far, [test.above(THRESHOLD) for test in tests[1:]]


# --- several positives


def sparse_values(n: int) -> Any:
    """Counts far below the threshold, and one in ten thousand far above it."""
    values = np.arange(n, dtype=np.int64) % 1000
    values[:: max(1, n // POSITIVES)] = 2 * THRESHOLD
    return values


def _our_places(n: int) -> Call:
    values = sparse_values(n)
    make = partial(fastdp.SparseVector, THRESHOLD, sensitivity=1, epsilon=EPSILON, positives=2 * POSITIVES)
    return lambda: make().places_above(values)


def _numpy_places(n: int) -> Call:
    values, rng = sparse_values(n), np.random.default_rng()
    of_threshold, of_query, _ = scales(Fraction(1), Fraction(EPSILON), 2 * POSITIVES, False, False)

    def places() -> Any:
        noisy = THRESHOLD + rng.laplace(scale=of_threshold)
        return np.flatnonzero(values + rng.laplace(scale=of_query, size=n) >= noisy)[: 2 * POSITIVES]

    return places


def _ask_sparse(n: int) -> Call:
    test = fastdp.SparseVector(THRESHOLD, sensitivity=1, epsilon=EPSILON, positives=POSITIVES)
    return lambda: test.above(1000)


def _our_answers(n: int) -> Call:
    values = sparse_values(n)
    make = partial(fastdp.NumericSparse, THRESHOLD, sensitivity=1, epsilon=EPSILON, positives=2 * POSITIVES)
    return lambda: make().answer_many(values)


def _numpy_answers(n: int) -> Call:
    values, rng = sparse_values(n), np.random.default_rng()
    noise = scales(Fraction(1), Fraction(EPSILON), 2 * POSITIVES, False, True)

    def answers() -> Any:
        noisy = THRESHOLD + rng.laplace(scale=noise[0])
        places = np.flatnonzero(values + rng.laplace(scale=noise[1], size=n) >= noisy)[: 2 * POSITIVES]
        return places, values[places] + rng.laplace(scale=noise[2], size=places.size)

    return answers


# --- composition


def _our_composition(n: int) -> Call:
    kinds = {"laplace": fastdp.Renyi.laplace, "gaussian": fastdp.Renyi.gaussian}
    scales = noise_scales(n)
    return lambda: fastdp.compose(*(kinds[kind](scale) for kind, scale in scales), delta=DELTA)


def _known(kind: str, scale: float) -> fastdp.privacy.Guarantee:
    """One release, with what is known of its losses."""
    if kind == "gaussian":
        return fastdp.GaussianDP(1 / scale)
    return with_profile(fastdp.PureDP(1 / scale), Laplace(1 / scale))


def _our_losses(n: int) -> Call:
    known = [_known(kind, scale) for kind, scale in noise_scales(n)]
    return lambda: fastdp.compose(*known, delta=DELTA)


def _our_cold_losses(n: int) -> Call:
    """Nothing is remembered of the guarantees before."""

    def compose() -> Any:
        for remembered in (rho_of_pure, epsilon_of_rho):
            remembered.cache_clear()
        return fastdp.compose(*(_known(kind, scale) for kind, scale in noise_scales(n)), delta=DELTA)

    return compose


def _our_equal_losses(n: int) -> Call:
    known = _known("laplace", EQUAL)
    return lambda: fastdp.compose((known, n), delta=DELTA)


def _our_choices(n: int) -> Call:
    """Nothing is remembered of this range."""

    def compose() -> Any:
        table_of.cache_clear()
        return fastdp.compose((fastdp.BoundedRange(RANGE), n), delta=DELTA)

    return compose


def _our_share(n: int) -> Call:
    whole = fastdp.ApproxDP(EPSILON, DELTA)

    def share() -> Any:
        table_of.cache_clear()
        return fastdp.share(whole, n, fastdp.BoundedRange)

    return share


# --- charges


def _release(budget: fastdp.Budget | None) -> Call:
    return lambda: fastdp.laplace(5, sensitivity=1, epsilon=0.001, budget=budget)


def _budget(theorem: Theorem) -> fastdp.Budget:
    return fastdp.Budget(epsilon=1e6, delta=DELTA, theorem=theorem)


def _charge(theorem: Theorem, n: int) -> Call:
    return _release(_budget(theorem))


def _charged(theorem: Theorem, n: int) -> Any:
    budget = _budget(theorem)
    release = _release(budget)
    for _ in range(100):
        release()
    return len(budget.releases), budget.spent


def _stored(folder: str | None) -> fastdp.Budget:
    """A budget in a file of its own: None for the disk of temporary files, a folder in memory for no fsync at all."""
    place = tempfile.mkdtemp(dir=folder if folder and os.path.isdir(folder) else None)
    return fastdp.Budget.open(f"sqlite:///{place}/budget.db", epsilon=1e9)


def _charge_stored(folder: str | None, n: int) -> Call:
    budget, guarantee = _stored(folder), fastdp.PureDP(0.001)
    return lambda: int(budget.charge(guarantee, "a release") is None)  # type: ignore[func-returns-value]


def _charged_stored(folder: str | None, n: int) -> Any:
    budget = _stored(folder)
    for _ in range(100):
        budget.charge(fastdp.PureDP(0.001), "a release")
    return len(budget.releases), budget.spent


def _uncharged(n: int) -> Call:
    return _release(None)


def _charge_alone(theorem: Theorem, n: int) -> Call:
    """The seconds that a charge adds: the least of some batches with a budget, less the least of as many without."""
    with_budget, without = _charge(theorem, n), _uncharged(n)

    def seconds(call: Call) -> float:
        start = perf_counter()
        for _ in range(BATCH):
            call()
        return (perf_counter() - start) / BATCH

    def call() -> float:
        pairs = [(seconds(with_budget), seconds(without)) for _ in range(BATCHES)]
        return min(one for one, _ in pairs) - min(other for _, other in pairs)

    return call


_case = partial(make_case, "accounting")

CASES = (
    _case(
        "above-threshold",
        "AboveThreshold, one million queries, hit at the last",
        QUERIES,
        _our_walk,
        (Side("numpy", _numpy_walk), faster("numpy", avx512=9, avx2=4.8)),
        (beside("opendp", "above_threshold"), None),
        traffic=Traffic(read=8, words=0.5, held=8),
        oracle="the last query",
        drawn=lambda n: (_our_walk(n)(), n),
        headline=True,
        epsilon=EPSILON,
    ),
    _case(
        "above-threshold-one-query",
        "AboveThreshold, one query at a time, below",
        1,
        _ask,
        (Side("numpy", _numpy_ask), within_seconds(2.5e-6)),
        oracle="answers by a threshold",
        drawn=_drawn_answers,
        calls=500,
        epsilon=EPSILON,
    ),
    _case(
        "sparse-vector",
        "SparseVector, one million queries, 100 of them above",
        QUERIES,
        _our_places,
        (Side("numpy", _numpy_places), faster("numpy", avx512=3, avx2=3)),
        traffic=Traffic(read=8, words=0.5, held=8),
        oracle="the places above",
        drawn=lambda n: (_our_places(n)(), sparse_values(n)),
        epsilon=EPSILON,
    ),
    _case(
        "sparse-vector-one-query",
        "SparseVector, one query at a time, below",
        1,
        _ask_sparse,
        (Side("numpy", _numpy_ask), within_seconds(2.5e-6)),
        oracle="answers by a threshold",
        drawn=_drawn_sparse_answers,
        calls=500,
        epsilon=EPSILON,
    ),
    _case(
        "numeric-sparse",
        "NumericSparse, one million queries, 100 of them above",
        QUERIES,
        _our_answers,
        (Side("numpy", _numpy_answers), faster("numpy", avx512=3, avx2=3)),
        traffic=Traffic(read=8, words=0.5, held=8),
        oracle="the places above, and their values",
        drawn=lambda n: (*_our_answers(n)(), sparse_values(n)),
        epsilon=EPSILON,
    ),
    _case(
        "compose-mixed",
        "compose 1,000 mixed guarantees, all different, bounds rounded up",
        GUARANTEES,
        _our_composition,
        (beside("dp_accounting", "compose", delta=DELTA), None),
        oracle="Renyi, in float64",
        drawn=lambda n: (_our_composition(min(n, 100))(), noise_scales(min(n, 100))),
        delta=DELTA,
    ),
    _case(
        "compose-losses",
        "compose 1,000 releases, all different, by loss distributions, bounds proven",
        GUARANTEES,
        _our_losses,
        (beside("dp_accounting", "compose_losses", delta=DELTA), faster("dp-accounting", avx512=10, avx2=10)),
        oracle="below Renyi",
        drawn=lambda n: (_our_losses(min(n, 300))(), noise_scales(min(n, 300))),
        delta=DELTA,
    ),
    _case(
        "compose-losses-cold",
        "the same of guarantees that are made anew",
        GUARANTEES,
        _our_cold_losses,
        (beside("dp_accounting", "compose_losses", delta=DELTA), faster("dp-accounting", avx512=2, avx2=2)),
        oracle="below Renyi",
        drawn=lambda n: (_our_cold_losses(min(n, 300))(), noise_scales(min(n, 300))),
        delta=DELTA,
    ),
    _case(
        "compose-losses-equal",
        "compose 1,000 equal Laplace releases by loss distributions, bounds proven",
        GUARANTEES,
        _our_equal_losses,
        (
            beside("dp_accounting", "compose_equal", scale=EQUAL, delta=DELTA),
            faster("dp-accounting", avx512=20, avx2=20),
        ),
        oracle="below Renyi",
        drawn=lambda n: (_our_equal_losses(n)(), [("laplace", EQUAL)] * n),
        calls=10,
        delta=DELTA,
    ),
    _case(
        "compose-choices-equal",
        "compose 1,000 equal choices of bounded range, however they depend on results, bounds proven",
        GUARANTEES,
        _our_choices,
        (None, within_seconds(0.5)),
        oracle="choices",
        drawn=lambda n: (_our_choices(n)(), n),
        delta=DELTA,
        eta=RANGE,
    ),
    _case(
        "share-of-choices",
        "share: the range of each of 100 choices for a total",
        100,
        _our_share,
        (None, within_seconds(0.25)),
        oracle="a share of choices",
        drawn=lambda n: (_our_share(n)(), n),
        epsilon=EPSILON,
        delta=DELTA,
    ),
    *(
        _case(
            f"charge-{theorem}",
            f"laplace on one number, charged to a budget (theorem={theorem!r}), beside the same without a budget",
            1,
            partial(_charge, theorem),
            (Side("no budget", _uncharged), within("no budget", 2.8)),
            oracle="a hundred charges",
            drawn=partial(_charged, theorem),
            calls=50,
        )
        for theorem in CHARGED
    ),
    *(
        _case(
            f"charge-file{suffix}",
            f"a charge to a budget in a file, {where}",
            1,
            partial(_charge_stored, folder),
            (None, within_seconds(seconds)),
            oracle="a hundred charges",
            drawn=partial(_charged_stored, folder),
            calls=20,
        )
        for suffix, where, folder, seconds in (
            ("", "with its fsync", None, 1e-3),
            ("-in-memory", "without: on a file system in memory", "/dev/shm", 2.5e-4),
        )
    ),
    *(
        _case(
            f"charge-alone-{theorem}",
            f"what the charge adds to a release (theorem={theorem!r})",
            1,
            partial(_charge_alone, theorem),
            (None, within_seconds(8e-6)),
            oracle="a hundred charges",
            drawn=partial(_charged, theorem),
            clock="child",
        )
        for theorem in CHARGED
    ),
)
