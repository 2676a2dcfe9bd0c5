"""What functions make of each type that a column of a frame may have: a release, or an error that names the type."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastdp
from fastdp import Budget, DomainError, statistics

N = 60
CODES = np.arange(N) % 5
GAPS = np.arange(N) % 6 == 0
WORDS = [*np.array(list("abcde"))[CODES]]
DAYS = [dt.date(2020, 1, 1 + code) for code in CODES.tolist()]
TIMES = [dt.datetime(2020, 1, 1 + code) for code in CODES.tolist()]
PRICES = [Decimal(code) for code in CODES.tolist()]


def gaps(values):
    return [None if gone else value for value, gone in zip(values, GAPS, strict=True)]


def arrow(values, kind):
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


STAMPS = pd.Series(np.array(TIMES, "M8[ns]"))

NUMBERS = {
    "numpy int": CODES,
    "numpy half": CODES.astype(np.float16),
    "numpy objects": CODES.astype(object),
    "numpy decimals": np.array(PRICES, object),
    "pandas objects": pd.Series(PRICES, dtype=object),
    "pandas category": pd.Series(CODES).astype("category"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray(CODES)),
    "polars decimal": pl.Series(PRICES, dtype=pl.Decimal(10, 2)),
    "arrow dictionary": pa.array(CODES).dictionary_encode(),
    "arrow decimal": pa.array(PRICES, pa.decimal128(10, 2)),
}
WITH_GAPS = {
    "numpy": np.where(GAPS, np.nan, CODES),
    "pandas Int64": pd.Series(gaps(CODES.tolist()), dtype="Int64"),
    "pandas arrow": arrow(gaps(CODES.tolist()), pa.int64()),
    "pandas arrow decimal": arrow(gaps(PRICES), pa.decimal128(10, 2)),
    "polars": pl.Series(gaps(CODES.tolist())),
    "polars decimal": pl.Series(gaps(PRICES), dtype=pl.Decimal(10, 2)),
    "arrow": pa.array(gaps(CODES.tolist())),
    "arrow dictionary": pa.array(gaps(CODES.tolist())).dictionary_encode(),
}
WORDY = {  # with what the error calls the type
    "numpy": (np.array(WORDS), "dtype <U1"),
    "numpy dates": (np.array(DAYS, "M8[D]"), r"dtype datetime64\[D\]"),
    "pandas strings": (pd.Series(WORDS, dtype="string"), "type string"),
    "pandas categories": (pd.Series(pd.Categorical(WORDS)), "type category"),
    "pandas zone": (STAMPS.dt.tz_localize("Europe/Berlin"), r"type datetime64\[ns, Europe/Berlin\]"),
    "pandas period": (STAMPS.dt.to_period("D"), r"type period\[D\]"),
    "pandas interval": (pd.Series(pd.IntervalIndex.from_arrays(CODES, CODES + 1)), r"type interval\[int64, right\]"),
    "pandas arrow strings": (arrow(gaps(WORDS), pa.string()), "type string"),
    "pandas arrow dates": (arrow(DAYS, pa.date32()), "type date32|dtype datetime64"),
    "pandas arrow zone": (arrow(TIMES, pa.timestamp("us", "UTC")), "type timestamp|dtype datetime64"),
    "pandas arrow dictionary": (
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array(WORDS).dictionary_encode())), "type dictionary<values=string",
    ),
    "polars strings": (pl.Series(gaps(WORDS)), "type String"),
    "polars categories": (pl.Series(WORDS, dtype=pl.Categorical), "type Categorical"),
    "polars enum": (pl.Series(WORDS, dtype=pl.Enum([*"abcde"])), "type Enum"),
    "polars time": (pl.Series([dt.time(code) for code in CODES.tolist()]), "type Time"),
    "arrow strings": (pa.array(WORDS), "type string"),
    "arrow large strings": (pa.array(WORDS, pa.large_string()), "type large_string"),
    "arrow binary": (pa.array([word.encode() for word in WORDS]), "type binary"),
    "arrow time": (pa.array([dt.time(code) for code in CODES.tolist()], pa.time32("s")), r"type time32\[s\]"),
}  # fmt: skip
EMPTY = {
    "polars": (pl.Series([None] * N, dtype=pl.Null), "type Null"), "arrow": (pa.nulls(N), "type null"),
}  # fmt: skip
UNREAD = {
    "numpy complex": (CODES + 0j, "dtype complex128"),
    "pandas complex": (pd.Series(CODES + 0j), "dtype complex128"),
    "polars list": (pl.Series([[code] for code in CODES.tolist()]), r"type List\(Int64\)"),
    "polars array": (pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)), r"type Array\(Int64"),
    "polars struct": (pl.Series([{"a": 1}] * N), "type Struct"),
    "polars wide": (pl.Series([1] * N, dtype=pl.Int128), "type Int128"),
    "arrow list": (pa.array([[code] for code in CODES.tolist()]), "type list<item: int64>"),
    "arrow struct": (pa.array([{"a": 1}] * N), "type struct<a: int64>"),
}

OPTIONS = {"epsilon": 1e5}


def table(column):
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column, "one": np.ones(N)})
    if isinstance(column, pa.Array):
        return pa.table({"x": column, "one": np.ones(N)})
    return {"x": column, "one": np.ones(N)}


READ_NUMBERS = {
    "mean": lambda x: statistics.mean(x, bounds=(0, 4), missing="skip", **OPTIONS),
    "sum": lambda x: statistics.sum(x, bounds=(0, 4), missing="skip", **OPTIONS),
    "variance": lambda x: statistics.variance(x, bounds=(0, 4), **OPTIONS),
    "quantiles": lambda x: statistics.quantiles(x, [0.5], missing="skip", **OPTIONS),
    "median": lambda x: fastdp.median(x, outside="clip", **OPTIONS),
    "histogram": lambda x: statistics.histogram(x, [0, 1, 2, 5], outside="clip", **OPTIONS),
    "bincount": lambda x: statistics.bincount(x, 5, outside="clip", **OPTIONS),
    "describe": lambda x: statistics.describe(table(x), {"x": (0, 4)}, missing="skip", **OPTIONS),
    "sum_by": lambda x: statistics.sum_by(
        table(x), "x", by="one", bounds=(0, 4), delta=1e-6, missing="skip", **OPTIONS
    ),
    "vector_sum": lambda x: fastdp.vector_sum(table(x), clip=1.0, outside="clip", **OPTIONS),
    "per_person": lambda x: statistics.count(
        fastdp.per_person(table(x), "one", sums={"x": (0, 4)})["x"], neighbors="add-remove", **OPTIONS
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_any_type_have_the_same_statistics(kind):
    x = NUMBERS[kind]
    assert float(statistics.mean(x, bounds=(0, 4), **OPTIONS)) == pytest.approx(2, abs=1e-3)
    assert statistics.histogram(x, [0, 1, 2, 5], **OPTIONS).counts.tolist() == [12, 12, 36]
    assert statistics.bincount(x, 5, **OPTIONS).counts.tolist() == [12] * 5
    assert statistics.quantiles(x, [0.5], **OPTIONS).tolist() == [2]
    found = statistics.count_by(x, delta=1e-6, **OPTIONS)
    assert dict(zip(found.labels, found.counts, strict=True)) == dict.fromkeys(range(5), 12)
    assert statistics.describe(table(x), {"x": (0, 4)}, **OPTIONS)["x"].values["50%"] == pytest.approx(2)
    by = statistics.sum_by(table(x), "x", by="one", bounds=(0, 4), delta=1e-6, **OPTIONS)
    assert by.sums.tolist() == pytest.approx([120], abs=0.1)


@pytest.mark.parametrize("kind", WITH_GAPS)
def test_missing_entries_are_refused_or_left_out(kind):
    x, left = WITH_GAPS[kind], CODES[~GAPS]
    with Budget(epsilon=1e9) as budget:
        with pytest.raises(DomainError, match=r"^values: must be numbers; there are missing entries"):
            statistics.mean(x, bounds=(0, 4), **OPTIONS)
        assert not budget.releases
    with pytest.raises(DomainError, match=r"^column 'x': must be numbers; there are missing entries"):
        statistics.sum_by(table(x), "x", by="one", bounds=(0, 4), delta=1e-6, **OPTIONS)
    found = statistics.mean(x, bounds=(0, 4), missing="skip", **OPTIONS)
    assert float(found) == pytest.approx(left.mean(), abs=1e-3)
    assert int(statistics.count(x, **OPTIONS)) == left.size
    assert statistics.quantiles(x, [0.5], missing="skip", **OPTIONS).tolist() == [2]


@pytest.mark.parametrize("kind", [*WORDY, *(f"{kind} null" for kind in EMPTY)])
def test_what_holds_no_numbers_is_refused_by_type(kind):
    x, name = WORDY[kind] if kind in WORDY else EMPTY[kind.removesuffix(" null")]
    for call in READ_NUMBERS.values():
        with Budget(epsilon=1e9, delta=0.1) as budget:
            with pytest.raises(ValueError, match=rf"(values|'values'|column 'x'): (dtype|{name}).*: must be ") as error:
                call(x)
            assert not budget.releases
        assert type(error.value) is ValueError  # by its type, whatever the entries are


@pytest.mark.parametrize("kind", WORDY)
def test_what_holds_no_numbers_has_labels(kind):
    x = WORDY[kind][0]
    found = statistics.count_by(x, delta=1e-6, **OPTIONS)
    missing = getattr(x, "null_count", 0)
    missing = missing() if callable(missing) else missing
    if isinstance(x, pd.Series):
        missing = int(x.isna().sum())
    assert len(found) == 5
    assert found.counts.sum() == N - missing == int(statistics.count(x, **OPTIONS))


@pytest.mark.parametrize("kind", UNREAD)
def test_what_nobody_reads_is_refused_by_everyone(kind):
    x, name = UNREAD[kind]
    for call in (*READ_NUMBERS.values(), lambda x: statistics.count_by(x, delta=1e-6, **OPTIONS)):
        with pytest.raises(ValueError, match=rf"^(values|column 'x'): {name}.*: must be numbers"):
            call(x)


def test_polars_labels_may_be_called_anything_and_be_missing():
    for dtype in (pl.String, pl.Categorical, pl.Enum([*"abcde"])):
        for values in (gaps(WORDS), [None] * N):
            for name in ("count", "label", "rows", ""):
                found = statistics.count_by(pl.Series(name, values, dtype=dtype), delta=1e-6, **OPTIONS)
                wanted = {word: values.count(word) for word in {*values} - {None}}
                assert dict(zip(found.labels, found.counts, strict=True)) == wanted


SKIPPING = {
    name: READ_NUMBERS[name] for name in ("mean", "sum", "describe", "sum_by")
} | {"variance": lambda x: statistics.variance(x, bounds=(0, 4), missing="skip", **OPTIONS)}  # fmt: skip
NO_NUMBERS = r"^(values|column 'x'): dtype object: entries that are no numbers are left out, .* the result is noise: "


@pytest.mark.parametrize("name", SKIPPING)
def test_objects_are_warned_of_by_their_type_alone(name):
    """Whatever they are: numbers, strings alone, nothing. No other type is, and nothing where strings are refused."""
    call, of_numbers = SKIPPING[name], []
    for entries in (CODES.tolist(), WORDS, gaps(CODES.tolist()), [None] * N):
        for x in (np.array(entries, object), pd.Series(entries, dtype=object)):
            with pytest.warns(fastdp.AccuracyWarning, match=NO_NUMBERS) as told:
                call(x)
            of_numbers.append(str(told[0].message))
            assert told[0].filename == __file__
    assert len({*of_numbers}) == 1
    lists = [gaps(CODES.tolist())] if name != "sum_by" else []  # which keeps those of a mapping as objects
    for x in (*NUMBERS.values(), *WITH_GAPS.values(), *lists):
        if str(getattr(x, "dtype", "list")) != "object":
            call(x)
    with pytest.warns(fastdp.AccuracyWarning, match=NO_NUMBERS):
        statistics.mean(fastdp.partition({"x": np.array(WORDS, object), "part": CODES % 2}, "part", [0, 1])[0]["x"],
                        bounds=(0, 4), missing="skip", neighbors="add-remove", **OPTIONS)  # fmt: skip
    with pytest.raises(DomainError, match="what is no number, such as strings"):
        statistics.mean(np.array(WORDS, object), bounds=(0, 4), **OPTIONS)


def test_parts_and_persons_keep_the_types_of_their_columns():
    data = {"x": pl.Series(WORDS), "part": CODES % 2}
    parts = fastdp.partition(data, "part", [0, 1])
    few = fastdp.limit_rows({**data, "who": CODES}, "who", at_most=2)
    for some in (parts[0]["x"], few["x"]):
        with pytest.raises(ValueError, match=r"^(values|column 'x'): type String: must be numbers$"):
            statistics.mean(some, bounds=(0, 1), missing="skip", neighbors="add-remove", **OPTIONS)


def test_equal_decimals_and_floats_are_one_label_of_one_form():
    values = [0.5, Decimal("0.5"), Decimal("0.1"), Decimal("1e400"), Decimal("Infinity"), Decimal("NaN"), 3, Decimal(3)]
    for order in (values, values[::-1]):
        found = statistics.count_by(order * 9, delta=1e-6, **OPTIONS)
        forms = {(type(label), label): count for label, count in zip(found.labels, found.counts, strict=True)}
        assert forms == {
            (float, 0.5): 18, (int, 3): 18, (Decimal, Decimal("0.1")): 9, (Decimal, Decimal("1e400")): 9,
            (float, float("inf")): 9,
        }  # fmt: skip
    assert float(statistics.sum([Decimal("sNaN"), Decimal(2)], bounds=(0, 4), missing="skip", **OPTIONS)) == (
        pytest.approx(2, abs=0.01)
    )
