"""Private empirical risk minimisation by the method with the least error bound.

Bounds are made of public numbers, so methods are compared before anything is spent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.keys import Randomness
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import one_of, public_count
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayLines, as_html, as_text
from .choice import ChoiceParameters
from .descent import PrivateDescent, run_descent, run_measured_descent
from .exponential_erm import PrivateChoice, choose_point, expected_excess, plan_of
from .losses import Custom, SquaredDistance
from .measured_descent import MeasuredPlan
from .moments import LeastSquares, MomentsPlan
from .points import Points
from .problem import Problem, read_points
from .sets import ConvexSet, Vector
from .step_noise import NoiseParameters, sum_grid
from .step_schedule import DescentSchedule, GivenSteps
from .vector_sums import Itself, VectorRelease, VectorRequest

Method = Literal["auto", "descent", "moments", "exponential"]
METHODS = ("auto", "descent", "moments", "exponential")

# The bound of moments holds for the worst curvature; records of any curvature come out far better. On the census, at
# equal bounds, their excess was 30 times less than that of descent.
_MOMENTS_ADAPT = 3.0

Details = PrivateDescent | LeastSquares | VectorRelease | PrivateChoice


@public_as("fastdp.optimizing")
@dataclass(frozen=True, eq=False)
class PrivateMinimum(Accounted):
    """A private minimiser, and how its method was chosen.

    Attributes
    ----------
    w : numpy.ndarray
        The point.
    method : str
        "descent", "moments" or "exponential".
    bound : float or None
        The mean loss at w exceeds the least one by at most this in expectation, if the declared bounds hold; of a
        descent that has bought second moments, or whose steps have grown, what follows from these.
    promises : dict of str to float or None
        The bound of every method by public numbers, by which they were compared; of "descent", that with
        curvature="declared". None: it does not apply, or has none.
    refusals : dict of str to str
        Why a method does not apply.
    details : PrivateDescent, LeastSquares, VectorRelease or PrivateChoice
        The result of the method itself; of "moments" and SquaredDistance, that of `vector_mean`.
    """

    w: Vector
    method: str
    bound: float | None
    promises: dict[str, float | None]
    refusals: dict[str, str]
    details: Details

    @property
    def guarantee(self) -> Guarantee:
        """Of the call."""
        return self.details.guarantee

    def _rows(self) -> DisplayLines:
        rows = []
        for name, bound in self.promises.items():
            state = self.refusals.get(name) or ("no bound" if bound is None else f"excess at most {bound:.3g}")
            rows.append((f"{name}{' (taken)' if name == self.method else ''}", state))
        return rows

    def __repr__(self) -> str:
        return f"PrivateMinimum by {self.method}\n{as_text(self._rows())}\n{self.details!r}"

    def _repr_html_(self) -> str:
        return as_html("PrivateMinimum", self._rows()) + self.details._repr_html_()


@boundary
def private_erm(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "auto",
    curvature: Literal["auto", "declared"] = "auto",
    start: ArrayLike | None = None,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateMinimum:
    """Minimise the mean loss over a convex set, privately, by whichever method has the least error bound.

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
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta; 0 for noise that is Laplace.
    method : {"auto", "descent", "moments", "exponential"}
        "descent": `noisy_projected_gradient_descent`. "moments": `noisy_least_squares` for SquaredError, and the point
        nearest to `vector_mean` for SquaredDistance. "exponential": `exponential_erm`, in up to four dimensions.
        "auto": the least bound, where that of moments, which usually do far better than it, counts for a third.
    curvature : {"auto", "declared"}
        As in `noisy_projected_gradient_descent`: whether a descent may buy second moments or take longer steps, or
        keeps to those that the declared bounds allow.
    start : array_like of float, optional
        A point of the set where descents start; by default its center. It must be public: a constant, or `.w` of an
        earlier release.
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
    PrivateMinimum
        The minimiser, and how its method was chosen.

    Raises
    ------
    ValueError
        For parameters outside their range and bounds of the loss that are missing, before anything is spent.
    DomainError
        For records outside the declared bounds, before anything is spent.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP
    Proof        that of the method; the choice among them depends on public numbers alone
    Accuracy     `.bound` of the result; `bounds.private_erm` bounds beforehand what has curvature="declared", and
                 whatever takes no descent

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50_000, 3)).clip(-1, 1) / 2
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> error = fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    >>> fit = fastdp.private_erm(X, y, loss=error, over=fastdp.sets.Ball(1), epsilon=1.0, delta=1e-6)
    >>> fit.method
    'moments'
    """
    one_of("method", method, METHODS)
    one_of("curvature", curvature, ("auto", "declared"))
    outside = parameters.outside(outside)
    asked = NoiseParameters.of(epsilon, delta, "auto", neighbors)
    records = public_count(records, neighbors)
    points, problem = read_points(X, y, loss, over, start, outside, records)
    n = records or points.n
    plans = plans_of(problem, n, asked, declared=curvature == "declared")
    excess, refusals = bounds_of(plans)
    if method == "auto":
        method = best_of(excess, problem.start_excess())
    plan = plans[method]
    if isinstance(plan, ValueError):
        if method != "exponential":
            raise plan
        plan = _Choice(problem, n, asked)  # a Custom loss is refused in comparisons only
    w, details = plan.run(ErmRun(points, outside, progress, rng, budget))
    if isinstance(details, PrivateDescent):  # which has warned by itself
        return PrivateMinimum(w, method, details.bound, excess, refusals, details)
    problem.warn_if_vacuous(excess[method])
    return PrivateMinimum(w, method, excess[method], excess, refusals, details)


# --- the methods: public numbers first, then a run on the records


class ErmRun(NamedTuple):
    """What a method is run on, and who is charged."""

    points: Points
    outside: Outside
    progress: Progress
    rng: Randomness | None
    budget: Budget | None


class ErmPlan(ABC):
    """What a method would do, and the bound on its expected excess risk; None where no theorem gives one."""

    bound: float | None

    @abstractmethod
    def run(self, on: ErmRun) -> tuple[Vector, Details]:
        """(the point, the method's own result)."""


class _Descent(ErmPlan):
    """Its bound is that of the declared way; a run that has bought moments states its own."""

    def __init__(self, problem: Problem, n: int, asked: NoiseParameters, declared: bool = False) -> None:
        self._about = problem, n, asked
        given = GivenSteps(clip=problem.loss.lipschitz(problem.over))  # an error names the bound that it needs
        self._schedule = DescentSchedule.of(problem, n, len(problem.start), asked, given)
        self.bound = self._schedule.bound
        self._declared = declared
        self._measured = None if declared else MeasuredPlan.of(problem, n, len(problem.start), asked)

    def run(self, on: ErmRun) -> tuple[Vector, Details]:
        if self._measured is not None:
            fit = run_measured_descent(self._measured, on.points, progress=on.progress, rng=on.rng, budget=on.budget)
            return fit.w, fit
        fit = run_descent(
            on.points, *self._about, self._schedule, declared=self._declared, progress=on.progress, rng=on.rng,
            budget=on.budget,
        )  # fmt: skip
        return fit.w, fit


class _Moments(ErmPlan):
    def __init__(self, problem: Problem, n: int, asked: NoiseParameters) -> None:
        self._n = n
        self._plan = MomentsPlan.of(problem, n, len(problem.start), asked)
        self.bound = self._plan.bound

    def run(self, on: ErmRun) -> tuple[Vector, Details]:
        fit = self._plan.release(on.points, self._n, on.progress, on.rng, on.budget)
        return fit.w, fit


class _Mean(ErmPlan):
    """The point nearest to the noisy mean: moments.md, theorem 3."""

    def __init__(self, problem: Problem, n: int, asked: NoiseParameters) -> None:
        self._problem, self._n, self._asked, d = problem, n, asked, len(problem.start)
        self._clip = problem.loss.declared_norm()
        grid, _ = sum_grid(asked, clip=self._clip, n=n, d=d, steps=1)
        # twice the expected squared norm of the noise in the mean
        self.bound = min(2 * d * (grid.deviation / n + 1 / grid.unit) ** 2, problem.varies())

    def run(self, on: ErmRun) -> tuple[Vector, Details]:
        with reporting(on.progress, "summing") as report:
            report(0, 1, "vectors")
            vectors = on.points.summing(Itself(self._clip if on.outside == "raise" else None))
            request = VectorRequest.of("vector_mean", vectors, self._clip, self._asked)
            mean = request.release(vectors, self._n, on.rng, on.budget)
            report(1, 1, "")
        # the minimiser of ||w - mean||^2 + lam/2 ||w||^2 + l1 |w|_1
        convex = 1 + self._problem.lam / 2
        return self._problem.nearest(mean.value / convex, 1 / (2 * convex)), mean


class _Choice(ErmPlan):
    """The exponential mechanism."""

    def __init__(self, problem: Problem, n: int, asked: NoiseParameters) -> None:
        self._plan = plan_of(ChoiceParameters(problem, len(problem.start), n, asked.epsilon, asked.neighbors))
        self.bound = expected_excess(self._plan)

    def run(self, on: ErmRun) -> tuple[Vector, Details]:
        chosen = choose_point(on.points, self._plan, progress=on.progress, rng=on.rng, budget=on.budget)
        return chosen.w, chosen


def _compared_choice(problem: Problem, n: int, asked: NoiseParameters) -> ErmPlan:
    if isinstance(problem.loss, Custom):
        raise ValueError("a Custom loss is evaluated in Python at every point: only if method='exponential'")
    return _Choice(problem, n, asked)


def plans_of(
    problem: Problem, n: int, asked: NoiseParameters, declared: bool = False
) -> dict[str, ErmPlan | ValueError]:
    """What every method would do, or why it does not apply; `declared`: descents buy no moments."""
    makers: dict[str, Callable[[Problem, int, NoiseParameters], ErmPlan]] = {
        "descent": partial(_Descent, declared=declared),
        "moments": _Mean if isinstance(problem.loss, SquaredDistance) else _Moments,
        "exponential": _compared_choice,
    }
    found: dict[str, ErmPlan | ValueError] = {}
    for name, make in makers.items():
        try:
            found[name] = make(problem, n, asked)
        except ValueError as refused:
            found[name] = refused
    return found


def bounds_of(plans: dict[str, ErmPlan | ValueError]) -> tuple[dict[str, float | None], dict[str, str]]:
    """The bounds on the expected excess, by method, and why some methods do not apply."""
    excess = {name: None if isinstance(plan, ValueError) else plan.bound for name, plan in plans.items()}
    return excess, {name: str(plan) for name, plan in plans.items() if isinstance(plan, ValueError)}


def best_of(excess: dict[str, float | None], start: float) -> Any:
    """The method with the least bound; descent, which needs the fewest declared bounds, where there is none.

    Bounds above that of the start say nothing, and count as alike.
    """
    weighted = {name: min(bound, start) for name, bound in excess.items() if bound is not None}
    if weighted.get("moments", inf) < inf:
        weighted["moments"] /= _MOMENTS_ADAPT
    return min(weighted, key=lambda name: weighted[name]) if weighted else "descent"
