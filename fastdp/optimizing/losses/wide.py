"""What losses share whose gradient is no multiple of the record's point, or of its difference from w.

A family of their own sums them (../families.py). They have no number in C, and are not evaluated at the points of a
net: of their parameter's dimension only descents take any.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from .base import Floats, Loss


class WideLoss(Loss):
    """A loss with a family of its own."""

    @property
    def number(self) -> int:
        """None in kernels/losses.py."""
        return 0

    @property
    def address(self) -> int:
        """None, but for functions of the user's own."""
        return 0

    @property
    def value_address(self) -> int:
        """None."""
        return 0

    def check_value(self) -> NoReturn:
        """ValueError: it is not evaluated at many points."""
        raise ValueError(f"loss={self!r}: must be a loss of one score or distance: a descent takes this one")

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(self.gradients(w, X, y).sum(axis=0))
