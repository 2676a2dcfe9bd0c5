"""A few rows of each person, beside what pandas has for the first few."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Side, faster, make_case

_case = partial(make_case, "noise")

ROWS, EACH, AT_MOST = 10_000_000, 10, 5  # rows, of a person in the mean, that are kept


def _units(n: int) -> Any:
    return np.random.default_rng(0).integers(0, max(1, n // EACH), n)


def _limit(n: int) -> Call:
    data = {"person": _units(n)}
    return lambda: fastdp.limit_rows(data, "person", at_most=AT_MOST)


def _first(n: int) -> Call:
    import pandas as pd

    frame = pd.DataFrame({"person": _units(n)})
    return lambda: frame.groupby("person").head(AT_MOST)


def _drawn(n: int) -> Any:
    """All persons, and those of the rows that are kept: read as a function reads them."""
    found: list[Any] = _limit(n)().merge(lambda block: [block.column(0)], lambda some, more: some + more)
    return _units(n), np.concatenate(found)


CASES = (
    _case(
        "limit-rows",
        f"{AT_MOST} rows of each of 10^6 persons, chosen at random of 10^7 rows",
        ROWS,
        _limit,
        (Side("pandas, the first", _first), faster("pandas, the first", avx512=5.0, avx2=5.0)),
        oracle="rows of persons",
        drawn=_drawn,
        at_most=AT_MOST,
    ),
)
