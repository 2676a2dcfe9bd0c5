"""MWEM (fastdp/answering/mwem.py, mwem.md): sensitivities, schedules, privacy by enumeration, both variants in use."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp import (
    Budget,
    Conjunction,
    Domain,
    DomainError,
    Linear,
    Mask,
    Predicate,
    Product,
    Randomness,
    Range,
    marginals,
)
from fastdp.answering import mwem_average, mwem_measured
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.mwem_average import AveragePlan, AverageRounds
from fastdp.answering.mwem_measured import MeasuredPlan
from fastdp.answering.mwem_plan import plain_noise_error
from fastdp.answering.queries.bound_query import UNIT
from fastdp.answering.queries.marginals import Marginals
from fastdp.answering.queries.query import bind
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload
from fastdp.randomness import noise_draws, noise_plans
from fastdp.support.errors import AccuracyWarning
from tests.answering.test_multiplicative_weights import (
    DOMAIN,
    QUERIES,
    Codes,
    Counts,
    Key,
    all_counts,
    neighbours,
    skewed,
    updated,
    zcdp_delta,
)
from tests.conftest import Watched
from tests.laws import audit
from tests.mechanisms.test_sparse_vector import excess

SMALL = Domain(a=4, b=3, c=2, d=5)
FEWER = Domain(a=4, b=2, c=2, d=5)
PEOPLE = skewed(20_000, SMALL)


def fit(data: Any, domain: Domain, queries: Any, **options: Any) -> Any:
    """`mwem`, whatever it says of Gaussian answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return fastdp.mwem(data, domain, queries, **{"epsilon": 1.0, "delta": 1e-6, "variant": "average"} | options)


def plan(kind: Any, data: Any, domain: Domain, queries: Any, **options: Any) -> Any:
    given: dict[str, Any] = {
        "n": len(data), "neighbors": "replace-one", "epsilon": 1.0, "delta": 1e-6, "beta": 0.05, "rounds": None,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        made = kind(Workload(queries, domain), **given | options)
    made.read(TrueAnswers(data, domain))
    return made


def cells(query: Any, domain: Domain) -> np.ndarray:
    bound = bind(query, domain)
    if hasattr(bound, "values"):
        return bound.values.astype(np.float64)
    tables, cube = dict(bound.allowed), np.zeros(domain.sizes)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(domain.sizes)))] = 1.0
    return cube.ravel()


def histogram(data: np.ndarray, domain: Domain) -> np.ndarray:
    return np.bincount(np.ravel_multi_index(tuple(data.T), domain.sizes), minlength=domain.size)


def exact_answers(data: np.ndarray, domain: Domain, queries: Any) -> np.ndarray:
    return np.array([cells(query, domain) @ histogram(data, domain) for query in queries]) / len(data)


# --- sensitivity: mwem.md, theorem 1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("seed", range(15))
def test_one_record_moves_a_gap_by_one_and_a_table_by_two(relation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(a=int(rng.integers(1, 5)), b=3, c=2)
    tables = marginals(domain, int(rng.integers(1, 4)))
    singles = [Linear(rng.random(domain.size)) for _ in range(10)] + [
        Mask(rng.random(domain.size) < 0.5) for _ in range(5)
    ]
    singles += [Range("b", 1, 2), Product({"a": 0, "b": [0, 2]}), Conjunction({"c": 1}), Product({})]
    weights = DenseWeights(domain)
    for query in singles[:8]:
        weights.scale(bind(query, domain), float(rng.normal() * 3))
    starts = np.cumsum([0, *(math.prod(shape) for shape in tables.shapes)])[:-1]
    furthest = [0, 0]
    for _ in range(25):
        data = np.stack([rng.integers(0, size, 12) for size in domain.sizes], 1)
        other = data.copy()
        if relation == "replace-one":
            other[int(rng.integers(12))] = [rng.integers(size) for size in domain.sizes]
        else:
            other = np.delete(other, int(rng.integers(12)), 0)
        both = []
        for records in (data, other):
            one = plan(AveragePlan, records, domain, [*tables, *singles], n=12)
            gaps = one.gaps(one.counts, one.workload.evaluate(weights))
            assert gaps.dtype == np.int64
            both.append((gaps, np.add.reduceat(np.abs(gaps[: len(tables)]), starts)))
        for j, most in ((0, 1), (1, 2)):
            moved = int(np.abs(both[0][j] - both[1][j]).max())
            assert moved <= most * UNIT
            furthest[j] = max(furthest[j], moved)
    assert furthest[0] > UNIT / 2


def test_a_table_can_move_by_two() -> None:
    """Where all its weight lies in another cell than the record that is added: `reach` cannot be less."""
    domain = Domain(a=2)
    weights = DenseWeights(domain)
    weights.scale(bind(Conjunction({"a": 0}), domain), 30.0)
    scores = []
    for n in (1, 2):
        one = plan(MeasuredPlan, np.ones((n, 1), int), domain, marginals(domain, 1), n=2)
        scores.append(int(np.abs(one.gaps(one.counts, one.workload.evaluate(weights))).sum()))
    assert scores[1] - scores[0] >= 2 * UNIT - 2


@pytest.mark.parametrize("variant", ["average", "measured"])
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_choices_are_made_at_the_rate_that_is_paid_for(
    variant: Any, tables: bool, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = marginals(SMALL, 2)
    queries: Any = work if tables else list(work)
    calls = []
    draw = mwem_average.draw_one

    def watched(scores: Any, key: Any, eta: float) -> int:
        calls.append((np.array(scores), bytes(np.asarray(key).tobytes()), eta))
        return int(draw(scores, key, eta))

    for module in (mwem_average, mwem_measured):
        monkeypatch.setattr(module, "draw_one", watched)
    fitted = fit(PEOPLE, SMALL, queries, variant=variant, rounds=5, delta=delta, rng=Randomness(seed=1))
    kind = AveragePlan if variant == "average" else MeasuredPlan
    made = plan(kind, PEOPLE, SMALL, queries, rounds=5, delta=delta)
    promised = Fraction(made.schedule.range if variant == "average" else made.range)
    reach = 4 if tables and variant == "measured" else 2
    assert len(calls) == fitted.rounds == 5
    assert len({key for _, key, _ in calls}) == 5
    for scores, _, eta in calls:
        assert Fraction(eta) * reach * UNIT <= promised
        assert Fraction(eta) * reach * UNIT > promised * (1 - Fraction(1, 10**12))
        assert scores.size == (6 if reach == 4 else len(work) * (2 if variant == "average" else 1))


# --- privacy by enumeration: all choices of two rounds, on a grid of a quarter of a record


def choices_law(
    counts: Counts, queries: list[Codes], r: Fraction, rounds: int, U: int = 4, scores: Any = None
) -> dict[Key, Fraction]:
    """The law of the choices of "average"; r = e^eta."""
    law: dict[Key, Fraction] = {}

    def run(key: Key, p: Fraction, weights: list[float], left: int) -> None:
        if not left:
            law[key] = law.get(key, Fraction(0)) + p
            return
        gaps = []
        for query in queries:
            value = sum(weights[i] for i in query) / sum(weights)
            gaps.append(U * sum(counts[i] for i in query) - sum(counts) * math.floor(U * value))
        made = [*gaps, *(-g for g in gaps)] if scores is None else scores(counts, gaps)
        total = sum(r**score for score in made)
        for i, score in enumerate(made):
            sign, j = (1, i) if i < len(gaps) else (-1, i - len(gaps))
            run((*key, i), p * r**score / total, updated(weights, queries[j % len(queries)], sign * 0.8), left - 1)

    run((), Fraction(1), [1.0] * len(counts), rounds)
    return law


def pairs(relation: str, n: int) -> list[tuple[Counts, Counts]]:
    if relation == "replace-one":
        return neighbours(n)
    grown = []
    for counts in all_counts(n):
        for i in range(len(counts)):
            more = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            grown += [(counts, more), (more, counts)]
    return grown


def worst(law: Callable[[Counts], dict[Key, Fraction]], price: Fraction, some: list[tuple[Counts, Counts]]) -> Fraction:
    laws = {counts: law(counts) for counts in {counts for pair in some for counts in pair}}
    return max(excess(laws[a], laws[b], price) for a, b in some)


R = Fraction(6, 5)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_choices_keep_their_price(relation: str, n: int) -> None:
    if n or relation == "add-remove":
        for rounds in (1, 2):
            assert (
                worst(lambda c, k=rounds: choices_law(c, QUERIES, R, k), R ** (2 * 4 * rounds), pairs(relation, n)) == 0
            )


def half_of_the_price() -> Fraction:
    """A range of one record, where it is two."""
    return worst(lambda c: choices_law(c, [(0,), (1, 2)], R**2, 1), R ** (2 * 4), pairs("replace-one", 3))


def one_round_paid_and_two_run() -> Fraction:
    return worst(lambda c: choices_law(c, QUERIES, Fraction(3), 2), Fraction(3) ** (2 * 4), pairs("replace-one", 3))


def averages_under_add_remove() -> Fraction:
    """Scores that are averages over the records, times a public 3: one record more moves them by more than it is."""
    scores = lambda counts, gaps: [s * g * 3 // max(sum(counts), 1) for s in (1, -1) for g in gaps]  # noqa: E731
    return worst(
        lambda c: choices_law(c, QUERIES, Fraction(2), 1, scores=scores), Fraction(2) ** 8, pairs("add-remove", 1)
    )


@pytest.mark.parametrize("mutant", [half_of_the_price, one_round_paid_and_two_run, averages_under_add_remove])
def test_variants_that_are_not_private_are_rejected(mutant: Callable[[], Fraction]) -> None:
    assert mutant() > 0


# --- audit: what a call gives out, for neighbours

FOUR = Domain(a=4)
RUNS = 6000


def chosen_of(counts: Counts, seed: int) -> np.ndarray:
    """Which of two queries "average" chooses."""
    data, rng = np.repeat(np.arange(4), counts)[:, None], Randomness(seed=seed)
    queries = [Conjunction({"a": 0}), Conjunction({"a": 1})]
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 0.0, "rounds": 1, "rng": rng, "variant": "average"}
    return np.array([queries.index(fit(data, FOUR, queries, **options).chosen[0]) for _ in range(RUNS)])


def measured_of(counts: Counts, seed: int) -> np.ndarray:
    """What "measured" answers to the one query."""
    data, rng, query = np.repeat(np.arange(4), counts)[:, None], Randomness(seed=seed), Conjunction({"a": 0})
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 0.0, "rng": rng, "variant": "measured"}
    return np.array([fit(data, FOUR, [query], **options).answer(query) for _ in range(RUNS)])


def twice_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mwem_average, "range_of_round", lambda count, epsilon, delta: 2 * epsilon / count)


def half_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    laplace_plan = noise_plans.laplace_plan
    monkeypatch.setattr(mwem_measured.noise_plans, "laplace_plan", lambda scale: laplace_plan(scale / 2))


@pytest.mark.parametrize(("run", "mutant"), [(chosen_of, twice_the_range), (measured_of, half_of_the_noise)])
def test_an_audit_finds_the_price_and_not_more(
    run: Callable[[Counts, int], np.ndarray], mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited() -> Callable[[float], bool]:
        p, q = run((5, 5, 0, 0), 1), run((6, 4, 0, 0), 2)
        return lambda epsilon: audit(p, q, epsilon).refuted or audit(q, p, epsilon).refuted

    refuted = audited()
    assert not refuted(2.0)
    assert refuted(1.0), "the audit has no power"
    mutant(monkeypatch)
    assert audited()(2.0)


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_under_add_remove_the_schedule_follows_from_the_public_bound(variant: Any) -> None:
    """Rounds, rates and noise are the same for all data; read off the records they would tell them apart at once."""
    work = marginals(SMALL, 2)
    kind = AveragePlan if variant == "average" else MeasuredPlan
    made = [
        plan(kind, PEOPLE[:n], SMALL, work, n=20_000, neighbors="add-remove") for n in (10, 999, 1000, 19_999, 20_000)
    ]
    assert len({repr(one.guarantee) for one in made}) == 1
    assert len({one.rounds for one in made}) == 1
    if variant == "average":
        assert len({one.schedule for one in made}) == 1
    else:
        assert len({(one.range, one.sigma, one.score_sensitivity) for one in made}) == 1
    options = {"variant": variant, "neighbors": "add-remove", "records": 2000}
    fitted = [fit(PEOPLE[:n], SMALL, work, **options) for n in (0, 1, 500, 20_000)]
    assert len({(one.rounds, one.alpha, repr(one.guarantee)) for one in fitted}) == 1
    assert {one.n for one in fitted} == {None}
    if variant == "average":
        assert fitted[0].rounds == plan(AveragePlan, PEOPLE, SMALL, work, n=2000, neighbors="add-remove").rounds
    # the mutant: len(data) in the schedule
    numbers: dict[str, Any] = {"log_cells": 5.0, "queries": 100, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    counts = [AverageRounds.best(10_000, n=n, **numbers).count for n in range(1000, 1400)]
    assert any(a != b for a, b in pairwise(counts))


# --- schedules

NUMBERS: list[dict[str, Any]] = [
    {"n": 10**4, "log_cells": 11.0, "queries": 1000, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05},
    {"n": 254_654, "log_cells": math.log(50_880), "queries": 30_000, "epsilon": 0.1, "delta": 1e-9, "beta": 0.01},
    {"n": 10**5, "log_cells": 69.3, "queries": 10, "epsilon": 3.0, "delta": 0.0, "beta": 0.2},
    {"n": 50, "log_cells": 1.0, "queries": 2, "epsilon": 1.0, "delta": 1e-3, "beta": 0.5},
]


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("count", [None, 1, 7, 300])
def test_the_schedule_of_average_is_theorem_2(numbers: dict[str, Any], count: int | None) -> None:
    rounds = AverageRounds.best(10_000, **numbers) if count is None else AverageRounds.of(count, **numbers)
    c, e = rounds.count, Fraction(rounds.range)
    epsilon, delta = Decimal(numbers["epsilon"]), Decimal(numbers["delta"])
    with localcontext() as context:
        context.prec = 40
        pure = c * e <= Fraction(numbers["epsilon"])
        rho = Decimal(c) * Decimal(rounds.range) ** 2 / 8
        assert pure or (delta and zcdp_delta(rho, epsilon) <= delta * (1 + Decimal("1e-6")))
        more = Decimal("1.02")  # not much is left over, by neither accounting
        assert c * e * Fraction(more) > Fraction(numbers["epsilon"])
        assert not delta or zcdp_delta(rho * more, epsilon) > delta
        k, n, cells = Decimal(numbers["queries"]), Decimal(numbers["n"]), Decimal(numbers["log_cells"])
        slack = 2 / Decimal(rounds.range) * (2 * k * c / Decimal(numbers["beta"])).ln()
        assert rounds.alpha == pytest.approx(float((cells / (2 * c)).sqrt() + slack / n + 1 / Decimal(UNIT)), rel=1e-12)
        assert rounds.rate == pytest.approx(float((8 * cells / c).sqrt()), rel=1e-12)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_no_other_number_of_rounds_promises_much_more(numbers: dict[str, Any]) -> None:
    best = AverageRounds.best(10_000, **numbers)
    tried = [AverageRounds.of(count, **numbers).alpha for count in (*range(1, 400), *range(400, 10_001, 97))]
    assert min(tried) > best.alpha * 0.998


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (2.0, 0.0)])
@pytest.mark.parametrize("rounds", [1, 4, None])
def test_the_schedule_of_measured_is_theorem_3(
    relation: Any, tables: bool, epsilon: float, delta: float, rounds: int | None
) -> None:
    work = marginals(SMALL, 2)
    if not tables and relation == "add-remove":
        with pytest.raises(ValueError, match=r"^queries: must be marginals for variant='measured' under add-remove"):
            fit(PEOPLE, SMALL, list(work), variant="measured", neighbors=relation, records=10)
        return
    options = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "neighbors": relation}
    made = plan(MeasuredPlan, PEOPLE, SMALL, work if tables else list(work), **options)
    c = made.rounds
    assert c == min(100 if rounds is None else rounds, work.tables if tables else len(work))
    moved = 2 if tables and relation == "replace-one" else 1
    choice, scale = Fraction(made.range), Fraction(made.noise.scale if not delta else made.noise.sigma) / UNIT
    if delta:
        assert Fraction(made.sigma) <= scale
        each = choice**2 / 8 + moved / (2 * scale**2)
        with localcontext() as context:
            context.prec = 40
            rho = Decimal((c * each).numerator) / Decimal((c * each).denominator)
            assert zcdp_delta(rho, Decimal(epsilon)) <= Decimal(delta) * (1 + Decimal("1e-6"))
            assert zcdp_delta(rho * Decimal("1.01"), Decimal(epsilon)) > Decimal(delta)
        assert choice**2 / 8 == pytest.approx(float(each) / 10, rel=1e-6)
    else:
        each = choice + moved / scale
        assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < c * each <= Fraction(epsilon)
        assert choice == pytest.approx(float(each) / 10, rel=1e-6)
        assert made.sigma == pytest.approx(math.sqrt(2) * float(scale), rel=1e-12)


def test_what_is_measured_has_the_noise_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    integer_noise = noise_draws.integer_noise

    def watched(planned: Any, key: Any, n: int) -> Any:
        drawn.append((planned, bytes(np.asarray(key).tobytes()), n))
        return integer_noise(planned, key, n)

    monkeypatch.setattr(mwem_measured.noise_draws, "integer_noise", watched)
    work = marginals(SMALL, 2)
    for delta in (1e-6, 0.0):
        drawn.clear()
        made = plan(MeasuredPlan, PEOPLE, SMALL, work, delta=delta)
        fitted = fit(PEOPLE, SMALL, work, variant="measured", delta=delta)
        assert all(repr(planned) == repr(made.noise) for planned, _, _ in drawn)
        assert len({key for _, key, _ in drawn}) == fitted.rounds == work.tables
        sizes = dict(zip(work.subsets, map(math.prod, work.shapes), strict=True))
        assert [n for _, _, n in drawn] == [sizes[subset] for subset in fitted.chosen]


def test_when_gaussian_answers_need_fewer_records_it_says_so() -> None:
    few = [Conjunction({"a": 1}), Conjunction({"b": 2})]
    for delta, name in ((1e-6, "Gaussian"), (0.0, "Laplace")):
        with pytest.warns(
            AccuracyWarning, match=rf"^mwem guarantees an error of at most .*, plain {name} answers to these 2 queries "
        ) as w:
            fitted = fastdp.mwem(PEOPLE, SMALL, few, epsilon=1.0, delta=delta, rounds=40)
        assert w[0].filename == __file__
        # what it says: within alpha by so many records, and not by fewer
        (n,) = re.findall(
            r"and the same from ([\d,]+) records on: see release_marginals, or fastdp\.", str(w[0].message)
        )
        n = int(n.replace(",", ""))
        if delta:
            error = fastdp.bounds.gaussian(sensitivity=math.sqrt(2), epsilon=1.0, delta=delta, count=2)
        else:
            error = fastdp.bounds.laplace(sensitivity=2, epsilon=1.0, count=2)
        assert plain_noise_error(2, 2, 1.0, delta, 0.05) == error
        assert error / n <= fitted.alpha < error / (n - 1)
    assert plain_noise_error(2, 2, 1e-300, 1e-6, 0.05) == math.inf
    # no hint for "measured", or where there are very many queries
    fastdp.mwem(PEOPLE, SMALL, few, epsilon=1.0, delta=1e-6, variant="measured")
    domain = Domain(a=2)
    many = [Linear([i / 40_000, 1.0]) for i in range(40_000)]
    fastdp.mwem(np.zeros((1000, 1), int), domain, many, epsilon=1.0, delta=1e-6)


# --- "average"


def plainly(
    data: np.ndarray, domain: Domain, queries: list[Any], rounds: int, rate: float
) -> tuple[np.ndarray, list[int]]:
    """Theorem 2 where every choice is of the largest gap."""
    fs = np.array([cells(query, domain) for query in queries])
    counts = histogram(data, domain)
    weights, mean, chosen = np.ones(domain.size), np.zeros(domain.size), []
    for _ in range(rounds):
        shares = weights / weights.sum()
        mean += shares / rounds
        gaps = np.rint(fs @ counts * UNIT) - len(data) * np.floor(fs @ shares * UNIT)
        best = int(np.argmax(np.concatenate((gaps, -gaps))))
        i, sign = (best, 1) if best < len(queries) else (best - len(queries), -1)
        weights = weights * np.exp(sign * rate * fs[i])
        chosen.append(i)
    return mean, chosen


@pytest.mark.parametrize("seed", range(4))
def test_average_is_its_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    queries: list[Any] = [Linear(rng.random(SMALL.size)) for _ in range(30)]
    queries += [Mask(rng.random(SMALL.size) < 0.5) for _ in range(30)] + list(marginals(SMALL, 2))
    for module in (mwem_average, mwem_measured):
        monkeypatch.setattr(module, "draw_one", lambda scores, key, eta: int(np.argmax(scores)))
    fitted = fit(PEOPLE, SMALL, queries, rounds=25)
    mean, chosen = plainly(PEOPLE, SMALL, queries, 25, AverageRounds.of(
        25, n=20_000, log_cells=math.log(120), queries=len(queries), epsilon=1.0, delta=1e-6, beta=0.05
    ).rate)  # fmt: skip
    assert [queries.index(query) for query in fitted.chosen] == chosen
    np.testing.assert_allclose(fitted.marginal(SMALL.names).ravel(), mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose([fitted.answer(q) for q in queries[::9]], [cells(q, SMALL) @ mean for q in queries[::9]])


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("seed", range(2))
def test_average_is_within_alpha(relation: Any, delta: float, seed: int) -> None:
    domain = Domain(a=4, b=3, c=2, d=5, e=2)
    data = skewed(100_000, domain, seed)
    rng = np.random.default_rng(seed)
    queries: list[Any] = [*marginals(domain, 1), *marginals(domain, 2), *marginals(domain, 4)]
    queries += [Linear(rng.random(domain.size)) for _ in range(50)]
    options = {"neighbors": relation, "records": 100_000 if relation == "add-remove" else None}
    fitted = fit(data, domain, queries, epsilon=2.0, delta=delta, rng=Randomness(seed=seed), **options)
    exact = exact_answers(data, domain, queries)
    got = np.array([fitted.answer(query) for query in queries])
    uniform = np.array([cells(query, domain).mean() for query in queries])
    assert fitted.alpha < 0.25
    assert abs(got - exact).max() <= fitted.alpha
    assert abs(uniform - exact).max() > 1.5 * fitted.alpha


def test_average_on_the_census(census: tuple[dict[str, np.ndarray], Domain]) -> None:
    columns, domain = census
    work = marginals(domain, 3)
    truth = TrueAnswers(columns, domain)
    exact = Workload(work, domain).counts(truth) / (UNIT * truth.n)
    fitted = fit(columns, domain, work, rounds=150, rng=Randomness(seed=1))
    assert fitted.rounds == 150
    got = np.concatenate([fitted.marginal(subset).ravel() for subset in work.subsets])
    assert abs(got - exact).max() <= fitted.alpha < 0.3


def test_domains_of_any_size() -> None:
    domain = Domain.binary(40)
    hidden = np.random.default_rng(1).random((20_000, 10)) < 0.1
    data = np.repeat(hidden, 4, axis=1)
    queries = [Conjunction({f"v{i}": 0, f"v{i + 2}": 0}) for i in range(1, 39, 4)]
    queries += [Conjunction({f"v{i}": 1}) for i in range(1, 41)]
    fitted = fit(data, domain, queries, epsilon=3.0, rounds=60, rng=Randomness(seed=3))
    exact = np.array([(1 - hidden[:, j]).mean() for j in range(10)] + [data[:, j].mean() for j in range(40)])
    got = np.array([fitted.answer(query) for query in queries])
    assert abs(got - exact).max() <= (fitted.alpha or 1.0)
    assert abs(got - exact).mean() < 0.25
    assert fitted.answer(Conjunction({"v1": 0, "v5": 0})) == pytest.approx(
        fitted.marginal(["v1", "v5"])[0, 0], abs=1e-12
    )
    with pytest.raises(ValueError, match=r"^domain: .* cells: must be at most 2\^24 for variant='measured'"):
        fit(data, domain, queries, variant="measured")


# --- "measured"


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("rounds", [3, None])
def test_measured_tables_improve_on_uniform(relation: Any, delta: float, rounds: int | None) -> None:
    work = marginals(SMALL, 2)
    exact = exact_answers(PEOPLE, SMALL, work)
    uniform = np.array([cells(query, SMALL).mean() for query in work])
    options = {"neighbors": relation, "records": 30_000 if relation == "add-remove" else None}
    fitted = fit(PEOPLE, SMALL, work, variant="measured", delta=delta, rounds=rounds, rng=Randomness(seed=2), **options)
    assert len(set(fitted.chosen)) == fitted.rounds == (rounds or work.tables)
    assert set(fitted.chosen) <= set(work.subsets)
    assert fitted.alpha is None
    got = np.array([fitted.answer(query) for query in work])
    assert abs(got - exact).mean() < abs(uniform - exact).mean() * (0.5 if rounds else 0.05)
    assert fitted.marginal(SMALL.names).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_measured_queries_improve_on_uniform(delta: float) -> None:
    rng = np.random.default_rng(1)
    queries: list[Any] = [Mask(rng.random(SMALL.size) < 0.3) for _ in range(10)] + list(marginals(SMALL, 2))[::3]
    queries += [Linear(rng.random(SMALL.size)) for _ in range(10)]
    exact = exact_answers(PEOPLE, SMALL, queries)
    uniform = np.array([cells(query, SMALL).mean() for query in queries])
    fitted = fit(PEOPLE, SMALL, queries, variant="measured", delta=delta, rng=Randomness(seed=2))
    assert len({id(query) for query in fitted.chosen}) == fitted.rounds == len(queries)
    got = np.array([fitted.answer(query) for query in queries])
    assert abs(got - exact).mean() < abs(uniform - exact).mean() * 0.1


def test_without_noise_measured_tables_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest score is chosen, its table measured, and the fit agrees with all that has been measured."""
    for module in (mwem_average, mwem_measured):
        monkeypatch.setattr(module, "draw_one", lambda scores, key, eta: int(np.argmax(scores)))
    monkeypatch.setattr(mwem_measured.noise_draws, "integer_noise", lambda planned, key, n: np.zeros(n, np.int64))
    work = marginals(SMALL, 2)
    fitted = fit(PEOPLE, SMALL, work, variant="measured", epsilon=1000.0, rounds=2)
    cube = histogram(PEOPLE, SMALL).reshape(SMALL.sizes) / len(PEOPLE)
    far = []
    for positions in work.positions:
        table = cube.sum(axis=tuple(p for p in range(4) if p not in positions))
        far.append(abs(table - 1 / table.size).sum())
    assert fitted.chosen[0] == work.subsets[int(np.argmax(far))]
    for subset in fitted.chosen:
        axes = tuple(p for p in range(4) if SMALL.names[p] not in subset)
        np.testing.assert_allclose(fitted.marginal(subset), cube.sum(axis=axes), rtol=0, atol=0.01)


def test_marginals_are_measured_by_default() -> None:
    budget = Budget(epsilon=10.0, delta=1e-4)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "budget": budget}
    large = Domain.binary(21)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        fastdp.mwem(PEOPLE, SMALL, marginals(SMALL, 1), **options)
        fastdp.mwem(PEOPLE, SMALL, list(marginals(SMALL, 1)), **options)
        fastdp.mwem(np.zeros((9, 21), int), large, marginals(large, 1), rounds=1, **options)
    assert [row.parameters["variant"] for row in budget.releases] == ["measured", "average", "average"]
    with pytest.raises(ValueError, match=r"^rounds=5: must be at most 4, the number of tables, for variant='measured'"):
        fastdp.mwem(PEOPLE, SMALL, marginals(SMALL, 1), rounds=5, **options)


@pytest.mark.parametrize(("epsilon", "limit"), [(0.1, 0.016), (1.0, 0.0020), (10.0, 0.0020)])
def test_tables_of_the_census(census: tuple[dict[str, np.ndarray], Domain], epsilon: float, limit: float) -> None:
    """Within what private-pgm reaches by the same idea; `record` is what is measured here, with a third to spare."""
    columns, domain = census
    work = marginals(domain, 3)
    truth = TrueAnswers(columns, domain)
    exact = Workload(work, domain).counts(truth) / (UNIT * truth.n)
    record = {0.1: 0.006, 1.0: 0.0008, 10.0: 0.00008}[epsilon]
    for seed in range(3):
        fitted = fastdp.mwem(
            columns, domain, work, epsilon=epsilon, delta=1e-6, neighbors="add-remove", records=truth.n,
            rng=Randomness(seed=seed),
        )  # fmt: skip
        assert abs(fitted.answer_many(work) - exact).max() <= min(limit, record)


def test_the_default_rounds_of_measured_end_within_seconds() -> None:
    """By public numbers: cells times rounds for tables; for other queries also how many cells each touches."""

    def rounds(d: int, queries: Any, given: int | None = None) -> int:
        estimate = fastdp.bounds.mwem(
            100_000, Domain.binary(d), queries, epsilon=1.0, delta=1e-6, variant="measured", rounds=given
        )
        return estimate.rounds

    found = {d: rounds(d, marginals(Domain.binary(d), 3)) for d in (8, 12, 19, 20, 23, 24)}
    assert found == {8: 56, 12: 100, 19: 100, 20: 64, 23: 8, 24: 4}
    assert rounds(23, marginals(Domain.binary(23), 3), 50) == 50
    conjunctions = [Conjunction({"v1": 1, "v2": 0, f"v{i}": j}) for i in range(3, 15) for j in (0, 1)] * 5
    assert [rounds(d, conjunctions) for d in (16, 20, 24)] == [100, 90, 22]
    halves = [Conjunction({"v1": 1})] * 150
    assert rounds(20, halves) == rounds(20, [Product({"v1": [0], "v2": [0, 1]})] * 150) == 45
    odd = numba.njit(lambda cell: cell % 2 == 1)
    assert rounds(20, [Predicate(odd)] * 150) == 32


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("variant", ["average", "measured"])
def test_the_estimate_is_what_the_call_says(variant: Any, relation: Any) -> None:
    work, numbers = marginals(SMALL, 2), {"epsilon": 1.0, "delta": 1e-6, "variant": variant, "neighbors": relation}
    estimate = fastdp.bounds.mwem(20_000, SMALL, work, **numbers)
    fitted = fit(PEOPLE, SMALL, work, records=20_000 if relation == "add-remove" else None, **numbers)
    assert (estimate.alpha, estimate.rounds) == (fitted.alpha, fitted.rounds)
    assert estimate.cells == SMALL.size
    assert estimate.record_bytes == 8 * SMALL.size
    if variant == "average":
        n = fastdp.bounds.mwem_n(SMALL, work, alpha=fitted.alpha, epsilon=1.0, delta=1e-6)
        assert n <= 20_000 < 1.001 * n
    else:
        assert str(estimate).startswith("no error bound, plain noise on each answer within 0.0")
        assert "; at most 6 rounds" in str(estimate)
    with pytest.raises(ValueError, match=r"^alpha=1e-06: is out of reach$"):
        fastdp.bounds.mwem_n(SMALL, work, alpha=1e-6, epsilon=1.0)


# --- budgets, bad input, what comes back


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_it_is_charged_once(variant: Any) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    work, rounds = marginals(SMALL, 1), 60 if variant == "average" else 2
    fitted = fit(PEOPLE, SMALL, work, variant=variant, rounds=rounds, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == "mwem"
    assert row.parameters == {"epsilon": 1.0, "delta": 1e-6, "rounds": rounds, "variant": variant}
    with pytest.raises(fastdp.BudgetExceeded, match="mwem asks for"):
        fit(PEOPLE, SMALL, work, variant=variant, budget=budget)
    assert len(budget.releases) == 1
    assert fastdp.ApproxDP(1.0, 1e-6) in fitted.guarantee.parts
    (concentrated,) = [part for part in fitted.guarantee.parts if isinstance(part, fastdp.ZCDP)]
    with localcontext() as context:
        context.prec = 40
        assert zcdp_delta(Decimal(concentrated.rho), Decimal(1)) <= Decimal("1.001e-6")
    pure = fit(PEOPLE, SMALL, marginals(SMALL, 1), variant=variant, rounds=2, delta=0.0)
    assert pure.guarantee == fastdp.PureDP(1.0)
    added = fit(PEOPLE, SMALL, marginals(SMALL, 1), variant=variant, rounds=2, neighbors="add-remove", records=9)
    assert added.guarantee.neighbors == "add-remove"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"neighbors": "add-remove"}, ValueError, r"^records=None: must be given with neighbors='add-remove'$"),
        ({"records": 5}, ValueError, r"^records=5: must be None with neighbors='replace-one'$"),
        ({"neighbors": "add-remove", "records": 0}, ValueError, r"^records=0: must be a whole number >= 1"),
        ({"neighbors": "friends"}, ValueError, r"^neighbors='friends'"),
        ({"epsilon": 0.0}, ValueError, r"^epsilon=0\.0: must be"),
        ({"epsilon": math.inf}, ValueError, r"^epsilon=inf: must be"),
        ({"delta": 1.5}, ValueError, r"^delta=1\.5: must be"),
        ({"beta": 1.0}, ValueError, r"^beta=1\.0: must be"),
        ({"rounds": 0}, ValueError, r"^rounds=0: must be a whole number >= 1"),
        ({"rounds": 1.5}, ValueError, r"^rounds=1\.5"),
        ({"variant": "median"}, ValueError, r"^variant='median': must be"),
        ({"outside": "drop"}, ValueError, r"^outside='drop': must be"),
        ({"queries": None}, ValueError, r"^queries: type NoneType: must be a sequence of queries$"),
        ({"queries": Conjunction({"a": 1})}, ValueError, r"^queries=Conjunction\(.*\): must be several queries"),
        ({"queries": []}, ValueError, r"^queries: must be at least one$"),
        ({"queries": [Conjunction({"a": 1}), 3]}, ValueError, r"^query: type int: must be a query"),
        ({"queries": [Conjunction({"e": 1})]}, ValueError, r"^attribute='e'"),
        ({"queries": [Conjunction({"a": 4})]}, ValueError, r"^a=4: must be a code"),
        ({"queries": [Mask([1, 0])]}, ValueError, r"^cells: shape \(2,\)"),
        ({"domain": 3}, ValueError, r"^domain: type int: must be a fastdp\.Domain$"),
        (
            {"domain": Domain(a=4, b=2, c=2, d=5), "queries": [Range("b", 0, 1)] * 9},
            DomainError,
            r"^column 'b': must hold codes from 0 to 1 only",
        ),
        ({"data": PEOPLE[:0]}, ValueError, r"^data: n=0 records: must be at least one$"),
        ({"data": np.full((5, 4), np.nan)}, DomainError, r"^column 'a': must not hold NaN$"),
        ({"data": PEOPLE[:, :3]}, ValueError, r"^data: 3 columns without names: must be 4"),
        ({"rng": 7}, ValueError, r"^rng=7: must be a fastdp.Randomness or None"),
        ({"budget": 3}, ValueError, r"^budget=3: must be a fastdp\.Budget or None"),
    ],
)
@pytest.mark.parametrize("variant", ["average", "measured"])
def test_what_cannot_be_is_said_before_anything_is_spent(
    variant: Any, options: Any, error: type[Exception], message: str
) -> None:
    budget = Budget(epsilon=5.0, delta=1e-5)
    given = {"data": PEOPLE, "domain": SMALL, "queries": marginals(SMALL, 2), "variant": variant, "budget": budget}
    given = {**given, "rng": Watched(), **options}
    with pytest.raises(error, match=message):
        fit(given.pop("data"), given.pop("domain"), given.pop("queries"), **given)
    assert len(budget.releases) == 0


def test_progress_and_what_comes_back() -> None:
    seen: list[Any] = []
    work = marginals(SMALL, 1)
    fitted = fit(PEOPLE, SMALL, work, rounds=7, progress=lambda *args: seen.append(args))
    assert [args[:2] for args in seen][-1] == (7, 7)
    assert [args[0] for args in seen] == sorted(args[0] for args in seen)
    assert fitted.rounds == len(fitted.chosen) == 7
    assert all(query in work for query in fitted.chosen)
    assert fitted.n == 20_000
    assert "7 rounds" in repr(fitted)
    assert f"alpha={fitted.alpha:.4g}" in repr(fitted)
    assert fit(PEOPLE, SMALL, iter([Conjunction({"a": 1})]), rounds=1).chosen == [Conjunction({"a": 1})]
    assert fit(PEOPLE[:20], SMALL, work, rounds=1).alpha is None, "nothing is promised where alpha is not below 1"


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_a_seed_gives_the_same_bits_for_every_number_of_threads(variant: Any) -> None:
    domain = Domain.binary(21)
    data = np.random.default_rng(1).random((20_000, 21)) < 0.2
    queries: Any = [Conjunction({f"v{i}": 1, f"v{i + 1}": 1}) for i in range(1, 21)]
    work = queries if variant == "average" else Marginals(domain, [["v1", "v2"], ["v3", "v21"], ["v2", "v5"]])

    def run(seed: int) -> bytes:
        fitted = fit(data, domain, work, variant=variant, rounds=2, rng=Randomness(seed=seed))
        return b"".join(np.float64(fitted.answer(query)).tobytes() for query in queries)

    before = fastdp.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            fastdp.set_num_threads(threads)
            results.append(run(4))
    finally:
        fastdp.set_num_threads(before)
    assert results[0] == results[1]
    if variant == "measured":  # the other one's choices are the same: their gaps are the largest by far
        assert run(5) != results[0]


def test_the_tiny_domain_is_the_one_of_the_enumeration() -> None:
    """The model's gaps are those of the code, on its grid."""
    weights = DenseWeights(DOMAIN)
    weights.scale(bind(Product({"a": [0]}), DOMAIN), 0.8)
    shares = weights.probabilities()
    for counts in all_counts(3):
        data = np.repeat(np.arange(3), counts)[:, None]
        one = plan(AveragePlan, data, DOMAIN, [Product({"a": list(codes)}) for codes in QUERIES])
        gaps = one.gaps(one.counts, one.workload.evaluate(weights))
        right = [
            UNIT * sum(counts[i] for i in query) - 3 * math.floor(UNIT * sum(shares[i] for i in query))
            for query in QUERIES
        ]
        assert gaps.tolist() == right


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_marginals_of_another_domain_are_refused(variant: Any) -> None:
    """Attributes in another order would be tables of something else."""
    budget = Budget(epsilon=5.0, delta=1e-5)
    people = np.random.default_rng(0).integers(2, size=(100, 2))
    with pytest.raises(ValueError, match=r"^queries: must be marginals of `domain`"):
        fit(people, Domain(a=2, b=2), marginals(Domain(b=2, a=2), 2), variant=variant, budget=budget)
    assert len(budget.releases) == 0
