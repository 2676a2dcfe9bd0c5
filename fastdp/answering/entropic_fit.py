"""The entropic fit: the distribution near independence whose tables come close to noisy ones.

Post-processing, in floats: it sees the noisy tables alone. release_marginals.md derives the method and the stopping
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from ..support.threads import run_chunks
from .component_metric import ComponentMetric, EqualMetric, Metric
from .least_squares_fit import Axes, LeastSquares, Table
from .marginal_transform import CHUNK, flat_of, flat_tables, marginal_tables, spread_flat
from .mirror_descent import MirrorDescent
from .queries.marginals import Marginals

Report = Callable[[int, int, str], object]

MOST_STEPS = 4000  # of the entropic fit
PATIENCE = 2  # times the steps that it takes to come as near as the true tables are; release_marginals.md, "Stopping"
_ARRAYS = 6  # of all cells that the entropic fit holds, those of marginal_transform.py included


@dataclass(frozen=True)
class Fit:
    """What the entropic fit found."""

    probabilities: NDArray[np.float64]
    tables: list[Table]
    residual: float  # mean square of what is left, in units of the variance that the noise alone leaves there
    steps: int


def fit_entropic(
    target: Sequence[Table], least_squares: LeastSquares, sigma: float, report: Report | None = None,
    *, start: NDArray[np.float64] | None = None, variances: Mapping[Axes, Table] | None = None,
) -> Fit:  # fmt: skip
    """The distribution near the product of the one-way tables whose tables come close to the target.

    target      consistent tables, as fractions (the least-squares solution: nothing is lost by it)
    sigma       of the noise on every entry, as a fraction
    start       another distribution to begin from, all positive: a fit that others follow, which ends once it is close
    variances   of the components of the target, in place of sigma, where their noise is not that of equal entries

    Accelerated mirror descent with entropy (Tseng 2008, algorithm 1), whose steps are multiplicative weights with all
    queries of all tables at once. Once it is as close to the target as the noise has put the true tables, it goes on
    for as many steps again.
    """
    workload = least_squares.workload
    y = flat_of(target)
    metric: Metric = EqualMetric(sigma) if variances is None else ComponentMetric(least_squares, variances)
    noise = metric.unit * metric.unit * least_squares.rank
    first = product_of_one_way(target, least_squares, sigma, variances) if start is None else start.copy()
    patience = PATIENCE if start is None else 1
    descent = MirrorDescent(_Weights(first, workload), first.copy(), y, metric.apply, workload.tables / 2)
    left = before = descent.distance() / noise
    near = 1 + sqrt(2 / least_squares.rank)  # a standard deviation above what the noise amounts to on average
    smoothness, steps, most = max(1.0, workload.tables / metric.gentle), 0, 0 if left <= near else MOST_STEPS
    while steps < most:
        if report:
            report(steps, most, f"squared distance {left:.3g} of the noise's")
        steps += 1
        smoothness = descent.step(smoothness, lambda _, theta=2 / (steps + 1): theta)  # type: ignore[misc]
        left = descent.distance() / noise
        if left <= near and most == MOST_STEPS:
            most = min(patience * steps, MOST_STEPS - 1)
        if steps >= 64 and steps.bit_count() == 1:  # a power of 2
            if left > 0.98 * before:  # no distribution comes closer
                break
            before = left
    x = descent.x
    x /= x.sum()
    tables = [np.maximum(table, 0.0) for table in marginal_tables(x, workload.domain, workload)]
    return Fit(x, tables, left, steps)


class _Weights:
    """Multiplicative weights that keep their logarithms and their tables."""

    def __init__(self, cells: NDArray[np.float64], workload: Marginals) -> None:
        self.workload = workload
        self.put(cells)

    def put(self, x: NDArray[np.float64]) -> None:
        """Be the distribution x, which is given away."""
        self.cells, self._total = x, 1.0  # the distribution is cells / total
        self._logs, self._log_total = np.log(x), 0.0
        self.tables = self._tables()

    def spread(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """What `update` takes for a gradient with respect to the tables."""
        return spread_flat(gradient.copy(), self.workload)

    def update(self, gradient: NDArray[np.float64], rate: float) -> float:
        """Multiply by e^(-rate gradient); returns by how much the logarithm of the sum of the weights falls."""
        from ..kernels import fits as kernels

        before = self._log_total
        top = max(self._over(lambda i, j: kernels.shift_logs(self._logs[i:j], gradient[i:j], rate)))
        parts = self._over(lambda i, j: kernels.exponentiate_into(self._logs[i:j], top, self.cells[i:j]))
        self._total = sum(parts)
        self._log_total = top + log(self._total)
        self.tables = self._tables()
        return before - self._log_total

    def mix_into(self, x: NDArray[np.float64], theta: float) -> None:
        """x = (1 - theta) x + theta times the distribution."""
        from ..kernels import fits as kernels

        self._over(lambda i, j: kernels.mix(x[i:j], self.cells[i:j], 1 - theta, theta / self._total))

    def _tables(self) -> NDArray[np.float64]:
        return flat_tables(self.cells, self.workload.domain, self.workload) / self._total

    def _over(self, kernel: Callable[[int, int], Any]) -> list[Any]:
        return run_chunks(kernel, self.cells.size, CHUNK)


def product_of_one_way(
    target: Sequence[Table], least_squares: LeastSquares, sigma: float, variances: Mapping[Axes, Table] | None = None
) -> NDArray[np.float64]:
    """Where the fit starts: attributes independent, each with its fitted table, uniform where no table has it.

    A value whose fraction is lost in the noise gets a quarter of the noise's standard deviation: from 0 there is no way
    back.
    """
    workload = least_squares.workload
    first: dict[int, Table] = {}
    for positions, table in zip(workload.positions, target, strict=True):
        for i, p in enumerate(positions):
            if p not in first:
                first[p] = table.sum(axis=tuple(j for j in range(len(positions)) if j != i))
    joint = np.ones(1)
    for p, size in enumerate(workload.domain.sizes):
        if p in first:
            unit = sigma if variances is None else 1.0
            floor = min(unit * sqrt(least_squares.variance_of((p,), variances)) / 4, 1 / size)
            one = np.maximum(first[p], floor)
            one = one / one.sum()
        else:
            one = np.full(size, 1 / size)
        joint = np.multiply.outer(joint, one).reshape(-1)
    joint = np.maximum(joint, 1e-290)
    return joint / float(joint.sum())


def bytes_of_fit(domain: Domain) -> int:
    """What the entropic fit needs, at most."""
    return 8 * _ARRAYS * domain.size
