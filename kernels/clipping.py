"""What one record's gradient is multiplied by, so that it is no longer than the clip: fastdp/optimizing/descent.md.

A record's gradient is c r: the point itself (margin losses), its difference from w, or the sign of that (distance
losses), times one number c. Here c is computed, in units of the grid, and made small enough that c r has norm at most
K. What is decided of one record (its score, its norm) is evaluated in one order on every machine.
"""

from typing import Any, NamedTuple

import numpy as np

from .compile import jit
from .lanes import F64Array, fma, int64, load_wide, splat, stack, store
from .layout import LANES
from .losses import fill_derivatives

# added to squared norms: covers what underflows in them; of float32, subnormal numbers, which some threads take for 0
LEAST_SQUARE, LEAST_SQUARE_32 = 2.0**-1000, 2.0**-229

KIND, PARAMETER, BOUND, UNIT, LIMIT = range(5)  # the entries of what Python passes as `rule`


class ClipRule(NamedTuple):
    """How gradients are made and cut: which loss (losses.py), the norm that points are brought back to, and the clip.

    A gradient is multiplied by `unit`, one over the grid, and cut to the norm `limit` in units of the grid.
    """

    kind: int
    parameter: float
    address: int
    bound: float
    unit: float
    limit: float


@jit(inline=True)
def rule_of(numbers: F64Array, address: int) -> ClipRule:
    """The rule whose numbers are given in the order of KIND, PARAMETER, BOUND, UNIT, LIMIT."""
    return ClipRule(int64(numbers[KIND]), numbers[PARAMETER], address, numbers[BOUND], numbers[UNIT], numbers[LIMIT])


@jit
def norms_into(X: Any, d: int, least: float, out: F64Array) -> int:
    """The norms of points, not below the true ones by more than (d / 16 + 8) U relative, nor below sqrt(least).

    Shapes    X float64 or float32[n d], out float64[n]; `least` is LEAST_SQUARE, or LEAST_SQUARE_32 for float32
    Cost      one read of X
    Returns   1 if a norm is not finite
    Used by   fastdp/optimizing/points.py
    Oracle    numpy
    """
    bad = 0
    for i in range(out.size):
        row = X[i * d : (i + 1) * d]
        a = splat(0.0, 8)
        whole = d // LANES * LANES
        for c in range(0, whole, LANES):
            v = load_wide(row, c, 8)
            a = fma(v, v, a)
        rest = stack(out.dtype, LANES)
        store(rest, 0, a)
        for c in range(whole, d):
            v = np.float64(row[c])
            rest[c - whole] = v * v + rest[c - whole]
        square = ((rest[0] + rest[4]) + (rest[2] + rest[6])) + ((rest[1] + rest[5]) + (rest[3] + rest[7]))
        out[i] = np.sqrt(square + least)
        if not out[i] < np.inf:
            bad = 1
    return bad


@jit(inline=True)
def clipped_one(derivative: float, norm: float, unit: float, limit: float) -> float:
    """The factor of a record's point: derivative times unit, cut to `limit` over the norm; 0 in place of a NaN."""
    c = derivative * unit
    size = abs(c) * norm
    small = limit / size
    c = c * (1.0 if size <= limit else small)  # an undefined size is none within the limit
    return c if c == c else 0.0


@jit(inline=True)
def clip_margins_into(rule: ClipRule, scores: F64Array, labels: F64Array, norms: F64Array, out: F64Array) -> None:
    """The factors of the points themselves, from their scores, which are overwritten."""
    if rule.bound < np.inf:  # points beyond it are brought back to it
        for i in range(out.size):
            scores[i] *= rule.bound / max(norms[i], rule.bound)
    fill_derivatives(rule.kind, rule.parameter, rule.address, scores, labels, out)
    if rule.bound < np.inf:
        for i in range(out.size):
            out[i] *= rule.bound / max(norms[i], rule.bound)
    for i in range(out.size):
        out[i] = clipped_one(out[i], norms[i], rule.unit, rule.limit)


@jit(inline=True)
def clip_differences_into(rule: ClipRule, squares: F64Array, labels: F64Array, norms: F64Array, out: F64Array) -> None:
    """The factors of x - w, or of its signs, of which the gradient is -2 or -1 times, from its squared norms."""
    for i in range(out.size):
        factor = clipped_one(-rule.parameter, np.sqrt(squares[i] + LEAST_SQUARE), rule.unit, rule.limit)
        out[i] = factor if norms[i] > 0.0 else 0.0  # a norm of 0: what only fills a group
