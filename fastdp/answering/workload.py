"""Many queries at once: their values on a distribution and their counts on the records.

Products that restrict the same few attributes are cells, or sums of cells, of one marginal table; all the tables of a
workload are made together (marginal_transform.py), which costs far less than to walk over the cells of each query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from .dense_weights import DenseWeights
from .factored_weights import FactoredWeights
from .marginal_transform import flat_of, marginal_tables
from .queries.bound_query import GRID_BITS, BoundProduct, BoundQuery
from .queries.marginals import Marginals
from .queries.query import bind
from .synthesis.weighted_tree import WeightedTree
from .true_answers import TrueAnswers

FEW = 64  # queries: up to here each is walked over by itself
_MOST_TABLE_CELLS = 1 << 14  # of one table: above that a query is walked over by itself


class _Cells(NamedTuple):
    """Where the values of queries stand among the cells of all tables, one after the other."""

    tables: Marginals | None
    queries: NDArray[np.int64]  # those that are sums of cells
    cells: NDArray[np.int64]  # of the first, of the second, ...
    starts: NDArray[np.int64]  # where each begins in `cells`
    alone: list[int]  # the other queries


class Workload:
    """Queries, bound to a domain; `bounds` where that has been done."""

    def __init__(self, queries: Sequence[Any], domain: Domain, bounds: Sequence[BoundQuery] | None = None) -> None:
        self.domain, self.queries = domain, queries
        self._whole = isinstance(queries, Marginals) and queries.domain == domain
        self._bounds: Sequence[BoundQuery | None] | None = bounds
        if bounds is None and not self._whole:
            self._bounds = [self._kept(query) for query in queries]
        self._made: tuple[int, BoundQuery | None] = -1, None  # the one that was made last of those that are not kept

    def __len__(self) -> int:
        return len(self.queries)

    def bound(self, i: int) -> BoundQuery:
        """One of the queries."""
        kept = None if self._bounds is None else self._bounds[i]
        if kept is not None:
            return kept
        if self._made[0] != i or self._made[1] is None:
            self._made = i, bind(self.queries[i], self.domain)
        return self._made[1]  # type: ignore[return-value]

    @property
    def cells_of_one(self) -> float:
        """How many cells a query touches, on the average: of a product its own or the others."""
        every = self.domain.size
        if self._bounds is None:
            return 1.0
        return sum(every if bound is None else bound.cells_read for bound in self._bounds) / len(self)

    def _kept(self, query: Any) -> BoundQuery | None:
        """The query on the domain, if it keeps that; otherwise it is only checked."""
        bound = bind(query, self.domain)
        return bound if query.keeps_bound else None

    def counts(self, true_answers: TrueAnswers) -> NDArray[np.int64]:
        """The sums of all queries over the records, in units of 2^-16."""
        if len(self) > FEW and true_answers.has_cells_for(len(self)):
            return self._values(true_answers.cells(), true_answers.count, 1 << GRID_BITS)
        return true_answers.counts(self.bound(i) for i in range(len(self)))

    def evaluate(
        self, weights: DenseWeights | FactoredWeights | WeightedTree, start: int = 0, stop: int | None = None
    ) -> NDArray[np.float64]:
        """The values of the queries, or of those from `start` to `stop`, on the distribution."""
        stop = len(self) if stop is None else stop
        if not isinstance(weights, DenseWeights) or stop - start <= FEW:
            return np.array([weights.evaluate(self.bound(i)) for i in range(start, stop)])
        return self._values(weights.weights, weights.evaluate, 1.0 / weights.total)[start:stop]

    def _values(self, array: NDArray[Any], alone: Callable[[BoundQuery], Any], unit: Any) -> NDArray[Any]:
        """Of all queries, from an array over all cells."""
        where = self._cells
        flat = np.empty(0, array.dtype)
        if where.tables is not None:
            flat = flat_of(marginal_tables(array, self.domain, where.tables))
        if self._whole:
            every: NDArray[Any] = flat * unit
            return every
        values = np.empty(len(self), array.dtype)
        if where.queries.size:
            values[where.queries] = np.add.reduceat(flat[where.cells], where.starts) * unit
        for i in where.alone:
            values[i] = alone(self.bound(i))
        return values

    @cached_property
    def _cells(self) -> _Cells:
        nothing = np.empty(0, np.int64)
        if self._whole:
            return _Cells(self.queries, nothing, nothing, nothing, [])  # type: ignore[arg-type]
        subsets: dict[tuple[int, ...], list[tuple[int, BoundProduct]]] = {}
        alone = []
        for i in range(len(self)):
            bound = self.bound(i)
            if isinstance(bound, BoundProduct) and bound.allowed and bound.cells:
                positions = bound.attributes
                if prod(self.domain.sizes[p] for p in positions) <= _MOST_TABLE_CELLS:
                    subsets.setdefault(positions, []).append((i, bound))
                    continue
            alone.append(i)
        if not subsets:
            return _Cells(None, nothing, nothing, nothing, alone)
        queries, cells, start = [], [], 0
        for subset, members in subsets.items():
            sizes = [self.domain.sizes[p] for p in subset]
            for i, product in members:
                place = np.zeros(1, np.int64)
                for (_, table), size in zip(product.allowed, sizes, strict=True):
                    place = (place[:, None] * size + np.flatnonzero(table)).reshape(-1)
                queries.append(i)
                cells.append(place + start)
            start += prod(sizes)
        names = self.domain.names
        tables = Marginals(self.domain, [[names[p] for p in subset] for subset in subsets])
        starts = np.cumsum([0, *(part.size for part in cells[:-1])])
        return _Cells(tables, np.array(queries), np.concatenate(cells), starts, alone)
