"""The public call that is under way: the relation that it was asked for, and the part of a partition that it reads.

A part has a private number of records, so whatever reads one must be asked for add-remove neighbours; and what it
releases is charged to that part. Both are seen to here, where records are opened and where releases are charged, so
that no function in between can forget them. ../records/partition.md says why that is what has to be seen to.
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


def read_part(part: PartPath) -> None:
    """Let the call that is under way read a part; ValueError where it may not."""
    call = _current.get()
    if call is None or call.neighbors != "add-remove":
        given = "" if call is None or call.neighbors is None else f"={call.neighbors!r}"
        raise ValueError(
            f"neighbors{given}: must be 'add-remove' for a part of a partition, whose number of records is private"
        )
    if call.part not in ((), part):
        raise ValueError("records: are of two parts: must be of one")
    call.part = part


def part_that_is_read() -> PartPath:
    """The part that the call under way reads; empty where it reads none."""
    call = _current.get()
    return () if call is None else call.part
