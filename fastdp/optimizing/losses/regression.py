"""Losses whose labels are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from ...support.checks import moderate
from .base import REAL, MarginLoss, bound_or_none


@dataclass(frozen=True, repr=False)
class SquaredError(MarginLoss):
    """(<w, x> - y)^2: linear regression.

    Parameters
    ----------
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.
    y_bound : float > 0, optional
        Labels are at most this in magnitude.

    Examples
    --------
    >>> from fastdp import losses, sets
    >>> losses.SquaredError(x_norm=1.0, y_bound=2.0).lipschitz(sets.Ball(1.0).of_dimension(3))
    6.0
    """

    x_norm: float | None = None
    y_bound: float | None = None
    labels: ClassVar[str | None] = REAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))
        object.__setattr__(self, "y_bound", bound_or_none("y_bound", self.y_bound))

    @property
    def label_bound(self) -> float:
        """Labels are at most this in magnitude."""
        return inf if self.y_bound is None else self.y_bound

    def declared_label(self) -> float:
        """y_bound; MissingBound if it was not declared."""
        if self.y_bound is None:
            self._needs("y_bound")
        return self.y_bound

    def score_lipschitz(self, largest: float) -> float:
        return 2 * (largest + self.declared_label())

    def score_range(self, largest: float) -> float:
        # of (s - y)^2 over s in [-m, m] at y = b: down to 0 if the label can be reached, else the parabola's rise
        b = self.declared_label()
        return (largest + b) ** 2 if b <= largest else 4 * largest * b

    def score_excess(self, at: float, largest: float) -> float:
        return (at + self.declared_label()) ** 2 - max(0.0, self.declared_label() - largest) ** 2

    def score_smoothness(self) -> float:
        return 2.0


@dataclass(frozen=True, repr=False)
class Huber(MarginLoss):
    """r^2 for |r| <= threshold and threshold (2 |r| - threshold) beyond, r = <w, x> - y: robust regression.

    Parameters
    ----------
    threshold : float > 0
        Where the parabola becomes a line.
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.
    """

    threshold: float = 1.0
    x_norm: float | None = None
    labels: ClassVar[str | None] = REAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", moderate("threshold", self.threshold, toward=inf))
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    @property
    def parameter(self) -> float:
        """The threshold."""
        return self.threshold

    def score_lipschitz(self, largest: float) -> float:
        return 2 * self.threshold

    def score_range(self, largest: float) -> float:
        return 4 * self.threshold * largest  # a Lipschitz constant of 2 threshold, over 2 largest

    def score_smoothness(self) -> float:
        return 2.0
