"""The nearest point of a convex set: balls of L1 and L2, boxes, the simplex.

Points are public by the time they are projected (their noise has been added), so this is plain float arithmetic, in
one order on every machine. `project_one` chooses by the number of a set, so that a whole descent can run in one
compiled loop; fastdp/optimizing/sets/base.py says which numbers belong to which set.
"""

import numpy as np

from .compile import jit
from .lanes import F64Array, fma, load, splat, tree_sum
from .layout import LANES

EVERYWHERE, BALL, BALL_L1, BOX, SIMPLEX = 0, 1, 2, 3, 4
LEAST_SQUARE = 2.0**-900


@jit(inline=True)
def square_distance(x: F64Array, y: F64Array) -> float:
    """The sum of squared differences, in one order on every machine."""
    whole = x.size // LANES * LANES
    a = splat(0.0, 8)
    b = a
    for j in range(0, whole - LANES, 2 * LANES):
        u, v = load(x, j, 8) - load(y, j, 8), load(x, j + LANES, 8) - load(y, j + LANES, 8)
        a, b = fma(u, u, a), fma(v, v, b)
    if whole % (2 * LANES):
        u = load(x, whole - LANES, 8) - load(y, whole - LANES, 8)
        a = fma(u, u, a)
    total = tree_sum(a + b)
    for j in range(whole, x.size):
        total += (x[j] - y[j]) ** 2
    return total


@jit(inline=True)
def project_ball_one(w: F64Array, center: F64Array, radius: float) -> None:
    """The nearest point at distance at most `radius` from the center."""
    total = square_distance(w, center)
    if LEAST_SQUARE < total < 1.0 / LEAST_SQUARE:  # no square has overflowed, or counts and has underflowed
        distance = np.sqrt(total)
        if distance > radius:
            move_toward(w, center, radius / distance)
        return
    largest = 0.0
    for j in range(w.size):
        largest = max(largest, abs(w[j] - center[j]))
    if largest == 0.0:
        return
    total = 0.0
    for j in range(w.size):  # in units of the largest difference, so that no square overflows
        total += ((w[j] - center[j]) / largest) ** 2
    if largest * np.sqrt(total) > radius:
        move_toward(w, center, radius / largest / np.sqrt(total))  # the distance itself may overflow


@jit(inline=True)
def move_toward(w: F64Array, center: F64Array, shrink: float) -> None:
    """w with its differences from the center so many times as long."""
    for j in range(w.size):
        w[j] = center[j] + (w[j] - center[j]) * shrink


@jit(inline=True)
def sort(values: F64Array) -> None:
    """From least to greatest, by Shell's method, with gaps of Gonnet and Baeza-Yates.

    numba's own sort has six functions that took longer to compile than all of `project_one`.
    """
    gap = values.size
    while gap > 1:
        gap = max((5 * gap - 1) // 11, 1)
        for i in range(gap, values.size):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@jit(inline=True)
def cut_of(sizes: F64Array, largest: float, total: float) -> float:
    """The t with sum of max(sizes - largest - t, 0) = total > 0; sorts the sizes, and leaves them so reduced.

    The largest is taken off because sums of numbers far beyond the total would lose it.
    """
    for j in range(sizes.size):
        sizes[j] -= largest
    sort(sizes)
    above, t = 0.0, -total
    for i in range(sizes.size):
        value = sizes[sizes.size - 1 - i]
        above += value
        mean = (above - total) / (i + 1)
        if value <= mean:
            break
        t = mean
    return t


@jit(inline=True)
def project_ball_l1_one(w: F64Array, center: F64Array, radius: float, space: F64Array) -> None:
    """The nearest point whose differences from the center add up to at most `radius`."""
    total, largest = 0.0, 0.0
    for j in range(w.size):
        space[j] = abs(w[j] - center[j])
        total += space[j]
        largest = max(largest, space[j])
    if total <= radius:
        return
    t = cut_of(space[: w.size], largest, radius)
    for j in range(w.size):
        difference = w[j] - center[j]
        size = max(abs(difference) - largest - t, 0.0)
        w[j] = center[j] + (size if difference > 0.0 else -size)


@jit(inline=True)
def project_simplex_one(w: F64Array, total: float, space: F64Array) -> None:
    """The nearest point with no negative coordinate whose coordinates add up to `total`."""
    largest = w[0]
    for j in range(w.size):
        largest = max(largest, w[j])
    for j in range(w.size):
        space[j] = w[j]
    t = cut_of(space[: w.size], largest, total)
    for j in range(w.size):
        w[j] = max(w[j] - largest - t, 0.0)


@jit
def project_one(kind: int, a: F64Array, b: F64Array, radius: float, w: F64Array, space: F64Array) -> None:
    """Move a point to the nearest one of a set.

    kind      EVERYWHERE  leave it
              BALL        center a, L2 radius
              BALL_L1     center a, L1 radius
              BOX         from a to b
              SIMPLEX     at least 0, adding up to radius

    Shapes    a, b, w float64[d]; space float64[d], overwritten
    Cost      O(d); O(d log d) for BALL_L1 and SIMPLEX
    Used by   fastdp/optimizing/sets/base.py, kernels/gradients.py
    Oracle    tests/oracles/optimizing.py::furthest_along, by the conditions of optimality
    """
    if kind == BALL:
        project_ball_one(w, a, radius)
    elif kind == BALL_L1:
        project_ball_l1_one(w, a, radius, space)
    elif kind == BOX:
        for j in range(w.size):
            w[j] = min(max(w[j], a[j]), b[j])
    elif kind == SIMPLEX:
        project_simplex_one(w, radius, space)
