"""Plain noise on each answer: what is best for few queries. multiplicative_weights_measured.md, theorem 3."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee
from ..randomness import noise_draws
from ..randomness.noise_plans import MAX_SCALE
from ..support.progress import Report
from ..support.rounding import down
from .measurements import Measurement, fit_again
from .multiplicative_weights_payments import Payments
from .multiplicative_weights_price import Share, Total
from .multiplicative_weights_run import Answer, OnlineRun, RunSource
from .queries.bound_query import UNIT
from .synthetic_distribution import SyntheticDistribution
from .workload import Workload

_PASSES = 20  # over all answers, for the distribution


@dataclass(frozen=True)
class PlainSchedule:
    """The noise of each answer; its scale in units of 2^-16 records."""

    variant: ClassVar[Literal["plain"]] = "plain"
    updates: ClassVar[int] = 0
    alpha: float  # all answers are within alpha, with probability 1 - beta
    share: Share  # of the total, for each answer
    scale: float
    deviation: float

    @classmethod
    def of(
        cls, n: int, total: Total, share: Share, queries: int, beta: float, count_error: float
    ) -> PlainSchedule | None:
        """The schedule for so many queries that take this share together; None if their noise cannot be drawn. Its
        alpha may be above 1."""
        each = Fraction(down(share / queries))
        scale = total.noise_scale(UNIT, each)
        if scale > MAX_SCALE:
            return None
        alpha = (total.error(scale, beta, queries) + count_error * UNIT) / (n * UNIT)
        return cls(alpha, each, scale, total.deviation(scale))


class PlainRun(OnlineRun):
    """A noisy count for each query; the distribution is fitted to all of them when it is asked for."""

    def __init__(self, schedule: PlainSchedule, source: RunSource, total: Total, payments: Payments) -> None:
        super().__init__(source)
        self.schedule, self._total, self._payments = schedule, total, payments
        self._noise = total.noise(schedule.scale)
        self._fitted: tuple[int, SyntheticDistribution] | None = None  # for so many answers

    @property
    def updates_left(self) -> int:
        return 0

    def answer_all(self, workload: Workload, values: NDArray[np.float64], report: Report) -> None:
        report(0, len(workload), "counting")
        counts = workload.counts(self.true_answers)
        key = self._payments.key(self.asked, len(workload))
        noisy = (counts + noise_draws.integer_noise(self._noise, key, len(workload))) / (self.n * UNIT)
        np.clip(noisy, 0.0, 1.0, out=values)
        self.record(
            [Answer(workload.queries[i], float(values[i]), False, self.schedule.alpha) for i in range(len(workload))]
        )
        report(len(workload), len(workload), "")

    def synthetic(self, guarantee: Guarantee) -> SyntheticDistribution:
        if self._fitted is None or self._fitted[0] != len(self.transcript):
            answers, weights = self.transcript.copy(), self.weights.copy()
            deviation, domain = self.schedule.deviation / (self.n * UNIT), self.weights.domain
            measured = [Measurement.of(answer.query, answer.value, deviation, domain) for answer in answers]
            fit_again(weights, measured, _PASSES, self.n)
            self._fitted = len(answers), SyntheticDistribution(weights, guarantee=guarantee, n=self.n)
        return self._fitted[1]
