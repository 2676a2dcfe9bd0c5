"""Arrays of numpy as rows (fastdp/records/arrays.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastdp import Domain
from fastdp.records.encoding import encode, histogram
from fastdp.records.packed import pack
from fastdp.records.sources import rows_of
from tests.records.samples import N, counts, variants


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int32, np.uint64, np.float16, np.float64])
def test_arrays_of_every_kind(dtype: Any) -> None:
    domain = Domain.binary(3)
    array = np.random.default_rng(1).integers(0, 2, (N, 3)).astype(dtype)
    for each in variants(array):
        found = rows_of(each)
        assert (found.n, found.width, found.names) == (N, 3, None)
        if each.dtype != object or dtype not in (bool, np.float16, np.float64):
            assert np.array_equal(encode(each, domain), array.T)
            assert np.array_equal(histogram(each, domain), counts(list(array.T), domain))
        assert np.array_equal([pack(each).column(j) for j in range(3)], array.T.astype(bool))
        column = found.merge(lambda block: block.column(1), lambda x, y: y)
        assert column.dtype == each.dtype.newbyteorder("=")


def test_columns_are_views_where_types_allow() -> None:
    array = np.zeros((10, 2), np.uint8, order="F")
    table = {"v1": array[:, 0], "v2": array[:, 1]}
    for data in (array, table, pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        block = rows_of(data).one_block()
        assert block is not None
        assert np.shares_memory(block.column(1), rows_of(data).merge(lambda b: b.column(1), lambda x, y: x))
        assert np.shares_memory(block.column(0), encode(data, Domain.binary(2))[0])
    assert np.shares_memory(encode(array, Domain.binary(2))[1], array)


def test_wide_arrays_have_small_blocks() -> None:
    sizes = rows_of(np.zeros((5000, 10_000), bool)).merge(lambda block: [block.n], lambda x, y: x + y)
    assert sizes == [1024, 1024, 1024, 1024, 904]
