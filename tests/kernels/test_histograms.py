"""Cells and their numbers: kernels/histograms.py against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastdp.kernels.histograms import count_cells_into, number_cells_into


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("sizes", [(7,), (2, 3, 5), (256, 256, 256, 128), (1, 1, 4)])
def test_cells_are_numbered_in_c_order(sizes: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    some = np.array([rng.integers(0, size, 1000) for size in sizes], dtype)
    some[:, 0] = np.array(sizes) - 1  # the last cell
    out = np.empty(1000, np.uint32)
    number_cells_into(some, np.array(sizes), out)
    want = np.ravel_multi_index(tuple(some.astype(np.int64)), sizes)
    assert np.array_equal(out, want)
    if np.prod(sizes) < 10**6:
        total = np.arange(np.prod(sizes))
        count_cells_into(out, total)
        assert np.array_equal(total, np.arange(total.size) + np.bincount(want, minlength=total.size))
