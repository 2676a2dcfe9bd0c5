"""The sum of the clipped gradients of a function of the user's own, as integers.

The function fills an array with the gradient of one record. It is given copies, made anew for each record, and an
array of zeros: what it leaves there is all that is taken from it. Its norm is computed here, afterwards, so no record
adds more than the clip, whatever the function does. fastdp/optimizing/given_gradients.md.
"""

from typing import Any

import numpy as np

from .address_calls import call_into
from .arrays import copy_into
from .clipping import LEAST_SQUARE, ClipRule, clipped_one, rule_of
from .compile import jit
from .gradients import move_floats, move_integers
from .lanes import F64Array, fma, load, splat, store, tree_sum, truncate
from .layout import LANES, MOST_SUMMED

_HUGE, _SMALLER = 2.0**500, 2.0**-600


@jit(inline=True)
def factor_of(gradient: F64Array, rule: ClipRule) -> float:
    """What a gradient is multiplied by, so that it is no longer than the clip; 0 if it is not finite.

    A huge one, whose square would be infinite, is divided by a power of two in place: it is longer than any clip.
    """
    finite, most = True, 0.0
    for j in range(gradient.size):
        size = abs(gradient[j])
        finite = finite and size < np.inf
        most = max(most, size)
    if not finite:
        return 0.0
    huge = most > _HUGE and rule.limit < np.inf
    if huge:
        for j in range(gradient.size):
            gradient[j] *= _SMALLER
    square = splat(0.0, 8)
    for j in range(0, gradient.size, LANES):
        v = load(gradient, j, 8)
        square = fma(v, v, square)
    norm = np.sqrt(tree_sum(square) + LEAST_SQUARE)
    return rule.limit / norm if huge else clipped_one(1.0, norm, rule.unit, rule.limit)


def _make_sum(exact: bool) -> Any:
    move: Any = move_integers if exact else move_floats

    @jit
    def sum_given(
        X: Any, labels: F64Array, norms: F64Array, at: Any, rule: F64Array, address: int, tail: Any, sums: F64Array,
        out: Any,
    ) -> None:  # fmt: skip
        w, space, clip = at[0], at[1], rule_of(rule, address)
        n, p, wide = norms.size, out.size, sums.size
        d = X.size // max(n, 1)
        gradient, point, place = space[:wide], space[wide : wide + d], space[wide + d :]
        group = 0
        sums[:] = 0.0
        for i in range(n):
            for j in range(d):
                point[j] = np.float64(X[i * d + j])
            copy_into(w, place)
            gradient[:] = 0.0
            failed = call_into(address, place, point, labels[i], d, gradient)
            gradient[p:] = 0.0
            factor = factor_of(gradient, clip) if failed == 0 else 0.0
            if factor != 0.0:
                factors = splat(factor, 8)
                for j in range(0, wide, LANES):
                    if exact:
                        store(sums, j, load(sums, j, 8) + truncate(load(gradient, j, 8) * factors))
                    else:
                        store(sums, j, fma(load(gradient, j, 8), factors, load(sums, j, 8)))
            group += 1
            if group == MOST_SUMMED:
                move(sums, out, p)
                group = 0
        move(sums, out, p)

    return sum_given


sum_given, sum_plain_given = _make_sum(True), _make_sum(False)
sum_given.__doc__ = """Add the clipped gradients that a function of the user's own gives, as integers on a grid.

    out[j] += sum over records of trunc(c_i g_ij),   g_i what the function leaves in an array of zeros for w, x_i and
    y_i; c_i = unit, or less: c_i ||g_i|| <= limit; 0 where g_i is not finite, or the function failed

    Shapes    X float64 or float32[n d]; labels, norms float64[n], of norms their number alone; at: w float64[p], and
              float64[P + d + p]: work space, P the least multiple of 8 from p on; rule float64[5]: unit and limit are
              its last two; address of the function, as call_into has it; tail: nothing; sums float64[P]: work space;
              out int64[p]
    Cost      a call for each record, and 0.5 ns an entry
    Source    fastdp/optimizing/given_gradients.md, lemma 1
    Requires  limit <= 2^41; n limit < 2^62 over all calls; a function that is there, and keeps within its arrays
    Used by   fastdp/optimizing/families.py
    Oracle    tests/oracles/softmax.py::clipped_vectors
    """
sum_plain_given.__doc__ = """Add gradients as floats, neither rounded nor, at a limit of inf, clipped; NOT PRIVATE.

    Like      sum_given
    Shapes    as there; out float64[p]
    Cost      as there
    Requires  unit 1; the last bits depend on nothing but the order of the records
    Used by   fastdp/optimizing/families.py
    Oracle    numpy
    """
