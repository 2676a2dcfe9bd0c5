"""The noise that tables of counts are released with: release_marginals.md, theorem 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log2, sqrt
from typing import Literal

from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_ratio, gaussian_sigma
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.profiles import DiscreteLaplace, with_profile
from ..randomness.noise_plans import NoisePlan, gaussian_plan, laplace_plan, laplace_variance, scale_in_range
from ..support import parameters
from ..support.rounding import down, lower, root_up, up
from ..support.shown import shown
from .queries.marginals import Marginals

NoiseKind = Literal["auto", "laplace", "gaussian"]
NOISES = ("auto", "laplace", "gaussian")

_FINE = 1024  # grid units that the noise should measure, so that its discreteness costs a part in a million
_FINEST = 20  # bits that the grid may have below 1


@dataclass(frozen=True)
class MarginalNoise:
    """The noise of every cell, and its guarantee."""

    epsilon: float
    delta: float
    bits: int  # the grid is 2^-bits
    plan: NoisePlan
    sigma: float  # in records
    guarantee: Guarantee


def marginal_noise(
    workload: Marginals, epsilon: float, delta: float, neighbors: Neighbors, kind: NoiseKind = "auto",
    *, concentrated: bool = False,
) -> MarginalNoise:  # fmt: skip
    """The least noise with this guarantee for all cells of all tables together.

    `concentrated`: those who pay add up rhos, or squares of mu, of which Laplace noise takes many times as much; "auto"
    is Gaussian noise there, and where there is no such Laplace noise. Otherwise it is what has less variance.
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    if kind == "gaussian" and not delta:
        raise ValueError("noise='gaussian': must come with delta > 0")
    # cells that one record changes, each by 1
    asked = epsilon, delta, neighbors, workload.tables * (1 if neighbors == "add-remove" else 2)
    if kind == "laplace" or not delta:
        return _laplace(*asked)
    gaussian = _gaussian(*asked, len(workload))
    if kind == "gaussian" or concentrated:
        return gaussian
    try:
        laplace = _laplace(*asked)
    except ValueError:  # a scale that cannot be drawn
        return gaussian
    return laplace if laplace.sigma <= gaussian.sigma else gaussian


def _laplace(epsilon: float, delta: float, neighbors: Neighbors, changed: int) -> MarginalNoise:
    plan = laplace_plan(scale_in_range(up(changed / lower(epsilon)), "tables / epsilon"))
    pure = with_profile(PureDP(epsilon, neighbors=neighbors), DiscreteLaplace(plan.scale, changed))
    return MarginalNoise(epsilon, delta, 0, plan, sqrt(laplace_variance(plan.scale)), pure)


def _gaussian(epsilon: float, delta: float, neighbors: Neighbors, changed: int, cells: int) -> MarginalNoise:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST:
            raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g} for Gaussian noise")
    if epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g}")
    asked = down(lower(epsilon)), down(lower(delta))
    bits = min(max(0, round(log2(_FINE / (sqrt(changed) * gaussian_ratio(*asked))))), _FINEST)
    sensitivity = root_up(changed << 2 * bits)
    sigma = gaussian_sigma(sensitivity, epsilon=asked[0], delta=asked[1], dimension=cells)
    gaussian = gaussian_plan(scale_in_range(sigma, "sigma"))
    rho = up(Fraction(changed << 2 * bits) / Fraction(gaussian.sigma) ** 2 / 2)
    mu = gaussian_mu(sensitivity, gaussian.sigma, cells)
    guarantee = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))
    return MarginalNoise(epsilon, delta, bits, gaussian, gaussian.sigma * 2.0**-bits, guarantee)
