"""Which tables to measure: a chordal graph of columns, grown by released distances, and what each table may cost.

Everything here is public: it reads what has been released, sizes, weights and limits. A table ties its columns to each
other. One is added where the graph stays chordal, if need be by further edges, its cliques within the limits, and what
the table brings, its distance from what is expected without it, is more than the noise that it adds to itself and, by
its share of the budget, to the others. Columns share in it by the pairs that are not measured, which are made of
theirs. synthesize.md, "Structure".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from math import pi, sqrt
from statistics import NormalDist

from .chordal_graph import ChordalGraph, Limits, Pair

MEAN_NOISE = sqrt(2 / pi)  # the mean of |Z| over the standard deviation of Z, normal
_SHARE = 2 / 3  # the exponent by which a table's share grows with what a unit of noise costs it
NOTICED = 0.5  # of its noise a table must bring at least, to be measured before a plan is made
PENALTIES = (0.0, 1 / 3, 2 / 3, 1.0)  # exponents of a table's cells in the order in which edges are tried
MOST_TRIES = 200  # of other orders; fewer the more tables and columns there are
MOST_TRIED = 1 << 18  # tables times columns, in all of them


@dataclass(frozen=True)
class Candidate:
    """A table that may be measured: of two or three columns, where a distance decides.

    columns   positions, ascending
    cells     how many it has
    weight    how much an error of it counts
    distance  from what is expected without it, released with noise: in records
    """

    columns: tuple[int, ...]
    cells: int
    weight: float
    distance: float

    @property
    def cost(self) -> float:
        """The weighted L1 error of the table for noise of standard deviation 1."""
        return self.weight * MEAN_NOISE * self.cells

    @property
    def gain(self) -> float:
        """The weighted L1 error that a measurement without noise would take away."""
        return self.weight * self.distance


@dataclass(frozen=True)
class Plan:
    """Which tables to measure, in the order in which they were chosen, and the edges of the graph.

    tables  the candidates
    edges   all pairs of columns that share a clique
    value   the weighted L1 error that is expected to go: gains less noise
    """

    tables: tuple[Candidate, ...]
    edges: tuple[Pair, ...]
    value: float


class Noisiness:
    """The weighted L1 error that noise is expected to make, as tables are chosen.

    A table that is measured has its own noise, and a pair of columns that lies in none has that of its columns; a pair
    that was chosen before a table of three that holds it needs no measurement any more. With the best shares of mu^2
    the sum is (sum of costs^(2/3))^(3/2) / mu, costs those of noise of standard deviation 1.

    candidates  all pairs that count
    """

    def __init__(self, sizes: Sequence[int], candidates: Iterable[Candidate], mu: float) -> None:
        self._mu = mu
        self._sizes = sizes
        self._open = {each.columns: each.weight for each in candidates}  # pairs that no table holds
        self._columns = [0.0] * len(sizes)
        for pair, weight in self._open.items():
            for p in pair:
                self._columns[p] += weight
        self._tables: dict[tuple[int, ...], Candidate] = {}
        self._held: set[tuple[int, ...]] = set()
        self._sum = sum(self._part(self.column(p)) for p in range(len(sizes)))

    @property
    def tables(self) -> tuple[Candidate, ...]:
        """The chosen ones, those that a larger one holds left out."""
        return tuple(self._tables.values())

    def copy(self) -> Noisiness:
        """Another one to add to."""
        twin = copy(self)
        twin._open, twin._columns = dict(self._open), list(self._columns)
        twin._tables, twin._held = dict(self._tables), set(self._held)
        return twin

    def column(self, p: int) -> float:
        """The cost of a column: of its error in all tables that are made of it."""
        return MEAN_NOISE * self._sizes[p] * max(self._columns[p], 0.0)

    def holds(self, columns: tuple[int, ...]) -> bool:
        """Whether a chosen table has these columns, or this pair among its own."""
        return columns in self._tables or columns in self._held

    def with_table(self, table: Candidate) -> float:
        """The error if this one is measured, too."""
        return self._error(self._sum + self._change(table))

    def add(self, table: Candidate) -> None:
        self._sum += self._change(table)
        for pair in combinations(table.columns, 2):
            weight = self._open.pop(pair, 0.0)
            for p in pair:
                self._columns[p] -= weight
            if len(table.columns) > 2:
                self._tables.pop(pair, None)
            self._held.add(pair)
        self._tables[table.columns] = table

    @property
    def error(self) -> float:
        return self._error(self._sum)

    def _change(self, table: Candidate) -> float:
        change = self._part(table.cost)
        lost = dict.fromkeys(table.columns, 0.0)
        for pair in combinations(table.columns, 2):
            for p in pair:
                lost[p] += self._open.get(pair, 0.0)
            if pair in self._tables:
                change -= self._part(self._tables[pair].cost)
        for p, weight in lost.items():
            left = MEAN_NOISE * self._sizes[p] * max(self._columns[p] - weight, 0.0)
            change += self._part(left) - self._part(self.column(p))
        return change

    def _error(self, parts: float) -> float:
        return float(max(parts, 0.0) ** 1.5 / self._mu)

    @staticmethod
    def _part(cost: float) -> float:
        return float(cost**_SHARE)


def plan_tables(
    graph: ChordalGraph,
    candidates: Sequence[Candidate],
    noisiness: Noisiness,
    noise: float,
    limits: Limits,
) -> Plan:
    """The best of many plans, by what each expects: for several orders of the tables, and then with those first that
    the best one left out.

    graph      the edges that there must be
    noisiness  of the tables that were chosen before; left as it is
    noise      the standard deviation of the distances
    """
    real = beyond_noise(candidates, noise)

    def planned(order: Sequence[Candidate]) -> tuple[Plan, Sequence[Candidate]]:
        return _grown(graph.copy(), order, noisiness.copy(), limits), order

    best, order = max((planned(_in_order(real, penalty)) for penalty in PENALTIES), key=lambda found: found[0].value)
    tries, improved = min(MOST_TRIES, MOST_TRIED // max(1, len(real) * len(graph.sizes))), True
    while improved:
        improved, chosen = False, {each.columns for each in best.tables}
        for each in [each for each in _in_order(real, 0.0) if each.columns not in chosen][:tries]:
            tries -= 1
            found, other = planned([each, *(one for one in order if one is not each)])
            if found.value > best.value:
                best, order, improved = found, other, True
                break
    return best


def strongest_tables(
    graph: ChordalGraph, candidates: Sequence[Candidate], noise: float, mu: float, limits: Limits
) -> list[Candidate]:
    """Of the tables that are farthest from what is expected as many as make a forest of new edges, added to the graph.

    More would be chosen blindly: what two columns have of each other by a third one is far, too, until that is known.

    noise  the standard deviation of the distances
    mu     what each table may cost
    """
    ahead = {each: each.gain - NOTICED * each.cost / mu for each in beyond_noise(candidates, noise)}
    part = list(range(len(graph.sizes)))
    chosen = []
    for each in sorted((each for each in ahead if ahead[each] > 0), key=lambda each: (-ahead[each], each.columns)):
        new = [pair for pair in combinations(each.columns, 2) if not graph.joined(pair)]
        if all(part[p] != part[q] for p, q in new) and graph.add(each.columns, limits):
            chosen.append(each)
            for p, q in new:
                part = [part[q] if at == part[p] else at for at in part]
    return chosen


def beyond_noise(candidates: Sequence[Candidate], noise: float) -> list[Candidate]:
    """Those whose distance exceeds what about one of as many normal numbers would."""
    least = noise * likely_maximum(len(candidates))
    return [each for each in candidates if each.distance > least]


def likely_maximum(n: int) -> float:
    """What about one of n standard normal numbers exceeds."""
    return NormalDist().inv_cdf(n / (n + 1)) if n > 1 else 0.0


def shares_of(costs: Sequence[float], known: Sequence[float], square: float) -> list[float]:
    """How much of mu^2 each table gets, such that the sum of cost / sqrt(known + share) is least.

    costs   of noise of standard deviation 1; all 0 counts as all equal
    known   the mu^2 of what has been measured of each before
    square  that is shared
    """
    parts = [cost**_SHARE for cost in costs]
    if not any(parts):
        parts = [1.0] * len(parts)
    order = sorted((i for i in range(len(parts)) if parts[i]), key=lambda i: known[i] / parts[i])
    rate, sum_parts, sum_known = 0.0, 0.0, square
    for i in order:  # those that get any are the first ones
        if sum_parts and known[i] / parts[i] >= rate:
            break
        sum_parts, sum_known = sum_parts + parts[i], sum_known + known[i]
        rate = sum_known / sum_parts
    return [max(0.0, rate * part - before) for part, before in zip(parts, known, strict=True)]


def _in_order(candidates: Iterable[Candidate], penalty: float) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.gain / each.cost**penalty, each.columns))


def _grown(graph: ChordalGraph, candidates: Sequence[Candidate], noise: Noisiness, limits: Limits) -> Plan:
    """Take every candidate, in this order, that pays and fits. Those that would leave a cycle are tried again after
    others, since they may fit then, and in the end with edges that fill the cycle."""
    gains, waiting, fill = 0.0, candidates, False
    while waiting:
        left, before = [], gains
        for each in waiting:
            if noise.holds(each.columns) or each.gain <= noise.with_table(each) - noise.error:
                continue
            fits = graph.add(each.columns, limits, fill=fill)
            if fits:
                gains += each.gain
                noise.add(each)
            elif fits is None:
                left.append(each)
        waiting, fill = left, gains == before
    return Plan(noise.tables, graph.edges, gains - noise.error)
