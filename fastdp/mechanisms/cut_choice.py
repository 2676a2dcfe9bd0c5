"""One private choice of a cut within a part of ordered records: the law, in integers.

A part is an interval of cuts and the records between them. A cut z of a part of m records loses, for the share a/b,

    F(z) = |b #{records up to z} - t|                                     where the part is divided there,
    F(z) = max(b #{x < v} - t, t - b #{x <= v}), v the number at z        where that number is all that is asked,

t = a m + offset, in units of 1/b of a rank, and is drawn with probability proportional to exp(-eta F(z) / b):
many_quantiles.md, theorem 2.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, count
from math import ceil

from ..randomness import exact_draws as exact
from ..randomness.exact_draws import Words
from .cut_line import HIGHEST, LOWEST, CutLine
from .cut_records import CutRecords
from .weighted_intervals import LN2_UP, TRIALS, WeightedInterval

_STEP_BITS = 50


@dataclass(frozen=True)
class Part:
    """Cuts low .. high, and the records between them: those of ranks first + 1 .. stop of all."""

    low: int
    high: int
    first: int
    stop: int


def full_level(part: Part) -> int:
    """2^-full of all cuts together does not matter."""
    return (part.high - part.low + 1).bit_length() + 2


@lru_cache(2**14)
def steps_of(rate: Fraction) -> tuple[int, int]:
    """step / 2^bits is by how much losses grow while weights halve, or a little more: 52 bits of it."""
    halving = LN2_UP / rate
    bits = max(0, _STEP_BITS - (halving.numerator.bit_length() - halving.denominator.bit_length()))
    bits = min(bits, _STEP_BITS)
    return ceil(halving * 2**bits), bits


class CutChoice:
    """The choice for the share tau of the records of a part, and so many of 1/b of a record more.

    divides    whether the part is divided at the cut; otherwise only the number at the cut matters
    """

    def __init__(
        self, records: CutRecords, line: CutLine, part: Part, tau: Fraction, eta: Fraction, *, divides: bool,
        offset: int = 0,
    ) -> None:  # fmt: skip
        self._records, self._line, self._part, self._divides = records, line, part, divides
        self.b, self.m = tau.denominator, part.stop - part.first
        self.target = tau.numerator * self.m + offset
        self._middle = min(max(-(-self.target // self.b), 1), self.m)  # the rank of a record that loses least
        self.rate = eta / self.b
        self._least = self._least_loss()
        self.intervals = list(self._intervals())
        self._open = max(interval.level for interval in self.intervals)
        self._sums = list(accumulate(each.size << self._open - each.level for each in self.intervals))

    def loss(self, z: int) -> int:
        """F of a cut."""
        position, low = self._line.place(z)
        if self._divides:
            return abs(self.b * self._within(position, low) - self.target)
        below, up_to = self._within(position, LOWEST), self._within(position, HIGHEST)
        return max(self.b * below - self.target, self.target - self.b * up_to)

    def _within(self, position: int, low: int) -> int:
        """How many records of the part are at most that."""
        return min(max(self._records.up_to(position, low) - self._part.first, 0), self.m)

    def _least_loss(self) -> int:
        if not self.m:
            return abs(self.target)
        middle = self._clipped(self._line.cut(*self._record(self._middle)))
        least = self.loss(middle)
        if self._divides and middle > self._part.low:
            least = min(least, self.loss(middle - 1))
        return least

    def _record(self, rank: int) -> tuple[int, int]:
        return self._records.at(self._part.first + rank)

    def _clipped(self, z: int) -> int:
        return min(max(z, self._part.low), self._part.high)

    def _level_set(self, worst: int) -> tuple[int, int]:
        """The first and the last cut that lose at most that, which is at least the least loss."""
        target, b, m, part = self.target, self.b, self.m, self._part
        if self._divides:
            first, stop = -((worst - target) // b), (target + worst) // b + 1
            low = part.low if first < 1 else self._clipped(self._line.cut(*self._record(first)))
            high = part.high if stop > m else self._line.cut(*self._record(stop)) - 1
            return low, high
        first, stop = min(-((worst - target) // b), self._middle), max((target + worst) // b + 1, self._middle)
        low = part.low if first < 1 else self._clipped(self._line.cut(self._number(first), LOWEST))
        high = part.high if stop > m else self._clipped(self._line.end(self._number(stop)))
        return low, high

    def _number(self, rank: int) -> int:
        return self._records.value_at(self._part.first + rank)

    def _intervals(self) -> list[WeightedInterval]:
        """Runs of cuts, none of which weighs more than 2^-level of the best: all cuts of the part, each once."""
        part, (step, bits) = self._part, steps_of(self.rate)
        full = full_level(part)
        found: list[WeightedInterval] = []
        left, right = part.high + 1, part.high  # where the intervals so far begin and end
        gap = 0
        while left > part.low or right < part.high:
            level = min(full, (gap << bits) // step)
            next_gap = max(gap + 1, -(-(level + 1) * step >> bits))
            low, high = part.low, part.high
            if level < full and self.m:
                low, high = self._level_set(self._least + next_gap - 1)
            if not found:
                found.append(WeightedInterval(low, 1, high - low + 1, level))
            else:
                found.append(WeightedInterval(low, 1, left - low, level))
                found.append(WeightedInterval(right + 1, 1, high - right, level))
            left, right, gap = low, high, next_gap
        return [interval for interval in found if interval.size]

    def draw(self, words: Words, choice: int) -> int:
        """Choice number `choice` of a release.

        Trial t reads word t of the streams 0, 4, 8, ... for the interval, 2, 6, 10, ... for the cut in it, and
        1, 3, 5, ... for its coin, counted from `choice` times TRIALS.
        """
        for t in count(choice * TRIALS):
            place = exact.uniform_below(self._sums[-1], exact.Uniform(0, 0, (words(s, t) for s in count(0, 4))))
            interval = self.intervals[bisect_right(self._sums, place)]
            z = interval.first + exact.uniform_below(
                interval.size, exact.Uniform(0, 0, (words(s, t) for s in count(2, 4)))
            )
            if exact.is_below_exp(
                exact.proposal_coin(words, t), -self.rate * (self.loss(z) - self._least), interval.level
            ):
                return z
        raise AssertionError("a share of the proposals is accepted")
