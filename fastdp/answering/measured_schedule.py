"""The numbers of answers that are measured where a test fires: epochs, noise scales, threshold and error bound.

All from public numbers; nothing here sees a record. multiplicative_weights_measured.md: theorems 1 and 2 are the
proofs, and "Defaults" has the reasons for the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, log, sqrt
from typing import ClassVar, Literal

import numpy as np

from ..mechanisms.sparse_vector_rho import positive_rho, scale_for
from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE
from ..support.rounding import down, up
from ..support.search import greatest_integer, least_float
from .multiplicative_weights_price import Share, Total
from .queries.bound_query import UNIT

_TESTS = Fraction(7, 10)  # of an epoch's share, the rest measures
_PARTS = 1 << 20  # of rho, as which the part of a threshold is counted
_QUICK = 0.1  # roots of rho up to which the noise of queries has a formula: kappa is 2 % below at most
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
    once: Share = Fraction(0)  # of the total, for a threshold that keeps its noise; 0 if each epoch has its own

    @property
    def keeps_threshold(self) -> bool:
        """Whether the threshold has one noise for all epochs."""
        return self.once > 0


@dataclass(frozen=True)
class Scales:
    """The noise of one epoch, in units of 2^-16 records, and what pays for it."""

    first: float  # of the threshold
    second: float  # of queries
    third: float  # of measurements
    once: Share  # of the total, for the threshold where its noise is kept
    each: Share  # and for each epoch

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

    @property
    def _keeps_threshold(self) -> bool:
        return bool(self.total.delta)

    def scales(self, updates: int) -> Scales:
        """The least noise that the share of all epochs pays for: theorem 1."""
        return (_scales_with_one_threshold if self._keeps_threshold else _scales_of_epochs)(self, updates)

    def rough_scales(self, updates: int) -> Scales:
        """About the same, to choose by: a hundred times as quick."""
        if self._keeps_threshold:
            once = float(self.share) * self.of_threshold(updates)
            tests = (each := (float(self.share) - once) / updates) * float(_TESTS)
            first = UNIT / max(self.total.rough_tests(once), 2.0**-60)
            second = 2 * UNIT / max(tests, sqrt(tests), 2.0**-60)
        else:
            each = float(self.share) / updates
            epsilon = max(self.total.rough_tests(each * float(_TESTS)), 2.0**-60)
            first = UNIT * self.split(updates) / epsilon
            second = 2 * UNIT / (epsilon - UNIT / first)
        third = self.total.rough_noise_scale(UNIT, each * float(1 - _TESTS))
        return Scales(first, second, third, Fraction(0), Fraction(each))

    def of_threshold(self, updates: int) -> float:
        """The part of rho for a threshold that keeps its noise, where the sum of its tail and of queries' is least."""
        # b1 is u / sqrt(2 f R) and b2 is 2 u sqrt(c / (0.7 (1 - f) R)): the least of A b1 + B b2 over f
        tail = log(4) - log(self.beta)
        tails = log(4 * self.queries) - log(self.beta) + max(1.0, log(self.queries) - log(_FALSE * updates))
        odds = exp(log(tail / (sqrt(8) * tails * sqrt(updates / float(_TESTS)))) * 2 / 3)
        return max(1, round(odds / (1 + odds) * _PARTS)) / _PARTS  # the same on all machines

    def split(self, updates: int) -> float:
        """u / b1 + 2 u / b2 = epsilon, split where the sum of their tails is least: epsilon b1 / u."""
        a, b = (log(4 * count) - log(self.beta) for count in (updates, self.queries))
        return 1 + sqrt(2 * b / a)

    def threshold(self, updates: int, scales: Scales, part: float = _FALSE) -> float:
        """Above which noise alone lifts a query so seldom that this part of the updates is left for all queries."""
        return float(scales.second * max(1.0, log(self.queries) - log(part * updates)))

    def rough_error(self, updates: int) -> float:
        """About what the error bound is while updates are left."""
        scales = self.rough_scales(updates)
        first, second = (log(2 * count) - log(self.beta) for count in (self.thresholds(updates), self.queries))
        return self.threshold(updates, scales) + scales.first * first + scales.second * second

    def thresholds(self, updates: int) -> int:
        """How many noises thresholds have."""
        return 1 if self._keeps_threshold else updates

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
        draws = (scales.first, self.thresholds(updates)), (scales.second, self.queries)
        tested = ceil(level) + largest_difference(*draws, self.beta * float(1 - _MEASURED_BETA))
        beside, records = 1 + count_error * UNIT, n * UNIT
        return MeasuredSchedule(
            alpha=min(1.0, (max(tested, measured) + beside) / records),
            measured_alpha=min(1.0, (measured + beside) / records),
            updates=updates,
            share=scales.each,
            once=scales.once,
            threshold_scale=scales.first,
            query_scale=scales.second,
            measurement_scale=scales.third,
            deviation=self.total.deviation(scales.third),
            threshold=ceil(level),
        )


_BEYOND = 2 * MAX_SCALE  # a scale that cannot be drawn


def _scales_of_epochs(numbers: MeasuredNumbers, updates: int) -> Scales:
    """Each epoch has a threshold with noise of its own: u / b1 + 2 u / b2 is the epsilon of its tests."""
    total, each = numbers.total, Fraction(down(numbers.share / updates))
    epsilon = total.tests(each * _TESTS)
    if not epsilon > 2.0**-40:
        return Scales(_BEYOND, _BEYOND, _BEYOND, Fraction(0), each)
    first = max(MIN_SCALE, up(UNIT * Fraction(numbers.split(updates)) / Fraction(epsilon)))
    second = max(MIN_SCALE, up(2 * UNIT / (Fraction(epsilon) - UNIT / Fraction(first))))
    third = total.noise_scale(UNIT, each - Fraction(epsilon))
    return Scales(first, second, third, Fraction(0), each)


def _scales_with_one_threshold(numbers: MeasuredNumbers, updates: int) -> Scales:
    """One noise of the threshold for all epochs, in rho: an epoch costs kappa and its measurement."""
    total, once = numbers.total, Fraction(down(numbers.share * Fraction(numbers.of_threshold(updates))))
    each = Fraction(down((numbers.share - once) / updates))
    epsilon, tests = total.tests(once), down(each * _TESTS)
    if not (epsilon > 2.0**-40 and tests > 2.0**-80):
        return Scales(_BEYOND, _BEYOND, _BEYOND, once, each)
    first, second = max(MIN_SCALE, up(UNIT / Fraction(epsilon))), _query_scale(tests)
    third = total.noise_scale(UNIT, each - Fraction(positive_rho(2 * UNIT, second)))
    return Scales(first, second, third, once, each)


@lru_cache(1024)
def _query_scale(rho: float) -> float:
    """A scale for which a positive costs at most rho: sparse_vector.md, theorem 3."""
    root = sqrt(rho)
    if root < _QUICK:  # kappa is a little less than (2 u / b2)^2
        scale: float = max(MIN_SCALE, 2 * UNIT / (root * (1 + 0.4 * root)))
        if positive_rho(2 * UNIT, scale) <= rho:
            return scale
    return max(MIN_SCALE, scale_for(2 * UNIT, rho))


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
