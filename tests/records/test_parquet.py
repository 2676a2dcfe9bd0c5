"""Parquet files as rows (fastdp/records/parquet.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import Domain, DomainError
from fastdp.records.encoding import histogram
from fastdp.records.rows import Block
from fastdp.records.sources import rows_of
from tests.records.samples import N, columns


def test_selecting_from_a_file_reads_nothing_else(tmp_path: Path) -> None:
    """A missing entry is refused where it is read, and here it is not."""
    pq.write_table(pa.table({"a": [1, 2], "b": [None, 1]}), tmp_path / "x.parquet")
    assert histogram(tmp_path / "x.parquet", Domain(a=3)).tolist() == [0, 1, 1]
    with pytest.raises(DomainError, match=r"^column 'b': must not have missing entries; fill them"):
        histogram(tmp_path / "x.parquet", Domain(b=3))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rows_of(tmp_path / "none.parquet")
    (tmp_path / "text").write_text("a,b\n1,2\n")
    (tmp_path / "empty").touch()
    for name in ("text", "empty"):
        with pytest.raises(ValueError, match=rf"^data: .*{name}: must be a Parquet file"):
            rows_of(tmp_path / name)
    with pytest.raises(ValueError, match=r"^data: .*: must be a file, not a folder"):
        rows_of(tmp_path)


def test_files_with_other_columns(tmp_path: Path) -> None:
    tables = [{"a": [1], "b": [2]}, {"a": [1]}, {"b": [2], "a": [1]}, {"a": [1], "b": [2.0]}]
    for i, data in enumerate(tables):
        pq.write_table(pa.table(data), tmp_path / f"{i}")
    for i in (1, 2, 3):
        with pytest.raises(ValueError, match=rf"^data: .*{i}: must have the columns and types of .*0$"):
            rows_of([tmp_path / "0", tmp_path / f"{i}"])
    assert rows_of([tmp_path / "0", tmp_path / "0"]).n == 2
    pandas_made = tmp_path / "by pandas"
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(pandas_made)
    assert rows_of([tmp_path / "0", str(pandas_made)]).n == 2  # its metadata say more, its columns are the same


def test_a_file_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    found = rows_of(path)
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    with pytest.raises(ValueError, match=r"^data: .*x\.parquet: must not change while it is in use$"):
        histogram(found, Domain(a=4))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        histogram(found, Domain(a=4))


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).integers(0, 200, 50_000)}), path)
    data = bytearray(path.read_bytes())
    data[4:3000] = bytes(2996)
    path.write_bytes(data)
    with pytest.raises((OSError, ValueError)):
        histogram(path, Domain(a=200))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_read_closes_its_file(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns()), path, row_group_size=10_000)
    found = rows_of(path)

    def opened() -> int:
        return sum(Path(f"/proc/self/fd/{fd}").resolve() == path for fd in range(256))

    def fail(block: Block) -> int:
        if block.first:
            seen.append(opened())
            raise error("stop")
        return 0

    seen: list[int] = []

    if Path("/proc/self/fd").exists():
        with pytest.raises(error, match="stop"):
            found.total(fail)
        assert min(seen) > 0
        assert opened() == 0
    assert found.total(lambda block: block.n) == N


def test_files_are_read_a_bounded_number_of_records_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.zeros(500_000, np.uint8)}), path, row_group_size=500_000)
    sizes = rows_of(path).merge(lambda block: [block.n], lambda x, y: x + y)
    assert max(sizes) <= 2**16
    assert sum(sizes) == 500_000


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"^Parquet files need pyarrow: pip install 'fastdp\[arrow\]'$"):
        rows_of(path)
