"""How a case is timed: both sides in turn, round after round, on one core, so that they see the same machine.

The minimum over the rounds is what a ratio is made of: everything that disturbs a run only ever adds to it.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import fastdp

from ..machine import cores
from .registry import Call, Case, Side

ROUNDS = (7, 60)  # at least and at most
SECONDS = 1.5  # the rounds of a case take about so long ...
SLOW_SECONDS = 2.0  # ... and a rival that alone takes longer stops after this, but not before its third round
QUICK_N = 20_000  # a quick run shows that every row works; its figures are rough
QUICK_ROUNDS = (3, 5)


class ChildClock:
    """The clock of cases whose work happens in a new process, which times itself: it stands still in between."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


child_clock = ChildClock()


def python_seconds(code: str, **environment: str) -> float:
    """Run `code` in a new interpreter; the seconds that it prints."""
    command, inherited = [sys.executable, "-P", "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=inherited)
    if done.returncode:
        raise RuntimeError(f"{code!r} in a new interpreter: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout)


def missing(side: Side) -> str | None:
    """Why a side cannot run: too few cores, or the module that it needs is not there. diffprivlib for one is, and does
    not always import."""
    if side.threads > cores():
        return f"needs {side.threads} cores"
    if side.needs is None:
        return None
    if find_spec(side.needs) is None:
        return "not installed"
    try:
        import_module(side.needs)
    except Exception as error:
        return f"not available: {type(error).__name__}: {error}"
    return None


@dataclass
class Contestant:
    """A side, prepared; or why it could not be."""

    side: Side
    n: int
    call: Call | None
    why_not: str | None = None
    times: list[float] = field(default_factory=list)  # seconds a call

    @property
    def spent(self) -> float:
        return sum(self.times)


class Duel:
    """The timing of one case. As a context manager it puts threads and core affinity back as they were."""

    def __init__(self, case: Case, *, quick: bool = False, seconds: float = SECONDS) -> None:
        self.case, self.quick, self.seconds = case, quick, 0.1 if quick else seconds
        self.calls = 1 if quick else case.calls
        self.clock: Callable[[], float] = child_clock if case.clock == "child" else perf_counter
        self.mine = self._prepare(case.ours)
        self.rivals = [self._prepare_rival(side) for side in case.rivals]

    def __enter__(self) -> Duel:
        self._threads_before = fastdp.get_num_threads()
        self._cores_before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        self._threads: int | None = None
        first = self._time(self.mine)  # compiles, loads, fills caches
        for rival in self.rivals:
            self._try(rival)
        if self.case.rounds is None:
            first = min(first, self._time(self.mine))
        round_seconds = self.calls * (first + sum(r.times[0] for r in self.rivals if r.times and r.times[0] < 1e-1))
        least, most = QUICK_ROUNDS if self.quick else ROUNDS
        self.rounds = max(least, min(most, int(self.seconds / max(round_seconds, 1e-9))))
        self.rounds = min(self.rounds, self.case.rounds or most)
        gc.collect()
        return self

    def __exit__(self, *error: object) -> None:
        fastdp.set_num_threads(self._threads_before)
        if self._cores_before is not None:
            os.sched_setaffinity(0, self._cores_before)

    def before_round(self) -> None:
        """Time every rival once; leave the process as ours needs it. Not part of ours' time."""
        for rival in self.rivals:
            if len(rival.times) < 3 or rival.spent * self.calls < SLOW_SECONDS:
                self._try(rival)
        self._enter(self.mine)

    def round(self) -> None:
        """One timed round of ours."""
        self._run(self.mine)

    def _prepare(self, side: Side) -> Contestant:
        n = side.n or self.case.n
        n = min(n, QUICK_N) if self.quick else n
        return Contestant(side, n, side.make(n))

    def _prepare_rival(self, side: Side) -> Contestant:
        if why_not := missing(side):
            return Contestant(side, side.n or self.case.n, None, why_not)
        try:
            return self._prepare(side)
        except Exception as error:  # another library's failure is a cell of the table, not the end of the run
            return Contestant(side, side.n or self.case.n, None, f"{type(error).__name__}: {error}")

    def _enter(self, contestant: Contestant) -> None:
        """The threads and cores of this side; where they change, one call that is not timed wakes them up."""
        threads = contestant.side.threads
        if threads == self._threads:
            return
        fastdp.set_num_threads(threads)
        if self._cores_before is not None:
            os.sched_setaffinity(0, {max(self._cores_before)} if threads == 1 else self._cores_before)
        if self._threads is not None and contestant.call is not None:
            contestant.call()
        self._threads = threads

    def _run(self, contestant: Contestant) -> None:
        call = contestant.call
        assert call is not None
        if self.case.clock == "child":
            child_clock.now += call()
            return
        for _ in range(self.calls):
            call()

    def _time(self, contestant: Contestant) -> float:
        self._enter(contestant)
        start = self.clock()
        self._run(contestant)
        return (self.clock() - start) / self.calls

    def _try(self, rival: Contestant) -> None:
        if rival.call is None:
            return
        try:
            rival.times.append(self._time(rival))
        except Exception as error:
            rival.call, rival.why_not = None, f"{type(error).__name__}: {error}"

    def result(self, rounds: list[float]) -> dict[str, Any]:
        """What was measured, given ours' times per round: seconds a call, in full, for both sides."""
        return {
            "case": self.case.name,
            "n": self.mine.n,
            "threads": self.mine.side.threads,
            "ours": [seconds / self.calls for seconds in rounds],
            "theirs": {
                rival.side.name: {"n": rival.n, "seconds": rival.times, "why_not": rival.why_not}
                for rival in self.rivals
            },
        }
