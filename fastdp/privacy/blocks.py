"""Blocks: what `with budget:` opens is open exactly as long as the with statement runs, whatever interrupts it.

Python's `__exit__` may be interrupted at its first instruction, and then closes nothing. So nothing here needs it to
run. A with statement looks `__exit__` up before it calls `__enter__`, and keeps what it finds until it ends, however it
ends. `Exit` gives each statement an object of its own, the *holder*, which nothing else keeps alive; a block is open as
long as its holder lives. budget.md, "Blocks, threads, processes", states what holds.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from functools import partial
from types import FrameType
from typing import Any, Protocol, TypeVar

from ..support.errors import PrivacyWarning, levels_to_caller


class Lookup:
    """One look-up of `__exit__`: at which instruction of its frame it was."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


T = TypeVar("T")

BY_CALL = Lookup(-1)  # of blocks that no with statement has opened: they close when `__exit__` is called
_SAME_STATEMENT = 8  # bytes between the look-up and the call in a with statement; more than 10 in any other code

Holders = dict[int | None, Any]  # of look-ups not yet followed by `__enter__`, by frame; None: of a block BY_CALL


class HasBlocks(Protocol):
    """A budget."""

    @property
    def _holders(self) -> Holders: ...


class Block(weakref.ref[Any]):
    """An open block: a weak reference to its holder."""

    __slots__ = ("budget", "lookup", "older", "stays", "thread", "token")

    budget: Any
    lookup: Lookup
    token: Token[tuple[Block, ...]] | None  # of the context that it was opened in; None until it is open there
    stays: bool  # until `__exit__` is called, whatever becomes of its holder
    thread: object  # that opened it
    older: frozenset[Any]  # threads that are older than the block

    __hash__ = object.__hash__  # a dead reference that was never hashed has none, and may have to be discarded
    __eq__ = object.__eq__

    @property
    def is_open(self) -> bool:
        return self() is not None


_current: ContextVar[tuple[Block, ...]] = ContextVar("fastdp budgets", default=())  # open here, the innermost first
_open: set[Block] = set()  # open somewhere in this process; add, discard and copy are atomic


def counting(budget: HasBlocks | None) -> bool:
    """Whether a release made here and now is anybody's to count."""
    return budget is not None or bool(_open or _current.get())


# --- opening and closing


class Exit:
    """`__exit__` of budgets.

    The holder is made inside of C functions and is never in a variable: a traceback that somebody keeps would keep it.
    `contextlib.ExitStack` takes the function of the class; `__enter__` finds no holder then, and the block closes when
    the function is called.
    """

    __slots__ = ()

    def __get__(self, budget: HasBlocks | None, kind: type | None = None) -> Any:
        if budget is None:
            return _exit
        where = sys._getframe(1)
        budget._holders.pop(id(where), None)
        return budget._holders.setdefault(id(where), partial(_close, budget, Lookup(where.f_lasti)))


def open_block(budget: HasBlocks, where: FrameType) -> None:
    """What `__enter__` does, called in the frame `where`; RuntimeError if a block of this budget is open."""
    _refuse_another(budget)
    holders, key, kept = budget._holders, id(where), None
    lookup = holders[key].args[1] if key in holders else BY_CALL
    if lookup is not BY_CALL and 0 <= where.f_lasti - lookup.place <= _SAME_STATEMENT:
        block = Block(holders.pop(key), _open.discard)  # from here on the with statement alone keeps the holder
    else:
        lookup, kept = BY_CALL, partial(_exit, budget)
        block = Block(kept, _open.discard)
    block.budget, block.lookup, block.token, block.stays = budget, lookup, None, False
    block.thread, block.older = _this_thread(), _threads()
    _open.add(block)
    _refuse_another(budget, block)
    block.token = _set((block, *_current.get()))
    if kept is not None:
        holders[None], block.stays = kept, True


def _refuse_another(budget: HasBlocks, mine: Block | None = None) -> None:
    for block in _open.copy():
        if block is not mine and block.budget is budget and block.is_open:
            raise RuntimeError("this budget's block is open already; pass budget= to use it elsewhere")


def _exit(self: HasBlocks, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
    """Close the block that `__enter__` has opened."""
    _close(self, BY_CALL)


def _close(budget: HasBlocks, lookup: Lookup, *error: object) -> None:
    budget._holders.pop(id(sys._getframe(1)), None)  # where `budget.__exit__(...)` is called, this has looked it up
    here = _current.get()
    mine = [block for block in (*here, *_open.copy()) if block.budget is budget]
    closed = [block for block in mine if block.lookup is lookup is not BY_CALL]
    if not closed:
        alive = [block for block in mine if block.is_open]
        closed = [block for block in alive if block.lookup is BY_CALL]
        if alive and not closed:
            raise RuntimeError("this budget's block was opened by a with statement, and closes where that ends")
    for block in closed[:1]:
        _set(tuple([each for each in here if each is not block]))  # another task may close a generator
        if block.lookup is BY_CALL:
            budget._holders.pop(None, None)
        _open.discard(block)


def _set(blocks: tuple[Block, ...]) -> Token[tuple[Block, ...]]:
    """Set what is open here.

    Up to Python 3.11 `set` reads the values of before after it has made memory, so possibly after finalisers: one that
    sets a variable of its own frees them, and all variables seem unset then. The copy keeps them.
    """
    kept = copy_context()
    token = _current.set(blocks)
    del kept
    return token


def around() -> tuple[Block, ...]:
    """The blocks that this code is charged to, the innermost first.

    Where an interrupt has kept `_close` from doing its part, the block is taken out here. A token tells the context
    that the block was opened in from the copies that tasks have: what was begun inside of a block is charged to it, and
    stays so when the block has closed.
    """
    blocks = _current.get()
    while blocks and not (blocks[0].is_open or blocks[0].stays):
        token = blocks[0].token
        if token is not None:
            kept = copy_context()
            try:
                _current.reset(token)
            except (ValueError, RuntimeError):  # another context; or used before
                break
            finally:
                del kept
        blocks = blocks[1:]
        _set(blocks)
    return blocks


def outside_of_blocks(function: Callable[[], T]) -> T:
    """What a function returns in a copy of this context in which no block is open: for releases that are paid for."""

    def call() -> T:
        _set(())
        return function()

    return copy_context().run(call)


# --- threads


def _this_thread() -> object:
    """This thread, by identity: identifiers are used again."""
    return _local.__dict__.setdefault("me", object())


_local = threading.local()


def _threads() -> frozenset[Any]:
    """All threads that there are: those that `threading` knows by identity, others by identifier."""
    known = threading.enumerate()  # its lock may be taken again by a signal handler, and is made anew in a child
    others = sys._current_frames().keys() - {thread.ident for thread in known}
    return frozenset((*map(weakref.ref, known), *others))


def check_thread() -> None:
    """What is said of a release that no block around it is charged, while others have blocks open.

    RuntimeError in a thread that was started inside of one, a PrivacyWarning in one that is older.
    """
    elsewhere = [block for block in _open.copy() if block.is_open and block.thread is not _this_thread()]
    if not elsewhere:
        return
    thread = threading.current_thread()
    made_elsewhere = isinstance(thread, threading._DummyThread)  # not by `threading`
    here = threading.get_ident() if made_elsewhere else weakref.ref(thread)
    if not all(here in block.older or weakref.ref(thread) in block.older for block in elsewhere):
        raise RuntimeError(
            "budget: a release in a thread that was started while a Budget block is open has none to be charged to; "
            "pass budget=, open a block in the thread, or run its function by contextvars.copy_context().run, which "
            "charges it to the block that is open where the copy is made"
        )
    warnings.warn(
        "a release in a thread that is older than a Budget block which is open elsewhere is not charged to it; pass "
        "budget= to charge it",
        PrivacyWarning,
        stacklevel=levels_to_caller(),
    )
