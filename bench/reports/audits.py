"""Results of audits: tables for the documentation, and the picture. Nothing is measured here."""

from __future__ import annotations

import io
from collections.abc import Sequence

from ..audits.timing import THRESHOLD
from ..harness.audits import CONFIDENCE, AuditedRow, AuditsReport, TimedRow
from .accuracy import number
from .drawing import INK, LIMIT, OTHER, OURS, style, svg_of
from .table import Column, Line, Table, cell, to_markdown


def table(rows: Sequence[AuditedRow]) -> Table:
    """A line for each mechanism."""
    columns = (
        Column("mechanism"),
        Column("claims"),
        Column("seen, at least", number=True),
        Column("outputs", number=True),
        Column("error asked", number=True),
        Column("achieved", number=True),
        Column("verdict"),
    )
    lines = []
    for row in rows:
        wrong = row.refuted or row.exceeded
        verdict = cell("refuted", tone="bad") if wrong else cell("not refuted", tone="good")
        claims = cell(f"{row.parameter} {number(row.claims)}")
        of_mean = " in the mean" if row.asked is not None and row.beta is None else ""
        errors = (cell(number(row.asked) + of_mean), cell(number(row.achieved)))
        lines.append(Line((cell(row.name), claims, cell(number(row.seen)), cell(f"{row.runs:,}"), *errors, verdict)))
    return Table(columns, tuple(lines))


def times(rows: Sequence[TimedRow]) -> Table:
    """A line for each call whose operations do not depend on the records."""
    columns = (
        Column("call"),
        Column("Welch's t", number=True),
        Column("longer by", number=True),
        Column("calls", number=True),
        Column("verdict"),
    )
    lines = []
    for row in rows:
        longer = "" if row.longer is None else f"{100 * row.longer:.1f} %"
        if abs(row.t) <= THRESHOLD:
            verdict = cell("no difference", tone="good")
        elif row.independent:
            verdict = cell("differs", tone="bad")
        else:
            verdict = cell("differs, as stated")
        lines.append(Line((cell(row.name), cell(f"{row.t:.1f}"), cell(longer), cell(f"{row.runs:,}"), verdict)))
    return Table(columns, tuple(lines))


def counted(report: AuditsReport) -> str:
    """How many claims stand."""
    refuted = sum(row.refuted for row in report.rows)
    asked = [row for row in report.rows if row.asked is not None and row.achieved is not None]
    exceeded = sum(row.exceeded for row in asked)
    same = [row for row in report.timed if row.independent]
    slow = sum(abs(row.t) > THRESHOLD for row in same)
    return (
        f"{refuted} of {len(report.rows)} claims and {exceeded} of {len(asked)} bounds of errors refuted, at "
        f"confidence {CONFIDENCE:g} each; {slow} of {len(same)} times depend on the records that are said not to"
    )


def markdown(report: AuditsReport) -> str:
    """The tables for the documentation."""
    return f"{to_markdown(table(report.rows))}\n{to_markdown(times(report.timed))}"


def picture(rows: Sequence[AuditedRow]) -> str:
    """What was seen as a share of what is claimed, and the errors achieved as a share of those asked for."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(style()):
        figure = Figure(figsize=(9, 0.9 + 0.3 * len(rows)), layout="constrained")
        axes = figure.subplots()
        at = list(range(len(rows)))
        for y, row in zip(at, rows, strict=True):
            axes.plot([0, row.seen / row.claims], [y, y], color=OURS, linewidth=5, solid_capstyle="butt")
            if row.asked and row.achieved is not None:
                axes.plot([row.achieved / row.asked], [y + 0.34], "x", color=OTHER, markersize=5)
        axes.plot([], [], color=OURS, linewidth=5, label="lower bound of the privacy lost, as a share of the claim")
        axes.plot([], [], "x", color=OTHER, label="error achieved, as a share of the bound asked for")
        axes.axvline(1, color=LIMIT, linestyle="--", label="what is claimed")
        axes.set_yticks(at, [row.name for row in rows], color=INK)
        axes.set(xlim=(0, 1.15), xlabel="share; right of the line a claim would be wrong")
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(alpha=0.25, axis="x")
        axes.patch.set_alpha(0)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=1)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return svg_of(out.getvalue())
