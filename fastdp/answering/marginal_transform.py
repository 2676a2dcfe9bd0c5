"""All tables of a workload of marginals from the array of all cells, and back from tables to cells.

Binary domains with several tables go through their parities: one Walsh-Hadamard transform that leaves out all sets of
more attributes than a table has, then a small transform for each table. Others are summed attribute by attribute, the
largest first, and tables share the sums. Which of the two depends on the sizes alone. Integers stay integers and are
exact; floats are added in an order that depends on the sizes alone, so results have the same bits for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import sums, walsh
from ..kernels.layout import LANES
from ..records.domain import Domain, display_count
from ..support.threads import run_chunks
from .queries.marginals import Marginals

CHUNK = 1 << 20  # cells that one thread works on at a time: 200 us
_FEW_TABLES = 64  # of a binary domain; more are always faster through parities
_PARITIES_COST = 3  # cells that are summed in the time that parities take for one
_MOST_TERMS = 64  # of a sum over several attributes, so that rounding errors stay small
_LARGE = 1 << 18  # a step over so many cells is worth a call of its own, on all threads


def marginal_tables(array: NDArray[Any], domain: Domain, workload: Marginals) -> list[NDArray[Any]]:
    """Every table of the workload, summed from an array over all cells.

    array     int64 or float64[domain.size] in C order; for integers every value of a table of k attributes must be
              below 2^(63 - k), which counts are by far
    Returns   for each table an array of its shape and of the type of `array`
    Accuracy  integers exact; floats within u times the sum of all absolute values, u = 2^-53 times the sum over the
              attributes of their sizes, counted as 64 at least; entries of a table of positive weights may be negative
              by as much
    Cost      all 1,140 three-way tables of 2^20 cells in less than a millisecond
    """
    return as_tables(flat_tables(array, domain, workload), workload)


def flat_tables(array: NDArray[Any], domain: Domain, workload: Marginals) -> NDArray[Any]:
    """The same as one array, one table after the other."""
    cells = _flat(array, domain, workload)
    if cells.dtype not in (np.dtype(np.int64), np.dtype(np.float64)):
        raise ValueError(f"array: dtype {cells.dtype}: must be int64 or float64")
    return _plan_of(workload).tables(cells)


def spread_tables(tables: Sequence[NDArray[Any]], domain: Domain, workload: Marginals) -> NDArray[np.float64]:
    """For every cell the sum, over the tables, of the entry that the cell belongs to: the adjoint of `marginal_tables`.

    Returns   float64[domain.size]
    Accuracy  within 2^-53 (64 d + number of tables) times the sum over the tables of their largest absolute values
    Cost      like `marginal_tables`
    """
    if [np.shape(table) for table in tables] != list(workload.shapes) or domain.sizes != workload.domain.sizes:
        raise ValueError("tables: must have the shapes of the workload, on its domain")
    return spread_flat(flat_of([np.asarray(table, np.float64) for table in tables]), workload)


def spread_flat(tables: NDArray[np.float64], workload: Marginals) -> NDArray[np.float64]:
    """The same of all tables of a workload, one after the other; overwrites them."""
    return _plan_of(workload).spread(tables)


def _flat(array: NDArray[Any], domain: Domain, workload: Marginals) -> NDArray[Any]:
    if domain.sizes != workload.domain.sizes:
        raise ValueError(f"domain: sizes {domain.sizes}: must be those of the workload, {workload.domain.sizes}")
    if array.size != domain.size:
        raise ValueError(f"array: {array.size:,} entries: must be one for each of {display_count(domain.size)} cells")
    return np.ascontiguousarray(array).reshape(-1)


def flat_of(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All entries of all tables, one table after the other."""
    return np.concatenate([table.reshape(-1) for table in tables])


def as_tables(flat: NDArray[Any], workload: Marginals) -> list[NDArray[Any]]:
    """The tables of a workload from all their entries."""
    if len(set(workload.shapes)) == 1:
        return list(flat.reshape(workload.tables, *workload.shapes[0])) if workload.shapes[0] else [flat.reshape(())]
    ends = np.cumsum([prod(shape) for shape in workload.shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), workload.shapes, strict=True)]


@lru_cache(maxsize=16)
def _plan_of(workload: Marginals) -> _Parities | _Sums:
    """The faster of the two plans; workloads never change, and are equal only to themselves."""
    sizes, subsets = workload.domain.sizes, workload.positions
    binary = set(sizes) == {2} and len(sizes) > walsh.LANE_BITS
    if binary and len(subsets) > _FEW_TABLES:
        return _Parities(len(sizes), subsets)
    plan = _plan_of_one(sizes, tuple(subsets[0])) if len(subsets) == 1 else sum_plan(sizes, subsets)
    return _Parities(len(sizes), subsets) if binary and plan.cost > _PARITIES_COST * plan.size else plan


# --- binary domains


class _Parities:
    """What kernels/walsh.py needs to know of a workload on d binary attributes."""

    def __init__(self, d: int, subsets: Sequence[Sequence[int]]) -> None:
        self.d = d
        self.weight = max(len(subset) for subset in subsets)
        self.bits = min(d - walsh.LANE_BITS, walsh.ROW_BITS)
        self.high = d - walsh.LANE_BITS - self.bits
        weights = np.array([row.bit_count() for row in range(1 << self.bits)])
        self.rows = np.flatnonzero(weights <= self.weight)
        self.places = np.full(1 << self.bits, -1)
        self.places[self.rows] = np.arange(self.rows.size)
        self.attributes = np.array([attribute for subset in subsets for attribute in subset], np.int64)
        self.starts = np.cumsum([0, *map(len, subsets)])
        self.room = sum(1 << len(subset) for subset in subsets)

    def tables(self, cells: NDArray[Any]) -> NDArray[Any]:
        """All tables, one after the other."""
        parities = _aligned(self.rows.size * LANES << self.high, cells.dtype)
        self._by_blocks(walsh.gather_parities_into, cells, parities)
        self._by_rows(walsh.finish_parities, parities)
        out = np.empty(self.room, cells.dtype)
        walsh.tables_from_parities_into(parities, self.d, self.bits, self.places, *self._wanted(), out)
        return out

    def spread(self, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what the tables, one after the other, give to each cell; overwrites `tables`."""
        parities = _aligned(self.rows.size * LANES << self.high, tables.dtype)
        parities[:] = 0.0
        walsh.add_parities_of_tables(tables, self.d, self.bits, self.places, *self._wanted(), parities)
        self._by_rows(walsh.begin_spreading, parities)
        out = np.empty(1 << self.d)
        self._by_blocks(walsh.spread_parities_into, parities, out)
        return out

    def _wanted(self) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return self.rows.size, self.attributes, self.starts, np.empty(1 << self.weight, np.int64)

    def _by_blocks(self, kernel: Any, source: NDArray[Any], out: NDArray[Any]) -> None:
        def run(first: int, stop: int) -> None:
            kernel(source, self.bits, self.weight, self.rows, first, stop, out)

        run_chunks(run, 1 << self.high, max(1, CHUNK >> (self.bits + walsh.LANE_BITS)))

    def _by_rows(self, kernel: Any, parities: NDArray[Any]) -> None:
        def run(first: int, stop: int) -> None:
            kernel(parities, self.high, self.weight, self.rows, first, stop)

        run_chunks(run, self.rows.size, max(1, CHUNK >> (self.high + walsh.LANE_BITS + 2)))


def _aligned(n: int, dtype: Any) -> NDArray[Any]:
    """An array that begins at a cache line: rows that lie across two take twice as long."""
    array = np.empty(n + 8, dtype)
    return array[-array.ctypes.data % 64 // 8 :][:n]


def transform(array: NDArray[Any]) -> None:
    """The Walsh-Hadamard transform of 2^d cells, in place: array[T] becomes the sum of (-1)^|T and c| array[c].

    array     int64 or float64, contiguous, 2^d entries, d >= 3; integers wrap around, so a result that fits is right
    Cost      2^24 cells in the time of four copies
    """
    bits = min(array.size.bit_length() - 1, walsh.BLOCK_BITS)
    high = array.size.bit_length() - 1 - bits
    while high > 0:
        mixed = min(high, walsh.STRIP_BITS)
        high -= mixed
        _mix_strips(array, mixed, 1 << (bits + high))
    run_chunks(lambda i, j: walsh.transform_blocks(array, bits, i, j), array.size >> bits, CHUNK >> bits)


def _mix_strips(array: NDArray[Any], bits: int, inner: int) -> None:
    strips, chunk = (array.size >> bits) // walsh.STRIP, (CHUNK >> bits) // walsh.STRIP
    run_chunks(lambda i, j: walsh.transform_strips(array, bits, inner, i, j), strips, chunk)


# --- domains of any sizes


@dataclass(frozen=True)
class _Sums:
    """Steps that lead from the array of all cells to all tables; see kernels/sums.py."""

    size: int
    room: int  # cells of all tables
    space: int  # and of the sums on the way
    steps: NDArray[np.int64]

    @cached_property
    def cost(self) -> int:
        """How many entries are added up."""
        return int(self.steps[:, 2:5].prod(axis=1).sum())

    def tables(self, cells: NDArray[Any]) -> NDArray[Any]:
        """All tables, one after the other."""
        space = np.empty(self.space, cells.dtype)
        for first, stop in self._runs:
            if stop - first > 1:
                sums.run_sums(cells, space, self.steps, first, stop)
            else:
                sum_step(self.steps[first], cells, space)
        return space[: self.room].copy()

    def spread(self, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what the tables, one after the other, give to each cell."""
        out, space = np.empty(self.size), np.empty(self.space)
        space[: self.room] = tables
        for first, stop in reversed(self._runs):
            if stop - first > 1:
                sums.run_spreads(out, space, self.steps, first, stop)
            else:
                spread_step(self.steps[first], out, space)
        return out

    @cached_property
    def _runs(self) -> tuple[tuple[int, int], ...]:
        """Large steps one by one, the others together."""
        runs, first = [], 0
        for large in np.flatnonzero(self.steps[:, 2:5].prod(axis=1) >= _LARGE).tolist():
            if first < large:
                runs.append((first, large))
            runs.append((large, large + 1))
            first = large + 1
        if first < len(self.steps):
            runs.append((first, len(self.steps)))
        return tuple(runs)


def sum_step(step: NDArray[np.int64], cells: NDArray[Any], space: NDArray[Any]) -> None:
    """One step of `run_sums`, on all threads."""
    at, to, outer, size, inner, _ = step.tolist()
    x = cells if at < 0 else space
    _over(outer * inner, size, lambda i, j: sums.sum_axis_into(x, max(at, 0), space, to, size, inner, i, j))


def spread_step(step: NDArray[np.int64], cells: NDArray[np.float64], space: NDArray[np.float64]) -> None:
    """One step of `run_spreads`, on all threads."""
    at, to, outer, size, inner, add = step.tolist()
    x = cells if at < 0 else space
    _over(outer * inner, size, lambda i, j: sums.spread_axis(space, to, x, max(at, 0), size, inner, add, i, j))


def _over(n: int, size: int, function: Callable[[int, int], None]) -> None:
    run_chunks(function, n, max(64, CHUNK // size // 64 * 64))


Axes = tuple[int, ...]


def sum_plan(sizes: Sequence[int], subsets: Sequence[Sequence[int]]) -> _Sums:
    """Sum out the largest attribute that some table lacks, for all tables that lack it; go on with the others."""
    starts = np.cumsum([0, *(prod(sizes[p] for p in subset) for subset in subsets)]).tolist()
    room = space = starts[-1]
    places: dict[Axes, list[int]] = {}  # where the tables of some axes go; an attribute of one value is none
    for subset, start in zip(subsets, starts, strict=False):
        places.setdefault(tuple(p for p in subset if sizes[p] > 1), []).append(start)
    steps: list[list[int]] = []
    sources: list[int] = []  # of each step, after which step its source was there

    def cells(axes: Iterable[int]) -> int:
        return prod(sizes[p] for p in axes)

    def step(axes: Axes, at: int, made: int, out: Axes, to: int) -> None:
        outer, size = cells(p for p in axes if p < min(out, default=0)), cells(out)
        steps.append([at, to, outer, size, cells(axes) // (outer * size), 0])
        sources.append(made)

    def visit(axes: Axes, at: int, made: int, top: int, targets: list[Axes]) -> None:
        """Make the targets from the table of these axes, which is at place `at`; there is room from `top` on."""
        nonlocal space
        while out := _next_out(axes, sizes, targets):
            rest = tuple(p for p in axes if p not in out)
            to = places[rest][0] if rest in targets else top
            if to == top:
                top += cells(rest)
                space = max(space, top)
            step(axes, at, made, out, to)
            axes, at, made = rest, to, len(steps)
        if axes in targets:
            for place in places[axes]:
                if place != at:
                    step(axes, at, made, (), place)
            targets = [target for target in targets if target != axes]
        while targets:
            lacked = [p for p in axes if any(p not in target for target in targets)]
            first = max(lacked, key=lambda p: (sizes[p], -p))
            visit(axes, at, made, top, [target for target in targets if first not in target])
            targets = [target for target in targets if first in target]

    visit(tuple(p for p, size in enumerate(sizes) if size > 1), -1, 0, space, list(places))
    written: set[int] = set()
    for one, made in reversed(list(zip(steps, sources, strict=True))):
        one[5] = int(made in written or 0 <= one[0] < room)  # a spread finds something there: add to it
        written.add(made)
    return _Sums(prod(sizes), room, space, np.array(steps, np.int64))


@lru_cache(256)
def _plan_of_one(sizes: tuple[int, ...], subset: tuple[int, ...]) -> _Sums:
    """The plan of one table, which takes half as long to make as its sums over 2^20 cells."""
    return sum_plan(sizes, [subset])


def _next_out(axes: Axes, sizes: Sequence[int], targets: Sequence[Axes]) -> Axes:
    """Neighbouring axes that no target has, summed out in one step; of several groups the one that leaves least."""
    needed = set().union(*targets)
    groups: list[Axes] = []
    open_group = False
    for p in axes:
        if p in needed:
            open_group = False
        elif open_group and prod(sizes[q] for q in groups[-1]) * sizes[p] <= _MOST_TERMS:
            groups[-1] = (*groups[-1], p)
        else:
            groups.append((p,))
            open_group = True

    def worth(group: Axes) -> tuple[bool, int]:
        inner = prod(sizes[p] for p in axes if p > group[-1])
        return inner >= LANES, prod(sizes[p] for p in group)

    return max(groups, key=worth, default=())
