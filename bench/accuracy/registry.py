"""What an accuracy task is: every figure of accuracy that this library claims is one `Task`, in one list.

A task is a function of a seed, decorated with `task`, in the module of its topic. It answers with a number, or with
numbers by side where it runs other methods on the same records; medians over the seeds stand in the table. It states
what must be reached, and never hides a row that falls short or loses.

    @task("median-diamonds", "the median price, epsilon = 1", table="ggplot2/diamonds",
          figure="rank error / n", target=at_most(1e-5), epsilon=1.0)
    def median_price(seed: int, *, epsilon: float) -> float: ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from ..cases.registry import check_words, matching

OURS = "fastdp"
BEST = "the best other"
LEAST_SEEDS = 5
NO_TOPICS = ("registry", "datasets", "others")  # the other modules of this package

Measure = TypeVar("Measure", bound=Callable[..., Any])


@dataclass(frozen=True)
class Missing:
    """What stands for the figure of another method that has none: why."""

    why: str


Figures = float | Mapping[str, float | Missing]


@dataclass(frozen=True)
class Target:
    """At most, or at least, `limit`; where `of` names another side, so many times the figure of that side."""

    kind: Literal["at most", "at least"]
    limit: float
    of: str | None = None

    def bound(self, others: Mapping[str, float]) -> float:
        """The limit as a number, given the figures of the others."""
        if self.of is None:
            return self.limit
        return self.limit * (self.best(others)[1] if self.of == BEST else others[self.of])

    def best(self, others: Mapping[str, float]) -> tuple[str, float]:
        """The other side that comes out best, and its figure."""
        choose = min if self.kind == "at most" else max
        return choose(others.items(), key=lambda item: item[1])

    def holds(self, figure: float, bound: float) -> bool:
        return figure <= bound if self.kind == "at most" else figure >= bound


def at_most(limit: float, *, of: str | None = None) -> Target:
    return Target("at most", limit, of)


def at_least(limit: float, *, of: str | None = None) -> Target:
    return Target("at least", limit, of)


@dataclass(frozen=True)
class Reported:
    """What another method came to, measured elsewhere: its figure and where that is from."""

    name: str
    figure: float
    source: str


@dataclass(frozen=True)
class Task:
    """A piece of work on a table, what is measured of it, and what it must reach."""

    name: str  # unique; what --only names
    room: str  # the topic: the module's name
    work: str  # as the table prints it
    table: str  # the records: package/item
    figure: str  # what is measured: "mean rank error / n"
    target: Target
    measure: Callable[..., Figures]
    parameters: Mapping[str, Any]
    reported: tuple[Reported, ...] = ()
    seeds: int = LEAST_SEEDS
    full: bool = False  # takes long: --full alone runs it
    peers: tuple[str, ...] = ()  # other libraries that it runs, where --peers has installed them

    def __post_init__(self) -> None:
        if self.seeds < LEAST_SEEDS:
            raise ValueError(f"seeds={self.seeds}: must be >= {LEAST_SEEDS}")
        if not self.target.limit > 0:
            raise ValueError(f"limit={self.target.limit!r}: must be > 0")

    def run(self, seed: int) -> dict[str, float | Missing]:
        """The figure of every side for this seed, or why it has none."""
        found = self.measure(seed, **self.parameters)
        figures = dict(found) if isinstance(found, Mapping) else {OURS: found}
        if isinstance(figures.get(OURS, Missing("")), Missing):
            raise ValueError(f"sides={list(figures)}: must name {OURS!r}, with a figure")
        return {side: each if isinstance(each, Missing) else float(each) for side, each in figures.items()}


_TASKS: dict[str, Task] = {}


def task(
    name: str,
    work: str,
    *,
    table: str,
    figure: str,
    target: Target,
    reported: tuple[Reported, ...] = (),
    seeds: int = LEAST_SEEDS,
    full: bool = False,
    peers: tuple[str, ...] = (),
    **parameters: Any,
) -> Callable[[Measure], Measure]:
    """Make a function of a seed, and of these parameters, a task of the registry; it may be several tasks."""

    def register(measure: Measure) -> Measure:
        if name in _TASKS:
            raise ValueError(f"name={name!r}: must be unique; {_TASKS[name].measure.__module__} has it")
        _TASKS[name] = Task(
            name=name,
            room=measure.__module__.rpartition(".")[2],
            work=work,
            table=table,
            figure=figure,
            target=target,
            measure=measure,
            parameters=MappingProxyType(parameters),
            reported=reported,
            seeds=seeds,
            full=full,
            peers=peers,
        )
        return measure

    return register


def topics() -> tuple[str, ...]:
    """The modules of this package that define tasks, in alphabetical order."""
    package = import_module(__package__ or "")
    return tuple(sorted(one.name for one in pkgutil.iter_modules(package.__path__) if one.name not in NO_TOPICS))


@cache
def tasks() -> tuple[Task, ...]:
    """Every task of every topic, in the order of the table."""
    for topic in topics():
        import_module(f"{__package__}.{topic}")
    order = {topic: i for i, topic in enumerate(topics())}
    return tuple(sorted((one for one in _TASKS.values() if one.room in order), key=lambda one: order[one.room]))


def choose(only: tuple[str, ...], *, full: bool) -> tuple[Task, ...]:
    """The tasks of the topics, or with the names, that `only` lists; ValueError for a word that chooses none."""
    check_words(only, tasks())
    chosen = tuple(one for one in matching(only, tasks()) if full or not one.full)
    for word in only:
        if not matching((word,), chosen):
            raise ValueError(f"only={word!r}: takes long, and must come with full=True (--full)")
    return chosen
