"""Points as integers of 16 bits, and the sum of their clipped gradients: fastdp/optimizing/points.md.

A record's point x is kept as integers x_q, x nearly x_q 2^-e with an exponent e of its own, and an integer norm
N >= ||x_q||. A gradient is then c x_q with an integer c, |c| <= floor(K / N): whatever the score was, no gradient is
longer than K. Scores are exact integers, and so are sums, so neither depends on lanes, threads or machines.

Layout. Records lie in tiles of 128, two columns side by side: entry (j // 2) 256 + 2 i + j % 2 of a tile is coordinate
j of its record i, and a 32-bit word is a pair. Products of pairs add up the scores of 16 records in 16 lanes; for the
sums, pairs of one record and two columns are turned into pairs of one column and two records. What fills the last tile
is 0 and has a limit of 0.

Coordinates and factors are rounded up or down at random, by words of the release's own: so errors have mean zero and
do not add up, and 16 bits are enough.
"""

from typing import Any, NamedTuple

import numpy as np

from .arrays import copy_into, seen_as
from .compile import jit
from .descent import region_of, take_step
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
    prefetch_far,
    row_at,
    splat,
    stack,
    store,
    uint64,
)
from .layout import GROUP_HALVES, SCHEDULE
from .losses import fill_derivatives
from .pair_lanes import (
    add_products,
    first_of_pairs,
    fold,
    load_pairs,
    pair_middles,
    second_of_pairs,
    splat_pair,
)
from .words import expanded, fill_groups_into

TILE = 128  # records
ENTRIES = 2 * TILE  # of a tile and two columns
# tiles to prefetch, while factors and sums keep memory idle: 2.2 ms instead of 3.1 for 1e6 x 20; up to so many pairs of
# columns, beyond which a tile is too long for the second-level cache
AHEAD, MOST_AHEAD = 2, 64
RUN = 4 * TILE  # records whose words are one group of ChaCha20, and after which sums leave int32
DRAWN = 2 * GROUP_HALVES  # 32-bit words of two groups
LARGEST = 32766  # a norm that is rounded is at most this, and so are coordinates after rounding, but for one
MOST = 2**26  # K is less: 32 products of a run in one int32 lane then keep below 2^31
LEAST_EXPONENT = -1000  # of a norm
FRACTION = 2.0**16  # of a unit is what coordinates and factors are known to before they are rounded
MIDDLE = 1.5 * 2.0**52  # to which they are added: the last 32 bits of the sum are theirs, in two's complement
POINT_STREAM = 0  # of the words for points; step t of a descent has stream t + 1

EXPONENT, LIMIT = range(2)  # the rows of `marks`
KIND, PARAMETER, UNIT = range(3)  # the entries of what Python passes as `rule`


class IntegerPoints(NamedTuple):
    """Points and marks, as `round_points` makes them, and labels."""

    X: I16Array
    labels: F64Array
    marks: I16Array


class Weights(NamedTuple):
    """w as a table of `spread_weights`, in units of 2^-exponent, with so many low bits."""

    table: I32Array
    exponent: int
    shift: int


class Words(NamedTuple):
    """Random words: those of record i begin at `first + i`."""

    key: U32Array
    stream: int
    first: int


class Space(NamedTuple):
    """Work space: the factors of a tile, then sums of a run; and sums of all."""

    work: I32Array
    sums: I64Array


@jit(inline=True)
def space_for(pairs: int) -> Space:
    """Work space for so many pairs of columns."""
    return Space(np.empty(TILE // 2 + 32 * pairs, np.int32), np.empty(16 * pairs, np.int64))


@jit(inline=True)
def whole_power(e: int) -> float:
    """2^e for |e| <= 1022."""
    return float_of((int64(1023) + int64(e)) << int64(52))


@jit(inline=True)
def exponent_above(x: float) -> int:
    """The least k with x <= LARGEST 2^(k - 15), for x > 0; at least LEAST_EXPONENT."""
    k = ((bits_of(x) >> int64(52)) & int64(0x7FF)) - int64(1022)
    k = max(k, int64(LEAST_EXPONENT))
    return k + 1 if x > LARGEST * whole_power(k - 15) else k


@jit(inline=True)
def fill_words(key: U32Array, stream: int, group: int, skip: int, words: U32Array) -> None:
    """The words of a run of records: of one group, or of two if the run begins within one."""
    fill_groups_into(key, uint64(stream), uint64(group), words if skip else words[:GROUP_HALVES])


# --- scores


@jit(inline=True)
def spread_weights(w: F64Array, d: int, shift: int, table: I32Array) -> int:
    """w in units of 2^-a as integers, of which the table has the high parts and the `shift` low bits; returns a.

    table[2 j] is the pair of high parts of columns 2 j and 2 j + 1, table[2 j + 1] that of their low parts.
    """
    square = 0.0
    for j in range(d):
        square += w[j] * w[j]
    norm = np.sqrt(square)
    a = shift + 14 - (exponent_above(norm) if norm > 0.0 else 0)
    power, halves = whole_power(a), seen_as(table, np.int16)
    for j in range(d):
        whole = int64(np.rint(w[j] * power))
        high = (whole + (int64(1) << int64(shift - 1))) >> int64(shift)
        low = whole - (high << int64(shift))
        q = j // 2 * 4 + j % 2
        halves[q] = high
        halves[q + 2] = low
    return a


@jit(inline=True)
def scores_into(X: I16Array, base: int, table: I32Array, high: I32Array, low: I32Array) -> None:
    """The high and low parts of <x_q, w> of a tile.

    A tile is read from its first byte to its last, all records at once: of 64 at a time it took 1.3 times as long with
    AVX-512, and no less with AVX2. What is prefetched here gains nothing, as this loop waits for memory alone.
    """
    a0 = splat(int32(0), 16)
    a1, a2, a3, a4, a5, a6, a7 = a0, a0, a0, a0, a0, a0, a0
    b0, b1, b2, b3, b4, b5, b6, b7 = a0, a0, a0, a0, a0, a0, a0, a0
    q = base
    for p in range(0, table.size, 2):
        u, v = splat_pair(table, p, 16), splat_pair(table, p + 1, 16)
        x = load_pairs(X, q, 16)
        a0, b0 = add_products(a0, x, u), add_products(b0, x, v)
        x = load_pairs(X, q + 32, 16)
        a1, b1 = add_products(a1, x, u), add_products(b1, x, v)
        x = load_pairs(X, q + 64, 16)
        a2, b2 = add_products(a2, x, u), add_products(b2, x, v)
        x = load_pairs(X, q + 96, 16)
        a3, b3 = add_products(a3, x, u), add_products(b3, x, v)
        x = load_pairs(X, q + 128, 16)
        a4, b4 = add_products(a4, x, u), add_products(b4, x, v)
        x = load_pairs(X, q + 160, 16)
        a5, b5 = add_products(a5, x, u), add_products(b5, x, v)
        x = load_pairs(X, q + 192, 16)
        a6, b6 = add_products(a6, x, u), add_products(b6, x, v)
        x = load_pairs(X, q + 224, 16)
        a7, b7 = add_products(a7, x, u), add_products(b7, x, v)
        q += ENTRIES
    store(high, 0, a0)
    store(low, 0, b0)
    store(high, 16, a1)
    store(low, 16, b1)
    store(high, 32, a2)
    store(low, 32, b2)
    store(high, 48, a3)
    store(low, 48, b3)
    store(high, 64, a4)
    store(low, 64, b4)
    store(high, 80, a5)
    store(low, 80, b5)
    store(high, 96, a6)
    store(low, 96, b6)
    store(high, 112, a7)
    store(low, 112, b7)


# --- sums


@jit(inline=True)
def round_factors(
    slopes: F64Array, powers: F64Array, unit: float, halves: U16Array, limits: I16Array, rounded: I64Array,
    work: I32Array,
) -> None:  # fmt: skip
    """Factors in units of the grid, within their limits, up or down by their words.

    Those of records i and i + 16 are put side by side, for 32 records at a time, at the start of the work space.
    """
    middle = bits_of(MIDDLE)
    for i in range(TILE):
        c, limit = slopes[i] * powers[i] * unit, np.float64(limits[i])
        c = c if c == c else 0.0  # in place of a NaN
        c = c if c < limit else limit
        c = c if c > -limit else -limit
        rounded[i] = bits_of(c * FRACTION + float_of(middle ^ int64(halves[i])))
    for k in range(TILE // 32):
        store(work, 16 * k, pair_middles(load(rounded, 32 * k, 16), load(rounded, 32 * k + 16, 16)))


@jit(inline=True)
def add_tile(X: I16Array, base: int, pairs: int, work: I32Array) -> None:
    """Add c_i x_q of a tile to the sums, 16 lanes for each column, which the work space has after the factors.

    Factors are read anew for each column: LLVM would keep them in registers in parts, and find no vpmaddwd.
    """
    for j in range(pairs):
        q, s = base + j * ENTRIES, TILE // 2 + 32 * j
        if pairs <= MOST_AHEAD:
            for ahead in range(q + AHEAD * pairs * ENTRIES, q + (AHEAD * pairs + 1) * ENTRIES, 32):
                prefetch_far(X, ahead)
        a, b = load(work, s, 16), load(work, s + 16, 16)
        x, y, c = load_pairs(X, q, 16), load_pairs(X, q + 32, 16), load_pairs(work, 0, 16)
        a, b = add_products(a, first_of_pairs(x, y), c), add_products(b, second_of_pairs(x, y), c)
        x, y, c = load_pairs(X, q + 64, 16), load_pairs(X, q + 96, 16), load_pairs(work, 16, 16)
        a, b = add_products(a, first_of_pairs(x, y), c), add_products(b, second_of_pairs(x, y), c)
        x, y, c = load_pairs(X, q + 128, 16), load_pairs(X, q + 160, 16), load_pairs(work, 32, 16)
        a, b = add_products(a, first_of_pairs(x, y), c), add_products(b, second_of_pairs(x, y), c)
        x, y, c = load_pairs(X, q + 192, 16), load_pairs(X, q + 224, 16), load_pairs(work, 48, 16)
        a, b = add_products(a, first_of_pairs(x, y), c), add_products(b, second_of_pairs(x, y), c)
        store(work, s, a)
        store(work, s + 16, b)


@jit(inline=True)
def empty_sums(work: I32Array, columns: int, sums: I64Array) -> None:
    """Move the sums of a run from lanes of int32 to lanes of int64."""
    for j in range(columns):
        store(sums, 8 * j, load(sums, 8 * j, 8) + fold(load(work, TILE // 2 + 16 * j, 16)))
    work[TILE // 2 :] = 0


@jit(inline=True)
def add_gradients(
    points: IntegerPoints, at: Weights, rule: F64Array, address: int, words: Words, space: Space, out: I64Array
) -> None:
    """`sum_points` with its arguments in groups."""
    X, labels, table, work = lent(points.X), lent(points.labels), lent(at.table), lent(space.work)
    sums, key, total = lent(space.sums), lent(words.key), lent(out)
    exponents_of, limits_of = row_at(points.marks, EXPONENT), row_at(points.marks, LIMIT)
    n, pairs, kind = labels.size, table.size // 2, int64(rule[KIND])
    scores, slopes, filled = stack(rule.dtype, TILE), stack(rule.dtype, TILE), stack(rule.dtype, TILE)
    powers, unit = stack(rule.dtype, TILE), rule[UNIT]
    high, low, rounded = stack(work.dtype, TILE), stack(work.dtype, TILE), stack(sums.dtype, TILE)
    drawn = stack(key.dtype, DRAWN)
    halves = seen_as(drawn, np.uint16)
    scale, middle, skip = whole_power(-at.exponent), whole_power(at.shift), int64(words.first % RUN)
    work[:] = 0
    sums[:] = 0
    for start in range(0, n, TILE):
        if start % RUN == 0:
            fill_words(key, words.stream, words.first // RUN + start // RUN, skip, drawn)
            if start:
                empty_sums(work, 2 * pairs, sums)
        base = start // TILE * pairs * ENTRIES
        if pairs <= MOST_AHEAD:
            for ahead in range(start + AHEAD * TILE, start + (AHEAD + 1) * TILE, 8):
                prefetch_far(labels, ahead)
            for ahead in range(start + AHEAD * TILE, start + (AHEAD + 1) * TILE, 32):
                prefetch_far(exponents_of, ahead)
                prefetch_far(limits_of, ahead)
        scores_into(X, base, table, high, low)
        exponents, limits = exponents_of[start : start + TILE], limits_of[start : start + TILE]
        for i in range(TILE):
            powers[i] = whole_power(-exponents[i])
            scores[i] = fma(np.float64(high[i]), middle, np.float64(low[i])) * powers[i] * scale
        if n - start >= TILE:
            fill_derivatives(kind, rule[PARAMETER], address, scores, labels[start : start + TILE], slopes)
        else:
            filled[:] = 0.0
            copy_into(labels[start:], filled[: n - start])
            fill_derivatives(kind, rule[PARAMETER], address, scores, filled, slopes)
        place = skip + start % RUN
        some = halves[place : place + TILE]
        round_factors(slopes, powers, unit, some, limits, rounded, work)
        add_tile(X, base, pairs, work)
    empty_sums(work, 2 * pairs, sums)
    for j in range(total.size):
        for i in range(8):
            total[j] += sums[8 * j + i]


@jit(inline=True)
def low_bits(d: int) -> int:
    """How many bits of w are its low part, so that scores of them fit into int32: points.md, lemma 2."""
    bits = 15
    while bits > 1 and d > int64(4) << int64(2 * (15 - bits)):
        bits -= 1
    return bits


@jit
def sum_points(
    X: I16Array, labels: F64Array, marks: I16Array, w: F64Array, rule: F64Array, address: int, key: U32Array,
    stream: int, first: int, out: I64Array,
) -> None:  # fmt: skip
    """Add the clipped gradients at w of margin losses, points being integers.

    out[j] += sum over records of c_i x_ij,   c_i = floor(c + u_i), c = phi'(<x_i, w> 2^-e_i, y_i) 2^-e_i unit, cut to
    the record's limit and rounded to 2^-16; 2^16 u_i the 16-bit word first + i of the stream

    Shapes    X and marks as round_points makes them; labels float64[n], w float64[d]; rule float64[3]: number and
              parameter of the loss (losses.py) and unit; address of the derivative of CUSTOM, else 0; out int64[d]
    Cost      one read of X: 2.5 ms for 1e6 x 20 with AVX-512, 4 with AVX2
    Source    fastdp/optimizing/points.md, lemmas 1, 2 and 4
    Requires  limits of K < 2^26; |w_j| < 2^500
    Used by   fastdp/optimizing/grid_points.py
    Oracle    tests/oracles/points.py::summed_gradients
    """
    d = w.size
    pairs, shift = (d + 1) // 2, low_bits(d)
    table, space = np.zeros(2 * pairs, np.int32), space_for(pairs)
    at = Weights(table, spread_weights(w, d, shift, table), shift)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    add_gradients(IntegerPoints(X, labels, marks), at, rule, address, Words(source, stream, first), space, out)


@jit
def descend_points(
    X: I16Array, labels: F64Array, marks: I16Array, rule: F64Array, address: int, key: U32Array, noise: I64Array,
    steps: F64Array, region: F64Array, path: Any,
) -> None:  # fmt: skip
    """A whole descent in one compiled loop: sum_points, on stream t + 1 in step t, and step_once, by turns.

    Shapes    X, labels, marks, rule, address as sum_points takes them; noise int64[T, d]; steps float64[T + 2]: the
              `mean` of step_once, and a rate for each step; region as there; path float64[T + 1, d], whose first row
              is the start
    Cost      T times that of sum_points and step_once
    Requires  all records of the data, the first of which has number 0; and what sum_points does
    Used by   fastdp/optimizing/grid_points.py
    Oracle    sum_points and step_once, bit for bit
    """
    d = path.shape[1]
    pairs, shift = (d + 1) // 2, low_bits(d)
    points, table, space = IntegerPoints(X, labels, marks), np.zeros(2 * pairs, np.int32), space_for(pairs)
    w, moved, out = path[0].copy(), np.empty(d), np.empty(d, np.int64)
    mean, rates, over = steps[:2], steps[2:], region_of(region, d)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    for t in range(rates.size):
        copy_into(w, path[t])
        out[:] = 0
        at = Weights(table, spread_weights(w, d, shift, table), shift)
        add_gradients(points, at, rule, address, Words(source, t + 1, 0), space, out)
        take_step(out, noise[t], mean, rates[t], over, w, moved)
    copy_into(w, path[rates.size])
