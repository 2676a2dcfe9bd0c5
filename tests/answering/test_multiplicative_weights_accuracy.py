"""Private multiplicative weights: the interaction without noise against its definition, and accuracy with noise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (  # fmt: skip
    Conjunction,
    Domain,
    Linear,
    Mask,
    Product,
    Randomness,
    Range,
    marginals,
)
from fastdp.answering import multiplicative_weights_parameters as given
from fastdp.answering import workload
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.queries.bound_query import GRID_BITS, UNIT
from fastdp.answering.queries.query import bind
from fastdp.answering.update_schedule import UpdateSchedule, Variant
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import QUIET, VARIANTS, in_two, make, one_by_one, skewed, together

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


# --- the interaction without noise, against its definition


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
            given.MultiplicativeWeightsParameters, "schedule", lambda self, n, schedule=schedule: schedule
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
    counts = [run._run.true_answers.count(bind(query, domain)) for query in queries]
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
    np.testing.assert_allclose(run.synthetic.answer(queries[5]), run._run.weights.evaluate(bind(queries[5], domain)))


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
    exact = workload.Workload(queries, domain).counts(run._run.true_answers) / (2.0**GRID_BITS * run.n)
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
    estimate = fastdp.bounds.private_multiplicative_weights(
        50_000, domain, epsilon=10.0, delta=1e-6, max_queries=1000, variant="sharp"
    )
    assert (estimate.cells, estimate.weight_bytes) == (2**100, 1600)
    assert estimate.alpha == run.alpha < 0.25
    queries = [Conjunction({f"v{i}": 0, f"v{i + 3}": 0}) for i in range(1, 98, 10)]
    queries += [Product({f"v{10 * j + 1}": 1, f"v{10 * j + 4}": [0, 1]}) for j in range(10)]
    queries += [Conjunction({f"v{i}": 1}) for i in range(1, 101)]
    answers = run.answer_many(queries)
    exact = [run._run.true_answers.count(bind(query, domain)) / (UNIT * run.n) for query in queries]
    assert abs(answers - exact).max() <= run.alpha
    assert run.updates > 0
    assert max(map(len, run._run.weights.blocks)) == 2
    with pytest.raises(ValueError, match=r"^domain: .* must be at most 2\^27 to count the records in each$"):
        run.nonprivate_kl()
    for query in (Mask(np.zeros(4, bool)), Linear(np.zeros(4))):
        with pytest.raises(ValueError, match=r"^(cells|values): shape"):
            run.answer(query)


def test_an_update_without_memory_is_refused_before_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain.binary(40)
    run = make(np.ones((20_000, 40), bool), domain, epsilon=10.0)
    monkeypatch.setattr("fastdp.answering.memory.usable_memory", lambda: 2**10)
    drawn = run._run.query_noise.left
    with pytest.raises(ValueError, match=r"^domain: an update by this query would merge the blocks of 'v1'; 'v2'"):
        run.answer(Conjunction({f"v{i}": 1 for i in range(1, 11)}))
    assert run._run.query_noise.left == drawn
    assert run.transcript == []
    assert run.answer(Conjunction({"v1": 1})) > 1 - run.alpha
