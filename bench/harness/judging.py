"""What was measured, beside what was asked: rows with their verdicts, and the points of curves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...support.machine import SIMD_NAMES
from ..cases.curves import Curve
from ..cases.registry import Case, Target
from .limits import Limits
from .results import Row


def judge(
    case: Case,
    measured: dict[str, Any] | None,
    why: str | None,
    machine: dict[str, Any],
    limits: Limits | None = None,
    *,
    quick: bool = False,
) -> list[Row]:
    """A row per target, and one per rival that no target names; small arrays are not judged."""
    named = {target.rival for target in case.targets}
    untargeted: list[str | None] = [side.name for side in case.rivals if side.name not in named]
    pairs: list[tuple[str | None, Target | None]] = [(target.rival, target) for target in case.targets]
    pairs += [(rival, None) for rival in untargeted] or ([] if pairs else [(None, None)])
    if why is None and case.ours.threads > machine["cores"]:
        why = f"needs {case.ours.threads} cores"
    share = share_of(case, measured["n"], min(measured["ours"]), limits) if measured is not None else None
    return [replace(_row(case, rival, target, measured, why, machine, quick), share=share) for rival, target in pairs]


def share_of(case: Case, n: int, ours: float, limits: Limits | None) -> float | None:
    """Of what the machine could do at most, with the bytes and random words that the case cannot do without."""
    return None if limits is None or case.traffic is None else limits.seconds(case.traffic, n) / ours


def _row(
    case: Case,
    rival: str | None,
    target: Target | None,
    measured: dict[str, Any] | None,
    why: str | None,
    machine: dict[str, Any],
    quick: bool,
) -> Row:
    ours = theirs = ratio = rival_n = None
    given: dict[str, Any] = {}
    n, threads = case.n, case.ours.threads
    if measured is not None:
        n, ours = measured["n"], min(measured["ours"])
        if rival is not None:
            other = measured["theirs"][rival]
            rival_n, why, given = other["n"], why or other["why_not"], other.get("parameters", {})
            if other["seconds"] and other["why_not"] is None:
                theirs = min(other["seconds"])
                ratio = (theirs / rival_n) / (ours / n)
    limit = target.limits.get(machine.get("simd", "")) if target is not None else None
    return Row(
        case=case.name,
        room=case.room,
        work=case.work,
        parameters=dict(case.parameters),
        threads=threads,
        n=n,
        ours=ours,
        rival=rival,
        rival_n=rival_n,
        rival_parameters=given,
        theirs=theirs,
        ratio=ratio,
        kind=target.kind if target is not None else None,
        limit=limit,
        verdict=why or ("not judged" if quick and target else _verdict(target, limit, ours, ratio, machine)),
    )


def _verdict(
    target: Target | None, limit: float | None, ours: float | None, ratio: float | None, machine: dict[str, Any]
) -> str:
    if target is None:
        return "no target"
    if limit is None:
        return f"no target for {SIMD_NAMES[machine['simd']]}"
    if target.kind == "seconds":
        holds = ours is not None and ours <= limit
    elif target.kind == "within":
        holds = ratio is not None and 1 / ratio <= limit
    else:
        holds = ratio is not None and ratio >= limit
    return "holds" if holds else "falls short"


def drawn_curve(
    curve: Curve,
    points: dict[str, Case],
    measured: dict[str, dict[str, Any]],
    failed: dict[str, str],
    limits: Limits | None,
) -> dict[str, Any]:
    """A curve as it is written: elements a second of both sides, and at most, at every point."""
    drawn = []
    for x in curve.points:
        name = f"{curve.name}@{x}"
        if (case := points.get(name)) is None:  # left out of a quick run
            continue
        point: dict[str, Any] = {"x": x, "n": case.n, "ours": None, "numpy": None, "limit": None, "threads": {}}
        found = measured.get(name)
        whys = {} if found else {"fastdp": failed.get(name, "not measured")}
        if found is not None:
            each, n = curve.elements(x), found["n"]
            point["n"], point["ours"] = n, n * each / min(found["ours"])
            speeds: dict[str, float] = {}
            for rival, times in found["theirs"].items():
                if times["seconds"] and times["why_not"] is None:
                    speeds[rival] = times["n"] * each / min(times["seconds"])
                else:
                    whys[rival] = times["why_not"]
            point["numpy"] = speeds.get(curve.numpy_name)
            sides = {side.name: side.threads for side in case.rivals if side.name != curve.numpy_name}
            point["threads"] = {str(sides[rival]): speed for rival, speed in speeds.items() if rival in sides}
            if limits is not None:
                point["limit"] = n * each / limits.seconds(curve.traffic(x), n * each)
        drawn.append(point | ({"why_not": whys} if whys else {}))
    return {
        "name": curve.name,
        "room": curve.room,
        "title": curve.title,
        "axis": curve.axis,
        "unit": curve.unit,
        "numpy": curve.numpy_name,
        "threads": curve.threads,
        "points": drawn,
    }
