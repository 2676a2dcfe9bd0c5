"""The least value of a convex quadratic on a ball, in the basis of its eigenvectors."""

from __future__ import annotations

import numpy as np

from .sets import Vector

_MOST_STEPS = 60  # six or seven are usual
_NEAR = 2.0**-50  # of the radius


def least_in_ball(values: Vector, slopes: Vector, radius: float) -> Vector:
    """The u no longer than `radius` with the least sum of values u^2 - 2 slopes u; values are at least 0.

    It is slopes / (values + m) for the least m >= 0 at which that is short enough: Newton's method for 1 / length,
    which is concave in m, comes from below and does not overshoot. O(d) a step.
    """
    m = max(0.0, float((np.abs(slopes) / radius - values).max()))  # a coordinate by itself is too long below this
    u = np.zeros(len(values))
    for _ in range(_MOST_STEPS):
        curved = values + m
        np.divide(slopes, curved, out=u, where=curved > 0)
        length = float(np.linalg.norm(u))
        if length <= radius * (1 + _NEAR):
            break
        m += (length / radius - 1) * length**2 / float((u * u / np.maximum(curved, 2.0**-1000)).sum())
    return np.asarray(u * min(1.0, radius / max(length, radius)))


__all__ = ["least_in_ball"]
