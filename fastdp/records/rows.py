"""Records, wherever they are: the protocol `Rows`, and what all records that this process reads have in common.

A reader of records gives a function of a block of them; `Rows` knows where the blocks are, calls it, and combines the
results. Blocks never depend on the number of threads, and sums are exact integers, so results have the same bits for
any number of threads, files or machines. Nothing here knows a domain (encoding.py does) or a loss.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.calls import ALL, Which
from ..support.columns import Array, Coded, Column, Entries
from ..support.parameters import Outside
from ..support.threads import run_chunks
from .bit_words import as_bits, pack_bytes, pack_flags
from .cell_counts import CellCounts, cells_below
from .column_names import Names, label_of, position_of
from .exact_sums import ExactSum, integers
from .outside_domain import bits_of, floats_of_objects, numbers_or_nan

T = TypeVar("T")

PerRecord = Callable[["Block"], NDArray[Any]]  # a function of a block with an entry for each record

BLOCK_RECORDS = 2**16  # a multiple of 64, so that blocks of packed records start with a word
_BITS_OF_A_CHUNK = 2**22  # that are worth a thread
_MOST_SPANS = 256
_MOST_KEPT = 2**30  # bytes of what is kept of every record; more than that is computed anew each time
_MOST_PARTS = 2**34  # and of what is made of blocks, which takes a quarter of what the records take


class Block:
    """Some consecutive records.

    first   the global index of the first of them, by which ties and random numbers go, never by the block
    n       how many they are
    labels  their labels, where records are read together with labels
    """

    labels: Entries | None = None

    def __init__(
        self,
        first: int,
        n: int,
        columns: Sequence[Column],
        names: Names,
        start: int,
        matrix: Array | None = None,
    ) -> None:
        self.first = first
        self.n = n
        self._columns = columns
        self._names = names
        self._start = start
        self._matrix = matrix

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def column(self, which: str | int) -> Array:
        """A column as an array, perhaps read-only: a view where types allow; labels where the column has labels.

        DomainError if an entry is missing.
        """
        column = self._columns[position_of(which, self._names, self.width)]
        return column.values(self._start, self._start + self.n)

    def entries(self, which: str | int) -> Entries:
        """A column as an array, and which entries are missing."""
        column = self._columns[position_of(which, self._names, self.width)]
        return column.entries(self._start, self._start + self.n)

    def numbers(self, which: str | int) -> Entries:
        """The same of a column of numbers; ValueError if its type says that no entry is one."""
        column = self._columns[position_of(which, self._names, self.width)]
        if (kind := column.without_numbers) is not None:
            raise ValueError(f"{column.label}: type {kind}: must be numbers")
        return column.entries(self._start, self._start + self.n)

    def without_numbers(self, which: str | int) -> str | None:
        """The name of a column's type, where that alone says that no entry is a number."""
        return self._columns[position_of(which, self._names, self.width)].without_numbers

    def untyped(self, which: str | int) -> bool:
        """Whether a column's type, objects, says nothing about its entries."""
        return self._columns[position_of(which, self._names, self.width)].untyped

    def matrix(self, outside: Outside = "raise") -> Array:
        """All columns as float32 or float64, a record a row, in C order: a view where the records are such an array.

        To be clipped, NaN stands for what is missing or no number.
        """
        if self._matrix is not None and self._matrix.dtype in (np.float32, np.float64):
            return np.ascontiguousarray(self._matrix[self._start : self._start + self.n])
        out = np.empty((self.n, self.width), np.float64)
        for j in range(self.width):
            if outside == "clip":
                out[:, j] = numbers_or_nan(self.numbers(j))
                continue
            values = self.numbers(j).complete()
            if values.dtype.kind == "O":  # of a list, say
                values = floats_of_objects(values, outside, label_of(j, self._names))
            if values.dtype.kind not in "biuf":
                raise ValueError(f"{label_of(j, self._names)}: dtype {values.dtype}: must be numbers")
            out[:, j] = values
        return out

    @property
    def by_records(self) -> bool:
        """Whether records are bytes one after the other in memory, not columns."""
        matrix = self._matrix
        return (
            matrix is not None
            and matrix.dtype in (np.bool_, np.uint8, np.int8)
            and matrix.strides[0] >= matrix.strides[1]
        )

    def bits(self, outside: Outside = "raise") -> NDArray[np.uint64]:
        """All columns, of 0 and 1, packed: bit i % 64 of word i // 64 is record i of the block; spare bits are 0.

        A view where the records are packed. DomainError if there are other values, unless they are to be clipped.
        """
        if self._matrix is not None and self.by_records:
            matrix = np.ascontiguousarray(self._matrix[self._start : self._start + self.n])
            return pack_bytes(matrix.clip(0, 1) if outside == "clip" and matrix.dtype != np.bool_ else matrix)
        words = np.empty((self.width, -(-self.n // 64)), np.uint64)

        def fill(start: int, stop: int) -> None:
            for j in range(start, stop):
                if outside == "clip":
                    words[j] = pack_flags(bits_of(self.numbers(j)))
                else:
                    words[j] = pack_flags(as_bits(self.column(j), label_of(j, self._names)))

        run_chunks(fill, self.width, max(1, _BITS_OF_A_CHUNK // max(1, self.n)))
        return words

    def coded(self, which: str | int) -> Coded | None:
        """A column as (places, labels), record i having labels[places[i]], where that is cheap; otherwise None.

        A place below 0 is of a missing entry.
        """
        column = self._columns[position_of(which, self._names, self.width)]
        return column.coded(self._start, self._start + self.n)

    def counted(self, which: str | int) -> Coded | None:
        """How often each label of a column occurs, and these, where that is cheaper than `coded`; otherwise None."""
        column = self._columns[position_of(which, self._names, self.width)]
        return column.counted(self._start, self._start + self.n)


class Rows(ABC):
    """Records, wherever they are.

    n, width   how many records and columns
    names      of the columns, or None when they have positions only
    gathers    whether one number for each record may be brought together in this process
    which      which part of a partition they are, or a choice of each person's: then their number is private; it stays

    A function that is given to a method may run on several threads at once, or in another process, to which it is sent:
    it must not keep its block, change anything outside of itself, or depend on where the records are.
    """

    n: int
    width: int
    names: Names
    gathers: bool = True
    _which: Which = ALL

    @property
    def block_step(self) -> int:
        """How many records a block has where another follows: rows of one table with the same have the same blocks."""
        return BLOCK_RECORDS

    @property
    def which(self) -> Which:
        return self._which

    @abstractmethod
    def select(self, columns: Sequence[str | int]) -> Rows:
        """The same records with these columns only, in this order; no other column is read."""

    @abstractmethod
    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        """The sum of a statistic over all blocks, integers of one shape; exact, or an OverflowError.

        Cost      one array of that shape for each thread, and two for the sum
        """

    @abstractmethod
    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        """A summary of every block, combined in the order of the blocks.

        `combine` must be associative, and may change and return its first argument. Summaries should be small.
        """

    @abstractmethod
    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        """How often each number below `size` is among the cells of all blocks.

        Cost      one int64[size], a byte more for each, and the cells of one block for each thread, however many
                  records there are
        """

    @abstractmethod
    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        """The same function of blocks of these records, computed only once for each where that saves time.

        Errors of `function` are raised here, or when the result is called.
        """

    def keep_parts(self, make: Callable[[Block], T], size: int) -> Parts[T]:
        """What `make` makes of every block, held where the records are if that is worth its memory.

        `size` is how many bytes it makes of a record.
        """
        return PartsMadeAnew(self, make)

    @abstractmethod
    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        """These records and their labels, an array or rows of one column, both as `label_reader` takes them.

        ValueError if the two do not belong together.
        """

    @abstractmethod
    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
        """What `read` makes of the labels that are attached to these records: the same number of entries."""

    @abstractmethod
    def one_block(self) -> Block | None:
        """All records as one block if they are in memory, otherwise None."""

    @abstractmethod
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The types of the columns, for which no record is read."""

    def untyped(self, column: int) -> bool:
        """Whether a column's type is known to be objects, which says nothing about its entries."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n:,} records, {self.width:,} columns>"


class RowsThrough(Rows):
    """Records that are read as those of other rows are: another block is made of each of theirs."""

    _read: Rows

    @abstractmethod
    def _making(self) -> Callable[[Block], Block]:
        """What makes a block of one of theirs, where a job begins; it may be sent to another process."""

    @property
    def block_step(self) -> int:
        return self._read.block_step

    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        return self._read.total(_Composed(self._making(), statistic))

    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        composed: Callable[[Block], T] = _Composed(self._making(), statistic)
        return self._read.merge(composed, combine)

    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        return self._read.count(_Composed(self._making(), cells_of), size)

    def one_block(self) -> None:
        return None


class Parts(ABC, Generic[T]):
    """What has been made of every block of some records: integer sums of it have the same bits wherever it is held."""

    @abstractmethod
    def total(self, statistic: Callable[[T], Any]) -> NDArray[np.int64]:
        """As `Rows.total`, of what was made."""

    def only(self) -> T | None:
        """What was made, if it is one and in this process."""
        return None


class PartsMadeAnew(Parts[T]):
    """Parts that are held nowhere: made of the records for each sum."""

    def __init__(self, rows: Rows, make: Callable[[Block], T]) -> None:
        self._rows, self._make = rows, make

    def total(self, statistic: Callable[[T], Any]) -> NDArray[np.int64]:
        return self._rows.total(_Composed(self._make, statistic))


class _Composed(Generic[T]):
    """One function of a block after another, which may be sent to another process."""

    def __init__(self, make: Callable[[Block], T], statistic: Callable[[T], Any]) -> None:
        self._make, self._statistic = make, statistic

    def __call__(self, block: Block) -> Any:
        return self._statistic(self._make(block))


class PartsInMemory(Parts[T]):
    """Parts that this process holds, in the order of the records."""

    def __init__(self, parts: list[T]) -> None:
        self._parts = parts

    def total(self, statistic: Callable[[T], Any]) -> NDArray[np.int64]:
        parts = self._parts
        if len(parts) == 1:
            return integers(statistic(parts[0]))
        total = ExactSum()

        def add(start: int, stop: int) -> None:
            for part in parts[start:stop]:
                total.add(statistic(part))

        run_chunks(add, len(parts), -(-len(parts) // _MOST_SPANS))
        return total.result()

    def only(self) -> T | None:
        return self._parts[0] if len(self._parts) == 1 else None


class LocalRows(Rows):
    """Records that this process can read in tasks, which are numbered; each task is one block or several."""

    _tasks: int

    @abstractmethod
    def _read(self, start: int, stop: int) -> Generator[Block, None, None]:
        """The blocks of tasks start .. stop - 1."""

    @abstractmethod
    def _nothing(self) -> Block:
        """A block of no records, which stands for all blocks if there are none."""

    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        total = ExactSum()
        self._run(lambda block: total.add(statistic(block)))
        return total.result()

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        nothing = self._nothing()
        return tuple(nothing.column(j).dtype for j in range(self.width))

    def untyped(self, column: int) -> bool:
        return self._nothing().untyped(column)

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        if self.n * np.dtype(dtype).itemsize > _MOST_KEPT:
            self._run(function)
            return function
        kept = np.empty(self.n, dtype)

        def fill(block: Block) -> None:
            kept[block.first : block.first + block.n] = function(block)

        self._run(fill)
        return _Kept(kept)

    def keep_parts(self, make: Callable[[Block], T], size: int) -> Parts[T]:
        if self.n * size > _MOST_PARTS:
            return PartsMadeAnew(self, make)
        parts: list[T] = self.merge(lambda block: [make(block)], _joined)
        return PartsInMemory(parts)

    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        if isinstance(labels, Rows) and not isinstance(labels, LocalRows):
            raise ValueError("y: a Dask collection: must be an array, as the records are in this process")
        return self, labels

    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
        return labels_in_memory(given, read, dtype)

    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        summaries = self._run(statistic, combine)
        merged = summaries[0]
        for summary in summaries[1:]:
            merged = combine(merged, summary)
        return merged

    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        counts = CellCounts(size)
        # Threads count one after the other, so that memory does not grow with them: that is 0.2 to 0.9 ns of the 1.3
        # and more that a record takes.
        lock = threading.Lock()

        def add(block: Block) -> None:
            cells = cells_below(cells_of(block), size)
            with lock:
                counts.add(cells)

        self._run(add)
        return counts.total()

    def _run(self, function: Callable[[Block], T], combine: Callable[[T, T], T] | None = None) -> list[T]:
        """What the function returns, combined (or forgotten) over each of a bounded number of spans."""

        def span(start: int, stop: int) -> T:
            with closing(self._read(start, stop)) as blocks:
                result = function(next(blocks))
                for block in blocks:
                    more = function(block)
                    result = combine(result, more) if combine else more
                return result

        if not self.n:
            return [function(self._nothing())]
        return run_chunks(span, self._tasks, -(-self._tasks // _MOST_SPANS))


def _joined(some: list[T], more: list[T]) -> list[T]:
    some += more
    return some


class _Kept:
    """One entry for each record, held in memory, as a function of a block."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __call__(self, block: Block) -> Array:
        return self.values[block.first : block.first + block.n]


class LabelsOfBlocks:
    """What `read` makes of the labels that come with a block."""

    def __init__(self, read: Callable[[Entries], Array], dtype: Any) -> None:
        self._read, self._dtype = read, dtype

    def __call__(self, block: Block) -> Array:
        assert block.labels is not None
        return np.ascontiguousarray(self._read(block.labels), self._dtype)


def labels_in_memory(given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
    """What `read` makes of all labels, which are entries or rows of one column."""
    entries = column_entries(given) if isinstance(given, Rows) else given
    return _Kept(np.ascontiguousarray(read(entries), dtype))


def column_entries(rows: Rows) -> Entries:
    """All of the first column."""
    parts: list[Entries] = rows.merge(lambda block: [block.entries(0)], lambda a, b: a + b)
    if len(parts) == 1:
        return parts[0]
    missing = [np.zeros(len(part.values), np.bool_) if part.missing is None else part.missing for part in parts]
    return Entries(np.concatenate([part.values for part in parts]), np.concatenate(missing), parts[0].label)
