"""The noise of statistics: of the two exact kinds, the one with the smaller variance; statistics.md, theorem 1."""

from __future__ import annotations

from math import sqrt
from typing import Any

from ..mechanisms.noise import CalibratedNoise, gaussian_noise, laplace_noise
from ..privacy.calibration import MAX_EPSILON, SMALLEST
from ..privacy.guarantees import Neighbors
from ..randomness.noise_plans import LaplacePlan, laplace_variance
from ..support import parameters
from ..support.rounding import root_up


def integer_noise_for(
    entries: int, l1: int, squared_l2: int, epsilon: Any, delta: Any, neighbors: Neighbors
) -> CalibratedNoise:
    """Noise for so many integers, of which one record moves the vector by at most these distances."""
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    found = [laplace_noise(True, entries, float(l1), epsilon, None, neighbors)]
    if delta >= SMALLEST and SMALLEST <= epsilon <= MAX_EPSILON:
        found.append(gaussian_noise(True, entries, root_up(squared_l2), None, epsilon, delta, None, neighbors))
    return min(found, key=lambda noise: deviation_of(noise))


def deviation_of(noise: CalibratedNoise) -> float:
    """The standard deviation of each draw."""
    if isinstance(noise.plan, LaplacePlan):
        return sqrt(laplace_variance(noise.plan.scale))
    return noise.plan.sigma  # of the discrete Gaussian's, which is at most that
