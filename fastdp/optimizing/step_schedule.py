"""How many steps a noisy descent takes, how long they are, and what the theorems then promise: descent.md, 4 to 6.

Public numbers only: the problem, n, d, epsilon and delta. No record is seen here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, log1p, sqrt

import numpy as np

from ..privacy.guarantees import Neighbors
from ..support.checks import moderate
from .problem import Problem
from .sets import Vector
from .step_noise import Grid, Noise, Scale, check_price, plan, unit_variance

MOST_STEPS = 1000  # by default; the theorem's own number is far beyond any use when there are many records
_UNLIMITED = 10**9
# Where the gradient is smooth the first step is this part of the longest one that theorem 6 allows, and the steps
# together are this part of what makes its promise least, and a way of 5 R / G besides: the promise rests on the worst
# start, and with little signal it would hardly leave it. Found on logistic regression, at epsilons from 0.1 to 30.
_OF_LONGEST, _OF_BEST, _MORE_WAY = 0.9, 0.85, 5.0


@dataclass(frozen=True)
class Schedule:
    """The numbers of one noisy descent.

    rates      the length of every step, constant or falling linearly to 0
    bound      of the expected excess risk; None where nothing is promised
    uncapped   the same if there were no limit to the number of steps
    options    what every kind of noise would have had
    """

    rates: Vector
    grid: Grid
    options: dict[str, Scale]
    bound: float | None
    uncapped: float | None

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.rates)

    @classmethod
    def of(
        cls, problem: Problem, *, n: int, d: int, epsilon: float, delta: float, clip: float | None, noise: Noise,
        steps: int | None, step_size: float | None, average: bool | None, resolution: float | None,
        neighbors: Neighbors,
    ) -> Schedule:  # fmt: skip
        """What is given is taken; the rest is as the theorems say."""
        lipschitz = problem.lipschitz()
        if clip is None:
            if lipschitz is None:
                problem.lipschitz_or_error("clip")
            assert lipschitz is not None
            clip = lipschitz
        check_price(noise, epsilon, delta)
        moderate("clip", clip, toward=0)
        moved = clip * (2 if neighbors == "replace-one" else 1) / n

        def noise_square(count: int) -> float:
            return d * moved**2 * unit_variance(noise, d, count, epsilon, delta)

        rules = _Rules(problem, clip if lipschitz is None else min(clip, lipschitz), average)
        wanted = rules.steps(noise_square) if steps is None else steps
        count = min(wanted, MOST_STEPS) if steps is None else steps
        grid, options = plan(
            clip=clip, n=n, d=d, steps=count, epsilon=epsilon, delta=delta, noise=noise, neighbors=neighbors,
            resolution=resolution,
        )  # fmt: skip
        square = d * (grid.deviation / n) ** 2
        first = rules.first_step(count, square) if step_size is None else step_size
        bound = uncapped = None
        if lipschitz is not None and clip >= lipschitz:
            rounding = problem.over.diameter * sqrt(d) / grid.unit * (1 + log(count) if average is None else 1)
            bound = rules.bound(count, first, square)
            if bound is not None:
                bound = min(bound + rounding, problem.varies())
                if step_size is None:
                    uncapped = min(bound, rules.best(wanted, noise_square(wanted)) + rounding)
        rates = np.full(count, first) if average is not None else first * (1 - np.arange(count) / count)
        return cls(rates, grid, options, bound, uncapped)


@dataclass(frozen=True)
class _Rules:
    """The theorems for one problem: gradients of norm at most `lipschitz`, without the regulariser."""

    problem: Problem
    lipschitz: float
    average: bool | None

    @property
    def longest(self) -> float:
        """Of steps for which theorem 6 holds, which asks for a smooth loss; 0 if it does not hold."""
        curvature = self.problem.curvature()
        if self.average is not None or curvature == inf:
            return 0.0
        return 1 / max(curvature, 1e-300)

    @property
    def _square(self) -> float:
        return (self.lipschitz + self.problem.ridge) ** 2

    def _way(self, count: int, noise: float) -> float:
        """count times the first step, for a smooth loss."""
        reach = self.problem.reach
        return _OF_BEST * reach * sqrt(count / noise) + _MORE_WAY * reach / self.lipschitz

    def steps(self, noise_square: Callable[[int], float]) -> int:
        """The least number that does not hold the descent back."""
        return _least(lambda count: self._suffice(count, noise_square(count)))

    def _suffice(self, count: int, noise: float) -> bool:
        if self.longest:
            return self._way(count, noise) <= _OF_LONGEST * self.longest * count
        return noise >= self._square

    def first_step(self, count: int, noise: float) -> float:
        """Theorem 6 where the loss is smooth, theorem 4 or 5 where it is not."""
        if self.longest:
            return min(self._way(count, noise) / count, _OF_LONGEST * self.longest)
        return self.problem.reach / sqrt((count + (self.average is None)) * (self._square + noise))

    def bound(self, count: int, first: float, noise: float) -> float | None:
        """Of the expected excess."""
        if self.average is False:
            return None
        reach = self.problem.reach
        rough = (1 if self.average else (count + 1) / count) * (self._square + noise)
        found = reach**2 / (2 * first * count) + first * rough / 2
        if self.longest and first < self.longest:
            part = first / self.longest  # of 1/(1 - eta_t beta), which falls, the mean is at most its integral and this
            mean = -log1p(-part) / part + (1 / (1 - part) - 1) / count
            found = min(found, reach**2 / (2 * first * count) + first * noise * mean / 2)
        return found

    def best(self, count: int, noise: float) -> float:
        found = self.bound(count, self.first_step(count, noise), noise)
        return inf if found is None else found


def _least(enough: Callable[[int], bool]) -> int:
    """The least whole number that is enough, to a part in a hundred, where more is always enough."""
    high = 1
    while high < _UNLIMITED and not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
