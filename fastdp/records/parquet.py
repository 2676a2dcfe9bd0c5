"""Records in Parquet files (extra `[arrow]`), read by row groups: a bounded number of records at a time.

How much is in memory at once depends on the files and the threads, what comes out does not. Files are opened for every
task and closed after it, whatever happens; a file that has changed since its metadata were read is refused.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Any

from ..support.columns import column_of
from ..support.shown import shown, type_of
from .column_names import at_least_one, checked_names, label_of, positions_of
from .rows import BLOCK_RECORDS, Block, LocalRows, Rows


class ParquetRows(LocalRows):
    """Parquet files, one after the other: read by row groups, a bounded number of records at a time.

    A task is a run of row groups of one file that has 2^16 records, or as few more as it takes.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        if not paths:
            raise ValueError("data=[]: must name at least one Parquet file")
        self._files = [_ParquetFile(_text_of(path)) for path in paths]
        self._schema = self._files[0].schema
        for file in self._files[1:]:
            if not file.schema.equals(self._schema):
                raise ValueError(f"data: {file.path}: must have the columns and types of {self._files[0].path}")
        self._choose(tuple(self._schema.names))
        self._runs: list[tuple[_ParquetFile, list[int], int, int]] = []  # file, row groups, first record, records
        self.n = 0
        for file in self._files:
            groups: list[int] = []
            records = 0
            for group in range(file.metadata.num_row_groups):
                groups.append(group)
                records += file.metadata.row_group(group).num_rows
                if records >= BLOCK_RECORDS or group == file.metadata.num_row_groups - 1:
                    if records:
                        self._runs.append((file, groups, self.n, records))
                    self.n += records
                    groups, records = [], 0
        self._tasks = len(self._runs)

    def _choose(self, names: tuple[str, ...]) -> None:
        self.names = checked_names(names)
        self.width = at_least_one(names)

    def select(self, columns: Sequence[str | int]) -> Rows:
        rows = ParquetRows.__new__(ParquetRows)
        rows.__dict__.update(self.__dict__)
        assert self.names is not None
        rows._choose(tuple(self.names[j] for j in positions_of(columns, self.names, self.width)))
        return rows

    def one_block(self) -> Block | None:
        return None

    def _nothing(self) -> Block:
        return self._block(0, self._schema.empty_table())

    def _block(self, first: int, table: Any) -> Block:
        assert self.names is not None
        columns = [column_of(label_of(j, self.names), table.column(name)) for j, name in enumerate(self.names)]
        return Block(first, table.num_rows, columns, self.names, 0)

    def _read(self, start: int, stop: int) -> Generator[Block, None, None]:
        names = list(self.names or ())
        for file, groups, first, records in self._runs[start:stop]:
            end = first + records
            with file.open() as opened:
                for batch in opened.iter_batches(BLOCK_RECORDS, groups, names, use_threads=False):
                    if batch.num_rows:
                        yield self._block(first, batch)
                    first += batch.num_rows
            if first != end:
                raise ValueError(f"data: {file.path}: must hold as many records as its metadata state")


def _text_of(path: Any) -> str:
    try:
        return os.fsdecode(os.fspath(path))
    except Exception:  # of a class that is not ours
        raise ValueError(f"data: type {type_of(path)}: must be the path of a Parquet file") from None


class _ParquetFile:
    """A file whose metadata have been read; it is opened for each task, and must stay as it is."""

    def __init__(self, path: str) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ImportError("Parquet files need pyarrow: pip install 'fastdp[arrow]'") from None

        self.path = path
        self._stamp = self._stamp_now()
        if os.path.isdir(path):
            raise ValueError(f"data: {path}: must be a file, not a folder; list the files of a folder in order")
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                self.metadata = file.metadata
                self.schema = file.schema_arrow.remove_metadata()
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"data: {path}: must be a Parquet file ({error})") from None

    def _stamp_now(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"data={shown(self.path)}: must be the path of a Parquet file; there is none"
            ) from None
        except (OSError, ValueError) as error:  # of a path with a null in it
            raise ValueError(f"data={shown(self.path)}: must be the path of a Parquet file ({error})") from None
        return found.st_size, found.st_mtime_ns

    def open(self) -> Any:
        import pyarrow.parquet

        if self._stamp_now() != self._stamp:
            raise ValueError(f"data: {self.path}: must not change while it is in use")
        return pyarrow.parquet.ParquetFile(self.path, metadata=self.metadata)
