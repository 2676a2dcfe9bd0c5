"""Second moments of records, as integers: what least squares needs to know of them.

Each record is scaled into the unit ball; every product of two coordinates, and of a coordinate and the label, is
rounded toward zero to the grid, and added up. So sums have the same bits for any order and any number of threads, and
moments.md says how far one record moves them.
"""

from typing import Any

from .arrays import copy_into
from .compile import jit
from .lanes import F64Array, I64Array, int64, load, load_wide, splat, stack, store, truncate
from .layout import LANES, MOST_SUMMED

TOGETHER = 4  # records: sums are read and written once for all of them
SQRT_TWO, SQRT_HALF = 2**0.5, 0.5**0.5


@jit(inline=True)
def add_four(X: Any, p: int, d: int, wide: int, squares: F64Array, crosses: F64Array, sums: F64Array) -> None:
    """The products of 4 records from place p on; up to 7 entries beyond the last are read."""
    q, r, s = p + d, p + 2 * d, p + 3 * d
    for i in range(d):
        a, b = splat(X[p + i] * squares[0], 8), splat(X[q + i] * squares[1], 8)
        c, e = splat(X[r + i] * squares[2], 8), splat(X[s + i] * squares[3], 8)
        for j in range(i // LANES * LANES, d, LANES):
            total = load(sums, i * wide + j, 8) + truncate(load_wide(X, p + j, 8) * a)
            total = total + truncate(load_wide(X, q + j, 8) * b)
            total = total + truncate(load_wide(X, r + j, 8) * c)
            store(sums, i * wide + j, total + truncate(load_wide(X, s + j, 8) * e))
    for k in range(TOGETHER):
        a, b = splat(crosses[k], 8), splat(squares[k] * SQRT_HALF, 8)
        for j in range(0, d, LANES):
            x = load_wide(X, p + k * d + j, 8)
            store(sums, d * wide + j, load(sums, d * wide + j, 8) + truncate(x * a))
            store(sums, (d + 1) * wide + j, load(sums, (d + 1) * wide + j, 8) + truncate((x * b) * x))


@jit
def add_moments(
    X: Any, labels: F64Array, norms: F64Array, x_norm: float, y_bound: float, unit: float,
    tail: Any, sums: F64Array, out: I64Array,
) -> None:  # fmt: skip
    """Add the moments of records, such that sums of squares of them are those of the matrix u u^T and the vector u v.

    out[i, j] += sum over records of trunc(sqrt(2) u_i u_j unit) for j > i,   out[d, j] += trunc(u_j v unit),
    out[d + 1, j] += trunc(u_j^2 unit);   u = x / max(x_norm, ||x||), v = y / y_bound cut to [-1, 1], times 1 - 2^-40

    Shapes    X float64 or float32[n d], labels, norms float64[n]; tail of X's type[4 d + 8] and sums
              float64[(d + 2) D], work space, D >= d a multiple of 8; out int64[d + 2, d], where j <= i left alone
    Cost      about d^2 / 16 vector operations a record: 30 ns at d = 20
    Source    fastdp/optimizing/moments.md, lemma 1
    Requires  unit <= 2^40, a power of two
    Used by   fastdp/optimizing/moments.py
    Oracle    tests/oracles/optimizing.py::second_moments
    """
    n, d = labels.size, out.shape[1]
    wide = sums.size // (d + 2)
    squares, crosses = stack(labels.dtype, TOGETHER), stack(labels.dtype, TOGETHER)
    sums[:] = 0.0
    for start in range(0, n, MOST_SUMMED):
        stop = min(start + MOST_SUMMED, n)
        for k in range(start, stop, TOGETHER):
            few = min(TOGETHER, stop - k)
            squares[:] = 0.0
            crosses[:] = 0.0
            for r in range(few):
                shrink = 1.0 / max(x_norm, norms[k + r])
                small = shrink * unit * (1.0 - 2.0**-40)
                squares[r] = shrink * small * SQRT_TWO
                crosses[r] = min(max(labels[k + r] / y_bound, -1.0), 1.0) * small
            if (k + TOGETHER) * d + LANES <= n * d:
                add_four(X, k * d, d, wide, squares, crosses, sums)
            else:
                tail[:] = 0
                copy_into(X[k * d : (k + few) * d], tail[: few * d])
                add_four(tail, 0, d, wide, squares, crosses, sums)
        for i in range(d):
            for j in range(i + 1, d):
                out[i, j] += int64(sums[i * wide + j])
            out[d, i] += int64(sums[d * wide + i])
            out[d + 1, i] += int64(sums[(d + 1) * wide + i])
        sums[:] = 0.0
