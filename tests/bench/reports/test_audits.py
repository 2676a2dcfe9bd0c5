"""Results of audits: written and read again, as tables, as a picture, on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastdp.bench.harness import audits as audited
from fastdp.bench.harness.results import ResultsError
from fastdp.bench.reports import audits, publish

ROWS = (
    audited.AuditedRow("laplace", "1-DP", "epsilon", 1.0, 0.987, False, "output <= 41", 100_000, 0.05, 3.38, 3.0),
    audited.AuditedRow("leaky", "1-DP", "epsilon", 1.0, 1.9, True, "output <= 2", 500, None, None, None),
    audited.AuditedRow("far", "1-DP", "epsilon", 1.0, 0.1, False, "output <= 2", 500, None, 1.0, 2.0, exceeded=True),
)
TIMED = (
    audited.TimedRow("laplace", 0.4, 1000),
    audited.TimedRow("slow", -9.0, 1000, 0.021),
    audited.TimedRow("descent", -9.0, 1000, 0.021, independent=False),
)
REPORT = audited.AuditsReport({"simd": "AVX2"}, ROWS, TIMED, "abc", "2026-01-02")


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    REPORT.write(tmp_path / REPORT.name)
    assert publish.chosen_audits([tmp_path]) == REPORT
    assert publish.chosen([tmp_path]) == [], "it is no file of speed"
    (tmp_path / "audits_other.json").write_text("{}")
    with pytest.raises(ResultsError, match=r"not as fastdp\.bench\.harness\.audits writes"):
        publish.chosen_audits([tmp_path])


def test_tables_say_what_was_refuted() -> None:
    text = audits.markdown(REPORT)
    assert "| laplace | epsilon 1 | 0.987 | 100,000 | 3.38 | 3 | not refuted |" in text
    assert "refuted" in next(line for line in text.splitlines() if line.startswith("| leaky"))
    assert "1 in the mean | 2 | **refuted**" in next(line for line in text.splitlines() if line.startswith("| far"))
    assert "2.1 % | 1,000 | **differs** |" in next(line for line in text.splitlines() if line.startswith("| slow"))
    assert "differs, as stated" in next(line for line in text.splitlines() if line.startswith("| descent"))
    assert audits.counted(REPORT) == (
        "1 of 3 claims and 1 of 2 bounds of errors refuted, at confidence 0.9999 each; 1 of 2 times depend on the "
        "records that are said not to"
    )


def test_the_page_and_the_picture() -> None:
    page = publish.fill_audits(publish.AUDIT_PAGE.read_text(encoding="utf-8"), REPORT)
    assert "| laplace | epsilon 1" in page
    assert "docs/results/audits_abc.json" in page
    assert publish.fill_audits(page, REPORT) == page
    assert audits.picture(ROWS).startswith("<svg")


def test_a_quick_run() -> None:
    report = audited.run(["laplace"], quick=True)
    assert [row.name for row in report.rows] == ["laplace"]
    assert [row.name for row in report.timed] == ["laplace"]
    assert report.rows[0].asked is not None
