"""The privacy parameters of a learner, and the weight that they allow a score: the same for all learners."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ..mechanisms.scores import range_of_each
from ..privacy.composition import compose
from ..privacy.guarantees import ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..support import parameters
from ..support.checks import remembered
from ..support.rounding import down, lower, up

LEAST_BETA = 1e-250  # far enough above the least float that bounds may divide by it


@dataclass(frozen=True)
class PrivacyParameters:
    """What a learner may use of privacy, and the probability beta with which its error bound may fail.

    stated    where this is a part: the epsilon of the whole, for errors to name
    """

    epsilon: float
    delta: float
    beta: float
    neighbors: Neighbors = "replace-one"
    stated: float | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, epsilon: Any, delta: Any, beta: Any, neighbors: Any) -> PrivacyParameters:
        """Of parameters as users give them."""
        return _of_given(epsilon, delta, beta, neighbors)

    def part(self, epsilon: float, *, beta: float | None = None) -> PrivacyParameters:
        """The same with less of epsilon, and perhaps of beta."""
        beta = self.beta if beta is None else beta
        return replace(self, epsilon=epsilon, beta=beta, stated=self.asked)

    @property
    def asked(self) -> float:
        """The epsilon that the caller has stated."""
        return self.epsilon if self.stated is None else self.stated

    @property
    def score_range(self) -> int:
        """How far apart two scores that count records are changed, by one record."""
        return 1 if self.neighbors == "add-remove" else 2

    @property
    def allowance(self) -> tuple[float, float]:
        """The lesser of the decimal and the binary values of epsilon and delta: as much as a mechanism may use."""
        return down(lower(self.epsilon)), down(lower(self.delta))

    @property
    def guarantee(self) -> Guarantee:
        """Of a mechanism that uses all of epsilon and delta."""
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors)
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def guarantee_of(
        self, rounds: int, eta: float, *, score_range: int | None = None, test: float = 0.0
    ) -> Guarantee:  # fmt: skip
        """Of so many exponential mechanisms that use it all, with what follows in concentrated privacy, too.

        eta, score_range   as in `eta`
        test               the epsilon of one more release of Laplace noise
        """
        if rounds == 1 and not self.delta and not test:
            return BoundedRange(self.epsilon, neighbors=self.neighbors)
        width = Fraction(eta) * (self.score_range if score_range is None else score_range)
        each = BoundedRange(up(width), neighbors=self.neighbors)
        parts: list[Guarantee | tuple[Guarantee, int]] = [(each, rounds)]
        if test:
            parts.append(PureDP(test, neighbors=self.neighbors))
        return self.guarantee & compose(*parts).to_zcdp()

    def eta(self, rounds: int, *, score_range: int | None = None, unit: int = 1) -> float:
        """The weight of a score in each of so many exponential mechanisms, where one record changes scores within an
        interval of `score_range` units."""
        width = (self.score_range if score_range is None else score_range) * unit
        eta = down(lower(range_of_each(self.epsilon, self.delta, rounds)) / width)
        if not 2.0**-900 <= eta <= 2.0**900:
            raise ValueError(
                f"epsilon={self.asked!r}: must be such that the factor of the scores, {eta!r}, is between 2^-900 and "
                "2^900"
            )
        return eta

    def row(self, **more: Any) -> dict[str, Any]:
        """As a budget lists them."""
        delta = {"delta": self.delta} if self.delta else {}
        return {"epsilon": self.epsilon, **delta, **more}


@remembered
def _of_given(epsilon: Any, delta: Any, beta: Any, neighbors: Any) -> PrivacyParameters:
    parameters.neighbors(neighbors)
    epsilon, delta, beta = parameters.epsilon(epsilon), parameters.delta_or_none(delta), parameters.beta(beta)
    if beta < LEAST_BETA:
        raise ValueError(f"beta={beta!r}: must be at least {LEAST_BETA:g}")
    return PrivacyParameters(epsilon, delta, beta, neighbors)
