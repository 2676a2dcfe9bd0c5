"""Whole descents in one compiled loop: the sum of clipped gradients (gradients.py) and a step, by turns.

A step adds noise to the sum, which is an integer up to there, and does the rest in public: the regulariser, the step
itself, the projection (projections.py).
"""

from typing import Any, NamedTuple

import numpy as np

from .arrays import copy_into
from .clipping import rule_of
from .compile import jit
from .gradients import GROUP, Place, Records, Work, add_differences, add_margins, add_signs
from .lanes import F64Array, I64Array, int64
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
        copy_into(path[0], w[:d])
        mask[:d] = 1.0
        some, at = Records(X, labels, norms), Place(w, mask)
        clip, over = rule_of(rule, address), region_of(region, d)
        work = Work(np.empty(GROUP * d + LANES, X.dtype), np.empty(wide))
        out, space = np.empty(d, np.int64), np.empty(d)
        for t in range(rates.size):
            copy_into(w[:d], path[t])
            out[:] = 0
            add_gradients(some, at, clip, work, out)
            take_step(out, noise[t], mean, rates[t], over, w[:d], space)
        copy_into(w[:d], path[rates.size])

    return descend


descend_margins, descend_differences, descend_signs = map(_make_descent, (add_margins, add_differences, add_signs))
for _descend, _name in (
    (descend_margins, "sum_margins"), (descend_differences, "sum_differences"), (descend_signs, "sum_signs"),
):  # fmt: skip
    _descend.__doc__ = f"""All steps of a descent in one compiled loop: {_name} and step_once, by turns.

    Shapes    X, labels, norms, rule and address as in {_name}; noise int64[T, d]; rates float64[T]; mean and region as
              in step_once; path float64[T + 1, d], whose first row is the start
    Cost      T times that of {_name} and step_once
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/optimizing.py::descent
    """
