"""A Bayesian network of bounded degree: which columns hang by which, chosen one by one by the exponential mechanism.

A noisy vector of all distances, as rounds.py measures it, has noise that grows with the square root of the number of
pairs; d - 1 choices among the pairs do not. So wide tables and small budgets are for these. The parents of a column lie
in a family that was chosen before, so the families are the cliques of a junction tree, and everything that holds of
trees holds of the network. synthesize.md, "A network", has the prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import nextafter, pi, prod, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.selection import draw_one
from ...privacy.gaussian_dp import GaussianDP
from ...privacy.guarantees import BoundedRange, Neighbors
from ...randomness.charged_keys import ChargedKeys
from ...support.rounding import down, lower
from .chordal_graph import ChordalGraph
from .dependences import Counts, nearest_shares
from .gaussian_prices import Priced, squared_change
from .junction_tree import JunctionTree
from .measured import Measured
from .rounds import Counter
from .structure import MEAN_NOISE, Candidate, Plan
from .synthesis_plan import LEAST_MU, MOST_PAIRS, Columns, SynthesisPlan, root_down

CHOICE_SHARE = Fraction(1, 10)  # of what the columns leave of mu^2, for all choices together
PARENTS = 2  # of a column, at most
_GRID = 10  # bits: shares and distances are in units of 2^-10 of a record
_WEIGHTS = 64  # steps between no weight and the largest
_LINE = sqrt(8 / pi)  # bounded range eta is (eta / _LINE)-Gaussian DP or better: gaussian_curve.md, theorem 2


class Choice(NamedTuple):
    """One exponential mechanism: what scores are multiplied with, its bounded range, and the mu that this costs."""

    rate: float
    range: float
    mu: float


class Family(NamedTuple):
    """A column and its parents."""

    column: int
    parents: Columns

    @property
    def columns(self) -> Columns:
        return tuple(sorted((self.column, *self.parents)))


def choice_of(mu: float, neighbors: Neighbors) -> Choice | None:
    """Nearly the most decisive choice that costs at most mu; None where it would decide nothing."""
    if mu <= LEAST_MU:
        return None
    each = mu * _LINE
    while (price := GaussianDP.of(BoundedRange(each)).mu) > mu:
        each = nextafter(each * (1 - 2.0**-40), 0.0)
    return Choice(down(lower(each) / (2 * sensitivity_of_scores(neighbors))), each, price)


def sensitivity_of_scores(neighbors: Neighbors) -> int:
    """By how much one record may change a score: of one table a cell changes, or two."""
    return _WEIGHTS * (2 if neighbors == "add-remove" else 4) << _GRID


def deviation_of_choice(choice: Choice) -> float:
    """The standard deviation of the noise that a choice amounts to, in records."""
    return pi / sqrt(6) / (choice.rate * float(_WEIGHTS << _GRID))


def shares_on_grid(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Shares as integers that add up to 2^10, whatever they are: what is released, in the units of scores."""
    ends = np.rint(np.cumsum(shares) / shares.sum() * 2**_GRID).astype(np.int64)
    ends[-1] = 2**_GRID
    found: NDArray[np.int64] = np.diff(ends, prepend=0)
    return found


def dependence(counts: Counts, axis: int, shares: NDArray[np.int64]) -> int:
    """How far the column along this axis is, given its parents, from having these shares: in units of 2^-10 records.

    sum over cells of |2^10 T(x, parents) - shares(x) T(parents)|; one record changes it by 2 (2^10 - shares(x)) at most
    """
    table = np.moveaxis(counts, axis, -1)
    expected = table.sum(axis=-1, keepdims=True) * shares
    return int(np.abs((table << _GRID) - expected).sum())


class Network:
    """The choices of a synthesis, and the families that they find.

    choice    of every step; None where it would decide nothing, and columns stay by themselves
    families  chosen so far; a column without parents is one, too
    pairs     all that count
    tables, known, spent, count   as of `Rounds`: of tables only the columns have been measured, no distances
    """

    def __init__(self, plan: SynthesisPlan, singles: Sequence[Measured], total: float) -> None:
        self._plan, self._sizes, self.choice = plan, plan.domain.sizes, choices_of(plan)
        self._total = min(total, 2.0**43)  # whatever noise makes of it, scores fit into int64
        self.families: list[Family] = []
        self.pairs = tuple(Candidate(pair, 0, weight, 0.0) for pair, weight in plan.pairs.items())
        self.tables, self.known, self.count = list(singles), dict[Columns, float](), 0
        self.spent: list[Priced] = list(plan.singles)
        self._graph = ChordalGraph.of(self._sizes, JunctionTree(self._sizes, plan.forced).cliques)
        self._shares = [shares_on_grid(nearest_shares(each.values)) for each in singles]
        self._most = max(plan.pairs.values(), default=1.0)
        self._cell = _noise_of_cell(plan, singles)
        self._scores: dict[Family, int] = {}

    def run(self, counted: Counter, keys: ChargedKeys) -> Plan:
        """Choose a family for every column; the tables to measure are those of several columns."""
        columns = [p for p, size in enumerate(self._sizes) if size > 1]
        left, seen = set(columns[1:]), 0
        new: list[Columns] = [(columns[0],)] if columns else []
        while left and self.choice is not None:
            found = [family for parents in new for family in self._families(parents, left)]
            if seen + len(found) > MOST_PAIRS:  # of all pairs, but not of all that have two parents
                found = [family for family in found if len(family.parents) == 1]
            seen += len(found)
            self._score(found, counted)
            chosen = self._choose(left, self.choice, keys)
            new = _parents_with(chosen)
            self.families.append(chosen)
            left.remove(chosen.column)
            self._scores = {family: score for family, score in self._scores.items() if family.column in left}
        tables = [self._candidate(family.columns) for family in self.families if family.parents]
        return Plan(tuple(tables), self._graph.edges, 0.0)

    def _families(self, parents: Columns, left: Iterable[int]) -> list[Family]:
        """The families with these parents whose table may be measured: by sizes, pairs that count, and the noise."""
        cells = prod(self._sizes[p] for p in parents)
        most = min(self._plan.limits.clique, 2 * self._total / self._cell)
        return [
            Family(p, parents) for p in left
            if cells * self._sizes[p] <= most and all(tuple(sorted((p, q))) in self._plan.pairs for q in parents)
        ]  # fmt: skip

    def _score(self, families: Sequence[Family], counted: Counter) -> None:
        counts = counted([family.columns for family in families])
        for family in families:
            table, axis = counts[family.columns], family.columns.index(family.column)
            found = dependence(table, axis, self._shares[family.column])
            noise = round(self._cell * table.size * 2**_GRID)
            self._scores[family] = self._weight(family) * (found - noise)

    def _choose(self, left: Iterable[int], choice: Choice, keys: ChargedKeys) -> Family:
        """By the exponential mechanism; a column without parents has the score 0."""
        offered = [Family(p, ()) for p in sorted(left)]
        scores = [0] * len(offered)
        for family, score in self._scores.items():
            if self._fits(family):
                offered.append(family)
                scores.append(score)
        self.spent.append(choice)
        chosen = offered[draw_one(np.array(scores, np.int64), keys.take(), choice.rate)]
        self._graph.add(chosen.columns, self._plan.limits)
        return chosen

    def _fits(self, family: Family) -> bool:
        """Whether the graph stays chordal and within its limits."""
        limits = self._plan.limits
        if not self._graph.near[family.column]:
            return self._graph.cells + prod(self._sizes[p] for p in family.columns) <= limits.tree
        return bool(self._graph.copy().add(family.columns, limits))

    def _weight(self, family: Family) -> int:
        weights = [self._plan.pairs[pair] for pair in combinations(family.columns, 2) if pair in self._plan.pairs]
        return max(1, int(_WEIGHTS * (max(weights) / self._most)))

    def _candidate(self, columns: Columns) -> Candidate:
        weight = max(self._plan.pairs.get(pair, 0.0) for pair in combinations(columns, 2))
        return Candidate(columns, prod(self._sizes[p] for p in columns), weight, 0.0)


def steps_of(plan: SynthesisPlan) -> int:
    """How many choices there are: one for each column but the first, those of one value left out."""
    return sum(size > 1 for size in plan.domain.sizes) - 1


def choices_of(plan: SynthesisPlan) -> Choice | None:
    """The choice of every step, if so many are to cost their share; None where it would decide nothing."""
    steps = steps_of(plan)
    square = Fraction(plan.rest(plan.singles)) ** 2 * CHOICE_SHARE
    return choice_of(root_down(square / steps), plan.neighbors) if steps > 0 else None


def _noise_of_cell(plan: SynthesisPlan, singles: Sequence[Measured]) -> float:
    """The mean L1 error of a cell of a family's table, if as many are measured as there are columns."""
    left = Fraction(plan.rest(plan.singles)) ** 2 * (1 - CHOICE_SHARE)
    mu = root_down(left / max(1, len(singles) - 1)) / squared_change(plan.neighbors) ** 0.5
    return MEAN_NOISE / mu if mu > 0 else float("inf")


def _parents_with(family: Family) -> list[Columns]:
    """The sets of parents that a family adds: its column, alone or with others of the family."""
    found: list[Columns] = []
    for k in range(PARENTS):
        found += [tuple(sorted((family.column, *others))) for others in combinations(family.parents, k)]
    return found
