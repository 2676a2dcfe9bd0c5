"""Records that another library holds in parts: what it must do, so that fastdp reads them where they are.

An engine runs a job on every part and brings the results together; all else is here. What a job is, and how a part is
read, is in engine_jobs.py; which collections are opened by themselves, in engines.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.columns import Array, Entries, comes_from
from ..support.public_paths import public_as
from .arrays import block_step
from .column_names import at_least_one, label_of, names_at, positions_of
from .engine_jobs import Count, Failure, HeldJob, Job, Keep, Merge, Reader, Summary, Total, Work
from .exact_sums import joined
from .rows import Block, LabelsOfBlocks, Parts, PartsMadeAnew, PerRecord, Rows
from .sources import opened

T = TypeVar("T")

RunHeld = Callable[[Job[Any]], Summary | Failure]
"""Runs a job on everything that is held of the parts, as `Engine.run` does on the parts."""


@public_as("fastdp.records")
class Engine(Rows):
    """Records in the parts of a table that another library holds: define `run`, and all functions read them.

    Results have the same bits as for the same table in memory, whatever the parts are. No record is brought to this
    process: a job is sent to the parts, and its results, which are sums, counts and summaries, come back.

    Parameters
    ----------
    empty : DataFrame, Arrow table or ndarray
        The table without records, of which names and types of the columns are read: a pandas DataFrame, an Arrow table
        or an array of two dimensions.
    lengths : sequence of int
        How many records each part has, in the order of the parts. It is public under replace-one neighbours, as `n` is.
    name : str
        What errors call the table.

    Attributes
    ----------
    n, width : int
        How many records and columns there are.
    names : tuple of str or None
        The names of the columns.
    lengths, starts : tuple of int
        How many records each part has, and the global index of the first of them.

    Notes
    -----
    Guarantee    a job refuses results of parts that are combined twice, out of order or not at all, so that a record
                 counts once in every statistic
    Proof        engine.md
    Not covered  an engine whose parts change from one pass to the next, or that looks at the records itself

    Examples
    --------
    >>> import numpy as np
    >>> import fastdp
    >>> class Arrays(fastdp.records.Engine):
    ...     '''Records in a list of arrays.'''
    ...
    ...     def __init__(self, arrays):
    ...         super().__init__(arrays[0][:0], [len(array) for array in arrays])
    ...         self._arrays = arrays
    ...
    ...     def run(self, job, columns):
    ...         parts = zip(self._arrays, self.starts)
    ...         return job.combine(*(job(array[:, columns], first) for array, first in parts))
    >>> table = np.arange(12_000.0).reshape(6_000, 2)
    >>> rows = Arrays([table[:1_000], table[1_000:]])
    >>> rows
    <Arrays: 6,000 records, 2 columns>
    >>> def total(records):
    ...     seed = fastdp.Randomness(seed=1)  # for comparisons only: it reveals the noise
    ...     return fastdp.vector_sum(records, clip=9.0, epsilon=1.0, rng=seed).value
    >>> bool((total(rows) == total(table)).all())
    True
    """

    gathers = False

    def __init__(self, empty: Any, lengths: Sequence[int], *, name: str = "data") -> None:
        local = opened(empty)
        if local.n:
            raise ValueError(f"empty: {local.n} records: must be none")
        self._name, self._empty = name, empty
        self._all_names, self._all_types = local.names, local.dtypes()
        self.lengths = tuple(map(int, lengths))
        if any(length < 0 for length in self.lengths):
            raise ValueError("lengths: must be 0 or greater")
        self.starts = (0, *accumulate(self.lengths))[:-1]
        self.n = sum(self.lengths)
        self._table = object()  # which rows are of one table
        self._labels: tuple[Engine, int] | None = None
        self._choose(tuple(range(local.width)))

    @abstractmethod
    def run(self, job: Job[Any], columns: list[int]) -> Summary | Failure:
        """Run a job on every part, where the part is, and combine what it returns.

        Parameters
        ----------
        job : Job
            `job(part, first)` is the summary of a part whose first record has the global index `first`, such as
            `self.starts[i]`; `job.combine(*summaries)` is one of several that follow each other. A part may be given in
            several pieces, each with its own `first`. Job and summaries travel pickled; functions that a job holds may
            need cloudpickle.
        columns : list of int
            Which columns of the table a part must have here, in this order, and no others.

        Returns
        -------
        Summary or Failure
            What `job.combine` makes of all parts, in their order.
        """

    def hold(self, job: Job[Any], columns: list[int], size: int) -> RunHeld | None:
        """Run a job on every part, and hold what it returns where the part is, for other jobs; or do not, and say so.

        What is summed more than once, as in each step of a descent, is then made once. An engine need not define it.

        Parameters
        ----------
        job : Job
            As `run` takes it.
        columns : list of int
            As there.
        size : int
            How many bytes will be held in all, about.

        Returns
        -------
        callable or None
            `held(other)` calls `other(made, first, n)` on what the job made of each part that has n > 0 records, of
            which `first` is the first, and combines the results as `run` does. What is lost may be made anew: a job
            returns the same for the same part. None if nothing is held.
        """
        return None

    def __getitem__(self, columns: str | int | Sequence[str | int]) -> Rows:
        """One column, or several: `rows["age"]`, `rows[["age", "income"]]`."""
        return self.select([columns] if isinstance(columns, str | int) else list(columns))

    @property
    def block_step(self) -> int:
        """How many records a block has at most: fewer where they are wide."""
        return block_step(self.width)

    def _copy(self) -> Engine:
        rows = type(self).__new__(type(self))
        rows.__dict__.update(self.__dict__)
        return rows

    def _choose(self, at: tuple[int, ...]) -> None:
        self._columns = at
        self.width = at_least_one(at)
        self.names = names_at(at, self._all_names)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: rows stay where they were made: send the collection, and make them anew"
        )

    def select(self, columns: Sequence[str | int]) -> Rows:
        rows = self._copy()
        rows._choose(tuple(self._columns[j] for j in positions_of(columns, self.names, self.width)))
        return rows

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(self._all_types[j] for j in self._columns)

    def one_block(self) -> Block | None:
        return None

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        return function  # what were kept would lie elsewhere than the records, some day

    def keep_parts(self, make: Callable[[Block], T], size: int) -> Parts[T]:
        job, columns, _ = self._job(Keep(make))
        held = self.hold(job, columns, self.n * size) if self.n else None
        return PartsMadeAnew(self, make) if held is None else _PartsHeld(held, self.n)

    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        if not isinstance(labels, Engine) or not self._has(labels):
            raise ValueError(f"y: type {type(labels).__name__}: must be the name of a column of X")
        return self._with_labels(labels), labels

    def _has(self, other: Engine) -> bool:
        """Whether other rows are of the same table."""
        return other._table is self._table

    def _with_labels(self, labels: Engine) -> Engine:
        rows = self._copy()
        rows._labels = labels, labels._columns[0]
        return rows

    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
        return LabelsOfBlocks(read, dtype)

    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        return joined(self._run(Total(statistic)))

    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        return self._run(Merge(statistic, combine))

    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        counting = Count(cells_of, size)
        return counting.dense(self._run(counting))

    def _run(self, work: Work[T]) -> T:
        """One job on all parts."""
        job, columns, nobody = self._job(work)
        if not self.n:
            return job.of_nothing(*nobody)
        return job.result(self.run(job, columns), self.n)

    def _job(self, work: Work[T]) -> tuple[Job[T], list[int], tuple[Any, Any]]:
        """A job on parts, the columns that it reads, and a part without records, and without labels."""
        of_labels = labels_there = None
        asked: tuple[int, ...] = self._columns
        if self._labels is not None:
            there, label = self._labels
            if self._has(there):
                asked = (*asked, label)
            else:
                of_labels, labels_there = there._reader((label,)), there._nothing((label,))
        reader = self._reader(asked, labelled=self._labels is not None and of_labels is None)
        return Job(work, reader, of_labels), self._asked(asked), (self._nothing(asked), labels_there)

    def _asked(self, columns: tuple[int, ...]) -> list[int]:
        """The columns of a part of which these are read."""
        return sorted(set(columns))

    def _nothing(self, columns: tuple[int, ...]) -> Any:
        """A part without records."""
        asked = self._asked(columns)
        if comes_from(self._empty, "pandas", "DataFrame"):
            return self._empty.iloc[:, asked]
        return self._empty[:, asked] if isinstance(self._empty, np.ndarray) else self._empty.select(asked)

    def _reader(self, columns: tuple[int, ...], *, labelled: bool = False) -> Reader:
        asked, names = self._asked(columns), self._all_names
        return Reader(
            tuple(self._name if self._name == "y" else label_of(j, names) for j in columns),
            tuple(asked.index(j) for j in columns),
            tuple(None if self._is_category(j) else self._all_types[j] for j in columns),
            names_at(columns, names),
            self._labels_of(asked),
            labelled,
        )

    def _labels_of(self, columns: Sequence[int]) -> tuple[Any, ...]:
        """What columns of a part are called."""
        if comes_from(self._empty, "pandas", "DataFrame"):
            return tuple(self._empty.columns[list(columns)])
        return tuple(columns) if self._all_names is None else tuple(self._all_names[j] for j in columns)

    def _is_category(self, j: int) -> bool:
        is_frame = comes_from(self._empty, "pandas", "DataFrame")
        return is_frame and comes_from(self._empty.iloc[:, j].array, "pandas", "Categorical")


class _PartsHeld(Parts[T]):
    """What has been made of blocks, held by an engine."""

    def __init__(self, run: RunHeld, n: int) -> None:
        self._run, self._n = run, n

    def total(self, statistic: Callable[[T], Any]) -> NDArray[np.int64]:
        job = HeldJob(Total(statistic))
        return joined(job.result(self._run(job), self._n))
