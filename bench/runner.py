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
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..machine import SIMD_NAMES, simd_level
from ..machine import target as compiled_for
from ..progress import Progress, reporting
from .environments import install
from .registry import SIMD_LEVELS, Case, Target, choose

# both sides work on one thread unless a row says otherwise: the libraries that numpy and jax multiply with, too
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
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

    def to_json(self) -> dict[str, Any]:
        return {
            "format": 1,
            "machine": self.machine,
            "quick": self.quick,
            "avx2": self.avx2,
            "rows": [asdict(row) for row in self.rows],
            "measured": list(self.measured),
            "failed": self.failed,
        }


def run(
    only: Iterable[str] = (),
    *,
    targets: bool = False,
    avx2: bool = False,
    quick: bool = False,
    peers: bool = False,
    progress: Progress = None,
) -> Report:
    """Measure the chosen cases and judge them.

    targets   only the rows that have one
    avx2      our side compiled as for a machine without AVX-512, and the targets of such machines
    quick     small arrays and few rounds
    peers     first install the other libraries that the cases name, each in an environment of its own
    """
    if avx2 and (level := simd_level(*compiled_for())) not in SIMD_LEVELS:
        raise ValueError(f"avx2=True: must be run on a machine that has AVX2; this one has {SIMD_NAMES[level]}")
    chosen = [case for case in choose(tuple(only)) if case.targets or not targets]
    if peers:
        with reporting(progress, "peers") as report:
            install((side.peer for case in chosen for side in case.rivals if side.peer is not None), report)
    with reporting(progress, "bench") as report:
        machine, measured, failed = _measure(chosen, avx2, quick, report)
    rows = [row for case in chosen for row in judge(case, measured.get(case.name), failed.get(case.name), machine)]
    rows = [row for row in rows if row.kind is not None or not targets]
    return Report(machine, quick, avx2, tuple(rows), tuple(measured.values()), failed)


# ---------------------------------------------------------------------------------------------------------------------
# measuring


def _command(quick: bool, names: list[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "fastdp.bench.worker", *(["--quick"] if quick else []), *names]


def _measure(
    chosen: list[Case], avx2: bool, quick: bool, report: Any
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, str]]:
    """Run workers until every case was measured or has failed; a worker that dies takes one case with it."""
    work = {case.name: case.work for case in chosen}
    machine: dict[str, Any] = {}
    measured: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    environment = {**os.environ, **ONE_THREAD, **(AVX2 if avx2 else {})}
    while left := [name for name in work if name not in measured and name not in failed]:
        current = left[0]
        with (
            tempfile.TemporaryFile("w+") as log,
            subprocess.Popen(
                _command(quick, left), stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            ) as worker,
        ):
            assert worker.stdout is not None
            for line in worker.stdout:
                event = json.loads(line)
                if "machine" in event:
                    machine = event["machine"]
                elif "start" in event:
                    current = event["start"]
                    report(len(measured) + len(failed), len(work), work[current])
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
    report(len(work), len(work), "")
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


def show(report: Report, console: Any) -> None:
    """Print the table, the machine it was measured on, and one line that sums it up."""
    from rich.table import Table
    from rich.text import Text

    def cell(*lines: str) -> Text:
        first, *details = [line for line in lines if line] or [""]
        return Text.assemble(first, *(("\n" + detail, "dim") for detail in details))

    colours = {"holds": "green", "falls short": "bold yellow", "no target": "dim"}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("work", "ours", "theirs", "ratio", "target", "verdict"):
        table.add_column(cell(heading, "each") if heading == "ours" else heading, overflow="fold")
    case = None
    for row in report.rows:
        first = row.case != case  # of its case: what does not change is said once
        ours = seconds(row.ours) if row.ours is not None else ""
        theirs = f"{row.rival} {seconds(row.theirs) if row.theirs is not None else ''}" if row.rival else ""
        other_n = f"n={row.rival_n:,}" if row.rival_n is not None and row.rival_n != row.n else ""
        table.add_row(
            cell(row.work, f"n={row.n:,}" if row.n > 1 else "") if first else "",
            cell(ours, _each(row.ours, row.n)) if first else "",
            cell(theirs, _each(row.theirs, row.rival_n), other_n),
            _ratio(row),
            _target(row),
            Text(row.verdict, style=colours.get(row.verdict, "red")),
        )
        case = row.case
    console.print(table)
    console.print()
    console.print(_caption(report), style="dim", highlight=False, markup=False)
    counts = {word: sum(row.verdict == word for row in report.rows) for word in ("holds", "falls short")}
    others = sum(row.kind is not None and row.verdict not in counts for row in report.rows)
    tail = f", {others} without a verdict" if others else ""
    console.print(f"{counts['holds']} hold, {counts['falls short']} fall short{tail}", style="bold", highlight=False)


def _versions(numbers: dict[str, str]) -> str:
    return " with ".join(f"{name} {number}" for name, number in numbers.items())


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
