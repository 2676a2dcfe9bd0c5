"""Balls of L2 and of L1."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, inf, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...support.checks import moderate, plain_integer
from ...support.shown import shown
from .base import ConvexSet, Projection, Vector, coordinates_of, display_values, number_of
from .nets import Floats, Net, beyond, extended


@dataclass(frozen=True, repr=False)
class Ball(ConvexSet):
    """Points at distance at most `radius` from `center`, in L2 or, with norm=1, in L1.

    Parameters
    ----------
    radius : float > 0
        The largest distance.
    center : array_like of float
        The middle: a vector, or one number for all coordinates, however many the records have.
    norm : {1, 2}
        How distances are measured.

    Examples
    --------
    >>> from fastdp import sets
    >>> sets.Ball(2.0).project([3.0, 4.0])
    array([1.2, 1.6])
    >>> sets.Ball(1.0, norm=1).project([3.0, 1.0])
    array([1., 0.])
    """

    radius: float
    at: tuple[float, ...]
    order: int
    dimension: int | None

    def __init__(self, radius: float, center: ArrayLike = 0.0, norm: int = 2) -> None:
        if plain_integer(norm) not in (1, 2):
            raise ValueError(f"norm={shown(norm)}: must be 1 or 2")
        at = coordinates_of("center", center)
        object.__setattr__(self, "radius", moderate("radius", radius, toward=inf))
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "order", int(norm))
        object.__setattr__(self, "dimension", len(at) if np.ndim(center) else None)

    def of_dimension(self, d: int) -> Ball:
        d = self._same(d)
        if self.dimension is not None:
            return self
        ours = object.__new__(Ball)  # all is checked already
        ours.__dict__.update(self.__dict__, at=self.at * d, dimension=d)
        return ours

    @property
    def center(self) -> Vector:
        self.known_dimension()
        return np.array(self.at)

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def reach(self, point: Vector) -> float:
        away = np.asarray(point, np.float64)
        if any(self.at):
            away = away - np.array(self.at)
        return sqrt(away @ away) + self.radius

    @property
    def projection(self) -> Projection:
        at = self.center
        return Projection(number_of("BALL" if self.order == 2 else "BALL_L1"), at, at, self.radius)

    @property
    def takes_l1(self) -> bool:
        return not any(self.at)

    @property
    def net_dimension(self) -> int:
        return self.known_dimension()

    def net_size(self, spacing: float) -> tuple[float, float]:
        # cubes around the points cover a smaller ball, and lie in a larger one
        d, ratio = self.known_dimension(), self.radius / spacing
        volume, half = (
            (pi ** (d / 2) / gamma(d / 2 + 1), sqrt(d) / 2) if self.order == 2 else (2**d / gamma(d + 1), d / 2)
        )
        most = volume * (ratio + half) ** d * (1 + 1e-9)
        return volume * max(ratio - half, 0.0) ** d * (1 - 1e-9), max(most, 1.0)

    def net_shape(self, spacing: float) -> tuple[int, float]:
        d = self.known_dimension()
        _, most, _ = self._places(spacing, d - 1)
        return int((2 * most + 1).sum()), min(spacing * sqrt(d), self.radius)

    def _places(self, spacing: float, fixed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The first coordinates of the points, in spacings; for each how large the next may be, and what is left."""
        ratio = self.radius / spacing * (1 + 1e-12)
        places, left = np.zeros((0, 1), np.int64), np.array([ratio**self.order])
        for _ in range(fixed):
            most = self._most(left)
            places, numbers, left = extended(places, 2 * most + 1, left)
            shift = np.repeat(most, 2 * most + 1)
            places[-1] -= shift
            left = np.maximum(left - np.abs(numbers - shift) ** self.order, 0)
        return places, self._most(left), left

    def _most(self, left: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(left ** (1 / self.order) * (1 + 1e-15)).astype(np.int64)

    def net(self, spacing: float) -> Net:
        d = self.known_dimension()
        places, _, _ = self._places(spacing, d)
        coordinates = [c + k * spacing for c, k in zip(self.at, places, strict=True)]
        return Net.of(coordinates, min(spacing * sqrt(d), self.radius))

    def l1_distances(self, columns: Floats) -> Vector:
        return beyond(columns, self.center, self.radius * (1.0 if self.order == 1 else sqrt(self.known_dimension())))

    @property
    def ends(self) -> tuple[float, float]:
        return self.at[0] - self.radius, self.at[0] + self.radius

    def __repr__(self) -> str:
        center = "" if not any(self.at) else f", center={display_values(self.at)}"
        return f"Ball({self.radius:g}{center}{', norm=1' if self.order == 1 else ''})"
