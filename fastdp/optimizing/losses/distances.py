"""Losses that compare w with the record itself: means and medians."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from ..sets import ConvexSet
from .base import DEVIATION, DistanceLoss, Floats, bound_or_none


@dataclass(frozen=True, repr=False)
class SquaredDistance(DistanceLoss):
    """||w - x||^2, whose minimiser is the mean.

    Parameters
    ----------
    x_norm : float > 0, optional
        The L2 norm of the records is at most this; private methods need it unless `clip=` is given.
    """

    x_norm: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(((w - X) ** 2).sum(axis=1))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return 2 * (w - X)

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(2 * (len(X) * w - X.sum(axis=0)))

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        return np.asarray(2.0 * len(X))

    def lipschitz(self, over: ConvexSet) -> float:
        return 2 * (over.norm + self.declared_norm())

    def curvature(self) -> float:
        return 2.0

    def range(self, over: ConvexSet) -> float:
        return (over.norm + self.declared_norm()) ** 2


@dataclass(frozen=True, repr=False)
class AbsoluteDeviation(DistanceLoss):
    """The sum of |w_j - x_j|, whose minimiser is the median of every coordinate; needs no bound on the records.

    Parameters
    ----------
    x_norm : float > 0, optional
        The L2 norm of the records is at most this; private methods need it unless `clip=` is given.
    """

    x_norm: float | None = None
    family: ClassVar[str] = DEVIATION

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    @property
    def parameter(self) -> float:
        """The factor of the signs of w - x in the gradient."""
        return 1.0

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(np.abs(w - X).sum(axis=1))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.sign(w - X)

    @property
    def has_corners(self) -> bool:
        """Whether the gradient jumps."""
        return True

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(np.clip((w - X) / width, -1.0, 1.0).sum(axis=0))

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        return np.asarray(len(X) / width)

    def lipschitz(self, over: ConvexSet) -> float:
        return sqrt(over.known_dimension())

    def curvature(self) -> float:
        return inf

    def range(self, over: ConvexSet) -> float:
        return sqrt(over.known_dimension()) * over.diameter
