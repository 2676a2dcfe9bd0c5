"""What a continual counter is given at each step: a number within bounds, or a vector of bounded norm, as integers.

Values are rounded to the grid of the noise, so that their sums are exact. A value outside of its bounds is refused with
a DomainError or brought to them, as `outside` says; this file decides no price.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import checks
from ..support.errors import DomainError
from ..support.parameters import MOST_DIMENSIONS, Outside
from ..support.rounding import decimal_of, sixty_digits, upper
from ..support.shown import shown

MOST_INT64 = 2**62  # of sums that are taken in int64
_LARGEST = 1e200  # of bounds and norms


class Numbers:
    """Numbers between two bounds. `moved` and `rounded`: by how much one record moves a step, and rounding besides."""

    dimension = 1

    def __init__(self, bounds: Any, neighbors: str, outside: Outside) -> None:
        pair = checks.items_of("bounds", bounds, "a pair of numbers, low < high", most=2)
        if len(pair) != 2:
            raise ValueError(f"bounds={shown(bounds)}: must be a pair of numbers, low < high")
        self.low, self.high = (_moderate("bounds", end) for end in pair)
        if not self.low < self.high:
            raise ValueError(f"bounds={shown(bounds)}: must be a pair of numbers, low < high")
        self.outside = outside
        low, high = Fraction(self.low), Fraction(self.high)
        largest = max(abs(low), abs(high))
        self.moved = decimal_of(high - low if neighbors == "replace-one" else largest)
        self.rounded = Decimal(1)
        self._largest = largest

    def on_grid(self, bits: int) -> None:
        """Take values in units of 2^-bits from now on."""
        self.bits, self._scale = bits, 2.0**bits
        self.most = int(self._largest * Fraction(2) ** bits) + 1  # in absolute value

    def one(self, value: Any) -> int:
        """The integer of one step."""
        kind = type(value)
        if kind is not int and kind is not float:
            array = checks.numbers_array("value", value)
            if array.ndim:
                raise ValueError(f"value: shape {array.shape}: must be one number; add_many takes many steps")
            value = array.item()
        if not self.low <= value <= self.high:
            value = self._outside(value)
        if type(value) is not int:
            return round(float(value) * self._scale)
        return int(value << self.bits) if self.bits >= 0 else round(Fraction(value, 1 << -self.bits))

    def many(self, values: Any) -> NDArray[Any]:
        """The integers of many steps, [steps, 1]: int64, or Python's where they may not fit."""
        array = checks.numbers_array("values", values)
        if array.ndim != 1:
            raise ValueError(f"values: shape {array.shape}: must be of one dimension, a number for each step")
        if not ((array >= self.low) & (array <= self.high)).all() or self.most >= MOST_INT64 or self.bits < 0:
            return np.array([[self.one(value)] for value in array.tolist()], object).reshape(-1, 1)
        if array.dtype.kind == "i":
            return (array.astype(np.int64) << self.bits).reshape(-1, 1)
        return np.rint(array * self._scale).astype(np.int64).reshape(-1, 1)

    def _outside(self, value: Any) -> Any:
        if self.outside == "raise" or value != value:
            clip = "; outside='clip' takes the nearer bound" if self.outside == "raise" else ""
            raise DomainError(f"value: must be between {shown(self.low)} and {shown(self.high)}, and not NaN{clip}")
        return self.low if value < self.low else self.high

    def __str__(self) -> str:
        return f"bounds=({self.low!r}, {self.high!r})"


class Vectors:
    """Vectors of a dimension, of Euclidean norm at most `norm`."""

    @sixty_digits
    def __init__(self, dimension: Any, norm: Any, neighbors: str, outside: Outside) -> None:
        self.dimension = checks.integer("dimension", dimension, least=1, most=MOST_DIMENSIONS)
        self.norm = float(_moderate("norm", checks.positive("norm", norm, toward=0)))
        self.outside = outside
        both = 2 if neighbors == "replace-one" else 1
        self.moved = both * decimal_of(upper(self.norm))
        self.rounded = both * (Decimal(self.dimension).sqrt() / 2 + 2)

    def on_grid(self, bits: int) -> None:
        """Take values in units of 2^-bits from now on."""
        self.bits, self._scale = bits, 2.0**bits
        # what a vector of this norm can have at most once each coordinate is rounded; `rounded` pays for it
        self.most = int(upper(self.norm) * Fraction(2) ** bits) + isqrt(self.dimension) // 2 + 1

    def one(self, value: Any) -> NDArray[Any]:
        """The integers of one step."""
        array = checks.plain_array("value", value, f"an array of {self.dimension} numbers")
        one: NDArray[Any] = self.many(array[None], "value")[0]
        return one

    def many(self, values: Any, name: str = "values") -> NDArray[Any]:
        """The integers of many steps, [steps, dimension]."""
        array = checks.numbers_array(name, values)
        if array.ndim != 2 or array.shape[1] != self.dimension:
            shape = array.shape[1:] if name == "value" else array.shape
            ask = f"({self.dimension},)" if name == "value" else f"(steps, {self.dimension})"
            raise ValueError(f"{name}: shape {shape}: must be {ask}")
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise DomainError(f"{name}: must be finite")
        made = np.empty(array.shape, np.int64 if self.most < MOST_INT64 else object)
        for t, row in enumerate(array):
            made[t] = self._units(name, row)
        return made

    def _units(self, name: str, row: NDArray[np.float64]) -> Any:
        largest = float(np.abs(row).max())
        units = self._rounded(row) if largest <= 2 * self.norm else []
        if units and sum(unit * unit for unit in units) <= self.most**2:
            return units
        if self.outside == "raise":
            raise DomainError(
                f"{name}: must be of Euclidean norm at most {shown(self.norm)}; outside='clip' scales what is longer"
            )
        row = row / largest
        row *= self.norm / sqrt(float(row @ row))
        units = self._rounded(row)
        while sum(unit * unit for unit in units) > self.most**2:
            row *= 1 - 2.0**-40
            units = self._rounded(row)
        return units

    def _rounded(self, row: NDArray[np.float64]) -> list[int]:
        return [round(x) for x in (row * self._scale).tolist()]

    def __str__(self) -> str:
        return f"dimension={self.dimension}, norm={self.norm!r}"


def _moderate(name: str, value: Any) -> float:
    """A finite number, as an integer where it is one, that leaves room for products."""
    number = value if type(value) is int else checks.finite(name, value)
    if not (isfinite(number) and abs(number) <= _LARGEST):
        raise ValueError(f"{name}={shown(value)}: must be at most {_LARGEST:g} in absolute value")
    if name == "norm" and number < 1 / _LARGEST:
        raise ValueError(f"{name}={shown(value)}: must be at least {1 / _LARGEST:g}")
    return number
