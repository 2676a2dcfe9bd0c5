"""Sums and means of vectors whose norm is bounded: one release, by noise of four kinds.

It is one step of noisy descent by itself: the same clipping, the same integers, the same calibrations; vector_sums.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.rehearsal import GIVEN
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import positive, public_count
from ..support.parameters import Outside
from ..support.progress import Progress, one_pass
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from .losses.base import Summand
from .points import Points
from .sets import Vector
from .step_noise import CoordinateNoise, Noise, NoiseParameters, SumGrid, guarantee_of, sum_grid


@public_as("fastdp.optimizing")
@dataclass(frozen=True, eq=False, repr=False)
class VectorRelease(Displayed, Accounted):
    """A private sum or mean of vectors.

    Attributes
    ----------
    value : numpy.ndarray
        The sum or mean.
    noise : str
        "gaussian" or "laplace", and by which calibration.
    noise_scale : float
        Of the noise in each coordinate of `value`: sigma of Gaussian noise; b of Laplace noise, whose standard
        deviation is sqrt(2) b.
    scales : dict of str to float
        What every kind of noise would have had, by name.
    clip : float
        The largest norm of a record's vector.
    resolution : float
        The grid of the sum, a power of two.
    guarantee : Guarantee
        Of the release.
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


class Itself(Summand):
    """The point itself: what a sum of vectors sums."""

    def __init__(self, x_norm: float | None) -> None:
        self.x_norm = x_norm

    @property
    def number(self) -> int:
        from ..kernels.losses import LINEAR

        return LINEAR


@boundary
def vector_sum(
    X: Any,
    *,
    clip: float,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    resolution: float | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> VectorRelease:
    """Release the sum of vectors, one a record, each shortened to norm `clip`.

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        A vector a row, on data of any size.
    clip : float > 0
        The largest norm of a vector: longer ones are shortened.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta; 0 for noise that is Laplace.
    noise : {"auto", "gaussian", "laplace", "laplace-per-coordinate", "laplace-basic"}
        "laplace" is calibrated by the L2 norm; "laplace-per-coordinate" makes every coordinate a release of its own, by
        strong composition, "laplace-basic" by basic composition; "auto" takes the least of them.
    resolution : power of two, optional
        The grid; by default a 2^30th of the clip, or what n and the noise allow.
    outside : {"raise", "clip"}
        What becomes of records that are not finite, with norms below 2^511: a DomainError; or they are scaled to the
        clip, too, where 0 takes the place of NaN, of missing entries and of what is no number, and the largest float
        that of an infinity.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where keys come from; by default the operating system.
    budget : Budget, optional
        What is charged; by default the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    VectorRelease
        The sum, with its noise.

    Raises
    ------
    ValueError
        For parameters outside their range, before anything is spent.
    DomainError
        On NaN, an infinity or a norm of 2^511 or more, unless they are clipped; before anything is spent.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, for any vectors
    Proof        vector_sums.md
    Accuracy     the sum of the shortened vectors, with noise of `.noise_scale` in each coordinate: `bounds.vector_sum`
    Cost         one read of X: 5 ms for a million of 20 coordinates

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 5))
    >>> released = fastdp.vector_sum(X, clip=4.0, epsilon=1.0, delta=1e-6)
    >>> released.value.shape, released.noise_scale < 35
    ((5,), True)
    """
    asked = NoiseParameters.of(epsilon, delta, noise, neighbors)
    points = _vectors(X, outside, neighbors)
    request = VectorRequest.of("vector_sum", points, clip, asked, resolution)
    with one_pass(progress, "adding"):
        return request.release(points, 1, rng, budget)


@boundary
def vector_mean(
    X: Any,
    *,
    clip: float,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    resolution: float | None = None,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> VectorRelease:
    """Release the mean of vectors: `vector_sum`, divided by the number of records.

    Parameters
    ----------
    X : array_like, data frame or Parquet file
        A vector a row, on data of any size.
    clip : float > 0
        The largest norm of a vector: longer ones are shortened.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta; 0 for noise that is Laplace.
    noise : {"auto", "gaussian", "laplace", "laplace-per-coordinate", "laplace-basic"}
        "laplace" is calibrated by the L2 norm; "laplace-per-coordinate" makes every coordinate a release of its own, by
        strong composition, "laplace-basic" by basic composition; "auto" takes the least of them.
    resolution : power of two, optional
        The grid; by default a 2^30th of the clip, or what n and the noise allow.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place.
    outside : {"raise", "clip"}
        What becomes of records that are not finite, with norms below 2^511: a DomainError; or they are scaled to the
        clip, too, where 0 takes the place of NaN, of missing entries and of what is no number, and the largest float
        that of an infinity.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where keys come from; by default the operating system.
    budget : Budget, optional
        What is charged; by default the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    VectorRelease
        The mean, with its noise.

    Raises
    ------
    ValueError
        For parameters outside their range, before anything is spent.
    DomainError
        On NaN, an infinity or a norm of 2^511 or more, unless they are clipped; before anything is spent.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, for any vectors
    Proof        vector_sums.md
    Accuracy     the mean of the shortened vectors, with noise of `.noise_scale` in each coordinate:
                 `bounds.vector_mean`

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 5)) + 1
    >>> mean = fastdp.vector_mean(X, clip=5.0, epsilon=1.0, delta=1e-6)
    >>> bool(abs(mean.value - 1).max() < 0.1)
    True
    """
    parameters.neighbors(neighbors)
    records = public_count(records, neighbors)
    asked = NoiseParameters.of(epsilon, delta, noise, neighbors)
    points = _vectors(X, outside, neighbors)
    request = VectorRequest.of("vector_mean", points, clip, asked, resolution)
    with one_pass(progress, "adding"):
        return request.release(points, records or points.n, rng, budget)


def _vectors(X: Any, outside: Outside, neighbors: Neighbors) -> Points:
    return Points(X, None, Itself(None), parameters.outside(outside), may_be_empty=neighbors == "add-remove")


@dataclass(frozen=True)
class VectorRequest:
    """The numbers of one release of a sum, from public parameters."""

    mechanism: str
    asked: NoiseParameters
    d: int
    grid: SumGrid
    options: dict[str, CoordinateNoise]

    @classmethod
    def of(
        cls, mechanism: str, points: Points, clip: Any, asked: NoiseParameters, resolution: Any = None
    ) -> VectorRequest:
        """Check clip and resolution, and choose grid and noise for these records; their number may be private."""
        clip = positive("clip", clip, toward=0)
        if resolution is not None:
            resolution = parameters.resolution(resolution)
        known = points.n if asked.neighbors == "replace-one" else 1
        grid, options = sum_grid(asked, clip=clip, n=known, d=points.d, steps=1, resolution=resolution)
        return cls(mechanism, asked, points.d, grid, options)

    def release(self, points: Points, divisor: int, rng: Randomness | None, budget: Budget | None) -> VectorRelease:
        """The sum over the divisor: charge, read the records, add the noise."""
        grid, drawn = self.grid, self.grid.noise
        guarantee = guarantee_of(self.asked, grid, self.d, 1)
        factor = 1 / (grid.unit * divisor)
        price = {"epsilon": self.asked.epsilon, "delta": self.asked.delta, "clip": grid.clip}
        with ChargedKeys(self.mechanism, guarantee, price, budget, rng) as keys:
            total = keys.reads(points, GIVEN).vectors(grid.unit, grid.limit(self.d))
            total = keys.reads(total, drawn.plan())
            total += integer_noise(drawn.plan(), keys.take(), self.d)
        return VectorRelease(
            value=np.asarray(total * factor, np.float64),
            noise=drawn.named,
            noise_scale=drawn.value * factor,
            scales={each: noise.value * factor for each, noise in self.options.items()},
            clip=grid.clip,
            resolution=1 / grid.unit,
            guarantee=keys.stating(guarantee),
        )
