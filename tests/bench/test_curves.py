"""Curves, the machine's limits, latency and memory: every point does the work that it claims, and what is measured is
written in full."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fastdp.bench.cases import series
from fastdp.bench.cases.curves import Curve, curves
from fastdp.bench.cases.registry import ROOMS, Case, cases, choose, matching, with_threads
from fastdp.bench.harness import judging, limits, results, runner
from fastdp.bench.harness.limits import Limits, Traffic
from fastdp.cli import main
from tests.bench.test_registry import ORACLES

CURVES = [pytest.param(curve, id=curve.name) for curve in curves()]
LATENCIES = [pytest.param(case, id=case.name) for case in series.latencies()]
IN_PROCESS = [pytest.param(case, id=case.name) for case in series.latencies() if case.clock == "call"]
TINY, DRAWS = 100, 20_000

KNOWN = Limits(
    read=((1_000, 8e9), (1_000_000, 2e9)), copy=((1_000, 4e9), (1_000_000, 1e9)), change=((1_000, 4e9),), words=1e9
)


# --- the registry


def test_names_are_unique_and_say_no_row_twice() -> None:
    names = [case.name for case in cases()] + [case.name for case in series.latencies()]
    names += [f"{curve.name}@{x}" for curve in curves() for x in curve.points]
    names += [memory.name for memory in series.memories()]
    assert len(set(names)) == len(names)
    assert {curve.room for curve in curves()} <= set(ROOMS)
    assert set(series.IN_ROWS) <= {case.name for case in cases()}


def test_every_subject_has_its_curve() -> None:
    first, last = ({(c.axis, c.room): c.points[i] for c in curves()} for i in (0, -1))
    assert first[("domain cells", "answering")] == first[("candidates", "selection")] == 1 << 10
    assert last[("domain cells", "answering")] == last[("candidates", "selection")] == 1 << 26
    for room in ("optimizing", "learning"):
        assert first[("dimension", room)] == 1
        assert last[("dimension", room)] == 2_000
    for room in ("optimizing", "learning", "noise"):
        assert first[("records", room)] == 1_000
        assert last[("records", room)] == 10_000_000


@pytest.mark.parametrize("curve", CURVES)
def test_points_rise_and_each_is_a_case(curve: Curve) -> None:
    assert list(curve.points) == sorted(set(curve.points))
    for x in curve.points:
        case = curve.case(x)
        assert case.n == curve.size(x) >= 1
        assert case.calls * case.n >= curve.burst
        traffic = curve.traffic(x)
        assert traffic.held > 0
        assert traffic.read + traffic.copied + traffic.changed + traffic.words > 0
    if curve.axis == "dimension":  # constant n d
        entries = [curve.size(x) * x for x in curve.points]
        assert min(entries) > 0.99 * max(entries)
    assert 0 < len(curve.quick_points(20_000)) <= len(curve.points)


def test_the_headline_is_about_a_dozen_of_all_rooms() -> None:
    headline = [case for case in cases() if case.headline]
    assert 10 <= len(headline) <= 15
    assert {case.room for case in headline} == set(ROOMS)
    assert all(case.targets for case in headline)


def test_threads_are_further_sides_of_the_same_rounds() -> None:
    (case,) = choose(("laplace-int64-100-new",))
    both = with_threads(case, (1, 2))
    assert [(side.name, side.threads) for side in both.rivals[len(case.rivals) :]] == [("fastdp, 2 threads", 2)]
    assert both.rivals[-1].make is case.ours.make
    (alone,) = choose(("import",))
    assert with_threads(alone, (1, 2)) is alone  # a process of its own


# --- the work


def _middle(curve: Curve) -> int:
    return 8 if curve.axis == "dimension" and 8 in curve.points else curve.points[1]


@pytest.mark.parametrize("curve", CURVES)
def test_ours_does_the_work_of_its_curve(curve: Curve) -> None:
    case = curve.case(_middle(curve))
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)


@pytest.mark.parametrize("curve", CURVES)
def test_both_sides_do_the_same_at_a_tiny_size(curve: Curve) -> None:
    case = curve.case(_middle(curve))
    first, second = case.ours.make(TINY)(), case.rivals[0].make(TINY)()
    if curve.name == "curve-mask":
        assert first == pytest.approx(second, rel=1e-12)
    elif curve.name.startswith("curve-literals"):
        for ours, theirs in zip((first.of_positives, first.of_negatives), second, strict=True):
            assert np.array_equal(ours[1::2], theirs)
    elif curve.name.startswith("curve-select"):
        assert 0 <= first < TINY
        assert 0 <= second < TINY
    elif curve.name.startswith("curve-descent"):
        assert first.shape == second.shape == (case.ours.make(TINY)().size,)
        order = np.inf if "box" in curve.name else 2
        assert np.linalg.norm(first, order) <= 1 + 1e-9
        assert np.linalg.norm(second, order) <= 1 + 1e-9
    else:
        assert np.shape(first) == np.shape(second) == (TINY,)


def test_both_sides_descend() -> None:
    """Of so many records noise hides little."""
    from fastdp.bench.cases import optimizing

    for curve in matching(("curve-descent-ball-n", "curve-descent-box-n"), curves()):
        case = curve.case(100_000)
        X, y = optimizing.records(case.n, 8, "float64")
        for side in (case.ours, *case.rivals):
            w = side.make(case.n)()
            assert ((X @ w - y) ** 2).mean() < (y**2).mean(), (curve.name, side.name)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # so few promise little
@pytest.mark.parametrize("case", IN_PROCESS)
def test_smallest_calls_do_the_work(case: Case) -> None:
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)
    for side in (case.ours, *case.rivals):
        call = side.make(case.n)
        call(), call()


def test_first_calls_are_timed_by_their_own_process() -> None:
    case = next(case for case in series.latencies() if case.name == "first-warm-median")
    assert 0 < case.ours.make(1)() < 60
    assert 0 < case.rivals[0].make(1)() < 60
    assert {case.name for case in series.latencies() if case.name.startswith("first-cold")} == {
        f"first-cold-{name}" for name in series.FIRST
    }


# --- limits


def test_limits_are_positive_and_fall_with_size() -> None:
    found = limits.measure(quick=True)
    for speeds in (found.read, found.copy, found.change):
        sizes, rates = zip(*speeds, strict=True)
        assert list(sizes) == sorted(sizes)
        assert min(rates) > 1e8
        assert max(rates) < 1e13
        assert max(rates[:4]) > rates[-1] / 3  # other processes may have taken their time from either
    assert 1e7 < found.words < 1e11
    assert Limits.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_limits_between_sizes_and_beyond() -> None:
    assert limits.at(KNOWN.read, 10) == 8e9
    assert limits.at(KNOWN.read, 1e9) == 2e9
    assert limits.at(KNOWN.read, 1_000) == pytest.approx(8e9)
    assert limits.at(KNOWN.read, 10**4.5) == pytest.approx(4e9)


def test_the_slower_of_memory_and_words_is_the_limit() -> None:
    moving = Traffic(read=8, copied=16, held=1_000)
    assert KNOWN.seconds(moving, 1) == pytest.approx(8 / 8e9 + 16 / 4e9)
    assert KNOWN.seconds(moving, 1_000) == pytest.approx(1_000 * (8 / 2e9 + 16 / 1e9))
    assert KNOWN.seconds(replace(moving, words=100), 1) == pytest.approx(100 / 1e9)


# --- memory


def test_what_a_call_holds_is_seen() -> None:
    n = 32 << 20
    assert 0.9 * n < series.rise(lambda: np.ones(n, np.uint8)) < 1.3 * n
    if sys.platform == "linux":
        assert series.rise(lambda: None) < n / 8


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    import os

    (memory,) = (memory for memory in series.memories() if memory.case == "laplace-int64-100-new")
    peak = series.measure_peak(memory, os.environ)
    assert peak.why_not is None
    assert peak.input == 8_000_000
    assert peak.ours is not None
    assert 0.9 * peak.input < peak.ours < 2 * peak.input


def test_every_memory_is_that_of_a_case() -> None:
    said = {memory.case: memory.bytes_each for memory in series.memories()}
    assert set(said) <= {case.name for case in cases()}
    assert all(1 <= each <= 1_000 for each in said.values())


def test_a_process_that_dies_is_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = [sys.executable, "-c", "raise MemoryError('no more')"]
    assert series._run(dead, {}) == (None, "ended with 1: MemoryError: no more")
    monkeypatch.setattr(series, "TIMEOUT", 0.01)
    assert series._run([sys.executable, "-c", "import time; time.sleep(60)"], {}) == (
        None, "took longer than 0 s",
    )  # fmt: skip


# --- what is written


def _measured(case: Case, ours: float, theirs: dict[str, float | None]) -> dict[str, Any]:
    sides = {
        name: {"n": case.n, "seconds": [] if t is None else [t], "why_not": "no luck" if t is None else None}
        for name, t in theirs.items()
    }
    return {"case": case.name, "n": case.n, "threads": 1, "ours": [2 * ours, ours], "theirs": sides}


def test_a_curve_as_it_is_written() -> None:
    (curve,) = matching(("curve-descent-ball-n",), curves())
    points = {f"{curve.name}@{x}": with_threads(curve.case(x), (2,)) for x in curve.points[:3]}
    first, second, third = points
    measured = {
        first: _measured(points[first], 1e-3, {"numpy": 2e-3, "fastdp, 2 threads": 5e-4}),
        second: _measured(points[second], 1e-3, {"numpy": None, "fastdp, 2 threads": None}),
    }
    drawn = judging.drawn_curve(curve, points, measured, {third: "it crashed"}, KNOWN)
    one, two, three = json.loads(json.dumps(drawn))["points"]
    assert one["x"] == 1_000
    assert one["ours"] == pytest.approx(1_000 * 8 * 10 / 1e-3)
    assert one["numpy"] == pytest.approx(one["ours"] / 2)
    assert one["threads"] == {"2": pytest.approx(2 * one["ours"])}
    held = 1_000 * (8 * 8 + 8)
    assert one["limit"] == pytest.approx(limits.at(KNOWN.read, held) / 9)
    assert two["numpy"] is None
    assert two["why_not"] == {"numpy": "no luck", "fastdp, 2 threads": "no luck"}
    assert three["ours"] is None
    assert three["why_not"] == {"fastdp": "it crashed"}


def test_the_full_run_of_a_curve(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "full.json"
    words = ("curve-laplace", "memory-laplace-int64-100-new", "small-laplace-1000", "laplace-small")
    only = [part for word in words for part in ("--only", word)]
    assert main(["bench", "--full", "--quick", "--threads", "1,2", *only, "--json", str(path)]) == 0
    written, printed = json.loads(path.read_text()), capsys.readouterr().out
    assert written["format"] == 2
    (curve,) = written["curves"]
    assert {"name", "title", "axis", "unit", "points"} <= set(curve)
    assert [point["x"] for point in curve["points"]] == [1_000, 10_000]
    for point in curve["points"]:
        assert point["ours"] > 0
        assert point["numpy"] > 0
        assert point["limit"] > 0
    assert list(dict.fromkeys(row["case"] for row in written["latency"])) == [
        "laplace-small-call",
        "small-laplace-1000",
    ]
    assert written["memory"][0]["case"] == "laplace-int64-100-new"
    assert written["limits"]["words"] > 0
    assert written["threads"] == [1, 2]
    assert "machine's limit" in printed
    assert "beside its input" in printed


def test_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    def nothing(jobs: dict[str, str], *more: Any) -> Any:
        seen.append(set(jobs))
        return {"cores": 2, "simd": "avx2"}, {}, dict.fromkeys(jobs, "not measured")

    monkeypatch.setattr(runner, "_measure", nothing)
    monkeypatch.setattr(runner, "measure_peak", lambda memory, *more, **most: results.Peak("", "", 1, 8, 8, None, None))
    runner.run()
    runner.run(targets=True)
    report = runner.run(full=True)
    headline, targets, full = seen
    assert headline == {case.name for case in cases() if case.headline}
    assert targets == {case.name for case in cases() if case.targets}
    points = {f"{curve.name}@{x}" for curve in curves() for x in curve.points}
    late = {case.name for case in series.latencies()}
    assert full == {"limits", *(case.name for case in cases()), *points, *late}
    assert len(report.memory) == len(series.memories())
    assert {row.case for row in report.latency} == late | set(series.IN_ROWS)
    with pytest.raises(ValueError, match=r"only='curve-mask'"):
        runner.run(("curve-mask",))  # not without `full`
    with pytest.raises(ValueError, match=r"threads=\(0,\)"):
        runner.run(threads=(0,))


@pytest.mark.parametrize("text", ["0", "1,", "two", ""])
def test_numbers_of_threads_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--threads", text])
    assert "as in 1,2" in capsys.readouterr().err
