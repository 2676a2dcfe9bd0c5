"""What a run measures: cases of the registry, and with `full` the points of curves, latency and memory, too."""

from __future__ import annotations

from dataclasses import dataclass

from ..cases.curves import Curve, curves
from ..cases.latency import latencies
from ..cases.memory import Memory, memories
from ..cases.registry import Case, Named, cases, check_words, matching, with_threads
from .measure import QUICK_N


@dataclass(frozen=True)
class Chosen:
    rows: tuple[Case, ...]
    curves: tuple[Curve, ...]
    points: dict[str, Case]  # of the curves, by the name of the case
    latency: tuple[Case, ...]
    memory: tuple[Memory, ...]

    def jobs(self) -> dict[str, str]:
        """By name, in words: what workers measure; memory is measured by itself."""
        limited = self.points or any(case.traffic for case in self.rows)
        limits = {"limits": "the limits of this machine"} if limited else {}
        return limits | {case.name: case.work for case in (*self.rows, *self.points.values(), *self.latency)}


def choose(words: tuple[str, ...], *, targets: bool, full: bool, threads: tuple[int, ...], quick: bool) -> Chosen:
    """The rows that are asked for, without any word the dozen of the headline table; ValueError for a word that names
    nothing, or nothing that such a run measures."""
    if full:
        drawn, late, held = curves(), latencies(), memories()
        check_words(words, (*cases(), *drawn, *late, *held))
        drawn, late, held = matching(words, drawn), matching(words, late), matching(words, held)
    else:
        _check_rows(words)
        drawn, late, held = (), (), ()
    rows = tuple(
        with_threads(case, threads)
        for case in matching(words, cases())
        if (case.targets or not targets) and (case.headline or words or targets or full)
    )
    points = {
        f"{curve.name}@{x}": with_threads(curve.case(x), threads)
        for curve in drawn
        for x in (curve.quick_points(QUICK_N) if quick else curve.points)
    }
    return Chosen(rows, drawn, points, late, held)


def _check_rows(words: tuple[str, ...]) -> None:
    """What only a full run measures is named as such."""
    others: tuple[Named, ...] = (*curves(), *latencies(), *memories())
    for word in words:
        if matching((word,), others) and not matching((word,), cases()):
            raise ValueError(f"only={word!r}: a curve, latency or memory must come with full=True (--full)")
    check_words(words, cases())
