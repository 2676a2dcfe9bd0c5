"""The sharp variant: a test for each sign, no noisy answers. multiplicative_weights.md, theorem 2."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..randomness.noise_plans import laplace_plan
from .multiplicative_weights_noise import NoiseAhead
from .multiplicative_weights_run import Crossing, RunSource, ThresholdRun
from .update_schedule import UpdateSchedule
from .workload import Workload


class SharpRun(ThresholdRun):
    """Two tests a query: whether the distribution has too little of it, whether it has too much."""

    sides: ClassVar[int] = 2

    def __init__(self, schedule: UpdateSchedule, source: RunSource, beta: float) -> None:
        super().__init__(schedule, source, laplace_plan(schedule.query_scale))
        self.beta = beta
        self._threshold_noise = NoiseAhead(laplace_plan(schedule.threshold_scale), source.rng)

    def threshold_noise(self) -> int:
        return int(self._threshold_noise.draw(1)[0])

    def tests(self, gaps: NDArray[np.int64]) -> NDArray[np.int64]:
        tests = np.empty(2 * gaps.size, np.int64)
        tests[::2], tests[1::2] = gaps, -gaps
        return tests

    def first_over(self, gap: int, limit: int) -> int | None:
        below, above = self.query_noise.draw(2).tolist()
        if gap + below >= limit:
            return 0
        return 1 if above - gap >= limit else None

    def update(
        self, workload: Workload, at: int, crossed: Crossing, counts: NDArray[np.int64], values: NDArray[np.float64]
    ) -> int:
        with self.changing:
            self.weights.scale(workload.bound(at), crossed.sign * self.schedule.rate)
        self.warn_if_spent()
        return 0  # it is tested again

    def spent(self) -> str:
        return f"are still within alpha={self.schedule.alpha:.4g} with probability {1 - self.beta:g}"
