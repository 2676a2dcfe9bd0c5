"""One column of numbers, as positions on the line that public parameters declare: what choices by rank read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import parameters
from ..support.checks import check_fits, length_of
from ..support.columns import Entries, has, objects
from ..support.errors import DomainError
from ..support.parameters import Outside
from .column_names import called
from .engines import is_collection
from .number_line import NumberLine, Positions, bits_of_columns, check_bits, check_signed
from .outside_domain import is_missing, numbers_or_nan
from .rank_search import RankSearch, may_gather
from .rows import Block, Rows
from .sources import column_rows, rows_of
from .subsets import held


class NumberColumn:
    """The values, not read yet, and the number of bits of their domain.

    may_be_empty    True where the number of values is private, so that no error may depend on it
    skip_missing    whether missing entries are left out; how many are left is private then
    """

    def __init__(
        self, values: Any, domain_bits: Any, signed: Any, outside: str, *, may_be_empty: bool,
        skip_missing: bool = False,
    ) -> None:  # fmt: skip
        self._outside, self._signed = parameters.outside(outside), check_signed(signed)
        self._integers = domain_bits is not None  # what lists and objects are taken as
        self._skip = skip_missing
        self.rows = _one_column(values, integers=self._integers, outside=self._outside, skip_missing=skip_missing)
        self.bits = bits_of_columns(None if domain_bits is None else check_bits(domain_bits), self.rows)[0]
        self.n = self.rows.n
        if not self.n and not may_be_empty:
            raise ValueError("values: must hold at least one")

    def read(self) -> tuple[NumberLine, Positions | RankSearch]:
        """The line, and the positions of the values on it."""
        return read_positions(
            self.rows, 0, self.bits, self._signed, self._outside, "values", integers=self._integers,
            skip_missing=self._skip,
        )  # fmt: skip


def read_positions(
    rows: Rows, column: int, bits: int, signed: bool | None, outside: str, label: str, *, integers: bool = True,
    skip_missing: bool = False,
) -> tuple[NumberLine, Positions | RankSearch]:  # fmt: skip
    """A column as positions, and the line that they are on."""

    def entries(block: Block) -> Entries:
        found = block.numbers(column)
        return _present(found) if skip_missing else found

    if not may_gather(rows) and bits <= 64:
        line = NumberLine.of(rows.dtypes()[column], bits, signed, label, integers=integers)
        m = None
        if skip_missing:
            m = int(rows.total(lambda block: np.array([[len(entries(block).values)]], np.int64))[0, 0])
        return line, RankSearch(rows, lambda block: line.positions_of(entries(block), outside, label), line.last, m=m)
    if not rows.gathers:
        raise ValueError(f"domain_bits={bits}: must be at most 64 for a Dask collection")

    def statistic(block: Block) -> list[tuple[NumberLine, Positions]]:
        found = entries(block)
        order = NumberLine.of(found.values.dtype, bits, signed, label, integers=integers)
        return [(order, order.positions_of(found, outside, label))]

    parts: list[tuple[NumberLine, Positions]] = rows.merge(statistic, lambda a, b: a + b)
    if len(parts) == 1:
        return parts[0]
    order = parts[0][0]
    if any(other != order for other, _ in parts):
        raise ValueError(f"{label}: must have one type in all parts")
    return order, np.concatenate([positions for _, positions in parts])


def _present(entries: Entries) -> Entries:
    """Those that are not missing, and no NaN."""
    values, missing, label = entries
    if values.dtype.kind == "f":
        left_out = np.isnan(values)
    elif values.dtype.kind == "O":
        left_out = np.fromiter(map(is_missing, values), np.bool_, values.size)
    else:
        left_out = np.zeros(values.size, np.bool_)
    if missing is not None:
        left_out |= missing
    return Entries(values[~left_out] if left_out.any() else values, None, label)


def _one_column(values: Any, *, integers: bool, outside: Outside, skip_missing: bool) -> Rows:
    """The values as records of one column; a list holds integers, or floats."""
    if isinstance(values, list | tuple | range):
        check_fits("values", values, 16 * length_of("values", values), "so many numbers")
        values = _array_of(values, integers=integers, outside=outside, skip_missing=skip_missing)
    return one_column(values)


def one_column(values: Any) -> Rows:
    """A column, or a table of one column, as records."""
    if type(values) is np.ndarray and values.ndim == 1:  # what is asked of others takes 3 us
        return column_rows("values", values)
    values = held(values)
    if is_collection(values):
        return column_rows("values", values)
    is_table = (has(values, "ndim") and values.ndim == 2) or has(values, "columns")
    if not isinstance(values, str | os.PathLike | Rows) and not is_table:
        return column_rows("values", values)
    with called("values"):
        rows = rows_of(values)
    if rows.width != 1:
        raise ValueError(f"values: {rows.width} columns: must be one")
    return rows


def _array_of(values: Sequence[Any], *, integers: bool, outside: Outside, skip_missing: bool) -> NDArray[Any]:
    """A list as an array of a type that public parameters decide, never its entries.

    numpy would make all of them floats because of one, and the type decides about the line and the release.
    """
    if outside == "clip":
        array = objects([value.item() if isinstance(value, np.generic) else value for value in values])
        return array if integers else numbers_or_nan(Entries(array, None, "values"))
    if skip_missing:
        values = [None if is_missing(value) else value for value in values]
    if integers:
        array = np.empty(len(values), object)
        for i, value in enumerate(values):
            if value is None and skip_missing:
                continue
            if isinstance(value, str | bytes):
                raise DomainError("values: a list of strings: must be numbers")
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise DomainError(
                    "values: a list is taken as integers where domain_bits is given, and there are others: "
                    "np.asarray(values, float) is taken as floats"
                )
            array[i] = int(value)
        return array
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DomainError("values: a list must hold numbers, one for each entry, below 2^1024") from None
