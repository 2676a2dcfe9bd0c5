"""What a learner may spend, and what that allows a score to count: the same for all of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..mechanisms.scores import range_of_each
from ..privacy.composition import compose
from ..privacy.guarantees import NEIGHBORS, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..support.checks import one_of, positive, probability, small_delta
from ..support.rounding import down, lower, up


class Spending:
    """For dataclasses that have these fields."""

    epsilon: float
    delta: float
    neighbors: Neighbors

    @property
    def reach(self) -> int:
        """How far apart one record may move two scores that count records."""
        return 1 if self.neighbors == "add-remove" else 2

    @property
    def allowance(self) -> tuple[float, float]:
        """As much of epsilon and delta as a mechanism may use, whether they are taken as written or in binary."""
        return down(lower(self.epsilon)), down(lower(self.delta))

    @property
    def promise(self) -> Guarantee:
        """Of what spends all of epsilon and delta."""
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors)
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def promise_of(self, rounds: int, eta: float, *, reach: int | None = None, test: float = 0.0) -> Guarantee:
        """Of so many exponential mechanisms that spend it, with what follows in concentrated privacy, too.

        eta, reach    as in `eta`
        test          the epsilon of one more release of Laplace noise
        """
        if rounds == 1 and not self.delta and not test:
            return BoundedRange(self.epsilon, neighbors=self.neighbors)
        each = BoundedRange(up(Fraction(eta) * (self.reach if reach is None else reach)), neighbors=self.neighbors)
        parts: list[Guarantee | tuple[Guarantee, int]] = [(each, rounds)]
        if test:
            parts.append(PureDP(test, neighbors=self.neighbors))
        return self.promise & compose(*parts).to_zcdp()

    def eta(self, rounds: int, *, reach: int | None = None, unit: int = 1) -> float:
        """Of so many exponential mechanisms over scores that one record moves within `reach` units."""
        moved = (self.reach if reach is None else reach) * unit
        eta = down(lower(range_of_each(self.epsilon, self.delta, rounds)) / moved)
        if not 2.0**-900 <= eta <= 2.0**900:
            raise ValueError(
                f"epsilon={self.epsilon!r}: must be such that the factor of the scores, {eta!r}, is between 2^-900 and "
                "2^900"
            )
        return eta


def checked(epsilon: Any, delta: Any, beta: Any, neighbors: Any) -> tuple[float, float, float, Neighbors]:
    """The parameters that all learners have."""
    one_of("neighbors", neighbors, NEIGHBORS)
    return (
        positive("epsilon", epsilon, toward=0), small_delta("delta", delta), probability("beta", beta), neighbors,
    )  # fmt: skip


def parameters_of(spending: Spending, **more: Any) -> dict[str, Any]:
    """As a budget lists them."""
    delta = {"delta": spending.delta} if spending.delta else {}
    return {"epsilon": spending.epsilon, **delta, **more}
