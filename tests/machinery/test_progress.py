"""Whatever reads records for seconds takes `progress=`, and says how far it has come."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import statistics
from tests.machinery.calls import CALLS

QUICK = {
    "laplace": "noise on numbers that are there: 2 ns each",
    "gaussian": "the same",
    "permute_and_flip": "one pass over scores in memory",
    "best_of": "how many runs there are is private",
    "plan_releases": "public numbers",
    "plan_synthesis": "public numbers",
    "peeling_eta": "public numbers",
    "removal_eta": "public numbers",
}
"""What takes an epsilon and no `progress`, and why."""


def offered() -> dict[str, Any]:
    some = {name: getattr(fastdp, name) for name in fastdp.__all__}
    some |= {f"statistics.{name}": getattr(statistics, name) for name in dir(statistics)}
    return {name: thing for name, thing in some.items() if inspect.isfunction(thing) and name[0] != "_"}


def parameters(name: str) -> Any:
    return inspect.signature(offered()[name]).parameters


OF_BLOCKS = {"exponential_mechanism", "top_k"}
"""Where it is for scores that a function produces: tests/mechanisms/test_selection.py."""

TAKE_EPSILON = sorted(name for name in offered() if {"epsilon", "budget"} & {*parameters(name)})
WITH_PROGRESS = sorted(name for name in offered() if "progress" in parameters(name))


def test_every_function_that_reads_records_takes_it() -> None:
    without = {name for name in TAKE_EPSILON if "progress" not in parameters(name)}
    assert without == {*QUICK}
    assert len(WITH_PROGRESS) > 25


@pytest.mark.parametrize("name", sorted({*WITH_PROGRESS} & {*CALLS} - OF_BLOCKS))
def test_steps_are_told_in_order_up_to_the_last(name: str) -> None:
    heard: list[tuple[int, int, str]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, given, named = CALLS[name](np.random.default_rng(5))
        function(*given, **{**named, "progress": lambda *told: heard.append(told)})
    assert heard, "nothing was told"
    done = [each[0] for each in heard]
    assert all(0 <= each[0] <= each[1] for each in heard)
    assert heard[-1][0] == heard[-1][1]
    assert heard[-1][2] == "", "the last step says that all is done"
    assert done == sorted(done)


@pytest.mark.parametrize("name", sorted({*WITH_PROGRESS} & {*CALLS} & {*TAKE_EPSILON}))
def test_what_is_no_progress_costs_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, given, named = CALLS[name](np.random.default_rng(5))
        with fastdp.Budget(epsilon=1e6, delta=0.5, neighbors=named.get("neighbors", "replace-one")) as budget:
            with pytest.raises((ValueError, TypeError), match="progress"):
                function(*given, **{**named, "budget": budget, "progress": 3})
            assert not budget.releases
