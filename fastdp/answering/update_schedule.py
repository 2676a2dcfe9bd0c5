"""The theorems of private multiplicative weights in numbers: updates, noise scales and accuracy, from public numbers.

`UpdateSchedule.solve` finds the least alpha that n records support; nothing here sees a record.
multiplicative_weights.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log, sqrt
from typing import Literal

from ..mechanisms.bounds import laplace as laplace_error
from ..privacy.conversions import pure_of_rho
from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE
from ..support.rounding import up
from ..support.search import OutOfReachError, least_float
from .privacy_shares import share_of_each
from .queries.bound_query import UNIT

Variant = Literal["sharp", "lecture"]
VARIANTS = ("sharp", "lecture")


@dataclass(frozen=True)
class UpdateSchedule:
    """The numbers of one run; scales and margins in units of 2^-16 records."""

    variant: Variant
    alpha: float  # all answers are within alpha, with probability 1 - beta
    updates: int  # at most so many
    epoch: float  # the epsilon of one epoch, up to an update
    threshold_scale: float
    query_scale: float
    answer_scale: float  # of the noisy answer on an update; 0 if there is none
    threshold: int
    rate: float  # by how much an update changes logarithms of weights

    @property
    def scales(self) -> tuple[float, float, float]:
        """Of the noises of thresholds, queries and answers; the last as the one before where there are no answers."""
        return self.threshold_scale, self.query_scale, self.answer_scale or self.query_scale

    @classmethod
    def of(
        cls, variant: Variant, alpha: float, *, n: int, log_cells: float, epsilon: float, delta: float, queries: int,
        beta: float,
    ) -> UpdateSchedule | None:  # fmt: skip
        """The schedule for this alpha, or None if so few records do not support it."""
        if not 2.0**-500 <= alpha < 1:  # whose square float64 holds
            return None
        make = cls._sharp if variant == "sharp" else cls._lecture
        return make(alpha, n, log_cells, epsilon, delta, queries, beta)

    @classmethod
    def solve(
        cls, variant: Variant, *, n: int, log_cells: float, epsilon: float, delta: float, queries: int, beta: float
    ) -> UpdateSchedule | None:
        """The schedule with the least alpha (to 6 digits) that n records support, or None if none below 1 is."""

        def schedule(alpha: float) -> UpdateSchedule | None:
            return cls.of(
                variant, alpha, n=n, log_cells=log_cells, epsilon=epsilon, delta=delta, queries=queries, beta=beta
            )

        try:
            alpha = least_float(
                lambda alpha: schedule(alpha) is not None,
                guess=1 - 1e-9, tolerance=1e-6, largest=1.0, middle_of=lambda low, high: sqrt(low * high),
            )  # fmt: skip
        except OutOfReachError:
            return None
        return schedule(alpha)

    @classmethod
    def _sharp(
        cls, alpha: float, n: int, log_cells: float, epsilon: float, delta: float, queries: int, beta: float
    ) -> UpdateSchedule | None:
        """multiplicative_weights.md, theorem 2."""
        updates = max(1, ceil(2 * log_cells / alpha**2))
        epoch = epoch_epsilon(updates, epsilon, delta)
        tests = 2 * (queries + updates)
        a, b = _log_ratio(4 * updates, beta), _log_ratio(4 * tests, beta)
        # threshold and query noise: 1/b1 + 2/b2 = epoch, split where the sum of their tails is least
        first = max(MIN_SCALE, up(UNIT * Fraction(1 + sqrt(2 * b / a)) / Fraction(epoch)))
        second = max(MIN_SCALE, up(2 * UNIT / (Fraction(epoch) - UNIT / Fraction(first))))
        if second > MAX_SCALE or first > MAX_SCALE:
            return None
        margin = _tail(first, beta / 2, updates) + _tail(second, beta / 2, tests) + 2
        if margin > n * UNIT * alpha / 4:
            return None
        return cls("sharp", alpha, updates, epoch, first, second, 0.0, ceil(0.75 * alpha * n * UNIT), 2 * alpha)

    @classmethod
    def _lecture(
        cls, alpha: float, n: int, log_cells: float, epsilon: float, delta: float, queries: int, beta: float
    ) -> UpdateSchedule | None:
        """multiplicative_weights.md, theorem 3."""
        updates = max(1, ceil(64 * log_cells / alpha**2))
        epoch = epoch_epsilon(updates, epsilon, delta)
        scale = max(MIN_SCALE, up(4 * UNIT / Fraction(epoch)))  # three noises of epsilon0 = epoch / 4: 1 + 2 + 1
        if scale > MAX_SCALE:
            return None
        margin = max(_tail(scale, beta / 3, updates), _tail(scale, beta / 3, queries)) + 2
        if margin > n * UNIT * alpha / 8:
            return None
        return cls("lecture", alpha, updates, epoch, scale, scale, scale, ceil(0.5 * alpha * n * UNIT), alpha / 8)


def epoch_epsilon(updates: int, epsilon: float, delta: float) -> float:
    """The largest epsilon of an epoch such that so many keep within the total: by sums, or as zCDP."""
    return share_of_each(updates, epsilon, delta, pure_of_rho)


def _log_ratio(top: int, beta: float) -> float:
    ratio = top / beta
    return log(ratio) if ratio < inf else log(top) - log(beta)


def _tail(scale: float, beta: float, count: int) -> float:
    """None of `count` draws of discrete Laplace noise exceeds this in magnitude, but with probability beta."""
    return laplace_error(sensitivity=scale, epsilon=1.0, beta=beta, count=count)
