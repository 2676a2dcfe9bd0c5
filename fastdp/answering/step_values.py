"""What a continual counter is given at each step: a number within bounds, or a vector of bounded norm, as integers.

Values are rounded to the grid of the noise, so that their sums are exact. What a step brings is a record: outside of
its bounds, or no number at all, it is refused with a DomainError or brought to them by itself, as `outside` says and
../records/outside_domain.md lists. This file decides no price.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite, isqrt, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.outside_domain import numbers_or_nan
from ..support import checks
from ..support.columns import Entries, column_of, has, library_column, objects
from ..support.errors import DomainError
from ..support.parameters import MOST_DIMENSIONS, Outside
from ..support.rounding import decimal_of, down, lower, sixty_digits, upper
from ..support.shown import described, shown

MOST_INT64 = 2**62  # of sums that are taken in int64
_LARGEST, _SMALLEST = 1e200, Fraction(1, 10**200)  # of bounds, and of their distance


class Numbers:
    """Numbers between two bounds. `moved` and `rounded`: by how much one record moves a step, and rounding besides."""

    dimension = 1

    def __init__(self, bounds: Any, neighbors: str, outside: Outside) -> None:
        pair = checks.items_of("bounds", bounds, "a pair of numbers, low < high", most=2)
        if len(pair) != 2 or any(isinstance(end, str | bytes) for end in pair):  # a word would be quoted
            raise ValueError(f"bounds={described(bounds)}: must be a pair of numbers, low < high")
        self.low, self.high = (_moderate("bounds", end) for end in pair)
        if not self.low < self.high:
            raise ValueError(f"bounds={described(bounds)}: must be a pair of numbers, low < high")
        self.outside = outside
        low, high = Fraction(self.low), Fraction(self.high)
        if high - low < _SMALLEST:
            raise ValueError(f"bounds={described(bounds)}: must be {float(_SMALLEST):g} apart, or more")
        largest = max(abs(low), abs(high))
        self.moved = decimal_of(high - low if neighbors == "replace-one" else largest)
        self.rounded = Decimal(1)
        self._largest = largest

    def on_grid(self, bits: int) -> None:
        """Take values in units of 2^-bits from now on."""
        self.bits, self._scale = bits, 2.0**bits
        self.most = int(self._largest * Fraction(2) ** bits) + 1  # in absolute value
        self._fits = self.most < MOST_INT64 and bits >= 0

    def one(self, value: Any) -> int:
        """The integer of one step."""
        kind = type(value)
        if kind is not int and kind is not float:
            if shape := _shape_of(value):
                raise ValueError(f"value: shape {shape}: must be one number; add_many takes many steps")
            value = _number_or_nan(value)
        if not self.low <= value <= self.high:
            value = self._outside(value)
        if type(value) is not int:
            return round(float(value) * self._scale)
        return int(value << self.bits) if self.bits >= 0 else round(Fraction(value, 1 << -self.bits))

    def many(self, values: Any) -> NDArray[Any]:
        """The integers of many steps, [steps, 1]: int64, or Python's where they may not fit."""
        if not self._fits:
            return self._each(_entries_of(values))
        try:
            array = checks.numbers_array("values", values)
        except DomainError:
            if self.outside == "raise":
                raise
            return self._each(_entries_of(values))
        if array.ndim != 1:
            raise ValueError(f"values: shape {array.shape}: must be of one dimension, a number for each step")
        if not ((array >= self.low) & (array <= self.high)).all():
            return self._each(array.tolist())
        if array.dtype.kind == "i":
            return (array.astype(np.int64) << self.bits).reshape(-1, 1)
        return np.rint(array * self._scale).astype(np.int64).reshape(-1, 1)

    def _each(self, values: list[Any]) -> NDArray[Any]:
        """Entry by entry, exactly: no entry decides about another, or about its type."""
        return np.array([[self.one(_number_or_nan(value))] for value in values], object).reshape(-1, 1)

    def _outside(self, value: Any) -> Any:
        if self.outside == "raise":
            raise DomainError(
                f"value: must be between {shown(self.low)} and {shown(self.high)}, and not NaN; outside='clip' takes "
                "the nearer bound, and the lower one for what is no number"
            )
        return self.high if value > self.high else self.low

    def __str__(self) -> str:
        return f"bounds=({self.low!r}, {self.high!r})"


class Vectors:
    """Vectors of a dimension, of Euclidean norm at most `norm`."""

    @sixty_digits
    def __init__(self, dimension: Any, norm: Any, neighbors: str, outside: Outside) -> None:
        self.dimension = checks.integer("dimension", dimension, least=1, most=MOST_DIMENSIONS)
        self.norm = checks.positive("norm", norm, toward=0)
        if not 1e-100 <= self.norm <= 1e100:  # whose squares are floats
            raise ValueError(f"norm={shown(norm)}: must be between 1e-100 and 1e100")
        self.outside = outside
        both = 2 if neighbors == "replace-one" else 1
        self.moved = both * decimal_of(upper(self.norm))
        self.rounded = both * (Decimal(self.dimension).sqrt() / 2 + 2)

    def on_grid(self, bits: int) -> None:
        """Take values in units of 2^-bits from now on."""
        self.bits, self._scale = bits, 2.0**bits
        # what a vector of this norm can have at most once each coordinate is rounded; `rounded` pays for it
        self.most = int(upper(self.norm) * Fraction(2) ** bits) + isqrt(self.dimension) // 2 + 2
        self._dtype: Any = np.int64 if self.most < MOST_INT64 else object
        # a sum of squares in floats is off by at most (dimension + 2) / 2^53 of itself: below this the norm is kept
        self._sure = down(lower(self.norm) ** 2 / (1 + Fraction(self.dimension + 2, 2**52)))

    def one(self, value: Any) -> NDArray[Any]:
        """The integers of one step."""
        try:
            array = checks.numbers_array("value", value)
        except ValueError:
            row = self._row_of("value", value)
        else:
            if array.shape != (self.dimension,):
                raise ValueError(f"value: shape {array.shape}: must be ({self.dimension},)")
            row = array.astype(np.float64)
            if self.outside == "clip" and (array == checks.MAX_INT64).any():  # as in `many`
                row = self._row_of("value", value)
        with np.errstate(all="ignore"):  # of what is too long, or no number
            if np.dot(row, row) <= self._sure:
                return np.rint(row * self._scale).astype(self._dtype)
            return np.array(self._exactly("value", row), self._dtype)

    def many(self, values: Any) -> NDArray[Any]:
        """The integers of many steps, [steps, dimension]."""
        try:
            array = checks.numbers_array("values", values)
            if self.outside == "clip" and (array == checks.MAX_INT64).any():
                array = self._rows_of(values)  # numpy's type of a list, which cuts at 64 bits or not, is of all entries
        except DomainError:
            if self.outside == "raise":
                raise
            array = self._rows_of(values)
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise ValueError(f"values: shape {array.shape}: must be (steps, {self.dimension})")
        rows = array.astype(np.float64)
        sure = np.einsum("ij,ij->i", rows, rows) <= self._sure
        made = np.rint(np.where(sure[:, None], rows, 0.0) * self._scale).astype(self._dtype)
        for t in np.flatnonzero(~sure).tolist():
            made[t] = self._exactly("values", rows[t])
        return made

    def _exactly(self, name: str, row: NDArray[np.float64]) -> list[int]:
        """A row of a norm that floats cannot decide, or that is too large."""
        if not np.isfinite(row).all():
            if self.outside == "raise":
                raise DomainError(f"{name}: must be finite; outside='clip' takes 0 for NaN, and scales infinities")
            row = np.nan_to_num(row)
        largest = float(np.abs(row).max())
        if largest <= 2 * self.norm and self._short(units := self._rounded(row)):
            return units
        if self.outside == "raise":
            raise DomainError(
                f"{name}: must be of Euclidean norm at most {shown(self.norm)}; outside='clip' scales what is longer"
            )
        row = row / largest
        row *= self.norm / sqrt(float(row @ row))
        while not self._short(units := self._rounded(row)):
            row *= 1 - 2.0**-40
        return units

    def _rows_of(self, values: Any) -> NDArray[np.float64]:
        listed = values if isinstance(values, list | tuple) else np.asarray(values)
        return np.array([self._row_of("values", each) for each in listed], np.float64)

    def _row_of(self, name: str, value: Any) -> NDArray[np.float64]:
        """A row that numpy does not read as numbers, entry by entry; zeros for what is no row of this dimension."""
        if self.outside == "raise":
            raise DomainError(f"{name}: must be {self.dimension} numbers for each step, finite")
        if (
            not isinstance(value, list | tuple | np.ndarray)
            or np.ma.isMaskedArray(value)
            or len(value) != self.dimension
        ):
            return np.zeros(self.dimension)
        return np.array([_float_or_zero(each) for each in value])

    def _short(self, units: list[int]) -> bool:
        return sum(unit * unit for unit in units) <= self.most**2

    def _rounded(self, row: NDArray[np.float64]) -> list[int]:
        return [round(x) for x in (row * self._scale).tolist()]

    def __str__(self) -> str:
        return f"dimension={self.dimension}, norm={self.norm!r}"


def _shape_of(value: Any) -> tuple[Any, ...]:
    """The shape of what brings several numbers; () of a single one, and of what is none."""
    if isinstance(value, list | tuple | range):
        return (checks.length_of("value", value),)
    return tuple(value.shape) if has(value, "shape") and isinstance(value.shape, tuple) else ()


def _number_or_nan(value: Any) -> int | float:
    """The number that an entry is, exactly; NaN for what is none."""
    if not isinstance(value, int | float | np.generic) and has(value, "__array__") and not _shape_of(value):
        try:
            value = None if isinstance(value, np.ma.MaskedArray) else np.asarray(value)[()]
        except Exception:  # of a class that is not ours
            return nan
    if isinstance(value, np.generic) and value.dtype.kind not in "biuf":
        return nan
    if isinstance(value, int | np.integer | np.bool_):
        return int(value)
    return float(value) if isinstance(value, float | np.floating) else nan


def _entries_of(values: Any) -> list[Any]:
    """The entries of a column, one by one; NaN for missing ones."""
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return list(values)
    if not isinstance(values, np.ndarray) and library_column("values", values) is None:
        values = checks.numbers_array("values", values)
    column = column_of("values", values)
    array, missing, _ = column.entries(0, len(column))
    if array.dtype.kind not in "biufO":
        raise ValueError(f"values: dtype {array.dtype}: must be numbers")
    entries: list[Any] = array.tolist()
    return entries if missing is None else [nan if gone else each for each, gone in zip(entries, missing, strict=True)]


def _float_or_zero(value: Any) -> float:
    """A coordinate: 0 for what is no number, the largest float for an infinity."""
    found = numbers_or_nan(Entries(objects([value]), None, "value"))
    return float(np.nan_to_num(found)[0])


def _moderate(name: str, value: Any) -> float:
    """A finite number, as an integer where it is one, that leaves room for products."""
    number = value if type(value) is int else checks.finite(name, value)
    if not (isfinite(number) and abs(number) <= _LARGEST):
        raise ValueError(f"{name}={shown(value)}: must be at most {_LARGEST:g} in absolute value")
    return number
