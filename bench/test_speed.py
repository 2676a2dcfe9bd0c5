"""Every case of the registry under pytest-benchmark: `pytest bench`, and `fastdp bench` underneath.

pytest-benchmark times our side. Its setup hook, before every round, times the other sides, so that both see the same
machine; their times, and ours a call, are in `extra_info` (and in the JSON file that --benchmark-json writes).
"""

from __future__ import annotations

from typing import Any

import pytest

from .measure import Duel, child_clock
from .registry import Case, cases

_PARAMETERS = [
    pytest.param(
        case,
        id=case.name,
        marks=[pytest.mark.benchmark(group=case.room, **({"timer": child_clock} if case.clock == "child" else {}))],
    )
    for case in cases()
]


@pytest.mark.parametrize("case", _PARAMETERS)
def test_speed(case: Case, benchmark: Any, record_property: Any, pytestconfig: pytest.Config) -> None:
    with Duel(case, quick=pytestconfig.getoption("fastdp_quick", default=False)) as duel:
        benchmark.pedantic(duel.round, setup=duel.before_round, rounds=duel.rounds, iterations=1)
    if benchmark.stats is not None:  # None under --benchmark-disable
        result = duel.result(benchmark.stats.stats.data)
        benchmark.extra_info.update(result)
        record_property("measured", result)
