"""Sums of integers that are exact, or an OverflowError: neither they nor the error depend on the order of the terms.

A sum is held in two halves, 2^32 times the first and the second, of which many can be added before they are joined.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Halves = tuple[NDArray[Any], NDArray[Any]]  # of integers: 2^32 times the first and the second


class ExactSum:
    """A sum of integer arrays of one shape, to which threads may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._halves: Halves | None = None

    def add(self, value: Any) -> None:
        halves = halves_of(value)
        with self._lock:
            self._halves = halves if self._halves is None else add_halves(self._halves, halves)

    def result(self) -> NDArray[np.int64]:
        assert self._halves is not None
        return joined(self._halves)


def integers(value: Any) -> NDArray[np.int64]:
    """A sum of one term, in memory of its own."""
    array = np.asarray(value)
    if array.dtype.kind not in "biu":
        raise ValueError(f"statistic: dtype {array.dtype}: must be integers")
    if array.dtype == np.uint64 and array.size and array.max() > np.uint64(2**63 - 1):
        raise OverflowError("statistic: must be below 2^63")
    return array.astype(np.int64)


def halves_of(value: Any) -> Halves:
    """Integers in two halves, of which many can be added before they are joined again."""
    array = integers(value)
    high = np.asarray(array >> 32)
    array &= 0xFFFFFFFF
    return high, array


def add_halves(sums: Halves, more: Halves) -> Halves:
    """The first, to which the second has been added."""
    if sums[0].shape != more[0].shape:
        shapes = f"{sums[0].shape}, {more[0].shape}"
        raise ValueError(f"statistic: shapes {shapes}: must be the same for all blocks")
    sums[0][...] += more[0]
    sums[1][...] += more[1]
    return sums


def joined(sums: Halves) -> NDArray[np.int64]:
    """The sum itself; OverflowError if it is beyond int64."""
    high, low = (half.astype(np.int64) for half in sums)
    high += low >> 32
    if high.size and (high.max() >= 2**31 or high.min() < -(2**31)):
        raise OverflowError("total: must be within int64")
    return np.asarray((high << 32) | (low & 0xFFFFFFFF), np.int64)
