"""Records in memory: numpy arrays, data frames, Arrow tables; no column is copied."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.columns import Array, Column, NumpyColumn, column_of
from .column_names import Names, at_least_one, checked_names, label_of, names_at, positions_of
from .exact_sums import integers
from .rows import BLOCK_RECORDS, Block, LocalRows

T = TypeVar("T")

_BLOCK_VALUES = 2**21


def block_step(width: int) -> int:
    """How many records of so many columns are read at once: fewer where they are wide."""
    return min(max(_BLOCK_VALUES // width // 1024 * 1024, 1024), BLOCK_RECORDS)


class MemoryRows(LocalRows):
    """Columns in memory."""

    def __init__(self, columns: Sequence[Column], names: Names, n: int, matrix: Array | None = None) -> None:
        self.n, self.width, self.names = n, at_least_one(columns), names
        self._columns = columns
        self._matrix = matrix  # the array whose columns these are, if there is one
        self._step = block_step(self.width)
        self._tasks = -(-n // self._step)

    def select(self, columns: Sequence[str | int]) -> MemoryRows:
        at = positions_of(columns, self.names, self.width)
        return MemoryRows([self._columns[j] for j in at], names_at(at, self.names), self.n)

    def blocks(self) -> Generator[Block, None, None]:
        """All blocks in order, at least one, for who reads them on a thread of its own."""
        if not self.n:
            yield self._nothing()
        yield from self._read(0, self._tasks)

    def one_block(self) -> Block | None:
        return self._block(0, self.n)

    def _nothing(self) -> Block:
        return self._block(0, 0)

    def _block(self, first: int, n: int) -> Block:
        return Block(first, n, self._columns, self.names, first, self._matrix)

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(self._columns[j].entries(0, 0).values.dtype for j in range(self.width))

    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        return integers(statistic(self._block(0, self.n))) if self._tasks <= 1 else super().total(statistic)

    def _run(self, function: Callable[[Block], T], combine: Callable[[T, T], T] | None = None) -> list[T]:
        if self._tasks <= 1:
            return [function(self._block(0, self.n))]
        return super()._run(function, combine)

    def _read(self, start: int, stop: int) -> Generator[Block, None, None]:
        for first in range(start * self._step, min(stop * self._step, self.n), self._step):
            yield self._block(first, min(self._step, self.n - first))


class _ArrayColumns(Sequence[Column]):
    """The columns of an array, each made when it is read: a wide array has thousands that nobody asks for."""

    def __init__(self, data: Array) -> None:
        self._data = data
        if self:
            self[0]  # all have its type, which may be an error

    def __len__(self) -> int:
        return int(self._data.shape[1])

    def __getitem__(self, j: Any) -> Any:
        return NumpyColumn(label_of(j, None), self._data[:, j])


def array_rows(data: NDArray[Any]) -> MemoryRows:
    """Records from an array of two dimensions."""
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError("data: must not be a masked array; fill or drop the masked entries first")
    data = np.asarray(data)  # no longer a matrix
    if data.dtype.names is not None:
        raise ValueError("data: must not be a structured array; give {name: data[name], ...}")
    if data.ndim != 2:
        hint = "; of one column, data[:, None]" if data.ndim == 1 else ""
        raise ValueError(f"data: shape {data.shape}: must have two dimensions, records and columns{hint}")
    return MemoryRows(_ArrayColumns(data), None, len(data), data if data.dtype.isnative else None)


def columns_rows(names: list[Any] | None, columns: Sequence[Any], n: int | None = None) -> MemoryRows:
    """Records from columns of equal lengths; None for names: the columns have positions only."""
    checked = None if names is None else checked_names(names)
    found = [column_of(label_of(j, checked), column) for j, column in enumerate(columns)]
    n = len(found[0]) if n is None and found else n
    for column in found:
        if len(column) != n:
            raise ValueError(f"{column.label}: {len(column)} entries: must have {n}, as the first column has")
    return MemoryRows(found, checked, n or 0)
