"""Edges of bins as users give them, checked, and numbers in each bin: in its middle, or spread over it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.checks import MAX_INT64, is_memory, plain_integer
from ..support.parameters import MOST_BINS
from ..support.shown import type_of

INSTANT = np.dtype("M8[us]")  # of dates and times


def checked_edges(edges: Any) -> NDArray[Any]:
    """Edges as int64, float64 or instants, checked."""
    rule = f"2 to {MOST_BINS + 1:,} numbers in increasing order"
    if isinstance(edges, str | bytes) or not (isinstance(edges, Iterable) or hasattr(edges, "__array__")):
        raise ValueError(f"edges: type {type_of(edges)}: must be {rule}")
    try:
        many = len(edges)
        array = np.asarray(edges) if many <= MOST_BINS + 1 else np.empty(0)
    except Exception as error:  # of entries of several lengths, and of classes that are not ours
        if is_memory(error, edges):
            raise
        raise ValueError(f"edges: type {type_of(edges)}: must be {rule}") from None
    if many > MOST_BINS + 1:
        raise ValueError(f"edges: {many:,}: must be {rule}")
    if array.ndim != 1 or not 2 <= array.size <= MOST_BINS + 1:
        raise ValueError(f"edges: shape {array.shape}: must be {rule}")
    if array.dtype.kind == "O" and all(isinstance(edge, date) for edge in array.tolist()):
        array = array.astype(INSTANT)
    if array.dtype.kind == "M":
        array = array.astype(INSTANT)
        if not all(isinstance(array[at].item(), date) for at in (0, -1)) or np.isnat(array).any():
            raise ValueError("edges: must be dates of the years 1 to 9999, not NaT")
    elif array.dtype.kind == "f" and array.dtype.itemsize <= 8 and not _rounds_integers(edges):
        array = array.astype(np.float64) + 0.0  # -0.0 is 0.0
        if np.isnan(array).any():
            raise ValueError("edges: must not be NaN")
    elif array.dtype.kind in "iu" and int(array.max()) <= MAX_INT64:
        array = array.astype(np.int64)
    else:
        raise ValueError(f"edges: dtype {array.dtype}: must be {rule}, integers below 2^63 or floats")
    falls = np.flatnonzero(~(array[1:] > array[:-1]))
    if falls.size:
        at = int(falls[0])
        raise ValueError(f"edges[{at + 1}]: must be above edges[{at}]: edges are in increasing order")
    return array


def _rounds_integers(edges: Any) -> bool:
    """Whether a list has integers that a float may not hold."""
    return isinstance(edges, list | tuple) and any(abs(plain_integer(edge) or 0) > 2**53 for edge in edges)


def is_open(low: Any, high: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a bin of integers has no end, as -inf and inf are none of floats: where it ends, 64 bits do."""
    return dtype == np.int64 and bool(low < -MAX_INT64 or high == MAX_INT64)


def middles_of(edges: NDArray[Any]) -> list[Any]:
    """A number inside each bin: of unit bins of integers the integer itself, next to the other edge of an open one."""
    low, high = edges[:-1], edges[1:]
    if edges.dtype != np.float64:
        a, b = low.view(np.int64), high.view(np.int64)
        half = ((b.view(np.uint64) - a.view(np.uint64) - np.uint64(1)) >> np.uint64(1)).view(np.int64)
        between: list[Any] = (a + half).view(edges.dtype).tolist()
        if edges.dtype == np.int64:
            first, last = int(edges[0]), int(edges[-1])
            if last == MAX_INT64:
                between[-1] = int(edges[-2])
            if first < -MAX_INT64:
                between[0] = int(edges[1]) - 1 if edges[1] < MAX_INT64 else 0
        return between
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)
    middles: list[float] = np.where(np.isinf(high), low, middle).tolist()
    if middles[0] == -inf:
        middles[0] = nextafter(float(high[0]), -inf) if high[0] < inf else 0.0
    return middles


def numbers_within(edges: NDArray[Any], codes: NDArray[Any], words: NDArray[np.uint64]) -> NDArray[Any]:
    """A number of each of these bins, spread evenly over it by a uniform word: from the lower edge on, and below the
    upper one. Of a bin without an end, the number that `middles_of` has."""
    low, high, middle = edges[codes], edges[1:][codes], np.array(middles_of(edges), edges.dtype)[codes]
    shares = (words >> np.uint64(11)) * 2.0**-53
    if edges.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            width = high - low
            inside = np.minimum(low + shares * width, np.nextafter(high, -inf))
        floats: NDArray[Any] = np.where(np.isfinite(width), inside, middle)
        return floats
    a, b = low.view(np.int64), high.view(np.int64)
    most = b.view(np.uint64) - a.view(np.uint64) - np.uint64(1)
    steps = np.minimum((shares * (most + 1.0)).astype(np.uint64), most)
    numbers: NDArray[Any] = (a.view(np.uint64) + steps).view(edges.dtype)
    if edges.dtype == np.int64:
        numbers = np.where((low < -MAX_INT64) | (high == MAX_INT64), middle, numbers)
    return numbers
