"""`fastdp bench` and `pytest bench`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.cases.registry import (
    SIMD_LEVELS,
)
from fastdp.cli import main
from fastdp.support.machine import simd_level
from fastdp.support.machine import target as compiled_for


def test_the_command_prints_a_table_and_writes_every_round(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "bench.json"
    assert (
        main(["bench", "--quick", "--targets", "--only", "words", "--only", "laplace-small", "--json", str(path)]) == 0
    )
    printed = capsys.readouterr().out
    for word in ("fastdp", "against", "takes", "ratio", "target", "verdict", "numpy", "random 64-bit words, bulk"):
        assert word in printed
    level = simd_level(*compiled_for())
    assert {"avx512": "≥ 4.5x", "avx2": "≥ 1.5x"}.get(level, "no target for") in printed
    assert "quick run" in printed
    written = json.loads(path.read_text())
    assert [row["case"] for row in written["rows"]] == ["words", "laplace-small-call", "laplace-small-call"]
    assert [row["ratio"] is None for row in written["rows"]] == [False, False, True]  # the last is of seconds
    assert all((row["ratio"] or 1) > 0 and row["ours"] > 0 for row in written["rows"])
    assert all(len(measured["ours"]) >= 3 for measured in written["measured"])
    assert written["failed"] == {}


def test_avx2_is_compiled_for_and_judged_as_avx2(capsys: pytest.CaptureFixture[str]) -> None:
    if simd_level(*compiled_for()) not in SIMD_LEVELS:
        return  # haswell code does not run here
    assert main(["bench", "--quick", "--avx2", "--only", "words"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "compiled for haswell (AVX2, 256 bits)" in printed
    assert "≥ 1.5x" in printed
    assert "the others use all that the machine has" in printed


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("laplace-smal1-call", "start of a case's name, such as laplace-small-call"),
        ("zzz", "must be a room (noise, accounting, selection, answering, optimizing, learning"),
        ("curve-mask", "a curve, latency or memory must come with full=True (--full)"),
        ("latency", "a curve, latency or memory must come with full=True (--full)"),
    ],
)
def test_an_unknown_case_is_one_short_line(word: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--only", "words", "--only", word]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip().count("\n") == 0
    assert captured.err.startswith(f"fastdp bench: only={word!r}: ")
    assert why in captured.err
    assert len(captured.err) < 300


def test_pytest_bench_runs_the_registry() -> None:
    """`pytest bench`, at the root of the repository, under the package's own name and no other."""
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "bench",
        "-q",
        "-p",
        "no:cacheprovider",
        "--benchmark-disable",
        "-k",
        "words",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_full_run_of_a_curve(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "full.json"
    words = ("curve-laplace", "memory-laplace-int64-100-new", "small-laplace-1000", "laplace-small")
    only = [part for word in words for part in ("--only", word)]
    assert main(["bench", "--full", "--quick", "--threads", "1,2", *only, "--json", str(path)]) == 0
    written, printed = json.loads(path.read_text()), capsys.readouterr().out
    assert written["format"] == 2
    (curve,) = written["curves"]
    assert {"name", "title", "axis", "unit", "points"} <= set(curve)
    assert [point["x"] for point in curve["points"]] == [1_000, 10_000]
    for point in curve["points"]:
        assert point["ours"] > 0
        assert point["numpy"] > 0
        assert point["limit"] > 0
    assert list(dict.fromkeys(row["case"] for row in written["latency"])) == [
        "laplace-small-call",
        "small-laplace-1000",
    ]
    assert written["memory"][0]["case"] == "laplace-int64-100-new"
    assert written["limits"]["words"] > 0
    assert written["threads"] == [1, 2]
    assert "machine's limit" in printed
    assert "beside its input" in printed


@pytest.mark.parametrize("text", ["0", "1,", "two", ""])
def test_numbers_of_threads_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--threads", text])
    assert "as in 1,2" in capsys.readouterr().err
