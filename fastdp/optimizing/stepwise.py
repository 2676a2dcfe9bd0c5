"""Descents step by step in Python, and steps that grow longer on the way where a loss has corners.

Which steps grow, and by how much, follows from gradients that were released: descent.md, theorem 9.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.progress import Report
from .points import DescentSteps
from .problem import Problem
from .sets import Vector, given_point
from .step_schedule import DescentSchedule

Callback = Callable[[int, Vector], object]

# Where the steps are looked at, as parts of their number: early and often, so that a way which is a hundred times too
# short is found out, and late, as the last windows see what noise hides in the first. Fewer do worse.
_CHECKS = (0.05, 0.1, 0.2, 0.4, 0.7)
_LEAST_WINDOW = 5
# A mean gradient is seen if its square is so many deviations above the noise's. Of the squares of gradients that cancel
# each other a quarter counts: a mean of many losses with corners is nearly smooth. Found on 14 tables of other
# packages.
_SEEN, _ROUGH = 3.0, 0.25


class LongerSteps:
    """The steps of a schedule, which fall linearly to 0, and longer ones while the loss is seen to fall.

    All that is read here was released: what is decided has no price.
    """

    def __init__(self, problem: Problem, schedule: DescentSchedule, n: int) -> None:
        self._problem, self._rough = problem, schedule.rough
        self._steps, self._d = schedule.steps, len(problem.start)
        self._noise = schedule.grid.square(n, self._d)
        self._checks = {int(part * self._steps) for part in _CHECKS}
        self._first, self._since = float(schedule.rates[0]), 0
        self._gone, self.added = 0.0, 0.0  # the way so far; and what longer steps add to the bound
        self._forget()

    def _forget(self) -> None:
        self._sum, self._squares, self._window = np.zeros(self._d), 0.0, 0

    def rate(self, t: int, w: Vector) -> float:
        """The length of step t, which begins at w."""
        if t in self._checks and self._window >= _LEAST_WINDOW:
            self._look(t, w)
            self._forget()
        rate = self._first * self._part(t)
        self._gone += rate
        return rate

    def saw(self, gradient: Vector) -> None:
        """Note the gradient that was released in the step."""
        self._sum += gradient
        self._squares += _square(gradient)
        self._window += 1

    def _look(self, t: int, w: Vector) -> None:
        """Make the steps from here longer if the last ones, which all noise in them is averaged over, went one way."""
        count, left = self._window, self._steps - t
        noise = self._noise / count
        signal = _square(self._sum) / count**2 - noise
        if signal <= _SEEN * noise * sqrt(2 / self._d):
            return
        rough = _ROUGH * max(self._squares / count - self._noise, 0.0) + self._noise
        longest = self._problem.radius / sqrt(left * rough)
        way = self._gone * (sqrt(signal * self._steps / self._noise) - 1)
        first = min(longest, 2 * way / left)
        if first > self._first * self._part(t):
            self._first, self._since = first, t
            far = self._problem.over.reach(w)
            self.added += far**2 / (2 * first * left) + first * (left + 1) / (2 * left) * self._rough

    def _part(self, t: int) -> float:
        return 1 - (t - self._since) / (self._steps - self._since)


def _square(vector: Vector) -> float:
    """Of its length: by the same sums on every machine."""
    return float(np.square(vector).sum())


def walk(
    gradients: Callable[[Vector, int], NDArray[Any]], problem: Problem, after: DescentSteps, noises: NDArray[np.int64],
    callback: Callback | None, report: Report, longer: LongerSteps | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """All points of a descent, step by step: for records in several blocks, and where Python takes part in a step."""
    from ..kernels.descent import step_once

    steps, d = noises.shape
    w, space, path = problem.start.copy(), np.empty(d), np.empty((steps + 1, d))
    mean, region = after.mean, np.zeros(3 + 2 * d) if after.projection is None else after.projection.region
    for t in range(steps):
        path[t] = w
        report(t, steps, "")
        sums, rate = gradients(w, t), float(after.rates[t] if longer is None else longer.rate(t, w))
        if longer is not None:
            longer.saw((sums + noises[t]) * after.scale + after.ridge * w)
        step_once(sums, noises[t], mean, rate, region, w, space)
        if after.projection is None:
            w = given_point(problem.over, "project(w)", problem.nearest(w, rate), d)
        if callback is not None:
            callback(t + 1, w.copy())
    report(steps, steps, "")
    path[steps] = w
    return path


__all__ = ["Callback", "LongerSteps", "walk"]
