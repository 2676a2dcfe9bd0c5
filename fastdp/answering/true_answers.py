"""The true answers: sums of queries over the records, exact, from the counts of all cells or from bit-packed records.

Sums over records are in units of 2^-16 of a record, the grid of query values. Which of the two ways is taken depends on
public numbers alone: the number of records, the sizes of the domain, the query.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import literals
from ..records.domain import Codes, Domain, code_type, display_count
from ..records.encoding import check_codes, codes_of, encode, histogram, of_domain
from ..records.rows import Block, Rows
from ..records.sources import rows_of
from ..support.parameters import Outside
from ..support.threads import run_chunks
from .queries.bound_query import GRID_BITS, BoundCells, BoundProduct, BoundQuery
from .queries.cell_runs import CHUNK

_MOST_CELLS = 1 << 27  # whose counts fit into a histogram: 1 GiB
_FEW_CELLS = 1 << 17  # for which a histogram is always kept
_FEW_FAR_CELLS = 1 << 24  # the same where records are elsewhere, and a query would be a pass over them
_ONE_PASS = 1 << 14  # products that are sent to records together
_PACKED_BYTES = 1 << 28  # of packed literals that are kept
_KEPT = 1024  # conjunctions whose columns are known

# Nanoseconds, one thread. A query on a histogram reads about a tenth of it; a query on packed records reads a bit a
# record and literal. All queries of a workload come from the histogram in a few passes, which may be made for them.
_A_CELL, _A_RECORD, _A_CALL, _A_HISTOGRAM_CELL = 0.1, 0.005, 1500.0, 1.0


class TrueAnswers:
    """The records, as what queries are counted on: one count for each cell, or packed literals.

    n    the public number of records, which decides between the two; by default that of the records
    """

    def __init__(self, data: Any, domain: Domain, outside: Outside = "raise", *, n: int | None = None) -> None:
        self.domain = domain
        self.histogram: NDArray[np.int64] | None = None
        self._literals: _Literals | _Elsewhere | None = None
        rows = rows_of(data)
        if keeps_histogram(rows.n if n is None else n, domain, rows.gathers):
            self.histogram = histogram(rows, domain, outside)
            self.n = int(self.histogram.sum())
        elif not rows.gathers:
            self.n, self._literals = rows.n, _Elsewhere(rows, domain, outside)
        else:
            # copies: the caller's columns may change, and the answers are about one set of records
            codes = [np.array(column) for column in encode(rows, domain, outside)]
            self.n = codes[0].size
            self._literals = _Literals(codes, domain)

    @staticmethod
    def bytes(n: int, domain: Domain, gathers: bool = True) -> int:
        """What so many records will take in memory, at most; those that are not to be gathered take none."""
        if keeps_histogram(n, domain, gathers):
            return 8 * domain.size
        if not gathers:
            return 0
        codes = sum(int(np.dtype(code_type(size)).itemsize) for size in domain.sizes)
        return n * (codes + 8) + 8 * math.prod(_packed_shape(n, domain))

    def count(self, bound: BoundQuery) -> int:
        """The sum of the query over the records, in units of 2^-16."""
        if self._literals is not None:
            if isinstance(bound, BoundProduct):
                return self._literals.count_one(bound) << GRID_BITS
            if isinstance(self._literals, _Literals) and isinstance(bound, BoundCells):
                return self._literals.add_up(bound)
        return bound.count(self.cells())

    def counts(self, bounds: Iterable[BoundQuery]) -> NDArray[np.int64]:
        """The same of several queries; of records that are elsewhere, many products in one pass."""
        if not isinstance(self._literals, _Elsewhere):
            return np.array([self.count(bound) for bound in bounds], np.int64)
        found: list[int] = []
        waiting: dict[int, BoundProduct] = {}

        def count_those() -> None:
            assert isinstance(self._literals, _Elsewhere)
            for i, count in zip(waiting, self._literals.counts(list(waiting.values())), strict=True):
                found[i] = count << GRID_BITS
            waiting.clear()

        for i, bound in enumerate(bounds):
            found.append(0)
            if not isinstance(bound, BoundProduct):
                found[i] = self.count(bound)
                continue
            waiting[i] = bound
            if len(waiting) == _ONE_PASS:
                count_those()
        count_those()
        return np.array(found, np.int64)

    def cells(self) -> NDArray[np.int64]:
        """How many records are in each cell; ValueError if there are too many cells."""
        if self.histogram is not None:
            return self.histogram
        if self.domain.size > _MOST_CELLS:
            raise ValueError(
                f"domain: {display_count(self.domain.size)} cells: must be at most 2^27 to count the records in each"
            )
        assert self._literals is not None
        if isinstance(self._literals, _Elsewhere):
            return self._literals.histogram
        return np.bincount(self._literals.cells, minlength=self.domain.size)

    def has_cells_for(self, queries: int) -> bool:
        """Whether so many products are best counted from the number of records in each cell."""
        if self.histogram is not None:
            return True
        if isinstance(self._literals, _Elsewhere):
            return False  # one pass is one pass, and its result is smaller
        each = _A_CALL + 3 * _A_RECORD * self.n
        return self.domain.size <= _MOST_CELLS and queries * each > _A_HISTOGRAM_CELL * (self.domain.size + self.n)


def keeps_histogram(n: int, domain: Domain, gathers: bool = True) -> bool:
    """Whether a query is counted in less time on the histogram than on packed records, or in one pass more."""
    most = max(_FEW_CELLS if gathers else _FEW_FAR_CELLS, round(n * 3 * _A_RECORD / _A_CELL))
    return domain.size <= min(most, _MOST_CELLS)


Allowed = tuple[tuple[int, NDArray[np.bool_]], ...]  # attributes, and which of their values a product allows


class _Literals:
    """Records as packed columns, one for each set of allowed values that has been asked for: the last ones are kept."""

    def __init__(self, codes: Sequence[Codes], domain: Domain) -> None:
        self._codes, self.domain, self.n = codes, domain, codes[0].size
        self._columns = np.empty(_packed_shape(self.n, domain), np.uint64)
        self._slots: OrderedDict[tuple[int, bytes], int] = OrderedDict()
        self._slots_of: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}  # of conjunctions, while these stay

    def counts(self, bounds: Sequence[BoundProduct]) -> list[int]:
        """How many records satisfy each product."""
        return [self.count(bound.allowed) for bound in bounds]

    def count(self, allowed: Allowed) -> int:
        if not allowed or not self.n:
            return self.n
        slots = np.array([self._slot(position, table) for position, table in allowed])
        return int(literals.count_all(self._columns, slots))

    def count_one(self, bound: BoundProduct) -> int:
        """The same of one product; of a conjunction by the places that its columns had the last time."""
        codes = bound.codes
        if not codes or not self.n:
            return self.count(bound.allowed)
        slots = self._slots_of.get(codes)
        if slots is None:
            slots = np.array([self._slot(position, table) for position, table in bound.allowed])
            if len(self._slots_of) >= _KEPT:
                self._slots_of.clear()
            self._slots_of[codes] = slots
        return literals.count_all(self._columns, slots)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """The cell of every record, for queries that have a value for each."""
        return self.domain.cells(self._codes)

    def add_up(self, bound: BoundCells) -> int:
        """The sum over the records of the values of their cells, in units of 2^-16."""
        return sum(run_chunks(lambda i, j: int(bound.units(self.cells[i:j]).sum()), self.n, CHUNK))

    def _slot(self, position: int, table: NDArray[np.bool_]) -> int:
        key = position, table.tobytes()
        if key in self._slots:
            self._slots.move_to_end(key)
            return self._slots[key]
        full = len(self._slots) == len(self._columns)
        if full:
            self._slots_of.clear()
        slot = self._slots.popitem(last=False)[1] if full else len(self._slots)
        literals.pack_allowed_into(self._codes[position], table.view(np.uint8), self._columns[slot])
        self._slots[key] = slot
        return slot


class _Elsewhere:
    """Records that stay where they are, and are counted anew whenever queries come."""

    def __init__(self, rows: Rows, domain: Domain, outside: Outside) -> None:
        self._rows, self._domain, self._outside = of_domain(rows, domain, outside), domain, outside
        check_codes(self._rows, domain, outside)

    def counts(self, bounds: Sequence[BoundProduct]) -> list[int]:
        """How many records satisfy each product: one pass over the attributes that they read."""
        domain, outside = self._domain, self._outside
        used = sorted({p for bound in bounds for p in bound.attributes})
        if not used:
            return [self._rows.n] * len(bounds)
        place_of = {p: j for j, p in enumerate(used)}
        part = domain.project([domain.names[p] for p in used])
        asked = [tuple((place_of[p], table) for p, table in bound.allowed) for bound in bounds]

        def statistic(block: Block) -> list[int]:
            codes = [codes_of(domain, p, block, outside, column) for column, p in enumerate(used)]
            records = _Literals(codes, part)
            return [records.count(allowed) for allowed in asked]

        counts: list[int] = self._rows.select(used).total(statistic).tolist()
        return counts

    def count_one(self, bound: BoundProduct) -> int:
        """The same of one."""
        return self.counts([bound])[0]

    @cached_property
    def histogram(self) -> NDArray[np.int64]:
        """How many records are in each cell, for queries that have a value for each."""
        return histogram(self._rows, self._domain, self._outside)


def _packed_shape(n: int, domain: Domain) -> tuple[int, int]:
    """How many literals are kept, at least as many as one query may need at a time, and of how many words."""
    words = -(-n // 64)
    return max(len(domain), min(4096, _PACKED_BYTES // (8 * max(words, 1)))), words
