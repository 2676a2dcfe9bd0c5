"""Labels as losses take them, from labels as they were given: one function for each kind of label.

What becomes of a label depends on that label alone. One that does not fit is a DomainError, or the nearest that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ..records.labels import positives
from ..records.outside_domain import floats_of_objects, numbers_or_nan
from ..support.columns import Entries
from ..support.errors import DomainError
from .losses.base import CLASS, SIGN, Summand
from .sets import Vector

TOLERANCE = 1e-9  # by how much a norm or label may exceed its declared bound by the rounding of whoever scaled it


def labels_of(loss: Summand) -> str:
    """What labels must be, in words of an error."""
    if loss.labels == SIGN:
        return "0 and 1, or -1 and 1"
    return f"0 to {loss.label_bound:g}" if loss.labels == CLASS else "numbers"


@dataclass(frozen=True)
class LabelReading:
    """Labels as a loss takes them."""

    loss: Summand
    clip: bool

    def __call__(self, labels: Entries) -> Vector:
        return _nearest(self.loss, labels) if self.clip else _checked(self.loss, labels)


def _nearest(loss: Summand, labels: Entries) -> Vector:
    """0 takes the place of what is no number."""
    array = numbers_or_nan(labels)
    if loss.labels == SIGN:
        return np.where(array == 1, 1.0, -1.0)
    array = np.where(np.isnan(array), 0.0, array)
    if loss.labels == CLASS:
        return np.rint(np.clip(array, 0.0, loss.label_bound))
    bound = min(loss.label_bound, float(np.finfo(np.float64).max))
    return np.clip(array, -bound, bound)


def _checked(loss: Summand, labels: Entries) -> Vector:
    given = labels.complete()
    if given.dtype.kind == "O":  # of a list, say
        given = floats_of_objects(given, "raise", "y")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"y: dtype {given.dtype}: must be numbers")
    array = np.asarray(given, np.float64)
    largest = max(-float(array.min(initial=0.0)), float(array.max(initial=0.0)))  # NaN where there is one
    if not largest < inf:
        raise DomainError("y: must be finite; there is a NaN or an infinity among the labels")
    if loss.labels == SIGN:
        return np.where(positives(array), 1.0, -1.0)
    if loss.labels == CLASS:
        if not ((array >= 0) & (array <= loss.label_bound) & (array == np.rint(array))).all():
            raise DomainError(
                f"y: must be classes, which are the numbers {labels_of(loss)}; there are others: outside='clip' takes "
                "the nearest class"
            )
        return array
    if loss.label_bound < inf:
        if largest > loss.label_bound * (1 + TOLERANCE):
            raise DomainError(
                f"y: must be at most y_bound={loss.label_bound:g} in magnitude; there are others: outside='clip' "
                "brings them back"
            )
        if largest > loss.label_bound:  # else the user's own array will do
            array = np.clip(array, -loss.label_bound, loss.label_bound)
    return array
