"""Accelerated mirror descent with entropy: the distribution whose tables come close to given ones.

What the distribution is, dense or on a junction tree, is the business of a `Transform`; this file sees tables alone.
Post-processing, in floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.float64]


class Transform(Protocol):
    """A distribution that is multiplied by functions of tables, and its tables, one after the other."""

    @property
    def tables(self) -> Flat:
        """Of the distribution: a new array."""
        ...

    def spread(self, gradient: Flat) -> Any:
        """What `update` takes for a gradient with respect to the tables."""
        ...

    def update(self, direction: Any, rate: float) -> float:
        """Multiply by e^(-rate direction); returns by how much the logarithm of the sum of the weights falls."""
        ...

    def mix_into(self, x: Flat, theta: float) -> None:
        """x = (1 - theta) x + theta times the distribution."""
        ...


class MirrorDescent:
    """Tseng (2008), algorithm 1, for half the weighted squared distance of the tables from a target.

    z        where the gradients lead
    x        the average so far, as `mix_into` writes it, and its tables
    certain  a smoothness that always holds: half the sum, over the tables, of their largest weights
    """

    def __init__(self, z: Transform, x: Flat, target: Flat, weights: Flat | float, certain: float) -> None:
        self.z, self.x, self.tables = z, x, z.tables
        self._target, self._weights, self._certain = target, weights, certain

    def distance(self) -> float:
        """The squared distance of the average."""
        gap = self.tables - self._target
        return float((self._weights * gap * gap).sum())

    def step(self, smoothness: float, share: Callable[[float], float]) -> float:
        """One step, with a smoothness that is doubled until it holds; returns it.

        share    of the new point in the average, for a smoothness
        """
        z, of_z = self.z, self.z.tables
        while True:
            theta = share(smoothness)
            gap = self._weights * ((1 - theta) * self.tables + theta * of_z - self._target)
            direction, rate = z.spread(gap), 1 / (theta * smoothness)
            divergence = z.update(direction, rate) - rate * float((gap * z.tables).sum())
            moved = z.tables - of_z
            # holds for what is certain (release_marginals.md, lemma 2); mostly for far less
            if (
                smoothness >= self._certain
                or float((self._weights * moved * moved).sum()) <= 2 * smoothness * divergence
            ):
                break
            z.update(direction, -rate)
            smoothness *= 2
        z.mix_into(self.x, theta)
        self.tables = (1 - theta) * self.tables + theta * z.tables
        return smoothness
