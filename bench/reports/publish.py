"""The figures in README.md and docs/, from results files: `python -m fastdp.bench.reports.publish docs/results`

Of a folder, the newest file for each SIMD level is taken, and the newest of accuracy; files can also be named. A page
marks where a table stands, `<!-- figures: headline -->` and `<!-- end of figures -->`, and of which kind it is; what is
between them is written here and nowhere else. Each file of speed is a column.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill as fill_lines

from ..accuracy.registry import tasks
from ..cases.curves import curves
from ..cases.latency import latencies
from ..cases.memory import memories
from ..cases.registry import SIMD_LEVELS, cases
from ..harness import audits as audited
from ..harness.accuracy import AccuracyReport
from ..harness.accuracy import load as load_accuracy
from ..harness.results import Report, ResultsError, Row, load
from . import accuracy, audits, layout, wording
from .drawing import curves_svg, standing_alone
from .table import to_markdown

# What the first screen of the README shows: a case, one of its rivals, and both in words for who has seen nothing yet.
FIRST = (
    ("laplace-int64-100-new", "numpy", "Laplace noise on integers", "numpy's Laplace floats"),
    ("laplace-int64-100-new", "OpenDP", "Laplace noise on integers", "OpenDP"),
    (
        "select-float64-1e6",
        "numpy softmax",
        "the best of a million candidates, by the exponential mechanism",
        "a softmax in numpy",
    ),
    ("marginals-binary", "numpy", "all 1,140 three-way tables of 20 yes/no columns", "numpy"),
    ("descent-squared-1e6x20", "jax jit", "private gradient descent, 50 steps", "jax, compiled"),
    ("interior-point-int64", "np.sort", "a point between a million values", "`np.sort` of them"),
)
# And how accurate answers are: a task of which the figure is a share, and both in words.
ACCURATE = (
    ("quantiles-99-1-add-remove", "99 quantiles of 53,940 prices: how far a rank is off"),
    ("online-254654-tables-mean", "3,000 questions one after the other, 254,654 records: error of an answer"),
    ("marginals-1-mean", "all 56 three-way tables of these records: error of a cell"),
    ("prefixes-dep_delay-add-remove-mean", "the distribution of a column in 4,096 steps: error of a step"),
    ("conjunction-30-5", "a rule of 3 among 30 columns, 5 % of the labels wrong: predictions that are wrong"),
    ("rule-gss_wages", "a rule of 5 conditions for wages of a survey: predictions that are wrong"),
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
ACCURACY_PAGES, ACCURACY_PICTURE = (ROOT / "README.md", ROOT / "docs" / "accuracy.md"), ROOT / "docs" / "accuracy.svg"
WIDTH = 100  # of the pages' lines, tables excepted
CURVES = ROOT / "docs" / "curves.svg"
ACCURACY_FILES = "accuracy_*.json"  # in a folder of results
AUDIT_PAGE, AUDIT_PICTURE, AUDIT_FILES = ROOT / "docs" / "audits.md", ROOT / "docs" / "audits.svg", "audits_*.json"
MARKED = re.compile(r"(?P<open><!-- figures: (?P<kind>[a-z]+) -->\n).*?(?P<close><!-- end of figures -->)", re.DOTALL)


def fill(text: str, reports: Sequence[Report]) -> str:
    """The text with every marked table of speed as these results give it."""
    return _filled(text, {kind: partial(table, reports) for kind, table in TABLES.items()}, others=ACCURACY_TABLES)


def fill_accuracy(text: str, report: AccuracyReport) -> str:
    """The same for tables of accuracy."""
    return _filled(text, {kind: partial(table, report) for kind, table in ACCURACY_TABLES.items()}, others=TABLES)


def _filled(text: str, tables: Mapping[str, Callable[[], str]], others: Iterable[str]) -> str:
    """What other results fill stays as it is."""

    def table(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind not in tables and kind in others:
            return match[0]
        if kind not in tables:
            raise ValueError(f"figures: {kind!r}: must be one of {', '.join(tables)}")
        return f"{match['open']}{tables[kind]()}{match['close']}"

    return MARKED.sub(table, text)


def _first(reports: Sequence[Report]) -> str:
    return to_markdown(layout.few(reports, FIRST))


def _headline(reports: Sequence[Report]) -> str:
    headline = {case.name for case in cases() if case.headline}
    table = layout.beside(reports, lambda row: row.case in headline and row.ratio is not None, targets=False)
    return to_markdown(table) + _sources(reports, ratios=True)


def _rows(reports: Sequence[Report]) -> str:
    return to_markdown(layout.beside(reports, lambda row: True, targets=True)) + _sources(reports, ratios=True)


def _lost(reports: Sequence[Report]) -> str:
    """The rows in which somebody else is faster, or a target is missed, on one of the machines."""
    lost = {(row.case, row.rival) for report in reports for row in report.rows if _loses(row)}
    if not lost:
        return "No row.\n"
    table = layout.beside(reports, lambda row: (row.case, row.rival) in lost, targets=True)
    return to_markdown(table) + _sources(reports, ratios=True)


def _loses(row: Row) -> bool:
    return row.verdict == "falls short" or (row.ratio is not None and row.ratio < 1 and row.verdict != "holds")


def _counts(reports: Sequence[Report]) -> str:
    return "".join(f"- {wording.compiled(report)}: {wording.counted(report)}.\n" for report in reports)


def _latency(reports: Sequence[Report]) -> str:
    return to_markdown(layout.latency(reports[0].latency)) + _sources(reports[:1])


def _memory(reports: Sequence[Report]) -> str:
    return to_markdown(layout.memory(reports[0].memory)) + _sources(reports[:1])


def _machine(reports: Sequence[Report]) -> str:
    facts = dict.fromkeys([*map(wording.where, reports), wording.versions(reports[0])])
    return "".join(_wrapped(f"- {fact}", indent="  ") for fact in facts) + _sources(reports)


def _sources(reports: Sequence[Report], *, ratios: bool = False) -> str:
    """Which files the figures are from."""
    files = ", ".join(f"`docs/results/{report.name}` of {report.date}" for report in reports)
    read = "`8x` is eight times as fast, per element. " if ratios else ""
    return "\n" + _wrapped(f"{read}From {files}: {wording.METHOD}.")


def _wrapped(text: str, indent: str = "") -> str:
    return fill_lines(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


TABLES: dict[str, Callable[[Sequence[Report]], str]] = {
    "headline": _headline,
    "first": _first,
    "rows": _rows,
    "lost": _lost,
    "counts": _counts,
    "latency": _latency,
    "memory": _memory,
    "machine": _machine,
}


def _accuracy_rows(report: AccuracyReport) -> str:
    made = f"From `docs/results/{report.name}` of {report.date}: {accuracy.METHOD}. {accuracy.versions(report)}."
    return accuracy.markdown(report) + "\n" + _wrapped(made)


def _accuracy_counts(report: AccuracyReport) -> list[str]:
    """How many hold, and which do not."""
    short = [f"{row.work} ({row.table})" for row in report.rows if row.verdict == "falls short"]
    return [accuracy.counted(report), *([f"What falls short: {'; '.join(short)}"] if short else [])]


ACCURACY_TABLES: dict[str, Callable[[AccuracyReport], str]] = {
    "accurate": lambda report: to_markdown(accuracy.few(report, ACCURATE)),
    "counts": lambda report: "".join(_wrapped(f"- {text}.", indent="  ") for text in _accuracy_counts(report)),
    "rows": _accuracy_rows,
}


AUDIT_TABLES: dict[str, Callable[[audited.AuditsReport], str]] = {
    "audits": lambda report: (
        _wrapped(f"- {audits.counted(report)}.", indent="  ")
        + f"\n{audits.markdown(report)}\n"
        + _wrapped(f"From `docs/results/{report.name}` of {report.date}.")
    )
}


def fill_audits(text: str, report: audited.AuditsReport) -> str:
    """The text with the tables of audits."""
    return _filled(text, {kind: partial(table, report) for kind, table in AUDIT_TABLES.items()}, others=())


def chosen_audits(paths: Sequence[Path]) -> audited.AuditsReport | None:
    """The newest results of audits among the files and folders."""
    files = [file for path in paths for file in (path.glob(AUDIT_FILES) if path.is_dir() else [path])]
    found = [audited.load(file) for file in files if file.match(AUDIT_FILES)]
    return max(found, key=lambda report: report.date, default=None)


def chosen_accuracy(paths: Sequence[Path]) -> AccuracyReport | None:
    """The newest results of accuracy among the files and folders, in the words of the registry."""
    files = [file for path in paths for file in (path.glob(ACCURACY_FILES) if path.is_dir() else [path])]
    found = [load_accuracy(file) for file in files if file.match(ACCURACY_FILES)]
    if not found:
        return None
    newest = max(found, key=lambda report: report.date)
    work = {one.name: one.work for one in tasks()}
    return replace(newest, rows=tuple(replace(row, work=work.get(row.task, row.work)) for row in newest.rows))


def chosen(paths: Sequence[Path]) -> list[Report]:
    """The files, and of each folder the newest for every SIMD level, widest first."""
    reports = []
    for path in paths:
        if path.is_dir():
            files = (file for file in path.glob("*.json") if not is_of_others(file))
            found = sorted(map(load, files), key=lambda report: report.date)
            newest = {str(report.machine["simd"]): report for report in found}
            reports += [newest[level] for level in SIMD_LEVELS if level in newest]
        elif not is_of_others(path):
            reports.append(load(path))
    return [_relabelled(report) for report in reports]


def is_of_others(file: Path) -> bool:
    """Whether a results file is of accuracy or audits, and not of speed."""
    return file.match(ACCURACY_FILES) or file.match(AUDIT_FILES)


def _relabelled(report: Report) -> Report:
    """A file keeps the words of its day; what is published has those of the registry, where it still has the case."""
    work = {case.name: case.work for case in (*cases(), *latencies())}
    titles = {curve.name: curve.title for curve in curves()}
    most = {memory.case: memory.most for memory in memories()}
    return replace(
        report,
        rows=tuple(replace(row, work=work.get(row.case, row.work)) for row in report.rows),
        latency=tuple(replace(row, work=work.get(row.case, row.work)) for row in report.latency),
        memory=tuple(
            replace(peak, work=work.get(peak.case, peak.work), most=most.get(peak.case)) for peak in report.memory
        ),
        curves=tuple({**curve, "title": titles.get(curve["name"], curve["title"])} for curve in report.curves),
    )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m fastdp.bench.reports.publish FOLDER | RESULTS.json ...", file=sys.stderr)
        return 2
    try:
        paths = [Path(name) for name in arguments]
        reports, of_accuracy, of_audits = chosen(paths), chosen_accuracy(paths), chosen_audits(paths)
        if not reports and of_accuracy is None and of_audits is None:
            raise ResultsError(f"{arguments[0]!r}: holds no results")
        for page in PAGES if reports else ():
            page.write_text(fill(page.read_text(encoding="utf-8"), reports), encoding="utf-8")
        if of_accuracy is not None:
            for page in ACCURACY_PAGES:
                page.write_text(fill_accuracy(page.read_text(encoding="utf-8"), of_accuracy), encoding="utf-8")
            ACCURACY_PICTURE.write_text(standing_alone(accuracy.picture(of_accuracy.rows)), encoding="utf-8")
        if of_audits is not None:
            AUDIT_PAGE.write_text(fill_audits(AUDIT_PAGE.read_text(encoding="utf-8"), of_audits), encoding="utf-8")
            AUDIT_PICTURE.write_text(standing_alone(audits.picture(of_audits.rows)), encoding="utf-8")
        if reports and reports[0].curves:
            CURVES.write_text(curves_svg(reports[0].curves), encoding="utf-8")
    except (OSError, ResultsError) as error:
        print(f"fastdp.bench.reports.publish: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
