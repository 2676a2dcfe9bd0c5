"""Plans: each bound holds at the price found, nothing smaller does, totals are those of compose, runs keep to them."""

from __future__ import annotations

import numpy as np
import pytest

import fastdp
from fastdp import Budget, bounds, compose, plan_releases

WANTED = [
    {"mechanism": "laplace", "label": "ages", "sensitivity": 2, "count": 100, "error": 40},
    {"mechanism": "exponential_mechanism", "candidates": 1000, "sensitivity": 1, "error": 100},
    {"mechanism": "gaussian", "sensitivity": 1.5, "count": 50, "error": 30, "times": 3},
    {"mechanism": "gaussian", "sensitivity": 1, "delta": 1e-8, "error": 50.0, "label": "one sum"},
    {"mechanism": "quantile", "q": 0.25, "domain_bits": 32, "error": 200},
    {"mechanism": "permute_and_flip", "candidates": 50, "sensitivity": 1, "error": 100},
]


def error_of(row, stated):
    given = {k: v for k, v in stated.items() if k not in ("mechanism", "label", "error", "times")}
    return getattr(bounds, row.mechanism)(**given, **{row.price: row.value})


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_bounds_hold_at_what_is_found_and_not_far_below(neighbors):
    plan = plan_releases(WANTED, delta=1e-6, neighbors=neighbors)
    for row, stated in zip(plan, WANTED, strict=True):
        stated = stated | ({"neighbors": neighbors} if stated["mechanism"] == "quantile" else {})
        assert row.error == error_of(row, stated) <= row.asked == stated["error"]
        less = fastdp.PlannedRelease(**{**vars(row), "value": row.value * 0.99})
        assert error_of(less, stated) > row.asked
        assert row.guarantee.neighbors == neighbors
    assert [row.price for row in plan] == ["epsilon", "epsilon", "rho", "epsilon", "epsilon", "epsilon"]
    assert plan.factor <= 1
    assert plan.total == compose(*((row.guarantee, row.times) for row in plan), delta=1e-6)
    assert plan.total.epsilon < sum(r.times * r.guarantee.to_approx(1e-6).epsilon for r in plan)


def test_a_run_is_charged_what_was_planned():
    """A budget that holds nothing but the plan lets each release through, and what they cost is its total."""
    plan = plan_releases(WANTED, delta=1e-6)
    ages, choice, sums, one, quartile, flip = (row.value for row in plan)
    with Budget(epsilon=plan.total.epsilon * (1 + 1e-9), delta=1e-6, declared=plan.guarantees) as budget:
        fastdp.quantile(np.arange(10_000, dtype=np.int32), 0.25, epsilon=quartile)
        fastdp.laplace(np.zeros(100, int), sensitivity=2, epsilon=ages)
        fastdp.exponential_mechanism(np.zeros(1000, int), sensitivity=1, epsilon=choice)
        for _ in range(3):
            fastdp.gaussian(np.zeros(50, int), sensitivity=1.5, rho=sums)
        fastdp.gaussian(0, sensitivity=1, epsilon=one, delta=1e-8)
        fastdp.permute_and_flip(np.zeros(50, int), sensitivity=1, epsilon=flip)
    assert budget.still_open == ()
    assert budget.spent.epsilon <= plan.total.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (3.0, 0.0), (0.5, 1e-6)])
def test_a_total_is_shared_out(epsilon, delta):
    wanted = [one for one in WANTED if one["mechanism"] in ("laplace", "permute_and_flip", "gaussian" * (delta > 0))]
    plan = plan_releases(wanted, epsilon=epsilon, delta=delta)
    spent = plan.total.epsilon if delta else min(form.pure for form in plan.total.forms())
    assert epsilon * 0.99 < spent <= epsilon
    ratios = [row.error / row.asked for row in plan]
    assert max(ratios) == plan.factor <= min(ratios) * 1.02
    better = [one | {"error": one["error"] * plan.factor * 0.98} for one in wanted]
    assert (
        plan_releases(better, delta=delta).total.to_approx(delta or 1e-9).epsilon
        > plan.total.to_approx(delta or 1e-9).epsilon
    )


def test_tables_and_pictures():
    plan = plan_releases([*WANTED[:2], WANTED[0] | {"label": "<b>"}])
    text = repr(plan)
    for part in ("ages", "error", "epsilon=", "bounded range", "together: ", "worst error over asked: 1"):
        assert part in text
    assert "&lt;b&gt;" in plan._repr_html_()
    assert "<b>" not in plan._repr_html_()
    assert plan.svg().count("<rect") == len(plan) == 3
    assert [row.label for row in plan[:2]] == ["ages", "exponential_mechanism"]


@pytest.mark.parametrize(
    ("wanted", "options", "match"),
    [
        ([], {}, "releases: must be at least one"),
        (3, {}, "releases: "),
        ([3], {}, "releases: .*must be mappings"),
        ([{"error": 1}], {}, "mechanism=None: must be the name of a function of fastdp.bounds"),
        ([{"mechanism": "os", "error": 1}], {}, "mechanism='os': must be the name"),
        ([{"mechanism": "population_error", "error": 1}], {}, "must have an error that depends on epsilon"),
        ([{"mechanism": "laplace", "sensitivity": 1}], {}, "error=None: must be"),
        ([{"mechanism": "laplace", "sensitivity": 1, "error": -1}], {}, "error=-1: must be > 0"),
        ([{"mechanism": "laplace", "sensitivity": 1, "error": 1, "epsilon": 2}], {}, "epsilon=2: must not be given"),
        ([{"mechanism": "laplace", "sensitivity": 1, "error": 1, "wide": 2}], {}, "wide=2: must not be given"),
        ([{"mechanism": "laplace", "sensitivity": 1, "error": 1, "times": 0}], {}, "times=0: must be"),
        ([{"mechanism": "laplace", "sensitivity": 1, "error": 1, "label": 3}], {}, "label=3: must be a text"),
        (WANTED[2:3], {"epsilon": 1.0}, "delta=0.0: must be > 0 to share out"),
        (WANTED[:1], {"epsilon": -1.0}, "epsilon=-1.0: must be > 0"),
        (WANTED[:1], {"delta": 1.0}, "delta=1.0"),
        (WANTED[:1], {"neighbors": "x"}, "neighbors='x'"),
    ],
)
def test_bad_plans(wanted, options, match):
    with pytest.raises(ValueError, match=match):
        plan_releases(wanted, **options)
