"""Errors and forms of public calls that no test of a room comes by: found by the lines that the suite did not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets, statistics

VALUES = np.linspace(0.0, 1.0, 50)
ROWS = np.full((20, 2), 0.5)
DESCENT: dict[str, Any] = {
    "loss": losses.SquaredDistance(x_norm=1), "over": sets.Ball(1.0), "steps": 3, "step_size": 0.1,
}  # fmt: skip

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "cells of two columns": (
        lambda: statistics.histogram(
            {"a": VALUES, "b": VALUES}, dict.fromkeys("ab", np.linspace(0, 1, 20_001)), epsilon=1.0
        ),
        r"^bins: 400,000,000 cells: must be at most .*, one column times the other",
    ),
    "sums by nothing": (
        lambda: statistics.sum_by({"a": VALUES}, "a", by=None, bounds=(0, 1), epsilon=1.0, delta=1e-6),
        "^by=None: must be the name of a column, or a list of different ones",
    ),
    "a step beyond floats": (
        lambda: fastdp.projected_gradient_descent(ROWS, **DESCENT | {"step_size": 2.0**301}),
        r"^step_size=.*: must be between 2\^-300 and 2\^300",
    ),
    "more points than are kept": (
        lambda: fastdp.projected_gradient_descent(np.full((20, 20), 0.2), **DESCENT | {"steps": 2**24}),
        r"^steps=16777216: must be at most 13,421,772 for 20 columns, as all points are kept",
    ),
    "predictions of other records": (
        lambda: fastdp.error(lambda X: np.ones(3, bool), ROWS, np.ones(20, bool)),
        r"^h: \(3,\) predictions: must be \(20,\), one for each record",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_they_are_refused_by_name(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_private_number_is_used_as_one() -> None:
    mean = statistics.mean(VALUES, bounds=(0.0, 1.0), epsilon=1.0)
    assert round(mean, 2) == round(mean.value, 2)
    assert f"{mean:.3f}" == f"{mean.value:.3f}"
    assert f"{mean}" == str(mean)
    assert np.asarray(mean) == mean.value
    assert np.asarray(mean, dtype=np.float32).dtype == np.float32
    assert f"{mean.deviation:.4g}" in repr(mean)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
def test_rules_of_too_few_records_say_that_they_have_no_error_bound() -> None:
    rule = fastdp.learn_decision_list(ROWS > 0, ROWS[:, 0] > 0, epsilon=1.0)
    assert "no error bound: too few records for this epsilon" in repr(rule)
