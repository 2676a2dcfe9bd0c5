"""Residuals of noisy tables: the measurement that residual_plan.py plans. residual_planning.md, theorem 1.

Tables of counts meet their noise as integers and are reduced to their differences as integers, which wrap around: what
leaves here is a function of the differences of the noisy tables, modulo 2^64, and of nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..randomness.noise_draws import CHUNK, integer_noise_from
from ..randomness.noise_plans import gaussian_plan
from ..records.domain import Domain
from .least_squares_fit import Axes, LeastSquares, Table
from .marginal_transform import as_tables
from .queries.marginals import Marginals, marginals_at
from .residual_plan import ResidualPlan


@lru_cache(16)
def tables_to_count(domain: Domain, plan: ResidualPlan) -> Marginals:
    """The tables whose residuals are released, in the order of the plan."""
    return marginals_at(domain, plan.sets)


def measure_residuals(
    counts: NDArray[np.int64], tables: Marginals, plan: ResidualPlan, key: NDArray[np.uint32],
    least_squares: LeastSquares,
) -> dict[Axes, Table]:  # fmt: skip
    """The components of the tables with noise, in records, as `LeastSquares.solve` returns them.

    counts   of all tables of `tables_to_count`, one after the other; overwritten
    """
    components = {shape: np.zeros((len(group), *shape)) for shape, group in least_squares.subsets.items()}
    counts <<= plan.bits
    add_noise_of_residuals(counts, plan, tables, key)
    by_shape: dict[Axes, list[tuple[Axes, Any]]] = {}
    for S, table in zip(plan.sets, as_tables(counts, tables), strict=True):
        by_shape.setdefault(table.shape, []).append((S, table))
    for shape, group in by_shape.items():
        places = [least_squares.place[S] for S, _ in group]
        components[shape][places] = residuals_of(np.stack([table for _, table in group])) * 2.0**-plan.bits
    return components


def add_noise_of_residuals(
    counts: NDArray[np.int64], plan: ResidualPlan, tables: Marginals, key: NDArray[np.uint32]
) -> None:
    """Add to every table the noise of its residual; draws of different laws are those of different chunks."""
    sizes = [prod(shape) for shape in tables.shapes]
    first = at = 0
    for sigma, group in groupby(zip(plan.sigmas, sizes, strict=True), key=lambda pair: pair[0]):
        n = sum(size for _, size in group)
        counts[at : at + n] += integer_noise_from(gaussian_plan(sigma), key, first, n)
        at += n
        first += -(-n // CHUNK) * CHUNK


def residuals_of(noisy: NDArray[np.int64]) -> Table:
    """What tables, stacked along the first axis, add to those of fewer attributes: sums along every axis are 0.

    Differences from the last entry along every axis, in integers that wrap around; what is made of them are floats.
    """
    differences = noisy
    for axis in range(1, noisy.ndim):
        differences = differences - np.take(differences, [-1], axis)
    residuals = differences.astype(np.float64)
    for axis in range(1, noisy.ndim):
        residuals -= residuals.mean(axis=axis, keepdims=True)
    return residuals
