"""Compiling ahead of time in several processes, one for each CPU: what `fastdp warmup` does.

LLVM compiles on one core at a time, so threads would wait for each other. A process takes one step of `warmup` after
another; a kernel that several steps need is compiled by whoever comes first, and the others wait for its file.
"""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from os import getpid

from .progress import Progress, reporting
from .warmup import Steps, steps_of


def warmup_in_processes(rooms: Iterable[str], processes: int, progress: Progress = None) -> tuple[int, int]:
    """Make every step of these rooms, in so many processes.

    Returns   how many kernels were compiled and how many were loaded, in all processes together
    """
    asked = tuple(dict.fromkeys(rooms))
    names = [name for name, _ in steps_of(asked)]
    counts: dict[int, tuple[int, int]] = {}
    with (
        reporting(progress, "compiling") as report,
        ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin) as pool,
    ):
        report(0, len(names), names[0])
        steps = {pool.submit(_step, asked, at): at for at in range(len(names))}
        try:
            for done, step in enumerate(as_completed(steps), 1):
                process, compiled, loaded = step.result()
                counts[process] = max(counts.get(process, (0, 0)), (compiled, loaded))
                report(done, len(names), names[steps[step]] if done < len(names) else "")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sum(compiled for compiled, _ in counts.values()), sum(loaded for _, loaded in counts.values())


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the first process ends the others
    gc.set_threshold(100_000, 50, 100)  # rarely: collections were a twelfth of the time
    atexit.register(gc.freeze)  # nor as it ends, when all that numba has made was gone through for seconds


@cache
def _steps(rooms: tuple[str, ...]) -> Steps:
    return steps_of(rooms)


def _step(rooms: tuple[str, ...], at: int) -> tuple[int, int, int]:
    """In one of the processes: make a step; who it was, and what it has compiled and loaded since it began."""
    from ..kernels.compile_cache import counted

    _steps(rooms)[at][1]()
    return (getpid(), *counted())
