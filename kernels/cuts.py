"""Choosing cuts of ordered records: one kernel draws all choices of a level.

A cut is a number of 128 bits, (high, low). The law, the words that are read and what every step decides are those of
fastdp/mechanisms/cut_choice.py, which is the definition; what floats do not decide here is left to it.
"""

from typing import Any

import numpy as np

from .compile import jit
from .elementary import exp_one
from .lanes import U32Array, U64Array, float64, float_of, int64, stack, uint64
from .layout import SCHEDULE
from .words import expanded, word_one

I64Array = np.ndarray[Any, np.dtype[np.int64]]
I64Rows = np.ndarray[Any, np.dtype[np.int64]]
U64Rows = np.ndarray[Any, np.dtype[np.uint64]]
F64Array = np.ndarray[Any, np.dtype[np.float64]]

LOW_BITS = 32
MOST_FULL = 160  # levels
FIRST, STOP, A, B, STEP, BITS, FULL, NUMBER, DIVIDES, OFFSET = range(10)  # columns of what a choice is
NODE_COLUMNS = 10
PIECE_FIRST, PIECE_HIGH, PIECE_LOW, PIECE_SHIFT = range(4)  # columns of a line
UNDECIDED = -1
_TRIALS = 64
_DOUBT = 2.0**-36  # relative: sums of 2 (MOST_FULL + 2) floats, a quotient and an exponential are right to 2^-43
_LN2 = 0.6931471805599453
_TWO64 = 2.0**64


@jit(inline=True)
def add_wide(high: int, low: int, more_high: int, more_low: int) -> tuple[int, int]:
    """The sum of two numbers of 128 bits."""
    total = uint64(low + more_low)
    return uint64(high + more_high + uint64(total < low)), total


@jit(inline=True)
def subtract_wide(high: int, low: int, less_high: int, less_low: int) -> tuple[int, int]:
    """Their difference."""
    return uint64(high - less_high - uint64(low < less_low)), uint64(low - less_low)


@jit(inline=True)
def below_wide(high: int, low: int, other_high: int, other_low: int) -> bool:
    """Whether the first is less than the second."""
    return high < other_high or (high == other_high and low < other_low)


@jit(inline=True)
def shifted_left(value: int, shift: int) -> tuple[int, int]:
    """A number of 64 bits times 2^shift, 0 <= shift < 128."""
    s = uint64(shift)
    if shift >= 64:
        return uint64(value << (s - uint64(64))), uint64(0)
    if shift == 0:
        return uint64(0), uint64(value)
    return uint64(value >> (uint64(64) - s)), uint64(value << s)


@jit(inline=True)
def shifted_right(high: int, low: int, shift: int) -> int:
    """The low 64 bits of a number of 128 bits, over 2^shift, 0 <= shift < 128."""
    s = uint64(shift)
    if shift >= 64:
        return uint64(high >> (s - uint64(64)))
    if shift == 0:
        return uint64(low)
    return uint64(low >> s) | uint64(high << (uint64(64) - s))


@jit(inline=True)
def multiply_wide(x: int, y: int) -> tuple[int, int]:
    """The product of two numbers of 64 bits."""
    mask = uint64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & mask, x >> uint64(32), y & mask, y >> uint64(32)
    low = uint64(x0 * y0)
    middle = uint64(x1 * y0 + (low >> uint64(32)))
    other = uint64(x0 * y1 + (middle & mask))
    return uint64(x1 * y1 + (middle >> uint64(32)) + (other >> uint64(32))), uint64(x * y)


@jit(inline=True)
def share_of_wide(high: int, low: int, u: int, v: int) -> tuple[int, int, bool]:
    """floor((high, low) (u, v) / 2^128), and whether more bits of the fraction (u, v) could change it."""
    a_high, a_low = multiply_wide(low, v)
    b_high, b_low = multiply_wide(low, u)
    c_high, c_low = multiply_wide(high, v)
    d_high, d_low = multiply_wide(high, u)
    carry, rest = add_wide(uint64(0), a_high, uint64(0), b_low)
    carry, rest = add_wide(carry, rest, uint64(0), c_low)
    found_high, found_low = add_wide(d_high, d_low, uint64(0), carry)
    found_high, found_low = add_wide(found_high, found_low, uint64(0), b_high)
    found_high, found_low = add_wide(found_high, found_low, uint64(0), c_high)
    beyond_high, beyond_low = add_wide(rest, a_low, high, low)
    return found_high, found_low, below_wide(beyond_high, beyond_low, rest, a_low)


@jit(inline=True)
def piece_of_number(line: U64Rows, position: int) -> int:
    """Which piece of a line a number is in."""
    piece, stop = 0, line.shape[0]
    while stop - piece > 1:
        middle = (piece + stop) >> 1
        if line[middle, PIECE_FIRST] <= position:
            piece = middle
        else:
            stop = middle
    return piece


@jit(inline=True)
def piece_of_cut(line: U64Rows, high: int, low: int) -> int:
    """Which piece of a line a cut is in."""
    piece, stop = 0, line.shape[0]
    while stop - piece > 1:
        middle = (piece + stop) >> 1
        if below_wide(high, low, line[middle, PIECE_HIGH], line[middle, PIECE_LOW]):
            stop = middle
        else:
            piece = middle
    return piece


@jit
def cut_of_record(line: U64Rows, position: int, low: int) -> tuple[int, int]:
    """The cut of a record: of its number and its low bits.

    Shapes    line uint64[pieces, 4], as fastdp/mechanisms/cut_line.py has it; position uint64; low uint64 below 2^32
    Cost      some 10 ns
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_line.py::CutLine.cut
    """
    piece = piece_of_number(line, position)
    shift = int64(line[piece, PIECE_SHIFT])
    high, found = shifted_left(uint64(position - line[piece, PIECE_FIRST]), shift)
    high, found = add_wide(high, found, line[piece, PIECE_HIGH], line[piece, PIECE_LOW])
    more_high, more = shifted_left(uint64(low), shift - LOW_BITS)
    return add_wide(high, found, more_high, more)


@jit
def place_of_cut(line: U64Rows, high: int, low: int) -> tuple[int, int]:
    """The number at a cut, and the low bits of the last record on its left.

    Shapes    line uint64[pieces, 4]; the cut as two uint64
    Cost      some 10 ns
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_line.py::CutLine.place
    """
    piece = piece_of_cut(line, high, low)
    shift = int64(line[piece, PIECE_SHIFT])
    high, low = subtract_wide(high, low, line[piece, PIECE_HIGH], line[piece, PIECE_LOW])
    within = shifted_right(high, low, shift - LOW_BITS) & uint64(0xFFFFFFFF)
    return uint64(line[piece, PIECE_FIRST] + shifted_right(high, low, shift)), within


@jit
def count_up_to(values: U64Array, lows: U32Array, first: int, stop: int, position: int, low: int) -> int:
    """How many of the records first .. stop - 1 are at most (position, low).

    Shapes    values uint64[n] in order, lows uint32[n] in order where values are equal; position, low uint64
    Cost      log2(stop - first) steps
    Used by   choose_cuts_into
    Oracle    sorted pairs
    """
    begin, end = first, stop
    while begin < end:
        middle = (begin + end) >> 1
        value = values[middle]
        if value < position or (value == position and uint64(lows[middle]) <= low):
            begin = middle + 1
        else:
            end = middle
    return begin - first


@jit
def count_below(values: U64Array, first: int, stop: int, position: int) -> int:
    """How many of the records first .. stop - 1 have a number below `position`.

    Shapes    values uint64[n] in order
    Cost      log2(stop - first) steps
    Used by   choose_cuts_into
    Oracle    sorted pairs
    """
    begin, end = first, stop
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < position:
            begin = middle + 1
        else:
            end = middle
    return begin - first


@jit
def loss_of_cut(values: U64Array, lows: U32Array, line: U64Rows, node: I64Array, high: int, low: int) -> int:
    """b times the ranks by which a cut is off.

    Shapes    values uint64[n], lows uint32[n]; line uint64[pieces, 4]; node int64[10]; the cut as two uint64
    Cost      a binary search, or two
    Source    fastdp/mechanisms/many_quantiles.md, theorem 2
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice.loss
    """
    first, stop = node[FIRST], node[STOP]
    target = node[A] * (stop - first) + node[OFFSET]
    position, within = place_of_cut(line, high, low)
    if node[DIVIDES]:
        return abs(node[B] * count_up_to(values, lows, first, stop, position, within) - target)
    below = count_below(values, first, stop, position)
    up_to = count_up_to(values, lows, first, stop, position, uint64(0xFFFFFFFF))
    return max(node[B] * below - target, target - node[B] * up_to)


@jit
def level_set(
    values: U64Array, lows: U32Array, line: U64Rows, node: I64Array, part: U64Array, worst: int
) -> tuple[int, int, int, int]:
    """The first and the last cut of a part that lose at most `worst`, which some cut does.

    Shapes    values uint64[n], lows uint32[n]; line uint64[pieces, 4]; node int64[10]; part uint64[4], its first cut
              and its last; worst int64
    Cost      some 30 ns
    Source    fastdp/mechanisms/many_quantiles.md, theorem 2
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice
    """
    m = node[STOP] - node[FIRST]
    target = node[A] * m + node[OFFSET]
    first, stop = -((worst - target) // node[B]), (target + worst) // node[B] + 1
    if not node[DIVIDES]:
        middle = min(max(-(-target // node[B]), 1), m)
        first, stop = min(first, middle), max(stop, middle)
    low_high, low_low, high_high, high_low = part[0], part[1], part[2], part[3]
    if first >= 1:
        at = node[FIRST] + first - 1
        found_high, found_low = cut_of_record(line, values[at], uint64(lows[at]) if node[DIVIDES] else uint64(0))
        if below_wide(low_high, low_low, found_high, found_low):
            low_high, low_low = found_high, found_low
    if stop <= m:
        at = node[FIRST] + stop - 1
        if node[DIVIDES]:
            found_high, found_low = cut_of_record(line, values[at], uint64(lows[at]))
            high_high, high_low = subtract_wide(found_high, found_low, uint64(0), uint64(1))
        else:
            found_high, found_low = end_of_number(line, values[at])
            if below_wide(found_high, found_low, high_high, high_low):
                high_high, high_low = found_high, found_low
    return low_high, low_low, high_high, high_low


@jit
def end_of_number(line: U64Rows, position: int) -> tuple[int, int]:
    """The last cut of a number.

    Shapes    line uint64[pieces, 4]; position uint64
    Cost      some 10 ns
    Used by   level_set
    Oracle    fastdp/mechanisms/cut_line.py::CutLine.end
    """
    piece = piece_of_number(line, position)
    high, low = shifted_left(uint64(1), int64(line[piece, PIECE_SHIFT]))
    high, low = subtract_wide(high, low, uint64(0), uint64(1))
    found_high, found_low = cut_of_record(line, position, uint64(0))
    return add_wide(found_high, found_low, high, low)


@jit
def least_loss(values: U64Array, lows: U32Array, line: U64Rows, node: I64Array, part: U64Array) -> int:
    """What the best cut of a part loses.

    Shapes    values uint64[n], lows uint32[n]; line uint64[pieces, 4]; node int64[10]; part uint64[4]
    Cost      two binary searches
    Source    fastdp/mechanisms/many_quantiles.md, theorem 2
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice
    """
    m = node[STOP] - node[FIRST]
    if m == 0:
        return abs(node[OFFSET])
    middle = -(-(node[A] * m + node[OFFSET]) // node[B])
    at = node[FIRST] + min(max(middle, 1), m) - 1
    high, low = cut_of_record(line, values[at], uint64(lows[at]))
    if below_wide(high, low, part[0], part[1]):
        high, low = part[0], part[1]
    if below_wide(part[2], part[3], high, low):
        high, low = part[2], part[3]
    least = loss_of_cut(values, lows, line, node, high, low)
    if node[DIVIDES] and below_wide(part[0], part[1], high, low):
        high, low = subtract_wide(high, low, uint64(0), uint64(1))
        least = min(least, loss_of_cut(values, lows, line, node, high, low))
    return least


@jit
def add_interval(
    intervals: U64Rows, levels: I64Array, sums: F64Array, count: int, ends: tuple[int, int, int, int], level: int
) -> int:
    """Write down the cuts from the first end to before the second, if there are any, and the sum of weights so far.

    Shapes    intervals uint64[k, 4], levels int64[k], sums float64[k + 1]; ends as two cuts
    Cost      some ns
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice
    """
    high, low = subtract_wide(ends[2], ends[3], ends[0], ends[1])
    if high == uint64(0) and low == uint64(0):
        return count
    intervals[count, 0], intervals[count, 1], intervals[count, 2], intervals[count, 3] = ends[0], ends[1], high, low
    levels[count] = level
    sums[count + 1] = sums[count] + (float64(high) * _TWO64 + float64(low)) * float_of(int64(1023 - level) << int64(52))
    return count + 1


@jit
def choose_cuts_into(
    values: U64Array, lows: U32Array, line: U64Rows, nodes: I64Rows, rates: F64Array, parts: U64Rows, key: U32Array,
    cuts: U64Rows, ranks: I64Array,
) -> None:  # fmt: skip
    """A cut of each part, with probability proportional to e^(-eta times the ranks by which it is off).

    ranks[i] = how many records are up to the cut that is drawn for node i,   cuts[i] = that cut

    Shapes    values uint64[n] in order, lows uint32[n] in order where values are equal; line uint64[pieces, 4];
              nodes int64[k, 10], rates float64[k], parts uint64[k, 4] (first and last cut of each); key uint32[8];
              cuts uint64[k, 2], ranks int64[k]
    Cost      5 us a node
    Source    fastdp/mechanisms/many_quantiles.md, theorem 2; fastdp/mechanisms/cut_choice.py
    Requires  b m + worst loss below 2^61, FULL at most MOST_FULL, rates within 2^-50 of eta / b
    Returns   UNDECIDED in ranks where floats do not decide
    Used by   fastdp/mechanisms/quantile_draws.py
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice
    """
    most = 2 * MOST_FULL + 8
    intervals, levels, sums = np.empty((most, 4), np.uint64), np.empty(most, np.int64), np.zeros(most + 1)
    one = uint64(1)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    for i in range(nodes.shape[0]):
        node, part = nodes[i], parts[i]
        pieces = line[piece_of_cut(line, part[0], part[1]) : piece_of_cut(line, part[2], part[3]) + 1]
        least = least_loss(values, lows, pieces, node, part)
        after_high, after_low = add_wide(part[2], part[3], uint64(0), one)
        left_high, left_low, right_high, right_low = after_high, after_low, after_high, after_low
        gap, count = int64(0), 0
        while below_wide(part[0], part[1], left_high, left_low) or below_wide(
            right_high, right_low, after_high, after_low
        ):
            level = min(node[FULL], (gap << node[BITS]) // node[STEP])
            next_gap = max(gap + 1, -(-((level + 1) * node[STEP]) >> node[BITS]))
            low_high, low_low, high_high, high_low = part[0], part[1], part[2], part[3]
            if level < node[FULL] and node[STOP] > node[FIRST]:
                low_high, low_low, high_high, high_low = level_set(
                    values, lows, pieces, node, part, least + next_gap - 1
                )
            high_high, high_low = add_wide(high_high, high_low, uint64(0), one)
            if count == 0:
                ends = (low_high, low_low, high_high, high_low)
                count = add_interval(intervals, levels, sums, count, ends, level)
            else:
                ends = (low_high, low_low, left_high, left_low)
                count = add_interval(intervals, levels, sums, count, ends, level)
                ends = (right_high, right_low, high_high, high_low)
                count = add_interval(intervals, levels, sums, count, ends, level)
            left_high, left_low, right_high, right_low = low_high, low_low, high_high, high_low
            gap = next_gap
        ranks[i] = draw_cut(
            values, lows, pieces, node, rates[i], least, intervals, levels, (sums, count), (source, cuts[i])
        )


@jit
def draw_cut(
    values: U64Array, lows: U32Array, line: U64Rows, node: I64Array, rate: float, least: int, intervals: U64Rows,
    levels: I64Array, weights: tuple[F64Array, int], out: tuple[U32Array, U64Array],
) -> int:  # fmt: skip
    """A cut from its intervals.

    Shapes    as choose_cuts_into has them; weights the sums of weights before each interval, and how many there are;
              out the key, and uint64[2] for the cut
    Cost      0.6 us a trial, of which some two are made
    Source    fastdp/mechanisms/weighted_intervals.py
    Returns   how many records are up to the cut, or UNDECIDED
    Used by   choose_cuts_into
    Oracle    fastdp/mechanisms/cut_choice.py::CutChoice.draw
    """
    sums, count = weights
    key, cut = out
    total = sums[count]
    doubt = _DOUBT * total
    for t in range(_TRIALS):
        index = uint64(node[NUMBER] + t)
        place = float64(word_one(key, uint64(0), index)) / _TWO64 * total
        begin, end = 0, count
        while end - begin > 1:
            middle = (begin + end) >> 1
            if sums[middle] <= place:
                begin = middle
            else:
                end = middle
        if (begin > 0 and place - sums[begin] <= doubt) or (begin + 1 < count and sums[begin + 1] - place <= doubt):
            return UNDECIDED
        u, v = word_one(key, uint64(2), index), word_one(key, uint64(6), index)
        high, low, open_ = share_of_wide(intervals[begin, 2], intervals[begin, 3], u, v)
        if open_:
            return UNDECIDED
        high, low = add_wide(high, low, intervals[begin, 0], intervals[begin, 1])
        excess = loss_of_cut(values, lows, line, node, high, low) - least
        exponent = float64(levels[begin]) * _LN2 - rate * float64(excess)
        chance = exp_one(min(exponent, 1.0)) if exponent > -600.0 else 0.0
        coin = float64(word_one(key, uint64(1), index)) / _TWO64
        if abs(coin - chance) <= _DOUBT:
            return UNDECIDED
        if coin < chance:
            cut[0], cut[1] = high, low
            position, within = place_of_cut(line, high, low)
            return node[FIRST] + count_up_to(values, lows, node[FIRST], node[STOP], position, within)
    return UNDECIDED
