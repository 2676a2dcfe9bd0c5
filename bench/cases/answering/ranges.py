"""Columns of numbers: their bins, and the release of all ranges."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from fastdp import Bins, Domain, Randomness
from fastdp.answering.release_ranges import release_ranges

from ..registry import Call, Case, Side, faster, make_case, within
from ..traffic import NUMBERS

_case = partial(make_case, "answering")

VALUES = 10_000_000
BINS = 2**16


@cache
def _values(n: int) -> Any:
    return np.random.default_rng(0).random(n)


def _edges(bins: int = BINS) -> Any:
    return np.linspace(0.0, 1.0, bins + 1)


def _code(n: int) -> Call:
    domain, values = Domain(x=Bins(_edges())), _values(n)
    return lambda: domain.encode_column(0, values)


def _searchsorted(n: int) -> Call:
    inner, values = _edges()[1:-1], _values(n)
    return lambda: np.searchsorted(inner, values, side="right")


def _release(n: int) -> Call:
    edges, values = _edges(), _values(n)
    return lambda: release_ranges(values, edges, epsilon=1.0).counts


def _histogram(n: int) -> Call:
    values = _values(n)
    return lambda: np.histogram(values, BINS, (0.0, 1.0))[0]


def _histogram_of_edges(n: int) -> Call:
    edges, values = _edges(), _values(n)
    return lambda: np.histogram(values, edges)[0]


@cache
def _integers(n: int) -> Any:
    return np.random.default_rng(0).integers(0, BINS, n)


def _release_integers(n: int) -> Call:
    edges, values = np.arange(BINS + 1), _integers(n)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "method": "square-root"}
    return lambda: release_ranges(values, edges, **options).counts


def _histogram_of_integers(n: int) -> Call:
    edges, values = np.arange(BINS + 1), _integers(n)
    return lambda: np.histogram(values, edges)[0]


def _coded(n: int) -> Any:
    return _values(n), _edges(), _code(n)()


def _released(n: int, method: Any = "digits") -> Any:
    values, edges = _values(n), _edges(256)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "method": method}
    return values, [release_ranges(values, edges, rng=Randomness(seed=seed), **given).counts for seed in range(30)]


CASES: tuple[Case, ...] = (
    _case(
        "bins",
        "the bins of 10^7 floats among 2^16",
        VALUES,
        _code,
        (Side("np.searchsorted", _searchsorted), faster("np.searchsorted", avx512=3.0, avx2=3.0)),
        traffic=NUMBERS,
        oracle="bins",
        drawn=_coded,
    ),
    _case(
        "ranges",
        "all ranges of 10^7 floats, 2^16 bins, released",
        VALUES,
        _release,
        (Side("np.histogram, even bins", _histogram), within("np.histogram, even bins", 2.0)),
        (Side("np.histogram, edges", _histogram_of_edges), within("np.histogram, edges", 2.0)),
        traffic=NUMBERS,
        oracle="ranges",
        drawn=_released,
    ),
    _case(
        "ranges-integers",
        "all ranges of 10^7 integers, 2^16 unit bins, by running sums",
        VALUES,
        _release_integers,
        (Side("np.histogram, edges", _histogram_of_integers), within("np.histogram, edges", 2.0)),
        traffic=NUMBERS,
        oracle="ranges",
        drawn=partial(_released, method="square-root"),
    ),
)
