"""The public call that is under way: the relation that it was asked for, and the part of a partition that it reads.

A part has a private number of records, so whatever reads one must be asked for add-remove neighbours; and what it
releases is charged to that part. parts_read.py sees to both, where records are opened and where releases are charged,
so that no function in between can forget them. ../records/partition.md says why that is what has to be seen to.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

PartPath = tuple[tuple[str, str], ...]  # of nested partitions, the outermost first: which partition, which of its parts

_current: ContextVar[Call | None] = ContextVar("fastdp call", default=None)


class Call:
    """One call of a public function, for as long as it runs."""

    __slots__ = ("_token", "neighbors", "part")

    def __init__(self, neighbors: Any) -> None:
        self.neighbors = neighbors
        self.part: PartPath = ()
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
