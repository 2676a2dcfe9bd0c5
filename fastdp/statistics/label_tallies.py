"""The labels that occur in one column or several, and how often: in an order that no order of records decides.

A label is a number, a string, bytes, a date, a time or a span of them. Equal numbers are one label, whatever their
types. What is missing is no label, and other objects are none either: records with such an entry are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.column_names import called
from ..records.number_column import one_column
from ..records.outside_domain import is_missing
from ..records.person_keys import number_words
from ..records.rows import Block, Rows
from ..records.sources import rows_of
from ..support.columns import Array, comes_from, objects, places_of
from ..support.rounding import sixty_digits

_STEP = 2**16  # entries that are counted at a time
_MOST_PLACES = 2**24  # of a table over all integers of a range
_MOST_HASHED = 2**20  # different numbers, from about twice as many on sorting is as fast

Numbers = Callable[[Block], tuple[NDArray[np.int64], NDArray[np.bool_] | None]]


@dataclass(frozen=True)
class Tally:
    """Distinct labels in increasing order, and what was added up of the records of each.

    labels  an array for each column; label i has entry i of each
    totals  int64[1 or 2, m]: how many records, and the sum of their numbers where these were asked for
    """

    labels: tuple[Array, ...]
    totals: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.totals.shape[1])


def label_rows(data: Any, by: Any, *more: str | int) -> tuple[Rows, int]:
    """Records with the columns of labels first, and how many of those there are; `by` None: `data` is that column."""
    if by is None:
        return one_column(objects(data) if isinstance(data, list | tuple) else data), 1
    columns: list[str | int] = list(by) if isinstance(by, list | tuple) else [by]
    if not columns or len({*map(repr, columns)}) < len(columns):
        raise ValueError("by: must be the name of a column, or a list of different ones")
    if isinstance(data, Mapping):  # the type of a list's array would depend on its entries
        data = {name: objects(values) if isinstance(values, list | tuple) else values for name, values in data.items()}
    rows = rows_of(data)
    with called("by"):
        rows.select(columns)
    return rows.select([*columns, *more]), len(columns)


def tally_labels(rows: Rows, columns: int, numbers: Numbers | None = None) -> Tally:
    """The labels of the first columns; `numbers` is what else is added up, and which records are left out for it."""

    def statistic(block: Block) -> list[Tally]:
        return [_of_block(block, columns, numbers)]

    if (block := rows.one_block()) is not None:
        return _of_block(block, columns, numbers)
    return merged(rows.merge(statistic, _joined))


def _joined(some: list[Tally], more: list[Tally]) -> list[Tally]:
    """Both lists; made one where the rest has grown as large as the first, so that each label is moved a few times."""
    some = some + more
    return [merged(some)] if sum(map(len, some[1:])) >= len(some[0]) else some


def merged(tallies: list[Tally]) -> Tally:
    """One tally of all their labels."""
    if len(tallies) == 1:
        return tallies[0]
    ranked = []
    for parts in zip(*(tally.labels for tally in tallies), strict=True):
        labels = np.concatenate(parts)
        ranked.append(_ranked_objects(*places_of(labels)) if labels.dtype.kind == "O" else _ranked_numbers(labels))
    return _tally(ranked, np.concatenate([tally.totals for tally in tallies], axis=1))


def _of_block(block: Block, columns: int, numbers: Numbers | None) -> Tally:
    if columns == 1 and numbers is None:
        if (counted := block.counted(0)) is not None:
            return _of_counts(*counted)
        if (coded := block.coded(0)) is not None:
            places, labels = coded
            return _of_counts(_counts_of(places, len(labels)), labels)
        values, missing, _ = block.entries(0)
        if values.dtype.kind in "biufmM":
            return _count_numbers(_present(values, missing)[0])
    ranked = [_ranked(block, j) for j in range(columns)]
    ones = np.ones((1, block.n), np.int64)
    if numbers is None:
        return _tally(ranked, ones)
    added, absent = numbers(block)
    if absent is not None:
        ranks, labels = ranked[0]
        ranked[0] = np.where(absent, -1, ranks), labels
    return _tally(ranked, np.vstack([ones, added]))


def _tally(ranked: Sequence[tuple[NDArray[np.intp], Array]], totals: NDArray[np.int64]) -> Tally:
    """Records with the same rank in every column have one label; a rank below 0 is of a record without one."""
    there = np.logical_and.reduce([ranks >= 0 for ranks, _ in ranked])
    if not there.all():
        ranked, totals = [(ranks[there], labels) for ranks, labels in ranked], totals[:, there]
    codes, labels = ranked[0]
    columns = [labels]
    for ranks, labels in ranked[1:]:
        found, codes = _distinct(codes * len(labels) + ranks)
        columns = [each[found // len(labels)] for each in columns] + [labels[found % len(labels)]]
    added = np.zeros((len(totals), len(columns[0])), np.int64)
    for row, numbers in zip(added, totals, strict=True):
        np.add.at(row, codes, numbers)
    used = added[0] > 0  # a label may stand only where another column has none
    return Tally(tuple(each[used] for each in columns), added[:, used])


def _ranked(block: Block, column: int) -> tuple[NDArray[np.intp], Array]:
    """The rank of every entry among the labels of a column, and these; -1 for an entry that is none."""
    if (coded := block.coded(column)) is not None:
        return _ranked_objects(*coded)
    values, missing, _ = block.entries(column)
    if values.dtype.kind not in "biufmM":
        places, labels = places_of(values)
        return _ranked_objects(places if missing is None else np.where(missing, -1, places), labels)
    present, there = _present(values, missing)
    ranks, labels = _ranked_numbers(present)
    if there is None:
        return ranks, labels
    every = np.full(block.n, -1, np.intp)
    every[there] = ranks
    return every, labels


# --- numbers and dates of an array's type


def _present(values: Array, missing: NDArray[np.bool_] | None) -> tuple[Array, NDArray[np.bool_] | None]:
    """The entries that are there, and where; None: everywhere. A zero has no sign."""
    there = None if missing is None else ~missing
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)
        found = values == values
        there = found if there is None else found & there
    return (values, None) if there is None or there.all() else (values[there], there)


def _ranked_numbers(values: Array) -> tuple[NDArray[np.intp], Array]:
    found, ranks = _distinct(_integers(values))
    return ranks, _of_integers(found, values.dtype)


def _count_numbers(values: Array) -> Tally:
    from ..kernels.histograms import count_cells_into

    keys = _integers(values)
    if keys.dtype.kind == "f" or (places := _range_of(keys)) is None:
        if (hashed := _hashed(keys)) is not None:
            ranks, labels = hashed
            counts = np.zeros(labels.size, np.int64)
            count_cells_into(ranks.view(np.uint32), counts)
            order = np.argsort(labels)
            return Tally((_of_integers(labels[order], values.dtype),), counts[order][None])
        keys = np.sort(keys)
        firsts = np.flatnonzero(np.concatenate([np.ones(min(1, keys.size), np.bool_), keys[1:] != keys[:-1]]))
        counts = np.diff(firsts, append=keys.size)
        return Tally((_of_integers(keys[firsts], values.dtype),), counts.astype(np.int64)[None])
    low, size = places
    counts = np.zeros(size, np.int64)
    for start in range(0, keys.size, _STEP):
        count_cells_into(_above(keys[start : start + _STEP], low, np.uint32), counts)
    used = np.flatnonzero(counts)
    return Tally((_of_integers(_back(used, low, keys.dtype), values.dtype),), counts[used][None])


def _distinct(keys: Array) -> tuple[Array, NDArray[np.intp]]:
    """The distinct ones in increasing order, and the place of each key among them."""
    if keys.dtype.kind == "f" or (places := _range_of(keys)) is None:
        if (hashed := _hashed(keys)) is not None:
            places_of_keys, found = hashed
            order = np.argsort(found)
            rank = np.empty(found.size, np.intp)
            rank[order] = np.arange(found.size)
            return found[order], rank[places_of_keys]
        found, ranks = np.unique(keys, return_inverse=True)
        return found, ranks.reshape(-1)
    low, size = places
    above = _above(keys, low, np.intp)
    there = np.zeros(size, np.bool_)
    there[above] = True
    used = np.flatnonzero(there)
    table = np.empty(size, np.intp)
    table[used] = np.arange(used.size)
    return _back(used, low, keys.dtype), table[above]


def _hashed(keys: Array) -> tuple[NDArray[np.int32], Array] | None:
    """Where each key is among the different ones, and these in no order; None where sorting is as fast.

    Floats by their bits: none is a NaN, and zeros have one sign.
    """
    if keys.size < _STEP or keys.dtype.itemsize > 8:
        return None
    wide = keys.astype({"f": np.float64, "u": np.uint64}.get(keys.dtype.kind, np.int64), copy=False)
    found = number_words(np.ascontiguousarray(wide).view(np.uint64), _MOST_HASHED)
    return None if found is None else (found[0], found[1].view(wide.dtype).astype(keys.dtype, copy=False))


def _integers(values: Array) -> Array:
    """The same as numbers that are compared as such: dates are integers of their unit."""
    if values.dtype.kind in "mM":
        return values.view(np.int64)
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def _of_integers(keys: Array, dtype: Any) -> Array:
    return keys.view(dtype) if dtype.kind in "mMb" else keys


def _range_of(keys: Array) -> tuple[int, int] | None:
    """The least of some integers, and how many there are up to the greatest, if a table over them is worth it."""
    if not keys.size:
        return None
    low = int(keys.min())
    size = int(keys.max()) - low + 1
    return (low, size) if size <= min(max(_STEP, 2 * keys.size), _MOST_PLACES) else None


def _above(keys: Array, low: int, dtype: Any) -> Array:
    """How far each is above the least; differences wrap around, and are small."""
    return (keys.astype(np.uint64) - np.uint64(low % 2**64)).astype(dtype)


def _back(above: Array, low: int, dtype: Any) -> Array:
    return (above.astype(np.uint64) + np.uint64(low % 2**64)).astype(dtype)


# --- objects


def _ranked_objects(places: Array, labels: Array) -> tuple[NDArray[np.intp], Array]:
    """The rank of every entry among the labels that occur."""
    table, ordered = _rank_objects(labels, np.flatnonzero(_counts_of(places, len(labels))))
    return table[places], ordered


def _of_counts(counts: NDArray[np.int64], labels: Array) -> Tally:
    table, ordered = _rank_objects(labels, np.flatnonzero(counts))
    totals = np.zeros(len(ordered) + 1, np.int64)
    np.add.at(totals, table[:-1], counts)
    return Tally((ordered,), totals[None, :-1])


def _counts_of(places: Array, labels: int) -> NDArray[np.int64]:
    from ..kernels.histograms import count_cells_into

    narrow = places.dtype.itemsize <= 2  # then places below 0 are beyond all labels as unsigned numbers
    counts = np.zeros(max(2 ** (8 * places.dtype.itemsize) if narrow else 0, labels + 1), np.int64)
    for start in range(0, places.size, _STEP):
        some = places[start : start + _STEP]
        some = some.view(f"u{some.dtype.itemsize}") if narrow else np.where(some < 0, labels, some)
        count_cells_into(some.astype(np.uint32), counts)
    return counts[:labels]


@sixty_digits
def _rank_objects(labels: Array, used: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
    """The rank of each label that is used, and these in order: numbers before bytes, dates and strings."""
    named = [_label(label) for label in labels[used].tolist()]
    kinds: dict[str, dict[Any, Any]] = {}
    for name in named:
        if name is not None:
            kinds.setdefault(name[0], {})[name[1]] = name[2]
    ordered = [(kind, key) for kind in sorted(kinds) for key in sorted(kinds[kind])]
    rank = {each: place for place, each in enumerate(ordered)}
    table = np.full(len(labels) + 1, -1, np.intp)  # the last one is of missing entries
    table[used] = [-1 if name is None else rank[name[:2]] for name in named]
    return table, objects([kinds[kind][key] for kind, key in ordered])


def _label(value: Any) -> tuple[str, Any, Any] | None:
    """What kind of label this is, what it is compared by, and how it is shown; equal ones have the same; None: none."""
    if isinstance(value, str):
        return "str", str(value), str(value)
    if isinstance(value, bytes):
        return "bytes", bytes(value), bytes(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return "a number", int(value), int(value)
    if isinstance(value, float | np.floating):
        plain = int(value) if float(value).is_integer() else float(value)
        return "a number", plain, plain
    if isinstance(value, Decimal):
        number: int | float | Decimal = _number_of(value)
        return "a number", number, number
    if isinstance(value, datetime):
        value = (value if value.tzinfo is None else value.astimezone(UTC)).replace(fold=0)  # which compares alike
        return type(value).__name__, value.isoformat(), value
    if comes_from(value, "pandas", "Period", "Interval"):
        return type(value).__name__, f"{value} {getattr(value, 'freqstr', '')}", value
    return (type(value).__name__, value.isoformat(), value) if type(value) in (date, time) else None


def _number_of(value: Decimal) -> int | float | Decimal:
    """The number of Python's that equals it, as equal numbers are one label; itself if there is none."""
    if value.is_finite() and value.copy_abs() < 2**63 and value == (whole := int(value)):
        return whole
    number = float(value)
    return number if number == value else value
