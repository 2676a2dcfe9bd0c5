"""Minimisers that are not private themselves: of public quadratics, and of records for comparison.

What is minimised here is public already (noisy moments), or the result is called `nonprivate_...`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..records.rows import Block
from ..support.boundary import boundary
from ..support.checks import finite
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.parameters import Outside
from .least_in_ball import least_in_ball
from .losses import AbsoluteDeviation, Hinge, Huber, Logistic, SquaredDistance, SquaredError
from .losses.base import MarginLoss
from .points import Points
from .problem import Problem, read_points
from .projected_newton import MOST_COLUMNS, newton, second_derivatives
from .sets import Ball, Box, ConvexSet, Simplex, Vector, nearest_of, point_of

_TOLERANCE = 1e-8  # of the excess, relative to the scale of the gradient and the set
_MOST_STEPS = 20_000
_MOST_POLISHING = 8
_MOST_SOLVED = 32  # solutions that are kept
_KEPT = (AbsoluteDeviation, Hinge, Huber, Logistic, SquaredDistance, SquaredError), (Ball, Box, Simplex)
_SMOOTHINGS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_FINER = (1e-7, 1e-8, 1e-9)  # where floats no longer tell whether a gradient is 0


def minimise_quadratic(
    gram: NDArray[np.float64],
    cross: Vector,
    over: ConvexSet,
    l1: float = 0.0,
    eigen: tuple[Vector, NDArray[np.float64]] | None = None,
) -> Vector:
    """The point of the set with the least w^T gram w - 2 cross^T w + l1 |w|_1, for a positive semidefinite matrix.

    eigen   its eigenvalues, ascending, and its eigenvectors, where they are known
    """
    values, vectors = np.linalg.eigh(gram) if eigen is None else eigen
    cut = np.abs(values) > 2.0**-52 * len(values) * np.abs(values).max()  # the rest count as 0
    inside = vectors @ np.divide(vectors.T @ cross, values, out=np.zeros(len(values)), where=cut)
    # where the matrix is singular, which a ridge may leave it, this need not be a minimum
    stationary = np.abs(gram @ inside - cross).max() <= 1e-9 * np.abs(cross).max()
    if stationary and over.contains(inside) and not l1:
        return np.asarray(inside, np.float64)
    if isinstance(over, Ball) and over.order == 2 and not l1:
        center = vectors.T @ over.center
        curvatures = np.where(cut, np.maximum(values, 0.0), 0.0)
        return np.asarray(
            over.center + vectors @ least_in_ball(curvatures, vectors.T @ cross - curvatures * center, over.radius)
        )
    size = over.diameter
    curvature = 2 * max(float(values[-1]), float(np.linalg.norm(cross)) / size, 2.0**-300)
    w, reached = _accelerated(
        lambda w: 2 * (gram @ w - cross), over.project(inside), over, curvature, curvature * size, l1
    )  # fmt: skip
    if not reached:
        _warn("the minimum over the set")
    return w


@boundary
def nonprivate_minimum(
    X: Any, y: Any = None, *, loss: Any, over: ConvexSet, outside: Outside = "raise"
) -> tuple[Vector, float]:
    """Find the point of the set with the least mean loss. Not private: for comparison only.

    Newton's method, or accelerated gradients, to an excess of about 1e-9 of the scale of the problem; losses with
    corners are rounded off, less and less. There is an AccuracyWarning if that is not reached. The solution is kept,
    and found at once when the same records come again; the records are not.

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        The points of the records, one a row.
    y : array_like or str, optional
        Their labels, if the loss has labels; the name of a column of X, or an array.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    outside : {"raise", "clip"}
        What is done with points and labels beyond the declared bounds: an error, or the nearest ones within, where 0
        takes the place of NaN, of missing entries and of what is no number.

    Returns
    -------
    w : numpy.ndarray
        The point.
    least : float
        Its mean loss, regulariser included.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> w, least = fastdp.nonprivate_minimum(X, loss=fastdp.losses.AbsoluteDeviation(), over=fastdp.sets.Box(0, 10))
    >>> round(float(w[0]), 3), round(least, 3)
    (1.0, 1.667)
    """
    points, problem = read_points(X, y, loss, over, None, outside)
    points.check()
    w, least = _minimum(points, problem)
    return w.copy(), least


_solved: dict[Any, tuple[Vector, float]] = {}


def _minimum(points: Points, problem: Problem) -> tuple[Vector, float]:
    """The minimum, found once for the same records: those with the same digest, wherever they lie.

    Records that were changed in place have another one, and no record is kept. What a loss or a set of the user's own
    is may change unseen: those are solved anew.
    """
    global _solved
    if type(problem.loss) not in _KEPT[0] or type(problem.over) not in _KEPT[1]:
        return _find_minimum(points, problem)[:2]
    key = problem.loss, problem.lam, problem.l1, problem.over, points.n, points.d, _digest(points)
    known = _solved.get(key)
    if known is None:
        w, least, reached = _find_minimum(points, problem)
        known = w, least
        if reached:  # otherwise the next call warns as well
            _solved = dict([*list(_solved.items())[1 - _MOST_SOLVED :], (key, known)])  # in one step, without a lock
    return known


def _digest(points: Points) -> bytes:
    def of_block(block: Block) -> list[bytes]:
        X, labels, _ = points.parts(block)
        digest = blake2b(X.dtype.str.encode(), digest_size=32)
        digest.update(X.data)
        digest.update(labels.data)
        return [digest.digest()]

    digests: list[bytes] = points.rows.merge(of_block, lambda some, more: some + more)
    return blake2b(b"".join(digests), digest_size=32).digest()


def _find_minimum(points: Points, problem: Problem) -> tuple[Vector, float, bool]:
    if isinstance(problem.loss, SquaredError):
        gram = points.plain_mean(lambda X, y: X.T @ X) + problem.lam / 2 * np.eye(points.d)
        w = minimise_quadratic(gram, points.plain_mean(lambda X, y: y @ X), problem.over, problem.l1)
        return w, _mean_loss(points, problem, w), True
    if (
        isinstance(problem.loss, AbsoluteDeviation)
        and not (problem.lam or problem.l1)
        and (points.d == 1 or isinstance(problem.over, Box))
    ):
        medians = np.median(np.concatenate(points.plain_parts()), axis=0)
        w = problem.over.project(medians)
        return w, _mean_loss(points, problem, w), True
    w, reached = problem.start, True
    # corners of a margin loss are as wide as its margin, those of a deviation as the set
    unit = 1.0 if problem.loss.family == "margin" else problem.over.diameter
    for width in _SMOOTHINGS if problem.loss.has_corners else (0.0,):
        w, reached = _descend(points, problem, w, unit * width)
    if isinstance(problem.loss, Hinge) and _takes_newton(points, problem):
        w = _polished(points, problem, w)
    if not reached:
        _warn("nonprivate_minimum: the minimum")
    return w, _mean_loss(points, problem, w), reached


@boundary
def nonprivate_excess_risk(
    w: ArrayLike,
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    least: float | None = None,
    outside: Outside = "raise",
) -> float:
    """Compute by how much the mean loss at w exceeds the least one over the set. Not private: for comparison only.

    Parameters
    ----------
    w : array_like of float
        The point.
    X : array_like, data frame or Parquet file
        The points of the records, one a row.
    y : array_like or str, optional
        Their labels, if the loss has labels; the name of a column of X, or an array.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    least : float, optional
        The least mean loss, if `nonprivate_minimum` has found it already.
    outside : {"raise", "clip"}
        What is done with points and labels beyond the declared bounds: an error, or the nearest ones within, where 0
        takes the place of NaN, of missing entries and of what is no number.

    Returns
    -------
    float
        The excess.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.array([[0.0], [0.5], [1.0]])
    >>> loss = fastdp.losses.SquaredDistance(x_norm=1)
    >>> round(fastdp.nonprivate_excess_risk([0.0], X, loss=loss, over=fastdp.sets.Box(0, 1)), 6)
    0.25
    """
    points, problem = read_points(X, y, loss, over, None, outside)
    at, known = point_of("w", w), None if least is None else finite("least", least)
    if at.size != points.d:
        raise ValueError(f"w: {at.size} coordinates: must be {points.d}, {points.loss.sized}")
    points.check()
    if known is None:
        _, known = _minimum(points, problem)
    return _mean_loss(points, problem, at) - known


def _warn(what: str) -> None:
    message = f"{what} was not found to full precision; the loss is a little high"
    warnings.warn(message, AccuracyWarning, stacklevel=levels_to_caller())


def _mean_loss(points: Points, problem: Problem, w: Vector) -> float:
    mean = float(points.plain_mean(lambda X, y: problem.loss.values(w, X, y).sum()))
    return mean + problem.penalty(w)


def _descend(points: Points, problem: Problem, w: Vector, width: float) -> tuple[Vector, bool]:
    """Minimise the loss with its corners rounded off by so much."""

    gradient = partial(_gradient, points, problem, width)
    curvature = points.plain_mean(lambda X, y: problem.loss.smooth_curvature(X, width)) + problem.lam
    scale = max(float(np.linalg.norm(gradient(at))) for at in (problem.start, problem.over.project(problem.start + 1)))
    if _takes_newton(points, problem):
        hessian = partial(_hessian, points, problem, width)
        w, reached = newton(gradient, hessian, w, problem.over, _TOLERANCE * scale, float(curvature))
        if reached:
            return w, True
    return _accelerated(gradient, w, problem.over, float(curvature), scale, problem.l1)


def _takes_newton(points: Points, problem: Problem) -> bool:
    return isinstance(problem.loss, MarginLoss) and points.d <= MOST_COLUMNS and not problem.l1


def _gradient(points: Points, problem: Problem, width: float, at: Vector) -> Vector:
    mean = points.plain_mean(lambda X, y: problem.loss.smooth_gradient(at, X, y, width))
    return np.asarray(mean + problem.lam * at)


def _hessian(points: Points, problem: Problem, width: float, at: Vector) -> NDArray[np.float64]:
    loss = problem.loss
    assert isinstance(loss, MarginLoss)

    def weighted(X: NDArray[np.float64], y: Vector) -> Vector:
        curved = second_derivatives(loss.smooth_derivative, X @ at, y, width)
        return np.asarray((X * curved[:, None]).T @ X)

    return points.plain_mean(weighted) + problem.lam * np.eye(points.d)


def _polished(points: Points, problem: Problem, w: Vector) -> Vector:
    """Corners all but gone: as long as the loss falls."""
    least = _mean_loss(points, problem, w)
    for width in _FINER:
        gradient, hessian = (partial(each, points, problem, width) for each in (_gradient, _hessian))
        new, _ = newton(gradient, hessian, w, problem.over, 0.0, 1 / width, most=_MOST_POLISHING)
        reached = _mean_loss(points, problem, new)
        if reached >= least:
            break
        w, least = new, reached
    return w


def _accelerated(
    gradient: Callable[[Vector], Vector],
    start: Vector,
    over: ConvexSet,
    curvature: float,
    scale: float,
    l1: float = 0.0,
) -> tuple[Vector, bool]:
    """Nesterov's method with restarts; stops when no point of the set can be much better.

    scale   the norm of gradients on the way: with the diameter, the scale of the problem
    """
    w = ahead = start
    speed = 1.0
    rate = 1 / curvature
    nearest = nearest_of(over, len(start), rate * l1)
    for _ in range(_MOST_STEPS):
        new = nearest(ahead - rate * gradient(ahead))
        # the gradient mapping g = (ahead - new) / rate bounds the excess at new by |g| times the diameter
        if curvature * float(np.linalg.norm(ahead - new)) * over.diameter <= _TOLERANCE * scale * over.diameter:
            return new, True
        if (ahead - new) @ (new - w) > 0:
            speed = 1.0  # it goes the wrong way: forget the momentum
        following = (1 + sqrt(1 + 4 * speed * speed)) / 2
        ahead = new + (speed - 1) / following * (new - w)
        w, speed = new, following
    return w, False


__all__ = ["minimise_quadratic", "nonprivate_excess_risk", "nonprivate_minimum"]
