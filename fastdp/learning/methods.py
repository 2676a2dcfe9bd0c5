"""How a learner's method is chosen: from its table, "auto" by the error bound that public numbers give.

A learner of a class of hypotheses has a table of methods; a row states what a method takes from public numbers, and
when it is too much work. A new method is one file and one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..privacy.guarantees import Guarantee
from ..support import parameters
from ..support.search import MOST_RECORDS, in_reach, least_integer


class LearnerProblem(Protocol):
    """What is public about a problem; n stands for the number of records where that is private. A dataclass."""

    @property
    def n(self) -> int: ...


class LearnerPlan(Protocol):
    """What a method takes from public numbers. `bound` counts records: the error bound, with probability 1 - beta."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def bound(self) -> float: ...


ProblemT = TypeVar("ProblemT", bound=Any)
PlanT = TypeVar("PlanT", bound=LearnerPlan)


@dataclass(frozen=True)
class Method(Generic[ProblemT, PlanT]):
    """A row of a learner's table.

    prepare   the parameters, the guarantee and the error bound of the method
    refusal   why it would be too much work; empty if it is not
    least     what its error bound is not below, without accounting, which takes a second
    any_n     whether the error bound is the same for any number of records
    """

    prepare: Callable[[ProblemT], PlanT]
    refusal: Callable[[ProblemT], str] = lambda problem: ""
    least: Callable[[ProblemT], float] = lambda problem: 0.0
    any_n: bool = False


class MethodChoice(NamedTuple):
    """The method that is taken, and its parameters."""

    method: str
    plan: Any

    @property
    def bound(self) -> float:
        return float(self.plan.bound)


def choose_method(methods: Mapping[str, Method[ProblemT, Any]], name: str, problem: ProblemT) -> MethodChoice:
    """A method, or for "auto" the one with the least error bound; ValueError if it is too much work."""
    if name != "auto":
        if reason := methods[name].refusal(problem):
            raise ValueError(f"method={name!r}, {reason}")
        return MethodChoice(name, methods[name].prepare(problem))
    best: MethodChoice | None = None
    for each, method in methods.items():
        try:
            reason = method.refusal(problem)
            if reason or (best is not None and method.least(problem) >= best.bound):
                continue
            found = MethodChoice(each, method.prepare(problem))
        except ValueError as error:  # an epsilon for which this method has no noise
            reason = str(error)
            continue
        if best is None or found.bound < best.bound:
            best = found
    if best is None:
        raise ValueError(reason)
    return best


def least_records(
    methods: Mapping[str, Method[ProblemT, Any]], name: str, problem: ProblemT, error: float
) -> int:  # fmt: skip
    """How many records make the error bound at most this share of them, to a part in a thousand."""
    error = parameters.error_share(error)
    if name == "auto":
        return _least_of_all(methods, problem, error)
    method = methods[name]
    if method.any_n:
        needed = method.prepare(problem).bound / error
        if needed > MOST_RECORDS:
            raise ValueError(f"error={error!r}: is out of reach, with {MOST_RECORDS:,} records too")
        n: int = ceil(needed)
        choose_method(methods, name, replace(problem, n=n))  # ValueError if that is too much work
        return n

    def enough(n: int) -> bool:
        found = choose_method(methods, name, replace(problem, n=n))
        return found.bound / n <= error

    return in_reach(
        "error", error, lambda: least_integer(enough, low=1, largest=MOST_RECORDS, within=1e-3),
        f", with {MOST_RECORDS:,} records too",
    )  # fmt: skip


def _least_of_all(methods: Mapping[str, Method[ProblemT, Any]], problem: ProblemT, error: float) -> int:
    """Of the methods that apply; the last reason if none does."""
    found, reason = [], ""
    for name in methods:
        try:
            found.append(least_records(methods, name, problem, error))
        except ValueError as refused:
            reason = str(refused)
    if not found:
        raise ValueError(reason)
    return min(found)
