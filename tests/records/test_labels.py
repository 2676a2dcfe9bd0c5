"""What records are labelled with (labels.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import DomainError
from fastdp.records.labels import label_array, positive_labels, with_labels
from fastdp.records.rows import Rows, column_entries

CLASSES = "0 and 1, or -1 and 1"
Y = np.array([1, 0, 0, 1, 1])


def given(y: Any) -> list[bool]:
    return positive_labels(label_array(y, 5, CLASSES)).tolist()


@pytest.mark.parametrize(
    "y",
    [
        Y, Y.astype(bool), Y.astype(np.uint8), Y.astype(float), 2 * Y - 1, (2.0 * Y - 1).astype(np.float32), Y.tolist(),
        tuple(Y.tolist()), Y[:, None], Y.astype(bool)[:, None], pd.Series(Y), pd.Series(Y.astype(bool)), pl.Series(Y),
        pl.Series(Y.astype(bool)), pa.array(Y.tolist()), np.repeat(Y, 2)[::2], Y.astype(">i4"), [1, 0, -1, 1, 1],
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)  # fmt: skip
def test_labels_of_every_kind(y: Any) -> None:
    assert given(y) == [True, False, False, True, True]


@pytest.mark.parametrize("bad", [2, 0.5, np.nan, np.inf, -2, 1 + 1e-9])
def test_other_labels_are_refused_and_not_shown(bad: float) -> None:
    y = Y.astype(float)
    y[2] = bad
    with pytest.raises(DomainError, match=r"^y: must be 1, and 0 or -1 where it is not; there are other labels$"):
        given(y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:4], "y: shape (4,): must be (5,), a label for each record"),
        (np.column_stack((Y, Y)), "y: shape (5, 2): must be (5,), a label for each record"),
        (1, "y: shape (): must be (5,), a label for each record"),
        (Y[None, :], "y: shape (1, 5): must be (5,), a label for each record"),
        (Y.astype(str), f"y: dtype <U21: must be {CLASSES}"),
        (["yes", "no", "no", "yes", "yes"], f"y: dtype <U3: must be {CLASSES}"),
        (Y.astype(object), f"y: dtype object: must be {CLASSES}"),
        ([1, None, 0, 0, 0], f"y: dtype object: must be {CLASSES}"),
    ],
)
def test_what_is_no_label_for_each_record_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        label_array(y, 5, CLASSES)


def test_a_label_means_the_same_whatever_the_others_are() -> None:
    """So that a record cannot change what another's label stands for."""
    for value, right in ((0, False), (-1, False), (1, True)):
        for others in (0, 1, -1):
            assert given([value, others, others, others, others])[0] is right


def test_labels_may_be_a_column_of_the_records(tmp_path: Path) -> None:
    table = pa.table({"a": [0, 1, 1, 0, 1], "label": Y, "b": [True, False, True, False, True]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    X = np.column_stack((table["a"], table["label"], table["b"]))
    for data, y in (
        (table, "label"), (table.to_pandas(), "label"), (pl.from_arrow(table), "label"),
        (tmp_path / "x.parquet", "label"), (table, 1), (X, 1), (X, np.int64(1)), (X.astype(float), 1),
    ):  # fmt: skip
        rows, labels = with_labels(data, y)
        assert isinstance(labels, Rows)
        assert (rows.width, labels.width) == (2, 1)
        assert rows.names in (None, ("a", "b"))
        assert positive_labels(column_entries(labels)).tolist() == [True, False, False, True, True]


def test_names_that_are_none_are_refused() -> None:
    frame = pd.DataFrame({"a": Y, "b": Y})
    for data, y, message in (
        (frame, "c", "y='c': must be labels, or the name of their column (column='c': must be one of 'a', 'b')"),
        (
            frame,
            2,
            "y=2: must be labels, or the name of their column (column=2: must be a name, or a position from 0 to 1)",
        ),
        (
            frame.to_numpy(),
            "a",
            "y='a': must be labels, or the name of their column "
            "(column='a': must be a position, as the columns have no names)",
        ),
        (frame[["a"]], "a", "y='a': must not be the only column"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            with_labels(data, y)


def test_a_column_of_words_or_with_gaps_holds_no_labels() -> None:
    for column in (["1", "0", "1"], ["yes", "no", "yes"], [1, None, 0]):
        for data in (pd.DataFrame({"a": [0, 1, 1], "y": column}), pl.DataFrame({"a": [0, 1, 1], "y": column})):
            with pytest.raises(DomainError, match=r"^(y: must be 1, and 0|column 'y': must not have missing entries)"):
                positive_labels(column_entries(with_labels(data, "y")[1]))


def test_labels_of_pandas_go_with_their_index() -> None:
    frame = pd.DataFrame({"a": Y}, index=[3, 1, 4, 0, 2])
    with pytest.raises(
        ValueError, match=r"^y: its index differs from that of X; y\.to_numpy\(\) matches them by position$"
    ):
        with_labels(frame, pd.Series(Y))
    rows, labels = with_labels(frame, pd.Series(Y, index=frame.index))
    assert rows.n == len(labels) == 5
    assert with_labels(frame, Y)[1] is Y
