"""A loss of the user's own, by its derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NoReturn

import numpy as np

from ...support.c_functions import c_function
from ...support.checks import non_negative
from ...support.shown import first_line, shown
from .base import REAL, Floats, MarginLoss, bound_or_none


@dataclass(frozen=True, repr=False)
class Custom(MarginLoss):
    """A loss of the user's own, phi(<w, x>, y), by its derivative; called inside the compiled loop.

    The function must depend on its arguments alone: one that remembers records voids the guarantee.

    Parameters
    ----------
    derivative : callable, numba cfunc, C function of cffi, or int
        phi' in its first argument: a function of (score, label), both float. A numba or plain Python function that
        numba can compile, a numba cfunc, a C function of cffi, or the address of a `double f(double, double)`, taken
        on trust.
    value : callable, optional
        phi itself, of arrays (scores, labels), for `nonprivate_excess_risk` and `exponential_erm`.
    slope_bound : float > 0, optional
        The largest |phi'|; the accuracy rests on it, the privacy does not.
    curvature : float >= 0, optional
        The largest phi''; None if phi has a corner, or it is not known.
    y_bound : float > 0, optional
        Labels are at most this in magnitude.
    x_norm : float > 0, optional
        The L2 norm of the records' points is at most this; private methods need it unless `clip=` is given.

    Examples
    --------
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
            raise ValueError(f"value={shown(value)}: must be a function of arrays (scores, labels)")
        for name, what in {
            "function": (function, derivative),  # both: what is called must stay alive
            "phi": value,
            "slope_bound": bound_or_none("slope_bound", slope_bound),
            "curve_bound": inf if curvature is None else non_negative("curvature", curvature, toward=inf),
            "y_bound": bound_or_none("y_bound", y_bound),
            "x_norm": bound_or_none("x_norm", x_norm),
            "kind": kind,
            "_address": address,
        }.items():
            object.__setattr__(self, name, what)

    @property
    def address(self) -> int:
        """Where the derivative is."""
        return self._address

    @property
    def label_bound(self) -> float:
        """Labels are at most this in magnitude."""
        return inf if self.y_bound is None else self.y_bound

    def check_value(self) -> None:
        """ValueError if `value` was not given."""
        if self.phi is None:
            raise ValueError("loss: Custom needs value=, a function of (scores, labels), to be evaluated")

    def value(self, score: Floats, label: Floats) -> Floats:
        self.check_value()
        assert self.phi is not None
        return np.asarray(self.phi(score, label), np.float64)

    def score_lipschitz(self, largest: float) -> float:
        if self.slope_bound is None:
            self._needs("slope_bound")
        return self.slope_bound

    def score_range(self, largest: float) -> float:
        return 2 * largest * self.score_lipschitz(largest)

    def score_smoothness(self) -> float:
        return self.curve_bound

    @property
    def has_corners(self) -> bool:
        """Whether the gradient jumps, as far as is known."""
        return self.curve_bound == inf

    def __repr__(self) -> str:
        return f"Custom({self.kind})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Custom loss holds the address of a function of this process: make it anew in the other one")


def _compiled(function: Any) -> tuple[Any, int, str]:
    """(what keeps it alive, its address, what it is) of a function of two floats."""
    if isinstance(function, int | np.integer) and not isinstance(function, bool):
        if not 0 < function < 2**63:
            raise ValueError(f"derivative={shown(function)}: must be the address of a C function")
        return None, int(function), "an address"
    if (known := c_function(function)) is not None:
        right = (known.arguments, known.result) == (("double", "double"), "double")
        if not right or not known.address:
            null = " NULL" if right else ""
            rule = "float64(float64, float64)" if known.maker == "a numba cfunc" else "a double(*)(double, double)"
            raise ValueError(f"derivative: {known.declared}{null}: must be {rule}")
        return function, known.address, known.maker
    if not callable(function):
        raise ValueError(f"derivative={shown(function)}: must be a function of (score, label)")
    from ...kernels.compile import compile_derivative

    try:
        compiled = compile_derivative(function)
    except Exception as error:  # of numba's many kinds; its message is the reason
        reason = first_line(error)
        raise ValueError(f"derivative={shown(function)}: numba must be able to compile it ({reason})") from error
    return compiled, int(compiled.address), getattr(function, "__name__", "a function")
