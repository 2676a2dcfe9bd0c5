"""Blocks of budgets, interrupted at every instruction: open as long as their with statement, charged to all around."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import contextvars
import gc
import inspect
import random
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import pytest

import fastdp
from fastdp import Budget, PrivacyWarning
from fastdp.privacy import blocks

OURS = (blocks.__file__, sys.modules["fastdp.privacy.budget"].__file__)
SHARE = 2.0**-20


class Interrupt(BaseException):
    """What Ctrl-C raises, at an instruction of our choice."""


def lap() -> None:
    fastdp.laplace(0, sensitivity=1, epsilon=SHARE)


def charged(budget: Budget) -> int:
    """How many releases it is charged by one that is made here."""
    before = budget.spent
    lap()
    return round((budget.spent.epsilon - before.epsilon) / SHARE)  # type: ignore[attr-defined]


def interrupted(at: int, code: CodeType, call: Callable[[], object]) -> tuple[bool, BaseException | None]:
    """Raise at instruction `at` of all that `code` and the machinery of blocks execute; whether there was one."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code is not code and frame.f_code.co_filename not in OURS:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == at:
                raise Interrupt
        return trace

    def apart() -> Iterator[object]:
        """What CPython does not take back, where an instruction of a handler fails, is this generator's."""
        yield call()

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        next(apart())
    except Interrupt as error:
        return True, error
    finally:
        sys.settrace(before)
    return False, None


def enter_and_leave(budget: Budget) -> None:
    with budget:
        pass


def enter_and_fail(budget: Budget) -> None:
    with contextlib.suppress(KeyError), budget:
        raise KeyError


def enter_twice(budget: Budget) -> None:
    for _ in range(2):
        with budget:
            pass


def enter_and_return(budget: Budget) -> int:
    with budget as opened:
        return opened.delta == 0


def enter_in_a_generator(budget: Budget) -> None:
    def opened() -> Iterator[None]:
        with budget:
            yield

    for _ in opened():
        pass


@pytest.mark.parametrize(
    "use",
    [enter_and_leave, enter_and_fail, enter_twice, enter_and_return, enter_in_a_generator],
    ids=lambda f: f.__name__,
)
def test_an_interrupt_at_any_instruction_leaves_nothing_open(use: Callable[[Budget], object]) -> None:
    """And the block around it stays open. The tracebacks of all interrupts are kept, as a shell keeps the last one."""
    kept = []
    outer, instruction = Budget(epsilon=1), 0
    code = next((each for each in use.__code__.co_consts if isinstance(each, CodeType)), use.__code__)
    with outer:
        while True:
            instruction += 1
            budget = Budget(epsilon=1)
            there_was_one, error = interrupted(instruction, code, lambda: use(budget))  # noqa: B023
            kept.append(error)
            assert (charged(outer), charged(budget)) == (1, 0), instruction
            with budget:
                assert (charged(outer), charged(budget)) == (1, 1), instruction
            assert (charged(outer), charged(budget)) == (1, 0), instruction
            if not there_was_one:
                break
    assert instruction > 100
    assert charged(outer) == 0
    assert not blocks.counting(None)


@pytest.mark.parametrize("seed", range(3))
def test_interrupts_by_a_timer(seed: int) -> None:
    """The same from a signal handler, at random moments, and at times once more while the first is on its way."""
    rng, outer, interrupts, left = random.Random(seed), Budget(epsilon=1), 0, 0

    def handler(*_: object) -> None:
        nonlocal left
        if left:
            left -= 1
            if left:
                signal.setitimer(signal.ITIMER_REAL, 1e-6)
            raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with outer:
            for _ in range(3000):
                budget = Budget(epsilon=1)
                left = rng.choice([1, 1, 2])
                for _ in range(3):  # as often as it takes, as the last line may be interrupted, too
                    try:
                        if left:
                            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 6e-5))
                            for _ in range(8):
                                enter_and_leave(budget)
                                enter_and_fail(budget)
                        left = 0
                    except Interrupt:
                        interrupts += 1
                assert charged(outer) == 1
                assert charged(budget) == 0
    finally:
        left = 0
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 300
    assert not blocks.counting(None)


def test_an_interrupt_where_exit_begins() -> None:
    """What no `__exit__` in Python can do anything about: the interrupt comes before its first instruction."""

    class Interrupted(Budget):
        __slots__ = ()

        def __exit__(self, *error: object) -> None:
            raise Interrupt

    ours, theirs = Budget(epsilon=1), Interrupted(epsilon=1)
    close = blocks._close
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_close", Interrupted.__exit__)
        with pytest.raises(Interrupt), ours:
            pass
    assert close is blocks._close
    assert charged(ours) == 0
    with pytest.raises(Interrupt), theirs:
        pass
    assert charged(theirs) == 1  # a class that overrides `__exit__` has to call ours
    Budget.__exit__(theirs, None, None, None)
    assert charged(theirs) == 0


def test_interrupted_blocks_of_tasks_and_copies_are_told_apart() -> None:
    """What was begun inside of a block stays charged, also where the block itself was closed by its end alone."""
    budget, copies = Budget(epsilon=1), []

    def use() -> None:
        with budget:
            copies.append(contextvars.copy_context())
            charged(budget)

    last = 0
    while interrupted(last + 1, use.__code__, use)[0]:
        last += 1
        assert charged(budget) == 0
    assert len(copies) > 3
    assert all(copy.run(charged, budget) == 1 for copy in copies)
    assert all(copy.run(charged, budget) == 1 for copy in copies)
    assert charged(budget) == 0


def test_a_task_that_another_task_closes() -> None:
    """An asynchronous generator may be closed by a task that has not opened it."""
    budget = Budget(epsilon=1)

    async def opened() -> Any:
        with budget:
            yield

    async def main() -> None:
        generator = opened()
        await generator.__anext__()
        assert charged(budget) == 1
        await asyncio.create_task(generator.aclose())
        assert charged(budget) == 0

    asyncio.run(main())


def test_an_abandoned_generator_closes_its_block() -> None:
    budget = Budget(epsilon=1)

    def opened() -> Iterator[None]:
        with budget:
            yield

    generator = opened()
    next(generator)
    assert charged(budget) == 1
    del generator
    gc.collect()
    assert charged(budget) == 0


# --- calls without a with statement


def test_exit_stacks_and_plain_calls() -> None:
    budget = Budget(epsilon=1)
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(budget) is budget
        assert charged(budget) == 1
    assert charged(budget) == 0
    budget.__enter__()
    gc.collect()
    assert charged(budget) == 1
    budget.__exit__(None, None, None)
    assert charged(budget) == 0
    budget.__exit__(None, None, None)  # again, which does nothing
    close = budget.__exit__
    budget.__enter__()
    assert charged(budget) == 1
    del close  # whatever becomes of it
    gc.collect()
    assert charged(budget) == 1
    Budget.__exit__(budget, None, None, None)
    assert charged(budget) == 0


def test_a_with_statement_alone_closes_what_it_has_opened() -> None:
    budget = Budget(epsilon=1)
    with budget:
        for close in (budget.__exit__, lambda *error: Budget.__exit__(budget, *error)):
            with pytest.raises(RuntimeError, match="closes where that ends"):
                close(None, None, None)
        assert charged(budget) == 1
    assert charged(budget) == 0


def test_looking_exit_up_changes_nothing() -> None:
    budget = Budget(epsilon=1)
    assert hasattr(budget, "__exit__")
    assert isinstance(budget, contextlib.AbstractContextManager)
    assert list(inspect.signature(Budget.__exit__).parameters) == ["self", "kind", "error", "traceback"]
    assert inspect.getdoc(Budget.__exit__)
    assert callable(budget.__exit__)
    with budget:
        assert hasattr(budget, "__exit__")
        assert charged(budget) == 1
    assert charged(budget) == 0


def test_a_subclass_may_wrap_both() -> None:
    calls = []

    class Mine(Budget):
        def __enter__(self) -> Any:
            calls.append("enter")
            return super().__enter__()

        def __exit__(self, *error: Any) -> None:
            calls.append("exit")
            super().__exit__(*error)

    budget = Mine(epsilon=1)
    with budget:
        assert charged(budget) == 1
    assert charged(budget) == 0
    assert calls == ["enter", "exit"]


def test_a_budget_is_freed_without_the_collector() -> None:
    budget = Budget(epsilon=1)
    with budget:
        pass
    seen = weakref.ref(budget)
    gc.disable()
    try:
        del budget
        assert seen() is None
    finally:
        gc.enable()


def test_one_of_many_threads_at_most_opens_it() -> None:
    for _ in range(50):
        budget, start, opened = Budget(epsilon=1), threading.Barrier(4), []

        def enter() -> None:
            start.wait()  # noqa: B023
            with contextlib.suppress(RuntimeError), budget:  # noqa: B023
                opened.append(1)  # noqa: B023
                stop.wait(1800)  # noqa: B023

        stop = threading.Event()
        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        stop.set()
        for thread in threads:
            thread.join()
        with budget:
            assert charged(budget) == 1


# --- threads that `threading` has not made


def run_raw(function: Callable[[], object]) -> Any:
    """Call it in a thread of `_thread`; its error or None."""
    done, outcome = _thread.allocate_lock(), []

    def run() -> None:
        try:
            function()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(run, ())
    done.acquire()
    return outcome[0]


def test_raw_threads() -> None:
    go, ready, done = (threading.Event() for _ in range(3))
    outcome: list[type] = []

    def older() -> None:
        ready.set()
        go.wait()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lap()
        outcome.extend(each.category for each in caught)
        done.set()

    _thread.start_new_thread(older, ())
    ready.wait()
    budget = Budget(epsilon=1)
    with budget:
        assert isinstance(run_raw(lap), RuntimeError)
        assert run_raw(lambda: fastdp.laplace(0, sensitivity=1, epsilon=SHARE, budget=budget)) is None
        go.set()
        done.wait()
    assert outcome == [PrivacyWarning]
    assert run_raw(lap) is None
    assert len(budget.releases) == 1


def test_other_tasks_of_the_same_thread_are_left_alone() -> None:
    """A server's tasks that were there before have budgets of their own, or none."""
    budget = Budget(epsilon=1)

    async def other(go: asyncio.Event) -> None:
        await go.wait()
        lap()

    async def main() -> None:
        go = asyncio.Event()
        task = asyncio.create_task(other(go))
        await asyncio.sleep(0)
        with budget:
            go.set()
            await task

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
    assert not budget.releases


@pytest.mark.parametrize("way", ["nothing", "budget"])
def test_a_vote_of_estimators_in_threads(way: str) -> None:
    """scikit-learn fits them in threads that it starts inside of the block."""
    joblib, ensemble = pytest.importorskip("joblib"), pytest.importorskip("sklearn.ensemble")
    from sklearn.base import clone

    from tests.sklearn.cases import cases

    estimator, X, y = cases()[2]
    budget = Budget(epsilon=1, delta=1e-5)
    each = clone(estimator).set_params(epsilon=0.25, delta=1e-7, budget=budget if way == "budget" else None)
    vote = ensemble.VotingClassifier([("a", each), ("b", clone(each))], n_jobs=2)
    with budget, joblib.parallel_backend("threading"):
        if way == "budget":
            vote.fit(X, y)
        else:
            with pytest.raises(RuntimeError, match="started while a Budget block is open"):
                vote.fit(X, y)
    assert len(budget.releases) == (2 if way == "budget" else 0)
