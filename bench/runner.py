"""`fastdp bench`: measure cases in a worker process, set every figure beside its target, print the table.

It is a report: a row that falls short stays in and does not fail the command; an error in a row is a cell of the table,
the other rows go on, and the command says so in its exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..machine import SIMD_NAMES, simd_level
from ..machine import target as compiled_for
from ..progress import Progress, reporting
from .curves import Curve, curves
from .environments import install
from .limits import Limits
from .measure import QUICK_N
from .registry import SIMD_LEVELS, Case, PeerSide, Target, cases, check_words, matching, with_threads
from .series import IN_ROWS, Peak, latencies, measure_peak, memories

# both sides work on one thread unless a row says otherwise: the libraries that numpy and jax multiply with, too
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
FORMAT = 2  # of the results file; another one wherever what it says changes
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}  # the name alone keeps what else the machine has


@dataclass(frozen=True)
class Row:
    """One line of the table: a case beside one other way of doing it, or beside a limit in seconds."""

    case: str
    room: str
    work: str
    parameters: dict[str, float]
    threads: int
    n: int
    ours: float | None  # seconds a call, least of the rounds
    rival: str | None
    rival_n: int | None
    theirs: float | None
    ratio: float | None  # how many times as fast as the rival ours is, per element
    kind: str | None
    limit: float | None
    verdict: str  # "holds", "falls short", "no target", or why there is no figure


@dataclass(frozen=True)
class Report:
    machine: dict[str, Any]
    quick: bool
    avx2: bool  # ours was compiled for less than the machine has; the others were not
    rows: tuple[Row, ...]
    measured: tuple[dict[str, Any], ...]  # every time of every round
    failed: dict[str, str]  # case: why
    threads: tuple[int, ...] = ()  # that ours was measured with beside those that a row says
    curves: tuple[dict[str, Any], ...] = ()  # elements a second
    limits: dict[str, Any] | None = None
    latency: tuple[Row, ...] = ()
    memory: tuple[Peak, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "machine": self.machine,
            "quick": self.quick,
            "avx2": self.avx2,
            "threads": list(self.threads),
            "rows": [asdict(row) for row in self.rows],
            "curves": list(self.curves),
            "limits": self.limits,
            "latency": [asdict(row) for row in self.latency],
            "memory": [asdict(peak) for peak in self.memory],
            "measured": list(self.measured),
            "failed": self.failed,
        }


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
    words, threads = tuple(only), tuple(dict.fromkeys(threads))
    if any(number < 1 for number in threads):
        raise ValueError(f"threads={threads}: must all be >= 1")
    if avx2 and (level := simd_level(*compiled_for())) not in SIMD_LEVELS:
        raise ValueError(f"avx2=True: must be run on a machine that has AVX2; this one has {SIMD_NAMES[level]}")
    drawn, late, held = (curves(), latencies(), memories()) if full else ((), (), ())
    check_words(words, (*cases(), *drawn, *late, *held))
    chosen = [
        with_threads(case, threads)
        for case in matching(words, cases())
        if (case.targets or not targets) and (case.headline or words or targets or full)
    ]
    drawn, late, held = matching(words, drawn), matching(words, late), matching(words, held)
    points = {
        f"{curve.name}@{x}": with_threads(curve.case(x), threads)
        for curve in drawn
        for x in (curve.quick_points(QUICK_N) if quick else curve.points)
    }
    jobs = {"limits": "the limits of this machine"} if points else {}
    jobs |= {case.name: case.work for case in (*chosen, *points.values(), *late)}
    environment = {**os.environ, **ONE_THREAD, **(AVX2 if avx2 else {})}
    if peers:
        with reporting(progress, "peers") as report:
            install((side.peer for case in chosen for side in case.rivals if isinstance(side, PeerSide)), report)
    with reporting(progress, "bench") as report:
        total = len(jobs) + len(held)
        machine, measured, failed = _measure(jobs, environment, quick, threads, lambda i, what: report(i, total, what))
        peaks = []
        for i, memory in enumerate(held, len(jobs)):
            report(i, total, memory.work)
            peaks.append(measure_peak(memory, environment, quick=quick))
            if peaks[-1].why_not:
                failed[memory.name] = peaks[-1].why_not
        report(total, total, "")
    found = measured.pop("limits", None)
    limits = Limits.from_json(found) if found else None

    def judged(cases: Iterable[Case]) -> list[Row]:
        return [row for case in cases for row in judge(case, measured.get(case.name), failed.get(case.name), machine)]

    rows = [row for row in judged(chosen) if row.kind is not None or not targets]
    latency = [row for row in rows if row.case in IN_ROWS] if late else []
    return Report(
        machine=machine,
        quick=quick,
        avx2=avx2,
        rows=tuple(rows),
        measured=tuple(measured.values()),
        failed=failed,
        threads=threads,
        curves=tuple(drawn_curve(curve, points, measured, failed, limits) for curve in drawn),
        limits=limits.to_json() if limits else None,
        latency=(*latency, *judged(late)),
        memory=tuple(peaks),
    )


# ---------------------------------------------------------------------------------------------------------------------
# measuring


def _command(quick: bool, threads: tuple[int, ...], names: list[str]) -> list[str]:
    options = ["--quick"] if quick else []
    options += [f"--threads={','.join(map(str, threads))}"] if threads else []
    return [sys.executable, "-P", "-m", "fastdp.bench.worker", *options, *names]


def _measure(
    work: dict[str, str],
    environment: dict[str, str],
    quick: bool,
    threads: tuple[int, ...],
    report: Callable[[int, str], object],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, str]]:
    """Run workers until every case was measured or has failed; a worker that dies takes one case with it."""
    machine: dict[str, Any] = {}
    measured: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    while left := [name for name in work if name not in measured and name not in failed]:
        current = left[0]
        with (
            tempfile.TemporaryFile("w+") as log,
            subprocess.Popen(
                _command(quick, threads, left), stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            ) as worker,
        ):
            assert worker.stdout is not None
            for line in worker.stdout:
                event = json.loads(line)
                if "machine" in event:
                    machine = event["machine"]
                elif "start" in event:
                    current = event["start"]
                    report(len(measured) + len(failed), work[current])
                elif "failed" in event:
                    failed[event["failed"]] = event["why"]
                else:
                    measured[event["measured"]["case"]] = event["measured"]
            code = worker.wait()
            log.seek(0)
            lines = log.read().strip().splitlines() or ["no message"]
        why = f"the measuring process ended with {code}: {lines[-1][:200]}"
        if not machine:  # it did not even start
            failed.update(dict.fromkeys(left, why))
        elif current not in measured:
            failed.setdefault(current, why)
    return machine, measured, failed


# ---------------------------------------------------------------------------------------------------------------------
# judging


def judge(case: Case, measured: dict[str, Any] | None, why: str | None, machine: dict[str, Any]) -> list[Row]:
    """A row per target, and one per rival that no target names."""
    named = {target.rival for target in case.targets}
    untargeted: list[str | None] = [side.name for side in case.rivals if side.name not in named]
    pairs: list[tuple[str | None, Target | None]] = [(target.rival, target) for target in case.targets]
    pairs += [(rival, None) for rival in untargeted] or ([] if pairs else [(None, None)])
    if why is None and case.ours.threads > machine["cores"]:
        why = f"needs {case.ours.threads} cores"
    return [_row(case, rival, target, measured, why, machine) for rival, target in pairs]


def _row(
    case: Case,
    rival: str | None,
    target: Target | None,
    measured: dict[str, Any] | None,
    why: str | None,
    machine: dict[str, Any],
) -> Row:
    ours = theirs = ratio = rival_n = None
    n, threads = case.n, case.ours.threads
    if measured is not None:
        n, ours = measured["n"], min(measured["ours"])
        if rival is not None:
            other = measured["theirs"][rival]
            rival_n, why = other["n"], why or other["why_not"]
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
        theirs=theirs,
        ratio=ratio,
        kind=target.kind if target is not None else None,
        limit=limit,
        verdict=why or _verdict(target, limit, ours, ratio, machine),
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


# ---------------------------------------------------------------------------------------------------------------------
# showing


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return f"{digits(value / size)} {unit}"
    return f"{digits(value * 1e9)} ns"


def digits(value: float) -> str:
    """Three significant digits, or the whole number where it has more."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:#.3g}".rstrip(".")


def _each(value: float | None, n: int | None) -> str:
    """Nanoseconds an element, where there are several."""
    return f"{digits(value / n * 1e9)} ns" if value is not None and n is not None and n > 1 else ""


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{digits(1 / row.ratio if row.kind == 'within' else row.ratio)}x"


def _target(row: Row) -> str:
    if row.limit is None:
        return ""
    wording = {"faster": "≥ {}x", "within": "≤ {}x time", "seconds": "≤ {} s"}
    return wording[row.kind or "seconds"].format(f"{row.limit:,.4g}")


def size(value: float) -> str:
    """Bytes, with three digits and their unit."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}"
    return f"{value:,.0f} B"


def rate(value: float | None) -> str:
    """Elements a second, with three digits."""
    if value is None:
        return ""
    for unit, one in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}/s"
    return f"{digits(value)} /s"


def show(report: Report, console: Any) -> None:
    """Print the tables, the machine they were measured on, and one line that sums them up."""
    titled = [(f"{curve['title']}: an element is {curve['unit']}", _curve_table(curve)) for curve in report.curves]
    if report.latency:
        titled.append(("latency", _row_table(report.latency)))
    if report.memory:
        titled.append(("memory: what a call adds at its height, beside its input", _memory_table(report.memory)))
    if report.rows or not titled:
        console.print(_row_table(report.rows))
        console.print()
    for title, table in titled:
        console.print(title, style="bold", highlight=False, markup=False)
        console.print(table)
        console.print()
    console.print(_caption(report), style="dim", highlight=False, markup=False)
    counts = {word: sum(row.verdict == word for row in report.rows) for word in ("holds", "falls short")}
    others = sum(row.kind is not None and row.verdict not in counts for row in report.rows)
    tail = f", {others} without a verdict" if others else ""
    console.print(f"{counts['holds']} hold, {counts['falls short']} fall short{tail}", style="bold", highlight=False)


def _versions(numbers: dict[str, str]) -> str:
    return " with ".join(f"{name} {number}" for name, number in numbers.items())


def _empty_table(*headings: Any) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _cell(*lines: str) -> Any:
    from rich.text import Text

    first, *details = [line for line in lines if line] or [""]
    return Text.assemble(first, *(("\n" + detail, "dim") for detail in details))


def _row_table(rows: tuple[Row, ...]) -> Any:
    from rich.text import Text

    colours = {"holds": "green", "falls short": "bold yellow", "no target": "dim"}
    table = _empty_table("work", _cell("ours", "each"), "theirs", "ratio", "target", "verdict")
    case = None
    for row in rows:
        first = row.case != case  # of its case: what does not change is said once
        ours = seconds(row.ours) if row.ours is not None else ""
        theirs = f"{row.rival} {seconds(row.theirs) if row.theirs is not None else ''}" if row.rival else ""
        other_n = f"n={row.rival_n:,}" if row.rival_n is not None and row.rival_n != row.n else ""
        table.add_row(
            _cell(row.work, f"n={row.n:,}" if row.n > 1 else "") if first else "",
            _cell(ours, _each(row.ours, row.n)) if first else "",
            _cell(theirs, _each(row.theirs, row.rival_n), other_n),
            _ratio(row),
            _target(row),
            Text(row.verdict, style=colours.get(row.verdict, "red")),
        )
        case = row.case
    return table


def _curve_table(curve: dict[str, Any]) -> Any:
    threads = sorted({number for point in curve["points"] for number in point["threads"]}, key=int)
    more = [f"ours, {number} thread{'s' * (number != '1')}" for number in threads]
    table = _empty_table(curve["axis"], "ours", *more, curve["numpy"], "ratio", "machine's limit", "of it")
    for point in curve["points"]:
        ours, theirs, limit = point["ours"], point["numpy"], point["limit"]
        table.add_row(
            f"{point['x']:,}",
            rate(ours) if ours else "; ".join(point.get("why_not", {}).values()),
            *(rate(point["threads"].get(number)) for number in threads),
            rate(theirs),
            f"{digits(ours / theirs)}x" if ours and theirs else "",
            rate(limit),
            f"{ours / limit:.0%}" if ours and limit else "",
        )
    return table


def _memory_table(peaks: tuple[Peak, ...]) -> Any:
    def against(value: int | None, of: int) -> str:
        return f"{size(value)}, {digits(value / of)}x" if value else "0 B" if value == 0 else ""

    table = _empty_table("work", "input", "ours", "theirs", "")
    for peak in peaks:
        table.add_row(
            _cell(peak.work, f"n={peak.n:,}"),
            size(peak.input),
            against(peak.ours, peak.input),
            f"{peak.rival} {against(peak.theirs, peak.input)}" if peak.rival else "",
            _cell(peak.why_not or ""),
        )
    return table


def _caption(report: Report) -> str:
    machine = report.machine
    if not machine:
        return "nothing could be measured"
    peers = [theirs.get("versions", {}) for measured in report.measured for theirs in measured["theirs"].values()]
    environments = [{name: number} for name, number in machine["versions"].items()] + [
        found for found in peers if found
    ]
    versions = ", ".join(dict.fromkeys(map(_versions, environments)))
    lesser = "; the others use all that the machine has" if report.avx2 else ""
    rough = "quick run on small arrays: the figures are rough; " if report.quick else ""
    return (
        f"{rough}least time of several rounds, both sides in turn, one thread unless the row says otherwise; "
        f"{machine['cpu']}, {machine['cores']} cores, kernels compiled for {machine['compiled for']} "
        f"({SIMD_NAMES[machine['simd']]}){lesser}; {versions}"
    )
