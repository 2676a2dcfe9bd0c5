"""What queries come to on the records: exact integers, from the counts of all cells or from bit-packed records.

Sums over records are in units of 2^-16 of a record, the grid of query values. Which of the two ways is taken depends on
public numbers alone: the number of records, the sizes of the domain, the query.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import literals, weights
from ..threads import run_chunks
from .coding import encode, histogram
from .dense import CHUNK, count_cells
from .domain import Codes, Domain, Outside, shown
from .queries import GRID_BITS, Bound, BoundCells, BoundProduct

DENSE_CELLS = 1 << 27  # cells whose counts are kept: 1 GiB
_PACKED_BYTES = 1 << 28  # of packed literals that are kept


class Truth:
    """The records, as what queries are counted on."""

    def __init__(self, data: Any, domain: Domain, outside: Outside = "raise") -> None:
        self.domain = domain
        self.histogram: NDArray[np.int64] | None = None
        self._literals: _Literals | None = None
        if domain.size <= DENSE_CELLS:
            self.histogram = histogram(data, domain, outside)
            self.n = int(self.histogram.sum())
        else:
            # copies: the caller's columns may change, and the answers are about one set of records
            codes = [np.array(column) for column in encode(data, domain, outside)]
            self.n = codes[0].size
            self._literals = _Literals(codes, domain)

    def count(self, bound: Bound) -> int:
        """The sum of the query over the records, in units of 2^-16."""
        if isinstance(bound, BoundProduct):
            if self._literals is not None:
                return self._literals.count(bound) << GRID_BITS
            assert self.histogram is not None
            return count_cells(self.histogram, bound) << GRID_BITS
        if self.histogram is None:
            raise ValueError(
                f"query: has a value for each of {shown(self.domain.size)} cells: must be a product of values"
            )
        return count_values(self.histogram, bound)


def count_values(counts: NDArray[np.int64], bound: BoundCells) -> int:
    """The sum of the query over the records, in units of 2^-16, from the counts of all cells."""
    values = bound.values
    if values.dtype == np.uint8:
        parts = run_chunks(lambda i, j: int(weights.count_masked(counts[i:j], values[i:j])), values.size, CHUNK)
        return sum(parts) << GRID_BITS

    def part(i: int, j: int) -> int:
        return int(weights.count_valued(counts[i:j], np.rint(values[i:j] * 2.0**GRID_BITS).astype(np.int64)))

    return sum(run_chunks(part, values.size, CHUNK))


class _Literals:
    """Records as packed columns, one for each set of allowed values that has been asked for: the last ones are kept."""

    def __init__(self, codes: list[Codes], domain: Domain) -> None:
        self._codes, self.n = codes, codes[0].size
        self._words = -(-self.n // 64)
        # at least as many as one query may need at a time
        columns = max(len(domain), min(4096, _PACKED_BYTES // (8 * max(self._words, 1))))
        self._columns = np.empty((columns, self._words), np.uint64)
        self._slots: OrderedDict[tuple[int, bytes], int] = OrderedDict()

    def count(self, bound: BoundProduct) -> int:
        if not bound.allowed or not self.n:
            return self.n
        slots = np.array([self._slot(position, table) for position, table in bound.allowed])
        return int(literals.count_all(self._columns, slots))

    def _slot(self, position: int, table: NDArray[np.bool_]) -> int:
        key = position, table.tobytes()
        if key in self._slots:
            self._slots.move_to_end(key)
            return self._slots[key]
        full = len(self._slots) == len(self._columns)
        slot = self._slots.popitem(last=False)[1] if full else len(self._slots)
        literals.pack_allowed_into(self._codes[position], table.view(np.uint8), self._columns[slot])
        self._slots[key] = slot
        return slot
