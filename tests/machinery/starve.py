"""Allocations that fail, one by one, in calls of every mechanism. sanitize.py runs it with starve.c before malloc.

With PYTHONMALLOC=malloc every object and every array is an allocation of its own. Whichever fails,

- the call returns or raises MemoryError; the process survives, but for places in Python and numpy that do not check
  what they are given, which are counted;
- what was returned is what would have been, and it is charged;
- the total is that of the releases that are listed, and no block stays open.

What is compiled or loaded for the first time is not starved: LLVM ends the process where it has no memory.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import mmap
import os
import sys
import time
import warnings
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

import fastdp
from fastdp.randomness import keys

from .calls import CALLS, large_budget
from .interrupts import Suite

SEED = 5
NEVER = 1 << 60
THEIRS = ("libpython", "python3", "_multiarray_umath")  # which have places of their own that do not check


class OneDigest:
    """In place of SHA-256, which OpenSSL makes: its failures come as ValueError."""

    def __init__(self, data: bytes) -> None:
        pass

    def digest(self) -> bytes:
        return bytes(range(32))


class Starved(Suite):
    """Calls in which an allocation fails."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        allocator: Any = ctypes.PyDLL(None)  # no thread may run between
        self.begin, self.end = allocator.starve_begin, allocator.starve_end
        self.begin.argtypes = (ctypes.c_long, ctypes.c_long)
        self.begin.restype, self.end.restype = None, ctypes.c_long
        self.total: dict[str, int] = {}
        self.result: dict[str, str] = {}
        self.failed = self.survived = self.theirs = 0

    def starve(self, name: str, first: int, many: int) -> None:
        function, arguments, keywords = CALLS[name](np.random.default_rng(SEED))
        budget, rng = large_budget(name), fastdp.Randomness(seed=SEED)
        returned, error, result = 0, None, None
        self.begin(first, many)
        try:
            result = function(*arguments, budget=budget, rng=rng, **keywords)
            returned = 1
        except BaseException as raised:
            error = raised
        made = None
        while made is None:
            try:
                made = self.end()
            except MemoryError:  # the last of those that fail
                continue
        self.total[name] = max(self.total.get(name, 0), made)
        self.calls += 1
        self.failed += made >= first
        self.survived += returned and made >= first
        before = len(self.failures)
        if error is not None and not isinstance(error, MemoryError):
            if isinstance(error, SystemError) or str(error) == "can't allocate lock":
                self.theirs += 1
            else:
                self.failures.append(f"{name}: {type(error).__name__}: {error}")
        if returned and self.result.setdefault(name, shown(result)) != shown(result):
            self.failures.append(f"{name}: another result")
        del error
        self.check(name, budget, returned)
        self.failures[before:] = [f"{failure} (allocation {first}, {many} fail)" for failure in self.failures[before:]]


def shown(result: Any) -> str:
    """A text that is the same for the same result."""
    if isinstance(result, np.ndarray):
        return repr(result.tolist())
    if isinstance(result, list | tuple):
        return repr([shown(each) for each in result])
    text = object.__repr__(result)
    return repr(result) if text.split(" at ")[0] not in repr(result) else type(result).__name__


class Shared:
    """What a child that dies leaves to its parent."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096)
        self.numbers = np.frombuffer(
            self._memory, np.int64, 8
        )  # counts, and in the last place the allocation that fails now
        self.place = ctypes.c_char.from_buffer(self._memory, 2048)

    def where(self) -> str:
        return self._memory[2048:2248].split(b"\0")[0].decode()

    def forget(self) -> None:
        self._memory[2048:2248] = bytes(200)


def starve_for_a_while(suite: Starved, shared: Shared, name: str, first: int, until: float) -> int:
    """In a child: let allocations fail from number `first` on, and at random once each has failed."""
    while time.monotonic() < until and not suite.failures:
        shared.numbers[7] = first
        at = first if first <= suite.total[name] else 1 + int(suite.rng.integers(suite.total[name]))
        suite.starve(name, at, 1 if first % 3 else int(suite.rng.integers(1, 8)))
        shared.numbers[:4] += 1, suite.failed, suite.survived, suite.theirs
        suite.failed = suite.survived = suite.theirs = 0
        first += 1
    for failure in suite.failures:
        print(failure, flush=True)
    return len(suite.failures)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.starve")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mechanisms with this in their name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys.hashlib = SimpleNamespace(sha256=OneDigest)  # type: ignore[assignment]
    suite, shared = Starved(options.seed), Shared()
    suite.names = [name for name in suite.names if options.only in name]
    suite.prepare()
    for name in suite.names:
        for _ in range(3):  # the last time for the number of allocations
            suite.total[name] = 0
            suite.starve(name, NEVER, 0)
    allocator: Any = ctypes.CDLL(None)
    broken, theirs = len(suite.failures), Counter[str]()
    for i, name in enumerate(suite.names):
        until = time.monotonic() + options.seconds / len(suite.names)
        first = 1
        while time.monotonic() < until:
            shared.forget()
            sys.stdout.flush()
            if (child := os.fork()) == 0:
                faulthandler.enable()
                allocator.starve_watch(ctypes.byref(shared.place))
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                suite.rng = np.random.default_rng((options.seed, i, first))
                os._exit(min(starve_for_a_while(suite, shared, name, first, until), 100))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            first = int(shared.numbers[7]) + 1
            if code >= 0:
                broken += code
                break
            library = os.path.basename(shared.where()) or f"signal {-code}"
            if any(part in library for part in THEIRS):
                theirs[library] += 1
            else:
                broken += 1
                print(f"{name}, allocation {first - 1} fails: dies in {library}")
    calls, failed, survived, errors = map(int, shared.numbers[:4])
    print(
        f"{calls:,} calls of {len(suite.names)} mechanisms, {failed:,} of them starved, {survived:,} returned what\n"
        f"they should; {broken} broke an invariant. Of Python and numpy: {errors} errors, deaths {dict(theirs)}"
    )
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
