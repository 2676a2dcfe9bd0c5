"""Work on one partition of records, where it is: read it in blocks, and compute a statistic of them.

All of this is sent to workers, so it needs partitions but neither the collection nor the engine that holds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.boundary import without_values
from ..support.columns import Array, Column, Entries, column_of, comes_from
from ..support.threads import alone
from .arrays import MemoryRows
from .cell_counts import CellCounts, cells_below
from .exact_sums import Halves, add_halves, halves_of
from .rows import Block
from .sources import rows_of

T = TypeVar("T")
Counts = NDArray[np.int64]
SomeCounts = Counts | tuple[NDArray[np.uint32], Counts]  # of all cells, or of those that have any

_OTHER = "data: a partition with other columns: must have those of the collection, in order"
_ORDER = "data: records that were left out, read twice or out of order: an engine must combine parts as they follow"


@dataclass(frozen=True)
class Reader:
    """Which columns of a partition are records, and which are their labels.

    titles     what errors call the columns
    places     where they are in a partition
    types      their types; None for categories, whose labels each partition may have by itself
    names      their names
    partition  the names of all columns of a partition, or their numbers if it has no names
    labelled   whether the last column holds the labels of the records
    """

    titles: tuple[str, ...]
    places: tuple[int, ...]
    types: tuple[np.dtype[Any] | None, ...]
    names: tuple[str, ...] | None
    partition: tuple[Any, ...]
    labelled: bool = False

    def open(self, partition: Any) -> MemoryRows:
        """The columns, of which none is copied."""
        if isinstance(partition, np.ndarray):
            if partition.shape[1:] != (len(self.partition),):
                raise ValueError(_OTHER)
            if not self.labelled and self.places == tuple(range(partition.shape[1])):
                rows = rows_of(partition)
                assert isinstance(rows, MemoryRows)
                return self._checked(rows)
            columns = [partition[:, j] for j in self.places]
        elif comes_from(partition, "pandas", "DataFrame"):
            if tuple(partition.columns) != self.partition:
                raise ValueError(_OTHER)
            columns = [partition.iloc[:, j] for j in self.places]
        elif comes_from(partition, "pyarrow", "Table", "RecordBatch"):
            if tuple(partition.schema.names) != self.partition:
                raise ValueError(_OTHER)
            columns = [partition.columns[j] for j in self.places]
        else:
            raise ValueError(f"data: a partition of type {type(partition).__name__}: must be of numpy, pandas or Arrow")
        found = [
            _as_declared(column_of(label, column), declared)
            for label, column, declared in zip(self.titles, columns, self.types, strict=True)
        ]
        return self._checked(MemoryRows(found, self.names, len(partition)))

    def _checked(self, rows: MemoryRows) -> MemoryRows:
        """Types decide about domains, so they must not depend on the records of a partition."""
        for label, found, declared in zip(self.titles, rows.dtypes(), self.types, strict=True):
            if declared is not None and found != declared:
                raise ValueError(
                    f"{label}: a partition of dtype {found}: must be {declared}, as the collection declares"
                )
        return rows


class _WithMissing(Column):
    """A column of integers or bools of which pandas made floats or objects, as an entry of the partition is missing."""

    def __init__(self, column: Column, declared: np.dtype[Any]) -> None:
        self.label, self._column, self._declared = column.label, column, declared

    def __len__(self) -> int:
        return len(self._column)

    def entries(self, start: int, stop: int) -> Entries:
        values, missing, _ = self._column.entries(start, stop)
        gone = np.asarray(_is_missing(values)) if missing is None else missing | _is_missing(values)
        held = np.where(gone, 0, values)
        if values.dtype.kind == "f" and (np.abs(held) > 2.0**53).any():  # of which pandas has lost the last bits
            raise ValueError(
                f"{self.label}: a partition of dtype {values.dtype}: must be {self._declared}, as the collection "
                "declares; read it with a nullable type"
            )
        return Entries(held.astype(self._declared), gone, self.label)


def _is_missing(values: Array) -> NDArray[np.bool_]:
    import pandas

    return np.asarray(pandas.isna(values), np.bool_)


def _as_declared(column: Column, declared: np.dtype[Any] | None) -> Column:
    found = column.entries(0, 0).values.dtype
    if declared is None or declared.kind not in "biu" or found.kind != ("O" if declared.kind == "b" else "f"):
        return column
    return _WithMissing(column, declared) if _is_missing(column.entries(0, len(column)).values).any() else column


class Work(ABC, Generic[T]):
    """A statistic of blocks, and how two of its results are combined; the first may be changed and returned."""

    @abstractmethod
    def of(self, blocks: Iterator[Block]) -> T: ...

    @abstractmethod
    def combine(self, one: T, other: T) -> T: ...


class Merge(Work[T]):
    """`Rows.merge` of one partition."""

    def __init__(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> None:
        self._statistic, self._combine = statistic, combine

    def of(self, blocks: Iterator[Block]) -> T:
        summary = self._statistic(next(blocks))
        for block in blocks:
            summary = self._combine(summary, self._statistic(block))
        return summary

    def combine(self, one: T, other: T) -> T:
        return self._combine(one, other)


class Keep(Work[list[T]]):
    """What is made of every block of one partition, to be held where the partition is."""

    def __init__(self, make: Callable[[Block], T]) -> None:
        self._make = make

    def of(self, blocks: Iterator[Block]) -> list[T]:
        return [self._make(block) for block in blocks]

    def combine(self, one: list[T], other: list[T]) -> list[T]:
        return [*one, *other]


class Total(Work[Halves]):
    """`Rows.total` of one partition. A result takes four bytes for each number that is a count below 2^32."""

    def __init__(self, statistic: Callable[[Any], Any]) -> None:
        self._statistic = statistic

    def of(self, blocks: Iterator[Any]) -> Halves:
        sums = halves_of(self._statistic(next(blocks)))
        for block in blocks:
            sums = add_halves(sums, halves_of(self._statistic(block)))
        return self._short(sums)

    def combine(self, one: Halves, other: Halves) -> Halves:
        first, second = ((high.astype(np.int64), low.astype(np.int64)) for high, low in (one, other))
        return self._short(add_halves(first, second))

    def _short(self, sums: Halves) -> Halves:
        high, low = sums
        high = high + (low >> 32)
        no_more = not high.any()
        return high.astype(np.int8) if no_more else high, (low & 0xFFFFFFFF).astype(np.uint32)


class Count(Work[SomeCounts]):
    """`Rows.count` of one partition. A result is no larger than a number for each cell, or for each record."""

    def __init__(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> None:
        self._cells_of, self._size = cells_of, size

    def of(self, blocks: Iterator[Block]) -> SomeCounts:
        counts = CellCounts(self._size)
        for block in blocks:
            counts.add(cells_below(self._cells_of(block), self._size))
        return self._short(counts.total())

    def combine(self, one: SomeCounts, other: SomeCounts) -> SomeCounts:
        counts = self.dense(one)
        counts += self.dense(other)
        return self._short(counts)

    def dense(self, some: SomeCounts) -> Counts:
        if not isinstance(some, tuple):
            return some
        counts = np.zeros(self._size, np.int64)
        counts[some[0]] = some[1]
        return counts

    def _short(self, counts: Counts) -> SomeCounts:
        used = np.flatnonzero(counts)
        return (used.astype(np.uint32), counts[used]) if 12 * used.size < 8 * counts.size else counts


class Failure:
    """An error, as a result: raised where it arose, it would be logged together with the records it is about."""

    def __init__(self, error: Exception) -> None:
        self.error = without_values(error).with_traceback(None)


class Summary(NamedTuple):
    """A statistic of the records `first` to `stop - 1`."""

    first: int
    stop: int
    value: Any


class Job(Generic[T]):
    """A piece of work, and how the partitions are read that it is done on. It is called where a partition is."""

    def __init__(self, work: Work[T], reader: Reader, of_labels: Reader | None = None) -> None:
        self._work, self._reader, self._of_labels = work, reader, of_labels

    def __call__(self, part: Any, first: int, n: int | None = None, labels: Any = None) -> Summary | Failure:
        """The summary of one partition, on one thread: the other cores of a host work on other partitions.

        Parameters
        ----------
        part : DataFrame, Arrow table or batch, or ndarray
            A partition, or some consecutive records of one.
        first : int
            The global index of the first of its records.
        n : int, optional
            How many they must be.
        labels : DataFrame or ndarray, optional
            Their labels, where those are in another collection.

        Returns
        -------
        Summary or Failure
            What `combine` takes. It can be pickled, and holds no record.
        """
        try:
            with alone(), np.errstate(all="ignore"):
                rows = self._opened(part, n)
                return Summary(first, first + rows.n, self._work.of(self._blocks(rows, first, part, labels)))
        except Exception as error:
            return Failure(error)

    def combine(self, *summaries: Summary | Failure) -> Summary | Failure:
        """One summary of several partitions, each as often as it is there and in their order; the first error, if any.

        Parameters
        ----------
        *summaries : Summary or Failure
            What the job returned, for partitions that follow each other. None of them is changed.

        Returns
        -------
        Summary or Failure
            The same for all of them together.
        """
        found: list[Summary] = []
        for each in summaries:
            if isinstance(each, Failure):
                return each
            found.append(each)
        try:
            value = deepcopy(found[0].value)  # an engine may need it again, as it was
            for before, each in pairwise(found):
                if each.first != before.stop:
                    raise ValueError(_ORDER)
                value = self._work.combine(value, each.value)
            return Summary(found[0].first, found[-1].stop, value)
        except Exception as error:
            return Failure(error)

    def result(self, summary: Summary | Failure, n: int) -> T:
        """The statistic of all n records, or the error that arose."""
        if isinstance(summary, Failure):
            raise summary.error
        if not isinstance(summary, Summary):
            raise TypeError(f"run: type {type(summary).__name__}: must return what job.combine returns")
        if (summary.first, summary.stop) != (0, n):
            raise ValueError(_ORDER)
        found: T = summary.value
        return found

    def _opened(self, part: Any, n: int | None) -> MemoryRows:
        rows = self._reader.open(part)
        if n is not None and rows.n != n:
            raise ValueError(f"data: a partition of {rows.n} records: must have {n}, as when it was first read")
        return rows

    def _blocks(self, rows: MemoryRows, first: int, part: Any, labels: Any) -> Iterator[Block]:
        attached = None
        if self._of_labels is not None:
            attached = self._of_labels.open(labels)
            if attached.n != rows.n:
                raise ValueError(f"y: a partition of {attached.n} labels: must have {rows.n}, as that of X has records")
            if hasattr(part, "index") and hasattr(labels, "index") and not part.index.equals(labels.index):
                raise ValueError("y: its index differs from that of X")
        elif self._reader.labelled:
            last = rows.width - 1
            rows, attached = rows.select(range(last)), rows.select([last])
        given = None if attached is None else attached.one_block()
        of_labels = None if given is None else given.entries(0)
        for block in rows.blocks():
            if of_labels is not None:
                block.labels = of_labels.part(block.first, block.first + block.n)
            block.first += first
            yield block

    def of_nothing(self, part: Any, labels: Any = None) -> T:
        """The statistic of no records at all."""
        with alone():
            return self._work.of(self._blocks(self._opened(part, 0), 0, part, labels))


class HeldJob(Job[T]):
    """A job on what an earlier job has made of partitions, whose results are held where these are."""

    def __init__(self, work: Work[T]) -> None:
        self._work = work

    def __call__(self, part: Any, first: int, n: int | None = None, labels: Any = None) -> Summary | Failure:
        """The summary of what is held of one partition: of the records that it was made of."""
        if isinstance(part, Failure):
            return part
        try:
            if (part.first, part.stop - part.first) != (first, n):
                raise ValueError(_ORDER)
            with alone(), np.errstate(all="ignore"):
                return Summary(part.first, part.stop, self._work.of(iter(part.value)))
        except Exception as error:
            return Failure(error)
