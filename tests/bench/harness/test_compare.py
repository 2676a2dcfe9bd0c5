"""`fastdp bench --compare`: what changed beyond the spread is reported, what cannot be compared has a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.cases.registry import choose
from fastdp.bench.harness import compare, judging, results, runner
from fastdp.cli import main

MACHINE = {
    "versions": {"fastdp": "0.1.0", "numpy": "2.0.0"},
    "cpu": "a CPU",
    "cores": 2,
    "compiled for": "haswell",
    "simd": "avx2",
}
QUIET = (1.0, 1.01, 1.02, 1.02, 1.03)  # rounds, in units of the least
NOISY = (1.0, 1.3, 1.4, 1.5, 1.6)


def _one(case: str = "words", ratio: float = 2.0, rounds: tuple[float, ...] = QUIET, **changes: Any) -> dict[str, Any]:
    """What a run measured of a case of one rival, which did half as many elements in half of `ratio` seconds."""
    rival = {"n": 500, "seconds": [ratio / 2 * r for r in rounds], "why_not": None}
    fields = {"case": case, "n": 1000, "threads": 1, "ours": list(rounds), "theirs": {"numpy": rival}}
    return fields | changes


def _report(*measured: dict[str, Any], machine: dict[str, Any] = MACHINE, quick: bool = False) -> results.Report:
    names = tuple(dict.fromkeys(one["case"] for one in measured))
    by_name = {one["case"]: one for one in measured}
    chosen = [case for case in choose(names) if case.name in names]
    rows = [row for case in chosen for row in judging.judge(case, by_name[case.name], None, machine)]
    return results.Report(machine, quick, False, tuple(rows), measured, {})


def _compare(old: results.Report, new: results.Report) -> compare.Comparison:
    return compare.compare(Path("old.json"), results.Report.from_json(json.loads(json.dumps(old.to_json()))), new)


def _verdict(then: float, now: float, rounds: tuple[float, ...] = QUIET) -> tuple[str, bool]:
    comparison = _compare(_report(_one(ratio=then)), _report(_one(ratio=now, rounds=rounds)))
    (change,) = comparison.changes
    assert change.factor == pytest.approx(now / then)
    return change.verdict, comparison.lost


@pytest.mark.parametrize(
    ("now", "rounds", "verdict"),
    [
        (2.0, QUIET, "same"),
        (1.95, QUIET, "same"),  # within 4 times 1 %
        (1.85, QUIET, "worse"),  # beyond it, by less than 15 %
        (1.5, QUIET, "lost"),
        (2.5, QUIET, "better"),
        (1.5, NOISY, "same"),  # rounds that differ by 30 % on both sides
        (2.5, NOISY, "same"),
        (0.9, NOISY, "lost"),
    ],
)
def test_a_change_counts_beyond_the_spread(now: float, rounds: tuple[float, ...], verdict: str) -> None:
    assert _verdict(2.0, now, rounds) == (verdict, verdict == "lost")


def test_a_machine_twice_as_slow_changes_nothing() -> None:
    slow = _one(ratio=2.0)
    slow["ours"] = [2 * t for t in slow["ours"]]
    slow["theirs"]["numpy"]["seconds"] = [2 * t for t in slow["theirs"]["numpy"]["seconds"]]
    (change,) = _compare(_report(_one()), _report(slow)).changes
    assert (change.verdict, change.factor) == ("same", 1.0)


def test_one_outlier_among_the_rounds_is_no_spread() -> None:
    assert _verdict(2.0, 1.5, (*QUIET, 50.0)) == ("lost", True)


def test_of_a_single_round_nothing_is_said() -> None:
    assert _verdict(2.0, 1.0, (1.0,)) == ("same", False)


def test_worst_first_and_what_is_not_compared_last() -> None:
    names = ("words", "mask-update", "literals-packed", "permute-and-flip")
    rivals = {name: choose((name,))[0].rivals[0].name for name in names}

    def run(**now: float) -> results.Report:
        measured = []
        for name in names:
            one = _one(name, now.get(name.replace("-", "_"), 2.0))
            one["theirs"] = {rivals[name]: one["theirs"]["numpy"]}
            measured.append(one)
        return _report(*measured)

    old = run()
    new = run(words=3.0, mask_update=1.0, literals_packed=1.4)
    new = replace(new, measured=new.measured[:3], rows=tuple(r for r in new.rows if r.case != "permute-and-flip"))
    new = replace(new, rows=(*new.rows, *_failed("permute-and-flip")))
    comparison = _compare(old, new)
    assert [(change.case, change.verdict) for change in comparison.changes] == [
        ("mask-update", "lost"),
        ("literals-packed", "lost"),
        ("words", "better"),
        ("permute-and-flip", "no figure now: it crashed"),
    ]


def _failed(name: str) -> list[results.Row]:
    return judging.judge(choose((name,))[0], None, "it crashed", MACHINE)


def test_rows_that_only_one_file_has_say_so() -> None:
    gone = _one("gone-case")
    old = replace(_report(_one()), measured=(gone, _one("import")))  # import was not measured now: no news
    verdicts = {change.case: change.verdict for change in _compare(old, _report(_one())).changes}
    assert verdicts == {"words": "not in the older file", "gone-case": "no such row now"}


def test_what_only_a_full_run_measures_is_compared_where_both_did() -> None:
    """A run of a few rows beside a full one is about these rows."""
    full = replace(_report(_one()), measured=(_one(), _one("curve-laplace@1000"), _one("small-median-10")))
    assert [change.case for change in _compare(full, _report(_one())).changes] == ["words"]
    verdicts = {change.case: change.verdict for change in _compare(full, full).changes}
    assert verdicts == dict.fromkeys(("words", "curve-laplace@1000", "small-median-10"), "same")


def test_a_rival_that_is_not_installed_says_so() -> None:
    absent = {"n": 500, "seconds": [], "why_not": "not installed"}
    without = _report(_one(theirs={"numpy": absent}))
    (change,) = _compare(_report(_one()), without).changes
    assert change.verdict == "no figure now: not installed"
    (change,) = _compare(without, without).changes
    assert change.verdict == "no figure: not installed"


def test_other_sizes_are_not_compared() -> None:
    comparison = _compare(_report(_one(n=20_000), quick=True), _report(_one()))
    (change,) = comparison.changes
    assert change.verdict == "not the same work: n=20,000 then, 1,000 now"
    assert comparison.notes == ("a quick run: its figures are rough",)
    assert not comparison.lost


def test_another_machine_and_other_versions_are_named() -> None:
    other = MACHINE | {"cpu": "another CPU", "versions": {"fastdp": "0.1.0", "numpy": "1.26.0"}}
    comparison = _compare(_report(_one(), machine=other), _report(_one(ratio=1.0)))
    machine, versions = comparison.notes
    assert machine.startswith("another machine: another CPU, 2 cores, compiled for haswell then, a CPU,")
    assert versions == "other versions: numpy 1.26.0 then, 2.0.0 now"
    assert comparison.lost


# --- the older file


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("not json", "not a results file of fastdp bench (no JSON)"),
        ("[1, 2]", "not a results file of fastdp bench"),
        ('{"benchmarks": []}', "not a results file of fastdp bench"),
        (lambda d: d | {"format": 99}, f"has format 99; this fastdp reads {results.FORMAT}"),
        (lambda d: d | {"measured": [{"case": "words"}]}, "not as fastdp bench writes it (KeyError: 'ours')"),
        (lambda d: d | {"measured": [_one(ours=[0.0])]}, "(ValueError: words: times must be > 0)"),
        (lambda d: d | {"measured": [_one(ours=[])]}, "not as fastdp bench writes it (ValueError:"),
        (lambda d: d | {"machine": {}}, "not as fastdp bench writes it (KeyError: 'cpu')"),
        (lambda d: d | {"machine": MACHINE | {"simd": "sse2"}}, "its kernels were compiled for SSE2, 128 bits, those"),
    ],
)
def test_a_file_that_cannot_be_compared_is_one_line(
    content: str | Callable[[Any], Any] | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.json"
    if callable(content):
        path.write_text(json.dumps(content(_report(_one()).to_json())))
    elif content is not None:
        path.write_text(content)
    assert main(["bench", "--avx2", "--only", "words", "--compare", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"fastdp bench: '{path}': ")
    assert why in captured.err


def test_a_file_of_avx2_says_how_to_match_it(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(_report(_one()).to_json()))
    with pytest.raises(results.ResultsError, match="--avx2 makes them alike"):
        compare.load(path, "avx512")
    assert compare.load(path, "avx2") == _report(_one())


# --- the command


@pytest.mark.parametrize(("then", "code"), [(2.0, 0), (4.0, 1)])
def test_the_command_prints_both_tables(
    then: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(runner, "run", lambda *arguments, **more: _report(_one()))
    path = tmp_path / "old.json"
    path.write_text(json.dumps(_report(_one(ratio=then)).to_json()))
    assert main(["bench", "--avx2", "--only", "words", "--compare", str(path), "--json", str(path)]) == code
    printed = capsys.readouterr().out
    assert "random 64-bit words, bulk" in printed
    assert ("1 lost, 0 worse, 0 same, 0 better" if code else "0 lost, 0 worse, 1 same, 0 better") in printed
    assert json.loads(path.read_text())["measured"][0]["ours"] == list(QUIET)  # written after it was read
