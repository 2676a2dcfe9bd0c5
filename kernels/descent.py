"""Whole descents in one compiled loop: the sum of clipped gradients (gradients.py) and a step, by turns.

A step adds noise to the sum, which is an integer up to there, and does the rest in public: the regulariser, the step
itself, the projection (projections.py).
"""

from typing import Any, NamedTuple

import numpy as np

from .clipping import clip_margins_into, rule_of
from .compile import jit
from .gradients import GROUP, Place, Records, Work, add_differences, add_margins, add_signs
from .lanes import F64Array, I64Array, fma, int64, load, splat, store, tree_sum, truncate
from .layout import LANES
from .projections import project_one

SCALE, RIDGE = range(2)  # the entries of what Python passes as `mean`
SET, RADIUS, L1, CORNERS = range(4)  # and of `region`, whose corners or center a and b, d entries each, come last


class Region(NamedTuple):
    """A set, as project_one takes it, and the weight of the L1 regulariser."""

    kind: int
    a: F64Array
    b: F64Array
    radius: float
    l1: float


@jit(inline=True)
def region_of(numbers: F64Array, d: int) -> Region:
    """The set whose numbers are given in the order of SET, RADIUS, L1, CORNERS."""
    a, b = numbers[CORNERS : CORNERS + d], numbers[CORNERS + d :]
    return Region(int64(numbers[SET]), a, b, numbers[RADIUS], numbers[L1])


@jit(inline=True)
def take_step(
    sums: Any, noise: I64Array, mean: F64Array, rate: float, region: Region, w: F64Array, space: F64Array
) -> None:
    """w moved against the mean gradient and its noise, and back into the set."""
    for j in range(sums.size):
        # of their sum alone: integers up to here
        gradient = np.float64(sums[j] + noise[j]) * mean[SCALE] + mean[RIDGE] * w[j]
        w[j] -= rate * gradient
    threshold = rate * region.l1
    if threshold > 0.0:
        for j in range(w.size):
            size = max(abs(w[j]) - threshold, 0.0)
            w[j] = size if w[j] > 0.0 else -size
    project_one(region.kind, region.a, region.b, region.radius, w, space)


@jit
def step_once(
    sums: Any, noise: I64Array, mean: F64Array, rate: float, region: F64Array, w: F64Array, space: F64Array
) -> None:
    """One step of a descent, for records in several blocks.

    Shapes    sums, noise int64[d]; mean float64[2]: what a sum is multiplied by, and lambda of the regulariser; region
              float64[3 + 2 d]: number and radius of the set, weight of L1, the set's a and b (projections.py); w, space
              float64[d], of which w is moved and space overwritten
    Cost      O(d), and the projection
    Requires  what project_one does
    Used by   fastdp/optimizing/descent.py
    Oracle    tests/oracles/optimizing.py::descent
    """
    take_step(sums, noise, mean, rate, region_of(region, w.size), w, space)


# --- few records, by columns


@jit(inline=True)
def scores_of_columns_into(columns: F64Array, wide: int, d: int, w: F64Array, out: F64Array) -> None:
    """<x, w> of all points, 8 side by side, each with the terms and the order that sums of rows have."""
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
    columns: F64Array, labels: F64Array, norms: F64Array, rule: F64Array, address: int, noise: I64Array,
    rates: F64Array, mean: F64Array, region: F64Array, path: Any,
) -> None:  # fmt: skip
    """A whole descent of a margin loss on few records, which are laid out by columns.

    Shapes    columns float64[d (N + 8)], a multiple N of 32 records, up to 4,096, by columns; labels, norms float64[N]:
              where there is no record, points and labels of 0 and norms of 1; noise int64[T, d]; rates float64[T];
              path float64[T + 1, d], whose first row is the start; rule, address, mean and region as in sum_margins
              and step_once
    Cost      1.5 us a step for 1,000 x 10 with AVX-512: half of what rows would take, whose lanes d = 10 leaves idle
    Used by   fastdp/optimizing/points.py
    Oracle    sum_margins and step_once, bit for bit
    """
    n, d = labels.size, path.shape[1]
    wide = columns.size // d
    clip, over = rule_of(rule, address), region_of(region, d)
    scores, factors, sums = np.empty(n), np.empty(n), np.empty(d, np.int64)
    w, space = path[0].copy(), np.empty(d)
    for t in range(rates.size):
        path[t] = w
        scores_of_columns_into(columns, wide, d, w, scores)
        clip_margins_into(clip, scores, labels, norms, factors)
        sum_columns_into(columns, wide, d, factors, sums)
        take_step(sums, noise[t], mean, rates[t], over, w, space)
    path[rates.size] = w


# --- one block of records, by rows


def _make_descent(add_gradients: Any) -> Any:
    """All steps of a descent in one compiled loop."""

    @jit
    def descend(
        X: Any, labels: F64Array, norms: F64Array, rule: F64Array, address: int, noise: I64Array, rates: F64Array,
        mean: F64Array, region: F64Array, path: Any,
    ) -> None:  # fmt: skip
        d = path.shape[1]
        wide = (d + LANES - 1) // LANES * LANES
        w, mask = np.zeros(wide), np.zeros(wide)
        w[:d] = path[0]
        mask[:d] = 1.0
        some, at = Records(X, labels, norms), Place(w, mask)
        clip, over = rule_of(rule, address), region_of(region, d)
        work = Work(np.empty(GROUP * d + LANES, X.dtype), np.empty(wide))
        out, space = np.empty(d, np.int64), np.empty(d)
        for t in range(rates.size):
            path[t] = w[:d]
            out[:] = 0
            add_gradients(some, at, clip, work, out)
            take_step(out, noise[t], mean, rates[t], over, w[:d], space)
        path[rates.size] = w[:d]

    return descend


descend_margins, descend_differences, descend_signs = map(_make_descent, (add_margins, add_differences, add_signs))
for _descend, _name in (
    (descend_margins, "sum_margins"), (descend_differences, "sum_differences"), (descend_signs, "sum_signs"),
):  # fmt: skip
    _descend.__doc__ = f"""All steps of a descent in one compiled loop: {_name} and step_once, by turns.

    Like      descend_columns, with the records as {_name} takes them
    Shapes    as there
    Cost      T times that of {_name} and step_once
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/optimizing.py::descent
    """
