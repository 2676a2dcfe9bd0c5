"""Least squares in two stages: second moments, and gradients at what follows from them.

Noise of the matrix meets the solution: in a large set that is most of what moments lose. A gradient at a point nearby
has noise by its residuals instead, which are small where the fit is good. What is released first decides whether that
helps; where it does not, the rest of the budget buys the same moments again. moments.md, "Two stages", has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import MAX_SCALE, gaussian_plan
from ..support.progress import Report
from .losses import SquaredError
from .metric import Metric, MetricPoints
from .noisy_quadratics import NoisyQuadratic, may_shrink
from .points import Points
from .problem import Problem
from .rounded_moments import RoundedMoments
from .sets import Vector
from .shared_price import COARSEST, Share, SharedPrice
from .step_noise import NoiseParameters, limit_of

# Of 1 / (smallest sigma)^2: the first moments and the norms of gradients have so much. Found on 30 tables of numbers
# of other packages, at epsilons .1, 1 and 10: .6 and .8 come out alike, .3 is a fifth worse.
MOMENTS, NORMS = 0.7, 0.02
REST = 1 - MOMENTS - NORMS
STEPS = 5  # of 2 a tenth worse
_CELLS, _FINE = 24, 2  # of norms, each sqrt(2) times the one before
_BELIEVED = 2.5  # so many deviations make a count believed
_BIAS = 0.25  # what is cut off has both signs: its square counts as this much
_BETTER = 0.8  # gradients must be predicted to do so much better
_MOST_COLUMNS = 512


class Corrected(NamedTuple):
    """A solution; the moments that are stated with it; how many gradients were released."""

    w: Vector
    moments: NoisyQuadratic
    steps: int


@dataclass(frozen=True)
class CorrectionPlan:
    """What is bought with what, from public numbers alone.

    first, again   the noise of moments of points and labels in the unit ball, now and perhaps later
    rounded        how these are integers, where points are rounded first
    """

    problem: Problem
    n: int
    price: SharedPrice
    x_norm: float
    y_bound: float
    first: Share
    again: Share
    norms: Share
    rounded: RoundedMoments | None

    @classmethod
    def of(
        cls, problem: Problem, n: int, d: int, asked: NoiseParameters, sensitivity: Callable[[float], float],
        rounded: RoundedMoments | None,
    ) -> CorrectionPlan | None:  # fmt: skip
        """None where moments have the whole budget; `sensitivity` is theirs by the unit, where products are rounded."""
        loss = problem.loss
        assert isinstance(loss, SquaredError)
        x_norm, y_bound = loss.declared_norm(), loss.declared_label()
        entries = d * (d + 1) // 2 + d
        price = SharedPrice.of(asked, 2 * entries + _CELLS + STEPS * d)
        if price is None or d > _MOST_COLUMNS or problem.l1 or not may_shrink(problem.over, x_norm, y_bound):
            return None
        unit = price.moments_unit(n)
        if unit < 2.0**COARSEST or price.finer(n, REST, STEPS) < COARSEST:
            return None
        first, again = (price.share(sensitivity(unit), part, unit) for part in (MOMENTS, REST))
        if rounded is not None and rounded.unit <= unit and rounded.fits(first.deviation):
            first, again = (price.share(rounded.sensitivity, part, rounded.unit) for part in (MOMENTS, REST))
        else:
            rounded = None
        norms = price.counts(NORMS)
        if max(first.sigma, again.sigma, norms.sigma) > MAX_SCALE:
            return None
        return cls(problem, n, price, x_norm, y_bound, first, again, norms, rounded)

    def run(
        self, points: Points, first: NoisyQuadratic, both: Callable[[], NoisyQuadratic], allowed: float,
        keys: ChargedKeys, report: Report,
    ) -> Corrected:  # fmt: skip
        """Gradients at what follows from the first moments, or the quadratic of `both` releases of them."""
        w, _ = first.minimise(allowed)
        d, values = len(w), np.maximum(first.eigen[0], 0.0)
        spectral = sqrt(2 * d) * first.noise.matrix
        metric = Metric(values + spectral + self.problem.lam / 2, first.eigen[1])
        inside = MetricPoints.of(points, metric)
        clip, cut = self._clip(inside, metric, w, keys)
        by_moments = first.predicted(w, np.full(d, self._as_moments(first, w)))
        if cut + self._predicted(first, metric, w, clip) > _BETTER * by_moments:
            moments = both()
            return Corrected(moments.minimise(allowed)[0], moments, 0)
        return Corrected(self._descend(inside, first, w, clip, allowed, keys, report), first, STEPS)

    def _as_moments(self, first: NoisyQuadratic, w: Vector) -> float:
        """The deviation of b - A w, were all the budget but that of the norms spent on moments."""
        return first.vector_deviation(w) * sqrt(MOMENTS / (MOMENTS + REST))

    def _predicted(self, first: NoisyQuadratic, metric: Metric, w: Vector, clip: float) -> float:
        deviation = clip * self.price.vectors * self.price.ratio / sqrt(REST) / (2 * self.n)
        return first.predicted(w, deviation * np.sqrt(metric.values))

    def _clip(self, inside: MetricPoints, metric: Metric, w: Vector, keys: ChargedKeys) -> tuple[float, float]:
        """The clip at which the noise and what it takes off are the least together, by noisy counts of norms; and what
        it takes off may add to the excess, about."""
        longest = self.x_norm / sqrt(float(metric.values.min()))
        largest = 2 * longest * (float(np.linalg.norm(w)) * self.x_norm + self.y_bound) * (1 + 1e-6)
        edges = largest * 2.0 ** (-np.arange(_CELLS)[::-1] / _FINE)
        drawn = integer_noise(gaussian_plan(self.norms.sigma), keys.take(), _CELLS)
        counts = np.asarray(inside.count_gradients(metric.coordinates(w), edges) + drawn, np.float64)
        beyond, cells = np.cumsum(counts[::-1])[::-1], np.arange(_CELLS, 0, -1)
        surely = np.flatnonzero(beyond > _BELIEVED * self.norms.sigma * np.sqrt(cells))
        last = surely[-1] if surely.size else _CELLS - 1
        believed = np.where(np.arange(_CELLS) <= last, np.maximum(counts, 0.0), 0.0)
        cut = np.maximum(edges / 2 ** (0.5 / _FINE) - edges[:, None], 0.0)
        square = _BIAS * ((believed * cut).sum(axis=1) / self.n) ** 2
        noise = len(w) * (edges * self.price.vectors * self.price.ratio / self.n) ** 2 / REST
        best = int(np.argmin(noise + square))
        return float(edges[best]), float(square[best]) / 4

    def _descend(
        self, inside: MetricPoints, first: NoisyQuadratic, w: Vector, clip: float, allowed: float, keys: ChargedKeys,
        report: Report,
    ) -> Vector:  # fmt: skip
        """Every gradient is b - A w at its own point, and their mean at the mean of the points: none is forgotten."""
        metric, d = inside.metric, len(w)
        noise = self.price.vector(clip, self.n, REST, STEPS, STEPS)
        drawn = integer_noise(gaussian_plan(noise.sigma), keys.take(), STEPS * d).reshape(STEPS, d)
        limit, half = limit_of(clip * noise.unit, d), -1 / (2 * self.n * noise.unit)
        at, gradient = np.zeros(d), np.zeros(d)
        for k in range(STEPS):
            report(2 + k, 2 + STEPS, "gradients")
            released = inside.gradients(metric.coordinates(w), noise.unit, limit) + drawn[k]
            at, gradient = at + w, gradient + np.sqrt(metric.values) * (half * released)
            deviations = np.sqrt(metric.values / (k + 1)) * (noise.deviation / (2 * self.n))
            w = first.corrected(at / (k + 1), gradient / (k + 1), deviations, allowed)
        return w


__all__ = ["MOMENTS", "REST", "STEPS", "CorrectionPlan"]
