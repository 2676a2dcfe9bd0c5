"""What an audit of ours is: a mechanism on the two neighbouring inputs that should cost it the most, in one list.

The same rows feed `fastdp.audit.lower_bound` in the tests, an auditor of another library (tests/peers), and the page
docs/audits.md. Each states how much of its claim has to be seen in CI, and variants that have to be refuted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...privacy.guarantees import Guarantee

Outputs = NDArray[Any]
Many = Callable[[Any, int], Outputs]  # so many independent outputs on an input, one a row


@dataclass(frozen=True)
class Accuracy:
    """The error that a bound allows with probability 1 - beta, and the errors of outputs on the first input."""

    bound: float
    errors: Callable[[Outputs], NDArray[np.float64]]
    beta: float = 0.05


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
    score: Callable[[Outputs], NDArray[np.float64]]
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


def looped(call: Callable[[Any], Any]) -> Many:
    """One call after the other."""
    return lambda data, count: np.array([call(data) for _ in range(count)])
