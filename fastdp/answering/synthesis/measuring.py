"""The measurements of a synthesis: all that is read from records and meets noise, in three steps, each paid in mu.

Tables of single columns; distances of pairs from independence; the tables that a public plan chooses by these. What is
returned is released, so everything that is made of it costs nothing. synthesize.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt, prod
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
_MOST_NOISE = 0.5  # of a table's mass: with more, a choice of tables is better
_LEAST_MU = 2.0**-36  # of a table: no less can be drawn, and nothing would be seen
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
    counts = dict(zip(workload.positions, as_tables(count_tables(data, workload, outside), workload), strict=True))
    singles = [_measured((p,), counts[p,], noise, keys) for p, noise in enumerate(plan.singles)]
    total = max(1.0, total_of(singles)) if n is None else float(n)
    spent = [*plan.singles]
    candidates: tuple[Candidate, ...] = ()
    chosen = whole_plan(total, plan, plan.rest(spent))
    if chosen is None and plan.distances is not None:
        candidates = measure_distances(counts, [each.values for each in singles], total, plan, keys)
        spent.append(plan.distances)
    if chosen is None:
        chosen = chosen_tables(candidates, total, plan, plan.rest(spent))
    tables = list(singles)
    for these, noise in further_noises(chosen, candidates, plan, plan.rest(spent)):
        tables.append(_measured(these, counts[these], noise, keys))
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
    counts: Mapping[tuple[int, ...], Counts],
    singles: Sequence[Table], total: float, plan: SynthesisPlan,
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


def whole_plan(total: float, plan: SynthesisPlan, rest: float) -> Plan | None:
    """All tables of a workload, where one tree holds them and their noise leaves something to be seen."""
    mu = rest / squared_change(plan.neighbors) ** 0.5
    for tables in plan.whole if mu > _LEAST_MU else ():
        # shares between the least mean error of a cell, cells^(2/3), and the least largest one, the same for all
        sizes = {these: prod(plan.domain.sizes[p] for p in these) for these in tables}
        each = tuple(Candidate(these, isqrt(isqrt(sizes[these])), weight, 0.0) for these, weight in tables.items())
        noise = sum(MEAN_NOISE * tables[these] * size for these, size in sizes.items()) * len(tables) ** 0.5 / mu
        if noise <= _MOST_NOISE * total * sum(tables.values()):
            tree = JunctionTree(plan.domain.sizes, [*tables, *plan.forced])
            edges = {pair for clique in tree.cliques for pair in combinations(clique, 2)}
            return Plan(each, tuple(sorted(edges)), -noise)
    return None


def chosen_tables(candidates: Sequence[Candidate], total: float, plan: SynthesisPlan, rest: float) -> Plan:
    """The tables to measure: those that at least may have less noise than there are records."""
    graph = ChordalGraph.of(plan.domain.sizes, JunctionTree(plan.domain.sizes, plan.forced).cliques)
    if plan.distances is None or rest <= _LEAST_MU:
        return plan_tables(graph, (), 1.0, 0.0, plan.limits)
    mu = rest / squared_change(plan.neighbors) ** 0.5
    useful = [each for each in candidates if MEAN_NOISE * each.cells / mu < 2 * total]
    return plan_tables(graph, useful, mu, plan.distances.sigma, plan.limits)


def further_noises(
    chosen: Plan, candidates: Sequence[Candidate], plan: SynthesisPlan, rest: float
) -> list[tuple[tuple[int, ...], Noise]]:
    """What is measured by what is left of mu: the chosen tables, and columns once more, each with its noise."""
    columns: list[tuple[int, ...]] = [(p,) for p in range(len(plan.domain))]
    noisiness = Noisiness(plan.domain.sizes, candidates, 1.0)
    if candidates:
        for table in chosen.tables:
            noisiness.add(table)
    found: dict[tuple[int, ...], float] = {these: noisiness.column(*these) for these in columns}
    for table in chosen.tables:
        found[table.columns] = found.get(table.columns, 0.0) + table.cost
    known = [plan.singles[p].mu ** 2 for (p,) in columns] + [0.0] * (len(found) - len(columns))
    square = (rest * (1 - _MARGIN)) ** 2
    changed, noises = squared_change(plan.neighbors), []
    for these, share in zip(found, shares_of(list(found.values()), known, square), strict=True):
        if share > max(_LEAST_SHARE * square, _LEAST_MU**2):
            noises.append((these, noise_of((share * (1 - _MARGIN)) ** 0.5, changed, changed)))
    return noises
