"""How a total (epsilon, delta) is shared by steps that depend on those before, and what they guarantee together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..privacy.calibration import zcdp_rho
from ..privacy.composition import compose
from ..privacy.guarantees import AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..support.rounding import down, lower


def share_of_each(count: int, epsilon: float, delta: float, parameter_of_rho: Callable[[float], float]) -> float:
    """The largest e of each of so many steps that keep within the total: e-DP, and what is the e of its rho."""
    pure = down(lower(epsilon) / count)
    if not delta:
        return pure
    return max(pure, parameter_of_rho(down(Fraction(zcdp_rho(epsilon, delta)) / count)))


def guarantee_of_all(
    epsilon: float, delta: float, *parts: tuple[Guarantee, int], neighbors: Neighbors
) -> PureDP | AllOf:
    """The total, and the zCDP of its parts, each so many times."""
    if not delta:
        return PureDP(epsilon, neighbors=neighbors)
    return AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), compose(*parts).to_zcdp())
