"""Counting Arrow's strings where they lie: short ones, of which few are different. Others are left to Arrow."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST = 2**14  # strings, below which Arrow takes no longer
_PLACES = (2**13, 2**18, 2**21)  # of the tables that are tried
_PADDING = 24  # bytes that the kernel may read beyond the first of a string


def count_strings(array: Any) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
    """How often each string of an Arrow array occurs, and these, missing ones left out; None where it is not for us."""
    from pyarrow import types

    kind, chunks = array.type, array.chunks if hasattr(array, "chunks") else [array]
    if len(array) < _LEAST or len(chunks) != 1 or not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    chunk = chunks[0].drop_null() if array.null_count else chunks[0]
    width = np.dtype(np.int64 if types.is_large_string(kind) else np.int32)
    _, offsets, data = chunk.buffers()
    if data is None or len(chunk) < _LEAST:
        return None
    begins = np.frombuffer(offsets, width, len(chunk) + 1, chunk.offset * width.itemsize).astype(np.int64, copy=False)
    held = np.frombuffer(data, np.uint8)
    if held.ctypes.data % 8:
        return None
    found = count_bytes(held, begins)
    if found is None:
        return None
    firsts, counts = found
    labels = np.empty(firsts.size, object)
    labels[:] = chunk.take(firsts).to_pylist()
    return counts, labels


def count_bytes(
    data: NDArray[np.uint8], begins: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Where each different string occurs first, and how often it does; None where one is long, or they are many."""
    from ..kernels.short_strings import TOO_MANY, count_strings_into

    words = data[: data.size // 8 * 8].view(np.uint64)
    inside = int(
        np.searchsorted(begins[:-1], max(8 * (words.size - 2), 0))
    )  # strings that end well before the bytes do
    base, stop = int(begins[inside]), int(begins[-1])
    end = np.zeros(-(-(stop - base + _PADDING) // 8) * 8, np.uint8)  # the others, with room behind them
    end[: stop - base] = data[base:stop]
    seed = np.uint64(secrets.randbits(64))  # whom the order of probes depends on, and nothing else does
    for places in _PLACES:
        table, most = np.full(places, -1, np.int32), places // 2
        lows, highs = np.empty(most, np.uint64), np.empty(most, np.uint64)
        firsts, counts = np.empty(most, np.int64), np.empty(most, np.int64)
        known = count_strings_into(words, begins[: inside + 1], 0, 0, seed, table, lows, highs, firsts, counts)
        if known >= 0:
            known = count_strings_into(
                end.view(np.uint64), begins[inside:] - base, inside, known, seed, table, lows, highs, firsts, counts
            )
        if known >= 0:
            return firsts[:known], counts[:known]
        if known != TOO_MANY:
            return None
    return None
