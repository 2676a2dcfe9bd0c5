"""What a total (epsilon, delta) is shared in: rho, or epsilon where there is no delta.

multiplicative_weights_measured.md, theorem 1. Shares are fractions and add up exactly. Scales are rounded up, so that a
share pays for what it draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from ..mechanisms.bounds import laplace as laplace_error
from ..privacy.calibration import zcdp_rho, zcdp_sigma
from ..privacy.conversions import pure_of_rho
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness.noise_plans import MAX_SCALE, MIN_SCALE, NoisePlan, gaussian_plan, laplace_plan
from ..support.rounding import decimal_value_up, down, lower, up

Share = Fraction


@dataclass(frozen=True)
class Total:
    """An (epsilon, delta) that is shared."""

    epsilon: float
    delta: float
    neighbors: Neighbors

    @property
    def whole(self) -> Share:
        """All of it: the rho that converts to it, or epsilon."""
        return Fraction(zcdp_rho(self.epsilon, self.delta)) if self.delta else lower(self.epsilon)

    def price(self, share: Share) -> Guarantee:
        """What a step for this share guarantees."""
        if self.delta:
            return ZCDP(up(share), neighbors=self.neighbors)
        # budgets add up the decimal values of epsilons, which may lie below the binary ones
        return PureDP(max(up(share), decimal_value_up(share)), neighbors=self.neighbors)

    def guarantee(self) -> Guarantee:
        """What steps guarantee together whose shares add up to at most all of it."""
        if not self.delta:
            return PureDP(self.epsilon, neighbors=self.neighbors)
        return AllOf(ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors), self.price(self.whole))

    def tests(self, share: Share) -> float:
        """The largest epsilon, of AboveThreshold or of a threshold's noise, for at most this share."""
        return pure_of_rho(down(share)) if self.delta else down(share)

    def rough_tests(self, share: float) -> float:
        """About the same."""
        return max(share, sqrt(2 * share)) if self.delta and share < 2 else share

    def rough_noise_scale(self, sensitivity: float, share: float) -> float:
        """About the scale of the noise of a count for this share."""
        return sensitivity / sqrt(2 * share) if self.delta else sensitivity / share

    def noise_scale(self, sensitivity: float, share: Share) -> float:
        """The sigma, or the scale of Laplace noise, of a count for at most this share; what cannot be drawn is above
        MAX_SCALE."""
        if share <= 0:
            return 2 * MAX_SCALE
        if self.delta:
            rho = down(share)
            return max(MIN_SCALE, zcdp_sigma(float(sensitivity), rho=rho)) if rho > 1e-300 else 2 * MAX_SCALE
        return max(MIN_SCALE, up(Fraction(sensitivity) / share))

    def noise(self, scale: float) -> NoisePlan:
        """The noise of a count, drawn exactly."""
        return gaussian_plan(scale) if self.delta else laplace_plan(scale)

    def deviation(self, scale: float) -> float:
        """The standard deviation of that noise, to a part in a thousand."""
        return scale if self.delta else sqrt(2) * scale

    def error(self, scale: float, beta: float, count: int) -> float:
        """What none of so many draws exceeds in magnitude, but with probability beta."""
        if self.delta:
            return scale * sqrt(2 * (log(2 * count) - log(beta))) * (1 + 2.0**-40)
        return laplace_error(sensitivity=scale, epsilon=1.0, beta=beta, count=count)
