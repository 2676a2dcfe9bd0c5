"""The figures in README.md and docs/, from results files: `python -m fastdp.bench.reports.publish docs/results`

Of a folder, the newest file for each SIMD level is taken; files can also be named. A page says between which marks a
table stands, `<!-- figures: headline -->` and `<!-- end of figures -->`, and of which kind it is; what is between them
is written here and nowhere else. Each file is a column.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...support.machine import SIMD_NAMES
from ..cases.registry import SIMD_LEVELS, cases
from ..harness.results import Report, ResultsError, Row, load
from . import wording
from .drawing import curves_svg

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
CURVES = ROOT / "docs" / "curves.svg"
MARKED = re.compile(r"(?P<open><!-- figures: (?P<kind>[a-z]+) -->\n).*?(?P<close><!-- end of figures -->)", re.DOTALL)


def fill(text: str, reports: Sequence[Report]) -> str:
    """The text with every marked table as these results give it."""

    def table(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind not in TABLES:
            raise ValueError(f"figures: {kind!r}: must be one of {', '.join(TABLES)}")
        return f"{match['open']}{TABLES[kind](reports)}{match['close']}"

    return MARKED.sub(table, text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def _compiled(report: Report) -> str:
    return str(SIMD_NAMES[report.machine["simd"]]).partition(",")[0]


def _beside(reports: Sequence[Report], wanted: Callable[[Row], bool], *, targets: bool) -> str:
    """A row for each rival of the cases that are wanted, and a column, or two, for each file."""
    rows = [{(row.case, row.rival): row for row in report.rows if wanted(row)} for report in reports]
    keys = dict.fromkeys(key for found in rows for key in found)
    lines, said = [], ""
    for key in keys:
        some = next(found[key] for found in rows if key in found)
        line = [
            some.work if some.work != said else "",
            ", ".join(filter(None, (some.rival, wording.rival_parameters(some)))),
        ]
        said = some.work
        for found in rows:
            row = found.get(key)
            line.append(_figure(row))
            if targets:
                line.append("" if row is None else _verdict(row))
        lines.append(line)
    head = ["work", "against"]
    for report in reports:
        head += [_compiled(report), "asked"] if targets else [_compiled(report)]
    return _table(head, lines)


def _figure(row: Row | None) -> str:
    if row is None:
        return ""
    if row.rival is None:
        return wording.seconds(row.ours)
    return wording.ratio(row) or ("" if row.verdict in ("holds", "falls short", "no target") else row.verdict)


def _verdict(row: Row) -> str:
    asked = wording.target(row)
    return f"{asked}: **falls short**" if row.verdict == "falls short" else asked


def _headline(reports: Sequence[Report]) -> str:
    chosen = {case.name for case in cases() if case.headline}
    return _beside(reports, lambda row: row.case in chosen and row.ratio is not None, targets=False) + _sources(reports)


def _rows(reports: Sequence[Report]) -> str:
    return _beside(reports, lambda row: True, targets=True) + _sources(reports)


def _counts(reports: Sequence[Report]) -> str:
    return "".join(f"- {_compiled(report)}: {wording.counted(report)}.\n" for report in reports)


def _latency(reports: Sequence[Report]) -> str:
    lines = [
        [row.work, wording.seconds(row.ours), row.rival or "", wording.seconds(row.theirs)]
        for row in reports[0].latency
    ]
    return _table(("work", "fastdp", "against", "takes"), lines) + _sources(reports[:1])


def _memory(reports: Sequence[Report]) -> str:
    lines = [
        [
            f"{peak.work}, n={peak.n:,}",
            wording.size(peak.input),
            wording.against(peak.ours, peak.input),
            f"{peak.rival}: {wording.against(peak.theirs, peak.input)}" if peak.rival else "",
        ]
        for peak in reports[0].memory
    ]
    return _table(("work", "input", "a call of fastdp adds", "against"), lines) + _sources(reports[:1])


def _machine(reports: Sequence[Report]) -> str:
    said = {wording.where(report): None for report in reports}
    return "".join(f"- {where}\n" for where in said) + f"- {wording.versions(reports[0])}\n" + _sources(reports)


def _sources(reports: Sequence[Report]) -> str:
    """Which files the figures are from."""
    files = ", ".join(f"`docs/results/{report.name}` of {report.date}" for report in reports)
    return f"\nFrom {files}: {wording.METHOD}.\n"


TABLES: dict[str, Callable[[Sequence[Report]], str]] = {
    "headline": _headline,
    "rows": _rows,
    "counts": _counts,
    "latency": _latency,
    "memory": _memory,
    "machine": _machine,
}


def chosen(paths: Sequence[Path]) -> list[Report]:
    """The files, and of each folder the newest for every SIMD level, widest first."""
    reports = []
    for path in paths:
        if path.is_dir():
            found = sorted((load(file) for file in path.glob("*.json")), key=lambda report: report.date)
            newest = {str(report.machine["simd"]): report for report in found}
            reports += [newest[level] for level in SIMD_LEVELS if level in newest]
        else:
            reports.append(load(path))
    return reports


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m fastdp.bench.reports.publish FOLDER | RESULTS.json ...", file=sys.stderr)
        return 2
    try:
        reports = chosen([Path(name) for name in arguments])
        if not reports:
            raise ResultsError(f"{arguments[0]!r}: holds no results")
        for page in PAGES:
            page.write_text(fill(page.read_text(encoding="utf-8"), reports), encoding="utf-8")
        if reports[0].curves:
            CURVES.write_text(curves_svg(reports[0].curves), encoding="utf-8")
    except (OSError, ResultsError) as error:
        print(f"fastdp.bench.reports.publish: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
