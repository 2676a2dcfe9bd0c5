"""The sum of vectors that are shortened to a norm, as integers, in one read of them: fastdp/optimizing/vector_sums.md.

It is the sum of clipped gradients (gradients.py) of a loss whose gradient is the point itself, but norms are computed
on the way: whether all of them are finite is known at the end, before anything is released.
"""

from typing import Any

import numpy as np

from .arrays import copy_into
from .clipping import clipped_one
from .compile import jit
from .gradients import GROUP, make_columns, make_products, make_scores, move_integers, point_itself
from .lanes import F64Array, I64Array, lent, stack
from .layout import LANES, MOST_SUMMED

_squares_into = make_scores(point_itself, False)
_add_one, _add_two, _add_three, _add_four = (  # nothing prefetched: 14.6 ms instead of 18.8 on a busy machine
    make_columns(make_products(point_itself, True), parts, 0) for parts in (1, 2, 3, 4)
)


@jit
def _add_group(X: Any, p: int, d: int, mask: F64Array, least: float, unit: float, limit: float, sums: F64Array) -> bool:
    """Add 32 vectors from place p on, of which up to 7 entries beyond the last are read; whether a norm is wild."""
    squares, factors = stack(mask.dtype, GROUP), stack(mask.dtype, GROUP)
    for i in range(0, GROUP, LANES):
        _squares_into(X, p + i * d, d, mask, mask, squares, i)
    wild = False
    for i in range(GROUP):
        norm = np.sqrt(squares[i] + least)
        wild |= not norm < np.inf
        factors[i] = clipped_one(1.0, norm, unit, limit)
    j = 0
    while j < d:
        left = d - j
        if left > 24:
            _add_four(X, p, d, mask, j, factors, sums)
            j += 32
        elif left > 16:
            _add_three(X, p, d, mask, j, factors, sums)
            j += 24
        elif left > 8:
            _add_two(X, p, d, mask, j, factors, sums)
            j += 16
        else:
            _add_one(X, p, d, mask, j, factors, sums)
            j += 8
    return wild


@jit
def sum_vectors(X: Any, least: float, unit: float, limit: float, out: I64Array) -> bool:
    """Add vectors, each shortened to the norm `limit` in units of the grid, as integers.

    out[j] += sum over records of trunc(c_i x_ij),   c_i = unit, or less: c_i ||x_i|| <= limit

    Shapes    X float64 or float32[n d]; `least` as norms_into takes it; out int64[d]
    Cost      one read of X: 5 ms for 1e6 x 20
    Source    fastdp/optimizing/descent.md, lemmas 1 and 2, with a derivative of 1
    Requires  limit <= 2^41; n limit < 2^62 over all calls
    Returns   whether a norm is not finite; out is then left alone
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/optimizing.py::clipped_gradients, of LINEAR
    """
    d = out.size
    n, wide = X.size // d, (d + LANES - 1) // LANES * LANES
    mask, sums, tail, total = (
        np.zeros(wide),
        np.zeros(wide),
        np.zeros(GROUP * d + LANES, X.dtype),
        np.zeros(d, np.int64),
    )
    mask[:d] = 1.0
    points, ones, adding = lent(X), lent(mask), lent(sums)
    wild, group, done = False, 0, 0
    while (done + GROUP) * d + LANES <= n * d:
        wild |= _add_group(points, done * d, d, ones, least, unit, limit, adding)
        done += GROUP
        group += 1
        if group == MOST_SUMMED // GROUP:
            move_integers(adding, total, d)
            group = 0
    while done < n:  # the last ones, among zeros, so that nothing is read beyond them
        few = min(GROUP, n - done)
        move_integers(adding, total, d)
        copy_into(X[done * d : (done + few) * d], tail[: few * d])
        tail[few * d :] = 0
        wild |= _add_group(lent(tail), 0, d, ones, least, unit, limit, adding)
        done += few
    move_integers(adding, total, d)
    if not wild:
        out += total
    return wild
