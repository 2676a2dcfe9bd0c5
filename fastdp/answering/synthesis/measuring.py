"""The measurements of a synthesis: all that is read from records and meets noise, step by step, each paid in mu.

Tables of single columns; then all tables of a workload, where one tree holds them, or rounds of distances and of the
tables that are chosen by these (rounds.py). What is returned is released, so everything that is made of it costs
nothing. synthesize.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import isqrt, prod
from typing import Any

from ...randomness.charged_keys import ChargedKeys
from ...records.recoded import RecodedRows
from ...records.sources import rows_of
from ...support.rounding import root_up, up
from ..least_squares_fit import LeastSquares
from ..marginal_counts import count_tables, encoded_rows
from ..marginal_transform import as_tables
from ..queries.marginals import marginals_at
from ..residual_plan import ResidualPlan
from .dependences import Counts
from .gaussian_prices import Noise, noise_of, squared_change, total_mu
from .junction_tree import JunctionTree
from .measured import Measured, Residuals
from .merged_values import Merge, all_codes, merged_plan, merges_of
from .network import Family, Network, choices_of, deviation_of_choice, steps_of
from .rounds import Counter, Rounds, measured_table
from .structure import MEAN_NOISE, Candidate, Noisiness, Plan, shares_of
from .synthesis_plan import LEAST_MU, Columns, SynthesisPlan
from .whole_workload import measure_whole, plan_whole

_LOST = 1 / 5  # of the records: of noise in distances that is more, little is seen through
_MARGIN = 2.0**-40  # for the rounding of shares
_MOST_NOISE = 0.5  # of a table's mass: with more, a choice of tables is better
_LEAST_SHARE = 1e-4  # of what is left, below which a table is not measured


@dataclass(frozen=True)
class Measurements:
    """What was released, and what was planned by it.

    singles     the tables of single columns
    total       the number of records that these state; public under replace-one
    candidates  pairs of columns with their noisy distances from independence
    plan        which tables were measured
    tables      all measured tables, those of single columns included
    mu          what everything cost
    rounds      how many times distances were measured
    distances   the noise of the first of them
    residuals   of the tables of a workload, where these were measured
    families    of the network, where one was chosen
    merges      of the columns whose rare values have become one: all else is of columns that have fewer values
    """

    singles: tuple[Measured, ...]
    total: float
    candidates: tuple[Candidate, ...]
    plan: Plan
    tables: tuple[Measured, ...]
    mu: float
    rounds: int
    distances: Noise | None
    residuals: Residuals | None = None
    families: tuple[Family, ...] = ()
    merges: Mapping[int, Merge] = field(default_factory=dict)

    def sizes(self, plan: SynthesisPlan) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(self.merges[p].size if p in self.merges else size for p, size in enumerate(plan.domain.sizes))


def measure(data: Any, plan: SynthesisPlan, n: int | None, outside: Any, keys: ChargedKeys) -> Measurements:
    """Count, draw and plan; n is None where it is private."""
    counted = _counter(data, plan, outside)
    counts = counted([(p,) for p in range(len(plan.domain))])
    singles = [measured_table((p,), counts[p,], noise, keys) for p, noise in enumerate(plan.singles)]
    total = max(1.0, total_of([*singles, *plan.known])) if n is None else float(n)
    merges = merges_of(plan, singles)
    if not merges:
        return _measure(plan, singles, total, n, counted, keys)
    first, merged = [plan.singles[p] for p in merges], merged_plan(plan, merges)
    codes = [merges[p].codes if p in merges else all_codes(size) for p, size in enumerate(plan.domain.sizes)]
    counted = _counter(RecodedRows(data, plan.domain, codes, outside), merged, "raise")
    counts = counted([(p,) for p in merges])
    for p in merges:
        singles[p] = measured_table((p,), counts[p,], merged.singles[p], keys)
    found = _measure(merged, singles, total, n, counted, keys)
    cost = root_up(up(Fraction(total_mu(first)) ** 2 + Fraction(found.mu) ** 2))
    assert cost <= plan.mu
    return replace(found, mu=cost, merges=merges)


def _measure(
    plan: SynthesisPlan, singles: list[Measured], total: float, n: int | None, counted: Counter, keys: ChargedKeys
) -> Measurements:  # fmt: skip
    """What is measured when the columns have been."""
    rest = plan.rest(plan.singles)
    chosen = whole_plan(total, plan, rest)
    if chosen is not None and not plan.known:
        of_all = plan_whole(plan, {each.columns: each.weight for each in chosen.tables}, total, rest)
        if of_all is not None:
            return _measured_whole(chosen, of_all, singles, plan, n, counted, keys)
    chooser = (Network if chosen is None and takes_network(plan, total) else Rounds)(plan, singles, total)
    chosen = chosen or chooser.run(counted, keys)
    tables, spent = [*chooser.tables], [*chooser.spent]
    noises = further_noises(chosen, chooser, plan)
    counts = counted(noises)
    for these, noise in noises.items():
        tables.append(measured_table(these, counts[these], noise, keys))
        spent.append(noise)
    cost = total_mu(spent)
    assert cost <= plan.mu
    found, families = chooser.pairs if chooser.count else (), tuple(chooser.families)
    return Measurements(
        tuple(singles), total, found, chosen, tuple(tables), cost, chooser.count, plan.distances, None, families
    )


def takes_network(plan: SynthesisPlan, total: float) -> bool:
    """Whether tables are chosen one by one: where a vector of all distances would show little, and be noisier than
    choices are for the same price."""
    if plan.method != "auto":
        return plan.method == "network"
    choice = choices_of(plan)
    if choice is None or plan.distances is None:
        return False
    choices = deviation_of_choice(choice) * choice.mu * steps_of(plan) ** 0.5
    return choices < plan.distances.sigma * plan.distances.mu and plan.distances.sigma > _LOST * total


def _measured_whole(
    chosen: Plan, of_all: tuple[LeastSquares, ResidualPlan], singles: Sequence[Measured], plan: SynthesisPlan,
    n: int | None, counted: Counter, keys: ChargedKeys,
) -> Measurements:  # fmt: skip
    """What all tables of a workload add to each other."""
    least_squares, noise = of_all
    residuals = measure_whole(least_squares, noise, singles, n, counted, keys)
    cost = total_mu([*plan.singles, noise])
    assert cost <= plan.mu
    total = max(1.0, float(residuals.components[()][0]))
    tables = (*singles, *residuals.tables)
    return Measurements(tuple(singles), total, (), chosen, tables, cost, 0, None, residuals)


def _counter(data: Any, plan: SynthesisPlan, outside: Any) -> Counter:
    """What counts the records in the cells of tables: those that the plan has beforehand in one pass, then others."""
    known: dict[Columns, Counts] = {}
    rows, domain = rows_of(data), plan.domain

    def counted(tables: Iterable[Columns]) -> Mapping[Columns, Counts]:
        nonlocal rows, domain
        new = [these for these in tables if these not in known]
        if new:
            if known and domain is plan.domain and rows.gathers:  # they are read again and again
                rows, domain = encoded_rows(rows, domain, outside)
            first = [] if known or plan.many_valued else plan.workload().positions
            workload = marginals_at(domain, dict.fromkeys([*first, *new]))
            flat = count_tables(rows, workload, outside)
            known.update(zip(workload.positions, as_tables(flat, workload), strict=True))
        return known

    return counted


def total_of(tables: Sequence[Measured]) -> float:
    """The number of records that noisy tables state: the mean of their sums, each weighted by its precision."""
    precisions = [1 / (each.values.size * each.sigma**2) for each in tables]
    sums = [precision * float(each.values.sum()) for precision, each in zip(precisions, tables, strict=True)]
    return sum(sums) / sum(precisions)


def whole_plan(total: float, plan: SynthesisPlan, rest: float) -> Plan | None:
    """All tables of a workload, where one tree holds them and their noise leaves something to be seen."""
    mu = rest / squared_change(plan.neighbors) ** 0.5
    for tables in plan.whole if mu > LEAST_MU else ():
        # shares between the least mean error of a cell, cells^(2/3), and the least largest one, the same for all
        sizes = {these: prod(plan.domain.sizes[p] for p in these) for these in tables}
        each = tuple(Candidate(these, isqrt(isqrt(sizes[these])), weight, 0.0) for these, weight in tables.items())
        noise = sum(MEAN_NOISE * tables[these] * size for these, size in sizes.items()) * len(tables) ** 0.5 / mu
        if noise <= _MOST_NOISE * total * sum(tables.values()):
            tree = JunctionTree(plan.domain.sizes, [*tables, *plan.forced])
            edges = {pair for clique in tree.cliques for pair in combinations(clique, 2)}
            return Plan(each, tuple(sorted(edges)), -noise)
    return None


def further_noises(chosen: Plan, chooser: Rounds | Network, plan: SynthesisPlan) -> dict[Columns, Noise]:
    """What is measured by what is left of mu: the chosen tables, and columns once more, each with its noise.

    Pairs that no table holds are made of their columns.
    """
    columns: list[Columns] = [(p,) for p in range(len(plan.domain))]
    noisiness = Noisiness(plan.domain.sizes, chooser.pairs, 1.0)
    for table in chosen.tables if chooser.pairs else ():
        noisiness.add(table)
    found: dict[Columns, float] = {these: noisiness.column(*these) for these in columns}
    for table in chosen.tables:
        found[table.columns] = found.get(table.columns, 0.0) + table.cost
    square = (plan.rest(chooser.spent) * (1 - _MARGIN)) ** 2
    changed, noises = squared_change(plan.neighbors), {}
    before = {**dict(zip(columns, (noise.mu**2 for noise in plan.singles), strict=True)), **chooser.known}
    for each in plan.known:  # as if its noise had been paid for here
        before[each.columns] = before.get(each.columns, 0.0) + changed / each.sigma**2
    shares = shares_of(list(found.values()), [before.get(these, 0.0) for these in found], square)
    for these, share in zip(found, shares, strict=True):
        if share > max(_LEAST_SHARE * square, LEAST_MU**2):
            noises[these] = noise_of((share * (1 - _MARGIN)) ** 0.5, changed, changed)
    return noises
