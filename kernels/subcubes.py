"""Products of allowed values touch only their cells: sums, updates and counts over runs of neighbouring cells.

The cells of a product lie in runs of equal length that start at outer[i] + inner[j];
fastdp/answering/queries/cell_runs.py makes these offsets. Accumulators are kept across runs: to add up within each run
takes 14 ns more a run.
"""

from typing import Any

from .compile import SUMS, jit
from .lanes import F64Array, I64Array, U8Array, int64, load, splat, store, tree_sum
from .layout import LANES


@jit
def sum_runs(x: F64Array, outer: I64Array, inner: I64Array, run: int) -> float:
    """The sum of the weights in all runs.

    sum over i, j and r < run of x[outer[i] + inner[j] + r]

    Shapes    x float64[D], outer int64[a], inner int64[b]
    Cost      what it reads: 0.2 ns a cell in long runs, about 1 ns where a run is one cell
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy sum of x.reshape(sizes)[np.ix_(...)]
    """
    a, b, c, d = splat(0.0, LANES), splat(0.0, LANES), splat(0.0, LANES), splat(0.0, LANES)
    rest = 0.0
    for i in range(outer.size):
        for j in range(inner.size):
            at = outer[i] + inner[j]
            end = at + run
            while at + 4 * LANES <= end:
                a = a + load(x, at, LANES)
                b = b + load(x, at + LANES, LANES)
                c = c + load(x, at + 2 * LANES, LANES)
                d = d + load(x, at + 3 * LANES, LANES)
                at += 4 * LANES
            while at + LANES <= end:
                a = a + load(x, at, LANES)
                at += LANES
            while at < end:
                rest += x[at]
                at += 1
    return tree_sum((a + b) + (c + d)) + rest


@jit
def scale_runs(x: F64Array, outer: I64Array, inner: I64Array, run: int, factor: float) -> float:
    """Multiply the weights in all runs by `factor`; returns their sum before that, from the same pass.

    Shapes    x float64[D], outer int64[a], inner int64[b]
    Cost      one pass over the cells touched
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    a, b, c, d = splat(0.0, LANES), splat(0.0, LANES), splat(0.0, LANES), splat(0.0, LANES)
    times = splat(factor, LANES)
    rest = 0.0
    for i in range(outer.size):
        for j in range(inner.size):
            at = outer[i] + inner[j]
            end = at + run
            while at + 4 * LANES <= end:
                u, v = load(x, at, LANES), load(x, at + LANES, LANES)
                w, y = load(x, at + 2 * LANES, LANES), load(x, at + 3 * LANES, LANES)
                a, b, c, d = a + u, b + v, c + w, d + y
                store(x, at, u * times)
                store(x, at + LANES, v * times)
                store(x, at + 2 * LANES, w * times)
                store(x, at + 3 * LANES, y * times)
                at += 4 * LANES
            while at + LANES <= end:
                u = load(x, at, LANES)
                a = a + u
                store(x, at, u * times)
                at += LANES
            while at < end:
                rest += x[at]
                x[at] *= factor
                at += 1
    return tree_sum((a + b) + (c + d)) + rest


@jit(fastmath=SUMS)
def sum_short_runs(x: Any, outer: I64Array, inner: I64Array, run: int) -> float:
    """The sum of the weights in all runs: for single cells, and for float32.

    Like      sum_runs
    Shapes    x float64[D] or float32[D]; the rest as there
    Cost      about 1 ns a cell
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(outer.size):
        start = outer[i]
        for j in range(inner.size):
            at = start + inner[j]
            for r in range(run):
                total += x[at + r]
    return total


@jit(fastmath=SUMS)
def scale_short_runs(x: Any, outer: I64Array, inner: I64Array, run: int, factor: float) -> float:
    """Multiply the weights in all runs by `factor`: for single cells, and for float32.

    Like      scale_runs
    Shapes    x float64[D] or float32[D]; the rest as there
    Cost      about 1 ns a cell
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(outer.size):
        start = outer[i]
        for j in range(inner.size):
            at = start + inner[j]
            for r in range(run):
                total += x[at + r]
                x[at + r] *= factor
    return total


@jit(fastmath=SUMS)
def sum_pattern(x: Any, outer: I64Array, marks: U8Array) -> float:
    """The sum of x[outer[i] + r] marks[r].

    Shapes    x float64[D] or float32[D], outer int64[a], marks uint8[b] of 0 and 1 (as float64: 1.3 times the time)
    Cost      reads b cells in a row, a times
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(outer.size):
        part = x[outer[i] : outer[i] + marks.size]
        for r in range(marks.size):
            total += part[r] * marks[r]
    return total


@jit(fastmath=SUMS)
def scale_pattern(x: Any, outer: I64Array, marks: U8Array, factor: float) -> float:
    """Multiply x[outer[i] + r] by `factor` where marks[r] is 1; returns their sum before that, from the same pass.

    Like      sum_pattern
    Shapes    as there; x is read and written
    Cost      reads and writes b cells in a row, a times
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(outer.size):
        part = x[outer[i] : outer[i] + marks.size]
        for r in range(marks.size):
            value = part[r]
            total += value * marks[r]
            part[r] = value * (factor if marks[r] != 0 else 1.0)
    return total


@jit
def count_runs(counts: I64Array, outer: I64Array, inner: I64Array, run: int) -> int:
    """How many records are in the cells of all runs, exactly.

    Shapes    counts int64[D], outer int64[a], inner int64[b]
    Cost      what it reads
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = int64(0)
    for i in range(outer.size):
        for j in range(inner.size):
            at = outer[i] + inner[j]
            for r in range(run):
                total += counts[at + r]
    return total


@jit
def count_pattern(counts: I64Array, outer: I64Array, marks: U8Array) -> int:
    """How many records are in the cells outer[i] + r where marks[r] is 1, exactly.

    Shapes    counts int64[D], outer int64[a], marks uint8[b] of 0 and 1
    Cost      reads b cells in a row, a times
    Used by   fastdp/answering/queries/cell_runs.py
    Oracle    numpy
    """
    total = int64(0)
    for i in range(outer.size):
        part = counts[outer[i] : outer[i] + marks.size]
        for r in range(marks.size):
            total += part[r] * int64(marks[r])
    return total
