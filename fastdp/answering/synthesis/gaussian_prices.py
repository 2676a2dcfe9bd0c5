"""Gaussian noise with a price in mu: what each measurement of a synthesis costs, in the currency in which they add up.

A measurement is a vector of integers that meets discrete Gaussian noise; its mu bounds what it tells neighbours apart
by, and the squares of mu add up, also where later measurements are chosen by earlier ones. synthesize.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import log2, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_ratio
from ...privacy.guarantees import Neighbors
from ...randomness.noise_draws import add_noise
from ...randomness.noise_plans import NoisePlan, gaussian_plan, scale_in_range
from ...support.rounding import down, lower, root_up, up
from ...support.shown import shown

_FINE = 1024  # grid units that the noise should measure, so that its discreteness costs a part in a million
_FINEST = 16  # bits that the grid may have below 1: distances of tables of 2^43 records stay in int64
_STEP = 2.0**-20  # by which a sigma grows until its mu is proven


class Priced(Protocol):
    """A measurement with its price."""

    @property
    def mu(self) -> float:
        """In Gaussian DP."""


class Noise(NamedTuple):
    """Discrete Gaussian noise on a grid of 2^-bits, and the mu that it costs."""

    bits: int
    plan: NoisePlan
    sigma: float  # in records
    mu: float

    def added(self, values: NDArray[np.int64], key: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The values, integers in units of the grid, with noise: in records."""
        flat = np.ascontiguousarray(values).reshape(-1)
        noisy = np.empty_like(flat)
        add_noise(self.plan, None, key, flat, noisy)
        return np.multiply(noisy, 2.0**-self.bits, dtype=np.float64).reshape(values.shape)


def most_mu(epsilon: float, delta: float) -> float:
    """The largest mu found such that mu-Gaussian DP implies (epsilon, delta)-DP."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST:
            raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g} for Gaussian noise")
    if epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g}")
    return down(1 / Fraction(gaussian_ratio(down(lower(epsilon)), down(lower(delta)))))


def squared_change(neighbors: Neighbors) -> int:
    """The square of the L2 distance of a table of counts from that of a neighbour: one cell, or two, by 1."""
    return 1 if neighbors == "add-remove" else 2


def squared_change_of_distances(neighbors: Neighbors, candidates: int) -> int:
    """The same of the L1 distances of so many tables from tables that are fixed: each moves by 1, or by 2."""
    return candidates * (1 if neighbors == "add-remove" else 4)


def noise_of(mu: float, square: int, entries: int) -> Noise:
    """Nearly the least noise that costs at most mu.

    square   of the L2 distance of neighbours' vectors, in records
    entries  in which the vectors of two neighbours may differ
    """
    bits = min(max(0, round(log2(_FINE * mu / sqrt(square)))), _FINEST)
    sensitivity = root_up(square << 2 * bits)
    sigma, step = sensitivity / mu, _STEP
    while not (price := gaussian_mu(sensitivity, sigma, entries)) <= mu:
        sigma, step = sigma * (1 + step), 2 * step
    plan = gaussian_plan(scale_in_range(sigma, "sigma"))
    assert plan.sigma >= sigma  # what is drawn is no less than what was priced
    return Noise(bits, plan, plan.sigma * 2.0**-bits, price)


def total_mu(parts: Iterable[Priced]) -> float:
    """What measurements cost together, rounded up."""
    return root_up(up(sum((Fraction(part.mu) ** 2 for part in parts), Fraction(0))))
