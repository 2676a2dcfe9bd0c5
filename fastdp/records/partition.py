"""Records divided by what one of their columns says: disjoint parts, on which releases cost what the dearest part does.

A part is records as all others are, and every function that reads records takes it, for add-remove neighbours: how many
records it has is private. ../support/calls.py lets nobody forget that; partition.md has the proof.
"""

from __future__ import annotations

import operator
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.boundary import boundary
from ..support.calls import Which
from ..support.checks import MAX_INT64, items_of
from ..support.columns import Coded, Entries, as_compiled
from ..support.frozen import Frozen
from ..support.parameters import MOST_LABELS
from ..support.public_paths import public_as
from ..support.shown import shown
from .column_names import Names, position_of
from .outside_domain import distinct, is_missing
from .rows import Block, Rows
from .sources import opened
from .subsets import FilteredRows, Source, Subset, TakenRows

_WIDEST_TABLE = 2**20  # of keys that are integers
NOWHERE = -1  # the code of a record that is in no part


@public_as("fastdp")
class Partition(Frozen, Mapping[Any, Subset]):
    """Disjoint parts of the records, by their keys: a mapping, which `fastdp.partition` makes.

    Parameters
    ----------
    by : str
        What the records were divided by.
    parts : mapping
        The part of each key.
    """

    def __init__(self, by: str, parts: Mapping[Any, Subset]) -> None:
        self._by = by
        self._parts = dict(parts)

    def __getitem__(self, key: Any) -> Subset:
        if key not in self._parts:
            raise KeyError(f"key={shown(key)}: must be one of the keys that have a part")
        part: Subset = self._parts[key]
        return part

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"<Partition by {self._by!r}: {len(self):,} parts>"


@boundary
def partition(data: Any, by: str | int, keys: Iterable[Any]) -> Partition:
    """Divide records into disjoint parts, by what a column says.

    A release on a part is one on a few of the records, and whoever is in another part is not in it: releases on all
    parts together cost a budget what those on the dearest part do.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection, mapping or a part
        The records.
    by : str or int
        The column, by name or position.
    keys : iterable
        The values of the column that have a part. Public: must not be read off the data. Records with another value are
        in no part; None is the key of missing entries.

    Returns
    -------
    Partition
        A mapping from each key to its part. A part is what functions take as records, with `neighbors="add-remove"`;
        `part["income"]` is one of its columns, `part[["age", "income"]]` are two.

    Raises
    ------
    ValueError
        For a column that is not there, and for keys that repeat.

    Notes
    -----
    Guarantee    what is released on parts is charged to a budget as the largest sum of any part; under a budget for
                 replace-one neighbours as what each release has for two records
    Proof        partition.md
    Cost         a pass over the column, and memory for a number a record
    Not covered  how many records a part has is private: state what does not depend on it

    Examples
    --------
    >>> import numpy as np
    >>> import fastdp
    >>> from fastdp import statistics
    >>> rng = np.random.default_rng(0)
    >>> people = {"region": rng.choice(["north", "south"], 10_000), "age": rng.integers(18, 90, 10_000)}
    >>> parts = fastdp.partition(people, by="region", keys=["north", "south"])
    >>> with fastdp.Budget(epsilon=1.0, neighbors="add-remove") as budget:
    ...     for region, part in parts.items():
    ...         mean = statistics.mean(part["age"], bounds=(18, 90), epsilon=0.5, neighbors="add-remove")
    >>> print(budget.spent)  # of either part
    0.5-DP, add-remove
    """
    rows = opened(data)
    at = position_of(by, rows.names, rows.width, "by")
    found = items_of("keys", keys, "the values of the column that have a part", most=MOST_LABELS)
    coder = KeyCoder(found)
    name = by if isinstance(by, str) else f"column {by}"
    number = secrets.token_hex(8)
    part, persons = rows.which
    every = [Which((*part, (number, f"{name}={text}")), persons) for text in _texts(found)]
    if block := rows.one_block():
        parts: Sequence[Rows] = _parts_in_memory(block, rows.names, coder(block.entries(at), block.coded(at)), every)
    else:
        division = _Division.of(rows, at, coder, len(every))
        columns = tuple(range(rows.width))
        parts = [FilteredRows(rows, _Part(division, i), columns, which) for i, which in enumerate(every)]
    return Partition(name, dict(zip(found, map(Subset, parts), strict=True)))


def _texts(keys: Sequence[Any]) -> list[str]:
    """What budgets call the parts: each by its key, with its place where several keys are shown alike, as dates are."""
    texts = [shown(key) for key in keys]
    often = Counter(texts)
    return [text if often[text] == 1 else f"{text}, key {place}" for place, text in enumerate(texts)]


class KeyCoder:
    """Which key each entry of a column is: its place, or NOWHERE. A function of that entry alone."""

    def __init__(self, keys: Sequence[Any]) -> None:
        if not keys:
            raise ValueError("keys: must be at least one")
        self._codes: dict[Any, int] = {}
        self._missing = NOWHERE
        for place, key in enumerate(keys):
            plain = key.item() if isinstance(key, np.generic) else key
            try:
                hash(key)
                repeats = plain in self._codes or (is_missing(plain) and self._missing != NOWHERE)
            except (TypeError, ValueError):
                raise ValueError(f"keys[{place}]: must have a hash, as labels have") from None
            if repeats:
                raise ValueError(f"keys={shown(key)}: must not repeat")
            if is_missing(plain):
                self._missing = place
            else:
                self._codes[plain] = place

        integers = [key for key in self._codes if type(key) is int]
        self._low, self._table = 0, np.zeros(0, np.int32)
        narrow = bool(integers) and max(integers) - min(integers) < _WIDEST_TABLE
        if narrow and len(integers) == len(self._codes) and max(map(abs, integers)) <= MAX_INT64:
            self._low = min(integers)
            self._table = np.full(max(integers) - self._low + 1, NOWHERE, np.int32)
            for key, place in self._codes.items():
                self._table[key - self._low] = place

    def __call__(self, entries: Entries, coded: Coded | None) -> NDArray[np.int32]:
        if coded is None and entries.values.dtype.kind in "iu" and self._table.size:
            return self._of_integers(entries)
        places, labels = distinct(entries) if coded is None else coded
        table = np.full(len(labels) + 1, self._missing, np.int32)  # the last is of missing entries, which are below 0
        for i, label in enumerate(labels.tolist()):
            table[i] = self._code_of(label)
        return table[np.where(places < 0, len(labels), places)] if len(places) else np.zeros(0, np.int32)

    def _of_integers(self, entries: Entries) -> NDArray[np.int32]:
        from ..kernels.histograms import look_up_codes_into

        values = entries.values
        codes = np.empty(len(values), np.int32)
        integers = np.ascontiguousarray(values.view(np.int64) if values.dtype == np.uint64 else values, np.int64)
        look_up_codes_into(as_compiled(integers), self._low, self._table, NOWHERE, codes)
        if values.dtype == np.uint64:
            codes[values > np.uint64(MAX_INT64)] = NOWHERE
        if entries.missing is not None:
            codes[entries.missing] = self._missing
        return codes

    def _code_of(self, label: Any) -> int:
        if is_missing(label):
            return self._missing
        try:
            return self._codes.get(label, NOWHERE)
        except TypeError:  # without a hash
            return NOWHERE


def _parts_in_memory(block: Block, names: Names, codes: NDArray[np.int32], every: Sequence[Which]) -> list[TakenRows]:
    from ..kernels.histograms import group_places_into

    ends = np.zeros(len(every) + 1, np.int64)
    np.cumsum(np.bincount(codes + 1, minlength=len(every) + 1)[1:], out=ends[1:])  # NOWHERE is -1
    order = np.empty(ends[-1], np.int64)
    group_places_into(codes, ends[:-1].copy(), order)  # numpy's sort takes ten times as long
    source = Source(block)
    return [
        TakenRows.at(source, order[ends[i] : ends[i + 1]], names, block.width, which) for i, which in enumerate(every)
    ]


class _Division(NamedTuple):
    """Records that are read block by block, and how many of each part a block has."""

    by: int
    coder: KeyCoder
    parts: int
    step: int  # of the blocks
    counts: Mapping[int, NDArray[np.int64]]  # by the first record of the block
    others: dict[int, _Division]  # of the same records in blocks of other steps, where these have been asked for

    @classmethod
    def of(cls, rows: Rows, by: int, coder: KeyCoder, parts: int) -> _Division:
        return cls._counted(rows.select([by]), 0, by, coder, parts)

    @classmethod
    def _counted(cls, read: Rows, at: int, by: int, coder: KeyCoder, parts: int) -> _Division:
        def statistic(block: Block) -> dict[int, NDArray[np.int64]]:
            codes = coder(block.entries(at), block.coded(at))
            return {block.first: np.bincount(codes[codes >= 0], minlength=parts)}

        return cls(by, coder, parts, read.block_step, read.merge(statistic, operator.or_), {})

    def in_blocks_of(self, read: Rows, at: int) -> _Division:
        """Counted once more where blocks are others, as those of wide records are."""
        if read.block_step == self.step:
            return self
        if read.block_step not in self.others:
            made = self._counted(read, at, self.by, self.coder, self.parts)
            return self.others.setdefault(read.block_step, made)
        return self.others[read.block_step]


class _Part:
    """Those of one part."""

    def __init__(self, division: _Division, code: int) -> None:
        self._division, self._code = division, code
        self._starts: dict[int, int] = {}
        self.size = 0
        for first in sorted(division.counts):
            self._starts[first] = self.size
            self.size += int(division.counts[first][code])

    @property
    def reads(self) -> tuple[int, ...]:
        return (self._division.by,)

    def in_blocks_of(self, read: Rows, at: Sequence[int]) -> _Part:
        division = self._division.in_blocks_of(read, at[0])
        return self if division is self._division else _Part(division, self._code)

    def before(self, first: int) -> int:
        if first not in self._starts:
            raise ValueError("data: blocks differ from one reading to the next: an engine must divide a part alike")
        return self._starts[first]

    def places(self, block: Block, at: Sequence[int]) -> NDArray[np.intp]:
        return np.flatnonzero(self._division.coder(block.entries(at[0]), block.coded(at[0])) == self._code)
