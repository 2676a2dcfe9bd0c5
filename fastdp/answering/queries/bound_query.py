"""Queries on a domain, in one of two forms: allowed values of each attribute, or one value for each cell.

Weights and counts over all cells are read and updated through the form. A product touches its own cells alone
(cell_runs.py) and works on domains of any size; one value for each cell reads them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import MOST_CELLS, Domain, check_domain, display_count
from ...support.frozen import frozen
from ...support.threads import run_chunks
from . import cell_runs
from .cell_runs import CHUNK, Pattern, Runs, Walk

GRID_BITS = 16  # values of queries are multiples of 2^-16, so that their sums over records are integers
UNIT = 2**GRID_BITS  # of sums over records: 2^-16 of a record

Counts = NDArray[np.int64]


class BoundQuery(ABC):
    """A query on a domain: which attributes it reads, and how arrays over all cells are read and updated by it."""

    domain: Domain

    @property
    @abstractmethod
    def attributes(self) -> tuple[int, ...]:
        """The positions of the attributes that it reads."""

    @property
    @abstractmethod
    def cells_read(self) -> int:
        """How many cells reading it touches, roughly: public, and what its time depends on."""

    @abstractmethod
    def average(self, x: NDArray[Any], total: float) -> float:
        """Its average under unnormalised weights x of all cells, whose sum is `total`."""

    @abstractmethod
    def scale(self, x: NDArray[Any], rate: float, total: float) -> tuple[float, bool]:
        """Multiply each weight by e^(rate f), f its value in the cell, or all of them by the same factor more.

        Returns the new sum of the weights, and whether that has been added up anew.
        """

    @abstractmethod
    def add_to_logarithms(self, logs: NDArray[np.float64], rate: float) -> None:
        """The same for logarithms of weights: add rate times f to each."""

    @abstractmethod
    def count(self, counts: Counts) -> int:
        """Its sum over records, in units of 2^-16, from the number of records in each cell."""


@dataclass(frozen=True)
class BoundProduct(BoundQuery):
    """1 for records that have an allowed value of every attribute listed; in order, none with all values allowed."""

    domain: Domain
    allowed: tuple[tuple[int, NDArray[np.bool_]], ...]

    @classmethod
    def of_codes(cls, domain: Domain, codes: tuple[tuple[int, int], ...]) -> BoundProduct:
        """One code of each attribute that is listed, in order; none of them with one value alone."""
        sizes = domain.sizes
        bound = cls(domain, tuple([(position, table_of(sizes[position], code)) for position, code in codes]))
        bound.__dict__["codes"] = codes
        return bound

    @cached_property
    def codes(self) -> tuple[tuple[int, int], ...] | None:
        """The code of each attribute, where it was made of these."""
        return None

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple(position for position, _ in self.allowed)

    @cached_property
    def cells(self) -> int:
        """How many cells it has."""
        if self.codes is not None:
            sizes = self.domain.sizes
            return self.domain.size // prod([sizes[position] for position, _ in self.codes])
        counts = {position: int(table.sum()) for position, table in self.allowed}
        return prod(counts.get(position, size) for position, size in enumerate(self.domain.sizes))

    @property
    def cells_read(self) -> int:
        return max(1, min(self.cells, self.domain.size - self.cells))

    @cached_property
    def plan(self) -> Runs | Pattern:
        """How to walk over its cells."""
        if self.codes is not None:
            return cell_runs.plan_of_codes(self.domain.sizes, self.codes)
        return cell_runs.plan_of(self.domain.sizes, self.allowed)

    @cached_property
    def complement(self) -> tuple[BoundProduct, ...]:
        """All other cells, as products that share none: outside A1; in A1 but outside A2; in both but not A3; ..."""
        return tuple(
            BoundProduct(self.domain, (*self.allowed[:i], (position, ~table)))
            for i, (position, table) in enumerate(self.allowed)
        )

    @cached_property
    def walk(self) -> Walk:
        """Over its cells or, if that reads less memory, over all others: up to 30 times faster, or twice as slow where
        the cells outside are scattered among those inside."""
        if self.codes:
            return cell_runs.walk_of_codes(self.domain.sizes, self.codes)
        if 2 * self.cells > self.domain.size:
            rest = tuple(part.plan for part in self.complement)
            if sum(map(cell_runs.cells_read, rest)) < cell_runs.cells_read(self.plan):
                return Walk(rest, True)
        return Walk((self.plan,), False)

    def within(self, positions: tuple[int, ...], domain: Domain) -> BoundProduct:
        """Its factor on the attributes at these positions, which are all attributes of another domain."""
        return BoundProduct(domain, tuple((positions.index(p), table) for p, table in self.allowed if p in positions))

    def average(self, x: NDArray[Any], total: float) -> float:
        share = cell_runs.sum_walk(x, self.walk) / total
        return max(0.0, 1.0 - share) if self.walk.outside else share

    def scale(self, x: NDArray[Any], rate: float, total: float) -> tuple[float, bool]:
        # the other side at the opposite rate gives the same distribution
        by = exp(-rate) if self.walk.outside else exp(rate)
        return total + (by - 1.0) * cell_runs.sum_walk(x, self.walk, by), False

    def add_to_logarithms(self, logs: NDArray[np.float64], rate: float) -> None:
        cube, inside = logs.reshape(self.domain.sizes), np.ones((1,) * len(self.domain), bool)
        for position, table in self.allowed:
            inside = inside & table.reshape([-1 if p == position else 1 for p in range(len(self.domain))])
        np.add(cube, rate, out=cube, where=inside)  # a byte a cell at most; cube[np.ix_(...)] would be a copy

    def count(self, counts: Counts) -> int:
        return cell_runs.count_plan(counts, self.plan) << GRID_BITS


@dataclass(frozen=True)
class BoundCells(BoundQuery):
    """One value for each cell: uint8, 0 or 1, or float64, multiples of 2^-16 in [0, 1]."""

    domain: Domain
    values: NDArray[Any]

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple(range(len(self.domain)))

    @property
    def cells_read(self) -> int:
        return self.domain.size

    @property
    def is_mask(self) -> bool:
        """Whether values are 0 and 1."""
        return self.values.itemsize == 1  # to compare types takes half a microsecond

    def average(self, x: NDArray[Any], total: float) -> float:
        values = self.values
        kernel = _kernels().sum_masked if self.is_mask else _kernels().sum_valued
        if x.size <= CHUNK:
            return kernel(x, values) / total  # type: ignore[no-any-return]
        return _sum_over(lambda i, j: kernel(x[i:j], values[i:j]), x.size) / total

    def scale(self, x: NDArray[Any], rate: float, total: float) -> tuple[float, bool]:
        kernel, by = (_kernels().scale_masked, exp(rate)) if self.is_mask else (_kernels().scale_valued, rate)
        return _sum_over(lambda i, j: kernel(x[i:j], self.values[i:j], by), x.size), True

    def add_to_logarithms(self, logs: NDArray[np.float64], rate: float) -> None:
        run_chunks(lambda i, j: np.add(logs[i:j], rate * self.values[i:j], out=logs[i:j]), logs.size, CHUNK)

    def count(self, counts: Counts) -> int:
        if self.is_mask:
            kernel = _kernels().count_masked
            if counts.size <= CHUNK:
                return kernel(counts, self.values) << GRID_BITS  # type: ignore[no-any-return]
            parts = run_chunks(lambda i, j: int(kernel(counts[i:j], self.values[i:j])), counts.size, CHUNK)
            return sum(parts) << GRID_BITS
        valued = _kernels().count_valued
        return sum(run_chunks(lambda i, j: int(valued(counts[i:j], self.units(slice(i, j)))), counts.size, CHUNK))

    def units(self, cells: Any) -> Counts:
        """The values of these cells in units of 2^-16."""
        units: Counts = np.rint(self.values[cells] * 2.0**GRID_BITS).astype(np.int64)
        return units


def checked(bound: Any, domain: Domain) -> BoundQuery:
    """What a query of the caller's own was bound to, as it must be, in arrays that nobody else holds."""
    if type(bound) is BoundProduct and bound.domain == domain:
        tables = bound.allowed
        places = [position for position, _ in tables]
        if places != sorted(set(places)) or not all(0 <= position < len(domain) for position in places):
            raise ValueError("query: bind() must list positions of attributes in order, each once")
        return BoundProduct(domain, tuple((p, _own_table(table, domain.sizes[p])) for p, table in tables))
    if type(bound) is BoundCells and bound.domain == domain:
        return BoundCells(domain, _own_values(bound.values, domain.size))
    raise ValueError(
        f"query: bind() returned a {type(bound).__name__}: must be a BoundProduct or BoundCells on the domain"
    )


def _own_table(table: Any, size: int) -> NDArray[np.bool_]:
    if not isinstance(table, np.ndarray) or table.dtype != np.bool_ or table.shape != (size,):
        raise ValueError(f"query: bind() must give a table of {size} values, True or False, for each attribute listed")
    own: NDArray[np.bool_] = np.array(table).view(np.uint8) != 0
    return own


def _own_values(values: Any, size: int) -> NDArray[Any]:
    if isinstance(values, np.ndarray) and values.shape == (size,) and values.dtype in (np.uint8, np.float64):
        own = np.array(values)  # what others hold may change after this
        whole = own if own.dtype == np.uint8 else np.rint(own * 2.0**GRID_BITS) * 2.0**-GRID_BITS
        if not size or (own.min() >= 0 and own.max() <= 1 and (own == whole).all()):
            return own
    raise ValueError(
        f"query: bind() must give a value for each of {display_count(size)} cells: uint8, 0 or 1, or float64, "
        "multiples of 2^-16 in [0, 1]"
    )


def check_cells(domain: Domain) -> None:
    """ValueError if the cells are too many to have a value each."""
    check_domain(domain)
    if domain.size > MOST_CELLS:
        raise ValueError(
            f"domain: {display_count(domain.size)} cells: must be at most 2^31 for a value each; use product queries"
        )


def as_row(name: str, values: NDArray[Any], domain: Domain) -> NDArray[Any]:
    """An array over all cells, in the shape of the domain or flat, as one row."""
    check_domain(domain)
    if values.shape not in ((domain.size,), domain.sizes):
        sizes = domain.sizes if len(domain) <= 8 else f"({str(domain.sizes[:8])[1:-1]}, ...)"
        both = f", or {sizes}" if len(domain) > 1 else ""
        raise ValueError(f"{name}: shape {values.shape}: must be ({display_count(domain.size)},){both}")
    return values.reshape(-1)


def table_of(size: int, code: int) -> NDArray[np.bool_]:
    """Which values are allowed where one is."""
    return _small_table(size, code) if size <= _SMALL_TABLE else _one_allowed(size, code)


def _one_allowed(size: int, code: int) -> NDArray[np.bool_]:
    table = np.zeros(size, bool)
    table[code] = True
    return frozen(table)


_small_table = lru_cache(4096)(_one_allowed)
_SMALL_TABLE = 1024  # values: 4 MiB in all


def _sum_over(kernel: Callable[[int, int], float], size: int) -> float:
    return float(sum(run_chunks(kernel, size, CHUNK)))


@lru_cache(1)
def _kernels() -> Any:
    from ...kernels import weights

    return weights
