"""Interior points and quantiles of a million values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp

from ...peers.inputs import numbers as values
from ..registry import Call, Case, Side, beside, faster, make_case, within
from ..traffic import NUMBERS
from .inputs import DELTA, EPSILON, MILLION, SURE

_case = partial(make_case, "learning")

CANDIDATES = 1_000  # of the others' medians
TENTH = 0.9  # the rank above which a tenth lies
CENTILES = tuple(k / 100 for k in range(1, 100))


def _point(kind: str) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array = values(kind, n)
        return lambda: fastdp.interior_point(array, epsilon=EPSILON)

    return make


def _sort(kind: str) -> Side:
    def make(n: int) -> Call:
        array = values(kind, n)
        return lambda: np.sort(array)

    return Side("np.sort", make)


def _in_between(n: int, **more: Any) -> Any:
    array = few_apart(n)
    return lambda: fastdp.interior_point(array, epsilon=EPSILON, delta=DELTA, method="prefix", **more)


def _numpy_in_between(n: int) -> Call:
    array = few_apart(n)
    return lambda: (array.min(), array.max())


def few_apart(n: int) -> Any:
    """Values of which all lie in a thousandth of the line."""
    return values("int64", n) // 1024 + 2**61


def _quantile(n: int) -> Any:
    array = values("float64", n)
    return lambda: fastdp.quantile(array, TENTH, epsilon=EPSILON)


def _quantiles(n: int) -> Any:
    array = values("float64", n)
    return lambda: fastdp.quantiles(array, CENTILES, epsilon=EPSILON)


def tied(n: int) -> Any:
    """Integers of which each occurs some eight times."""
    return values("int64", n) % max(8, n // 8)


def _quantiles_of_ties(n: int) -> Any:
    array = tied(n)
    return lambda: fastdp.quantiles(array, CENTILES, epsilon=EPSILON)


def _median_of_ties(n: int) -> Call:
    array = tied(n)
    return lambda: fastdp.median(array, epsilon=EPSILON)


def _median(n: int) -> Call:
    array = values("float64", n)
    return lambda: fastdp.median(array, epsilon=EPSILON)


def _medians(n: int) -> Call:
    array = values("float64", n)
    return lambda: [fastdp.median(array, epsilon=EPSILON) for _ in CENTILES]


def _numpy_quantile(n: int) -> Call:
    array, place = values("float64", n), int(TENTH * n)
    return lambda: np.partition(array, place)[place]


def _point_case(name: str, work: str, kind: str, *pairs: Any) -> Case:
    return _case(
        name, work, MILLION, _point(kind), *pairs, traffic=NUMBERS, oracle="a middle rank",
        drawn=lambda n: (values(kind, n), _point(kind)(n)()), epsilon=EPSILON, headline=name.endswith("-int64"),
    )  # fmt: skip


CASES = (
    *(
        _point_case(
            f"interior-point-{kind}",
            f"interior point of 10^6 values, {kind}",
            kind,
            (_sort(kind), within("np.sort", 1.5)),
        )
        for kind in ("int64", "float64")
    ),
    _point_case(
        "interior-point-candidates",
        f"interior point among all floats, beside medians, OpenDP's among {CANDIDATES:,} candidates",
        "float64",
        (beside("opendp", "median", candidates=CANDIDATES, epsilon=EPSILON), None),
        (beside("diffprivlib", "median", epsilon=EPSILON), None),
    ),
    _case(
        "quantile",
        f"quantile {TENTH:g} of 10^6 values, float64",
        MILLION,
        _quantile,
        (Side("np.partition", _numpy_quantile), None),
        traffic=NUMBERS,
        oracle="a rank",
        drawn=lambda n: (values("float64", n), TENTH, _quantile(n)()),
        epsilon=EPSILON,
    ),
    _case(
        "quantiles",
        "99 quantiles of 10^6 values, float64, beside one median and 99 of them",
        MILLION,
        _quantiles,
        (Side("fastdp.median", _median), within("fastdp.median", 4)),
        (Side("99 x fastdp.median", _medians), faster("99 x fastdp.median", avx512=10, avx2=10)),
        (_sort("float64"), None),
        traffic=NUMBERS,
        oracle="many ranks",
        drawn=lambda n: (values("float64", n), CENTILES, _quantiles(n)()),
        epsilon=EPSILON,
    ),
    _case(
        "quantiles-ties",
        "99 quantiles of 10^6 int64 with ties, beside one median",
        MILLION,
        _quantiles_of_ties,
        (Side("fastdp.median", _median_of_ties), None),
        traffic=NUMBERS,
        oracle="many ranks",
        drawn=lambda n: (tied(n), CENTILES, _quantiles_of_ties(n)()),
        epsilon=EPSILON,
    ),
    _case(
        "interior-point-prefix",
        "interior point of 10^6 values, int64, method prefix, beside the least and greatest",
        MILLION,
        _in_between,
        (Side("numpy", _numpy_in_between), None),
        traffic=NUMBERS,
        oracle="a point in between",
        drawn=lambda n: (few_apart(n), _in_between(n, beta=SURE)()),
        epsilon=EPSILON,
        delta=DELTA,
    ),
)
