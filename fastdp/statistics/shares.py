"""How one budget is shared out among several releases: statistics.md, theorem 8.

By public numbers alone: how large an error each release would have with all of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, sqrt
from typing import NamedTuple

from ..privacy.calibration import MAX_EPSILON, SMALLEST, zcdp_rho
from ..support.rounding import down, lower

_PARTS = 2**40  # shares are multiples of one over this, rounded down


class Errors(NamedTuple):
    """A release's error, as a share of the records: with Laplace noise at epsilon 1, and with Gaussian noise at rho 1.

    The first falls with epsilon, the second with the square root of rho.
    """

    pure: float
    concentrated: float


class Price(NamedTuple):
    """What a release may cost: an epsilon, or a rho."""

    epsilon: float | None
    rho: float | None

    @property
    def like_epsilon(self) -> float:
        """About the epsilon at which Laplace noise is as large."""
        return sqrt(2 * self.rho) if self.epsilon is None and self.rho is not None else self.epsilon or 0.0


def prices_of(errors: Sequence[Errors], epsilon: float, delta: float, *, concentrated: bool) -> list[Price]:
    """The prices with which the sum of all errors is least.

    `concentrated`: those who pay add up rhos, or squares of mu. Elsewhere epsilons are added up, or rhos where there is
    a delta and errors are smaller with them.
    """
    pure = _weights([each.pure for each in errors], 1 / 2)
    of_epsilon = sum(each.pure**0.5 for each in errors) ** 2 / epsilon
    if delta >= SMALLEST and SMALLEST <= epsilon <= MAX_EPSILON:
        rho = zcdp_rho(epsilon, delta)
        of_rho = sum(each.concentrated ** (2 / 3) for each in errors) ** 1.5 / rho**0.5
        if concentrated or of_rho < of_epsilon:
            weights = _weights([each.concentrated for each in errors], 2 / 3)
            return [Price(None, down(Fraction(rho) * weight)) for weight in weights]
    return [Price(down(lower(epsilon) * weight), None) for weight in pure]


def _weights(errors: Sequence[float], power: float) -> list[Fraction]:
    """Shares in proportion to powers of the errors; all together at most 1."""
    if len(errors) == 1:
        return [Fraction(1)]
    powers = [Fraction(error**power) for error in errors]
    together = sum(powers)
    return [Fraction(floor(each / together * _PARTS), _PARTS) for each in powers]
