"""Which cells a plan walks over (fastdp/answering/queries/cell_runs.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fastdp import Conjunction, Domain, Product
from fastdp.answering.queries import cell_runs
from fastdp.answering.queries.bound_query import BoundProduct
from fastdp.answering.queries.cell_runs import Pattern, Runs
from fastdp.answering.queries.query import bind
from tests.answering.plain_weights import some_domain, some_product


def cells_of_plan(plan: Runs | Pattern) -> np.ndarray:
    if isinstance(plan, Pattern):
        return (plan.outer[:, None] + np.flatnonzero(plan.marks)).ravel()
    return (plan.outer[:, None, None] + plan.inner[:, None] + np.arange(plan.length)).ravel()


def check_plan(bound: BoundProduct) -> Runs | Pattern:
    sizes, tables = bound.domain.sizes, dict(bound.allowed)
    axes = [np.flatnonzero(tables.get(p, np.ones(size, bool))) for p, size in enumerate(sizes)]
    numbers = np.arange(bound.domain.size).reshape(sizes)[np.ix_(*axes)].ravel()
    plan = bound.plan
    walked = cells_of_plan(plan)
    assert walked.size == bound.cells == numbers.size
    assert (np.sort(walked) == numbers).all()
    counts = np.random.default_rng(1).integers(0, 2**50, bound.domain.size)
    assert bound.count(counts) >> 16 == int(counts[numbers].sum())
    return plan


@pytest.mark.parametrize("seed", range(150))
def test_plans_cover_the_right_cells_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = some_domain(rng, 200_000)
    for _ in range(4):
        bound = bind(some_product(rng, domain), domain)
        assert isinstance(bound, BoundProduct)
        check_plan(bound)


def test_every_kind_of_plan() -> None:
    domain = Domain.binary(18)
    few: Any = {  # bit 0 is the last attribute
        (15, 16, 17): (Runs, 2**15),
        (5, 11, 17): (Runs, 32),
        (0, 1, 2): (Pattern, None),
        (0, 2, 4, 6, 8, 10): (Runs, 1),
        (): (Runs, 2**18),
    }
    for bits, (kind, length) in few.items():
        bound = bind(Conjunction({f"v{18 - bit}": 1 for bit in bits}), domain)
        assert isinstance(bound, BoundProduct)
        plan = check_plan(bound)
        assert isinstance(plan, kind)
        assert length is None or (isinstance(plan, Runs) and plan.length == length)
    every_other = bind(Product({"v18": 0, "v1": 1}), domain)
    assert isinstance(every_other, BoundProduct)
    check_plan(every_other)
    wide = Domain(a=3, b=5000, c=3)
    for allowed in ({"b": np.arange(5000) % 2 == 0}, {"b": range(10, 4000), "c": 1}, {"a": 2, "c": [0, 2]}):
        bound = bind(Product(allowed), wide)
        assert isinstance(bound, BoundProduct)
        check_plan(bound)


def test_a_plan_of_codes_is_the_plan_of_their_tables() -> None:
    """In the same order, so that sums have the same bits; and large ones are not kept."""
    rng = np.random.default_rng(4)
    kinds = set()
    for _ in range(1500):
        sizes = tuple(int(size) for size in rng.integers(2, [3, 9][rng.integers(2)], rng.integers(1, 15)))
        if math.prod(sizes) > 1 << 18:
            continue
        positions = [p for p in range(len(sizes)) if rng.random() < 0.4]
        codes = tuple((p, int(rng.integers(sizes[p]))) for p in positions)
        plan = cell_runs.plan_of(sizes, [(p, np.arange(sizes[p]) == code) for p, code in codes])
        moved = cell_runs.plan_of_codes(sizes, codes)
        kinds.add(type(moved))
        assert type(plan) is type(moved)
        assert [part.shape for part in plan[:2]] == [part.shape for part in moved[:2]]
        np.testing.assert_array_equal(cells_of_plan(plan), cells_of_plan(moved))
        if isinstance(plan, Runs):
            assert plan.length == moved.length
    assert kinds == {Runs, Pattern}
    assert cell_runs._plan_of_zeros((2,) * 28, (27,)) is None
    assert cell_runs._plan_of_zeros((2,) * 20, (0, 5)) is cell_runs._plan_of_zeros((2,) * 20, (0, 5))
