"""Rounds of a synthesis: each measures how far tables are from what is known so far, and adds those that are far.

The first round compares pairs of columns with independence, and measures the pairs of a forest. The next ones compare
with the fit to what was measured: what two columns have of each other by a third one is known by then, and tables of
three columns that hang together are candidates as well. The last distances decide what all that is left is spent on.
What is decided here is made of what was released and of public numbers: synthesize.md, "Structure".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from ...randomness.charged_keys import ChargedKeys
from .chordal_graph import ChordalGraph, Limits, members
from .dependences import Counts, distance, expected_table, independent_shares, nearest_shares
from .gaussian_prices import Noise, noise_of, squared_change, squared_change_of_distances
from .junction_tree import JunctionTree
from .known_tables import within
from .measured import Measured
from .structure import (
    MEAN_NOISE,
    Candidate,
    Noisiness,
    Plan,
    plan_tables,
    shares_of,
    strongest_tables,
)
from .synthesis_plan import LEAST_MU, Columns, SynthesisPlan, distance_share, root_down
from .tree_fit import fit_tree

ROUNDS = 4  # at most
TABLE_SHARE = Fraction(1, 30)  # of what the columns leave of mu^2, for the tables of a round
_TRIPLE_WEIGHT = 0.5  # of a table of three columns beside one of two: it is for the pairs that are made of it
_SMALLER = 10  # times as small as the last tree may be are those of the rounds
_MARGIN = 2.0**-40  # for the rounding of shares

Shares = Callable[[Iterable[Columns]], Iterable[NDArray[np.float64]]]
Counter = Callable[[Iterable[Columns]], Mapping[Columns, Counts]]


class Rounds:
    """What the rounds measure, and what they know by it.

    pairs   all pairs with their noisy distances from independence
    tables  what was measured so far, single columns included
    known   of each table of several columns the mu^2 that it got
    spent   the noise of everything so far
    count   how many times distances were measured
    """

    families = ()

    def __init__(self, plan: SynthesisPlan, singles: Sequence[Measured], total: float) -> None:
        self._plan, self._total, self._sizes = plan, total, plan.domain.sizes
        self.pairs: tuple[Candidate, ...] = ()
        self.tables: list[Measured] = list(singles)
        self.known: dict[Columns, float] = {}
        self.spent: list[Noise] = list(plan.singles)
        self.count = 0
        self._chosen: list[Candidate] = []
        self._graph = self._forced()
        columns = [nearest_shares(each.values) for each in singles]
        self._expected: Shares = lambda tables: (independent_shares([columns[p] for p in each]) for each in tables)
        if plan.held:
            self._fit()

    def run(self, counted: Counter, keys: ChargedKeys) -> Plan:
        """The tables on which to spend what is left."""
        square = Fraction(self._plan.rest(self.spent)) ** 2
        candidates: Sequence[Candidate] = ()
        sigma = 0.0
        while self.count < ROUNDS:
            tables = [*self._open_pairs(), *self._triples()]
            noise = self._noise_of_distances(len(tables), square)
            if noise is None:
                break
            candidates = measure_distances(
                counted(tables), [self._candidate(these) for these in tables], self._expected, self._total, noise, keys
            )
            self.spent.append(noise)
            sigma, self.pairs, self.count = noise.sigma, self.pairs or tuple(candidates), self.count + 1
            new = self._strongest(candidates, sigma, square) if self.count < ROUNDS else []
            if not new:
                break
            self._measure(new, square, counted, keys)
            self._fit()
        return self._planned(candidates, sigma)

    def _fit(self) -> None:
        """Expect what fits all that is known."""
        tree = JunctionTree(self._sizes, self._graph.edges)
        tables = [*self.tables, *within(tree, self._plan.known)]
        self._expected = fit_tree(tree, tables, self._total, zeros=self._plan.zeros).distribution.marginals

    def _candidate(self, columns: Columns) -> Candidate:
        weight = max(self._plan.pairs[pair] for pair in combinations(columns, 2))
        weight *= _TRIPLE_WEIGHT if len(columns) == 3 else 1.0
        return Candidate(columns, prod(self._sizes[p] for p in columns), weight, 0.0)

    def _mu(self, square: Fraction) -> float:
        """What a table costs whose noise has standard deviation 1 takes of this much."""
        return float(root_down(square) / squared_change(self._plan.neighbors) ** 0.5)

    def _open_pairs(self) -> list[Columns]:
        """The pairs that no measured table holds."""
        held = {pair for each in self._chosen for pair in combinations(each.columns, 2)}
        return [pair for pair in self._plan.pairs if pair not in held]

    def _triples(self) -> list[Columns]:
        """Tables of three columns, two of which are next to the third: as many as pairs at most, small ones first.

        Only those whose noise would leave something to be seen if as many as there are columns were measured.
        """
        found = set()
        for p, near in enumerate(self._graph.near):
            for q, r in combinations(members(near), 2):
                found.add(tuple(sorted((p, q, r))))
        most = self._total * self._mu(Fraction(self._plan.rest(self.spent)) ** 2) / MEAN_NOISE / len(self._sizes) ** 0.5
        room, chosen = self._plan.room, list[Columns]()
        measured = {each.columns for each in self._chosen}
        for cells, these in sorted((prod(self._sizes[p] for p in these), these) for these in found - measured):
            room -= 8 * cells
            if cells > min(most, self._plan.limits.clique) or room < 0 or len(chosen) == len(self._plan.pairs):
                break
            if all(pair in self._plan.pairs for pair in combinations(these, 2)):
                chosen.append(these)
        return chosen

    def _noise_of_distances(self, entries: int, square: Fraction) -> Noise | None:
        if not self.count:
            return self._plan.distances
        changed = squared_change_of_distances(self._plan.neighbors, entries)
        mu = root_down(square * distance_share(self._sizes, self._plan.pairs, entries, self._plan.neighbors))
        return noise_of(mu, changed, entries) if entries and mu > LEAST_MU else None

    def _strongest(self, candidates: Sequence[Candidate], sigma: float, square: Fraction) -> list[Candidate]:
        """Tables to measure before the next round."""
        mu = self._mu(square * TABLE_SHARE)
        limits = self._plan.limits
        least = self._graph.cells
        smaller = Limits(max(limits.clique // _SMALLER, least), max(limits.tree // _SMALLER, least))
        return strongest_tables(self._graph, candidates, sigma, mu / len(self._sizes) ** 0.5, smaller)

    def _measure(self, new: Sequence[Candidate], square: Fraction, counted: Counter, keys: ChargedKeys) -> None:
        self._chosen += new
        counts, changed = counted([each.columns for each in new]), squared_change(self._plan.neighbors)
        part = (root_down(square * TABLE_SHARE) * (1 - _MARGIN)) ** 2
        for each, share in zip(new, shares_of([each.cost for each in new], [0.0] * len(new), part), strict=True):
            noise = noise_of((share * (1 - _MARGIN)) ** 0.5, changed, changed)
            self.tables.append(measured_table(each.columns, counts[each.columns], noise, keys))
            self.spent.append(noise)
            self.known[each.columns] = noise.mu**2

    def _forced(self) -> ChordalGraph:
        """The edges that there must be."""
        return ChordalGraph.of(self._sizes, JunctionTree(self._sizes, self._plan.forced).cliques)

    def _planned(self, candidates: Sequence[Candidate], sigma: float) -> Plan:
        """The tables to measure: those that at least may have less noise than there are records.

        With the tables of the rounds, or, if that is worth more, with those of them that are chosen again among all:
        in small trees they were the best.
        """
        mu = self._mu(Fraction(self._plan.rest(self.spent)) ** 2)
        if mu <= LEAST_MU:
            return Plan(tuple(self._chosen), self._graph.edges, 0.0)
        limits, none = self._plan.limits, Noisiness(self._sizes, self.pairs, mu)
        useful = [each for each in candidates if MEAN_NOISE * each.cells / mu < 2 * self._total]
        noisiness = none.copy()
        for each in self._chosen:
            noisiness.add(each)
        kept = plan_tables(self._graph, useful, noisiness, sigma, limits)
        if not self._chosen:
            return kept
        before = {each.columns for each in self._chosen}
        every = [*self._chosen, *(each for each in useful if each.columns not in before)]
        anew = plan_tables(self._forced(), every, none, sigma, limits)
        return anew if anew.value > kept.value + sum(each.gain for each in self._chosen) else kept


def measured_table(columns: Columns, counts: Counts, noise: Noise, keys: ChargedKeys) -> Measured:
    """A table with its noise."""
    return Measured(columns, noise.added(counts << noise.bits, keys.take()), noise.sigma)


def measure_distances(
    counts: Mapping[Columns, Counts], candidates: Sequence[Candidate], expected: Shares, total: float, noise: Noise,
    keys: ChargedKeys,
) -> tuple[Candidate, ...]:  # fmt: skip
    """The candidates with the distances of their tables from what is expected, with noise.

    expected  the shares of the cells of tables, as they follow from what has been released
    """
    columns = [each.columns for each in candidates]
    exact = [
        distance(counts[these], expected_table(shares, total, noise.bits), noise.bits)
        for these, shares in zip(columns, expected(columns), strict=True)
    ]
    noisy: NDArray[np.float64] = noise.added(np.array(exact, np.int64), keys.take())
    return tuple(replace(each, distance=found) for each, found in zip(candidates, noisy.tolist(), strict=True))
