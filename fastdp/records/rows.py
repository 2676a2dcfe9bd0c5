"""Where records live and how they are summed: arrays, data frames, bit-packed columns; files are in parquet.py, and
Dask collections in connect/dask.py.

Whoever reads records says what to compute of a block of them; `Rows` says where the blocks are, and puts the results
together. Blocks never depend on the number of threads, and sums are exact integers, so results have the same bits for
any number of threads, files or machines. Nothing here knows a domain (answering/coding.py does) or a loss.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.checks import integer
from ..support.columns import Array, BitColumn, Coded, Column, NumpyColumn, as_compiled, column_of, comes_from, pyarrow
from ..support.errors import DomainError
from ..support.threads import run_chunks
from .packed import pack_flags

T = TypeVar("T")

PerRecord = Callable[["Block"], NDArray[Any]]  # what says something of every record of a block
Halves = tuple[NDArray[Any], NDArray[Any]]  # of integers: 2^32 times the first and the second

BLOCK_RECORDS = 2**16  # a multiple of 64, so that blocks of packed records start with a word
_BLOCK_VALUES = 2**21
_BLOCK_BITS = 2**18  # packed records of a block: 20 us a column
_BITS_OF_A_CHUNK = 2**22  # that are worth a thread
_MOST_SPANS = 256
_MOST_KEPT = 2**30  # bytes of what is kept of every record; more than that is computed anew each time
_KINDS = (
    "a 2-D numpy array, a mapping from names to columns, a pandas or polars DataFrame, an Arrow table, "
    "a Parquet file or a list of them, packed rows, a Dask array or DataFrame, or a table with Arrow's C stream "
    "interface"
)


class Block:
    """Some consecutive records.

    first   the global index of the first of them: ties and random numbers go by it, never by the block
    n       how many they are
    beside  an entry of another column for each of them, where records are read together with their labels
    """

    beside: Array | None = None

    def __init__(
        self,
        first: int,
        n: int,
        columns: Sequence[Column],
        names: tuple[str, ...] | None,
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
        """A column as an array, perhaps read-only: a view where types allow; labels where the column has labels."""
        column = self._columns[position_of(which, self._names, self.width)]
        return column.values(self._start, self._start + self.n)

    def matrix(self) -> Array:
        """All columns as float32 or float64, a record a row, in C order: a view where the records are such an array."""
        if self._matrix is not None and self._matrix.dtype in (np.float32, np.float64):
            return np.ascontiguousarray(self._matrix[self._start : self._start + self.n])
        out = np.empty((self.n, self.width), np.float64)
        for j in range(self.width):
            values = self.column(j)
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

    def bits(self) -> NDArray[np.uint64]:
        """All columns, of 0 and 1, packed: bit i % 64 of word i // 64 is record i of the block; spare bits are 0.

        A view where the records are packed. DomainError if there are other values.
        """
        if self._matrix is not None and self.by_records:
            return _pack_matrix(np.ascontiguousarray(self._matrix[self._start : self._start + self.n]))
        words = np.empty((self.width, -(-self.n // 64)), np.uint64)

        def fill(start: int, stop: int) -> None:
            for j in range(start, stop):
                words[j] = pack_flags(_as_bits(self.column(j), label_of(j, self._names)))

        run_chunks(fill, self.width, max(1, _BITS_OF_A_CHUNK // max(1, self.n)))
        return words

    def coded(self, which: str | int) -> Coded | None:
        """A column as (places, labels), record i having labels[places[i]], where that is cheap; otherwise None."""
        column = self._columns[position_of(which, self._names, self.width)]
        return column.coded(self._start, self._start + self.n)


class Rows(ABC):
    """Records, wherever they are.

    n, width   how many records and columns
    names      of the columns, or None when they have positions only
    gathers    whether one number for each record may be brought together in this process

    A function that is given to a method here may run on several threads at once, or in another process, to which it is
    sent: it must not keep its block, change what is around it, or know where the records are.
    """

    n: int
    width: int
    names: tuple[str, ...] | None
    gathers: bool = True

    @abstractmethod
    def select(self, columns: Sequence[str | int]) -> Rows:
        """The same records with these columns only, in this order; no other column is read."""

    @abstractmethod
    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        """The sum over all blocks of a statistic, integers of one shape; exact, or an OverflowError.

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

        Cost      one int64[size] and the cells of one block for each thread, however many records there are
        """

    @abstractmethod
    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        """The same as `function` for blocks of these records, which is called once for each of them where that helps.

        Its errors come now, or when what comes back is called.
        """

    @abstractmethod
    def beside(self, labels: Any) -> tuple[Rows, Any]:
        """These records and their labels, an array or rows of one column, as `label` takes both: ValueError if the two
        do not go together."""

    @abstractmethod
    def label(self, given: Any, read: Callable[[Array], Array], dtype: Any) -> PerRecord:
        """What `read` makes of the labels that came `beside` these records: the same number of entries."""

    @abstractmethod
    def packed(self) -> Rows:
        """The same records, of 0 and 1, made ready to be looked at as bits several times."""

    @abstractmethod
    def whole(self) -> Block | None:
        """All records as one block, if they are in memory."""

    @abstractmethod
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The types of the columns, for which no record is read."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n:,} records, {self.width:,} columns>"


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
        total = _Total()
        self._run(lambda block: total.add(statistic(block)))
        return total.result()

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        nothing = self._nothing()
        return tuple(nothing.column(j).dtype for j in range(self.width))

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        if self.n * np.dtype(dtype).itemsize > _MOST_KEPT:
            self._run(function)
            return function
        kept = np.empty(self.n, dtype)

        def fill(block: Block) -> None:
            kept[block.first : block.first + block.n] = function(block)

        self._run(fill)
        return _Kept(kept)

    def beside(self, labels: Any) -> tuple[Rows, Any]:
        if isinstance(labels, Rows) and not isinstance(labels, LocalRows):
            raise ValueError("y: a Dask collection: must be an array, as the records are in this process")
        return self, labels

    def label(self, given: Any, read: Callable[[Array], Array], dtype: Any) -> PerRecord:
        values = column_values(given) if isinstance(given, Rows) else given
        return _Kept(np.ascontiguousarray(read(values), dtype))

    def packed(self) -> Rows:
        return pack(self)

    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        summaries = self._run(statistic, combine)
        merged = summaries[0]
        for summary in summaries[1:]:
            merged = combine(merged, summary)
        return merged

    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        from ..kernels.histograms import count_cells_into

        counts = np.zeros(size, np.int64)
        # Threads count one after the other, so that memory does not grow with them: that is 0.3 ns of the 1.3 and more
        # that a record takes, 3 ns at 2^24 cells.
        lock = threading.Lock()

        def add(block: Block) -> None:
            cells = cells_below(cells_of(block), size)
            with lock:
                count_cells_into(cells, counts)

        self._run(add)
        return counts

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


class _Kept:
    """Something that is known of every record, in their order."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __call__(self, block: Block) -> Array:
        return self.values[block.first : block.first + block.n]


class MemoryRows(LocalRows):
    """Columns in memory."""

    def __init__(
        self, columns: Sequence[Column], names: tuple[str, ...] | None, n: int, matrix: Array | None = None
    ) -> None:
        self.n, self.width, self.names = n, at_least_one(columns), names
        self._columns = columns
        self._matrix = matrix  # the array that the columns are of, if there is one
        wide = _BLOCK_VALUES // self.width // 1024 * 1024
        self._step = min(max(wide, 1024), BLOCK_RECORDS)
        self._tasks = -(-n // self._step)

    def select(self, columns: Sequence[str | int]) -> MemoryRows:
        at = positions_of(columns, self.names, self.width)
        return MemoryRows([self._columns[j] for j in at], _named(self.names, at), self.n)

    def blocks(self) -> Generator[Block, None, None]:
        """All blocks in order, at least one, for who reads them on a thread of its own."""
        if not self.n:
            yield self._nothing()
        yield from self._read(0, self._tasks)

    def whole(self) -> Block | None:
        return self._block(0, self.n)

    def _nothing(self) -> Block:
        return self._block(0, 0)

    def _block(self, first: int, n: int) -> Block:
        return Block(first, n, self._columns, self.names, first, self._matrix)

    def _read(self, start: int, stop: int) -> Generator[Block, None, None]:
        for first in range(start * self._step, min(stop * self._step, self.n), self._step):
            yield self._block(first, min(self._step, self.n - first))


class _PackedBlock(Block):
    """Some consecutive records of packed ones, from a multiple of 64 on; all of a last word's records, or the last."""

    _words: NDArray[np.uint64]

    def bits(self) -> NDArray[np.uint64]:
        return self._words


class PackedRows(MemoryRows):
    """Records of bits, packed by columns; made by `pack`, and reusable over calls.

    words    uint64[d, ceil(n/64)]: bit i % 64 of word i // 64 is record i; spare bits are 0
    """

    def __init__(self, words: NDArray[np.uint64], n: int, names: tuple[str, ...] | None = None) -> None:
        n = integer("n", n, least=0)
        if words.dtype != np.uint64:
            raise ValueError(f"words: dtype {words.dtype}: must be uint64")
        if words.ndim != 2 or words.shape[1] != -(-n // 64):
            raise ValueError(f"words: shape {words.shape}: must be (d, {-(-n // 64)}), for n={n}")
        if n % 64 and (words[:, -1] >> np.uint64(n % 64)).any():
            raise ValueError(f"words: must have 0 in the bits from n={n} on")
        if names is not None and len(names) != len(words):
            raise ValueError(f"names: {len(names)}: must be {len(words)}, as there are columns")
        self.words = words = np.ascontiguousarray(words)
        super().__init__([BitColumn(label_of(j, names), words[j], n) for j in range(len(words))], names, n)
        self._step = _BLOCK_BITS
        self._tasks = -(-n // self._step)

    @property
    def d(self) -> int:
        """How many columns there are."""
        return self.width

    def column(self, which: str | int) -> NDArray[np.bool_]:
        """A column, unpacked."""
        return self._columns[position_of(which, self.names, self.width)].values(0, self.n)

    def _block(self, first: int, n: int) -> Block:
        block = _PackedBlock(first, n, self._columns, self.names, first)
        block._words = self.words[:, first // 64 : -(-(first + n) // 64)]
        return block

    def select(self, columns: Sequence[str | int]) -> PackedRows:
        at = positions_of(columns, self.names, self.width)
        return (
            self if at == tuple(range(self.width)) else PackedRows(self.words[list(at)], self.n, _named(self.names, at))
        )


class _Total:
    """A sum of integer arrays in two halves, so that neither it nor its errors depend on the order of the terms."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._halves: Halves | None = None

    def add(self, value: Any) -> None:
        halves = halves_of(value)
        with self._lock:
            self._halves = halves if self._halves is None else add_halves(self._halves, halves)

    def result(self) -> NDArray[np.int64]:
        assert self._halves is not None
        return joined(self._halves)


def halves_of(value: Any) -> Halves:
    """Integers in two halves, of which many can be added before they are joined again."""
    array = np.asarray(value)
    if array.dtype.kind not in "biu":
        raise ValueError(f"statistic: dtype {array.dtype}: must be integers")
    if array.dtype == np.uint64 and array.size and array.max() > np.uint64(2**63 - 1):
        raise OverflowError("statistic: must be below 2^63")
    array = array.astype(np.int64)
    high = np.asarray(array >> 32)
    array &= 0xFFFFFFFF
    return high, array


def add_halves(sums: Halves, more: Halves) -> Halves:
    """The first, to which the second has been added."""
    if sums[0].shape != more[0].shape:
        shapes = f"{sums[0].shape}, {more[0].shape}"
        raise ValueError(f"statistic: shapes {shapes}: must be the same for all blocks")
    sums[0][...] += more[0]
    sums[1][...] += more[1]
    return sums


def joined(sums: Halves) -> NDArray[np.int64]:
    high, low = (half.astype(np.int64) for half in sums)
    high += low >> 32
    if high.size and (high.max() >= 2**31 or high.min() < -(2**31)):
        raise OverflowError("total: must be within int64")
    return np.asarray((high << 32) | (low & 0xFFFFFFFF), np.int64)


def cells_below(cells: Array, size: int) -> NDArray[np.uint32]:
    """Cells as `count_cells_into` takes them; ValueError unless they are below `size`."""
    cells = np.require(cells, np.uint32, "C")
    if cells.size and int(cells.max()) >= size:
        raise ValueError(f"cells: must be below size={size}; there are others")
    return cells


def column_values(rows: Rows) -> Array:
    """The first column, whole."""
    parts: list[Array] = rows.merge(lambda block: [block.column(0)], lambda a, b: a + b)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def rows_of(data: Any) -> Rows:
    """Records from whatever holds them; arrays and columns are not copied."""
    if isinstance(data, Rows):
        return data
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list | tuple) and all(isinstance(path, str | os.PathLike) for path in data):
        from .parquet import ParquetRows

        return ParquetRows(data)
    if isinstance(data, np.ndarray):
        return _of_array(data)
    if isinstance(data, Mapping):
        return _of_columns(list(data), list(data.values()))
    if comes_from(data, "pandas", "DataFrame"):
        names = list(data.columns)
        from_array = names == list(range(len(names)))
        return _of_columns(None if from_array else names, [data.iloc[:, j] for j in range(data.shape[1])], len(data))
    if comes_from(data, "polars", "DataFrame"):
        return _of_columns(data.columns, data.get_columns(), data.height)
    if comes_from(data, "pyarrow", "Table", "RecordBatch"):
        return _of_columns(data.schema.names, data.columns, data.num_rows)
    if is_dask(data):
        from ..connect.dask import DaskRows

        return DaskRows(data)
    if hasattr(data, "__arrow_c_stream__"):  # any other library's table; its columns are shared, not copied
        try:
            table = pyarrow().table(data)
        except ValueError as error:  # a column, say
            raise ValueError(f"data: type {type(data).__name__}: must be {_KINDS} ({error})") from None
        return rows_of(table)
    raise ValueError(f"data: type {type(data).__name__}: must be {_KINDS}")


def column_rows(name: str, data: Any) -> Rows:
    """Records of one column, from an array, a Series or what else is a column."""
    if is_dask(data):
        from ..connect.dask import DaskRows

        return DaskRows(data, name)
    column = column_of(name, data)
    return MemoryRows([column], None, len(column))


def is_dask(data: Any) -> bool:
    """Whether this is a collection of Dask's, of whatever kind."""
    return any(kind.__module__.partition(".")[0] in ("dask", "dask_expr") for kind in type(data).__mro__)


def pack(data: Any) -> PackedRows:
    """Records of 0 and 1 as bit-packed columns, an eighth of the memory of bools; reusable over calls.

    Examples
    >>> import numpy as np
    >>> from fastdp.records.rows import pack
    >>> packed = pack(np.array([[True, False], [True, True], [False, True]]))
    >>> packed
    <PackedRows: 3 records, 2 columns>
    >>> packed.words
    array([[3],
           [6]], dtype=uint64)
    """
    rows = rows_of(data)
    if isinstance(rows, PackedRows):
        return rows
    if not isinstance(rows, LocalRows):
        raise ValueError("data: a Dask collection is not packed into this process: learners pack it where it is")

    whole = rows.whole()
    if whole is not None and not whole.by_records:  # column by column: blocks would be short pieces of each
        return PackedRows(whole.bits(), rows.n, rows.names)
    words = np.zeros((rows.width, -(-rows.n // 64)), np.uint64)
    lock = threading.Lock()

    def write(block: Block) -> None:
        bits = block.bits()
        word, skip = divmod(block.first, 64)
        after = -(-(block.first + block.n) // 64) - word
        with lock:  # blocks of files may share a word
            if not skip:
                words[:, word : word + after] |= bits
                return
            words[:, word : word + bits.shape[1]] |= bits << np.uint64(skip)
            words[:, word + 1 : word + after] |= bits[:, : after - 1] >> np.uint64(64 - skip)

    rows.merge(write, lambda before, after: None)
    return PackedRows(words, rows.n, rows.names)


def _pack_matrix(matrix: Array) -> NDArray[np.uint64]:
    """Records of bytes 0 and 1, in C order."""
    from ..kernels.literals import GROUP, TILE, pack_rows_into

    n, d = matrix.shape
    words = np.empty((d, -(-n // 64)), np.uint64)
    tail, buffer = np.empty(TILE * (d + 1), np.uint8), np.empty(GROUP * TILE * -(-d // TILE), np.uint64)
    if pack_rows_into(as_compiled(matrix.view(np.uint8).reshape(-1)), d, tail, buffer, words) > 1:
        wrong = next(j for j in range(d) if (matrix[:, j].view(np.uint8) > 1).any())
        raise DomainError(f"column {wrong}: must hold 0 and 1 only; there are others")
    return words


def _as_bits(values: Array, label: str) -> NDArray[np.bool_]:
    """A column of 0 and 1 as bools."""
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{label}: dtype {values.dtype}: must be 0 and 1")
    if values.dtype == np.bool_:
        return np.asarray(values)
    try:
        ones = np.asarray(values == 1, np.bool_)
        allowed = bool((ones | np.asarray(values == 0, np.bool_)).all())
    except (TypeError, ValueError):  # of objects that do not compare
        allowed = False
    if not allowed:
        raise DomainError(f"{label}: must hold 0 and 1 only; there are others")
    return ones


def positions_of(columns: Sequence[str | int], names: tuple[str, ...] | None, width: int) -> tuple[int, ...]:
    """Which columns these are; ValueError lists the names that are missing."""
    if isinstance(columns, str):
        columns = [columns]
    if names is None:
        return tuple(position_of(which, None, width) for which in columns)
    places = {name: j for j, name in enumerate(names)}
    if missing := [name for name in columns if isinstance(name, str) and name not in places]:
        shown = ", ".join(map(repr, missing[:12])) + (", ..." if len(missing) > 12 else "")
        raise ValueError(f"data: must have the columns {shown}")
    return tuple(places[w] if isinstance(w, str) else position_of(w, names, width) for w in columns)


def position_of(which: str | int, names: tuple[str, ...] | None, width: int) -> int:
    """Which column has this name or position."""
    if isinstance(which, str):
        if names is None:
            raise ValueError(f"column={which!r}: must be a position, as the columns have no names")
        if which not in names:
            raise ValueError(f"column={which!r}: must be one of {', '.join(map(repr, names[:12]))}")
        return names.index(which)
    if isinstance(which, bool) or not isinstance(which, int | np.integer) or not 0 <= which < width:
        raise ValueError(f"column={which!r}: must be a name, or a position from 0 to {width - 1}")
    return int(which)


def _of_array(data: NDArray[Any]) -> Rows:
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError("data: must not be a masked array; fill or drop the masked entries first")
    data = np.asarray(data)  # no longer a matrix
    if data.dtype.names is not None:
        raise ValueError("data: must not be a structured array; give {name: data[name], ...}")
    if data.ndim != 2:
        hint = "; of one column, data[:, None]" if data.ndim == 1 else ""
        raise ValueError(f"data: shape {data.shape}: must have two dimensions, records and columns{hint}")
    columns = [NumpyColumn(label_of(j, None), data[:, j]) for j in range(data.shape[1])]
    return MemoryRows(columns, None, len(data), data if data.dtype.isnative else None)


def _of_columns(names: list[Any] | None, columns: Sequence[Any], n: int | None = None) -> Rows:
    checked = None if names is None else checked_names(names)
    found = [column_of(label_of(j, checked), column) for j, column in enumerate(columns)]
    n = len(found[0]) if n is None and found else n
    for column in found:
        if len(column) != n:
            raise ValueError(f"{column.label}: {len(column)} entries: must have {n}, as the first column has")
    return MemoryRows(found, checked, n or 0)


def checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"data: column name {name!r}: must be a string")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"data: column name {twice!r}: must not repeat")
    return tuple(names)


def at_least_one(columns: Sequence[Any]) -> int:
    if not columns:
        raise ValueError("data: must have at least one column")
    return len(columns)


def _named(names: tuple[str, ...] | None, at: tuple[int, ...]) -> tuple[str, ...] | None:
    return None if names is None else tuple(names[j] for j in at)


def label_of(position: int, names: tuple[str, ...] | None) -> str:
    return f"column {position}" if names is None else f"column {names[position]!r}"
