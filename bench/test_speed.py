"""Every case of the registry, every point of every curve and every latency under pytest-benchmark: `pytest bench`, and
`fastdp bench` underneath.

pytest-benchmark times our side. Its setup hook, before every round, times the other sides, so that both see the same
machine; their times, and ours a call, are in `extra_info` (and in the JSON file that --benchmark-json writes).
"""

from __future__ import annotations

from typing import Any

import pytest

from .cases.curves import SECONDS as POINT_SECONDS
from .cases.curves import curves
from .cases.latency import latencies
from .cases.registry import Case, cases, with_threads
from .harness import limits
from .harness.measure import SECONDS, Duel, child_clock


def _parameter(case: Case, seconds: float = SECONDS) -> Any:
    timer = {"timer": child_clock} if case.clock == "child" else {}
    return pytest.param(case, seconds, id=case.name, marks=[pytest.mark.benchmark(group=case.room, **timer)])


@pytest.mark.parametrize("what", ["limits"])
def test_limits(what: str, record_property: Any, pytestconfig: pytest.Config) -> None:
    found = limits.measure(quick=pytestconfig.getoption("fastdp_quick", default=False))
    record_property("measured", {"case": what, **found.to_json()})


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        *map(_parameter, cases()),
        *(_parameter(curve.case(x), POINT_SECONDS) for curve in curves() for x in curve.points),
        *map(_parameter, latencies()),
    ],
)
def test_speed(
    case: Case, seconds: float, benchmark: Any, record_property: Any, pytestconfig: pytest.Config
) -> None:  # fmt: skip
    case = with_threads(case, pytestconfig.getoption("fastdp_threads", default=()))
    with Duel(case, quick=pytestconfig.getoption("fastdp_quick", default=False), seconds=seconds) as duel:
        benchmark.pedantic(duel.round, setup=duel.before_round, rounds=duel.rounds, iterations=1)
    if benchmark.stats is not None:  # None under --benchmark-disable
        result = duel.result(benchmark.stats.stats.data)
        benchmark.extra_info.update(result)
        record_property("measured", result)
