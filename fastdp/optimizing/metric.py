"""Coordinates in which a loss has the same curvature in every direction: points, sets and norms of a metric.

The metric is public: it is made of second moments that were released with noise. A record's point `x` becomes `P^T x`,
a point of the set `w = P z`, and scores stay what they are. measured_descent.md, lemma 1, has why the new points are a
function of their record alone.
"""

from __future__ import annotations

from functools import partial
from math import frexp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.rows import Block
from .least_in_ball import least_in_ball
from .losses.base import MarginLoss
from .points import Points
from .sets import Ball, ConvexSet, Vector, nearest_of

_POINT_BITS, _MATRIX_BITS = 30, 22  # products are integers below 2^53, and so is any part of their sum
_MOST_KEPT = 2**31  # bytes of points in new coordinates: beyond, blocks are made anew in each step
_ROUNDS = 200  # of the search for the nearest point; few of its steps are long, as it starts near
_NEAR = 1e-7  # of its last step, in radii of the set


class Metric:
    """||w||_H for a positive definite matrix H, and z = P^-1 w, in which it is the Euclidean norm.

    values, vectors   the eigenvalues of H, all positive, and its eigenvectors
    to_points         P, as it is multiplied with: rounded to integers times `unit`, a power of two
    """

    def __init__(self, values: Vector, vectors: NDArray[np.float64]) -> None:
        self.values, self.vectors = values, vectors
        exact = vectors / np.sqrt(values)
        # every column at most 2^22 long in its units, rounding included
        longest = float(np.linalg.norm(exact, axis=0).max()) + 2.0**-900
        self.unit = 2.0 ** (frexp(longest)[1] - _MATRIX_BITS + 1)
        self.whole: NDArray[np.float64] = np.rint(exact / self.unit)
        self.to_points = self.whole * self.unit

    @property
    def euclidean(self) -> bool:
        """Whether H is the identity."""
        return bool((self.values == 1.0).all())

    def point(self, z: Vector) -> Vector:
        """w of z."""
        return np.asarray(self.to_points @ z)

    def coordinates(self, w: Vector) -> Vector:
        """z of w."""
        return np.asarray(np.linalg.solve(self.to_points, w))

    def length(self, over: ConvexSet, start: Vector) -> float:
        """No point of the set is further from the start, in this norm."""
        return over.reach(start) * sqrt(float(self.values.max()))

    def nearest(self, w: Vector, over: ConvexSet, threshold: float) -> Vector:
        """The point u of the set with the least ||u - w||_H^2 / 2 + threshold |u|_1, nearly; near enough for a step."""
        return self._in_set(w, over, threshold)

    def project(self, z: Vector, over: ConvexSet) -> Vector:
        """The nearest point of the set in this norm, in its coordinates, nearly; near enough for a step."""
        if isinstance(over, Ball) and over.order == 2:
            return self._in_ball(z, over)
        w = self.point(z)
        return z if over.contains(w) else self.coordinates(self._in_set(w, over))

    def _in_ball(self, z: Vector, ball: Ball) -> Vector:
        roots = np.sqrt(self.values)
        center = (self.vectors.T @ ball.center) * roots  # z of the center
        off = z - center
        if float(np.linalg.norm(off / roots)) <= ball.radius:
            return z
        return np.asarray(center + least_in_ball(self.values, off * roots, ball.radius) * roots)

    def _in_set(self, w: Vector, over: ConvexSet, threshold: float = 0.0) -> Vector:
        """Nesterov's method for ||. - w||_H^2 over the set, and an L1 regulariser, with restarts."""
        largest = float(self.values.max())
        at = ahead = over.project(w)
        speed = 1.0
        nearest = nearest_of(over, len(w), threshold / largest)
        for _ in range(_ROUNDS):
            slope = self.vectors @ (self.values * (self.vectors.T @ (ahead - w)))
            new = nearest(ahead - slope / largest)
            if np.linalg.norm(new - ahead) <= _NEAR * over.diameter:
                return new
            if (ahead - new) @ (new - at) > 0:
                speed = 1.0
            following = (1 + sqrt(1 + 4 * speed * speed)) / 2
            ahead = new + (speed - 1) / following * (new - at)
            at, speed = new, following
        return at


class MetricPoints(Points):
    """Checked points in the coordinates of a metric, as float32; labels stay.

    Points beyond x_norm are brought back to it before they change coordinates; there is no bound afterwards.
    """

    metric: Metric
    _kept: dict[tuple[int, int], NDArray[np.float32]] | None

    @classmethod
    def of(cls, points: Points, metric: Metric) -> MetricPoints:
        """The same records: `points.check` has been called, and their x_norm is declared."""
        other = cls.__new__(cls)
        other.__dict__.update(points.__dict__)
        other.metric, other._x_norm = metric, points._bound
        other._bound = inf
        other._kept = {} if points.n * points.d * 4 <= _MOST_KEPT else None
        other._norms = other.rows.keep(other._norms_of, np.float64)
        return other

    _x_norm: float

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kept": None}

    def _matrix(self, block: Block) -> NDArray[Any]:
        which = block.first, block.n  # of a part, a block without a record begins where the next one does
        kept = None if self._kept is None else self._kept.get(which)
        if kept is None:
            kept = self._made(block)
            if self._kept is not None:
                self._kept[which] = kept
        return kept

    def _made(self, block: Block) -> NDArray[np.float32]:
        return in_coordinates(super()._matrix(block), self._x_norm, self.metric)

    def count_norms(self, edges: Vector) -> NDArray[np.int64]:
        """How many norms are up to the first edge, the second one and so on; those beyond count for the last one."""
        assert self._norms is not None
        return self.rows.total(partial(_count, self._norms, edges))

    def count_gradients(self, z: Vector, edges: Vector) -> NDArray[np.int64]:
        """The same of the norms of gradients at z: a record's cell depends on the record alone."""
        assert self._norms is not None
        return self.rows.total(partial(self._count_gradients, self._norms, exactly(z), edges))

    def _count_gradients(
        self, norms_of: Any, z: tuple[NDArray[np.float64], float], edges: Vector, block: Block
    ) -> NDArray[np.int64]:
        X, labels = self.raw_parts(block)
        whole, unit = z
        # integers of at most 26 bits each: sums of their products are exact in any order, fused or not
        step = 2.0 ** (frexp(self._x_norm / sqrt(float(self.metric.values.min())))[1] - 24)
        scores = (np.rint(X / step) @ whole) * (unit * step)
        assert isinstance(self.loss, MarginLoss)
        norms = np.abs(self.loss.derivative(scores, labels)) * norms_of(block)
        cells = np.minimum(np.searchsorted(edges, norms), len(edges) - 1)
        return np.bincount(cells, minlength=len(edges)).astype(np.int64)


def exactly(z: Vector) -> tuple[NDArray[np.float64], float]:
    """z as integers of at most 26 bits and a power of two; nearly."""
    unit = 2.0 ** (frexp(float(np.linalg.norm(z)) + 2.0**-900)[1] - 25)
    return np.rint(z / unit), unit


def _count(norms: Any, edges: Vector, block: Block) -> NDArray[np.int64]:
    cells = np.minimum(np.searchsorted(edges, norms(block)), len(edges) - 1)
    return np.bincount(cells, minlength=len(edges)).astype(np.int64)


def in_coordinates(X: NDArray[Any], x_norm: float, metric: Metric) -> NDArray[np.float32]:
    """P^T x of every row x, brought back to x_norm before: exactly what a row of its own gives."""
    from .points import norms_of

    norms = norms_of(X)
    X = X * np.minimum(1.0, x_norm / norms)[:, None] if (norms > x_norm).any() else X.astype(np.float64, copy=False)
    unit = 2.0 ** (frexp(x_norm)[1] - _POINT_BITS + 1)
    # integers of at most 31 and 22 bits, whose products add up exactly in any order, fused or not
    whole = np.rint(X / unit) @ metric.whole
    return np.asarray(whole * (unit * metric.unit), np.float32)
