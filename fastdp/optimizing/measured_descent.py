"""Noisy descent at the right step: a small part of the budget buys second moments, from which metric and steps follow.

Whether that is done follows from public numbers alone. measured_descent.md has the proofs: what is paid, why the steps
are right for every loss of bounded curvature, and the bound on the excess risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log, log1p, nextafter, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import MAX_SCALE, gaussian_plan
from ..randomness.rehearsal import RECORDS
from ..support.progress import Progress, Report, reporting
from ..support.rounding import root_up, up
from .losses.base import MarginLoss, MissingBound
from .metric import Metric, MetricPoints
from .points import Points
from .problem import Problem
from .sets import Vector, given_point
from .shared_price import COARSEST, Share, SharedPrice
from .step_noise import NoiseParameters, limit_of
from .step_schedule import OF_LONGEST, path_length
from .stepwise import Callback

STEPS, MOST_STEPS = 100, 1000  # in the metric of the moments; and in the Euclidean one
_LEAST_COLUMNS = 3  # of fewer, clips that are off cost more than the measured step brings
_LEAST_RECORDS = 1000  # fewer feel what is spent: on 569 whose norms are equal the declared way does a tenth better
_MOST_COLUMNS = 512  # the metric takes d^3 operations, and points their d^2
MOMENTS, NORMS = 0.03, 0.01  # what they take of 1 / (smallest sigma)^2; the gradients have the rest
_REST = 1 - MOMENTS - NORMS
_CELLS, _FINE = 32, 4  # of norms, each 2^(1/4) times the one before; the last ends at the largest that can be
# Moments say something if the norm of their noise is at most x_norm^2; and they matter if scores in the set are so
# large that the curvature, not the set, decides where the minimum lies.
_CLEAR, _LARGE = 1.0, 2.5
# deviations of the largest eigenvalue: added to the metric; not exceeded but in 1e-6; and of counts, for every clip
_MAJORISES, _SURE, _SURE_OF_ALL = 3.0, 5.3, 6.0
# The moments' metric must be predicted to do so much better; the loss may be so much flatter than its curvature bound;
# and so many deviations make a count believed. Found on some twenty tables, real and generated.
# measured_descent.md has the cases in which the declared way comes out better all the same.
_FAR_BETTER, _FLATTER, _BELIEVED = 0.18, 0.2, 2.5
_AT_ENDS = 0.1  # of slopes may be as large as can be: what stands at the wrong side, far from the border
_LEAST_STEPS, _SAME_PATH, _LONGER_BETTER = 10.0, 1.01, 0.5


@dataclass(frozen=True)
class MeasuredPlan:
    """What is bought with what, from public numbers alone."""

    problem: Problem
    n: int
    price: SharedPrice
    x_norm: float
    slope: float
    curvature: float
    moments: Share
    norms: Share

    @classmethod
    def of(cls, problem: Problem, n: int, d: int, asked: NoiseParameters) -> MeasuredPlan | None:
        """None where the descent by declared bounds is taken."""
        loss = problem.loss
        if not isinstance(loss, MarginLoss) or loss.x_norm is None or not _LEAST_COLUMNS <= d <= _MOST_COLUMNS:
            return None
        if n < _LEAST_RECORDS:
            return None
        entries = d * (d + 1) // 2
        price = SharedPrice.of(asked, entries + _CELLS + MOST_STEPS * d)
        if price is None:
            return None
        x_norm, curvature = loss.x_norm, loss.score_smoothness()
        try:
            slope, at_start = loss.lipschitz(problem.over) / x_norm, loss.score_lipschitz(0.0)
        except MissingBound:
            return None
        if not curvature < inf or not curvature * problem.radius * x_norm >= _LARGE * at_start > 0:
            return None
        unit = price.moments_unit(n)
        moments = price.share(gram_sensitivity(unit, entries, asked), MOMENTS, unit)
        norms = price.counts(NORMS)
        plan = cls(problem, n, price, x_norm, slope, curvature, moments, norms)
        if unit < 2.0**COARSEST or price.finer(n, _REST, MOST_STEPS) < COARSEST or not norms.sigma <= MAX_SCALE:
            return None
        return plan if plan.spectral(d, 0.0) <= _CLEAR * x_norm**2 else None

    def spectral(self, d: int, deviations: float) -> float:
        """The norm of the moments' noise: no more in expectation, but for so many deviations."""
        return self.x_norm**2 * self.moments.deviation / self.n * (sqrt(2 * d) + deviations)

    def noise_square(self, clip: float) -> float:
        """The variance of a coordinate of the mean gradient, were all gradients bought in one step."""
        return (clip * self.price.vectors * self.price.ratio / self.n) ** 2 / _REST

    def declared_path(self, d: int) -> float:
        """The first step times the number of steps by the declared bounds: step_schedule.py."""
        radius, steepest = self.problem.radius, self.slope * self.x_norm
        noise = sqrt(d) * steepest * self.price.vectors * self.price.ratio / self.n
        curvature = self.curvature * self.x_norm**2 + self.problem.lam
        return min(path_length(self.problem, radius, noise, steepest), OF_LONGEST * MOST_STEPS / curvature)

    def gradients(self, clip: float, steps: int) -> Share:
        """The noise of the sum of gradients of norm at most `clip` in one of so many steps."""
        return self.price.vector(clip, self.n, _REST, steps, MOST_STEPS)


def gram_sensitivity(unit: float, entries: int, asked: NoiseParameters) -> float:
    """The L2 sensitivity of the sums of u u^T in units of the grid: measured_descent.md, lemma 2."""
    if asked.neighbors == "add-remove":
        return unit
    return nextafter(up(Fraction(root_up(2)) * Fraction(unit)) + root_up(entries), inf)


# --- what was bought, and what follows from it


@dataclass(frozen=True)
class Measured:
    """The metric of a descent and its clip: public, made of what was released.

    gram      the noisy mean of x x^T
    counts    how many norms in the metric lie in each cell, noisily; the cells end at `edges`
    """

    gram: NDArray[np.float64]
    metric: Metric
    whitened: bool
    curvature: float
    counts: Vector
    edges: Vector
    clip: float


class Choice(NamedTuple):
    """A metric, and the smoothness of the loss in it: it is no more, but with a probability of 1e-6."""

    metric: Metric
    curvature: float


def choices_of(plan: MeasuredPlan, values: Vector, vectors: NDArray[np.float64]) -> tuple[Choice, Choice]:
    """H = (the noisy moments, cut at 0) + lambda, such that c H majorises the curvature; and the Euclidean metric."""
    d, c, lam = len(values), plan.curvature, plan.problem.lam
    added = plan.spectral(d, _MAJORISES)
    majorised = max(1.0, plan.spectral(d, _SURE) / added)
    largest = min(float(values[-1]) + plan.spectral(d, _SURE), plan.x_norm**2)
    return (
        Choice(Metric(np.maximum(values, 0.0) + added + lam / c, vectors), c * majorised),
        Choice(Metric(np.ones(d), np.eye(d)), c * largest + lam),
    )


def choose(plan: MeasuredPlan, gram: NDArray[np.float64]) -> tuple[Choice, bool]:
    """(the metric with the least predicted excess, whether it is that of the moments).

    A quadratic of curvature c gram stands for the loss. The moments' metric must do better: what a prediction does not
    see is the spread of norms, which is wider there.
    """
    values, vectors = np.linalg.eigh(gram)
    measured, euclidean = choices_of(plan, values, vectors)
    found = [
        best_path(plan, gram, choice, _usual_clip(plan, values, choice.metric), most)[1]
        for choice, most in ((measured, STEPS), (euclidean, MOST_STEPS))
    ]
    better = found[0] <= _FAR_BETTER * found[1]
    return (measured if better else euclidean), better


def _usual_clip(plan: MeasuredPlan, values: Vector, metric: Metric) -> float:
    """What clip the norms will ask for, nearly."""
    longest, usual = _longest(plan, metric), sqrt(float((np.maximum(values, 0.0) / metric.values).sum()))
    return plan.slope * min(longest, max(1.2 * usual, longest / 256))


def best_path(
    plan: MeasuredPlan, gram: NDArray[np.float64], choice: Choice, clip: float, most: int
) -> tuple[float, float]:
    """(the first step times the number of steps, the predicted excess): at most the way that the theorem asks for.

    What noise adds to a direction of curvature a after steps that fall to 0 along a path P is v P^2/3 where they do
    not forget, and v sqrt(pi P)/(4 a^1.5) where they do; what is left of the way is exp(-a P). For the latter the
    minimum is taken to lie on the border, and the curvature to be 0.2 of the largest.
    """
    d, noise = len(gram), plan.noise_square(clip)
    h, along = choice.metric.values, np.einsum("ij,ik,kj->j", choice.metric.vectors, gram, choice.metric.vectors)
    seen = np.maximum(along, 0.0)
    longest = min(_path_length(plan, choice.metric, clip, noise * d), OF_LONGEST * most / choice.curvature)
    paths, declared = longest * 2.0 ** (-np.arange(17)[:, None] / 2), min(plan.declared_path(d), longest)
    if choice.metric.euclidean:  # no way is shorter than the declared one's, for a loss may be flatter than predicted
        paths = np.maximum(paths, declared)
        paths[-1] = declared
    slopes = np.maximum(plan.curvature * seen / h, 2.0**-300)
    added = np.minimum(paths**2 / 3, sqrt(pi) / 4 * np.sqrt(paths) / slopes**1.5) * noise
    left = plan.curvature * seen / slopes * plan.problem.radius**2 / d * np.exp(-_FLATTER * slopes * paths)
    predicted = (slopes * (added + left)).sum(axis=1) / 2
    best = taken = int(np.argmin(predicted))
    if choice.metric.euclidean and predicted[best] > _LONGER_BETTER * predicted[-1]:
        taken = -1  # a longer one is taken for a clear gain alone
    return float(paths[taken, 0]), float(predicted[best])


def _longest(plan: MeasuredPlan, metric: Metric) -> float:
    """No point is longer in this metric."""
    return plan.x_norm / sqrt(float(metric.values.min()))


def _path_length(plan: MeasuredPlan, metric: Metric, clip: float, square: float) -> float:
    """The steps' number times the first of them, as step_schedule.py has it; `square` of the noise of all in one."""
    radius = metric.length(plan.problem.over, plan.problem.start)
    return path_length(plan.problem, radius, sqrt(square), clip)


def edges_of(plan: MeasuredPlan, metric: Metric) -> Vector:
    """Where the cells of norms in a metric end."""
    return _longest(plan, metric) * (1 + 1e-6) * 2.0 ** (-np.arange(_CELLS)[::-1] / _FINE)


def least_clip(plan: MeasuredPlan, gram: NDArray[np.float64], metric: Metric, counts: Vector, edges: Vector) -> float:
    """The clip at which the noise and what clipping takes off are the least together.

    Slopes are taken to lie between 0 and the largest one, the likelier the smaller, linearly; but a tenth of them may
    be the largest, which costs more where little is cut off. Norms end where the count of all beyond is no more than
    its noise; half the root of their mean square, which the gram tells, is a floor.
    """
    d, clips = len(gram), plan.slope * edges[-1] * 2.0 ** (-np.arange(_CELLS) / _FINE)
    beyond, cells = np.cumsum(counts[::-1])[::-1], np.arange(_CELLS, 0, -1)
    surely = np.flatnonzero(beyond > _BELIEVED * plan.norms.sigma * np.sqrt(cells))
    believed = np.where(np.arange(_CELLS) <= (surely[-1] if surely.size else 0), np.maximum(counts, 0.0), 0.0)
    cut = np.maximum(1 - clips[:, None] / (plan.slope * edges), 0.0)
    bias = (believed * plan.slope * edges * np.maximum(cut**3 / 3, _AT_ENDS * cut)).sum(axis=1) / plan.n
    noise = d * np.array([plan.noise_square(clip) for clip in clips])
    along = np.einsum("ij,ik,kj->j", metric.vectors, gram, metric.vectors)
    usual = plan.slope * sqrt(float((np.maximum(along, 0.0) / metric.values).sum()))
    return min(max(float(clips[np.argmin(noise + bias**2)]), usual / 2), float(clips[0]))


@dataclass(frozen=True)
class MeasuredSteps:
    """The steps of a descent in a metric, and the bound: measured_descent.md, theorems 2 and 3."""

    rates: Vector
    noise: Share
    bound: float

    @classmethod
    def of(cls, plan: MeasuredPlan, measured: Measured) -> MeasuredSteps:
        d, problem, curvature = len(measured.gram), plan.problem, measured.curvature
        radius = measured.metric.length(problem.over, problem.start)
        most = STEPS if measured.whitened else MOST_STEPS
        path, _ = best_path(plan, measured.gram, Choice(measured.metric, curvature), measured.clip, most)
        # where the path is the declared one, so are the steps: fewer and longer ones only add noise
        declared = path <= _SAME_PATH * plan.declared_path(d)
        bend = plan.curvature * plan.x_norm**2 + problem.lam if declared else curvature
        steps = STEPS if measured.whitened else ceil(min(max(path * bend / OF_LONGEST, _LEAST_STEPS), MOST_STEPS))
        noise = plan.gradients(measured.clip, steps)
        square = d * (noise.deviation / plan.n) ** 2
        first = min(path / steps, OF_LONGEST / curvature)
        part = first * curvature
        mean = -log1p(-part) / part + (1 / (1 - part) - 1) / steps
        start, part_of_way = problem.start_excess(), 1.0
        if start < inf:
            part_of_way = min(1.0, start * first * steps / radius**2)
        bound = part_of_way**2 * radius**2 / (2 * first * steps) + first * square * mean / 2
        if part_of_way < 1:
            bound += (1 - part_of_way) * start
        # clipped derivatives are those of another convex loss; its gradient differs from the true one by at most this
        cut = np.maximum(plan.slope * measured.edges - measured.clip, 0.0)
        lost = float(measured.counts @ cut) + _SURE_OF_ALL * plan.norms.sigma * float(np.linalg.norm(cut))
        across = min(2 * radius, problem.over.diameter * sqrt(float(measured.metric.values.max())))
        bound += across * (max(lost, 0.0) / plan.n + sqrt(d) / noise.unit * (1 + log(steps)))
        return cls(first * (1 - np.arange(steps) / steps), noise, min(bound, problem.varies()))


def run_measured(
    plan: MeasuredPlan, points: Points, *, callback: Callback | None = None, progress: Progress = None,
    rng: Randomness | None = None, budget: Budget | None = None,
) -> tuple[NDArray[np.float64], dict[str, Any]]:  # fmt: skip
    """Charge, buy moments, buy norms, descend: (all points, what else `PrivateDescent` states)."""
    d, guarantee, asked = points.d, plan.price.guarantee, plan.price.asked
    price = {"epsilon": asked.epsilon, "delta": asked.delta, "moments": MOMENTS + NORMS}
    with ChargedKeys("noisy_projected_gradient_descent", guarantee, price, budget, rng) as keys:
        points = keys.reads(points, RECORDS)
        points.check()
        with reporting(progress, "descending") as report:
            report(0, STEPS, "second moments")
            measured, inside = _measure(plan, points, keys)
            steps = MeasuredSteps.of(plan, measured)
            noise, count = steps.noise, len(steps.rates)
            drawn = integer_noise(gaussian_plan(noise.sigma), keys.take(), count * d).reshape(count, d)
            path = _descend(plan, inside, measured, noise, steps.rates, drawn, callback, report)
    return path, {
        "steps": count,
        "step_size": float(steps.rates[0]),
        "bound": steps.bound,
        "guarantee": keys.stating(guarantee),
        "clip": measured.clip,
        "resolution": 1 / noise.unit,
        "noise": "gaussian",
        "noise_scale": noise.deviation,
        "scales": {"gaussian": noise.deviation},
        "uncapped": None,
        "moments": measured.gram,
        "metric": "moments" if measured.whitened else "euclidean",
    }


def _measure(plan: MeasuredPlan, points: Points, keys: ChargedKeys) -> tuple[Measured, MetricPoints]:
    """Buy second moments; then the norms of points in their metric, from which the clip follows."""
    gram = _release_gram(plan, points, keys)
    choice, whitened = choose(plan, gram)
    edges, inside = edges_of(plan, choice.metric), MetricPoints.of(points, choice.metric)
    counts = np.asarray(
        inside.count_norms(edges) + integer_noise(gaussian_plan(plan.norms.sigma), keys.take(), _CELLS), np.float64
    )
    clip = least_clip(plan, gram, choice.metric, counts, edges)
    return Measured(gram, choice.metric, whitened, choice.curvature, counts, edges, clip), inside


def _release_gram(plan: MeasuredPlan, points: Points, keys: ChargedKeys) -> NDArray[np.float64]:
    """The mean of x x^T with noise, symmetric: sigma on the diagonal, sqrt(2) less off it."""
    d, share = points.d, plan.moments
    sums = points.moments(plan.x_norm, 1.0, share.unit)
    rows, columns = np.triu_indices(d, 1)
    places = np.append(rows, np.full(d, d + 1)), np.append(columns, np.arange(d))
    released = sums[places] + integer_noise(gaussian_plan(share.sigma), keys.take(), len(places[0]))
    scale = plan.x_norm**2 / (share.unit * plan.n)
    gram = np.zeros((d, d))
    gram[rows, columns] = released[: len(rows)] * (scale / sqrt(2))
    return np.asarray(gram + gram.T + np.diag(released[len(rows) :] * scale))


def _descend(
    plan: MeasuredPlan, points: MetricPoints, measured: Measured, noise: Share, rates: Vector,
    drawn: NDArray[np.int64], callback: Callback | None, report: Report,
) -> NDArray[np.float64]:  # fmt: skip
    """All points of the descent, in the coordinates that users know; each lies in the set."""
    problem, metric, d = plan.problem, measured.metric, points.d
    limit, scale = limit_of(measured.clip * noise.unit, d), 1 / (plan.n * noise.unit)
    path = np.empty((len(rates) + 1, d))
    path[0], z = problem.start, metric.coordinates(problem.start)
    for t, rate in enumerate(rates):
        report(t, len(rates), "descending")
        gradient = (points.gradients(z, noise.unit, limit) + drawn[t]) * scale
        if problem.lam:
            gradient = gradient + problem.lam * (metric.to_points.T @ metric.point(z))
        z = z - rate * gradient
        if problem.l1:
            w = metric.nearest(metric.point(z), problem.over, rate * problem.l1)
            z = metric.coordinates(w)
        else:
            z = metric.project(z, problem.over)
            w = problem.over.project(metric.point(z))
        path[t + 1] = given_point(problem.over, "project(w)", w, d)
        if callback is not None:
            callback(t + 1, path[t + 1].copy())
    report(len(rates), len(rates), "")
    return path


__all__ = ["STEPS", "MeasuredPlan", "run_measured"]
