"""Instruction counts: callgrind's file is read right, a case that takes more fails, what cannot be judged passes."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.cases.registry import SIMD_LEVELS, cases
from fastdp.bench.harness import instructions
from fastdp.bench.harness.instructions import BASELINE, SUBSET, CannotCountError, Count, main, parse
from fastdp.support.machine import simd_level, target

MADE_WITH = {"Python": "3.12.1", "numpy": "2.1.0", "numba": "0.62.1", "llvmlite": "0.45.1"}
COUNTS = {name: Count(kernels=9e6, total=1e7) for name in SUBSET}

WRITTEN = """# callgrind format
version: 1
cmd: python -P -m fastdp.bench.harness.counted words:2000 import:10
part: 1

desc: Trigger: Client Request: words:2000

ob=(1) /usr/lib/libpython3.so
fl=(1) ???
fn=(1) call
10 100
+3 20
cob=(2) ???
cfi=(2) ???
cfn=(2) 0x04852000
calls=2 0
10 5000
ob=(2)
fn=(2)
0 5000
totals: 5120

part: 2
desc: Trigger: Client Request: import:10
ob=(1)
fn=(1)
* 300
ob=(2)
fn=(2)
0 700
totals: 1000

part: 3
desc: Trigger: Program termination
ob=(1)
0 7
totals: 7
"""


def _count(counts: Mapping[str, Count]) -> Any:
    return lambda subset: {name: counts[name] for name in subset}


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A baseline of COUNTS, made with MADE_WITH, which are also the versions here."""
    path = tmp_path / "instructions.json"
    monkeypatch.setattr(instructions, "BASELINE", path)
    monkeypatch.setattr(instructions, "versions", lambda: MADE_WITH)
    assert main(["--record"], _count(COUNTS)) == 0
    return path


def test_the_parts_of_a_file_are_told_apart() -> None:
    assert parse(WRITTEN) == {"words": Count(2500, 2560), "import": Count(7, 10)}  # 2 calls and 100


def test_the_subset_is_of_the_registry_and_in_the_baseline() -> None:
    assert set(SUBSET) <= {case.name for case in cases()}
    for made in instructions.read(BASELINE):
        assert {name: case["n"] for name, case in made["cases"].items()} == dict(SUBSET)


def test_as_many_as_before_passes(baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], _count(COUNTS)) == 0
    printed = capsys.readouterr().out
    assert "no case is more than 3 % above the baseline" in printed
    assert "baseline made with Python 3.12.1, numpy 2.1.0, numba 0.62.1, llvmlite 0.45.1" in printed
    (row,) = (line for line in printed.splitlines() if line.startswith("words"))
    assert row.split() == ["words", "1,000,000", "10.0", "90.0", "%", "10.0", "1.0000", "same"]


@pytest.mark.parametrize(("times", "code"), [(1.02, 0), (1.029, 0), (1.031, 1), (2.0, 1), (0.5, 0)])
def test_three_percent_more_fails(times: float, code: int, baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = COUNTS | {"mask-update": Count(9e6 * times, 1e7 * times)}
    capsys.readouterr()
    assert main([], _count(counts)) == code
    printed = capsys.readouterr().out
    assert ("more than 3 % above the baseline: mask-update" in printed) == bool(code)
    assert ("fewer than before: mask-update" in printed) == (times < 1)


def test_more_in_python_alone_fails_with_the_same_python(baseline: Path) -> None:
    assert main([], _count(COUNTS | {"words": Count(9e6, 1.1e7)})) == 1


@pytest.mark.parametrize("other", [{"Python": "3.13.0"}, {"numpy": "1.26.4"}])
def test_with_another_python_or_numpy_kernels_alone_are_judged(
    other: dict[str, str], baseline: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions, "versions", lambda: MADE_WITH | other)
    assert main([], _count({name: Count(9e6, 2e7) for name in SUBSET})) == 0
    assert "same, kernels alone" in capsys.readouterr().out
    assert main([], _count(COUNTS | {"words": Count(9.5e6, 1e7)})) == 1
    assert main([], _count(COUNTS | {"laplace-small-call": Count(9.5e6, 1e7)})) == 0  # is Python's part on purpose


@pytest.mark.parametrize("other", [{"numba": "0.63.0"}, {"llvmlite": "0.46.0"}])
def test_with_another_compiler_nothing_is_judged(
    other: dict[str, str], baseline: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions, "versions", lambda: MADE_WITH | other)
    more = {name: Count(9e7, 1e8) for name in SUBSET}
    assert main([], _count(more)) == 0
    assert "has no baseline for this numba and llvmlite: nothing is judged" in capsys.readouterr().out
    assert main(["--record"], _count(more)) == 0  # beside the other one
    assert len(json.loads(baseline.read_text())["baselines"]) == 2
    assert main([], _count(more)) == 0
    monkeypatch.setattr(instructions, "versions", lambda: MADE_WITH | {"numba": "0.62.9"})  # the last number is free
    assert main([], _count(more)) == 1


def test_recording_again_replaces_the_baseline(baseline: Path) -> None:
    more = {name: Count(9e7, 1e8) for name in SUBSET}
    assert main(["--record"], _count(more)) == 0
    assert main([], _count(more)) == 0
    assert len(json.loads(baseline.read_text())["baselines"]) == 1


def test_a_case_that_is_new_or_has_another_size_is_not_judged(
    baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(baseline.read_text())
    of_cases = content["baselines"][0]["cases"]
    del of_cases["words"]
    of_cases["mask-update"]["n"] = 10
    baseline.write_text(json.dumps(content))
    assert main([], _count({name: Count(9.1e6, 1.01e7) for name in SUBSET})) == 0
    printed = capsys.readouterr().out
    assert "no baseline: it has n=10" in printed
    assert main([], _count(COUNTS | {"words": Count(9e7, 1e8)})) == 0


# --- what cannot be done is one line and exit code 2


def _one_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_without_valgrind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main([]) == 2
    assert "needs valgrind, which is not installed" in _one_line(capsys)


def test_on_another_processor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert main([]) == 2
    assert "needs Linux on x86-64" in _one_line(capsys)


def test_on_a_processor_without_avx2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions, "simd_level", lambda *target: "sse2")
    assert main([]) == 2
    assert "needs AVX2; this machine has SSE2" in _one_line(capsys)


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 99}'])
def test_a_baseline_that_cannot_be_read(content: str, baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    baseline.write_text(content)
    assert main([], _count(COUNTS)) == 2
    assert f"'{baseline}': " in _one_line(capsys)


def test_a_process_that_fails_says_why() -> None:
    code = "raise SystemExit('no such luck')"
    with pytest.raises(CannotCountError, match=r"ended with 1: no such luck"):
        instructions._run([sys.executable, "-c", code], {})


# --- and in earnest


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="counts are made on x86-64 Linux")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.skipif(simd_level(*target()) not in SIMD_LEVELS, reason="kernels for AVX2 do not run here")
def test_callgrind_counts_the_same_twice() -> None:
    """Masks of 2^18 cells, 4 doubles at a time: a load, a mask and a sum, so 0.5 to 2 instructions a cell."""
    n = 1 << 18
    first, second = (instructions.count({"mask-evaluate": n})["mask-evaluate"] for _ in range(2))
    assert 0.5 * n < first.kernels < 2 * n
    assert first.kernels < first.total < 3 * n
    assert second.kernels == pytest.approx(first.kernels, rel=1e-3)
    assert second.total == pytest.approx(first.total, rel=5e-3)
