"""Minimising a loss by the exponential mechanism: a point is the likelier, the less the records lose there.

On the points of a net, for any loss in up to four dimensions; and on a line, for the mean and the median, among as many
points as floats tell apart, of which it looks at a few thousand. Scores are exact integers, and so is the law that is
drawn from. exponential_erm.md has the proofs of privacy and of the promised excess risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import Any, Literal

import numpy as np

from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..support.checks import check_records, integer, one_of, positive, power_of_two, probability
from ..support.progress import Progress, reporting
from ..support.results import Displayed, DisplayLines
from .choice import INSTEAD, Plan, Terms
from .nets import MOST_DIMENSIONS, GridPlan
from .one_dimension import LINES, no_line
from .problem import OUTSIDE, Outside, Problem, read_points
from .sets import Ball, Box, ConvexSet, Simplex, Vector

Method = Literal["auto", "grid", "exact"]
METHODS = ("auto", "grid", "exact")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateChoice(Displayed, Accounted):
    """The point that the exponential mechanism chose.

    w           the point
    method      "grid" or "exact"
    candidates  how many points there were to choose from
    spacing     how far apart they are
    bound       with probability 1 - beta the mean loss at w, regulariser included, exceeds the least one of the set by
                at most this, if the declared bounds hold
    beta        the same
    resolution  the grid that losses were rounded to; None for "exact", which rounds points instead
    guarantee   what the choice promises
    """

    w: Vector
    method: str
    candidates: int
    spacing: float
    bound: float
    beta: float
    resolution: float | None
    guarantee: Guarantee

    def _display(self) -> DisplayLines:
        w = np.array2string(self.w, precision=4)
        grid = "" if self.resolution is None else f", losses on a grid of {self.resolution:.3g}"
        return [
            ("w", w),
            ("method", f"{self.method}: one of {self.candidates:,} points, {self.spacing:.3g} apart{grid}"),
            ("excess risk", f"at most {self.bound:.3g} with probability {1 - self.beta:g}"),
            ("guarantee", str(self.guarantee)),
        ]


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

    X, y         points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss, over   one of `fastdp.losses`, perhaps + L2(lam); a Ball, a Box or the Simplex of `fastdp.sets`
    method       "grid": any loss, on the points of a net; takes the loss of every record at every point
                 "exact": SquaredDistance and AbsoluteDeviation in one dimension, on a grid as fine as floats
                 "auto": "exact" where there is one, otherwise "grid"
    spacing      how far apart neighbours in the net are; a power of two for "exact". By default where the bound is
                 least, as far as 2^31 losses can do, and for "exact" a 2^40th of the set
    resolution   the grid that losses are rounded to, a power of two, for "grid"
    records      under add-remove neighbours, where n is private: a public number that takes its place; `.bound` holds
                 if there are as many
    progress     for "grid": True for a bar, or a callable (done, total, what)

    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP, for any data, however wrong the bounds
                 that the loss declares
    Proof        exponential_erm.md, theorems 1 to 3
    Accuracy     `.bound` of the result (theorems 4 and 5), if the declared bounds hold
    Cost         "grid": 0.2 ns for each record and point, 1.3 of Logistic; "exact": one pass, or a sort, and 5 ms
    Not covered  the time that a call takes (exponential_erm.md, "Time"); a `Custom` value that looks at more than its
                 score and label
    Raises       ValueError and DomainError before anything is spent: more than four dimensions, nets of more than 2^22
                 points or 2^38 losses, missing bounds

    Examples
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
    one_of("outside", outside, OUTSIDE)
    one_of("neighbors", neighbors, NEIGHBORS)
    epsilon, beta = positive("epsilon", epsilon, toward=0), probability("beta", beta)
    if spacing is not None:
        spacing = positive("spacing", spacing, toward=inf)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    check_records(records, neighbors)
    if records is not None:
        records = integer("records", records, least=1)
    points, problem = read_points(X, y, loss, over, None, outside, records)
    n = points.n if records is None else records
    plan = _plan_of(Terms(problem, points.d, n, epsilon, beta, neighbors), method, spacing, resolution)
    parameters = {"epsilon": epsilon, "method": plan.method, "spacing": plan.spacing}
    with charge(budget, plan.guarantee, "exponential_erm", parameters) as final:
        points.check()
        with reporting(progress, "minimising") as report:
            draw = plan.read(points, report)
        key = fresh_key(rng)
        final()
        w = draw(key)
    return PrivateChoice(
        w, plan.method, plan.candidates, plan.spacing, plan.bound, beta, plan.resolution, plan.guarantee
    )


def _plan_of(terms: Terms, method: Method, spacing: float | None, resolution: float | None) -> Plan:
    """The method that is asked for, or that there is; ValueError says why there is none."""
    over = terms.problem.over
    if terms.d > MOST_DIMENSIONS:
        raise ValueError(
            f"X: d={terms.d} columns: must be at most {MOST_DIMENSIONS}, as nets grow like the d-th power; {INSTEAD}"
        )
    if not isinstance(over, Ball | Box | Simplex):
        raise ValueError(f"over={over!r}: must be a Ball, a Box or the Simplex, which have nets; {INSTEAD} and set")
    reason = "" if method == "grid" else no_line(terms, spacing, resolution)
    if reason and method == "exact":
        raise ValueError(f"method='exact': {reason}")
    if reason or method == "grid":
        return GridPlan(terms, spacing, resolution)
    return LINES[type(terms.problem.loss)](terms, spacing)


def expected_excess(problem: Problem, n: int, epsilon: float, neighbors: Neighbors) -> float:
    """What `exponential_erm` promises in expectation; ValueError if it refuses the problem.

    A bound of a + b ln(1/beta) but with probability beta, for every beta, is one of a + b in expectation.
    """
    terms = Terms(problem, len(problem.start), n, epsilon, exp(-1.0), neighbors)
    return min(_plan_of(terms, "auto", None, None).bound, problem.varies())
