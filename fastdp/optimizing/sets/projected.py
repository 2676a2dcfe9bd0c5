"""Sets of the user's own, by their projections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...support.checks import moderate
from ...support.shown import shown
from .base import ConvexSet, Vector, coordinates_of, point_of


@dataclass(frozen=True, repr=False)
class Projected(ConvexSet):
    """A convex set of the user's own, by its projection.

    Parameters
    ----------
    function : callable
        From a point to the nearest point of the set. It is called once a step, from Python, with noisy points only.
    diameter : float > 0
        No two points of the set are further apart: the caller's claim, on which the accuracy rests, not privacy.
    center : array_like of float
        A point of the set, where descents start.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import sets
    >>> def nearest(w):  # with no negative coordinate, in the unit ball
    ...     w = np.maximum(w, 0.0)
    ...     return w / max(1.0, np.linalg.norm(w))
    >>> sets.Projected(nearest, diameter=2**0.5, center=[0.5, 0.5]).project([2.0, -0.5])
    array([1., 0.])
    """

    function: Callable[[Vector], ArrayLike]
    size: float
    at: tuple[float, ...]
    dimension: int | None

    def __init__(self, function: Callable[[Vector], ArrayLike], *, diameter: float, center: ArrayLike) -> None:
        if not callable(function):
            raise ValueError(f"function={shown(function)}: must be callable")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "size", moderate("diameter", diameter, toward=inf))
        object.__setattr__(self, "at", coordinates_of("center", center))
        object.__setattr__(self, "dimension", len(self.at))
        if not self.contains(self.center):
            raise ValueError("center: must be a point of the set: `function` moves it")
        self._check_function()

    def _check_function(self) -> None:
        """ValueError where `function` is seen not to be a projection: what it gives is not the nearest of its values.

        For the nearest point p of a, and any other point c of a convex set, <a - p, c - p> <= 0.
        """
        rng = np.random.default_rng(0)
        some = self.center + self.size * rng.normal(size=(16, len(self.at)))
        nearest = [self.project(a) for a in some]
        for a, p in zip(some, nearest, strict=True):
            for c in (*nearest, self.center):
                if (a - p) @ (c - p) > 1e-6 * float(np.linalg.norm(a - p)) * self.size:
                    raise ValueError(
                        f"function={self!r}: must give the nearest point of a convex set; of {a} it gives {p}, and {c} "
                        "shows a nearer one"
                    )

    def of_dimension(self, d: int) -> Projected:
        d = self._same(d)
        return self

    def project(self, w: ArrayLike) -> Vector:
        w = point_of("w", w)
        self._same(w.size)
        nearest = point_of("function(w)", self.function(w.copy()))
        if nearest.shape != w.shape:
            raise ValueError(f"function(w): shape {nearest.shape}: must be {w.shape}, as w has")
        return nearest

    @property
    def center(self) -> Vector:
        return np.array(self.at)

    @property
    def diameter(self) -> float:
        return self.size

    def reach(self, point: Vector) -> float:
        return float(np.linalg.norm(point - self.project(point))) + self.size

    @property
    def projection(self) -> None:
        return None

    def __repr__(self) -> str:
        name: Any = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Projected({name}, diameter={self.size:g})"
