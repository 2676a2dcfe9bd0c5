"""The processes that measure: started, read, and started again without a case that took one with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import fastdp

# both sides work on one thread unless a row says otherwise: the libraries that numpy and jax multiply with, too
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
# The name alone keeps what else the machine has; to LLVM a haswell may be without the instructions for AES
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+aes"}


def environment(*, avx2: bool) -> dict[str, str]:
    """What a measuring process is started with."""
    return {**os.environ, **ONE_THREAD, **(AVX2 if avx2 else {})}


@dataclass
class Outcome:
    """What the workers sent."""

    machine: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, dict[str, Any]] = field(default_factory=dict)  # by case
    failed: dict[str, str] = field(default_factory=dict)  # case: why
    seconds: dict[str, float] = field(default_factory=dict)  # what measuring a case took, all in all

    @property
    def done(self) -> int:
        return len(self.measured) + len(self.failed)

    def left(self, names: Mapping[str, str]) -> list[str]:
        return [name for name in names if name not in self.measured and name not in self.failed]

    def take(self, event: dict[str, Any]) -> None:
        if "machine" in event:
            self.machine = event["machine"]
        elif "failed" in event:
            self.failed[event["failed"]] = event["why"]
        else:
            self.measured[event["measured"]["case"]] = event["measured"]


def measure(
    jobs: dict[str, str],
    environment: dict[str, str],
    quick: bool,
    threads: tuple[int, ...],
    report: Callable[[int, str], object],
) -> Outcome:
    """Run workers until every job, a name and its work in words, was measured or has failed; a worker that dies takes
    one case with it."""
    outcome = Outcome()
    while left := outcome.left(jobs):
        current, why = _run(_command(quick, threads, left), environment, outcome, left[0], jobs, report)
        if not outcome.machine:  # it did not even start
            outcome.failed.update(dict.fromkeys(left, why))
        elif current not in outcome.measured:
            outcome.failed.setdefault(current, why)
    return outcome


def _command(quick: bool, threads: tuple[int, ...], names: list[str]) -> list[str]:
    options = ["--quick"] if quick else []
    options += [f"--threads={','.join(map(str, threads))}"] if threads else []
    return [sys.executable, "-P", "-m", "fastdp.bench.harness.worker", *options, *names]


def _run(
    command: list[str],
    environment: dict[str, str],
    outcome: Outcome,
    current: str,
    jobs: dict[str, str],
    report: Callable[[int, str], object],
) -> tuple[str, str]:
    """One worker to its end: the case that it worked on last, and how it ended."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as worker,
    ):
        assert worker.stdout is not None
        began: float | None = None
        for line in worker.stdout:
            event, now = json.loads(line), monotonic()
            if event.get("source", fastdp.__file__) != fastdp.__file__:
                worker.kill()
                raise ValueError(
                    f"fastdp={fastdp.__file__!r}: must be what the measuring process imports, "
                    f"which is {event['source']!r}; install it, or set PYTHONPATH"
                )
            if "start" in event:
                current, began = event["start"], now
                report(outcome.done, jobs[current])
            else:
                outcome.take(event)
                if began is not None:
                    outcome.seconds[current] = now - began
        code = worker.wait()
        log.seek(0)
        lines = log.read().strip().splitlines() or ["no message"]
    return current, f"the measuring process ended with {code}: {lines[-1][:200]}"
