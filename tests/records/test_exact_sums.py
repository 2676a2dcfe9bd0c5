"""Sums and merges over blocks (fastdp/records/exact_sums.py, rows.py): exact, in order, on any number of threads."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import set_num_threads
from fastdp.records.rows import Block
from fastdp.records.sources import rows_of
from tests.records.samples import N, columns, frame


def test_results_do_not_depend_on_threads_or_on_where_the_records_are(tmp_path: Path) -> None:
    found = set()
    for kind in ("mapping", "polars chunks", "parquet groups", "parquet files"):
        data = rows_of(frame(columns(), tmp_path, kind))
        for count in (1, 2, 7):
            set_num_threads(count)
            total = data.total(lambda b: np.array([b.column("c") @ b.column("a"), (b.first + np.arange(b.n)).sum()]))
            top = data.merge(
                lambda b: sorted(zip(b.column("other"), range(b.first, b.first + b.n), strict=True))[-3:],
                lambda x, y: sorted(x + y)[-3:],
            )
            found.add((total.tobytes(), tuple(top)))
    assert len(found) == 1


def test_floats_merge_to_the_same_bits_for_any_number_of_threads(tmp_path: Path) -> None:
    """Not associative, and yet: blocks and their order are fixed."""
    path = tmp_path / "x.parquet"
    x = np.random.default_rng(3).normal(size=300_000)
    pq.write_table(pa.table({"x": x}), path, row_group_size=1234)
    for data in ({"x": x}, path):
        found = set()
        for count in (1, 2, 7):
            set_num_threads(count)
            found.add(rows_of(data).merge(lambda b: float(b.column(0).sum()), lambda a, b: a + b))
        assert len(found) == 1


def test_a_merge_keeps_the_order_of_the_blocks() -> None:
    set_num_threads(5)
    found = rows_of(np.zeros((300 * 2**10, 2000), bool))  # more blocks than spans
    firsts = found.merge(lambda block: [block.first], lambda x, y: x + y)
    assert firsts == list(range(0, 300 * 2**10, 1024))


def test_totals_are_exact_or_an_error() -> None:
    found = rows_of(np.zeros((2**16 * 4, 1), np.uint8))
    low, high = -(2**63), 2**63 - 1
    for count in (1, 4):
        set_num_threads(count)
        for values in itertools.product([low, high, -1, 1, -(2**32), 2**32 - 1, 0], repeat=4):

            def statistic(block: Block, values: tuple[int, ...] = values) -> np.ndarray:
                return np.array([1, values[block.first // 2**16]])

            if low <= sum(values) <= high:  # whatever it passes through on the way
                assert found.total(statistic).tolist() == [4, sum(values)]
            else:
                with pytest.raises(OverflowError, match=r"^total: must be within int64$"):
                    found.total(statistic)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.uint32, np.uint64, np.int64])
def test_statistics_of_every_integer_type(dtype: Any) -> None:
    found = rows_of(np.zeros((N, 1)))
    total = found.total(lambda block: np.ones((2, 3), dtype))
    assert total.dtype == np.int64
    assert total.tolist() == [[3] * 3] * 2
    assert found.total(lambda block: dtype(1)) == 3
    assert found.total(lambda block: np.zeros(0, dtype)).shape == (0,)


def test_statistics_that_are_no_integers_or_change_shape() -> None:
    found = rows_of(np.zeros((N, 1)))
    for value in (1.0, np.zeros(3), "1", None, 10**30):
        with pytest.raises(ValueError, match=r"^statistic: dtype .*: must be integers$"):
            found.total(lambda block, value=value: value)
    with pytest.raises(ValueError, match=r"^statistic: shapes \(.*\), \(.*\): must be the same for all blocks$"):
        found.total(lambda block: np.zeros(1 if block.first else 2, int))
    with pytest.raises(OverflowError, match=r"^statistic: must be below 2\^63$"):
        found.total(lambda block: np.array([2**63], np.uint64))
    with pytest.raises(ValueError, match=r"^cells: must be below size=3; there are others$"):
        found.count(lambda block: np.full(block.n, 3, np.uint32), 3)


def test_a_statistic_may_reuse_its_memory_and_call_again() -> None:
    found = rows_of(np.ones((N, 1), np.uint8))
    own = np.zeros(1, np.int64)

    def statistic(block: Block) -> np.ndarray:
        own[0] = found.total(lambda inner: inner.n) if block.first == 0 else block.n
        return own

    set_num_threads(1)
    assert found.total(statistic) == N + N - 2**16
    assert found.count(lambda block: np.zeros(block.n, np.uint32), 2).tolist() == [N, 0]
