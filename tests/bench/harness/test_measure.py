"""How a case is timed: turns, threads, cores, failures."""

from __future__ import annotations

import os
from typing import Any

import pytest

import fastdp
from fastdp.bench.cases.noise.new_process import python_seconds
from fastdp.bench.cases.registry import (
    Case,
    Side,
)
from fastdp.bench.harness import measure
from tests.bench.example import idle_case


def _run(case: Case) -> tuple[measure.Duel, dict[str, Any]]:
    with measure.Duel(case, quick=True) as duel:
        for _ in range(duel.rounds):
            duel.before_round()
            duel.round()
    return duel, duel.result([1.0] * duel.rounds)


def test_threads_and_cores_are_as_the_side_says_and_are_put_back() -> None:
    seen: dict[int, set[Any]] = {1: set(), 2: set()}

    def side(name: str, threads: int) -> Side:
        cores = getattr(os, "sched_getaffinity", lambda pid: {None})
        return Side(
            name, lambda n: lambda: seen[threads].add((fastdp.get_num_threads(), len(cores(0)))), threads=threads
        )

    before = fastdp.get_num_threads(), getattr(os, "sched_getaffinity", lambda pid: None)(0)
    _run(idle_case(ours=side("fastdp", 2), rivals=(side("nothing", 1),)))
    assert (fastdp.get_num_threads(), getattr(os, "sched_getaffinity", lambda pid: None)(0)) == before
    assert seen[1] == {(1, 1)}
    assert {threads for threads, _ in seen[2]} == {2}


def test_both_sides_take_turns() -> None:
    order: list[str] = []
    ours, theirs = (Side(name, lambda n, name=name: lambda: order.append(name)) for name in ("ours", "nothing"))
    _run(idle_case(ours=ours, rivals=(theirs,)))
    assert order[-6:] == ["nothing", "ours"] * 3


def test_a_rival_that_fails_is_a_cell_and_not_the_end() -> None:
    def crash(n: int) -> Any:
        raise RuntimeError("no such feature")

    rivals = (
        Side("nothing", crash),
        Side("late", lambda n: lambda: crash(n)),
    )
    _, result = _run(idle_case(rivals=rivals))
    whys = {name: theirs["why_not"] for name, theirs in result["theirs"].items()}
    assert whys == {
        "nothing": "RuntimeError: no such feature",
        "late": "RuntimeError: no such feature",
    }


def test_a_failing_child_says_which_code_failed() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        python_seconds("1 / 0")
