"""Where records live (fastdp/records/rows.py, columns.py, parquet.py), and how they become codes
(answering/coding.py)."""

from __future__ import annotations

import itertools
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import Domain, DomainError, set_num_threads
from fastdp.kernels.histograms import count_cells_into, number_cells_into
from fastdp.records.encoding import encode, histogram
from fastdp.records.packed import PackedRows, pack
from fastdp.records.rows import Block
from fastdp.records.sources import rows_of
from fastdp.support import threads
from tests.conftest import run_python

N = 2 * 2**16 + 1001  # three blocks
DOMAIN = Domain(a=5, b=2, c=300, d=["x", "y", "z"])
LABELS = np.array(["x", "y", "z"], object)


@pytest.fixture(autouse=True)
def _restore_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_count", threads._count)


def codes(n: int = N, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, n).astype(np.uint16 if size > 256 else np.uint8) for size in DOMAIN.sizes]


def columns(n: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    a, b, c, d = codes(n, seed)
    return {"a": a, "b": b.astype(bool), "other": np.linspace(0, 1, n), "c": c.astype(np.int64), "d": LABELS[d]}


def counts(some: list[np.ndarray], domain: Domain = DOMAIN) -> np.ndarray:
    cells = np.ravel_multi_index([each.astype(np.int64) for each in some], domain.sizes)
    return np.bincount(cells, minlength=domain.size)


def frame(data: dict[str, Any], tmp_path: Path, kind: str) -> Any:
    """The same records as each library holds them."""
    table = pa.table(data)
    if kind == "mapping":
        return data
    if kind == "pandas":
        return pd.DataFrame(data)
    if kind == "pandas object":
        return pd.DataFrame(data).astype({"d": object})
    if kind == "pandas categories":
        return pd.DataFrame(data).astype({"d": pd.CategoricalDtype(["unused", "z", "y", "x"])})
    if kind == "pandas nullable":
        return pd.DataFrame(data).convert_dtypes()
    if kind == "pandas arrow":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "polars":
        return pl.DataFrame(data)
    if kind == "polars categories":
        return pl.DataFrame(data).with_columns(pl.col("d").cast(pl.Categorical))
    if kind == "polars enum":
        return pl.DataFrame(data).with_columns(pl.col("d").cast(pl.Enum(["z", "unused", "x", "y"])))
    if kind == "polars chunks":
        whole = pl.DataFrame(data)
        return pl.concat([whole[:70_000], whole[70_000:]], rechunk=False)
    if kind == "arrow":
        return table
    if kind == "arrow chunks":
        return pa.concat_tables([table.slice(0, 70_000), table.slice(70_000)])
    if kind == "arrow dictionaries":
        at = table.column_names.index("d")
        return pa.concat_tables(
            part.set_column(at, "d", part.column("d").dictionary_encode())
            for part in (table.slice(0, 3), table.slice(3, 70_000), table.slice(70_003))
        )
    if kind == "arrow batch":
        return table.combine_chunks().to_batches()[0]
    path = tmp_path / "rows.parquet"
    if kind == "parquet":
        pq.write_table(table, path)
        return path
    if kind == "parquet groups":
        pq.write_table(table, path, row_group_size=777)
        return str(path)
    if kind == "parquet files":
        bounds = [0, 0, min(1, len(table)), min(60_000, len(table)), min(60_063, len(table)), len(table)]
        paths = []
        for i, (start, stop) in enumerate(itertools.pairwise(bounds)):
            paths.append(tmp_path / f"{i}.parquet")
            pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=[5, 1, 10**6, 7, 9999][i])
        return paths
    raise AssertionError(kind)


FRAMES = [
    *("mapping", "pandas", "pandas object", "pandas categories", "pandas nullable", "pandas arrow"),
    *("polars", "polars categories", "polars enum", "polars chunks"),
    *("arrow", "arrow chunks", "arrow dictionaries", "arrow batch", "parquet", "parquet groups", "parquet files"),
]


def records(block: Block) -> np.ndarray:
    return np.array([block.n, block.column(0).sum(dtype=np.int64), block.first * block.n])


# --- every kind of data


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


# --- arrays


def variants(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same entries in other memory."""
    yield array
    yield np.asfortranarray(array)
    yield np.repeat(array, 2, axis=1)[:, ::2]
    yield np.concatenate([array, array])[::-1][len(array) :][::-1]
    read_only = array.copy()
    read_only.flags.writeable = False
    yield read_only
    yield array.astype(array.dtype.newbyteorder(">"))
    yield array.astype(object)


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


def test_selecting_from_a_file_reads_nothing_else(tmp_path: Path) -> None:
    """A missing entry is refused where it is read, and here it is not."""
    pq.write_table(pa.table({"a": [1, 2], "b": [None, 1]}), tmp_path / "x.parquet")
    assert histogram(tmp_path / "x.parquet", Domain(a=3)).tolist() == [0, 1, 1]
    with pytest.raises(DomainError, match=r"^column 'b': must not have missing entries$"):
        histogram(tmp_path / "x.parquet", Domain(b=3))


def test_rows_are_rows() -> None:
    found = rows_of(np.zeros((3, 2)))
    assert rows_of(found) is found
    assert repr(found) == "<MemoryRows: 3 records, 2 columns>"


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_pickle(kind: str, tmp_path: Path) -> None:
    found = pickle.loads(pickle.dumps(rows_of(frame(columns(100), tmp_path, kind))))
    assert np.array_equal(histogram(found, DOMAIN), counts(codes(100)))


# --- what is refused


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        object(),
        b"x.parquet",
        (row for row in [[0, 1]]),
        iter(["a.parquet"]),
        range(3),
        [[0, 1], [1, 0]],
        [b"x"],
        {0, 1},
        pd.Series([0, 1]),
        pl.Series([0, 1]),
        pl.LazyFrame({"a": [1]}),
        pa.array([0, 1]),
        np.int64(3),
    ],
    ids=lambda data: type(data).__name__,
)
def test_other_types_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=rf"^data: type {type(data).__name__}: must be a 2-D numpy array, a mapping"):
        rows_of(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), r"data: shape \(3,\): must have two dimensions"),
        (np.zeros((3, 1, 1)), r"data: shape \(3, 1, 1\): must have two dimensions"),
        (np.zeros((3, 0)), "data: must have at least one column"),
        (np.zeros((3, 2), complex), r"column 0: dtype complex128: must be numbers, strings or objects"),
        (np.zeros(3, [("a", int)]), r"data: must not be a structured array; give \{name: data\[name\], \.\.\.\}"),
        (np.ma.masked_array(np.zeros((3, 2))), "data: must not be a masked array"),
        ({"a": np.ma.masked_array(np.zeros(3))}, "column 'a': must not be a masked array"),
        ({}, "data: must have at least one column"),
        (pd.DataFrame(index=[0, 1]), "data: must have at least one column"),
        (pl.DataFrame(), "data: must have at least one column"),
        (pa.table({}), "data: must have at least one column"),
        ({"a": [1, 2], "b": [1]}, "column 'b': 1 entries: must have 2, as the first column has"),
        ({"a": np.zeros((2, 2))}, r"column 'a': shape \(2, 2\): must have one dimension"),
        ({"a": [[1], [1, 2]]}, "column 'a': must have one dimension"),
        ({"a": 3}, "column 'a': type int: must be an array, or a column of a data frame"),
        ({"a": "text"}, "column 'a': type str: must be an array"),
        ({"a": (i for i in [1])}, "column 'a': type generator: must be an array"),
        ({1: [1]}, "data: column name 1: must be a string"),
        (pd.DataFrame([[1, 2]], columns=["a", 5]), "data: column name 5: must be a string"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "data: column name 'a': must not repeat"),
        (pa.table([[1], [2]], names=["a", "a"]), "data: column name 'a': must not repeat"),
        (pa.table({"a": [[1, 2]]}), r"column 'a': type list<.*>: must be numbers or labels, one an entry"),
        ([], r"data=\[\]: must name at least one Parquet file"),
    ],
)
def test_bad_shapes_are_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        rows_of(data)


def missing() -> list[Any]:
    """A column a with a missing entry and the value 4711."""
    numbers, labels = [4711, None, 0], ["x", None, "4711"]
    return [
        {"a": np.array([4711.0, np.nan, 0])},
        {"a": np.array(numbers, object)},
        {"a": np.array(labels, object)},
        {"a": pd.array(numbers, "Int64")},
        {"a": pd.Series(labels, dtype=object)},
        pd.DataFrame({"a": numbers}),
        pd.DataFrame({"a": numbers}, dtype="Int64"),
        pd.DataFrame({"a": [True, None, True]}, dtype="boolean"),
        pd.DataFrame({"a": labels}),
        pd.DataFrame({"a": labels}, dtype=object),
        pd.DataFrame({"a": labels}, dtype="string"),
        pd.DataFrame({"a": labels}, dtype="category"),
        pd.DataFrame({"a": numbers}, dtype=pd.ArrowDtype(pa.int64())),
        pl.DataFrame({"a": numbers}),
        pl.DataFrame({"a": labels}),
        pl.DataFrame({"a": labels}).cast(pl.Categorical),
        pa.table({"a": numbers}),
        pa.table({"a": labels}),
        pa.table({"a": pa.array(labels).dictionary_encode()}),
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["x", None]))}),
        pa.table({"a": pa.nulls(3)}),
    ]


@pytest.mark.parametrize("which", range(len(missing())))
@pytest.mark.parametrize("domain", [Domain(a=5000), Domain(a=["x", "4711"])], ids=["codes", "labels"])
def test_missing_entries_are_refused_and_values_never_shown(which: int, domain: Domain) -> None:
    for function in (encode, histogram):
        for outside in ("raise", "clip"):
            with pytest.raises(ValueError, match=r"^column 'a': (must|dtype)") as caught:
                function(missing()[which], domain, outside)
            shown = str(caught.value).replace(str(domain.sizes[0] - 1), "")
            assert "4711" not in shown
    with pytest.raises(ValueError, match=r"^column 'a': (must|dtype)"):
        pack(missing()[which])


def test_records_outside_the_domain() -> None:
    array = np.array([[0, 1], [7, 0], [1, -3]])
    domain = Domain(a=2, b=2)
    for function in (encode, histogram):
        with pytest.raises(DomainError, match=r"^column 'a': must hold codes from 0 to 1 only; there are others$"):
            function(array, domain)
    assert np.array_equal(encode(array, domain, outside="clip"), [[0, 1, 1], [1, 0, 0]])
    assert histogram(array, domain, outside="clip").tolist() == [0, 1, 2, 0]
    with pytest.raises(ValueError, match=r"^outside='nearest': must be one of 'raise', 'clip'$"):
        histogram(array, domain, outside="nearest")  # type: ignore[arg-type]


def test_columns_that_do_not_fit_the_domain() -> None:
    domain = Domain(a=2, b=2, c=2)
    for function in (encode, histogram):
        with pytest.raises(ValueError, match=r"^data: must have the columns 'a', 'c'$"):
            function({"b": [1], "x": [1]}, domain)
        for width in (2, 4):
            with pytest.raises(ValueError, match=rf"^data: {width} columns without names: must be 3, as the domain"):
                function(np.zeros((5, width), int), domain)
    unnamed = pd.DataFrame(np.array([[1, 0, 1]]))  # a frame made from an array: by position
    assert histogram(unnamed, domain).argmax() == 5
    with pytest.raises(ValueError, match=r"^domain: 1\.10e\+12 cells: must be at most 2\^31"):
        histogram(np.zeros((1, 40)), Domain.binary(40))
    assert len(encode(np.zeros((1, 100)), Domain.binary(100))) == 100


def test_labels_that_no_record_has_need_not_be_in_the_domain() -> None:
    frame_of = pd.DataFrame({"a": pd.Categorical(["x", "y"], ["z", "y", "x"])})
    domain = Domain(a=["x", "y"])
    assert encode(frame_of, domain)[0].tolist() == [0, 1]
    with pytest.raises(DomainError, match=r"^column 'a': must hold the labels of the domain only; there are others$"):
        encode(frame_of.assign(a=["z", "x"]), domain)


@pytest.mark.parametrize("dtype", [object, "U3", "S3"])
def test_labels_in_numpy_arrays(dtype: Any) -> None:
    values = np.array(["b", "abc", "b", ""]).astype(dtype)
    domain = Domain(a=[values.tolist()[3], "other", values.tolist()[1], values.tolist()[0]])
    assert encode({"a": values}, domain)[0].tolist() == [3, 2, 3, 0]
    assert encode(np.array([values, values]).T, Domain({"a": domain.labels[0], "b": domain.labels[0]}))[1][1] == 2
    mixed = np.array([1, "1", None, (1, 2), True], object)
    assert encode({"a": mixed}, Domain(a=["1", 1, (1, 2), None]))[0].tolist() == [1, 0, 3, 2, 1]
    unhashable = np.array([1, [2]], object)
    for data in ({"a": unhashable}, pd.DataFrame({"a": unhashable})):
        with pytest.raises(DomainError, match=r"^column 'a': must hold labels only; there are objects without a hash$"):
            encode(data, Domain(a=[1, 2]))


def test_categories_that_are_codes() -> None:
    values = [3, 1, 0, 3]
    for data in (
        pd.DataFrame({"a": pd.Categorical(values)}),
        pa.table({"a": pa.array(values).dictionary_encode()}),
        {"a": pd.Series(values, dtype="category")},
    ):
        assert encode(data, Domain(a=4))[0].tolist() == values
        assert encode(data, Domain(a=[0, 1, 2, 3]))[0].tolist() == values


# --- files


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


# --- sums


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


# --- packed rows


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, N])
def test_packed(n: int) -> None:
    array = np.random.default_rng(n).integers(0, 2, (n, 5)).astype(bool)
    packed = pack(array)
    assert (packed.n, packed.d, packed.names) == (n, 5, None)
    assert packed.words.shape == (5, -(-n // 64))
    assert packed.words.dtype == np.uint64
    padded = np.zeros((packed.words.shape[1] * 64, 5), np.uint64)
    padded[:n] = array
    want = (padded.reshape(-1, 64, 5) << np.arange(64, dtype=np.uint64)[:, None]).sum(1, dtype=np.uint64)
    assert np.array_equal(packed.words, want.T)
    assert np.array_equal([packed.column(j) for j in range(5)], array.T)
    assert rows_of(packed) is pack(packed) is packed
    domain = Domain.binary(5)
    assert np.array_equal(encode(packed, domain), array.T)
    assert np.array_equal(histogram(packed, domain), counts(list(array.T), domain))
    assert packed.select([0, 1, 2, 3, 4]) is packed
    assert np.array_equal(packed.select([4, 2]).words, packed.words[[4, 2]])
    assert np.array_equal(pickle.loads(pickle.dumps(packed)).words, packed.words)


def test_packed_rows_of_files_whose_blocks_start_anywhere(tmp_path: Path) -> None:
    names = ["v1", "v2", "v3"]
    array = np.random.default_rng(0).integers(0, 2, (200_000, 3))
    table = pa.table(dict(zip(names, array.T, strict=True)))
    paths = []
    for i, (start, stop) in enumerate(itertools.pairwise([0, 5, 70_001, 70_063, 200_000])):
        paths.append(tmp_path / f"{i}")
        pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=999)
    packed = pack(paths)
    assert packed.names == ("v1", "v2", "v3")
    assert np.array_equal(packed.words, pack(array).words)
    assert histogram(packed, Domain.binary(3)).sum() == 200_000


def bit_words(array: np.ndarray) -> np.ndarray:
    """Bit i % 64 of word i // 64 of row j is record i's entry in column j."""
    words = [[0] * -(-len(array) // 64) for _ in range(array.shape[1])]
    for i, j in zip(*np.nonzero(array), strict=True):
        words[j][i // 64] |= 1 << int(i) % 64
    return np.array(words, np.uint64).reshape(array.shape[1], -(-len(array) // 64))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float32])
def test_bits_of_a_block(n: int, dtype: Any) -> None:
    """Of arrays in any memory, and of the middle of one; spare bits are 0."""
    array = np.random.default_rng(n).integers(0, 2, (n, 67)).astype(dtype)
    want = bit_words(array)
    for each in variants(array):
        block = rows_of(each).one_block()
        assert block is not None
        bits = block.bits()
        assert bits.dtype == np.uint64
        assert np.array_equal(bits, want)
        assert np.array_equal(pack(each).words, want)
    long = np.concatenate((np.ones((70, 67), dtype), array, np.ones((9, 67), dtype)))
    for each in (long, np.asfortranarray(long)):
        some = Block(70, n, rows_of(each)._columns, None, 70, each)  # type: ignore[attr-defined]
        assert np.array_equal(some.bits(), want)


@pytest.mark.parametrize("n", [1, 64, 1000, N])
def test_bits_are_the_same_wherever_records_live(n: int, tmp_path: Path) -> None:
    """Blocks of arrays, data frames and files start anywhere; put together they are the same words."""
    array = np.random.default_rng(n).integers(0, 2, (n, 3))
    names = ["v1", "v2", "v3"]
    table = pa.table(dict(zip(names, array.T, strict=True)))
    for i, size in enumerate((77, 10**6)):
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=size)
    want = pack(array).words
    sources = [
        array, array.astype(bool), pd.DataFrame(array, columns=names), pd.DataFrame(array.astype(bool)),
        pl.DataFrame(array, schema=names), pl.DataFrame(array.astype(bool), schema=names), table, pack(array),
        dict(zip(names, array.T.tolist(), strict=True)), tmp_path / "0.parquet", tmp_path / "1.parquet",
    ]  # fmt: skip
    for source in sources:
        for count in (1, 3):
            set_num_threads(count)
            assert np.array_equal(pack(source).words, want)
            parts = rows_of(source).merge(lambda block: [(block.first, block.n, block.bits())], lambda x, y: x + y)
            for first, m, bits in parts:
                assert np.array_equal(bits, pack(array[first : first + m]).words)


def test_bits_of_packed_records_are_views() -> None:
    packed = pack(np.ones((2**18 + 70, 2), bool))
    parts = packed.merge(lambda block: [(block.first, block.n, block.bits())], lambda x, y: x + y)
    assert [(first, n) for first, n, _ in parts] == [(0, 2**18), (2**18, 70)]
    for first, n, bits in parts:
        assert bits.shape == (2, -(-n // 64))
        assert np.shares_memory(bits, packed.words)
        assert np.array_equal(bits, packed.words[:, first // 64 : first // 64 + bits.shape[1]])


def test_packed_rows_may_be_made_of_words_in_any_memory() -> None:
    """Kernels read a row of words as one piece."""
    array = np.random.default_rng(0).random((300, 4)) < 0.5
    for words in variants(pack(array).words):
        if words.dtype == np.uint64:
            packed = PackedRows(words, 300)
            assert packed.words.flags.c_contiguous
            assert np.array_equal([packed.column(j) for j in range(4)], array.T)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8])
def test_bytes_that_are_neither_0_nor_1_are_refused(dtype: Any) -> None:
    """Also of bools, whose bytes may be anything; column by column numpy takes those for a 1."""
    array = np.zeros((200, 70), np.uint8)
    array[133, 66] = 255
    columns = np.asfortranarray(array)
    if dtype is bool:
        assert np.array_equal(pack(columns.view(bool)).words, bit_words(array))
    for each in (array,) if dtype is bool else (array, columns):
        with pytest.raises(DomainError, match=r"^column 66: must hold 0 and 1 only; there are others$"):
            pack(each.view(dtype))


@pytest.mark.parametrize("bad", [2, -1, 0.5, np.nan, np.inf, "1"])
def test_what_is_not_a_bit_is_refused(bad: Any) -> None:
    column = np.array([0, 1, bad])
    with pytest.raises(ValueError, match=r"^column 'b': (must hold 0 and 1 only; there are others|dtype .*: must be)"):
        pack({"a": [0, 1, 1], "b": column})
    with pytest.raises(ValueError, match=r"^column 1: must hold 0 and 1 only; there are others$"):
        pack(np.array([[0, bad], [1, 1]], object))


@pytest.mark.parametrize(
    ("words", "n", "message"),
    [
        (np.zeros((2, 1), np.int64), 3, "words: dtype int64: must be uint64"),
        (np.zeros(2, np.uint64), 3, r"words: shape \(2,\): must be \(d, 1\), for n=3"),
        (np.zeros((2, 2), np.uint64), 3, r"words: shape \(2, 2\): must be \(d, 1\), for n=3"),
        (np.full((2, 1), 8, np.uint64), 3, "words: must have 0 in the bits from n=3 on"),
        (np.zeros((2, 1), np.uint64), -1, "n=-1: must be a whole number >= 0"),
    ],
)
def test_packed_rows_made_by_hand_are_checked(words: np.ndarray, n: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        PackedRows(words, n)
    if n == 3:
        with pytest.raises(ValueError, match=r"^names: 1: must be 2, as there are columns$"):
            PackedRows(np.zeros((2, 1), np.uint64), 3, ("a",))


# --- kernels


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("sizes", [(7,), (2, 3, 5), (256, 256, 256, 128), (1, 1, 4)])
def test_cells_are_numbered_in_c_order(sizes: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    some = np.array([rng.integers(0, size, 1000) for size in sizes], dtype)
    some[:, 0] = np.array(sizes) - 1  # the last cell
    out = np.empty(1000, np.uint32)
    number_cells_into(some, np.array(sizes), out)
    want = np.ravel_multi_index(tuple(some.astype(np.int64)), sizes)
    assert np.array_equal(out, want)
    if np.prod(sizes) < 10**6:
        total = np.arange(np.prod(sizes))
        count_cells_into(out, total)
        assert np.array_equal(total, np.arange(total.size) + np.bincount(want, minlength=total.size))


# --- manners


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


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"^Parquet files need pyarrow: pip install 'fastdp\[arrow\]'$"):
        rows_of(path)
