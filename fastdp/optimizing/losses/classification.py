"""Losses whose labels are two classes."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np

from .base import SIGN, Floats, MarginLoss, bound_or_none


@dataclass(frozen=True, repr=False)
class Logistic(MarginLoss):
    """ln(1 + e^(-y <w, x>)), y = -1 or 1 (or 0 or 1): logistic regression.

    Parameters
    ----------
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.
    """

    x_norm: float | None = None
    labels: ClassVar[str | None] = SIGN

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    # in numpy, too: compiled loops end at scores of 700, these keep all digits beyond
    def value(self, score: Floats, label: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -label * score))

    def derivative(self, score: Floats, label: Floats) -> Floats:
        return np.asarray(-label * np.exp(-np.logaddexp(0.0, label * score)))

    def score_lipschitz(self, largest: float) -> float:
        return 1 / (1 + exp(-min(largest, 700.0)))

    def score_range(self, largest: float) -> float:
        return largest  # ln(1 + e^m) - ln(1 + e^-m)

    def score_excess(self, at: float, largest: float) -> float:
        return float(np.logaddexp(0.0, at) - np.logaddexp(0.0, -largest))

    def score_smoothness(self) -> float:
        return 0.25


@dataclass(frozen=True, repr=False)
class Hinge(MarginLoss):
    """max(0, 1 - y <w, x>), y = -1 or 1 (or 0 or 1): the support vector machine.

    Parameters
    ----------
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.
    """

    x_norm: float | None = None
    labels: ClassVar[str | None] = SIGN

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    @property
    def has_corners(self) -> bool:
        """Whether the gradient jumps."""
        return True

    def smooth_derivative(self, score: Floats, label: Floats, width: float) -> Floats:
        # of min xi - width (ln xi + ln(xi - u)) for max(0, u): as interior-point methods have it, Newton's method
        # follows it from width to width in a few steps; of a corner that is a parabola it loses sight
        v = (1 - label * score) / width
        return np.asarray(-label * (0.5 + v / (2 * (np.sqrt(v * v + 4) + 2))))

    def score_lipschitz(self, largest: float) -> float:
        return 1.0

    def score_range(self, largest: float) -> float:
        return min(2 * largest, 1 + largest)

    def score_excess(self, at: float, largest: float) -> float:
        return 1 + at - max(0.0, 1 - largest)
