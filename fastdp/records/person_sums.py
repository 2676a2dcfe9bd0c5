"""One record for each person: how many rows the person has, and sums of what they say, between declared bounds.

Sums are of integers on a grid, so they do not depend on where rows are. What a person adds to a release is bounded by
one record, however many rows that is made of: persons.md, theorem 4.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from fractions import Fraction
from math import frexp, isfinite, ldexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.boundary import boundary
from ..support.calls import Persons, Which
from ..support.checks import items_of
from ..support.columns import Array, Entries, NumpyColumn
from ..support.shown import shown
from .column_names import position_of
from .outside_domain import numbers_or_nan
from .person_keys import Keys, joined, numbered
from .persons import with_unit
from .rows import Block, Rows
from .subsets import Subset, TakenRows

ROWS = "rows"  # the column of how many rows a person has
_BITS = 30  # of the further bound
_BEYOND = 2**6  # how far beyond the bounds a row may be


@boundary
def per_person(data: Any, unit: str | int, *, sums: Mapping[str | int, tuple[float, float]] | None = None) -> Subset:
    """Make one record of all rows of each person: how many they are, and sums of columns.

    Every function that reads records takes the result, with `neighbors="add-remove"`. What it releases protects a
    person at the price of one record: for sums that are better than keeping a few rows of each.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records.
    unit : str or int
        The column that tells persons apart, by name or position. Equal entries are one person. Rows without an entry,
        and those whose entry has no hash, are nobody's and left out.
    sums : mapping, optional
        From columns of numbers to (lower, upper) bounds of a person's sum, which is clamped to them. Public: must not
        be read off the data. What is missing or no number adds nothing.

    Returns
    -------
    fastdp.records.Subset
        A record for each person, in the order of their first rows: the column "rows", and a column for each sum.

    Raises
    ------
    ValueError
        For columns and bounds, and for a part of a partition.

    Notes
    -----
    Guarantee    what is released on them at (epsilon, delta) is (epsilon, delta)-DP for neighbours that differ in all
                 rows of one person; a budget for persons is `Budget(unit=...)`
    Proof        persons.md, theorem 4
    Accuracy     sums are of integers, 2^30 between 0 and the further bound: a row is off by half of one at most; a row
                 beyond 64 times the bounds counts as that
    Cost         some 50 ns a row; memory for the persons
    Not covered  persons who have several entries of the column; how many persons there are is private: state what does
                 not depend on it

    Examples
    --------
    >>> import numpy as np
    >>> import fastdp
    >>> from fastdp import statistics
    >>> rng = np.random.default_rng(0)
    >>> visits = {"patient": rng.integers(0, 2000, 10_000), "cost": rng.exponential(40, 10_000)}
    >>> persons = fastdp.per_person(visits, unit="patient", sums={"cost": (0, 500)})
    >>> with fastdp.Budget(epsilon=1.0, neighbors="add-remove", unit="patient") as budget:
    ...     often = fastdp.quantile(persons["rows"], 0.9, domain_bits=10, epsilon=0.2, neighbors="add-remove")
    ...     cost = statistics.sum(persons["cost"], bounds=(0, 500), epsilon=0.5, neighbors="add-remove")
    >>> int(often), bool(abs(float(cost) / visits["cost"].sum() - 1) < 0.05)
    (8, True)
    """
    rows, at, name = with_unit(data, unit)
    columns = _columns_of(rows, sums)
    if len({column.name for column in columns} | {ROWS}) <= len(columns):
        raise ValueError(f"sums: must name different columns, and none that is called {ROWS!r}")
    read = rows.select([at, *(column.at for column in columns)])
    parts: list[_People] = read.merge(lambda block: [_People.of(block, columns)], lambda some, more: some + more)
    people = _People.merged(parts)
    held: list[Array] = [people.counts, *map(_Column.clamped, columns, people.totals)]
    names = (ROWS, *(column.name for column in columns))
    which = Which((), Persons(secrets.token_hex(8), name, 1))
    made = [NumpyColumn(repr(each), values) for each, values in zip(names, held, strict=True)]
    return Subset(TakenRows(made, names, len(people.counts), which))


class _Column(NamedTuple):
    """A column to be summed, as integers: units of `unit`, of which a person has from `low` to `high`."""

    at: int
    name: str
    unit: float
    low: int
    high: int
    integers: bool

    def of(self, entries: Entries) -> NDArray[np.int64]:
        """What each row adds."""
        values, missing, _ = entries
        most = _BEYOND * max(abs(self.low), abs(self.high))
        if self.integers and values.dtype.kind in "biu":
            limit = np.iinfo(values.dtype) if values.dtype.kind in "iu" else np.iinfo(np.uint8)
            small = values if values.dtype.kind == "b" else values.clip(max(limit.min, -most), min(limit.max, most))
            return np.asarray(small if missing is None else np.where(missing, 0, small), np.int64)
        floats = numbers_or_nan(entries)
        scaled = np.where(np.isnan(floats), 0.0, floats) * (1 / self.unit)
        found: NDArray[np.int64] = np.rint(scaled.clip(-most, most)).astype(np.int64)
        return found

    def clamped(self, totals: NDArray[np.int64]) -> Array:
        """The sums of persons, as numbers."""
        inside = totals.clip(self.low, self.high)
        return inside if self.integers else inside * self.unit


def _columns_of(rows: Rows, sums: Any) -> list[_Column]:
    if sums is None:
        return []
    if not isinstance(sums, Mapping):
        raise ValueError("sums: must be a mapping from columns to pairs of bounds")
    found = []
    for which, bounds in sums.items():
        at = position_of(which, rows.names, rows.width, "sums: column")
        kind = rows.dtypes()[at].kind
        if kind not in "biufO":
            raise ValueError(f"sums: column {shown(which)}: dtype {rows.dtypes()[at]}: must be numbers")
        low, high = _ends(which, bounds)
        whole = kind in "biu" and low.denominator == high.denominator == 1 and max(abs(low), abs(high)) <= 2**_BITS
        unit = 1.0 if whole else ldexp(1.0, frexp(float(max(abs(low), abs(high))))[1] - _BITS)
        name = which if isinstance(which, str) else f"column {at}"
        found.append(_Column(at, name, unit, round(low / Fraction(unit)), round(high / Fraction(unit)), whole))
    return found


def _ends(which: Any, bounds: Any) -> tuple[Fraction, Fraction]:
    ends = items_of("sums", bounds, "two numbers, the lower and the upper bound of a person's sum", most=2)
    good = len(ends) == 2 and all(
        isinstance(end, int | float | np.integer | np.floating) and not isinstance(end, bool) for end in ends
    )
    if not good or not all(isfinite(end) and (end == 0 or 2.0**-300 <= abs(end) <= 2.0**300) for end in ends):
        raise ValueError(f"sums: column {shown(which)}: must have two numbers, the lower and the upper bound")
    low, high = (Fraction(end.item() if isinstance(end, np.generic) else end) for end in ends)
    if not low < high:
        raise ValueError(f"sums: column {shown(which)}: bounds must be in increasing order")
    return low, high


class _People(NamedTuple):
    """Persons in the order of their first rows, how many rows each has, and what these add up to."""

    keys: Keys
    counts: NDArray[np.int64]
    totals: list[NDArray[np.int64]]

    @classmethod
    def of(cls, block: Block, columns: list[_Column]) -> _People:
        ones = np.ones(block.n, np.int64)
        return cls._summed(Keys.of(block, 0), ones, [c.of(block.numbers(1 + j)) for j, c in enumerate(columns)])

    @classmethod
    def merged(cls, parts: list[_People]) -> _People:
        if len(parts) == 1:
            return parts[0]
        totals = [np.concatenate(each) for each in zip(*(part.totals for part in parts), strict=True)]
        return cls._summed(joined([part.keys for part in parts]), np.concatenate([p.counts for p in parts]), totals)

    @classmethod
    def _summed(cls, keys: Keys, counts: NDArray[np.int64], totals: list[NDArray[np.int64]]) -> _People:
        """Of rows that may be of the same persons."""
        codes, words = numbered(keys)
        there = np.flatnonzero(codes >= 0)
        codes = codes[there]
        firsts = np.full(words.size, -1, np.int64)
        firsts[codes[::-1]] = there[::-1]  # of several the last one that is written stays: the first row
        order = np.flatnonzero(firsts >= 0)
        order = order[np.argsort(firsts[order])]

        def added(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            found = np.zeros(words.size, np.int64)
            np.add.at(found, codes, numbers[there])
            return found[order]

        return cls(keys.at(firsts[order]), added(counts), [added(each) for each in totals])
