"""What a fork waits for (kernels/forks.py); tests/machinery/forks.py forks at each stage of a first call."""

from __future__ import annotations

import importlib
import sys
import threading
import types
from pathlib import Path

import numba.core.compiler_lock
import pytest
from llvmlite.binding import ffi

from fastdp.kernels import forks

SECONDS = 1800  # against hangs alone


def test_an_import_in_another_thread_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ours alone: what else is imported may wait for this thread."""
    (tmp_path / "slow_import.py").write_text("import sys\nsys.modules['slow_events'].meet()\n")
    begun, go_on = threading.Event(), threading.Event()
    events = types.ModuleType("slow_events")
    events.meet = lambda: (begun.set(), go_on.wait(SECONDS))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "slow_events", events)
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = threading.Thread(target=importlib.import_module, args=("slow_import",))
    thread.start()
    try:
        assert begun.wait(SECONDS)
        assert not forks._imports_elsewhere()
        monkeypatch.setattr(forks, "_OURS", frozenset({"slow_import"}))
        assert forks._imports_elsewhere()
    finally:
        go_on.set()
        thread.join(SECONDS)
        sys.modules.pop("slow_import", None)
    assert not forks._imports_elsewhere()


def test_the_locks_of_this_numba_are_known() -> None:
    for lock in (numba.core.compiler_lock.global_compiler_lock, ffi.lib._lock):
        assert lock._lock.acquire(timeout=SECONDS)
        lock._lock.release()


def test_a_compiler_that_was_lost_raises_and_does_not_hang() -> None:
    free, taken = types.SimpleNamespace(_lock=threading.RLock()), types.SimpleNamespace(_lock=threading.RLock())
    holder = threading.Thread(target=taken._lock.acquire)
    holder.start()
    holder.join(SECONDS)
    compiler = forks._Compiler(free, taken)
    assert not compiler.hold(0.0)
    compiler.give_up()
    assert free._lock.acquire(timeout=SECONDS)
    with pytest.raises(RuntimeError, match=r"forked while another thread was compiling.*warmup"):
        taken._lock.acquire()


def test_a_fork_holds_its_locks_no_longer_than_it_takes() -> None:
    forks.before()
    held = len(forks._held)
    forks.in_parent()
    assert held
    assert forks._held == []
    taken: list[bool] = []

    def take() -> None:
        lock = numba.core.compiler_lock.global_compiler_lock._lock
        taken.append(lock.acquire(timeout=SECONDS))
        lock.release()
        importlib.import_module("json.tool")

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(SECONDS)
    assert taken == [True]
    assert not thread.is_alive()
