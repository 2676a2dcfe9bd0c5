"""`fastdp bench --accuracy`: run the tasks of the accuracy registry, and set every median beside its target.

Figures of accuracy do not depend on the machine: seeds are fixed, and the same seed gives the same bits everywhere. The
tasks run in this process, one after the other; an error in one is a cell of the table, and the others go on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ...support import machine
from ...support.progress import Progress, Report, reporting
from ..accuracy import datasets
from ..accuracy.registry import OURS, Missing, Task, choose
from .environments import install
from .results import FORMAT, ResultsError, commit, now, read_json, write_lines

KIND = "accuracy"  # of the file, beside those of speed


@dataclass(frozen=True)
class Side:
    """Another method on the same task: measured in the same run, or a figure with its source."""

    name: str
    figure: float
    source: str | None = None  # None: the same run


@dataclass(frozen=True)
class AccuracyRow:
    """One line of the table: medians over seeds, and what was asked."""

    task: str
    room: str
    work: str
    table: str
    figure: str
    seeds: int
    ours: float | None
    others: tuple[Side, ...]  # best first
    kind: str
    limit: float
    of: str | None  # the side that the limit is a multiple of
    bound: float | None  # the limit as a number
    verdict: str  # "holds", "falls short", "not judged", or why there is no figure
    seconds: float  # that all seeds took
    missing: Mapping[str, str] = field(default_factory=dict)  # other methods that have no figure: why

    def loses_to(self, other: Side) -> bool:
        """Whether another method is better."""
        if self.ours is None:
            return False
        return other.figure < self.ours if self.kind == "at most" else other.figure > self.ours


@dataclass(frozen=True)
class AccuracyReport:
    machine: dict[str, Any]
    quick: bool
    full: bool
    rows: tuple[AccuracyRow, ...]
    measured: tuple[dict[str, Any], ...]  # the figure of every seed
    failed: dict[str, str]  # task: why
    commit: str | None = None
    date: str = ""

    @property
    def name(self) -> str:
        """What the file is called where a folder is given."""
        return f"accuracy_{self.commit or 'installed'}.json"

    def write(self, path: Path) -> None:
        write_lines({"format": FORMAT, "kind": KIND, **asdict(self)}, path)


def load(path: Path) -> AccuracyReport:
    """A results file of accuracy; ResultsError, which names it, if it is none."""
    content = read_json(path)
    try:
        given = {name: value for name, value in content.items() if name not in ("format", "kind")}
        if (content["format"], content["kind"]) != (FORMAT, KIND):
            raise KeyError("format, kind")
        rows = (row | {"others": tuple(Side(**other) for other in row["others"])} for row in given.pop("rows"))
        return AccuracyReport(
            rows=tuple(AccuracyRow(**row) for row in rows), measured=tuple(given.pop("measured")), **given
        )
    except (AttributeError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ResultsError(f"{str(path)!r}: not as fastdp bench --accuracy writes it ({what})") from None


def run(
    only: Iterable[str] = (), *, full: bool = False, quick: bool = False, peers: bool = False,
    progress: Progress = None,
) -> AccuracyReport:  # fmt: skip
    """Measure the chosen tasks and judge them.

    only   topics, or the starts of tasks' names; without any, all
    full   those that take long, too
    quick  one seed each, which judges nothing: shows that every task works
    peers  first install the other libraries that the tasks run, each in an environment of its own
    """
    chosen = choose(tuple(only), full=full)
    if peers:
        with reporting(progress, "peers") as report:
            install((name for one in chosen for name in one.peers), report)
    rows, measured, failed = [], [], {}
    total, done = sum(_seeds(one, quick) for one in chosen), 0
    with reporting(progress, "accuracy") as report:
        for one in chosen:
            start = perf_counter()
            found, missing, why = _figures(one, quick, report, done, total)
            done += _seeds(one, quick)
            rows.append(judge(one, found, why, quick=quick, seconds=perf_counter() - start, missing=missing))
            if why is None:
                measured.append({"task": one.name, "figures": found})
            else:
                failed[one.name] = why
        report(total, total, "")
    described = machine.describe()
    described["versions"] = described["versions"] | datasets.versions()
    return AccuracyReport(described, quick, full, tuple(rows), tuple(measured), failed, commit(), now())


@dataclass(frozen=True)
class Difference:
    """One task, then and now. Seeds are fixed, so any difference is of the code."""

    task: str
    then: float | None
    now: float | None
    verdict: str  # "lost" (its target), "worse", "same", "better", or why it is not compared


def compare(old: AccuracyReport, report: AccuracyReport) -> list[Difference]:
    """What became of every figure of ours, what was lost first."""
    before = {row.task: row for row in old.rows}
    found = [_difference(before.get(row.task), row) for row in report.rows]
    return sorted(found, key=lambda difference: difference.verdict not in ("lost", "worse"))


def _difference(old: AccuracyRow | None, new: AccuracyRow) -> Difference:
    if old is None or old.ours is None or new.ours is None:
        why = "not in the older file" if old is None else "no figure then" if old.ours is None else "no figure now"
        return Difference(new.task, None if old is None else old.ours, new.ours, why)
    if old.seeds != new.seeds:
        return Difference(new.task, old.ours, new.ours, f"not the same seeds: {old.seeds} then, {new.seeds} now")
    if old.verdict == "holds" and new.verdict == "falls short":
        verdict = "lost"
    elif abs(new.ours - old.ours) <= 1e-5 * abs(old.ours):  # files keep six digits
        verdict = "same"
    else:
        verdict = "better" if (new.ours < old.ours) == (new.kind == "at most") else "worse"
    return Difference(new.task, old.ours, new.ours, verdict)


def _seeds(one: Task, quick: bool) -> int:
    return 1 if quick else one.seeds


def _figures(
    one: Task, quick: bool, report: Report, done: int, total: int
) -> tuple[dict[str, list[float]], dict[str, str], str | None]:
    """The figures of every seed, by side, why sides have none, and why there are none at all."""
    found: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of accuracy, which is what is measured
        for seed in range(_seeds(one, quick)):
            report(done + seed, total, one.work)
            try:
                for side, figure in one.run(seed).items():
                    if isinstance(figure, Missing):
                        missing[side] = figure.why
                    else:
                        found.setdefault(side, []).append(figure)
            except Exception as error:  # a cell of the table, not the end of the run
                return {}, {}, f"{type(error).__name__}: {error}"
    return found, {side: why for side, why in missing.items() if side not in found}, None


def judge(
    one: Task, found: Mapping[str, list[float]], why: str | None, *, quick: bool = False, seconds: float = 0.0,
    missing: Mapping[str, str] | None = None,
) -> AccuracyRow:  # fmt: skip
    """The row of a task: medians beside the target."""
    medians = {side: float(np.median(figures)) for side, figures in found.items()}  # NaN where one is
    ours = medians.pop(OURS, None)
    others = [Side(name, figure) for name, figure in medians.items()]
    others += [Side(other.name, other.figure, other.source) for other in one.reported]
    others.sort(key=lambda side: side.figure, reverse=one.target.kind == "at least")
    bound = None
    if why is None:
        try:
            bound = one.target.bound({side.name: side.figure for side in others})
        except (KeyError, ValueError):  # the side that the target names has no figure
            why = f"no figure of {one.target.of}"
    holds = ours is not None and bound is not None and one.target.holds(ours, bound)
    return AccuracyRow(
        task=one.name,
        room=one.room,
        work=one.work,
        table=one.table,
        figure=one.figure,
        seeds=_seeds(one, quick),
        ours=ours,
        others=tuple(others),
        kind=one.target.kind,
        limit=one.target.limit,
        of=one.target.of,
        bound=bound,
        verdict=why or ("not judged" if quick else "holds" if holds else "falls short"),
        seconds=seconds,
        missing=missing or {},
    )
