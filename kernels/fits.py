"""Multiplicative weights for many tables at once: what the entropic fit does to the array of all cells.

The logarithms of the weights are what is kept; all of it is post-processing of released tables, so floats. Sums are
over chunks that fastdp/answering/entropic_fit.py fixes, and may be reordered within them: their last bits differ from
one CPU
to another, never from one number of threads to another.
"""

from typing import Any

from .compile import SUMS, jit
from .elementary import exp_one
from .lanes import F64Array

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
