"""How a learner's method is chosen: from its table, by what is assumed of the labels and by error bounds.

A learner of a class of hypotheses has a table of methods; a row states what a method takes from public numbers, what
its error bound rests on, and when it is too much work. A new method is one file and one row.

Labels may be wrong unless the caller asserts that some hypothesis fits all records (`realizable=True`). A method that
needs this is then guarded (guard.py), and "auto" takes one that does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from ..privacy.guarantees import Guarantee
from ..support import parameters
from ..support.errors import warn_of_accuracy
from ..support.search import MOST_RECORDS, in_reach, least_integer
from .guard import Guard, split, together
from .privacy_parameters import PrivacyParameters

Rests = Literal["nothing", "a fit", "the guard"]
Comparison = Literal["class", "found"]


class LearnerProblem(Protocol):
    """What is public about a problem; n stands for the number of records where that is private. A dataclass."""

    @property
    def n(self) -> int: ...
    @property
    def privacy(self) -> PrivacyParameters: ...


class LearnerPlan(Protocol):
    """What a method takes from public numbers. `bound` counts records: the error bound, with probability 1 - beta.

    A plan whose row rests on a fit also has `candidates`: among how many the guard chooses at most. One that rests on
    its own guard has `excess`: by how many errors it may exceed the best of what the guard chooses from.
    """

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
    rests     what the error bound rests on: "nothing", as it is about the excess over the least errors of the class,
              for any labels; "a fit", that some hypothesis is right about all records; "the guard", that of the plan
              itself, the only bound there is
    lengthy   whether "auto" should rather do without it where labels may be wrong, as it takes seconds
    share     where labels may be wrong, "auto" takes it only if its error bound is at most this share of the records or
              there is no other method: with fewer records, one that considers fewer hypotheses serves better
    """

    prepare: Callable[[ProblemT], PlanT]
    refusal: Callable[[ProblemT], str] = lambda problem: ""
    least: Callable[[ProblemT], float] = lambda problem: 0.0
    any_n: bool = False
    rests: Rests = "nothing"
    lengthy: Callable[[ProblemT], bool] = lambda problem: False
    share: float = inf

    def is_last_resort(self, bound: float, n: int, realizable: bool) -> bool:
        """Whether "auto" takes it with this error bound only if there is nothing else."""
        return not realizable and bound > self.share * n


class ErrorBounds(NamedTuple):
    """What a result states of its errors, as shares of the records, each with probability 1 - beta.

    error      at most this, if some hypothesis of the class is right about all records; 1.0 where there is no bound
    excess     for any labels: at most this more than the least errors of what it is compared with; None without bound
    compared   "class", all hypotheses; or "found", which is "true", "false" and parts of what was found
    """

    error: float
    excess: float | None
    compared: Comparison | None


class MethodChoice(NamedTuple):
    """The method that is taken, its parameters, and its guard where it has one; `rests` is that of its row."""

    method: str
    plan: Any
    guard: Guard | None = None
    rests: Rests = "nothing"
    guarantee: Any = None
    beta: float = 0.0

    @property
    def bound(self) -> float:
        """Errors, if some hypothesis fits."""
        if self.guard is None:
            return float(self.plan.bound)
        return float(self.plan.bound) + self.guard.slack(self.plan.candidates, self.beta / 2)

    def bounds(self, n: int) -> ErrorBounds:
        """As shares of n records."""
        error = min(1.0, self.bound / n)
        if self.guard is not None:
            return ErrorBounds(error, min(1.0, self.guard.slack(self.plan.candidates, self.beta) / n), "found")
        if self.rests == "the guard":
            return ErrorBounds(error, min(1.0, self.plan.excess / n), "found")
        return ErrorBounds(error, error, "class") if self.rests == "nothing" else ErrorBounds(error, None, None)

    def warn_if_vacuous(self, name: str, n: int, parameters: str) -> None:
        """A bound that says nothing is no reason to pay for a release: warned of before anything is read.

        One of all records does so. An excess of half of them does, too: "true" or "false" has no more errors.
        """
        error, excess, _ = self.bounds(n)
        if excess is not None and excess > 0.5:
            warn_of_accuracy(
                f"{name}: {n:,} records are too few for an error bound that says more than a coin does ({parameters})"
            )
        elif excess is None and error >= 1:
            warn_of_accuracy(
                f"{name}: {n:,} records are too few for an error bound below 1 ({parameters}): bounds.{name}_n "
                "computes how many it takes"
            )


def _prepared(name: str, method: Method[Any, Any], problem: Any, realizable: bool) -> MethodChoice:
    """With a guard, if its error bound rests on what nobody asserts."""
    beta = problem.privacy.beta
    if realizable or method.rests != "a fit":
        plan = method.prepare(problem)
        return MethodChoice(name, plan, None, method.rests, plan.guarantee, beta)
    rest, guard = split(problem.privacy)
    plan = method.prepare(replace(problem, privacy=rest))
    return MethodChoice(name, plan, guard, method.rests, together(problem.privacy, plan.guarantee, guard), beta)


def choose_method(
    methods: Mapping[str, Method[ProblemT, Any]], name: str, problem: ProblemT, *, realizable: bool = True
) -> MethodChoice:
    """A method, or for "auto" the one with the least error bound; ValueError if it is too much work.

    Where labels may be wrong, "auto" takes the least excess over the class, and without that a method with a guard of
    its own.
    """
    if name != "auto":
        if reason := methods[name].refusal(problem):
            raise ValueError(f"method={name!r}, {reason}")
        return _prepared(name, methods[name], problem, realizable)
    best: MethodChoice | None = None
    last_resort = False
    for each, method in methods.items():
        if not realizable and (method.rests == "a fit" or method.lengthy(problem)):
            continue
        try:
            reason = method.refusal(problem)
            if reason or (best is not None and not last_resort and method.least(problem) >= best.bound):
                continue
            found = _prepared(each, method, problem, realizable)
        except ValueError as error:  # an epsilon for which this method has no noise
            reason = str(error)
            continue
        late = method.is_last_resort(found.bound, problem.n, realizable)
        if best is None or (late, found.bound) < (last_resort, best.bound):
            best, last_resort = found, late
    if best is None:
        raise ValueError(reason)
    return best


def error_bound(
    methods: Mapping[str, Method[ProblemT, Any]], name: str, problem: ProblemT, *, realizable: bool
) -> float:
    """The error bound of a method, as a share of the records.

    1.0 for one that has none, such as "auto" takes where labels may be wrong; it is not prepared, which takes seconds.
    """
    known = {
        each: replace(method, prepare=_Unbounded) if method.rests == "the guard" else method
        for each, method in methods.items()
    }
    chosen = choose_method(known, name, problem, realizable=realizable)
    return min(1.0, chosen.bound / float(problem.n))


def least_records(
    methods: Mapping[str, Method[ProblemT, Any]], name: str, problem: ProblemT, error: float,
    *, realizable: bool = True,
) -> int:  # fmt: skip
    """How many records make the error bound at most this share of them, to a part in a thousand."""
    error = parameters.error_share(error)
    if name == "auto":
        return _least_of_all(methods, _for_auto(methods, realizable), problem, error, realizable)
    method = methods[name]
    if method.any_n:
        needed = _prepared(name, method, problem, realizable).bound / error
        if needed > MOST_RECORDS:
            raise ValueError(f"error={error!r}: is out of reach, with {MOST_RECORDS:,} records too")
        n: int = ceil(needed)
        choose_method(methods, name, replace(problem, n=n), realizable=realizable)  # ValueError if that is too much
        return n

    def enough(n: int) -> bool:
        found = choose_method(methods, name, replace(problem, n=n), realizable=realizable)
        return found.bound / n <= error

    return in_reach(
        "error", error, lambda: least_integer(enough, low=1, largest=MOST_RECORDS, within=1e-3),
        f", with {MOST_RECORDS:,} records too",
    )  # fmt: skip


def _for_auto(methods: Mapping[str, Method[Any, Any]], realizable: bool) -> Iterable[str]:
    """Those that have an error bound for such labels."""
    return [name for name, method in methods.items() if method.rests == "nothing" or realizable]


def _least_of_all(
    methods: Mapping[str, Method[ProblemT, Any]], names: Iterable[str], problem: ProblemT, error: float,
    realizable: bool,
) -> int:  # fmt: skip
    """Of the methods that apply; the last reason if none does."""
    found, reason = [], ""
    for name in names:
        small = error if realizable else min(error, methods[name].share)
        try:
            n = least_records(methods, name, problem, small, realizable=realizable)
        except ValueError as refused:
            reason = str(refused)
            if not realizable and reason.startswith(own := f"method={name!r}, "):
                reason = (
                    f"method='auto', {reason.removeprefix(own)} (no other method has a bound unless realizable=True)"
                )
            continue
        if realizable or not methods[name].lengthy(replace(problem, n=n)):
            found.append(n)
    if not found:
        raise ValueError(reason or f"error={error!r}: is out of reach: it would take seconds, which 'auto' does not")
    return min(found)


NO_BOUND = inf  # the bound of a plan that has none


@dataclass(frozen=True)
class _Unbounded:
    """The plan of a method without an error bound, as far as its error bound goes."""

    problem: Any
    guarantee: None = None
    bound: float = NO_BOUND
