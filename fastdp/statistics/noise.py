"""The noise of statistics: of the two exact kinds, the one with the smaller variance; statistics.md, theorem 1.

Where a budget adds up rhos, Laplace noise would cost it many times as much: it is Gaussian there.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from ..mechanisms.noise import CalibratedNoise, gaussian_noise, laplace_noise
from ..privacy.budget import Budget
from ..privacy.calibration import MAX_EPSILON, SMALLEST
from ..privacy.guarantees import Neighbors
from ..privacy.reservations import prefers_gaussian
from ..randomness.noise_plans import LaplacePlan, laplace_variance
from ..support import parameters
from ..support.rounding import root_up
from .shares import Price


def integer_noise_for(
    entries: int, l1: int, squared_l2: int, epsilon: Any, delta: Any, neighbors: Neighbors,
    payers: Iterable[Budget] = (),
) -> CalibratedNoise:  # fmt: skip
    """Noise for so many integers, of which one record moves the vector by at most these distances.

    Where those who pay add up rhos, or squares of mu, it is Gaussian whenever there is a delta for it.
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    if not (delta >= SMALLEST and SMALLEST <= epsilon <= MAX_EPSILON):
        return laplace_noise(True, entries, float(l1), epsilon, None, neighbors)
    gaussian = gaussian_noise(True, entries, root_up(squared_l2), None, epsilon, delta, None, neighbors)
    if prefers_gaussian(payers):
        return gaussian
    laplace = laplace_noise(True, entries, float(l1), epsilon, None, neighbors)
    return min(laplace, gaussian, key=deviation_of)


def noise_at(entries: int, l1: int, squared_l2: int, price: Price, neighbors: Neighbors) -> CalibratedNoise:
    """The same at the price that a plan leaves to a release: Laplace noise for an epsilon, Gaussian for a rho."""
    if price.rho is not None:
        return gaussian_noise(True, entries, root_up(squared_l2), price.rho, None, None, None, neighbors)
    assert price.epsilon is not None
    return laplace_noise(True, entries, float(l1), price.epsilon, None, neighbors)


def deviation_of(noise: CalibratedNoise) -> float:
    """The standard deviation of each draw."""
    if isinstance(noise.plan, LaplacePlan):
        return sqrt(laplace_variance(noise.plan.scale))
    return noise.plan.sigma  # of the discrete Gaussian's, which is at most that
