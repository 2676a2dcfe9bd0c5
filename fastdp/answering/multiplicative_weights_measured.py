"""The variant that measures: a noisy count where a test fires, and a distribution that is moved onto it.

multiplicative_weights_measured.md, theorems 1 and 2. Epochs are paid for as they begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import BudgetExceeded
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import laplace_plan
from ..support.errors import warn_of_accuracy
from .dense_weights import DenseWeights
from .measured_schedule import MeasuredSchedule
from .measurements import Measurement, fit_again, take_in
from .multiplicative_weights_noise import NoiseAhead
from .multiplicative_weights_payments import Payments
from .multiplicative_weights_price import Total
from .multiplicative_weights_run import Crossing, OneTest, RunSource
from .queries.bound_query import UNIT, BoundQuery
from .workload import Workload


class MeasuredRun(OneTest):
    """One test, and a count with fresh noise where it fires."""

    def __init__(
        self, schedule: MeasuredSchedule, source: RunSource, total: Total, payments: Payments,
        on_exhausted: Literal["answer", "raise"], replay: int, known: Sequence[Sequence[Measurement]],
    ) -> None:  # fmt: skip
        super().__init__(schedule, source, laplace_plan(schedule.query_scale))
        self._payments, self._on_exhausted, self._replay = payments, on_exhausted, replay
        self._threshold_plan = laplace_plan(schedule.threshold_scale)
        self._measurement_noise = NoiseAhead(total.noise(schedule.measurement_scale), source.rng)
        self._measurements: list[Measurement] = []
        self._known = known  # of each attribute, what tables say of its values
        self._noise: int | None = None  # of the threshold, where it is kept
        self._refused = False  # whether a budget had no room for the epoch that was due

    @property
    def exhausted(self) -> bool:
        return self._refused or not self.updates_left

    def threshold_noise(self) -> int:
        if self._noise is None or not self.schedule.keeps_threshold:
            self._noise = int(integer_noise(self._threshold_plan, self._payments.key(self.updates), 1)[0])
        else:
            self._payments.settle(self.updates)
        return self._noise

    def end_epoch(self) -> None:
        if not self.schedule.keeps_threshold:  # else all of it is one release, and noise that nobody saw goes on
            super().end_epoch()

    def epoch_runs(self) -> bool:
        if self._on_exhausted == "raise" and not self.updates_left:
            raise BudgetExceeded(
                f"updates: all {self.schedule.updates:,} are spent: nothing more is answered within alpha; "
                "`.synthetic` goes on, and on_exhausted='answer' gives its answers here"
            )
        try:
            runs = super().epoch_runs()
        except BudgetExceeded as error:
            first, self._refused = not self._refused, True
            if self._on_exhausted == "raise":
                raise
            if first:
                warn_of_accuracy(f"answers come from the distribution as it is, and {self.spent()}: {error}")
            return False
        self._refused = False
        return runs

    def bound_of(self, tested: bool) -> float | None:
        return self.schedule.alpha if tested else None

    def update(
        self, workload: Workload, at: int, crossed: Crossing, counts: NDArray[np.int64], values: NDArray[np.float64]
    ) -> int:
        query = workload.queries[at]
        noisy = (int(counts[at]) + self._measurement_noise.draw_one()) / (self.n * UNIT)
        values[at] = self.record_measured(query, noisy, self.schedule.measured_alpha)
        bound, deviation = workload.bound(at), self.schedule.deviation / (self.n * UNIT)
        measurement = Measurement(query, bound if query.keeps_bound else None, noisy, deviation)
        with self.changing:
            if take_in(self.weights, measurement, self.n, crossed.value):
                self._measurements.append(measurement)
                fit_again(self.weights, [*self._known_beside(bound), *self._measurements], self._replay, self.n)
        if self._on_exhausted == "answer":
            self.warn_if_spent()
        return 1

    def _known_beside(self, bound: BoundQuery) -> list[Measurement]:
        """The one-way tables that were bought, of the attributes whose block an update by this query has changed."""
        if not self._known or isinstance(self.weights, DenseWeights):
            return []
        return [each for p in self.weights.block_of(bound) for each in self._known[p]]

    def spent(self) -> str:
        return "have no error bound any more"
