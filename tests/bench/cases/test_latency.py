"""Latency: the smallest calls do the work; first calls are timed by their own process."""

from __future__ import annotations

import pytest

from fastdp.bench.cases import latency
from fastdp.bench.cases.registry import Case
from tests.bench.oracles import ORACLES
from tests.bench.params import DRAWS, LATENCIES

IN_PROCESS = [one for one in LATENCIES if one.values[0].clock == "call"]


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # so few have no useful bound
@pytest.mark.parametrize("case", IN_PROCESS)
def test_smallest_calls_do_the_work(case: Case) -> None:
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)
    for side in (case.ours, *case.rivals):
        call = side.make(case.n)
        call(), call()


def test_first_calls_are_timed_by_their_own_process() -> None:
    case = next(case for case in latency.latencies() if case.name == "first-warm-median")
    assert 0 < case.ours.make(1)() < 60
    assert 0 < case.rivals[0].make(1)() < 60
    assert {case.name for case in latency.latencies() if case.name.startswith("first-cold")} == {
        f"first-cold-{name}" for name in latency.FIRST
    }
