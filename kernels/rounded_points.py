"""Points as integers of 16 bits are made here, and summed in points.py: fastdp/optimizing/points.md, lemmas 1 and 3.

A record is brought to its own power of two, rounded up or down at random, and turned into its tile, 32 records at a
time; its norm is that of the integers, rounded up.
"""

from typing import Any, NamedTuple

import numpy as np

from .arrays import copy_into, seen_as
from .compile import jit
from .lanes import (
    F64Array,
    I16Array,
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
    load_wide,
    prefetch_far,
    row_at,
    splat,
    stack,
    store,
    sum_each,
)
from .layout import LANES, SCHEDULE
from .pair_lanes import add_products, first_of_pairs, load_pairs, pair_middles, second_of_pairs, transpose_into
from .points import (
    DRAWN,
    EXPONENT,
    FRACTION,
    LIMIT,
    MIDDLE,
    POINT_STREAM,
    RUN,
    TILE,
    Words,
    exponent_above,
    fill_words,
    whole_power,
)
from .words import expanded

ROWS = 32  # records that are rounded together
AHEAD = 64  # records to prefetch, a few lines at a time: 16.6 ms for 1e6 x 20 in place of 19.3 with 32
MIXED = 0x9E37  # times a column's number: bits that its words are mixed with, so that columns round apart
MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # of the bits of a float: these compare as the floats do, and NaN above all


@jit
def round_points(
    X: Any, d: int, bound: float, least: float, most: int, key: U32Array, first: int, out: I16Array, marks: I16Array
) -> float:
    """Round points to integers of 16 bits, at random up or down, a record by its own power of two.

    out[i, j] = floor(x_ij 2^e_i + r_ij),   x_ij 2^e_i rounded to 2^-16;   2^16 r_ij = word xor (40503 j mod 2^16),
    word the 16-bit word first + i of stream 0

    Shapes    X float64 or float32[n d]; out int16, whole tiles of two columns each; marks int16[2, N], N the records of
              these tiles: e_i, and floor(most / N_i) for N_i = ceil ||out_i||, at most 2^15 - 1 (0 where N_i is)
    Cost      two reads of X, the second from a cache: 16 ms for 1e6 x 20
    Source    fastdp/optimizing/points.md, lemmas 1 and 3
    Requires  least as norms_into takes it; d <= 2^16; points beyond `bound` are brought back to it, and integers mean
              nothing where a norm is not below 2^511
    Returns   the largest norm, before points are brought back; NaN if there is one
    Used by   fastdp/optimizing/grid_points.py
    Oracle    tests/oracles/points.py::rounded_point
    """
    n, few = X.size // d, X.size // d % ROWS
    sure = n - few  # points that 7 more entries follow
    if few * d < LANES - 1 and sure:
        sure -= ROWS
    mask, last = np.zeros(LANES), np.zeros(2 * ROWS * d + LANES, X.dtype)
    mask[: d % LANES] = 1.0
    copy_into(X[sure * d :], last[: (n - sure) * d])
    dither = np.empty((d + LANES - 1) // LANES * LANES, np.int64)
    for j in range(dither.size):
        dither[j] = dither_of(j)
    how = Rounding(bound, least, most, mask, dither)
    work = RoundedRows(np.zeros(256, np.int32), np.empty(256, np.int32))
    words = Words(expanded(key, stack(np.uint32, SCHEDULE)), POINT_STREAM, first)
    largest = round_whole(X, 0, sure, d, how, work, words, out, marks)
    largest = max(largest, round_whole(last, sure, n - sure, d, how, work, words, out, marks))
    return np.sqrt(float_of(largest) + least)


class Rounding(NamedTuple):
    """How points are rounded: see `round_points`; `mask` has ones for the last columns, beyond a multiple of 8."""

    bound: float
    least: float
    most: int
    mask: F64Array
    dither: I64Array


class RoundedRows(NamedTuple):
    """Work space: 16 columns of records i and i + 16 side by side, by rows and by columns."""

    rows: I32Array
    block: I32Array


@jit(inline=True)
def dither_of(column: int) -> int:
    """The bits of MIDDLE, mixed with those of a column."""
    return bits_of(MIDDLE) ^ ((int64(MIXED) * int64(column)) & int64(0xFFFF))


@jit(inline=True)
def round_eight(X: Any, p: int, scale: float, word: int, dither: I64Array, j: int) -> Any:
    """8 coordinates, in the bits 16 to 31 of int64 lanes."""
    mixed = load(dither, j, 8) ^ splat(word, 8)
    return bits_of(fma(load_wide(X, p + j, 8), splat(scale, 8), float_of(mixed)))


@jit
def round_whole(
    X: Any, start: int, n: int, d: int, how: Rounding, work: RoundedRows, words: Words, out: I16Array, marks: I16Array
) -> int:
    """The n points of X, which are those from number `start` on, and points of 0 up to a multiple of 32.

    What is decided of each record alone is computed of 32 side by side: one by one, as a chain of roots and quotients,
    it took three times as long.

    Like      round_points
    Shapes    X with n points, up to a multiple of 32, and 7 more entries
    Cost      as there
    Returns   the bits of the largest squared norm, or of a NaN
    Used by   round_points
    Oracle    tests/oracles/points.py::rounded_point
    """
    X, mask, dither, rows, block, tiles = (
        lent(X), lent(how.mask), lent(how.dither), lent(work.rows), lent(work.block), lent(out)
    )  # fmt: skip
    exponents, limits = row_at(marks, EXPONENT), row_at(marks, LIMIT)
    drawn = stack(words.key.dtype, DRAWN)
    halves, skip, pairs = seen_as(drawn, np.uint16), int64(words.first % RUN), (d + 1) // 2
    scales, powers = stack(mask.dtype, ROWS), stack(mask.dtype, ROWS)
    squares, seen, largest = stack(rows.dtype, ROWS), stack(rows.dtype, ROWS), int64(0)
    fill_words(words.key, words.stream, words.first // RUN + start // RUN, skip, drawn)
    for done in range(0, n, ROWS):
        at, p, few = start + done, done * d, min(ROWS, n - done)
        if at % RUN == 0 and done:
            fill_words(words.key, words.stream, words.first // RUN + at // RUN, skip, drawn)
        for i in range(0, ROWS, LANES):
            squares_into(X, p + i * d, d, mask, scales, i)
        for i in range(ROWS):
            largest = max(largest, bits_of(scales[i]) & int64(MAGNITUDE))
        for i in range(ROWS):
            norm = np.sqrt(scales[i] + how.least)
            shrink = how.bound / norm if norm > how.bound else 1.0
            powers[i] = whole_power(int64(15) - exponent_above(norm * shrink))
            scales[i] = shrink * powers[i] * FRACTION
        place = skip + at % RUN
        squares[:], seen[:] = 0, 0
        base = (at // TILE * pairs * TILE + at % TILE) * 2
        for c in range(0, d, 16):
            round_block(X, p + c, d, scales, halves[place : place + ROWS], dither, c, rows)
            transpose_into(rows, 0, 16, block)
            if d < c + 16 and d % 2:
                store(block, 16 * (d - c), splat(int32(0), 16))
            for k in range(0, min(16, d - c), 2):
                x, y = load_pairs(block, 16 * k, 16), load_pairs(block, 16 * k + 16, 16)
                a, b = first_of_pairs(x, y), second_of_pairs(x, y)
                q = base + (c + k) * TILE
                store(tiles, q, a)
                store(tiles, q + 32, b)
                u, v = add_products(load(squares, 0, 16), a, a), add_products(load(squares, 16, 16), b, b)
                store(squares, 0, u)
                store(squares, 16, v)
                store(seen, 0, load(seen, 0, 16) | u)
                store(seen, 16, load(seen, 16, 16) | v)
        for i in range(few):
            exponents[at + i] = (bits_of(powers[i]) >> int64(52)) - int64(1023)
        for i in range(ROWS):
            # a partial sum that was below 0 has left int32: of records that another thread changes meanwhile
            powers[i] = limit_of(np.float64(squares[i]) if seen[i] >= 0 else 0.0, how.most)
        for i in range(few):
            limits[at + i] = int64(powers[i])
    return largest


@jit(inline=True)
def round_block(
    X: Any, p: int, d: int, scales: F64Array, halves: U16Array, dither: I64Array, c: int, rows: I32Array
) -> None:
    """Up to 16 columns, c and after, of the 32 records that have column c at place p and after it."""
    for k in range(ROWS // 2):
        q, r, first, second = p + k * d, p + (k + 16) * d, int64(halves[k]), int64(halves[k + 16])
        prefetch_far(X, q + AHEAD * d)
        prefetch_far(X, r + AHEAD * d)
        a = round_eight(X, q - c, scales[k], first, dither, c)
        b = round_eight(X, r - c, scales[k + 16], second, dither, c)
        store(rows, 16 * k, pair_middles(a, b))
        if c + LANES < d:
            prefetch_far(X, q + AHEAD * d + LANES)
            prefetch_far(X, r + AHEAD * d + LANES)
            a = round_eight(X, q - c, scales[k], first, dither, c + LANES)
            b = round_eight(X, r - c, scales[k + 16], second, dither, c + LANES)
            store(rows, 16 * k + LANES, pair_middles(a, b))


@jit(inline=True)
def limit_of(square: float, most: int) -> float:
    """floor(most / N) for the least integer N whose square is not below; at most 2^15 - 1, and 0 for a square of 0.

    Root and quotient are rounded once, and exact integers are too far from what is none: points.md, lemma 1.
    """
    quotient = np.floor(np.float64(most) / np.ceil(np.sqrt(square)))
    quotient = quotient if quotient < 32767.0 else 32767.0
    return quotient if square > 0.0 else 0.0


@jit(inline=True)
def squares_into(X: Any, p: int, d: int, mask: F64Array, out: F64Array, i: int) -> None:
    """The squared norms of 8 points from place p on; up to 7 entries beyond the last are read, and do not count."""
    whole = d // LANES * LANES
    a = splat(0.0, 8)
    b, c, e, f, g, h, k = a, a, a, a, a, a, a
    for q in range(p, p + whole, LANES):
        a, b = add_square(X, q, a), add_square(X, q + d, b)
        c, e = add_square(X, q + 2 * d, c), add_square(X, q + 3 * d, e)
        f, g = add_square(X, q + 4 * d, f), add_square(X, q + 5 * d, g)
        h, k = add_square(X, q + 6 * d, h), add_square(X, q + 7 * d, k)
    if whole < d:
        ours, q = load(mask, 0, 8), p + whole
        a, b = add_masked_square(X, q, ours, a), add_masked_square(X, q + d, ours, b)
        c, e = add_masked_square(X, q + 2 * d, ours, c), add_masked_square(X, q + 3 * d, ours, e)
        f, g = add_masked_square(X, q + 4 * d, ours, f), add_masked_square(X, q + 5 * d, ours, g)
        h, k = add_masked_square(X, q + 6 * d, ours, h), add_masked_square(X, q + 7 * d, ours, k)
    store(out, i, sum_each(a, b, c, e, f, g, h, k))


@jit(inline=True)
def add_square(X: Any, p: int, total: Any) -> Any:
    """The squares of 8 entries, added."""
    v = load_wide(X, p, 8)
    return fma(v, v, total)


@jit(inline=True)
def add_masked_square(X: Any, p: int, mask: Any, total: Any) -> Any:
    """Those of which the mask has ones."""
    v = load_wide(X, p, 8) * mask
    return fma(v, v, total)
