"""The losses of records at all points of a net, as integers: what the exponential mechanism chooses by.

A record's loss at a point, less a number of the record's own, is rounded down to the grid and brought within 0 .. K;
that is added up. So sums have the same bits for any order and any number of threads, and a record moves none of them by
more than K, whatever its loss comes to in floats (a NaN counts as K): fastdp/optimizing/exponential_erm.md, lemma 1.

Records and points have four coordinates, zeros after their own, so that one loop without branches serves every
dimension.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import jit
from .elementary import ROUNDER, ROUNDER_BITS
from .lanes import F64Array, I64Array, bits_of, fma, int64
from .losses import ABSOLUTE_DEVIATION, FORMULAS, LINEAR, SQUARED_DISTANCE, score_itself

GROUP = 512  # records that are looked at together: 24 KiB, which stay in the L1 cache for all points

Floats2 = np.ndarray[Any, np.dtype[np.float64]]


# --- a record and a point, before the formula of the loss


@jit(inline=True)
def product_of(a: float, b: float, c: float, e: float, s: float, t: float, u: float, v: float) -> float:
    """<x, w>."""
    return fma(e, v, fma(c, u, fma(b, t, a * s)))


@jit(inline=True)
def square_of(a: float, b: float, c: float, e: float, s: float, t: float, u: float, v: float) -> float:
    """||x - w||^2."""
    a, b, c, e = a - s, b - t, c - u, e - v
    return fma(e, e, fma(c, c, fma(b, b, a * a)))


@jit(inline=True)
def deviation_of(a: float, b: float, c: float, e: float, s: float, t: float, u: float, v: float) -> float:
    """The sum of |x_j - w_j|."""
    return (abs(a - s) + abs(b - t)) + (abs(c - u) + abs(e - v))


@jit(inline=True)
def floor_within(x: float, limit: float) -> int:
    """floor(x), brought within 0 .. limit; a NaN counts as the limit."""
    x = x if x < limit else limit
    x = x if x > 0.0 else 0.0
    shifted = x + ROUNDER
    return bits_of(shifted) - int64(ROUNDER_BITS) - (int64(1) if shifted - ROUNDER > x else int64(0))


def _make(join: Callable[..., Any], value: Callable[..., Any]) -> Any:
    """A kernel for one loss."""

    @jit
    def add_losses(
        columns: Floats2, labels: F64Array, lowest: F64Array, net: Floats2,
        parameter: float, address: int, unit: float, limit: float, out: I64Array,
    ) -> None:  # fmt: skip
        n = labels.size
        for first in range(0, n, GROUP):
            last = min(first + GROUP, n)
            a, b, c, e = columns[0, first:last], columns[1, first:last], columns[2, first:last], columns[3, first:last]
            y, low = labels[first:last], lowest[first:last]
            for p in range(out.size):
                s, t, u, v = net[0, p], net[1, p], net[2, p], net[3, p]
                total = int64(0)
                for i in range(last - first):
                    score = join(a[i], b[i], c[i], e[i], s, t, u, v)
                    total += floor_within((value(score, y[i], parameter, address) - low[i]) * unit, limit)
                out[p] += total

    return add_losses


ADDERS: dict[int, Any] = {
    formula.number: _make(product_of, formula.value) for formula in FORMULAS if formula.number != LINEAR
}
"""The kernel of every loss that can be evaluated at the points of a net, by its number."""
for _formula in FORMULAS:
    if _formula.number in ADDERS:
        _kernel = vars()[f"add_{_formula.losses.replace(' ', '_')}"] = ADDERS[_formula.number]
        _kernel.__doc__ = f"""The same as `add_square_distances` of {_formula.losses}, whose labels are read.

    Like      add_square_distances
    Shapes    as there
    Cost      as there
    Used by   fastdp/optimizing/covering_nets.py
    Oracle    tests/oracles/optimizing.py::scores_of_net
    """
ADDERS[SQUARED_DISTANCE] = add_square_distances = _make(square_of, score_itself)
ADDERS[ABSOLUTE_DEVIATION] = add_deviations = _make(deviation_of, score_itself)
add_square_distances.__doc__ = """Add the losses of records at every point of a net, in units of the grid, as integers.

    out[p] += sum over records of min(max(floor((loss(x_i, w_p) - lowest_i) unit), 0), limit);  a NaN counts as limit

    Shapes    columns float64[4, n]: coordinate by coordinate, zeros after the last; labels, lowest float64[n];
              net float64[4, m], likewise; out int64[m]; parameter of the loss; address of the value of custom losses
    Cost      for each record and point 0.2 ns, 1.3 of logistic losses; two or three times that with AVX2; custom
              losses a call
    Source    fastdp/optimizing/exponential_erm.md, lemma 1
    Requires  unit a power of two; limit an integer, at most 2^36; n limit < 2^62 over all calls
    Used by   fastdp/optimizing/covering_nets.py
    Oracle    tests/oracles/optimizing.py::scores_of_net
    """
add_deviations.__doc__ = """The same as `add_square_distances` of absolute deviations.

    Like      add_square_distances
    Shapes    as there
    Cost      as there
    Used by   fastdp/optimizing/covering_nets.py
    Oracle    tests/oracles/optimizing.py::scores_of_net
    """
