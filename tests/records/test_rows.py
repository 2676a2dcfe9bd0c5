"""Rows (fastdp/records/rows.py, sources.py, encoding.py): all kinds of data give the same codes and counts."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import set_num_threads
from fastdp.records.encoding import encode, histogram
from fastdp.records.sources import rows_of
from tests.conftest import run_python
from tests.records.samples import DOMAIN, FRAMES, N, codes, columns, counts, frame


@pytest.mark.parametrize("kind", FRAMES)
def test_all_kinds_say_the_same(kind: str, tmp_path: Path) -> None:
    data = frame(columns(), tmp_path, kind)
    for count in (1, 3):
        set_num_threads(count)
        found = rows_of(data)
        assert (found.n, found.width) == (N, 5)
        assert found.names == ("a", "b", "other", "c", "d")
        for got, want in zip(encode(found, DOMAIN), codes(), strict=True):
            assert got.dtype == want.dtype
            assert np.array_equal(got, want)
        assert np.array_equal(histogram(data, DOMAIN), counts(codes()))
        for name, want in columns().items():
            parts = found.merge(lambda block, name=name: [(block.first, block.column(name))], lambda x, y: x + y)
            assert [first for first, _ in parts] == list(np.cumsum([0, *(len(part) for _, part in parts[:-1])]))
            got = np.concatenate([part for _, part in parts])
            assert got.dtype == want.dtype, name
            assert np.array_equal(got, want), name


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("n", [0, 1])
def test_no_records_and_one(kind: str, n: int, tmp_path: Path) -> None:
    whole = frame(columns(2), tmp_path, kind)
    if kind == "mapping":
        data = {name: each[:n] for name, each in whole.items()}
    elif kind.startswith("arrow"):
        data = whole.slice(0, n)
    elif kind.startswith("parquet"):
        pq.write_table(pa.table(columns(2)).slice(0, n), tmp_path / "few.parquet")
        data = tmp_path / "few.parquet"
    else:
        data = whole[:n]
    found = rows_of(data)
    assert found.n == n
    assert [each.dtype for each in encode(found, DOMAIN)] == [np.uint8, np.uint8, np.uint16, np.uint8]
    assert [len(each) for each in encode(found, DOMAIN)] == [n] * 4
    assert np.array_equal(histogram(found, DOMAIN), counts([each[:n] for each in codes(2)]))
    assert found.total(lambda block: np.array([block.n, block.column("c").sum()])).shape == (2,)
    assert found.merge(lambda block: block.n, lambda x, y: x + y) == n


def test_a_block_finds_columns_by_name_and_position() -> None:
    block = rows_of({"a": [1, 2], "b": [3.0, 4.0]}).one_block()
    assert block is not None
    assert (block.first, block.n, block.width) == (0, 2, 2)
    assert block.column("b").tolist() == block.column(1).tolist() == block.column(np.int64(1)).tolist() == [3, 4]
    for which in ("c", 2, -1, True, 1.0, None):
        with pytest.raises(ValueError, match=r"^column=.*: must be "):
            block.column(which)  # type: ignore[arg-type]
    unnamed = rows_of(np.zeros((2, 2))).one_block()
    assert unnamed is not None
    with pytest.raises(ValueError, match=r"^column='a': must be a position, as the columns have no names$"):
        unnamed.column("a")


@pytest.mark.parametrize("kind", FRAMES)
def test_select(kind: str, tmp_path: Path) -> None:
    found = rows_of(frame(columns(), tmp_path, kind)).select(["c", "a"])
    assert (found.names, found.width, found.n) == (("c", "a"), 2, N)
    assert found.total(lambda block: block.column(0).sum()) == codes()[2].sum(dtype=np.int64)
    assert found.select([1]).total(lambda block: block.column("a").sum(dtype=np.int64)) == codes()[0].sum()
    with pytest.raises(ValueError, match=r"^data: must have the columns 'x', 'y'$"):
        found.select(["x", "a", "y"])


def test_rows_are_rows() -> None:
    found = rows_of(np.zeros((3, 2)))
    assert rows_of(found) is found
    assert repr(found) == "<MemoryRows: 3 records, 2 columns>"


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_pickle(kind: str, tmp_path: Path) -> None:
    found = pickle.loads(pickle.dumps(rows_of(frame(columns(100), tmp_path, kind))))
    assert np.array_equal(histogram(found, DOMAIN), counts(codes(100)))


def test_no_library_is_imported_unless_the_data_come_from_it() -> None:
    code = """
import sys, numpy as np
from fastdp import Domain
from fastdp.records.packed import pack
from fastdp.records.sources import rows_of
from fastdp.records.encoding import histogram
histogram(np.zeros((3, 2), int), Domain.binary(2)), histogram({"v1": [0, 1]}, Domain.binary(1)), pack(np.ones((3, 2)))
assert not {"pandas", "polars", "pyarrow", "dask"} & set(sys.modules)
"""
    run_python(code)


def test_memory_of_a_histogram_does_not_grow_with_the_records() -> None:
    code = """
import resource, numpy as np
from fastdp import Domain
from fastdp.records.encoding import histogram
array = np.broadcast_to(np.zeros((1, 16), np.uint8), (20_000_000, 16))
domain = Domain.binary(16)
histogram(array[:100], domain)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert histogram(array, domain)[0] == len(array)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    assert int(run_python(code)) < 60_000  # kilobytes; the cells alone would be 80,000
