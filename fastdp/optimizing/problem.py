"""What is minimised: a loss over a set, from a start; and the records it is minimised over."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..support import parameters
from ..support.errors import warn_of_accuracy
from ..support.parameters import OUTSIDE as OUTSIDE
from ..support.parameters import Outside as Outside
from ..support.shown import shown
from .losses import Loss, MissingBound, parts_of
from .points import Points
from .sets import ConvexSet, Projection, Vector, given_point, nearest, point_of, projection_of


@dataclass(frozen=True)
class Problem:
    """A loss with its regularisers, L2 by lam and L1 by l1, over a set of known dimension, from a start."""

    loss: Loss
    lam: float
    over: ConvexSet
    start: Vector
    l1: float = 0.0

    @classmethod
    def of(cls, loss: Any, over: Any, d: int, start: ArrayLike | None = None) -> Problem:
        """Check the parameters for a w of d coordinates."""
        of_record, lam, l1 = parts_of(loss)
        if not isinstance(over, ConvexSet):
            raise ValueError(f"over={shown(over)}: must be one of fastdp.sets, such as fastdp.sets.Ball(1.0)")
        declared = getattr(over, "dimension", None)
        if of_record.sized != Loss.sized and declared is not None and declared != d:
            raise ValueError(f"over={over!r}: has dimension {declared}: must be {d}, {of_record.sized}")
        over = over.of_dimension(d)
        if l1 and not over.takes_l1:
            raise ValueError(f"loss: L1 over {over!r}: must be over a Box, or a Ball around 0")
        if start is None:
            return cls(of_record, lam, over, given_point(over, "center", over.center, d), l1)
        at = point_of("start", start)
        if at.size != d:
            raise ValueError(f"start: {at.size} coordinates: must be {d}, {of_record.sized}")
        if not over.contains(at):
            raise ValueError(f"start: must lie in the set that is minimised over, {over!r}")
        return cls(of_record, lam, over, at, l1)

    @property
    def projection(self) -> Projection | None:
        """How compiled loops project onto the set; None if they do not."""
        found = projection_of(self.over, self.start.size)
        return found if found is None else found._replace(l1=self.l1)

    def nearest(self, w: Vector, rate: float = 1.0) -> Vector:
        """The point u of the set with the least ||u - w||^2 / 2 + rate l1 |u|_1: descent.md, theorem 7."""
        return nearest(w, self.over, rate * self.l1)

    def penalty(self, w: Vector) -> float:
        """What the regularisers come to at a point."""
        return self.lam / 2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    @property
    def steepest_l1(self) -> float:
        """The Lipschitz constant of the L1 regulariser."""
        return self.l1 * sqrt(self.start.size)

    @property
    def radius(self) -> float:
        """No minimiser is further from the start; more than 0, also where the set is one point."""
        return max(self.over.reach(self.start), 2.0**-400)

    @property
    def ridge(self) -> float:
        """The regulariser's gradient is at most this long."""
        return self.lam * self.over.norm if self.lam else 0.0

    def lipschitz(self) -> float | None:
        """Of the loss of a record, if the declared bounds imply it."""
        try:
            return self.loss.lipschitz(self.over)
        except MissingBound:
            return None

    def lipschitz_or_error(self, instead: str) -> float:
        """Of the loss of a record; an error states which bound is missing, and what may be given in its place."""
        try:
            return self.loss.lipschitz(self.over)
        except MissingBound as missing:
            raise MissingBound(f"{missing}; or give {instead}=") from None

    def varies(self) -> float:
        """The mean loss and the regulariser vary by no more over the set; inf if the declared bounds imply none."""
        try:
            return self.loss.range(self.over) + self.lam / 2 * self.over.norm**2 + self.steepest_l1 * self.over.norm
        except MissingBound:
            return float("inf")

    def start_excess(self) -> float:
        """The objective at the start exceeds the least one by at most this; inf if the declared bounds imply none."""
        try:
            return self.loss.start_excess(self.start, self.over) + self.penalty(self.start)
        except MissingBound:
            return float("inf")

    def warn_if_vacuous(self, bound: float | None) -> None:
        """An AccuracyWarning where a bound promises no more than the start does, which costs nothing."""
        if bound is not None and bound >= (known := self.start_excess()):
            warn_of_accuracy(
                f"the error bound, {bound:.3g}, says nothing: the start, a public point, is within {known:.3g} of the "
                "least loss; more records, a larger epsilon or a smaller set would"
            )

    def curvature(self) -> float:
        """Of the mean loss and the regulariser: inf where it has a corner, or the declared bounds imply none."""
        try:
            return self.loss.curvature() + self.lam
        except MissingBound:
            return float("inf")


def read_points(
    X: Any,
    y: Any,
    loss: Any,
    over: Any,
    start: ArrayLike | None = None,
    outside: parameters.Outside = "raise",
    records: int | None = None,
) -> tuple[Points, Problem]:
    """The records, checked, and what is to be minimised of them."""
    of_record, _, _ = parts_of(loss)
    outside = parameters.outside(outside)
    points = Points(X, y, of_record, outside, may_be_empty=records is not None)
    return points, Problem.of(loss, over, points.d, start)
