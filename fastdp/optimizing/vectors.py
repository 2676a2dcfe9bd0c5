"""Sums and means of vectors whose norm is bounded: one release, by noise of four kinds.

It is one step of noisy descent by itself: the same clipping, the same integers, the same calibrations; vectors.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..randomness.noise_draws import integer_noise
from ..support.checks import check_records, integer, one_of, positive, power_of_two, small_delta
from ..support.results import Displayed, DisplayLines
from .losses.base import Summand
from .points import Points
from .sets import Vector
from .step_noise import Noise, plan, promise

NOISES = ("auto", "gaussian", "laplace", "laplace-per-coordinate", "laplace-basic")


@dataclass(frozen=True, eq=False, repr=False)
class VectorRelease(Displayed, Accounted):
    """A private sum or mean of vectors.

    value         the sum or mean
    noise         "gaussian" or "laplace", and by which calibration
    noise_scale   of the noise in each coordinate of `value`: sigma of Gaussian noise; b of Laplace noise, whose
                  standard deviation is sqrt(2) b
    scales        what every kind of noise would have had, by name
    clip          the norm that a record's vector keeps
    resolution    the grid of the sum, a power of two
    guarantee     what the release promises
    """

    value: Vector
    noise: str
    noise_scale: float
    scales: dict[str, float]
    clip: float
    resolution: float
    guarantee: Guarantee

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in each coordinate of `value`."""
        return _deviation(self.noise, self.noise_scale)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.value, dtype) if copy or dtype is not None else self.value

    def _display(self) -> DisplayLines:
        return [
            ("value", np.array2string(self.value, precision=4, threshold=6, edgeitems=2)),
            ("noise", f"{self.noise}, standard deviation {self.deviation:.4g}"),
            ("kinds", ", ".join(f"{name} {_deviation(name, scale):.4g}" for name, scale in self.scales.items())),
            ("clip", f"{self.clip:.4g}"),
            ("guarantee", str(self.guarantee)),
        ]


def _deviation(noise: str, scale: float) -> float:
    return scale if noise.startswith("gaussian") else scale * sqrt(2)


class _Itself(Summand):
    """The point itself: what a sum of vectors sums."""

    def __init__(self, x_norm: float | None) -> None:
        self.x_norm = x_norm

    @property
    def number(self) -> int:
        from ..kernels.losses import LINEAR

        return LINEAR


def vector_sum(
    X: Any,
    *,
    clip: float,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    resolution: float | None = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> VectorRelease:
    """The sum of vectors, one a record, each shortened to norm `clip`, with noise.

    X            arrays, data frames, Parquet files: a vector a row, on data of any size
    noise        "gaussian"; "laplace", by the L2 norm; "laplace-per-coordinate", every coordinate a release of its own,
                 by strong composition; "laplace-basic", the same by basic composition; or "auto": the least of them
    resolution   the grid, a power of two; by default a 2^30th of the clip, or what n and the noise allow

    Guarantee    (epsilon, delta)-DP, for any vectors
    Proof        vectors.md
    Accuracy     the sum of the shortened vectors, with noise of `.noise_scale` in each coordinate
    Cost         one read of X to check that it is finite, one to sum: 7 ms for a million of 20 coordinates
    Raises       ValueError, and DomainError on NaN or an infinity, before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 5))
    >>> released = fastdp.vector_sum(X, clip=4.0, epsilon=1.0, delta=1e-6)
    >>> released.value.shape, released.noise_scale < 35
    ((5,), True)
    """
    return release_vectors("vector_sum", X, clip, epsilon, delta, noise, resolution, None, rng, budget, neighbors)


def vector_mean(
    X: Any,
    *,
    clip: float,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    resolution: float | None = None,
    records: int | None = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> VectorRelease:
    """`vector_sum`, divided by the number of records, or by `records` where that is private (add-remove neighbours).

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 5)) + 1
    >>> mean = fastdp.vector_mean(X, clip=5.0, epsilon=1.0, delta=1e-6)
    >>> bool(abs(mean.value - 1).max() < 0.1)
    True
    """
    one_of("neighbors", neighbors, NEIGHBORS)
    check_records(records, neighbors)
    over = 0 if records is None else integer("records", records, least=1)  # 0: their number
    return release_vectors("vector_mean", X, clip, epsilon, delta, noise, resolution, over, rng, budget, neighbors)


def release_vectors(
    name: str, X: Any, clip: float, epsilon: float, delta: float, noise: Noise, resolution: float | None,
    over: int | None, rng: Randomness | None, budget: Budget | None, neighbors: Neighbors, outside: str = "clip",
) -> VectorRelease:  # fmt: skip
    """The sum over `over` (None: 1; 0: the number of records); norms beyond `clip` are an error if outside="raise"."""
    one_of("noise", noise, NOISES)
    one_of("neighbors", neighbors, NEIGHBORS)
    clip = positive("clip", clip, toward=0)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    points = Points(
        X, None, _Itself(clip if outside == "raise" else None), "raise", may_be_empty=neighbors == "add-remove"
    )
    d = points.d
    known = points.n if neighbors == "replace-one" else 1  # their number is private
    grid, options = plan(
        clip=clip, n=known, d=d, steps=1, epsilon=epsilon, delta=delta, noise=noise, neighbors=neighbors,
        resolution=resolution,
    )  # fmt: skip
    guarantee = promise(grid, d, 1, epsilon, delta, neighbors)
    divisor = 1 if over is None else over or points.n
    factor = 1 / (grid.unit * divisor)
    with charge(budget, guarantee, name, {"epsilon": epsilon, "delta": delta, "clip": clip}) as final:
        points.check()
        total = points.gradients(np.zeros(d), grid.unit, grid.limit(d))
        law, key = grid.scale.plan(), fresh_key(rng)
        final()
        total += integer_noise(law, key, d)
    return VectorRelease(
        np.asarray(total * factor, np.float64),
        grid.scale.named,
        grid.scale.value * factor,
        {each: scale.value * factor for each, scale in options.items()},
        clip,
        1 / grid.unit,
        guarantee,
    )
