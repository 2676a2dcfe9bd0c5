"""Private empirical risk minimisation by the method that promises most.

What the methods promise is made of public numbers, so they are compared before anything is spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from ..privacy.budget import Budget
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness
from ..support.checks import check_records, integer, one_of, positive, small_delta
from ..support.progress import Progress, reporting
from ..support.results import DisplayLines, as_html, as_text
from .descent import PrivateDescent, noisy_projected_gradient_descent
from .exponential_erm import PrivateChoice, expected_excess, exponential_erm
from .losses import Custom, SquaredDistance
from .moments import LeastSquares, Plan, noisy_least_squares
from .problem import OUTSIDE, Outside, Problem, read_points
from .sets import ConvexSet, Vector
from .step_noise import plan
from .step_schedule import Schedule
from .vectors import VectorRelease, release_vectors

Method = Literal["auto", "descent", "moments", "exponential"]
METHODS = ("auto", "descent", "moments", "exponential")

# A promise of moments holds for the worst curvature; records of any curvature come out far better. On the census, at
# equal promises, their excess was 30 times less than that of descent.
_MOMENTS_ADAPT = 3.0

Details = PrivateDescent | LeastSquares | VectorRelease | PrivateChoice


@dataclass(frozen=True, eq=False)
class PrivateMinimum(Accounted):
    """A private minimiser, and how its method was chosen.

    w           the point
    method      "descent", "moments" or "exponential"
    bound       the mean loss at w exceeds the least one by at most this in expectation, if the declared bounds hold
    promises    what every method would have promised in expectation; None: it does not apply, or promises nothing
    refusals    why a method does not apply
    details     the result of the method itself; of "moments" and SquaredDistance, that of `vector_mean`
    """

    w: Vector
    method: str
    bound: float | None
    promises: dict[str, float | None]
    refusals: dict[str, str]
    details: Details

    @property
    def guarantee(self) -> Guarantee:
        """What the call promises."""
        return self.details.guarantee

    def _rows(self) -> DisplayLines:
        rows = []
        for name, promise in self.promises.items():
            said = self.refusals.get(name) or (
                "promises nothing" if promise is None else f"excess at most {promise:.3g}"
            )
            rows.append((f"{name}{' (taken)' if name == self.method else ''}", said))
        return rows

    def __repr__(self) -> str:
        return f"PrivateMinimum by {self.method}\n{as_text(self._rows())}\n{self.details!r}"

    def _repr_html_(self) -> str:
        return as_html("PrivateMinimum", self._rows()) + self.details._repr_html_()


def private_erm(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "auto",
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateMinimum:
    """Minimise the mean loss over a convex set, privately, by whichever method promises most.

    X, y         points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss, over   one of `fastdp.losses`, perhaps + L2(lam); one of `fastdp.sets`
    method       "descent": `noisy_projected_gradient_descent`; "moments": `noisy_least_squares` for SquaredError, and
                 the point nearest to `vector_mean` for SquaredDistance; "exponential": `exponential_erm`, in up to four
                 dimensions; "auto": the least promised excess, where moments, which usually do far better than they
                 promise, count for a third
    records      under add-remove neighbours, where n is private: a public number that takes its place

    Guarantee    (epsilon, delta)-DP
    Proof        that of the method; the choice among them sees public numbers alone
    Accuracy     `.bound` of the result
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50_000, 3)).clip(-1, 1) / 2
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> error = fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    >>> fit = fastdp.private_erm(X, y, loss=error, over=fastdp.sets.Ball(1), epsilon=1.0, delta=1e-6)
    >>> fit.method
    'moments'
    """
    one_of("method", method, METHODS)
    one_of("outside", outside, OUTSIDE)
    one_of("neighbors", neighbors, NEIGHBORS)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    check_records(records, neighbors)
    if records is not None:
        records = integer("records", records, least=1)
    points, problem = read_points(X, y, loss, over, None, outside, records)
    n = points.n if records is None else records
    promises, refusals = promises_of(problem, n, epsilon, delta, neighbors)
    if method == "auto":
        method = taken(promises)
    options: dict[str, Any] = {
        "loss": loss, "over": over, "epsilon": epsilon, "records": records, "outside": outside, "progress": progress,
        "rng": rng, "budget": budget, "neighbors": neighbors,
    }  # fmt: skip
    details: Details
    if method == "descent":
        details = noisy_projected_gradient_descent(X, y, delta=delta, **options)
    elif method == "moments" and isinstance(problem.loss, SquaredDistance):
        with reporting(progress, "summing") as report:
            report(0, 1, "vectors")
            details = release_vectors(
                "vector_mean", X, problem.loss.declared_norm(), epsilon, delta, "auto", None, records or 0, rng, budget,
                neighbors, outside,
            )  # fmt: skip
            report(1, 1, "")
        return PrivateMinimum(_nearest(problem, details.value), method, promises[method], promises, refusals, details)
    elif method == "moments":
        details = noisy_least_squares(X, y, delta=delta, **options)
    else:
        details = exponential_erm(X, y, **options)
    return PrivateMinimum(details.w, method, promises[method], promises, refusals, details)


def _nearest(problem: Problem, mean: Vector) -> Vector:
    """The minimiser of ||w - mean||^2 + lam/2 ||w||^2 over the set."""
    return problem.over.project(mean / (1 + problem.lam / 2))


def _mean_promise(
    problem: Problem, loss: SquaredDistance, n: int, epsilon: float, delta: float, neighbors: Neighbors
) -> float:
    """Twice the expected squared norm of the noise in the mean: moments.md, theorem 3."""
    d = len(problem.start)
    grid, _ = plan(
        clip=loss.declared_norm(), n=n, d=d, steps=1, epsilon=epsilon, delta=delta, noise="auto", neighbors=neighbors
    )  # fmt: skip
    return min(2 * d * (grid.deviation / n + 1 / grid.unit) ** 2, problem.varies())


def promises_of(
    problem: Problem, n: int, epsilon: float, delta: float, neighbors: Neighbors
) -> tuple[dict[str, float | None], dict[str, str]]:
    """What every method promises in expectation, and why some do not apply."""
    d = len(problem.start)

    def of_descent() -> float | None:
        return Schedule.of(
            problem, n=n, d=d, epsilon=epsilon, delta=delta, clip=None, noise="auto", steps=None, step_size=None,
            average=None, resolution=None, neighbors=neighbors,
        ).bound  # fmt: skip

    def of_moments() -> float:
        if isinstance(problem.loss, SquaredDistance):
            return _mean_promise(problem, problem.loss, n, epsilon, delta, neighbors)
        return Plan.of(problem, n, d, epsilon, delta, "auto", neighbors).bound

    def of_choice() -> float:
        if isinstance(problem.loss, Custom):
            raise ValueError("a Custom loss is evaluated in Python at every point: only if method='exponential'")
        return expected_excess(problem, n, epsilon, neighbors)

    asked: dict[str, Callable[[], float | None]] = {
        "descent": of_descent,
        "moments": of_moments,
        "exponential": of_choice,
    }
    found: dict[str, float | None] = {}
    refusals = {}
    for name, ask in asked.items():
        try:
            found[name] = ask()
        except ValueError as refused:
            found[name] = None
            refusals[name] = str(refused)
    return found, refusals


def taken(promises: dict[str, float | None]) -> Any:
    """The method with the least promise; descent, which needs the fewest bounds, where there is none."""
    weighed = {name: promise for name, promise in promises.items() if promise is not None}
    if weighed.get("moments", inf) < inf:
        weighed["moments"] /= _MOMENTS_ADAPT
    return min(weighed, key=lambda name: weighed[name]) if weighed else "descent"
