"""The points of a net in a convex set, and what makes them: exponential_erm.md, lemma 3."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_DIMENSIONS = 4


class Net(NamedTuple):
    """Points of a set, coordinate by coordinate, with zeros up to four; no point of the set is further than `cover`."""

    points: Floats
    cover: float

    @classmethod
    def of(cls, coordinates: Sequence[Any], cover: float) -> Net:
        """The net of these coordinates: an array of all points' for each dimension."""
        points = np.zeros((MOST_DIMENSIONS, coordinates[0].size))
        points[: len(coordinates)] = coordinates
        return cls(points, cover)


def cells_of(width: float, spacing: float) -> int:
    """How many cells of at most this width there are."""
    return max(1, ceil(min(width / spacing * (1 - 1e-12), 2.0**62)))


def extended(places: Integers, counts: Integers, rest: NDArray[Any]) -> tuple[Integers, Integers, NDArray[Any]]:
    """Each column of places once for every number below its count, which becomes its last entry."""
    total = int(counts.sum())
    numbers = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.concatenate((np.repeat(places, counts, axis=1), numbers[None])), numbers, np.repeat(rest, counts)


def beyond(columns: Floats, center: Floats, l1_radius: float) -> Floats:
    """The L1 distances of points to what lies no further than `l1_radius` from the center."""
    return np.maximum(added(np.abs(columns - center[:, None])) - l1_radius, 0.0)


def added(columns: Floats) -> Floats:
    """The sum of the rows, one after the other."""
    total: Floats = columns[0].copy()
    for column in columns[1:]:
        total += column
    return total
