"""None among the labels of a domain: a missing entry as a value of its own, in whatever holds the records."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Domain, DomainError
from fastdp.records.encoding import encode, histogram

DOMAIN = Domain(g=["a", "b", None], h=[1, 2, None])
G, H = ["a", None, "b", None], [1, None, 2, None]
CODES = [[0, 2, 1, 2], [0, 2, 1, 2]]


def _arrow_backed() -> Any:
    return pd.DataFrame({"g": pd.array(G, pd.ArrowDtype(pa.string())), "h": pd.array(H, pd.ArrowDtype(pa.int64()))})


def _of_nulls_in_the_dictionary() -> Any:
    g = pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, None]), pa.array(["a", "b", None]))
    return pa.table({"g": g, "h": pa.array(H).dictionary_encode()})


FORMS: dict[str, Any] = {
    "lists": lambda: {"g": G, "h": H},
    "arrays": lambda: {"g": np.array(G, object), "h": np.array(H, object)},
    "all that is missing": lambda: {
        "g": np.array(["a", pd.NaT, "b", pd.NA], object), "h": np.array([1, math.nan, 2, math.nan])
    },
    "matrix": lambda: np.array([G, H], object).T,
    "pandas": lambda: pd.DataFrame({"g": G, "h": H}),
    "pandas objects": lambda: pd.DataFrame({"g": G, "h": H}, dtype=object),
    "pandas nullable": lambda: pd.DataFrame({"g": pd.array(G, "string"), "h": pd.array(H, "Int64")}),
    "pandas categories": lambda: pd.DataFrame({"g": pd.Categorical(G), "h": pd.Categorical(H)}),
    "pandas Arrow": _arrow_backed,
    "polars": lambda: pl.DataFrame({"g": G, "h": H}),
    "polars categories": lambda: pl.DataFrame({"g": pl.Series(G, dtype=pl.Categorical), "h": H}),
    "polars Enum": lambda: pl.DataFrame({"g": pl.Series(G, dtype=pl.Enum(["b", "c", "a"])), "h": H}),
    "Arrow": lambda: pa.table({"g": G, "h": H}),
    "Arrow dictionaries": lambda: pa.table({"g": pa.array(G).dictionary_encode(), "h": H}),
    "Arrow nulls among the labels": _of_nulls_in_the_dictionary,
    "Arrow chunks": lambda: pa.table({"g": pa.chunked_array([G[:1], G[1:]]), "h": pa.chunked_array([H[:3], H[3:]])}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_entry_has_the_code_of_none(form: str) -> None:
    data = FORMS[form]()
    for outside in ("raise", "clip"):
        assert [codes.tolist() for codes in encode(data, DOMAIN, outside)] == CODES
        assert histogram(data, DOMAIN, outside).tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 2]
    with pytest.raises(
        DomainError, match=r"^column 'g': must not have missing entries; .*or have None among the labels"
    ):
        encode(data, Domain(g=["a", "b"], h=[1, 2]))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, which Dask uses when it reads files
def test_files_and_dask(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"g": G, "h": H}), path, row_group_size=1)
    for data in (path, dd.from_pandas(FORMS["pandas"](), npartitions=3), dd.read_parquet(path)):
        assert histogram(data, DOMAIN).tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 2]


def test_times_that_are_none() -> None:
    days = np.array(["2020-01-01", "NaT", "2020-01-02"], "M8[D]")
    domain = Domain(day=[None, *days[[0, 2]].tolist()])
    assert domain.encode_column(0, days).tolist() == [1, 0, 2]
    frame = pd.DataFrame({"day": pd.to_datetime(pd.Series(["2020-01-01", None]))})
    stamps = Domain(day=[pd.Timestamp("2020-01-01").to_pydatetime(), None])
    assert stamps.encode_column(0, frame["day"].astype("M8[us]")).tolist() == [0, 1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "labels", [["a", None, "b"], [None], [None, 1, 2], [0.5, 1.5, None], [True, None]], ids=lambda labels: str(labels)
)
def test_frames_of_synthetic_records_have_missing_entries(library: Any, labels: list[Any]) -> None:
    domain = Domain(g=labels, other=2)
    data = {"g": labels * 20, "other": [0, 1] * (10 * len(labels))}
    release = fastdp.release_marginals(
        data, domain, fastdp.marginals(domain, 1), epsilon=40.0, delta=1e-6, fit="entropic",
        rng=fastdp.Randomness(seed=1),
    )  # fmt: skip
    assert release.synthetic is not None
    frame = release.synthetic.to_frame(200, fastdp.Randomness(seed=2), library=library)
    codes = release.synthetic.sample(200, fastdp.Randomness(seed=2), codes=True)[:, 0]
    assert encode(frame, domain)[0].tolist() == codes.tolist()
    assert (codes == labels.index(None)).any()
    nulls = frame["g"].null_count if library == "pyarrow" else frame["g"].isna().sum() if library == "pandas" else 0
    if library == "polars":
        nulls = frame["g"].null_count()
    assert nulls == np.count_nonzero(codes == labels.index(None))
    records = release.synthetic.sample(50, fastdp.Randomness(seed=2))
    assert [None if value is None else labels.index(value) for value in records[:, 0]] == [
        None if labels[code] is None else code for code in codes[:50]
    ]


def test_tables_queries_and_mechanisms_know_the_value() -> None:
    data = pd.DataFrame({"g": G * 300, "h": H * 300})
    release = fastdp.release_marginals(data, DOMAIN, fastdp.marginals(DOMAIN, 2), epsilon=50.0, delta=1e-6)
    assert release.answer(fastdp.Conjunction({"g": None})) == pytest.approx(0.5, abs=0.05)
    assert release.answer(fastdp.Product({"g": [None, "a"]})) == pytest.approx(0.75, abs=0.05)
    fitted = fastdp.mwem(data, DOMAIN, fastdp.marginals(DOMAIN, 2), epsilon=50.0, delta=1e-6, rounds=1)
    assert fitted.marginal(["g"])[2] == pytest.approx(0.5, abs=0.05)
    assert repr(DOMAIN) == "Domain(g=['a', 'b', None], h=[1, 2, None])  # 9 cells"
    assert DOMAIN.code("g", None) == 2
    with pytest.raises(ValueError, match=r"^g=<list of length 2>: labels must be distinct, and not NaN$"):
        Domain(g=["a", math.nan])
    for label in (pd.NA, pd.NaT):
        with pytest.raises(ValueError, match=r"labels must be distinct, and not NaN$"):
            Domain(g=["a", label])
