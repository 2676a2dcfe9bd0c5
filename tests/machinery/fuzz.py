"""Hostile calls of the whole public interface: `make fuzz`, `python -m tests.machinery.fuzz --calls 100000 --seed 1`.

Each call is a valid one (calls.py) in which one to three arguments were replaced by hostile values (hostile.py). An
eighth of them run in a strict host: numpy's and the decimal module's errors raise, RuntimeWarnings too. Whatever the
arguments are,

- the process survives within GIGABYTES of memory, and the call ends within SECONDS;
- an error is one of ours and begins with a name, or is Python's refusal of a call that does not fit the signature, and
  prints no data;
- an error before the first draw leaves the budget as it was, and no reservation stays behind;
- no input is changed, and neither is the state of the process: numpy's error state, warning filters, the decimal
  context, random generators, environment, folder, locale, signal handlers, threads.

A run is fixed by its seed, and `--one I` repeats its call number I. Calls happen in child processes, whose parent sees
which call crashes or hangs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import decimal
import gc
import json
import locale
import os
import random
import re
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

SECONDS = 1800  # against hangs; a call takes milliseconds
SECONDS_TO_START = 1800  # of a child
GIGABYTES = 4  # of address space on top of what the process has
CALLS_A_CHILD = 20_000
NAMED = re.compile(r"^[\w.(][\w.\[\]'\"*()/, ^-]*(=|: |:\n)", re.DOTALL)
# what begins so shows a public name or parameter, an element of a list of which may be what was marked
_PUBLIC_WORDS = (
    "guarantee=", "order=", "thresholds: ", "attribute=", "column=", "data=", "workload: ", "X: column",
    "y: Unknown label", "inside=", "by: must have", "sums: column=",
)  # fmt: skip
_PUBLIC_NUMBERS = (
    "epsilon=", "sigma=", "guarantee=", "inside=", "attribute=", "X: column name", "y: Unknown label", "lower=",
    "column=", "c=[", "data: column name", "attributes: ", "rate=", "method=", "on_records=", "bounds=(",
)  # fmt: skip
LONGEST = 700  # characters of a message
MOST_FOUND = 200  # after which a run stops
_CALLBACKS = ("run", "callback", "progress", "function", "derivative", "value", "h", "kind", "scores", "curve")
_HEAD = 80  # bytes of the line that names the call a child is at


class Found(Exception):
    """An invariant is broken."""


# --- what a call must leave as it is


def digest(value: Any) -> Any:
    """Something that changes when the value does; None where that cannot be told."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.tobytes() if value.size <= 10**5 else None, value.shape, str(value.dtype), value.flags.writeable
    if type(value) in (list, tuple) and len(value) < 10**5:
        return type(value), tuple(map(digest, value)) if value is not _last(value) else id(value)
    if type(value) is np.ndarray:
        return tuple(map(id, value.ravel().tolist())), value.shape
    if type(value) is dict:
        return tuple((id(key), digest(each)) for key, each in value.items())
    if type(value) in (set, frozenset):
        return frozenset(map(id, value))
    if type(value) is bytearray:
        return bytes(value)
    if type(value).__module__.partition(".")[0] == "pandas":
        try:
            inside = np.asarray(value, object)
            return tuple(map(repr, inside.ravel().tolist())), inside.shape, str(getattr(value, "dtypes", ""))
        except Exception:  # of one entry, of a class itself
            return None
    return None


def _last(value: Any) -> Any:
    return value[-1] if value else None


def world() -> Any:
    """What a guest leaves as it is."""
    state = np.random.get_state()  # noqa: NPY002  # what the host may use
    return {
        "numpy's error state": (np.geterr(), np.geterrcall()),
        "warning filters": list(warnings.filters),
        "the decimal context": repr(decimal.getcontext()),
        "random": random.getstate(),
        "numpy.random": (state[1].tobytes(), state[2:]),  # type: ignore[union-attr,index]
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signal handlers": (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)),
        "threads": {each.name for each in threading.enumerate() if not each.name.startswith("fastdp")},
        "recursion limit": sys.getrecursionlimit(),
        "garbage collection": gc.isenabled(),
        "streams": (sys.stdout, sys.stderr),
        "open budgets": _open_budget(),
    }


def _open_budget() -> Any:
    from fastdp.privacy import budget

    return getattr(budget, "current_budget", lambda: None)()


@contextlib.contextmanager
def host(strict: bool) -> Iterator[None]:
    """A host without warnings of ours; a strict one lets numpy and decimals raise where they can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not strict:
            yield
            return
        warnings.simplefilter("error", RuntimeWarning)
        with np.errstate(all="raise"), decimal.localcontext(decimal.Context(prec=3, traps=list(_TRAPS))):
            yield


_TRAPS = (
    decimal.Clamped, decimal.DivisionByZero, decimal.FloatOperation, decimal.Inexact, decimal.InvalidOperation,
    decimal.Overflow, decimal.Rounded, decimal.Subnormal, decimal.Underflow,
)  # fmt: skip


# --- errors


def check_error(name: str, error: Exception, *, at_callbacks: bool = False) -> None:
    """Found, unless it is one that a caller can do something with."""
    from .hostile import MARK, WORD, Users
    from .surface import OPERATORS, is_seam

    inside = any("/machinery/" not in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    if (isinstance(error, TypeError) and not inside) or isinstance(error, Users):
        return  # Python's own refusal of a call that does not fit the signature; an exception of the user's function
    last = traceback.extract_tb(error.__traceback__)[-1]
    if last.filename.endswith("/machinery/hostile.py") or ("/machinery/" in last.filename and last.name == "<lambda>"):
        return  # a function of the user fails by itself, or a method of an object of the user's
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/machinery/" in frame.filename]
    if isinstance(error, MemoryError) and own[-1].name == "<lambda>":
        return  # the same of one that asked numpy for too much
    if isinstance(error, TypeError | LookupError) and name.rpartition(".")[2] in OPERATORS and name[-5:] != "and__":
        return  # as Python's own types have it
    if at_callbacks and isinstance(error, TypeError | RuntimeError | ValueError):
        return  # what was given as a function is one, and fails by itself
    if is_seam(name):
        return
    if isinstance(error, MemoryError):
        raise Found(f"out of memory: {error}")
    text = str(error)
    kind = type(error).__name__
    ours = ValueError | RuntimeError | FileNotFoundError | ImportError | AttributeError
    if not isinstance(error, ours) and not (name.startswith("sklearn.") and isinstance(error, TypeError)):
        raise Found(f"{kind}: {text[:200]} {where(error)}")
    if not NAMED.match(text):
        raise Found(f"does not begin with a name: {kind}: {text[:200]} {where(error)}")
    if (str(MARK) in text and not text.startswith(_PUBLIC_NUMBERS)) or (
        WORD in text and not text.startswith(_PUBLIC_WORDS)
    ):
        raise Found(f"prints data: {text[:200]}")
    if len(text) > LONGEST:
        raise Found(f"is {len(text)} characters long: {text[:200]}...")


def where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/machinery/" not in frame.filename]
    return " < ".join(
        [f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames[:-4:-1]] + getattr(error, "__notes__", [])
    )


# --- one call


class _Hostile:
    """A call with some of its arguments replaced, and what has to be seen of it."""

    def __init__(self, name: str, seed: int) -> None:
        from .calls import CALLS, CHARGED
        from .hostile import HOSTILE, hostile

        rng = np.random.default_rng(seed)
        self.name = name
        self.function, self.arguments, self.keywords = CALLS[name](rng)
        self.strict = rng.random() < 0.125
        self.budget: Any = None
        self.keys_asked: list[int] = []
        places: list[Any] = [*range(len(self.arguments)), *self.keywords]
        if name in CHARGED:
            self._charge(seed)
            places += ["budget", "rng"]
        self.replaced = []
        many = min(len(places), int(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15])))
        for place in rng.choice(len(places), many, replace=False) if places else ():
            number = int(rng.integers(HOSTILE))
            self.replaced.append((places[place], number))
            if isinstance(places[place], int):
                self.arguments[places[place]] = hostile(number)
            else:
                self.keywords[places[place]] = hostile(number)

    def _charge(self, seed: int) -> None:
        import fastdp

        asked = self.keys_asked

        class Recorded(fastdp.Randomness):
            def key(self) -> Any:
                asked.append(1)
                return super().key()

        self.budget = fastdp.Budget(epsilon=1e6, delta=0.5)
        self.keywords |= {"budget": self.budget, "rng": Recorded(seed)}

    def make(self) -> str:
        """The kind of its outcome; Found if an invariant is broken."""
        from .hostile import hostile
        from .surface import is_seam

        before, around = digest([self.arguments, self.keywords]), world()
        try:
            with host(self.strict):
                self.function(*self.arguments, **self.keywords)
            outcome = "returned"
        except Exception as error:
            outcome = type(error).__name__
            functions = any(place in _CALLBACKS and callable(hostile(number)) for place, number in self.replaced)
            check_error(self.name, error, at_callbacks=functions)
            if self.budget is not None and not self.keys_asked and self.budget.releases:
                raise Found(f"charged {self.budget.spent} without a draw, and failed: {error}") from None
        if self.budget is not None and any(c.fate is None for c in self.budget._ledger._charges.values()):
            raise Found("a reservation stays behind")
        if digest([self.arguments, self.keywords]) != before and self.keywords.get("out") is None:
            raise Found("an input was changed")
        for what, state in world().items():
            if state != around[what] and not (what == "the decimal context" and is_seam(self.name)):
                raise Found(f"the process was changed: {what}: {str(around[what])[:200]} -> {str(state)[:200]}")
        return outcome


def name_of(seed: int, i: int) -> str:
    """Which function call number i is of."""
    from .calls import CALLS

    names = sorted(CALLS)
    return names[np.random.default_rng((seed, i)).integers(len(names))]


def one(seed: int, i: int) -> str:
    """Make call number i; the kind of its outcome."""
    return _Hostile(name_of(seed, i), (seed << 40) + i).make()


# --- many of them


def child(first: int, last: int, seed: int) -> None:
    """Calls number first to last - 1; a line for each start, so that the parent knows which one hangs or crashes."""
    from .calls import CALLS

    for name in (
        "laplace",
        "top_k",
        "mwem",
        "connect.opendp.array_domain",
        "PureDP.dp_event",
    ):  # threads and libraries of a process that works
        if name not in CALLS:  # its library is not installed
            continue
        function, arguments, keywords = CALLS[name](np.random.default_rng(0))
        function(*arguments, **keywords)
    limit_memory()
    outcomes: collections.Counter[str] = collections.Counter()
    for i in range(first, last):
        name = name_of(seed, i)
        os.pwrite(1, f"{i:15d} {name:{_HEAD - 18}.{_HEAD - 18}s}\n".encode(), 0)
        try:
            outcomes[one(seed, i)] += 1
        except Found as found:
            tell({"call": i, "name": name, "found": str(found)})
        except BaseException as error:
            tell({"call": i, "name": name, "found": f"{type(error).__name__}: {error} {where(error)}"})
    tell({"outcomes": outcomes})


def tell(event: dict[str, Any]) -> None:
    print(json.dumps(event), file=sys.stderr, flush=True)


def limit_memory() -> None:
    """What a call may take on top of what the process has; more is an error that the fuzzer sees."""
    from fastdp.support import machine

    with open("/proc/self/statm", encoding="ascii") as statm:
        held = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + GIGABYTES * 2**30, resource.RLIM_INFINITY))
    machine.memory_limit = lambda: GIGABYTES * 2**30  # type: ignore[assignment,misc]  # which estimates are held against


CHILD = ["-m", "tests.machinery.fuzz"]


class Worker:
    """A child process and the calls that it has been given."""

    def __init__(self, first: int, last: int, seed: int) -> None:
        self.first, self.last = first, last
        self.place: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  # closed by finish
        self.told: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, *CHILD, "--child", f"{first}:{last}", "--seed", str(seed)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.place,
            stderr=self.told,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.at, self.since, self.hangs = b"", time.monotonic(), False

    def running(self) -> bool:
        """Whether it has calls to make; one that hangs is ended."""
        if self.process.poll() is not None:
            return False
        now = os.pread(self.place.fileno(), _HEAD, 0)
        if now != self.at:
            self.at, self.since = now, time.monotonic()
        elif time.monotonic() - self.since > (SECONDS if now else SECONDS_TO_START):
            self.hangs = True
            self.process.kill()
            self.process.wait()
            return False
        return True

    def finish(self) -> tuple[list[dict[str, Any]], tuple[int, int] | None]:
        """What it told, and the calls that are left of its own, if it came to an untimely end."""
        self.told.seek(0)
        events = []
        for line in self.told.read().decode(errors="replace").splitlines():
            if line.startswith("{"):
                events.append(json.loads(line))
            elif line.strip():
                print(line, file=sys.stderr)
        left = None
        if self.process.returncode:
            where = os.pread(self.place.fileno(), _HEAD, 0).decode().split(maxsplit=1) or [str(self.first), "its start"]
            how = f"took more than {SECONDS} s" if self.hangs else f"ended the process: {self.process.returncode}"
            events.append({"call": int(where[0]), "name": where[1].strip(), "found": how})
            left = (int(where[0]) + 1, self.last)
        self.place.close()
        self.told.close()
        return events, left


def run(calls: int, seed: int, workers: int) -> tuple[collections.Counter[str], list[dict[str, Any]]]:
    """So many calls, in as many children at a time."""
    outcomes: collections.Counter[str] = collections.Counter()
    found: list[dict[str, Any]] = []
    share = min(CALLS_A_CHILD, -(-calls // workers))
    waiting = [(first, min(first + share, calls)) for first in range(0, calls, share)][::-1]
    at_work: list[Worker] = []
    done = 0
    while (waiting or at_work) and len(found) < MOST_FOUND:
        while waiting and len(at_work) < workers:
            first, last = waiting.pop()
            if first < last:
                at_work.append(Worker(first, last, seed))
        time.sleep(0.05)
        for worker in [each for each in at_work if not each.running()]:
            at_work.remove(worker)
            events, left = worker.finish()
            for event in events:
                outcomes.update(event.get("outcomes", {}))
                found += [event] if "found" in event else []
            waiting += [left] if left else []
            done += (left[0] if left else worker.last) - worker.first
            print(f"{done:,} of {calls:,} calls, {len(found)} found", flush=True)
    for worker in at_work:
        worker.process.kill()
        worker.process.wait()
    return outcomes, found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="a random one by default, which is printed")
    parser.add_argument("--one", type=int, help="repeat the call of this number")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(2**20) if options.seed is None else options.seed
    if options.child:
        first, last = map(int, options.child.split(":"))
        child(first, last, seed)
        return 0
    if options.one is not None:
        limit_memory()
        call = _Hostile(name_of(seed, options.one), (seed << 40) + options.one)
        from .hostile import hostile

        print(
            call.name, [(place, number, type(hostile(number)).__name__) for place, number in call.replaced], flush=True
        )
        print(call.make())
        return 0
    start = time.monotonic()
    outcomes, found = run(options.calls, seed, options.workers)
    print(dict(outcomes.most_common()))
    alike: dict[str, list[dict[str, Any]]] = {}
    for each in found:
        alike.setdefault(re.sub(r"\d+", "0", each["found"])[-120:], []).append(each)
    for same in alike.values():
        more = f"  (and {len(same) - 1} like it)" if len(same) > 1 else ""
        print(f"call {same[0]['call']} of {same[0]['name']}: {same[0]['found']}{more}")
    print(f"{len(found)} of {options.calls:,} calls broke an invariant; seed {seed}, {time.monotonic() - start:.0f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
