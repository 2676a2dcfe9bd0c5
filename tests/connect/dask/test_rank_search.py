"""Numbers in their order, found in a few passes over partitions (fastdp/records/rank_search.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.records.number_column import read_positions
from fastdp.records.rank_search import RankSearch, may_gather
from fastdp.records.sources import rows_of
from tests.connect.dask.cases import (
    Data,
    chunked,
    seeded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]


@pytest.mark.parametrize("kind", ["spread", "ties", "ends", "nothing"])
def test_ordered_numbers_answer_as_sorted_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 8)
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 40)
    draw = np.random.default_rng(3)
    last = 2**64 - 2
    values = {
        "spread": draw.integers(0, last, 700, np.uint64, endpoint=True),
        "ties": np.repeat(draw.integers(0, 2**40, 9, np.uint64), 100),
        "ends": np.array([0] * 300 + [last] * 300 + [1, last - 1, 2**63], np.uint64),
        "nothing": np.empty(0, np.uint64),
    }[kind]
    rows = rows_of(chunked(values[:, None], (values.size // 3, values.size - values.size // 3)))
    ordered = RankSearch(rows, lambda block: block.column(0), last, add=True)
    inside = sorted(values.tolist())
    assert (ordered.m, ordered.total) == (len(inside), sum(inside))
    around = [z + step for z in inside[::37] for step in (-1, 0, 1)]
    asked = [-1, 0, last, last + 5, 2**63, *around, *draw.integers(0, last, 40, np.uint64).tolist()]
    for z in draw.permutation(np.array(asked, object)).tolist():
        below = [x for x in inside if x <= z]
        assert ordered.up_to(z) == (len(below), sum(below))
    for rank in draw.permutation(np.arange(1, len(inside) + 1)).tolist():
        assert ordered.at(rank) == inside[rank - 1]


def test_parquet_files_too_large_to_gather(tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": data.incomes})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    path = tmp_path / "x.parquet"
    loss, over = losses.AbsoluteDeviation(), sets.Box(0, 1e5)

    def both() -> tuple[Any, Any]:
        erm = fastdp.exponential_erm(path, loss=loss, over=over, epsilon=0.1, outside="clip", rng=seeded())
        return fastdp.median(path, epsilon=1.0, rng=seeded()), erm.w[0]

    gathered = both()
    monkeypatch.setattr("fastdp.records.rank_search._GATHERED", 100)
    assert not may_gather(rows_of(path))
    assert isinstance(read_positions(rows_of(path), 0, 64, None, "raise", "x")[1], RankSearch)
    assert both() == gathered
