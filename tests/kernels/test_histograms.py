"""Cells and their numbers: kernels/histograms.py against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastdp.kernels.histograms import (
    count_cells_in_bytes,
    count_cells_into,
    group_places_into,
    look_up_codes_into,
    number_cells_into,
)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("sizes", [(7,), (2, 3, 5), (256, 256, 256, 128), (1, 1, 4)])
def test_cells_are_numbered_in_c_order(sizes: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    some = np.array([rng.integers(0, size, 1000) for size in sizes], dtype)
    some[:, 0] = np.array(sizes) - 1  # the last cell
    out = np.empty(1000, np.uint32)
    every = np.arange(len(sizes))
    number_cells_into(some, every, np.array(sizes), out)
    want = np.ravel_multi_index(tuple(some.astype(np.int64)), sizes)
    assert np.array_equal(out, want)
    some_of_them = every[::-2]
    part = np.empty(1000, np.uint32)
    number_cells_into(some, some_of_them, np.array(sizes)[some_of_them], part)
    chosen = tuple(some[p].astype(np.int64) for p in some_of_them)
    assert np.array_equal(part, np.ravel_multi_index(chosen, [sizes[p] for p in some_of_them]))
    number_cells_into(some, every[:0], np.array(sizes)[:0], part)
    assert not part.any()
    if np.prod(sizes) < 10**6:
        total = np.arange(np.prod(sizes))
        count_cells_into(out, total)
        assert np.array_equal(total, np.arange(total.size) + np.bincount(want, minlength=total.size))


@pytest.mark.parametrize("low", [-(2**63), -7, 0, 2**63 - 6])
def test_codes_are_looked_up_in_a_range(low: int) -> None:
    table = np.array([3, -1, 0, 1, 2], np.int32)
    near = {max(low - 1, -(2**63)), *range(low, low + 5), min(low + 5, 2**63 - 1), -(2**63), 2**63 - 1, 0}
    values = np.array(sorted(near), np.int64)
    out = np.empty(values.size, np.int32)
    look_up_codes_into(values, low, table, -1, out)
    assert out.tolist() == [int(table[v - low]) if 0 <= v - low < 5 else -1 for v in values.tolist()]


def test_places_are_grouped_in_their_order() -> None:
    codes = np.random.default_rng(1).integers(-1, 9, 5_000).astype(np.int32)
    counts = np.bincount(codes + 1)[1:]
    starts = np.cumsum(counts) - counts
    out = np.empty(counts.sum(), np.int64)
    group_places_into(codes, starts, out)
    assert np.array_equal(out, np.argsort(codes, kind="stable")[(codes < 0).sum() :])
    assert np.array_equal(starts, np.cumsum(counts))


@pytest.mark.parametrize("most", [1, 2, 255, 256, 257, 100_000])
def test_bytes_carry_over(most: int) -> None:
    """Counts below, at and beyond what a byte holds, in several calls."""
    rng = np.random.default_rng(most)
    times = rng.integers(0, most + 1, 20)
    times[3] = most
    cells = rng.permutation(np.repeat(np.arange(20, dtype=np.uint32), times))
    low, high = np.zeros(20, np.uint8), np.zeros(20, np.int64)
    for part in np.array_split(cells, 7):
        count_cells_in_bytes(part, low, high)
    assert np.array_equal(high + low, times)
    assert not (high % 256).any()
