"""The results file."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.harness import results, runner
from fastdp.bench.harness.results import ResultsError, load
from fastdp.bench.reports import page
from fastdp.cli import main
from tests.bench.reports.example import REPORT, ROW


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
