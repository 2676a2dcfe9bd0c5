"""Accelerated mirror descent with entropy: the distribution whose tables come close to given ones.

What the distribution is, dense or on a junction tree, is the business of a `Transform`; this file sees tables alone.
Post-processing, in floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..support.progress import Report

Flat = NDArray[np.float64]

_EASIER = 0.9  # what the smoothness falls by in each step, before it is tried
_CHECKS = 2**0.25  # between the steps at which the distance is compared
_FIRST_CHECK = 4
_BEYOND = 1.4  # times the steps that seem best, before these are taken


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

    def put(self, x: Flat) -> None:
        """Be the distribution x, which is given away."""
        ...


class MirrorDescent:
    """Tseng (2008), algorithm 1, for half the squared distance of the tables from a target.

    z        where the gradients lead
    x        the average so far, as `mix_into` writes it, and its tables
    weigh    differences of all tables, weighted: a square is the product of both
    certain  a smoothness that always holds: half the sum, over the tables, of their largest weights
    """

    def __init__(self, z: Transform, x: Flat, target: Flat, weigh: Callable[[Flat], Flat], certain: float) -> None:
        self.z, self.x, self.tables = z, x, z.tables
        self._target, self._weigh, self._certain = target, weigh, certain

    def distance(self) -> float:
        """The squared distance of the average."""
        return self._square(self.tables - self._target)

    def _square(self, gap: Flat) -> float:
        return float((gap * self._weigh(gap)).sum())

    def restart(self) -> None:
        """Go on from the average, without momentum."""
        self.z.put(self.x.copy())
        self.tables = self.z.tables

    def step(self, smoothness: float, share: Callable[[float], float]) -> float:
        """One step, with a smoothness that is doubled until it holds; returns it.

        share    of the new point in the average, for a smoothness
        """
        z, of_z = self.z, self.z.tables
        while True:
            theta = share(smoothness)
            gap = self._weigh((1 - theta) * self.tables + theta * of_z - self._target)
            direction, rate = z.spread(gap), 1 / (theta * smoothness)
            divergence = z.update(direction, rate) - rate * float((gap * z.tables).sum())
            # holds for what is certain (release_marginals.md, lemma 2); mostly for far less
            if smoothness >= self._certain or self._square(z.tables - of_z) <= 2 * smoothness * divergence:
                break
            z.update(direction, -rate)
            smoothness *= 2
        z.mix_into(self.x, theta)
        self.tables = (1 - theta) * self.tables + theta * z.tables
        return smoothness


class Twin:
    """The same descent to a target with a little more noise: how far the tables follow it says how much of their
    distance from the first target is noise that they have followed, too. synthesis/tree_fit.md, "Stopping".

    descent      to the first target plus SHIFT signs deviations, from where that leads it to begin
    deviations   of the noise in the target
    signs        1 and -1 at random, independent of the target
    """

    def __init__(self, first: MirrorDescent, descent: MirrorDescent, deviations: Flat, signs: Flat) -> None:
        self._first, self.descent, self._signs, self._deviations = first, descent, signs, deviations

    def freedom(self) -> float:
        """The mean derivative of an entry of the tables by its target (Ramani, Blu and Unser 2008)."""
        moved = (self.descent.tables - self._first.tables) / self._deviations
        return float((self._signs * moved).sum()) / (SHIFT * moved.size)


SHIFT = 0.5  # standard deviations


@dataclass
class Outcome:
    """Where a descent ended.

    distance  mean square of what is left, in units of the variance of the noise
    left      how far that is above its least value, as the steps so far let expect
    risk      the mean square distance of the tables from those without noise, in the same units, as estimated; None
              without a twin
    """

    x: Flat
    distance: float
    left: float
    risk: float | None
    steps: int


def descend(
    first: MirrorDescent, twin: Twin | None, noise: float, tolerance: float, most: int, report: Report | None,
    *, slack: float = 0.0,
) -> Outcome:  # fmt: skip
    """Steps until the tables are as near as they come to the target or, with a twin, to what the target was without
    its noise.

    noise      the squared norm of the noise in the target, as expected
    tolerance  of `left`
    slack      of the least risk, within which later steps are better than earlier ones
    """
    smoothness, sum_of_rates, done, check = 1.0, 0.0, 0, _FIRST_CHECK
    seen: list[tuple[int, float]] = []
    best, least = Outcome(first.x, first.distance() / noise, inf, None, 0), inf

    def rate_of(smoothness: float) -> float:
        return (1 + sqrt(1 + 4 * smoothness * sum_of_rates)) / (2 * smoothness)

    def share(smoothness: float) -> float:
        return (rate := rate_of(smoothness)) / (sum_of_rates + rate)

    while done < most:
        smoothness = first.step(max(smoothness * _EASIER, _LEAST_SMOOTHNESS), share)
        if twin is not None:
            twin.descent.step(smoothness, share)
        sum_of_rates += rate_of(smoothness)
        done += 1
        if done not in (check, most):
            continue
        check = int(done * _CHECKS) + 1
        distance = first.distance() / noise
        before = [d for k, d in seen if 2 * k <= done]
        left = max((before[-1] - distance) / 3, 0.0) if before else distance
        seen.append((done, distance))
        risk = None if twin is None else distance + 2 * twin.freedom() - 1
        value = distance if risk is None else risk
        if report:
            report(done, most, f"mean squared distance {distance:.4g} of the noise's, at the end {value:.4g}")
        if twin is None or value < least or value <= least + slack * abs(least):
            least, best = min(value, least), Outcome(first.x.copy() if twin else first.x, distance, left, risk, done)
        follows_noise = twin is not None and done > _BEYOND * best.steps and distance < best.distance
        if left <= tolerance or follows_noise:
            break
        if before and distance > seen[-2][1]:  # momentum leads away
            first.restart()
            if twin is not None:
                twin.descent.restart()
            sum_of_rates = 0.0
    if report:
        report(most, most, "")
    return best


_LEAST_SMOOTHNESS = 1e-6
