"""Where releases are heard, so that a run can be replayed with its outputs frozen: for fastdp.audit alone.

Off, it costs one comparison a key. On, every key of this context is of a seed, whatever the code asks for, and each
guarantee states so: nothing that is released in a rehearsal is private, or looks as if it were. Nothing but
`fastdp.audit.replay` opens one, for the length of one call; other threads and contexts go on as ever.

A mechanism says what it is about to add noise to, or to choose from, by `ChargedKeys.reads`. That returns what the
mechanism goes on with: in a replay, what was read then. A release is a function of its key and of that, so with both as
they were, its output is, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee

T = TypeVar("T")


class HeardRelease(ABC):
    """One release that is heard."""

    @abstractmethod
    def drew(self) -> None:
        """It has taken a key."""

    @abstractmethod
    def reads(self, statistic: T, law: Any, unit: float, times: int) -> T:
        """What it goes on with instead of `statistic`."""

    @abstractmethod
    def ended(self, error: BaseException | None) -> None:
        """Its block has ended; objects may read on."""


def read_on(heard: HeardRelease | None, statistic: T, law: Any = None, unit: float = 1.0, times: int = 1) -> T:
    """What an object goes on with that reads after its release was charged: `statistic`, unless it is replayed."""
    return statistic if heard is None else heard.reads(statistic, law, unit, times)


class Listener(ABC):
    """Who hears the releases of a context, and gives them their keys."""

    @abstractmethod
    def key(self) -> NDArray[np.uint32]:
        """The next key, of a seed."""

    @abstractmethod
    def begins(self, mechanism: str, guarantee: Guarantee, parameters: Mapping[str, Any], payers: int) -> HeardRelease:
        """A release begins, and so many budgets are charged."""


class _Rehearsal:
    """One block of `heard_by`: copies of its context, which tasks have, outlive it, and hear nothing then."""

    __slots__ = ("listener",)

    def __init__(self, listener: Listener) -> None:
        self.listener: Listener | None = listener


_current: ContextVar[_Rehearsal | None] = ContextVar("fastdp rehearsal", default=None)
open_rehearsals: set[_Rehearsal] = set()  # in this process: what is asked first; add and discard are atomic


def listener() -> Listener | None:
    """Who hears this context."""
    if not open_rehearsals:
        return None
    rehearsal = _current.get()
    return None if rehearsal is None else rehearsal.listener


@contextmanager
def heard_by(one: Listener) -> Iterator[None]:
    """Let it hear this context for the length of the block."""
    if listener() is not None:
        raise RuntimeError("a run is being replayed here already: an audit inside of what is audited hears nothing")
    rehearsal = _Rehearsal(one)
    token = _current.set(rehearsal)
    open_rehearsals.add(rehearsal)
    try:
        yield
    finally:
        open_rehearsals.discard(rehearsal)
        rehearsal.listener = None
        _current.reset(token)


# Laws of what is read where no plan says how far it may move: records, or the steps of a counter, of which neighbours
# differ in one. GIVEN are records of which the statistic that meets noise is read, too: they are compared, and the
# mechanism goes on with those that it has.
RECORDS, STEPS, GIVEN = "records", "steps", "given"
