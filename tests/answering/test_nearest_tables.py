"""Nearest tables (fastdp/answering/nearest_tables.py): against sorting in fractions, and as released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Randomness, Range, marginals
from fastdp.answering.nearest_tables import nearest_tables
from fastdp.kernels.fits import project_tables
from tests.oracles.tables import nearest_table


@pytest.mark.parametrize("total", [1.0, 1e-9, 123.5])
def test_the_nearest_table_is_that_of_sorting(total: float) -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 8, 40, 300):
        for spread in (0.0, 1e-3, 1.0, 1e6):
            values = rng.normal(size=size) * spread * total
            (found,) = nearest_tables([values], total)
            right, off = nearest_table(values.tolist(), total), 4e-15 * (spread + 1) * total
            assert np.allclose(found, right, rtol=1e-12, atol=off)
            assert (found >= 0).all()


def test_tables_are_projected_one_by_one_and_their_input_is_kept() -> None:
    rng = np.random.default_rng(2)
    tables = [rng.normal(size=shape) for shape in ((), (1,), (2, 3), (5,), (2, 2, 2, 7))]
    before = [table.copy() for table in tables]
    found = nearest_tables(tables, 2.0)
    for table, kept, one in zip(tables, before, found, strict=True):
        assert (table == kept).all()
        assert one.shape == table.shape
        assert np.allclose(one.reshape(-1), nearest_table(table.reshape(-1).tolist(), 2.0), rtol=0, atol=1e-14)
    assert float(found[0]) == 2.0


def test_ties_and_tables_that_are_tables_already() -> None:
    for values in ([0.25] * 4, [1.0, 0.0, 0.0], [0.0] * 5, [-7.0] * 3, [1e-20, 1.0]):
        flat = np.array(values)
        project_tables(flat, np.array([0, len(values)]), 1.0)
        assert np.allclose(flat, nearest_table(values, 1.0), rtol=1e-15, atol=2e-20)
    geometric = 2.0 ** -np.arange(60.0)  # entries fall out one after the other
    right = nearest_table(geometric.tolist(), 0.1)
    assert np.allclose(nearest_tables([geometric], 0.1)[0], right, rtol=1e-12, atol=1e-15)


def released(fit: Any, **options: Any) -> Any:
    domain = Domain(a=60, b=60, c=3)
    codes = np.random.default_rng(3).integers(0, [60, 60, 3], (300, 3)) ** 2 // [60, 60, 3]
    given: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "rng": Randomness(seed=1)} | options
    made = fastdp.release_marginals(codes, domain, marginals(domain, 2), fit=fit, **given)
    return made, codes


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("fit", ["entropic", "least-squares"])
def test_every_released_table_is_a_table(fit: Any, neighbors: Any) -> None:
    made, _ = released(fit, neighbors=neighbors)
    for names, table in zip(made.workload.subsets, made.tables, strict=True):
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)
        assert np.allclose(made.table(names), table, rtol=0, atol=1e-12)
        smaller = made.table(names[:1])
        assert smaller.min() >= 0
        assert smaller.sum() == pytest.approx(1)


@pytest.mark.parametrize("fit", ["entropic", "least-squares"])
def test_unbiased_tables_are_consistent_sums_and_answers_are_theirs(fit: Any) -> None:
    made, _ = released(fit)
    pairs = {names: made.table(names, unbiased=True) for names in made.workload.subsets}
    assert min(table.min() for table in pairs.values()) < 0
    for names, table in pairs.items():
        assert table.sum() == pytest.approx(1)
        for axis, name in enumerate(names):
            assert np.allclose(made.table([name], unbiased=True), table.sum(axis=1 - axis), rtol=0, atol=1e-12)
    assert np.allclose(made.table(["b", "a"], unbiased=True), pairs["a", "b"].T)
    if fit == "least-squares":
        query = Conjunction({"b": 2, "a": 1})
        assert made.answer(query) == pytest.approx(max(pairs["a", "b"][1, 2], 0.0), abs=1e-12)
        some = pairs["a", "b"][3:20].sum()
        assert made.answer(Range("a", 3, 19)) == pytest.approx(min(max(some, 0.0), 1.0), abs=1e-12)


def test_the_nearest_tables_come_closer_than_cutting_off() -> None:
    made, codes = released("least-squares")
    right = np.zeros((60, 60))
    np.add.at(right, (codes[:, 0], codes[:, 1]), 1 / len(codes))
    cut_off = np.maximum(made.table(["a", "b"], unbiased=True), 0.0)
    assert np.abs(made.table(["a", "b"]) - right).sum() < np.abs(cut_off - right).sum() / 5


def test_unbiased_is_true_or_false() -> None:
    made, _ = released("least-squares")
    with pytest.raises(ValueError, match=r"^unbiased=1: must be True or False"):
        made.table(["a"], unbiased=1)
