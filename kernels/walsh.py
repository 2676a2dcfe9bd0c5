"""Walsh-Hadamard transforms: parities of all cells, or only those of few attributes, and back from these to cells.

The parity of a set T of bits is the sum over all cells c of (-1)^|T and c| x[c]; it is found at place T. The transform
is its own inverse but for the factor 2^d. All marginal tables of a binary domain follow from the parities of their
attributes, so where only sets of at most `weight` bits are wanted, whatever leads to others is left out: for weight 3
and 2^20 cells that is 9 additions a cell instead of 20, nearly all in the cache, and the array is read once.

Everything runs on rows of 8 cells, one lane value each: bits 0 to 2 are within rows, and come last, when few rows are
left. Integers wrap around, so integer results are right whenever they fit, whatever came in between. Floats are added
in an order that is fixed by the sizes: the same bits on every machine.
"""

from typing import Any

import numpy as np

from .arrays import seen_as
from .compile import jit
from .int_or_float import part
from .lanes import F64Array, I64Array, load, mix, splat, stack, store
from .layout import LANES

LANE_BITS = 3
INNER_BITS = 9  # rows that stay in the L1 cache: 32 KiB
BLOCK_BITS = 15  # cells that stay in the L2 cache: 256 KiB
ROW_BITS = (
    12  # rows of as much; with 9 the parities of 2^24 cells take 9.3 ms and those of blocks weigh 4 times as much
)
STRIP = 64  # columns of a strip: 512 bytes in a row, for the sake of the prefetcher
STRIP_BITS = BLOCK_BITS - 6

_BLOCK_CELLS = 1 << BLOCK_BITS


@jit(inline=True)
def count_ones(n: int) -> int:
    """The number of bits that are 1; one instruction where there is one."""
    ones = 0
    while n:
        n &= n - 1
        ones += 1
    return ones


@jit(inline=True)
def mix_four(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The parities of four rows."""
    a, b, c, d = a + c, b + d, a - c, b - d
    return a + b, a - b, c + d, c - d


@jit(literals=True)
def mix_level(
    x: Any, at: int, step: int, out: Any, to: int, hop: int, columns: int, done: int, bits: int, weight: int
) -> None:
    """Mix the next three of the bits of 2^bits rows, or what is left of them, when the first `done` have been mixed.

    Shapes    row r is x[at + r step:][:columns], goes to out[to + r hop:][:columns]; may be in place
    Cost      one read and one write of the rows, 24 additions for 8 of them
    Requires  columns a multiple of 8
    Returns   nothing; of sets with more than `weight` of the first `done` bits, neither reads nor writes rows
    Used by   walsh
    Oracle    scipy.linalg.hadamard
    """
    left = bits - done
    width = min(3, left)
    apart = 1 << (left - width)
    read, write = apart * step, apart * hop
    for node in range(1 << done):
        if count_ones(node) > weight:
            continue
        for row in range(node << left, (node << left) + apart):
            for i in range(at + row * step, at + row * step + columns, LANES):
                j = to + row * hop + (i - at - row * step)
                if width == 3:
                    a, b, c, d = (
                        load(x, i, LANES),
                        load(x, i + read, LANES),
                        load(x, i + 2 * read, LANES),
                        load(x, i + 3 * read, LANES),
                    )
                    e, f, g, h = (
                        load(x, i + 4 * read, LANES),
                        load(x, i + 5 * read, LANES),
                        load(x, i + 6 * read, LANES),
                        load(x, i + 7 * read, LANES),
                    )
                    a, b, c, d, e, f, g, h = a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h
                    a, b, c, d = mix_four(a, b, c, d)
                    e, f, g, h = mix_four(e, f, g, h)
                    store(out, j, a)
                    store(out, j + write, b)
                    store(out, j + 2 * write, c)
                    store(out, j + 3 * write, d)
                    store(out, j + 4 * write, e)
                    store(out, j + 5 * write, f)
                    store(out, j + 6 * write, g)
                    store(out, j + 7 * write, h)
                elif width == 2:
                    a, b, c, d = (
                        load(x, i, LANES),
                        load(x, i + read, LANES),
                        load(x, i + 2 * read, LANES),
                        load(x, i + 3 * read, LANES),
                    )
                    a, b, c, d = mix_four(a, b, c, d)
                    store(out, j, a)
                    store(out, j + write, b)
                    store(out, j + 2 * write, c)
                    store(out, j + 3 * write, d)
                else:
                    a, b = load(x, i, LANES), load(x, i + read, LANES)
                    store(out, j, a + b)
                    store(out, j + write, a - b)


@jit(inline=True)
def mix_lanes(x: Any, at: int) -> None:
    """Mix the 8 cells of a row among themselves."""
    row = load(x, at, LANES)
    store(x, at, mix(mix(mix(row, 4), 2), 1))


@jit
def gather_parities_into(x: Any, bits: int, weight: int, rows: I64Array, first: int, stop: int, out: Any) -> None:
    """The parities over the bits above the lowest 3 and below the block number, of blocks `first` to `stop`.

    out[b, i, j] = the sum over rows r of block b of (-1)^|rows[i] and r| x[b, r, j]

    Shapes    x int64 or float64[blocks, 2^bits, 8], rows int64[q] the sets of at most `weight` bits, out like
              x[blocks, q, 8]; all of them flat
    Cost      one read of x
    Requires  1 <= bits <= ROW_BITS
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    buffer = seen_as(stack(np.int64, _BLOCK_CELLS), out.dtype)
    for block in range(first, stop):
        mix_level(x, (block * LANES) << bits, LANES, buffer, 0, LANES, LANES, 0, bits, weight)
        for done in range(3, bits, 3):
            mix_level(buffer, 0, LANES, buffer, 0, LANES, LANES, done, bits, weight)
        base = block * rows.size * LANES
        for i in range(rows.size):
            store(out, base + i * LANES, load(buffer, rows[i] * LANES, LANES))


@jit
def finish_parities(parities: Any, bits: int, weight: int, rows: I64Array, first: int, stop: int) -> None:
    """From the parities of each block those of the array: mix the 2^bits blocks, and the cells of rows, in place.

    Shapes    parities int64 or float64[2^bits, q, 8], flat; rows int64[q], of which `first` to `stop` are mixed
    Cost      one pass in the L2 cache
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    stride = rows.size * LANES
    for i in range(first, stop):
        more = weight - count_ones(rows[i])
        for done in range(0, bits, 3):
            mix_level(parities, i * LANES, stride, parities, i * LANES, stride, LANES, done, bits, more)
        for block in range(1 << bits):
            if count_ones(block) <= more:
                mix_lanes(parities, block * stride + i * LANES)


@jit
def begin_spreading(parities: F64Array, bits: int, weight: int, rows: I64Array, first: int, stop: int) -> None:
    """`finish_parities` the other way round: from parities of the array to those of each block.

    Shapes    parities float64[2^bits, q, 8], 0 where there is none; rows int64[q], of which `first` to `stop` are mixed
    Cost      one read and one write of the parities
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    stride = rows.size * LANES
    levels = (bits + 2) // 3
    for i in range(first, stop):
        more = weight - count_ones(rows[i])
        for block in range(1 << bits):
            if count_ones(block) <= more:
                mix_lanes(parities, block * stride + i * LANES)
        for level in range(levels):
            done = 3 * (levels - 1 - level)
            mix_level(parities, i * LANES, stride, parities, i * LANES, stride, LANES, done, bits, more)


@jit
def spread_parities_into(
    parities: Any, bits: int, weight: int, rows: I64Array, first: int, stop: int, out: Any
) -> None:
    """`gather_parities_into` the other way round: out[b, r, j] = sum over i of (-1)^|rows[i] and r| parities[b, i, j].

    Shapes    parities float64[blocks, q, 8], out float64[blocks, 2^bits, 8]
    Cost      one write of out
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    buffer = stack(np.float64, _BLOCK_CELLS)
    levels = (bits + 2) // 3
    zero = splat(0.0, LANES)
    for block in range(first, stop):
        for row in range(1 << bits):
            store(buffer, row * LANES, zero)
        base = block * rows.size * LANES
        for i in range(rows.size):
            store(buffer, rows[i] * LANES, load(parities, base + i * LANES, LANES))
        for level in range(levels - 1):
            mix_level(buffer, 0, LANES, buffer, 0, LANES, LANES, 3 * (levels - 1 - level), bits, weight)
        mix_level(buffer, 0, LANES, out, (block * LANES) << bits, LANES, LANES, 0, bits, weight)


# --- tables


@jit(inline=True)
def place_of(cells: int, bits: int, places: I64Array, q: int) -> int:
    """Where the parity of the bits of `cells` is, in what `finish_parities` made."""
    block = cells >> (bits + LANE_BITS)
    row = (cells >> LANE_BITS) & ((1 << bits) - 1)
    return (block * q + places[row]) * LANES + (cells & (LANES - 1))


@jit
def mix_table(table: Any) -> None:
    """Transform a table of 2^k cells in place.

    Shapes    table int64 or float64[2^k], read and written
    Cost      k additions a cell
    Used by   walsh
    Oracle    scipy.linalg.hadamard
    """
    half = 1
    while half < table.size:
        for start in range(0, table.size, 2 * half):
            for i in range(start, start + half):
                a, b = table[i], table[i + half]
                table[i] = a + b
                table[i + half] = a - b
        half *= 2


@jit
def fill_sets_into(attributes: I64Array, d: int, out: I64Array) -> None:
    """The set of cell bits for each cell of a table: attribute j of d is bit d - 1 - j, the last varies fastest.

    Shapes    attributes int64[k], out int64, whose first 2^k are written
    Cost      O(2^k)
    Requires  attributes below d
    Used by   walsh
    Oracle    tests/kernels/test_walsh.py
    """
    out[0] = 0
    n = 1
    for i in range(attributes.size - 1, -1, -1):
        bit = 1 << (d - 1 - attributes[i])
        for v in range(n):
            out[n + v] = out[v] | bit
        n *= 2


@jit
def tables_from_parities_into(
    parities: Any,
    d: int,
    bits: int,
    places: I64Array,
    q: int,
    attributes: I64Array,
    starts: I64Array,
    sets: I64Array,
    out: Any,
) -> None:
    """Every marginal table from the parities of its attributes.

    table[v] = 2^-k sum over sets T of its k attributes of (-1)^|T and v| parity(T)

    Shapes    parities int64 or float64[2^(d - 3 - bits), q, 8]; places int64[2^bits], the number of each row in `rows`;
              attributes int64, those of all tables one after the other; starts int64[tables + 1], where each begins
              there; sets int64, as large as the largest table; out like parities, all tables one after the other
    Cost      k + 2 steps for each cell of a table
    Requires  for integers: values below 2^(63 - k) in size; the division is exact
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy sums over axes
    """
    at = 0
    for t in range(starts.size - 1):
        own = attributes[starts[t] : starts[t + 1]]
        fill_sets_into(own, d, sets)
        table = out[at : at + (1 << own.size)]
        for v in range(table.size):
            table[v] = parities[place_of(sets[v], bits, places, q)]
        mix_table(table)
        for v in range(table.size):
            table[v] = part(table[v], own.size)
        at += table.size


@jit
def add_parities_of_tables(
    tables: F64Array,
    d: int,
    bits: int,
    places: I64Array,
    q: int,
    attributes: I64Array,
    starts: I64Array,
    sets: I64Array,
    parities: F64Array,
) -> None:
    """`tables_from_parities_into` the other way round: parity(T) += 2^-k sum of (-1)^|T and v| table[v].

    Shapes    as there; tables float64, all one after the other, holds no tables afterwards
    Cost      k + 2 steps for each cell of a table
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy broadcasts
    """
    at = 0
    for t in range(starts.size - 1):
        own = attributes[starts[t] : starts[t + 1]]
        fill_sets_into(own, d, sets)
        table = tables[at : at + (1 << own.size)]
        mix_table(table)
        for v in range(table.size):
            parities[place_of(sets[v], bits, places, q)] += part(table[v], own.size)
        at += table.size


# --- the whole transform


@jit
def transform_strips(x: Any, bits: int, inner: int, first: int, stop: int) -> None:
    """Mix `bits` of the bits in place, those above the cell number within `inner`; strips of 64 columns at a time.

    Shapes    x int64 or float64[outer, 2^bits, inner], flat; strips `first` to `stop` of outer inner / 64
    Cost      one read and one write of x
    Requires  1 <= bits <= STRIP_BITS, inner a multiple of 64
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    buffer = seen_as(stack(np.int64, _BLOCK_CELLS), x.dtype)
    across = inner // STRIP
    for strip in range(first, stop):
        at = strip // across * (inner << bits) + strip % across * STRIP
        if bits <= 3:
            mix_level(x, at, inner, x, at, inner, STRIP, 0, bits, bits)
            continue
        mix_level(x, at, inner, buffer, 0, STRIP, STRIP, 0, bits, bits)
        if bits > 6:
            mix_level(buffer, 0, STRIP, buffer, 0, STRIP, STRIP, 3, bits, bits)
        mix_level(buffer, 0, STRIP, x, at, inner, STRIP, 3 * ((bits - 1) // 3), bits, bits)


@jit
def transform_blocks(x: Any, bits: int, first: int, stop: int) -> None:
    """Transform blocks of 2^bits neighbouring cells in place.

    Shapes    x int64 or float64, flat; blocks `first` to `stop`
    Cost      one read and one write of x
    Requires  3 <= bits <= BLOCK_BITS
    Used by   fastdp/answering/marginal_transform.py
    Oracle    scipy.linalg.hadamard
    """
    low = min(bits - LANE_BITS, INNER_BITS)
    high = bits - LANE_BITS - low
    for block in range(first, stop):
        at = block << bits
        inner = LANES << low
        if high:
            mix_level(x, at, inner, x, at, inner, inner, 0, high, high)
        for start in range(at, at + (1 << bits), inner):
            for done in range(0, low, 3):
                mix_level(x, start, LANES, x, start, LANES, LANES, done, low, low)
            for i in range(start, start + inner, LANES):
                mix_lanes(x, i)
