"""Results of the benchmarks: the file, the page, and the figures of the documentation."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.cases.registry import cases
from fastdp.bench.harness import results, runner
from fastdp.bench.harness.results import Peak, Report, ResultsError, Row, load
from fastdp.bench.reports import page, publish, wording
from fastdp.cli import main

ROOT = Path(__file__).parents[2]
MACHINE = {
    "versions": {"fastdp": "0.1.0", "numpy": "2.0.0"}, "system": "Linux", "cpu": "A <CPU> & more", "cores": 2,
    "compiled for": "znver5", "simd": "avx512", "threads": 1,
}  # fmt: skip
ROW = Row(
    case="laplace-int64-100-new", room="noise", work="laplace | int64 <scale 100>", parameters={"scale": 2.0**20},
    threads=1, n=1_000_000, ours=1.4e-3, rival="numpy", rival_n=1_000_000, rival_parameters={}, theirs=11.8e-3,
    ratio=8.43, kind="faster", limit=6.0, verdict="holds",
)  # fmt: skip
SLOW = replace(ROW, rival="OpenDP", rival_n=1000, rival_parameters={"scale": 100.0}, ratio=2.5, verdict="falls short")
GONE = replace(ROW, rival="a peer", theirs=None, ratio=None, kind=None, limit=None, verdict="crashed: <b>")
WITHIN = replace(ROW, case="import", work="import", n=1, kind="within", ratio=4.0, limit=0.5, verdict="holds")
POINTS = [
    {"x": 10**k, "n": 10**k, "ours": 1e8 * k, "numpy": 1e7 * k, "limit": 1e9, "threads": {"2": 1.9e8 * k}}
    for k in range(3, 6)
]
CURVE = {
    "name": "curve-x", "room": "noise", "title": "noise & more", "axis": "records", "unit": "a number",
    "numpy": "numpy", "threads": 1, "points": POINTS,
}  # fmt: skip
REPORT = Report(
    machine=MACHINE, quick=False, avx2=False, rows=(ROW, SLOW, GONE, WITHIN), measured=(), failed={"x": "it <crashed>"},
    curves=(CURVE,), latency=(WITHIN,),
    memory=(Peak("laplace", "laplace", 1000, 8000, 16_000, "numpy", 0), Peak("y", "y", 1, 8, None, None, None, "died")),
    commit="0123456789", date="2030-01-02 03:04 UTC",
)  # fmt: skip


# --- the file


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / REPORT.name
    REPORT.write(path)
    assert path.name == "a-cpu-more_znver5_0123456789.json"
    assert load(path) == REPORT
    assert len(path.read_text().splitlines()) < 60  # a row a line
    assert json.loads(path.read_text())["format"] == results.FORMAT


def test_times_keep_six_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    replace(REPORT, rows=(replace(ROW, ours=1.23456789e-7),)).write(path)
    assert load(path).rows[0].ours == 1.23457e-7


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 1}, "has format 1; this fastdp reads"),
        ({"rows": [{"case": "x"}]}, "not as fastdp bench writes it (TypeError"),
        ({"surprise": 1}, "not as fastdp bench writes it (TypeError"),
        ({"measured": 3}, "not as fastdp bench writes it (TypeError"),
    ],
)
def test_files_that_are_none_say_so(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(REPORT.to_json() | change))
    with pytest.raises(ResultsError) as caught:
        load(path)
    assert str(caught.value).startswith(repr(str(path)))
    assert why in str(caught.value)


def test_the_commit_is_of_this_checkout_or_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?", results.commit() or "0000000")
    monkeypatch.setattr(results, "__file__", str(tmp_path / "results.py"))  # installed, in a folder that git knows not
    assert results.commit() is None
    monkeypatch.setenv("PATH", str(tmp_path))  # no git
    assert results.commit() is None


def test_a_folder_gets_a_file_by_machine_and_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "run", lambda *arguments, **more: REPORT)
    html = tmp_path / "report.html"
    assert main(["bench", "--json", str(tmp_path), "--html", str(html)]) == 1  # as one case has failed
    assert load(tmp_path / REPORT.name) == REPORT
    assert str(tmp_path / REPORT.name) in capsys.readouterr().out
    assert html.read_text() == page.page(REPORT)


def test_files_are_written_before_a_reader_can_go_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def gone(*arguments: Any) -> None:
        raise SystemExit(1)  # as rich ends when `head` has seen enough

    monkeypatch.setattr(runner, "run", lambda *arguments, **more: REPORT)
    monkeypatch.setattr("fastdp.bench.reports.terminal.show", gone)
    path, html = tmp_path / "r.json", tmp_path / "r.html"
    with pytest.raises(SystemExit):
        main(["bench", "--json", str(path), "--html", str(html)])
    assert load(path) == REPORT
    assert html.read_text() == page.page(REPORT)


def test_no_page_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--html", str(tmp_path)]) == 2
    assert "cannot be written (Is a directory)" in capsys.readouterr().err


# --- the page


class _Page(HTMLParser):
    VOID = ("meta", "br", "path", "use", "image")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.said += data


def test_the_page_stands_alone() -> None:
    text = page.page(REPORT)
    read = _Page(text)
    assert read.open == []
    assert all(target.startswith("#") and target[1:] in read.ids for target in read.targets)
    assert "@import" not in text
    assert "url(http" not in text
    assert "<script" not in text


def test_the_page_says_what_the_results_say() -> None:
    said = _Page(page.page(REPORT)).said
    for words in (
        "A <CPU> & more, 2 cores", "laplace | int64 <scale 100>", "scale=1,048,576", "8.43x", "≥ 6x", "11.8 ms",
        "crashed: <b>", "falls short", "0.250x time", "n=1,000, scale=100", "16.0 kB, 2.00x", "died", "x: it <crashed>",
        "numpy 2.0.0", "0123456789", "2030-01-02 03:04 UTC", "2 hold, 1 fall short", "10.0 times as fast as numpy",
    ):  # fmt: skip
        assert words in said, words


def test_curves_take_the_colours_of_the_page() -> None:
    text = page.page(REPORT)
    svg = text[text.index("<svg") : text.index("</svg>")]
    for name in ("--ink", "--ours", "--other", "--limit"):
        assert f"var({name})" in svg
    assert "fastdp, 2 threads" in svg
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
    assert used <= {"#ffffff"}, used  # nothing that cannot be read on a dark screen


def test_a_curve_says_where_fastdp_loses_too() -> None:
    (curve, *_) = REPORT.curves
    points = [dict(curve["points"][0], ours=ours, numpy=1e9) for ours in (2e8, 5e9, None)]
    assert "0.200 to 5.00 times as fast as numpy" in page.page(replace(REPORT, curves=(dict(curve, points=points),)))


def test_nothing_of_the_page_is_lost_on_paper_or_on_a_telephone() -> None:
    text = page.page(REPORT)
    for_paper = "".join(re.findall(r"@media print \{(.*?\})\s*\}", text, flags=re.DOTALL))
    assert ".scroll { overflow: visible; }" in for_paper  # or the verdicts, in the last column, are cut off
    assert "@media screen and (max-width" in text  # paper is narrow, too, and has room for tables
    assert '<td class="number" data-of="fastdp">1.40 ms' in text  # where the heads of the columns are hidden
    assert "content: attr(data-of)" in text


def test_a_quick_run_is_not_judged() -> None:
    assert wording.counted(replace(REPORT, quick=True)) == "a quick run: no row is judged"
    assert "the figures are rough" in page.page(replace(REPORT, quick=True))


def test_a_run_in_which_nothing_was_measured_has_a_page() -> None:
    nothing = Report(machine={}, quick=False, avx2=False, rows=(), measured=(), failed={"words": "no such luck"})
    assert "nothing could be measured" in page.page(nothing)


# --- the documentation

MARKS = "before\n<!-- figures: {} -->\nstale\n<!-- end of figures -->\nafter\n"


@pytest.mark.parametrize("kind", publish.TABLES)
def test_marked_tables_are_filled(kind: str) -> None:
    avx2 = replace(REPORT, machine=MACHINE | {"simd": "avx2"}, rows=(replace(ROW, ratio=3.9), WITHIN))
    filled = publish.fill(MARKS.format(kind), (REPORT, avx2))
    assert filled.startswith(f"before\n<!-- figures: {kind} -->\n")
    assert filled.endswith("<!-- end of figures -->\nafter\n")
    assert "stale" not in filled
    assert publish.fill(filled, (REPORT, avx2)) == filled
    for line in filled.splitlines():
        if line.startswith("|"):  # as many cells as in the table's first line
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", _head(filled, line)))
    if kind == "headline":
        assert r"| laplace \| int64 <scale 100> | numpy | 8.43x | 3.90x |" in filled
        assert "OpenDP, n=1,000, scale=100 | 2.50x |  |" in filled
        assert REPORT.name in filled
    if kind == "rows":
        assert "| 8.43x | ≥ 6x | 3.90x | ≥ 6x |" in filled
        assert "≥ 6x: **falls short**" in filled
        assert "crashed: <b>" in filled


def _head(text: str, line: str) -> str:
    before = text[: text.index(line)].split("\n\n")[-1].splitlines()
    return next((other for other in before if other.startswith("|")), line)


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="figures: 'lies': must be one of headline"):
        publish.fill(MARKS.format("lies"), (REPORT,))


def test_of_a_folder_the_newest_are_taken(tmp_path: Path) -> None:
    reports = [
        replace(REPORT, date=date, commit=commit, machine=MACHINE | {"simd": simd})
        for simd, date, commit in (("avx2", "2030-02", "a"), ("avx512", "2030-01", "b"), ("avx512", "2030-03", "c"))
    ]
    for report in reports:
        report.write(tmp_path / f"{report.commit}.json")
    assert [report.commit for report in publish.chosen([tmp_path])] == ["c", "a"]
    assert [report.commit for report in publish.chosen([tmp_path / "b.json"])] == ["b"]


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert publish.main([]) == 2
    assert publish.main([str(tmp_path)]) == 2
    assert publish.main([str(tmp_path / "none.json")]) == 2
    usage, empty, missing = capsys.readouterr().err.strip().splitlines()
    assert usage.startswith("usage:")
    assert "holds no results" in empty
    assert "cannot be read (No such file or directory)" in missing


def test_the_documentation_shows_the_results_that_it_names() -> None:
    reports = publish.chosen([ROOT / "docs" / "results"])
    assert [report.machine["simd"] for report in reports] == ["avx512", "avx2"]
    assert all(not report.quick and not report.failed for report in reports)
    for path in publish.PAGES:
        text = path.read_text(encoding="utf-8")
        assert publish.fill(text, reports) == text, f"{path.name}: python -m fastdp.bench.reports.publish docs/results"
    assert publish.CURVES.is_file()


def test_the_headline_cases_exist_in_the_results() -> None:
    shown = {row.case for row in publish.chosen([ROOT / "docs" / "results"])[0].rows}
    assert {case.name for case in cases() if case.headline} <= shown
