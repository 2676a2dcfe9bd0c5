"""What is heard of a run, and of its replay: every release, what it reads and every key that it takes, in order.

`Recorder` writes the transcript of a run on D. `Replayer` hears a run on a neighbour: it compares step by step, and
hands each mechanism what it read on D, so that releases return what they returned. Where the steps themselves differ
there is nothing to go on with, and it only says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.keys import Randomness
from ..randomness.rehearsal import GIVEN, STEPS, HeardRelease, Listener
from .differences import Moved, allowed_records, moved_by, records_changed
from .prices import Price, declared_norm
from .replay_report import Finding, ReplayedRead

T = TypeVar("T")

_SLACK = 1 + 2.0**-40  # of floats that a user computes: what a sum of them may be off


@dataclass(frozen=True)
class Began:
    """A release."""

    mechanism: str
    guarantee: Guarantee
    parameters: dict[str, Any]
    payers: int

    def __str__(self) -> str:
        return f"{self.mechanism} begins"


@dataclass(frozen=True)
class Read:
    """What a release reads."""

    release: int
    statistic: Any
    law: Any
    unit: float
    times: int

    def __str__(self) -> str:
        return f"release {self.release} reads"


@dataclass(frozen=True)
class Drew:
    """A key; of no release where an object, or the user, takes one by itself."""

    release: int | None

    def __str__(self) -> str:
        return "a key is taken" + ("" if self.release is None else f" by release {self.release}")


Step = Began | Read | Drew


class _Heard(HeardRelease):
    """One release of either run."""

    def __init__(self, to: Recorder | Replayer, number: int) -> None:
        self._to, self._number, self._within = to, number, True

    def drew(self) -> None:
        self._to.hears(Drew(self._number))

    def reads(self, statistic: T, law: Any, unit: float, times: int) -> T:
        found: T = self._to.reads(Read(self._number, statistic, law, unit, times))
        return found

    def ended(self, error: BaseException | None) -> None:
        self._within = False


class Recorder(Listener):
    """The transcript of a run."""

    def __init__(self, seed: int) -> None:
        self._keys = Randomness(seed)
        self.steps: list[Step] = []
        self.releases: list[Began] = []

    def key(self) -> NDArray[np.uint32]:
        return self._keys.key()

    def begins(self, mechanism: str, guarantee: Guarantee, parameters: Mapping[str, Any], payers: int) -> HeardRelease:
        began = Began(mechanism, guarantee, dict(parameters), payers)
        self.steps.append(began)
        self.releases.append(began)
        return _Heard(self, len(self.releases))

    def hears(self, step: Step) -> None:
        self.steps.append(step)

    def reads(self, read: Read) -> Any:
        self.steps.append(Read(read.release, _kept(read.statistic), read.law, read.unit, read.times))
        return read.statistic


def _kept(statistic: Any) -> Any:
    """A copy: mechanisms add noise in place."""
    return (
        statistic.copy()
        if isinstance(statistic, np.ndarray)
        else copy(statistic)
        if isinstance(statistic, list)
        else statistic
    )


@dataclass
class Replayer(Listener):
    """A run on a neighbour, beside the transcript of the run before."""

    recorded: Recorder
    seed: int
    neighbors: Neighbors
    findings: list[Finding] = field(default_factory=list)
    reads_heard: list[ReplayedRead] = field(default_factory=list)
    lost: bool = False  # where steps have differed: nothing is compared from there on
    not_compared: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keys = Randomness(self.seed)
        self._at = 0
        self._began = 0
        self._prices: dict[int, Price] = {}
        self._records: dict[int, int] = {}  # of each release, how many steps of a counter were others

    def key(self) -> NDArray[np.uint32]:
        return self._keys.key()

    # --- steps

    def begins(self, mechanism: str, guarantee: Guarantee, parameters: Mapping[str, Any], payers: int) -> HeardRelease:
        self._began += 1
        then = self._expected(Began(mechanism, guarantee, dict(parameters), payers))
        if isinstance(then, Began):
            self._compare_charges(then, guarantee, parameters, payers)
        return _Heard(self, self._began)

    def hears(self, step: Step) -> None:
        self._expected(step)

    def reads(self, read: Read) -> Any:
        then = self._expected(read)
        if not isinstance(then, Read):
            return read.statistic
        self._compare(then, read)
        return read.statistic if read.law == GIVEN else _kept(then.statistic)

    def ends(self) -> None:
        """The run has returned: what is left of the transcript, and what its releases cost."""
        if not self.lost and self._at < len(self.recorded.steps):
            left = self.recorded.steps[self._at]
            self._find("order", None, f"the run ends where before {left}")
        for number, price in self._prices.items():
            began = self.recorded.releases[number - 1]
            if text := price.beyond(self._stated(began.guarantee)):
                self._find("price", number, text)

    def _expected(self, step: Step) -> Step | None:
        """What was heard at this place before; None where nothing can be compared any more."""
        if self.lost:
            return None
        steps = self.recorded.steps
        then = steps[self._at] if self._at < len(steps) else None
        self._at += 1
        if then is None or type(then) is not type(step) or _label(then) != _label(step):
            before = "the run had ended" if then is None else str(then)
            self._find("order", self._began or None, f"{step}, where before {before}")
            self.lost = True
            return None
        return then

    # --- comparisons

    def _find(self, kind: str, release: int | None, text: str) -> None:
        mechanism = "" if release is None else self._mechanism(release)
        self.findings.append(Finding(kind, release, mechanism, text))

    def _mechanism(self, release: int) -> str:
        known = self.recorded.releases
        return known[release - 1].mechanism if release <= len(known) else ""

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee for the relation of the two inputs."""
        return guarantee.to_replace_one() if self.neighbors == "replace-one" else guarantee

    def _compare_charges(self, then: Began, guarantee: Guarantee, given: Mapping[str, Any], payers: int) -> None:
        number = self._began
        if self.neighbors == "add-remove" and guarantee.neighbors == "replace-one":
            self._find("charge", number, "its guarantee is for replace-one: it says nothing of these two inputs")
        if guarantee != then.guarantee:
            self._find("charge", number, f"{guarantee} is charged, and {then.guarantee} was")
        if payers != then.payers:
            self._find("charge", number, f"{payers} budgets are charged, and {then.payers} were")
        for name in sorted({*given, *then.parameters}):
            before, after = then.parameters.get(name), given.get(name)
            if before != after:
                self._find("parameters", number, f"{name}={after!r}, and it was {before!r}: computed from the records?")

    def _compare(self, then: Read, now: Read) -> None:
        if isinstance(now.law, str):
            self._compare_records(then, now)
            return
        moved = moved_by(then.statistic, now.statistic)
        if isinstance(moved, str):
            self._find("shape", now.release, f"what it reads {moved}")
            return
        began = self.recorded.releases[now.release - 1]
        norm, size = declared_norm(now.law, moved)
        declared = began.parameters.get("sensitivity")
        twice = 2 if self.neighbors == "replace-one" and began.guarantee.neighbors == "add-remove" else 1
        if declared is not None and size > twice * declared * _SLACK:
            self._find(
                "statistic", now.release, f"what it reads moved by {size:.6g} in {norm}; sensitivity={declared:g}"
            )
        price = self._prices.setdefault(now.release, Price())
        cost = price.add(now.law, moved, now.unit, now.times, again=self._is_after_a_read(now.release))
        limit = None if declared is None else twice * declared
        self.reads_heard.append(ReplayedRead(now.release, began.mechanism, norm, size, limit, cost))

    def _is_after_a_read(self, release: int) -> bool:
        """Whether no key was taken since this release read before: two blocks of one choice."""
        before = self.recorded.steps[self._at - 2] if self._at > 1 else None
        return isinstance(before, Read) and before.release == release

    def _compare_records(self, then: Read, now: Read) -> None:
        number = now.release
        mechanism = self.recorded.releases[number - 1].mechanism
        if now.law == STEPS:
            moved = moved_by(then.statistic, now.statistic)
            if isinstance(moved, str):
                self._find("shape", number, f"what it reads {moved}")
                return
            changed: tuple[int, int] | None = (_rows_apart(then.statistic, now.statistic, moved),) * 2
            self._records[number] = self._records.get(number, 0) + (changed[0] if changed else 0)
            changed, most = (self._records[number],) * 2, 1
        else:
            changed, most = records_changed(then.statistic, now.statistic), allowed_records(now.statistic)
        if changed is None:
            self.not_compared.append(f"the records of release {number}, {mechanism}: they are not in this process")
            return
        found = max(changed) if self.neighbors == "replace-one" or now.law == STEPS else sum(changed)
        if found > most:
            self._find("records", number, f"{found:,} of the records that it reads are others; neighbours have {most}")
        self.reads_heard.append(ReplayedRead(number, mechanism, "records", found, most, ""))


def _rows_apart(then: Any, now: Any, moved: Moved) -> int:
    """In how many steps what is given to a counter differs: a number or a vector each."""
    if moved.nothing:
        return 0
    a, b = np.asarray(then), np.asarray(now)
    if a.ndim == 0:
        return 1
    return int(np.count_nonzero((a != b).reshape(len(a), -1).any(axis=1)))


def _label(step: Step) -> Any:
    if isinstance(step, Began):
        return step.mechanism
    return step.release if isinstance(step, Drew) else (step.release, _kind(step.law))


def _kind(law: Any) -> str:
    return law if isinstance(law, str) else type(law).__name__
