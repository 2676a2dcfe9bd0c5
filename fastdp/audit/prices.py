"""What a release costs on two inputs, from what it reads and the noise that it adds: never more than it charges.

Laplace noise of scale b on a vector that moved by x in L1 loses x/b; Gaussian noise x^2/(2 sigma^2) in zCDP; a choice
by eta * score the range of the moves times eta. These add up over a release, whatever it releases (audit.md, lemma 2).
A sum beyond the charge shows that too little noise was drawn for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from ..privacy.guarantees import Guarantee
from ..randomness.noise_plans import GaussianPlan, LaplacePlan
from .differences import Moved

_SLACK = 1 + 2.0**-30  # of scales, and of floats that a user computes


def declared_norm(law: Any, moved: Moved) -> tuple[str, float]:
    """The norm in which a sensitivity is declared for this noise, and the move in it."""
    if isinstance(law, LaplacePlan):
        return "L1", moved.l1
    if isinstance(law, GaussianPlan):
        return "L2", moved.l2
    return "Linf", moved.linf


@dataclass
class Price:
    """What one release costs at least."""

    pure: float = 0.0  # of Laplace noise and choices
    rho: float = 0.0  # of Gaussian noise
    _choice: Moved | None = field(default=None, repr=False)
    _of_choice: float = field(default=0.0, repr=False)

    def add(self, law: Any, moved: Moved, unit: float, times: int, *, again: bool) -> str:
        """What this read costs, in words. `again` if it is a further block of the same choice."""
        if isinstance(law, LaplacePlan):
            cost = moved.l1 / (unit * law.scale)
            self.pure += times * cost
            return f"epsilon {times * cost:.4g}"
        if isinstance(law, GaussianPlan):
            cost = (moved.l2 / (unit * law.sigma)) ** 2 / 2
            self.rho += times * cost
            return f"rho {times * cost:.4g}"
        if isinstance(law, float | Fraction):
            if again and self._choice is not None:
                moved = moved.with_more(self._choice)
            else:
                self._of_choice = 0.0
            cost = times * float(law) * (moved.high - moved.low)
            self.pure += cost - self._of_choice
            self._choice, self._of_choice = moved, cost
            return f"epsilon {cost:.4g}"
        return ""

    def beyond(self, guarantee: Guarantee) -> str:
        """What is wrong with a charge of this guarantee; empty if nothing is, or nothing follows."""
        forms = [form for form in guarantee.forms() if form.leak == 0]
        pure = min((form.pure for form in forms), default=inf)
        rho = min((form.rho for form in forms), default=inf)
        if not self.rho and self.pure > pure * _SLACK:
            return f"its noise costs epsilon={self.pure:.6g} on these inputs, and {guarantee} is charged"
        if self.rho and pure < inf:
            return f"its noise is Gaussian, which no epsilon without a delta pays for, and {guarantee} is charged"
        if self.rho > rho * _SLACK:
            return f"its noise costs rho={self.rho:.6g} on these inputs, and {guarantee} is charged"
        return ""
