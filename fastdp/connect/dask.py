"""Records in Dask arrays and DataFrames (extra `[dask]`), read where their partitions are by the scheduler that is set.

A statistic is sent to the partitions; its results for them come back, combined on the way. So noise is drawn once, at
the client, from the same integers as on one machine, and no record travels. Nothing is kept from one statistic to the
next: a partition that is lost with its worker, and computed anew, has the same result.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from math import isnan
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..records.column_names import at_least_one, label_of, positions_of
from ..records.exact_sums import joined
from ..records.rows import Block, PerRecord, Rows
from ..records.sources import rows_of
from ..support.boundary import boundary
from ..support.columns import Array, Entries, comes_from
from ..support.threads import alone
from .partitions import Count, Failure, Job, Merge, Reader, Total, Work, combine, summarise
from .requirements import is_older

T = TypeVar("T")

_OLDEST = "2024.8"
_AT_ONCE = 8  # summaries that are combined in one task
_MUST = "must be a Dask array of two dimensions, or a Dask DataFrame"


class DaskRows(Rows):
    """The records of a Dask collection, in the order of its partitions.

    Lengths of partitions that Dask does not know are computed once. All functions take rows in place of the collection,
    so make them once of a DataFrame that several are to read.

    Parameters
    ----------
    data : dask.array.Array or dask.dataframe.DataFrame
        The records; with a name also a vector or a Series.
    name : str
        With a name the collection is one column, and errors call it so.

    Examples
    --------
    >>> import dask.array as da
    >>> from fastdp.connect.dask import DaskRows
    >>> DaskRows(da.ones((10_000, 3), chunks=(2_500, 3)))
    <DaskRows: 10,000 records, 3 columns>
    """

    gathers = False

    @boundary
    def __init__(self, data: Any, name: str = "") -> None:
        self._collection = _Collection(data, name)
        self._columns = tuple(range(len(self._collection.types)))
        self._labels: tuple[_Collection, int] | None = None
        self._choose(self._columns)

    def _choose(self, at: Sequence[int]) -> None:
        self._columns = tuple(self._columns[j] for j in at)
        self.width = at_least_one(self._columns)
        names = self._collection.names
        self.names = None if names is None else tuple(names[j] for j in self._columns)
        self.n = sum(self._collection.lengths)

    def _copy(self) -> DaskRows:
        rows = DaskRows.__new__(DaskRows)
        rows.__dict__.update(self.__dict__)
        return rows

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows of a Dask collection stay where they were made: send the collection, and make them anew")

    def select(self, columns: Sequence[str | int]) -> Rows:
        rows = self._copy()
        rows._choose(positions_of(columns, self.names, self.width))
        return rows

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(self._collection.types[j] for j in self._columns)

    def one_block(self) -> Block | None:
        return None

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        return function  # what were kept would lie elsewhere than the records, some day

    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        if not isinstance(labels, DaskRows):
            raise ValueError(
                f"y: type {type(labels).__name__}: must be a Dask array or Series with the partitions of X, or the "
                "name of one of its columns, as X is a Dask collection"
            )
        self._collection.check_labels(labels._collection)
        rows = self._copy()
        rows._labels = labels._collection, labels._columns[0]
        return rows, labels

    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> PerRecord:
        def labels(block: Block) -> Array:
            assert block.labels is not None
            return np.ascontiguousarray(read(block.labels), dtype)

        return labels

    def total(self, statistic: Callable[[Block], Any]) -> NDArray[np.int64]:
        return joined(self._run(Total(statistic)))

    def merge(self, statistic: Callable[[Block], T], combine: Callable[[T, T], T]) -> T:
        return self._run(Merge(statistic, combine))

    def count(self, cells_of: Callable[[Block], NDArray[np.uint32]], size: int) -> NDArray[np.int64]:
        counting = Count(cells_of, size)
        return counting.dense(self._run(counting))

    def _run(self, work: Work[T]) -> T:
        """One computation of Dask's."""
        readers, partitions, nothing = self._sources()
        job = Job(work, *readers)
        if not self.n:
            with alone():
                return work.of(job.blocks(0, 0, *nothing))
        summary = _compute_tree(job, self._collection.lengths, partitions)
        if isinstance(summary, Failure):
            raise summary.error
        found: T = summary
        return found

    def _sources(self) -> tuple[tuple[Reader, Reader | None], list[list[Any]], list[Any]]:
        """How partitions of records and labels are read; these partitions; and the same without records."""
        here = self._collection
        if self._labels is None or self._labels[0] is here:
            at = self._columns if self._labels is None else (*self._columns, self._labels[1])
            reader = here.reader(at, labelled=self._labels is not None)
            return (reader, None), [here.partitions(at)], [here.nothing(at)]
        there, label = self._labels
        return (
            (here.reader(self._columns), there.reader((label,))),
            [here.partitions(self._columns), there.partitions((label,))],
            [here.nothing(self._columns), there.nothing((label,))],
        )


def open_rows(data: Any, name: str = "") -> DaskRows:
    """What `records.engines` calls."""
    return DaskRows(data, name)


class _Collection:
    """A Dask array or DataFrame: its partitions, and everything about them that needs no computation.

    names, types    of the columns
    """

    def __init__(self, data: Any, name: str) -> None:
        _check_version()
        self._name = name or "data"
        meta = getattr(data, "_meta", None)
        self._is_frame = hasattr(data, "npartitions") and comes_from(meta, "pandas", "DataFrame", "Series")
        if self._is_frame:
            self._data, self._empty = self._of_pandas(data, bool(name))
        elif comes_from(data, "dask", "Array"):
            self._data, self._empty = self._of_numpy(data, bool(name))
        else:
            raise ValueError(f"{self._name}: type {type(data).__name__}: {_MUST}")
        local = rows_of(self._empty)
        if name and local.width != 1:
            raise ValueError(f"{name}: {local.width} columns: must be one")
        self.names, self.types = local.names, local.dtypes()
        self._made: dict[tuple[int, ...], list[Any]] = {}

    def _of_pandas(self, data: Any, is_column: bool) -> tuple[Any, Any]:
        if data._meta.ndim == 2:
            return data, data._meta
        if not is_column:
            raise ValueError(f"{self._name}: type {type(data).__name__}: {_MUST}")
        data = data.to_frame(self._name)
        return data, data._meta

    def _of_numpy(self, data: Any, is_column: bool) -> tuple[Any, Any]:
        if not isinstance(data._meta, np.ndarray):
            raise ValueError(f"{self._name}: chunks of type {type(data._meta).__name__}: must be numpy arrays")
        if is_column and data.ndim == 1:
            data = data[:, None]
        if data.ndim != 2:
            hint = "; of one column, data[:, None]" if data.ndim == 1 else ""
            raise ValueError(f"{self._name}: shape {data.shape}: must have two dimensions, records and columns{hint}")
        if isnan(data.shape[1]):
            raise ValueError(f"{self._name}: shape {data.shape}: the number of columns must be known")
        if len(data.chunks[1]) > 1:
            data = data.rechunk({1: -1})  # a record lies in one chunk
        return data, np.empty((0, data.shape[1]), data.dtype)

    @property
    def _known(self) -> tuple[int, ...] | None:
        """How many records partitions have, as far as that takes no computing."""
        if self._is_frame or any(map(isnan, self._data.chunks[0])):
            return None
        return tuple(map(int, self._data.chunks[0]))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        import dask

        if (known := self._known) is not None:
            return known
        length = dask.delayed(len, pure=False)
        return tuple(map(int, _compute(*(length(part) for part in self.partitions((0,))))))

    def check_labels(self, labels: _Collection) -> None:
        """ValueError unless labels lie as records do."""
        if len(labels.lengths) != len(self.lengths):
            raise ValueError(
                f"y: {len(labels.lengths)} partitions: must be {len(self.lengths)}, as X has; of labels "
                "beside the records, give the DataFrame with their column, and its name"
            )
        for i, (found, wanted) in enumerate(zip(labels.lengths, self.lengths, strict=True)):
            if found != wanted:
                raise ValueError(f"y: {found} labels in partition {i}: must be {wanted}, as X has records there")

    def _kept(self, columns: tuple[int, ...]) -> list[int]:
        """The columns of a partition: of a DataFrame only those that are asked for are read."""
        return sorted(set(columns)) if self._is_frame else list(range(len(self.types)))

    def partitions(self, columns: tuple[int, ...]) -> list[Any]:
        kept = tuple(self._kept(columns))
        if kept not in self._made:
            some = self._data if len(kept) == len(self.types) else self._data[list(self._data.columns[list(kept)])]
            self._made[kept] = list(np.ravel(_as_it_lies(some)))
        return self._made[kept]

    def nothing(self, columns: tuple[int, ...]) -> Any:
        return self._empty.iloc[:, self._kept(columns)] if self._is_frame else self._empty

    def reader(self, columns: tuple[int, ...], *, labelled: bool = False) -> Reader:
        kept = self._kept(columns)
        return Reader(
            tuple(self._name if self._name == "y" else label_of(j, self.names) for j in columns),
            tuple(kept.index(j) for j in columns),
            tuple(None if self._is_category(j) else self.types[j] for j in columns),
            None if self.names is None else tuple(self.names[j] for j in columns),
            tuple(self._empty.columns[kept] if self._is_frame else kept),
            labelled,
        )

    def _is_category(self, j: int) -> bool:
        return self._is_frame and comes_from(self._empty.iloc[:, j].array, "pandas", "Categorical")


def _as_it_lies(some: Any) -> Any:
    """Its partitions as `delayed`, one for each that it declares.

    Dask's whole optimisation merges partitions of Parquet files, more of them the fewer columns are read, so that those
    of two columns would not lie side by side. Simplifying alone reads no more columns than are asked for, too.
    """
    if not hasattr(some, "simplify"):  # arrays, whose chunks stay
        return some.to_delayed()
    return some.simplify().to_delayed(optimize_graph=False)


def _compute_tree(job: Job[Any], lengths: Sequence[int], partitions: list[list[Any]]) -> Any:
    """The result of a job on all partitions: each task combines a few summaries, the next one a few of its results."""
    import dask
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    name, number = f"fastdp-{secrets.token_hex(8)}", count()
    of_partition, of_several = dask.delayed(summarise, pure=False), dask.delayed(combine, pure=False)

    def key() -> str:
        return f"{name}-{next(number)}"

    tasks, first = [], 0
    for length, *parts in zip(lengths, *partitions, strict=True):
        if length:
            tasks.append(of_partition(job, first, length, *parts, dask_key_name=key()))
        first += length
    while len(tasks) > 1:
        several = [tasks[at : at + _AT_ONCE] for at in range(0, len(tasks), _AT_ONCE)]
        tasks = [of_several(job, *some, dask_key_name=key()) for some in several]
    # One layer: with one for each task, which is what Dask makes, its time grows with the square of their number.
    sources = {id(part.dask): part for parts in partitions for part in parts}.values()
    known = {layer for source in sources for layer in source.dask.layers}
    every = {k: task for layer, some in tasks[0].dask.layers.items() if layer not in known for k, task in some.items()}
    graph = HighLevelGraph.from_collections(name, every, dependencies=list(sources))
    delayed: Any = Delayed  # without types
    (found,) = _compute(delayed(tasks[0].key, graph, layer=name))
    return found


def _compute(*tasks: Any) -> tuple[Any, ...]:
    import dask

    compute: Any = dask.compute  # without types
    found: tuple[Any, ...] = compute(*tasks)
    return found


def _check_version() -> None:
    import dask

    if is_older(dask.__version__, _OLDEST):
        raise ImportError(f"dask {dask.__version__}: must be {_OLDEST} or newer: 'fastdp[dask]'")
