"""Interrupts at random moments of every mechanism: `python -m tests.machinery.interrupts --interrupts 100000`.

A timer raises an exception, as Ctrl-C does, somewhere inside a call or a block of a budget. After each of them

- nothing hangs, and no lock is held;
- no reservation stays behind, and no block stays open;
- the budget's total is that of the releases that it lists, and at least as many are listed as were returned:
  an interrupt may cost what nobody has seen, never the other way round.

One in some 100,000, in the middle of a generator, comes out as another error ("generator raised StopIteration"). More
than one in 10,000 of that kind is a failure, too.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np
from numba.core.compiler_lock import global_compiler_lock

import fastdp

from .calls import CALLS, CHARGED, large_budget

SECONDS = 1800  # against hangs, for one batch of calls


class Interrupt(BaseException):
    """What the timer raises."""


_armed = False


def _raise(*_: Any) -> None:
    if _armed:  # a signal that another thread took may arrive after the timer was stopped
        raise Interrupt


def _arm(delay: float) -> None:
    global _armed
    _armed = True
    signal.setitimer(signal.ITIMER_REAL, delay)


def _disarm() -> None:
    global _armed
    _armed = False
    signal.setitimer(signal.ITIMER_REAL, 0)


class Suite:
    """The calls that are interrupted, and what is counted."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = sorted(CHARGED)
        self.seconds: dict[str, float] = {}
        self.interrupts = self.returned = self.calls = 0
        self.failures: list[str] = []
        self.turned: list[str] = []  # what some interrupts came out as

    def prepare(self) -> None:
        """Compile everything, and see how long each call takes."""
        fastdp.warmup()
        for name in self.names:
            for _ in range(3):
                function, arguments, keywords = CALLS[name](np.random.default_rng(5))
                start = time.perf_counter()
                function(*arguments, budget=large_budget(name), **keywords)
                self.seconds[name] = time.perf_counter() - start

    def once(self) -> None:
        name = str(self.rng.choice(self.names))
        block = bool(self.rng.integers(2))
        function, arguments, keywords = CALLS[name](self.rng)
        budget = large_budget(name)
        returned = 0
        self.calls += 1
        delay = float(self.rng.uniform(1e-6, 1.3 * self.seconds[name] + 2e-5))
        try:
            try:
                _arm(delay)
                if block:
                    with budget:
                        function(*arguments, **keywords)
                        returned += 1
                else:
                    function(*arguments, budget=budget, **keywords)
                    returned += 1
            finally:
                _disarm()  # or is interrupted on the way into it: the timer has run out then
        except Interrupt:
            self.interrupts += 1
        except Exception as error:
            self.interrupts += 1
            self.turned.append(f"{name}: {type(error).__name__}: {error}")
        self.returned += returned
        self.check(name, budget, returned)

    def check(self, name: str, budget: Any, returned: int) -> None:
        gc.collect(0)
        if global_compiler_lock.is_locked():
            self.failures.append(f"{name}: the compiler's lock is held")
        listed = len(budget.releases)
        if returned > listed:
            self.failures.append(f"{name}: {returned} returned, {listed} listed")
        if listed and budget.spent != budget.releases[-1].total:
            self.failures.append(f"{name}: spent {budget.spent}, listed {budget.releases[-1].total}")
        if not listed and budget.spent.epsilon:
            self.failures.append(f"{name}: spent {budget.spent} on nothing that is listed")
        try:
            with budget:  # can be opened, so it is not open
                fastdp.laplace(1, sensitivity=1, epsilon=0.5)
        except Exception as error:
            self.failures.append(f"{name}: the budget cannot be used again: {error}")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            before = len(budget.releases)
            fastdp.laplace(1, sensitivity=1, epsilon=0.5)
            if len(budget.releases) != before:
                self.failures.append(f"{name}: the block is still open")

    def with_threads(self, n: int) -> None:
        """A call on two threads: the interrupt comes while chunks are running."""
        values = np.arange(400_000)
        for _ in range(n):
            self.calls += 1
            try:
                try:
                    _arm(float(self.rng.uniform(1e-6, 2e-3)))
                    fastdp.laplace(values, sensitivity=1, epsilon=1.0)
                finally:
                    _disarm()
            except Interrupt:
                self.interrupts += 1


def run(interrupts: int, seed: int) -> Suite:
    suite = Suite(seed)
    warnings.simplefilter("ignore")
    fastdp.set_num_threads(2)
    suite.prepare()
    signal.signal(signal.SIGALRM, _raise)
    alive = threading.active_count()
    while suite.interrupts < interrupts and len(suite.failures) < 50:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for _ in range(500):
            suite.once()
        suite.with_threads(20)
        faulthandler.cancel_dump_traceback_later()
    if len(suite.turned) > 2 + interrupts // 10_000:
        suite.failures += suite.turned
    if threading.active_count() > alive + 2:
        suite.failures.append(f"{threading.active_count()} threads at the end, {alive} at the beginning")
    return suite


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.interrupts", description=__doc__)
    parser.add_argument("--interrupts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    suite = run(options.interrupts, options.seed)
    for failure in suite.failures[:20]:
        print(failure)
    print(
        f"{suite.calls:,} calls, {suite.interrupts:,} interrupts, {suite.returned:,} returned, "
        f"{len(suite.turned)} came out as another error, {len(suite.failures)} broke an invariant"
    )
    return bool(suite.failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
