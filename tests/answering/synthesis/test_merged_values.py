"""Rare values of columns of many values: what becomes of them, the price, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fastdp import Conjunction, Domain, PrivateMultiplicativeWeights, Randomness, synthesize
from fastdp.answering.synthesis import measuring, merged_values, synthesis_plan
from fastdp.answering.synthesis.measured import Measured
from fastdp.answering.synthesis.merged_tree import MergedTree
from fastdp.answering.synthesis.merged_values import mean_below, merge_of, merges_of
from tests import laws
from tests.answering.synthesis.scripted import largest_price, plan_of
from tests.answering.synthesis.test_tree_distribution import made as some_tree

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
RELATIONS = ("replace-one", "add-remove")
MANY, N = 600, 30_000
DOMAIN = Domain(place=[f"p{i}" for i in range(MANY)], kind=4, sex=["f", "m"], code=3)
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def people(n: int = N, seed: int = 1) -> dict[str, Any]:
    """Places of which few have nearly all people; the kind depends on the place."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1.0, MANY + 1) ** 2
    place = rng.choice(MANY, n, p=shares / shares.sum())
    kind = np.where(rng.random(n) < 0.7, place % 4, rng.integers(0, 4, n))
    return {
        "place": np.array(DOMAIN.labels[0])[place], "kind": kind, "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
        "code": rng.integers(0, 3, n), "codes": place,
    }  # fmt: skip


# --- privacy

SMALL = Domain(a=2, b=4, c=2)


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis_plan, "MANY_VALUES", 2)


def _seen(patch: pytest.MonkeyPatch) -> set[tuple[tuple[int, int], ...]]:
    """Which columns have how many values once rare ones are one."""
    seen = set()
    real = measuring.merges_of

    def noted(*args: Any) -> Any:
        found = real(*args)
        seen.add(tuple((p, merge.size) for p, merge in found.items()))
        return found

    patch.setattr(measuring, "merges_of", noted)
    return seen


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbours_cost_more_than_the_price(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SMALL, relation, epsilon=60.0)
    assert plan.many_valued == (1,)
    seen = _seen(monkeypatch)
    found = [largest_price(plan, 2, script, monkeypatch, level=level) for script, level in ((1, -6.0), (0, -2.5))]
    assert seen == {((1, 1),), ((1, 3),)}  # all values are one, and two of four
    assert Fraction(plan.mu) ** 2 * Fraction(8, 10) < max(found) <= Fraction(plan.mu) ** 2


def _by_records(patch: pytest.MonkeyPatch) -> None:
    """What is one value goes by the true counts."""
    real, count = measuring.merges_of, measuring.count_tables
    counts: list[Any] = []

    def counted(*args: Any) -> Any:
        counts.append(count(*args))
        return counts[-1]

    def merges(plan: Any, singles: Any) -> Any:
        true = counts[-1][2:6]
        return {1: merge_of(true < 1, true / max(1, true.sum()))} if (true < 1).sum() > 1 else real(plan, singles)

    patch.setattr(measuring, "count_tables", counted)
    patch.setattr(measuring, "merges_of", merges)


def _unpaid(patch: pytest.MonkeyPatch) -> None:
    """The table by which values are chosen is not paid for beside the one that replaces it."""
    real = measuring.merged_plan
    patch.setattr(measuring, "merged_plan", lambda plan, merges: replace(real(plan, merges), mu=plan.mu))


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("relation", RELATIONS)
def test_variants_that_are_not_private_are_found(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SMALL, relation, epsilon=60.0)
    with monkeypatch.context() as patch:
        _by_records(patch)
        assert largest_price(plan, 2, 1, patch) > Fraction(plan.mu) ** 2
    _unpaid(monkeypatch)
    with pytest.raises(AssertionError):
        largest_price(plan, 1, 1, monkeypatch, level=-6.0)


# --- which values


def test_values_are_one_where_their_counts_are_lost_in_the_noise() -> None:
    rng = np.random.default_rng(0)
    plan = plan_of(DOMAIN, "add-remove")
    assert plan.many_valued == (0,)
    singles = [Measured((p,), np.full(size, 1e4), 1.0) for p, size in enumerate(DOMAIN.sizes)]
    for count, merged in ((0.0, True), (0.1, True), (0.5, False), (3.0, False)):  # in standard deviations
        noisy = np.where(np.arange(MANY) < 20, 5000.0, 100 * count) + 100 * rng.normal(size=MANY)
        singles[0] = Measured((0,), noisy, 100.0)
        found = merges_of(plan, singles)
        assert (0 in found) == merged, count
        if merged:
            merge = found[0]
            assert merge.codes[:20].tolist() == list(range(20))
            assert set(merge.rare) == set(np.flatnonzero(noisy < 30))
            assert merge.shares[merge.rare].sum() == pytest.approx(1)
    assert not merges_of(replace(plan, many_valued=()), singles)


@pytest.mark.parametrize("count", [0.0, 0.25, 1.0])
def test_the_mean_of_noisy_counts_below_the_limit(count: float) -> None:
    noisy = count + np.random.default_rng(1).normal(size=1_000_000)
    assert noisy[noisy < 0.3].mean() == pytest.approx(mean_below(count), abs=0.01)


def test_columns_that_are_spoken_of_keep_their_values() -> None:
    never = [Conjunction({"place": "p3", "sex": "f"})]
    assert plan_of(DOMAIN, "add-remove", impossible=never).many_valued == ()
    assert plan_of(DOMAIN, "add-remove", workload=[["place"], ["kind", "sex"]]).many_valued == ()


# --- the distribution


def merged_tree(seed: int) -> tuple[MergedTree, np.ndarray[Any, Any]]:
    """A tree whose first and last columns stand for more values, and the distribution over all of these."""
    distribution, joint = some_tree(seed)
    rng, merges, last = np.random.default_rng(seed), {}, joint.ndim - 1
    for p in dict.fromkeys((0, last)):
        common, rare = joint.shape[p] - 1, int(rng.integers(2, 5))
        hidden = rng.permutation(np.repeat([True, False], [rare, common]))
        merges[p] = merge_of(hidden, np.where(hidden, rng.random(common + rare), 0.3))
        joint = joint.take(merges[p].codes, p) * merges[p].shares.reshape(
            [-1 if q == p else 1 for q in range(last + 1)]
        )
    return MergedTree(distribution, merges), joint


@pytest.mark.parametrize("seed", range(8))
def test_tables_and_means_are_those_of_all_values(seed: int) -> None:
    of, joint = merged_tree(seed)
    rng = np.random.default_rng(seed)
    assert of.sizes == joint.shape
    for _ in range(6):
        columns = tuple(rng.permutation(joint.ndim)[: rng.integers(joint.ndim + 1)].tolist())
        others = tuple(p for p in range(joint.ndim) if p not in columns)
        right = joint.sum(axis=others).transpose([sorted(columns).index(p) for p in columns])
        for found in (of.marginal(columns), of.whole.marginal(columns)):
            np.testing.assert_allclose(found, right, rtol=0, atol=1e-12)
        values = {p: rng.random(joint.shape[p]) < 0.6 for p in columns}
        mean = joint
        for p, each in values.items():
            mean = mean * each.reshape([-1 if q == p else 1 for q in range(joint.ndim)])
        assert of.expectation(values) == pytest.approx(mean.sum(), abs=1e-12)


def test_a_record_has_the_law_of_the_distribution() -> None:
    of, joint = merged_tree(2)
    right, found = joint.reshape(-1), np.zeros(joint.size, int)
    for key in range(5_000):
        records = np.full((joint.ndim, 2), 99, np.uint8)
        of.sample_into(Randomness(seed=key).key(), records)
        found[np.ravel_multi_index(tuple(records[:, 1].astype(int)), joint.shape)] += 1
    assert laws.check_cells(found, right.tolist(), 1e-9)
    assert not laws.check_cells(found, np.roll(right, 1).tolist(), 1e-9)


# --- what users see


@pytest.mark.parametrize("method", ["auto", "network"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_rare_places_are_one_and_come_back(relation: Any, method: Any) -> None:
    table = people()
    made = synthesize(table, DOMAIN, **PRICE, method=method, neighbors=relation, rng=Randomness(seed=1))
    rare = made.report.merged["place"]
    assert 200 < len(rare) < MANY - 20
    assert "p0" not in rare
    assert f"{len(rare):,} of place are one" in repr(made.report)
    assert {each.noisy.shape[0] for each in made.report.tables if "place" in each.columns} == {MANY - len(rare) + 1}
    kinds = made.marginal(["place", "kind"])
    assert kinds.shape == (MANY, 4)
    assert kinds.sum() == pytest.approx(1)
    right = np.zeros((MANY, 4))
    np.add.at(right, (table["codes"], table["kind"]), 1 / N)
    assert np.abs(kinds - right).sum() < 0.2
    frame = made.to_frame(20_000, Randomness(seed=2))
    assert frame["place"].isin(rare).mean() == pytest.approx(made.marginal(["place"])[[int(v[1:]) for v in rare]].sum(),
                                                             abs=1e-3)  # fmt: skip
    first = made.answer(Conjunction({"place": "p0", "kind": 0}))
    assert first == pytest.approx(right[0, 0], abs=0.01)
    assert 0 <= made.answer(Conjunction({"place": rare[0]})) < 0.01


def test_a_column_too_wide_for_any_pair_is_in_pairs() -> None:
    table = people()
    made = synthesize(
        table, DOMAIN, **PRICE, max_seconds=0.011, rng=Randomness(seed=1)
    )  # 1,100 cells: 600 x 4 are more
    assert ("place", "kind") in {each.columns for each in made.report.tables}
    assert made.report.cells <= 1100


def test_what_was_measured_is_used_again() -> None:
    table = people()
    how: dict[str, Any] = {"neighbors": "add-remove", "rng": Randomness(seed=1)}
    first = synthesize(table, DOMAIN, epsilon=5.0, delta=1e-6, **how)
    again = synthesize(table, DOMAIN, epsilon=0.05, delta=1e-6, released=[first], **how)
    sexes = np.histogram2d(table["kind"], table["sex"] == "m", (4, 2))[0] / N
    assert np.abs(again.marginal(["kind", "sex"]) - sexes).sum() < 0.03
    prior = PrivateMultiplicativeWeights(table, DOMAIN, epsilon=1.0, delta=1e-6, max_queries=10, prior=first,
                                         neighbors="add-remove", rng=Randomness(seed=3))  # fmt: skip
    assert abs(prior.answer(Conjunction({"place": "p0", "kind": 0})) - 0.7 * np.mean(table["codes"] == 0)) < 0.1


def test_no_share_of_what_nobody_has() -> None:
    merge = merge_of(np.array([True, False, True]), np.array([0.0, 1.0, 0.0]))
    assert merge.shares.tolist() == [0.5, 1.0, 0.5]
    assert merged_values.all_codes(3).tolist() == [0, 1, 2]
