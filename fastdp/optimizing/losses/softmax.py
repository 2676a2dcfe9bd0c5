"""The loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...support.checks import integer
from ..sets import ConvexSet
from .base import CLASS, CLASSES, Floats, bound_or_none, given_labels
from .wide import WideLoss

MOST_CLASSES = 2**16


@dataclass(frozen=True, repr=False)
class Softmax(WideLoss):
    """ln sum_c e^(<w_c, x> - <w_y, x>), y one of k classes: multinomial logistic regression.

    w has k rows of as many coefficients as the records have columns, one row behind the other: `coefficients(w)`
    shows them as rows. Of two classes it is Logistic at w_1 - w_0.

    Parameters
    ----------
    classes : int >= 2
        How many classes there are, which is public: labels are the numbers 0 .. classes - 1.
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, size=20_000)
    >>> X = np.array([[0.6, 0.0], [0.0, 0.6], [-0.4, -0.4]])[y] + rng.uniform(-0.2, 0.2, size=(20_000, 2))
    >>> loss = fastdp.losses.Softmax(3, x_norm=1.2)
    >>> fit = fastdp.private_erm(X, y, loss=loss, over=fastdp.sets.Ball(20), epsilon=1.0, delta=1e-6)
    >>> loss.coefficients(fit.w).shape
    (3, 2)
    >>> bool((loss.probabilities(fit.w, X).argmax(axis=1) == y).mean() > 0.95)
    True
    """

    classes: int
    x_norm: float | None = None
    labels: ClassVar[str | None] = CLASS
    family: ClassVar[str] = CLASSES
    sized: ClassVar[str] = "a column of the records for each class"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", integer("classes", self.classes, least=2, most=MOST_CLASSES))
        object.__setattr__(self, "x_norm", bound_or_none("x_norm", self.x_norm))

    def dimension(self, columns: int) -> int:
        return self.classes * columns

    @property
    def parameter(self) -> float:
        """How many classes."""
        return float(self.classes)

    @property
    def label_bound(self) -> float:
        """The last class."""
        return self.classes - 1.0

    def coefficients(self, w: Floats) -> Floats:
        """Show w as a row of coefficients for each class.

        Parameters
        ----------
        w : array_like
            The point, of classes times columns coordinates.

        Returns
        -------
        numpy.ndarray
            The same numbers, as a matrix.
        """
        return np.asarray(w, np.float64).reshape(self.classes, -1)

    def probabilities(self, w: Floats, X: Floats) -> Floats:
        """Compute the probability of each class.

        Parameters
        ----------
        w : array_like
            The point.
        X : array_like
            Points of records, one a row.

        Returns
        -------
        numpy.ndarray
            A row for each record, which adds up to 1.
        """
        return np.exp(self._log_probabilities(w, X))

    def _log_probabilities(self, w: Floats, X: Floats) -> Floats:
        scores = np.asarray(X, np.float64) @ self.coefficients(w).T
        scores -= scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(-self._log_probabilities(w, X)[np.arange(len(X)), _classes_of(y)])

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray((self._factors(w, X, y)[:, :, None] * X[:, None, :]).reshape(len(X), -1))

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray((self._factors(w, X, y).T @ X).reshape(-1))

    def _factors(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        """Probabilities, less 1 at the label."""
        factors = self.probabilities(w, X)
        factors[np.arange(len(X)), _classes_of(y)] -= 1.0
        return factors

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        return np.asarray(0.5 * np.einsum("ij,ij->", X, X))

    def _largest_difference(self, over: ConvexSet) -> float:
        """Of two scores of a record: <w_c - w_y, x>."""
        return min(sqrt(2) * over.norm * self.declared_norm(), 700.0)

    def lipschitz(self, over: ConvexSet) -> float:
        # ||p - e_y||^2 = (1 - p_y)^2 + sum of the others' squares <= 2 (1 - p_y)^2: softmax.md, lemma 2
        least = 1 / (1 + (self.classes - 1) * exp(self._largest_difference(over)))
        return sqrt(2) * (1 - least) * self.declared_norm()

    def curvature(self) -> float:
        return 0.5 * self.declared_norm() ** 2  # of diag(p) - p p^T no eigenvalue is larger than 1/2

    def range(self, over: ConvexSet) -> float:
        # ln(1 + sum of e^(z_c - z_y)), whose exponents lie between -largest and largest
        largest, others = sqrt(2) * over.norm * self.declared_norm(), self.classes - 1
        return largest + log((others + exp(-largest)) / (1 + others * exp(-largest)))

    def __repr__(self) -> str:
        norm = "" if self.x_norm is None else f", x_norm={self.x_norm:g}"
        return f"Softmax({self.classes}{norm})"


def _classes_of(y: Floats | None) -> NDArray[np.intp]:
    return given_labels(y).astype(np.intp)
