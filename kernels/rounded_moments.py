"""Second moments of points that are rounded to integers of 16 bits: fastdp/optimizing/moments.md, "Rounded points".

A record is scaled into the unit ball and rounded up or down at random, coordinate by coordinate, and its label too;
sums of products are then exact integers, the same for any order and any number of threads. Tiles of 512 records are
laid out by columns: the products of two columns are those of two vectors, pairs of int16 that one instruction
multiplies and adds.
"""

from typing import Any, NamedTuple

import numpy as np

from .arrays import copy_into, seen_as
from .compile import jit
from .lanes import (
    F64Array,
    I32Array,
    I64Array,
    U16Array,
    U32Array,
    bits_of,
    float_of,
    fma,
    int32,
    int64,
    lent,
    load,
    prefetch_far,
    splat,
    stack,
    store,
)
from .layout import LANES, SCHEDULE
from .pair_lanes import add_products, load_pairs, pair_middles, register_lanes, sum_four, transpose_into
from .points import DRAWN, FRACTION, POINT_STREAM, RUN, fill_words
from .rounded_points import MAGNITUDE, dither_of, round_eight, squares_into
from .words import expanded

PAIRS = RUN // 2  # of records in a tile, which is as long as a run of words
ROWS = 32  # records that are rounded together
# records to prefetch, a few lines at a time: 14.1 ms for 1e6 x 20; 32 records at a time 20.4, none 24.0, and into the
# first-level cache 27.1
AHEAD = 64
LONGEST = 8191  # no rounded point is longer, and no label: the 32 products of a lane and a tile keep below 2^31


class Scales(NamedTuple):
    """What records are scaled by, to `size` units: see `add_rounded_moments`; `mask` of the last columns."""

    x_norm: float
    y_bound: float
    least: float
    size: float
    mask: F64Array


class Tile(NamedTuple):
    """Work space: rounded pairs of 32 records by rows, 16 x 16 of them by columns, and a tile by columns."""

    rows: I32Array
    block: I32Array
    columns: I32Array


@jit(inline=True)
def scale_records(X: Any, p: int, d: int, by: Scales, scales: F64Array) -> int:
    """What the 32 records from place p on are multiplied by; returns the bits of the largest norm, or of a NaN."""
    for i in range(0, ROWS, LANES):
        squares_into(X, p + i * d, d, by.mask, scales, i)
    factor, largest = by.size * FRACTION, int64(0)
    for i in range(ROWS):
        norm = np.sqrt(scales[i] + by.least)
        scales[i] = factor / max(by.x_norm, norm)
        largest = max(largest, bits_of(norm) & int64(MAGNITUDE))  # as integers: of floats it is one by one, 8 ms more
    return largest


@jit
def round_tile(X: Any, p: int, d: int, by: Scales, halves: U16Array, dither: I64Array, tile: Tile) -> int:
    """Round the 512 records from place p on, of which up to 15 entries beyond the last are read.

    Like      add_rounded_moments, with its arguments in groups
    Shapes    halves uint16[512], dither int64[D], rows int32[16 D], D >= d a multiple of 16; columns int32[256 d]
    Cost      10 ms for 1e6 x 20 that lie in a cache, a third of it for norms
    Used by   add_rounded_moments
    Oracle    tests/oracles/points.py::rounded_moments
    """
    by = Scales(by.x_norm, by.y_bound, by.least, by.size, lent(by.mask))
    X, rows, block, columns = lent(X), lent(tile.rows), lent(tile.block), lent(tile.columns)
    wide, line = dither.size, 64 // X.itemsize
    scales, largest = stack(by.mask.dtype, ROWS), int64(0)
    for start in range(0, RUN, ROWS):
        here = p + start * d
        largest = max(largest, scale_records(X, here, d, by, scales))
        for k in range(0, ROWS, 2):
            q, first, second = here + k * d, int64(halves[start + k]), int64(halves[start + k + 1])
            for ahead in range(q + AHEAD * d, q + (AHEAD + 2) * d, line):
                prefetch_far(X, ahead)
            for j in range(0, wide, LANES):
                a = round_eight(X, q, scales[k], first, dither, j)
                b = round_eight(X, q + d, scales[k + 1], second, dither, j)
                store(rows, k // 2 * wide + j, pair_middles(a, b))
        for j in range(0, d, 16):
            transpose_into(rows, j, wide, block)
            for k in range(min(16, d - j)):
                store(columns, (j + k) * PAIRS + start // 2, load(block, 16 * k, 16))
    return largest


# --- products of columns


@jit(inline=True)
def load_four(columns: I32Array, p: int) -> Any:
    """16 pairs of each of 4 columns."""
    return (
        load_pairs(columns, p, 16),
        load_pairs(columns, p + PAIRS, 16),
        load_pairs(columns, p + 2 * PAIRS, 16),
        load_pairs(columns, p + 3 * PAIRS, 16),
    )


@jit(inline=True)
def add_to_four(t: Any, x: Any, y: Any) -> Any:
    """4 sums, with the products of x and of 4 columns."""
    return (
        add_products(t[0], x, y[0]),
        add_products(t[1], x, y[1]),
        add_products(t[2], x, y[2]),
        add_products(t[3], x, y[3]),
    )


@jit(inline=True)
def move_four(t: Any, sums: I64Array, p: int) -> None:
    """Add 4 sums of lanes to what has been summed."""
    store(sums, p, load(sums, p, 4) + sum_four(t[0], t[1], t[2], t[3]))


@jit(inline=True)
def add_large_block(columns: I32Array, i: int, j: int, wide: int, sums: I64Array) -> None:
    """The products of columns i to i + 3 with columns j to j + 3: 16 registers of sums."""
    none = splat(int32(0), 16)
    a = (none, none, none, none)
    b, c, e = a, a, a
    p = i * PAIRS
    for k in range(0, PAIRS, 16):
        y = load_four(columns, j * PAIRS + k)
        a = add_to_four(a, load_pairs(columns, p + k, 16), y)
        b = add_to_four(b, load_pairs(columns, p + PAIRS + k, 16), y)
        c = add_to_four(c, load_pairs(columns, p + 2 * PAIRS + k, 16), y)
        e = add_to_four(e, load_pairs(columns, p + 3 * PAIRS + k, 16), y)
    move_four(a, sums, i * wide + j)
    move_four(b, sums, (i + 1) * wide + j)
    move_four(c, sums, (i + 2) * wide + j)
    move_four(e, sums, (i + 3) * wide + j)


@jit(inline=True)
def add_small_block(columns: I32Array, i: int, j: int, wide: int, sums: I64Array) -> None:
    """The products of column i with columns j to j + 3: as many as 16 registers in all allow."""
    none = splat(int32(0), 16)
    a = (none, none, none, none)
    for k in range(0, PAIRS, 16):
        a = add_to_four(a, load_pairs(columns, i * PAIRS + k, 16), load_four(columns, j * PAIRS + k))
    move_four(a, sums, i * wide + j)


@jit
def add_columns(columns: I32Array, wide: int, sums: I64Array) -> None:
    """Add the products of all pairs of columns of a tile: sums[i, j] for j >= i, and some of the others.

    Like      add_rounded_moments
    Shapes    columns int32[256 D], sums int64[D, D] as one row, D a multiple of 4
    Cost      d^2 / 64 instructions a record: 4.1 ms for 1e6 x 20, 23 for 1e5 x 200; 6.6 and 44 with AVX2
    Used by   add_rounded_moments
    Oracle    tests/oracles/points.py::rounded_moments
    """
    columns, sums = lent(columns), lent(sums)
    if register_lanes() == 16:
        for i in range(0, wide, 4):
            for j in range(i, wide, 4):
                add_large_block(columns, i, j, wide, sums)
    else:
        for i in range(wide):
            for j in range(i // 4 * 4, wide, 4):
                add_small_block(columns, i, j, wide, sums)


@jit
def add_rounded_moments(X: Any, labels: F64Array, numbers: F64Array, key: U32Array, first: int, out: I64Array) -> float:
    """Add the moments of records that are rounded first.

    out[i, j] += sum over records of q_i q_j for j > i,   out[d, j] += q_j t,   out[d + 1, j] += q_j^2;
    q_j = floor(x_j s + r_j), s = size / max(x_norm, ||x||);   t = floor(v size + r_d), v = y / y_bound
    cut to [-1, 1];   x_j s and v size rounded to 2^-16;   2^16 r_j = word xor (40503 j mod 2^16), word the
    16-bit word first + i of stream 0

    Shapes    X float64 or float32[n d]; labels float64[n]; numbers float64[4]: x_norm, y_bound, `least` as norms_into
              takes it, size; out int64[d + 2, d], where j <= i left alone
    Cost      one read of X: 14 ms for 1e6 x 20, 33 for 1e5 x 200; 16 and 51 with AVX2
    Source    fastdp/optimizing/moments.md, lemma 3
    Requires  size + sqrt(d) + 1 <= 8191; n < 2^36 over all calls; sums mean nothing where a norm is not finite
    Returns   the largest norm, or NaN if there is one
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/points.py::rounded_moments
    """
    d, n = out.shape[1], labels.size
    wide, filled = (d + 4) // 4 * 4, (d + 15) // 16 * 16
    columns = np.zeros(wide * PAIRS, np.int32)
    tile = Tile(np.zeros(16 * filled, np.int32), np.empty(256, np.int32), columns)
    mask, tail = np.zeros(LANES), np.zeros(RUN * d + 16, X.dtype)
    mask[: d % LANES] = 1.0
    by = Scales(numbers[0], numbers[1], numbers[2], numbers[3], mask)
    sums, dither = np.zeros(wide * wide, np.int64), np.empty(filled, np.int64)
    for j in range(filled):
        dither[j] = dither_of(j)
    column, last = seen_as(columns, np.int16)[d * RUN : (d + 1) * RUN], dither_of(d)
    source, skip = expanded(key, stack(np.uint32, SCHEDULE)), int64(first % RUN)
    drawn, largest = np.empty(DRAWN, np.uint32), int64(0)
    halves = seen_as(drawn, np.uint16)[skip : skip + RUN]
    for start in range(0, n, RUN):
        fill_words(source, POINT_STREAM, first // RUN + start // RUN, skip, drawn)
        few = min(RUN, n - start)
        if (start + RUN) * d + 15 <= n * d:
            norm = round_tile(X, start * d, d, by, halves, dither, tile)
        else:
            copy_into(X[start * d : (start + few) * d], tail[: few * d])
            tail[few * d :] = 0
            norm = round_tile(tail, 0, d, by, halves, dither, tile)
            column[:] = 0
        largest = max(largest, norm)
        for i in range(few):
            v = min(max(labels[start + i] / by.y_bound, -1.0), 1.0)
            rounded = bits_of(fma(v, by.size * FRACTION, float_of(last ^ int64(halves[i]))))
            column[i] = (rounded << int64(32)) >> int64(48)
        add_columns(columns, wide, sums)
    for i in range(d):
        for j in range(i + 1, d):
            out[i, j] += sums[i * wide + j]
        out[d, i] += sums[i * wide + d]
        out[d + 1, i] += sums[i * wide + i]
    return float_of(largest)
