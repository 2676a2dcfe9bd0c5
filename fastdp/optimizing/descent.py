"""Projected gradient descent, plain and noisy.

Each step of the noisy one sums clipped gradients as integers, adds discrete noise, and does the rest in public: the
regulariser, the step, the projection, the average. All noise is drawn before the first step, since no record has a say
in it. descent.md has the proofs of privacy and of the promised excess risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..randomness.noise_draws import integer_noise
from ..support.checks import check_records, integer, one_of, positive, power_of_two, small_delta
from ..support.progress import Progress, Report, reporting
from ..support.results import Displayed, DisplayLines
from .points import DescentSteps
from .problem import OUTSIDE, Outside, Problem, read_points
from .sets import ConvexSet, Vector
from .step_noise import Noise, promise
from .step_schedule import Schedule

NOISES = ("auto", "gaussian", "laplace", "laplace-per-coordinate")
_MOST_KEPT = 2**28  # coordinates of points and noise of a descent: 2 GiB each

Callback = Callable[[int, Vector], object]


@dataclass(frozen=True, eq=False, repr=False)
class Descent(Displayed):
    """Where a descent came to.

    w           the average of w_0 .. w_(T-1), at which gradients were taken, or the last point w_T
    steps       how many: T
    step_size   of the first step
    bound       the mean loss at w exceeds the least one by at most this in expectation, if the declared bounds hold;
                None where no theorem says so: without bounds, or for the last point of constant steps
    history     w_0 .. w_T, one a row, if it was asked for
    """

    w: Vector
    steps: int
    step_size: float
    bound: float | None
    history: NDArray[np.float64] | None

    def _display(self) -> DisplayLines:
        w = np.array2string(self.w, precision=4, threshold=6, edgeitems=2)
        bound = "none promised" if self.bound is None else f"at most {self.bound:.3g} in expectation"
        return [("w", w), ("steps", f"{self.steps} of size {self.step_size:.3g}"), ("excess risk", bound)]


@dataclass(frozen=True, eq=False, repr=False)
class PrivateDescent(Descent, Accounted):
    """Where a private descent came to.

    guarantee     what the whole descent promises
    clip          the norm that the gradient of a record keeps
    resolution    the grid of gradients and noise, a power of two
    noise         "gaussian" or "laplace", and by which calibration
    noise_scale   of the noise in each coordinate of the sum of the gradients: sigma if Gaussian, b if Laplace
    scales        what every kind of noise would have had, by name
    uncapped      the bound if there were no limit to the number of steps
    """

    guarantee: Guarantee
    clip: float
    resolution: float
    noise: str
    noise_scale: float
    scales: dict[str, float]
    uncapped: float | None

    def _display(self) -> DisplayLines:
        rows = super()._display()
        if self.bound is not None and self.uncapped is not None and self.uncapped < 0.95 * self.bound:
            rows[-1] = ("excess risk", f"{rows[-1][1]}; {self.uncapped:.3g} with as many steps as the theorem takes")
        noise = f"{self.noise}, scale {self.noise_scale:.4g} in each coordinate of the sum"
        clip = f"{self.clip:.4g}, on a grid of {self.resolution:.3g}"
        return [*rows, ("clip", clip), ("noise", noise), ("guarantee", str(self.guarantee))]


def projected_gradient_descent(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    steps: int,
    step_size: float | None = None,
    average: bool = True,
    start: ArrayLike | None = None,
    history: bool = False,
    callback: Callback | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
) -> Descent:
    """Minimise the mean loss over a convex set. Not private.

    X, y        points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss        one of `fastdp.losses`, perhaps + L2(lam)
    over        one of `fastdp.sets`
    step_size   by default R / (G sqrt(T)): R how far the set reaches from the start, G the Lipschitz constant
    average     return the average of w_0 .. w_(T-1), or else the last point
    history     keep w_0 .. w_T
    callback    called as callback(t, w_t) after every step

    Accuracy     with the default step, the excess over the least mean loss is at most R G / sqrt(T)
    Proof        descent.md, theorem 4

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)).clip(-1, 1) / 2
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> error = fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    >>> fit = fastdp.projected_gradient_descent(X, y, loss=error, over=fastdp.sets.Ball(1), steps=500, step_size=0.5)
    >>> bool(abs(fit.w - [0.5, -0.3, 0.1]).max() < 0.1)
    True
    """
    steps = integer("steps", steps, least=1)
    one_of("outside", outside, OUTSIDE)
    _check_ways(average, callback)
    points, problem = read_points(X, y, loss, over, start, outside)
    of_record = problem.lipschitz() if step_size is not None else problem.lipschitz_or_error("step_size")
    lipschitz = None if of_record is None else of_record + problem.ridge
    if step_size is not None:
        rate = _rate(step_size)
    else:
        assert lipschitz is not None
        rate = problem.reach / (lipschitz * sqrt(steps))
    _check_length(steps, points.d)
    step = DescentSteps(1 / points.n, problem.lam, np.full(steps, rate), problem.over.projection)
    points.check()
    with reporting(progress, "descending") as report:
        path = walk(points.plain_gradients, problem, step, np.zeros((steps, points.d), np.int64), callback, report)
    bound = None
    if average and lipschitz is not None:
        bound = problem.reach**2 / (2 * rate * steps) + rate * lipschitz**2 / 2
    return Descent(_result(path, average), steps, rate, bound, path if history else None)


def noisy_projected_gradient_descent(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    clip: float | None = None,
    noise: Noise = "auto",
    steps: int | None = None,
    step_size: float | None = None,
    average: bool | None = None,
    start: ArrayLike | None = None,
    history: bool = False,
    callback: Callback | None = None,
    resolution: float | None = None,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateDescent:
    """Minimise the mean loss over a convex set, privately: descent with noise in every gradient.

    X, y         points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss, over   one of `fastdp.losses`, perhaps + L2(lam); one of `fastdp.sets`
    clip         the norm that the gradient of a record keeps; by default the loss's Lipschitz constant
    noise        "gaussian", "laplace" (by the L2 norm), "laplace-per-coordinate", or "auto": the least of them
    steps        by default as many as the theorem can use, up to 1,000
    step_size    of the first step; by default what the theorem takes, from n, d, epsilon, the set and the loss
    average      None: steps fall linearly to 0, and the last point is returned; True: constant steps, and the average
                 of w_0 .. w_(T-1); False: constant steps, the last point
    resolution   the grid, a power of two; by default a 2^30th of the clip, or what n and the noise allow
    records      under add-remove neighbours, where n is private: a public number that takes its place
    callback     called as callback(t, w_t) after every step; w_t is private already

    Guarantee    (epsilon, delta)-DP, for any data and any loss, however wrong its declared bounds
    Proof        descent.md, theorems 1 to 3
    Accuracy     `.bound` of the result (theorems 4 to 6), if the declared bounds hold
    Cost         a step reads the records once: 5 ms for a million of 20 coordinates
    Not covered  the time of a `Custom` loss; labels and points outside the declared bounds are an error before anything
                 is spent, unless outside="clip"
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3)).clip(-1, 1) / 2
    >>> y = X @ [2.0, -1.0, 0.0] > 0
    >>> fit = fastdp.noisy_projected_gradient_descent(
    ...     X, y, loss=fastdp.losses.Logistic(x_norm=1), over=fastdp.sets.Ball(5), epsilon=1.0, delta=1e-6
    ... )
    >>> bool((((X @ fit.w) > 0) == y).mean() > 0.9)
    True
    """
    one_of("outside", outside, OUTSIDE)
    one_of("neighbors", neighbors, NEIGHBORS)
    one_of("noise", noise, NOISES)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    _check_ways(average, callback)
    if steps is not None:
        steps = integer("steps", steps, least=1)
    if clip is not None:
        clip = positive("clip", clip, toward=0)
    if step_size is not None:
        step_size = _rate(step_size)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    check_records(records, neighbors)
    if records is not None:
        records = integer("records", records, least=1)
    points, problem = read_points(X, y, loss, over, start, outside, records)
    n = points.n if records is None else records
    schedule = Schedule.of(
        problem, n=n, d=points.d, epsilon=epsilon, delta=delta, clip=clip, noise=noise, steps=steps,
        step_size=step_size, average=average, resolution=resolution, neighbors=neighbors,
    )  # fmt: skip
    _check_length(schedule.steps, points.d)
    grid, scale = schedule.grid, schedule.grid.scale
    guarantee = promise(grid, points.d, schedule.steps, epsilon, delta, neighbors)
    parameters = {"epsilon": epsilon, "delta": delta, "steps": schedule.steps, "clip": grid.clip}
    step = DescentSteps(1 / (n * grid.unit), problem.lam, schedule.rates, problem.over.projection)
    unit, limit = grid.unit, grid.limit(points.d)
    with charge(budget, guarantee, "noisy_projected_gradient_descent", parameters) as final:
        points.check()
        law, key = scale.plan(), fresh_key(rng)
        final()
        noises = integer_noise(law, key, schedule.steps * points.d).reshape(schedule.steps, points.d)
        path = None if callback or progress else points.descend(problem.start, unit, limit, noises, step)
        if path is None:
            with reporting(progress, "descending") as report:
                path = walk(lambda w: points.gradients(w, unit, limit), problem, step, noises, callback, report)
    return PrivateDescent(
        w=_result(path, bool(average)),
        steps=schedule.steps,
        step_size=float(schedule.rates[0]),
        bound=schedule.bound,
        history=path if history else None,
        guarantee=guarantee,
        clip=grid.clip,
        resolution=1 / unit,
        noise=scale.named,
        noise_scale=scale.value / unit,
        scales={name: each.value / unit for name, each in schedule.options.items()},
        uncapped=schedule.uncapped,
    )


def _check_ways(average: Any, callback: Any) -> None:
    if average is not None and not isinstance(average, bool | np.bool_):
        raise ValueError(f"average={average!r}: must be None, True or False")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r}: must be a function of (t, w), or None")


def _rate(step_size: float) -> float:
    """The length of a step, such that no point of a descent leaves float64."""
    rate = positive("step_size", step_size, toward=0)
    if not 2.0**-300 <= rate <= 2.0**300:
        raise ValueError(f"step_size={step_size!r}: must be between 2^-300 and 2^300")
    return rate


def _check_length(steps: int, d: int) -> None:
    if steps * d > _MOST_KEPT:
        raise ValueError(f"steps={steps}: must be at most {_MOST_KEPT // d:,} for {d} columns, as all points are kept")


def walk(
    gradients: Callable[[Vector], NDArray[Any]], problem: Problem, step: DescentSteps, noises: NDArray[np.int64],
    callback: Callback | None, report: Report,
) -> NDArray[np.float64]:  # fmt: skip
    """All points of a descent, step by step: for records in several blocks, and where Python has a say in a step."""
    from ..kernels.descent import step_once

    take: Any = step_once
    steps, d = noises.shape
    w, space, path = problem.start.copy(), np.empty(d), np.empty((steps + 1, d))
    mean, region = step.mean, np.zeros(2 + 2 * d) if step.projection is None else step.projection.region
    for t in range(steps):
        path[t] = w
        report(t, steps, "")
        take(gradients(w), noises[t], mean, step.rates[t], region, w, space)
        if step.projection is None:
            w = problem.over.project(w)
        if callback is not None:
            callback(t + 1, w.copy())
    report(steps, steps, "")
    path[steps] = w
    return path


def _result(path: NDArray[np.float64], average: bool) -> Vector:
    return np.asarray(path[:-1].mean(axis=0)) if average else path[-1].copy()
