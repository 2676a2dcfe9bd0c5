"""Multiplicative weights over all cells: evaluate a query that has a value for every cell, and update by it.

Weights are public, so these reductions may be reordered (`reassoc`): their last bits differ from one CPU to another,
never from one number of threads to another. float32 weights are summed in float64.
"""

from typing import Any

from .compile import SUMS, jit
from .elementary import exp_one
from .lanes import F64Array, I64Array, int64


@jit(fastmath=SUMS)
def sum_cells(x: Any) -> float:
    """The sum of all weights.

    Shapes    x float64[D] or float32[D]
    Cost      one read of x
    Used by   fastdp/answering/dense_weights.py
    Oracle    math.fsum
    """
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@jit
def multiply_cells(x: Any, factor: float) -> None:
    """x *= factor.

    Shapes    x float64[D] or float32[D], read and written
    Cost      one pass
    Used by   fastdp/answering/dense_weights.py
    Oracle    numpy
    """
    for i in range(x.size):
        x[i] *= factor


@jit
def add_cells_into(x: Any, factor: float, out: F64Array) -> None:
    """out += factor x.

    Shapes    x float64[D] or float32[D], out float64[D]
    Cost      one pass
    Used by   fastdp.mwem
    Oracle    numpy
    """
    for i in range(out.size):
        out[i] += factor * x[i]


@jit(fastmath=SUMS)
def sum_masked(x: Any, mask: Any) -> float:
    """The sum of the weights where mask is 1.

    Shapes    x float64[D] or float32[D], mask uint8[D] of 0 and 1
    Cost      one read of x and mask: 3 ms for 2^24 cells
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    math.fsum
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * mask[i]
    return total


@jit(fastmath=SUMS)
def sum_where(x: Any, mask: Any) -> float:
    """The sum of the weights where mask is not 0, which is what C means by true; 1.03 times `sum_masked` with AVX2.

    Shapes    x float64[D] or float32[D], mask uint8[D]
    Cost      one read of x and mask
    Used by   fastdp/capi/calls.py, kernels/function_pointers.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * (mask[i] != 0)  # a choice between x[i] and 0 takes 1.3 to 3 times as long
    return total


@jit(fastmath=SUMS)
def scale_masked(x: Any, mask: Any, factor: float) -> float:
    """Multiply the weights where mask is not 0 by `factor`; returns the sum of all weights after that.

    Shapes    x float64[D] or float32[D], mask uint8[D]
    Cost      one pass: 4 ms for 2^24 cells
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(x.size):
        x[i] = x[i] * (factor if mask[i] != 0 else 1.0)
        total += x[i]
    return total


@jit(fastmath=SUMS)
def sum_valued(x: Any, values: F64Array) -> float:
    """The sum of weight times value.

    Shapes    x float64[D] or float32[D], values float64[D]
    Cost      one read of x and values
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    math.fsum
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * values[i]
    return total


@jit(fastmath=SUMS)
def scale_valued(x: Any, values: F64Array, rate: float) -> float:
    """Multiply every weight by e^(rate value); returns the sum of all weights after that.

    Shapes    x float64[D] or float32[D], values float64[D] in [0, 1]; |rate| <= 700
    Cost      one pass: about 0.5 ns a cell
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(x.size):
        x[i] = x[i] * exp_one(rate * values[i])
        total += x[i]
    return total


@jit
def count_masked(counts: I64Array, mask: Any) -> int:
    """How many records are in the cells where mask is 1.

    Shapes    counts int64[D], mask uint8[D] of 0 and 1
    Cost      one read of both
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    numpy
    """
    total = int64(0)
    for i in range(counts.size):
        total += counts[i] * int64(mask[i])
    return total


@jit
def count_valued(counts: I64Array, values: I64Array) -> int:
    """The sum of count times integer value.

    Shapes    counts, values int64[D]
    Cost      one read of both
    Requires  sums that fit in 63 bits
    Used by   fastdp/answering/queries/bound_query.py
    Oracle    numpy
    """
    total = int64(0)
    for i in range(counts.size):
        total += counts[i] * values[i]
    return total


@jit
def count_outside(values: F64Array) -> int:
    """How many values are not within 0 and 1; a NaN is not.

    Shapes    values float64[D]
    Cost      one read of values
    Used by   fastdp/capi/calls.py
    Oracle    numpy
    """
    count = int64(0)
    for i in range(values.size):
        count += int64(not (values[i] >= 0.0 and values[i] <= 1.0))
    return count
