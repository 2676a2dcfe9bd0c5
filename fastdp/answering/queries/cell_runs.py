"""Which cells a product query touches, as a walk over an array of all cells, and the sums over it: what
kernels/subcubes.py takes.

Runs of neighbours where they are long; a pattern that repeats where the allowed cells lie close together, since memory
comes in lines of 8 cells and a scattered one costs as much as a line; single cells elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...support.threads import run_chunks

CHUNK = 1 << 20  # cells that one thread works on at a time: 0.2 ms
INNER = 2048  # offsets in the inner list, and cells of a pattern: what stays in the L1 cache
LONG = 8  # a run of fewer cells is less than a line of memory
DENSE = 1 / 32  # of a pattern: below that single cells take less time


class Runs(NamedTuple):
    """Runs of `length` cells that start at outer[i] + inner[j]."""

    outer: NDArray[np.int64]
    inner: NDArray[np.int64]
    length: int


class Pattern(NamedTuple):
    """The cells outer[i] + r where marks[r] is 1."""

    outer: NDArray[np.int64]
    marks: NDArray[np.uint8]


class Walk(NamedTuple):
    """Plans that together touch the cells of a query, or `outside` of it."""

    plans: tuple[Runs | Pattern, ...]
    outside: bool


def cells_read(plan: Runs | Pattern) -> int:
    """How many cells come from memory: a line at least for each run."""
    if isinstance(plan, Pattern):
        return plan.outer.size * plan.marks.size
    return plan.outer.size * plan.inner.size * max(plan.length, LONG)


def plan_of(sizes: tuple[int, ...], tables_of: Sequence[tuple[int, NDArray[np.bool_]]]) -> Runs | Pattern:
    """How to walk, in their order, over the cells with an allowed value of each attribute that has a table."""
    tables = dict(tables_of)
    allowed = [np.flatnonzero(tables[p]) if p in tables else np.arange(size) for p, size in enumerate(sizes)]
    if not all(codes.size for codes in allowed):
        nothing = np.empty(0, np.int64)
        return Runs(nothing, nothing, 1)
    offsets = np.zeros(1, np.int64)
    stride = length = 1
    split: tuple[int, int] | None = None  # the attribute, and the stride, where the outer list begins
    for position in range(len(sizes) - 1, -1, -1):
        codes = allowed[position]
        joined = length == stride and codes[-1] - codes[0] + 1 == codes.size
        added = 1 if joined else codes.size
        if offsets.size * added > INNER and offsets.size > 1:
            split = position, stride
            break
        if joined:
            length, codes = codes.size * stride, codes[:1]
        offsets = _plus(codes * stride, offsets)
        stride *= sizes[position]
    if length < LONG and (pattern := _pattern_of(allowed, sizes)):
        return pattern
    outer = np.zeros(1, np.int64)
    if split is not None:
        outer = _offsets(allowed[: split[0] + 1], sizes[: split[0] + 1], split[1])
    if length < LONG:
        offsets, length = _plus(offsets, np.arange(length)), 1
    return Runs(outer, offsets, length)


def plan_of_codes(sizes: tuple[int, ...], codes: tuple[tuple[int, int], ...]) -> Runs | Pattern:
    """The same for one code of each attribute that is listed: the plan of the codes 0, which is kept, moved.

    What a plan looks like depends on how many values are allowed, and not on which: so both are the same, bit by bit.
    """
    positions = tuple([position for position, _ in codes])
    plan, strides, first = _plan_of_zeros(sizes, positions) or _new_plan_of_zeros(sizes, positions)
    high = low = 0
    for (position, code), stride in zip(codes, strides, strict=True):
        if position < first:
            high += code * stride
        else:
            low += code * stride
    if isinstance(plan, Runs):
        return plan if not high else Runs(plan.outer + high, plan.inner, plan.length)
    marks = np.zeros_like(plan.marks)
    marks[low:] = plan.marks[: plan.marks.size - low]
    return Pattern(plan.outer + high, marks)


class _Zeros(NamedTuple):
    """The plan of a conjunction of codes 0, and how to move it."""

    plan: Runs | Pattern
    strides: tuple[int, ...]  # of the attributes of the conjunction
    first: int  # the first attribute that lies within a pattern


def _new_plan_of_zeros(sizes: tuple[int, ...], positions: tuple[int, ...]) -> _Zeros:
    tables = [(position, np.arange(sizes[position]) == 0) for position in positions]
    plan, every = plan_of(sizes, tables), [1]
    for size in reversed(sizes[1:]):
        every.append(every[-1] * size)
    first = len(sizes)
    if isinstance(plan, Pattern):
        first = len(sizes) - 1 - max(i for i, stride in enumerate(every) if stride < plan.marks.size)
    return _Zeros(plan, tuple([every[len(sizes) - 1 - position] for position in positions]), first)


@lru_cache(1024)
def _plan_of_zeros(sizes: tuple[int, ...], positions: tuple[int, ...]) -> _Zeros | None:
    """The same, kept if it is small: with INNER offsets at most 32 KiB each."""
    made = _new_plan_of_zeros(sizes, positions)
    return made if made.plan.outer.size <= INNER else None


def walk_of_codes(sizes: tuple[int, ...], codes: tuple[tuple[int, int], ...]) -> Walk:
    """The walk over the cells of a conjunction, which are never more than those outside."""
    return _kept_walk(sizes, codes) or Walk((plan_of_codes(sizes, codes),), False)


@lru_cache(512)
def _kept_walk(sizes: tuple[int, ...], codes: tuple[tuple[int, int], ...]) -> Walk | None:
    """The same of the last ones that were asked, if it is small."""
    plan = plan_of_codes(sizes, codes)
    return Walk((plan,), False) if plan.outer.size <= INNER else None


def _pattern_of(allowed: list[NDArray[np.int64]], sizes: tuple[int, ...]) -> Pattern | None:
    """The last attributes as a pattern, as many as have at most 2,048 cells, if enough of them are allowed."""
    first, cells = len(sizes), 1
    while first > 0 and cells * sizes[first - 1] <= INNER:
        first -= 1
        cells *= sizes[first]
    marks = np.zeros(cells, np.uint8)
    marks[_offsets(allowed[first:], sizes[first:], 1)] = 1
    if marks.mean() < DENSE:
        return None
    return Pattern(_offsets(allowed[:first], sizes[:first], cells), marks)


def _offsets(allowed: list[NDArray[np.int64]], sizes: tuple[int, ...], stride: int) -> NDArray[np.int64]:
    """The cells of all combinations of the allowed codes, in order."""
    offsets = np.zeros(1, np.int64)
    for codes, size in zip(reversed(allowed), reversed(sizes), strict=True):
        offsets = _plus(codes * stride, offsets)
        stride *= size
    return offsets


def _plus(high: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.int64]:
    return (high[:, None] + low).reshape(-1)


# --- sums over walks


def sum_walk(x: NDArray[Any], walk: Walk, factor: float | None = None) -> float:
    """The sum of the weights of a walk; with a factor, they are multiplied by it after that."""
    plans = walk.plans
    return _sum_plan(x, plans[0], factor) if len(plans) == 1 else sum(_sum_plan(x, plan, factor) for plan in plans)


def count_plan(counts: NDArray[np.int64], plan: Runs | Pattern) -> int:
    """How many records a plan touches, from the number of records in each cell."""
    kernel = _kernels().count_pattern if isinstance(plan, Pattern) else _kernels().count_runs
    return sum(_over_plan(plan, lambda outer: int(kernel(counts, outer, *plan[1:]))))


def _sum_plan(x: NDArray[Any], plan: Runs | Pattern, factor: float | None) -> float:
    kernels = _kernels()
    if isinstance(plan, Pattern):
        kernel, each = kernels.sum_pattern if factor is None else kernels.scale_pattern, plan.marks.size
    else:
        each = plan.inner.size * plan.length
        if plan.length == 1 or x.itemsize == 4:  # float32; to compare types takes half a microsecond
            kernel = kernels.sum_short_runs if factor is None else kernels.scale_short_runs
        else:
            kernel = kernels.sum_runs if factor is None else kernels.scale_runs
    rest = plan[1:] if factor is None else (*plan[1:], factor)
    if plan.outer.size * each <= CHUNK:
        return kernel(x, plan.outer, *rest)  # type: ignore[no-any-return]
    return float(sum(_over_plan(plan, lambda outer: kernel(x, outer, *rest))))


def _over_plan(plan: Runs | Pattern, kernel: Callable[[NDArray[np.int64]], Any]) -> list[Any]:
    """Call `kernel` for the outer offsets, in chunks that are worth a thread."""
    each = _cells_of_each(plan)
    return run_chunks(lambda i, j: kernel(plan.outer[i:j]), plan.outer.size, max(1, CHUNK // each))


def _cells_of_each(plan: Runs | Pattern) -> int:
    """How many cells there are for each of the outer offsets."""
    return plan.marks.size if isinstance(plan, Pattern) else max(1, plan.inner.size * plan.length)


@lru_cache(1)
def _kernels() -> Any:
    from ...kernels import subcubes

    return subcubes
