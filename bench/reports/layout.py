"""Which tables there are, and what stands in their columns: for the terminal, the page and the documentation alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from ..harness.compare import Comparison, Ratio
from ..harness.results import Peak, Report, Row
from . import wording
from .table import Column, Line, Table, Tone, cell

_WORK, _OURS = Column("work"), Column("fastdp", number=True, label="fastdp")
_AGAINST, _THEIRS = Column("against"), Column("takes", number=True)
_LIMIT = Column("of the limit", number=True, label="of the limit")
_TONES: dict[str, Tone] = {"holds": "good", "falls short": "bad", "not judged": "quiet"}


# --- of one report


def rows(found: Sequence[Row]) -> Table:
    """Every row, by room; the target stands below the ratio."""
    asked = Column("ratio, target", number=True), Column("verdict")
    columns = (_WORK, _OURS, _LIMIT, _AGAINST, _THEIRS, *asked)
    lines, case = [], None
    for row in found:
        first, case = row.case != case, row.case
        cells = (*_sides(row, first), cell(wording.ratio(row), wording.target(row)), _verdict(row))
        lines.append(Line(cells, group=row.room, continues=not first))
    return Table(columns, tuple(lines))


def latency(found: Sequence[Row]) -> Table:
    """Times alone."""
    texts = [(row.work, wording.seconds(row.ours), row.rival or "", wording.seconds(row.theirs)) for row in found]
    return Table((_WORK, _OURS, _AGAINST, _THEIRS), tuple(Line(tuple(map(cell, line))) for line in texts))


def _sides(row: Row, first: bool) -> tuple[Any, ...]:
    """The work and both sides' times. What does not change from row to row of a case stands once."""
    return (
        cell(row.work, wording.parameters(row, row.work)) if first else cell(),
        cell(wording.seconds(row.ours), wording.each(row.ours, row.n)) if first else cell(),
        cell(wording.share(row)) if first else cell(),
        cell(row.rival or "", wording.rival_parameters(row, row.work)),
        cell(wording.seconds(row.theirs), wording.each(row.theirs, row.rival_n)),
    )


def _verdict(row: Row) -> Any:
    return cell() if row.verdict == "no target" else cell(row.verdict, tone=_TONES.get(row.verdict, "failed"))


def memory(peaks: Sequence[Peak]) -> Table:
    """What a call adds to what is resident, at its height."""
    columns = (
        _WORK,
        Column("input", number=True, label="input"),
        Column("a call of fastdp adds", number=True, label="fastdp adds"),
        _AGAINST,
        Column("which adds", number=True),
        Column("verdict"),
    )
    lines = tuple(
        Line(
            (
                cell(peak.work, wording.count(peak.n)),
                cell(wording.size(peak.input)),
                cell(wording.added(peak.ours, peak.input), "" if peak.most is None else f"≤ {peak.most:g}"),
                cell(peak.rival or "", peak.why_not or ""),
                cell(wording.added(peak.theirs, peak.input)),
                cell(peak.verdict, tone=_TONES.get(peak.verdict, "quiet")),
            )
        )
        for peak in peaks
    )
    return Table(columns, lines)


def curve(drawn: dict[str, Any]) -> Table:
    """Elements a second at every point."""
    threads = sorted({number for point in drawn["points"] for number in point["threads"]}, key=int)
    more = [f"fastdp, {number} thread{'s' * (number != '1')}" for number in threads]
    headings = [drawn["axis"], "fastdp", *more, drawn["numpy"], "ratio", "machine's limit", "of it"]
    lines = []
    for point in drawn["points"]:
        ours, theirs, limit = point["ours"], point["numpy"], point["limit"]
        cells = [
            f"{point['x']:,}",
            wording.rate(ours) if ours else "; ".join(point.get("why_not", {}).values()),
            *(wording.rate(point["threads"].get(number)) for number in threads),
            wording.rate(theirs),
            f"{wording.digits(ours / theirs)}x" if ours and theirs else "",
            wording.rate(limit),
            f"{ours / limit:.0%}" if ours and limit else "",
        ]
        lines.append(Line(tuple(map(cell, cells))))
    return Table(tuple(Column(heading, number=True) for heading in headings), tuple(lines))


# --- of several reports


def beside(reports: Sequence[Report], wanted: Callable[[Row], bool], *, targets: bool) -> Table:
    """A row for each rival of the cases that are wanted, and a column, or three, for each report."""
    found = [{(row.case, row.rival): row for row in report.rows if wanted(row)} for report in reports]
    limited = targets and any(row.share is not None for rows in found for row in rows.values())
    lines, case = [], None
    for key in dict.fromkeys(key for rows in found for key in rows):
        some = next(rows[key] for rows in found if key in rows)
        first, case = some.case != case, some.case
        cells = [
            cell(some.work) if first else cell(),
            cell(some.rival or "", wording.rival_parameters(some, some.work)),
        ]
        for row in (rows.get(key) for rows in found):
            cells.append(_figure(row))
            if targets:
                cells.append(_asked(row))
            if limited:
                cells.append(cell(wording.share(row) if first else ""))
        lines.append(Line(tuple(cells), continues=not first))
    columns = [_WORK, _AGAINST]
    for report in reports:
        columns += [Column(wording.compiled(report), number=True), *([Column("asked")] if targets else [])]
        columns += [_LIMIT] if limited else []
    return Table(tuple(columns), tuple(lines))


def _figure(row: Row | None) -> Any:
    if row is None:
        return cell()
    if row.rival is None:
        return cell(wording.seconds(row.ours))
    return cell(wording.ratio(row) or ("" if row.verdict in ("holds", "falls short", "no target") else row.verdict))


def _asked(row: Row | None) -> Any:
    if row is None:
        return cell()
    if row.verdict == "falls short":
        return cell(f"{wording.target(row)}: falls short", tone="bad")
    return cell(wording.target(row))


def few(reports: Sequence[Report], chosen: Iterable[tuple[str, str, str, str]]) -> Table:
    """Case, rival, and both in words: how many times as fast as the rival, in a column for each report."""
    found = [{(row.case, row.rival): row.ratio for row in report.rows} for report in reports]
    lines = []
    for case, rival, work, against in chosen:
        ratios = [ratios.get((case, rival)) for ratios in found]
        if any(ratios):
            figures = (cell(wording.rough(ratio) if ratio else "") for ratio in ratios)
            lines.append(Line((cell(work), cell(against), *figures)))
    columns = (Column(wording.compiled(report), number=True) for report in reports)
    return Table((_WORK, Column("compared with"), *columns), tuple(lines))


def comparison(compared: Comparison) -> Table:
    """What became of every ratio, worst first."""
    tones: dict[str, Tone] = {"lost": "failed", "worse": "fair", "same": "plain", "better": "good"}
    headings = ("row", "rival", "then", "now", "change", "spread", "verdict")
    lines = [
        Line(
            (
                cell(change.case),
                cell(change.rival),
                cell(_times(change.old)),
                cell(_times(change.new)),
                cell("" if change.factor is None else f"{100 * (change.factor - 1):+.1f} %"),
                cell("" if change.spread is None else _spread(change.spread)),
                cell(change.verdict, tone=tones.get(change.verdict, "quiet")),
            )
        )
        for change in compared.changes
    ]
    return Table(tuple(map(Column, headings)), tuple(lines))


def _times(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{wording.digits(ratio.value)}x"


def _spread(spread: float) -> str:
    return f"±{100 * (spread - 1):.0f} %" if isfinite(spread) else "unknown"
