"""Points as integers of 16 bits are made here, and summed in points.py: fastdp/optimizing/points.md, lemmas 1 and 3.

A record is brought to its own power of two, rounded up or down at random, and turned into its tile, 16 records at a
time; its norm is that of the integers, rounded up.
"""

from typing import Any, NamedTuple

import numpy as np

from .compile import jit
from .lanes import (
    F64Array,
    I16Array,
    I32Array,
    U32Array,
    bits_of,
    fma,
    int64,
    lent,
    load,
    load_wide,
    row_at,
    splat,
    stack,
    store,
    sum_each,
    truncate,
)
from .layout import LANES, SCHEDULE
from .pair_lanes import floor_within, narrow, transpose_into
from .points import (
    DRAWN,
    EXPONENT,
    LIMIT,
    POINT_STREAM,
    RUN,
    TILE,
    Words,
    exponent_above,
    fill_words,
    whole_power,
)
from .words import expanded

ROWS, ROW_LANES = 16, 16 * LANES  # records that are rounded together, and 8 parts of the square of each


@jit
def round_points(
    X: Any, d: int, bound: float, least: float, most: int, key: U32Array, first: int, phases: F64Array, out: I16Array,
    marks: I16Array,
) -> None:  # fmt: skip
    """Round points to integers of 16 bits, at random up or down, a record by its own power of two.

    out[i, j] = floor(x_ij 2^e_i + frac(u_i + phases[j])),   u_i in (0, 1) from word first + i of stream 0

    Shapes    X float64 or float32[n d]; out int16, whole tiles of two columns each; marks int16[2, N], N the records of
              these tiles: e_i, and floor(most / N_i) for N_i = ceil ||out_i||, at most 2^15 - 1 (0 where N_i is);
              phases float64[D] in [0, 1), D the least multiple of 32 from d on
    Cost      two reads of X, the second from the L1 cache: 20 ms for 1e6 x 20 that lie in a cache
    Source    fastdp/optimizing/points.md, lemmas 1 and 3
    Requires  norms below 2^511; those beyond `bound` are brought back to it; least as norms_into takes it
    Used by   fastdp/optimizing/grid_points.py
    Oracle    tests/oracles/points.py::rounded_point
    """
    wide, n, few = phases.size, X.size // d, X.size // d % 16
    sure = n - few  # points that 7 more entries follow
    if few * d < LANES - 1 and sure:
        sure -= 16
    mask, last = np.zeros(LANES), np.zeros(32 * d + LANES, X.dtype)
    mask[: d % LANES] = 1.0
    last[: (n - sure) * d] = X[sure * d :]
    how = Rounding(bound, least, most, mask, phases)
    work = RoundedRows(np.zeros(ROWS * wide, np.int16), np.empty(256, np.int32))
    source = expanded(key, stack(np.uint32, SCHEDULE))
    words = Words(source, POINT_STREAM, first)
    round_whole(X, 0, sure, d, how, work, words, out, marks)
    round_whole(last, sure, n - few - sure, d, how, work, words, out, marks)
    round_whole(last[(n - few - sure) * d :], n - few, few, d, how, work, words, out, marks)


class Rounding(NamedTuple):
    """How points are rounded: see `round_points`; `mask` has ones for the last columns, beyond a multiple of 8."""

    bound: float
    least: float
    most: int
    mask: F64Array
    phases: F64Array


class Move(NamedTuple):
    """What a point is multiplied by, to the bound and to its grid, and what is added before it is rounded down."""

    shrink: float
    power: float
    shift: float


class RoundedRows(NamedTuple):
    """Work space: 16 rounded points, and pairs of them."""

    rows: I16Array
    block: I32Array


@jit
def round_whole(
    X: Any, start: int, n: int, d: int, how: Rounding, work: RoundedRows, words: Words, out: I16Array, marks: I16Array
) -> None:
    """The n points of X, which are those from number `start` on, and points of 0 up to a multiple of 16.

    What is decided of each record alone is computed of 16 side by side: one by one, as a chain of roots and quotients,
    it took three times as long.

    Like      round_points
    Shapes    X with n points and 7 more entries; with 16 if n is less, which is then all there is
    Cost      as there
    Used by   round_points
    Oracle    tests/oracles/points.py::rounded_point
    """
    X, mask, phases, rows, block, out_pairs = (
        lent(X), lent(how.mask), lent(how.phases), lent(work.rows), lent(work.block), lent(out.view(np.int32))
    )  # fmt: skip
    row_pairs, exponents, limits = rows.view(np.int32), row_at(marks, EXPONENT), row_at(marks, LIMIT)
    drawn = stack(words.key.dtype, DRAWN)
    halves, skip, pairs, wide = drawn.view(np.uint16), int64(words.first % RUN), (d + 1) // 2, phases.size
    squares, shrinks, powers = stack(mask.dtype, ROWS), stack(mask.dtype, ROWS), stack(mask.dtype, ROWS)
    lanes, moves, rounded = stack(mask.dtype, ROW_LANES), stack(mask.dtype, ROWS), stack(mask.dtype, TILE)
    rounded[:] = 0.0
    fill_words(words.key, words.stream, words.first // RUN + start // RUN, skip, drawn)
    for done in range(0, n, ROWS):
        at, p, few = start + done, done * d, min(ROWS, n - done)
        if at % RUN == 0 and done:
            fill_words(words.key, words.stream, words.first // RUN + at // RUN, skip, drawn)
        squares_into(X, p, d, mask, squares, 0)
        squares_into(X, p + LANES * d, d, mask, squares, LANES)
        place = skip + at % RUN
        some = halves[place : place + ROWS]
        for i in range(ROWS):
            norm = np.sqrt(squares[i] + how.least)
            shrinks[i] = how.bound / norm if norm > how.bound else 1.0
            powers[i] = whole_power(int64(15) - exponent_above(norm * shrinks[i]))
            moves[i] = (np.float64(some[i]) + 0.5) * 2.0**-16
        for i in range(ROWS):
            by = Move(shrinks[i], powers[i], moves[i])
            round_row(X, p + i * d, d, mask, by, phases, rows, i * wide, lanes, LANES * i)
        for i in range(few):
            exponents[at + i] = (bits_of(powers[i]) >> int64(52)) - int64(1023)
        add_lanes(lanes, 0, rounded, at % TILE)
        add_lanes(lanes, LANES * LANES, rounded, at % TILE + LANES)
        if (at + ROWS) % TILE == 0 or done + ROWS >= n:
            for i in range(TILE):
                rounded[i] = limit_of(rounded[i], how.most)
            for i in range(max(at // TILE * TILE, start), at + few):
                limits[i] = int64(rounded[i % TILE])
        base = at // TILE * pairs * TILE + at % TILE
        for j in range(0, pairs, 16):
            transpose_into(row_pairs, j, wide // 2, block)
            for k in range(min(16, pairs - j)):
                store(out_pairs, base + (j + k) * TILE, load(block, 16 * k, 16))


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


@jit(inline=True)
def add_lanes(lanes: F64Array, p: int, out: F64Array, i: int) -> None:
    """out[i + k] is the sum of the 8 entries from place p + 8 k on, integers below 2^53."""
    a, b, c, e = load(lanes, p, 8), load(lanes, p + 8, 8), load(lanes, p + 16, 8), load(lanes, p + 24, 8)
    f, g, h, k = load(lanes, p + 32, 8), load(lanes, p + 40, 8), load(lanes, p + 48, 8), load(lanes, p + 56, 8)
    store(out, i, sum_each(a, b, c, e, f, g, h, k))


@jit(inline=True)
def round_row(
    X: Any, p: int, d: int, mask: F64Array, by: Move, phases: F64Array, out: I16Array, q: int, squares: F64Array, r: int
) -> None:  # fmt: skip
    """Round the point at place p of X to place q of out; at place r of `squares`, 8 parts of its squared norm."""
    whole = d // LANES * LANES
    first, second, shift, square = splat(by.shrink, 8), splat(by.power, 8), splat(by.shift, 8), splat(0.0, 8)
    for c in range(0, whole, LANES):
        t = load(phases, c, 8) + shift
        v = floor_within(load_wide(X, p + c, 8) * first * second + (t - truncate(t)))
        square = fma(v, v, square)
        store(out, q + c, narrow(v))
    if whole < d:
        t = load(phases, whole, 8) + shift
        ours = load(mask, 0, 8)
        v = floor_within(load_wide(X, p + whole, 8) * ours * first * second + (t - truncate(t)) * ours)
        square = fma(v, v, square)
        store(out, q + whole, narrow(v))
    store(squares, r, square)
