"""Convex sets to minimise over: balls, boxes, the simplex, and sets of the user's own.

A set knows its nearest points and its size; what is minimised over it, and by whom, is not its affair. Sets are public.
Balls around one number and boxes between two have as many dimensions as the records: `of_dimension` states how many.

A new set is a class here. Its `projection` is None unless compiled loops know its nearest points: then it has a number
in kernels/projections.py and that constant's name in NAMES, which C reads, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.checks import integer, moderate, numbers_array
from ..support.public_paths import public_as

Vector = NDArray[np.float64]

_ROUNDING = 1e-9  # how far outside, relative to the size of a set, a point may be by rounding and count as inside
_LARGEST = 2.0**400  # of coordinates and radii: squares of what is made of them stay within float64


NAMES = ("BALL", "BALL_L1", "BOX", "SIMPLEX")
"""Of the sets that compiled loops know: constants of kernels/projections.py and, behind FASTDP_, of fastdp.h."""


def number_of(name: str) -> int:
    """The number of a set in compiled loops and in C."""
    from ..kernels import projections

    return int(getattr(projections, name))


class Projection(NamedTuple):
    """A set as kernels/projections.py::project_one takes it."""

    kind: int
    a: Vector
    b: Vector
    radius: float

    @property
    def region(self) -> Vector:
        """The same as one array: kernels/descent.py."""
        return np.concatenate(((self.kind, self.radius), self.a, self.b))


@public_as("fastdp.sets")
class ConvexSet(ABC):
    """A closed, bounded, convex set.

    Attributes
    ----------
    dimension : int or None
        Of its points; None if it has that of the records.
    """

    dimension: int | None

    @abstractmethod
    def of_dimension(self, d: int) -> ConvexSet:
        """Fix the dimension.

        Parameters
        ----------
        d : int
            How many coordinates points have.

        Returns
        -------
        ConvexSet
            The same set among points of d coordinates.

        Raises
        ------
        ValueError
            If it has another dimension.
        """

    @property
    @abstractmethod
    def center(self) -> Vector:
        """A point of the set in its middle, where descents start."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """No two points of the set are further apart."""

    @abstractmethod
    def reach(self, point: Vector) -> float:
        """Bound the distance to points of the set.

        Parameters
        ----------
        point : numpy.ndarray
            Where distances are measured from.

        Returns
        -------
        float
            No point of the set is further from `point`.
        """

    @property
    @abstractmethod
    def projection(self) -> Projection | None:
        """The set as compiled loops take it, or None if only `project` knows it."""

    def project(self, w: ArrayLike) -> Vector:
        """Find the nearest point of the set.

        Parameters
        ----------
        w : array_like of float
            A point.

        Returns
        -------
        numpy.ndarray
            The point of the set that is nearest to it.
        """
        from ..kernels.projections import project_one

        w = point_of("w", w)
        here = self.of_dimension(w.size).projection
        assert here is not None
        project_one(here.kind, here.a, here.b, here.radius, w, np.empty(w.size))
        return w

    def contains(self, w: ArrayLike) -> bool:
        """Test whether a point lies in the set, up to rounding.

        Parameters
        ----------
        w : array_like of float
            A point.

        Returns
        -------
        bool
            Whether it lies there.
        """
        w = point_of("w", w)
        here = self.of_dimension(w.size)
        off = float(np.abs(here.project(w) - w).max())
        return off <= _ROUNDING * here.diameter + 2.0**-49 * float(np.abs(w).max())

    @property
    def norm(self) -> float:
        """The largest norm of a point of the set."""
        return self.reach(np.zeros(self.known_dimension()))

    def known_dimension(self) -> int:
        """The dimension; ValueError if it is that of the records, which are not at hand."""
        if self.dimension is None:
            raise ValueError(f"{self!r}: its dimension is not known: must be given by .of_dimension(d)")
        return self.dimension

    def _same(self, d: int) -> None:
        if self.dimension not in (None, d):
            raise ValueError(f"{self!r}: has dimension {self.dimension}: must be {d}, as the records have columns")


def point_of(name: str, w: ArrayLike) -> Vector:
    """A point as a fresh float64 vector of finite numbers."""
    w = np.array(numbers_array(name, w), np.float64)
    if w.ndim != 1 or not w.size:
        raise ValueError(f"{name}: shape {w.shape}: must have one dimension and at least one coordinate")
    if not np.isfinite(w).all():
        raise ValueError(f"{name}: must be finite; there is a NaN or an infinity in it")
    return w


def _coordinates(name: str, value: ArrayLike) -> tuple[float, ...]:
    """A number, as a tuple of it alone, or a vector's coordinates."""
    array = np.atleast_1d(np.asarray(numbers_array(name, value), np.float64))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name}: shape {array.shape}: must be a number or a vector")
    if not (np.abs(array) <= _LARGEST).all():
        raise ValueError(f"{name}: must be finite, and at most 2^400 in magnitude")
    return tuple(array.tolist())


def _display_values(values: tuple[float, ...]) -> str:
    if len(set(values)) == 1:
        return f"{values[0]:g}"
    return f"[{', '.join(f'{v:g}' for v in values[:4])}{', ...' if len(values) > 4 else ''}]"


@public_as("fastdp.sets")
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
        if norm not in (1, 2):
            raise ValueError(f"norm={norm!r}: must be 1 or 2")
        at = _coordinates("center", center)
        object.__setattr__(self, "radius", moderate("radius", radius, toward=inf))
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "order", int(norm))
        object.__setattr__(self, "dimension", len(at) if np.ndim(center) else None)

    def of_dimension(self, d: int) -> Ball:
        self._same(d)
        at = self.at if self.dimension is not None else self.at * d
        return Ball(self.radius, np.array(at), self.order)

    @property
    def center(self) -> Vector:
        self.known_dimension()
        return np.array(self.at)

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def reach(self, point: Vector) -> float:
        return float(np.linalg.norm(point - np.array(self.at))) + self.radius

    @property
    def projection(self) -> Projection:
        at = self.center
        return Projection(number_of("BALL" if self.order == 2 else "BALL_L1"), at, at, self.radius)

    def __repr__(self) -> str:
        center = "" if not any(self.at) else f", center={_display_values(self.at)}"
        return f"Ball({self.radius:g}{center}{', norm=1' if self.order == 1 else ''})"


@public_as("fastdp.sets")
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
        low, high = _coordinates("lower", lower), _coordinates("upper", upper)
        d = max(len(low), len(high))
        if len(low) != len(high) and 1 not in (len(low), len(high)):
            raise ValueError(f"lower: {len(low)} coordinates: must be as many as upper has, {len(high)}")
        low, high = (side if len(side) == d else side * d for side in (low, high))
        for j, (a, b) in enumerate(zip(low, high, strict=True)):
            if not a <= b:
                raise ValueError(f"lower={a!r}: must be at most upper={b!r} (coordinate {j})")
        if low == high:
            raise ValueError(f"lower={_display_values(low)}: must be below upper in at least one coordinate")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "dimension", d if np.ndim(lower) or np.ndim(upper) else None)

    def of_dimension(self, d: int) -> Box:
        self._same(d)
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

    def __repr__(self) -> str:
        return f"Box({_display_values(self.lower)}, {_display_values(self.upper)})"


@public_as("fastdp.sets")
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
        object.__setattr__(self, "dimension", None if dimension is None else integer("dimension", dimension, least=1))

    def of_dimension(self, d: int) -> Simplex:
        self._same(d)
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

    def __repr__(self) -> str:
        return "Simplex()" if self.total == 1 else f"Simplex({self.total:g})"


@public_as("fastdp.sets")
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
            raise ValueError(f"function={function!r}: must be callable")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "size", moderate("diameter", diameter, toward=inf))
        object.__setattr__(self, "at", _coordinates("center", center))
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
        self._same(d)
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


__all__ = ["Ball", "Box", "ConvexSet", "Projected", "Simplex"]
