"""Results of `fastdp bench --accuracy`: the table in a terminal, on a page and in the documentation, and the picture.

The picture sets every figure beside its target: left of the line it holds. Nothing is measured here.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from ..accuracy.registry import OURS as OUR_NAME
from ..harness.accuracy import AccuracyReport, AccuracyRow, Difference, Side
from . import page
from .drawing import INK, LIMIT, OTHER, OURS, style, svg_of
from .table import Cell, Column, Line, Table, Tone, cell, to_html, to_markdown, to_rich

METHOD = "medians over fixed seeds, every method on the same records; fastdp with its defaults"


# --- in words


def number(value: float | None) -> str:
    """Three digits, as short as they are read: 0.0022, 8.5e-5, 1.02."""
    if value is None:
        return ""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 1e-3:
        return f"{value:.3g}"
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def asked(row: AccuracyRow) -> str:
    """The target: `≤ 0.0022`, `≤ 1.1 times the best other`."""
    sign = "≤" if row.kind == "at most" else "≥"
    if row.of is None:
        return f"{sign} {number(row.limit)}"
    return f"{sign} {row.of}" if row.limit == 1 else f"{sign} {number(row.limit)} times {row.of}"


def counted(report: AccuracyReport) -> str:
    """How many targets hold, and beside how many others ours is better."""
    beside = [row for row in report.rows if row.ours is not None and row.others]
    ahead = sum(not row.loses_to(row.others[0]) for row in beside)
    others = f"; at least as good as every other method in {ahead} of {len(beside)} rows that have one"
    if report.quick:
        return "a quick run: no row is judged"
    counts = {word: sum(row.verdict == word for row in report.rows) for word in ("holds", "falls short")}
    left = len(report.rows) - sum(counts.values())
    tail = f", {left} without a verdict" if left else ""
    return f"{counts['holds']} hold, {counts['falls short']} fall short{tail}{others}"


def versions(report: AccuracyReport) -> str:
    return ", ".join(f"{name} {number}" for name, number in report.machine["versions"].items())


# --- tables


def table(rows: Sequence[AccuracyRow], *, sources: bool = True) -> Table:
    """A line for each row, and one for each further method, with where its figure is from, or why it has none."""
    columns = (
        Column("task"),
        Column("records"),
        Column("fastdp", number=True, label="fastdp"),
        Column("against"),
        Column("reaches", number=True),
        Column("target"),
        Column("verdict"),
    )
    lines = []
    for row in rows:
        first, *more = row.others or (None,)
        beside = (cell(), cell()) if first is None else _other(row, first, sources)
        cells = (cell(row.work, row.figure), cell(row.table), cell(number(row.ours)), *beside)
        lines.append(Line((*cells, cell(asked(row)), _verdict(row)), group=row.room))
        for other in more:
            blank = (cell(), cell(), cell(), *_other(row, other, sources), cell(), cell())
            lines.append(Line(blank, group=row.room, continues=True))
        for name, why in row.missing.items():
            absent = (cell(), cell(), cell(), cell(name, why), cell("none", tone="failed"), cell(), cell())
            lines.append(Line(absent, group=row.room, continues=True))
    return Table(columns, tuple(lines))


def _other(row: AccuracyRow, other: Side, sources: bool) -> tuple[Cell, Cell]:
    """Its name and its figure, which stands out where it is better than ours."""
    origin = (other.source if sources else "reported") if other.source else "same run"
    return cell(other.name, origin or ""), cell(number(other.figure), tone="bad" if row.loses_to(other) else "plain")


def _verdict(row: AccuracyRow) -> Cell:
    tones: dict[str, Tone] = {"holds": "good", "falls short": "bad", "not judged": "quiet"}
    return cell(row.verdict, tone=tones.get(row.verdict, "failed"))


def few(report: AccuracyReport, chosen: Iterable[tuple[str, str]]) -> Table:
    """A task of each, in words: the share that we come to, and that of the best method which is not ours."""
    found = {row.task: row for row in report.rows}
    lines = []
    for task, work in chosen:
        row = found.get(task)
        if row is None or row.ours is None:
            continue
        best = next((other for other in row.others if not other.name.startswith(OUR_NAME)), None)
        beside = (cell(), cell()) if best is None else (_share_of(best.figure, row.loses_to(best)), cell(best.name))
        lines.append(Line((cell(work), _share_of(row.ours), *beside)))
    columns = (Column("released at epsilon = 1"), Column("fastdp", number=True), Column("the best other", number=True))
    return Table((*columns, Column("which is")), tuple(lines))


def _share_of(figure: float, better: bool = False) -> Cell:
    return cell(f"{number(100 * figure)} %", tone="bad" if better else "plain")


# --- in a terminal, on a page, in the documentation


def show(report: AccuracyReport, console: Any) -> None:
    """Print the table and a line that sums it up."""
    console.print(to_rich(table(report.rows, sources=False)))
    console.print()
    source = f"; fastdp of commit {report.commit}" if report.commit else ""
    console.print(f"{METHOD}; {versions(report)}{source}", style="dim", highlight=False, markup=False)
    console.print(counted(report), style="bold", highlight=False)


def show_comparison(differences: Sequence[Difference], console: Any) -> None:
    """Print what became of every figure, and a line that sums it up."""
    tones: dict[str, Tone] = {"lost": "failed", "worse": "fair", "same": "plain", "better": "good"}
    lines = [
        Line(
            (
                cell(d.task),
                cell(number(d.then)),
                cell(number(d.now)),
                cell(d.verdict, tone=tones.get(d.verdict, "quiet")),
            )
        )
        for d in differences
    ]
    console.print()
    console.print(to_rich(Table(tuple(map(Column, ("task", "then", "now", "verdict"))), tuple(lines))))
    console.print()
    verdicts = [difference.verdict for difference in differences]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in tones)
    console.print(counts, style="bold", highlight=False)


def write_page(report: AccuracyReport, path: Path) -> None:
    """The table and the picture as one page without a network."""
    parts = [("Rows", "rows", to_html(table(report.rows)))]
    if drawn := picture(report.rows):
        parts.append(("Beside the targets", "picture", f"<figure>{drawn}</figure>"))
    text = page.document(
        "fastdp bench --accuracy",
        f"{METHOD[:1].upper()}{METHOD[1:]}; {versions(report)}",
        counted(report),
        parts,
        quick=report.quick,
    )
    path.write_text(text, encoding="utf-8")


def markdown(report: AccuracyReport) -> str:
    """The table for the documentation: a heading's worth for each topic."""
    rooms = list(dict.fromkeys(row.room for row in report.rows))
    parts = []
    for room in rooms:
        of_room = [row for row in report.rows if row.room == room]
        parts.append(f"### {room.capitalize()}\n\n{to_markdown(table(of_room))}")
    return "\n".join(parts)


# --- the picture


def picture(rows: Sequence[AccuracyRow]) -> str:
    """Every figure as a multiple of its target, turned so that less is better; empty where nothing has a figure."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    known = [row for row in rows if row.ours and row.ours > 0 and row.bound and row.bound > 0]
    if not known:
        return ""
    with rc_context(style()):
        figure = Figure(figsize=(9, 0.9 + 0.24 * len(known)), layout="constrained")
        axes = figure.subplots()
        at = range(len(known))
        for y, row in zip(at, known, strict=True):
            positive = [other for other in row.others if other.figure > 0]
            axes.plot([_share(row, other.figure) for other in positive], [y] * len(positive), "x", color=OTHER)
        axes.plot([_share(row, row.ours) for row in known], list(at), "o", color=OURS, label="fastdp")
        axes.plot([], [], "x", color=OTHER, label="other methods")
        axes.axvline(1, color=LIMIT, linestyle="--", label="target")
        axes.set_yticks(list(at), [row.task for row in known], color=INK)
        axes.set(xscale="log", xlabel="multiple of the target; left of the line it holds")
        axes.set_ylim(len(known) - 0.5, -0.5)
        for y in range(1, len(known)):
            if known[y].room != known[y - 1].room:
                axes.axhline(y - 0.5, color=LIMIT, linewidth=0.6)
        axes.tick_params(top=True, labeltop=True)
        axes.grid(alpha=0.25, axis="x")
        axes.minorticks_off()
        axes.patch.set_alpha(0)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return svg_of(out.getvalue())


def _share(row: AccuracyRow, value: float | None) -> float:
    assert row.bound is not None
    assert value is not None
    return value / row.bound if row.kind == "at most" else row.bound / value
