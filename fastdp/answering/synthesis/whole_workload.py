"""All tables of a workload that one tree holds, measured at once: what each adds to smaller ones, with planned noise.

What tables have in common is measured once (residual_planning.md), where each table by itself would measure it again.
It is paid in mu, like everything of a synthesis: synthesize.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...randomness.charged_keys import ChargedKeys
from ..least_squares_fit import Axes, LeastSquares, Table, least_squares_of
from ..marginal_transform import flat_of
from ..queries.marginals import Marginals
from ..residual_measurement import measure_residuals, tables_to_count
from ..residual_plan import ResidualPlan, can_plan, residuals_within
from .gaussian_prices import squared_change
from .measured import Measured, Residuals
from .synthesis_plan import LEAST_MU, Columns, SynthesisPlan

_CLEAR = 10  # standard deviations of equal noise that an average cell holds where planned noise is better
_MOST_RATIO = 2.0**30  # of two tables' weights

Counter = Callable[[Iterable[Columns]], Mapping[Columns, NDArray[np.int64]]]


def plan_whole(
    plan: SynthesisPlan, tables: Mapping[Columns, float], total: float, rest: float
) -> tuple[LeastSquares, ResidualPlan] | None:
    """The noise of all residuals, if an average cell holds many times what noise on each table would be.

    Otherwise, or where a column is in none of the tables, each table is measured by itself: a fit gains from tables
    that are positive as long as noise is large.
    """
    sizes, names = plan.domain.sizes, plan.domain.names
    cells = sum(prod(sizes[p] for p in these) for these in tables)
    if rest <= LEAST_MU or {p for these in tables for p in these} != set(range(len(sizes))):
        return None
    if total * len(tables) < _CLEAR * cells * (len(tables) * squared_change(plan.neighbors)) ** 0.5 / rest:
        return None
    least_squares = least_squares_of(Marginals(plan.domain, [[names[p] for p in these] for these in tables]))
    weights = [tables[these] for these in least_squares.workload.positions]
    if not can_plan(least_squares) or max(weights) > _MOST_RATIO * min(weights):
        return None
    objective: Any = "maximum" if len(set(weights)) == 1 else tuple(weight / max(weights) for weight in weights)
    try:
        return least_squares, residuals_within(least_squares, rest, plan.neighbors, objective)
    except ValueError:  # noise that cannot be drawn
        return None


def measure_whole(
    least_squares: LeastSquares, noise: ResidualPlan, singles: Sequence[Measured], n: int | None, counted: Counter,
    keys: ChargedKeys,
) -> Residuals:  # fmt: skip
    """Draw the noise; the columns' own tables, which were measured before, are joined to it.

    n  the number of records, where it is public
    """
    tables = tables_to_count(least_squares.workload.domain, noise)
    known = counted(tables.positions)
    counts = flat_of([known[these] for these in tables.positions])
    components = measure_residuals(counts, tables, noise, keys.take(), least_squares)
    variances = {shape: values.copy() for shape, values in noise.variances.items()}
    for each in singles:
        size, precision = each.values.size, each.sigma**-2
        if size > 1:
            _join((size,), least_squares.place[each.columns], each.values - each.values.mean(), precision,
                  components, variances)  # fmt: skip
        if n is None:
            _join((), 0, each.values.sum(), precision / size, components, variances)
    if n is not None:
        components[()][0] = n
    return Residuals(least_squares, components, variances)


def _join(
    shape: Axes, place: int, values: Any, precision: float, components: dict[Axes, Table], variances: dict[Axes, Table]
) -> None:
    """The mean of what was measured of a component twice, weighted by precisions."""
    before = 1 / variances[shape][place]
    components[shape][place] = (before * components[shape][place] + precision * values) / (before + precision)
    variances[shape][place] = 1 / (before + precision)
