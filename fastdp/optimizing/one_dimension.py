"""The mean and the median of one column, exactly: a choice among the very many points of a line.

Scores are convex, so the line falls into a few hundred intervals in which they hardly differ; exponential_erm.md,
theorems 2, 3 and 5.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, frexp, inf, log, sqrt

import numpy as np

from ..mechanisms.weighted_intervals import IntervalChoice, Levels, WeightedInterval
from ..privacy.guarantees import BoundedRange
from ..randomness.keys import Key
from ..records.rank_search import RankSearch, may_gather
from ..records.rows import Block
from ..support.columns import as_compiled
from ..support.progress import Report
from ..support.rounding import down, lower, up
from ..support.search import greatest_integer
from ..support.shown import shown
from .choice import ChoiceParameters, ChoicePlan, Integers
from .losses import AbsoluteDeviation, SquaredDistance
from .points import Points, least_square
from .sets import Vector

_LINE_BITS, _MOST_LINE = 40, 2**62  # points on a line: by default, and at most
_HALF = 31  # bits of the lower part of a position on a line: sums of either part fit int64


def line_excess(
    steps: int, *, n: float, eta: float, losses_range: float, spacing: float, lipschitz: float, beta: float
) -> float:
    """The excess risk of a choice among steps + 1 points of a line, but with probability beta: theorem 5.

    eta            what a loss of 1 counts in the exponent
    losses_range   how far apart the losses of all records together may lie
    """
    if not eta:
        return inf
    part = steps / max(1.0, eta * losses_range)  # of the points lose no more than 1 / eta
    by_convexity = 1 + log((steps + 1) / max(1.0, part - 1))
    return (min(by_convexity, log(steps + 1)) - log(beta)) / eta / n + 3 * lipschitz * spacing


class ConvexChoice:
    """The law with weights exp(-eta (F(k) - min F)) on 0 .. last, F convex and integer: exponential_erm.md,
    theorem 3."""

    def __init__(self, function: Callable[[int], int], last: int, eta: Fraction) -> None:
        self._function, self._last, self.eta = function, last, eta
        self._levels = Levels(eta)
        self.best = greatest_integer(lambda k: function(k) < function(k - 1), low=0, high=last)  # the first minimiser
        self._least = function(self.best)
        self._open = 64 + last.bit_length()  # level of the last intervals, which reach to the ends
        self.intervals = [*self._side(1, 0, last - self.best), *self._side(-1, 1, self.best)]
        self._choice = IntervalChoice(self.intervals, lambda k: eta * self._gap(k))

    def _gap(self, k: int) -> int:
        return self._function(k) - self._least

    def _side(self, side: int, near: int, far: int) -> list[WeightedInterval]:
        """The intervals at distances near .. far from the minimiser: each ends about where another level begins."""

        def gap(distance: int) -> int:
            return self._gap(self.best + side * distance)

        intervals: list[WeightedInterval] = []
        step = 1
        while near <= far:
            level = min(self._open, self._levels.of(gap(near)))
            end = far + 1
            if level < self._open:
                above = level + max(1, level // 4)  # no more than a tenth of the proposals is lost by it
                end = self._crossing(gap, near, far, self._levels.first(above), step)
            step = end - near
            intervals.append(WeightedInterval(self.best + side * near, side, step, level))
            near = end
        return intervals

    @staticmethod
    def _crossing(gap: Callable[[int], int], near: int, far: int, above: int, step: int) -> int:
        """A distance soon after the last one with a gap below `above`, or far + 1. Whatever it is, the law is right.

        Not by support/search.py: it gallops from the last step, for a call may read the records, and it may end early.
        """
        low, high = near, near + step
        while high <= far and gap(high) < above:
            low, high, step = high, high + step, 2 * step
        if high > far:
            if gap(far) < above:
                return far + 1
            high = far
        while high - low > 1 + (high - near) // 128:
            middle = (low + high) // 2
            low, high = (middle, high) if gap(middle) < above else (low, middle)
        return max(high, near + 1)

    def draw(self, key: Key) -> int:
        return self._choice.draw(key)


def no_line(asked: ChoiceParameters, spacing: float | None, resolution: float | None) -> str:
    """Why there is no exact method; empty if there is one."""
    if asked.d > 1:
        return f"d={asked.d} columns: must be 1"
    if type(asked.problem.loss) not in LINES:
        return f"loss={asked.problem.loss!r}: must be SquaredDistance or AbsoluteDeviation"
    if asked.problem.l1:
        return "L1: must not be among the regularisers"
    if asked.problem.over.ends is None:
        return f"over={asked.problem.over!r}: must be a Ball or a Box"
    if resolution is not None:
        return f"resolution={shown(resolution)}: must be None, as losses are not rounded"
    if spacing is not None and frexp(spacing)[0] != 0.5:
        return f"spacing={shown(spacing)}: must be a power of two"
    return ""


class LinePlan(ChoicePlan):
    """Points start + k spacing, k = 0 .. steps; a record has a position k too, and its loss is an integer."""

    method = "exact"
    resolution = None
    power: int  # a unit of the scores is so many powers of the spacing

    def __init__(self, asked: ChoiceParameters, spacing: float | None) -> None:
        self.asked, over = asked, asked.problem.over
        assert over.ends is not None
        low, high = over.ends
        self._low, self._high = low, high
        if spacing is None:
            widest = max(high - low, self._furthest() * 2.0**-18)
            spacing = 2.0 ** (frexp(widest)[1] - 1 - _LINE_BITS)
        if not 2.0**-400 <= spacing <= 2.0**400:
            raise ValueError(f"spacing={shown(spacing)}: must be between 2^-400 and 2^400")
        self.spacing = spacing
        self.steps = floor((Fraction(high) - Fraction(low)) / Fraction(spacing))
        self.first, self.last = self._positions_within()
        if max(self.steps, self.last, -self.first) > _MOST_LINE:
            raise ValueError(f"spacing={shown(spacing)}: must be larger; the set or the records reach over 2^62 of it")
        self.guarantee = BoundedRange(asked.epsilon, neighbors=asked.neighbors)
        self.eta = lower(asked.epsilon) / max(self._sensitivity(), 1)

    @property
    def candidates(self) -> int:
        return self.steps + 1

    def bound(self, beta: float) -> float:
        """The excess risk, but with probability beta, if the declared bounds hold."""
        asked, n = self.asked, self.asked.n
        unit = Fraction(self.spacing) ** self.power
        # the regulariser varies by no more
        ridge = n * asked.problem.lam / 2 * max(abs(self._low), abs(self._high)) ** 2
        return line_excess(
            self.steps, n=n, eta=float(self.eta / unit), losses_range=n * float(self._range() * unit) + ridge,
            spacing=self.spacing, lipschitz=asked.lipschitz, beta=beta,
        )  # fmt: skip

    def _furthest(self) -> float:
        """How far from 0 records and set reach, if the distance of a record counts."""
        return 0.0

    def _positions_within(self) -> tuple[int, int]:
        """The least and the largest position that a record may have."""
        return 0, self.steps

    @abstractmethod
    def _range(self) -> int:
        """By how much the losses of one record differ between points, at most."""

    @abstractmethod
    def _sensitivity(self) -> int:
        """Of differences of scores: theorem 2."""

    @abstractmethod
    def _losses(self, points: Points) -> Callable[[int], int]:
        """The sum of all losses at a point."""

    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        report(0, 1, "records")
        choice = self.choice(points)
        report(1, 1, "")
        return lambda key: self._point(choice.draw(key))

    def choice(self, points: Points) -> ConvexChoice:
        """With the regulariser n lam/2 (low + k spacing)^2, as integers: all times what makes them so."""
        losses, asked = self._losses(points), self.asked
        lam = Fraction(asked.problem.lam)
        if not lam:
            return ConvexChoice(losses, self.steps, self.eta)
        weight = asked.n * lam / 2 * Fraction(self.spacing) ** (2 - self.power)
        shift = Fraction(self._low) / Fraction(self.spacing)
        a, b, c, e = weight.numerator, weight.denominator, shift.numerator, shift.denominator
        times = b * e * e
        return ConvexChoice(lambda k: times * losses(k) + a * (e * k + c) ** 2, self.steps, self.eta / times)

    def _point(self, k: int) -> Vector:
        w = float(Fraction(self._low) + k * Fraction(self.spacing))
        return np.array([min(max(w, self._low), self._high)])


class _Mean(LinePlan):
    """(k - x)^2: n k^2 - 2 k (sum of x), but for what does not depend on k. One read checks the records and sums."""

    power = 2

    def _furthest(self) -> float:
        return self.asked.problem.loss.declared_norm() + max(abs(self._low), abs(self._high))

    def _positions_within(self) -> tuple[int, int]:
        norm, low, unit = (
            Fraction(self.asked.problem.loss.declared_norm()),
            Fraction(self._low),
            Fraction(self.spacing),
        )
        return floor((-norm - low) / unit), ceil((norm - low) / unit)

    def _range(self) -> int:
        def range_of(x: int) -> int:
            beside = max(-x, x - self.steps, 0)
            return max(x * x, (self.steps - x) ** 2) - beside * beside

        return max(range_of(self.first), range_of(self.last))

    def _sensitivity(self) -> int:
        return self._range() if self.asked.monotonic else 2 * self.steps * (self.last - self.first)

    def _losses(self, points: Points) -> Callable[[int], int]:
        ends = up(Fraction(self.first)), down(Fraction(self.last))  # 0 is between them, and a float
        line = np.array([self._low, 1 / self.spacing, *ends, points.limit])

        def statistic(block: Block) -> Integers:
            from ..kernels.number_line import sum_positions

            X, _ = points.raw_parts(block)
            out, least = np.zeros(4, np.int64), least_square(X)
            largest = sum_positions(as_compiled(X.reshape(-1)), line, out[:2])
            out[2:] = points.verdict(sqrt(largest * largest + least))
            return out

        high, low, *_ = points.check_by(lambda: points.rows.total(statistic)).tolist()
        n, total = points.n, (high << _HALF) + low
        return lambda k: k * (n * k - 2 * total)


class _Median(LinePlan):
    """|k - x|. Records beyond the set count as its ends, which changes no difference."""

    power = 1

    def _range(self) -> int:
        return self.steps

    def _sensitivity(self) -> int:
        return self.steps if self.asked.monotonic else 2 * self.steps

    def positions(self, points: Points) -> Callable[[Block], Integers]:
        """Where the records of a block stand."""
        low, scale, last = self._low, 1 / self.spacing, self.last

        def of(block: Block) -> Integers:
            X, _, _ = points.parts(block)
            places = (X.astype(np.float64, copy=False) - low) * scale
            np.clip(places, 0.0, float(last), out=places)
            return np.clip(np.rint(places).astype(np.int64), 0, last)

        return of

    def _losses(self, points: Points) -> Callable[[int], int]:
        points.check()
        positions = self.positions(points)
        if not may_gather(points.rows):
            far = RankSearch(points.rows, lambda block: positions(block).view(np.uint64), self.last, add=True)
            return self._losses_of(far)
        at = np.concatenate(points.rows.merge(lambda block: [positions(block)], lambda a, b: a + b))
        at.sort()
        below = np.zeros((2, at.size + 1), np.int64)
        np.cumsum(at >> _HALF, out=below[0, 1:])
        np.cumsum(at & (2**_HALF - 1), out=below[1, 1:])
        n, total = at.size, (int(below[0, -1]) << _HALF) + int(below[1, -1])

        def losses(k: int) -> int:
            m = int(np.searchsorted(at, k, "right"))
            return k * (2 * m - n) + total - 2 * ((int(below[0, m]) << _HALF) + int(below[1, m]))

        return losses

    @staticmethod
    def _losses_of(at: RankSearch) -> Callable[[int], int]:
        """The same of positions that are not here."""
        n, total = at.m, at.total

        def losses(k: int) -> int:
            m, below = at.up_to(k)
            return k * (2 * m - n) + total - 2 * below

        return losses


LINES: dict[type, type[_Mean] | type[_Median]] = {SquaredDistance: _Mean, AbsoluteDeviation: _Median}
