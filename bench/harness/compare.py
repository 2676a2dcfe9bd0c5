"""`fastdp bench --compare old.json`: what became of every row's ratio to its rival since an older results file.

Ratios are compared, not times: a rival such as numpy ran in the same minutes on the same machine, so that what slowed
both is not taken for a change. A ratio is of least times over rounds; how far the better rounds lie apart, on both
sides and in both files, is its spread, and a change counts only beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ...support.machine import SIMD_NAMES, SimdLevel
from ..cases.curves import curves
from ..cases.latency import latencies
from ..cases.registry import cases
from . import results
from .results import Report, ResultsError

LOSS = 0.15  # of a ratio, beyond the spread: from here on the command fails
GOOD_SHARE = 0.25  # of the rounds, the best: the slowest of them beside the fastest is the spread

Key = tuple[str, str]  # case and rival


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the rival ours was, per element, and by what factor rounds differ."""

    value: float
    spread: float  # >= 1
    n: int
    rival_n: int
    threads: int


@dataclass(frozen=True)
class Change:
    """One row, then and now."""

    case: str
    rival: str
    old: Ratio | None
    new: Ratio | None
    factor: float | None  # the new ratio beside the old one
    spread: float | None  # of both together
    verdict: str  # "lost", "worse", "same", "better", or why the row is not compared

    @property
    def order(self) -> float:
        return 1.0 if self.factor is None else self.factor


@dataclass(frozen=True)
class Comparison:
    path: str
    notes: tuple[str, ...]  # how the two runs differ as a whole
    changes: tuple[Change, ...]  # worst first; those that are not compared last

    @property
    def lost(self) -> bool:
        return any(change.verdict == "lost" for change in self.changes)


# ---------------------------------------------------------------------------------------------------------------------
# the older file


def load(path: Path, simd: SimdLevel) -> Report:
    """The older file, if it can be set beside a run of kernels compiled for this SIMD level."""
    name, older = repr(str(path)), results.load(path)
    try:
        ratios(older)
        _where(older.machine)
        compiled_for = older.machine["simd"]
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ResultsError(f"{name}: not as fastdp bench writes it ({what})") from None
    if compiled_for != simd:
        hint = "; --avx2 makes them alike" if (compiled_for, simd) == ("avx2", "avx512") else ""
        then, now = (SIMD_NAMES.get(level, level) for level in (compiled_for, simd))
        raise ResultsError(f"{name}: its kernels were compiled for {then}, those of this run are for {now}{hint}")
    return older


def ratios(report: Report) -> dict[Key, Ratio]:
    """Every row that has a figure for both sides."""
    found = {}
    for one in report.measured:
        ours = np.array(one["ours"], np.float64) / one["n"]
        for rival, other in one["theirs"].items():
            if other["seconds"] and other["why_not"] is None:
                theirs = np.array(other["seconds"], np.float64) / other["n"]
                if not (ours.min() > 0 and theirs.min() > 0):
                    raise ValueError(f"{one['case']}: times must be > 0")
                value, spread = theirs.min() / ours.min(), _spread(ours) * _spread(theirs)
                found[one["case"], rival] = Ratio(float(value), spread, one["n"], other["n"], one["threads"])
    return found


def _spread(times: Any) -> float:
    """How far the best quarter of the rounds lie apart, at least the second from the first; of one round, anything."""
    if times.size == 1:
        return inf
    best = np.sort(times)
    return float(best[max(1, round(GOOD_SHARE * (best.size - 1)))] / best[0])


# ---------------------------------------------------------------------------------------------------------------------
# comparing


def compare(path: Path, old: Report, report: Report) -> Comparison:
    """Set the rows that were measured now beside the same rows of an older file, as `load` returned it."""
    before, now = ratios(old), ratios(report)
    run = {row.case for row in report.rows} | {one["case"] for one in report.measured} | set(report.failed)
    known = {case.name for case in (*cases(), *latencies())}
    known |= {f"{curve.name}@{x}" for curve in curves() for x in curve.points}
    keys = [(row.case, row.rival) for row in report.rows if row.rival is not None]
    keys += [key for key in before if (key[0] in run or key[0] not in known) and key not in keys]
    whys = {(row.case, row.rival): row.verdict for row in report.rows if row.ratio is None}
    changes = [_change(key, before.get(key), now.get(key), whys.get(key)) for key in dict.fromkeys(keys)]
    changes.sort(key=lambda change: (change.factor is None, change.order))
    return Comparison(str(path), tuple(_notes(old, report)), tuple(changes))


def _change(key: Key, old: Ratio | None, new: Ratio | None, why: str | None) -> Change:
    if old is None and new is None:
        return Change(*key, old, new, None, None, f"no figure: {why}" if why else "no figure")
    if old is None or new is None:
        verdict = "not in the older file" if old is None else f"no figure now: {why}" if why else "no such row now"
        return Change(*key, old, new, None, None, verdict)
    if (old.n, old.rival_n, old.threads) != (new.n, new.rival_n, new.threads):
        return Change(*key, old, new, None, None, f"not the same work: n={old.n:,} then, {new.n:,} now")
    factor, spread = new.value / old.value, old.spread * new.spread
    if factor * spread < 1 - LOSS:
        verdict = "lost"
    else:
        verdict = "worse" if factor * spread < 1 else "better" if factor / spread > 1 else "same"
    return Change(*key, old, new, factor, spread, verdict)


def _where(machine: Mapping[str, Any]) -> str:
    return f"{machine['cpu']}, {machine['cores']} cores, compiled for {machine['compiled for']}"


def _notes(old: Report, report: Report) -> list[str]:
    notes = []
    then, now = old.machine, report.machine
    if not now:
        return []
    if _where(then) != _where(now):
        notes.append(f"another machine: {_where(then)} then, {_where(now)} now; ratios carry over in part only")
    versions = then.get("versions", {}), now.get("versions", {})
    differing = [name for name in versions[1] if versions[0].get(name) != versions[1][name]]
    if differing:
        each = [f"{name} {versions[0].get(name, 'none')} then, {versions[1][name]} now" for name in differing]
        notes.append(f"other versions: {'; '.join(each)}")
    if old.quick or report.quick:
        notes.append("a quick run: its figures are rough")
    return notes
