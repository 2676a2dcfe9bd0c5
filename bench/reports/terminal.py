"""Results as tables in a terminal."""

from __future__ import annotations

from typing import Any

from ..harness.results import Peak, Report, Row
from . import wording


def show(report: Report, console: Any) -> None:
    """Print the tables, the machine they were measured on, and one line that sums them up."""
    titled = [(f"{curve['title']}: an element is {curve['unit']}", _curve_table(curve)) for curve in report.curves]
    if report.latency:
        titled.append(("latency", _row_table(report.latency)))
    if report.memory:
        titled.append(("memory: what a call adds at its height, beside its input", _memory_table(report.memory)))
    if report.rows or not titled:
        console.print(_row_table(report.rows))
        console.print()
    for title, table in titled:
        console.print(title, style="bold", highlight=False, markup=False)
        console.print(table)
        console.print()
    console.print(_caption(report), style="dim", highlight=False, markup=False)
    console.print(wording.counted(report), style="bold", highlight=False)


def _empty_table(*headings: Any) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _cell(*lines: str) -> Any:
    from rich.text import Text

    first, *details = [line for line in lines if line] or [""]
    return Text.assemble(first, *(("\n" + detail, "dim") for detail in details))


def _row_table(rows: tuple[Row, ...]) -> Any:
    from rich.text import Text

    colours = {"holds": "green", "falls short": "bold yellow", "no target": "dim", "not judged": "dim"}
    table = _empty_table("work", _cell("ours", "each"), "theirs", "ratio", "target", "verdict")
    case = None
    for row in rows:
        first = row.case != case  # of its case: what does not change is said once
        theirs = f"{row.rival} {wording.seconds(row.theirs)}" if row.rival else ""
        table.add_row(
            _cell(row.work, f"n={row.n:,}" if row.n > 1 else "") if first else "",
            _cell(wording.seconds(row.ours), wording.each(row.ours, row.n)) if first else "",
            _cell(theirs, wording.each(row.theirs, row.rival_n), wording.rival_parameters(row)),
            wording.ratio(row),
            wording.target(row),
            Text(row.verdict, style=colours.get(row.verdict, "red")),
        )
        case = row.case
    return table


def _curve_table(curve: dict[str, Any]) -> Any:
    threads = sorted({number for point in curve["points"] for number in point["threads"]}, key=int)
    more = [f"ours, {number} thread{'s' * (number != '1')}" for number in threads]
    table = _empty_table(curve["axis"], "ours", *more, curve["numpy"], "ratio", "machine's limit", "of it")
    for point in curve["points"]:
        ours, theirs, limit = point["ours"], point["numpy"], point["limit"]
        table.add_row(
            f"{point['x']:,}",
            wording.rate(ours) if ours else "; ".join(point.get("why_not", {}).values()),
            *(wording.rate(point["threads"].get(number)) for number in threads),
            wording.rate(theirs),
            f"{wording.digits(ours / theirs)}x" if ours and theirs else "",
            wording.rate(limit),
            f"{ours / limit:.0%}" if ours and limit else "",
        )
    return table


def _memory_table(peaks: tuple[Peak, ...]) -> Any:
    table = _empty_table("work", "input", "ours", "theirs", "")
    for peak in peaks:
        table.add_row(
            _cell(peak.work, f"n={peak.n:,}"),
            wording.size(peak.input),
            wording.against(peak.ours, peak.input),
            f"{peak.rival} {wording.against(peak.theirs, peak.input)}" if peak.rival else "",
            _cell(peak.why_not or ""),
        )
    return table


def _caption(report: Report) -> str:
    if not report.machine:
        return "nothing could be measured"
    rough = "quick run on small arrays: the figures are rough; " if report.quick else ""
    source = f"; fastdp of commit {report.commit}" if report.commit else ""
    return f"{rough}{wording.METHOD}; {wording.where(report)}; {wording.versions(report)}{source}"
