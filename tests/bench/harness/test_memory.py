"""What a call holds, seen from a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from fastdp.bench.cases import memory as memory_cases
from fastdp.bench.cases.registry import cases
from fastdp.bench.harness import memory as memory_harness
from fastdp.bench.harness.results import Peak


def test_what_a_call_holds_is_seen(run_python: Callable[..., str]) -> None:
    """In a process of its own, where nothing else takes or gives back memory."""
    printed = run_python("""
import numpy as np
from fastdp.bench.harness.memory import rise
print(rise(lambda: np.ones(32 << 20, np.uint8)), rise(lambda: None))
""")
    held, nothing = map(int, printed.split())
    n = 32 << 20
    assert 0.9 * n < held < 1.3 * n
    if sys.platform == "linux":
        assert nothing < n / 8


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    import os

    (memory,) = (memory for memory in memory_cases.memories() if memory.case == "laplace-int64-100-new")
    peak = memory_harness.measure_peak(memory, os.environ)
    assert peak.why_not is None
    assert peak.input == 8_000_000
    assert peak.ours is not None
    assert 0.9 * peak.input < peak.ours < 2 * peak.input


def test_every_memory_is_that_of_a_case() -> None:
    said = {memory.case: memory.bytes_each for memory in memory_cases.memories()}
    assert set(said) <= {case.name for case in cases()}
    assert all(1 <= each <= 10_000 for each in said.values())


def test_the_targets_of_memory_are_all_there() -> None:
    """At most 0.3 of float64 input and 0.6 of float32, in what integer points are made of and what sums read."""
    asked = {
        "descent-squared-1e6x20": 0.3,
        "descent-squared-1e6x20-float32": 0.6,
        "descent-squared-60000x784": 0.3,
        "descent-squared-60000x784-float32": 0.6,
        "least-squares": 0.3,
        "vector-sum-gaussian": 0.3,
    }
    assert {each.case: each.most for each in memory_cases.memories() if each.most is not None} == asked


@pytest.mark.parametrize(
    ("ours", "most", "verdict"),
    [(30, 0.3, "holds"), (31, 0.3, "falls short"), (30, None, ""), (None, 0.3, "")],
)
def test_a_peak_has_a_verdict_where_there_is_a_target(ours: int | None, most: float | None, verdict: str) -> None:
    assert Peak("case", "work", 1, 100, ours, None, None, most=most).verdict == verdict


def test_a_process_that_dies_is_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = [sys.executable, "-c", "raise MemoryError('no more')"]
    assert memory_harness._run(dead, {}) == (None, "ended with 1: MemoryError: no more")
    monkeypatch.setattr(memory_harness, "TIMEOUT", 0.01)
    assert memory_harness._run([sys.executable, "-c", "import time; time.sleep(60)"], {}) == (
        None, "took longer than 0 s",
    )  # fmt: skip
