"""Several rows a person: at most so many rows of each are kept, or each person's rows become one record.

What comes out is records as all others are, for every function that reads records; how many they are is private. What a
release on them costs a person is seen to where it is charged: ../privacy/persons.py. persons.md has the proof.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.neighbors import checked_unit
from ..privacy.persons import MOST_ROWS
from ..randomness.keys import Randomness, fresh_key
from ..support.boundary import boundary
from ..support.calls import ALL, Persons, Which
from ..support.checks import integer
from .column_names import position_of
from .person_keys import Keys, joined, numbered, words_of_labels
from .rows import Block, Rows
from .sources import opened
from .subsets import FilteredRows, Source, Subset, TakenRows

_AT_ONCE = 64  # persons that are read from memory at once
_STEP = 2**16  # records whose kept ones are counted together
_MOST_RECORDS = 2**31


@boundary
def limit_rows(data: Any, unit: str | int, *, at_most: int, rng: Randomness | None = None) -> Subset:
    """Keep at most so many rows of each person, so that what is released on them protects a person and not a row.

    Every function that reads records takes the result, with `neighbors="add-remove"`; the epsilon and the delta that it
    is asked for are then those of a person.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records.
    unit : str or int
        The column that tells persons apart, by name or position. Equal entries are one person. Rows without an entry,
        and those whose entry has no hash, are nobody's and left out.
    at_most : int >= 1
        How many rows of a person are kept. Public: must not be read off the data; a private quantile of the rows of
        each person is on `per_person(data, unit)["rows"]`.
    rng : Randomness, optional
        Where the key comes from by which rows are chosen; None for the operating system.

    Returns
    -------
    fastdp.records.Subset
        The rows that are kept, in the order that they have in the data. `rows["income"]` is one of their columns,
        `rows[["age", "income"]]` are two; `fastdp.partition` divides them.

    Raises
    ------
    ValueError
        For a column that is not there, and for a part of a partition: limit the rows first, and divide them then.

    Notes
    -----
    Guarantee    what is released on them at (epsilon, delta) is (epsilon, delta)-DP for neighbours that differ in all
                 rows of one person. A budget for persons is `Budget(unit=...)`; it takes nothing else
    Proof        persons.md, theorems 1 to 3
    Accuracy     noise of at_most times the scale that it has for a row, and the rows that are left out. Each choice of
                 `at_most` of a person's rows is equally likely
    Cost         20 ns a row for integers; memory for 4 bytes a row while it is made, and a bit or a place a row after.
                 Of files and collections the column is read into this process: 8 bytes a row, or its labels
    Not covered  persons who have several entries of the column; how many rows are kept is private: state what does not
                 depend on it

    Examples
    --------
    >>> import numpy as np
    >>> import fastdp
    >>> from fastdp import statistics
    >>> rng = np.random.default_rng(0)
    >>> visits = {"patient": rng.integers(0, 2000, 10_000), "minutes": rng.integers(5, 60, 10_000)}
    >>> rows = fastdp.limit_rows(visits, unit="patient", at_most=3)
    >>> with fastdp.Budget(epsilon=1.0, neighbors="add-remove", unit="patient") as budget:
    ...     mean = statistics.mean(rows["minutes"], bounds=(0, 60), epsilon=0.5, neighbors="add-remove")
    >>> print(mean.guarantee)
    0.5-DP, add-remove of a person (patient)
    """
    rows, at, name = with_unit(data, unit)
    at_most = integer("at_most", at_most, least=1, most=MOST_ROWS)
    key = fresh_key(rng)
    which = Which((), Persons(secrets.token_hex(8), name, at_most))
    if block := rows.one_block():
        places = np.flatnonzero(_kept(Keys.of(block, at), at_most, key))
        return Subset(TakenRows.at(Source(block), places, rows.names, rows.width, which))
    keys: list[Keys] = rows.select([at]).merge(_keys_of_first, _both)
    choice = _Kept(_kept(joined(keys), at_most, key))
    return Subset(FilteredRows(rows, choice, tuple(range(rows.width)), which))


def with_unit(data: Any, unit: Any) -> tuple[Rows, int, str]:
    """The records, the column that tells persons apart, and its name."""
    rows = opened(data)
    if rows.which != ALL:
        what = "a part of a partition" if rows.which.part else "rows of persons"
        raise ValueError(f"data: {what}: must be all records; limit their rows first, and divide these by partition")
    at = position_of(unit, rows.names, rows.width, "unit")
    if rows.n >= _MOST_RECORDS:
        raise ValueError(f"data: must be at most {_MOST_RECORDS - 1:,} records")
    return rows, at, checked_unit(unit if rows.names is None and isinstance(unit, str) else _name_of(rows, at))


def _name_of(rows: Rows, at: int) -> str:
    return f"column {at}" if rows.names is None else rows.names[at]


def _keys_of_first(block: Block) -> list[Keys]:
    return [Keys.of(block, 0)]


def _both(some: list[Any], more: list[Any]) -> list[Any]:
    return some + more


def _kept(keys: Keys, at_most: int, key: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which rows are kept: of each person a choice that goes by the key, the person, and that person's rows."""
    from ..kernels.persons import choose_rows_into, count_rows_into, name_persons_into

    codes, words = numbered(keys)
    if keys.places is not None and codes.size:  # a word takes a microsecond, and few persons need one
        often = np.bincount(codes[codes >= 0], minlength=words.size) > at_most
        words = words_of_labels(keys, often, key[:8].tobytes())
    first, second = key[:4].copy().view(np.uint64)
    people = np.empty((words.size, 2), np.uint64)
    name_persons_into(words, first, second, np.uint64(at_most), people)
    count_rows_into(codes, people)
    kept = np.empty(codes.size, np.bool_)
    choose_rows_into(codes, people, np.empty(_AT_ONCE, np.uint64), kept)
    return kept


class _Kept:
    """The rows that are kept of records that are read block by block: a bit for each record."""

    reads: tuple[int, ...] = ()

    def __init__(self, kept: NDArray[np.bool_]) -> None:
        self._bits = np.packbits(kept)
        counts = [int(np.count_nonzero(kept[start : start + _STEP])) for start in range(0, kept.size, _STEP)]
        self._counts: list[int] = [0, *accumulate(counts)]
        self.size: int = self._counts[-1]

    def in_blocks_of(self, read: Rows, at: Sequence[int]) -> _Kept:
        return self  # which knows each record

    def _slice(self, first: int, stop: int) -> NDArray[np.bool_]:
        skip = first % 8
        found = np.unpackbits(self._bits[first // 8 : -(-stop // 8)], count=skip + stop - first)[skip:]
        return found.view(np.bool_)

    def before(self, first: int) -> int:
        step = first // _STEP
        return self._counts[step] + int(np.count_nonzero(self._slice(step * _STEP, first)))

    def places(self, block: Block, at: Sequence[int]) -> NDArray[np.intp]:
        return np.flatnonzero(self._slice(block.first, block.first + block.n))
