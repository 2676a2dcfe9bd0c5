"""Several releases with Gaussian noise for one price, each chosen after those before: what every one of them may be.

Parts of the price are fixed before a record is read. measured_descent.md, theorem 1, has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log, log2, pi

from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_ratio
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee
from ..support.rounding import down, lower, root_up, up
from .step_noise import FINEST, NoiseParameters

_MOST_SUM, _MOST_RECORDS = 2.0**62, 2**31
_ROUNDED = Fraction(1, 2**50)  # by so much parts of 1 / ratio^2, which are floats, may be more than all of it
COARSEST = 6  # a record has at least 2^6 units of a grid


@dataclass(frozen=True)
class Share:
    """The noise of one release: its sensitivity and sigma, in units of its grid."""

    sensitivity: float
    sigma: float
    unit: float

    @property
    def deviation(self) -> float:
        """Of an entry of the sum."""
        return self.sigma / self.unit


@dataclass(frozen=True)
class SharedPrice:
    """(epsilon, delta) for several releases together.

    ratio   smallest sigma over sensitivity of one release of continuous Gaussian noise with this price
    extra   the variance that pays for noise being discrete, in grid units
    """

    asked: NoiseParameters
    ratio: float
    extra: float

    @classmethod
    def of(cls, asked: NoiseParameters, coordinates: int) -> SharedPrice | None:
        """For at most so many coordinates in all; None where the price has no Gaussian noise, or another is asked."""
        if asked.noise != "auto" or asked.delta < SMALLEST or not SMALLEST <= asked.epsilon <= MAX_EPSILON:
            return None
        epsilon, delta = down(lower(asked.epsilon)), down(lower(asked.delta))
        loss_of_grid = min(epsilon, 1.0) * 2.0**-20
        extra = log(2.001 * 3.1 * coordinates / loss_of_grid) / (2 * pi**2)
        ratio = gaussian_ratio(epsilon - 2 * loss_of_grid, delta * (1 - 2.0**-19)) * (1 + 2.0**-40)
        return cls(asked, ratio, extra)

    @property
    def vectors(self) -> int:
        """By so many of its vectors a neighbour's sum may differ."""
        return 2 if self.asked.neighbors == "replace-one" else 1

    def share(self, sensitivity: float, part: float, unit: float) -> Share:
        """A release that takes this part of 1 / ratio^2: sigma^2 = (sensitivity ratio)^2 / part + extra, rounded up."""
        square = Fraction(sensitivity) ** 2 * Fraction(self.ratio) ** 2 / Fraction(part) + Fraction(self.extra)
        return Share(sensitivity, root_up(up(square)), unit)

    def counts(self, part: float) -> Share:
        """The same, of counts of records, each in one cell."""
        return self.share(root_up(2) if self.vectors == 2 else 1.0, part, 1.0)

    def vector(self, clip: float, n: int, part: float, steps: int, most: int) -> Share:
        """The same, of a sum of vectors of norm at most `clip`, in one of `steps` steps; there may be `most`."""
        unit = 2.0 ** (self.finer(n, part, most) - ceil(log2(clip)))
        sensitivity = up(self.vectors * Fraction(clip) * Fraction(unit))
        return self.share(sensitivity, part / steps, unit)

    def finer(self, n: int, part: float, most: int) -> int:
        """The grid of such vectors has 2^this units in a clip rounded up to a power of two."""
        noise = self.vectors * self.ratio * (most / part) ** 0.5
        return floor(log2(min(_MOST_SUM / (4 * self.records(n)), FINEST, 2.0**38 / noise)))

    def moments_unit(self, n: int) -> float:
        """The grid of moments of points in the unit ball."""
        return 2.0 ** floor(log2(min(_MOST_SUM / (4 * self.records(n)), FINEST, 2.0**34 / self.ratio)))

    def records(self, n: int) -> int:
        """Sums of so many fit: the grid must not depend on a private number."""
        return n if self.asked.neighbors == "replace-one" else max(n, _MOST_RECORDS)

    @property
    def guarantee(self) -> Guarantee:
        """Of all releases together, whatever was chosen: measured_descent.md, theorem 1."""
        epsilon, delta, _, neighbors = self.asked
        rho = up((1 + _ROUNDED) / (2 * Fraction(self.ratio) ** 2))
        mu = (up(1 / Fraction(self.ratio)) + 1.3 * min(epsilon, 1.0) * 2.0**-20) * (1 + 2.0**-40)
        return AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))


__all__ = ["COARSEST", "Share", "SharedPrice"]
