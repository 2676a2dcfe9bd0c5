"""Messages of a junction tree: the distribution that logarithms of weights on cliques make, its tables, and records.

A clique's cells lie in memory as rows, one for each cell of the separator that it shares with its parent. Collecting
normalises each row and gives what it normalised by to the parent, so that a clique holds the logarithms of its columns
given the separator: no weight underflows because of what is elsewhere in the tree. All of it is public, so floats; sums
are over runs that the shapes alone fix, and have the same bits for any number of threads.
"""

from typing import Any

import numpy as np

from .compile import SUMS, jit
from .elementary import exp_one, ln_one
from .lanes import F64Array, I64Array, U32Array, int64, uint64
from .sums import run_spreads, run_sums
from .words import words_into

_BLOCK = 2048  # cells that stay in the L1 cache
_LEAST = -300.0  # logarithms below it are 0 as shares of a row
_RARE = 1e-150  # cells of a separator that are less probable count as 0: no product is subnormal, which is slow
_LOW_HALF = np.uint64(0xFFFFFFFF)


@jit
def collect(
    logs: F64Array, shares: F64Array, space: F64Array, units: Any, log_sums: F64Array, plan: I64Array,
    steps: I64Array, first: int, stop: int,
) -> None:  # fmt: skip
    """Add tables to the logarithms of cliques `stop` - 1 down to `first`, normalise their rows, and tell the parents.

    logs[row] += tables - m[row],  shares[row] = e^(logs[row]),  m[row] the largest there
    space[row of the separator] = m[row] + ln(sum of shares[row]) - log_sums[row],  log_sums[row] = ln(that sum)

    Shapes    logs, shares float64[cells]; space float64: tables of all cliques, as tree_layout.py lays them out;
              units float64[2, units]: largest entry and sum of each piece of a row; log_sums
              float64[rows]; plan int64[c, 9]: first cell, rows, cells of a row, pieces of a row, first unit, first row,
              place of the separator in `space`, steps from and to; steps int64[s, 6], as of `run_spreads`
    Cost      three passes over the cells, 1.5 ns each
    Requires  children after their parents; -inf for cells that cannot be
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    tests/oracles/junction_trees.py
    """
    for c in range(stop - 1, first - 1, -1):
        at, rows, run, pieces = plan[c, 0], plan[c, 1], plan[c, 2], plan[c, 3]
        mine = logs[at : at + rows * run]
        begin = plan[c, 4]
        tops, sums = units[0, begin : begin + rows * pieces], units[1, begin : begin + rows * pieces]
        run_spreads(mine, space, steps, plan[c, 7], plan[c, 8])
        find_tops(mine, run, pieces, 0, rows * pieces, tops)
        join_tops(tops, pieces, rows)
        exponentiate_rows(mine, run, pieces, 0, rows * pieces, tops, shares[at : at + rows * run], sums)
        tell_parent(tops, sums, pieces, log_sums[plan[c, 5] : plan[c, 5] + rows], space[plan[c, 6] :])


@jit
def find_tops(logs: F64Array, run: int, pieces: int, first: int, stop: int, tops: F64Array) -> None:
    """The largest entry of each piece of a row.

    Shapes    logs float64[rows x run]; tops float64[rows x pieces], of which `first` to `stop` are written
    Cost      one read
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    numpy
    """
    length = -(-run // pieces)
    for unit in range(first, stop):
        begin = unit // pieces * run + unit % pieces * length
        end = min(begin + length, (unit // pieces + 1) * run)
        top = logs[begin]
        for i in range(begin + 1, end):
            top = max(top, logs[i])
        tops[unit] = top


@jit
def join_tops(tops: F64Array, pieces: int, rows: int) -> None:
    """Let each piece of a row have the largest entry of the row.

    Shapes    tops float64[rows x pieces], read and written
    Cost      one pass
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    numpy
    """
    if pieces > 1:
        for row in range(rows):
            mine = tops[row * pieces : (row + 1) * pieces]
            mine[:] = mine.max()


@jit(fastmath=SUMS)
def exponentiate_rows(
    logs: F64Array, run: int, pieces: int, first: int, stop: int, tops: F64Array, shares: F64Array, sums: F64Array
) -> None:
    """logs -= tops, shares = e^logs, and the sums of these, for pieces `first` to `stop` of rows.

    Shapes    logs, shares float64[rows x run]; tops, sums float64[rows x pieces]
    Cost      1 ns a cell
    Requires  tops as of `find_tops` and `join_tops`; a row of -inf alone has shares 0
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    numpy
    """
    length = -(-run // pieces)
    together = max(1, _BLOCK // length) if pieces == 1 else 1
    for begin in range(first, stop, together):
        end = min(begin + together, stop)
        low = begin // pieces * run + begin % pieces * length
        high = min((end - 1) // pieces * run + ((end - 1) % pieces + 1) * length, ((end - 1) // pieces + 1) * run)
        for unit in range(begin, end):
            top = tops[unit]
            if top > -np.inf:
                start = unit // pieces * run + unit % pieces * length
                for i in range(start, min(start + length, (unit // pieces + 1) * run)):
                    logs[i] -= top
        for i in range(low, high):
            value = exp_one(max(logs[i], _LEAST))
            shares[i] = value if logs[i] >= _LEAST else 0.0
        for unit in range(begin, end):
            start = unit // pieces * run + unit % pieces * length
            total = 0.0
            for i in range(start, min(start + length, (unit // pieces + 1) * run)):
                total += shares[i]
            sums[unit] = total


@jit
def tell_parent(tops: F64Array, sums: F64Array, pieces: int, log_sums: F64Array, separator: F64Array) -> None:
    """Join the sums of rows, and write what the parent's logarithms change by; `collect` has the formula.

    Shapes    tops, sums float64[rows x pieces]; log_sums float64[rows], read and written; separator float64[rows]
    Cost      10 ns a row
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    as of `collect`
    """
    for row in range(log_sums.size):
        total = sums[row * pieces]
        for k in range(1, pieces):
            total += sums[row * pieces + k]
        sums[row * pieces] = total
        if total > 0.0:
            log_sum = ln_one(total)
            separator[row] = tops[row * pieces] + (log_sum - log_sums[row])
            log_sums[row] = log_sum
        else:
            separator[row] = -np.inf


@jit
def distribute(
    shares: F64Array, space: F64Array, units: Any, plan: I64Array, steps: I64Array, first: int, stop: int
) -> None:
    """Make the shares of cliques `first` to `stop` - 1 probabilities, and sum up their tables.

    shares[row] *= (probability of the row's cell of the separator) / (sum of shares[row])

    Shapes    as of `collect`, which has come before
    Cost      two passes over the cells
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    tests/oracles/junction_trees.py
    """
    for c in range(first, stop):
        at, rows, run, pieces = plan[c, 0], plan[c, 1], plan[c, 2], plan[c, 3]
        mine = shares[at : at + rows * run]
        scale_rows(mine, run, pieces, 0, rows * pieces, units[1, plan[c, 4] :], space[plan[c, 6] :])
        run_sums(mine, space, steps, plan[c, 7], plan[c, 8])


@jit
def scale_rows(
    shares: F64Array, run: int, pieces: int, first: int, stop: int, sums: F64Array, separator: F64Array
) -> None:
    """Give pieces `first` to `stop` of rows their share of the separator.

    Shapes    shares float64[rows x run]; sums float64[rows x pieces], the first of each row counts; separator
              float64[rows]
    Cost      one pass
    Used by   fastdp/answering/synthesis/tree_messages.py
    Oracle    numpy
    """
    length = -(-run // pieces)
    for unit in range(first, stop):
        row = unit // pieces
        total = sums[row * pieces]
        factor = separator[row] / total if total > 0.0 and separator[row] > _RARE else 0.0
        start = row * run + unit % pieces * length
        for i in range(start, min(start + length, (row + 1) * run)):
            shares[i] *= factor


@jit
def index_rows(out: Any, columns: I64Array, sizes: I64Array, rows: I64Array) -> None:
    """In which row of a clique each record is, by its codes in the columns of the separator.

    Shapes    out unsigned [d, n]; columns, sizes int64[k]; rows int64[n]
    Cost      1 ns a column and record
    Used by   fastdp/answering/synthesis/tree_sampling.py
    Oracle    numpy.ravel_multi_index
    """
    rows[:] = 0
    for k in range(columns.size):
        codes, size = out[columns[k]], sizes[k]
        for i in range(rows.size):
            rows[i] = rows[i] * size + int64(codes[i])


@jit
def draw_rounded(
    key: U32Array, stream: int, shares: F64Array, run: int, rows: I64Array, starts: I64Array, drawn: Any, order: Any,
    cells: I64Array,
) -> None:  # fmt: skip
    """For each record a cell of its row, so that of the N records of a row each cell has N share, rounded up or down.

    Within a row the counts are floor(N F(c) + u) - floor(N F(c - 1) + u), F its distribution function and u uniform:
    on average N share. Who has which cell is a uniform permutation.

    Shapes    shares float64[S x run], whose rows need not be normalised; rows int64[n], below S; starts int64[S + 1],
              written; drawn uint64[n + S] and order uint32[n], space; cells int64[n], the cells within the row
    Cost      a word a record, 20 ns a record, 1 ns a cell
    Requires  a row with records has a share > 0
    Used by   fastdp/answering/synthesis/tree_sampling.py
    Oracle    the law: tests/answering/synthesis/test_tree_sampling.py
    """
    n, count = rows.size, starts.size - 1
    words_into(key, stream, 0, drawn)
    starts[:] = 0
    for i in range(n):
        starts[rows[i] + 1] += 1
    for row in range(count):
        starts[row + 1] += starts[row]
    for row in range(count):
        begin, end = starts[row], starts[row + 1]
        if begin < end:
            _fill_rounded(shares[row * run : (row + 1) * run], drawn[n + row], order[begin:end])
            _shuffle(drawn[begin:end], order[begin:end])
    for i in range(n):
        place = starts[rows[i]]
        starts[rows[i]] = place + 1
        cells[i] = order[place]


@jit
def _fill_rounded(shares: F64Array, word: int, order: Any) -> None:
    n = order.size
    total = 0.0
    last = 0
    for i in range(shares.size):
        total += shares[i]
        if shares[i] > 0.0:
            last = i
    scale = n / total
    before = float(word >> uint64(11)) * 2.0**-53
    place = int64(0)
    for i in range(last + 1):
        before += shares[i] * scale
        until = n if i == last else min(int64(before), n)
        while place < until:
            order[place] = i
            place += 1


@jit
def _shuffle(words: Any, order: Any) -> None:
    for i in range(order.size - 1, 0, -1):
        many = uint64(i + 1)
        low = ((words[i] & _LOW_HALF) * many) >> uint64(32)
        j = int64(((words[i] >> uint64(32)) * many + low) >> uint64(32))
        order[i], order[j] = order[j], order[i]


@jit
def split_rows(cells: I64Array, columns: I64Array, sizes: I64Array, out: Any) -> None:
    """Write the codes of records, whose cells lie within a row of a clique; overwrites `cells`.

    Shapes    cells int64[n]; columns, sizes int64[k]: the columns of the clique that are not of the separator; out
              unsigned [d, n]
    Cost      1 ns a column and record
    Used by   fastdp/answering/synthesis/tree_sampling.py
    Oracle    numpy.unravel_index
    """
    for k in range(columns.size - 1, -1, -1):
        codes, size = out[columns[k]], sizes[k]
        inverse = 1.0 / size
        for i in range(cells.size):
            quotient = int64((float(cells[i]) + 0.5) * inverse)  # exact: off by less than 1 / (2 size)
            codes[i] = cells[i] - quotient * size
            cells[i] = quotient
