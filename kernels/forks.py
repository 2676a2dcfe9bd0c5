"""What a fork waits for, so that its child finds the importer and the compiler whole.

A child has one thread. What another thread of its parent held at the fork is held in the child for ever: the lock of a
module that was being imported, the compiler's lock. So a fork waits until no other thread imports fastdp or what it
rests on, and until the kernel that another thread compiles is done. support/processes.py registers the three hooks.
"""

from __future__ import annotations

import _imp
import sys
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic, sleep
from types import FrameType
from typing import Any, NoReturn

_OURS = frozenset(
    {"fastdp", "numba", "llvmlite", "numpy"}
)  # what a first call imports; others' imports may wait for us
_LONGEST = 60.0  # seconds: the longest kernel takes 7; after that the child goes without a compiler
_PAUSE = 0.001

# A thread that holds the lock of a module, or is about to take it, is in one of these functions of importlib. Both
# begin by taking the importer's own lock, which is held over the fork: so none enters them after the last look.
_IMPORTERS = frozenset({"_find_and_load", "_lock_unlock_module"})
_IMPORTLIB: str = import_module.__globals__["_bootstrap"]._find_and_load.__code__.co_filename


def _imports_elsewhere() -> bool:
    """Whether another thread is in the middle of an import of ours."""
    here = get_ident()  # a thread that forks while it imports goes on importing, in parent and child
    return any(_imports(frame) for thread, frame in sys._current_frames().items() if thread != here)


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        importing = code.co_name in _IMPORTERS and code.co_filename == _IMPORTLIB
        if importing and str(frame.f_locals.get("name")).partition(".")[0] in _OURS:
            return True
        frame = frame.f_back
    return False


class _Compiler:
    """The locks of numba and llvmlite. Both are re-entrant: a thread that forks while it compiles goes on compiling."""

    def __init__(self, numba: Any, llvmlite: Any) -> None:
        self._locks = [lock for lock in (numba, llvmlite) if lock is not None]

    def hold(self, seconds: float) -> bool:
        """Wait for the kernel that is being compiled; False if that takes too long."""
        for i, lock in enumerate(self._locks):
            if not lock._lock.acquire(timeout=max(0.0, seconds)):
                self._release(i)
                return False
        return True

    def release(self) -> None:
        self._release(len(self._locks))

    def _release(self, held: int) -> None:
        for lock in reversed(self._locks[:held]):
            lock._lock.release()

    def give_up(self) -> None:
        """In a child that was forked in the middle of a compilation: an error, where there would be a hang."""
        for lock in self._locks:
            if lock._lock.acquire(blocking=False):
                lock._lock.release()
            else:
                lock._lock = _Lost()


class _Lost:
    """The lock of a compiler that was lost."""

    def acquire(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "this process was forked while another thread was compiling, so it cannot compile or load a kernel; call "
            "fastdp.warmup() before forking, or start processes with the method 'spawn'"
        )

    def release(self) -> None:
        """It was not acquired."""

    def _is_owned(self) -> bool:
        return False


_compiler: _Compiler | None = None  # once it has been imported
_held: list[Callable[[], None]] = []  # what ends the present fork; changed by whoever holds the importer's lock


def guard(numba: Any, llvmlite: Any) -> None:
    """Let forks wait for the owners of these locks."""
    global _compiler
    _compiler = _Compiler(numba, llvmlite)


class _Logging:
    """The lock of the module logging, which its own hooks hold over a fork, and which imports and compilations take.

    It is let go while others are waited for. It is taken before the importer's lock, as logging itself does.
    """

    def __init__(self) -> None:
        self._lock = self._find()
        self._there = self._lock is not None  # else its hook comes too late for this fork, but for its second half
        owned = self._lock is not None and self._lock._is_owned()  # its hook has been run
        self._saved = self._lock._release_save() if owned else None

    @staticmethod
    def _find() -> Any:
        logging = sys.modules.get("logging")
        complete = logging is not None and not getattr(logging.__spec__, "_initializing", False)
        return getattr(logging, "_lock", None) if complete else None

    def acquire(self) -> None:
        if self._saved is not None:
            self._lock._acquire_restore(self._saved)
            return
        self._lock = self._find()
        if self._lock is not None:
            self._lock.acquire()

    def release(self) -> None:
        if self._saved is not None:
            self._saved = self._lock._release_save()
        elif self._lock is not None:
            with suppress(RuntimeError):  # the child has made it anew
                self._lock.release()

    @property
    def ours(self) -> bool:
        """Whether nobody else will release it after the fork."""
        return self._there and self._saved is None


def before() -> None:
    """Wait until the child can be made, and let nobody begin what it would miss."""
    end = monotonic() + _LONGEST
    logging = _Logging()
    while True:
        while _imports_elsewhere() and monotonic() < end:
            sleep(_PAUSE)
        compiler = _compiler
        compiler_held = compiler is not None and compiler.hold(end - monotonic())
        logging.acquire()
        _imp.acquire_lock()
        if monotonic() >= end or (compiler is _compiler and not _imports_elsewhere()):
            break
        _imp.release_lock()
        logging.release()
        if compiler is not None and compiler_held:
            compiler.release()
    if compiler is not None and compiler_held:
        _held.append(compiler.release)
    if logging.ours:
        _held.append(logging.release)
    _held.append(_imp.release_lock)


def in_parent() -> None:
    while _held:
        _held.pop()()


def in_child() -> None:
    in_parent()
    if _compiler is not None:
        _compiler.give_up()
