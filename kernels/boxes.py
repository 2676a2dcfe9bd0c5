"""Sums over all boxes of exp(-eta errors), as proposals for an exact draw: fastdp/learning/all_boxes.md.

Such weights leave the range of a float, so a number here is a pair: value 2^level, value a float64 within 2^-60 and
2^300 and level an int64, or value 0 and level NOTHING. Pairs are only added and multiplied, and all of them are
positive, so every sum is right to a relative 2^-53 an operation. Nothing here decides anything. No libm.
"""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import F64Array, I64Array, float_of, int64

NOTHING = -(1 << 59)  # a level below all others, of which a few may still be added up
NET, LEVEL_ENDS, LEVEL_STARTS, LEVEL_BOXES = range(4)  # of a node: columns of `levels`
ENDS, STARTS, BOXES = range(3)  # and of `values`
START, END = range(2)  # of a value of the second axis: rows of `sides`
PLACE, NET_OF_CELL = range(2)  # rows of `cells`

Floats2 = np.ndarray[Any, np.dtype[np.float64]]
Ints2 = np.ndarray[Any, np.dtype[np.int64]]


@jit(inline=True)
def power_of_two(k: int) -> float:
    """2^k for k <= 0; 0 below 2^-1022, which is too little to matter beside 1."""
    return float_of((k if k > int64(-1023) else int64(-1023)) + int64(1023) << int64(52))


@jit(inline=True)
def add_one(a: float, a_level: int, b: float, b_level: int) -> tuple[float, int]:
    """The sum of two pairs."""
    top = a_level if a_level > b_level else b_level
    return a * power_of_two(a_level - top) + b * power_of_two(b_level - top), top


@jit
def fill_powers_into(base: float, level: int, out: F64Array, levels: I64Array) -> None:
    """The powers of base 2^level: out[n + c] 2^levels[n + c] = (base 2^level)^c for c = -n .. n.

    Shapes    out float64[2n + 1], levels int64[2n + 1]
    Cost      O(n)
    Requires  1/2 <= base <= 1; |level| n < 2^57
    Used by   fastdp/learning/all_boxes.py
    Oracle    tests/learning/test_all_boxes.py, in decimals: a relative 2^-52 (|c| + 1), values within 1/2 .. 1
    """
    n = out.size // 2
    out[n], levels[n] = 1.0, 0
    value, at = 1.0, int64(0)
    for c in range(1, n + 1):
        value, at = value * base, at + level
        if value < 0.5:
            value, at = 2.0 * value, at - 1
        out[n + c], levels[n + c] = value, at
    value, at = 1.0, int64(0)
    for c in range(1, n + 1):
        value, at = value / base, at - level
        if value > 1.0:
            value, at = 0.5 * value, at + 1
        out[n - c], levels[n - c] = value, at


@jit
def sum_suffixes_into(values: F64Array, levels: I64Array, out: F64Array, out_levels: I64Array) -> None:
    """out[i] = the sum of the pairs i, i + 1, ...

    Shapes    all of one length, float64 and int64; out and out_levels may be values and levels
    Cost      O(m): 3 ns a pair
    Used by   fastdp/learning/all_boxes.py
    Oracle    tests/learning/test_all_boxes.py, in fractions
    """
    total, top = 0.0, int64(NOTHING)
    for i in range(values.size - 1, -1, -1):
        total, top = add_one(total, top, values[i], levels[i])
        out[i], out_levels[i] = total, top


@jit(inline=True)
def set_leaf(
    k: int, net: int, start: float, end: float, powers: F64Array, power_levels: I64Array, values: Floats2, levels: Ints2
) -> None:
    """Give leaf k the net errors `net`."""
    at = net + powers.size // 2
    power, level = powers[at], power_levels[at]
    values[k, ENDS], values[k, STARTS], values[k, BOXES] = end * power, start * power, start * end * power
    levels[k, NET] = net
    levels[k, LEVEL_ENDS] = levels[k, LEVEL_STARTS] = levels[k, LEVEL_BOXES] = level


@jit(inline=True)
def merge_one(k: int, powers: F64Array, power_levels: I64Array, values: Floats2, levels: Ints2) -> None:
    """Make node k from its children 2k and 2k + 1."""
    a, b, zero = 2 * k, 2 * k + 1, powers.size // 2
    at, bt = levels[a, NET] + zero, levels[b, NET] + zero
    levels[k, NET] = levels[a, NET] + levels[b, NET]
    values[k, ENDS], levels[k, LEVEL_ENDS] = add_one(
        values[a, ENDS], levels[a, LEVEL_ENDS],
        powers[at] * values[b, ENDS], power_levels[at] + levels[b, LEVEL_ENDS],
    )  # fmt: skip
    values[k, STARTS], levels[k, LEVEL_STARTS] = add_one(
        values[b, STARTS], levels[b, LEVEL_STARTS],
        powers[bt] * values[a, STARTS], power_levels[bt] + levels[a, LEVEL_STARTS],
    )  # fmt: skip
    apart, apart_level = add_one(
        values[a, BOXES], levels[a, LEVEL_BOXES], values[b, BOXES], levels[b, LEVEL_BOXES]
    )  # fmt: skip
    values[k, BOXES], levels[k, LEVEL_BOXES] = add_one(
        apart, apart_level, values[a, STARTS] * values[b, ENDS], levels[a, LEVEL_STARTS] + levels[b, LEVEL_ENDS]
    )


@jit
def build_tree_into(sides: Floats2, powers: F64Array, power_levels: I64Array, values: Floats2, levels: Ints2) -> None:
    """The tree of an axis without records: leaf `size + i` is its value i, node k has the children 2k and 2k + 1.

    With w(c) = exp(-eta c) and c_i the net errors of value i (0 here), a node over values l .. r has
        NET = c_l + ... + c_r,                 ENDS = sum over b of ends[b] w(c_l + ... + c_b),
        STARTS = sum over a of starts[a] w(c_a + ... + c_r),
        BOXES = sum over a <= b of starts[a] ends[b] w(c_a + ... + c_b)

    Shapes    sides float64[2, m]: starts and ends; powers float64[2n + 1], power_levels int64[2n + 1], of
              fill_powers_into; values float64[2 size, 3], levels int64[2 size, 4], size a power of two, size >= m
    Cost      O(size)
    Requires  starts and ends within 1 .. 2^64
    Used by   fastdp/learning/all_boxes.py
    Oracle    tests/learning/test_all_boxes.py, by way of sweep_into
    """
    m, size = sides.shape[1], values.shape[0] // 2
    for i in range(m):
        set_leaf(size + i, 0, sides[START, i], sides[END, i], powers, power_levels, values, levels)
    for k in range(size + m, 2 * size):
        values[k, :], levels[k, :] = 0.0, NOTHING
        levels[k, NET] = 0
    for k in range(size - 1, 0, -1):
        merge_one(k, powers, power_levels, values, levels)


@jit
def sweep_into(
    offsets: I64Array, cells: Ints2, sides: Floats2, powers: F64Array, power_levels: I64Array, values: Floats2,
    levels: Ints2, stale: I64Array, out: F64Array, out_levels: I64Array,
) -> None:  # fmt: skip
    """The weight of all intervals of the second axis, for every range of values 0 .. b of the first axis.

    Cells are added to the tree group by group; a node is made anew once a group, however many cells lie below it.

    Shapes    offsets int64[m1 + 1]: group b of cells is offsets[b] .. offsets[b + 1] - 1; cells int64[2, any]: their
              places on the second axis, rising in a group, and their net errors; sides float64[2, m], powers,
              power_levels, values, levels as in build_tree_into, which has filled them; stale int64[size], for its own
              use; out float64[m1], out_levels int64[m1]
    Cost      for each group, 8 ns for each node above its cells: at most min(cells log2(size), 2 size)
    Used by   fastdp/learning/all_boxes.py
    Oracle    tests/learning/test_all_boxes.py, in fractions
    """
    size = values.shape[0] // 2
    for b in range(out.size):
        count = 0
        for cell in range(offsets[b], offsets[b + 1]):
            i = cells[PLACE, cell]
            net = levels[size + i, NET] + cells[NET_OF_CELL, cell]
            set_leaf(size + i, net, sides[START, i], sides[END, i], powers, power_levels, values, levels)
            parent = size + i >> 1
            if count == 0 or stale[count - 1] != parent:
                stale[count] = parent
                count += 1
        while count > 0 and stale[0] > 0:
            above = 0
            for s in range(count):
                k = stale[s]
                merge_one(k, powers, power_levels, values, levels)
                parent = k >> 1
                if above == 0 or stale[above - 1] != parent:
                    stale[above] = parent
                    above += 1
            count = above
        out[b], out_levels[b] = values[1, BOXES], levels[1, LEVEL_BOXES]
