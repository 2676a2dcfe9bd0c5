"""`fastdp bench`: measure cases in worker processes, and set every figure beside its target.

It is a report: a row that falls short stays in and does not fail the command; an error in a row is a cell of the table,
the other rows go on, and the command shows it in its exit code.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...support.machine import SIMD_NAMES, simd_level
from ...support.machine import target as compiled_for
from ...support.progress import Progress, reporting
from ..cases.latency import IN_ROWS
from ..cases.registry import SIMD_LEVELS, Case, PeerSide
from . import took, workers
from .chosen import Chosen, choose
from .environments import install
from .judging import drawn_curve, judge
from .limits import Limits
from .memory import measure_peak
from .results import Peak, Report, Row, commit, now


def run(
    only: Iterable[str] = (),
    *,
    targets: bool = False,
    full: bool = False,
    threads: Iterable[int] = (),
    avx2: bool = False,
    quick: bool = False,
    peers: bool = False,
    progress: Progress = None,
) -> Report:
    """Measure the chosen cases and judge them; without `only`, `targets` or `full`, the dozen of the headline table.

    targets   only the rows that have one
    full      the curves, latency and memory, too
    threads   our side of rows and curves with these numbers of threads, beside what a row says
    avx2      our side compiled as for a machine without AVX-512, and the targets of such machines
    quick     small arrays and few rounds
    peers     first install the other libraries that the cases name, each in an environment of its own
    """
    words, numbers = tuple(only), tuple(dict.fromkeys(threads))
    if any(number < 1 for number in numbers):
        raise ValueError(f"threads={numbers}: must all be >= 1")
    if avx2 and (level := simd_level(*compiled_for())) not in SIMD_LEVELS:
        raise ValueError(f"avx2=True: must be run on a machine that has AVX2; this one has {SIMD_NAMES[level]}")
    chosen = choose(words, targets=targets, full=full, threads=numbers, quick=quick)
    if peers:
        _install(chosen.rows, progress)
    outcome, peaks = _measure(chosen, workers.environment(avx2=avx2), quick, numbers, progress)
    limits = Limits.from_json(found) if (found := outcome.measured.pop("limits", None)) else None
    rows = [row for row in _judged(chosen.rows, outcome, limits, quick) if row.kind is not None or not targets]
    in_rows = [row for row in rows if row.case in IN_ROWS] if chosen.latency else []
    late = _judged(chosen.latency, outcome, limits, quick)
    return Report(
        machine=outcome.machine,
        quick=quick,
        avx2=avx2,
        rows=(*rows, *(row for row in late if row.kind is not None)),
        measured=tuple(outcome.measured.values()),
        failed=outcome.failed | {f"memory-{peak.case}": peak.why_not for peak in peaks if peak.why_not},
        threads=numbers,
        curves=tuple(
            drawn_curve(curve, chosen.points, outcome.measured, outcome.failed, limits) for curve in chosen.curves
        ),
        limits=limits.to_json() if limits else None,
        latency=(*in_rows, *(row for row in late if row.kind is None)),
        memory=tuple(peaks),
        commit=commit(),
        date=now(),
    )


def _install(rows: Iterable[Case], progress: Progress) -> None:
    names = (side.peer for case in rows for side in case.rivals if isinstance(side, PeerSide))
    with reporting(progress, "peers") as report:
        install(names, report)


def _measure(
    chosen: Chosen, environment: dict[str, str], quick: bool, threads: tuple[int, ...], progress: Progress
) -> tuple[workers.Outcome, list[Peak]]:
    """Times, then memory, under one bar."""
    jobs, peaks = chosen.jobs(), list[Peak]()
    total = len(jobs) + len(chosen.memory)
    seconds = took.expected([*jobs, *(f"memory-{memory.of.name}" for memory in chosen.memory)], quick=quick)
    with reporting(progress, "bench", seconds) as report:
        outcome = workers.measure(jobs, environment, quick, threads, lambda i, what: report(i, total, what))
        took.remember(outcome.seconds, quick=quick)
        for i, memory in enumerate(chosen.memory, len(jobs)):
            report(i, total, memory.work)
            peaks.append(measure_peak(memory, environment, quick=quick))
        report(total, total, "")
    return outcome, peaks


def _judged(cases: Iterable[Case], outcome: workers.Outcome, limits: Limits | None, quick: bool) -> list[Row]:
    return [
        row
        for case in cases
        for row in judge(
            case, outcome.measured.get(case.name), outcome.failed.get(case.name), outcome.machine, limits, quick=quick
        )
    ]
