"""Minimising a loss by the exponential mechanism: a point is the likelier, the less the records lose there.

On the points of a net, for any loss in up to four dimensions; and on a line, for the mean and the median, among as many
points as floats can hold, of which it evaluates a few thousand. Scores are exact integers, and so is the law that is
drawn from. exponential_erm.md has the proofs of privacy and of the bounds on the excess risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import Any, Literal

import numpy as np

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import one_of, positive, public_count
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.shown import shown
from .choice import INSTEAD, ChoiceParameters, ChoicePlan
from .covering_nets import GridPlan
from .one_dimension import LINES, no_line
from .points import Points
from .problem import read_points
from .sets import ConvexSet, Vector
from .sets.nets import MOST_DIMENSIONS

Method = Literal["auto", "grid", "exact"]
METHODS = ("auto", "grid", "exact")


@public_as("fastdp.optimizing")
@dataclass(frozen=True, eq=False, repr=False)
class PrivateChoice(Displayed, Accounted):
    """The point that the exponential mechanism chose.

    Attributes
    ----------
    w : numpy.ndarray
        The point.
    method : str
        "grid" or "exact".
    candidates : int
        How many points there were to choose from.
    spacing : float
        How far apart they are.
    bound : float
        With probability 1 - beta the mean loss at w, regulariser included, exceeds the least one of the set by at most
        this, if the declared bounds hold.
    beta : float
        The same.
    resolution : float or None
        The grid that losses were rounded to; None for "exact", which rounds points instead.
    guarantee : Guarantee
        Of the choice.
    uncapped : float or None
        The bound if there were no limit to the number of points; None where the limit does not matter.
    """

    w: Vector
    method: str
    candidates: int
    spacing: float
    bound: float
    beta: float
    resolution: float | None
    guarantee: Guarantee
    uncapped: float | None = None

    def _display(self) -> DisplayLines:
        w = np.array2string(self.w, precision=4)
        grid = "" if self.resolution is None else f", losses on a grid of {self.resolution:.3g}"
        finer = ""
        if self.uncapped is not None and self.uncapped < 0.95 * self.bound:
            finer = f"; {self.uncapped:.3g} with as many points as the theorem takes"
        return [
            ("w", w),
            ("method", f"{self.method}: one of {self.candidates:,} points, {self.spacing:.3g} apart{grid}"),
            ("excess risk", f"at most {self.bound:.3g} with probability {1 - self.beta:g}{finer}"),
            ("guarantee", str(self.guarantee)),
        ]


@boundary
def exponential_erm(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    method: Method = "auto",
    spacing: float | None = None,
    resolution: float | None = None,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateChoice:
    """Minimise the mean loss over a convex set, privately: the exponential mechanism, in up to four dimensions.

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        The points of the records, one a row.
    y : array_like or str, optional
        Their labels, if the loss has labels; the name of a column of X, or an array.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : Ball, Box or Simplex
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon.
    method : {"auto", "grid", "exact"}
        "grid": any loss, on the points of a net; takes the loss of every record at every point, or, of a convex loss,
        at some dozens of them. "exact": SquaredDistance and AbsoluteDeviation in one dimension, on a grid as fine as
        floats. "auto": "exact" where there is one, otherwise "grid".
    spacing : float > 0, optional
        How far apart neighbours in the net are; a power of two for "exact". By default where the bound is least, for up
        to 2^20 points, or 2^31 losses of a loss that is not known to be convex, and for "exact" a 2^40th of the set.
    resolution : power of two, optional
        The grid that losses are rounded to, for "grid".
    beta : float in (0, 1)
        The probability with which `.bound` may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place; `.bound` holds if there
        are as many.
    outside : {"raise", "clip"}
        What is done with points and labels beyond the declared bounds: an error before anything is spent, or the
        nearest ones within, where 0 takes the place of NaN, of missing entries and of what is no number.
    progress : bool or callable, optional
        For "grid": True for a bar, or a function of (done, total, what).
    rng : Randomness, optional
        Where keys come from; by default the operating system.
    budget : Budget, optional
        What is charged; by default the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    PrivateChoice
        The point that was chosen.

    Raises
    ------
    ValueError
        Before anything is spent: more than four dimensions, nets of more than 2^22 points or 2^38 losses, missing
        bounds.
    DomainError
        For records outside the declared bounds, before anything is spent.

    Notes
    -----
    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP, for any data, however wrong the bounds
                 that the loss declares
    Proof        exponential_erm.md, theorems 1 to 3
    Accuracy     `.bound` of the result (theorems 4 and 5), if the declared bounds hold; `bounds.exponential_erm`
    Cost         "grid": 0.2 ns for each record and point, 1.3 of Logistic; of a convex loss over many, some dozens of
                 points; "exact": one pass, or a sort, and 5 ms
    Not covered  the time that a call takes (exponential_erm.md, "Time"); a `Custom` value that depends on more than its
                 score and label

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> ages = np.random.default_rng(0).gamma(9.0, 5.0, size=(50_000, 1))
    >>> median = fastdp.exponential_erm(
    ...     ages, loss=fastdp.losses.AbsoluteDeviation(), over=fastdp.sets.Box(0, 120), epsilon=1.0
    ... )
    >>> bool(abs(median.w[0] - np.median(ages)) < 3)
    True
    >>> X = np.random.default_rng(1).normal(size=(5_000, 2)).clip(-1, 1) / 2
    >>> line = fastdp.exponential_erm(
    ...     X, X[:, 0] > 0, loss=fastdp.losses.Hinge(x_norm=1), over=fastdp.sets.Ball(4), epsilon=1.0
    ... )
    >>> bool(line.w[0] > abs(line.w[1]))
    True
    """
    one_of("method", method, METHODS)
    outside, neighbors = parameters.outside(outside), parameters.neighbors(neighbors)
    epsilon, beta = parameters.epsilon(epsilon), parameters.beta(beta)
    if spacing is not None:
        spacing = positive("spacing", spacing, toward=inf)
    if resolution is not None:
        resolution = parameters.resolution(resolution)
    records = public_count(records, neighbors)
    points, problem = read_points(X, y, loss, over, None, outside, records)
    n = records or points.n
    plan = plan_of(ChoiceParameters(problem, points.d, n, epsilon, neighbors), method, spacing, resolution)
    chosen = choose_point(points, plan, beta, progress, rng, budget)
    problem.warn_if_vacuous(chosen.bound)
    return chosen


def choose_point(
    points: Points, plan: ChoicePlan, beta: float = 0.05, progress: Progress = None, rng: Randomness | None = None,
    budget: Budget | None = None,
) -> PrivateChoice:  # fmt: skip
    """A choice by its plan: charge, score the points on the records, draw."""
    price = {"epsilon": plan.asked.epsilon, "method": plan.method, "spacing": plan.spacing}
    with ChargedKeys("exponential_erm", plan.guarantee, price, budget, rng) as keys:
        points = keys.reads(points, RECORDS)
        with reporting(progress, "minimising") as report:
            draw = plan.read(points, report)
        w = draw(keys.take())
    return PrivateChoice(
        w, plan.method, plan.candidates, plan.spacing, plan.bound(beta), beta, plan.resolution,
        keys.stating(plan.guarantee), plan.uncapped(beta),
    )  # fmt: skip


def plan_of(
    asked: ChoiceParameters, method: Method = "auto", spacing: float | None = None, resolution: float | None = None
) -> ChoicePlan:
    """The method that is asked for, or that there is; ValueError states why there is none."""
    over = asked.problem.over
    if asked.d > MOST_DIMENSIONS:
        raise ValueError(
            f"X: d={asked.d} columns: must be at most {MOST_DIMENSIONS}, as nets grow like the d-th power; {INSTEAD}"
        )
    if over.net_dimension is None:
        raise ValueError(
            f"over={shown(over)}: must be a Ball, a Box or the Simplex, which have nets; {INSTEAD} and set"
        )
    reason = "" if method == "grid" else no_line(asked, spacing, resolution)
    if reason and method == "exact":
        raise ValueError(f"method='exact': {reason}")
    if reason or method == "grid":
        return GridPlan(asked, spacing, resolution)
    return LINES[type(asked.problem.loss)](asked, spacing)


def expected_excess(plan: ChoicePlan) -> float:
    """The bound in expectation.

    A bound of a + b ln(1/beta) but with probability beta, for every beta, is one of a + b in expectation.
    """
    return min(plan.bound(exp(-1.0)), plan.asked.problem.varies())
