"""What every loss knows: the base classes are the checklist for a new one.

Two families. A *margin* loss is phi(<w, x>, y): its gradient is phi' x, so one number clips it. A *distance* loss
compares w with the record itself. Every constant (Lipschitz constant, smoothness, range) is computed from the set and
from bounds that the caller declares; where a bound is needed and missing, that is an error; records are not read for
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...support.checks import moderate
from ..sets import ConvexSet
from .regularised import L1, L2, Regularised
from .row import row_of

Floats = NDArray[np.float64]

REAL, SIGN, CLASS = "real", "sign", "class"  # what labels are: any number; one of two classes; one of 0, 1, 2 ..
MARGIN, DISTANCE, DEVIATION, CLASSES, GIVEN = "margin", "distance", "deviation", "classes", "given"  # families


class MissingBound(ValueError):
    """A constant of a loss needs a bound that was not declared."""


class Summand(ABC):
    """What is summed of every record: the gradient of its loss, or the point itself.

    labels    "real", "sign" (two classes), "class" (several) or None (there are no labels)
    family    what the record contributes, but for a factor: "margin" its point, "distance" its difference from w,
              "deviation" the signs of that, "classes" its point for each class; "given" a vector of its own
    sized     why w has as many coordinates as it has
    x_norm    the L2 norm of the points is at most this: the caller's declaration
    """

    labels: ClassVar[str | None] = None
    family: ClassVar[str] = MARGIN
    sized: ClassVar[str] = "as the records have columns"
    x_norm: float | None

    def dimension(self, columns: int) -> int:
        """Count the coordinates of w.

        Parameters
        ----------
        columns : int
            How many the records' points have.

        Returns
        -------
        int
            As many as a gradient has.
        """
        return columns

    @property
    @abstractmethod
    def number(self) -> int:
        """Which formula of kernels/losses.py has the factor."""

    @property
    def parameter(self) -> float:
        """The one number that the formula may have: the threshold of Huber, the factor of a difference."""
        return 0.0

    @property
    def address(self) -> int:
        """Where the derivative is, if it is no formula of kernels/losses.py."""
        return 0

    @property
    def label_bound(self) -> float:
        """Labels are at most this in magnitude."""
        return inf


class Loss(Summand):
    """The loss of one record; `+ L2(lam)` and `+ L1(lam)` add regularisers.

    convex   whether it is convex in w, as it has to be for a bound on the excess risk
    """

    convex: bool = True

    @property
    def number(self) -> int:
        """The number of its formula in compiled loops and in C."""
        return row_of(self).number

    @property
    def address(self) -> int:
        """Where its derivative is, if that stands in its row; else 0."""
        compiled = row_of(self).compiled_derivative
        return 0 if compiled is None else int(compiled.address)

    @property
    def value_address(self) -> int:
        """Where its value is, if that stands in its row; else 0."""
        compiled = row_of(self).compiled_value
        return 0 if compiled is None else int(compiled.address)

    def check_value(self) -> None:
        """ValueError if it cannot be evaluated at many points."""
        if not row_of(self).has_value:
            raise ValueError(f"loss={self!r}: has no compiled value: must have one in its row, to be evaluated")

    @abstractmethod
    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        """Evaluate the loss of every record.

        Parameters
        ----------
        w : numpy.ndarray
            The point, of d coordinates.
        X : numpy.ndarray
            The records' points, one a row.
        y : numpy.ndarray or None
            Their labels, if the loss has labels.

        Returns
        -------
        numpy.ndarray
            A loss for each record.
        """

    @abstractmethod
    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        """Compute the gradient of every record, not clipped.

        Parameters
        ----------
        w : numpy.ndarray
            The point, of d coordinates.
        X : numpy.ndarray
            The records' points, one a row.
        y : numpy.ndarray or None
            Their labels, if the loss has labels.

        Returns
        -------
        numpy.ndarray
            A gradient a row.
        """

    @abstractmethod
    def lipschitz(self, over: ConvexSet) -> float:
        """Bound the norms of gradients.

        Parameters
        ----------
        over : ConvexSet
            A set of known dimension.

        Returns
        -------
        float
            No gradient at a point of the set is longer, for records within the declared bounds.
        """

    @abstractmethod
    def curvature(self) -> float:
        """Bound the smoothness.

        Returns
        -------
        float
            Gradients at points that are t apart differ by at most so many times t; inf where the loss has a corner.
        """

    @abstractmethod
    def range(self, over: ConvexSet) -> float:
        """Bound how much the loss of one record varies.

        Parameters
        ----------
        over : ConvexSet
            A set of known dimension.

        Returns
        -------
        float
            No record within the declared bounds has losses at two points of the set that are further apart.
        """

    def start_excess(self, start: Floats, over: ConvexSet) -> float:
        """Bound by how much the loss at a point exceeds the least one of the set.

        Parameters
        ----------
        start : numpy.ndarray
            The point, which lies in the set.
        over : ConvexSet
            A set of known dimension.

        Returns
        -------
        float
            No record within the declared bounds loses more at the point, above its least loss in the set.
        """
        return min(self.range(over), self.lipschitz(over) * over.reach(start))

    @property
    def has_corners(self) -> bool:
        """Whether the gradient jumps."""
        return False

    @abstractmethod
    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        """Sum the gradients with their jumps smoothed, for minimisers that are not private.

        Parameters
        ----------
        w : numpy.ndarray
            The point.
        X : numpy.ndarray
            The records' points, one a row.
        y : numpy.ndarray
            Their labels.
        width : float
            How wide a corner is made.

        Returns
        -------
        numpy.ndarray
            The sum, of d coordinates.
        """

    @abstractmethod
    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        """Bound the smoothness of the summed loss, corners rounded off.

        Parameters
        ----------
        X : numpy.ndarray
            The records' points, one a row.
        width : float
            How wide a corner is made.

        Returns
        -------
        numpy.ndarray
            The bound, a scalar.
        """

    def __add__(self, other: Any) -> Regularised:
        return Regularised(self, L2(0.0)) + other if isinstance(other, L1 | L2) else NotImplemented

    def _needs(self, name: str) -> NoReturn:
        raise MissingBound(f"loss: {self!r} needs {name}=, the bound that the records keep")

    def declared_norm(self) -> float:
        """x_norm; MissingBound if it was not declared."""
        if self.x_norm is None:
            self._needs("x_norm")
        return self.x_norm

    def __repr__(self) -> str:
        parameters = [f"{name}={value:g}" for name, value in vars(self).items() if isinstance(value, float)]
        return f"{type(self).__name__}({', '.join(parameters)})"


class MarginLoss(Loss):
    """phi(<w, x>, y); phi and its derivative are the formula of its row."""

    @abstractmethod
    def score_lipschitz(self, largest: float) -> float:
        """Bound the derivative of phi.

        Parameters
        ----------
        largest : float
            Scores are at most this in magnitude.

        Returns
        -------
        float
            The largest |phi'|.
        """

    @abstractmethod
    def score_range(self, largest: float) -> float:
        """Bound how much phi varies.

        Parameters
        ----------
        largest : float
            Scores are at most this in magnitude.

        Returns
        -------
        float
            No two values of phi at such scores are further apart.
        """

    def score_excess(self, at: float, largest: float) -> float:
        """Bound by how much phi at one score exceeds its least value.

        Parameters
        ----------
        at : float
            The score is at most this in magnitude.
        largest : float
            So are those among which the least value is.

        Returns
        -------
        float
            No label within the declared bound has a larger difference.
        """
        return min(self.score_range(largest), self.score_lipschitz(largest) * (at + largest))

    def score_smoothness(self) -> float:
        """The largest phi''; inf where there is a corner."""
        return inf

    def best_scores(self, labels: Floats, largest: Floats) -> Floats:
        """The scores up to `largest` in magnitude at which phi is least: of the label's sign, or next to the label."""
        return labels * largest if self.labels == SIGN else np.clip(labels, -largest, largest)

    def value(self, score: Floats, label: Floats) -> Floats:
        """Evaluate phi, entry by entry.

        Parameters
        ----------
        score : numpy.ndarray
            The scores <w, x>.
        label : numpy.ndarray
            The labels.

        Returns
        -------
        numpy.ndarray
            The losses.
        """
        from ...kernels.losses import losses_into

        self.check_value()
        return _entrywise(losses_into, self.number, self.parameter, self.value_address, score, label)

    def derivative(self, score: Floats, label: Floats) -> Floats:
        """Evaluate phi' in the score, entry by entry.

        Parameters
        ----------
        score : numpy.ndarray
            The scores <w, x>.
        label : numpy.ndarray
            The labels.

        Returns
        -------
        numpy.ndarray
            The derivatives.
        """
        from ...kernels.losses import derivatives_into

        return _entrywise(derivatives_into, self.number, self.parameter, self.address, score, label)

    def smooth_derivative(self, score: Floats, label: Floats, width: float) -> Floats:
        """Evaluate phi' with its jumps rounded off.

        Parameters
        ----------
        score : numpy.ndarray
            The scores <w, x>.
        label : numpy.ndarray
            The labels.
        width : float
            How wide a jump is made.

        Returns
        -------
        numpy.ndarray
            The derivatives.
        """
        return self.derivative(score, label)

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return self.value(X @ w, given_labels(y))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(self.derivative(X @ w, given_labels(y))[:, None] * X)

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(self.smooth_derivative(X @ w, y, width) @ X)

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        # <x, v>^2 <= ||x||^2 for every direction v: a bound that needs no eigenvalues
        smoothness = self.score_smoothness()
        each = smoothness if smoothness < inf else 1 / max(width, 1e-8)
        return np.asarray(each * np.einsum("ij,ij->", X, X))

    def lipschitz(self, over: ConvexSet) -> float:
        norm = self.declared_norm()
        return self.score_lipschitz(norm * over.norm) * norm

    def curvature(self) -> float:
        return self.score_smoothness() * self.declared_norm() ** 2

    def range(self, over: ConvexSet) -> float:
        return self.score_range(self.declared_norm() * over.norm)

    def start_excess(self, start: Floats, over: ConvexSet) -> float:
        norm = self.declared_norm()
        largest = self.score_excess(norm * float(np.linalg.norm(start)), norm * over.norm)
        return min(largest, super().start_excess(start, over))


class DistanceLoss(Loss):
    """A loss of w - x."""

    family: ClassVar[str] = DISTANCE

    @property
    def parameter(self) -> float:
        """The factor of w - x in the gradient."""
        return 2.0


def bound_or_none(name: str, value: float | None) -> float | None:
    """A declared bound, rounded up; None if there is none."""
    return None if value is None else moderate(name, value, toward=inf)


def given_labels(y: Floats | None) -> Floats:
    """Labels; ValueError if there are none."""
    if y is None:
        raise ValueError("y=None: must be the labels, which this loss has")
    return y


def _entrywise(kernel: Any, number: int, parameter: float, address: int, score: Floats, label: Floats) -> Floats:
    scores, labels = np.broadcast_arrays(np.asarray(score, np.float64), np.asarray(label, np.float64))
    out = np.empty(scores.size)
    kernel(number, parameter, address, scores.ravel().copy(), labels.ravel().copy(), out)
    return out.reshape(scores.shape)
