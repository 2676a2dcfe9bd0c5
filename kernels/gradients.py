"""Sums of clipped gradients, and the descent that follows them.

A record's gradient is c r: the point itself (margin losses), its difference from w, or the sign of that (distance
losses), times one number. The number is made small enough that the gradient, in units of the grid, has norm at most K;
every coordinate is rounded toward zero and added up as an integer. So sums have the same bits for any order and any
number of threads, and no record moves them by more than K: fastdp/optimizing/descent.md, lemmas 1 and 2.

What is decided of one record (its score, its norm) is evaluated in one order on every machine: 8 lanes, fma, one tree.
Integers are carried in float64, which holds them exactly: at most 2^41 times 4,096 records, then they move to int64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import jit
from .elementary import exp_one
from .lanes import (
    F64Array,
    I64Array,
    call_at,
    fma,
    int64,
    load,
    load_wide,
    prefetch,
    signs,
    splat,
    stack,
    store,
    sum_each,
    tree_sum,
    truncate,
)
from .projections import project_one

LANES = 8
GROUP = 32  # records that are looked at together: their points stay in the L1 cache up to 128 columns
MOST_SUMMED = 4096  # records between two moves to int64
AHEAD = 64  # records to prefetch; 0: 7.9 ms instead of 5.2 for 1e6 x 20
# added to squared norms: covers what underflows in them; of float32, subnormal numbers, which some threads take for 0
LEAST_SQUARE, LEAST_SQUARE_32 = 2.0**-1000, 2.0**-229

SQUARED, LOGISTIC, HINGE, HUBER, CUSTOM, LINEAR, DISTANCE, DEVIATION = range(8)


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


@jit
def derivatives_into(address: int, scores: F64Array, labels: F64Array, out: F64Array) -> None:
    """What a user's function says of every score and label.

    Shapes    address of a C function double(double, double); scores, labels, out float64[n]
    Cost      n calls
    Requires  a function that is there
    Used by   fastdp/optimizing/losses.py
    Oracle    the function in Python
    """
    for i in range(out.size):
        out[i] = call_at(address, scores[i], labels[i])


@jit(inline=True)
def clipped_one(slope: float, norm: float, unit: float, limit: float) -> float:
    """The factor of a record's point: slope and unit, no more than `limit` when multiplied by the norm; 0 for a NaN."""
    c = slope * unit
    size = abs(c) * norm
    small = limit / size
    c = c * (1.0 if size <= limit else small)  # an undefined size is none within the limit
    return c if c == c else 0.0


@jit(inline=True)
def logistic_slope(score: float, label: float) -> float:
    """phi' of ln(1 + e^(-label score))."""
    return -label / (1.0 + exp_one(min(max(label * score, -700.0), 700.0)))


@jit(inline=True)
def clip_margins_into(
    kind: int, parameter: float, address: int, bound: float, unit: float, limit: float,
    scores: F64Array, labels: F64Array, norms: F64Array, out: F64Array, n: int,
) -> None:  # fmt: skip
    """The factors of n records, by the loss. One loop for each, so that each is vectorised by itself."""
    if bound < np.inf:  # points beyond it are brought back to it
        for i in range(n):
            scores[i] *= bound / max(norms[i], bound)
    if kind == SQUARED:
        for i in range(n):
            out[i] = 2.0 * (scores[i] - labels[i])
    elif kind == LOGISTIC:
        for i in range(n):
            out[i] = logistic_slope(scores[i], labels[i])
    elif kind == HINGE:
        for i in range(n):
            out[i] = -labels[i] if labels[i] * scores[i] < 1.0 else 0.0
    elif kind == HUBER:
        for i in range(n):
            out[i] = 2.0 * min(max(scores[i] - labels[i], -parameter), parameter)
    elif kind == CUSTOM:
        for i in range(n):
            out[i] = call_at(address, scores[i], labels[i])
    else:  # LINEAR: the points themselves
        for i in range(n):
            out[i] = 1.0
    if bound < np.inf:
        for i in range(n):
            out[i] *= bound / max(norms[i], bound)
    for i in range(n):
        out[i] = clipped_one(out[i], norms[i], unit, limit)


@jit(inline=True)
def point_itself(x: Any, w: Any) -> Any:
    """The gradient's direction of margin losses."""
    return x


@jit(inline=True)
def difference(x: Any, w: Any) -> Any:
    """The gradient's direction of squared distances."""
    return x - w


@jit(inline=True)
def sign_of_difference(x: Any, w: Any) -> Any:
    """The gradient's direction of absolute deviations."""
    return signs(x - w)


def _make(residual: Callable[..., Any], margin: bool, exact: bool) -> Any:
    """A kernel for one family of losses: with clipping, in integers (`exact`), or plain sums in floats."""

    @jit(inline=True)
    def add_product(a: Any, x: Any, w: Any, factor: Any) -> Any:
        if exact:
            return a + truncate(residual(x, w) * factor)
        return fma(residual(x, w), factor, a)

    @jit(inline=True)
    def add_square(a: Any, x: Any, w: Any, mask: Any) -> Any:
        r = residual(x, w) * mask
        return fma(r, r, a)

    @jit(inline=True)
    def scores_into(X: Any, p: int, d: int, w: F64Array, out: F64Array, i: int) -> None:
        """<x, w> of 8 points from place p on, w followed by zeros up to a multiple of 8."""
        a = splat(0.0, 8)
        b, c, e, f, g, h, k = a, a, a, a, a, a, a
        for j in range(0, d, LANES):
            v = load(w, j, 8)
            q = p + j
            a = fma(load_wide(X, q, 8), v, a)
            b = fma(load_wide(X, q + d, 8), v, b)
            c = fma(load_wide(X, q + 2 * d, 8), v, c)
            e = fma(load_wide(X, q + 3 * d, 8), v, e)
            f = fma(load_wide(X, q + 4 * d, 8), v, f)
            g = fma(load_wide(X, q + 5 * d, 8), v, g)
            h = fma(load_wide(X, q + 6 * d, 8), v, h)
            k = fma(load_wide(X, q + 7 * d, 8), v, k)
        store(out, i, sum_each(a, b, c, e, f, g, h, k))

    @jit(inline=True)
    def squares_into(X: Any, p: int, d: int, w: F64Array, mask: F64Array, out: F64Array, i: int) -> None:
        """Squared norms of the residuals of 8 points from place p on; the mask is 1 up to d and 0 beyond."""
        a = splat(0.0, 8)
        b, c, e, f, g, h, k = a, a, a, a, a, a, a
        for j in range(0, d, LANES):
            v, m = load(w, j, 8), load(mask, j, 8)
            q = p + j
            a = add_square(a, load_wide(X, q, 8), v, m)
            b = add_square(b, load_wide(X, q + d, 8), v, m)
            c = add_square(c, load_wide(X, q + 2 * d, 8), v, m)
            e = add_square(e, load_wide(X, q + 3 * d, 8), v, m)
            f = add_square(f, load_wide(X, q + 4 * d, 8), v, m)
            g = add_square(g, load_wide(X, q + 5 * d, 8), v, m)
            h = add_square(h, load_wide(X, q + 6 * d, 8), v, m)
            k = add_square(k, load_wide(X, q + 7 * d, 8), v, m)
        store(out, i, sum_each(a, b, c, e, f, g, h, k))

    @jit(inline=True)
    def add_four(X: Any, p: int, d: int, w: F64Array, j: int, factors: F64Array, sums: F64Array) -> None:
        """Columns j to j + 31 of a group: four accumulators, in registers."""
        a, b, c, e = load(sums, j, 8), load(sums, j + 8, 8), load(sums, j + 16, 8), load(sums, j + 24, 8)
        s, t, u, v = load(w, j, 8), load(w, j + 8, 8), load(w, j + 16, 8), load(w, j + 24, 8)
        for i in range(GROUP):
            factor = splat(factors[i], 8)
            q = p + i * d + j
            prefetch(X, q + AHEAD * d)
            prefetch(X, q + AHEAD * d + 8)
            prefetch(X, q + AHEAD * d + 16)
            prefetch(X, q + AHEAD * d + 24)
            a = add_product(a, load_wide(X, q, 8), s, factor)
            b = add_product(b, load_wide(X, q + 8, 8), t, factor)
            c = add_product(c, load_wide(X, q + 16, 8), u, factor)
            e = add_product(e, load_wide(X, q + 24, 8), v, factor)
        store(sums, j, a)
        store(sums, j + 8, b)
        store(sums, j + 16, c)
        store(sums, j + 24, e)

    @jit(inline=True)
    def add_three(X: Any, p: int, d: int, w: F64Array, j: int, factors: F64Array, sums: F64Array) -> None:
        a, b, c = load(sums, j, 8), load(sums, j + 8, 8), load(sums, j + 16, 8)
        s, t, u = load(w, j, 8), load(w, j + 8, 8), load(w, j + 16, 8)
        for i in range(GROUP):
            factor = splat(factors[i], 8)
            q = p + i * d + j
            prefetch(X, q + AHEAD * d)
            prefetch(X, q + AHEAD * d + 8)
            prefetch(X, q + AHEAD * d + 16)
            a = add_product(a, load_wide(X, q, 8), s, factor)
            b = add_product(b, load_wide(X, q + 8, 8), t, factor)
            c = add_product(c, load_wide(X, q + 16, 8), u, factor)
        store(sums, j, a)
        store(sums, j + 8, b)
        store(sums, j + 16, c)

    @jit(inline=True)
    def add_two(X: Any, p: int, d: int, w: F64Array, j: int, factors: F64Array, sums: F64Array) -> None:
        a, b = load(sums, j, 8), load(sums, j + 8, 8)
        s, t = load(w, j, 8), load(w, j + 8, 8)
        for i in range(GROUP):
            factor = splat(factors[i], 8)
            q = p + i * d + j
            prefetch(X, q + AHEAD * d)
            prefetch(X, q + AHEAD * d + 8)
            a = add_product(a, load_wide(X, q, 8), s, factor)
            b = add_product(b, load_wide(X, q + 8, 8), t, factor)
        store(sums, j, a)
        store(sums, j + 8, b)

    @jit(inline=True)
    def add_one(X: Any, p: int, d: int, w: F64Array, j: int, factors: F64Array, sums: F64Array) -> None:
        a, s = load(sums, j, 8), load(w, j, 8)
        for i in range(GROUP):
            q = p + i * d + j
            prefetch(X, q + AHEAD * d)
            a = add_product(a, load_wide(X, q, 8), s, splat(factors[i], 8))
        store(sums, j, a)

    @jit
    def add_group(
        X: Any, p: int, d: int, labels: F64Array, norms: F64Array, w: F64Array, mask: F64Array,
        kind: int, parameter: float, address: int, bound: float, unit: float, limit: float, sums: F64Array,
    ) -> None:  # fmt: skip
        """Add the gradients of 32 records from place p on; up to 7 entries beyond the last are read."""
        scores, factors = stack(w.dtype, GROUP), stack(w.dtype, GROUP)
        if margin:
            for i in range(0, GROUP, LANES):
                scores_into(X, p + i * d, d, w, scores, i)
            clip_margins_into(kind, parameter, address, bound, unit, limit, scores, labels, norms, factors, GROUP)
        else:
            for i in range(0, GROUP, LANES):
                squares_into(X, p + i * d, d, w, mask, scores, i)
            for i in range(GROUP):
                # x - w, of which the gradient is -2 or -1 times; norms[i] is 0 for what only fills the group
                factor = clipped_one(-parameter, np.sqrt(scores[i] + LEAST_SQUARE), unit, limit)
                factors[i] = factor if norms[i] > 0.0 else 0.0
        j = 0
        while j < d:
            left = d - j
            if left > 24:
                add_four(X, p, d, w, j, factors, sums)
                j += 32
            elif left > 16:
                add_three(X, p, d, w, j, factors, sums)
                j += 24
            elif left > 8:
                add_two(X, p, d, w, j, factors, sums)
                j += 16
            else:
                add_one(X, p, d, w, j, factors, sums)
                j += 8

    @jit(inline=True)
    def move(sums: F64Array, d: int, out: Any) -> None:
        for j in range(d):
            if exact:
                out[j] += int64(sums[j])
            else:
                out[j] += sums[j]
        sums[:] = 0.0

    @jit
    def sum_gradients(
        X: Any, labels: F64Array, norms: F64Array, w: F64Array, mask: F64Array,
        kind: int, parameter: float, address: int, bound: float, unit: float, limit: float,
        tail: Any, sums: F64Array, out: Any,
    ) -> None:  # fmt: skip
        n, d = norms.size, out.size
        group = done = 0
        sums[:] = 0.0
        while (done + GROUP) * d + LANES <= n * d:
            end = done + GROUP
            add_group(
                X, done * d, d, labels[done:end], norms[done:end], w, mask,
                kind, parameter, address, bound, unit, limit, sums,
            )  # fmt: skip
            done = end
            group += 1
            if group == MOST_SUMMED // GROUP:
                move(sums, d, out)
                group = 0
        move(sums, d, out)
        some_labels, some_norms = stack(w.dtype, GROUP), stack(w.dtype, GROUP)
        while done < n:  # the last ones, among zeros, so that nothing is read beyond them
            few = min(GROUP, n - done)
            tail[: few * d] = X[done * d : (done + few) * d]
            tail[few * d :] = 0
            for i in range(GROUP):
                some_labels[i] = labels[done + i] if i < few else 0.0
                some_norms[i] = norms[done + i] if i < few else (1.0 if margin else 0.0)
            add_group(
                tail, 0, d, some_labels, some_norms, w, mask,
                kind, parameter, address, bound, unit, limit, sums,
            )  # fmt: skip
            done += few
        move(sums, d, out)

    return sum_gradients


sum_margins = _make(point_itself, True, True)
sum_margins.__doc__ = """Add the clipped gradients of margin losses, in units of the grid, as integers.

    out[j] += sum over records of trunc(c_i x_ij),   c_i = phi'(<x_i, w>, y_i) unit, or less: |c_i| ||x_i|| <= limit

    Shapes    X float64 or float32[n d]; labels, norms float64[n]; w, mask float64[D]: d entries (of the mask: ones),
              then zeros, D a multiple of 8; tail of X's type[32 d + 8], sums float64[D]: work space;
              out int64[d]
    Cost      one read of X: 5.2 ms for 1e6 x 20 with AVX-512 and AVX2 alike
    Source    fastdp/optimizing/descent.md, lemmas 1 and 2
    Requires  limit <= 2^41; n limit < 2^62 over all calls
    Used by   fastdp/optimizing/points.py
    Oracle    tests/reference.py::clipped_gradients
    """
sum_differences = _make(difference, False, True)
sum_differences.__doc__ = """Add the clipped gradients of squared distances, in units of the grid, as integers.

    Like      sum_margins; parameter is 2, and kind, address and bound mean nothing
    Shapes    as there; X float64
    Cost      as there
    Used by   fastdp/optimizing/points.py
    Oracle    tests/reference.py::clipped_gradients
    """
sum_signs = _make(sign_of_difference, False, True)
sum_signs.__doc__ = """Add the clipped gradients of absolute deviations, in units of the grid, as integers.

    Like      sum_margins; parameter is 1, and kind, address and bound mean nothing
    Shapes    as there; X float64
    Cost      as there
    Used by   fastdp/optimizing/points.py
    Oracle    tests/reference.py::clipped_gradients
    """
sum_plain_margins = _make(point_itself, True, False)
sum_plain_differences = _make(difference, False, False)
sum_plain_signs = _make(sign_of_difference, False, False)
for _plain, _name in (
    (sum_plain_margins, "sum_margins"), (sum_plain_differences, "sum_differences"), (sum_plain_signs, "sum_signs"),
):  # fmt: skip
    _plain.__doc__ = f"""Add gradients as floats, neither rounded nor, with a limit of infinity, clipped; NOT PRIVATE.

    Like      {_name}
    Shapes    as there; out float64[d]
    Cost      as there
    Requires  unit 1; the last bits depend on nothing but the order of the records
    Used by   fastdp/optimizing/points.py
    Oracle    numpy
    """


@jit(inline=True)
def take_step(
    sums: Any, noise: I64Array, scale: float, ridge: float, rate: float,
    set_kind: int, a: F64Array, b: F64Array, radius: float, w: F64Array, space: F64Array,
) -> None:  # fmt: skip
    """w moved against the mean gradient and its noise, and back into the set."""
    for j in range(sums.size):
        gradient = np.float64(sums[j] + noise[j]) * scale + ridge * w[j]  # of their sum alone: integers up to here
        w[j] -= rate * gradient
    project_one(set_kind, a, b, radius, w[: sums.size], space)


@jit
def step_once(
    sums: Any, noise: I64Array, scale: float, ridge: float, rate: float,
    set_kind: int, a: F64Array, b: F64Array, radius: float, w: F64Array, space: F64Array,
) -> None:  # fmt: skip
    """One step of `descend`, for records in several blocks.

    Shapes    sums, noise int64[d]; a, b, w, space float64[d], of which w is moved and space overwritten
    Cost      O(d), and the projection
    Requires  what project_one does
    Used by   fastdp/optimizing/descent.py
    Oracle    tests/reference.py::descent
    """
    take_step(sums, noise, scale, ridge, rate, set_kind, a, b, radius, w, space)


@jit(inline=True)
def scores_of_columns_into(columns: F64Array, wide: int, d: int, w: F64Array, out: F64Array) -> None:
    """<x, w> of all points, 8 side by side, each with the terms and the order that `scores_into` has."""
    for i in range(0, out.size, LANES):
        a = splat(0.0, 8)
        b, c, e, f, g, h, k = a, a, a, a, a, a, a
        for j in range(0, d, LANES):
            p = j * wide + i
            a = fma(load(columns, p, 8), splat(w[j], 8), a)
            if j + 1 < d:
                b = fma(load(columns, p + wide, 8), splat(w[j + 1], 8), b)
            if j + 2 < d:
                c = fma(load(columns, p + 2 * wide, 8), splat(w[j + 2], 8), c)
            if j + 3 < d:
                e = fma(load(columns, p + 3 * wide, 8), splat(w[j + 3], 8), e)
            if j + 4 < d:
                f = fma(load(columns, p + 4 * wide, 8), splat(w[j + 4], 8), f)
            if j + 5 < d:
                g = fma(load(columns, p + 5 * wide, 8), splat(w[j + 5], 8), g)
            if j + 6 < d:
                h = fma(load(columns, p + 6 * wide, 8), splat(w[j + 6], 8), h)
            if j + 7 < d:
                k = fma(load(columns, p + 7 * wide, 8), splat(w[j + 7], 8), k)
        store(out, i, ((a + b) + (c + e)) + ((f + g) + (h + k)))


@jit(inline=True)
def sum_columns_into(columns: F64Array, wide: int, d: int, factors: F64Array, out: I64Array) -> None:
    """out[j] = sum over records of trunc(c_i x_ij), of columns; a multiple of 32 records, at most 4,096 of 2^41.

    Four sums at a time, for one alone waits for every addition: of four columns, the last four of which may overlap
    those before, or of four parts of one column.
    """
    for first in range(0, d if d >= 4 else 0, 4):
        j = min(first, d - 4)
        p = j * wide
        a = splat(0.0, 8)
        b, c, e = a, a, a
        for i in range(0, factors.size, LANES):
            factor = load(factors, i, 8)
            a = a + truncate(load(columns, p + i, 8) * factor)
            b = b + truncate(load(columns, p + wide + i, 8) * factor)
            c = c + truncate(load(columns, p + 2 * wide + i, 8) * factor)
            e = e + truncate(load(columns, p + 3 * wide + i, 8) * factor)
        out[j] = int64(tree_sum(a))
        out[j + 1] = int64(tree_sum(b))
        out[j + 2] = int64(tree_sum(c))
        out[j + 3] = int64(tree_sum(e))
    for j in range(d if d < 4 else 0):
        p = j * wide
        a = splat(0.0, 8)
        b, c, e = a, a, a
        for i in range(0, factors.size, 4 * LANES):
            a = a + truncate(load(columns, p + i, 8) * load(factors, i, 8))
            b = b + truncate(load(columns, p + i + 8, 8) * load(factors, i + 8, 8))
            c = c + truncate(load(columns, p + i + 16, 8) * load(factors, i + 16, 8))
            e = e + truncate(load(columns, p + i + 24, 8) * load(factors, i + 24, 8))
        out[j] = int64(tree_sum((a + b) + (c + e)))


@jit
def descend_columns(
    columns: F64Array, labels: F64Array, norms: F64Array, w: F64Array,
    kind: int, parameter: float, address: int, bound: float, unit: float, limit: float,
    noise: I64Array, scale: float, ridge: float, rates: F64Array,
    set_kind: int, a: F64Array, b: F64Array, radius: float, space: F64Array, path: F64Array,
) -> None:  # fmt: skip
    """A whole descent of a margin loss on few records, which are laid out by columns.

    Shapes    columns float64[d (N + 8)], a multiple N of 32 records, up to 4,096, by columns; labels, norms float64[N]:
              where there is no record, points and labels of 0 and norms of 1; w, space float64[d]; noise int64[T, d];
              rates float64[T]; path float64[T + 1, d]
    Cost      1.5 us a step for 1,000 x 10 with AVX-512: half of what rows would take, whose lanes d = 10 leaves idle
    Used by   fastdp/optimizing/points.py
    Oracle    sum_margins and step_once, bit for bit
    """
    n, d = labels.size, w.size
    wide = columns.size // d
    scores, factors, sums = np.empty(n), np.empty(n), np.empty(d, np.int64)
    for t in range(rates.size):
        path[t] = w
        scores_of_columns_into(columns, wide, d, w, scores)
        clip_margins_into(kind, parameter, address, bound, unit, limit, scores, labels, norms, factors, n)
        sum_columns_into(columns, wide, d, factors, sums)
        take_step(sums, noise[t], scale, ridge, rates[t], set_kind, a, b, radius, w, space)
    path[rates.size] = w


def _make_descent(sum_gradients: Any) -> Any:
    """All steps of a descent in one compiled loop."""

    @jit
    def descend(
        X: Any, labels: F64Array, norms: F64Array, w: F64Array, mask: F64Array,
        kind: int, parameter: float, address: int, bound: float, unit: float, limit: float,
        tail: Any, sums: F64Array,
        noise: I64Array, scale: float, ridge: float, rates: F64Array,
        set_kind: int, a: F64Array, b: F64Array, radius: float, space: F64Array, path: F64Array,
    ) -> None:  # fmt: skip
        d = path.shape[1]
        out = np.empty(d, np.int64)
        for t in range(rates.size):
            path[t] = w[:d]
            out[:] = 0
            sum_gradients(X, labels, norms, w, mask, kind, parameter, address, bound, unit, limit, tail, sums, out)
            take_step(out, noise[t], scale, ridge, rates[t], set_kind, a, b, radius, w, space)
        path[rates.size] = w[:d]

    return descend


descend_margins = _make_descent(sum_margins)
descend_differences = _make_descent(sum_differences)
descend_signs = _make_descent(sum_signs)
for _descend, _name in (
    (descend_margins, "sum_margins"), (descend_differences, "sum_differences"), (descend_signs, "sum_signs"),
):  # fmt: skip
    _descend.__doc__ = f"""All steps of a descent in one compiled loop: {_name} and step_once, by turns.

    Like      {_name} and step_once
    Shapes    as there; noise int64[T, d], rates float64[T]; path float64[T + 1, d], where every point is written
    Cost      T times theirs
    Used by   fastdp/optimizing/points.py
    Oracle    tests/reference.py::descent
    """
