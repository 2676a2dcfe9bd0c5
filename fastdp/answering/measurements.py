"""Distributions moved onto noisy measurements: the information projection, and replay of all that were made.

All of it is post-processing: floats that see what has been released. multiplicative_weights_measured.md, "Moving onto a
measurement".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log1p
from typing import Any, NamedTuple

from ..records.domain import Domain
from .dense_weights import DenseWeights
from .factored_weights import FactoredWeights
from .queries.bound_query import BoundCells, BoundProduct, BoundQuery
from .queries.query import bind
from .synthesis.weighted_tree import WeightedTree

Weights = DenseWeights | FactoredWeights | WeightedTree

_LEAST = 1e-280  # a share of the distribution below which nothing is moved
_STEPS = 8  # of the search in the exponent, for queries with other values than 0 and 1
_DOUBT = 4.0  # variances of the noise that a gap's square loses before it is believed
_REPLAYED_CELLS = 1 << 25  # that a pass of a replay touches, some 30 ms
_MOST_CELLS = 1 << 27  # that all its passes touch
_MERGED_CELLS = 1 << 20  # of a block that a replay may make, or change


class Measurement(NamedTuple):
    """What was measured of a query."""

    query: Any
    bound: BoundQuery | None  # None where it is made whenever it is needed
    value: float  # a fraction of the records, with its noise
    deviation: float  # of the noise

    @classmethod
    def of(cls, query: Any, value: float, deviation: float, domain: Domain) -> Measurement:
        """The measurement of a query of this domain."""
        return cls(query, bind(query, domain) if query.keeps_bound else None, value, deviation)

    def bound_to(self, domain: Domain) -> BoundQuery:
        """The query on the domain."""
        return bind(self.query, domain) if self.bound is None else self.bound


def move_onto(weights: Weights, bound: BoundQuery, value: float, target: float, near: float) -> bool:
    """Move the query's value, now `value`, onto the target: the nearest such distribution. False if none is."""
    if not (_LEAST < value < 1 and value < 1 - 2.0**-53):
        return False
    rate = log(target) - log1p(-target) - log(value) + log1p(-value)
    weights.scale(bound, rate)
    if isinstance(bound, BoundProduct) or (isinstance(bound, BoundCells) and bound.is_mask):
        return True
    for _ in range(_STEPS):  # the value grows with the exponent, and the first step is never too long
        reached = weights.evaluate(bound)
        slope = (reached - value) / rate
        if abs(target - reached) <= near or not slope > 1e-12:
            break
        value, rate = reached, min(max((target - reached) / slope, -30.0), 30.0)
        weights.scale(bound, rate)
    return True


def take_in(weights: Weights, measurement: Measurement, n: int, value: float | None = None) -> bool:
    """Move the distribution onto a new measurement, as far as its noise lets it be believed; whether it was moved.

    value    what the distribution has for the query, if that is known
    """
    bound, deviation = measurement.bound_to(weights.domain), measurement.deviation
    value = weights.evaluate(bound) if value is None else value
    gap = measurement.value - value
    believed = gap - _DOUBT * deviation * deviation / gap if gap else 0.0
    if believed * gap <= 0:
        return False
    return move_onto(weights, bound, value, _inside(value + believed, n), deviation / 4)


def fit_again(weights: Weights, measurements: Sequence[Measurement], passes: int, n: int) -> None:
    """Go over the measurements, at most so many times, and move the distribution onto those that are far from it."""
    if not passes:
        return
    some = _as_many_as_are_quick(weights, measurements)
    work = sum(weights.cells_of(each.bound) for each in some)
    for _ in range(min(passes, _MOST_CELLS // max(work, 1))):
        moved = False
        for measurement in some:
            bound, deviation = measurement.bound_to(weights.domain), measurement.deviation
            value = weights.evaluate(bound)
            if abs(measurement.value - value) > deviation and _has_room(weights, bound):
                moved |= move_onto(weights, bound, value, _inside(measurement.value, n), deviation / 4)
        if not moved:
            break


def _has_room(weights: Weights, bound: BoundQuery) -> bool:
    """Whether an update by this query merges no blocks, or few cells."""
    return isinstance(weights, DenseWeights) or weights.cells_of(bound) <= _MERGED_CELLS


def _inside(value: float, n: int) -> float:
    """The value between that of one record and that of all but one; of fewer than three records, the middle."""
    least = min(1 / max(n, 1), 0.5)
    return min(max(value, least), 1 - least)


def _as_many_as_are_quick(weights: Weights, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
    """The last ones whose cells are few enough together."""
    room = _REPLAYED_CELLS
    for i in range(len(measurements) - 1, -1, -1):
        room -= weights.cells_of(measurements[i].bound)
        if room < 0:
            return measurements[i + 1 :]
    return measurements
