"""Many quantiles whose errors do not add up: rough cuts between them, counts with noise, and a choice in each part.

Halving spreads the error of a cut over all quantiles below it. Where there are enough records for it, less is lost by
cutting roughly, counting the parts with Laplace noise, and choosing each quantile in its part by what the counts tell
of where it is. many_quantiles.md, "Counted parts". What is chosen here is chosen by public numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, zip_longest
from math import exp, sqrt
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Neighbors
from ..randomness.keys import Key
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE, laplace_plan
from ..support.rounding import down, up
from .quantile_draws import Division, Tell
from .quantile_plan import Node, Prices, QuantilePlan, Shares, in_order, levels_of, levels_of_all

FOR_SIZE = Fraction(1, 256)  # of epsilon, to learn how many records there are where that is private
_PARTS_OF_EPSILON = 64  # its shares are multiples of this
_FRACTIONS = tuple(Fraction(part, _PARTS_OF_EPSILON) for part in range(_PARTS_OF_EPSILON))
_ROUGH = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28)  # of these parts, for the cuts
_OFF = {1: 0.83, 3: 0.9}  # what the rule of thumb is off by, for parts of so many quantiles
_OFF_GROUPS = 1.0  # and of more
HALVED = 3  # quantiles that take two levels: of so many, halving was the more accurate on all columns tried
_MOST_LEVELS = 8  # of counts
_FINE = 2**28  # shares are multiples of 1 / this
_FAR = 2.0**30  # no estimate moves a quantile by more records


class Split(NamedTuple):
    """How epsilon is split: shares of the cuts, of the counts and of the answers; and what error that should leave.

    group    how many quantiles a part holds
    depth    how many levels of counts there are
    """

    error: float
    group: int
    depth: int
    cuts: Fraction
    counts: Fraction
    answers: Fraction


class _Grouping(NamedTuple):
    """What the error of parts of so many quantiles depends on, but for epsilon and the number of records."""

    group: int
    parts: int
    room: float
    depth: int
    counting: float
    answering: float
    cutting: float

    @classmethod
    def of(cls, shares: Sequence[Fraction], group: int) -> _Grouping:
        parts = -(-len(shares) // group)
        depth = min(range(1, _MOST_LEVELS + 1), key=lambda d: _count_variance(parts, d))
        answering, cutting = _halving_variance(group.bit_length()), _halving_variance((parts - 1).bit_length())
        return cls(group, parts, room_of(shares, group), depth, _count_variance(parts, depth), answering, cutting)


@lru_cache(64)
def _groupings(shares: tuple[Fraction, ...]) -> tuple[_Grouping, ...]:
    return tuple(
        _Grouping.of(shares, 2**h - 1) for h in range(1, len(shares).bit_length() + 1) if 2**h - 1 < len(shares)
    )


def splits(shares: Sequence[Fraction], epsilon: float, n: float) -> Iterator[Split]:
    """All that are considered, in an order that does not depend on n; more records leave none a larger error."""
    k = len(shares)
    within = min(max(epsilon, 2.0**-400), 2.0**400)  # whose squares are floats
    for group, parts, room, depth, counting, answering, cutting in _groupings(in_order(shares)):
        records = n * room
        weight = answering ** (1 / 3) / (answering ** (1 / 3) + counting ** (1 / 3))
        for rough in _ROUGH:
            rest = _PARTS_OF_EPSILON - rough
            answers = min(max(round(rest * weight), 1), rest - 1)
            of_each = [part / _PARTS_OF_EPSILON * within for part in (rough, rest - answers, answers)]
            spread = sqrt(cutting / 2) / of_each[0]  # the scale of the cuts' error
            beyond = 2 * (parts - 1) / k * spread * exp(-records / spread)
            error = sqrt(counting / of_each[1] ** 2 + answering / of_each[2] ** 2) + beyond
            error *= _OFF.get(group, _OFF_GROUPS)
            yield Split(error, group, depth, _FRACTIONS[rough], _FRACTIONS[rest - answers], _FRACTIONS[answers])


def room_of(shares: Sequence[Fraction], group: int) -> float:
    """The least share of the records between a cut and the quantiles on its sides."""
    return min(float(shares[i] - shares[i - 1]) for i in range(group, len(shares), group)) / 2


@lru_cache(64)
def _halving(shares: Shares, epsilon: float, delta: float, neighbors: Neighbors) -> QuantilePlan:
    return QuantilePlan.of(shares, epsilon=epsilon, delta=delta, neighbors=neighbors)


def choose_method(
    shares: Sequence[Fraction], epsilon: Fraction, delta: float, neighbors: Neighbors, n: float, public: int | None
) -> QuantilePlan | CountedPlan:
    """Halving or counted parts, whichever should be more accurate for about n records; n is `public`, or not."""
    halving = _halving(in_order(shares), down(epsilon), delta, neighbors)
    if len(halving.shares) > HALVED and n > 0:
        split = min(splits(halving.shares, of_one_record(epsilon, neighbors), n), key=itemgetter(0))
        if split.error < halving_error(halving.each, halving.levels, neighbors):
            counted = CountedPlan(halving.shares, split, epsilon, neighbors, public)
            if counted.can_count:
                return counted
    return halving


@lru_cache(64)
def rho_of_any(shares: Shares, epsilon: Fraction, delta: float, neighbors: Neighbors) -> Fraction:
    """Of a release whose method is chosen by a noisy number of records, that number included: theorem 4."""
    left = epsilon * (1 - FOR_SIZE)
    counted = (CountedPlan(shares, split, left, neighbors, None).rho for split in splits(shares, float(left), 1.0))
    return (epsilon * FOR_SIZE) ** 2 / 2 + max(_halving(shares, down(left), delta, neighbors).rho, *counted)


def of_one_record(epsilon: Fraction, neighbors: Neighbors) -> float:
    """What one of the records that a neighbour changes may cost."""
    return float(epsilon if neighbors == "add-remove" else epsilon / 2)


def noisy_size(m: int, epsilon: Fraction, key: Key) -> float:
    """How many records there are, for a share of epsilon under add-remove; 0 where its noise would be too large."""
    scale = up(1 / (epsilon * FOR_SIZE))
    return float(m + int(integer_noise(laplace_plan(scale), key, 1)[0])) if MIN_SCALE <= scale <= MAX_SCALE else 0.0


def halving_error(each: float, levels: int, neighbors: Neighbors) -> float:
    """The root mean square error of halving with levels of such a range, by the same rule of thumb."""
    return sqrt(_halving_variance(levels)) / levels / (each if neighbors == "add-remove" else each / 2)


def _halving_variance(levels: int) -> float:
    """Of halving at epsilon 1, in ranks: errors of a level are spread over its parts like hats."""
    return 2 * (1 + (levels - 1) / 3) * levels * levels


def _count_variance(parts: int, depth: int) -> float:
    """Of the number of records up to a part, from counts in so many levels at epsilon 1."""
    return (1.0 if depth == 1 else 0.9) * 2 * depth**3 * _branching(parts, depth) / 6


def _branching(parts: int, depth: int) -> int:
    """The least number whose power `depth` is that of the parts."""
    found = max(1, int(float(parts) ** (1 / depth)) - 1)
    while found**depth < parts:
        found += 1
    return found


class _Parts(NamedTuple):
    """Where parts of some shares end, as shares of all records: exactly, and as whole numbers as all shares are."""

    between: Shares
    asked: tuple[int, ...]
    planned: tuple[int, ...]

    @property
    def can_count(self) -> bool:
        """Whether quantiles are far enough apart."""
        return all(one < other for one, other in pairwise((0, *self.asked, _FINE)))


@lru_cache(64)
def _parts_of(shares: Shares, group: int) -> _Parts:
    between = Shares((shares[i - 1] + shares[i]) / 2 for i in range(group, len(shares), group))
    planned = (0, *(round(share * _FINE) for share in between), _FINE)
    return _Parts(between, tuple(round(share * _FINE) for share in shares), planned)


@lru_cache(64)
def _answers_of(parts: _Parts, group: int, prices: Prices) -> tuple[tuple[Node, ...], ...]:
    """The choices within parts, but for what counts add to them. All of a level together.

    Nodes are numbered as their cuts are: every part has one more than it has quantiles.
    """
    levels = []
    for i, first in enumerate(range(0, len(parts.asked), group)):
        ends, place = (parts.planned[i], parts.planned[i + 1]), first + i  # place of the part's first cut
        levels.append(
            [
                [
                    node._replace(middle=node.middle + place, first=node.first + place, stop=node.stop + place)
                    for node in one
                ]
                for one in levels_of(parts.asked[first : first + group], ends, prices, everything=False)
            ]
        )
    return tuple(tuple(node for nodes in some for node in nodes) for some in zip_longest(*levels, fillvalue=[]))


def _with_offsets(nodes: Sequence[Node], up_to: NDArray[np.float64]) -> list[Node]:
    """How far quantiles are from their planned shares of parts, by how many records there are up to each cut."""
    first, middle, stop = (np.array([node[i] for node in nodes], np.intp) for i in (1, 0, 2))
    tau, units = np.array([float(node.tau) for node in nodes]), np.array([node.terms.b for node in nodes], np.float64)
    low, high = up_to[first], up_to[stop + 1]
    ranks = (up_to[middle + 1] - low) - tau * (high - low)
    offsets = np.rint(np.clip(ranks, -_FAR, _FAR) * units).astype(np.int64).tolist()
    return [Node(*node[:7], offset) for node, offset in zip(nodes, offsets, strict=True)]


def _longest(levels: int) -> int:
    """Of so many levels the largest sum of squares of ranges, in units of one: two of them may be one of twice that."""
    return levels + 2 if levels > 1 else 1


@dataclass(frozen=True)
class CountedPlan:
    """The parameters of a release, from public numbers: theorem 4 of many_quantiles.md has the prices.

    epsilon    what cuts, counts and answers cost together
    n          how many records there are, where that is public
    """

    shares: tuple[Fraction, ...]
    split: Split
    epsilon: Fraction
    neighbors: Neighbors
    n: int | None

    @property
    def can_count(self) -> bool:
        """Whether the counts' noise is of a scale that can be drawn, and quantiles are far enough apart."""
        return self._parts.can_count and MIN_SCALE <= self.scale <= MAX_SCALE

    @property
    def scale(self) -> float:
        """Of the noise of the counts."""
        moved = 1 if self.neighbors == "add-remove" else 2  # counts of a level, by one each
        return up(moved * self.split.depth / (self.epsilon * self.split.counts))

    @property
    def width(self) -> int:
        """How many counts of a level are one of the level above."""
        return _branching(-(-len(self.shares) // self.split.group), self.split.depth)

    @cached_property
    def _parts(self) -> _Parts:
        return _parts_of(in_order(self.shares), self.split.group)

    @property
    def between(self) -> Shares:
        """The shares at which the records are cut."""
        return self._parts.between

    @property
    def rho(self) -> Fraction:
        """Of cuts, counts and answers: theorem 4."""
        split, moved = self.split, 1 if self.neighbors == "add-remove" else 2
        cut_levels, levels = len(self.between).bit_length(), split.group.bit_length()
        units = (
            split.cuts**2 * _longest(cut_levels) / (8 * cut_levels**2)
            + split.counts**2 / (2 * moved * split.depth)
            + split.answers**2 * _longest(levels) / (8 * levels**2)
        )
        return self.epsilon**2 * units

    @property
    def cut_prices(self) -> Prices:
        return self._prices(self.split.cuts, len(self.between).bit_length())

    @property
    def answer_prices(self) -> Prices:
        return self._prices(self.split.answers, self.split.group.bit_length())

    def _prices(self, part: Fraction, levels: int) -> Prices:
        return Prices(down(self.epsilon * part / levels), self.neighbors, 2)

    def draw(self, division: Division, key: Key, tell: Tell | None = None) -> list[int]:
        """The cuts at the quantiles, in order; `key` is that of the counts."""
        group, k = self.split.group, len(self.shares)
        firsts = range(0, k, group)
        between = self.between
        ends, ranks = division.bounded([0] * len(between))
        division.divide(levels_of_all(between, self.cut_prices, divide=True), ends, ranks, 0)
        estimated = self._estimated(np.diff(ranks).astype(np.int64), key)
        up_to = np.concatenate([[0.0], np.cumsum(estimated)])
        cuts, counts = [ends[0]], [ranks[0]]  # each part's first cut, what is to be found in it, and so on
        for i, first in enumerate(firsts):
            inside = min(group, k - first)
            cuts += [*[0] * inside, ends[i + 1]]
            counts += [*[0] * inside, ranks[i + 1]]
        division.divide(self._answers(up_to), cuts, counts, k, tell)
        return [cuts[i + i // group + 1] for i in range(k)]

    def _answers(self, up_to: NDArray[np.float64]) -> Iterator[list[Node]]:
        """The choices within parts, level by level; so many records are estimated before each part."""
        group, asked = self.split.group, np.array(self._parts.asked, np.float64)
        planned = np.insert(asked * (up_to[-1] / _FINE), np.arange(0, asked.size, group), up_to[:-1])
        for nodes in _answers_of(self._parts, group, self.answer_prices):
            yield _with_offsets(nodes, np.append(planned, up_to[-1]))

    def _estimated(self, counts: NDArray[np.int64], key: Key) -> NDArray[np.float64]:
        """The counts, from noisy ones of ever smaller groups of parts: the least squares of Hay et al. (2010).

        Each count is averaged with the sum of those that it consists of; then each level is made to fit the one above.
        """
        depth, parts, width = self.split.depth, counts.size, self.width
        sizes = [width ** (depth - 1 - level) for level in range(depth)]
        sums = [np.add.reduceat(counts, np.arange(0, parts, size)) for size in sizes]
        noise = integer_noise(laplace_plan(self.scale), key, sum(each.size for each in sums))
        added = np.split(noise, np.cumsum([each.size for each in sums])[:-1])
        measured = [(exact + more).astype(np.float64) for exact, more in zip(sums, added, strict=True)]
        parents = [np.arange(each.size) // width for each in sums]
        for level in range(depth - 2, -1, -1):
            height = float(width) ** (depth - level)
            own = 1.0 if width == 1 else (height - height / width) / (height - 1)
            below = np.bincount(parents[level + 1], measured[level + 1])
            measured[level] = own * measured[level] + (1 - own) * below
        found = measured[0]
        if self.n is not None:
            found = found + (self.n - found.sum()) / found.size
        for level in range(1, depth):
            missing = found - np.bincount(parents[level], measured[level])
            found = measured[level] + (missing / np.bincount(parents[level]))[parents[level]]
        return found
