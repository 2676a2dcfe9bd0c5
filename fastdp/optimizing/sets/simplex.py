"""The simplex."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, log2, sqrt

import numpy as np

from ...support.checks import moderate
from .base import ConvexSet, Projection, Vector, dimension_of, number_of
from .nets import Floats, Net, added, cells_of, extended


@dataclass(frozen=True, repr=False)
class Simplex(ConvexSet):
    """Points with no negative coordinate whose coordinates add up to `total`.

    Parameters
    ----------
    total : float > 0
        The sum of the coordinates.
    dimension : int, optional
        How many there are; None for as many as the records have.

    Examples
    --------
    >>> from fastdp import sets
    >>> sets.Simplex().project([0.5, 0.9])
    array([0.3, 0.7])
    """

    total: float
    dimension: int | None

    def __init__(self, total: float = 1.0, dimension: int | None = None) -> None:
        object.__setattr__(self, "total", moderate("total", total, toward=inf))
        object.__setattr__(self, "dimension", None if dimension is None else dimension_of(dimension))

    def of_dimension(self, d: int) -> Simplex:
        d = self._same(d)
        return Simplex(self.total, d)

    @property
    def center(self) -> Vector:
        return np.full(self.known_dimension(), self.total / self.known_dimension())

    @property
    def diameter(self) -> float:
        return sqrt(2) * self.total

    def reach(self, point: Vector) -> float:
        corners = np.linalg.norm(point) ** 2 - point**2 + (point - self.total) ** 2  # the furthest point is a corner
        return float(sqrt(max(corners)))

    @property
    def projection(self) -> Projection:
        nothing = np.zeros(self.known_dimension())
        return Projection(number_of("SIMPLEX"), nothing, nothing, self.total)

    @property
    def net_dimension(self) -> int:
        return self.known_dimension() - 1

    @property
    def net_cover(self) -> float:
        return sqrt(self.known_dimension()) / 2

    def net_size(self, spacing: float) -> tuple[float, float]:
        d, parts = self.known_dimension(), cells_of(self.total, spacing)
        size = float(_points_of_net(parts, d)) if parts < 2**62 or d == 1 else inf
        return size, size

    def net_shape(self, spacing: float) -> tuple[int, float]:
        d, parts = self.known_dimension(), cells_of(self.total, spacing)
        return _points_of_net(parts, d), self.total / parts * sqrt(d) / 2

    def net(self, spacing: float) -> Net:
        d, parts = self.known_dimension(), cells_of(self.total, spacing)
        places, rest = np.zeros((0, 1), np.int64), np.array([parts])
        for _ in range(d - 1):
            places, numbers, rest = extended(places, rest + 1, rest)
            rest = rest - numbers
        places = np.concatenate((places, rest[None]))
        return Net.of(list(places * (self.total / parts)), self.net_shape(spacing)[1])

    def l1_distances(self, columns: Floats) -> Vector:
        above, below = np.maximum(columns, 0.0), np.maximum(-columns, 0.0)
        return added(below) + np.abs(self.total - added(above))

    def __repr__(self) -> str:
        return "Simplex()" if self.total == 1 else f"Simplex({self.total:g})"


def _points_of_net(parts: int, d: int) -> int:
    """parts + d - 1 choose d - 1, or 2^1000 where it is more."""
    k = min(parts, d - 1)
    if k * log2((parts + d - 1) / max(k, 1)) > 1000:  # n over k is at least (n / k)^k
        return 2**1000
    return min(comb(parts + d - 1, k), 2**1000)
