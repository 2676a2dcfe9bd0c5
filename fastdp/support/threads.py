"""Fixed chunks of work on a small thread pool: what makes kernels, which release the GIL, use every core.

Chunks depend on the amount of work alone, never on the number of threads, so neither do results. No thread starts at
import, and a caller never waits for a helper that has not started: calls may nest, and come from any number of threads,
from signal handlers and from finalisers. No lock is held anywhere, so none can be left held by an interrupt or a fork.
"""

from __future__ import annotations

import atexit
import itertools
import operator
import os
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from queue import SimpleQueue
from threading import local
from typing import Any, Generic, TypeVar, cast
from weakref import ReferenceType, ref

from .processes import here
from .shown import shown

T = TypeVar("T")

MOST_THREADS = 2**12

_count: int | None = None
_pools: dict[int, _Pool] = {}  # by the number of threads; two only while that number changes
_here = local()  # .alone: whether this thread must do without helpers


def run_chunks(function: Callable[[int, int], T], n: int, chunk: int) -> list[T]:
    """Call `function(start, stop)` for consecutive chunks of range(n) on all threads; results come in order.

    An error is the one that a plain loop would have met first. It is raised once no chunk is running any more, and
    chunks that had not started then never do.

    Cost    0.1 us for a single chunk, 4 us for two on two threads. A helper takes about 20 us to wake up and its caller
            as long to hear of the end: a chunk should be worth 200 us.
    """
    if 0 < n <= chunk:
        return [function(0, n)]
    chunks = -(-n // chunk)
    threads = 1 if getattr(_here, "alone", False) else min(get_num_threads(), chunks)
    if threads <= 1:
        return [function(start, min(start + chunk, n)) for start in range(0, n, chunk)]
    return _Job(function, n, chunk, chunks).run(_get_pool(), threads - 1)


@contextmanager
def alone() -> Iterator[None]:
    """Let this thread work without helpers: for a host that keeps all cores busy with threads of its own."""
    before, _here.alone = getattr(_here, "alone", False), True
    try:
        yield
    finally:
        _here.alone = before


def get_num_threads() -> int:
    """How many threads work on one call: set_num_threads, else FASTDP_NUM_THREADS, else the CPUs that we may use."""
    global _count
    if _count is None:
        _count = _default_count()
    return _count


def set_num_threads(n: int) -> None:
    """Let `n` threads work on each call from now on; results do not depend on it.

    Parameters
    ----------
    n : int >= 1
        How many.
    """
    global _count
    if not issubclass(type(n), Integral) or type(n) is bool or not 1 <= (number := _integer(n)) <= MOST_THREADS:
        raise ValueError(f"n={shown(n)}: must be an integer >= 1, at most {MOST_THREADS:,}")
    _count = number


def _integer(n: Any) -> int:
    """0 for what is none, such as a span of time of numpy's."""
    try:
        return int.__int__(n) if isinstance(n, int) else int(n)
    except Exception:  # of a class that is not ours
        return 0


def _default_count() -> int:
    if text := os.environ.get("FASTDP_NUM_THREADS", "").strip():
        if not (text.isascii() and text.isdecimal() and int(text) >= 1):
            raise ValueError(f'FASTDP_NUM_THREADS="{text}": must be an integer >= 1')
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Job(Generic[T]):
    """The chunks of one call: whoever is free takes the next."""

    def __init__(self, function: Callable[[int, int], T], n: int, chunk: int, chunks: int) -> None:
        self._function = function
        self._n = n
        self._chunk = chunk
        self._chunks = chunks
        self._results: list[T | object] = [_MISSING] * chunks
        self._take = itertools.count().__next__
        self._errors: list[tuple[int, BaseException]] = []
        self._closed = False  # a helper that comes from now on goes away again
        self._awake = allocate_lock()  # released when a helper leaves a closed job: a wake-up that decides nothing
        self._awake.acquire()

    def run(self, pool: _Pool, helpers: int) -> list[T]:
        """Call helpers, work, wait for those that have started, and hand out the results or the first error."""
        try:
            try:
                pool.call(self, helpers)
                self._work()
            except BaseException as interrupt:  # Ctrl-C between two chunks
                self._errors.append((-1, interrupt))
            self._wait(pool)
        finally:
            self._closed = True
        if self._errors:
            errors, self._errors = self._errors, []
            try:
                raise min(errors, key=operator.itemgetter(0))[1]
            finally:
                del errors  # its traceback leads back to this frame
        if any(result is _MISSING for result in self._results):  # its chunk's values would be used without their noise
            raise RuntimeError("a helper thread was stopped in the middle of its work")
        return cast("list[T]", self._results)

    def help(self) -> None:
        """Work on the chunks that are left, in a helper."""
        if not self._closed:
            self._work()

    def leave(self) -> None:
        """Let the caller see that this helper is not at work any more."""
        if self._closed:
            with suppress(RuntimeError):  # another helper has woken it
                self._awake.release()

    def _work(self) -> None:
        while not self._errors and (i := self._take()) < self._chunks:
            start = i * self._chunk
            try:
                self._results[i] = self._function(start, min(start + self._chunk, self._n))
            except BaseException as error:
                # Chunks are taken in order, and one that is taken is run: the first error of all is always among these.
                self._errors.append((i, error))

    def _wait(self, pool: _Pool) -> None:
        """Wait until no helper is at work. That decides, not the wake-up: an interrupt may swallow it."""
        self._closed = True
        for last in (False, True):
            try:
                while pool.works_on(self):
                    self._awake.acquire(timeout=_LOOK_AGAIN)
            except BaseException as interrupt:
                # Ctrl-C: the chunks that run come to their end, and no other starts. A second Ctrl-C does get through.
                if last:
                    raise
                self._errors.append((-1, interrupt))
            else:
                return


_MISSING = object()
_LOOK_AGAIN = 0.1  # seconds


class _Helper:
    """A thread of a pool: what it works on now."""

    __slots__ = ("job",)

    def __init__(self) -> None:
        self.job: _Job[Any] | None = None

    def serve(self, job: _Job[Any]) -> None:
        try:
            self.job = job
            job.help()
        finally:
            self.job = None  # at once, whatever exception another thread sets in this one
        job.leave()


class _Pool:
    """At most `size` helpers, which start when they are first needed.

    Queues, lists and the start of a thread are atomic, so an interrupt, a signal handler and other threads find the
    pool whole at every moment. (An executor of concurrent.futures holds locks that do not let their owner in again.)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = [None] * size  # a thread that finds no place here ends at once
        self._helpers: list[_Helper] = []
        self._jobs: SimpleQueue[ReferenceType[_Job[Any]] | None] = SimpleQueue()
        self._closed = False
        self._process = here.number

    def call(self, job: _Job[Any], helpers: int) -> None:
        """Let up to `helpers` threads work on a job, some of them later."""
        able = len(self._helpers)
        if self._free and not self._closed:
            idle = sum(helper.job is None for helper in tuple(self._helpers)) - self._jobs.qsize()
            # A RuntimeError: the interpreter is at its end or may start no more threads. Those that come are enough.
            with suppress(RuntimeError):
                for _ in range(min(helpers - idle, len(self._free))):
                    start_new_thread(self._serve, ())
                    able += 1
        for _ in range(min(helpers, able)):
            self._jobs.put(ref(job))  # no more than a reference: nobody may ever come for it

    def works_on(self, job: _Job[Any]) -> bool:
        if self._process != here.number:  # a fork in the middle of the job: this child has no helpers
            return False
        return any(helper.job is job for helper in tuple(self._helpers))

    def close(self) -> None:
        """Let helpers end when they are done."""
        self._closed = True
        for _ in range(self._size):
            self._jobs.put(None)

    def ended(self) -> bool:
        return not self._helpers

    def _serve(self) -> None:
        try:
            self._free.pop()
        except IndexError:
            return
        helper = _Helper()
        try:
            self._helpers.append(helper)
            _ignore_float_errors()
            while not self._closed and self._process == here.number and self._serve_next(helper):
                pass
        finally:
            with suppress(ValueError):
                self._helpers.remove(helper)
            self._free.append(None)

    def _serve_next(self, helper: _Helper) -> bool:
        """Wait for a job and work on it, and keep nothing of it; False at the end of the pool."""
        reference = self._jobs.get()
        if reference is None:
            return False
        if (job := reference()) is not None:
            helper.serve(job)
        return True


def _ignore_float_errors() -> None:
    """In a thread of ours, as boundary.py does in the caller's: numpy keeps a state for each."""
    import numpy as np

    np.seterr(all="ignore")


def _get_pool() -> _Pool:
    count = get_num_threads()
    pool = _pools.get(count)
    if pool is None or len(_pools) > 1:
        pool = _pools.setdefault(count, _Pool(max(1, count - 1)))
        for other in tuple(_pools):
            if other != count and (old := _pools.pop(other, None)) is not None:
                old.close()
    return pool


def _end() -> None:
    """At the end of the interpreter: calls from now on are without helpers, and those at work come to their end."""
    end = time.monotonic() + _AT_THE_END
    for pool in tuple(_pools.values()):
        pool.close()
        while not pool.ended() and time.monotonic() < end:
            time.sleep(0.001)


_AT_THE_END = 10.0  # seconds: longer than any chunk, except of functions that a user wrote

atexit.register(_end)
os.register_at_fork(after_in_child=_pools.clear)  # a forked child has none of its parent's threads
