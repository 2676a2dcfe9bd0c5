"""Marginal tables as queries: every cell of a table is a conjunction."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from ...records.domain import Domain, check_domain, display_count
from ...support.checks import integer, items_of
from ...support.frozen import Frozen
from ...support.parameters import MOST_TABLE_CELLS, MOST_TABLES
from ...support.public_paths import public_as
from ...support.shown import shown
from .product import Conjunction
from .query import Query


@public_as("fastdp.answering")
class Marginals(Frozen, Sequence[Query]):
    """All cells of some marginal tables, as a workload: a sequence of conjunctions that also knows its tables.

    Parameters
    ----------
    domain : Domain
        The values that records may have.
    subsets : iterable of iterable of str
        The attributes of each table.

    Attributes
    ----------
    positions : tuple of tuple of int
        The positions of the attributes of each table, in the order of the domain.
    shapes : tuple of tuple of int
        The shape of each table.
    """

    def __init__(self, domain: Domain, subsets: Iterable[Iterable[str]]) -> None:
        self._take(domain, subsets, "subsets")

    @classmethod
    def of(cls, domain: Domain, workload: Any) -> Marginals:
        """The tables that the parameter `workload` of a release states: marginals, or the attributes of each."""
        if isinstance(workload, cls):
            return workload
        made = cls.__new__(cls)
        made._take(domain, workload, "workload")
        return made

    def _take(self, domain: Domain, subsets: Iterable[Iterable[str]], name: str) -> None:
        """Check the tables, whose parameter errors call by this name."""
        check_domain(domain)
        rule = "sets of attributes"
        if not isinstance(subsets, Iterable):
            raise ValueError(f"{name}: type {type(subsets).__name__}: must be {rule}")
        given = [subsets] if isinstance(subsets, str) else items_of(name, subsets, rule, most=MOST_TABLES)
        if alone := [subset for subset in given if isinstance(subset, str)]:
            raise ValueError(
                f"{name}: {shown(alone[0])}: must be a list of names, such as [['age', 'sex'], ['region']] for two "
                "tables"
            )
        subsets = [tuple(items_of(name, subset, rule, most=len(domain))) for subset in given]
        if not subsets:
            raise ValueError(f"{name}: must be at least one set of attributes")
        positions = tuple(tuple(sorted(domain.positions(s))) for s in subsets)
        if len(set(positions)) < len(positions):
            raise ValueError(f"{name}: must not repeat")
        self._place(domain, positions, name)

    def _place(self, domain: Domain, positions: tuple[tuple[int, ...], ...], name: str) -> None:
        self.domain, self.positions = domain, positions  # of each table in the order of the domain
        self.shapes = tuple(tuple(domain.sizes[p] for p in table) for table in positions)
        check_tables(name, len(positions), sum(map(prod, self.shapes)))
        self._starts = np.concatenate(([0], np.cumsum([prod(shape) for shape in self.shapes]))).tolist()

    @property
    def subsets(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of every table."""
        return tuple(tuple(self.domain.names[p] for p in positions) for positions in self.positions)

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return len(self.positions)

    def __len__(self) -> int:
        """How many cells all tables have together."""
        return int(self._starts[-1])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={shown(index)}: must be below {len(self)}")
        index %= len(self)
        table = int(np.searchsorted(self._starts, index, side="right")) - 1
        codes = np.unravel_index(index - self._starts[table], self.shapes[table])
        return self._query(table, [int(code) for code in codes])

    def __iter__(self) -> Iterator[Query]:
        for table, shape in enumerate(self.shapes):
            for codes in product(*map(range, shape)):
                yield self._query(table, codes)

    def _query(self, table: int, codes: Sequence[int]) -> Query:
        values = {}
        for position, code in zip(self.positions[table], codes, strict=True):
            labels = self.domain.labels[position]
            values[self.domain.names[position]] = code if labels is None else labels[code]
        return Conjunction(values)

    def __repr__(self) -> str:
        return f"Marginals(<{self.tables:,} tables, {len(self):,} cells>)"


def marginals_at(domain: Domain, positions: Iterable[tuple[int, ...]]) -> Marginals:
    """The tables of attributes at these positions: our own, increasing, no two the same."""
    made = Marginals.__new__(Marginals)
    made._place(domain, tuple(positions), "positions")
    return made


def check_tables(name: str, tables: int, cells: int) -> None:
    """ValueError if the tables are too many to be listed, or their cells to be numbered."""
    if tables > MOST_TABLES or cells > MOST_TABLE_CELLS:
        raise ValueError(
            f"{name}: {display_count(tables)} tables of {display_count(cells)} cells: must be at most {MOST_TABLES:,} "
            f"of {MOST_TABLE_CELLS:,}"
        )


def tables_size(sizes: Sequence[int], k: int) -> int:
    """How many cells all tables of k attributes have: the k-th elementary symmetric polynomial of the sizes, nearly.

    It adds up positive floats, so it is right to ten digits; what is beyond them is too much in any case.
    """
    sums = np.zeros(k + 1)
    sums[0] = 1.0
    with np.errstate(over="ignore"):
        for size in sizes:
            sums[1:] += size * sums[:-1]
    return int(min(sums[k], 1e300))


def marginals(domain: Domain, k: int) -> Marginals:
    """The workload of all marginal tables of k attributes.

    Parameters
    ----------
    domain : Domain
        The values that records may have.
    k : int
        How many attributes each table has.

    Returns
    -------
    Marginals
        A sequence of conjunctions, one for each cell of each table, that also knows its tables.

    Raises
    ------
    ValueError
        "k=21: must be at most the number of attributes, 20".

    Examples
    --------
    >>> from fastdp import Domain, marginals
    >>> marginals(Domain.binary(20), 3)
    Marginals(<1,140 tables, 9,120 cells>)
    """
    check_domain(domain)
    k = integer("k", k, least=1)
    if k > len(domain):
        raise ValueError(f"k={k}: must be at most the number of attributes, {len(domain)}")
    if min(k, len(domain) - k) > 22:  # more than 2^22 tables, and their number need not be known
        raise ValueError(f"k={k}: must be such that there are at most {MOST_TABLES:,} tables")
    check_tables(f"k={k}", comb(len(domain), k), tables_size(domain.sizes, k))
    return Marginals(domain, combinations(domain.names, k))
