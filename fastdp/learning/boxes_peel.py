"""method="peel" of `learn_box`: a cut for each side, after which the records beyond it are deleted.

boxes.md, theorems 3 and 4.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log

from ..kernels.layout import LN2
from ..mechanisms.weighted_intervals import IntervalChoice, Levels, WeightedInterval
from ..privacy.removal_lemma import lemma_eta
from .box_parameters import BoxAccount, BoxKeys, BoxProblem, SideParameters, by_composition, with_test
from .extremes import KEY_BITS, Numbers


@dataclass(frozen=True)
class BoxPeelParameters(SideParameters):
    """A cut on the left, then one on the right, in each column.

    The greatest are found together with the least: of those that the cut on the left spares, the greatest are the same,
    or these are all.
    """

    def choose_sides(self, numbers: Numbers, i: int, keys: BoxKeys) -> tuple[int, int]:
        size = numbers.orders[i].last + 1 << KEY_BITS
        least, greatest = (places.fine() for places in numbers.extremes(i, self.slice, keys.records))
        low = size - 1 - self.cut([size - 1 - y for y in reversed(least)], size).draw(keys.choices, 2 * i)
        high = self.cut([y for y in greatest if y >= low], size).draw(keys.choices, 2 * i + 1)
        if i + 1 < numbers.d:
            numbers.delete_beyond(i, low, high, keys.records)
        return low >> KEY_BITS, high >> KEY_BITS

    def cut(self, greatest: list[int], size: int) -> IntervalChoice:
        """The law with weights exp(-eta min(|N(c) - M/2|, M/2)) on 0 .. size - 1, N(c) = how many are above c.

        greatest    the M greatest, in ascending order; all if there are fewer
        """
        eta, half = Fraction(self.eta), self.slice // 2
        levels, full = Levels(eta), size.bit_length() + 64
        begins = [*reversed(greatest), 0]  # of the points that have so many above them
        ends = [size, *begins[:-1]]

        def distance(above: int) -> int:
            return min(abs(above - half), half)

        # losses count from the least there is: with hardly a record left all are large, and no proposal is accepted
        least = min(distance(above) for above, (y, end) in enumerate(zip(begins, ends, strict=True)) if y < end)
        intervals = [
            WeightedInterval(y, 1, end - y, min(full, levels.of(distance(above) - least)))
            for above, (y, end) in enumerate(zip(begins, ends, strict=True))
            if y < end
        ]
        return IntervalChoice(intervals, lambda c: eta * (distance(len(greatest) - bisect_right(greatest, c)) - least))


@lru_cache(256)
def prepare_peel(problem: BoxProblem) -> BoxPeelParameters:
    """Theorems 3 and 4."""

    def account(problem: BoxProblem) -> BoxAccount:
        privacy = problem.privacy
        by_lemma = lemma_eta(privacy.epsilon, privacy.delta, one_signed=False, neighbors=privacy.neighbors)
        return max(BoxAccount(by_lemma, "removal lemma"), by_composition(problem))

    def size(eta: float, beta: float) -> int:
        each = 2 * beta / 3
        events = problem.sides * problem.n / each
        half = max(1, ceil(ceil(log(events)) / 2))
        points = max(problem.bits) * LN2
        return 2 * ceil(half + (points + log(events / (2 * half)) + 2) / eta)

    return with_test(BoxPeelParameters, problem, account, size)
