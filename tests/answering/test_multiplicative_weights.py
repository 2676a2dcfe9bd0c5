"""Private multiplicative weights (fastdp/answering/multiplicative_weights.py, schedule.py, multiplicative_weights.md):
the interaction word by word, its
privacy by enumeration, the variants that are not private, the schedule from its inequalities, the object around it.
"""

from __future__ import annotations

import copy
import math
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (  # fmt: skip
    Budget,
    Conjunction,
    Domain,
    DomainError,
    Linear,
    Mask,
    PrivateMultiplicativeWeights,
    Product,
    Randomness,
    Range,
    marginals,
)
from fastdp.answering import multiplicative_weights as pmw
from fastdp.answering import true_answers as truth
from fastdp.answering import workload
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.queries import bound_query
from fastdp.answering.queries.bound_query import GRID_BITS, UNIT
from fastdp.answering.queries.query import bind
from fastdp.answering.update_schedule import UpdateSchedule, Variant
from fastdp.support.errors import AccuracyWarning
from tests.conftest import Watched
from tests.laws import audit, check_cells
from tests.mechanisms.test_sparse_vector import excess, pmf, probability, tail

# that plain noise would promise more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)

VARIANTS: list[Variant] = ["sharp", "lecture"]


@pytest.fixture
def _restore_threads() -> Iterator[None]:
    before = fastdp.get_num_threads()
    yield
    fastdp.set_num_threads(before)


# --- a tiny instance: one attribute, counts as the grid, any schedule

SIZE = 3
DOMAIN = Domain(a=SIZE)
Counts = tuple[int, ...]
Codes = tuple[int, ...]  # of a query: the allowed ones
# an update: for which query, to which side, and the answer that was given out (lecture)
Key = tuple[Any, ...]


def all_counts(n: int, size: int = SIZE) -> list[Counts]:
    if size == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in all_counts(n - first, size - 1)]


def neighbours(n: int) -> list[tuple[Counts, Counts]]:
    pairs = []
    for counts in all_counts(n):
        for i in range(SIZE):
            for j in range(SIZE):
                if i != j and counts[i]:
                    moved = list(counts)
                    moved[i] -= 1
                    moved[j] += 1
                    pairs.append((counts, tuple(moved)))
    return pairs


def gap(counts: Counts, weights: list[float], query: Codes) -> tuple[int, int]:
    """What the query has in the records, and how much more that is than in the distribution."""
    estimate = sum(weights[i] for i in query) / sum(weights)
    count = sum(counts[i] for i in query)
    return count, count - int(np.rint(estimate * sum(counts)))


def updated(weights: list[float], query: Codes, by: float) -> list[float]:
    return [w * math.exp(by) if i in query else w for i, w in enumerate(weights)]


def sharp_law(
    counts: Counts, queries: list[Codes], T: int, q1: Fraction, q2: Fraction, updates: int, rate: float
) -> dict[Key, Fraction]:
    """The law of the updates, as multiplicative_weights.md says it is run; answers follow from them."""
    law: dict[Key, Fraction] = {}

    def epochs(key: Key, p: Fraction, first: int, weights: list[float], left: int) -> None:
        if not left:
            law[key] = law.get(key, Fraction(0)) + p
            return
        tests: list[int] = []
        for i in range(first, len(queries)):
            _, g = gap(counts, weights, queries[i])
            for side in (1, -1):
                tests.append(side * g - T)
                fires = probability(tuple(tests), (*(False,) * (len(tests) - 1), True), q1, q2)
                epochs((*key, (i, side)), p * fires, i, updated(weights, queries[i], side * rate), left - 1)
        law[key] = law.get(key, Fraction(0)) + p * probability(tuple(tests), (False,) * len(tests), q1, q2)

    epochs((), Fraction(1), 0, [1.0] * SIZE, updates)
    return law


def lecture_law(
    counts: Counts, queries: list[Codes], T: int, q1: Fraction, q2: Fraction, updates: int, rate: float,
    q3: Fraction | None = None, reused: bool = False,
) -> dict[Key, Fraction]:  # fmt: skip
    """The same for the lecture's variant; noisy answers outside a window count as one on each side.

    `reused`: the noise of the test that fired is that of the answer as well.
    """
    law: dict[Key, Fraction] = {}
    n, q3 = sum(counts), q2 if q3 is None else q3
    window = range(-2, n + 3)

    def epochs(key: Key, p: Fraction, first: int, weights: list[float], left: int) -> None:
        if not left:
            law[key] = law.get(key, Fraction(0)) + p
            return
        tests: list[int] = []
        quiet = Fraction(1)
        for i in range(first, len(queries)):
            count, g = gap(counts, weights, queries[i])
            none = (False,) * len(tests)
            estimate = sum(weights[j] for j in queries[i]) / sum(weights) * n
            if reused:
                answers = {
                    v: pmf(v - count, q2) * probability(tuple(tests), none, q1, q2, most=abs(g) + v - count - T)
                    for v in window
                }
            else:
                fires = probability((*tests, abs(g) - T), (*none, True), q1, q2)
                answers = {v: fires * pmf(v - count, q3) for v in window}
                answers["low"] = fires * tail(count - window[0] + 1, q3)  # type: ignore[index]
                answers["high"] = fires * tail(window[-1] + 1 - count, q3)  # type: ignore[index]
            for v, chance in answers.items():
                over = v == "high" or (v != "low" and v > estimate)
                by = rate if over else -rate
                epochs((*key, (i, v)), p * chance, i + 1, updated(weights, queries[i], by), left - 1)
            tests.append(abs(g) - T)
            quiet = probability(tuple(tests), (False,) * len(tests), q1, q2)
        law[key] = law.get(key, Fraction(0)) + p * quiet

    epochs((), Fraction(1), 0, [1.0] * SIZE, updates)
    if reused:  # what lies outside the window
        law[("rest",)] = 1 - sum(law.values())
    return law


def tiny(
    monkeypatch: pytest.MonkeyPatch,
    variant: Variant,
    T: int,
    b1: float,
    b2: float,
    b3: float,
    updates: int,
    rate: float,
) -> None:
    """Have objects run this schedule, on the grid of whole records."""
    schedule = UpdateSchedule(variant, 0.5, updates, 0.01, b1, b2, b3, T, rate)
    monkeypatch.setattr(pmw.MultiplicativeWeightsParameters, "schedule", lambda self, n: schedule)
    monkeypatch.setattr(pmw, "UNIT", 1)
    monkeypatch.setattr(truth, "GRID_BITS", 0)
    monkeypatch.setattr(bound_query, "GRID_BITS", 0)
    monkeypatch.setattr(workload, "GRID_BITS", 0)


def make(data: Any, domain: Domain, **options: Any) -> PrivateMultiplicativeWeights:
    return PrivateMultiplicativeWeights(data, domain, **{"epsilon": 1.0, "delta": 1e-6, "max_queries": 10**6} | options)


def records(counts: Counts) -> np.ndarray:
    return np.repeat(np.arange(SIZE), counts)[:, None]


def scale_of(q: Fraction) -> float:
    return 1 / math.log(1 / q)


Q1, Q2, HALF = Fraction(3, 5), Fraction(7, 10), Fraction(1, 2)
QUERIES: list[Codes] = [(0,), (1, 2), (0, 2)]


def one_by_one(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return [run.answer(query) for query in queries]


def together(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return list(run.answer_many(queries))


def in_two(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return [*run.answer_many(iter(queries[:1])), *run.answer_many(queries[1:])]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ask", [one_by_one, together, in_two])
def test_what_runs_has_the_law_that_was_proved(variant: Variant, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object itself against exact probabilities, however it is asked; wrong laws are rejected by the same draws."""
    counts, updates, rate, T, runs = (4, 1, 1), 2, 0.7, 2, 4000
    tiny(monkeypatch, variant, T, scale_of(Q1), scale_of(Q2), scale_of(Q2) * (variant == "lecture"), updates, rate)
    queries = [Product({"a": list(codes)}) for codes in QUERIES]
    rng, seen = Randomness(seed=7), {}  # type: ignore[var-annotated]
    for _ in range(runs):
        run = make(records(counts), DOMAIN, variant=variant, rng=rng)
        steps: list[Any] = []
        scale = run._weights.scale

        def log_scale(bound: Any, by: float, steps: list[Any] = steps, run: Any = run, scale: Any = scale) -> None:
            last = len(run.transcript) - (variant == "lecture")
            value = round(run.transcript[-1].value * 6) if variant == "lecture" else 0
            steps.append((last, 1 if by > 0 else -1) if variant == "sharp" else (last, value))
            scale(bound, by)

        run._weights.scale = log_scale  # type: ignore[method-assign]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            answers = ask(run, queries)
        assert [row.value for row in run.transcript] == answers
        assert [row.query for row in run.transcript] == queries
        changed = {step[0] for step in steps}
        assert [row.updated for row in run.transcript] == [i in changed for i in range(len(queries))]
        assert run.updates == len(steps) <= updates
        seen[tuple(steps)] = seen.get(tuple(steps), 0) + 1

    def clipped(law: dict[Key, Fraction]) -> dict[Key, Fraction]:
        """Noisy answers as they are given out, within 0 and 1."""
        result: dict[Key, Fraction] = {}
        for key, p in law.items():
            short = tuple((i, {"low": 0, "high": 6}[v] if isinstance(v, str) else min(max(v, 0), 6)) for i, v in key)
            result[short] = result.get(short, Fraction(0)) + p
        return result

    def verdict(q1: Fraction, q2: Fraction, T: int) -> Any:
        law = sharp_law if variant == "sharp" else lecture_law
        right = law(counts, QUERIES, T, q1, q2, updates, rate)
        right = right if variant == "sharp" else clipped(right)
        assert sum(right.values()) == 1
        assert set(seen) <= set(right)
        return check_cells([seen.get(key, 0) for key in right], list(right.values()))

    assert verdict(Q1, Q2, T), str(verdict(Q1, Q2, T))
    for wrong in ((Q1**2, Q2**2, T), (Q1, Q2, T + 1), (Q1, Q2**3, T)):
        assert not verdict(*wrong)


# --- privacy of the interaction, by enumeration


def worst(
    law: Callable[[Counts], dict[Key, Fraction]],
    ratio: Fraction,
    n: int,
    pairs: list[tuple[Counts, Counts]] | None = None,
) -> Fraction:
    """The largest delta with which (ln ratio, delta) fails for neighbours of n records."""
    pairs = neighbours(n) if pairs is None else pairs
    laws = {counts: law(counts) for counts in {counts for pair in pairs for counts in pair}}
    found = Fraction(0)
    for a, b in pairs:
        assert laws[a].keys() == laws[b].keys()
        found = max(found, excess(laws[a], laws[b], ratio))
    return found


@pytest.mark.parametrize(
    ("n", "T", "updates", "rate"), [(3, 1, 1, 1.0), (3, 1, 2, 1.0), (4, 2, 2, 0.5), (2, 0, 2, 2.0)]
)
@pytest.mark.parametrize(("q1", "q2"), [(Q1, Q2), (Fraction(1, 4), Fraction(1, 2))])
def test_sharp_keeps_its_price(n: int, T: int, updates: int, rate: float, q1: Fraction, q2: Fraction) -> None:
    price = 1 / (q1 * q2**2)
    assert worst(lambda counts: sharp_law(counts, QUERIES, T, q1, q2, updates, rate), price**updates, n) == 0


@pytest.mark.parametrize(("n", "T", "updates", "rate"), [(3, 1, 1, 1.0), (3, 1, 2, 1.0), (2, 0, 2, 2.0)])
@pytest.mark.parametrize("q", [Fraction(3, 5), Fraction(1, 3)])
def test_lecture_keeps_four_times_its_price(n: int, T: int, updates: int, rate: float, q: Fraction) -> None:
    queries = QUERIES if updates == 1 else QUERIES[:2]
    assert worst(lambda counts: lecture_law(counts, queries, T, q, q, updates, rate), (1 / q**4) ** updates, n) == 0


def test_the_prices_are_attained() -> None:
    """Up to a few parts in a hundred, on instances as small as these: what is charged cannot be less."""
    sharp = lambda counts: sharp_law(counts, [(0,)] * 4, 1, HALF, HALF, 1, 1.0)  # noqa: E731
    assert worst(sharp, Fraction(15, 2), 12, [((0, 9, 3), (1, 8, 3)), ((1, 8, 3), (0, 9, 3))]) > 0
    assert worst(sharp, Fraction(8), 12) == 0
    lecture = lambda counts: lecture_law(counts, [*[(0,)] * 4, (1,)], 1, HALF, HALF, 1, 1.0)  # noqa: E731
    assert worst(lecture, Fraction(15), 12, [((7, 5, 0), (8, 4, 0))]) > 0
    assert worst(lecture, Fraction(16), 12) == 0


SAME: list[Codes] = [(0,)] * 6
EDGE = [((3, 0, 0), (2, 1, 0)), ((2, 1, 0), (3, 0, 0)), ((1, 2, 0), (0, 3, 0)), ((0, 3, 0), (1, 2, 0))]


def no_query_noise() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME[:2], 1, Q1, Fraction(0), 1, 1.0), 1 / (Q1 * Q2**2), 3)


def noise_not_scaled() -> Fraction:
    """Half of the scale, for the price of the whole."""
    q = HALF
    return worst(lambda counts: sharp_law(counts, SAME, 2, q**2, q**2, 1, 1.0), 1 / q**3, 3, EDGE)


def query_noise_of_half_the_scale() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME, 2, Q1, HALF**4, 1, 1.0), 1 / (Q1 * HALF**4), 3, EDGE)


def one_epoch_paid_and_two_run() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME[:3], 2, HALF, HALF, 2, 0.1), 1 / HALF**3, 3, EDGE)


def noise_reused_in_the_answer() -> Fraction:
    """What is given out bounds the threshold's noise, so every query before costs; four prices are not enough."""
    q, queries = HALF, [(0,)] * 9
    return worst(lambda counts: lecture_law(counts, queries, 3, q, q, 1, 1.0, reused=True), 1 / q**4, 3, EDGE)


def one_price_for_three_noises() -> Fraction:
    return worst(lambda counts: lecture_law(counts, SAME[:2], 1, HALF, HALF, 1, 1.0), 1 / HALF, 3)


def no_noise_in_the_answer() -> Fraction:
    law = lambda counts: lecture_law(counts, SAME[:2], 1, HALF, HALF, 1, 1.0, q3=Fraction(0))  # noqa: E731
    return worst(law, 1 / HALF**4, 3)


@pytest.mark.parametrize(
    "mutant",
    [
        no_query_noise, noise_not_scaled, query_noise_of_half_the_scale, one_epoch_paid_and_two_run,
        noise_reused_in_the_answer, one_price_for_three_noises, no_noise_in_the_answer,
    ],
)  # fmt: skip
def test_variants_that_are_not_private_are_rejected(mutant: Callable[[], Fraction]) -> None:
    assert mutant() > 0


# --- audit: what the object itself gives out, for neighbours

RUNS = 12_000
ONCE_IN = 1e-6  # so rarely an audit finds what is not there
AUDITED: dict[Variant, tuple[Counts, Counts, int, Fraction, list[Codes], float]] = {
    # neighbours, T, the law of the noises, what is asked, and which part of the price is found on these
    "sharp": ((1, 2, 0), (2, 1, 0), 1, Fraction(1, 3), [(0,), (0,), (0,), (1,)], 0.5),
    "lecture": ((5, 1, 0), (4, 2, 0), 3, Fraction(1, 4), [(0,)], 0.3),
}


def sampled(counts: Counts, asked: list[Codes], variant: Variant, seed: int) -> np.ndarray:
    """The answers: a row for each run."""
    rng, data, queries = Randomness(seed=seed), records(counts), [Product({"a": list(codes)}) for codes in asked]
    rows = np.empty((RUNS, len(queries)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        for i in range(RUNS):
            rows[i] = make(data, DOMAIN, variant=variant, rng=rng).answer_many(queries)
    return rows


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_audit_finds_the_price_and_not_more(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the object says; the noise of half the scale, or left out of answers, is found by as many runs."""
    a, b, T, law, asked, part = AUDITED[variant]
    scale, noisy_answers = scale_of(law), variant == "lecture"
    price = (4 if noisy_answers else 3) / scale

    def audited(*scales: float) -> Callable[[float], bool]:
        tiny(monkeypatch, variant, T, *scales, 1, 1.0)
        p, q = sampled(a, asked, variant, 1), sampled(b, asked, variant, 2)
        return lambda epsilon: any(audit(*pair, epsilon, alarm=ONCE_IN).refuted for pair in ((p, q), (q, p)))

    refuted = audited(scale, scale, scale * noisy_answers)
    assert not refuted(price)
    assert refuted(price * part), "the audit has no power"
    mutant = (scale, scale, QUIET) if noisy_answers else (scale, scale / 2, 0.0)
    assert audited(*mutant)(price)


# --- the interaction without noise, against its definition

QUIET = 2.0**-6  # a scale of which no draw is other than 0: e^-64


def run_plainly(
    counts: np.ndarray, queries: list[np.ndarray], T: int, c: int, rate: float, variant: Variant
) -> tuple[list[float], list[bool]]:
    """multiplicative_weights.md, "What is run", where all noise is 0."""
    n, weights, updates = int(counts.sum()), np.ones(counts.size), 0
    answers, changed = [], []
    for f in queries:
        moved = False
        while True:
            estimate = float(weights @ f / weights.sum())
            F = int(np.rint(counts @ f * UNIT))
            G = F - int(np.rint(estimate * (n * UNIT)))
            if updates == c or max(G, -G) < T:
                answers.append(estimate)
                break
            updates += 1
            moved = True
            weights = weights * np.exp((rate if G >= 0 else -rate) * f)
            if variant == "lecture":
                answers.append(F / (n * UNIT))
                break
        changed.append(moved)
    return answers, changed


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_many_answers_are_those_of_one_after_the_other(
    variant: Variant, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    domain = Domain(a=3, b=4, c=2, d=2)
    data = np.stack([np.minimum(rng.geometric(0.4, 500) - 1, size - 1) for size in domain.sizes], 1)
    counts = np.bincount(np.ravel_multi_index(tuple(data.T), domain.sizes), minlength=domain.size)
    queries: list[Any] = [*marginals(domain, 2), *marginals(domain, 3)]
    if form == "dense":
        queries += [Mask(rng.random(48) < 0.5) for _ in range(40)] + [Linear(rng.random(48)) for _ in range(40)]
    queries += [Range("b", 1, 2), Product({"a": [0, 2], "d": 1})] * 20
    order = rng.permutation(len(queries)).tolist()
    queries = [queries[i] for i in order]
    cubes = []
    for query in queries:
        bound = bind(query, domain)
        if hasattr(bound, "values"):
            cubes.append(bound.values.astype(float))
        else:
            cube, tables = np.zeros(domain.sizes), dict(bound.allowed)
            cube[np.ix_(*(tables.get(p, np.ones(s, bool)) for p, s in enumerate(domain.sizes)))] = 1
            cubes.append(cube.ravel())
    T, rate = int(0.03 * 500 * UNIT), 0.1 if variant == "sharp" else 0.05
    for c in (1000, 15):
        schedule = UpdateSchedule(variant, 0.04, c, 0.01, QUIET, QUIET, QUIET * (variant == "lecture"), T, rate)
        monkeypatch.setattr(
            pmw.MultiplicativeWeightsParameters, "schedule", lambda self, n, schedule=schedule: schedule
        )
        right, changed = run_plainly(counts, cubes, T, c, rate, variant)
        for ask in (one_by_one, together, in_two):
            run = make(data, domain, variant=variant, weights=form)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore" if c == 15 else "error", AccuracyWarning)
                answers = ask(run, queries)
            np.testing.assert_allclose(answers, right, rtol=0, atol=1e-9)
            assert [row.updated for row in run.transcript] == changed
            assert run.updates_left == c - run.updates
            assert run.updates == (15 if c == 15 else run.updates) >= sum(changed)


# --- accuracy


def skewed(n: int, domain: Domain, seed: int = 0) -> np.ndarray:
    """Records that are far from uniform: attributes tied to a hidden one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return np.stack(
        [np.minimum((size * hidden**2 * rng.random(n) ** 0.3).astype(int), size - 1) for size in domain.sizes], 1
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_within_alpha(variant: Variant, seed: int) -> None:
    domain = Domain(a=4, b=3, c=2, d=5, e=2)
    data = skewed(200_000, domain, seed)
    rng = np.random.default_rng(seed)
    queries: list[Any] = [*marginals(domain, 1), *marginals(domain, 2), *marginals(domain, 4)]
    queries += [Mask(rng.random(domain.size) < 0.5) for _ in range(50)]
    queries += [Linear(rng.random(domain.size)) for _ in range(50)]
    run = make(data, domain, epsilon=2.0, max_queries=len(queries), variant=variant, rng=Randomness(seed=seed))
    counts = [run._true_answers.count(bind(query, domain)) for query in queries]
    exact = np.array(counts) / (2.0**GRID_BITS * run.n)
    far = abs(exact - workload.Workload(queries, domain).evaluate(DenseWeights(domain))).max()
    assert far > 1.5 * run.alpha, "uniform weights must not do"
    before = run.nonprivate_kl()
    answers = run.answer_many(queries)
    assert abs(answers - exact).max() <= run.alpha
    assert 1 <= run.updates <= run._schedule.updates
    assert run.nonprivate_kl() < before
    # every update lowers the divergence by what the theorem says
    drop = run.alpha**2 / (2 if variant == "sharp" else 64)
    assert before - run.nonprivate_kl() >= run.updates * drop
    np.testing.assert_allclose(run.synthetic.answer(queries[5]), run._weights.evaluate(bind(queries[5], domain)))


@pytest.mark.parametrize("variant", VARIANTS)
def test_census(variant: Variant, census: tuple[dict[str, np.ndarray], Domain]) -> None:
    columns, domain = census
    queries = [query for k in (1, 2) for query in marginals(domain, k)]
    rng = Randomness(seed=1)
    run = make(
        columns, domain, epsilon=1.0 if variant == "sharp" else 4.0, max_queries=len(queries), variant=variant, rng=rng
    )
    assert run.n == 254_654
    answers = run.answer_many(queries)
    exact = workload.Workload(queries, domain).counts(run._true_answers) / (2.0**GRID_BITS * run.n)
    assert abs(answers - exact).max() <= run.alpha < 0.3
    assert 1 <= run.updates <= run._schedule.updates
    # every update lowers the divergence by what the theorem says
    before = make(columns, domain, max_queries=1, epsilon=100.0).nonprivate_kl()
    drop = run.alpha**2 / (2 if variant == "sharp" else 64)
    assert before - run.nonprivate_kl() >= run.updates * drop


def test_a_hundred_binary_attributes() -> None:
    domain = Domain.binary(100)
    hidden = np.random.default_rng(1).random((50_000, 10)) < 0.1
    data = np.repeat(hidden, 10, axis=1)  # v1 .. v10 are equal, v11 .. v20, ...
    run = make(data, domain, epsilon=10.0, max_queries=1000, rng=Randomness(seed=2))
    estimate = fastdp.bounds.private_multiplicative_weights(50_000, domain, epsilon=10.0, delta=1e-6, max_queries=1000)
    assert (estimate.cells, estimate.weight_bytes) == (2**100, 1600)
    assert estimate.alpha == run.alpha < 0.25
    queries = [Conjunction({f"v{i}": 0, f"v{i + 3}": 0}) for i in range(1, 98, 10)]
    queries += [Product({f"v{10 * j + 1}": 1, f"v{10 * j + 4}": [0, 1]}) for j in range(10)]
    queries += [Conjunction({f"v{i}": 1}) for i in range(1, 101)]
    answers = run.answer_many(queries)
    exact = [run._true_answers.count(bind(query, domain)) / (UNIT * run.n) for query in queries]
    assert abs(answers - exact).max() <= run.alpha
    assert run.updates > 0
    assert max(map(len, run._weights.blocks)) == 2
    with pytest.raises(ValueError, match=r"^domain: .* must be at most 2\^27 to count the records in each$"):
        run.nonprivate_kl()
    for query in (Mask(np.zeros(4, bool)), Linear(np.zeros(4))):
        with pytest.raises(ValueError, match=r"^(cells|values): shape"):
            run.answer(query)


def test_an_update_without_memory_is_refused_before_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain.binary(40)
    run = make(np.ones((20_000, 40), bool), domain, epsilon=10.0)
    monkeypatch.setattr("fastdp.answering.memory.usable_memory", lambda: 2**10)
    drawn = run._query_noise._draws.size
    with pytest.raises(ValueError, match=r"^domain: an update by this query would merge the blocks of 'v1'; 'v2'"):
        run.answer(Conjunction({f"v{i}": 1 for i in range(1, 11)}))
    assert run._query_noise._draws.size == drawn
    assert run.transcript == []
    assert run.answer(Conjunction({"v1": 1})) > 1 - run.alpha


# --- the schedule, from its inequalities


def log_tail(t: int, scale: float) -> Decimal:
    """ln Pr[|Z| > t] of discrete Laplace noise."""
    q = (-1 / Decimal(scale)).exp()
    return (t + 1) * q.ln() + (2 / (1 + q)).ln()


def least_tail(scale: float, beta: Decimal, count: int) -> int:
    """The least t such that none of `count` draws exceeds it, but with probability beta."""
    low, high = -1, 1
    while log_tail(high, scale) + Decimal(count).ln() > beta.ln():
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_tail(middle, scale) + Decimal(count).ln() > beta.ln() else (low, middle)
    return high


def zcdp_delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """The least over orders of what Canonne, Kamath and Steinke have: every order is a bound."""

    def power(a: Decimal) -> Decimal:
        return (a - 1) * (a * rho - epsilon) + a * (1 - 1 / a).ln() - (a - 1).ln()

    low, high = Decimal("1.0001"), epsilon / rho + 100
    for _ in range(120):  # it is convex in the order
        one, two = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, two) if power(one) < power(two) else (one, high)
    return power(low).exp()


CASES = [
    ("sharp", 10**5, 16 * math.log(2), 1.0, 1e-6, 1000, 0.05),
    ("sharp", 254_654, math.log(50_880), 0.5, 1e-8, 10**5, 0.01),
    ("sharp", 10**6, math.log(100), 1.0, 0.0, 50, 0.1),
    ("sharp", 10**8, 100 * math.log(2), 0.1, 1e-9, 10**7, 1e-6),
    ("sharp", 3000, 0.0, 1.0, 1e-6, 10, 0.05),
    ("lecture", 10**6, 16 * math.log(2), 1.0, 1e-6, 1000, 0.05),
    ("lecture", 10**7, math.log(50_880), 2.0, 0.0, 100, 0.2),
    ("lecture", 10**8, 100 * math.log(2), 3.0, 1e-9, 10**6, 1e-6),
]


def margin_of(schedule: UpdateSchedule, queries: int, beta: float) -> Decimal:
    """What the noise may come to, by theorem 2 or 3 of multiplicative_weights.md."""
    c, total = schedule.updates, Decimal(beta)
    if schedule.variant == "sharp":
        first = least_tail(schedule.threshold_scale, total / 2, c)
        return Decimal(first + least_tail(schedule.query_scale, total / 2, 2 * (queries + c)) + 2)
    return Decimal(max(least_tail(schedule.query_scale, total / 3, count) for count in (c, queries)) + 2)


@pytest.mark.parametrize(("variant", "n", "log_cells", "epsilon", "delta", "queries", "beta"), CASES)
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_the_schedule_is_what_the_theorems_ask_for(
    variant: Variant, n: int, log_cells: float, epsilon: float, delta: float, queries: int, beta: float, factor: float
) -> None:
    numbers: dict[str, Any] = {
        "n": n, "log_cells": log_cells, "epsilon": epsilon, "delta": delta, "queries": queries, "beta": beta,
    }  # fmt: skip
    best = UpdateSchedule.solve(variant, **numbers)
    assert best is not None
    found = UpdateSchedule.of(variant, min(0.99, factor * best.alpha), **numbers)
    assert found is not None
    with localcontext() as context:
        context.prec = 40
        alpha, share, parts = Decimal(found.alpha), Decimal("0.25"), 2
        if variant == "lecture":
            share, parts = Decimal("0.125"), 64
        c = max(1, math.ceil(parts * Decimal(log_cells) / alpha**2))
        assert abs(found.updates - c) <= 1
        assert found.updates >= parts * Decimal(log_cells) / alpha**2 - Decimal("1e-9")
        # privacy: an epoch, in fractions
        e0, b1, b2 = Fraction(found.epoch), Fraction(found.threshold_scale), Fraction(found.query_scale)
        if variant == "sharp":
            price = UNIT / b1 + 2 * UNIT / b2
            assert found.answer_scale == 0.0
        else:
            price = UNIT / b1 + 2 * UNIT / b2 + UNIT / Fraction(found.answer_scale)
            assert found.threshold_scale == found.query_scale == found.answer_scale
        assert price <= e0
        assert price > e0 * (1 - Fraction(1, 10**12))
        # privacy: all epochs
        pure = e0 * found.updates <= Fraction(epsilon)
        if not delta:
            assert pure
            assert e0 * found.updates > Fraction(epsilon) * (1 - Fraction(1, 10**12))
        else:
            rho = Decimal(found.updates) * Decimal(found.epoch) ** 2 / 2
            assert pure or zcdp_delta(rho, Decimal(epsilon)) <= Decimal(delta) * (1 + Decimal("1e-6"))
            assert not zcdp_delta(rho * Decimal("1.01"), Decimal(epsilon)) <= Decimal(delta) * Decimal("0.999")
        # accuracy
        allowed = share * n * UNIT * alpha
        margin = margin_of(found, queries, beta)
        assert margin <= allowed + 1
        wanted = (Fraction(3, 4) if variant == "sharp" else Fraction(1, 2)) * Fraction(found.alpha) * n * UNIT
        assert abs(found.threshold - math.ceil(wanted)) <= max(1, wanted / 2**52)
        assert found.rate == (2 * found.alpha if variant == "sharp" else found.alpha / 8)
        if factor == 1.0:  # the least alpha: a bit less does not keep the inequality
            assert margin > allowed * Decimal("0.99")
    assert UpdateSchedule.of(variant, best.alpha * 0.999, **numbers) is None


def test_the_split_makes_the_margin_least() -> None:
    numbers: dict[str, Any] = {
        "n": 10**5, "log_cells": 10.0, "epsilon": 1.0, "delta": 1e-6, "queries": 1000, "beta": 0.05,
    }  # fmt: skip
    found = UpdateSchedule.solve("sharp", **numbers)
    assert found is not None
    c, x = found.updates, found.threshold_scale * found.epoch / UNIT
    a, b = math.log(2 * c / 0.05), math.log(4 * (1000 + c) / 0.05)

    def margin(x: float) -> float:
        return x * a + 2 / (1 - 1 / x) * b

    assert margin(x) <= 1.0001 * min(margin(x * factor) for factor in (0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 2.0))
    about = 4 * (math.sqrt(a) + math.sqrt(2 * b)) ** 2 / (found.alpha * found.epoch)
    assert about == pytest.approx(1e5, rel=2e-3)


def test_more_of_anything_that_helps_helps() -> None:
    base: dict[str, Any] = {
        "n": 10**5, "log_cells": 11.0, "epsilon": 1.0, "delta": 1e-6, "queries": 1000, "beta": 0.05,
    }  # fmt: skip

    def alpha(**more: Any) -> float:
        found = UpdateSchedule.solve("sharp", **base | more)
        assert found is not None
        return found.alpha

    for better in ({"n": 10**6}, {"log_cells": 5.0}, {"epsilon": 2.0}, {"delta": 1e-4}, {"queries": 10}, {"beta": 0.5}):
        assert alpha(**better) < alpha()
    assert UpdateSchedule.solve("sharp", **base | {"n": 100}) is None
    for no in (0.0, 1.0, -1.0, math.nan):
        assert UpdateSchedule.of("sharp", no, **base) is None


def test_the_object_runs_its_schedule() -> None:
    domain = Domain(a=4, b=3)
    run = make(skewed(50_000, domain), domain, max_queries=100)
    right = UpdateSchedule.solve(
        "sharp", n=50_000, log_cells=math.log(4) + math.log(3), epsilon=1.0, delta=1e-6, queries=100, beta=0.05
    )
    assert right is not None
    assert run._schedule == right
    assert run._threshold_noise._plan.scale == right.threshold_scale
    assert run._query_noise._plan.scale == right.query_scale
    assert run.alpha == right.alpha
    wider = make(skewed(50_000, domain), domain, max_queries=100, alpha=0.5)
    assert wider.alpha == 0.5
    assert wider._schedule.updates < right.updates


# --- estimates, budgets, refusals

SMALL = Domain(a=4, b=3)
PEOPLE = skewed(20_000, SMALL)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_estimate_is_what_the_object_says(variant: Variant) -> None:
    options: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "max_queries": 200, "variant": variant, "beta": 0.1}
    for more in ({}, {"alpha": 0.9}, {"weights": "factored"}, {"precision": "float32"}):
        estimate = fastdp.bounds.private_multiplicative_weights(20_000, SMALL, **options | more)
        run = PrivateMultiplicativeWeights(PEOPLE, SMALL, **options | more)
        assert (estimate.alpha, estimate.beta) == (run.alpha, run.beta) == (run.alpha, 0.1)
        assert estimate.rounds == run.updates_left
        assert estimate.cells == SMALL.size
        assert estimate.weight_bytes == run._weights.bytes
        assert run._true_answers.histogram is not None
        assert estimate.record_bytes == run._true_answers.histogram.nbytes == estimate.bytes - estimate.weight_bytes
        assert f"at most {estimate.rounds:,} rounds" in str(estimate)
        if not more:
            n = fastdp.bounds.private_multiplicative_weights_n(SMALL, alpha=estimate.alpha, **options)
            assert n <= 20_000 < n * 1.001


def test_a_million_may_be_said_as_1e6() -> None:
    run = make(PEOPLE, SMALL, max_queries=1e3)
    assert (run.max_queries, type(run.max_queries)) == (1000, int)
    assert fastdp.bounds.private_multiplicative_weights(
        2e4, SMALL, epsilon=1.0, max_queries=np.float64(1e3), delta=1e-6
    ) == fastdp.bounds.private_multiplicative_weights(20_000, SMALL, epsilon=1.0, max_queries=1000, delta=1e-6)
    for wrong in (1e3 + 0.5, math.nan, math.inf, True, "1e3"):
        with pytest.raises(ValueError, match=r"^max_queries=.*: must be a whole number >= 1$"):
            make(PEOPLE, SMALL, max_queries=wrong)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_it_says_when_plain_noise_would_promise_more(delta: float) -> None:
    name = "Gaussian" if delta else "Laplace"
    options: dict[str, Any] = {"epsilon": 1.0, "delta": delta}
    with pytest.warns(
        AccuracyWarning,
        match=rf"^PrivateMultiplicativeWeights guarantees an error of at most 0\.[0-9]+, plain {name} noise on each of "
        rf"max_queries=100 answers 0\.[0-9]+: see fastdp\.{name.lower()}, in a Budget$",
    ) as told:
        run = make(np.repeat(PEOPLE, 10, axis=0), SMALL, max_queries=100, **options)
    assert told[0].filename == __file__
    few = fastdp.bounds.private_multiplicative_weights(run.n, SMALL, max_queries=100, **options)
    assert few.plain_alpha is not None
    assert few.plain_alpha < few.alpha == run.alpha
    assert f", plain noise on each answer within {few.plain_alpha:.4g}; at most" in str(few)
    if not delta:
        assert few.plain_alpha == fastdp.bounds.laplace(sensitivity=100, epsilon=1.0, count=100) / run.n
    else:  # as many releases of one count each, each for its share
        share = fastdp.share(fastdp.ApproxDP(1.0, 1e-6), 100, fastdp.ZCDP)
        each = fastdp.bounds.gaussian(sensitivity=1, rho=share, count=100)
        assert few.plain_alpha == pytest.approx(each / run.n, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(np.repeat(PEOPLE, 10, axis=0), SMALL, max_queries=10**7, **options)
    many = fastdp.bounds.private_multiplicative_weights(run.n, SMALL, max_queries=10**7, **options)
    assert many.plain_alpha is not None
    assert many.plain_alpha > many.alpha
    assert "plain" not in str(many)


def test_weights_and_records_must_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    monkeypatch.setattr("fastdp.answering.memory.usable_memory", lambda: 2**20)
    domain = Domain.binary(16)  # weights of 512 KiB, and a histogram of as much
    with pytest.raises(
        ValueError,
        match=r"^domain: weights take 512 KiB, evaluating them 512 KiB and the records 512 KiB: together at most 1 MiB",
    ):
        make(np.ones((20_000, 16), bool), domain, budget=budget, max_queries=10, epsilon=1.0, rng=Watched())
    assert len(budget.releases) == 0


def test_it_is_charged_once_when_it_is_made() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    run = make(PEOPLE, SMALL, max_queries=100, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == "PrivateMultiplicativeWeights"
    assert row.parameters == {
        "epsilon": 1.0, "delta": 1e-6, "max_queries": 100, "alpha": run.alpha, "variant": "sharp",
    }  # fmt: skip
    spent = budget.spent
    run.answer_many(marginals(SMALL, 2))
    run.synthetic.answer(Conjunction({"a": 1}))
    assert budget.spent == spent
    assert len(budget.releases) == 1
    with pytest.raises(fastdp.BudgetExceeded, match="PrivateMultiplicativeWeights asks for"):
        make(PEOPLE, SMALL, max_queries=100, budget=budget, rng=Watched())
    with Budget(epsilon=2.0) as ambient:
        make(PEOPLE, SMALL, max_queries=100, delta=0.0, epsilon=2.0)
        assert ambient.spent == fastdp.PureDP(2.0)


def test_what_is_guaranteed() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    both = run.guarantee
    assert isinstance(both, fastdp.AllOf)
    assert fastdp.ApproxDP(1.0, 1e-6) in both.parts
    (concentrated,) = [part for part in both.parts if isinstance(part, fastdp.ZCDP)]
    composed = run._schedule.updates * Fraction(run._schedule.epoch) ** 2 / 2
    assert concentrated.rho <= composed * (1 + Fraction(1, 10**9))
    with localcontext() as context:
        context.prec = 40
        assert zcdp_delta(Decimal(concentrated.rho), Decimal(1)) <= Decimal("1.001e-6")
    assert make(PEOPLE, SMALL, max_queries=100, delta=0.0).guarantee == fastdp.PureDP(1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"neighbors": "add-remove"}, ValueError, r"^neighbors='add-remove': must be 'replace-one'"),
        ({"neighbors": "friends"}, ValueError, r"^neighbors='friends'"),
        ({"epsilon": 0.0}, ValueError, r"^epsilon=0\.0: must be"),
        ({"epsilon": math.nan}, ValueError, r"^epsilon=nan: must be"),
        ({"delta": 1.0}, ValueError, r"^delta=1\.0: must be"),
        ({"delta": -1e-9}, ValueError, r"^delta="),
        ({"max_queries": 0}, ValueError, r"^max_queries=0: must be a whole number >= 1"),
        ({"max_queries": 2.5}, ValueError, r"^max_queries=2\.5"),
        ({"alpha": 0.0}, ValueError, r"^alpha=0\.0: must be"),
        ({"alpha": 1.0}, ValueError, r"^alpha=1\.0: must be"),
        ({"alpha": 0.001}, ValueError, r"^alpha=0\.001: must be at least 0\.\d+, what n=20000 records support$"),
        ({"beta": 0.0}, ValueError, r"^beta=0\.0: must be"),
        ({"variant": "blunt"}, ValueError, r"^variant='blunt': must be"),
        ({"weights": "sparse"}, ValueError, r"^weights='sparse': must be"),
        ({"precision": "float16"}, ValueError, r"^precision='float16': must be"),
        ({"outside": "drop"}, ValueError, r"^outside='drop': must be"),
        (
            {"epsilon": 1e-4},
            ValueError,
            r"^data: n=20000 records: must be more: no alpha below 1 can be guaranteed for 100",
        ),
        ({"domain": 12}, ValueError, r"^domain: type int: must be a fastdp\.Domain$"),
        (
            {"domain": Domain(a=4, b=2)},
            DomainError,
            r"^column 'b': must hold codes from 0 to 1 only; there are others$",
        ),
        ({"domain": Domain(a=4, b=3, c=2)}, ValueError, r"^data: 2 columns without names: must be 3"),
        ({"domain": Domain.binary(60), "weights": "dense"}, ValueError, r"^domain: dense weights put 60 attributes"),
        ({"data": np.full((20_000, 2), np.nan)}, DomainError, r"^column 'a': must not hold NaN$"),
        ({"data": PEOPLE[:50]}, ValueError, r"^data: n=50 records: must be more"),
        ({"data": PEOPLE[:0]}, ValueError, r"^data: n=0 records: must be more"),
        ({"data": {"a": PEOPLE[:, 0]}}, ValueError, r"'b'"),
        ({"rng": 7}, ValueError, r"^rng=7: must be a fastdp.Randomness or None"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_spent(options: Any, error: type[Exception], message: str) -> None:
    budget = Budget(epsilon=5.0, delta=1e-5)
    given = {"data": PEOPLE, "domain": SMALL, "epsilon": 1.0, "delta": 1e-6, "max_queries": 100} | options
    data, domain = given.pop("data"), given.pop("domain")
    with pytest.raises(error, match=message):
        PrivateMultiplicativeWeights(data, domain, budget=budget, **{"rng": Watched()} | given)
    assert len(budget.releases) == 0
    if (
        not options.keys() & {"data", "neighbors", "outside", "rng"}
        and error is ValueError
        and "columns" not in message
    ):
        with pytest.raises(error, match=message):
            fastdp.bounds.private_multiplicative_weights(20_000, domain, **given)


def test_records_outside_may_be_clipped() -> None:
    clipped = make(PEOPLE, Domain(a=4, b=2), outside="clip")
    assert clipped._true_answers.histogram is not None
    right = np.bincount(PEOPLE[:, 0] * 2 + np.minimum(PEOPLE[:, 1], 1), minlength=8)
    assert clipped._true_answers.histogram.tolist() == right.tolist()


def test_past_the_last_query_it_refuses() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    queries = [Conjunction({"a": i % 4}) for i in range(11)]
    with pytest.raises(ValueError, match=r"^queries: 11 more: must be at most 10, what is left of max_queries$"):
        run.answer_many(queries)
    assert run.transcript == []
    run.answer_many(queries[:7])
    with pytest.raises(ValueError, match=r"^queries: 4 more: must be at most 3"):
        run.answer_many(queries[7:])
    run.answer_many(queries[:3])
    assert len(run.transcript) == 10
    with pytest.raises(ValueError, match=r"^queries: 1 more: must be at most 0"):
        run.answer(queries[0])
    assert run.answer_many([]).size == 0
    assert isinstance(run.synthetic.answer(queries[0]), float), "the distribution goes on"


def test_when_updates_are_spent_it_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for variant in VARIANTS:
        tiny(monkeypatch, variant, 1, QUIET, QUIET, QUIET * (variant == "lecture"), 2, 0.3)
        run = make(records((6, 0, 0)), DOMAIN, max_queries=20, variant=variant)
        queries = [Conjunction({"a": 0}), Conjunction({"a": 1}), Conjunction({"a": 2})] * 4
        with pytest.warns(
            AccuracyWarning, match=r"^all 2 updates are spent: answers come from the distribution as it is, "
        ) as w:
            answers = run.answer_many(queries)
        assert len(w) == 1
        assert w[0].filename == __file__
        assert (run.updates, run.updates_left, len(run.transcript)) == (2, 0, 12)
        after = run.answer_many(queries[:3])  # warns no more
        np.testing.assert_allclose(after, answers[-3:])
        np.testing.assert_allclose(after, [run.synthetic.answer(query) for query in queries[:3]])
    # a warning that is made an error leaves an object that goes on
    run = make(records((6, 0, 0)), DOMAIN, max_queries=20, variant="lecture")
    with pytest.raises(AccuracyWarning):
        run.answer_many(queries)
    assert run.updates_left == 0
    assert 0.0 <= run.answer(queries[0]) <= 1.0


def test_nothing_is_tested_after_the_last_update(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch, "sharp", 1, QUIET, QUIET, 0.0, 1, 0.3)
    run = make(records((6, 0, 0)), DOMAIN, max_queries=100)
    with pytest.warns(AccuracyWarning):
        run.answer(Conjunction({"a": 0}))

    def refuse(*args: Any) -> Any:
        raise AssertionError("the records were asked")

    monkeypatch.setattr(run._true_answers, "count", refuse)
    monkeypatch.setattr(run._query_noise, "draw", refuse)
    assert run.answer_many([Conjunction({"a": i % 3}) for i in range(80)]).size == 80


def test_queries_that_do_not_fit_are_refused_before_any_is_answered() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    good = Conjunction({"a": 1})
    for bad, message in (
        (Conjunction({"c": 1}), r"^attribute='c'"),
        (Conjunction({"a": 4}), r"^a=4: must be a code"),
        (Mask(np.zeros(13, bool)), r"^cells: shape \(13,\)"),
        (Linear(np.zeros(13)), r"^values: shape \(13,\)"),
        ("a = 1", r"^query: type str: must be a query"),
    ):
        with pytest.raises(ValueError, match=message):
            run.answer_many([good, bad])
    assert run.transcript == []


def test_no_noise_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new epoch throws away what was drawn ahead, and every key is fresh."""
    keys = []
    fresh = pmw.fresh_key
    monkeypatch.setattr(pmw, "fresh_key", lambda rng: keys.append(fresh(rng)) or keys[-1])
    run = make(PEOPLE, SMALL, max_queries=500, rng=Randomness(seed=3))
    scale = run._weights.scale

    def watched(bound: Any, rate: float) -> None:
        assert run._query_noise._draws.size == 0
        scale(bound, rate)

    monkeypatch.setattr(run._weights, "scale", watched)
    for _ in range(30):
        run.answer_many(marginals(SMALL, 2))
    assert run.updates >= 1
    assert len({bytes(np.asarray(key).tobytes()) for key in keys}) == len(keys)
    source = run._query_noise
    drawn = np.concatenate([source.draw(count) for count in (1, 2, 700, 1, 300, 1000, 5)])
    assert drawn.size == 2009
    assert np.unique(drawn).size > 1900


# --- one object, one process


def test_no_copies() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps, lambda r: copy.deepcopy([r])):
        with pytest.raises(TypeError, match=r"^this object does not pickle or copy: each copy could answer"):
            attempt(run)


def test_a_forked_child_is_a_copy_too(run_python: Callable[..., str]) -> None:
    code = """
import os, numpy as np, fastdp
data = np.random.default_rng(0).integers(0, 3, (20_000, 1))
run = fastdp.PrivateMultiplicativeWeights(data, fastdp.Domain(a=3), epsilon=1.0, max_queries=10_000)
query = fastdp.Conjunction({"a": 1})
child = os.fork()
if not child:
    try:
        run.answer(query)
    except RuntimeError as error:
        print("refused" if "parent process" in str(error) else error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
run.answer(query)
"""
    assert run_python(code).split() == ["refused"]


def test_many_threads_get_no_more_than_one_would() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    answered, refused = [], []

    def ask() -> None:
        for i in range(40):
            try:
                answered.append(run.answer(Conjunction({"a": i % 4, "b": i % 3})))
            except ValueError:
                refused.append(1)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert (len(answered), len(refused), len(run.transcript)) == (100, 60, 100)


@pytest.mark.usefixtures("_restore_threads")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_seed_gives_the_same_bits_for_every_number_of_threads(variant: Variant) -> None:
    domain = Domain.binary(21)
    data = np.random.default_rng(1).random((100_000, 21)) < 0.1
    rng = np.random.default_rng(2)
    queries: list[Any] = [Conjunction({f"v{i}": 0, f"v{i + 5}": 0}) for i in range(1, 17)]
    queries += [Mask(rng.random(2**21) < 0.5), Product({"v21": 1, "v1": 0})]

    def run(seed: int) -> Any:
        made = make(data, domain, epsilon=10.0, max_queries=100, variant=variant, rng=Randomness(seed=seed))
        return made.answer_many(queries).tobytes(), made.updates, made._weights.probabilities().tobytes()

    results = []
    for threads in (1, 2):
        fastdp.set_num_threads(threads)
        results.append(run(4))
    assert results[0] == results[1]
    assert results[0][1] > 0
    assert run(5)[0] != results[0][0]


def test_the_divergence_is_the_definition() -> None:
    run = make(PEOPLE, SMALL, max_queries=100, rng=Randomness(seed=1))
    run.answer_many(marginals(SMALL, 2))
    true = np.bincount(PEOPLE[:, 0] * 3 + PEOPLE[:, 1], minlength=12) / len(PEOPLE)
    ours = run._weights.probabilities()
    right = sum(float(t) * math.log(t / o) for t, o in zip(true, ours, strict=True) if t)
    assert run.nonprivate_kl() == pytest.approx(right, abs=1e-12)
    fresh = make(PEOPLE, SMALL, max_queries=100)
    assert fresh.nonprivate_kl() == pytest.approx(math.log(12) + float((true[true > 0] * np.log(true[true > 0])).sum()))


def test_the_synthetic_distribution_stays_as_it_was() -> None:
    run = make(PEOPLE, SMALL, epsilon=5.0, max_queries=100, rng=Randomness(seed=1))
    before = run.synthetic
    share = before.answer(Conjunction({"a": 0}))
    run.answer_many(marginals(SMALL, 2))
    assert run.updates > 0
    assert before.answer(Conjunction({"a": 0})) == share == pytest.approx(0.25)
    assert run.synthetic.answer(Conjunction({"a": 0})) != share


def test_the_repr_says_what_is_promised() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    run.answer(Conjunction({"a": 1}))
    shown = repr(run)
    assert shown.startswith(
        f"PrivateMultiplicativeWeights(12 cells, n=20,000, alpha={run.alpha:.4g}, (1, 1e-06)-DP and "
    )
    assert "# 1 of 10 queries," in shown
    assert "<code>" in run._repr_html_()


def run_with_time(work: Callable[[], Any]) -> None:
    """In a thread of its own, so that a deadlock is a failure and no hanging test."""
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]


def test_no_lock_is_held_while_progress_is_called() -> None:
    run = make(PEOPLE, SMALL, max_queries=500, rng=Randomness(seed=1))
    query, seen, waited = Conjunction({"a": 0}), [], []
    others = [threading.Thread(target=lambda: waited.append(run.answer(query)), daemon=True) for _ in range(2)]

    def progress(done: int, total: int, what: str) -> None:
        seen.append((run.synthetic.answer(query), run.nonprivate_kl(), repr(run)))
        with pytest.raises(
            RuntimeError, match=r"^what is called while an answer is made, such as `progress`, must not"
        ):
            run.answer(query)
        if len(seen) == 1:
            for other in others:
                other.start()
        assert waited == [], "others wait for their turn"

    run_with_time(lambda: run.answer_many(marginals(SMALL, 2), progress=progress))
    assert len(seen) > 1
    for other in others:
        other.join(30)
    assert len(waited) == 2
    assert len(run.transcript) == len(marginals(SMALL, 2)) + 2
    run_with_time(lambda: run.answer(query))


def test_no_lock_is_held_while_a_warning_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch, "sharp", 1, QUIET, QUIET, 0.0, 1, 0.3)
    run = make(records((6, 0, 0)), DOMAIN, max_queries=100)
    shown: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        monkeypatch.setattr(warnings, "showwarning", lambda *args, **more: shown.append(run.synthetic.probabilities()))
        run_with_time(lambda: run.answer(Conjunction({"a": 0})))
    assert len(shown) == 1


def test_an_error_in_progress_ends_the_turn() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)

    def fail(*args: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run.answer_many([Conjunction({"a": 1})], progress=fail)
    run_with_time(lambda: run.answer(Conjunction({"a": 1})))


@pytest.mark.parametrize(
    "name", ["updates", "updates_left", "alpha", "beta", "n", "max_queries", "guarantee", "domain", "variant"]
)
def test_what_was_paid_for_cannot_be_set(name: str) -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    with pytest.raises(AttributeError):
        setattr(run, name, getattr(run, name))


def test_progress_is_told() -> None:
    seen: list[Any] = []
    run = make(PEOPLE, SMALL, max_queries=100)
    run.answer_many(marginals(SMALL, 2), progress=lambda *args: seen.append(args))
    assert seen
    seen.clear()
    make(PEOPLE, SMALL, max_queries=100, progress=lambda *args: seen.append(args))
    assert seen == [(0, 1, "reading the records"), (1, 1, "")]
