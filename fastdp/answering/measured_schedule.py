"""The numbers of answers that are measured where a test fires: epochs, noise scales, threshold and error bound.

All from public numbers; nothing here sees a record. multiplicative_weights_measured.md: theorems 1 and 2 are the
proofs, and "Defaults" has the reasons for the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, inf, log, sqrt
from typing import ClassVar, Literal

import numpy as np

from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE
from ..support.rounding import down, up
from ..support.search import greatest_integer, least_float
from .multiplicative_weights_price import Share, Total
from .queries.bound_query import UNIT

_TESTS = Fraction(7, 10)  # of an epoch's share, the rest measures
_FALSE = 0.3  # of all updates that noise alone may use up, where all queries are asked
_STEEPNESS = {False: 2.0, True: 0.25}  # updates times threshold, over n: without a prior, with one
_FEWEST = 8  # updates by default, where there may be as many
_MEASURED_BETA = Fraction(1, 64)  # of beta, for measurements; the rest is for tests
_MOST_UPDATES = 1 << 24


@dataclass(frozen=True)
class MeasuredSchedule:
    """The numbers of one run; scales and threshold in units of 2^-16 records."""

    variant: ClassVar[Literal["measured"]] = "measured"
    alpha: float  # as long as epochs are left, all answers are within alpha, with probability 1 - beta
    measured_alpha: float  # those that were measured, at the same time
    updates: int  # epochs, at most
    share: Share  # of the total, that each costs
    threshold_scale: float
    query_scale: float
    measurement_scale: float
    deviation: float  # of a measurement
    threshold: int


@dataclass(frozen=True)
class Scales:
    """The noise of one epoch; in units of 2^-16 records."""

    first: float  # of the threshold
    second: float  # of queries
    third: float  # of measurements

    @property
    def largest(self) -> float:
        """Noise is drawn up to MAX_SCALE."""
        return max(self.first, self.second, self.third)


@dataclass(frozen=True)
class MeasuredNumbers:
    """What a schedule is made of, from public numbers."""

    total: Total
    share: Share  # of the total, for all epochs
    queries: int
    beta: float
    cells: int
    has_prior: bool

    def scales(self, updates: int) -> Scales:
        """The least noise that an epoch's share pays for: theorem 1."""
        share = Fraction(down(self.share / updates))
        epsilon = self.total.tests(share * _TESTS)
        if not epsilon > 2.0**-40:
            return Scales(2 * MAX_SCALE, 2 * MAX_SCALE, 2 * MAX_SCALE)
        # threshold and queries: u / b1 + 2 u / b2 = epsilon, split where the sum of their tails is least
        a, b = (log(4 * count) - log(self.beta) for count in (updates, self.queries))
        first = max(MIN_SCALE, up(UNIT * Fraction(1 + sqrt(2 * b / a)) / Fraction(epsilon)))
        rest = Fraction(epsilon) - UNIT / Fraction(first)
        second = max(MIN_SCALE, up(2 * UNIT / rest))
        return Scales(first, second, self.total.noise_scale(UNIT, share - self.total.of_tests(epsilon)))

    def rough_scales(self, updates: int) -> Scales:
        """About the same, to choose by: a hundred times as quick."""
        share = float(self.share) / updates
        epsilon = max(self.total.rough_tests(share * float(_TESTS)), 2.0**-60)
        a, b = (log(4 * count) - log(self.beta) for count in (updates, self.queries))
        first = UNIT * (1 + sqrt(2 * b / a)) / epsilon
        second = 2 * UNIT / (epsilon - UNIT / first)
        return Scales(first, second, self.total.rough_noise_scale(UNIT, share * float(1 - _TESTS)))

    def threshold(self, updates: int, scales: Scales, part: float = _FALSE) -> float:
        """Above which noise alone lifts a query so seldom that this part of the updates is left for all queries."""
        return float(scales.second * max(1.0, log(self.queries) - log(part * updates)))

    def rough_error(self, updates: int) -> float:
        """About what the error bound is while updates are left."""
        scales = self.rough_scales(updates)
        first, second = (log(2 * count) - log(self.beta) for count in (updates, self.queries))
        return self.threshold(updates, scales) + scales.first * first + scales.second * second

    def _least_threshold(self, updates: int) -> float:
        """In records: below, noise alone would use up all updates."""
        return float(self.threshold(updates, self.scales(updates), 1.0) / UNIT)

    @property
    def most_updates(self) -> int:
        """For which noise can be drawn; more than queries or cells are of no use."""
        most = min(self.queries, self.cells, _MOST_UPDATES)
        return greatest_integer(lambda c: self.rough_scales(c).largest <= MAX_SCALE / 2, low=1, high=most)

    def updates(self, n: int) -> int:
        """By default: as many as leave the threshold at `_STEEPNESS` n / updates."""

        def fits(updates: int) -> bool:
            threshold = self.threshold(updates, self.rough_scales(updates))
            return bool(updates * threshold <= _STEEPNESS[self.has_prior] * n * UNIT)

        most = self.most_updates
        return greatest_integer(fits, low=min(_FEWEST, most), high=most)

    def updates_for(self, n: int, alpha: float, threshold: float | None, count_error: float) -> int:
        """As many as keep the error bound within alpha; ValueError if not even one does."""

        def fits(updates: int) -> bool:
            return self.schedule(n, updates, threshold, count_error).alpha <= alpha

        if not fits(1):
            least = self.schedule(n, 1, threshold, count_error).alpha
            raise ValueError(f"alpha={alpha!r}: must be at least {least:.4g}, what n={n} records support")
        return greatest_integer(fits, low=1, high=self.most_updates)

    def schedule(self, n: int, updates: int | None, threshold: float | None, count_error: float) -> MeasuredSchedule:
        """The schedule; ValueError where what was asked for is supported by nothing.

        threshold      in records
        count_error    what the public number of records may be off by
        """
        most = self.most_updates
        if updates is None:
            updates = self.updates(n)
            if threshold is not None and self._least_threshold(1) <= threshold:
                updates = greatest_integer(lambda c: self._least_threshold(c) <= threshold, low=1, high=updates)
        if updates > most:
            raise ValueError(
                f"updates={updates!r}: must be at most {most}: the least of max_queries, the cells of the domain, and "
                "how many epochs have noise that can be drawn"
            )
        scales = self.scales(updates)
        if scales.largest > MAX_SCALE:
            raise ValueError(
                f"epsilon={self.total.epsilon!r}: must be more: noise for {updates} updates is beyond 2^40 units"
            )
        level = self.threshold(updates, scales)
        if threshold is not None:
            least = self._least_threshold(updates)
            if threshold < least:
                raise ValueError(
                    f"threshold={threshold!r}: must be at least {least:.4g} records: below, noise alone would use up "
                    f"all {updates} updates within max_queries={self.queries}"
                )
            level = threshold * UNIT
        measured = self.total.error(scales.third, self.beta * float(_MEASURED_BETA), updates)
        tested = ceil(level) + largest_difference(
            (scales.first, updates), (scales.second, self.queries), self.beta * float(1 - _MEASURED_BETA)
        )
        beside, records = 1 + count_error * UNIT, n * UNIT
        return MeasuredSchedule(
            alpha=min(1.0, (max(tested, measured) + beside) / records),
            measured_alpha=min(1.0, (measured + beside) / records),
            updates=updates,
            share=Fraction(down(self.share / updates)),
            threshold_scale=scales.first,
            query_scale=scales.second,
            measurement_scale=scales.third,
            deviation=self.total.deviation(scales.third),
            threshold=ceil(level),
        )


def largest_difference(first: tuple[float, int], second: tuple[float, int], beta: float) -> float:
    """What the largest of some draws of one Laplace law and the largest of some of another together do not exceed, but
    with probability beta: multiplicative_weights_measured.md, theorem 2.

    With h(m) the probability that the second exceeds s - m, at most its union bound, and S the union bound of the
    first, Pr[M1 + M2 > s] <= E h(M1) is at most the sum of (S(x_j) - S(x_(j+1))) h(x_(j+1)) over any grid.
    """
    (scale, draws), (other, more) = first, second
    start = scale * max(0.0, log(draws / 2))
    grid = np.append(0.0, start + scale * np.linspace(0.0, log(1e4 / beta), 800))
    survives = np.minimum(1.0, _tails(grid, scale, draws))
    shares = np.append(survives[:-1] - survives[1:], survives[-1])
    ends = np.append(grid[1:], inf)

    def enough(s: float) -> bool:
        above = np.minimum(1.0, _tails(s - ends, other, more))
        return bool((1.0 - survives[0]) * above[0] + (shares * above).sum() <= beta * (1 - 1e-9))

    return least_float(enough, guess=start + other * log(2 * more / beta), tolerance=1e-6) * (1 + 1e-9)


def _tails(x: np.ndarray, scale: float, draws: int) -> np.ndarray:
    """At least the probability that one of so many draws of discrete Laplace noise exceeds x; above 1 for x < 0.

    Pr[Z > x] = q^(floor(x) + 1) / (1 + q) <= q^x / (1 + q).
    """
    q = exp(-1.0 / scale)
    with np.errstate(over="ignore"):
        return draws * np.exp(np.minimum(-x / scale, 700.0)) / (1 + q) * (1 + 1e-12)
