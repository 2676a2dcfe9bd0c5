"""Answers, tables and records of the synthetic distribution."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fastdp import SyntheticDistribution

from ..registry import Call, Side, faster, make_case
from ..traffic import NUMBERS, Traffic, lines_of_cells, read_once
from .inputs import (
    BINARY,
    FEW,
    HIGHEST,
    LOWEST,
    QUERIES,
    SAMPLED,
    binary,
    cell_weights,
    conjunctions,
    literals,
    of_literals,
    power_below,
    slices_of,
)
from .weights import drawn_values

_case = partial(make_case, "answering")

SEARCHED = 10_000


def _answer_slice(n: int, bits: tuple[int, ...] = HIGHEST) -> Call:
    domain = binary(n)
    synthetic, query = SyntheticDistribution(cell_weights(domain.size), domain), literals(domain, bits)
    return lambda: synthetic.answer(query)


def _numpy_slice(n: int, bits: tuple[int, ...] = HIGHEST) -> Call:
    domain = binary(n)
    cube, index = cell_weights(domain.size).reshape(domain.sizes), slices_of(domain, literals(domain, bits))
    cube /= cube.sum()
    return lambda: cube[index].sum()


def _marginal(n: int) -> Call:
    domain = binary(n)
    synthetic = SyntheticDistribution(cell_weights(domain.size), domain)
    return lambda: synthetic.marginal(domain.names[1:4])


def _numpy_marginal(n: int) -> Call:
    domain = binary(n)
    cube = cell_weights(domain.size).reshape(domain.sizes)
    cube /= cube.sum()
    return lambda: cube.sum(axis=(0, *range(4, len(domain))))


def _answer_many(n: int) -> Call:
    synthetic, queries = SyntheticDistribution(cell_weights(BINARY.size), BINARY), conjunctions(BINARY, n)
    return lambda: synthetic.answer_many(queries)


def _numpy_slices(n: int) -> Call:
    cube = cell_weights(BINARY.size).reshape(BINARY.sizes)
    cube /= cube.sum()
    indices = [slices_of(BINARY, query) for query in conjunctions(BINARY, n)]
    return lambda: np.array([cube[index].sum() for index in indices])


def rising_weights(cells: int) -> Any:
    return np.sort(cell_weights(cells))


def _sample(n: int) -> Call:
    synthetic = SyntheticDistribution(rising_weights(BINARY.size), BINARY)
    return lambda: synthetic.sample(n)


def _numpy_sample(n: int) -> Call:
    sums, rng = np.cumsum(rising_weights(BINARY.size)), np.random.default_rng()

    def call() -> Any:
        cells = np.searchsorted(sums, rng.random(n) * sums[-1], side="right")
        out = np.empty((len(BINARY), n), np.uint8)
        for j, stride in enumerate(BINARY.strides):
            out[j] = (cells // stride) & 1
        return out.T

    return call


def rising(cells: int) -> Any:
    return np.arange(1.0, cells + 1)


def _search(n: int) -> Call:
    domain = binary(n)
    synthetic = SyntheticDistribution(rising(domain.size), domain)
    return lambda: synthetic.sample(SEARCHED)


def _numpy_search(n: int) -> Call:
    domain, rng = binary(n), np.random.default_rng()
    sums = np.cumsum(rising(domain.size))

    def call() -> Any:
        cells = np.searchsorted(sums, rng.random(SEARCHED) * sums[-1], side="right")
        return (cells[:, None] // np.array(domain.strides) & 1).astype(np.uint8)

    return call


CASES = (
    _case(
        "answer-slice",
        "one answer of the synthetic distribution, 2^20 cells, 3 literals, a slice of memory",
        BINARY.size,
        _answer_slice,
        (Side("numpy slice", _numpy_slice), None),
        traffic=read_once(8 * lines_of_cells(HIGHEST)),
        oracle="values",
        drawn=drawn_values(_answer_slice, of_literals(HIGHEST), 1),
        calls=100,
    ),
    _case(
        "answer-scattered",
        "one answer of the synthetic distribution, 2^20 cells, 6 literals, cells far apart",
        BINARY.size,
        partial(_answer_slice, bits=LOWEST),
        (Side("numpy slice", partial(_numpy_slice, bits=LOWEST)), None),
        traffic=read_once(8 * lines_of_cells(LOWEST)),
        oracle="values",
        drawn=drawn_values(partial(_answer_slice, bits=LOWEST), of_literals(LOWEST), 1),
        calls=100,
    ),
    _case(
        "marginal",
        "a three-way table of the synthetic distribution, 2^20 cells",
        BINARY.size,
        _marginal,
        (Side("numpy", _numpy_marginal), faster("numpy", avx512=2, avx2=2)),
        traffic=NUMBERS,
        oracle="a table",
        drawn=lambda n: (cell_weights(power_below(n)).reshape(binary(n).sizes), _marginal(n)()),
    ),
    _case(
        "answer-conjunctions",
        f"answers of the synthetic distribution, 2^20 cells, {QUERIES:,} conjunctions",
        QUERIES,
        _answer_many,
        (Side("numpy slices", _numpy_slices, n=FEW), None),
        oracle="slices",
        drawn=lambda n: (cell_weights(BINARY.size), conjunctions(BINARY, FEW), _answer_many(FEW)()),
    ),
    _case(
        "sample",
        "sample 10^6 records from 2^20 cells, tables ready",
        SAMPLED,
        _sample,
        (Side("numpy", _numpy_sample), None),
        traffic=Traffic(copied=20, words=1, held=20),
        oracle="rising weights",
        drawn=lambda n: _sample(n)(),
    ),
    _case(
        "sample-searched",
        f"sample {SEARCHED:,} records from 2^25 cells, for which no tables are made",
        1 << 25,
        _search,
        (Side("numpy", _numpy_search), None),
        traffic=NUMBERS,
        oracle="cells that rise",
        drawn=lambda n: _search(1 << 25)(),
    ),
)
