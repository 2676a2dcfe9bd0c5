"""Records in Dask arrays and DataFrames (extra `[dask]`), read where their partitions are by the scheduler that is set.

A statistic is sent to the partitions; its results for them come back, combined on the way. So noise is drawn once, at
the client, from the same integers as on one machine, and no record travels. What a descent reads in every step, points
as integers, is made once and stays with the workers. A partition, or what was made of it, that is lost with its worker
and computed anew has the same result.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cached_property
from itertools import count
from math import isnan
from typing import Any

import numpy as np

from ..records.engine import Engine, RunHeld
from ..records.engine_jobs import Failure, Job, Summary
from ..records.rows import Rows
from ..support.boundary import boundary
from ..support.columns import comes_from
from .requirements import is_older

_OLDEST = "2024.8"
_MOST_HELD = 2**34  # bytes in this process, where its threads are the workers
_AT_ONCE = 8  # summaries that are combined in one task
_MUST = "must be a Dask array of two dimensions, or a Dask DataFrame"


class DaskRows(Engine):
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

    @boundary
    def __init__(self, data: Any, name: str = "") -> None:
        self._collection = _Collection(data, name)
        super().__init__(self._collection.empty, self._collection.lengths, name=name or "data")
        if name and self.width != 1:
            raise ValueError(f"{name}: {self.width} columns: must be one")

    def attach_labels(self, labels: Any) -> tuple[Rows, Any]:
        if not isinstance(labels, DaskRows):
            raise ValueError(
                f"y: type {type(labels).__name__}: must be a Dask array or Series with the partitions of X, or the "
                "name of one of its columns, as X is a Dask collection"
            )
        self._collection.check_labels(labels._collection)
        return self._with_labels(labels), labels

    def run(self, job: Job[Any], columns: list[int]) -> Summary | Failure:
        """One computation of Dask's."""
        return _compute_tree(job, self.lengths, self._partitions(columns))

    def hold(self, job: Job[Any], columns: list[int], size: int) -> RunHeld | None:
        """What a job makes of partitions, persisted: in the memory of the cluster, or of this process's threads.

        Not where other processes work without a cluster: all that they make would come back to this one.
        """
        place = _place_of_work()
        if place == "processes" or (place == "threads" and size > _MOST_HELD):
            return None
        held = _persisted(job, self.lengths, self._partitions(columns))
        lengths = [length for length in self.lengths if length]
        return lambda other: _compute_tree(other, lengths, [held])

    def _partitions(self, columns: list[int]) -> list[list[Any]]:
        """The partitions, and those of labels that are elsewhere."""
        partitions = [self._collection.partitions(columns)]
        if self._labels is not None and not self._has(self._labels[0]):
            there, label = self._labels
            assert isinstance(there, DaskRows)
            partitions.append(there._collection.partitions(there._asked((label,))))
        return partitions

    def _asked(self, columns: tuple[int, ...]) -> list[int]:
        """Of a DataFrame only those that are asked for are read."""
        return super()._asked(columns) if self._collection.is_frame else list(range(len(self._all_types)))


def open_rows(data: Any, name: str = "") -> DaskRows:
    """What `records.engines` calls."""
    return DaskRows(data, name)


class _Collection:
    """A Dask array or DataFrame: its partitions, and how long they are.

    is_frame    whether it is a DataFrame
    empty       the same without records
    """

    def __init__(self, data: Any, name: str) -> None:
        _check_version()
        self._name = name or "data"
        meta = getattr(data, "_meta", None)
        self.is_frame = hasattr(data, "npartitions") and comes_from(meta, "pandas", "DataFrame", "Series")
        if self.is_frame:
            self._data, self.empty = self._of_pandas(data, bool(name))
        elif comes_from(data, "dask", "Array"):
            self._data, self.empty = self._of_numpy(data, bool(name))
        else:
            raise ValueError(f"{self._name}: type {type(data).__name__}: {_MUST}")
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
        if self.is_frame or any(map(isnan, self._data.chunks[0])):
            return None
        return tuple(map(int, self._data.chunks[0]))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        import dask

        if (known := self._known) is not None:
            return known
        length = dask.delayed(len, pure=False)
        first = [0] if self.is_frame else list(range(self.empty.shape[1]))
        return tuple(map(int, _compute(*(length(part) for part in self.partitions(first)))))

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

    def partitions(self, columns: Sequence[int]) -> list[Any]:
        """Its partitions, with these columns only."""
        kept = tuple(columns)
        if kept not in self._made:
            some = self._data if len(kept) == self.empty.shape[1] else self._data[list(self._data.columns[list(kept)])]
            self._made[kept] = list(np.ravel(_as_it_lies(some)))
        return self._made[kept]


def _as_it_lies(some: Any) -> Any:
    """Its partitions as `delayed`, one for each that it declares.

    Dask's whole optimisation merges partitions of Parquet files, more of them the fewer columns are read, so that those
    of two columns would not lie side by side. Simplifying alone reads no more columns than are asked for, too.
    """
    if not hasattr(some, "simplify"):  # arrays, whose chunks stay
        return some.to_delayed()
    return some.simplify().to_delayed(optimize_graph=False)


def _compute_tree(job: Job[Any], lengths: Sequence[int], partitions: list[list[Any]]) -> Summary | Failure:
    """The result of a job on all partitions: each task combines a few summaries, the next one a few of its results."""
    import dask
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    name, number = f"fastdp-{secrets.token_hex(8)}", count()
    of_partition, of_several = dask.delayed(_summarise, pure=False), dask.delayed(_combine, pure=False)

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
    found: Summary | Failure
    (found,) = _compute(delayed(tasks[0].key, graph, layer=name))
    return found


def _persisted(job: Job[Any], lengths: Sequence[int], partitions: list[list[Any]]) -> list[Any]:
    """What a job makes of each partition that has records, computed, and held where it was."""
    import dask
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    of_partition, tasks, first = dask.delayed(_summarise, pure=False), [], 0
    for length, *parts in zip(lengths, *partitions, strict=True):
        if length:
            tasks.append(of_partition(job, first, length, *parts))
        first += length
    persist: Any = dask.persist  # without types
    held = persist(*tasks)
    layer = f"fastdp-{secrets.token_hex(8)}"
    every = {key: task for each in held for key, task in dict(each.__dask_graph__()).items()}
    graph = HighLevelGraph({layer: every}, {layer: set()})
    delayed: Any = Delayed
    return [delayed(each.key, graph, layer=layer) for each in held]


def _place_of_work() -> str:
    """Where Dask computes: "cluster", "threads" of this process, or "processes" that send everything back."""
    from dask import local, threaded
    from dask.base import get_scheduler

    scheduler: Any = get_scheduler
    get = scheduler() or threaded.get
    if get in (threaded.get, local.get_sync):
        return "threads"
    return "cluster" if hasattr(getattr(get, "__self__", None), "scheduler_info") else "processes"


def _summarise(job: Job[Any], first: int, n: int, part: Any, labels: Any = None) -> Summary | Failure:
    return job(part, first, n, labels)


def _combine(job: Job[Any], *summaries: Summary | Failure) -> Summary | Failure:
    return job.combine(*summaries)


def _compute(*tasks: Any) -> tuple[Any, ...]:
    import dask

    compute: Any = dask.compute  # without types
    found: tuple[Any, ...] = compute(*tasks)
    return found


def _check_version() -> None:
    import dask

    if is_older(dask.__version__, _OLDEST):
        raise ImportError(f"dask {dask.__version__}: must be {_OLDEST} or newer: 'fastdp[dask]'")
