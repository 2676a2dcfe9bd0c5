"""Choosing a point by its rank among values in order: one kernel finds the intervals of the law, and draws.

The law, the words that are read and what every step decides are those of fastdp/mechanisms/rank_selection.py and
weighted_intervals.py, which are the definition. Weights are integers of 256 bits here, as exact as there; what a float
leaves open, or would take more words, is left to the definition.
"""

from typing import Any

import numpy as np

from .compile import jit
from .cuts import add_wide, count_below, multiply_wide, subtract_wide
from .elementary import exp_one
from .lanes import U32Array, U64Array, float64, int64, stack, uint64
from .layout import LN2, SCHEDULE
from .words import expanded, word_one

I64Rows = np.ndarray[Any, np.dtype[np.int64]]
U64Rows = np.ndarray[Any, np.dtype[np.uint64]]

MOST_STEPS = 130  # of levels: on lines of 64 bits
LIMBS = 4  # of 64 bits, the lowest first: weights are below 2^(76 + 128)
COLUMNS = 6
FIRST, SIDE, SIZE_HIGH, SIZE_LOW, LEVEL, WEIGHT = range(COLUMNS)  # of an interval
_MOST_WORDS = LIMBS + 1  # of a place: 64 bits more than the weights have, and fewer than 128
_PRODUCT = LIMBS + _MOST_WORDS
_TRIALS = 64
_DOUBT = 2.0**-36  # of a coin: what it is compared with is right to 2^-40 (interior_point.md, theorem 2)
_TWO64 = 2.0**64


@jit(inline=True)
def limb_of(high: int, low: int, shift: int, i: int) -> int:
    """Limb i of (2^64 high + low) 2^shift."""
    by = 64 * i - shift  # the bit of the number that is the lowest of the limb
    if by <= -64 or by >= 128:
        return uint64(0)
    if by >= 64:
        return uint64(high >> uint64(by - 64))
    if by > 0:
        return uint64((low >> uint64(by)) | (high << uint64(64 - by)))
    return uint64(low << uint64(-by))


@jit
def add_weight(sums: U64Rows, count: int, high: int, low: int, shift: int) -> None:
    """The next sum of weights: one of so many more.

    sums[count + 1] = sums[count] + (2^64 high + low) 2^shift

    Shapes    sums uint64[k, 4], numbers of 4 limbs; high, low uint64
    Cost      some ns
    Requires  a sum below 2^256
    Used by   choose_point
    Oracle    Python's integers
    """
    carry = uint64(0)
    for i in range(LIMBS):
        carry, part = add_wide(uint64(0), sums[count, i], uint64(0), carry)
        carry, sums[count + 1, i] = add_wide(carry, part, uint64(0), limb_of(high, low, shift, i))


@jit
def share_into(total: U64Array, words: U64Array, place: U64Array) -> bool:
    """place = floor(total U), of the U that these bits begin.

    Shapes    total, place uint64[4], the lowest limb first; words uint64[w], the first bits of U first
    Cost      some 20 ns
    Requires  0 < total < 2^(64 (w - 1)), w at most 5
    Returns   whether more bits of U could not change it
    Used by   choose_point
    Oracle    Python's integers
    """
    count = words.size
    product = stack(np.uint64, _PRODUCT)
    for i in range(product.size):
        product[i] = uint64(0)
    for j in range(count):
        carry = uint64(0)
        for i in range(LIMBS):
            high, low = multiply_wide(total[i], words[count - 1 - j])
            high, low = add_wide(high, low, uint64(0), product[i + j])
            carry, product[i + j] = add_wide(high, low, uint64(0), carry)
        product[j + LIMBS] = carry
    carry, rest = uint64(0), uint64(0)  # whether total, added to what is behind the point, comes to more than 1
    for i in range(count):
        more = total[i] if i < LIMBS else uint64(0)
        carry, part = add_wide(uint64(0), product[i], uint64(0), carry)
        carry, part = add_wide(carry, part, uint64(0), more)
        rest |= part
    for i in range(LIMBS):
        place[i] = product[count + i]
    return carry == uint64(0) or rest == uint64(0)


@jit
def interval_at(sums: U64Rows, count: int, place: U64Array) -> int:
    """Which of so many intervals a place is in: that before whose end it is, and not before its start.

    Shapes    sums uint64[count + 1, 4], the first of them 0; place uint64[4]
    Cost      log2(count) steps
    Requires  place below the last of the sums
    Used by   choose_point
    Oracle    bisect
    """
    begin, end = 0, count
    while end - begin > 1:
        middle = (begin + end) >> 1
        below = False
        for i in range(LIMBS):  # the highest limb that differs decides
            if place[i] != sums[middle, i]:
                below = place[i] < sums[middle, i]
        if below:
            end = middle
        else:
            begin = middle
    return begin


@jit(inline=True)
def low_bits_beyond(place: U64Array, sums: U64Rows, i: int, shift: int) -> int:
    """(place - sums[i]) / 2^shift, rounded down, which is below 2^64."""
    skip, by = shift >> 6, uint64(shift & 63)
    borrow, found = uint64(0), uint64(0)
    for j in range(LIMBS):
        more, part = subtract_wide(uint64(0), place[j], uint64(0), sums[i, j])
        less, part = subtract_wide(uint64(0), part, uint64(0), borrow)
        borrow = uint64(1) if more | less else uint64(0)
        if j == skip:
            found = uint64(part >> by)
        elif j == skip + 1 and by:
            found |= uint64(part << (uint64(64) - by))
    return found


@jit
def loss_of_point(values: U64Array, first: int, stop: int, a: int, b: int, z: int) -> int:
    """b times the ranks by which a point is off: max(b #{x < z} - a m, a m - b #{x <= z}).

    Shapes    values uint64[m], of which those from `first` to before `stop` are in order, and between the others
    Cost      two binary searches, or where the point is not inside of that part a pass
    Source    fastdp/mechanisms/interior_point.md, theorem 2
    Used by   choose_point
    Oracle    fastdp/mechanisms/rank_selection.py::Ranks.of
    """
    m = values.size
    below, up_to = 0, 0
    if stop - first == m or (values[first] < z and z < values[stop - 1]):
        below = first + count_below(values, first, stop, z)
        up_to = first + count_below(values, first, stop, uint64(z + uint64(1))) if z + uint64(1) else m
    else:
        for i in range(m):
            below += values[i] < z
            up_to += values[i] <= z
    return max(b * below - a * m, a * m - b * up_to)


@jit
def add_intervals(intervals: U64Rows, count: int, line: U64Rows, low: int, high: int, upward: int, level: int) -> int:
    """Write down the points low .. high, those of one weight together; returns how many intervals there are.

    Shapes    intervals uint64[count + pieces, 6]; line uint64[pieces + 1, 2]; low, high uint64; upward 1, or 0 for
              intervals that are counted from their last point
    Cost      some 5 ns an interval
    Used by   find_intervals_into
    Oracle    fastdp/mechanisms/rank_selection.py::choose_by_rank
    """
    one, pieces = uint64(1), line.shape[0] - 1
    piece, stop = 0, pieces
    while stop - piece > 1:
        middle = (piece + stop) >> 1
        if line[middle, 0] <= low:
            piece = middle
        else:
            stop = middle
    first = uint64(low)
    while True:
        last = uint64(high)
        if piece + 1 < pieces and line[piece + 1, 0] <= last:
            last = uint64(line[piece + 1, 0] - one)
        size = uint64(last - first + one)  # 0 where it is 2^64
        intervals[count, FIRST], intervals[count, SIDE] = first if upward else last, uint64(upward)
        intervals[count, SIZE_HIGH], intervals[count, SIZE_LOW] = one if size == uint64(0) else uint64(0), size
        intervals[count, LEVEL], intervals[count, WEIGHT] = uint64(level), line[piece, 1]
        count += 1
        if last == high:
            return count
        first = uint64(last + one)
        piece += 1


@jit
def find_intervals_into(
    values: U64Array, first: int, stop: int, a: int, b: int, steps: I64Rows, line: U64Rows, intervals: U64Rows
) -> tuple[int, int]:
    """Runs of points of 0 .. last that weigh alike, none of which keeps more than 2^-level of that: all points.

    Shapes    as choose_point has them; intervals uint64[2 MOST_STEPS + pieces, 6]
    Cost      some 5 ns an interval
    Source    fastdp/mechanisms/interior_point.md, theorem 2
    Returns   how many there are, and the least loss
    Used by   choose_point
    Oracle    fastdp/mechanisms/rank_selection.py::choose_by_rank
    """
    m, last = values.size, line[line.shape[0] - 1, 0]
    am, middle, full = a * m, -(-(a * m) // b), steps[steps.shape[0] - 1, 0]
    least = loss_of_point(values, first, stop, a, b, values[middle - 1]) if m > 0 else 0
    left, right, count = uint64(0), uint64(0), 0
    one = uint64(1)
    for k in range(steps.shape[0]):
        if count > 0 and left == uint64(0) and right == last:
            break
        low, high, level = uint64(0), last, steps[k, 0]
        if level < full and m > 0:
            worst = least + steps[k, 1] - 1
            at, to = min(-((worst - am) // b), middle), max((am + worst) // b + 1, middle)
            low = values[at - 1] if at >= 1 else uint64(0)
            high = values[to - 1] if to <= m else last
        if count == 0:
            count = add_intervals(intervals, count, line, low, high, 1, level)
        else:
            if left > low:
                count = add_intervals(intervals, count, line, low, uint64(left - one), 0, level)
            if high > right:
                count = add_intervals(intervals, count, line, uint64(right + one), high, 1, level)
        left, right = low, high
    return count, least


@jit
def choose_point(
    values: U64Array, first: int, stop: int, a: int, b: int, rate: float, steps: I64Rows, line: U64Rows, key: U32Array,
    number: int,
) -> tuple[bool, int]:  # fmt: skip
    """A point z of 0 .. last, with probability proportional to w(z) e^(-rate F(z)), F as loss_of_point has it.

    Trial t reads word `number` + t of the streams 0, 2, 4, ... for the place among all weights, and of stream 1 for its
    coin.

    Shapes    values uint64[m], of which those from `first` to before `stop` are in order, and between the others;
              steps int64[k, 2], k at most MOST_STEPS: levels, and the least gap beyond each; key uint32[8]; line
              uint64[pieces + 1, 2]: the first point of each piece and ln w / ln 2 in it, and at last the last point
    Cost      1 us, and 0.3 us a trial, of which less than two are made
    Source    fastdp/mechanisms/interior_point.md, theorem 2
    Requires  b (m + 1) + the largest gap below 2^61; all points together weigh less than 2^120; rate within 2^-52 of
              eta / b; the ranks that are asked for in order, as `sort_ranks` puts them
    Returns   whether it is decided, and the point
    Used by   fastdp/mechanisms/rank_selection.py
    Oracle    fastdp/mechanisms/rank_selection.py::choose_by_rank
    """
    room = 2 * MOST_STEPS + line.shape[0]
    intervals, sums = np.empty((room, COLUMNS), np.uint64), np.empty((room + 1, LIMBS), np.uint64)
    count, least = find_intervals_into(values, first, stop, a, b, steps, line, intervals)
    deepest = int64(0)
    for i in range(count):
        deepest = max(deepest, int64(intervals[i, LEVEL]))
    for i in range(LIMBS):
        sums[0, i] = uint64(0)
    for i in range(count):
        finer = deepest - int64(intervals[i, LEVEL]) + int64(intervals[i, WEIGHT])
        add_weight(sums, i, intervals[i, SIZE_HIGH], intervals[i, SIZE_LOW], finer)
    top = LIMBS - 1
    while sums[count, top] == uint64(0):
        top -= 1
    place, all_words = stack(np.uint64, LIMBS), stack(np.uint64, _MOST_WORDS)
    words = all_words[: top + 2]
    source = expanded(key, stack(np.uint32, SCHEDULE))
    for t in range(_TRIALS):
        index = uint64(number + t)
        for j in range(words.size):
            words[j] = word_one(source, uint64(2 * j), index)
        if not share_into(sums[count], words, place):
            break
        i = interval_at(sums, count, place)
        level = int64(intervals[i, LEVEL])
        within = low_bits_beyond(place, sums, i, deepest - level + int64(intervals[i, WEIGHT]))
        z = uint64(intervals[i, FIRST] + within) if intervals[i, SIDE] else uint64(intervals[i, FIRST] - within)
        excess = loss_of_point(values, first, stop, a, b, z) - least
        exponent = float64(level) * LN2 - rate * float64(excess)
        chance = exp_one(min(exponent, 1.0)) if exponent > -600.0 else 0.0
        coin = float64(word_one(source, uint64(1), index)) / _TWO64
        if abs(coin - chance) <= _DOUBT:
            break
        if coin < chance:
            return True, z
    return False, uint64(0)
