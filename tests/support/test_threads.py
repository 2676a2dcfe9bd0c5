"""Fixed chunks on a small pool (fastdp/support/threads.py): results never depend on threads, and nothing ever hangs."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastdp.support import threads
from fastdp.support.threads import get_num_threads, run_chunks, set_num_threads

SECONDS = 3600  # against hangs alone


@pytest.fixture(autouse=True)
def _restore_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_count", threads._count)


def bounds(start: int, stop: int) -> tuple[int, int]:
    return start, stop


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What `call` returns, or a failure if it takes longer."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "an error or a hang"
    return results[0]


# ---------------------------------------------------------------------------------------------------------------------
# chunks


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 20, 99, 100, 101])
def test_chunks_do_not_depend_on_threads(n: int, count: int) -> None:
    set_num_threads(count)
    assert run_chunks(bounds, n, 10) == [(start, min(start + 10, n)) for start in range(0, n, 10)]


def test_results_come_in_order_however_long_each_takes() -> None:
    set_num_threads(7)

    def slow_first(start: int, stop: int) -> int:
        time.sleep(0.02 if start < 3 else 0)
        return start

    assert run_chunks(slow_first, 30, 1) == list(range(30))


def test_sums_have_the_same_bits() -> None:
    x = np.random.default_rng(0).normal(size=100_003)
    results = set()
    for count in (1, 2, 7):
        set_num_threads(count)
        results.add(sum(run_chunks(lambda start, stop: float(x[start:stop].sum()), x.size, 1000)))
    assert len(results) == 1


@pytest.mark.parametrize("count", [2, 5, 3])
def test_as_many_threads_work_as_asked(count: int) -> None:
    """Each chunk waits for all others, so fewer threads would never come to an end."""
    set_num_threads(count)
    meeting = threading.Barrier(count)
    run_chunks(lambda start, stop: meeting.wait(SECONDS), count, 1)


def test_never_more_threads_than_asked() -> None:
    set_num_threads(3)
    seen: set[int] = set()

    def note(start: int, stop: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.001)

    for _ in range(5):
        run_chunks(note, 20, 1)
    assert threading.get_ident() in seen
    assert len(seen) <= 3
    set_num_threads(1)
    assert set(run_chunks(lambda start, stop: threading.get_ident(), 5, 1)) == {threading.get_ident()}


def test_a_single_chunk_runs_in_the_caller_and_starts_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    set_num_threads(7)
    monkeypatch.setattr(threads, "_pools", {})
    assert run_chunks(lambda start, stop: threading.get_ident(), 10, 10) == [threading.get_ident()]
    assert threads._pools == {}


# ---------------------------------------------------------------------------------------------------------------------
# callers


def test_calls_may_nest() -> None:
    set_num_threads(2)

    def nested(depth: int) -> int:
        if depth == 0:
            return 1
        return sum(run_chunks(lambda start, stop: nested(depth - 1), 4, 1))

    assert within(SECONDS, lambda: nested(4)) == 4**4


def test_64_callers_at_once() -> None:
    """They share two helpers."""
    set_num_threads(3)
    expected = [(start, min(start + 7, 50)) for start in range(0, 50, 7)]
    results: list[list[tuple[int, int]]] = []
    workers: set[int] = set()
    ready = threading.Barrier(64)

    def note(start: int, stop: int) -> tuple[int, int]:
        workers.add(threading.get_ident())
        time.sleep(0)
        return start, stop

    def call() -> None:
        ready.wait(SECONDS)
        for _ in range(20):
            results.append(run_chunks(note, 50, 7))

    callers = [threading.Thread(target=call, daemon=True) for _ in range(64)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SECONDS)
    assert results == [expected] * (64 * 20)
    assert len(workers - {caller.ident for caller in callers}) <= 2


def test_a_caller_does_not_wait_for_helpers_that_are_busy() -> None:
    """All helpers sit in one call; another call goes on by itself."""
    set_num_threads(2)
    release, busy = threading.Event(), threading.Barrier(3)

    def hold(start: int, stop: int) -> None:
        busy.wait(SECONDS)
        release.wait(SECONDS)

    holder = threading.Thread(target=run_chunks, args=(hold, 2, 1), daemon=True)
    holder.start()
    busy.wait(SECONDS)
    try:
        assert within(SECONDS / 2, lambda: run_chunks(bounds, 3, 1)) == [(0, 1), (1, 2), (2, 3)]
    finally:
        release.set()
        holder.join(SECONDS)


def test_count_changed_while_others_call() -> None:
    stop = threading.Event()
    wrong: list[Any] = []

    def call() -> None:
        while not stop.is_set():
            if (result := run_chunks(bounds, 5, 1)) != [(i, i + 1) for i in range(5)]:
                wrong.append(result)

    callers = [threading.Thread(target=call, daemon=True) for _ in range(4)]
    for caller in callers:
        caller.start()
    for count in (2, 5, 1, 3) * 25:
        set_num_threads(count)
        time.sleep(0.001)
    stop.set()
    for caller in callers:
        caller.join(SECONDS)
        assert not caller.is_alive()
    assert wrong == []


def test_no_more_threads_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    set_num_threads(4)
    monkeypatch.setattr(threads, "_pools", {})

    def refuse(function: Any, arguments: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", refuse)
    for _ in range(3):
        assert run_chunks(bounds, 3, 1) == [(0, 1), (1, 2), (2, 3)]
    assert threads._get_pool()._jobs.qsize() == 0  # nobody would ever come for them


# ---------------------------------------------------------------------------------------------------------------------
# errors


class Broken(Exception):
    pass


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_first_error_is_raised(count: int) -> None:
    """Chunk 3 fails late and chunk 4 at once: it is chunk 3 that a plain loop would have met."""
    set_num_threads(count)

    def fail(start: int, stop: int) -> int:
        if start == 3:
            time.sleep(0.02)
        if start in (3, 4):
            raise Broken(start)
        return start

    for _ in range(5):
        with pytest.raises(Broken, match="3"):
            run_chunks(fail, 20, 1)
    assert run_chunks(bounds, 2, 1) == [(0, 1), (1, 2)]


def test_the_first_error_is_raised_even_if_another_comes_while_its_chunk_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = threading.Event()

    class Count:
        def __init__(self) -> None:
            self.count = itertools.count()

        def __next__(self) -> int:
            i = next(self.count)
            if i == 0:
                assert failed.wait(SECONDS)
                time.sleep(0.02)
            return i

    def fail(start: int, stop: int) -> None:
        if start == 1:
            failed.set()
        raise Broken(start)

    set_num_threads(2)
    monkeypatch.setattr(threads, "itertools", SimpleNamespace(count=Count))
    with pytest.raises(Broken, match="0"):
        run_chunks(fail, 5, 1)


@pytest.mark.parametrize("count", [2, 7])
def test_after_an_error_nothing_runs_and_nothing_starts(count: int) -> None:
    set_num_threads(count)
    running, started = set(), set()

    def work(start: int, stop: int) -> None:
        started.add(start)
        running.add(start)
        try:
            if start == 0:
                time.sleep(0.01)
                raise Broken
            time.sleep(0.03)
        finally:
            running.discard(start)

    with pytest.raises(Broken):
        run_chunks(work, 1000, 1)
    assert running == set()
    so_far = len(started)
    assert so_far <= 2 * count
    time.sleep(0.05)
    assert len(started) == so_far


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where it was ignored when Python started, as in a background job."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize("where", ["in a chunk", "while waiting"])
def test_interrupt(where: str) -> None:
    """Ctrl-C in the caller: the chunk that runs elsewhere comes to its end, and no other starts."""
    set_num_threads(2)
    caller, meeting = threading.get_ident(), threading.Barrier(2)
    running, started = set(), set()

    def work(start: int, stop: int) -> None:
        started.add(start)
        running.add(start)
        try:
            meeting.wait(SECONDS)
            if threading.get_ident() != caller:
                time.sleep(0.05)
                if where == "while waiting":
                    signal.pthread_kill(caller, signal.SIGINT)
                time.sleep(0.05)
            elif where == "in a chunk":
                signal.raise_signal(signal.SIGINT)
        finally:
            running.discard(start)

    with pytest.raises(KeyboardInterrupt):
        run_chunks(work, 1000 if where == "in a chunk" else 2, 1)
    assert running == set()
    assert started == {0, 1}


@pytest.mark.parametrize("interrupts", [1, 2])
def test_interrupts_as_a_wake_up_arrives(interrupts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception right after the lock was taken, as CPython raises it when a signal is pending then."""
    set_num_threads(2)
    waits: list[float] = []

    class Lock:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.release = self.lock.release

        def acquire(self, timeout: float = -1) -> None:
            self.lock.acquire(timeout=timeout)
            if timeout != -1:
                waits.append(timeout)
                if len(waits) <= interrupts:
                    raise KeyboardInterrupt

    caller, meeting = threading.get_ident(), threading.Barrier(2)

    def work(start: int, stop: int) -> None:
        meeting.wait(SECONDS)
        if threading.get_ident() != caller:
            time.sleep(0.3)

    monkeypatch.setattr(threads, "allocate_lock", Lock)
    with pytest.raises(KeyboardInterrupt):
        run_chunks(work, 2, 1)
    assert len(waits) >= interrupts
    assert settled()


class Moments:
    """Something happens at the n-th instruction that this thread runs of threads.py, for n = 0, 1, ... to the last."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens = happens
        self.left = 0

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != threads.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == -1:
                sys.settrace(None)
                self.happens()
        return self._trace

    def each(self, call: Callable[[], None], step: int = 1) -> int:
        """How many moments there were."""
        for moment in itertools.count(0, step):
            self.left = moment
            before = sys.gettrace()
            sys.settrace(self._trace)
            try:
                call()
            finally:
                sys.settrace(before)
            if self.left >= 0:
                return moment
        raise AssertionError


def settled() -> bool:
    """Whether all helpers come to rest."""
    end = time.time() + SECONDS
    while time.time() < end:
        if all(helper.job is None for helper in tuple(threads._get_pool()._helpers)):
            return True
        time.sleep(0.001)
    return False


def test_an_interrupt_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets through or the call returns; helpers come to rest, and the next call has as many of them as before."""
    set_num_threads(3)
    monkeypatch.setattr(threads, "_pools", {})

    def interrupt() -> None:
        raise KeyboardInterrupt

    def call() -> None:
        with suppress(KeyboardInterrupt):
            assert run_chunks(bounds, 6, 1) == [(i, i + 1) for i in range(6)]
        sys.settrace(None)
        assert settled()

    assert Moments(interrupt).each(call) > 300
    assert within(SECONDS, meet) == [0, 1, 2]


@pytest.mark.parametrize("nested", [False, True])
def test_a_call_within_a_call_at_any_moment(nested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal handler or a finaliser does: a call of its own, with a pool that is new or not."""
    set_num_threads(3)
    expected = [(i, i + 1) for i in range(6)]
    results: list[Any] = []

    def call() -> None:
        if nested:
            monkeypatch.setattr(threads, "_pools", {})
        assert run_chunks(bounds, 6, 1) == expected
        for pool in threads._pools.values() if nested else ():
            pool.close()

    moments = Moments(lambda: results.append(run_chunks(bounds, 6, 1))).each(call, 3 if nested else 1)
    assert len(results) > 100
    assert all(result == expected for result in results)
    assert moments > 300
    monkeypatch.setattr(threads, "_pools", {})
    assert within(SECONDS, meet) == [0, 1, 2]


def test_a_chunk_that_a_helper_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that another thread sets in a helper: noise may be missing there."""
    set_num_threads(2)
    caller, meeting = threading.get_ident(), threading.Barrier(2)
    help_ = threads._Job.help

    def stopped(job: Any) -> None:
        job._take()  # a chunk that nobody will run
        meeting.wait(SECONDS)
        raise SystemExit

    monkeypatch.setattr(threads._Job, "help", stopped)

    def work(start: int, stop: int) -> int:
        if start == 0:
            assert threading.get_ident() == caller
            meeting.wait(SECONDS)
        return start

    with pytest.raises(RuntimeError, match="stopped in the middle"):
        run_chunks(work, 4, 1)
    monkeypatch.setattr(threads._Job, "help", help_)
    assert within(SECONDS, meet) == [0, 1, 2]


def test_an_error_keeps_nothing_alive() -> None:
    class Data:
        pass

    set_num_threads(2)
    data = Data()
    gone = weakref.ref(data)

    def fail(start: int, stop: int, data: Data = data) -> None:
        raise Broken

    gc.disable()
    try:
        with suppress(Broken):
            run_chunks(fail, 2, 1)
        del fail, data
        end = time.time() + SECONDS
        while gone() is not None and time.time() < end:
            time.sleep(0.001)  # a helper may still be on its way out
        assert gone() is None
    finally:
        gc.enable()


# ---------------------------------------------------------------------------------------------------------------------
# processes


def meet() -> list[int]:
    """Three chunks that wait for each other: this process has helpers of its own."""
    set_num_threads(3)
    meeting = threading.Barrier(3)

    def chunk(start: int, stop: int) -> int:
        meeting.wait(SECONDS / 2)
        return start

    return run_chunks(chunk, 3, 1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_process(method: str) -> None:
    assert meet() == [0, 1, 2]  # so the parent has a pool of the same size
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "This process", DeprecationWarning
        )  # fork with threads around, the point here
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply_async(meet).get(SECONDS) == [0, 1, 2]
    assert meet() == [0, 1, 2]


def fork(call: Callable[[], bool]) -> None:
    """Assert that `call` is True in a forked child."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process", DeprecationWarning)
        pid = os.fork()
    if not pid:
        os._exit(7 if call() else 1)
    wait_for(pid)


def wait_for(pid: int) -> None:
    end = time.time() + SECONDS / 2
    while not (done := os.waitpid(pid, os.WNOHANG))[0] and time.time() < end:
        time.sleep(0.01)
    if not done[0]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(done[1]) == 7


def test_fork_while_another_thread_makes_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    held, release = threading.Event(), threading.Event()
    caller = threading.get_ident()

    class Held(threads._Pool):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            if threading.get_ident() != caller:
                held.set()
                release.wait(SECONDS)

    set_num_threads(3)
    monkeypatch.setattr(threads, "_Pool", Held)
    monkeypatch.setattr(threads, "_pools", {})
    holder = threading.Thread(target=run_chunks, args=(bounds, 3, 1), daemon=True)
    holder.start()
    held.wait(SECONDS)
    fork(lambda: meet() == [0, 1, 2])
    release.set()
    holder.join(SECONDS)


def test_fork_in_the_middle_of_a_call() -> None:
    """The child has no helpers: it says so, and does not wait for them. The parent goes on."""
    set_num_threads(2)
    caller, parent, meeting = threading.get_ident(), os.getpid(), threading.Barrier(2)
    children: list[int] = []

    def work(start: int, stop: int) -> int:
        meeting.wait(SECONDS)
        if threading.get_ident() == caller:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This process", DeprecationWarning)
                children.append(os.fork())
            if os.getpid() != parent:
                return start
        if threading.get_ident() != caller:
            time.sleep(0.1)
        return start

    try:
        result = run_chunks(work, 2, 1)
    except RuntimeError as error:
        os._exit(7 if os.getpid() != parent and "was stopped" in str(error) else 1)
    if os.getpid() != parent:
        os._exit(2)
    assert result == [0, 1]
    wait_for(children[0])


def python(code: str, **env: str) -> str:
    names = {k: v for k, v in os.environ.items() if k != "FASTDP_NUM_THREADS"} | env
    names["PYTHONPATH"] = str(Path(threads.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=names, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_import_starts_no_thread_and_needs_no_numba() -> None:
    code = "import sys, threading, fastdp.support.threads; print(threading.active_count(), 'numba' in sys.modules)"
    assert python(code) == "1 False"


def test_calls_at_and_after_the_end_of_the_interpreter() -> None:
    code = """
import atexit, threading, time
from fastdp.support.threads import run_chunks, set_num_threads
set_num_threads(3)
atexit.register(lambda: print(run_chunks(lambda a, b: a, 4, 1)))
def forever():
    while True:
        run_chunks(lambda a, b: time.sleep(0.001), 8, 1)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""
    assert python(code) == "[0, 1, 2, 3]"


# ---------------------------------------------------------------------------------------------------------------------
# how many

COUNT = "from fastdp.support.threads import get_num_threads; print(get_num_threads())"


def test_default_is_the_cpus_that_the_process_may_use() -> None:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert python(COUNT) == python(COUNT, FASTDP_NUM_THREADS="") == str(available)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_default_follows_affinity() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert python(f"import os; os.sched_setaffinity(0, [{cpu}])\n{COUNT}") == "1"


def test_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTDP_NUM_THREADS", " 5 ")
    monkeypatch.setattr(threads, "_count", None)
    assert get_num_threads() == 5
    set_num_threads(2)
    assert get_num_threads() == 2


@pytest.mark.parametrize("text", ["x", "0", "-1", "2.5", "1e3", "1_0", "٣"])
def test_bad_environment_variable(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTDP_NUM_THREADS", text)
    monkeypatch.setattr(threads, "_count", None)
    with pytest.raises(ValueError, match="must be an integer") as error:
        run_chunks(bounds, 2, 1)
    assert str(error.value) == f'FASTDP_NUM_THREADS="{text}": must be an integer >= 1'
    assert run_chunks(bounds, 1, 1) == [(0, 1)]  # nobody asked how many
    set_num_threads(2)
    assert run_chunks(bounds, 2, 1) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("n", [0, -1, 4097, 2.0, "2", None, True, False, np.True_, np.float64(2)], ids=repr)
def test_set_num_threads_refuses(n: Any) -> None:
    set_num_threads(3)
    with pytest.raises(ValueError, match="must be an integer") as error:
        set_num_threads(n)
    assert str(error.value) == f"n={n!r}: must be an integer >= 1, at most 4,096"
    assert get_num_threads() == 3


def test_set_num_threads_takes_numpy_integers() -> None:
    set_num_threads(np.int64(4))  # type: ignore[arg-type]
    assert get_num_threads() == 4
    assert type(get_num_threads()) is int
