"""`fastdp bench`: measure cases in a worker process, and set every figure beside its target.

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
from typing import Any

import fastdp

from ...support.machine import SIMD_NAMES, simd_level
from ...support.machine import target as compiled_for
from ...support.progress import Progress, reporting
from ..cases.curves import curves
from ..cases.latency import IN_ROWS, latencies
from ..cases.memory import memories
from ..cases.registry import SIMD_LEVELS, Case, Named, PeerSide, cases, check_words, matching, with_threads
from .environments import install
from .judging import drawn_curve, judge
from .limits import Limits
from .measure import QUICK_N
from .memory import measure_peak
from .results import Report, Row, commit, now

# both sides work on one thread unless a row says otherwise: the libraries that numpy and jax multiply with, too
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}  # the name alone keeps what else the machine has


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
    drawn, late, held = curves(), latencies(), memories()
    if not full:
        brought: tuple[Named, ...] = (*drawn, *late, *held)
        for word in words:
            if matching((word,), brought) and not matching((word,), cases()):
                raise ValueError(f"only={word!r}: a curve, latency or memory must come with full=True (--full)")
        drawn, late, held = (), (), ()
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
        found = [(case, measured.get(case.name), failed.get(case.name)) for case in cases]
        return [row for one in found for row in judge(*one, machine, quick=quick)]

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
        commit=commit(),
        date=now(),
    )


# ---------------------------------------------------------------------------------------------------------------------
# measuring


def _command(quick: bool, threads: tuple[int, ...], names: list[str]) -> list[str]:
    options = ["--quick"] if quick else []
    options += [f"--threads={','.join(map(str, threads))}"] if threads else []
    return [sys.executable, "-P", "-m", "fastdp.bench.harness.worker", *options, *names]


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
                if event.get("source", fastdp.__file__) != fastdp.__file__:
                    worker.kill()
                    raise ValueError(
                        f"fastdp={fastdp.__file__!r}: must be what the measuring process imports, "
                        f"which is {event['source']!r}; install it, or set PYTHONPATH"
                    )
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
