"""How choices of different weight share epsilon and delta: what each of them may use, and what they cost together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ..privacy.composition import compose
from ..privacy.guarantees import ApproxDP, BoundedRange, Guarantee, PureDP
from ..support.rounding import down, lower, up
from ..support.search import greatest_float
from .privacy_parameters import PrivacyParameters


class Step(NamedTuple):
    """So many choices that may each use so many units of range."""

    weight: int
    times: int = 1


@dataclass(frozen=True)
class UnequalShares:
    """The range of a unit, and the guarantee of all steps together."""

    unit: float
    score_range: int
    guarantee: Guarantee

    @classmethod
    def of(cls, privacy: PrivacyParameters, steps: Sequence[Step], *, count: float = 0.0) -> UnequalShares:
        """The largest unit with which all steps keep within epsilon and delta.

        steps    draws of bounded range, in the relation of `privacy`
        count    the epsilon of one more release, of Laplace noise: that of `privacy` times a power of two
        """
        counts = [PureDP(count, neighbors=privacy.neighbors)] if count else []
        plain = down((lower(privacy.epsilon) - Fraction(count)) / sum(step.weight * step.times for step in steps))
        unit = max(plain, _largest_unit(privacy, tuple(steps), count, plain)) if privacy.delta else plain
        parts: list[Guarantee | tuple[Guarantee, int]] = [
            (BoundedRange(up(Fraction(unit) * step.weight), neighbors=privacy.neighbors), step.times) for step in steps
        ]
        shares = cls(unit, privacy.score_range, privacy.guarantee & compose(*parts, *counts).to_zcdp())
        for step in steps:
            eta = shares.eta(step)
            if not 2.0**-900 <= eta <= 2.0**900:
                raise ValueError(
                    f"epsilon={privacy.epsilon!r}: must be such that the factor of the scores, {eta!r}, is between "
                    "2^-900 and 2^900"
                )
        return shares

    def eta(self, step: Step) -> float:
        """The weight of a score that counts records in one choice of a step."""
        return down(Fraction(self.unit) * step.weight / self.score_range)


@lru_cache(256)  # searches for a number of records ask again and again
def _largest_unit(privacy: PrivacyParameters, steps: tuple[Step, ...], count: float, guess: float) -> float:
    epsilon, delta = privacy.allowance
    whole, counts = ApproxDP(epsilon, delta), [PureDP(count)] if count else []

    def fits(unit: float) -> bool:
        each = [(BoundedRange(up(Fraction(unit) * step.weight)), step.times) for step in steps]
        try:
            return compose(*each, *counts, delta=delta).implies(whole)
        except ValueError:
            return False

    return greatest_float(fits, guess=guess, tolerance=1e-4)
