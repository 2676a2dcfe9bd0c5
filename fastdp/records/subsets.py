"""Some of the records, chosen by what is in them: their number is private, and `which` tells who they are.

A user holds a `Subset`, which names columns and lets nobody read how many records there are. Functions open it, for
add-remove neighbours (sources.py), as rows in the order that they have in the data: a release on them has the same bits
as one on an array of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ..support.calls import OfPersons, Which
from ..support.checks import items_of, plain_integer
from ..support.columns import Array, Coded, Column, Entries
from ..support.frozen import Frozen
from ..support.parameters import MOST_DIMENSIONS
from ..support.public_paths import public_as
from .arrays import MemoryRows
from .column_names import Names, at_least_one, names_at, positions_of
from .rows import Block, LabelsOfBlocks, PerRecord, Rows, RowsThrough, labels_in_memory


class Source:
    """The columns of records in memory, each read once however many parts take from it."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._entries: dict[int, Entries] = {}
        self._coded: dict[int, Coded | None] = {}

    def entries(self, column: int) -> Entries:
        if column not in self._entries:
            self._entries[column] = self._block.entries(column)
        return self._entries[column]

    def without_numbers(self, column: int) -> str | None:
        return self._block.without_numbers(column)

    def untyped(self, column: int) -> bool:
        return self._block.untyped(column)

    def coded(self, column: int) -> Coded | None:
        if column not in self._coded:
            self._coded[column] = self._block.coded(column)
        return self._coded[column]


class TakenColumn(Column):
    """The entries of a column at some places."""

    def __init__(self, source: Source, column: int, at: NDArray[np.intp]) -> None:
        self.label = source.entries(column).label
        self._source, self._column, self._at = source, column, at
        self.untyped = source.untyped(column)

    @property
    def without_numbers(self) -> str | None:
        return self._source.without_numbers(self._column)

    def __len__(self) -> int:
        return len(self._at)

    def entries(self, start: int, stop: int) -> Entries:
        values, missing, label = self._source.entries(self._column)
        at = self._at[start:stop]
        return Entries(values[at], None if missing is None else missing[at], label)

    def coded(self, start: int, stop: int) -> Coded | None:
        found = self._source.coded(self._column)
        return None if found is None else (found[0][self._at[start:stop]], found[1])


_NO_ARRAY = (
    "records: some of them, {}: must be given to a function with neighbors='add-remove', as how many they are is "
    "private"
)


def shown_which(which: Which) -> str:
    """What people read of it."""
    of_persons = "" if which.persons is None else f"at most {which.persons.at_most} of each {which.persons.unit}"
    return ", ".join(text for text in (of_persons, *(text for _, text in which.part)) if text)


@public_as("fastdp.records")
class Subset(Frozen, OfPersons):
    """Some of the records, as `fastdp.partition`, `limit_rows` and `per_person` return them.

    Every function that reads records takes it with `neighbors="add-remove"`. It has columns; how many records there are
    is private, and has no attribute. A pickle of it holds the records.

    Parameters
    ----------
    rows : Rows
        The records.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def names(self) -> Names:
        """The names of the columns, or None where these have positions only."""
        return self._rows.names

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self._rows.width

    @property
    def which(self) -> Which:  # type: ignore[override]
        """Which of the records they are."""
        return self._rows.which

    def __getitem__(self, columns: str | int | Sequence[str | int]) -> Subset:
        if isinstance(columns, str) or plain_integer(columns) is not None:
            return Subset(self._rows.select([columns]))  # type: ignore[list-item]
        wanted = items_of("columns", columns, "a column, or a list of them, by name or position", most=MOST_DIMENSIONS)
        return Subset(self._rows.select(wanted))

    __iter__ = None  # which would read columns by their positions

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ValueError(_NO_ARRAY.format(shown_which(self.which)))

    def __repr__(self) -> str:  # without the number of records, which is private
        what = "part of a partition" if self.which.part else "rows"
        return f"<{what}, {shown_which(self.which)}: {self.width:,} columns>"


def held(data: Any) -> Any:
    """The rows of a subset; anything else as it is."""
    return data._rows if isinstance(data, Subset) else data


class TakenRows(MemoryRows):
    """Some records that are in memory."""

    def __init__(self, columns: Sequence[Column], names: Names, n: int, which: Which) -> None:
        super().__init__(columns, names, n)
        self._which = which

    @classmethod
    def at(cls, source: Source, places: NDArray[np.intp], names: Names, width: int, which: Which) -> TakenRows:
        """Those at some places of a block."""
        columns = [TakenColumn(source, j, places) for j in range(width)]
        return cls(columns, names, len(places), which)

    def select(self, columns: Sequence[str | int]) -> TakenRows:
        at = positions_of(columns, self.names, self.width)
        return TakenRows([self._columns[j] for j in at], names_at(at, self.names), self.n, self.which)


class Choice(Protocol):
    """Which records of a block are chosen, and where in a process that reads the block this is decided."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The columns that it reads."""

    @property
    def size(self) -> int:
        """How many records are chosen."""

    def in_blocks_of(self, read: Rows, at: Sequence[int]) -> Choice:
        """The same for whoever reads these rows; `at` are the positions of what it reads."""

    def before(self, first: int) -> int:
        """How many of them are before the first record of a block."""

    def places(self, block: Block, at: Sequence[int]) -> NDArray[np.intp]:
        """Where the chosen records of a block are; `at` are the positions of what it reads."""


class FilteredRows(RowsThrough):
    """Some records that are read block by block: in files, or by an engine."""

    def __init__(
        self, rows: Rows, choice: Choice, columns: tuple[int, ...], which: Which, label: int | None = None
    ) -> None:
        self.names, self.width = names_at(columns, rows.names), at_least_one(columns)
        self._rows, self._choice, self._columns, self._which = rows, choice, columns, which
        self.n = choice.size
        needed = dict.fromkeys((*choice.reads, *(() if label is None else (label,))))
        wanted = [*columns, *(column for column in needed if column not in columns)]
        self._read = rows.select(wanted)
        self._reads_at = [wanted.index(column) for column in choice.reads]
        self._label, self._label_at = label, None if label is None else wanted.index(label)

    def select(self, columns: Sequence[str | int]) -> FilteredRows:
        at = tuple(self._columns[j] for j in positions_of(columns, self.names, self.width))
        return FilteredRows(self._rows, self._choice, at, self.which, self._label)

    def _making(self) -> Callable[[Block], Block]:
        choice, reads_at = self._choice.in_blocks_of(self._read, self._reads_at), self._reads_at
        names, width, label_at = self.names, self.width, self._label_at

        def of_chosen(block: Block) -> Block:
            at = choice.places(block, reads_at)
            source = Source(block)
            columns = [TakenColumn(source, j, at) for j in range(width)]
            chosen = Block(choice.before(block.first), len(at), columns, names, 0)
            if label_at is not None:
                chosen.labels = TakenColumn(source, label_at, at).entries(0, len(at))._replace(label="y")
            return chosen

        return of_chosen

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        self.merge(lambda block: function(block) is None, lambda a, b: a or b)  # whose errors come now
        return function

    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        if self.gathers:
            return self, labels
        if not isinstance(labels, FilteredRows) or (labels._rows, labels._choice) != (self._rows, self._choice):
            raise ValueError(f"y: type {type(labels).__name__}: must be a column of the same part as X, or its name")
        return FilteredRows(self._rows, self._choice, self._columns, self.which, labels._columns[0]), labels

    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
        return labels_in_memory(given, read, dtype) if self._label is None else LabelsOfBlocks(read, dtype)

    @property
    def gathers(self) -> bool:  # type: ignore[override]
        return self._rows.gathers

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        every = self._rows.dtypes()
        return tuple(every[j] for j in self._columns)

    def untyped(self, column: int) -> bool:
        return self._rows.untyped(self._columns[column])
