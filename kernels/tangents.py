"""The losses of records at points, and their slopes there, as integers: tangents below a convex function.

A record's loss is the integer that covering_nets.py makes of it. Its gradient is rounded to a grid of its own,
coordinate by coordinate, so that sums have the same bits for any order and any number of threads:
fastdp/optimizing/exponential_erm.md, lemma 4. Sums are kept in two parts, which fit for any number of records.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import jit
from .covering_nets import GROUP, Floats2, deviation_of, floor_within, product_of, square_of
from .elementary import ROUNDER, ROUNDER_BITS
from .lanes import F64Array, bits_of, int64
from .losses import ABSOLUTE_DEVIATION, CUSTOM, FORMULAS, LINEAR, SQUARED_DISTANCE, one, score_itself

HALF = 31  # bits of the lower part of a sum
_LOW = 2**HALF - 1
SUMS = 10  # numbers of a point: two parts of the loss, and of each coordinate of the gradient

Integers2 = np.ndarray[Any, np.dtype[np.int64]]


# --- what a coordinate of a gradient is, but for the factor of the record


@jit(inline=True)
def coordinate(x: float, w: float) -> float:
    """x_j: of <w, x>."""
    return x


@jit(inline=True)
def coordinate_offset(x: float, w: float) -> float:
    """w_j - x_j: of half the squared distance."""
    return w - x


@jit(inline=True)
def sign_of_offset(x: float, w: float) -> float:
    """The sign of w_j - x_j: of the absolute deviation."""
    return 1.0 if w > x else (-1.0 if w < x else 0.0)


@jit(inline=True)
def twice(score: float, label: float, parameter: float, address: int) -> float:
    """2: the factor of the squared distance."""
    return 2.0


@jit(inline=True)
def rounded(x: float) -> int:
    """The nearest integer to x, for |x| below 2^51."""
    return bits_of(x + ROUNDER) - int64(ROUNDER_BITS)


def _make(
    join: Callable[..., Any], value: Callable[..., Any], factor: Callable[..., Any], part: Callable[..., Any]
) -> Any:
    """A kernel for one loss."""

    @jit
    def add_tangents(
        columns: Floats2, labels: F64Array, lowest: F64Array, net: Floats2, parameter: float, address: int,
        unit: float, limit: float, slope_unit: float, out: Integers2,
    ) -> None:  # fmt: skip
        n = labels.size
        for first in range(0, n, GROUP):
            last = min(first + GROUP, n)
            a, b, c, e = columns[0, first:last], columns[1, first:last], columns[2, first:last], columns[3, first:last]
            y, low = labels[first:last], lowest[first:last]
            for p in range(out.shape[0]):
                s, t, u, v = net[0, p], net[1, p], net[2, p], net[3, p]
                total, in_a, in_b, in_c, in_e = int64(0), int64(0), int64(0), int64(0), int64(0)
                for i in range(last - first):
                    score = join(a[i], b[i], c[i], e[i], s, t, u, v)
                    total += floor_within((value(score, y[i], parameter, address) - low[i]) * unit, limit)
                    slope = factor(score, y[i], parameter, address) * slope_unit
                    in_a += rounded(slope * part(a[i], s))
                    in_b += rounded(slope * part(b[i], t))
                    in_c += rounded(slope * part(c[i], u))
                    in_e += rounded(slope * part(e[i], v))
                out[p, 0] += total >> HALF
                out[p, 1] += total & _LOW
                out[p, 2] += in_a >> HALF
                out[p, 3] += in_a & _LOW
                out[p, 4] += in_b >> HALF
                out[p, 5] += in_b & _LOW
                out[p, 6] += in_c >> HALF
                out[p, 7] += in_c & _LOW
                out[p, 8] += in_e >> HALF
                out[p, 9] += in_e & _LOW

    return add_tangents


@jit
def raise_bounds(
    net: Floats2, values: F64Array, slopes: Floats2, at: Floats2, slack: float, rounding: float, bounds: F64Array
) -> None:
    """Raise bounds from below at all points to what tangents say, less what may be rounded.

    bounds[p] = max over k of values[k] + <slopes[k], net[:, p] - at[k]> - slack - rounding sizes

    Shapes    net float64[4, m]; values float64[k]; slopes, at float64[k, 4]; bounds float64[m]: raised
    Cost      1 ns for each point and tangent
    Source    fastdp/optimizing/exponential_erm.md, lemma 4
    Requires  rounding at least 2^-49
    Used by   fastdp/optimizing/convex_nets.py
    Oracle    tests/oracles/optimizing.py::bound_of_tangents
    """
    for k in range(values.size):
        value, a, b, c, e = values[k], slopes[k, 0], slopes[k, 1], slopes[k, 2], slopes[k, 3]
        s, t, u, v = at[k, 0], at[k, 1], at[k, 2], at[k, 3]
        for p in range(bounds.size):
            w, x, y, z = a * (net[0, p] - s), b * (net[1, p] - t), c * (net[2, p] - u), e * (net[3, p] - v)
            size = abs(value) + ((abs(w) + abs(x)) + (abs(y) + abs(z)))
            bound = (value + ((w + x) + (y + z))) - slack - rounding * size
            bounds[p] = bound if bound > bounds[p] else bounds[p]


TANGENTS: dict[int, Any] = {
    formula.number: _make(product_of, formula.value, formula.derivative, coordinate)
    for formula in FORMULAS
    if formula.number not in (LINEAR, CUSTOM)
}
"""The kernel of every loss that is known to be convex, by its number."""
for _formula in FORMULAS:
    if _formula.number in TANGENTS:
        _kernel = vars()[f"add_tangents_of_{_formula.losses.replace(' ', '_')}"] = TANGENTS[_formula.number]
        _kernel.__doc__ = f"""`add_tangents_of_square_distances` of {_formula.losses}, whose labels are read.

    Like      add_tangents_of_square_distances
    Shapes    as there
    Cost      as there
    Used by   fastdp/optimizing/convex_nets.py
    Oracle    tests/oracles/optimizing.py::slopes_of_net
    """
TANGENTS[SQUARED_DISTANCE] = add_tangents_of_square_distances = _make(square_of, score_itself, twice, coordinate_offset)
TANGENTS[ABSOLUTE_DEVIATION] = add_tangents_of_deviations = _make(deviation_of, score_itself, one, sign_of_offset)
add_tangents_of_square_distances.__doc__ = """Add the losses of records at points, and their gradients, as integers.

    out[p, 0] 2^31 + out[p, 1] += sum_i min(max(floor((loss(x_i, w_p) - lowest_i) unit), 0), limit)
    out[p, 2j+2] 2^31 + out[p, 2j+3] += sum_i round((coordinate j of the gradient) slope_unit)

    Shapes    columns float64[4, n]: coordinate by coordinate, zeros after the last; labels, lowest float64[n];
              net float64[4, m], likewise; out int64[m, 10]; parameter and address as in covering_nets.py
    Cost      for each record and point 1 to 3 ns
    Source    fastdp/optimizing/exponential_erm.md, lemma 4
    Requires  unit, slope_unit powers of two; limit an integer, at most 2^36; coordinates of gradients at most
              2^50 / slope_unit; fewer than 2^31 records over all calls
    Used by   fastdp/optimizing/convex_nets.py
    Oracle    tests/oracles/optimizing.py::slopes_of_net
    """
add_tangents_of_deviations.__doc__ = """The same as `add_tangents_of_square_distances` of absolute deviations.

    Like      add_tangents_of_square_distances
    Shapes    as there
    Cost      as there
    Used by   fastdp/optimizing/convex_nets.py
    Oracle    tests/oracles/optimizing.py::slopes_of_net
    """
