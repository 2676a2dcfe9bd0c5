"""How many records are in each cell of each table of a workload: exact integers, in few passes over the records.

Tables are summed from the counts of groups of attributes that have most of a table's attributes in common: from those
of all cells of the domain, or from smaller ones, which stay in the caches, whichever is expected to take less time.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.cell_counts import bytes_of_counts
from ..records.domain import Domain, code_type
from ..records.encoding import encode, histograms, of_domain
from ..records.rows import Rows
from ..support.parameters import Outside
from .marginal_transform import flat_of, marginal_tables
from .queries.marginals import Marginals, marginals_at

_HISTOGRAM_CELLS = 2**24  # more are counted in one pass only if a table has as many
_GROUP_CELLS = 2**18  # of a group's counts, which stay in the cache
_MOST_GROUPS = 32  # of a pass
_RECORDS = 1_000_000  # that costs are compared for: public, unlike the number of records
_A_CODE, _A_COUNT, _A_FAR_COUNT, _A_CELL = 0.03, 0.5, 5.0, 2.0  # nanoseconds
_NEAR_CELLS = 2**22  # whose counts are not far


class Group(NamedTuple):
    """Attributes whose joint counts are taken, and what is summed from them."""

    attributes: tuple[int, ...]
    which: list[int]  # the numbers of the tables
    wanted: Marginals  # these tables, of the group's own domain

    @property
    def cells(self) -> int:
        return self.wanted.domain.size


def count_tables(data: Any, workload: Marginals, outside: Outside = "raise") -> NDArray[np.int64]:
    """How many records are in each cell of all tables, one after the other."""
    domain = workload.domain
    rows = of_domain(data, domain, outside)
    passes = _passes(workload, _HISTOGRAM_CELLS, _GROUP_CELLS)
    if len(passes) > 1 and rows.gathers:
        rows, domain = encoded_rows(rows, domain, outside)
    tables: list[Any] = [None] * workload.tables
    for number, groups in enumerate(passes):
        # the first pass reads all attributes: whether records are in the domain does not depend on the tables
        read = {p for group in groups for p in group.attributes} or {0} if number else range(len(domain))
        used = sorted(read)
        part = domain.project([domain.names[p] for p in used])
        places = [[used.index(p) for p in group.attributes] for group in groups]
        for group, counts in zip(groups, histograms(rows.select(used), part, places, outside), strict=True):
            for i, table in zip(group.which, marginal_tables(counts, group.wanted.domain, group.wanted), strict=True):
                tables[i] = table
    return flat_of(tables)


def encoded_rows(rows: Rows, domain: Domain, outside: Outside) -> tuple[Rows, Domain]:
    """The codes of all records, which are read several times."""
    codes = encode(rows, domain, outside)
    plain = Domain({f"a{p}": size for p, size in enumerate(domain.sizes)})
    return of_domain({f"a{p}": column for p, column in enumerate(codes)}, plain, "raise"), plain


@lru_cache(16)
def _passes(workload: Marginals, histogram_cells: int, group_cells: int) -> list[list[Group]]:
    """The groups of every pass over the records; workloads never change, and are equal only to themselves."""
    domain = workload.domain
    groups = [_group(workload, *group) for group in groups_of(workload, group_cells)]
    if domain.size <= histogram_cells:
        whole = [_group(workload, tuple(range(len(domain))), list(range(workload.tables)))]
        groups = min(whole, groups, key=_cost)
    passes: list[list[Group]] = []
    room = 0
    for group in groups:
        if not passes or group.cells > room or len(passes[-1]) == _MOST_GROUPS:
            passes.append([])
            room = max(histogram_cells, group.cells)
        passes[-1].append(group)
        room -= group.cells
    return passes


def _group(workload: Marginals, attributes: tuple[int, ...], which: list[int]) -> Group:
    part = Domain({f"a{p}": workload.domain.sizes[p] for p in attributes} or {"a": 1})
    place = {p: i for i, p in enumerate(attributes)}
    wanted = (tuple(place[p] for p in workload.positions[i]) for i in which)
    return Group(attributes, which, marginals_at(part, wanted))


def _cost(groups: list[Group]) -> float:
    """Of counting and summing, in nanoseconds."""
    of_records = sum(
        _A_CODE * len(group.attributes) + (_A_COUNT if group.cells <= _NEAR_CELLS else _A_FAR_COUNT) for group in groups
    )
    return _RECORDS * of_records + _A_CELL * sum(group.cells for group in groups)


def groups_of(workload: Marginals, most_cells: int) -> list[tuple[tuple[int, ...], list[int]]]:
    """Attributes whose joint histogram is small, and the tables to take from it; each table once.

    Attributes are cut into runs that have at most the k-th root of a histogram's cells; a table of k attributes lies
    in the union of the k runs that they belong to.
    """
    sizes = workload.domain.sizes
    k = max(1, *(len(positions) for positions in workload.positions))
    room = most_cells ** (1 / k) * (1 + 1e-12)
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
        if prod(sizes[p] for p in attributes) <= 2 * most_cells:
            groups.append((attributes, which))
        else:  # attributes of many values
            groups += [(workload.positions[i], [i]) for i in which]
    return groups


def bytes_of_records(n: int, workload: Marginals) -> int:
    """What n records, or their counts, take at most while they are counted."""
    passes = _passes(workload, _HISTOGRAM_CELLS, _GROUP_CELLS)
    counts = bytes_of_counts(max(sum(group.cells for group in groups) for groups in passes))
    if len(passes) == 1:
        return counts
    return n * sum(int(np.dtype(code_type(size)).itemsize) for size in workload.domain.sizes) + counts
