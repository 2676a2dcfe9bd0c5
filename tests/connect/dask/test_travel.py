"""What workers send to the client: no record, and no more for more records."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import cloudpickle
import dask
import numpy as np
import pytest
from dask.callbacks import Callback

import fastdp
from fastdp.connect.dask import DaskRows
from fastdp.kernels import literals
from tests.connect.dask.cases import (
    CASES,
    Data,
    chunked,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]


def bytes_of_results(call: Callable[[], Any]) -> list[int]:
    """The sizes of what tasks of ours give back, whether a partition's or several's."""
    sizes: list[int] = []

    def keep(key: Any, value: Any, *rest: Any) -> None:
        if str(key).startswith("fastdp-"):
            sizes.append(len(cloudpickle.dumps(value)))

    with Callback(posttask=keep), dask.config.set(scheduler="synchronous"):
        call()
    assert sizes
    return sizes


@pytest.mark.parametrize("name", CASES)
def test_what_travels_does_not_grow_with_the_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same partitions, of ten times as many records: a partition sends no more."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 200)
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 512)
    sizes = {}
    for n in (4_000, 40_000):
        cuts = (n // 4,) * 4
        sizes[n] = max(bytes_of_results(lambda n=n, cuts=cuts: CASES[name](partial(chunked, cuts=cuts), Data(n))))
    # a sum of more than 2^32 has 12 bytes in place of 4; slices of a box are full only where there are enough
    assert sizes[40_000] <= max(3.1 * sizes[4_000], 24_000 if name.startswith("box") else 4_000)
    most = 40_000 if name != "box, all" else 32 * 2**11 + 1_000  # the cells, and how many are in each
    assert sizes[40_000] < most, "a partition has 10,000 records, of 8 bytes and more"


def test_positions_travel_only_as_far_as_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The M most extreme of a box, and their keys; a listing of at most so many."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 500)
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 64)
    big = Data(40_000)
    values = np.random.default_rng(0).permutation(40_000)
    cuts = (10_000,) * 4
    largest = max(bytes_of_results(lambda: fastdp.median(chunked(values, cuts), epsilon=1.0)))
    assert 64 * 4 < largest < 500 * 16 + 1_000
    found = []
    Numbers = fastdp.learning.boxes.Numbers
    real = Numbers.extremes
    monkeypatch.setattr(Numbers, "extremes", lambda *given: found.append(given[2]) or real(*given))
    sizes = bytes_of_results(lambda: CASES["box, peel"](partial(chunked, cuts=cuts), big))
    assert max(sizes) < 4 * 8 * found[0] + 2_000


def test_statistics_know_nothing_of_where_records_are(data: Data) -> None:
    rows = DaskRows(chunked(data.points))
    with pytest.raises(TypeError, match="stay where they were made"):
        pickle.dumps(rows)
    assert pickle.loads(pickle.dumps(literals.count_among_into)) is literals.count_among_into
    assert len(pickle.dumps(literals.count_among_into)) < 200
