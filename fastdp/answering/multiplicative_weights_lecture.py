"""The lecture's variant: one test, and a noisy answer where it fires. multiplicative_weights.md, theorem 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..randomness.noise_plans import laplace_plan
from .multiplicative_weights_noise import NoiseAhead
from .multiplicative_weights_run import Crossing, OneTest, RunSource
from .multiplicative_weights_sharp import SharpRun
from .queries.bound_query import UNIT
from .update_schedule import UpdateSchedule
from .workload import Workload


class LectureRun(OneTest, SharpRun):
    """The noisy answer decides to which side the distribution is changed."""

    def __init__(self, schedule: UpdateSchedule, source: RunSource, beta: float) -> None:
        super().__init__(schedule, source, beta)
        self._answer_noise = NoiseAhead(laplace_plan(schedule.answer_scale), source.rng)

    def update(
        self, workload: Workload, at: int, crossed: Crossing, counts: NDArray[np.int64], values: NDArray[np.float64]
    ) -> int:
        bound = workload.bound(at)
        noisy = (int(counts[at]) + int(self._answer_noise.draw(1)[0])) / (self.n * UNIT)
        sign = 1 if noisy > self.weights.evaluate(bound) else -1
        values[at] = self.record_measured(workload.queries[at], noisy, self.schedule.alpha)
        with self.changing:
            self.weights.scale(bound, sign * self.schedule.rate)
        self.warn_if_spent()
        return 1
