"""Multiplicative weights for many tables at once, and the nearest tables: what fits do to arrays of cells.

The logarithms of the weights are what is kept; all of it is post-processing of released tables, so floats. Sums are
over chunks that fastdp/answering/entropic_fit.py fixes, and may be reordered within them: their last bits differ from
one CPU
to another, never from one number of threads to another.
"""

from typing import Any

import numpy as np

from .compile import SUMS, jit
from .elementary import exp_one
from .lanes import F64Array, I64Array

LEAST = -700.0  # logarithms below it are 0 as weights


@jit
def shift_logs(logs: F64Array, gradient: F64Array, rate: float) -> float:
    """logs -= rate gradient; returns the largest.

    Shapes    both float64[D]
    Cost      one pass: 3 x 8 bytes a cell
    Used by   fastdp/answering/entropic_fit.py
    Oracle    numpy
    """
    top = logs[0] - rate * gradient[0]
    for i in range(logs.size):
        value = logs[i] - rate * gradient[i]
        logs[i] = value
        top = max(top, value)
    return top


@jit(fastmath=SUMS)
def exponentiate_into(logs: F64Array, top: float, out: Any) -> float:
    """out[i] = e^(logs[i] - top); returns their sum.

    Shapes    logs float64[D], out float64[D] or float32[D]
    Cost      one pass: 1 ns a cell
    Used by   fastdp/answering/entropic_fit.py, dense_weights.py
    Oracle    numpy
    """
    total = 0.0
    for i in range(logs.size):
        value = exp_one(max(logs[i] - top, LEAST))
        out[i] = value
        total += value
    return total


@jit
def mix(x: F64Array, z: F64Array, keep: float, add: float) -> None:
    """x = keep x + add z.

    Shapes    x, z float64[D]; x is read and written
    Cost      one pass
    Used by   fastdp/answering/entropic_fit.py
    Oracle    numpy
    """
    for i in range(x.size):
        x[i] = keep * x[i] + add * z[i]


@jit(fastmath=SUMS)
def project_tables(tables: F64Array, starts: I64Array, total: float) -> None:
    """Each table becomes the nearest one whose entries are not negative and add up to `total`.

    table = max(table - t, 0),   t such that the sum is `total`

    Shapes    tables float64[N], one after the other; starts int64[m + 1], where each begins and the last ends
    Cost      5 to 15 passes over a table, whose entries above t become fewer; 3 ns an entry
    Requires  total > 0, every table at least one entry, finite
    Used by   fastdp/answering/nearest_tables.py
    Oracle    tests/oracles/tables.py::nearest_table
    """
    for k in range(starts.size - 1):
        table = tables[starts[k] : starts[k + 1]]
        count, cut = table.size + 1, -np.inf
        for _ in range(table.size + 1):
            above, left = 0.0, 0
            for i in range(table.size):
                above += table[i] if table[i] > cut else 0.0
                left += table[i] > cut
            if left == count or left == 0:
                break
            count = left
            cut = (above - total) / left
        for i in range(table.size):
            table[i] = max(table[i] - cut, 0.0)
