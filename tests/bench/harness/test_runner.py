"""The run of many cases: a worker that dies, what is chosen."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fastdp.bench.cases import latency
from fastdp.bench.cases import memory as memory_cases
from fastdp.bench.cases.curves import curves
from fastdp.bench.cases.registry import cases
from fastdp.bench.harness import results, runner, workers
from tests.bench.example import MACHINE


def test_a_worker_that_dies_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the worker: it measures every case but `import`, on which it aborts."""
    code = f"""
import json, os, sys
def tell(**event): print(json.dumps(event), flush=True)
tell(machine={MACHINE!r})
for name in sys.argv[1:]:
    tell(start=name)
    if name == "import":
        print("about to die", file=sys.stderr, flush=True)
        os.abort()
    if name == "limits":
        tell(measured=dict(case=name, **{{of: [[4096, 1e9]] for of in ("read", "copy", "change")}}, words=1e9))
        continue
    tell(measured=dict(case=name, n=1, threads=1, ours=[1.0], theirs=dict(
        numpy=dict(n=1, seconds=[1.0], why_not=None), OpenDP=dict(n=1, seconds=[], why_not="not installed"))))
"""
    monkeypatch.setattr(workers, "_command", lambda quick, threads, names: [sys.executable, "-c", code, *names])
    seen: list[tuple[int, int, str]] = []
    report = runner.run(("import", "gaussian-int64", "laplace-small"), progress=lambda *now: seen.append(now))
    assert list(report.failed) == ["import"]
    assert "ended with -6: about to die" in report.failed["import"]
    assert len(report.measured) == 5
    small = {row.verdict for row in report.rows if row.case == "laplace-small-call"}
    assert small == {"holds", "falls short"}  # as fast as numpy, and far from its two microseconds
    assert seen[-1] == (7, 7, "")
    shares = {row.case: row.share for row in report.rows}
    assert shares["gaussian-int64-4"] == pytest.approx(16 / 1e9)  # in a second: two numbers of 8 bytes
    assert shares["laplace-small-call"] is shares["import"] is None
    assert {row.verdict for row in report.rows} == {"falls short", "holds", "not installed", report.failed["import"]}


def test_another_fastdp_is_not_measured_in_the_place_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a checkout is run from its folder and another one is installed."""
    told = {"machine": {}, "source": "/elsewhere/fastdp/__init__.py"}
    fake = f"import json; print(json.dumps({told}), flush=True); input()"
    monkeypatch.setattr(workers, "_command", lambda quick, threads, names: [sys.executable, "-c", fake])
    with pytest.raises(ValueError, match=r"which is '/elsewhere/fastdp/__init__\.py'"):
        runner.run(["words"], quick=True)


def test_a_worker_that_does_not_start_fails_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        workers, "_command", lambda quick, threads, names: [sys.executable, "-c", "raise SystemExit('no such luck')"]
    )
    report = runner.run(("words", "import"))
    assert report.failed == dict.fromkeys(
        ("limits", "words", "import"), "the measuring process ended with 1: no such luck"
    )


def test_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    def nothing(jobs: dict[str, str], *more: Any) -> Any:
        seen.append(set(jobs))
        return workers.Outcome({"cores": 2, "simd": "avx2"}, {}, dict.fromkeys(jobs, "not measured"))

    monkeypatch.setattr(workers, "measure", nothing)
    monkeypatch.setattr(runner, "measure_peak", lambda memory, *more, **most: results.Peak("", "", 1, 8, 8, None, None))
    runner.run()
    runner.run(targets=True)
    report = runner.run(full=True)
    headline, targets, full = seen
    assert headline == {"limits", *(case.name for case in cases() if case.headline)}
    assert targets == {"limits", *(case.name for case in cases() if case.targets)}
    points = {f"{curve.name}@{x}" for curve in curves() for x in curve.points}
    late = {case.name for case in latency.latencies()}
    assert full == {"limits", *(case.name for case in cases()), *points, *late}
    assert len(report.memory) == len(memory_cases.memories())
    assert {row.case for row in report.latency} == late | set(latency.IN_ROWS)
    asked = {case.name for case in latency.latencies() if case.targets}
    assert asked == {row.case for row in report.rows if row.kind is not None} & late
    assert {f"small-{name}-{n}" for name, n in latency.MICROSECONDS} <= asked
    with pytest.raises(ValueError, match=r"only='curve-mask'"):
        runner.run(("curve-mask",))  # not without `full`
    with pytest.raises(ValueError, match=r"threads=\(0,\)"):
        runner.run(threads=(0,))
