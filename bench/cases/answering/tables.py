"""Marginal tables of a histogram and back, and the Walsh-Hadamard transform."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from fastdp import Domain
from fastdp.answering.marginal_transform import marginal_tables, spread_tables, transform
from fastdp.answering.nearest_tables import nearest_tables
from fastdp.answering.queries import Marginals

from ..registry import Call, Side, faster, make_case
from ..traffic import Traffic, copied_once, read_once
from .inputs import BINARY, CELLS, FEW, WAYS, counts, power_below

_case = partial(make_case, "answering")

CENSUS = Domain(age=15, work=53, kids=2, first=2, second=2, a=2, b=2, c=2)  # the sizes of AER/Fertility
DECIMAL = Domain(**dict.fromkeys("abcdef", 10))


def workload(domain: Domain, n: int) -> Marginals:
    """n of the three-way tables, as far apart as they can be."""
    subsets = list(combinations(domain.names, WAYS))
    n = min(n, len(subsets))
    return Marginals(domain, [subsets[i * len(subsets) // n] for i in range(n)])


def _numpy_tables(cells: Any, domain: Domain, asked: Marginals) -> Any:
    cube, axes = cells.reshape(domain.sizes), range(len(domain))
    return [cube.sum(axis=tuple(a for a in axes if a not in own)) for own in asked.positions]


def _numpy_spread(tables: Any, domain: Domain, asked: Marginals) -> Any:
    cube = np.zeros(domain.sizes)
    for table, own in zip(tables, asked.positions, strict=True):
        cube += table.reshape([size if p in own else 1 for p, size in enumerate(domain.sizes)])
    return cube.ravel()


def _on_cells(domain: Domain, function: Callable[[Any, Domain, Marginals], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        cells, asked = counts(domain.size), workload(domain, n)
        return lambda: function(cells, domain, asked)

    return make


def tables_of(asked: Marginals) -> list[Any]:
    return [counts(prod(shape)).reshape(shape) / 8 for shape in asked.shapes]


def _on_tables(domain: Domain, function: Callable[[Any, Domain, Marginals], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        asked = workload(domain, n)
        tables = tables_of(asked)
        return lambda: function(tables, domain, asked)

    return make


def _transform(n: int) -> Call:
    cells = counts(power_below(n))

    def call() -> Any:
        transform(cells)
        return cells

    return call


def _copy(n: int) -> Call:
    cells, out = counts(power_below(n)), counts(power_below(n))

    def call() -> Any:
        np.copyto(out, cells)
        return out

    return call


def estimates(n: int) -> list[Any]:
    """n three-way tables of 10 values an attribute, most of whose entries are lost in the noise."""
    tables = [counts(10**WAYS).reshape([10] * WAYS) / (4 << 14) for _ in range(n)]
    return [table - table.mean() + 10.0**-WAYS for table in tables]


def _sorted_projection(tables: list[Any]) -> list[Any]:
    """The same by sorting, as numpy has it."""
    made = []
    for table in tables:
        flat = table.reshape(-1)
        falling = -np.sort(-flat)
        cuts = (np.cumsum(falling) - 1.0) / np.arange(1, flat.size + 1)
        made.append(np.maximum(table - cuts[np.flatnonzero(falling > cuts)[-1]], 0.0))
    return made


def _nearest(function: Callable[[list[Any]], list[Any]]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        tables = estimates(n)
        return lambda: function(tables)

    return make


def _drawn_tables(domain: Domain) -> Any:
    def drawn(n: int) -> tuple[Any, ...]:
        asked, cells = workload(domain, n), counts(domain.size)
        return cells.reshape(domain.sizes), asked.positions, marginal_tables(cells, domain, asked)

    return drawn


def _drawn_spread(domain: Domain) -> Any:
    def drawn(n: int) -> tuple[Any, ...]:
        asked = workload(domain, n)
        tables = tables_of(asked)
        return domain.sizes, tables, asked.positions, spread_tables(tables, domain, asked)

    return drawn


CASES = (
    _case(
        "marginals-binary",
        "all 1,140 three-way marginals of 2^20 binary cells",
        1140,
        _on_cells(BINARY, marginal_tables),
        (Side("numpy", _on_cells(BINARY, _numpy_tables), n=FEW), faster("numpy", avx512=200, avx2=200)),
        headline=True,
        traffic=read_once(8 * BINARY.size / 1140),
        oracle="sums over axes",
        drawn=_drawn_tables(BINARY),
    ),
    _case(
        "marginals-mixed",
        "all 56 three-way marginals of 8 attributes, 50,880 cells",
        56,
        _on_cells(CENSUS, marginal_tables),
        (Side("numpy", _on_cells(CENSUS, _numpy_tables)), None),
        traffic=read_once(8 * CENSUS.size / 56),
        oracle="sums over axes",
        drawn=_drawn_tables(CENSUS),
    ),
    _case(
        "spread-binary",
        "1,140 three-way tables back to 2^20 binary cells",
        1140,
        _on_tables(BINARY, spread_tables),
        (Side("numpy", _on_tables(BINARY, _numpy_spread), n=FEW), None),
        traffic=copied_once(8 * BINARY.size / 1140),
        oracle="broadcasts",
        drawn=_drawn_spread(BINARY),
    ),
    _case(
        "marginals-decimal",
        "all 20 three-way marginals of 6 attributes of 10 values, 10^6 cells",
        20,
        _on_cells(DECIMAL, marginal_tables),
        (Side("numpy", _on_cells(DECIMAL, _numpy_tables)), None),
        traffic=read_once(8 * DECIMAL.size / 20),
        oracle="sums over axes",
        drawn=_drawn_tables(DECIMAL),
    ),
    _case(
        "spread-decimal",
        "20 three-way tables back to 10^6 cells of 6 attributes of 10 values",
        20,
        _on_tables(DECIMAL, spread_tables),
        (Side("numpy", _on_tables(DECIMAL, _numpy_spread)), None),
        traffic=copied_once(8 * DECIMAL.size / 20),
        oracle="broadcasts",
        drawn=_drawn_spread(DECIMAL),
    ),
    _case(
        "spread-mixed",
        "56 three-way tables back to 50,880 cells of 8 attributes",
        56,
        _on_tables(CENSUS, spread_tables),
        (Side("numpy", _on_tables(CENSUS, _numpy_spread)), None),
        traffic=copied_once(8 * CENSUS.size / 56),
        oracle="broadcasts",
        drawn=_drawn_spread(CENSUS),
    ),
    _case(
        "nearest-tables",
        "the nearest tables, without negative entries, of 100 of 1,000 cells",
        100,
        _nearest(nearest_tables),
        (Side("numpy", _nearest(_sorted_projection)), faster("numpy", avx512=3, avx2=3)),
        traffic=copied_once(16 * 1_000),
        oracle="sorted projections",
        drawn=lambda n: (estimates(n), nearest_tables(estimates(n))),
    ),
    _case(
        "transform",
        "Walsh-Hadamard transform, int64, 2^24 cells, in place",
        CELLS,
        _transform,
        (Side("a copy", _copy), None),
        traffic=Traffic(changed=16, held=8),
        oracle="parities",
        drawn=lambda n: (counts(power_below(n)), _transform(n)()),
    ),
)
