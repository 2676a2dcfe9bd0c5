"""What every convex set states of itself: the base class, which is the checklist for a new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...support.checks import integer, numbers_array
from ...support.parameters import MOST_DIMENSIONS
from .nets import MOST_DIMENSIONS as ROWS
from .nets import Floats, Net

Vector = NDArray[np.float64]

_ROUNDING = 1e-9  # how far outside, relative to the size of a set, a point may be by rounding and count as inside
_FINITE = float(np.finfo(np.float64).max)
_LARGEST = 2.0**400  # of coordinates and radii: squares of what is made of them stay within float64

NAMES = ("BALL", "BALL_L1", "BOX", "SIMPLEX")
"""Of the sets that compiled loops know: constants of kernels/projections.py and, behind FASTDP_, of fastdp.h."""


@cache
def number_of(name: str) -> int:
    """The number of a set in compiled loops and in C."""
    from ...kernels import projections

    return int(getattr(projections, name))


@cache
def _numbers() -> tuple[int, ...]:
    """Of all sets."""
    return tuple(map(number_of, NAMES))


class Projection(NamedTuple):
    """A set as kernels/projections.py::project_one takes it."""

    kind: int
    a: Vector
    b: Vector
    radius: float
    l1: float = 0.0  # of the regulariser, by which steps shorten coordinates before

    @property
    def region(self) -> Vector:
        """The same as one array: kernels/descent.py."""
        return np.concatenate(((self.kind, self.radius, self.l1), self.a, self.b))


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

    @property
    def net_dimension(self) -> int | None:
        """The power of 1 / spacing with which nets of the set grow, or None, as here, if the set has no nets.

        A set that has nets defines `net_size` and `net`, and for AbsoluteDeviation `l1_distances`.
        """
        return None

    @property
    def net_cover(self) -> float:
        """How far from its net, in spacings, a point of the set may be: where the best spacing is looked for."""
        return sqrt(self.known_dimension())

    def net_size(self, spacing: float) -> tuple[float, float]:
        """Bound the number of points of a net without making it.

        Parameters
        ----------
        spacing : float > 0
            How far apart neighbours are.

        Returns
        -------
        tuple of float
            The net has at least and at most so many points.
        """
        raise NotImplementedError

    def net_shape(self, spacing: float) -> tuple[int, float]:
        """Count the points of a net; a set may do so without making it.

        Parameters
        ----------
        spacing : float > 0
            How far apart neighbours are.

        Returns
        -------
        tuple of int and float
            How many points the net has, and how far from them a point of the set may be.
        """
        net = self.net(spacing)
        return net.points.shape[1], net.cover

    def net(self, spacing: float) -> Net:
        """Make the net of a spacing: exponential_erm.md, lemma 3.

        Parameters
        ----------
        spacing : float > 0
            How far apart neighbours are.

        Returns
        -------
        Net
            Points of the set, and how far from them a point of the set may be.
        """
        raise NotImplementedError

    def l1_distances(self, columns: Floats) -> Vector | None:
        """Bound the L1 distances of points to the set from below.

        Parameters
        ----------
        columns : numpy.ndarray
            The points, coordinate by coordinate: an array of shape (d, number of points).

        Returns
        -------
        numpy.ndarray or None
            For each point at most its distance, and at least that to the furthest point of the set less sqrt(d) times
            the diameter; None, as here, if it is not known.
        """
        return None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest number of a set of one dimension, or None, as here, if they are not known."""
        return None

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
        w = point_of("w", w)
        here = projection_of(self.of_dimension(w.size), w.size)
        assert here is not None
        return _by_kernel(here)(w)

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
    def takes_l1(self) -> bool:
        """Whether to shorten coordinates and then project minimises with L1: descent.md, theorem 7."""
        return False

    @property
    def norm(self) -> float:
        """The largest norm of a point of the set."""
        return self.reach(np.zeros(self.known_dimension()))

    def known_dimension(self) -> int:
        """The dimension; ValueError if it is that of the records, which are not at hand."""
        if self.dimension is None:
            raise ValueError(f"{self!r}: its dimension is not known: must be given by .of_dimension(d)")
        return self.dimension

    def _same(self, d: int) -> int:
        d = dimension_of(d, "d")
        if self.dimension not in (None, d):
            raise ValueError(f"{self!r}: has dimension {self.dimension}: must be {d}, as the records have columns")
        return d


def nearest(w: Vector, over: ConvexSet, threshold: float) -> Vector:
    """The point u of the set with the least ||u - w||^2 / 2 + threshold |u|_1."""
    return nearest_of(over, len(w), threshold)(w)


def nearest_of(over: ConvexSet, d: int, threshold: float) -> Callable[[Vector], Vector]:
    """`nearest` for many points of d coordinates: what is to be checked of a set is checked once."""
    project = _projecting(over, d)
    if not threshold:
        return project
    return lambda w: project(np.asarray(np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0)))


def _projecting(over: ConvexSet, d: int) -> Callable[[Vector], Vector]:
    here = projection_of(over.of_dimension(d), d) if type(over).project is ConvexSet.project else None
    return over.project if here is None else _by_kernel(here)


def _by_kernel(here: Projection) -> Callable[[Vector], Vector]:
    from ...kernels.projections import project_one

    scratch = np.empty(len(here.a))

    def project(w: Vector) -> Vector:
        w = w.copy()
        project_one(here.kind, here.a, here.b, here.radius, w, scratch)
        return w

    return project


def dimension_of(d: Any, name: str = "dimension") -> int:
    """A number of coordinates."""
    return integer(name, d, least=1, most=MOST_DIMENSIONS)


def point_of(name: str, w: ArrayLike) -> Vector:
    """A point as a fresh float64 vector of finite numbers."""
    w = _vector_of(name, w)
    if not _are_within(w, _FINITE):
        raise ValueError(f"{name}: must be finite; there is a NaN or an infinity in it")
    return w


def _vector_of(name: str, w: ArrayLike) -> Vector:
    """The same, of any numbers."""
    w = np.array(numbers_array(name, w, error=ValueError), np.float64)
    if w.ndim != 1 or not w.size:
        raise ValueError(f"{name}: shape {w.shape}: must have one dimension and at least one coordinate")
    return w


def _are_within(w: Vector, most: float) -> bool:
    """Whether no coordinate is larger in magnitude, or NaN."""
    return bool(np.maximum.reduce(np.abs(w)) <= most)  # NaN where there is one; in half the time of .all()


def given_point(over: ConvexSet, what: str, w: Any, d: int) -> Vector:
    """A point that a set has given, in a vector that nobody else holds: kernels read d coordinates."""
    name = f"over: {what} of {type(over).__name__}"
    own = _vector_of(name, w)
    if own.size != d or not _are_within(own, 2 * _LARGEST):
        point_of(name, own)
        raise ValueError(
            f"over: {what} of {type(over).__name__}: must have {d} coordinates, each at most 2^401 in magnitude"
        )
    return own


def checked_net(net: Net, over: ConvexSet) -> Net:
    """A net that a set has given, in an array that nobody else holds: kernels read four coordinates of every point."""
    points = np.array(net.points, np.float64, order="C")
    shaped = points.ndim == 2 and len(points) == ROWS and points.shape[1]
    if not shaped or not (np.abs(points) <= 2 * _LARGEST).all():
        raise ValueError(
            f"over: net of {type(over).__name__}: must have points of {ROWS} rows, as Net.of makes them, of "
            "numbers at most 2^401 in magnitude"
        )
    return Net(points, float(net.cover))


def projection_of(over: ConvexSet, d: int) -> Projection | None:
    """How compiled loops find the nearest points of a set, in arrays that nobody else holds; None if they do not."""
    given = over.projection
    if given is None:
        return None
    name = f"over: projection of {type(over).__name__}"
    a = point_of(name, given.a)
    b = a if given.b is given.a else point_of(name, given.b)
    if given.kind not in _numbers() or a.shape != (d,) or b.shape != (d,):
        raise ValueError(
            f"over: projection of {type(over).__name__}: must have a kind of kernels/projections.py, and two vectors "
            f"of {d} numbers"
        )
    return Projection(int(given.kind), a, b, float(given.radius))


def coordinates_of(name: str, value: ArrayLike) -> tuple[float, ...]:
    """A number, as a tuple of it alone, or a vector's coordinates."""
    array = np.atleast_1d(np.asarray(numbers_array(name, value, error=ValueError), np.float64))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name}: shape {array.shape}: must be a number or a vector")
    if not (np.abs(array) <= _LARGEST).all():
        raise ValueError(f"{name}: must be finite, and at most 2^400 in magnitude")
    return tuple(array.tolist())


def display_values(values: tuple[float, ...]) -> str:
    if len(set(values)) == 1:
        return f"{values[0]:g}"
    return f"[{', '.join(f'{v:g}' for v in values[:4])}{', ...' if len(values) > 4 else ''}]"
