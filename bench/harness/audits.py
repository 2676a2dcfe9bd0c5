"""What every mechanism is asked and what it achieves: `python -m fastdp.bench.harness.audits docs/results`

Epsilon claimed and seen, error asked and achieved, time by input. Bounds and errors come from fresh keys, times from
this machine: a run is one sample.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...audit import lower_bound
from ...support import machine
from ...support.progress import Progress, reporting
from ...support.threads import get_num_threads, set_num_threads
from ..audits import timing
from ..audits.mechanisms import AUDITS
from ..audits.registry import Audit
from .results import FORMAT, ResultsError, commit, now, read_json, write_lines

KIND = "audits"
CONFIDENCE = 0.9999  # of each of some 80 tests: all of them together raise a false alarm in one run of a hundred
TIMES = 4  # as many outputs as the tests take
ERRORS = 2_000  # outputs whose errors are looked at


@dataclass(frozen=True)
class AuditedRow:
    """One mechanism: what it claims and was seen to lose, the error that was asked for and achieved."""

    name: str
    claimed: str
    parameter: str
    claims: float
    seen: float
    refuted: bool
    event: str
    runs: int
    beta: float | None
    asked: float | None
    achieved: float | None  # the quantile of errors at 1 - beta; their mean where beta is None
    exceeded: bool = False  # whether the errors say that the bound is wrong


@dataclass(frozen=True)
class TimedRow:
    """The times of a call on two classes of records: Welch's t, and by what share the second takes longer."""

    name: str
    t: float
    runs: int
    longer: float | None = None
    independent: bool = True  # whether docs/security.md says that the time does not depend on the records


@dataclass(frozen=True)
class AuditsReport:
    machine: dict[str, Any]
    rows: tuple[AuditedRow, ...]
    timed: tuple[TimedRow, ...]
    commit: str | None = None
    date: str = ""

    @property
    def name(self) -> str:
        """What the file is called where a folder is given."""
        return f"audits_{self.commit or 'installed'}.json"

    def write(self, path: Path) -> None:
        write_lines({"format": FORMAT, "kind": KIND, **asdict(self)}, path)


def load(path: Path) -> AuditsReport:
    """A results file of audits; ResultsError, which names it, if it is none."""
    content = read_json(path)
    try:
        if (content["format"], content["kind"]) != (FORMAT, KIND):
            raise KeyError("format, kind")
        given = {name: value for name, value in content.items() if name not in ("format", "kind")}
        rows, timed = given.pop("rows"), given.pop("timed")
        return AuditsReport(
            rows=tuple(AuditedRow(**row) for row in rows), timed=tuple(TimedRow(**row) for row in timed), **given
        )
    except (AttributeError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ResultsError(f"{str(path)!r}: not as fastdp.bench.harness.audits writes it ({what})") from None


def run(only: Iterable[str] = (), *, quick: bool = False, progress: Progress = None) -> AuditsReport:
    """Audit the chosen mechanisms, and time what docs/security.md calls independent of the records.

    only   starts of their names; without any, all
    quick  few outputs: shows that every row works
    """
    starts = tuple(only)
    chosen = [audit for audit in AUDITS if not starts or audit.name.startswith(starts)]
    timed = timing.cases(np.random.default_rng(1))
    calls = [name for name in timed if not starts or name.startswith(starts)]
    rows, times = [], []
    with reporting(progress, "auditing") as report, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for done, audit in enumerate(chosen):
            report(done, len(chosen) + len(calls), audit.name)
            rows.append(_audited(audit, 500 if quick else TIMES * audit.runs))
        for done, name in enumerate(calls, len(chosen)):
            report(done, len(chosen) + len(calls), f"time of {name}")
            times.append(_timed(name, timed[name], quick))
        report(len(chosen) + len(calls), len(chosen) + len(calls), "")
    return AuditsReport(machine.describe(), tuple(rows), tuple(times), commit(), now())


def _audited(audit: Audit, runs: int) -> AuditedRow:
    found = lower_bound(
        audit.many, audit.data, audit.neighbor, runs=runs, many=True, claimed=audit.claimed, confidence=CONFIDENCE
    )
    wanted, errors = audit.accuracy, audit.errors(min(runs, ERRORS))
    return AuditedRow(
        name=audit.name,
        claimed=str(audit.claimed),
        parameter=audit.parameter,
        claims=audit.claims,
        seen=float(getattr(found, audit.parameter)),
        refuted=found.refuted,
        event=found.event,
        runs=runs,
        beta=None if wanted is None else wanted.beta,
        asked=None if wanted is None else float(wanted.bound),
        achieved=None if wanted is None or errors is None else wanted.achieved(errors),
        exceeded=wanted is not None and errors is not None and wanted.exceeded(errors, CONFIDENCE),
    )


def _timed(name: str, case: timing.Case, quick: bool) -> TimedRow:
    runs = 1000 if quick else case.runs
    threads = get_num_threads()
    set_num_threads(1)
    try:
        for each in case.classes:
            case.call(each)
        t, longer = timing.compare(case, runs, 1)
        return TimedRow(name, t, runs, longer, case.independent)
    finally:
        set_num_threads(threads)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m fastdp.bench.harness.audits FOLDER", file=sys.stderr)
        return 2
    report = run(progress=True)
    report.write(Path(arguments[0]) / report.name)
    print(Path(arguments[0]) / report.name)
    return int(any(row.refuted or row.exceeded for row in report.rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
