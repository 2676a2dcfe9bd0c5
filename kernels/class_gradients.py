"""The sum of the clipped gradients of several classes, as integers: multinomial logistic regression.

The parameter W has a row for each of k classes. A record's gradient is f x, a row for each class: its point x times
one number f_c = p_c - [c is its label] for each, p the probabilities that W gives it. Its norm is ||f|| ||x||, so one
number clips it, and everything else is as in gradients.py, class by class: groups of 32 records, whose points stay in
the cache, coordinates rounded toward zero, and sums of integers. fastdp/optimizing/softmax.md, lemma 1.
"""

from typing import Any

import numpy as np

from .clipping import LEAST_SQUARE, ClipRule, clipped_one
from .compile import jit
from .elementary import exp_one
from .gradients import (
    GROUP,
    make_columns,
    make_kernel,
    make_loop,
    make_products,
    make_scores,
    point_itself,
)
from .lanes import F64Array, I64Array, int64, lent, stack
from .layout import LANES


@jit(inline=True)
def columns_of_classes(rule: ClipRule, out: Any) -> int:
    """How many columns points have: the sum has so many entries for each class."""
    return out.size // int64(rule.parameter)


@jit(inline=True)
def clip_classes_into(rule: ClipRule, classes: int, labels: F64Array, norms: F64Array, table: F64Array) -> None:
    """The factors of the points of a group, in the place of their scores: 32 of them for each class.

    The largest score is taken off before exponentials are taken, which then are in (0, 1]; what is below e^-700 counts
    as that. The order of the sums is that of the classes, for each record.
    """
    shrink, most, total = stack(table.dtype, GROUP), stack(table.dtype, GROUP), stack(table.dtype, GROUP)
    squares, factors = stack(table.dtype, GROUP), stack(table.dtype, GROUP)
    for i in range(GROUP):
        # points beyond the bound are brought back to it
        shrink[i] = rule.bound / max(norms[i], rule.bound) if rule.bound < np.inf else 1.0
        most[i] = -np.inf
        total[i] = 0.0
        squares[i] = 0.0
    for c in range(classes):
        row = table[c * GROUP : (c + 1) * GROUP]
        for i in range(GROUP):
            row[i] *= shrink[i]
            most[i] = row[i] if row[i] > most[i] else most[i]
    for c in range(classes):
        row = table[c * GROUP : (c + 1) * GROUP]
        for i in range(GROUP):
            behind = row[i] - most[i]
            row[i] = exp_one(behind if behind > -700.0 else -700.0)
            total[i] += row[i]
    for c in range(classes):
        row, number = table[c * GROUP : (c + 1) * GROUP], np.float64(c)
        for i in range(GROUP):
            f = (row[i] / total[i] - (1.0 if labels[i] == number else 0.0)) * shrink[i]
            row[i] = f
            squares[i] += f * f
    for i in range(GROUP):
        factors[i] = clipped_one(1.0, np.sqrt(squares[i] + LEAST_SQUARE) * norms[i], rule.unit, rule.limit)
    for c in range(classes):
        row = table[c * GROUP : (c + 1) * GROUP]
        for i in range(GROUP):
            f = row[i] * factors[i]
            row[i] = f if f == f else 0.0


def _make_group(exact: bool) -> Any:
    """Add the gradients of 32 records from place p on; `w` and `sums` have a padded row for each class."""
    scores_into, add_product = make_scores(point_itself, True), make_products(point_itself, exact)
    add_one, add_two, add_three, add_four = (make_columns(add_product, parts) for parts in (1, 2, 3, 4))

    @jit
    def add_group(
        X: Any, p: int, d: int, labels: F64Array, norms: F64Array, w: F64Array, table: F64Array, rule: ClipRule,
        sums: F64Array,
    ) -> None:  # fmt: skip
        classes, wide = int64(rule.parameter), (d + LANES - 1) // LANES * LANES
        w, table, sums = lent(w), lent(table), lent(sums)
        for c in range(classes):
            ours = w[c * wide : (c + 1) * wide]
            row = table[c * GROUP : (c + 1) * GROUP]
            for i in range(0, GROUP, LANES):
                scores_into(X, p + i * d, d, ours, ours, row, i)
        clip_classes_into(rule, classes, labels, norms, table)
        for c in range(classes):
            row, ours, some = table[c * GROUP : (c + 1) * GROUP], w[c * wide : (c + 1) * wide], sums[c * wide :]
            j = 0
            while j < d:
                left = d - j
                if left > 24:
                    add_four(X, p, d, ours, j, row, some)
                    j += 32
                elif left > 16:
                    add_three(X, p, d, ours, j, row, some)
                    j += 24
                elif left > 8:
                    add_two(X, p, d, ours, j, row, some)
                    j += 16
                else:
                    add_one(X, p, d, ours, j, row, some)
                    j += 8

    return add_group


@jit(inline=True)
def move_integer_rows(sums: F64Array, out: I64Array, d: int) -> None:
    """Add to `out` what has been summed, but for what only fills rows, and begin anew."""
    wide = (d + LANES - 1) // LANES * LANES
    for c in range(out.size // d):
        for j in range(d):
            out[c * d + j] += int64(sums[c * wide + j])
    sums[:] = 0.0


@jit(inline=True)
def move_float_rows(sums: F64Array, out: F64Array, d: int) -> None:
    """The same, where sums are floats."""
    wide = (d + LANES - 1) // LANES * LANES
    for c in range(out.size // d):
        for j in range(d):
            out[c * d + j] += sums[c * wide + j]
    sums[:] = 0.0


sum_classes, sum_plain_classes = (
    make_kernel(make_loop(_make_group(exact), move, columns_of_classes, 1.0))
    for exact, move in ((True, move_integer_rows), (False, move_float_rows))
)
sum_classes.__doc__ = """Add the clipped gradients of multinomial logistic regression, as integers on a grid.

    out[c, j] += sum over records of trunc(f_ic x_ij),   f_i = (p_i - e_yi) unit, or less: ||f_i|| ||x_i|| <= limit

    Shapes    X float64 or float32[n d]; labels float64[n], of 0 .. k - 1; norms float64[n]; at: W float64[k D], a row
              for each class, d entries each, then zeros, D a multiple of 8; and float64[32 k]: work space; rule
              float64[5]: any number, k, the norm that points are brought back to, or inf, unit, limit; address: 0; tail
              of X's type[32 d + 8], sums float64[k D]: work space; out int64[k d], class by class
    Cost      k times that of sum_margins, and an exponential for each record and class: 4.4 ms for 1e5 x 50, 5 classes
    Source    fastdp/optimizing/softmax.md, lemma 1
    Requires  limit <= 2^41; n limit < 2^62 over all calls
    Used by   fastdp/optimizing/families.py
    Oracle    tests/oracles/softmax.py::clipped_gradients
    """
sum_plain_classes.__doc__ = """Add gradients as floats, neither rounded nor, at a limit of inf, clipped; NOT PRIVATE.

    Like      sum_classes
    Shapes    as there; out float64[k d]
    Cost      as there
    Requires  unit 1; the last bits depend on nothing but the order of the records
    Used by   fastdp/optimizing/families.py
    Oracle    numpy
    """
