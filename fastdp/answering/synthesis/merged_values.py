"""Rare values of columns that have many: those that noise hides are one value, until records are sampled.

Which ones they are follows from the columns' noisy tables, which have been released and paid for. From there on a
synthesis is one of columns with fewer values: tables of several columns have fewer cells, and those of the widest
columns have few enough to be measured at all. synthesize.md, "Rare values".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Codes, Domain, code_type
from ...support.frozen import frozen
from .dependences import nearest_shares
from .measured import Measured
from .synthesis_plan import Columns, SynthesisPlan, distances_of, pairs_of, whole_workloads

_HIDDEN = 0.3  # standard deviations of a column's noise, below which a noisy count says little of its value
_RARE = 0.25  # of these deviations, which values that are hidden must have at most on average to be one


def mean_below(count: float) -> float:
    """The mean of noisy counts that are below the limit, where the true ones are this: all in standard deviations."""
    normal = NormalDist()
    return count - normal.pdf(_HIDDEN - count) / normal.cdf(_HIDDEN - count)


@dataclass(frozen=True, eq=False)
class Merge:
    """Which values of a column are one, and how they share it.

    codes   of each value the code that it has now; values that are one have the last code
    shares  of each value its share of that code: 1 for those by themselves
    """

    codes: Codes
    shares: NDArray[np.float64]

    @property
    def size(self) -> int:
        """How many values there are now."""
        return int(self.codes.max()) + 1

    @property
    def rare(self) -> NDArray[np.intp]:
        """The values that are one."""
        return np.flatnonzero(self.codes == self.size - 1)

    def spread(self, table: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        """A table in which values are one, of all values."""
        shape = [-1 if i == axis else 1 for i in range(table.ndim)]
        spread: NDArray[np.float64] = table.take(self.codes, axis) * self.shares.reshape(shape)
        return spread

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of numbers for all values those for the values that there are now."""
        mean: NDArray[np.float64] = np.bincount(self.codes, self.shares * values, self.size).astype(np.float64)
        return mean


def merges_of(plan: SynthesisPlan, singles: Sequence[Measured]) -> dict[int, Merge]:
    """Of the columns that may have rare values those that have several, by their noisy tables."""
    found = {}
    for p in plan.many_valued:
        noisy, sigma = singles[p].values, singles[p].sigma
        hidden = noisy < _HIDDEN * sigma
        if np.count_nonzero(hidden) > 1 and noisy[hidden].mean() < mean_below(_RARE) * sigma:
            found[p] = merge_of(hidden, nearest_shares(noisy))
    return found


def merge_of(hidden: NDArray[np.bool_], shares: NDArray[np.float64]) -> Merge:
    """The merge of these values, which share their code as they share the records; equally if they have none."""
    common = np.flatnonzero(~hidden)
    codes = np.full(hidden.size, common.size, code_type(common.size + 1))
    codes[common] = np.arange(common.size)
    total = shares[hidden].sum()
    within = np.where(hidden, shares / total if total > 0 else 1 / np.count_nonzero(hidden), 1.0)
    return Merge(frozen(codes), frozen(within))


def all_codes(size: int) -> Codes:
    """The codes of a column whose values stay by themselves."""
    return np.arange(size, dtype=code_type(size))


def merged_plan(plan: SynthesisPlan, merges: Mapping[int, Merge]) -> SynthesisPlan:
    """The plan for columns with fewer values. Those columns are measured once more, with the same noise: their first
    tables have chosen what is one value, and say too much of the others."""
    sizes = {name: merges[p].size if p in merges else plan.domain.sizes[p] for p, name in enumerate(plan.domain.names)}
    domain, mu = Domain(sizes), plan.rest([plan.singles[p] for p in merges])
    pairs = pairs_of(domain.sizes, plan.weights, plan.limits, plan.room)
    distances = distances_of(domain.sizes, pairs, mu, plan.singles, plan.neighbors, plan.method)
    asked: Mapping[Columns, float] | None = plan.weights if plan.asked else None
    whole = whole_workloads(domain.sizes, asked, plan.forced, plan.limits, plan.room, plan.method)
    return replace(
        plan, domain=domain, mu=mu, pairs=pairs, distances=distances, whole=whole, many_valued=(),
    )  # fmt: skip
