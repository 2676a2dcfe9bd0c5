"""The figures of the documentation."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fastdp.bench.cases.registry import cases
from fastdp.bench.reports import publish
from tests.bench.reports.example import MACHINE, REPORT, ROW, WITHIN

ROOT = Path(__file__).parents[3]
MARKS = "before\n<!-- figures: {} -->\nstale\n<!-- end of figures -->\nafter\n"


@pytest.mark.parametrize("kind", publish.TABLES)
def test_marked_tables_are_filled(kind: str) -> None:
    avx2 = replace(REPORT, machine=MACHINE | {"simd": "avx2"}, rows=(replace(ROW, ratio=3.9, share=0.437), WITHIN))
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
        assert "OpenDP, n = 1,000, scale 200 | 2.50x |  |" in filled
        assert REPORT.name in filled
    if kind == "rows":
        assert "| 8.43x | ≥ 6x |  | 3.90x | ≥ 6x | 44% |" in filled
        assert "**≥ 6x: falls short**" in filled
        assert "crashed: <b>" in filled


def test_the_page_of_losses_shows_what_loses_and_nothing_else() -> None:
    """On any of the machines: a rival that is faster, a target that is missed."""
    won, missed = replace(ROW, case="won", work="won", ratio=8.0), replace(ROW, case="missed", work="missed")
    missed = replace(missed, ratio=3.0, verdict="falls short")
    beaten = replace(ROW, case="beaten", work="beaten", ratio=0.7, verdict="no target")
    meant = replace(ROW, case="meant", work="meant", ratio=0.4, verdict="holds")
    reports = (replace(REPORT, rows=(won, missed, beaten, meant)), replace(REPORT, rows=(won,)))
    for each in (reports, reports[::-1]):
        shown = publish.fill(MARKS.format("lost"), each)
        assert [word for word in ("won", "missed", "beaten", "meant") if f"| {word} " in shown] == ["missed", "beaten"]
    assert "\nNo row.\n" in publish.fill(MARKS.format("lost"), (replace(REPORT, rows=(won, meant)),))


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


def test_the_page_of_accuracy_shows_the_results_that_it_names() -> None:
    report = publish.chosen_accuracy([ROOT / "docs" / "results"])
    assert report is not None
    assert not report.quick
    assert not report.failed
    for path in publish.ACCURACY_PAGES:
        text = path.read_text(encoding="utf-8")
        remedy = f"{path.name}: python -m fastdp.bench.reports.publish docs/results"
        assert publish.fill_accuracy(text, report) == text, remedy
    assert publish.ACCURACY_PICTURE.is_file()


def test_the_first_screen_shows_accuracy_beside_the_best_that_is_not_ours() -> None:
    report = publish.chosen_accuracy([ROOT / "docs" / "results"])
    assert report is not None
    table = publish.fill_accuracy(MARKS.format("accurate"), report)
    assert table.count("\n| ") == 2 + len(publish.ACCURATE)
    for task, work in publish.ACCURATE:
        row = next(row for row in report.rows if row.task == task)
        best = min(other.figure for other in row.others if not other.name.startswith("fastdp"))
        assert row.kind == "at most"
        assert row.ours is not None
        shown = re.search(rf"\| {re.escape(work)} \| ([\d.e-]+) % \| \**([\d.e-]+) %\** \| (.+) \|\n", table)
        assert shown is not None, work
        assert [float(shown[1]), float(shown[2])] == pytest.approx([100 * row.ours, 100 * best], rel=0.006)
        assert ("**" in shown[0]) == (best < row.ours)


def test_a_better_one_stands_out_and_a_task_without_others_has_none() -> None:
    report = publish.chosen_accuracy([ROOT / "docs" / "results"])
    assert report is not None
    row = next(row for row in report.rows if row.task == publish.ACCURATE[0][0])
    lost = replace(row, others=(replace(row.others[0], name="theirs", figure=0.0),))
    assert "| **0 %** | theirs |" in publish.fill_accuracy(MARKS.format("accurate"), replace(report, rows=(lost,)))
    ours = replace(row, others=(replace(row.others[0], name="fastdp, another way"),))
    assert "%  |" not in publish.fill_accuracy(MARKS.format("accurate"), replace(report, rows=(ours,)))
    assert "another way" not in publish.fill_accuracy(MARKS.format("accurate"), replace(report, rows=(ours,)))


def test_what_falls_short_is_named_first() -> None:
    report = publish.chosen_accuracy([ROOT / "docs" / "results"])
    assert report is not None
    held, short = (replace(report.rows[0], verdict=verdict) for verdict in ("holds", "falls short"))
    name = f"What falls short: {short.work}"[:60]
    assert name in publish.fill_accuracy(MARKS.format("counts"), replace(report, rows=(held, short)))
    assert "What falls" not in publish.fill_accuracy(MARKS.format("counts"), replace(report, rows=(held,)))


def test_each_kind_of_results_leaves_the_tables_of_the_other_alone() -> None:
    report = publish.chosen_accuracy([ROOT / "docs" / "results"])
    assert report is not None
    assert publish.fill(MARKS.format("accurate"), (REPORT,)) == MARKS.format("accurate")
    assert publish.fill_accuracy(MARKS.format("headline"), report) == MARKS.format("headline")
    with pytest.raises(ValueError, match="figures: 'lies': must be one of accurate"):
        publish.fill_accuracy(MARKS.format("lies"), report)


def test_the_first_screen_shows_six_rows_of_the_headline() -> None:
    table = publish.fill(MARKS.format("first"), publish.chosen([ROOT / "docs" / "results"]))
    assert table.count("\n| ") == 2 + len(publish.FIRST) == 8
    assert {case for case, *_ in publish.FIRST} <= {case.name for case in cases() if case.headline}


def test_labels_are_of_today_and_figures_of_the_file(tmp_path: Path) -> None:
    row = replace(REPORT.rows[0], work="in the words of that day")
    replace(REPORT, rows=(row, replace(row, case="gone-since"))).write(tmp_path / "old.json")
    (report,) = publish.chosen([tmp_path / "old.json"])
    assert [one.work for one in report.rows] == [
        "Laplace noise, int64, scale 100, new array",
        "in the words of that day",
    ]
    assert report.rows[0].ratio == row.ratio


def test_the_headline_cases_exist_in_the_results() -> None:
    shown = {row.case for row in publish.chosen([ROOT / "docs" / "results"])[0].rows}
    assert {case.name for case in cases() if case.headline} <= shown
