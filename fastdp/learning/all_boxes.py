"""The exponential mechanism over all boxes of a grid in one or two dimensions, exactly: all_boxes.md.

A box is chosen with probability proportional to exp(-eta errors). Floats propose, by sums over all boxes that are right
to a few digits (kernels/boxes.py); integers decide. Nothing here validates, charges or reads a relation: callers
(`learn_box`) take eta from all_boxes.md, theorem 2, and refuse what is more than MOST_WORK before they read a record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import accumulate, count
from math import floor, isqrt, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import boxes as kernels
from ..randomness import exact_draws as exact
from ..randomness.keys import word_source
from ..support.progress import PublicSteps, Report
from ..support.threads import run_chunks

Box = tuple[tuple[int, int], ...]  # the least and the largest position on each axis
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Scratch = tuple[Floats, Integers, Integers]

MOST_WORK = 1 << 30  # nodes of a tree made anew: 10 s on one core
MOST_EXPONENT = 2**48  # eta n; levels of kernels/boxes.py stay far within an int64
_RECORD = 128  # work of a record: sorting it costs as much as so many nodes
_ABOVE = Fraction(65, 64)  # no weight is above its proposal by more: all_boxes.md, lemma 2
_STREAMS = 8  # number k of a trial reads streams k, k + 8, k + 16, ...
_STEPS = 32  # of progress: how many values there are is not told
_CHUNK = 16  # sweeps that are worth a thread
_POSITION, _COIN = 4, 5


def class_size(bits: tuple[int, ...]) -> int:
    """How many boxes there are: all [a, b] with a <= b on every axis, and the empty one."""
    return 1 + prod((1 << b) * ((1 << b) + 1) // 2 for b in bits)


def work_of(n: int, bits: tuple[int, ...]) -> int:
    """How much work up to n records can make, whatever they are: to be compared with MOST_WORK."""
    if len(bits) == 1:
        return _RECORD * n
    first, second = (min(n, 1 << b) for b in sorted(bits))
    cells, depth = min(n, 1 << sum(bits)), max(1, (second - 1).bit_length())
    sparse = (first * cells - first * (first - 1) // 2) * depth  # group b has been added once for each a <= b
    dense = first * (first + 1) // 2 << depth + 1
    return _RECORD * n + 2 * first * second + min(sparse, dense)


class Wheel:
    """Pairs value 2^level, rounded up to integers, in units of 2^unit, that add up to `total` < 2^63."""

    def __init__(self, values: Floats, levels: Integers) -> None:
        bits = 62 - len(values).bit_length()
        self.unit = int((levels + np.frexp(values)[1]).max()) - bits
        shifts = np.clip(levels - self.unit, -2000, 2000).astype(np.int32)
        self._sums = np.cumsum(np.ldexp(values, shifts).astype(np.int64) + 1)
        self.total = int(self._sums[-1])

    def weight(self, i: int) -> int:
        return int(self._sums[i]) - (int(self._sums[i - 1]) if i else 0)

    def at(self, place: int) -> int:
        """Whose share a place in 0 .. total - 1 is."""
        return int(np.searchsorted(self._sums, place, "right"))


class Axis:
    """The positions 0 .. 2^bits - 1 and the distinct ones of the records, `values`.

    An interval that holds values is in class (a, b) if value a is the first of them and b the last: it starts at
    low[a] .. values[a] and ends at values[b] .. high[b]. The others are hollow.
    """

    def __init__(self, keys: NDArray[np.uint64], bits: int) -> None:
        self.values, self.ranks = np.unique(keys, return_inverse=True)
        self.size = 1 << bits
        one = np.uint64(1)
        self.low, self.high = np.zeros_like(self.values), np.full_like(self.values, self.size - 1)
        self.low[1:], self.high[:-1] = self.values[:-1] + one, self.values[1:] - one
        self.starts = (self.values - self.low).astype(np.float64) + 1.0
        self.ends = (self.high - self.values).astype(np.float64) + 1.0
        self.intervals = self.size * (self.size + 1) // 2
        self.hollow = self.intervals - sum(self._held())

    def __len__(self) -> int:
        return int(self.values.size)

    def _held(self) -> Iterator[int]:
        """How many intervals have each value as their first."""
        last = 0
        for value in self.values.tolist():
            yield (value + 1 - last) * (self.size - value)
            last = value + 1

    def _gaps(self) -> Iterator[tuple[int, int]]:
        """Where each gap between values begins, and its length; those beyond the ends too, and those of length 0."""
        begin = 0
        for value in self.values.tolist():
            yield begin, value - begin
            begin = value + 1
        yield begin, self.size - begin

    def count(self, a: int, b: int) -> int:
        """How many intervals are in class (a, b)."""
        return (int(self.values[a] - self.low[a]) + 1) * (int(self.high[b] - self.values[b]) + 1)

    def of_class(self, a: int, b: int, place: int) -> tuple[int, int]:
        start, end = divmod(place, int(self.high[b] - self.values[b]) + 1)
        return int(self.low[a]) + start, int(self.values[b]) + end

    def any_interval(self, place: int) -> tuple[int, int]:
        return _pair(place)

    def holding(self, place: int) -> tuple[int, int]:
        """Of those that are not hollow."""
        sums = list(accumulate(self._held(), initial=0))
        a = bisect_right(sums, place) - 1
        start, end = divmod(place - sums[a], self.size - int(self.values[a]))
        return int(self.low[a]) + start, int(self.values[a]) + end

    def hollow_interval(self, place: int) -> tuple[int, int]:
        gaps = list(self._gaps())
        sums = list(accumulate((length * (length + 1) // 2 for _, length in gaps), initial=0))
        gap = bisect_right(sums, place) - 1
        a, b = _pair(place - sums[gap])
        return gaps[gap][0] + a, gaps[gap][0] + b


class Proposal(NamedTuple):
    """So many boxes with one weight, proposed together: those of four classes, or all hollow ones."""

    classes: tuple[int, int, int, int] | None
    boxes: int
    net: int  # the errors of each of them, but for the positives of all records
    mass: Fraction  # `boxes` e^(-eta net) is at most _ABOVE mass 2^unit


class BoxChoice:
    """The law with weights exp(-eta errors(box)) on all boxes and the empty box: all_boxes.md, theorem 1.

    errors(box) counts the records with a true label outside the box and those with a false label inside.

    keys      uint64[n, d], d = 1 or 2, every key of axis i below 2^bits[i]
    labels    bool[n]
    bits      one of 0 .. 64 for each axis
    eta       eta n <= MOST_EXPONENT, and work_of(n, bits) <= MOST_WORK, which is where lemma 2 has been proved
    report    called with the progress of the sums
    """

    def __init__(
        self,
        keys: NDArray[np.uint64],
        labels: NDArray[np.bool_],
        bits: tuple[int, ...],
        eta: Fraction,
        report: Report = lambda done, total, what: None,
    ) -> None:
        self.eta = eta
        self._order = sorted(range(len(bits)), key=lambda i: bits[i])  # the first axis costs most: the shortest
        axes = [Axis(keys[:, i], bits[i]) for i in self._order]
        if len(axes) == 1:  # one dimension: beside an axis of one point, which is 0 for all records
            axes = [Axis(np.zeros(len(keys), np.uint64), 0), *axes]
        self._first, self._second = first, second = axes
        # boxes with a hollow side, and the empty one
        self._hollow = 1 + first.hollow * second.intervals + (first.intervals - first.hollow) * second.hollow
        self._set_cells(labels)
        self._set_powers(len(labels))
        self._set_tree()
        weights: list[tuple[float, int]] = []
        block = max(1, len(first) // 64 // _CHUNK) * _CHUNK
        steps = PublicSteps(report, _STEPS, "boxes")
        for at in range(0, len(first), block):
            steps.begin(at * _STEPS // len(first))
            for part in run_chunks(partial(self._weight_of, at), min(block, len(first) - at), _CHUNK):
                weights += part
        steps.end()
        size = self._hollow.bit_length()
        weights.append((float(Fraction(self._hollow, 1 << size)), size))
        self._starts = Wheel(np.array([w for w, _ in weights]), np.array([level for _, level in weights], np.int64))

    def _set_cells(self, labels: NDArray[np.bool_]) -> None:
        """The distinct pairs of values, in order, and for each the negatives less the positives."""
        m1, m2 = len(self._first), len(self._second)
        codes = self._first.ranks.astype(np.int64) * m2 + self._second.ranks.astype(np.int64)
        cells, which = np.unique(codes, return_inverse=True)
        nets = np.bincount(which, 1.0 - 2.0 * labels, len(cells)).astype(np.int64)
        self._cells = np.stack((cells % max(m2, 1), nets))
        self._offsets = np.searchsorted(cells, np.arange(m1 + 1) * m2).astype(np.int64)

    def _set_powers(self, n: int) -> None:
        """e^(-eta c) for all c = -n .. n."""
        ln2 = exact.ln2_bounds(128 + floor(self.eta).bit_length())[0]
        level = -floor(self.eta / ln2)
        rest = min(-self.eta - level * ln2, Fraction(0))  # e^-eta = 2^level e^rest, 1/2 < e^rest <= 1
        base = max(0.5, exact.exp_bounds(rest, 128)[0] / 2**128)
        self._powers, self._power_levels = np.empty(2 * n + 1), np.empty(2 * n + 1, np.int64)
        kernels.fill_powers_into(base, level, self._powers, self._power_levels)
        self._zero = n

    def _set_tree(self) -> None:
        axis = self._second
        size = 1 << max(0, len(axis) - 1).bit_length()
        self._values, self._levels = np.empty((2 * size, 3)), np.empty((2 * size, 4), np.int64)
        self._sides = np.stack((axis.starts, axis.ends))
        kernels.build_tree_into(self._sides, self._powers, self._power_levels, self._values, self._levels)

    def _scratch(self) -> Scratch:
        size = len(self._values) // 2
        return np.empty_like(self._values), np.empty_like(self._levels), np.empty(size, np.int64)

    def _weight_of(self, at: int, start: int, stop: int) -> list[tuple[float, int]]:
        """The weight of all boxes of classes (a, ...), for a = at + start .. at + stop - 1."""
        weights, scratch = [], self._scratch()
        for a in range(at + start, at + stop):
            sums, levels = self._sweep(a, scratch)
            kernels.sum_suffixes_into(sums, levels, sums, levels)
            weights.append((float(sums[0]), int(levels[0])))
        return weights

    def _sweep(self, a: int, scratch: Scratch) -> tuple[Floats, Integers]:
        """The weights of all boxes of classes (a, b, ...), for b = a, a + 1, ..."""
        values, levels, stale = scratch
        values[:], levels[:] = self._values, self._levels
        sums, sum_levels = np.empty(len(self._first) - a), np.empty(len(self._first) - a, np.int64)
        kernels.sweep_into(
            self._offsets[a:], self._cells, self._sides, self._powers, self._power_levels, values, levels, stale, sums,
            sum_levels,
        )  # fmt: skip
        sums *= self._first.starts[a] * self._first.ends[a:]
        return sums, sum_levels

    def _propose(self, pick: Callable[[int, Wheel], int]) -> Proposal:
        """Class by class: pick(k, wheel) is asked for k = 0 .. 3, and 0 alone for the hollow boxes."""
        first, second = self._first, self._second
        a1 = pick(0, self._starts)
        mass = Fraction(self._starts.weight(a1))
        if a1 == len(first):
            return Proposal(None, self._hollow, 0, mass)
        wheel = Wheel(*self._sweep(a1, self._scratch()))
        b1 = pick(1, wheel)
        mass *= Fraction(wheel.weight(b1), wheel.total)
        b1 += a1

        cells = slice(self._offsets[a1], self._offsets[b1 + 1])
        places, nets = self._cells[:, cells]
        nets = np.bincount(places, nets, len(second)).astype(np.int64)
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(nets)))  # of the values before each
        at = self._zero + sums[1:]
        ends, end_levels = second.ends * self._powers[at], self._power_levels[at]
        beyond, beyond_levels = np.empty_like(ends), np.empty_like(end_levels)
        kernels.sum_suffixes_into(ends, end_levels, beyond, beyond_levels)
        at = self._zero - sums[:-1]
        wheel = Wheel(second.starts * self._powers[at] * beyond, self._power_levels[at] + beyond_levels)
        a2 = pick(2, wheel)
        mass *= Fraction(wheel.weight(a2), wheel.total)
        wheel = Wheel(ends[a2:], end_levels[a2:])
        b2 = pick(3, wheel)
        mass *= Fraction(wheel.weight(b2), wheel.total)
        b2 += a2
        boxes = first.count(a1, b1) * second.count(a2, b2)
        return Proposal((a1, b1, a2, b2), boxes, int(sums[b2 + 1] - sums[a2]), mass)

    def _accepts(self, proposal: Proposal, coin: exact.Uniform) -> bool:
        """With probability boxes e^(-eta net) / (_ABOVE mass 2^unit)."""
        factor = proposal.boxes / (proposal.mass * _ABOVE)
        return exact.is_below_product(coin, factor, -self._starts.unit, -self.eta * proposal.net)

    def _box(self, proposal: Proposal, place: int) -> Box | None:
        """Box number `place` of a proposal."""
        first, second = self._first, self._second
        if proposal.classes is not None:
            a1, b1, a2, b2 = proposal.classes
            one, other = divmod(place, second.count(a2, b2))
            found = first.of_class(a1, b1, one), second.of_class(a2, b2, other)
        elif place == 0:
            return None
        elif (place := place - 1) < first.hollow * second.intervals:
            one, other = divmod(place, second.intervals)
            found = first.hollow_interval(one), second.any_interval(other)
        else:
            one, other = divmod(place - first.hollow * second.intervals, second.hollow)
            found = first.holding(one), second.hollow_interval(other)
        if len(self._order) == 1:
            return (found[1],)
        return found if self._order == [0, 1] else found[::-1]

    def draw(self, key: NDArray[np.uint32]) -> Box | None:
        """A box, None for the empty one. Number k of trial t is word t of streams k, k + 8, k + 16, ..."""
        words = word_source(key)
        for t in count():
            number = partial(_number, words, t)
            proposal = self._propose(partial(_spin, number))
            if self._accepts(proposal, number(_COIN)):
                return self._box(proposal, exact.uniform_below(proposal.boxes, number(_POSITION)))
        raise AssertionError("almost all proposals are accepted")


def _number(words: exact.Words, t: int, k: int) -> exact.Uniform:
    return exact.Uniform(0, 0, (words(stream, t) for stream in count(k, _STREAMS)))


def _spin(number: Callable[[int], exact.Uniform], k: int, wheel: Wheel) -> int:
    return wheel.at(exact.uniform_below(wheel.total, number(k)))


def _pair(place: int) -> tuple[int, int]:
    """Number `place` of the pairs a <= b: those with b = 0, with b = 1, ..."""
    b = (isqrt(8 * place + 1) - 1) // 2
    return place - b * (b + 1) // 2, b
