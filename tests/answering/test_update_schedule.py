"""The schedule of updates (fastdp/answering/update_schedule.py), from the inequalities of its theorems."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from fastdp import (  # fmt: skip
    Domain,
)
from fastdp.answering.queries.bound_query import UNIT
from fastdp.answering.update_schedule import UpdateSchedule, Variant
from tests.answering.multiplicative_weights_laws import make, skewed, zcdp_delta
from tests.oracles.privacy import pure_rho

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


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
            rho = Decimal(found.updates) * pure_rho(found.epoch)
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
    assert run._run._threshold_noise._plan.scale == right.threshold_scale
    assert run._run.query_noise._plan.scale == right.query_scale
    assert run.alpha == right.alpha
    wider = make(skewed(50_000, domain), domain, max_queries=100, alpha=0.5)
    assert wider.alpha == 0.5
    assert wider._schedule.updates < right.updates
