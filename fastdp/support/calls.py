"""The public call that is under way: the relation that it was asked for, and which of the records it reads.

A part of a partition, and the rows that are kept of each person, have a private number of records: whatever reads them
must be asked for add-remove neighbours. What it releases is charged to that part, and for a person. parts_read.py sees
to all of it, where records are opened and where releases are charged, so that no function in between can forget it.
../records/partition.md says why that is what has to be seen to, ../records/persons.md what a person costs.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, NamedTuple

from . import parameters
from .parameters import NEIGHBORS

PartPath = tuple[tuple[str, str], ...]  # of nested partitions, the outermost first: which partition, which of its parts


class Persons(NamedTuple):
    """Records of which each person has a few: which choice of them this is, who a person is, and how many."""

    number: str
    unit: str
    at_most: int


class Which(NamedTuple):
    """Which of the records are read, where their number is private."""

    part: PartPath = ()
    persons: Persons | None = None


ALL = Which()


class OfPersons:
    """What may be records of persons, and is told from other data by its type."""

    __slots__ = ()
    which: Which


_current: ContextVar[Call | None] = ContextVar("fastdp call", default=None)


class Call:
    """One call of a public function, for as long as it runs."""

    __slots__ = ("_token", "neighbors", "which")

    def __init__(self, neighbors: Any) -> None:
        if isinstance(neighbors, str) and neighbors not in NEIGHBORS:  # of persons, which only the records decide
            parameters.neighbors(neighbors)
        self.neighbors = neighbors
        self.which = ALL
        self._token: Token[Call | None] | None = None

    def __enter__(self) -> Call:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)


def current() -> Call | None:
    """The call that this context is in; it may be one around a user's callback: parts_read.py tells."""
    return _current.get()
