"""Who pays for the steps of a run, and when: all at once when it is made, or each as it begins.

Where every budget that is charged adds up rhos (or there is no delta), a step that never begins is never paid for.
multiplicative_weights_measured.md, theorem 1, says why prices may be charged so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.reservations import Payers
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness, fresh_key
from .multiplicative_weights_price import Share, Total

NAME = "PrivateMultiplicativeWeights"


def pay_in_steps(payers: Payers, delta: float) -> bool:
    """Whether all of these add up what steps cost: shares of rho, or of epsilon where there is no delta."""
    return bool(payers) and all(not delta or (each.delta and each.theorem in ("zcdp", "best")) for each in payers)


class Payments:
    """Steps of one price, in their order; those up to `paid` are paid for. The first costs `once` more."""

    def __init__(
        self, total: Total, once: Share, each: Share, paid: int, payers: Payers, listed: Mapping[str, Any],
        rng: Randomness | None,
    ) -> None:  # fmt: skip
        self._total, self._once, self._each, self.paid, self._payers = total, once, each, paid, payers
        self._listed, self._rng = dict(listed), rng

    def key(self, begun: int, count: int = 1) -> NDArray[np.uint32]:
        """A key for the noise of the next `count` steps, where so many have begun before; they are paid for first."""
        due = begun + count - self.paid
        if due <= 0:
            return fresh_key(self._rng)
        price = self._total.price(due * self._each + (Fraction(0) if self.paid else self._once))
        with ChargedKeys(NAME, price, self._listed | {"steps": due}, self._payers, self._rng) as keys:
            key = keys.take()
        self.paid += due  # after the charge: what is interrupted here was paid for and never begun
        return key

    def settle(self, begun: int) -> None:
        """Pay for the next step, where so many have begun before and it has not been paid for."""
        if begun >= self.paid:
            self.key(begun)
