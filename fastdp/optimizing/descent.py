"""Projected gradient descent, plain and noisy.

A noisy step sums clipped gradients as integers, adds discrete noise, and does the rest in public. All noise is drawn
before the first step, since it depends on no record. descent.md has the proofs of privacy and of the error bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.rehearsal import RECORDS
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import flag, integer, one_of, optional_flag, positive, public_count
from ..support.parameters import MOST_STEPS, Outside
from ..support.progress import Progress, check_progress, reporting
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.shown import shown
from .grid_points import GridPoints, checked_source
from .measured_descent import MeasuredPlan, run_measured
from .points import DescentSteps, Points
from .problem import Problem, read_points
from .sets import ConvexSet, Vector
from .step_noise import Noise, NoiseParameters, guarantee_of
from .step_schedule import DescentSchedule, GivenSteps
from .stepwise import Callback, LongerSteps, walk

NOISES = ("auto", "gaussian", "laplace", "laplace-per-coordinate")
_MOST_KEPT = 2**28  # coordinates of points and noise of a descent: 2 GiB each


@public_as("fastdp.optimizing")
@dataclass(frozen=True, eq=False, repr=False)
class Descent(Displayed):
    """Where a descent came to.

    Attributes
    ----------
    w : numpy.ndarray
        The average of w_0 .. w_(T-1), at which gradients were taken, or the last point w_T.
    steps : int
        How many there were: T.
    step_size : float
        The length of the first step.
    bound : float or None
        The mean loss at w exceeds the least one by at most this in expectation, if the declared bounds hold; None where
        no theorem bounds it: without bounds, or for the last point of constant steps.
    history : numpy.ndarray or None
        w_0 .. w_T, one a row, if it was asked for.
    """

    w: Vector
    steps: int
    step_size: float
    bound: float | None
    history: NDArray[np.float64] | None

    def _display(self) -> DisplayLines:
        w = np.array2string(self.w, precision=4, threshold=6, edgeitems=2)
        bound = "no bound" if self.bound is None else f"at most {self.bound:.3g} in expectation"
        return [("w", w), ("steps", f"{self.steps} of size {self.step_size:.3g}"), ("excess risk", bound)]


@public_as("fastdp.optimizing")
@dataclass(frozen=True, eq=False, repr=False)
class PrivateDescent(Descent, Accounted):
    """Where a private descent came to.

    Attributes
    ----------
    w : numpy.ndarray
        The average of w_0 .. w_(T-1), at which gradients were taken, or the last point w_T.
    steps : int
        How many there were: T.
    step_size : float
        The length of the first step.
    bound : float or None
        The mean loss at w exceeds the least one by at most this in expectation, if the declared bounds hold; None where
        no theorem bounds it. Where moments were bought it follows from them, and fails with probability 1e-5 more.
        Where steps have grown it is higher than before, though what comes out is better.
    history : numpy.ndarray or None
        w_0 .. w_T, one a row, if it was asked for.
    guarantee : Guarantee
        Of the whole descent.
    clip : float
        The largest norm of a record's gradient.
    resolution : float
        The grid of gradients and noise, a power of two.
    noise : str
        "gaussian" or "laplace", and by which calibration.
    noise_scale : float
        Of the noise in each coordinate of the sum of the gradients: sigma if Gaussian, b if Laplace.
    scales : dict of str to float
        What every kind of noise would have had, by name.
    uncapped : float or None
        The bound if there were no limit to the number of steps.
    coordinates : str
        How points were held: "int16", rounded at random by a rule of public numbers, or "float64", as they are. The
        bound contains what rounding costs.
    moments : numpy.ndarray or None
        The noisy mean of x x^T where a part of the budget has bought it.
    metric : str
        "moments" where steps are taken in the metric of these moments, in which the clip is meant, too; or "euclidean".
    """

    guarantee: Guarantee
    clip: float
    resolution: float
    noise: str
    noise_scale: float
    scales: dict[str, float]
    uncapped: float | None
    coordinates: str = "float64"
    moments: NDArray[np.float64] | None = None
    metric: str = "euclidean"

    def _display(self) -> DisplayLines:
        rows = super()._display()
        if self.bound is not None and self.uncapped is not None and self.uncapped < 0.95 * self.bound:
            rows[-1] = ("excess risk", f"{rows[-1][1]}; {self.uncapped:.3g} with as many steps as the theorem takes")
        noise = f"{self.noise}, scale {self.noise_scale:.4g} in each coordinate of the sum"
        clip = f"{self.clip:.4g}, on a grid of {self.resolution:.3g}, points as {self.coordinates}"
        bought = [] if self.moments is None else [("metric", f"{self.metric}; second moments were bought with noise")]
        return [*rows, *bought, ("clip", clip), ("noise", noise), ("guarantee", str(self.guarantee))]


@boundary
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

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        The points of the records, one a row.
    y : array_like or str, optional
        Their labels, if the loss has labels; the name of a column of X, or an array.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    steps : int >= 1
        How many steps are taken.
    step_size : float > 0, optional
        Their length; by default R / (G sqrt(T)): R the largest distance from the start to a point of the set, G the
        Lipschitz constant.
    average : bool
        Whether to return the average of w_0 .. w_(T-1), or else the last point.
    start : array_like of float, optional
        w_0, a point of the set; by default its center.
    history : bool
        Whether to keep w_0 .. w_T.
    callback : callable, optional
        Called as callback(t, w_t) after every step.
    outside : {"raise", "clip"}
        What is done with points and labels beyond the declared bounds: an error, or the nearest ones within, where 0
        takes the place of NaN, of missing entries and of what is no number.
    progress : bool or callable, optional
        True for a bar, or a function of (done, total, what).

    Returns
    -------
    Descent
        Where it came to.

    Raises
    ------
    ValueError
        For parameters outside their range, and bounds of the loss that are missing.
    DomainError
        For records outside the declared bounds.

    Notes
    -----
    Accuracy     with the default step, the excess over the least mean loss is at most R G / sqrt(T):
                 `bounds.projected_gradient_descent`
    Proof        descent.md, theorem 4

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)).clip(-1, 1) / 2
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> error = fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    >>> fit = fastdp.projected_gradient_descent(X, y, loss=error, over=fastdp.sets.Ball(1), steps=500, step_size=0.5)
    >>> bool(abs(fit.w - [0.5, -0.3, 0.1]).max() < 0.1)
    True
    """
    steps = integer("steps", steps, least=1, most=MOST_STEPS)
    outside = parameters.outside(outside)
    _check_result(average, history, callback)
    points, problem = read_points(X, y, loss, over, start, outside)
    of_record = problem.lipschitz() if step_size is not None else problem.lipschitz_or_error("step_size")
    lipschitz = None if of_record is None else of_record + problem.ridge
    if step_size is not None:
        rate = _rate(step_size)
    else:
        assert lipschitz is not None
        rate = problem.radius / (lipschitz * sqrt(steps))
    _check_length(steps, points.d)
    after = DescentSteps(1 / points.n, problem.lam, np.full(steps, rate), problem.projection)
    points.check()
    with reporting(progress, "descending") as report:
        path = walk(
            lambda w, _: points.plain_gradients(w),
            problem,
            after,
            np.zeros((steps, points.d), np.int64),
            callback,
            report,
        )
    bound = None
    if average and lipschitz is not None and problem.loss.convex:
        bound = problem.radius**2 / (2 * rate * steps) + rate * (lipschitz + problem.steepest_l1) ** 2 / 2
    return Descent(_result(path, average), steps, rate, bound, path if history else None)


@boundary
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
    curvature: Literal["auto", "declared"] = "auto",
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateDescent:
    """Minimise the mean loss over a convex set, privately: descent with noise in every gradient.

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        The points of the records, one a row.
    y : array_like or str, optional
        Their labels, if the loss has labels; the name of a column of X, or an array.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon of all steps together.
    delta : float in [0, 1)
        Their delta; 0 for noise that is Laplace.
    clip : float > 0, optional
        The largest norm of a record's gradient: longer ones are shortened; by default the loss's Lipschitz constant.
    noise : {"auto", "gaussian", "laplace", "laplace-per-coordinate"}
        "laplace" is calibrated by the L2 norm; "auto" takes the least of them.
    steps : int >= 1, optional
        How many steps are taken; by default as many as the theorem can use, up to 1,000.
    step_size : float > 0, optional
        The length of the first step; by default what the theorem takes, from n, d, epsilon, the set and the loss.
    average : bool, optional
        None: steps fall linearly to 0, and the last point is returned. True: constant steps, and the average of
        w_0 .. w_(T-1). False: constant steps, the last point.
    start : array_like of float, optional
        w_0, a point of the set; by default its center. It must be public: a constant, or `.w` of an earlier release.
    history : bool
        Whether to keep w_0 .. w_T.
    callback : callable, optional
        Called as callback(t, w_t) after every step; w_t is private already.
    resolution : power of two, optional
        The grid of gradients and noise, of points as they are; by default points of margin losses are integers of 16
        bits where that costs little, and the grid is a 2^25th of the clip; else a 2^30th, or what n and the noise
        allow.
    curvature : {"auto", "declared"}
        "auto": where public numbers promise that it helps, 4 % of the budget buy second moments and norms, from which
        the metric, the steps and the clip follow; only if delta > 0. Of `Hinge`, which has a corner, steps grow where
        released gradients show that the descent still moves one way. Neither if any of clip, noise, steps, step_size,
        average and resolution is given.
        "declared": steps for the largest curvature that the declared bounds allow; `fastdp.bounds` bounds this one.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place.
    outside : {"raise", "clip"}
        What is done with points and labels beyond the declared bounds: an error before anything is spent, or the
        nearest ones within, where 0 takes the place of NaN, of missing entries and of what is no number.
    progress : bool or callable, optional
        True for a bar, or a function of (done, total, what).
    rng : Randomness, optional
        Where keys come from; by default the operating system.
    budget : Budget, optional
        What is charged; by default the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    PrivateDescent
        Where it came to.

    Raises
    ------
    ValueError
        For parameters outside their range and bounds of the loss that are missing, before anything is spent.
    DomainError
        For records outside the declared bounds, before anything is spent.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, for any data and any loss, however wrong its declared bounds
    Proof        descent.md, theorems 1 to 3, and points.md, lemma 1; measured_descent.md, theorem 1, where moments are
                 bought
    Accuracy     `.bound` of the result, if the declared bounds hold: theorems 4 to 6 and 9, and points.md, theorem 1;
                 where moments are bought, measured_descent.md, theorem 3, from them
    Cost         a step reads the points once, 2 bytes a coordinate: 2.2 ms for a million of 20 coordinates
    Not covered  the time of a `Custom` loss

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3)).clip(-1, 1) / 2
    >>> y = X @ [2.0, -1.0, 0.0] > 0
    >>> fit = fastdp.noisy_projected_gradient_descent(
    ...     X, y, loss=fastdp.losses.Logistic(x_norm=1), over=fastdp.sets.Ball(5), epsilon=1.0, delta=1e-6
    ... )
    >>> bool((((X @ fit.w) > 0) == y).mean() > 0.9)
    True
    """
    outside = parameters.outside(outside)
    one_of("curvature", curvature, ("auto", "declared"))
    asked = NoiseParameters.of(epsilon, delta, noise, neighbors, NOISES)
    _check_result(average, history, callback)
    given = _given_steps(clip, steps, step_size, average, resolution)
    records = public_count(records, neighbors)
    points, problem = read_points(X, y, loss, over, start, outside, records)
    n = records or points.n
    plan = MeasuredPlan.of(problem, n, points.d, asked) if curvature == "auto" and given == GivenSteps() else None
    if plan is not None:
        fit = run_measured_descent(
            plan, points, history=history, callback=callback, progress=progress, rng=rng, budget=budget
        )
    else:
        schedule = DescentSchedule.of(problem, n, points.d, asked, given)
        declared = curvature == "declared" or noise != "auto" or given != GivenSteps()
        fit = run_descent(
            points, problem, n, asked, schedule, average=bool(average), history=history, callback=callback,
            progress=progress, rng=rng, budget=budget, declared=declared,
        )  # fmt: skip
    return fit


def run_measured_descent(plan: MeasuredPlan, points: Points, *, history: bool = False, **more: Any) -> PrivateDescent:
    """A noisy descent in the metric of second moments that are bought with a part of its price."""
    path, stated = run_measured(plan, points, **more)
    plan.problem.warn_if_vacuous(stated["bound"])
    return PrivateDescent(w=path[-1].copy(), history=path if history else None, **stated)


def run_descent(
    points: Points, problem: Problem, n: int, asked: NoiseParameters, schedule: DescentSchedule, *,
    average: bool = False, history: bool = False, callback: Callback | None = None, progress: Progress = None,
    rng: Randomness | None = None, budget: Budget | None = None, declared: bool = True,
) -> PrivateDescent:  # fmt: skip
    """A noisy descent by its schedule: charge, read the records, draw the noise of all steps, descend.

    `declared`: steps stay as they are planned, also where they might grow.
    """
    check_progress(progress)
    grid, drawn, d = schedule.grid, schedule.grid.noise, points.d
    _check_length(schedule.steps, d)
    guarantee = guarantee_of(asked, grid, d, schedule.steps)
    price = {"epsilon": asked.epsilon, "delta": asked.delta, "steps": schedule.steps, "clip": grid.clip}
    with ChargedKeys("noisy_projected_gradient_descent", guarantee, price, budget, rng) as keys:
        points, for_noise = keys.reads(points, RECORDS), keys.take_ahead()
        source = checked_source(points, grid.longest, keys.take_ahead)
        keys.commit()
        noises = integer_noise(drawn.plan(), for_noise, schedule.steps * d).reshape(schedule.steps, d)
        longer = None if declared or not schedule.may_grow else LongerSteps(problem, schedule, n)
        path = _noisy_path(source, problem, schedule, n, noises, callback, progress, longer)
    problem.warn_if_vacuous(schedule.bound)
    bound, uncapped = schedule.bound, schedule.uncapped
    if longer is not None and bound is not None and longer.added:
        bound, uncapped = min(bound + longer.added, problem.varies()), None
    return PrivateDescent(
        w=_result(path, average),
        steps=schedule.steps,
        step_size=float(schedule.rates[0]),
        bound=bound,
        history=path if history else None,
        guarantee=keys.stating(guarantee),
        clip=grid.clip,
        resolution=1 / grid.unit,
        noise=drawn.named,
        noise_scale=drawn.value / grid.unit,
        scales={name: each.value / grid.unit for name, each in schedule.options.items()},
        coordinates=grid.coordinates,
        uncapped=uncapped,
    )


def _noisy_path(
    points: Points | GridPoints, problem: Problem, schedule: DescentSchedule, n: int, noises: NDArray[np.int64],
    callback: Callback | None, progress: Progress, longer: LongerSteps | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """All points of a descent over checked records: in one compiled loop, if there is one for them."""
    unit, limit = schedule.grid.unit, schedule.grid.limit(points.d)
    after = DescentSteps(1 / (n * unit), problem.lam, schedule.rates, problem.projection)
    if longer is None and callback is None and (progress is None or progress is False):
        if isinstance(points, GridPoints):
            path = points.descend(problem.start, unit, noises, after)
        else:
            path = points.descend(problem.start, unit, limit, noises, after)
        if path is not None:
            return path

    def gradients(w: Vector, step: int) -> NDArray[np.int64]:
        if isinstance(points, GridPoints):
            return points.gradients(w, step, unit)
        return points.gradients(w, unit, limit)

    with reporting(progress, "descending") as report:
        return walk(gradients, problem, after, noises, callback, report, longer)


def _given_steps(clip: Any, steps: Any, step_size: Any, average: bool | None, resolution: Any) -> GivenSteps:
    return GivenSteps(
        clip=None if clip is None else positive("clip", clip, toward=0),
        steps=None if steps is None else integer("steps", steps, least=1, most=MOST_STEPS),
        step_size=None if step_size is None else _rate(step_size),
        average=average,
        resolution=None if resolution is None else parameters.resolution(resolution),
    )


def _check_result(average: Any, history: Any, callback: Any) -> None:
    optional_flag("average", average)
    flag("history", history)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={shown(callback)}: must be a function of (t, w), or None")


def _rate(step_size: float) -> float:
    """The length of a step, such that no point of a descent leaves float64."""
    rate = positive("step_size", step_size, toward=0)
    if not 2.0**-300 <= rate <= 2.0**300:
        raise ValueError(f"step_size={step_size!r}: must be between 2^-300 and 2^300")
    return rate


def _check_length(steps: int, d: int) -> None:
    if steps * d > _MOST_KEPT:
        raise ValueError(f"steps={steps}: must be at most {_MOST_KEPT // d:,} for {d} columns, as all points are kept")


def _result(path: NDArray[np.float64], average: bool) -> Vector:
    return np.asarray(path[:-1].mean(axis=0)) if average else path[-1].copy()
