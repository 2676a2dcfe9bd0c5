"""The privacy of a synthesis, by enumeration of all neighbours of small tables, and variants that have none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fastdp import Domain, GaussianDP
from fastdp.answering.synthesis import dependences, measuring, rounds, synthesis_plan
from fastdp.answering.synthesis.gaussian_prices import (
    most_mu,
    noise_of,
    squared_change,
    squared_change_of_distances,
    total_mu,
)
from fastdp.privacy.gaussian_curve import delta_of_mu
from tests.answering.synthesis.scripted import largest_price, plan_of

SMALL = Domain(a=2, b=3, c=2)
RELATIONS = ("replace-one", "add-remove")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_neighbours_cost_more_than_the_price(relation: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SMALL, relation)
    found = [largest_price(plan, n, script, monkeypatch) for script in range(2 if n == 3 else 6)]
    assert max(found) <= Fraction(plan.mu) ** 2
    assert max(found) > Fraction(plan.mu) ** 2 * Fraction(8, 10)  # and it is no bound for show


@pytest.mark.parametrize("relation", RELATIONS)
def test_tables_that_are_chosen_cost_no_more(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # released distances are so large that every pair is measured, and then the table of all columns
    plan = plan_of(SMALL, relation, epsilon=20.0)
    seen: list[tuple[int, int, int]] = []
    real = rounds.Rounds.run
    monkeypatch.setattr(rounds.Rounds, "run", lambda self, *args: _noted(self, real(self, *args), seen))
    assert largest_price(plan, 2, 3, monkeypatch, level=50.0, public=100) <= Fraction(plan.mu) ** 2
    assert set(seen) == {(3, 2, 3)}  # three pairs, two rounds, of which the second adds the table of all columns


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_whole_workload_costs_no_more(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SMALL, relation, epsilon=20.0, whole=True)
    assert [len(tables) for tables in plan.whole] == [1, 3]
    found = [largest_price(plan, 2, script, monkeypatch, level=level) for script in range(2) for level in (0.0, 50.0)]
    assert max(found) <= Fraction(plan.mu) ** 2
    assert max(found) > Fraction(plan.mu) ** 2 * Fraction(9, 10)


PAIRS = [["a", "b"], ["b", "c"], ["a", "c"]]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("workload", [None, PAIRS])
def test_residuals_of_a_whole_workload_cost_no_more(
    relation: str, workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SMALL, relation, epsilon=2.0, whole=True, workload=workload)
    found = largest_price(plan, 2, 1, monkeypatch, level=3000.0, public=6000)
    assert found <= Fraction(plan.mu) ** 2
    assert found > Fraction(plan.mu) ** 2 * Fraction(97, 100)
    # with a part of it unpaid
    columns, rest = measuring.plan_whole, plan.rest(plan.singles)
    monkeypatch.setattr(measuring, "plan_whole", lambda plan, tables, total, _: columns(plan, tables, total, plan.mu))
    assert rest < plan.mu
    with pytest.raises(AssertionError):
        largest_price(plan, 1, 1, monkeypatch, level=3000.0, public=6000)


def _whole_by_records(patch: pytest.MonkeyPatch) -> None:
    """Whether all tables are measured goes by the number of records, which is private."""
    real, count = measuring.whole_plan, measuring.count_tables
    seen: list[int] = []

    def counted(data: Any, *args: Any) -> Any:
        seen.append(data.n)
        return count(data, *args)

    patch.setattr(measuring, "count_tables", counted)
    patch.setattr(measuring, "whole_plan", lambda total, *more: real(1e6 * (seen[-1] > 1), *more))


def _noted(run: Any, chosen: Any, seen: list[tuple[int, int, int]]) -> Any:
    seen.append((len(run.pairs), run.count, max(len(each.columns) for each in chosen.tables)))
    return chosen


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sizes", [{"a": 3}, {"a": 1}, {"a": 1, "b": 4}, {"a": 2, "b": 2, "c": 1}])
def test_domains_of_few_columns_or_of_one_value(
    relation: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(Domain(sizes), relation)
    assert largest_price(plan, 2, 1, monkeypatch) <= Fraction(plan.mu) ** 2


# --- variants without privacy


def _changed_distances(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Distances of every round after `change(counts, candidates, expected, total)`, which gives the last two."""
    real = rounds.measure_distances

    def measured(counts: Any, candidates: Any, expected: Any, total: Any, noise: Any, keys: Any) -> Any:
        return real(counts, candidates, *change(counts, expected, total), noise, keys)

    patch.setattr(rounds, "measure_distances", measured)


def _unpaid_structure(patch: pytest.MonkeyPatch) -> None:
    """The structure goes by the true distances."""

    def true_distances(counts: Any, candidates: Any, expected: Any, total: Any, noise: Any, keys: Any) -> Any:
        made = real(counts, candidates, expected, total, noise, keys)
        columns = [each.columns for each in made]
        true = [
            dependences.distance(counts[these], dependences.expected_table(shares, total, 8), 8)
            for these, shares in zip(columns, expected(columns), strict=True)
        ]
        return tuple(replace(each, distance=100.0 * found) for each, found in zip(made, true, strict=True))

    real = rounds.measure_distances
    patch.setattr(rounds, "measure_distances", true_distances)


def _true_number(patch: pytest.MonkeyPatch) -> None:
    """Distances are from tables that are scaled to the true number of records, not the released one."""
    _changed_distances(
        patch, lambda counts, expected, total: (expected, float(max(1, next(iter(counts.values())).sum())))
    )


def _true_shares(patch: pytest.MonkeyPatch) -> None:
    """Distances are from the product of the true tables."""

    def shares(counts: Any) -> Any:
        columns = [dependences.nearest_shares(counts[p,] + 0.01) for p in range(3)]
        return lambda tables: (dependences.independent_shares([columns[p] for p in each]) for each in tables)

    _changed_distances(patch, lambda counts, expected, total: (shares(counts), total))


def _unpaid_tables(patch: pytest.MonkeyPatch) -> None:
    """What is expected in later rounds is made of tables without their noise."""
    real = rounds.measured_table

    def exact(columns: Any, counts: Any, noise: Any, keys: Any) -> Any:
        return real(columns, counts, noise, keys)._replace(values=100.0 * counts)

    patch.setattr(rounds, "measured_table", exact)


def _rounds_by_records(patch: pytest.MonkeyPatch) -> None:
    """How many rounds there are goes by the number of records, which is private."""
    real, count = rounds.Rounds._strongest, measuring.count_tables
    seen: list[int] = []

    def counted(data: Any, *args: Any) -> Any:
        seen.append(data.n)
        return count(data, *args)

    patch.setattr(measuring, "count_tables", counted)
    patch.setattr(rounds.Rounds, "_strongest", lambda self, *args: real(self, *args) if seen[-1] > 1 else [])


def _monotone(patch: pytest.MonkeyPatch) -> None:
    """Distances are priced as if a record could only raise them."""
    for module in (synthesis_plan, rounds):
        patch.setattr(
            module,
            "squared_change_of_distances",
            lambda neighbors, entries: -(-squared_change_of_distances(neighbors, entries) // 4),
        )


def _one_cell(patch: pytest.MonkeyPatch) -> None:
    """Tables are priced as if a record changed one cell under both relations."""
    for module in (synthesis_plan, measuring, rounds):
        patch.setattr(module, "squared_change", lambda neighbors: 1)


def _degree_by_records(patch: pytest.MonkeyPatch) -> None:
    """How many tables are measured goes by the number of records, which is private."""
    real = rounds.Rounds.run
    seen: list[int] = []
    count = measuring.count_tables

    def counted(data: Any, *args: Any) -> Any:
        seen.append(data.n)
        return count(data, *args)

    def chosen(self: Any, *args: Any) -> Any:
        made = real(self, *args)
        return type(made)(made.tables[: seen[-1]], made.edges, made.value)

    patch.setattr(measuring, "count_tables", counted)
    patch.setattr(rounds.Rounds, "run", chosen)


@pytest.mark.parametrize(
    ("mutant", "relation"),
    [
        (_unpaid_structure, "replace-one"), (_unpaid_structure, "add-remove"), (_true_number, "add-remove"),
        (_true_shares, "add-remove"), (_monotone, "replace-one"), (_one_cell, "replace-one"),
        (_degree_by_records, "add-remove"), (_whole_by_records, "add-remove"), (_rounds_by_records, "add-remove"),
        (_unpaid_tables, "add-remove"),
    ],
)  # fmt: skip
def test_variants_that_are_not_private_are_found(mutant: Any, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    plan = plan_of(SMALL, relation, epsilon=20.0, whole=mutant is _whole_by_records)
    found = (largest_price(plan, 2, script, monkeypatch, level=4.0**power) for script in range(3) for power in range(4))
    assert any(each > Fraction(plan.mu) ** 2 for each in found)


# --- prices


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
def test_mu_is_what_epsilon_and_delta_allow(epsilon: float, delta: float) -> None:
    mu = most_mu(epsilon, delta)
    assert delta_of_mu(mu, epsilon) <= delta < delta_of_mu(mu * 1.0001, epsilon)


@pytest.mark.parametrize("mu", [1e-4, 0.03, 1.0, 17.0])
@pytest.mark.parametrize(("square", "entries"), [(1, 1), (2, 2), (4 * 78, 78), (4950, 4950)])
def test_noise_costs_what_it_may_and_no_less(mu: float, square: int, entries: int) -> None:
    noise = noise_of(mu, square, entries)
    assert 0.9999 * mu < noise.mu <= mu
    continuous = square**0.5 / noise.sigma
    assert 0.9999 * mu < continuous <= noise.mu
    assert noise.sigma == noise.plan.sigma * 2.0**-noise.bits


def test_prices_add_up_in_squares_rounded_up() -> None:
    parts = [noise_of(0.3, 1, 1), noise_of(0.4, 2, 2)]
    assert Fraction(total_mu(parts)) ** 2 >= sum(Fraction(part.mu) ** 2 for part in parts)
    assert total_mu(parts) <= 0.5
    assert squared_change("add-remove") == 1
    assert squared_change("replace-one") == 2


def test_the_guarantee_states_what_was_asked_and_mu() -> None:
    plan = plan_of(SMALL, "add-remove", epsilon=1.0, delta=1e-5)
    assert plan.guarantee.to_approx(1e-5).epsilon <= 1.0
    assert GaussianDP.of(plan.guarantee).mu == plan.mu
    spent = [*plan.singles, plan.distances] if plan.distances else []
    assert np.isclose(total_mu(spent) ** 2 + plan.rest(spent) ** 2, plan.mu**2)
