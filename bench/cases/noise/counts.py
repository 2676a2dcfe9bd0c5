"""Counts of many rows: a histogram, labels that nobody listed, and records divided into groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastdp

from ..registry import Call, Side, faster, make_case, within
from ..traffic import NUMBERS, Traffic, read_once

_case = partial(make_case, "noise")

N = 10**7
BINS = 1_000
GROUPS = 1_000  # of labels, and parts
ROWS_OF_A_LABEL = 10  # where there are a million labels


def _values(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform(0, BINS, n)


def _codes(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, GROUPS, n)


def _many_codes(n: int) -> NDArray[np.int64]:
    """A million labels in ten million rows: some 30,000 occur so often that they are released, most about 5 times."""
    labels = max(n // ROWS_OF_A_LABEL, GROUPS)
    return np.random.default_rng(2).integers(0, labels, n) ** 2 // labels


def _scattered_codes(n: int) -> NDArray[np.int64]:
    """The same as numbers far apart, as keys of a database may be."""
    return _many_codes(n) * 982_451_653


def _words(n: int) -> Any:
    words = np.array([f"word {i}" for i in range(GROUPS)], object)
    return words[_codes(n)]


def _texts(n: int) -> Any:
    import pandas

    return pandas.Series(_words(n), dtype="string[pyarrow]")


def _categories(n: int) -> Any:
    import pandas

    return pandas.Series(
        pandas.Categorical.from_codes(_codes(n).astype(np.int16), [f"word {i}" for i in range(GROUPS)])
    )


def _histogram(n: int) -> Call:
    values, edges = _values(n), np.linspace(0, BINS, BINS + 1)
    return lambda: fastdp.statistics.histogram(values, edges, epsilon=1.0).counts


def _numpy_histogram(n: int) -> Call:
    values, edges = _values(n), np.linspace(0, BINS, BINS + 1)
    return lambda: np.histogram(values, edges)[0]


def _count_by(labels_of: Callable[[int], Any], n: int) -> Call:
    labels = labels_of(n)
    return lambda: fastdp.statistics.count_by(labels, epsilon=1.0, delta=1e-6).counts


def _value_counts(labels_of: Callable[[int], Any], n: int) -> Call:
    import pandas

    labels = pandas.Series(labels_of(n))
    return lambda: labels.value_counts().to_numpy()


def _partition(n: int) -> Call:
    data = {"by": _codes(n), "x": _values(n)}
    return lambda: len(fastdp.partition(data, "by", range(GROUPS)))


def _one_pass(n: int) -> Call:
    """What says who is in which group: numpy's stable sort by digits, the fastest that it has."""
    codes = _codes(n).astype(np.int16)
    return lambda: len(np.argsort(codes, kind="stable")) and GROUPS


def _counted(n: int) -> Any:
    return _numpy_histogram(n)(), _histogram(n)()


def _tallied(labels_of: Callable[[int], Any], n: int) -> Any:
    """With labels few enough that all of them are released: the largest counts come first."""
    rare = max(n // GROUPS, 1) < 200
    truth = np.sort(np.unique(np.asarray(labels_of(n), object).astype(str), return_counts=True)[1])[::-1]
    found = _count_by(labels_of, n)()
    return (truth[: len(found)], found) if rare else (truth, found)


def _tallied_many(codes_of: Callable[[int], NDArray[np.int64]], n: int) -> Any:
    """What is released, beside the truth for it; with so large a delta few rows have labels enough."""
    labels, counts = np.unique(codes_of(n), return_counts=True)
    found = fastdp.statistics.count_by(codes_of(n), epsilon=1.0, delta=0.1)
    return counts[np.searchsorted(labels, np.asarray(found.labels, np.int64))], found.counts


def _parts_of(n: int) -> Any:
    return np.array([GROUPS]), np.array([_partition(n)()])


CASES = (
    _case(
        "histogram",
        "a histogram of 10^7 float64 in 1,000 bins, with Laplace noise: statistics.histogram",
        N,
        _histogram,
        (Side("numpy", _numpy_histogram), faster("numpy", avx512=3.0, avx2=2.0)),
        traffic=NUMBERS,
        oracle="counts with noise",
        drawn=_counted,
        rounds=5,
    ),
    *(
        _case(
            f"count-by-{kind}",
            f"how often each of {many} labels occurs in 10^7 {what}, labels unlisted: statistics.count_by",
            N,
            partial(_count_by, labels_of),
            (Side("pandas", partial(_value_counts, labels_of)), faster("pandas", avx512=2.0, avx2=2.0)),
            traffic=read_once(size),
            oracle="counts with noise",
            drawn=partial(tallied, labels_of),
            rounds=3,
        )
        for kind, many, what, size, labels_of, tallied in (
            ("integers", "1,000", "integers", 8, _codes, _tallied),
            ("strings", "1,000", "strings, as objects", 64, _words, _tallied),
            ("text", "1,000", "strings of a pandas column of that type", 16, _texts, _tallied),
            ("categories", "1,000", "entries of a pandas Categorical", 2, _categories, _tallied),
            ("many", "10^6", "integers", 8, _many_codes, _tallied_many),
            ("scattered", "10^6", "integers of 50 bits", 8, _scattered_codes, _tallied_many),
        )
    ),
    _case(
        "partition",
        "10^7 records divided into 1,000 parts by a column of integers: partition",
        N,
        _partition,
        (Side("numpy", _one_pass), within("numpy", 2.0)),
        traffic=Traffic(read=8, copied=8, held=16),
        oracle="counts with noise",
        drawn=_parts_of,
        rounds=3,
    ),
)
