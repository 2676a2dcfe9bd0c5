"""Passes around a sort of positions (ordering.py of kernels and records) against numpy and Python's integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fastdp.kernels import ordering as kernels
from fastdp.records import ordering

MANY = 2**14 + 3
COLUMNS = {
    "everywhere": lambda draw: draw.integers(0, 2**64, MANY, np.uint64),
    "narrow": lambda draw: draw.integers(2**63, 2**63 + 2**32, MANY, np.uint64),
    "one too wide": lambda draw: np.append(draw.integers(7, 2**32, MANY, np.uint64), np.array([6, 6 + 2**32], "u8")),
    "spaced": lambda draw: np.uint64(5) + (draw.integers(0, 2**32, MANY, np.uint64) << np.uint64(32)),
    "one number": lambda draw: np.full(MANY, 2**64 - 1, np.uint64),
    "ends": lambda draw: draw.choice(np.array([0, 2**64 - 1], np.uint64), MANY),
    "few": lambda draw: draw.integers(0, 2**64, 100, np.uint64),
    "none": lambda draw: np.empty(0, np.uint64),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_positions_are_sorted_as_numpy_sorts_them(name):
    values = COLUMNS[name](np.random.default_rng(3))
    expected = np.sort(values)
    if values.size:
        least, greatest, differing = map(int, kernels.find_span(values))
        assert (least, greatest) == (int(values.min()), int(values.max()))
        assert differing == int(np.bitwise_or.reduce(values ^ values[0]))
    ordering.sort_positions(values)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(("share", "found"), [(0.0, False), (0.05, False), (0.5, True), (0.95, True)])
def test_many_ties_are_noticed(share, found):
    draw = np.random.default_rng(4)
    values = np.where(draw.random(2**16) < share, np.uint64(7), draw.integers(0, 2**63, 2**16, np.uint64))
    assert ordering.has_many_ties(values) is found
    assert not ordering.has_many_ties(values[:1000])


@pytest.mark.parametrize("distinct", [1, 2, 300, 2**62])
def test_runs_are_those_of_groupby(distinct):
    draw = np.random.default_rng(5)
    for n in (0, 1, 2, 700):
        values = np.sort(draw.integers(0, distinct, n).astype(np.uint64))
        lows, keys = draw.integers(0, 2**32, n, np.uint32), np.empty(n, np.uint64)
        runs = [list(group) for _, group in itertools.groupby(values.tolist())]
        assert kernels.count_equal_runs(values) == len(runs)
        kernels.key_runs_into(values, lows, keys)
        numbers = [i for i, run in enumerate(runs) for _ in run]
        assert keys.tolist() == [(i << 32) + low for i, low in zip(numbers, lows.tolist(), strict=True)]
