"""Results in a terminal: `fastdp bench`, and `--compare`."""

from __future__ import annotations

from typing import Any

from ..harness.compare import LOSS, Comparison
from ..harness.results import Report
from . import layout, wording
from .table import to_rich


def show(report: Report, console: Any) -> None:
    """Print the tables, the machine they were measured on, and one line that sums them up."""
    titled = [(f"{curve['title']}: an element is {curve['unit']}", layout.curve(curve)) for curve in report.curves]
    if report.latency:
        titled.append(("latency", layout.latency(report.latency)))
    if report.memory:
        titled.append(("memory: what a call adds at its height, beside its input", layout.memory(report.memory)))
    if report.rows or not titled:
        console.print(to_rich(layout.rows(report.rows)))
        console.print()
    for title, table in titled:
        console.print(title, style="bold", highlight=False, markup=False)
        console.print(to_rich(table))
        console.print()
    console.print(_caption(report), style="dim", highlight=False, markup=False)
    console.print(wording.counted(report), style="bold", highlight=False)


def _caption(report: Report) -> str:
    if not report.machine:
        return "nothing could be measured"
    rough = "quick run on small arrays: the figures are rough; " if report.quick else ""
    source = f"; fastdp of commit {report.commit}" if report.commit else ""
    return f"{rough}{wording.METHOD}; {wording.where(report)}; {wording.versions(report)}{source}"


def show_comparison(compared: Comparison, console: Any) -> None:
    """Print the table, worst first, what differs as a whole, and a line that sums it up."""
    console.print()
    console.print(to_rich(layout.comparison(compared)))
    console.print()
    for note in compared.notes:
        console.print(note, style="yellow", highlight=False, markup=False)
    console.print(
        f"ratios to the rival of the same run, beside those of {compared.path}; a change counts beyond the spread of "
        f"the rounds of both, and is lost from {100 * LOSS:g} % beyond it",
        style="dim",
        highlight=False,
        markup=False,
    )
    verdicts = [change.verdict for change in compared.changes]
    counts = {word: verdicts.count(word) for word in ("lost", "worse", "same", "better")}
    others = len(verdicts) - sum(counts.values())
    tail = f", {others} not compared" if others else ""
    console.print(", ".join(f"{n} {word}" for word, n in counts.items()) + tail, style="bold", highlight=False)
