"""A choice from a net whose losses are convex, of which only some are evaluated.

Tangents at the points that were evaluated bound the losses at all others from below. Points are proposed by these
bounds, and a coin accepts them by their losses, which are evaluated then: exponential_erm.md, theorem 6. Where tangents
lie decides how long that takes, and nothing else. Sums and products one after the other, so that this has the same bits
on all machines.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf, log, log2
from typing import Any, NamedTuple

import numpy as np

from ..mechanisms.weighted_intervals import IntervalChoice, WeightedInterval
from ..randomness.keys import Key
from ..records.rows import Block, Parts
from ..support.progress import PublicSteps, Report
from .losses import AbsoluteDeviation, Hinge, Huber, Logistic, Loss, SquaredDistance, SquaredError
from .losses.base import SIGN, MarginLoss
from .points import Points
from .sets import Ball, Box, ConvexSet, Simplex, Vector
from .sets.nets import MOST_DIMENSIONS, Floats, Integers

# What privacy rests on is proved for these, and for nothing that is derived from them.
_CONVEX = SquaredError, Logistic, Hinge, Huber, SquaredDistance, AbsoluteDeviation
_SETS = Ball, Box, Simplex

_BATCH = 16  # points that are evaluated in one pass over the records
EVALUATED = 4096  # points at most; then it is drawn, however many proposals that takes
_PASSES = 8  # that it usually takes, for progress
_ENOUGH = 0.25  # of the proposals accepted
_OF_SCORES = 2.0**-40  # by which covering_nets.py takes the largest score too large
_OF_FLOATS = 2.0**-44  # more than a loss or a slope is rounded by, relative to the size of all that goes into it
_ROUNDING = 2.0**-48  # the same of a bound by a tangent
_ALLOWED = 1 / 16  # of a unit: what rounding may do to the loss of a record
_SLACK = 1 + 2 * _ALLOWED + 1 / 8  # units by which a record may bring a loss below a tangent
_LOOSE = 1.0  # in the exponent: what the slack of all records may cost proposals by points that were not evaluated
_GOLDEN, _SILVER = 0.6180339887498949, 0.41421356237309515  # whose multiples fill [0, 1) evenly, less the whole part
_MOST_SLOPE = 2.0**50  # units of a coordinate of a record's gradient


class TangentScale(NamedTuple):
    """How the losses of records and their slopes become integers: both units are powers of two."""

    unit: float
    limit: float
    slope_unit: float

    @classmethod
    def of(cls, loss: Loss, over: ConvexSet, resolution: float, limit: int) -> TangentScale | None:
        """None where floats are too coarse for this resolution; `has_tangents` holds."""
        d, across = over.known_dimension(), over.diameter
        slope, size = loss.lipschitz(over), loss.range(over)
        size += slope * across
        beyond = 0.0
        if isinstance(loss, MarginLoss):
            largest = loss.declared_norm() * over.norm
            label = min(loss.label_bound, farthest_label(loss, largest))
            size += float(loss.value(np.zeros(1), np.full(1, label))[0])
            size += loss.score_lipschitz(largest) * largest
            beyond = _OF_SCORES * loss.score_lipschitz(largest) * largest
        slope_unit = 2.0 ** ceil(log2(4 * d * across / resolution))
        if not (_OF_FLOATS * size + beyond <= _ALLOWED * resolution and slope * slope_unit <= _MOST_SLOPE / 2):
            return None
        return cls(1 / resolution, float(limit), slope_unit)


def has_tangents(loss: Any, over: Any) -> bool:
    """Whether a loss over a set is known to be convex, and its constants to be right."""
    return type(loss) in _CONVEX and type(over) in _SETS


def are_tight(eta: float, n: int) -> bool:
    """Whether tangents below the losses of n records are near them, if a unit counts `eta` in the exponent."""
    return eta * _SLACK * n <= _LOOSE


def farthest_label(loss: MarginLoss, largest: float) -> float:
    """A label further from 0 may count as this one: the loss of any score varies by as much."""
    if isinstance(loss, Huber):
        return (largest + loss.threshold) * (1 + 2.0**-30)
    return 1.0 if loss.labels == SIGN else inf


class RecordColumns(NamedTuple):
    """Some records coordinate by coordinate, their labels, and the number that their losses are counted from."""

    columns: Floats
    labels: Vector
    lowest: Vector


BYTES = 8 * (MOST_DIMENSIONS + 2)  # of a record in columns


class Tangents:
    """The losses of all records at points that are asked for, and their gradients, as sums of integers."""

    def __init__(self, points: Points, columns: Callable[[Block], RecordColumns], scale: TangentScale) -> None:
        loss = points.loss
        assert isinstance(loss, Loss)
        self._loss, self._scale, self.n = loss, scale, points.n
        self._parts: Parts[RecordColumns] = points.rows.keep_parts(columns, BYTES)

    def at(self, some: Floats) -> tuple[list[int], Floats]:
        """(the losses at points, in units; their gradients, in units, a point a row)."""
        loss, scale = self._loss, self._scale
        sums = self._parts.total(partial(_summed, loss.number, loss.parameter, scale, some))
        whole = [[(int(row[2 * j]) << 31) + int(row[2 * j + 1]) for j in range(5)] for row in sums]
        part = scale.unit / scale.slope_unit
        slopes = np.array([[float(each) * part for each in row[1:]] for row in whole])
        return [row[0] for row in whole], slopes


def _summed(number: int, parameter: float, scale: TangentScale, some: Floats, part: RecordColumns) -> Integers:
    from ..kernels.tangents import SUMS, TANGENTS

    out = np.zeros((some.shape[1], SUMS), np.int64)
    TANGENTS[number](*part, some, parameter, 0, *scale, out)
    return out


class Envelope:
    """Bounds from below of the losses at all points of a net, raised until enough proposals would be accepted.

    ridge   what the regulariser adds to each, in units: public
    eta     what a unit counts in the exponent
    """

    def __init__(self, tangents: Tangents, net: Floats, ridge: Integers, eta: float, report: Report) -> None:
        self._tangents, self._net, self._ridge, self._eta = tangents, net, ridge, eta
        self._values: dict[int, int] = {}
        self._turns = 0
        self._slack = _SLACK * tangents.n
        size = net.shape[1]
        self._bounds = np.full(size, -inf)
        self._most = min(EVALUATED, size)  # are evaluated before it is drawn
        steps = PublicSteps(report, _PASSES, "tangents")
        steps.begin(0)
        self._evaluate(np.unique(np.linspace(0, size - 1, min(size, _BATCH)).astype(np.int64)))
        self._search(steps)
        steps.end()

    @property
    def evaluated(self) -> int:
        """At how many points the losses are known."""
        return len(self._values)

    def _search(self, steps: PublicSteps) -> None:
        """Evaluate points until few proposals will be in vain."""
        passes = 1
        while len(self._values) < self._most:
            known = np.fromiter(self._values, np.int64)
            falls = self._falls()
            weights = np.ldexp(1.0, -np.minimum(falls, 1000.0).astype(np.int32))
            sums = np.cumsum(weights)
            done = float(np.cumsum(weights[known])[-1] / sums[-1])
            if done >= _ENOUGH:
                break
            by_weight = np.searchsorted(sums, self._spread(_GOLDEN) * sums[-1], "right")
            best = self._relative(known).min()
            possible = np.flatnonzero(self._bounds <= best)
            anywhere = possible[(self._spread(_SILVER) * possible.size).astype(np.int64)]
            chosen = np.minimum(by_weight, weights.size - 1)
            before = self._bounds[chosen]
            new = np.setdiff1d(np.concatenate((chosen, anywhere)), known)
            if new.size:
                steps.begin(passes)
                self._evaluate(new)
                passes += 1
            gaps = np.maximum(self._relative(chosen) - before, 0.0) * (self._eta / log(2))
            accepted = np.ldexp(1.0, -np.minimum(gaps, 1000.0).astype(np.int32))
            if np.cumsum(accepted)[-1] >= 2 * _ENOUGH * accepted.size:
                break

    def _spread(self, part: float) -> Floats:
        """Some numbers in [0, 1), other ones in each turn: where tangents lie decides about time alone."""
        self._turns += 1
        count = _BATCH // 2
        return np.asarray((np.arange(self._turns * count, (self._turns + 1) * count) * part) % 1.0)

    def _relative(self, places: Integers) -> Floats:
        """The losses at points that were evaluated, less that at the first, rounded down."""
        return np.array([self._below(self._values[p] - self._first) for p in places.tolist()])

    @staticmethod
    def _below(whole: int) -> float:
        found = float(whole)
        return found - abs(found) * _ROUNDING

    def _evaluate(self, places: Integers) -> None:
        from ..kernels.tangents import raise_bounds

        some = np.ascontiguousarray(self._net[:, places])
        values, slopes = self._tangents.at(some)
        if not self._values:
            self._first = values[0] + int(self._ridge[places[0]])
        for p, value in zip(places.tolist(), values, strict=True):
            self._values[p] = value + int(self._ridge[p])
        # of the records alone, and then the regulariser, which is known everywhere
        own = np.array([float(value - self._first) for value in values])
        found = np.full(self._bounds.size, -inf)
        raise_bounds(self._net, own, slopes, np.ascontiguousarray(some.T), self._slack, _ROUNDING, found)
        ridge = self._ridge.astype(np.float64)
        found += ridge
        found -= (np.abs(found) + 2 * np.abs(ridge)) * _ROUNDING
        np.maximum(self._bounds, found, out=self._bounds)
        self._bounds[places] = self._relative(places)

    def _falls(self) -> Floats:
        """By how many powers of two the bounds are surely above the whole number below the least of them."""
        least = float(floor(self._bounds.min()))
        return np.floor((self._bounds - least) * (self._eta / log(2) * (1 - _ROUNDING)))

    def chooser(self) -> Callable[[Key], int]:
        """The draw of a point's number: reads the records where a point is proposed that was not evaluated."""
        most = 64 + self._bounds.size.bit_length()
        levels = np.minimum(self._falls(), float(most)).astype(np.int64)
        order = np.argsort(levels, kind="stable")
        counts = np.bincount(levels, minlength=1).tolist()
        intervals, first = [], 0
        for level, size in enumerate(counts):
            if size:
                intervals.append(WeightedInterval(first, 1, size, level))
            first += size
        least: int = self._first + floor(self._bounds.min())
        eta = Fraction(self._eta)

        def loss(k: int) -> Fraction:
            p = int(order[k])
            if p not in self._values:
                self._values[p] = self._tangents.at(self._net[:, p : p + 1].copy())[0][0] + int(self._ridge[p])
                if self._values[p] - self._first < self._bounds[p]:
                    raise AssertionError("a tangent is never above")
            return eta * (self._values[p] - least)

        choice = IntervalChoice(intervals, loss)
        return lambda key: int(order[choice.draw(key)])
