"""What a benchmark case is: every measured claim of this library is one `Case`, in one list, for tests and benchmarks.

A case owes its readers: the work in words, both sides prepared so that a call does the work and nothing else, the
oracle that the tests hold its output against, and the targets it was asked to meet. It measures nothing itself
(`measure.py` does) and never hides a row that falls short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from ..harness.environments import PEERS
from .traffic import Traffic

SIMD_LEVELS = ("avx512", "avx2")
"""The machines that targets are stated for."""

ROOMS = ("noise", "accounting", "selection", "answering", "optimizing", "learning")
"""One module of this package each; a room's `CASES` are its part of the registry."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class Side:
    """One way of doing a case's work.

    `make(n)` prepares the work on n elements (arrays filled, mechanisms built) and returns a call that does it once.
    """

    name: str
    make: Callable[[int], Call]
    n: int | None = None  # measured on so many elements where the case's own n would take minutes
    threads: int = 1


@dataclass(frozen=True)
class PeerSide:
    """The same work by another library: its own process, in an environment of its own, prepares a task and calls it."""

    name: str
    peer: str  # of `environments.PEERS`; its file in `peers/` holds the task
    task: str
    n: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    threads: int = 1


Rival = Side | PeerSide


def beside(peer: str, task: str, n: int | None = None, /, **parameters: Any) -> PeerSide:
    """A task of another library, in its own environment."""
    if peer not in PEERS:
        raise ValueError(f"peer={peer!r}: must be one of {', '.join(PEERS)}")
    return PeerSide(PEERS[peer].title, peer, task, n, MappingProxyType(parameters))


@dataclass(frozen=True)
class Target:
    """What a case must reach, for every SIMD level.

    faster    at least so many times as fast as the rival, per element
    within    at most so many times the rival's time, per element
    seconds   at most so many seconds a call; no rival
    """

    kind: Literal["faster", "within", "seconds"]
    rival: str | None
    limits: Mapping[str, float]

    def __post_init__(self) -> None:
        if set(self.limits) != set(SIMD_LEVELS):
            raise ValueError(f"limits={dict(self.limits)}: must name {' and '.join(SIMD_LEVELS)}")
        if (self.rival is None) != (self.kind == "seconds"):
            raise ValueError(f"rival={self.rival!r}: must be None for kind='seconds' and for no other kind")


def faster(rival: str, *, avx512: float, avx2: float) -> Target:
    return Target("faster", rival, MappingProxyType({"avx512": avx512, "avx2": avx2}))


def within(rival: str, times: float) -> Target:
    return Target("within", rival, MappingProxyType(dict.fromkeys(SIMD_LEVELS, times)))


def within_seconds(limit: float) -> Target:
    return Target("seconds", None, MappingProxyType(dict.fromkeys(SIMD_LEVELS, limit)))


@dataclass(frozen=True)
class Case:
    """One piece of work, the other ways of doing it, and what it must reach."""

    name: str  # unique; the id in pytest and in --only
    room: str
    work: str  # as the table prints it, with its parameters
    n: int  # elements a call; times are given per call and per element
    ours: Side
    rivals: tuple[Rival, ...]
    targets: tuple[Target, ...]
    oracle: str  # what tests/bench/oracles holds `drawn` against
    drawn: Callable[[int], Any]  # what one call of ours at size n produced, in the oracle's terms
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    calls: int = 1  # calls in one timed round, where a single one is too short for the clock
    clock: Literal["call", "child"] = "call"  # "child": a call returns the seconds that a new process measured itself
    rounds: int | None = None  # at most, where one takes long
    headline: bool = False  # one of the dozen that plain `fastdp bench` shows
    traffic: Traffic | None = None  # of an element; None where bytes and random words are not what limits one thread

    def __post_init__(self) -> None:
        names = [side.name for side in self.rivals]
        if len(set(names)) != len(names):
            raise ValueError(f"rivals={names}: must differ in name")
        for target in self.targets:
            if target.rival is not None and target.rival not in names:
                raise ValueError(f"rival={target.rival!r}: must be one of {names}")


Pair = tuple[Rival | None, Target | None]  # another way of doing the work, and what a case must reach beside it, if any


def make_case(
    room: str,
    name: str,
    work: str,
    n: int,
    make: Callable[[int], Call],
    *pairs: Pair,
    oracle: str,
    drawn: Callable[[int], Any],
    calls: int = 1,
    clock: Literal["call", "child"] = "call",
    rounds: int | None = None,
    threads: int = 1,
    headline: bool = False,
    traffic: Traffic | None = None,
    **parameters: float,
) -> Case:
    """What most cases are: our side, each rival with its target, and the parameters of the work."""
    return Case(
        name=name,
        room=room,
        work=work,
        n=n,
        ours=Side("fastdp", make, threads=threads),
        rivals=tuple(side for side, _ in pairs if side is not None),
        targets=tuple(target for _, target in pairs if target is not None),
        oracle=oracle,
        drawn=drawn,
        parameters=MappingProxyType(parameters),
        calls=calls,
        clock=clock,
        rounds=rounds,
        headline=headline,
        traffic=traffic if threads == 1 else None,
    )


def with_threads(case: Case, threads: tuple[int, ...]) -> Case:
    """The case with our side, on so many threads, among the rivals: it is then timed in the same rounds."""
    if case.clock == "child":
        return case
    more = tuple(
        replace(case.ours, name=f"fastdp, {number} thread{'s' * (number > 1)}", threads=number)
        for number in threads
        if number != case.ours.threads
    )
    return replace(case, rivals=case.rivals + more)


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every room, in the order of the table."""
    return tuple(case for room in ROOMS for case in import_module(f"fastdp.bench.cases.{room}").CASES)


class Named(Protocol):
    """What can be chosen: a case, a curve."""

    @property
    def name(self) -> str: ...
    @property
    def room(self) -> str: ...


N = TypeVar("N", bound=Named)


def choose(only: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of the rooms, or with the names (or beginnings of names), that `only` lists; all when it is empty."""
    check_words(only, cases())
    return matching(only, cases())


def check_words(only: tuple[str, ...], among: tuple[Named, ...]) -> None:
    """ValueError for a word that chooses nothing; it names what is written alike, as there are too many to list."""
    names = [one.name for one in among]
    for word in only:
        if not matching((word,), among):
            rooms = ", ".join(dict.fromkeys(one.room for one in among))
            alike = get_close_matches(word, names, n=5) or names[:5]
            raise ValueError(
                f"only={word!r}: must be a room ({rooms}) or the start of a case's name, such as {', '.join(alike)}"
            )


def matching(only: tuple[str, ...], among: tuple[N, ...]) -> tuple[N, ...]:
    """Those of the rooms, or with the names, that `only` lists; all when it is empty."""
    return tuple(one for one in among if not only or any(one.room == w or one.name.startswith(w) for w in only))
