"""Planned noise: the plan of many tables, and a release of them with it beside one with equal noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fastdp import Domain, marginals, release_marginals
from fastdp.answering.least_squares_fit import LeastSquares
from fastdp.answering.queries import Marginals
from fastdp.answering.residual_plan import plan_residuals
from fastdp.answering.table_noise import Allocation

from ...peers.inputs import binary_records
from ..registry import Call, Case, Side, make_case, within, within_seconds
from .inputs import BINARY, RECORDS, WAYS

_case = partial(make_case, "answering")

EPSILON, DELTA = 1.0, 1e-6
WIDE = Domain.binary(100)


def plan(workload: Marginals) -> Any:
    """What a first release of these tables plans, under replaced records, where the worst pair is searched for."""
    return plan_residuals(LeastSquares(workload), EPSILON, DELTA, "replace-one", "maximum")


def _plan(domain: Domain, k: int) -> Callable[[int], Call]:
    """All tables of k attributes, or of the fewest attributes that are as many as asked for."""

    def make(n: int) -> Call:
        some = next(
            d for d in range(k, len(domain) + 1) if d == len(domain) or len(marginals(Domain.binary(d), k)) >= n
        )
        workload = marginals(Domain.binary(some), k)
        return lambda: plan(workload)

    return make


def _drawn_plan(domain: Domain, k: int) -> Callable[[int], Any]:
    def drawn(n: int) -> tuple[Any, ...]:
        made = _plan(domain, k)(n)()
        return made.sets, [sigma * 2.0**-made.bits for sigma in made.sigmas], EPSILON, DELTA

    return drawn


def _release(allocation: Allocation) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        codes, asked = binary_records(n, len(BINARY)), marginals(BINARY, WAYS)
        return lambda: release_marginals(
            codes, BINARY, asked, epsilon=EPSILON, delta=DELTA, fit="entropic", allocation=allocation
        )

    return make


def _drawn_release(n: int) -> tuple[Any, ...]:
    released = _release("planned")(n)()
    return binary_records(n, len(BINARY)), released.workload.positions, released.tables, released.sigma


CASES: tuple[Case, ...] = (
    _case(
        "plan-triples",
        "plan the noise of all 1,140 three-way tables of 20 columns",
        1140,
        _plan(BINARY, WAYS),
        (None, within_seconds(0.2)),
        oracle="a plan's price",
        drawn=_drawn_plan(BINARY, WAYS),
    ),
    _case(
        "plan-wide",
        "plan the noise of all 4,950 two-way tables of 100 columns",
        4950,
        _plan(WIDE, 2),
        (None, within_seconds(2.0)),
        oracle="a plan's price",
        drawn=_drawn_plan(WIDE, 2),
    ),
    _case(
        "release-planned",
        "release 1,140 three-way tables of 20 columns with planned noise and fit a distribution of 2^20 cells",
        RECORDS,
        _release("planned"),
        (Side("equal noise", _release("equal")), within("equal noise", 1.5)),
        oracle="three-way tables",
        drawn=_drawn_release,
        rounds=3,
        epsilon=EPSILON,
        delta=DELTA,
    ),
)
