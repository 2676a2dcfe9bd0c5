"""The noise of each step: how much sums of clipped vectors need, by every calibration that is valid.

descent.md, theorems 1 to 3. All numbers here are public: the sensitivity in units of the grid, the dimension, how many
sums, epsilon and delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor, inf, log, log2, nextafter, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_ratio, gaussian_sigma, zcdp_rho
from ..privacy.conversions import epsilon_of_curve
from ..privacy.curves import ORDERS, discrete_laplace_curve
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE, NoisePlan, gaussian_plan, laplace_plan
from ..support import parameters
from ..support.checks import moderate, one_of
from ..support.rounding import down, lower, root_up, up
from ..support.search import narrow
from ..support.shown import shown

Noise = Literal["auto", "gaussian", "laplace", "laplace-per-coordinate", "laplace-basic"]

NOISES = ("auto", "gaussian", "laplace", "laplace-per-coordinate", "laplace-basic")

FINEST = 2.0**30  # grid units in a clip: rounding then costs a part in 10^9
_COARSEST = 6  # bits
# points.md: K of integer points is less than 2^26, and more than the clip by what a factor may be rounded up, and N
MOST_OF_POINTS, OVER_CLIP, FINEST_ULP = 2.0**26, 40960.0, 1 / 16383
_LEAST_OF_POINTS = 2.0**21  # of K: coarser, and rounding up would cost a part in 30 of the noise
_OF_NOISE = 0.1  # of its deviation, that rounding may have
_FEWEST_STEPS = 4  # that are worth making integer points for
_MOST_INTEGER_COLUMNS = 2**16
_MOST_SUM = 2.0**62
_MOST_RECORDS = 2**31  # where their number is private: sums of so many fit


class NoiseParameters(NamedTuple):
    """What is asked for: the price of all sums together, for which relation, and the kind of noise."""

    epsilon: float
    delta: float
    noise: Noise
    neighbors: Neighbors

    @classmethod
    def of(
        cls, epsilon: Any, delta: Any, noise: Any, neighbors: Any, noises: tuple[str, ...] = NOISES
    ) -> NoiseParameters:
        """Check what a user gave."""
        one_of("noise", noise, noises)
        parameters.neighbors(neighbors)
        return cls(parameters.epsilon(epsilon), parameters.delta_or_none(delta), noise, neighbors)

    def check_price(self) -> None:
        """ValueError where the arithmetic of noise has no answer."""
        if self.noise == "gaussian" and not self.delta:
            raise ValueError("noise='gaussian': needs delta > 0; 'laplace' does not")
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if value < SMALLEST and not (name == "delta" and value == 0):
                raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g}")
        most = MAX_EPSILON if self.delta else 1e9
        if self.epsilon > most:
            raise ValueError(f"epsilon={shown(self.epsilon)}: must be at most {most:g}")

    def unit_variance(self, d: int, steps: int) -> float:
        """The variance of a coordinate's noise at sensitivity 1, nearly: what schedules are made from."""
        epsilon, delta = self.epsilon, self.delta
        rho = zcdp_rho(epsilon, delta) if delta else 0.0

        def laplace(count: float, pure: float) -> float:
            return 2 * min((pure / epsilon) ** 2, count / (2 * rho) if rho else inf)

        found = {
            "gaussian": steps * gaussian_ratio(epsilon, delta) ** 2 if delta else inf,
            "laplace": laplace(steps, sqrt(d) * steps),
            "laplace-per-coordinate": laplace(d * steps, d * steps),
            "laplace-basic": 2 * (d * steps / epsilon) ** 2,
        }
        return min(found.values()) if self.noise == "auto" else found[self.noise]


@dataclass(frozen=True)
class CoordinateNoise:
    """The noise of one coordinate, in units of the grid.

    noise         "gaussian" or "laplace", as it is drawn
    calibration   which theorem asked for so little
    value         sigma, or the scale b of Laplace noise
    """

    noise: str
    calibration: str
    value: float

    @property
    def variance(self) -> float:
        """Of a draw; discrete noise has a little less."""
        return self.value**2 * (1 if self.noise == "gaussian" else 2)

    @property
    def named(self) -> str:
        """The noise and its calibration."""
        return self.noise if self.calibration == "Gaussian" else f"{self.noise} ({self.calibration})"

    def plan(self) -> NoisePlan:
        """The noise, as it is drawn."""
        return gaussian_plan(self.value) if self.noise == "gaussian" else laplace_plan(self.value)


def noise_options(sensitivity: float, d: int, steps: int, epsilon: float, delta: float) -> dict[str, CoordinateNoise]:
    """The least noise of every kind, for `steps` sums of d integers of L2 sensitivity `sensitivity`."""
    epsilon = down(lower(epsilon))
    delta = down(lower(delta)) if delta else 0.0
    found = {}
    if delta:
        # T sums of sensitivity K are as one of K sqrt(T): theorem 2
        far = up(Fraction(sensitivity) * Fraction(root_up(steps)))
        sigma = gaussian_sigma(far, epsilon=epsilon, delta=delta, dimension=d * steps, adaptive=True)
        found["gaussian"] = CoordinateNoise("gaussian", "Gaussian", sigma)
    spread = min(d, max(1, floor(Fraction(sensitivity) ** 2)))  # the worst direction moves so many coordinates alike
    found["laplace"] = _least(laplace_options(_over_root(sensitivity, spread), spread * steps, epsilon, delta))
    found["laplace-per-coordinate"] = _least(laplace_options(sensitivity, d * steps, epsilon, delta))
    found["laplace-basic"] = CoordinateNoise("laplace", "pure", _pure(sensitivity, d * steps, epsilon))
    return found


def _least(values: dict[str, float]) -> CoordinateNoise:
    name = min(values, key=lambda each: values[each])
    if values["pure"] <= 1.001 * values[name]:
        name = "pure"  # as good, and a stronger guarantee
    return CoordinateNoise("laplace", name, values[name])


@lru_cache(256)
def laplace_options(shift: float, count: int, epsilon: float, delta: float) -> dict[str, float]:
    """Scales of Laplace noise for `count` coordinates that each move by `shift`, by calibration (theorem 3).

    "pure" needs no delta; "simple" is the textbook's conversion from zCDP, "tight" the best one; "exact" composes the
    Renyi curve of the noise that is drawn.
    """
    found = {"pure": _pure(shift, count, epsilon)}
    if not delta:
        return found
    simple = (sqrt(log(1 / delta) + epsilon) - sqrt(log(1 / delta))) ** 2 * (1 - 2.0**-40)
    for name, rho in (("simple", simple), ("tight", zcdp_rho(epsilon, delta))):
        found[name] = _over_root(up(Fraction(shift) * Fraction(root_up(count))), 2 * rho)
    found["exact"] = _by_curve(shift, count, epsilon, delta, found["tight"])
    return found


def _pure(shift: float, count: int, epsilon: float) -> float:
    return up(Fraction(shift) * count / lower(epsilon))


def _by_curve(shift: float, count: int, epsilon: float, delta: float, tight: float) -> float:
    """The least scale whose curve keeps to epsilon, to a part in a million and up; `tight` if that is as good.

    Found in floats, and checked in 60 digits: a candidate that does not pass is enlarged.
    """
    if shift < 0.003 * tight:  # the curve is then that of zCDP but for a few parts in a thousand
        return tight
    high = narrow(
        lambda scale: _epsilon_roughly(scale, shift, count, delta) <= epsilon, tight / 1e6, tight,
        tolerance=1e-9, middle_of=lambda low, high: sqrt(low * high),
    )[1]  # fmt: skip
    high *= 1 + 1e-7
    for margin in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        curve = tuple(up(count * Fraction(value)) for value in discrete_laplace_curve(high, shift))
        if epsilon_of_curve(curve, delta) <= epsilon:
            return min(high, tight)
        high *= 1 + margin
    return tight


def _epsilon_roughly(scale: float, shift: float, count: int, delta: float) -> float:
    """The epsilon of `count` coordinates by their Renyi curve, in floats."""
    a = np.array(ORDERS)
    step, ratio = 1 / scale, shift / scale
    weight = -np.expm1(-2 * a * step) / (1 + exp(-step)) / -np.expm1((1 - 2 * a) * step)
    with np.errstate(under="ignore"):
        curve = ratio + np.log(weight + (1 - weight) * np.exp(np.maximum((1 - 2 * a) * ratio, -700.0))) / (a - 1)
    bound = np.minimum(curve, ratio)  # no order costs more than the noise does in pure terms
    return float(np.min(count * bound + np.log1p(-1 / a) * a / (a - 1) - (np.log(a - 1) + log(delta)) / (a - 1)))


def _over_root(x: float, y: float) -> float:
    """x / sqrt(y), rounded up."""
    return up(Fraction(x) / Fraction(nextafter(sqrt(y), 0.0)))


@dataclass(frozen=True)
class SumGrid:
    """The grid of the sums, and the noise on it.

    clip          the norm that a record's vector keeps
    unit          one over the spacing of the grid, a power of two
    sensitivity   the L2 sensitivity of the sum, in units of the grid
    noise         of a coordinate, in units of the grid
    longest       K of points that are integers of 16 bits (points.md); 0 if they are float64
    """

    clip: float
    unit: float
    sensitivity: float
    noise: CoordinateNoise
    longest: int = 0

    @property
    def size(self) -> float:
        """The clip in units of the grid."""
        return self.clip * self.unit

    def limit(self, d: int) -> float:
        """What computed norms keep, so that true ones keep `size` (descent.md, lemma 1)."""
        return limit_of(self.size, d)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of a coordinate of the sum."""
        return sqrt(self.noise.variance) / self.unit

    @property
    def coordinates(self) -> str:
        """How points are held."""
        return "int16" if self.longest else "float64"

    def square(self, n: int, d: int) -> float:
        """The expected squared norm of the error of the mean of n gradients: the noise, and rounded factors."""
        rounded = n * _FACTOR_SQUARE if self.longest else 0.0
        return (d * self.noise.variance + rounded) / (n * self.unit) ** 2


def limit_of(size: float, d: int) -> float:
    """What computed norms of d coordinates keep, so that true ones keep `size` (descent.md, lemma 1)."""
    return size * (1 - (d + 64) * 2.0**-53)


@lru_cache(256)
def sum_grid(
    asked: NoiseParameters, *, clip: float, n: int, d: int, steps: int, resolution: float | None = None
) -> tuple[SumGrid, dict[str, CoordinateNoise]]:
    """The grid of sums of n vectors of norm `clip`, the noise chosen, and what all kinds would be."""
    vectors = 2 if asked.neighbors == "replace-one" else 1  # by so many clips a neighbour may differ
    moderate("clip", clip, toward=0)
    unit = 2.0 ** -ceil(log2(clip)) if resolution is None else 1 / resolution
    return _fit(
        asked, lambda unit: vectors * clip * unit, size=clip, unit=unit, n=n, d=d, steps=steps,
        fixed=resolution is not None,
    )  # fmt: skip


def fit_grid(asked: NoiseParameters, sensitivity: Callable[[float], float], entries: int, n: int) -> SumGrid:
    """The finest grid for one sum over n records of vectors of norm at most 2, of this sensitivity by the unit."""
    return _fit(asked, sensitivity, size=2.0, unit=1.0, n=n, d=entries, steps=1)[0]


def grid_at(asked: NoiseParameters, unit: float, sensitivity: float, entries: int) -> SumGrid:
    """That of vectors of norm at most 2 on a given grid, coarser than the finest one."""
    found = noise_options(sensitivity, entries, 1, asked.epsilon, asked.delta)
    return SumGrid(2.0, unit, sensitivity, _choose(found, asked.noise))


def _fit(
    asked: NoiseParameters, sensitivity: Callable[[float], float], *, size: float, unit: float, n: int, d: int,
    steps: int, fixed: bool = False,
) -> tuple[SumGrid, dict[str, CoordinateNoise]]:  # fmt: skip
    """Multiply `unit` as far as sums of n vectors of this size and their noise allow, and choose the noise."""
    asked.check_price()
    # the grid must not depend on a private number
    n = n if asked.neighbors == "replace-one" else max(n, _MOST_RECORDS)
    if not fixed:  # sums of n records fit, and noise of at most 2^39 grid units
        rough = sensitivity(unit) * sqrt(asked.unit_variance(d, steps))
        finer = floor(log2(min(_MOST_SUM / (4 * n), FINEST, 2.0**39 / rough)))
        if finer < _COARSEST:
            raise ValueError(f"n={n}, epsilon={asked.epsilon!r}: the grid would have fewer than 64 units in a record")
        unit *= 2.0**finer
    if n * size * unit >= _MOST_SUM or size * unit > 2.0**41:
        raise ValueError(f"resolution={1 / unit!r}: must be larger: sums of {n} records leave int64 on this grid")
    found = noise_options(sensitivity(unit), d, steps, asked.epsilon, asked.delta)
    chosen = _choose(found, asked.noise)
    if not MIN_SCALE <= chosen.value <= MAX_SCALE:
        raise ValueError(
            f"resolution={1 / unit!r}: noise of {chosen.value:.3g} grid units: must be between 2^-20 and 2^40 of them"
        )
    return SumGrid(size, unit, sensitivity(unit), chosen), found


_FACTOR_SQUARE = 2.0**28  # points.md, lemma 4: of a record's gradient, for factors that are rounded at random


@lru_cache(256)
def point_grid(
    asked: NoiseParameters, *, clip: float, n: int, d: int, steps: int
) -> tuple[SumGrid, dict[str, CoordinateNoise]] | None:
    """The grid for points that are integers, or None where public numbers ask for float64: points.md, "Which width"."""
    if steps < _FEWEST_STEPS or d > _MOST_INTEGER_COLUMNS:
        return None
    vectors, wider = 2 if asked.neighbors == "replace-one" else 1, 1 + FINEST_ULP * sqrt(d)
    moderate("clip", clip, toward=0)
    asked.check_price()
    most = min(MOST_OF_POINTS, 2.0**39 / (vectors * sqrt(asked.unit_variance(d, steps))))
    if most < _LEAST_OF_POINTS:
        return None
    unit = 2.0 ** floor(log2((most - OVER_CLIP - 2) / (clip * wider)))
    longest = floor(clip * unit * wider + OVER_CLIP)
    found = noise_options(float(vectors * longest), d, steps, asked.epsilon, asked.delta)
    chosen = _choose(found, asked.noise)
    grid = SumGrid(clip, unit, float(vectors * longest), chosen, longest)
    points = n * (clip * unit * FINEST_ULP / 2) ** 2 * steps  # rounded once for all steps, whose noise averages out
    if max(points * d, n * _FACTOR_SQUARE) > (_OF_NOISE**2) * d * chosen.variance:
        return None
    return (grid, found) if MIN_SCALE <= chosen.value <= MAX_SCALE else None


def rounding_excess(lipschitz: float, curvature: float, reach: float, diameter: float, n: int, d: int) -> float:
    """What integer points may add to the expected excess risk, over a set of norm `reach`: points.md, theorem 1."""
    part = sqrt(d) * FINEST_ULP * reach  # the norm of what rounding may add to a point, times that of w
    worst = 2 * lipschitz * part
    if curvature == inf:
        return worst
    mean = part**2 * curvature / 8 + lipschitz * part * 2.0**-16
    random = 16 * part * (curvature * reach + lipschitz / 2) / sqrt(max(n, 1))
    weights = diameter * curvature * reach * sqrt(d) * 2.0 ** -(low_bits(d) + 14)  # those of w itself
    return min(worst, mean + random) + weights


def low_bits(d: int) -> int:
    """How many bits of w are its low part: kernels/points.py."""
    return next(bits for bits in range(15, 0, -1) if bits == 1 or d <= 4 << 2 * (15 - bits))


def _choose(found: dict[str, CoordinateNoise], noise: Noise) -> CoordinateNoise:
    if noise == "auto":
        return min(found.values(), key=lambda scale: scale.variance)
    return found[noise]


@lru_cache(256)
def guarantee_of(asked: NoiseParameters, grid: SumGrid, d: int, steps: int) -> Guarantee:
    """The guarantee of `steps` sums of d entries with this noise: the total, and what it comes to as zCDP."""
    epsilon, delta, _, neighbors = asked
    drawn = grid.noise
    if not delta or drawn.calibration == "pure":
        return PureDP(epsilon, neighbors=neighbors)
    rho = up(steps * (Fraction(grid.sensitivity) / Fraction(drawn.value)) ** 2 / 2)
    mu = inf
    if drawn.noise == "gaussian":
        far = up(Fraction(grid.sensitivity) * Fraction(root_up(steps)))
        mu = gaussian_mu(far, drawn.value, d * steps)
    return AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))
