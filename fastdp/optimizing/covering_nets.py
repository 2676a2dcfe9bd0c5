"""The losses of all records at the points of a net in a convex set, and a choice by the exponential mechanism.

Losses are rounded down to integers before they are summed; exponential_erm.md, lemmas 1 to 3 and theorem 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, frexp, inf, log, log2, sqrt
from typing import Any

import numpy as np

from ..mechanisms.scores import plan_exponential
from ..mechanisms.selection import draw_one
from ..randomness.keys import Key
from ..records.rows import Block
from ..support.progress import Report
from ..support.shown import shown
from ..support.threads import run_chunks
from .choice import INSTEAD, ChoiceParameters, ChoicePlan, Integers
from .convex_nets import (
    EVALUATED,
    Envelope,
    RecordColumns,
    Tangents,
    TangentScale,
    are_tight,
    farthest_label,
    has_tangents,
)
from .losses import Custom, Loss
from .losses.base import MarginLoss
from .points import Points
from .problem import Problem
from .sets import ConvexSet, Vector, checked_net
from .sets.nets import MOST_DIMENSIONS, Floats, Net

MOST_POINTS = 2**22  # of a net
MOST_WORK = 2**38  # losses, one for each record and point: a minute or several
_DEFAULT_POINTS, _DEFAULT_WORK = 2**20, 2**31  # of a net that nobody asked for: a second
_SCANNED = 2**24  # losses up to which all are taken, also of a convex loss: some milliseconds
_MOST_UNITS = 2**36  # the largest loss of a record, in units of the grid
_PRIVATE_UNITS = 2**22  # the same where n is private: 2^40 records add up to 2^62 units
_PART = 2**30  # losses between two reports
_FAR_PART = 2**16  # points, and more, whose losses are computed in one pass over records that are elsewhere
_CHUNK = 2**20  # losses that are worth a thread


def net_excess(
    candidates: float, *, n: float, eta: float, resolution: float, cover: float, lipschitz: float, beta: float
) -> float:
    """The excess risk of a choice from a net, but with probability beta: exponential_erm.md, theorem 4.

    eta      what a unit of the grid counts in the exponent
    cover    no point of the set is further from the net
    lipschitz  of what is minimised
    """
    return log(candidates / beta) / eta * resolution / n + cover * lipschitz + 3 * resolution


def _best_spacing(over: ConvexSet, step: float, lipschitz: float) -> float:
    """Where step ln |net| + lipschitz cover is least, but at most an eighth of the set."""
    assert over.net_dimension is not None
    best = step * max(over.net_dimension, 1) / (lipschitz * over.net_cover) if lipschitz else inf
    return min(best, over.diameter / 8)


def _default_spacing(over: ConvexSet, step: float, lipschitz: float, most: float) -> float:
    """The best one that has no more than so many points."""
    coarse, fine = 2 * over.diameter, over.diameter * 2.0**-40
    # the least spacing with few enough points; not by support/search.py, as every spacing of a one-point simplex has
    for _ in range(100):
        middle = sqrt(coarse * fine)
        coarse, fine = (middle, fine) if over.net_size(middle)[1] <= most else (coarse, middle)
    return max(_best_spacing(over, step, lipschitz), coarse)


# --- the losses of all records at the points of a net


class GridPlan(ChoicePlan):
    """Theorem 1: scores of the points of a net, and the exponential mechanism on them."""

    method = "grid"

    def __init__(self, asked: ChoiceParameters, spacing: float | None, resolution: float | None) -> None:
        self.asked, problem, n = asked, asked.problem, asked.n
        self._over = problem.over
        problem.loss.check_value()
        if problem.loss.family == "deviation" and self._over.l1_distances(self._over.center[:, None]) is None:
            raise ValueError(f"over={self._over!r}: must have l1_distances, for {problem.loss!r}; {INSTEAD} and set")
        for tangents in (self._many(spacing), False):
            self._tangents = tangents
            self.resolution, self._limit = self._units(resolution)
            choice = plan_exponential(
                self._limit, asked.epsilon, 0.0, monotonic=asked.monotonic, rounds=1, neighbors=asked.neighbors
            )
            if not tangents:
                break
            self._scale = TangentScale.of(problem.loss, self._over, self.resolution, self._limit)
            few = spacing is not None and self._over.net_size(spacing)[0] <= EVALUATED
            if self._scale is not None and (few or are_tight(choice.eta, n)):
                break
        assert self.resolution is not None
        self.eta, self.guarantee = choice.eta, choice.guarantee
        self._step = self.resolution / (self.eta * n)
        if spacing is None:
            most = _DEFAULT_POINTS if self._tangents else max(1, min(_DEFAULT_POINTS, _DEFAULT_WORK // n))
            spacing = _default_spacing(self._over, self._step, asked.lipschitz, most)
        self.spacing = spacing
        self._check_size(self._over.net_size(spacing)[0])
        if self._tangents:  # a net that is made where records are read: comparing bounds needs none
            self._candidates, self._cover = self._over.net_shape(spacing)
            largest = problem.lam / 2 * self._over.norm**2 + problem.steepest_l1 * self._over.norm
            self._check_ridge(problem, n * largest / self.resolution)
        else:
            self._candidates, self._cover = self.net.points.shape[1], self.net.cover
            self._check_ridge(problem, float(self._ridge_units.max()))
        self._check_size(self._candidates)

    @cached_property
    def net(self) -> Net:
        """The points."""
        return checked_net(self._over.net(self.spacing), self._over)

    @property
    def candidates(self) -> int:
        return self._candidates

    def bound(self, beta: float) -> float:
        return self._bound_of(self._candidates, self._cover, beta)

    def uncapped(self, beta: float) -> float | None:
        best = _best_spacing(self._over, self._step, self.asked.lipschitz)
        if best >= self.spacing:
            return None
        found = self._bound_of(self._over.net_size(best)[1], self._cover * best / self.spacing, beta)
        return found if found < self.bound(beta) else None

    def _bound_of(self, candidates: float, cover: float, beta: float) -> float:
        assert self.resolution is not None
        return net_excess(
            candidates, n=self.asked.n, eta=self.eta, resolution=self.resolution, cover=cover,
            lipschitz=self.asked.lipschitz, beta=beta,
        )  # fmt: skip

    def _many(self, spacing: float | None) -> bool:
        """Whether there are more losses than are all evaluated, if tangents bound them."""
        if not has_tangents(self.asked.problem.loss, self._over):
            return False
        asked = self.asked
        if spacing is None:
            step = (1 if asked.monotonic else 2) * asked.problem.loss.range(self._over) / (asked.epsilon * asked.n)
            spacing = _default_spacing(self._over, step, asked.lipschitz, _DEFAULT_POINTS)
        return self._over.net_size(spacing)[0] * self.asked.n > _SCANNED

    def _units(self, resolution: float | None) -> tuple[float, int]:
        """The grid of the losses, and K."""
        loss_range = self.asked.problem.loss.range(self._over)
        if not 2.0**-900 <= loss_range <= 2.0**900:
            raise ValueError(f"loss: varies by {loss_range:g} over the set: must be between 2^-900 and 2^900")
        n = self.asked.n
        private = self.asked.monotonic and not self._tangents  # whose sums are of any size
        most = _PRIVATE_UNITS if private else min(_MOST_UNITS, 2**62 // n - 1)
        if resolution is None:
            useful = ceil(min(log2(self.asked.epsilon * n + 1), 1000.0)) + 3  # the choice itself is no finer
            bits = 21 if private else min(max(21, useful), 34, most.bit_length() - 2)
            resolution = 2.0 ** (frexp(loss_range)[1] - 1 - bits)
        limit = ceil(Fraction(loss_range) / Fraction(resolution))
        if not limit <= most:
            raise ValueError(
                f"resolution={shown(resolution)}: must be such that a loss has at most {most:,} units; it has {limit:,}"
            )
        return resolution, limit

    def _check_size(self, size: float) -> None:
        n = self.asked.n
        if size > MOST_POINTS or (size * n > MOST_WORK and not self._tangents):
            raise ValueError(
                f"spacing={self.spacing:.4g}: a net of {size:,.0f} points for {n:,} records: must be at most "
                f"{MOST_POINTS:,} points and {MOST_WORK:.2g} losses; {INSTEAD}"
            )

    @cached_property
    def _ridge_units(self) -> Floats:
        """n times the regularisers in units of the grid, which depends on no record."""
        assert self.resolution is not None
        points, n, problem = self.net.points, self.asked.n, self.asked.problem
        units = n * problem.lam / 2 * (points * points).sum(axis=0) / self.resolution
        if problem.l1:
            units += n * problem.l1 * np.abs(points).sum(axis=0) / self.resolution
        return np.asarray(units)

    @cached_property
    def _ridge(self) -> Integers:
        rounded: Integers = np.rint(self._ridge_units).astype(np.int64)
        return rounded

    @staticmethod
    def _check_ridge(problem: Problem, largest: float) -> None:
        if not largest < 2.0**61:
            raise ValueError(
                f"lam={shown(problem.l1 or problem.lam)}: must be smaller, or the resolution coarser: n times the "
                "regulariser has 2^61 units"
            )

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs to score records: not the net, of which it gets the part that is meant."""
        return {name: getattr(self, name) for name in ("resolution", "_limit", "_over")}

    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        points.check()
        d = self.asked.d
        if self._tangents:
            choose = self.envelope(points, report).chooser()
            return lambda key: self.net.points[:d, choose(key)].copy()
        scores = self.scores(points, report)
        return lambda key: self.net.points[:d, draw_one(scores, key, self.eta)].copy()

    def envelope(self, points: Points, report: Report) -> Envelope:
        """What is known of F at all points of the net when enough of them have been evaluated."""
        assert self._scale is not None
        tangents = Tangents(points, partial(self._counted, points), self._scale)
        return Envelope(tangents, self.net.points, self._ridge, self.eta, report)

    def _counted(self, points: Points, block: Block) -> RecordColumns:
        columns, labels, norms = self._columns(points, block)
        return RecordColumns(columns, labels, self._lowest(points, columns, labels, norms))

    def scores(self, points: Points, report: Report) -> Integers:
        """-F, in the order of the net."""
        net, custom = self.net.points, isinstance(points.loss, Custom)
        part = self.candidates if custom else max(1, _PART // self.asked.n)
        if not points.rows.gathers:  # a pass takes longer than what it computes
            part = max(part, _FAR_PART)
        score = self._custom if custom else self._built_in
        totals = np.empty(self.candidates, np.int64)
        parts = range(0, self.candidates, part)
        for done, first in enumerate(parts):
            report(done, len(parts), f"{min(part, self.candidates - first):,} points")
            some = np.ascontiguousarray(net[:, first : first + part])
            totals[first : first + part] = points.rows.total(partial(score, points, some))
        report(len(parts), len(parts), "")
        return -(totals + self._ridge)

    def _built_in(self, points: Points, net: Floats, block: Block) -> Integers:
        from ..kernels.covering_nets import ADDERS

        columns, labels, norms = self._columns(points, block)
        lowest = self._lowest(points, columns, labels, norms)
        loss = points.loss
        assert isinstance(loss, Loss)
        assert self.resolution is not None
        out, add = np.zeros(net.shape[1], np.int64), ADDERS[loss.number]
        formula = loss.parameter, loss.value_address, 1 / self.resolution, float(self._limit)

        def run(start: int, stop: int) -> None:
            some = np.ascontiguousarray(net[:, start:stop])
            add(columns, labels, lowest, some, *formula, out[start:stop])

        run_chunks(run, out.size, max(1, _CHUNK // max(block.n, 1)))
        return out

    def _columns(self, points: Points, block: Block) -> tuple[Floats, Vector, Vector]:
        """Records coordinate by coordinate, labels and norms, all within the bounds that clip."""
        X, labels, norms = points.parts(block)
        columns = np.zeros((MOST_DIMENSIONS, block.n))
        columns[: points.d] = X.reshape(-1, points.d).T
        loss, bound = points.loss, points.loss.x_norm
        if isinstance(loss, MarginLoss):
            if bound is not None:
                columns *= np.minimum(1.0, bound / norms)
                norms = np.minimum(norms, bound)
                label = farthest_label(loss, bound * self._over.norm)
                labels = np.clip(labels, -label, label)
        elif loss.family == "distance" and bound is not None and points.limit == inf:
            columns *= np.minimum(1.0, bound / norms)  # a little further than it is tolerated
        elif loss.family == "deviation":
            reach, center = self._over.diameter * (1 + 2.0**-30), self._over.center[:, None]
            np.clip(columns[: points.d], center - reach, center + reach, out=columns[: points.d])
        return columns, labels, norms

    def _lowest(self, points: Points, columns: Floats, labels: Vector, norms: Vector) -> Vector:
        """No more than the loss of each record at any point of the set, and no further below it than the range."""
        from ..kernels.losses import losses_into

        loss, over, out = points.loss, self._over, np.zeros(labels.size)
        if isinstance(loss, MarginLoss):
            scores = loss.best_scores(labels, norms * (over.norm * (1 + 2.0**-40)))
            losses_into(loss.number, loss.parameter, loss.value_address, scores, labels, out)
        elif loss.family == "deviation":
            own = columns[: points.d]
            distances = over.l1_distances(own)
            assert distances is not None  # as __init__ has seen
            out += distances
        return out

    def _custom(self, points: Points, net: Floats, block: Block) -> Integers:
        """The same in Python: each record's lowest value is taken from its values."""
        assert isinstance(points.loss, Custom)
        assert self.resolution is not None
        columns, labels, _ = self._columns(points, block)
        out, few = np.zeros(net.shape[1], np.int64), max(1, _CHUNK // net.shape[1])
        for first in range(0, block.n, few):
            x, y = columns[:, first : first + few], labels[first : first + few]
            scores = sum(x[j][:, None] * net[j] for j in range(points.d))
            assert isinstance(scores, np.ndarray)
            with np.errstate(all="ignore"):  # what it warns of would reveal records
                values = points.loss.value(scores.reshape(-1), np.repeat(y, net.shape[1]))
            if values.shape != (scores.size,):
                raise ValueError(f"loss: value(scores, labels) has shape {values.shape}: must be {(scores.size,)}")
            values = values.reshape(scores.shape)
            lowest = np.where(np.isfinite(values), values, inf).min(axis=1, keepdims=True)
            with np.errstate(invalid="ignore", over="ignore"):
                units = (values - np.where(lowest < inf, lowest, 0.0)) / self.resolution
            units = np.where(units < self._limit, np.maximum(units, 0.0), self._limit)  # a NaN is as bad as it gets
            out += np.floor(units).astype(np.int64).sum(axis=0)
        return out
