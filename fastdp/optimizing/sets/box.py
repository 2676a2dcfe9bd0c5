"""Boxes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
from numpy.typing import ArrayLike

from ...support.shown import shown
from .base import ConvexSet, Projection, Vector, coordinates_of, display_values, number_of
from .nets import Floats, Net, beyond, cells_of


@dataclass(frozen=True, repr=False)
class Box(ConvexSet):
    """Points whose coordinates lie between `lower` and `upper`.

    Parameters
    ----------
    lower : array_like of float
        The least coordinates: a vector, or one number for all of them, however many the records have.
    upper : array_like of float
        The largest coordinates, likewise.

    Examples
    --------
    >>> from fastdp import sets
    >>> sets.Box(-1, 1).project([0.5, 3.0])
    array([0.5, 1. ])
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    dimension: int | None

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low, high = coordinates_of("lower", lower), coordinates_of("upper", upper)
        d = max(len(low), len(high))
        if len(low) != len(high) and 1 not in (len(low), len(high)):
            raise ValueError(f"lower: {len(low)} coordinates: must be as many as upper has, {len(high)}")
        low, high = (side if len(side) == d else side * d for side in (low, high))
        for j, (a, b) in enumerate(zip(low, high, strict=True)):
            if not a <= b:
                raise ValueError(f"lower={shown(a)}: must be at most upper={shown(b)} (coordinate {j})")
        if low == high:
            raise ValueError(f"lower={display_values(low)}: must be below upper in at least one coordinate")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "dimension", d if np.ndim(lower) or np.ndim(upper) else None)

    def of_dimension(self, d: int) -> Box:
        d = self._same(d)
        if self.dimension is not None:
            return self
        return Box(np.full(d, self.lower[0]), np.full(d, self.upper[0]))

    @property
    def center(self) -> Vector:
        self.known_dimension()
        low, high = np.array(self.lower), np.array(self.upper)
        return np.asarray(low + (high - low) / 2, np.float64)

    @property
    def diameter(self) -> float:
        self.known_dimension()
        return float(np.linalg.norm(np.array(self.upper) - np.array(self.lower)))

    def reach(self, point: Vector) -> float:
        apart = np.maximum(np.abs(np.array(self.upper) - point), np.abs(point - np.array(self.lower)))
        return float(np.linalg.norm(apart))

    @property
    def projection(self) -> Projection:
        self.known_dimension()
        return Projection(number_of("BOX"), np.array(self.lower), np.array(self.upper), 0.0)

    @property
    def takes_l1(self) -> bool:
        return True

    @property
    def net_dimension(self) -> int:
        return self.known_dimension()

    @property
    def net_cover(self) -> float:
        return sqrt(self.known_dimension()) / 2

    def net_size(self, spacing: float) -> tuple[float, float]:
        size = 1.0
        for low, high in zip(self.lower, self.upper, strict=True):
            size *= float(cells_of(high - low, spacing))
        return size, size

    def net_shape(self, spacing: float) -> tuple[int, float]:
        widths = [high - low for low, high in zip(self.lower, self.upper, strict=True)]
        cells = [cells_of(width, spacing) for width in widths]
        cover = 0.0
        for width, count in zip(widths, cells, strict=True):
            cover += (width / count / 2) ** 2
        return prod(cells), sqrt(cover)

    def net(self, spacing: float) -> Net:
        axes = []
        for low, high in zip(self.lower, self.upper, strict=True):
            cells = cells_of(high - low, spacing)
            axes.append(low + (np.arange(cells) + 0.5) * ((high - low) / cells))
        grid = np.meshgrid(*axes, indexing="ij")
        return Net.of([axis.reshape(-1) for axis in grid], self.net_shape(spacing)[1])

    def l1_distances(self, columns: Floats) -> Vector:
        return beyond(columns, self.center, sum(b - a for a, b in zip(self.lower, self.upper, strict=True)) / 2)

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower[0], self.upper[0]

    def __repr__(self) -> str:
        return f"Box({display_values(self.lower)}, {display_values(self.upper)})"
