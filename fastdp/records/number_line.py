"""Numbers as positions on a line: integers of a stated number of bits, and floats in their order.

Mechanisms on ordered data (quantiles, boxes) work on positions 0, 1, ..., last. This file maps numbers to positions and
back, and clips or refuses numbers outside the domain.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import floor, inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..support.checks import integer, items_of, optional_flag
from ..support.columns import Entries, as_compiled
from ..support.errors import DomainError
from ..support.parameters import MOST_DIMENSIONS
from ..support.rounding import down, up
from .outside_domain import floats_of_objects, is_missing, numbers_or_nan
from .rows import Rows

Positions: TypeAlias = NDArray[Any]  # uint64, or Python's integers as objects where 64 bits do not hold them
MOST_BITS = 2**20

_FLOATS: dict[int, tuple[Any, str, str]] = {
    16: (np.float16, "<e", "<H"), 32: (np.float32, "<f", "<I"), 64: (np.float64, "<d", "<Q"),
}  # fmt: skip


@dataclass(frozen=True)
class NumberLine:
    """The ordered values that records may have, each with its position.

    bits     positions are below 2^bits
    least    the integer at position 0; None for floats
    last     the last position
    """

    bits: int
    least: int | None
    last: int

    @classmethod
    def of(
        cls, dtype: np.dtype[Any], bits: int, signed: bool | None, label: str, *, integers: bool = True
    ) -> NumberLine:
        """Of integers 0 .. 2^bits - 1, or from -2^(bits-1) if they are signed; of floats for values that are floats.

        By default integers are signed if their type is signed and has at most that many bits. Objects are `integers`,
        or floats: which ones is never read off them.
        """
        if dtype.kind == "f" or (dtype.kind == "O" and not integers):
            if dtype.itemsize > 8:
                raise ValueError(
                    f"{label}: dtype {dtype}: must be integers, or floats of at most 64 bits: .astype(float)"
                )
            if bits not in _FLOATS:
                raise ValueError(
                    f"domain_bits={bits}: must be 16, 32 or 64 for {label}, which is {dtype}; or make it integers"
                )
            return _line(bits, None)
        if dtype.kind not in "biuO":
            raise ValueError(f"{label}: dtype {dtype}: must be integers or floats")
        if signed is None:
            signed = dtype.kind == "i" and 8 * dtype.itemsize <= bits
        return _line(bits, signed)

    def positions_of(self, entries: Entries, outside: str, label: str) -> Positions:
        """The positions of values; DomainError for a NaN, missing entries and values off the line.

        Unless `outside` is "clip": then NaN, missing entries and objects that are no numbers are at position 0,
        fractions in a list of integers at the one below, and other values at the nearest. Floats are rounded to floats
        of that many bits.
        """
        found = self.positions(entries.values if outside == "clip" else entries.complete(), outside, label)
        if entries.missing is not None and entries.missing.any():
            found[entries.missing] = 0
        return found

    def positions(self, values: NDArray[Any], outside: str, label: str) -> Positions:
        """Of values none of which is missing."""
        if self.least is None:
            return self._of_floats(values, outside, label)
        if values.dtype.kind == "b":
            values = values.view(np.uint8)
        if values.dtype.kind == "O" or self.bits > 64:
            return self._of_objects(values, outside, label)
        wide, least, last, shift = _ends(self.least, self.last, values.dtype)
        out = np.empty(values.size, np.uint64)
        array = as_compiled(np.ascontiguousarray(values, wide))
        clipped = _kernels().place_integers_into(array, least, last, out)
        if clipped and outside == "raise":
            raise self._beyond(label)
        if shift:
            out += np.uint64(shift)
        return out

    def _of_floats(self, values: NDArray[Any], outside: str, label: str) -> Positions:
        kernels = _kernels()
        if values.dtype.kind == "O":
            values = floats_of_objects(values, outside, label)
        if self.bits < 64:
            with np.errstate(over="ignore"):
                values = values.astype(_FLOATS[self.bits][0])
        out = np.empty(values.size, np.uint64)
        flags = kernels.place_floats_into(as_compiled(np.ascontiguousarray(values, np.float64)), out)
        is_nan = flags & kernels.NAN
        if is_nan and outside == "raise":
            raise DomainError(
                f"{label}: must not be NaN; there is one: pass outside='clip' to take it at the lower end"
            )
        if flags & kernels.BEYOND and outside == "raise":
            raise self._beyond(label)
        if self.bits == 64:
            return np.where(np.isnan(values), np.uint64(0), out) if is_nan else out
        narrow = values.view(f"i{self.bits // 8}").astype(np.int64)
        top = _infinite(self.bits) - 1
        size = np.minimum(narrow & (2 ** (self.bits - 1) - 1), top)
        places = np.asarray(np.where(narrow < 0, top - size, top + size), np.uint64)
        return np.where(np.isnan(values), np.uint64(0), places) if is_nan else places

    def _of_objects(self, values: NDArray[Any], outside: str, label: str) -> Positions:
        assert self.least is not None
        found = []
        for value in values.tolist():
            if outside == "clip":
                found.append(self._clipped(value))
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                if isinstance(value, str | bytes):
                    raise DomainError(f"{label}: column of strings: objects must be integers; there are others")
                raise DomainError(
                    f"{label}: objects must be integers; there are others: .astype(float) makes numbers of them"
                )
            place = int(value) - self.least
            if not 0 <= place <= self.last:
                raise self._beyond(label)
            found.append(place)
        if self.bits <= 64:
            return np.array(found, np.uint64)
        out = np.empty(len(found), object)
        out[:] = found
        return out

    def _clipped(self, value: Any) -> int:
        assert self.least is not None
        if isinstance(value, float | np.floating | Decimal) and not is_missing(value):
            number = float(value)
            value = floor(number) if abs(number) < inf else self.least + (self.last if number > 0 else 0)
        if not isinstance(value, int | np.integer | np.bool_):
            return 0
        return min(max(int(value) - self.least, 0), self.last)

    def _beyond(self, label: str) -> DomainError:
        more = "" if self.least is None else "declare more domain_bits, or signed=True for negative numbers, or "
        return DomainError(f"{label}: must be {self}; there are others: {more}pass outside='clip'")

    def value(self, position: int) -> int | float:
        """The value at a position."""
        if self.least is not None:
            return self.least + position
        _, kind, bits = _FLOATS[self.bits]
        distance = position - (_infinite(self.bits) - 1)
        size: float = struct.unpack(kind, struct.pack(bits, abs(distance)))[0]
        return -size if distance < 0 else size

    def between(self, values: NDArray[Any], low: Any, high: Any, label: str) -> NDArray[np.bool_]:
        """Which values are from low to high, where an end of the line is no bound; never a NaN."""
        if values.dtype.kind == "b":
            values = values.view(np.uint8)
        if values.dtype.kind not in "iufO":
            raise ValueError(f"{label}: dtype {values.dtype}: must be integers or floats")
        if self.least is None:
            if values.dtype.kind == "O":
                values = numbers_or_nan(Entries(values, None, label))
            with np.errstate(over="ignore"):
                values = values.astype(_FLOATS[self.bits][0])
        elif values.dtype.kind == "f":  # a float does not hold every integer
            values, low, high = values.astype(np.float64), up(low), down(high)
        inside = np.asarray(values == values, np.bool_)
        if low > self.value(0):
            inside &= _compared(values, low, np.greater_equal)
        if high < self.value(self.last):
            inside &= _compared(values, high, np.less_equal)
        return inside

    def __str__(self) -> str:
        if self.least is None:
            return f"finite floats of {self.bits} bits"
        return f"from {_power(self.least)} to {_power(self.least + self.last)}"


@lru_cache(1)
def _kernels() -> Any:  # an import statement takes a microsecond
    from ..kernels import number_line

    return number_line


@lru_cache(64)
def _ends(least: int, last: int, dtype: np.dtype[Any]) -> tuple[Any, Any, np.uint64, int]:
    """Of integers of this type on a line: as what the kernel reads them, what that has for the least number that both
    hold and for how far the line goes on from there, and by how much it stands above the line's least."""
    wide: Any = np.uint64 if dtype.kind == "u" else np.int64
    lowest = max(least, 0 if wide is np.uint64 else -(2 ** (8 * dtype.itemsize - 1)))
    shift = lowest - least
    return wide, wide(lowest), np.uint64(min(last - shift, 2**64 - 1)), shift


@lru_cache(16)  # of 2^20 bits a quarter of a megabyte
def _line(bits: int, signed: bool | None) -> NumberLine:
    """Of integers, or for None of floats."""
    if signed is None:
        return NumberLine(bits, None, 2 * _infinite(bits) - 2)
    return NumberLine(bits, -(2 ** (bits - 1)) if signed else 0, 2**bits - 1)


def _compared(values: NDArray[Any], end: Any, compare: Callable[..., Any]) -> NDArray[np.bool_]:
    """compare(values, end), for any integer: one that the type does not hold would become a float."""
    if values.dtype.kind in "iu":
        kind = np.iinfo(values.dtype)
        if not kind.min <= end <= kind.max:
            return np.full(len(values), bool(compare(0, 1 if end > 0 else -1)))
    return np.asarray(compare(values, end), np.bool_)


def check_bits(value: Any) -> int:
    return integer("domain_bits", value, least=1, most=MOST_BITS)


def bits_of_each(value: Any, d: int) -> tuple[int, ...]:
    """The bits of each of d columns, from one number for all of them, or one for each."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return (check_bits(value),) * d
    each = items_of("domain_bits", value, "one number, or one for each column", most=MOST_DIMENSIONS)
    if len(each) != d:
        raise ValueError(f"domain_bits: {len(each)} numbers: must be one, or {d}, as there are columns")
    return tuple(map(check_bits, each))


def bits_of_columns(value: Any, rows: Rows) -> tuple[int, ...]:
    """The bits of each column; None for as many as its type has."""
    return tuple(map(_width, rows.dtypes())) if value is None else bits_of_each(value, rows.width)


def _width(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "b":
        return 1
    return 8 * dtype.itemsize if dtype.kind in "iuf" and dtype.itemsize <= 8 else 64


def check_signed(value: Any) -> bool | None:
    return optional_flag("signed", value)


def _infinite(bits: int) -> int:
    """The bits of an infinity, which is how many floats are >= 0 and finite."""
    _, kind, bits_ = _FLOATS[bits]
    found: int = struct.unpack(bits_, struct.pack(kind, float("inf")))[0]
    return found


def _power(value: int) -> str:
    """A short name of an integer that may be very large."""
    if abs(value) < 2**40:
        return str(value)
    size = abs(value).bit_length()
    sign = "-" if value < 0 else ""
    return f"{sign}2^{size - 1}" if abs(value) == 1 << size - 1 else f"{sign}(2^{size} - 1)"
