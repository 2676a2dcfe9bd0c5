"""How many steps a noisy descent takes, how long they are, and the error bounds: descent.md, theorems 4 to 6.

Public numbers only: the problem, n, d, epsilon and delta. No record is seen here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from ..support.checks import moderate
from ..support.search import OutOfReachError, least_integer
from .losses.base import MARGIN, REAL
from .problem import Problem
from .sets import Vector
from .step_noise import CoordinateNoise, NoiseParameters, SumGrid, point_grid, rounding_excess, sum_grid

MOST_STEPS = 1000  # by default; the theorem's own number is far beyond any use when there are many records
_UNLIMITED = 2**30
# Where the gradient is smooth the first step is this part of the longest one that theorem 6 allows, and the steps
# together are this part of what makes its bound least. Losses of classes fall as far as the set reaches, and the bound
# rests on the worst start: with little signal the descent would hardly leave it, so they have 5 R / G besides, found on
# logistic regression, at epsilons from 0.1 to 30. Where labels are numbers scores need not go beyond them, and a longer
# way is one on which noise leads away.
OF_LONGEST, _OF_BEST, _LONGER = 0.9, 0.85, 5.0


def path_length(problem: Problem, radius: float, noise: float, steepest: float) -> float:
    """The first step times the number of steps; `noise` is the norm of that of all gradients, bought in one step."""
    longer = 0.0 if problem.loss.labels == REAL else _LONGER
    return _OF_BEST * radius / noise + longer * radius / steepest


class GivenSteps(NamedTuple):
    """What a user may give of a descent: None for what the theorems take."""

    clip: float | None = None
    steps: int | None = None
    step_size: float | None = None
    average: bool | None = None
    resolution: float | None = None


@dataclass(frozen=True)
class DescentSchedule:
    """The numbers of one noisy descent.

    rates      the length of every step, constant or falling linearly to 0
    bound      of the expected excess risk; None where no theorem gives one
    uncapped   the same if there were no limit to the number of steps
    options    what every kind of noise would have had
    rough      the expected squared norm of a step over its rate, at most
    may_grow   whether steps may grow on the way: they fall to 0, a margin loss has corners, and there is a bound
    """

    rates: Vector
    grid: SumGrid
    options: dict[str, CoordinateNoise]
    bound: float | None
    uncapped: float | None
    rough: float
    may_grow: bool

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.rates)

    @classmethod
    def of(cls, problem: Problem, n: int, d: int, asked: NoiseParameters, given: GivenSteps) -> DescentSchedule:
        """What is given is taken; the rest is as in the theorems."""
        lipschitz, average = problem.lipschitz(), given.average
        clip = problem.lipschitz_or_error("clip") if given.clip is None else given.clip
        asked.check_price()
        moderate("clip", clip, toward=0)
        sensitivity = clip * (2 if asked.neighbors == "replace-one" else 1) / n

        def noise_square(count: int) -> float:
            return d * sensitivity**2 * asked.unit_variance(d, count)

        theorems = _DescentTheorems(problem, clip if lipschitz is None else min(clip, lipschitz), average)
        wanted = theorems.steps(noise_square) if given.steps is None else given.steps
        count = min(wanted, MOST_STEPS) if given.steps is None else given.steps
        grid, options = _grid_of(problem, asked, clip, n, d, count, given.resolution)
        square = grid.square(n, d)
        first = theorems.first_step(count, square) if given.step_size is None else given.step_size
        bound = uncapped = None
        if problem.loss.convex and lipschitz is not None and clip >= lipschitz:
            rounding = _rounding(problem, grid, n, d, 1 + log(count) if average is None else 1)
            bound = theorems.bound(count, first, square)
            if bound is not None:
                bound = min(bound + rounding, problem.varies())
                if given.step_size is None:
                    uncapped = min(bound, theorems.best(wanted, noise_square(wanted)) + rounding)
        rates = np.full(count, first) if average is not None else first * _falling(count)
        may_grow = bound is not None and average is None and not theorems.longest and problem.loss.family == MARGIN
        return cls(rates, grid, options, bound, uncapped, theorems.rough(square), may_grow)


@lru_cache(16)
def _falling(count: int) -> Vector:
    return np.asarray(1 - np.arange(count) / count)


def _grid_of(
    problem: Problem, asked: NoiseParameters, clip: float, n: int, d: int, steps: int, resolution: float | None
) -> tuple[SumGrid, dict[str, CoordinateNoise]]:
    """Of integer points where their rule allows it, else of float64."""
    if resolution is None and problem.loss.family == "margin":
        found = point_grid(asked, clip=clip, n=n, d=d, steps=steps)
        if found is not None:
            return found
    return sum_grid(asked, clip=clip, n=n, d=d, steps=steps, resolution=resolution)


def _rounding(problem: Problem, grid: SumGrid, n: int, d: int, weights: float) -> float:
    """What rounding may add to the excess: descent.md, and points.md, theorem 1."""
    if not grid.longest:
        return problem.over.diameter * sqrt(d) / grid.unit * weights
    lipschitz = problem.lipschitz_or_error("clip")
    return rounding_excess(lipschitz, problem.curvature(), problem.over.norm, problem.over.diameter, n, d)


def way_excess(problem: Problem, path: float) -> float:
    """What a path leaves of the excess: the least over points on the way to the minimiser (descent.md, theorem 8)."""
    square, start = problem.radius**2, problem.start_excess()
    part = min(1.0, start * path / square)
    return (1 - part) * start + part**2 * square / (2 * path) if part < 1 else square / (2 * path)


@dataclass(frozen=True)
class _DescentTheorems:
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

    def rough(self, noise: float) -> float:
        """The expected squared norm of a step over its rate, at most."""
        square = self._square + noise
        corners = self.problem.steepest_l1
        return (sqrt(square) + corners) ** 2 if corners else square

    def _path_length(self, count: int, noise: float) -> float:
        """count times the first step, for a smooth loss."""
        return path_length(self.problem, self.problem.radius, sqrt(noise / count), self.lipschitz)

    def steps(self, noise_square: Callable[[int], float]) -> int:
        """The least number that does not hold the descent back, to a part in a hundred."""
        try:
            return least_integer(
                lambda count: self._suffice(count, noise_square(count)), low=1, largest=_UNLIMITED, within=0.01
            )
        except OutOfReachError:
            return _UNLIMITED

    def _suffice(self, count: int, noise: float) -> bool:
        if self.longest:
            return self._path_length(count, noise) <= OF_LONGEST * self.longest * count
        return noise >= self._square

    def first_step(self, count: int, noise: float) -> float:
        """Theorem 6 where the loss is smooth, theorem 4 or 5 where it is not."""
        if self.longest:
            return min(self._path_length(count, noise) / count, OF_LONGEST * self.longest)
        return self.problem.radius / sqrt((count + (self.average is None)) * self.rough(noise))

    def bound(self, count: int, first: float, noise: float) -> float | None:
        """Of the expected excess."""
        if self.average is False:
            return None
        rough = (1 if self.average else (count + 1) / count) * self.rough(noise)
        way = way_excess(self.problem, first * count)
        found = way + first * rough / 2
        if self.longest and first < self.longest:
            part = first / self.longest  # of 1/(1 - eta_t beta), which falls, the mean is at most its integral and this
            mean = -log1p(-part) / part + (1 / (1 - part) - 1) / count
            found = min(found, way + first * noise * mean / 2)
        return found

    def best(self, count: int, noise: float) -> float:
        found = self.bound(count, self.first_step(count, noise), noise)
        return inf if found is None else found
