"""In which bin a number lies: edges are searched in the same few steps for every value, without a branch.

A grid over the edges says where the search begins. It owes fastdp/records/bins.py one loop for integers and one for
floats; missing entries and types of columns are dealt with there.
"""

from __future__ import annotations

import numpy as np

from .compile import jit
from .draw_bits import count_nan
from .lanes import F64Array, I64Array, U32Array, float64, int64, uint32, uint64
from .number_line import BEYOND, NAN

_BLOCK = 2048  # places that a search keeps in the L1 cache


@jit
def find_integer_bins_into(
    values: I64Array, ends: I64Array, shift: int, inner: I64Array, starts: U32Array, steps: int, out: U32Array
) -> int:
    """The bin of every value: how many inner edges are at most as large.

    out[i] = #{k : inner[k] <= values[i]}

    Shapes    values int64[n]; ends int64[4], the least and the greatest value inside, the least and the greatest inner
              edge; inner int64[k + 2^steps], the inner edges, increasing, and after them the largest int64; starts
              uint32[cells + 1], where the search in a cell begins; out uint32[n]
    Cost      2 to 4 ns a value up to 2^16 evenly spaced edges: numpy.searchsorted takes 60 to 150
    Source    fastdp/records/bins.md, lemma 1
    Requires  starts[c] = #{k : inner[k] in a cell before c}, where cell(x) = (x - ends[2]) >> shift; fewer than 2^steps
              inner edges in each cell; the caller cuts off what comes out above k, as it may for values of 2^63 - 1
    Returns   BEYOND if a value is not inside, or 0
    Used by   fastdp/records/bins.py
    Oracle    numpy.searchsorted
    """
    first, last, low, high = ends[0], ends[1], ends[2], ends[3]
    beyond = int64(0)
    for start in range(0, values.size, _BLOCK):
        x, places = values[start : start + _BLOCK], out[start : start + _BLOCK]
        for i in range(x.size):
            value = x[i]  # once: another thread may write to it
            beyond |= int64(value < first) | int64(value > last)
            inside = min(max(value, low), high)
            places[i] = starts[int64((uint64(inside) - uint64(low)) >> uint64(shift))]
        for step in range(steps - 1, -1, -1):
            ahead = np.int32(1 << step)
            for i in range(x.size):
                place = np.int32(places[i])
                places[i] = uint32(place + (ahead if inner[place + ahead - 1] <= x[i] else np.int32(0)))
    return BEYOND if beyond else 0


@jit
def find_float_bins_into(
    values: F64Array, ends: F64Array, scale: float, inner: F64Array, starts: U32Array, steps: int, out: U32Array
) -> int:
    """The same for floats; a NaN is in the bin of the least inner edge.

    Like      find_integer_bins_into, with cell(x) = int((x - ends[2]) * scale)
    Shapes    values float64[n]; ends float64[4]; scale a float; inner float64[k + 2^steps], with infinities after the
              inner edges; starts uint32[cells + 1]; out uint32[n]
    Cost      3 to 4 ns a value up to 2^16 evenly spaced edges
    Source    fastdp/records/bins.md, lemma 1
    Returns   NAN if there is one, BEYOND if a value is not inside, their sum, or 0
    Used by   fastdp/records/bins.py
    Oracle    numpy.searchsorted
    """
    first, last, low, high = ends[0], ends[1], ends[2], ends[3]
    beyond = nan = int64(0)
    for start in range(0, values.size, _BLOCK):
        x, places = values[start : start + _BLOCK], out[start : start + _BLOCK]
        for i in range(x.size):
            value = x[i]  # once: another thread may write to it
            beyond |= int64(value < first) | int64(value > last)
            nan |= int64(value != value)
            inside = min(max(value if value == value else low, low), high)
            places[i] = starts[np.int32((inside - low) * scale)]
        for step in range(steps - 1, -1, -1):
            ahead = np.int32(1 << step)
            for i in range(x.size):
                place = np.int32(places[i])
                places[i] = uint32(place + (ahead if inner[place + ahead - 1] <= x[i] else np.int32(0)))
    return (BEYOND if beyond else 0) + (NAN if nan else 0)


@jit
def count_even_bins_into(
    values: F64Array, ends: F64Array, scale: float, inner: F64Array, places: U32Array, out: I64Array
) -> tuple[int, int]:
    """Add one to the count of each value's bin, where edges are so even that a product tells which one is the nearest.

    out[#{k : inner[k] <= values[i]}] += 1

    Shapes    values float64[n]; ends float64[2], the least and the greatest value inside; scale a float; inner
              float64[k], the inner edges, increasing and finite; places uint32[b], b > 0, which is written over; out
              int64[k + 1]
    Cost      about 2 ns a value, wherever it lies; with the comparison in the first loop, which needs a gather there,
              and with numba's min and max, twice that
    Source    fastdp/records/bins.md, lemma 2
    Requires  0 < k <= 2^13; |(inner[j] - inner[0]) * scale - j| <= 1/4 for every j
    Returns   NAN if there is one, BEYOND if a value is not inside, their sum, or 0; and how many are NaN, which are
              counted as if below every edge
    Used by   fastdp/records/even_bins.py
    Oracle    numpy.searchsorted
    """
    first, last, low, top = ends[0], ends[1], inner[0], float64(inner.size) - 0.75
    beyond = nan = False
    for start in range(0, values.size, places.size):
        x = values[start : start + places.size]
        for i in range(x.size):
            value = x[i]
            beyond |= (value < first) | (value > last)
            nan |= value != value
            place = (value - low) * scale
            place = place if place > -0.25 else -0.25  # a NaN compares false
            place = place if place < top else top
            places[i] = uint32(np.int32(place + 0.5))
        for i in range(x.size):
            nearest = places[i]
            out[nearest + uint32(x[i] >= inner[nearest])] += 1
    return (BEYOND if beyond else 0) + (NAN if nan else 0), count_nan(values) if nan else 0
