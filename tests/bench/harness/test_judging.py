"""Verdicts, and rows without a figure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastdp.bench.cases.curves import curves
from fastdp.bench.cases.registry import (
    Case,
    Side,
    Target,
    faster,
    matching,
    with_threads,
    within,
    within_seconds,
)
from fastdp.bench.cases.traffic import Traffic
from fastdp.bench.harness import judging, limits
from tests.bench.example import MACHINE, idle_case
from tests.bench.harness.test_limits import KNOWN


def _measured(ours: float, theirs: float, why_not: str | None = None) -> dict[str, Any]:
    rival = {"n": 500, "seconds": [theirs, 2 * theirs], "why_not": why_not}
    return {"case": "nothing", "n": 1000, "threads": 1, "ours": [2 * ours, ours], "theirs": {"nothing": rival}}


@pytest.mark.parametrize(
    ("target", "simd", "ours", "theirs", "verdict"),
    [
        (faster("nothing", avx512=4, avx2=2), "avx2", 1.0, 1.0, "holds"),  # per element: the rival did half as many
        (faster("nothing", avx512=4, avx2=2), "avx2", 1.01, 1.0, "falls short"),
        (faster("nothing", avx512=4, avx2=2), "avx512", 1.0, 1.0, "falls short"),
        (faster("nothing", avx512=4, avx2=2), "neon", 1.0, 1.0, "no target for NEON, 128 bits"),
        (within("nothing", 4), "avx2", 1.0, 0.125, "holds"),
        (within("nothing", 4), "avx2", 1.01, 0.125, "falls short"),
        (within_seconds(0.5), "avx512", 0.5, 1.0, "holds"),
        (within_seconds(0.5), "avx512", 0.51, 1.0, "falls short"),
    ],
)
def test_verdicts(target: Target, simd: str, ours: float, theirs: float, verdict: str) -> None:
    case = idle_case(targets=(target,))
    rows = judging.judge(case, _measured(ours, theirs), None, MACHINE | {"simd": simd})
    assert rows[0].verdict == verdict


def test_rows_state_their_share_of_the_limit() -> None:
    case = idle_case(traffic=Traffic(read=8, held=8))
    (row,) = judging.judge(case, _measured(1.0, 1.0), None, MACHINE, KNOWN)
    assert row.share == KNOWN.seconds(Traffic(read=8, held=8), 1000)  # the least of both times is one second
    assert row.share != KNOWN.seconds(Traffic(read=8, held=8), 500)
    for unknown in ((idle_case(), KNOWN), (case, None)):
        assert judging.judge(unknown[0], _measured(1.0, 1.0), None, MACHINE, unknown[1])[0].share is None
    assert judging.judge(case, None, "it crashed", MACHINE, KNOWN)[0].share is None


def test_rows_without_a_figure_say_why() -> None:
    def verdicts(case: Case, *arguments: Any) -> list[str]:
        return [row.verdict for row in judging.judge(case, *arguments)]

    assert verdicts(idle_case(), _measured(1, 1, "not installed"), None, MACHINE) == ["not installed"]
    assert verdicts(idle_case(), None, "it crashed", MACHINE) == ["it crashed"]
    assert verdicts(idle_case(targets=()), _measured(1, 1), None, MACHINE) == ["no target"]
    two = idle_case(ours=Side("fastdp", lambda n: lambda: None, threads=2))
    assert verdicts(two, _measured(1, 1), None, MACHINE | {"cores": 1}) == ["needs 2 cores"]


def _measured_sides(case: Case, ours: float, theirs: dict[str, float | None]) -> dict[str, Any]:
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
        first: _measured_sides(points[first], 1e-3, {"numpy": 2e-3, "fastdp, 2 threads": 5e-4}),
        second: _measured_sides(points[second], 1e-3, {"numpy": None, "fastdp, 2 threads": None}),
    }
    drawn = judging.drawn_curve(curve, points, measured, {third: "it crashed"}, KNOWN)
    one, two, three = json.loads(json.dumps(drawn))["points"]
    assert one["x"] == 1_000
    assert one["ours"] == pytest.approx(1_000 * 8 * 10 / 1e-3)
    assert one["numpy"] == pytest.approx(one["ours"] / 2)
    assert one["threads"] == {"2": pytest.approx(2 * one["ours"])}
    a_record = 2 * 8 + 8 + 2 * 2  # coordinates, label, exponent and limit
    assert one["limit"] == pytest.approx(limits.at(KNOWN.read, 1_000 * a_record) * 8 / a_record)
    assert two["numpy"] is None
    assert two["why_not"] == {"numpy": "no luck", "fastdp, 2 threads": "no luck"}
    assert three["ours"] is None
    assert three["why_not"] == {"fastdp": "it crashed"}
