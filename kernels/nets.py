"""The losses of records at all points of a net, as integers: what the exponential mechanism chooses by.

A record's loss at a point, less a number of the record's own, is rounded down to the grid and brought within 0 .. K;
that is added up. So sums have the same bits for any order and any number of threads, and a record moves none of them by
more than K, whatever its loss comes to in floats (a NaN counts as K): fastdp/optimizing/exponential_erm.md, lemma 1.

Records and points have four coordinates, zeros after their own, so that one loop without branches serves every
dimension. Losses are evaluated in one order on every machine: fma, and no libm.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import jit
from .elementary import LN2, ROUNDER, ROUNDER_BITS, exp_one
from .gradients import HINGE, HUBER, LOGISTIC, SQUARED
from .lanes import F64Array, I64Array, bits_of, fma, int64

COORDINATES = 4
GROUP = 512  # records that are looked at together: 24 KiB, which stay in the L1 cache for all points

_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8 = (2 / (2 * k + 3) for k in range(9))  # of 2 atanh

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


# --- the formulas


@jit(inline=True)
def squared_one(score: float, label: float, parameter: float) -> float:
    """(score - label)^2."""
    r = score - label
    return r * r


@jit(inline=True)
def logistic_one(score: float, label: float, parameter: float) -> float:
    """ln(1 + e^-z), z = label score; within 8 U (1 + |z|)."""
    z = label * score
    size = abs(z)
    e = exp_one(-(size if size < 700.0 else 700.0))
    # ln(1 + e) = 2 atanh(f / (2 + f)), after halving 1 + e above sqrt 2: ln_one, which takes any number apart, costs
    # as much with AVX-512 and twice as much with AVX2
    large = e > 0.41421356237309503
    f = 0.5 * e - 0.5 if large else e
    r = f / (2.0 + f)
    w = r * r
    w2 = w * w
    w4 = w2 * w2
    p = fma(w2, fma(w, _A7, _A6), fma(w, _A5, _A4))
    p = fma(w4, fma(w4, _A8, p), fma(w2, fma(w, _A3, _A2), fma(w, _A1, _A0)))
    tail = fma(r * w, p, 2.0 * r) + (LN2 if large else 0.0)
    return (0.0 if z > 0.0 else -z) + tail


@jit(inline=True)
def hinge_one(score: float, label: float, parameter: float) -> float:
    """max(0, 1 - label score)."""
    r = 1.0 - label * score
    return 0.0 if r <= 0.0 else r


@jit(inline=True)
def huber_one(score: float, label: float, parameter: float) -> float:
    """r^2 for r = |score - label| up to the threshold `parameter`, and a line beyond."""
    r = abs(score - label)
    a = r if r < parameter else parameter
    return a * (2.0 * r - a)


@jit(inline=True)
def distance_one(score: float, label: float, parameter: float) -> float:
    """The distance itself, which is in place of the score."""
    return score


@jit
def losses_into(kind: int, parameter: float, scores: F64Array, labels: F64Array, out: F64Array) -> None:
    """The margin losses of scores, to the same bits as in the sums below.

    Shapes    scores, labels, out float64[n]
    Cost      O(n): 0.15 ns a record, 1.2 of LOGISTIC
    Used by   fastdp/optimizing/nets.py, for the least loss that a record can have
    Oracle    tests/reference.py::loss_of
    """
    if kind == SQUARED:
        for i in range(out.size):
            out[i] = squared_one(scores[i], labels[i], parameter)
    elif kind == LOGISTIC:
        for i in range(out.size):
            out[i] = logistic_one(scores[i], labels[i], parameter)
    elif kind == HINGE:
        for i in range(out.size):
            out[i] = hinge_one(scores[i], labels[i], parameter)
    elif kind == HUBER:
        for i in range(out.size):
            out[i] = huber_one(scores[i], labels[i], parameter)


def _make(join: Callable[..., Any], loss_one: Callable[..., Any]) -> Any:
    """A kernel for one loss."""

    @jit
    def add_losses(
        columns: Floats2, labels: F64Array, lowest: F64Array, net: Floats2,
        parameter: float, unit: float, limit: float, out: I64Array,
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
                    x = (loss_one(score, y[i], parameter) - low[i]) * unit
                    x = x if x < limit else limit
                    x = x if x > 0.0 else 0.0
                    shifted = x + ROUNDER
                    total += bits_of(shifted) - int64(ROUNDER_BITS)
                    total -= int64(1) if shifted - ROUNDER > x else int64(0)
                out[p] += total

    return add_losses


add_squared_losses = _make(product_of, squared_one)
add_squared_losses.__doc__ = """Add the losses of records at every point of a net, in units of the grid, as integers.

    out[p] += sum over records of min(max(floor((loss(x_i, w_p) - lowest_i) unit), 0), limit);  a NaN counts as limit

    Shapes    columns float64[4, n]: coordinate by coordinate, zeros after the last; labels, lowest float64[n];
              net float64[4, m], likewise; out int64[m]
    Cost      for each record and point 0.2 ns, 1.3 of LOGISTIC; two or three times that with AVX2
    Source    fastdp/optimizing/exponential_erm.md, lemma 1
    Requires  unit a power of two; limit a whole number, at most 2^36; n limit < 2^62 over all calls
    Used by   fastdp/optimizing/nets.py
    Oracle    tests/reference.py::scores_of_net
    """
add_logistic_losses = _make(product_of, logistic_one)
add_hinge_losses = _make(product_of, hinge_one)
add_huber_losses = _make(product_of, huber_one)
add_square_distances = _make(square_of, distance_one)
add_deviations = _make(deviation_of, distance_one)
for _kernel, _loss in (
    (add_logistic_losses, "logistic losses"), (add_hinge_losses, "hinge losses"), (add_huber_losses, "Huber losses"),
    (add_square_distances, "squared distances (labels are not read for their value)"),
    (add_deviations, "absolute deviations (labels are not read for their value)"),
):  # fmt: skip
    _kernel.__doc__ = f"""The same as `add_squared_losses` of {_loss}.

    Like      add_squared_losses
    Shapes    as there
    Cost      as there
    Used by   fastdp/optimizing/nets.py
    Oracle    tests/reference.py::scores_of_net
    """
