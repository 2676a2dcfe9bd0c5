"""A few rows of each person, beside what pandas has for the first few."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp

from ....records.subsets import held
from ..registry import Call, Case, Side, Target, faster, make_case
from ..traffic import NUMBERS

_case = partial(make_case, "noise")

ROWS, EACH, AT_MOST = 10_000_000, 10, 5  # rows, of a person in the mean, that are kept
Units = Callable[[int], Any]


def _near(n: int) -> Any:
    return np.random.default_rng(0).integers(0, max(1, n // EACH), n)


def _far(n: int) -> Any:
    """The same persons by numbers far apart, as customers have them."""
    return _near(n) * 2_654_435_761


def _limit(units: Units, n: int) -> Call:
    data = {"person": units(n)}
    return lambda: fastdp.limit_rows(data, "person", at_most=AT_MOST)


def _first(units: Units, n: int) -> Call:
    import pandas as pd

    frame = pd.DataFrame({"person": units(n)})
    return lambda: frame.groupby("person").head(AT_MOST)


def _drawn(units: Units, n: int) -> Any:
    """All persons, and those of the rows that are kept: read as a function reads them."""
    kept = held(_limit(units, n)())
    found: list[Any] = kept.merge(lambda block: [block.column(0)], lambda some, more: some + more)
    return units(n), np.concatenate(found)


def _rows(name: str, title: str, units: Units, target: Target | None) -> Case:
    return _case(
        name,
        title,
        ROWS,
        partial(_limit, units),
        (Side("pandas, the first", partial(_first, units)), target),
        traffic=NUMBERS,
        oracle="rows of persons",
        drawn=partial(_drawn, units),
        at_most=AT_MOST,
    )


CASES = (
    _rows(
        "limit-rows",
        f"{AT_MOST} rows of each of 10^6 persons, chosen at random of 10^7 rows",
        _near,
        faster("pandas, the first", avx512=5.0, avx2=5.0),
    ),
    _rows("limit-rows-far", f"{AT_MOST} rows of each of 10^6 persons whose numbers are far apart", _far, None),
)
