"""The measurements of a synthesis: all that is read from records and meets noise, in three steps, each paid in mu.

Tables of single columns; distances of pairs from independence; the tables that a public plan chooses by these. What is
returned is released, so everything that is made of it costs nothing. synthesize.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...randomness.charged_keys import ChargedKeys
from ..least_squares_fit import Table
from ..marginal_counts import count_tables
from ..marginal_transform import as_tables
from .dependences import Counts, distance, independent_table, nearest_shares
from .gaussian_prices import Noise, noise_of, squared_change, total_mu
from .junction_tree import JunctionTree
from .measured import Measured
from .structure import MEAN_NOISE, Candidate, ChordalGraph, Noisiness, Plan, plan_tables, shares_of
from .synthesis_plan import SynthesisPlan

_MARGIN = 2.0**-40  # for the rounding of shares
_LEAST_SHARE = 1e-4  # of what is left, below which a table is not measured


@dataclass(frozen=True)
class Measurements:
    """What was released, and what was planned by it.

    singles     the tables of single columns
    total       the number of records that these state; public under replace-one
    candidates  pairs of columns with their noisy distances
    plan        which of them were measured
    tables      all measured tables, those of single columns included
    mu          what everything cost
    """

    singles: tuple[Measured, ...]
    total: float
    candidates: tuple[Candidate, ...]
    plan: Plan
    tables: tuple[Measured, ...]
    mu: float


def measure(data: Any, plan: SynthesisPlan, n: int | None, outside: Any, keys: ChargedKeys) -> Measurements:
    """Count, draw and plan; n is None where it is private."""
    workload = plan.workload()
    counts = as_tables(count_tables(data, workload, outside), workload)
    columns = len(plan.domain)
    singles = [_measured((p,), counts[p], noise, keys) for p, noise in enumerate(plan.singles)]
    total = max(1.0, total_of(singles)) if n is None else float(n)
    of_pairs = dict(zip(plan.pairs, counts[columns:], strict=True))
    candidates = measure_distances(of_pairs, [each.values for each in singles], total, plan, keys)
    chosen = chosen_tables(candidates, total, plan)
    spent, tables = [*plan.singles], list(singles)
    if plan.distances is not None:
        spent.append(plan.distances)
    by_columns = dict(zip(workload.positions, counts, strict=True))
    for these, noise in further_noises(chosen, candidates, plan):
        tables.append(_measured(these, by_columns[these], noise, keys))
        spent.append(noise)
    cost = total_mu(spent)
    assert cost <= plan.mu
    return Measurements(tuple(singles), total, candidates, chosen, tuple(tables), cost)


def _measured(columns: tuple[int, ...], counts: Counts, noise: Noise, keys: ChargedKeys) -> Measured:
    return Measured(columns, noise.added(counts << noise.bits, keys.take()), noise.sigma)


def total_of(tables: Sequence[Measured]) -> float:
    """The number of records that noisy tables state: the mean of their sums, each weighted by its precision."""
    precisions = [1 / (each.values.size * each.sigma**2) for each in tables]
    sums = [precision * float(each.values.sum()) for precision, each in zip(precisions, tables, strict=True)]
    return sum(sums) / sum(precisions)


def measure_distances(
    counts: dict[tuple[int, int], Counts], singles: Sequence[Table], total: float, plan: SynthesisPlan,
    keys: ChargedKeys,
) -> tuple[Candidate, ...]:  # fmt: skip
    """The distances of all pairs from independence, with noise.

    singles  noisy tables of the columns, which have been released
    """
    if plan.distances is None:
        return ()
    bits, shares = plan.distances.bits, [nearest_shares(table) for table in singles]
    exact = [
        distance(counts[p, q], independent_table((shares[p], shares[q]), total, bits), bits) for p, q in plan.pairs
    ]
    noisy: NDArray[np.float64] = plan.distances.added(np.array(exact, np.int64), keys.take())
    sizes = plan.domain.sizes
    return tuple(
        Candidate((p, q), sizes[p] * sizes[q], weight, found)
        for ((p, q), weight), found in zip(plan.pairs.items(), noisy.tolist(), strict=True)
    )


def chosen_tables(candidates: Sequence[Candidate], total: float, plan: SynthesisPlan) -> Plan:
    """The tables to measure: those that at least may have less noise than there are records."""
    graph = ChordalGraph.of(plan.domain.sizes, JunctionTree(plan.domain.sizes, plan.forced).cliques)
    if plan.distances is None:
        return plan_tables(graph, (), 1.0, 0.0, plan.limits)
    mu = plan.rest / squared_change(plan.neighbors) ** 0.5
    useful = [each for each in candidates if MEAN_NOISE * each.cells / mu < 2 * total]
    return plan_tables(graph, useful, mu, plan.distances.sigma, plan.limits)


def further_noises(
    chosen: Plan, candidates: Sequence[Candidate], plan: SynthesisPlan
) -> list[tuple[tuple[int, ...], Noise]]:
    """What is measured by what is left of mu: the chosen tables, and columns once more, each with its noise."""
    if plan.distances is None:
        return []
    noisiness = Noisiness(plan.domain.sizes, candidates, 1.0)
    for table in chosen.tables:
        noisiness.add(table)
    columns: list[tuple[int, ...]] = [(p,) for p in range(len(plan.domain))]
    wanted = [*columns, *(table.columns for table in chosen.tables)]
    costs = [noisiness.column(p) for (p,) in columns] + [table.cost for table in chosen.tables]
    known = [noise.mu**2 for noise in plan.singles] + [0.0] * len(chosen.tables)
    square = (plan.rest * (1 - _MARGIN)) ** 2
    changed, found = squared_change(plan.neighbors), []
    for these, share in zip(wanted, shares_of(costs, known, square), strict=True):
        if share > _LEAST_SHARE * square:
            found.append((these, noise_of((share * (1 - _MARGIN)) ** 0.5, changed, changed)))
    return found
