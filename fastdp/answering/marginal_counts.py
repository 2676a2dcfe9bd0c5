"""How many records are in each cell of each table of a workload: exact integers, in few passes over the records."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain, code_type
from ..records.encoding import check_codes, encode, histogram, of_domain
from ..records.rows import Rows
from ..records.sources import rows_of
from ..support.parameters import Outside
from .marginal_transform import flat_of, marginal_tables
from .queries.marginals import Marginals

_HISTOGRAM_CELLS = 2**24  # up to here all tables come from one histogram
_GROUP_CELLS = 2**18  # of the histograms beyond; counts of so many stay in the cache


def count_tables(data: Any, workload: Marginals, outside: Outside = "raise") -> NDArray[np.int64]:
    """How many records are in each cell of all tables, one after the other."""
    domain = workload.domain
    if domain.size <= _HISTOGRAM_CELLS:
        return flat_of(marginal_tables(histogram(data, domain, outside), domain, workload))
    rows = data if isinstance(data, Rows) else rows_of(data)
    tables_of = _counter(rows, domain, outside)
    tables: list[Any] = [None] * workload.tables
    for attributes, which in groups_of(workload):
        if not attributes:  # the table of no attributes
            tables[which[0]] = np.array(rows.n)
            continue
        part, counts = tables_of(attributes)
        wanted = Marginals(part, [[part.names[attributes.index(p)] for p in workload.positions[i]] for i in which])
        for i, table in zip(which, marginal_tables(counts, part, wanted), strict=True):
            tables[i] = table
    return flat_of(tables)


def _counter(
    rows: Rows, domain: Domain, outside: Outside
) -> Callable[[tuple[int, ...]], tuple[Domain, NDArray[np.int64]]]:
    """What counts the records in the cells of some attributes: from codes of all of them, kept where records are."""
    if not rows.gathers:
        placed = of_domain(rows, domain, outside)
        check_codes(placed, domain, outside)

        def read(attributes: tuple[int, ...]) -> tuple[Domain, NDArray[np.int64]]:
            part = domain.project([domain.names[p] for p in attributes])
            return part, histogram(placed.select(attributes), part, outside)

        return read
    codes = encode(rows, domain, outside)

    def count(attributes: tuple[int, ...]) -> tuple[Domain, NDArray[np.int64]]:
        part = Domain({f"a{p}": domain.sizes[p] for p in attributes})
        return part, histogram({f"a{p}": codes[p] for p in attributes}, part)

    return count


def groups_of(workload: Marginals) -> list[tuple[tuple[int, ...], list[int]]]:
    """Attributes whose joint histogram is small, and the tables to take from it; each table once.

    Attributes are cut into runs that have at most the k-th root of a histogram's cells; a table of k attributes lies
    in the union of the k runs that they belong to.
    """
    sizes = workload.domain.sizes
    k = max(1, *(len(positions) for positions in workload.positions))
    room = _GROUP_CELLS ** (1 / k)
    runs: list[list[int]] = [[]]
    for p in sorted({p for positions in workload.positions for p in positions}):
        if runs[-1] and prod(sizes[q] for q in runs[-1]) * sizes[p] > room:
            runs.append([])
        runs[-1].append(p)
    run_of = {p: i for i, run in enumerate(runs) for p in run}
    by_runs: dict[tuple[int, ...], list[int]] = {}
    for i, positions in enumerate(workload.positions):
        by_runs.setdefault(tuple(sorted({run_of[p] for p in positions})), []).append(i)
    for touched in sorted(by_runs, key=len):  # tables of few runs go where others need more
        larger = next((other for other in by_runs if set(touched) < set(other)), None) if len(touched) < k else None
        if larger is not None:
            by_runs[larger] += by_runs.pop(touched)
    groups = []
    for touched, which in by_runs.items():
        attributes = tuple(p for i in touched for p in runs[i])
        if prod(sizes[p] for p in attributes) <= 2 * _GROUP_CELLS:
            groups.append((attributes, which))
        else:  # attributes of many values
            groups += [(workload.positions[i], [i]) for i in which]
    return groups


def bytes_of_records(n: int, domain: Domain) -> int:
    """What n records, or their histogram, take at most while they are counted."""
    if domain.size <= _HISTOGRAM_CELLS:
        return 8 * domain.size
    codes = sum(int(np.dtype(code_type(size)).itemsize) for size in domain.sizes)
    return n * codes + 16 * _GROUP_CELLS
