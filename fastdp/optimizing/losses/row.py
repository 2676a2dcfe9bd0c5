"""The rows of the losses: which class has which formula, and under which number compiled loops and C know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...support.shown import shown

ScalarFunction = Callable[[float, float], float]


@dataclass(frozen=True)
class LossRow:
    """One loss.

    A loss whose formula stands in kernels/losses.py is vectorised there. One that is given here by its `derivative` and
    its `value`, functions of (score, label) that numba compiles, costs a call for each record.

    loss         its class
    name         its constant in kernels/losses.py and, behind FASTDP_, in fastdp.h; free for a loss that is given here
    from_c       makes it of the parameter and the address of a derivative that C gives; None if it has neither
    derivative   in the score; None if kernels/losses.py has it
    value        of the loss; None if kernels/losses.py has it, or if it is not known
    """

    loss: type
    name: str
    from_c: Callable[[float, int], Any] | None = None
    derivative: ScalarFunction | None = None
    value: ScalarFunction | None = None

    def for_c(self, parameter: float, derivative: int) -> Any:
        """The loss as a C program asks for it, without bounds."""
        return self.loss() if self.from_c is None else self.from_c(parameter, derivative)

    @cached_property
    def number(self) -> int:
        """Which loop of the kernels it is."""
        from ...kernels import losses

        return losses.CUSTOM if self.derivative is not None else int(getattr(losses, self.name))

    @property
    def has_value(self) -> bool:
        """Whether compiled loops can evaluate it."""
        return self.derivative is None or self.value is not None

    @cached_property
    def compiled_derivative(self) -> Any:
        """The derivative that is given here, as a C function."""
        return None if self.derivative is None else _compiled(self.derivative)

    @cached_property
    def compiled_value(self) -> Any:
        """The value that is given here, as a C function."""
        return None if self.value is None else _compiled(self.value)


def _compiled(function: ScalarFunction) -> Any:
    from ...kernels.compile import compile_derivative

    return compile_derivative(function)


_rows: dict[type, LossRow] = {}


def register(row: LossRow) -> None:
    """Make a loss known to gradients and nets."""
    _rows[row.loss] = row


def row_of(loss: Any) -> LossRow:
    """The row of a loss, or of the class that it is derived from; ValueError if there is none."""
    for kind in type(loss).__mro__:
        if kind in _rows:
            return _rows[kind]
    raise ValueError(
        f"loss={shown(loss)}: {type(loss).__name__} is not registered: must have a row, as losses/registry.py has"
    )
