"""Losses of one record, and what can be said of them before any record is seen.

Two families. A *margin* loss is phi(<w, x>, y): its gradient is phi' x, so one number clips it. A *distance* loss
compares w with the record itself. Every constant (Lipschitz, range, curvature) is computed from the set and from bounds
that the caller declares; where a bound is needed and missing, that is an error, and never a look at the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..support.c_functions import c_function
from ..support.checks import moderate, non_negative
from .sets import ConvexSet

Floats = NDArray[np.float64]

REAL, SIGN = "real", "sign"  # what labels are: any number; or one of two classes


class MissingBound(ValueError):
    """A constant of a loss needs a bound that was not declared."""


class Formula:
    """What is summed of every record: its gradient, or the point itself.

    x_norm    the L2 norm of the points is at most this: the caller's declaration
    labels    "real", "sign" (two classes) or None (there are no labels)
    family    what the record contributes, but for a factor: "margin" its point, "distance" its difference from w,
              "deviation" the signs of that
    kernel    which formula of kernels/gradients.py has the factor
    """

    labels: ClassVar[str | None] = None
    family: ClassVar[str] = "margin"
    kernel: ClassVar[str]
    x_norm: float | None

    @property
    def parameter(self) -> float:
        """The one number that the formula may have: the threshold of Huber, the factor of a difference."""
        return 0.0

    @property
    def address(self) -> int:
        """Where the derivative is, if it is a function of the user's own."""
        return 0

    @property
    def label_bound(self) -> float:
        """Labels are at most this in magnitude."""
        return inf


class Loss(Formula, ABC):
    """The loss of one record; `+ L2(lam)` adds a regulariser."""

    @abstractmethod
    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        """The loss of every record at w."""

    @abstractmethod
    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        """The gradient of every record at w, one a row, not clipped."""

    @abstractmethod
    def lipschitz(self, over: ConvexSet) -> float:
        """No gradient at a point of the set is longer than this, for records within the declared bounds."""

    @abstractmethod
    def curvature(self) -> float:
        """The derivative of the gradient is at most this in any direction; inf where the loss has a corner."""

    @abstractmethod
    def range(self, over: ConvexSet) -> float:
        """How much the loss of one record may vary over the set, for records within the declared bounds."""

    @property
    def has_corners(self) -> bool:
        """Whether the gradient jumps."""
        return False

    @abstractmethod
    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        """The sum of the gradients at w, with corners rounded off over `width`."""

    @abstractmethod
    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        """A bound of the curvature of the summed loss with its corners so rounded."""

    def __add__(self, other: Any) -> Regularised:
        if not isinstance(other, L2):
            return NotImplemented
        return Regularised(self, other)

    def _needs(self, name: str) -> NoReturn:
        raise MissingBound(f"loss: {self!r} needs {name}=, the bound that the records keep")

    def declared_norm(self) -> float:
        """x_norm; MissingBound if it was not declared."""
        if self.x_norm is None:
            self._needs("x_norm")
        return self.x_norm

    def __repr__(self) -> str:
        shown = [f"{name}={value:g}" for name, value in vars(self).items() if isinstance(value, float)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _bound(name: str, value: float | None) -> float | None:
    return None if value is None else moderate(name, value, toward=inf)


# --- margin losses


class MarginLoss(Loss):
    """phi(<w, x>, y)."""

    @abstractmethod
    def value(self, score: Floats, label: Floats) -> Floats:
        """phi."""

    @abstractmethod
    def derivative(self, score: Floats, label: Floats) -> Floats:
        """phi' in the score."""

    @abstractmethod
    def slope(self, largest: float) -> float:
        """The largest |phi'| for scores up to `largest` in magnitude."""

    @abstractmethod
    def variation(self, largest: float) -> float:
        """The most by which phi varies for scores up to `largest` in magnitude."""

    def bend(self) -> float:
        """The largest phi''; inf where there is a corner."""
        return inf

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return self.value(X @ w, _labels(y))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(self.derivative(X @ w, _labels(y))[:, None] * X)

    def smooth_derivative(self, score: Floats, label: Floats, width: float) -> Floats:
        """phi' with its jumps made slopes of this width."""
        return self.derivative(score, label)

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(self.smooth_derivative(X @ w, y, width) @ X)

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        # <x, v>^2 <= ||x||^2 for every direction v: a bound that needs no eigenvalues
        bend = self.bend()
        return np.asarray((bend if bend < inf else 1 / max(width, 1e-8)) * np.einsum("ij,ij->", X, X))

    def lipschitz(self, over: ConvexSet) -> float:
        norm = self.declared_norm()
        return self.slope(norm * over.norm) * norm

    def curvature(self) -> float:
        return self.bend() * self.declared_norm() ** 2

    def range(self, over: ConvexSet) -> float:
        return self.variation(self.declared_norm() * over.norm)


def _labels(y: Floats | None) -> Floats:
    if y is None:
        raise ValueError("y=None: must be the labels, which this loss has")
    return y


@dataclass(frozen=True, repr=False)
class SquaredError(MarginLoss):
    """(<w, x> - y)^2: linear regression.

    Examples
    >>> from fastdp import losses, sets
    >>> losses.SquaredError(x_norm=1.0, y_bound=2.0).lipschitz(sets.Ball(1.0).of_dimension(3))
    6.0
    """

    x_norm: float | None = None
    y_bound: float | None = None
    labels: ClassVar[str | None] = REAL
    kernel: ClassVar[str] = "SQUARED"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))
        object.__setattr__(self, "y_bound", _bound("y_bound", self.y_bound))

    @property
    def label_bound(self) -> float:
        return inf if self.y_bound is None else self.y_bound

    def declared_label(self) -> float:
        """y_bound; MissingBound if it was not declared."""
        if self.y_bound is None:
            self._needs("y_bound")
        return self.y_bound

    def value(self, score: Floats, label: Floats) -> Floats:
        return (score - label) ** 2

    def derivative(self, score: Floats, label: Floats) -> Floats:
        return 2 * (score - label)

    def slope(self, largest: float) -> float:
        return 2 * (largest + self.declared_label())

    def variation(self, largest: float) -> float:
        # of (s - y)^2 over s in [-m, m] at y = b: down to 0 if the label can be reached, else the parabola's rise
        b = self.declared_label()
        return (largest + b) ** 2 if b <= largest else 4 * largest * b

    def bend(self) -> float:
        return 2.0


@dataclass(frozen=True, repr=False)
class Logistic(MarginLoss):
    """ln(1 + e^(-y <w, x>)), y = -1 or 1 (or 0 or 1): logistic regression."""

    x_norm: float | None = None
    labels: ClassVar[str | None] = SIGN
    kernel: ClassVar[str] = "LOGISTIC"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))

    def value(self, score: Floats, label: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -label * score))

    def derivative(self, score: Floats, label: Floats) -> Floats:
        return np.asarray(-label * np.exp(-np.logaddexp(0.0, label * score)))

    def slope(self, largest: float) -> float:
        return 1 / (1 + exp(-min(largest, 700.0)))

    def variation(self, largest: float) -> float:
        return largest  # ln(1 + e^m) - ln(1 + e^-m)

    def bend(self) -> float:
        return 0.25


@dataclass(frozen=True, repr=False)
class Hinge(MarginLoss):
    """max(0, 1 - y <w, x>), y = -1 or 1 (or 0 or 1): the support vector machine."""

    x_norm: float | None = None
    labels: ClassVar[str | None] = SIGN
    kernel: ClassVar[str] = "HINGE"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))

    def value(self, score: Floats, label: Floats) -> Floats:
        return np.maximum(0.0, 1 - label * score)

    def derivative(self, score: Floats, label: Floats) -> Floats:
        return np.where(label * score < 1, -label, 0.0)

    @property
    def has_corners(self) -> bool:
        return True

    def smooth_derivative(self, score: Floats, label: Floats, width: float) -> Floats:
        return -label * np.clip((1 - label * score) / width, 0.0, 1.0)

    def slope(self, largest: float) -> float:
        return 1.0

    def variation(self, largest: float) -> float:
        return min(2 * largest, 1 + largest)


@dataclass(frozen=True, repr=False)
class Huber(MarginLoss):
    """r^2 for |r| <= threshold and threshold (2 |r| - threshold) beyond, r = <w, x> - y: robust regression."""

    threshold: float = 1.0
    x_norm: float | None = None
    labels: ClassVar[str | None] = REAL
    kernel: ClassVar[str] = "HUBER"

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", moderate("threshold", self.threshold, toward=inf))
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))

    @property
    def parameter(self) -> float:
        return self.threshold

    def value(self, score: Floats, label: Floats) -> Floats:
        r, t = np.abs(score - label), self.threshold
        return np.where(r <= t, r * r, t * (2 * r - t))

    def derivative(self, score: Floats, label: Floats) -> Floats:
        return 2 * np.clip(score - label, -self.threshold, self.threshold)

    def slope(self, largest: float) -> float:
        return 2 * self.threshold

    def variation(self, largest: float) -> float:
        return 4 * self.threshold * largest  # a slope of 2 threshold, over 2 largest

    def bend(self) -> float:
        return 2.0


@dataclass(frozen=True, repr=False)
class Custom(MarginLoss):
    """A loss of the user's own, phi(<w, x>, y), by its derivative; called inside the compiled loop.

    derivative   a function of (score, label), both float: a numba or plain Python function that numba can compile, a
                 numba cfunc, a C function of cffi, or the address of a `double f(double, double)`, taken on trust
    value        phi itself, of arrays (scores, labels), for `nonprivate_excess_risk` and `exponential_erm`
    slope_bound  the largest |phi'|; the accuracy rests on it, the privacy does not

    The function must depend on its arguments alone: one that remembers records voids the guarantee.

    Examples
    >>> import fastdp, numpy as np
    >>> pinball = fastdp.losses.Custom(lambda s, y: 0.1 if s > y else -0.9, slope_bound=0.9, x_norm=1.0)
    >>> x = np.linspace(-1, 1, 20_000)[:, None]
    >>> fit = fastdp.noisy_projected_gradient_descent(
    ...     x, 0.5 * x[:, 0], loss=pinball, over=fastdp.sets.Ball(1.0), epsilon=1.0, delta=1e-6, steps=30
    ... )
    >>> fit.w.shape
    (1,)
    """

    function: Any
    phi: Callable[[Floats, Floats], Floats] | None
    slope_bound: float | None
    curve_bound: float
    y_bound: float | None
    x_norm: float | None
    kind: str
    _address: int
    labels: ClassVar[str | None] = REAL
    kernel: ClassVar[str] = "CUSTOM"

    def __init__(
        self,
        derivative: Any,
        value: Callable[[Floats, Floats], Floats] | None = None,
        *,
        slope_bound: float | None = None,
        curvature: float | None = None,
        y_bound: float | None = None,
        x_norm: float | None = None,
    ) -> None:
        function, address, kind = _compiled(derivative)
        if value is not None and not callable(value):
            raise ValueError(f"value={value!r}: must be a function of arrays (scores, labels)")
        for name, what in {
            "function": (function, derivative),  # both: what is called must stay alive
            "phi": value,
            "slope_bound": _bound("slope_bound", slope_bound),
            "curve_bound": inf if curvature is None else non_negative("curvature", curvature, toward=inf),
            "y_bound": _bound("y_bound", y_bound),
            "x_norm": _bound("x_norm", x_norm),
            "kind": kind,
            "_address": address,
        }.items():
            object.__setattr__(self, name, what)

    @property
    def address(self) -> int:
        return self._address

    @property
    def label_bound(self) -> float:
        return inf if self.y_bound is None else self.y_bound

    def value(self, score: Floats, label: Floats) -> Floats:
        if self.phi is None:
            raise ValueError("loss: Custom needs value=, a function of (scores, labels), to be evaluated")
        return np.asarray(self.phi(score, label), np.float64)

    def derivative(self, score: Floats, label: Floats) -> Floats:
        from ..kernels.gradients import derivatives_into

        scores, labels = np.broadcast_arrays(np.asarray(score, np.float64), np.asarray(label, np.float64))
        out = np.empty(scores.size)
        derivatives_into(self._address, scores.ravel().copy(), labels.ravel().copy(), out)
        return out.reshape(scores.shape)

    def slope(self, largest: float) -> float:
        if self.slope_bound is None:
            self._needs("slope_bound")
        return self.slope_bound

    def variation(self, largest: float) -> float:
        return 2 * largest * self.slope(largest)

    def bend(self) -> float:
        return self.curve_bound

    @property
    def has_corners(self) -> bool:
        return self.curve_bound == inf

    def __repr__(self) -> str:
        return f"Custom({self.kind})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Custom loss holds the address of a function of this process: make it anew in the other one")


def _compiled(function: Any) -> tuple[Any, int, str]:
    """(what keeps it alive, its address, what it is) of a function of two floats."""
    if isinstance(function, int | np.integer) and not isinstance(function, bool):
        if not 0 < function < 2**63:
            raise ValueError(f"derivative={function!r}: must be the address of a C function")
        return None, int(function), "an address"
    if (known := c_function(function)) is not None:
        right = (known.arguments, known.result) == (("double", "double"), "double")
        if not right or not known.address:
            null = " NULL" if right else ""
            rule = "float64(float64, float64)" if known.maker == "a numba cfunc" else "a double(*)(double, double)"
            raise ValueError(f"derivative: {known.declared}{null}: must be {rule}")
        return function, known.address, known.maker
    if not callable(function):
        raise ValueError(f"derivative={function!r}: must be a function of (score, label)")
    from ..kernels.compile import compile_derivative

    try:
        compiled = compile_derivative(function)
    except Exception as error:  # of numba's many kinds; what it says is the reason
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"derivative={function!r}: numba must be able to compile it ({reason})") from error
    return compiled, int(compiled.address), getattr(function, "__name__", "a function")


# --- distance losses


class DistanceLoss(Loss):
    """A loss of w - x."""

    family: ClassVar[str] = "distance"

    @property
    def parameter(self) -> float:
        return 2.0  # the gradient is twice the difference


@dataclass(frozen=True, repr=False)
class SquaredDistance(DistanceLoss):
    """||w - x||^2, whose minimiser is the mean."""

    x_norm: float | None = None
    kernel: ClassVar[str] = "DISTANCE"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(((w - X) ** 2).sum(axis=1))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return 2 * (w - X)

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(2 * (len(X) * w - X.sum(axis=0)))

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        return np.asarray(2.0 * len(X))

    def lipschitz(self, over: ConvexSet) -> float:
        return 2 * (over.norm + self.declared_norm())

    def curvature(self) -> float:
        return 2.0

    def range(self, over: ConvexSet) -> float:
        return (over.norm + self.declared_norm()) ** 2


@dataclass(frozen=True, repr=False)
class AbsoluteDeviation(DistanceLoss):
    """The sum of |w_j - x_j|, whose minimiser is the median of every coordinate; needs no bound on the records."""

    x_norm: float | None = None
    family: ClassVar[str] = "deviation"
    kernel: ClassVar[str] = "DEVIATION"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_norm", _bound("x_norm", self.x_norm))

    @property
    def parameter(self) -> float:
        return 1.0

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.asarray(np.abs(w - X).sum(axis=1))

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        return np.sign(w - X)

    @property
    def has_corners(self) -> bool:
        return True

    def smooth_gradient(self, w: Floats, X: Floats, y: Floats, width: float) -> Floats:
        return np.asarray(np.clip((w - X) / width, -1.0, 1.0).sum(axis=0))

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        return np.asarray(len(X) / width)

    def lipschitz(self, over: ConvexSet) -> float:
        return sqrt(over.known_dimension())

    def curvature(self) -> float:
        return inf

    def range(self, over: ConvexSet) -> float:
        return sqrt(over.known_dimension()) * over.diameter


# --- the regulariser


@dataclass(frozen=True)
class L2:
    """lam / 2 ||w||^2, added to the mean loss. It is public: never clipped, never noised."""

    lam: float

    def __post_init__(self) -> None:
        lam = non_negative("lam", self.lam, toward=inf)
        if lam > 2.0**300:
            raise ValueError(f"lam={self.lam!r}: must be at most 2^300")
        object.__setattr__(self, "lam", lam)


@dataclass(frozen=True)
class Regularised:
    """A loss and a regulariser."""

    loss: Loss
    l2: L2

    def __repr__(self) -> str:
        return f"{self.loss!r} + L2({self.l2.lam:g})"


def parts_of(loss: Any) -> tuple[Loss, float]:
    """(the loss of a record, lam)."""
    if isinstance(loss, Regularised):
        return loss.loss, loss.l2.lam
    if not isinstance(loss, Loss):
        raise ValueError(f"loss={loss!r}: must be one of fastdp.losses, such as fastdp.losses.Logistic(x_norm=1.0)")
    return loss, 0.0


__all__ = [
    "L2",
    "AbsoluteDeviation",
    "Custom",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Regularised",
    "SquaredDistance",
    "SquaredError",
]
