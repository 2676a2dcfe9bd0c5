"""How tables are measured: the same noise on every entry, or noise that is planned residual by residual.

Which one is chosen by public numbers alone: residual_planning.md, "Which allocation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..privacy.reservations import prefers_gaussian
from ..randomness.noise_draws import add_noise
from ..support.checks import one_of, plain_array
from .least_squares_fit import Axes, LeastSquares, Table
from .marginal_noise import MarginalNoise, NoiseKind, marginal_noise
from .marginal_transform import as_tables
from .queries.marginals import Marginals
from .residual_measurement import measure_residuals, tables_to_count
from .residual_plan import MOST_ATTRIBUTES, MOST_RESIDUALS, ResidualPlan, can_plan, plan_residuals

Allocation = Literal["auto", "equal", "planned"]
ALLOCATIONS = ("auto", "equal", "planned")
Objective = Literal["maximum", "total"]
OBJECTIVES = ("maximum", "total")

_RECORDS = 100_000  # under add-remove neighbours, where the number is private: "auto" chooses as for so many
_CLEAR = 10  # standard deviations that an average cell holds where planned noise is better for the entropic fit, too
_MOST_RATIO = 2.0**30  # of two tables' weights


class TableNoise(Protocol):
    """A measurement of all tables: what is counted, what is drawn, and what it guarantees."""

    @property
    def guarantee(self) -> Guarantee:
        """Of the measurement."""

    @property
    def tables(self) -> Marginals:
        """Which are counted."""

    @property
    def workload(self) -> Marginals:
        """Which are released."""

    @property
    def variances(self) -> dict[Axes, Table]:
        """Of the components of `LeastSquares`, by shape, in records squared."""

    @property
    def sigma(self) -> float:
        """The standard deviation of an entry, in records: of all alike, or the root of their mean square."""

    def measure(self, counts: NDArray[np.int64], key: NDArray[np.uint32]) -> tuple[dict[Axes, Table], list[Table]]:
        """The components with noise, in records; and the tables as measured, where they are. Overwrites the counts."""


@dataclass(frozen=True)
class EqualNoise:
    """The same noise on every entry of every table."""

    least_squares: LeastSquares
    noise: MarginalNoise

    @property
    def guarantee(self) -> Guarantee:
        return self.noise.guarantee

    @property
    def tables(self) -> Marginals:
        return self.workload

    @property
    def workload(self) -> Marginals:
        return self.least_squares.workload

    @property
    def variances(self) -> dict[Axes, Table]:
        return self.least_squares.variances(self.noise.sigma**2)

    @property
    def sigma(self) -> float:
        return self.noise.sigma

    def measure(self, counts: NDArray[np.int64], key: NDArray[np.uint32]) -> tuple[dict[Axes, Table], list[Table]]:
        counts <<= self.noise.bits
        add_noise(self.noise.plan, None, key, counts, counts)
        measured = as_tables(counts * 2.0**-self.noise.bits, self.tables)
        return self.least_squares.solve(measured), measured


@dataclass(frozen=True)
class PlannedNoise:
    """Noise of its own on every residual."""

    least_squares: LeastSquares
    plan: ResidualPlan

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    @cached_property
    def tables(self) -> Marginals:
        return tables_to_count(self.least_squares.workload.domain, self.plan)

    @property
    def workload(self) -> Marginals:
        return self.least_squares.workload

    @property
    def variances(self) -> dict[Axes, Table]:
        return self.plan.variances

    @cached_property
    def sigma(self) -> float:
        workload, of_tables = self.least_squares.workload, self.least_squares.variances_of_tables(self.variances)
        return sqrt(np.dot(of_tables, [prod(shape) for shape in workload.shapes]) / len(workload))

    def measure(self, counts: NDArray[np.int64], key: NDArray[np.uint32]) -> tuple[dict[Axes, Table], list[Table]]:
        return measure_residuals(counts, self.tables, self.plan, key, self.least_squares), []


def checked_objective(objective: Any, workload: Marginals) -> Objective | tuple[float, ...]:
    """ "maximum", "total", or a positive number for each table."""
    if isinstance(objective, str):
        chosen: Objective = one_of("objective", objective, OBJECTIVES)
        return chosen
    rule = f"'maximum', 'total', or a positive weight for each of {workload.tables:,} tables"
    weights = plain_array("objective", objective, rule)
    if weights.shape != (workload.tables,) or weights.dtype.kind not in "iuf":
        raise ValueError(f"objective: {weights.dtype} of shape {weights.shape}: must be {rule}")
    made = weights.astype(np.float64)
    if not (np.isfinite(made).all() and made.min() > 0 and made.max() <= _MOST_RATIO * made.min()):
        raise ValueError(f"objective: must be {rule}, finite and at most 2^30 times each other")
    return tuple((made / made.max()).tolist())


def plan_noise(
    least_squares: LeastSquares, epsilon: float, delta: float, neighbors: Neighbors, *, noise: NoiseKind = "auto",
    allocation: Allocation = "auto", objective: Any = "maximum", n: int | None = None, fit: Any = "least-squares",
    payers: Sequence[Budget] = (),
) -> TableNoise:  # fmt: skip
    """The measurement with this guarantee that has the least noise, of those that are asked for.

    n     the number of records, where it is public
    fit   "least-squares" or None; "entropic" where a distribution may be fitted to what is measured
    """
    workload, gaussian = least_squares.workload, prefers_gaussian(payers)
    equal = EqualNoise(least_squares, marginal_noise(workload, epsilon, delta, neighbors, noise, concentrated=gaussian))
    if allocation == "equal":
        return equal
    if allocation == "planned":
        _check_planned(least_squares, delta, noise, fit)
    elif fit is None or not delta or noise == "laplace" or not can_plan(least_squares):
        return equal
    if allocation == "auto" and fit == "entropic" and not _is_clear(equal, _RECORDS if n is None else n):
        return equal
    try:
        planned = PlannedNoise(least_squares, plan_residuals(least_squares, epsilon, delta, neighbors, objective))
    except ValueError:  # noise that cannot be drawn
        if allocation == "planned":
            raise
        return equal
    if allocation == "planned" or _loss(planned, objective, neighbors) < _loss(equal, objective, neighbors):
        return planned
    return equal


def _check_planned(least_squares: LeastSquares, delta: float, noise: NoiseKind, fit: Any) -> None:
    if not delta or noise == "laplace":
        raise ValueError("allocation='planned': must come with Gaussian noise: delta > 0, and noise not 'laplace'")
    if fit is None:
        raise ValueError("allocation='planned': must come with a fit: no table is measured as a whole")
    if not can_plan(least_squares):
        raise ValueError(
            f"allocation='planned': must come with tables of at most {MOST_ATTRIBUTES} attributes, one of them of two "
            f"values or more, that have at most {MOST_RESIDUALS:,} subsets in all"
        )


def _is_clear(equal: EqualNoise, n: int) -> bool:
    """Whether an average cell holds many times what the noise on it is."""
    workload = equal.tables
    return n * workload.tables >= _CLEAR * equal.sigma * len(workload)


def _loss(noise: EqualNoise | PlannedNoise, objective: Any, neighbors: Neighbors) -> float:
    """What the objective says of the unbiased tables."""
    least_squares, variances = noise.least_squares, dict(noise.variances)
    if neighbors == "replace-one":
        variances[()] = np.zeros(1)
    workload = least_squares.workload
    of_tables = least_squares.variances_of_tables(variances)
    if isinstance(objective, str) and objective == "maximum":
        return float(of_tables.max())
    cells = np.array([float(prod(shape)) for shape in workload.shapes])
    return float(of_tables @ (cells if isinstance(objective, str) else cells * np.array(objective)))
