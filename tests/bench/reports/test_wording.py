"""How figures are worded."""

from __future__ import annotations

import pytest

from fastdp.bench.reports import wording


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
