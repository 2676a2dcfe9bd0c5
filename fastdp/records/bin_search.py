"""The search for the bins of a column: edges in the type of the values, and the grid that tells where it begins.

bins.md, "Comparing numbers of two types" and lemma 1, has the proofs; kernels/bins.py the loops.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.checks import MAX_INT64
from ..support.frozen import frozen
from ..support.rounding import down, up

_LEAST_CELLS, _MOST_CELLS = 2**10, 2**20  # of the grid over the edges


class Search(NamedTuple):
    """What kernels/bins.py takes: the edges in the type of the values, and the grid over them."""

    ends: NDArray[Any]
    step: Any  # `shift` of integers, `scale` of floats
    inner: NDArray[Any]
    starts: NDArray[np.uint32]
    steps: int
    before: int  # inner edges below every value of the type


def search_of_integers(given: NDArray[Any]) -> Search:
    """The search for values of int64: an edge e is at most v where ceil(e) is."""
    if given.dtype.kind != "f":
        edges = given.view(np.int64)
        first, last, inner, before = int(edges[0]), int(edges[-1]), edges[1:-1], 0
    else:
        first, last = _integer_ends(float(given[0]), float(given[-1]))
        whole = [ceil(edge) for edge in given[1:-1].tolist()]
        before = sum(edge < -MAX_INT64 - 1 for edge in whole)  # such an edge is at most as large as every value
        inner = np.array([edge for edge in whole if -MAX_INT64 - 1 <= edge <= MAX_INT64], np.int64)
    low, high = (int(inner[0]), int(inner[-1])) if inner.size else (0, 0)
    cells = _cells(inner.size)
    shift = max(0, (high - low).bit_length() - cells.bit_length() + 1)
    above = inner.view(np.uint64) - np.array([low], np.int64).view(np.uint64)
    numbers = (above >> np.uint64(shift)).astype(np.int64)
    ends = frozen(np.array([first, last, low, high], np.int64))
    return Search(ends, shift, *_starts(inner, numbers, cells, MAX_INT64), before)


def search_of_floats(given: NDArray[Any]) -> Search:
    """The search for values of float64: an edge e is at most v where the least float >= e is."""
    if given.dtype.kind == "f":
        edges = given
        last = float(edges[-1])
    else:
        edges = np.array([up(edge) for edge in given.tolist()])
        last = down(given[-1].item())
    inner = np.array(edges[1:-1])
    low, high, scale, cells = 0.0, 0.0, 0.0, _cells(inner.size)
    if inner.size:
        with np.errstate(all="ignore"):
            scale = float((cells - 1) / (inner[-1] - inner[0]))
        if 0 < scale < inf:
            low, high = float(inner[0]), float(inner[-1])
        else:  # one inner edge, or some too far apart or too close: all in one cell
            scale = 0.0
    numbers = ((np.clip(inner, low, high) - low) * scale).astype(np.int64)
    ends = frozen(np.array([float(edges[0]), last, low, high]))
    return Search(ends, scale, *_starts(inner, numbers, cells, inf), 0)


def _integer_ends(low: float, high: float) -> tuple[int, int]:
    """The least and the greatest integer of 64 bits from low to high; if there is none, the greatest comes first."""
    least = -MAX_INT64 - 1
    first = ceil(max(low, float(least))) if low < inf else MAX_INT64 + 1
    last = floor(min(high, 2.0**63)) if high > -inf else least - 1
    return (first, min(last, MAX_INT64)) if first <= MAX_INT64 and last >= least else (MAX_INT64, least)


def _cells(edges: int) -> int:
    """Of the grid: a power of two, four for each edge where that is not too many."""
    return min(max(_LEAST_CELLS, 1 << (4 * edges).bit_length()), _MOST_CELLS) if edges else 1


def _starts(
    inner: NDArray[Any], numbers: NDArray[np.int64], cells: int, last: Any
) -> tuple[NDArray[Any], NDArray[np.uint32], int]:
    """Edges with sentinels behind them, where the search in a cell begins, and how many steps it takes."""
    in_cell = np.bincount(numbers, minlength=cells)
    steps = int(in_cell.max(initial=0)).bit_length()
    starts = np.concatenate([[0], np.cumsum(in_cell)]).astype(np.uint32)
    padded = np.concatenate([inner, np.full(1 << steps, last, inner.dtype)])
    return frozen(padded), frozen(starts), steps
