"""Whatever a user passes as records, opened as `Rows`: arrays, frames, tables, files, collections of engines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..support.calls import ALL
from ..support.columns import column_of, comes_from, has, pyarrow
from ..support.parts_read import read_some
from .arrays import MemoryRows, array_rows, columns_rows
from .engines import engine_of, open_collection
from .rows import Rows
from .subsets import held

_KINDS = (
    "a 2-D numpy array, a mapping from names to columns, a pandas or polars DataFrame, an Arrow table, "
    "a Parquet file or a list of them, packed rows, a Dask array or DataFrame, or a table with Arrow's C stream "
    "interface"
)


def rows_of(data: Any) -> Rows:
    """Records from whatever holds them, for the public call that is under way; arrays and columns are not copied."""
    rows = opened(data)
    if rows.which != ALL:
        read_some(rows.which)
    return rows


def opened(data: Any) -> Rows:
    """The same for who reads nothing of them for a release."""
    if type(data) is np.ndarray:
        return array_rows(data)
    if isinstance(data := held(data), Rows):
        return data
    if isinstance(data, str | os.PathLike):
        data = [data]
    if type(data) in (list, tuple) and all(isinstance(path, str | os.PathLike) for path in data):
        from .parquet import ParquetRows

        return ParquetRows(data)
    if isinstance(data, np.ndarray):
        return array_rows(data)
    if isinstance(data, Mapping):
        return columns_rows(list(data), list(data.values()))
    if comes_from(data, "pandas", "DataFrame"):
        names = list(data.columns)
        from_array = names == list(range(len(names)))
        return columns_rows(None if from_array else names, [data.iloc[:, j] for j in range(data.shape[1])], len(data))
    if comes_from(data, "polars", "DataFrame"):
        return columns_rows(data.columns, data.get_columns(), data.height)
    if comes_from(data, "pyarrow", "Table", "RecordBatch"):
        return columns_rows(data.schema.names, data.columns, data.num_rows)
    if (engine := engine_of(data)) is not None:
        return open_collection(engine, data)
    if has(data, "__arrow_c_stream__"):  # any other library's table; its columns are shared, not copied
        try:
            table = pyarrow().table(data)
        except ValueError:  # a column, say
            raise ValueError(f"data: type {type(data).__name__}: must be {_KINDS}") from None
        return opened(table)
    raise ValueError(f"data: type {type(data).__name__}: must be {_KINDS}")


def column_rows(name: str, data: Any) -> Rows:
    """Records of one column: an array, a Series, or another library's column; `name` is what errors call it."""
    if (engine := engine_of(data)) is not None:
        return open_collection(engine, data, name)
    column = column_of(name, data)
    return MemoryRows([column], None, len(column))
