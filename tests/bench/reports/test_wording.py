"""How figures are worded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastdp.bench.reports import wording
from tests.bench.reports.example import ROW


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (9.996e-4, "1.00 ms"),
        (3.8e-6, "3.80 µs"),
        (5e-10, "0.500 ns"),
        (2000, "2,000 s"),
    ],
)
def test_times_are_written_with_three_digits(value: float, text: str) -> None:
    assert wording.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0807, "0.08 of numpy's time"),
        (0.004, "0.004 of numpy's time"),
        (0.98, "0.98 of numpy's time"),
        (0.997, "1.00 times numpy's time"),
        (1.054, "1.05 times numpy's time"),
        (12.34, "12.3 times numpy's time"),
    ],
)
def test_shares_and_multiples_are_written_as_they_are_read(value: float, text: str) -> None:
    assert wording.times(value, "numpy's time") == text


def test_parameters_are_words() -> None:
    given = {"kind": "int64", "scale": 2.0**20, "d": 20, "steps": 50, "loss": "squared"}
    row = replace(ROW, rival_n=1000, rival_parameters=given)
    words = "n = 1,000, int64, scale 1,048,576, 20 columns, 50 steps, squared loss"
    assert wording.rival_parameters(row) == words
    assert wording.rival_parameters(row, "int64 and 120 columns") == words.replace("int64, ", "")


def test_a_time_that_is_limited_is_a_share_or_a_multiple() -> None:
    within = replace(ROW, kind="within", ratio=4.0, limit=1.05)
    assert (wording.ratio(within), wording.target(within)) == ("0.25 of numpy's time", "≤ 1.05")
    assert wording.ratio(replace(within, rival="plain values")) == "0.25 of the time"
    assert wording.target(replace(within, limit=0.5)) == "≤ 0.5"
