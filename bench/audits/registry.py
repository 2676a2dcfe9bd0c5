"""What an audit of ours is: a mechanism on the two neighbouring inputs that should cost it the most, in one list.

The same rows feed `fastdp.audit.lower_bound` in the tests, an auditor of another library (tests/peers), and the page
docs/audits.md. Each states how much of its claim has to be seen in CI, and variants that have to be refuted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...audit.intervals import lower_limit
from ...privacy.guarantees import Guarantee

Outputs = NDArray[Any]
Floats = NDArray[np.float64]
Many = Callable[[Any, int], Outputs]  # so many independent outputs on an input, one a row
Score = Callable[[Outputs], Floats]


@dataclass(frozen=True)
class Accuracy:
    """The error that a bound allows, and the errors of outputs.

    bound      with probability 1 - beta; where beta is None, of the mean of errors
    errors     one for each output
    data       the input of these outputs, if it is not that of the audit: on few records most bounds say nothing
    """

    bound: float
    errors: Score
    beta: float | None = 0.05
    data: Any = None

    def achieved(self, errors: Floats) -> float:
        """What stands beside the bound: above it by chance, too, where the bound is exact."""
        return float(errors.mean() if self.beta is None else np.quantile(errors, 1 - self.beta))

    def exceeded(self, errors: Floats, confidence: float) -> bool:
        """Whether errors say that the bound is wrong; of a right one they do with probability 1 - confidence.

        Of a mean by Bernstein's inequality as it is for the sample's variance (Maurer and Pontil 2009, theorem 4), for
        errors between 0 and the largest that was seen or the bound.
        """
        n = len(errors)
        if self.beta is not None:
            return lower_limit(int(np.count_nonzero(errors > self.bound)), n, 1 - confidence) > self.beta
        log_term = log(2 / (1 - confidence))
        width = float(max(errors.max(), self.bound))
        away = sqrt(2 * float(errors.var(ddof=1)) * log_term / n) + 7 * width * log_term / (3 * (n - 1))
        return float(errors.mean()) - away > self.bound


@dataclass(frozen=True)
class Audit:
    """One mechanism, and what has to be seen of it.

    score      a number for each output, large where the first input is likely: for auditors that take one number
    sees       the lower bound, in the terms of the claim, that `runs` outputs have to show
    once       the same mechanism one output at a time, where `many` is a way of its own to draw
    mutants    not private as claimed: each has to be refuted by as many runs
    """

    name: str
    claimed: Guarantee
    many: Many
    data: Any
    neighbor: Any
    score: Score
    sees: float
    runs: int = 100_000
    accuracy: Accuracy | None = None
    once: Callable[[Any], Any] | None = None
    mutants: Mapping[str, Many] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def parameter(self) -> str:
        """The parameter of the claim that bounds are compared with."""
        return next(name for name in ("epsilon", "mu", "rho") if hasattr(self.claimed, name))

    @property
    def claims(self) -> float:
        """Its value."""
        return float(getattr(self.claimed, self.parameter))

    def errors(self, count: int) -> Floats | None:
        """The errors of so many outputs, where a bound speaks of them."""
        if self.accuracy is None:
            return None
        data = self.data if self.accuracy.data is None else self.accuracy.data
        return self.accuracy.errors(self.many(data, count))


def looped(call: Callable[[Any], Any]) -> Many:
    """One call after the other."""
    return lambda data, count: np.array([call(data) for _ in range(count)])


def distance(center: Any) -> Score:
    """How far each output is from it; of arrays, the entry that is farthest."""

    def errors(outputs: Outputs) -> Floats:
        away = np.abs(np.asarray(outputs, np.float64) - center)
        return np.asarray(away.reshape(len(away), -1).max(axis=1))

    return errors


def equals(value: int) -> Score:
    """1 where the output is the value."""
    return lambda outputs: (outputs == value).astype(np.float64)


def falls(outputs: Outputs) -> Floats:
    """Outputs that are small where the first input is likely."""
    return -outputs.astype(np.float64)
