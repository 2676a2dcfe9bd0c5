"""A loss of the user's own, by the whole gradient of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NoReturn

import numpy as np

from ...support.checks import flag, integer, non_negative
from ...support.shown import first_line, shown
from ..sets import ConvexSet
from .base import GIVEN, REAL, Floats, bound_or_none, given_labels
from .wide import WideLoss


@dataclass(frozen=True, repr=False, init=False)
class Gradient(WideLoss):
    """A loss of the user's own, by its gradient in w, of any dimension: of a small network, for example.

    The function is called in the compiled loop, for each record. What it leaves in `out` is clipped afterwards, so the
    guarantee holds whatever it computes, if it is a function of its arguments: one that remembers records, by memory
    that it did not fill or by what it calls, voids the guarantee.

    Parameters
    ----------
    function : callable
        A function of (w, x, y, out), or of (w, x, out) where there are no labels: three or two arrays of float64 and a
        float, plain Python or numba, which numba can compile. It fills `out`, as long as w and zero before, with the
        gradient at w of the loss of the record with the point x and the label y. It may write to its other arrays:
        they are copies. Where it raises, or `out` is not finite, the record counts as zero.
    dimension : int >= 1
        How many coordinates w has.
    labels : bool
        Whether records have labels, which are numbers.
    value : callable, optional
        The loss, as a function of arrays (w, X, y) that returns a number for each record, for what is not private.
    lipschitz : float > 0, optional
        No gradient is longer, which is then the default of `clip=`; the accuracy rests on it, the privacy does not.
    curvature : float >= 0, optional
        The smoothness of the loss, from which default steps follow; None if it has corners, or that is not known.
    convex : bool
        Whether the loss is convex in w. Only then a bound on the excess risk is stated.
    y_bound : float > 0, optional
        Labels are at most this in magnitude.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> def of_product(w, x, y, out):  # (w_0 w_1 x - y)^2, which is not convex
    ...     r = 2.0 * (w[0] * w[1] * x[0] - y)
    ...     out[0], out[1] = r * w[1] * x[0], r * w[0] * x[0]
    >>> x = np.linspace(-1, 1, 20_000)
    >>> fit = fastdp.noisy_projected_gradient_descent(
    ...     x[:, None], 0.5 * x, loss=fastdp.losses.Gradient(of_product, 2), over=fastdp.sets.Ball(2.0),
    ...     start=[1.0, 0.1], epsilon=1.0, delta=1e-6, clip=2.0, steps=100, step_size=0.3,
    ... )
    >>> bool(abs(fit.w[0] * fit.w[1] - 0.5) < 0.1)
    True
    """

    function: Any
    size: int
    labels: str | None  # type: ignore[misc]
    phi: Callable[[Floats, Floats, Any], Floats] | None
    slope_bound: float | None
    curve_bound: float
    convex: bool
    y_bound: float | None
    kind: str
    _address: int
    x_norm: ClassVar[float | None] = None  # type: ignore[misc]
    family: ClassVar[str] = GIVEN
    sized: ClassVar[str] = "the dimension that the loss declares"

    def __init__(
        self,
        function: Any,
        dimension: int,
        *,
        labels: bool = True,
        value: Callable[[Floats, Floats, Any], Floats] | None = None,
        lipschitz: float | None = None,
        curvature: float | None = None,
        convex: bool = False,
        y_bound: float | None = None,
    ) -> None:
        size = integer("dimension", dimension, least=1, most=2**20)
        flag("labels", labels)
        flag("convex", convex)
        if value is not None and not callable(value):
            raise ValueError(f"value={shown(value)}: must be a function of arrays (w, X, y)")
        alive, address = _compiled(function, bool(labels))
        for name, what in {
            "function": (alive, function),
            "size": size,
            "labels": REAL if labels else None,
            "phi": value,
            "slope_bound": bound_or_none("lipschitz", lipschitz),
            "curve_bound": inf if curvature is None else non_negative("curvature", curvature, toward=inf),
            "convex": bool(convex),
            "y_bound": bound_or_none("y_bound", y_bound),
            "kind": getattr(function, "__name__", "a function"),
            "_address": address,
        }.items():
            object.__setattr__(self, name, what)

    def dimension(self, columns: int) -> int:
        return self.size

    @property
    def address(self) -> int:
        """Where the function is."""
        return self._address

    @property
    def label_bound(self) -> float:
        """Labels are at most this in magnitude."""
        return inf if self.y_bound is None else self.y_bound

    def values(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        if self.phi is None:
            raise ValueError("loss: Gradient needs value=, a function of (w, X, y), to be evaluated")
        return np.asarray(self.phi(w, X, y), np.float64)

    def gradients(self, w: Floats, X: Floats, y: Floats | None) -> Floats:
        from ..families import FAMILIES

        labels = np.zeros(len(X)) if self.labels is None else np.asarray(given_labels(y), np.float64)
        out = np.zeros((len(X), self.size))
        kernel, rule = FAMILIES[GIVEN].kernel("sum_plain"), np.array([0, 0, inf, 1.0, inf])
        for i, x in enumerate(np.ascontiguousarray(X, np.float64)):
            at, tail, sums = FAMILIES[GIVEN].arrange(np.asarray(w, np.float64), len(x), x.dtype)
            kernel(x, labels[i : i + 1], np.ones(1), at, rule, self._address, tail, sums, out[i])
        return out

    def smooth_curvature(self, X: Floats, width: float) -> Floats:
        if self.curve_bound == inf:
            raise ValueError("loss: Gradient needs curvature=, the smoothness, to be minimised without noise")
        return np.asarray(self.curve_bound * len(X))

    def lipschitz(self, over: ConvexSet) -> float:
        if self.slope_bound is None:
            self._needs("lipschitz")
        return self.slope_bound

    def curvature(self) -> float:
        return self.curve_bound

    def range(self, over: ConvexSet) -> float:
        return self.lipschitz(over) * over.diameter

    def __repr__(self) -> str:
        return f"Gradient({self.kind}, {self.size})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Gradient holds the address of a function of this process: make it anew in the other one")


def _compiled(function: Any, labelled: bool) -> tuple[Any, int]:
    """(what keeps it alive, its address)."""
    rule = "a function of (w, x, y, out)" if labelled else "a function of (w, x, out)"
    if not callable(function):
        raise ValueError(f"function={shown(function)}: must be {rule}")
    from ...kernels.compile import compile_gradient

    try:
        compiled, returned = compile_gradient(function, labelled)
    except Exception as error:  # of numba's many kinds; its message is the reason
        reason = first_line(error)
        raise ValueError(f"function={shown(function)}: must be {rule} that numba can compile ({reason})") from error
    if str(returned) != "none":
        raise ValueError(f"function={shown(function)}: must fill `out` and return nothing; it returns {returned}")
    return compiled, int(compiled[0].address)
