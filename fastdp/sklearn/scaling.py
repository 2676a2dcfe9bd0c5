"""Columns scaled by public numbers so that rows are in the unit ball, and coefficients scaled back.

Noise goes by the norm of rows, so a column in hundreds beside one in tenths would drown it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from ..support import parameters
from ..support.checks import moderate
from ..support.errors import DomainError
from .base import Floats, bounds_of, missing, within

_FURTHEST = 2.0**400  # in units of the norm, itself between 2^-400 and 2^400
_TOLERANCE = 1e-9  # by how much a norm may exceed its bound by the rounding of whoever scaled it


@dataclass(frozen=True)
class Scaling:
    """z = (x - center) / half, and rows of it of norm at most 1; with an intercept also a column of ones.

    lower, upper   of the columns, if they are declared
    norm           of rows of (x - center) / half_width
    half           half_width times norm
    """

    lower: Floats | None
    upper: Floats | None
    center: Floats
    half: Floats
    norm: float
    intercept: bool

    @classmethod
    def of(cls, bounds: Any, data_norm: Any, d: int, intercept: bool) -> Scaling:
        """Columns to [-1, 1] by their bounds, rows to norm 1 by `data_norm`, by default sqrt(d)."""
        norm = None if data_norm is None else moderate("data_norm", data_norm, toward=inf)
        if bounds is None:
            if norm is None:
                missing("bounds", "(lower, upper) of the columns, or data_norm= of the rows")
            return cls(None, None, np.zeros(d), np.full(d, norm), norm, intercept)
        lower, upper = bounds_of("bounds", bounds, d)
        center, width = middle(lower, upper, intercept)
        norm = sqrt(d) if norm is None else norm
        return cls(lower, upper, center, width * norm, norm, intercept)

    @property
    def x_norm(self) -> float:
        """Of the scaled rows."""
        return sqrt(2.0) if self.intercept else 1.0

    def rows(self, X: Floats, outside: str) -> Floats:
        """Scaled records; DomainError for those beyond the bounds, unless they are to be clipped."""
        parameters.outside(outside)
        if self.lower is not None and self.upper is not None:
            X = within(X, self.lower, self.upper, outside)
        else:  # rows that far out would overflow, with a warning of numpy's; only their direction matters
            X = np.nan_to_num(X)  # which the caller has refused, or wants to be clipped
            X = X / np.maximum(1.0, np.abs(X / (_FURTHEST * self.half)).max(axis=1))[:, None]
        Z = (X - self.center) / self.half
        norms = np.linalg.norm(Z, axis=1)
        if outside == "raise" and (norms > 1 + _TOLERANCE).any():
            raise DomainError(
                f"X: rows must have norm at most data_norm={self.norm:g} (after scaling by bounds, if there are any); "
                "there are others: outside='clip' brings them back"
            )
        Z /= np.maximum(1.0, norms)[:, None]
        return np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z

    def back(self, w: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for records as they were."""
        d = len(self.center)
        coefficients = w[:d] / self.half
        return coefficients, float(w[d] - self.center @ coefficients) if self.intercept else 0.0


def middle(lower: Floats, upper: Floats, intercept: bool) -> tuple[Floats, Floats]:
    """What to subtract and to divide by; without an intercept to take it up, nothing is subtracted."""
    if intercept:
        return (lower + upper) / 2, (upper - lower) / 2
    return np.zeros_like(lower), np.maximum(np.abs(lower), np.abs(upper))
