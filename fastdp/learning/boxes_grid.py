"""method="grid" of `learn_box`: boxes by their errors, for labels that may be wrong.

A few private quantiles cut every column. Of up to four columns, the first choice is among all boxes of those cuts; of
more, an interval of one column after the other is chosen at costs that spare the positives. Then come the intervals of
all columns by errors, each among several hundred ends, given the others; and at last a choice among all that was found,
"true" and "false", which weigh as much as all the rest. boxes_grid.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.quantile_draws import draw_quantiles
from ..mechanisms.quantile_plan import QuantilePlan
from ..mechanisms.selection import draw_one
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import LaplacePlan, laplace_plan, scale_in_range
from ..records.rows import Block, PerRecord
from ..support.progress import Report
from ..support.rounding import down, up
from .box_ends import Ends, ends_of
from .box_parameters import BoxProblem, Sides
from .extremes import Numbers
from .guard import slack
from .methods import NO_BOUND
from .unequal_shares import Step, UnequalShares

Counts = NDArray[np.int64]
Box = tuple[tuple[int, int], ...]  # the first and the last cell of each column

MOST_EXACT = 4  # columns of which the first choice is exact
SHARES = tuple(Fraction(k, 8) for k in range(1, 8))  # 36 intervals of cells, so 1.7 million boxes of four columns
LOST = 64  # what a lost positive costs where positives are spared; a negative inside costs as much or less
COUNT_SHARE = 2.0**-5  # of epsilon, for the number of positives, which decides about these costs
# what a choice may use, in units: of a quantile, of the interval of a column, of the first and the last choice
_LEVEL, _COLUMN, _FIRST, _LAST = 2, 15, 6, (2, 4, 8, 16, 32)
_LARGEST_EXCESS = 0.05  # of the records: where the last choice may lose more, it uses more


@dataclass(frozen=True)
class BoxGridParameters:
    """The plan of the quantiles of all columns, and the weights of a cost or an error in the choices.

    count    noise on the number of positives, where costs depend on it
    """

    n: int
    count: LaplacePlan | None
    quantiles: QuantilePlan
    first_eta: float
    column_eta: float
    last_eta: float
    guarantee: Guarantee
    excess: float
    bound: float = NO_BOUND

    def learn(self, numbers: Numbers, keys: ChargedKeys, report: Report) -> Sides:
        d, steps = numbers.d, 3 * numbers.d
        ends = []
        for i, line in enumerate(numbers.orders):
            report(i, steps, f"quantiles of column {i + 1}")
            points = draw_quantiles(numbers.ordered(i), line, self.quantiles, keys.take())
            ends.append(ends_of(points, line))
        grid = Grid(numbers, ends)
        found = [Found(grid.everything, numbers.n - 2 * numbers.positives), Found(None, 0)]
        report(d, steps, "boxes")
        if self.count is None:
            found.append(grid.choose_first(keys, self.first_eta))
        else:
            found.append(self._grow(grid, numbers.positives + int(integer_noise(self.count, keys.take(), 1)[0]), keys))
        box = found[-1].box or grid.everything
        for i in range(d):
            report(2 * d + i, steps, f"column {i + 1}")
            found.append(grid.choose_interval(i, box, Costs(1, 1), keys, self.column_eta))
            box = found[-1].box or box
        found = [*found[:2] * copies_of_constants(d), *found[2:]]
        chosen = found[draw_one(np.array([-each.net for each in found]), keys.take(), self.last_eta)]
        report(steps, steps, "")
        if chosen.box is None:
            return None
        return [each.interval(*cells) for each, cells in zip(ends, chosen.box, strict=True)]

    def _grow(self, grid: Grid, positives: int, keys: ChargedKeys) -> Found:
        """A box, column by column; in the first all negatives cost what all positives do, later ones cost more."""
        share, box = min(max(positives, 1) / self.n, 0.5), grid.everything
        for i in range(len(box)):
            of_negative = max(1, round(LOST * exp((1 - i / len(box)) * log(share / (1 - share)))))
            box = grid.choose_interval(i, box, Costs(of_negative, LOST), keys, self.first_eta).box or box
        return Found(box, grid.net(box))


def copies_of_constants(d: int) -> int:
    """How often each constant is in the last choice, so that they weigh as much as the boxes of all steps."""
    return -(-(d + 1) // 2)


class Found(NamedTuple):
    """A box, None for the empty one, and its errors less the number of positives."""

    box: Box | None
    net: int


class Costs(NamedTuple):
    """Of a negative inside of the box, and of a positive outside."""

    negative: int
    positive: int


class Grid:
    """Records in the cells of their columns, and the choices of boxes of cells."""

    def __init__(self, numbers: Numbers, ends: Sequence[Ends]) -> None:
        self._rows, self._labels, self._ends = numbers.rows, numbers.labels, ends
        self._cells = [numbers.cells(i, each.ends) for i, each in enumerate(ends)]
        self.everything: Box = tuple((0, each.ends.size - 1) for each in ends)

    def choose_first(self, keys: ChargedKeys, eta: float) -> Found:
        """Among all boxes of the quantiles, and the empty one, by errors."""
        cuts = [each.quantiles for each in self._ends]
        nets = all_nets(self._table(cuts))
        scores = np.append(-nets.reshape(-1), 0)
        chosen = draw_one(scores, keys.take(), eta)
        if chosen == nets.size:
            return Found(None, 0)
        box = []
        for (_, end), cut, at in zip(self.everything, cuts, np.unravel_index(chosen, nets.shape), strict=True):
            starts, stops = np.triu_indices(cut.size + 1)
            first, last = int(starts[at]), int(stops[at])
            box.append((int(cut[first - 1]) + 1 if first else 0, int(cut[last]) if last < cut.size else end))
        return Found(tuple(box), -int(scores[chosen]))

    def choose_interval(self, i: int, box: Box, costs: Costs, keys: ChargedKeys, eta: float) -> Found:
        """Among all intervals of column i, where the other columns are as in a box; and the empty one."""
        sums = np.insert(np.cumsum(self._line(i, box, costs)), 0, 0)
        starts, stops = np.triu_indices(sums.size - 1)
        scores = np.append(sums[starts] - sums[stops + 1], 0)
        chosen = draw_one(scores, keys.take(), eta)
        if chosen == starts.size:
            return Found(None, 0)
        interval = int(starts[chosen]), int(stops[chosen])
        return Found((*box[:i], interval, *box[i + 1 :]), -int(scores[chosen]))

    def net(self, box: Box) -> int:
        """The negatives less the positives in a box."""
        first, last = box[0]
        return int(self._line(0, box, Costs(1, 1))[first : last + 1].sum())

    def _table(self, cuts: Sequence[Counts]) -> Counts:
        """Negatives less positives in the boxes between neighbouring cuts."""
        shape = [cut.size + 1 for cut in cuts]
        strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
        of_cell = [  # a cell is beyond as many cuts as are below it
            stride * np.searchsorted(cut, np.arange(end + 1))
            for stride, cut, (_, end) in zip(strides, cuts, self.everything, strict=True)
        ]
        cells, labels, total = self._cells, self._labels, prod(shape)

        def statistic(block: Block) -> Counts:
            code = np.zeros(block.n, np.int64)
            for part, cell in zip(of_cell, cells, strict=True):
                code += part[cell(block)]
            return _nets(code, labels(block), Costs(1, 1), total)

        return self._rows.total(statistic).reshape(shape)

    def _line(self, i: int, box: Box, costs: Costs) -> Counts:
        """What the records cost that are in each cell of a column, and in the box in the others."""
        return self._rows.total(_Line(i, box, costs, self._cells, self._labels, self.everything[i][1] + 1))


@dataclass(frozen=True)
class _Line:
    """The statistic of `Grid._line`."""

    column: int
    box: Box
    costs: Costs
    cells: Sequence[PerRecord]
    labels: PerRecord
    size: int

    def __call__(self, block: Block) -> Counts:
        inside = np.ones(block.n, np.bool_)
        for j, (first, last) in enumerate(self.box):
            if j != self.column:
                cell = self.cells[j](block)
                inside &= (cell >= first) & (cell <= last)
        return _nets(self.cells[self.column](block)[inside], self.labels(block)[inside], self.costs, self.size)


def all_nets(table: Counts) -> Counts:
    """The sums over all boxes of cells of a table: axis i has its intervals, in the order of `numpy.triu_indices`."""
    for axis in range(table.ndim):
        sums = np.insert(np.cumsum(table, axis), 0, 0, axis)
        starts, stops = np.triu_indices(table.shape[axis])
        table = sums.take(stops + 1, axis) - sums.take(starts, axis)
    return table


def _nets(code: NDArray[Any], positive: NDArray[np.bool_], costs: Costs, size: int) -> Counts:
    """Of the records in each cell: what the negatives cost inside, less what the positives cost outside."""
    everyone, positives = np.bincount(code, minlength=size), np.bincount(code[positive], minlength=size)
    return costs.negative * everyone - (costs.negative + costs.positive) * positives


@lru_cache(256)
def prepare_grid(problem: BoxProblem) -> BoxGridParameters:
    """Theorems 2 and 3."""
    d, privacy = len(problem.bits), problem.privacy
    exact = d <= MOST_EXACT
    part = 0.0 if exact else privacy.epsilon * COUNT_SHARE
    first = Step(_FIRST * d) if exact else Step(_COLUMN, d)
    levels = len(SHARES).bit_length() * d
    steps = [Step(_LEVEL, levels), first, Step(_COLUMN, d)]
    steps.append(_last_step(problem, steps, part))
    shares = UnequalShares.of(privacy, steps, count=part)
    _, first_eta, column, last = (shares.eta(step) for step in steps)
    return BoxGridParameters(
        n=problem.n,
        count=None if exact else laplace_plan(scale_in_range(up(1 / Fraction(part)), "1 / epsilon")),
        quantiles=QuantilePlan.at(SHARES, down(Fraction(shares.unit) * _LEVEL), privacy.neighbors, d, even=True),
        first_eta=first_eta if exact else first_eta / LOST,
        column_eta=column,
        last_eta=last,
        guarantee=shares.guarantee,
        excess=slack(last, 2 * copies_of_constants(d) + d + 1, privacy.beta),
    )


def _last_step(problem: BoxProblem, others: Sequence[Step], count: float) -> Step:
    """The last choice, with as little as keeps what it may lose to a 20th of the records, or almost half of all."""
    d, privacy = len(problem.bits), problem.privacy
    for weight in _LAST:
        step = Step(weight * d)
        total = sum(each.weight * each.times for each in (*others, step))
        eta = (privacy.epsilon - count) * step.weight / total / privacy.score_range
        if slack(eta, 2 * copies_of_constants(d) + d + 1, privacy.beta) <= _LARGEST_EXCESS * problem.n:
            break
    return step
