"""Networks: what their choices cost, by enumeration, what they find, and variants that are not private."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from fastdp import BoundedRange, Budget, Conjunction, Domain, GaussianDP, Randomness, plan_synthesis, synthesize
from fastdp.answering.synthesis import measuring, network, synthesis_plan
from fastdp.answering.synthesis.network import (
    Network,
    choice_of,
    dependence,
    sensitivity_of_scores,
    shares_on_grid,
)
from fastdp.answering.synthesis.synthesis_plan import METHODS
from tests.answering.synthesis import scripted
from tests.answering.synthesis.scripted import largest_price, plan_of, width_of

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
SMALL = Domain(a=2, b=2, c=2)
RELATIONS = ("replace-one", "add-remove")
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


# --- privacy


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("impossible", [None, [Conjunction({"a": 1, "c": 1})]])
def test_no_neighbours_cost_more_than_the_price(
    relation: str, impossible: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SMALL, relation, epsilon=2.0, method="network", impossible=impossible)
    found = [largest_price(plan, 2, script, monkeypatch, level=50.0, public=100) for script in range(3)]
    assert max(found) <= Fraction(plan.mu) ** 2
    assert max(found) > Fraction(plan.mu) ** 2 * Fraction(7, 10)


def test_a_record_moves_a_score_by_its_sensitivity_at_most() -> None:
    moved, replaced = [0], [0]
    for shares in ([1024, 0], [1000, 24], [1, 1023]):
        q = np.array(shares)
        for cells in product(range(3), repeat=4):
            table = np.array(cells).reshape(2, 2)
            one = dependence(table, 1, q)
            more = [table + cell.reshape(2, 2) for cell in np.eye(4, dtype=int)]
            moved += [abs(dependence(each, 1, q) - one) for each in more]
            replaced += [abs(dependence(each, 1, q) - dependence(other, 1, q)) for each in more for other in more]
    most = {relation: sensitivity_of_scores(relation) // 64 for relation in RELATIONS}  # type: ignore[arg-type]
    assert 0.99 * most["add-remove"] < max(moved) <= most["add-remove"]
    # a rare value that is there less often than expected goes, and one that is there too often comes
    before = np.array([[1, 0, 99], [0, 1, 0]])
    after = before + np.array([[-1, 0, 0], [0, 1, 0]])
    q = np.array([24, 24, 976])
    replaced.append(dependence(after, 1, q) - dependence(before, 1, q))
    assert 0.95 * most["replace-one"] < max(replaced) <= most["replace-one"]
    # compared with its true shares, which move with the record, a column's score would move by more
    before, after = np.array([[0, 0], [0, 2]]), np.array([[1, 0], [0, 2]])
    true = [dependence(each, 1, shares_on_grid(each.sum(axis=0) + 1e-9)) for each in (before, after)]
    assert abs(true[1] - true[0]) > 1.3 * most["add-remove"]


def test_a_score_is_the_distance_from_independence_of_the_parents() -> None:
    rng = np.random.default_rng(1)
    table, shares = rng.integers(0, 50, (3, 4, 2)), shares_on_grid(rng.random(4))
    assert shares.sum() == 1024
    by_hand = sum(
        abs(1024 * int(table[i, x, j]) - int(shares[x]) * int(table[i, :, j].sum()))
        for i, x, j in product(range(3), range(4), range(2))
    )
    assert dependence(table, 1, shares) == by_hand


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.5, 7.0])
def test_a_choice_costs_what_it_may_and_no_less(mu: float) -> None:
    for relation in RELATIONS:
        choice = choice_of(mu, relation)  # type: ignore[arg-type]
        assert choice is not None
        assert choice.mu <= mu
        assert choice.mu > 0.98 * mu or mu > 1  # the line through small prices is far from large ones
        exact = GaussianDP.of(BoundedRange(choice.range)).mu
        assert choice.mu == exact
        sensitivity = sensitivity_of_scores(relation)  # type: ignore[arg-type]
        assert Fraction(choice.rate) * 2 * sensitivity <= Fraction(choice.range)
    assert choice_of(1e-12, "add-remove") is None


# --- variants without privacy


def _half_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    """As if only the record's own cell moved, and not what is expected of it."""
    real = network.sensitivity_of_scores
    patch.setattr(network, "sensitivity_of_scores", lambda neighbors: real(neighbors) // 2)


def _number_of_records(patch: pytest.MonkeyPatch) -> list[int]:
    """Notes the number of records that are counted, which is private."""
    seen: list[int] = []
    count = measuring.count_tables

    def counted(data: Any, *args: Any) -> Any:
        seen.append(data.n)
        return count(data, *args)

    patch.setattr(measuring, "count_tables", counted)
    return seen


def _degree_by_records(patch: pytest.MonkeyPatch) -> None:
    """How many parents a column may have goes by the number of records."""
    seen, real = _number_of_records(patch), Network._families
    patch.setattr(
        Network, "_families",
        lambda self, parents, left: real(self, parents, left) if len(parents) < seen[-1] else [],
    )  # fmt: skip


def _noise_by_records(patch: pytest.MonkeyPatch) -> None:
    """What noise takes off a score goes by the number of records."""
    seen, real = _number_of_records(patch), network._noise_of_cell
    patch.setattr(network, "_noise_of_cell", lambda plan, singles: 3 * real(plan, singles) / max(seen[-1], 1))


@pytest.mark.parametrize(
    ("mutant", "relation"),
    [
        (_half_the_sensitivity, "add-remove"),
        (_degree_by_records, "add-remove"), (_noise_by_records, "add-remove"),
    ],
)  # fmt: skip
def test_variants_that_are_not_private_are_found(mutant: Any, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SMALL, relation, epsilon=20.0, method="network")
    choice = network.choices_of(plan)
    assert choice is not None
    monkeypatch.setattr(scripted, "_price_of", _price_of_choice)

    def most() -> Fraction:
        """The largest price of choices alone, under several scripts."""
        runs = ((n, script) for script in range(2) for n in (1, 2))
        return max(largest_price(plan, n, script, monkeypatch, level=0.0, public=5) for n, script in runs)

    paid = 2 * Fraction(choice.mu) ** 2  # of two choices
    assert most() <= paid
    mutant(monkeypatch)
    assert most() > paid


def _price_of_choice(one: Any, other: Any) -> Fraction:
    return Fraction(GaussianDP.of(BoundedRange(width_of(one, other))).mu) ** 2 if one.chooses else Fraction(0)


# --- what is found


def chain(columns: int, n: int, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    found = [rng.integers(0, 2, n)]
    for _ in range(columns - 1):
        found.append(found[-1] ^ (rng.random(n) < 0.1))
    order = rng.permutation(columns)
    return {f"c{order[i]}": column for i, column in enumerate(found)}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_chain_is_found_at_a_small_budget(relation: Any) -> None:
    records = chain(25, 30_000)
    domain = Domain(dict.fromkeys(sorted(records), 2))
    price: dict[str, Any] = {"epsilon": 0.05, "delta": 1e-6, "neighbors": relation}
    made = {method: synthesize(records, domain, method=method, rng=Randomness(seed=1), **price) for method in METHODS}
    off = {
        method: np.mean([
            np.abs(each.marginal([one, other]) - np.histogram2d(records[one], records[other], 2)[0] / 30_000).sum()
            for one, other in pairwise(records)
        ]) for method, each in made.items()
    }  # fmt: skip
    assert off["auto"] == off["network"] < 0.9 * off["tree"]
    assert off["network"] < 0.45
    report = made["network"].report
    assert report.rounds == 0
    assert not report.distances
    assert len(report.parents) == 24
    assert max(map(len, report.parents.values())) <= 2
    assert "network" in repr(report)
    assert "<svg" in report._repr_html_()
    assert report.mu <= GaussianDP.of(made["network"].guarantee).mu
    for family in ((name, *parents) for name, parents in report.parents.items()):
        assert any(set(family) <= set(clique) for clique in report.cliques)


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_estimate_knows_the_network(relation: Any) -> None:
    records = chain(25, 30_000)
    domain = Domain(dict.fromkeys(sorted(records), 2))
    price: dict[str, Any] = {"epsilon": 0.05, "delta": 1e-6, "neighbors": relation}
    estimate = plan_synthesis(30_000, domain, **price)
    assert estimate.network
    assert not estimate.whole
    assert estimate.tables == 24
    assert estimate.distance_sigma == 0
    assert "chosen one by one" in repr(estimate)
    by_tree = plan_synthesis(30_000, domain, method="tree", **price)
    assert not by_tree.network
    assert by_tree.distance_sigma > 1 / 5
    assert 0.5 < estimate.table_error / by_tree.table_error < 2


def test_auto_takes_the_tree_where_distances_show_more() -> None:
    records = chain(12, 50_000)
    made = synthesize(
        records, Domain(dict.fromkeys(sorted(records), 2)), max_seconds=0.001, rng=Randomness(seed=1), **PRICE
    )
    assert not made.report.parents
    assert made.report.rounds


def test_more_pairs_than_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis_plan, "MOST_PAIRS", 150)
    monkeypatch.setattr(network, "MOST_PAIRS", 150)
    records = chain(30, 20_000)
    domain = Domain(dict.fromkeys(records, 2))
    made = synthesize(records, domain, rng=Randomness(seed=1), **PRICE)  # 435 pairs
    assert made.report.parents
    assert made.sample(7).shape == (7, 30)
    with pytest.raises(
        ValueError, match=r"^workload: 30 columns have more than 150 pairs.*method='network' does without"
    ):
        synthesize(records, domain, method="tree", **PRICE)
    few = Domain({f"c{i}": 2 for i in range(200)})
    with pytest.raises(ValueError, match=r"^domain: 200 columns: must be at most 150"):
        synthesize(np.zeros((5, 200), int), few, **PRICE)


@pytest.mark.parametrize("sizes", [{"a": 1}, {"a": 1, "b": 3}, {"a": 2, "b": 1, "c": 2}, {"a": 300, "b": 300}])
@pytest.mark.parametrize("n", [0, 1, 300])
def test_degenerate_tables(sizes: dict[str, int], n: int) -> None:
    records = {name: np.arange(n) % size for name, size in sizes.items()}
    made = synthesize(
        records, Domain(sizes), method="network", neighbors="add-remove", rng=Randomness(seed=2), **PRICE
    )  # fmt: skip
    assert made.marginal(list(sizes)).sum() == pytest.approx(1)
    assert made.sample(9).shape == (9, len(sizes))


def test_weights_limits_and_impossible_cells_are_kept() -> None:
    records = chain(8, 30_000)
    domain = Domain(dict.fromkeys(sorted(records), 2))
    first, second = list(records)[:2]
    never = [Conjunction({"c0": 1, "c7": 1}), Conjunction({"c1": 1, "c3": 0, "c5": 1})]
    made = synthesize(
        records, domain, method="network", workload=[[first, second], ["c0", "c5"]], importance=[1.0, 1e-6],
        impossible=never, max_bytes=64 * 40, rng=Randomness(seed=1), **PRICE,
    )  # fmt: skip
    assert [made.answer(each) for each in never] == [0.0, 0.0]
    assert made.report.cells <= 40
    several = {frozenset(each.columns) for each in made.report.tables if len(each.columns) > 1}
    assert several <= {frozenset({first, second}), frozenset({"c0", "c5"})}
    assert frozenset({first, second}) in several


@pytest.mark.parametrize("epsilon", [1e-2, 1e-7, 1e-11, 1e-13])
def test_any_epsilon_is_refused_beforehand_or_gives_a_table(epsilon: float) -> None:
    records = chain(5, 100)
    with Budget(epsilon=1000.0, delta=0.5) as budget:
        try:
            made = synthesize(
                records, Domain(dict.fromkeys(records, 2)), epsilon=epsilon, delta=1e-9, method="network",
                rng=Randomness(seed=1),
            )  # fmt: skip
        except ValueError:  # sigma beyond 2^40
            assert not len(budget.releases)
        else:
            assert made.marginal(["c0"]).sum() == pytest.approx(1)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^method='bayes': must be one of"):
        synthesize(chain(3, 9), Domain(c0=2, c1=2, c2=2), method="bayes", **PRICE)  # type: ignore[call-overload]
