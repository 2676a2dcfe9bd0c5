"""Least squares from noisy second moments: one release, from which any least squares problem can be solved.

The mean squared error is known from the means of x x^T and x y alone. They are summed as integers, released with noise
once, and minimised over the set in public. moments.md has the sensitivity and the promised excess risk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..randomness.noise_draws import integer_noise
from ..support.checks import check_records, integer, one_of, positive, small_delta
from ..support.progress import Progress, reporting
from ..support.results import Displayed, DisplayLines
from ..support.rounding import up
from .losses import SquaredError
from .nonprivate import minimise_quadratic
from .problem import OUTSIDE, Outside, Problem, read_points
from .sets import ConvexSet, Vector
from .step_noise import Grid, Noise, fit_grid, promise

NOISES = ("auto", "gaussian", "laplace")
_MOST_COLUMNS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(Displayed, Accounted):
    """A least squares fit from noisy second moments.

    w             the point of the set that minimises the noisy mean squared error
    bound         the mean squared error at w exceeds the least one by at most this in expectation
    gram, cross   the noisy means of x x^T and of x y; public, like all that is made of them
    ridge         what was added to the diagonal, because noise had left negative eigenvalues; 0 if it had not
    noise         "gaussian" or "laplace", and by which calibration
    noise_scale   sigma or b of the noise in the diagonal of `gram`; off it sqrt(2) less
    guarantee     what the release promises
    """

    w: Vector
    bound: float
    gram: NDArray[np.float64]
    cross: Vector
    ridge: float
    noise: str
    noise_scale: float
    guarantee: Guarantee

    def _display(self) -> DisplayLines:
        return [
            ("w", np.array2string(self.w, precision=4, threshold=6, edgeitems=2)),
            ("excess risk", f"at most {self.bound:.3g} in expectation"),
            ("noise", f"{self.noise}, scale {self.noise_scale:.4g} in each mean square"),
            ("ridge", f"{self.ridge:.4g}"),
            ("guarantee", str(self.guarantee)),
        ]


def noisy_least_squares(
    X: Any,
    y: Any,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LeastSquares:
    """Linear regression over a convex set, privately, from noisy second moments.

    X, y      points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss      `fastdp.losses.SquaredError(x_norm=, y_bound=)`, perhaps + L2(lam)
    over      one of `fastdp.sets`
    noise     "gaussian", "laplace" (by the L2 norm), or "auto": the least of them
    records   under add-remove neighbours, where n is private: a public number that takes its place

    Guarantee    (epsilon, delta)-DP, for any data; with outside="clip", what lies outside the bounds is cut to them
    Proof        moments.md, theorem 1
    Accuracy     `.bound` of the result (theorem 2); by far the best where there are many records
    Cost         one read of the records: 30 ns a record of 20 coordinates
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50_000, 3)).clip(-1, 1) / 2
    >>> y = X @ [0.5, -0.3, 0.1]
    >>> error = fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    >>> fit = fastdp.noisy_least_squares(X, y, loss=error, over=fastdp.sets.Ball(1), epsilon=1.0, delta=1e-6)
    >>> bool(abs(fit.w - [0.5, -0.3, 0.1]).max() < 0.05)
    True
    """
    one_of("outside", outside, OUTSIDE)
    one_of("neighbors", neighbors, NEIGHBORS)
    one_of("noise", noise, NOISES)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    check_records(records, neighbors)
    if records is not None:
        records = integer("records", records, least=1)
    points, problem = read_points(X, y, loss, over, None, outside, records)
    n, d = points.n if records is None else records, points.d
    if d > _MOST_COLUMNS:
        raise ValueError(
            f"X: {d} columns: must be at most {_MOST_COLUMNS}; noisy_projected_gradient_descent takes more"
        )
    plan = Plan.of(problem, n, d, epsilon, delta, noise, neighbors)
    guarantee = promise(plan.grid, plan.entries, 1, epsilon, delta, neighbors)
    parameters = {"epsilon": epsilon, "delta": delta, "noise": plan.grid.scale.noise}
    with charge(budget, guarantee, "noisy_least_squares", parameters) as final:
        with reporting(progress, "summing") as report:
            report(0, 2, "checking records")
            points.check()
            report(1, 2, "second moments")
            sums = points.moments(plan.x_norm, plan.y_bound, plan.grid.unit)
            report(2, 2, "")
        law, key = plan.grid.scale.plan(), fresh_key(rng)
        final()
        sums[plan.released] += integer_noise(law, key, plan.entries)
    gram, cross = plan.means(sums, n)
    ridge = max(0.0, -float(np.linalg.eigvalsh(gram)[0]))
    w = minimise_quadratic(gram + (ridge + problem.lam / 2) * np.eye(d), cross, problem.over)
    scale = plan.grid.scale
    factor = plan.x_norm**2 / (n * plan.grid.unit)
    return LeastSquares(w, plan.bound, gram, cross, ridge, scale.named, scale.value * factor, guarantee)


@dataclass(frozen=True)
class Plan:
    """The numbers of one release, from public parameters.

    grid        of the moments of points scaled into the unit ball
    deviation   of the noise in the mean of a square x_j^2; that of a product x_i x_j is sqrt(2) less
    """

    grid: Grid
    d: int
    x_norm: float
    y_bound: float
    deviation: float
    bound: float

    @classmethod
    def of(
        cls, problem: Problem, n: int, d: int, epsilon: float, delta: float, noise: Noise, neighbors: Neighbors
    ) -> Plan:
        """The finest grid on which sums of n records and their noise fit, and what is then promised."""
        loss = problem.loss
        if not isinstance(loss, SquaredError):
            raise ValueError(f"loss={loss!r}: must be fastdp.losses.SquaredError")
        x_norm, y_bound = loss.declared_norm(), loss.declared_label()
        entries = d * (d + 1) // 2 + d
        grid = fit_grid(
            lambda unit: sensitivity(unit, entries, neighbors), entries, n=n, epsilon=epsilon, delta=delta,
            noise=noise, neighbors=neighbors,
        )  # fmt: skip
        deviation = x_norm**2 * grid.deviation / n
        found = cls(grid, d, x_norm, y_bound, deviation, 0.0)
        return replace(found, bound=found.excess(problem))

    @property
    def entries(self) -> int:
        """How many numbers are released."""
        return self.d * (self.d + 1) // 2 + self.d

    @property
    def released(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where they are in the sums: above the diagonal, and in the last two rows."""
        rows, columns = np.triu_indices(self.d, 1)
        last = np.repeat([self.d, self.d + 1], self.d)
        return np.append(rows, last), np.append(columns, np.tile(np.arange(self.d), 2))

    def means(self, sums: NDArray[np.int64], n: int) -> tuple[NDArray[np.float64], Vector]:
        """The means of x x^T and x y."""
        d, unit = self.d, self.grid.unit * n
        above = np.triu(sums[:d], 1) / (sqrt(2) * unit)
        gram = self.x_norm**2 * (above + above.T + np.diag(sums[d + 1] / unit))
        return gram, self.x_norm * self.y_bound * sums[d] / unit

    def excess(self, problem: Problem) -> float:
        """moments.md, theorem 2."""
        size, across = problem.over.norm, problem.over.diameter
        rounding = self.x_norm**2 * self.d / self.grid.unit
        # of the norm of the noise, a symmetric matrix: sqrt(2 d) sigma if it is Gaussian, else its Frobenius norm
        factor = sqrt(2 * self.d) * 1.0001 if self.grid.scale.noise == "gaussian" else self.d
        of_matrix = factor * self.deviation + rounding
        of_vector = self.y_bound / self.x_norm * (self.deviation * sqrt(self.d) + rounding)
        promised = 2 * of_matrix * size**2 + 2 * of_vector * across
        return min(promised, problem.varies())


def sensitivity(unit: float, entries: int, neighbors: Neighbors) -> float:
    """How far, in L2 and units of the grid, a neighbour moves the moments: moments.md, lemma 2."""
    if neighbors == "add-remove":
        return _root(2 * Fraction(unit) ** 2)  # rounding toward zero makes no vector longer
    return nextafter(_root(Fraction(9, 2) * Fraction(unit) ** 2) + _root(Fraction(entries)), inf)


def _root(x: Fraction) -> float:
    return nextafter(sqrt(up(x)), inf)
