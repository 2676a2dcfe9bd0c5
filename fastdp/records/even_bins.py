"""Counting a column of floats in bins of about equal width: one pass without a search. bins.md, lemma 2, is the proof.

Whether edges are even enough goes by the edges alone, which are public.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.columns import as_compiled
from ..support.parameters import Outside
from .bins import Bins, codes_in_bins, flags_allowed
from .rows import Block, PerRecord

_MOST_BINS = 2**13  # of which a block's counts take no longer than its values
_PLACES = 2048  # that are kept in the L1 cache
_NEAR = 0.25  # of a place, within which its edge is


def counter_of(bins: Bins, dtype: np.dtype[Any], name: str, outside: Outside) -> PerRecord | None:
    """A function of a block that counts its first column in bins; None where the type or the edges are others."""
    if dtype not in (np.float32, np.float64) or bins.edges.dtype.kind == "M" or bins.size > _MOST_BINS:
        return None
    search = bins.search_of_floats
    inner = search.inner[: bins.edges.size - 2]
    if (scale := _scale_of(inner)) is None:
        return None
    return _Counter(bins, name, outside, np.array(search.ends[:2]), scale, inner)


def _scale_of(inner: NDArray[np.float64]) -> float | None:
    """A factor with which each inner edge is near its own place; None where there is none."""
    if inner.size == 1:
        return 0.0
    if not inner.size:
        return None
    with np.errstate(all="ignore"):
        scale = float((inner.size - 1) / (inner[-1] - inner[0]))
        apart = np.abs((inner - inner[0]) * scale - np.arange(inner.size))
    return scale if 0 < scale < inf and (apart <= _NEAR).all() else None


class _Counter:
    """Of a block, which may be in another process."""

    def __init__(
        self, bins: Bins, name: str, outside: Outside, ends: NDArray[np.float64], scale: float,
        inner: NDArray[np.float64],
    ) -> None:  # fmt: skip
        self._bins, self._name, self._outside = bins, name, outside
        self._ends, self._scale, self._inner = ends, scale, inner

    def __call__(self, block: Block) -> NDArray[np.int64]:
        from ..kernels.bins import count_even_bins_into

        entries, bins = block.numbers(0), self._bins
        if entries.missing is not None or entries.values.dtype.kind != "f":
            codes = codes_in_bins(bins, self._name, entries, self._outside, np.int64)
            return np.bincount(codes, minlength=bins.size)
        counts = np.zeros(bins.size, np.int64)
        places = np.empty(_PLACES, np.uint32)
        array = as_compiled(np.ascontiguousarray(entries.values, np.float64))
        of_numbers = counts[: self._inner.size + 1]
        found, nans = count_even_bins_into(array, self._ends, self._scale, self._inner, places, of_numbers)
        flags_allowed(bins, self._name, found, self._outside)
        if bins.missing:
            counts[0] -= nans
            counts[-1] += nans
        return counts
