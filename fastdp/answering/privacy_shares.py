"""How a total (epsilon, delta) is shared by steps that depend on those before, and what they guarantee together."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

from ..privacy.calibration import zcdp_rho
from ..privacy.composition import compose
from ..privacy.guarantees import AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..support.rounding import down, lower


def share_of_each(count: int, epsilon: float, delta: float, divisor: int) -> float:
    """The largest e of each of so many steps, e-DP and e^2/divisor-zCDP, that keep within the total."""
    pure = down(lower(epsilon) / count)
    if not delta:
        return pure
    rho = Fraction(zcdp_rho(epsilon, delta))
    return max(pure, sqrt(float(divisor * rho / count)) * (1 - 2.0**-50))  # the square root is rounded down


def guarantee_of_all(
    epsilon: float, delta: float, *parts: tuple[Guarantee, int], neighbors: Neighbors
) -> PureDP | AllOf:
    """The total, and the zCDP of its parts, each so many times."""
    if not delta:
        return PureDP(epsilon, neighbors=neighbors)
    return AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), compose(*parts).to_zcdp())
