"""Hostile calls of the whole public interface: `python -m tests.machinery.fuzz --calls 100000 --seed 1`.

Each call is a valid one in which one to three arguments were replaced by hostile values. Whatever they are,

- the process survives, and the call ends within SECONDS;
- an error is one of ours, or a refusal by Python's own call syntax, and begins with the parameter's name;
- an error before the first draw leaves the budget as it was, and no reservation stays behind;
- no input is changed, and neither are numpy's error state, the warning filters, the decimal context.

A run is fixed by its seed. It happens in a child process, so that a crash or a hang names its call, too.
"""

from __future__ import annotations

import argparse
import collections
import decimal
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

SECONDS = 120  # against hangs; a call takes milliseconds
NAMED = re.compile(r"^[\w.\[\]'\"*() ]+(=|: |:\n)", re.DOTALL)


def digest(value: Any) -> Any:
    """Something that changes when the value does; None where that cannot be told."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.tobytes(), value.shape, str(value.dtype)
    if isinstance(value, list | tuple):
        return type(value), tuple(map(digest, value))
    if isinstance(value, dict):
        return tuple((repr(key), digest(each)) for key, each in value.items())
    if hasattr(value, "to_numpy") and hasattr(value, "index"):
        try:
            return pickle.dumps(value)
        except (TypeError, AttributeError, pickle.PicklingError):  # it holds what does not pickle
            return None
    return None


def world() -> Any:
    """What a guest leaves as it is."""
    return np.geterr(), list(warnings.filters), repr(decimal.getcontext()), signal.getsignal(signal.SIGINT)


class Found(Exception):
    """An invariant is broken."""


def check_error(error: BaseException) -> None:
    from fastdp import BudgetExceeded

    text = str(error)
    if isinstance(error, TypeError) and re.search(r"(argument|positional|keyword|required)", text):
        return  # Python's own refusal of a call that does not fit the signature
    if isinstance(error, BudgetExceeded):
        return
    if not isinstance(error, ValueError | RuntimeError | MemoryError):
        raise Found(f"{type(error).__name__}: {text[:200]}")
    if isinstance(error, ValueError) and not NAMED.match(text):
        raise Found(f"does not begin with a name: {type(error).__name__}: {text[:200]}")
    if "<strange>" in text and len(text) > 400:
        raise Found(f"prints data: {text[:200]}")


def one(name: str, seed: int) -> str:
    """Make one hostile call; the kind of its outcome."""
    import fastdp

    from .calls import CALLS, CHARGED, hostile

    rng = np.random.default_rng(seed)
    function, arguments, keywords = CALLS[name](rng)
    pool = list(hostile(rng))
    places: list[Any] = [*range(len(arguments)), *keywords]
    budget = asked = None
    if name in CHARGED:
        budget, asked = fastdp.Budget(epsilon=1e6, delta=0.5), []

        class Recorded(fastdp.Randomness):
            def key(self) -> Any:
                asked.append(1)
                return super().key()

        keywords |= {"budget": budget, "rng": Recorded()}
        places += ["budget", "rng", "neighbors"]
    for place in rng.choice(len(places), min(len(places), int(rng.integers(1, 4))), replace=False):
        value = pool[rng.integers(len(pool))]
        if isinstance(places[place], int):
            arguments[places[place]] = value
        else:
            keywords[places[place]] = value
    before, around = digest([arguments, keywords]), world()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*arguments, **keywords)
        outcome = "returned"
    except Exception as error:
        outcome = type(error).__name__
        check_error(error)
        if budget is not None and not asked and (len(budget.releases) or budget.spent.epsilon):
            raise Found(f"charged {budget.spent} without a draw, and failed: {error}") from None
    if budget is not None and any(charge.fate is None for charge in budget._ledger._charges.values()):
        raise Found("a reservation stays behind")
    if digest([arguments, keywords]) != before and keywords.get("out") is None:
        raise Found("an input was changed")
    if world() != around:
        raise Found("the process was changed")
    return outcome


def child(first: int, last: int, seed: int) -> None:
    """Calls number first to last - 1; a line for each start, so that the parent knows which one hangs or crashes."""
    from .calls import CALLS

    names = sorted(CALLS)
    outcomes: collections.Counter[str] = collections.Counter()
    for i in range(first, last):
        name = names[np.random.default_rng((seed, i)).integers(len(names))]
        os.pwrite(1, f"{i:12d} {name:60.60s}\n".encode(), 0)
        try:
            outcomes[one(name, (seed << 32) + i)] += 1
        except Found as found:
            print(json.dumps({"call": i, "name": name, "found": str(found)}), file=sys.stderr, flush=True)
    print(json.dumps({"outcomes": outcomes}), file=sys.stderr, flush=True)


def run(calls: int, seed: int, at_a_time: int = 2000) -> tuple[collections.Counter[str], list[dict[str, Any]]]:
    import tempfile

    outcomes: collections.Counter[str] = collections.Counter()
    found: list[dict[str, Any]] = []
    first = 0
    while first < calls:
        last = min(first + at_a_time, calls)
        with tempfile.TemporaryFile() as place, tempfile.TemporaryFile() as told:
            command = [sys.executable, "-m", "tests.machinery.fuzz", "--child", f"{first}:{last}", "--seed", str(seed)]
            process = subprocess.Popen(command, stdout=place, stderr=told)
            at, since = b"", time.monotonic()
            while process.poll() is None:
                time.sleep(0.05)
                now = os.pread(place.fileno(), 73, 0)
                if now != at:
                    at, since = now, time.monotonic()
                elif time.monotonic() - since > SECONDS:
                    process.kill()
                    process.wait()
            told.seek(0)
            for line in told.read().decode().splitlines():
                if not line.startswith("{"):
                    print(line, file=sys.stderr)
                    continue
                event = json.loads(line)
                if "outcomes" in event:
                    outcomes.update(event["outcomes"])
                else:
                    found.append(event)
            if process.returncode:
                where = os.pread(place.fileno(), 73, 0).decode().split()
                found.append({"call": int(where[0]), "name": where[1], "found": f"ended with {process.returncode}"})
                first = int(where[0]) + 1
                continue
        first = last
        print(f"{first:,} of {calls:,} calls, {len(found)} found", flush=True)
    return outcomes, found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", type=int, help="repeat the call of this number")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        first, last = map(int, options.child.split(":"))
        child(first, last, options.seed)
        return 0
    if options.one is not None:
        from .calls import CALLS

        names = sorted(CALLS)
        name = names[np.random.default_rng((options.seed, options.one)).integers(len(names))]
        print(name, one(name, (options.seed << 32) + options.one))
        return 0
    outcomes, found = run(options.calls, options.seed)
    print(dict(outcomes.most_common()))
    for each in found[:100]:
        print(each)
    print(f"{len(found)} of {options.calls:,} calls broke an invariant")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
