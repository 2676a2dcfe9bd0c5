"""MWEM: sensitivities, privacy by enumeration, variants without privacy, an audit of calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fastdp import (
    Conjunction,
    Domain,
    Linear,
    Mask,
    Product,
    Randomness,
    Range,
    marginals,
)
from fastdp.answering import mwem_average, mwem_measured
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.mwem_average import AveragePlan, AverageRounds
from fastdp.answering.mwem_measured import MeasuredPlan
from fastdp.answering.queries.bound_query import UNIT
from fastdp.answering.queries.query import bind
from fastdp.randomness import noise_plans
from tests.answering.multiplicative_weights_laws import (
    QUERIES,
    Codes,
    Counts,
    Key,
    all_counts,
    neighbours,
    updated,
)
from tests.answering.mwem_runs import PEOPLE, SMALL, fit, plan
from tests.laws import audit
from tests.oracles.sparse_vector import excess

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
    made = plan(kind, PEOPLE, SMALL, queries, rounds=5, delta=delta, may_be_pure=True)
    guaranteed = Fraction(made.schedule.range if variant == "average" else made.range)
    reach = 4 if tables and variant == "measured" else 2
    assert len(calls) == fitted.rounds == 5
    assert len({key for _, key, _ in calls}) == 5
    for scores, _, eta in calls:
        assert Fraction(eta) * reach * UNIT <= guaranteed
        assert Fraction(eta) * reach * UNIT > guaranteed * (1 - Fraction(1, 10**12))
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

RUNS, OF_MUTANT = 6000, 4000  # as few as show what a claim of half the price, and a mutant, lose


def chosen_of(counts: Counts, seed: int, runs: int) -> np.ndarray:
    """Which of two queries "average" chooses."""
    data, rng = np.repeat(np.arange(4), counts)[:, None], Randomness(seed=seed)
    queries = [Conjunction({"a": 0}), Conjunction({"a": 1})]
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 0.0, "rounds": 1, "rng": rng, "variant": "average"}
    return np.array([queries.index(fit(data, FOUR, queries, **options).chosen[0]) for _ in range(runs)])


def measured_of(counts: Counts, seed: int, runs: int) -> np.ndarray:
    """What "measured" answers to the one query."""
    data, rng, query = np.repeat(np.arange(4), counts)[:, None], Randomness(seed=seed), Conjunction({"a": 0})
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 0.0, "rng": rng, "variant": "measured"}
    return np.array([fit(data, FOUR, [query], **options).answer(query) for _ in range(runs)])


def twice_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mwem_average, "range_of_round", lambda count, epsilon, delta: 2 * epsilon / count)


def half_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    laplace_plan = noise_plans.laplace_plan
    monkeypatch.setattr(mwem_measured.noise_plans, "laplace_plan", lambda scale: laplace_plan(scale / 2))


@pytest.mark.parametrize(("run", "mutant"), [(chosen_of, twice_the_range), (measured_of, half_of_the_noise)])
def test_an_audit_finds_the_price_and_not_more(
    run: Callable[[Counts, int, int], np.ndarray], mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited(runs: int) -> Callable[[float], bool]:
        p, q = run((5, 5, 0, 0), 1, runs), run((6, 4, 0, 0), 2, runs)
        return lambda epsilon: audit(p, q, epsilon).refuted or audit(q, p, epsilon).refuted

    refuted = audited(RUNS)
    assert not refuted(2.0)
    assert refuted(1.0), "the audit has no power"
    mutant(monkeypatch)
    assert audited(OF_MUTANT)(2.0)


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
