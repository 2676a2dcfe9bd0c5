"""Processes killed at random moments while they release under one stored budget: `python -m tests.machinery.kills`.

Each child charges the same ledger and writes a byte after every charge, as noise would be drawn then, until SIGKILL.
After all of them the ledger counts at least what was seen, and at most one release more for each kill.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

from fastdp import Budget, BudgetExceeded, PureDP

PRICE = 0.125

Spend = Callable[[str, float, Callable[[], object]], object]


def spend_until_refused(url: str, epsilon: float, write: Callable[[], object]) -> int:
    """How many releases go through; `write` is called after each, as its noise would be."""
    budget, done = Budget.open(url), 0
    with suppress(BudgetExceeded):
        while True:
            budget.charge(PureDP(epsilon), "raced")
            write()
            done += 1
    return done


def kill_at_random(url: str, kills: int, seed: int, spend: Spend = spend_until_refused) -> tuple[int, int]:
    """Kill children that release without a pause, at random moments: how many releases were seen, and are counted.

    A child has released a few times, or not at all, when the time until it is killed begins: on a machine with much
    else to do it would else be killed before it starts.
    """
    chooser, seen = random.Random(seed), 0
    for _ in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reader)
                spend(url, PRICE, lambda to=writer: os.write(to, b"x"))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as drawn:
            seen += len(drawn.read(chooser.randrange(5)))
            time.sleep(chooser.random() * 0.02)
            os.kill(child, signal.SIGKILL)
            seen += len(drawn.read())
        os.waitpid(child, 0)
    return seen, len(Budget.open(url).releases)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args(arguments)
    print(f"--seed {options.seed}", flush=True)
    warnings.simplefilter("ignore", DeprecationWarning)  # numba's threads, which no child touches
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        Budget.open(url, epsilon=1e6)
        seen, counted = kill_at_random(url, options.kills, options.seed)
        spent = Budget.open(url).spent
    right = seen <= counted <= seen + options.kills and seen > options.kills and spent == PureDP(PRICE * counted)
    print(f"{options.kills:,} kills: {seen:,} releases seen, {counted:,} counted, {spent} spent: {'holds' * right}")
    return int(not right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
