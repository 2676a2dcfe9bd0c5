"""Newton's method over a convex set, for the mean of a smooth function of scores: what costs a pass is done tens of
times, whatever the curvature. Not private: for comparison only.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from .sets import Ball, ConvexSet, Vector

MOST_COLUMNS = 500  # a step solves a system of so many equations, and a pass makes d^2 products a record
MOST_NEWTON = 60
_MOST_TRIES = 40  # of a length along one direction
_MOST_MODEL = 2_000  # steps within the model where the set is no ball


def newton(
    gradient: Callable[[Vector], Vector],
    hessian: Callable[[Vector], NDArray[np.float64]],
    start: Vector,
    over: ConvexSet,
    tolerance: float,
    curvature: float,
    most: int = MOST_NEWTON,
) -> tuple[Vector, bool]:
    """A point at which the gradient mapping of `curvature` is at most `tolerance`, and whether it was reached.

    gradient, hessian   of a convex function; the Hessian may be a rough one, which costs steps and no precision
    """
    w, slope = start, gradient(start)
    for _ in range(most):
        if curvature * float(np.linalg.norm(w - over.project(w - slope / curvature))) <= tolerance:
            return w, True
        matrix = hessian(w)
        matrix = matrix + 1e-12 * max(float(np.trace(matrix)) / len(w), 2.0**-300) * np.eye(len(w))
        ahead = _least_of_model(matrix, slope, w, over)
        if not slope @ (ahead - w) < 0:
            return w, False
        w, slope = _along(gradient, w, slope, ahead - w)
    return w, False


def _along(gradient: Callable[[Vector], Vector], w: Vector, slope: Vector, direction: Vector) -> tuple[Vector, Vector]:
    """About where the function is least between w and w + direction, by its slope, which grows on the way; and the
    gradient there."""
    first = abs(float(slope @ direction))
    low, high, at = 0.0, 1.0, 1.0
    lowest = slope
    for _ in range(_MOST_TRIES):
        here = gradient(w + at * direction)
        rise = float(here @ direction)
        if abs(rise) <= 0.3 * first or (at == 1.0 and rise < 0):
            return w + at * direction, here
        if rise < 0:
            low, lowest = at, here
        else:
            high = at
        at = (low + high) / 2
    return w + low * direction, lowest


def _least_of_model(matrix: NDArray[np.float64], slope: Vector, w: Vector, over: ConvexSet) -> Vector:
    """The point v of the set where <slope, v - w> + (v - w)^T matrix (v - w) / 2 is about least."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, max(float(values[-1]), 2.0**-300) * 1e-15)
    free = w - vectors @ ((vectors.T @ slope) / values)
    if over.contains(free):
        return np.asarray(over.project(free))
    if isinstance(over, Ball) and over.order == 2:
        return _least_in_ball(values, vectors, slope, w, over)
    v, ahead, speed, rate = over.project(free), w, 1.0, 1 / float(values[-1])
    ahead = v
    for _ in range(_MOST_MODEL):
        new = over.project(ahead - rate * (slope + matrix @ (ahead - w)))
        if float(np.linalg.norm(new - ahead)) <= 1e-13 * over.diameter:
            v = new
            break
        if (ahead - new) @ (new - v) > 0:
            speed = 1.0
        following = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        ahead = new + (speed - 1) / following * (new - v)
        v, speed = new, following
    return np.asarray(v)


def _least_in_ball(values: Vector, vectors: NDArray[np.float64], slope: Vector, w: Vector, over: Ball) -> Vector:
    """On the sphere, where the multiplier makes the norm the radius: the norm falls as it grows."""
    center = over.center
    cross = values * (vectors.T @ (w - center)) - vectors.T @ slope  # of v - center, along the eigenvectors
    low, high = 0.0, float(np.linalg.norm(cross)) / over.radius
    for _ in range(200):
        middle = (low + high) / 2
        far = float(np.linalg.norm(cross / (values + middle))) > over.radius
        low, high = (middle, high) if far else (low, middle)
        if high - low <= 1e-16 * high:
            break
    return np.asarray(over.project(center + vectors @ (cross / (values + high))))


def second_derivatives(
    derivative: Callable[[Vector, Vector, float], Vector], score: Vector, label: Vector, width: float
) -> Vector:
    """Of a loss in the score, by differences as short as floats allow."""
    step = 1e-6 * np.maximum(np.abs(score), 1.0) if not width else np.full(score.size, width * 1e-2)
    found = (derivative(score + step, label, width) - derivative(score - step, label, width)) / (2 * step)
    return np.asarray(np.clip(np.nan_to_num(found, posinf=0.0), 0.0, inf))
