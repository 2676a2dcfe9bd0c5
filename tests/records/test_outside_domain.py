"""Records outside the domain, missing entries, other types: refused, or clipped (fastdp/records/outside_domain.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastdp import Domain, DomainError
from fastdp.records.encoding import encode, histogram
from fastdp.records.packed import pack
from fastdp.records.sources import rows_of


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
        with pytest.raises(ValueError, match=r"^column 'a': (must|dtype|type)") as caught:
            function(missing()[which], domain, "raise")
        shown = str(caught.value).replace(str(domain.sizes[0] - 1), "")
        assert "4711" not in shown
        if "'a': type" not in shown:
            function(missing()[which], domain, "clip")
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
    with pytest.raises(
        DomainError, match=r"^column 'a': must hold the labels of the domain only; there are others: \.fillna"
    ):
        encode(frame_of.assign(a=["z", "x"]), domain)


def test_errors_about_labels_name_a_way_out() -> None:
    with pytest.raises(DomainError, match=r"for other labels$"):  # labels have no nearest one
        encode({"a": ["x", "SECRET"]}, Domain(a=["x", "y"]))
    with pytest.raises(DomainError, match=r"for other labels or, for numbers beyond its ends, outside='clip'$"):
        encode({"a": [18, 99]}, Domain(a=range(18, 81)))
    with pytest.raises(DomainError, match=r"for other labels or, for numbers beyond its ends, outside='clip'$"):
        encode({"a": [18, 18.5]}, Domain(a=range(18, 81)))
    way_out = r"must not have missing entries; fill them with .*\.fillna\('missing'\); or have None among the labels"
    with pytest.raises(DomainError, match=way_out):
        encode(pd.DataFrame({"a": ["x", None]}), Domain(a=["x", "y"]))


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


def test_a_label_that_has_no_hash_is_one_that_the_domain_does_not_have() -> None:
    """Each fails to be looked up with another error, which "clip" must not let a record cause."""
    domain = Domain(a=["x", "y"])
    for unknown in ([], bytearray(b"x"), memoryview(bytearray(b"x"))):
        column = np.empty(3, object)
        column[:] = ["x", unknown, "y"]
        assert encode({"a": column}, domain, "clip")[0].tolist() == [0, 0, 1]
