"""Cases of the answering room: what all answers from an array of cells are made of.

An element is a table where the work is many tables, else a cell. numpy sums each table by itself, and is given every
19th table: its time does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from fastdp import Domain
from fastdp.answering.queries import Marginals
from fastdp.answering.tables import marginal_tables, spread_tables, transform

from .registry import Call, Case, Side, Target, faster

BINARY = Domain.binary(20)
CENSUS = Domain(age=15, work=53, kids=2, first=2, second=2, a=2, b=2, c=2)  # the sizes of AER/Fertility
WAYS = 3
CELLS = 1 << 24
FEW = 60  # tables


def counts(n: int) -> Any:
    return np.random.default_rng(0).integers(0, 1000, n)


def power_below(n: int) -> int:
    return 1 << (n.bit_length() - 1)


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


def _on_tables(domain: Domain, function: Callable[[Any, Domain, Marginals], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        asked = workload(domain, n)
        tables = [counts(8).reshape(shape) / 8 for shape in asked.shapes]
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


def _case(name: str, work: str, n: int, make: Any, rival: Side, target: Target | None, oracle: str, drawn: Any) -> Case:
    return Case(
        name=name,
        room="answering",
        work=work,
        n=n,
        ours=Side("fastdp", make),
        rivals=(rival,),
        targets=() if target is None else (target,),
        oracle=oracle,
        drawn=drawn,
    )


def _drawn_tables(domain: Domain) -> Any:
    def drawn(n: int) -> tuple[Any, ...]:
        asked, cells = workload(domain, n), counts(domain.size)
        return cells.reshape(domain.sizes), asked.positions, marginal_tables(cells, domain, asked)

    return drawn


def _drawn_spread(n: int) -> tuple[Any, ...]:
    asked = workload(BINARY, n)
    tables = [counts(8).reshape(shape) / 8 for shape in asked.shapes]
    return tables, asked.positions, spread_tables(tables, BINARY, asked)


CASES = (
    _case(
        "marginals-binary",
        "all 1,140 three-way marginals of 2^20 binary cells",
        1140,
        _on_cells(BINARY, marginal_tables),
        Side("numpy", _on_cells(BINARY, _numpy_tables), n=FEW),
        faster("numpy", avx512=200, avx2=200),
        "sums over axes",
        _drawn_tables(BINARY),
    ),
    _case(
        "marginals-mixed",
        "all 56 three-way marginals of 8 attributes, 50,880 cells",
        56,
        _on_cells(CENSUS, marginal_tables),
        Side("numpy", _on_cells(CENSUS, _numpy_tables)),
        None,
        "sums over axes",
        _drawn_tables(CENSUS),
    ),
    _case(
        "spread-binary",
        "1,140 three-way tables back to 2^20 binary cells",
        1140,
        _on_tables(BINARY, spread_tables),
        Side("numpy", _on_tables(BINARY, _numpy_spread), n=FEW),
        None,
        "broadcasts",
        _drawn_spread,
    ),
    _case(
        "transform",
        "Walsh-Hadamard transform, int64, 2^24 cells, in place",
        CELLS,
        _transform,
        Side("a copy", _copy),
        None,
        "parities",
        lambda n: (counts(power_below(n)), _transform(n)()),
    ),
)
