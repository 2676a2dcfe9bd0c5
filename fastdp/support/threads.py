"""Fixed chunks of work on a small thread pool: what makes kernels, which release the GIL, use every core.

Chunks depend on the amount of work alone, never on the number of threads, so neither do results. No thread starts at
import, and a caller never waits for a helper that has not started: calls may nest, and come from any number of threads.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Generic, TypeVar, cast

from .shown import shown

T = TypeVar("T")

_lock = threading.Lock()
_count: int | None = None
_pool: tuple[int, ThreadPoolExecutor] | None = None
_here = threading.local()  # .alone: whether this thread must do without helpers


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
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n={shown(n)}: must be an integer >= 1")
    _count = int(n)


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
        self._results: list[T | None] = [None] * chunks
        self._take = itertools.count().__next__
        self._errors: list[tuple[int, BaseException]] = []
        self._lock = threading.Lock()
        self._helpers = 0  # at work now
        self._closed = False  # a helper that comes from now on goes away again
        self._idle = threading.Lock()  # released when the last helper leaves a closed job
        self._idle.acquire()

    def run(self, pool: ThreadPoolExecutor, helpers: int) -> list[T]:
        """Call helpers, work, wait for those that have started, and hand out the results or the first error."""
        try:
            # A RuntimeError: the interpreter is at its end or may start no more threads. Those that come are enough.
            with suppress(RuntimeError):
                for _ in range(helpers):
                    pool.submit(self._help)
            self._work()
        except BaseException as interrupt:  # Ctrl-C between two chunks
            self._errors.append((-1, interrupt))
        self._wait()
        if self._errors:
            errors, self._errors = self._errors, []
            try:
                raise min(errors, key=operator.itemgetter(0))[1]
            finally:
                del errors  # its traceback leads back to this frame
        return cast("list[T]", self._results)

    def _help(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._helpers += 1
        try:
            self._work()
        finally:
            with self._lock:
                self._helpers -= 1
                if self._closed and not self._helpers:
                    self._idle.release()

    def _work(self) -> None:
        while not self._errors and (i := self._take()) < self._chunks:
            start = i * self._chunk
            try:
                self._results[i] = self._function(start, min(start + self._chunk, self._n))
            except BaseException as error:
                # Chunks are taken in order, and one that is taken is run: the first error of all is always among these.
                self._errors.append((i, error))

    def _wait(self) -> None:
        with self._lock:
            self._closed = True
            if not self._helpers:
                return
        try:
            self._idle.acquire()
        except BaseException as interrupt:
            # Ctrl-C: the chunks that run come to their end, and no other starts. A second Ctrl-C does get through.
            self._errors.append((-1, interrupt))
            self._idle.acquire()


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    count = get_num_threads()
    if _pool is None or _pool[0] != count:
        with _lock:
            if _pool is None or _pool[0] != count:
                if _pool is not None:
                    _pool[1].shutdown(wait=False)
                _pool = count, ThreadPoolExecutor(max(1, count - 1), thread_name_prefix="fastdp")
    return _pool[1]


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and the lock may have been held by one of them."""
    global _lock, _pool
    _lock = threading.Lock()
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)
