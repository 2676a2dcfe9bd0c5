"""The guard of a learner: its last choice, among "true", "false" and parts of what was found, by their errors.

A method whose error bound needs that some hypothesis fits all records says nothing of labels that are wrong. The guard
does: whatever the labels, the result is hardly worse than a constant. It has a part of epsilon. guard.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.selection import draw_one
from ..privacy.composition import compose
from ..privacy.guarantees import BoundedRange, Guarantee
from ..randomness.keys import Key
from ..support.rounding import down, lower
from .privacy_parameters import PrivacyParameters

SHARE = 2.0**-4  # of epsilon, a power of two so that the product is exact; of the method's error it costs a 15th


@dataclass(frozen=True)
class Guard:
    """A choice by errors; `epsilon` is its part and `eta` the weight of an error."""

    epsilon: float
    eta: float
    guarantee: BoundedRange

    def slack(self, candidates: int, beta: float) -> float:
        """By how many errors the chosen one may exceed the best of so many, but with probability beta: theorem 2."""
        return slack(self.eta, candidates, beta)

    def draw(self, errors: Sequence[int] | NDArray[np.int64], key: Key) -> int:
        """The place of the chosen candidate; "true" and "false" are to be among them."""
        return draw_one(-np.asarray(errors, np.int64), key, self.eta)


def slack(eta: float, candidates: int, beta: float) -> float:
    """Theorem 2: the others weigh at most e^(-eta t) of the best, each."""
    return max(0.0, log(max(candidates - 1, 1)) - log(beta)) / eta


def split(privacy: PrivacyParameters) -> tuple[PrivacyParameters, Guard]:
    """What is left for the method, with half of beta, and the guard: theorem 1."""
    part = privacy.epsilon * SHARE
    rest = privacy.part(down(lower(privacy.epsilon) - Fraction(part)), beta=privacy.beta / 2)
    eta = replace(privacy.part(part), delta=0.0).eta(1)
    return rest, Guard(part, eta, BoundedRange(part, neighbors=privacy.neighbors))


def together(privacy: PrivacyParameters, method: Guarantee, guard: Guard) -> Guarantee:
    """The guarantee of a method and its guard: all of epsilon and delta, and in concentrated privacy what follows."""
    try:
        return privacy.guarantee & compose(method, guard.guarantee).to_zcdp()
    except ValueError:  # Gaussian noise that was calibrated to a delta alone
        return privacy.guarantee
