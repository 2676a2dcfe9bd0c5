"""How a case is timed: both sides in turn, round after round, on one core, so that they see the same machine.

The minimum over the rounds is what a ratio is made of: everything that disturbs a run only ever adds to it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import fastdp

from ...support.machine import cores
from ..cases.registry import Call, Case, PeerSide, Rival
from .child import Child, PeerError
from .environments import PEERS

ROUNDS = (7, 60)  # at least and at most
SECONDS = 1.5  # the rounds of a case take about so long ...
SLOW_SECONDS = 2.0  # ... and a rival that alone takes longer stops after this, but not before its third round ...
SLOWEST_SECONDS = 5.0  # ... or its second, where a call takes longer than this: the first may have compiled
QUICK_N = 20_000  # a quick run shows that every row works; its figures are rough
QUICK_ROUNDS = (3, 5)


class ChildClock:
    """The clock of cases whose work happens in a new process, which times itself: it stands still in between."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


child_clock = ChildClock()


@dataclass
class Contestant:
    """A side, prepared; or why it could not be. What works in a child is timed there, in turn with the others."""

    side: Rival
    n: int
    call: Call | None
    why_not: str | None = None
    times: list[float] = field(default_factory=list)  # seconds a call
    child: Child | None = None

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
        others = [rival.times[0] for rival in self.rivals if rival.times and rival.child is None]
        round_seconds = self.calls * (first + sum(seconds for seconds in others if seconds < 1e-1))
        least, most = QUICK_ROUNDS if self.quick else ROUNDS
        self.rounds = max(least, min(most, int(self.seconds / max(round_seconds, 1e-9))))
        self.rounds = min(self.rounds, self.case.rounds or most)
        gc.collect()
        return self

    def __exit__(self, *error: object) -> None:
        for rival in self.rivals:
            if rival.child is not None:
                rival.child.close()
        fastdp.set_num_threads(self._threads_before)
        if self._cores_before is not None:
            os.sched_setaffinity(0, self._cores_before)

    def before_round(self) -> None:
        """Time every rival once; leave the process as ours needs it. Not part of ours' time.

        Children come first, and a call of ours after them that is not timed: after another process has had the core
        ours takes 10 % longer, which is not what a row with a peer is about."""
        ran = False
        for rival in sorted(self.rivals, key=lambda rival: rival.child is None):
            if rival.child is None and ran:
                self._time(self.mine)
                ran = False
            least = 2 if rival.times and min(rival.times) > SLOWEST_SECONDS else 3
            if len(rival.times) < least or rival.spent * self.calls < SLOW_SECONDS:
                self._try(rival)
                ran = rival.child is not None
        if ran:
            self._time(self.mine)
        self._enter(self.mine)

    def round(self) -> None:
        """One timed round of ours."""
        self._run(self.mine)

    def _prepare(self, side: Rival) -> Contestant:
        n = self._size(side)
        if not isinstance(side, PeerSide):
            return Contestant(side, n, side.make(n))
        peer = PEERS[side.peer]
        if why_not := peer.why_not():
            return Contestant(side, n, None, why_not)
        child = Child(peer.python, peer.script)
        child.prepare(side.task, n, side.parameters)
        return Contestant(side, n, None, child=child)

    def _size(self, side: Rival) -> int:
        n = side.n or self.case.n
        return min(n, QUICK_N) if self.quick else n

    def _prepare_rival(self, side: Rival) -> Contestant:
        if side.threads > cores():
            return Contestant(side, self._size(side), None, f"needs {side.threads} cores")
        try:
            return self._prepare(side)
        except PeerError as error:
            return Contestant(side, self._size(side), None, f"{error}")
        except Exception as error:  # another library's failure is a cell of the table, not the end of the run
            return Contestant(side, self._size(side), None, f"{type(error).__name__}: {error}")

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
        if contestant.child is not None:
            return contestant.child.run(self.calls) / self.calls
        start = self.clock()
        self._run(contestant)
        return (self.clock() - start) / self.calls

    def _try(self, rival: Contestant) -> None:
        if rival.why_not is not None:
            return
        try:
            rival.times.append(self._time(rival))
        except PeerError as error:
            rival.why_not = f"{error}"
        except Exception as error:
            rival.why_not = f"{type(error).__name__}: {error}"

    def result(self, rounds: list[float]) -> dict[str, Any]:
        """What was measured, given ours' times per round: seconds a call, in full, for both sides."""
        return {
            "case": self.case.name,
            "n": self.mine.n,
            "threads": self.mine.side.threads,
            "ours": [seconds / self.calls for seconds in rounds],
            "theirs": {
                rival.side.name: {
                    "n": rival.n,
                    "seconds": rival.times,
                    "why_not": rival.why_not,
                    "parameters": dict(rival.side.parameters) if isinstance(rival.side, PeerSide) else {},
                    "versions": rival.child.versions if rival.child is not None else {},
                }
                for rival in self.rivals
            },
        }
