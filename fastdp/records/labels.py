"""Records with their labels, which may be one of their own columns.

The class of a label depends on that label alone, so no record changes the class of another.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.calls import ALL
from ..support.checks import are_nested, is_due_to_entries, numbers_array, plain_integer
from ..support.columns import Entries, NumpyColumn, comes_from, library_column
from ..support.errors import DomainError
from ..support.parameters import Outside
from ..support.shown import shown, type_of
from .column_names import called, position_of
from .engines import is_collection
from .outside_domain import numbers_or_nan
from .rows import PerRecord, Rows
from .sources import column_rows, rows_of
from .subsets import held

_CLASSES = "0 and 1, or -1 and 1"


def with_labels(X: Any, y: Any) -> tuple[Rows, Any]:
    """The records, and their labels: as they were given, or as rows of one column for a column of a collection."""
    with called("X"):
        rows = rows_of(X)
    if isinstance(y := held(y), Rows):
        if y.which == ALL or y.which != rows.which:
            raise ValueError(f"y: type {type_of(y)}: must be an array, a label for each record")
        return rows.attach_labels(y)
    if names_column(y):
        try:
            at = position_of(y, rows.names, rows.width)
        except ValueError as error:
            raise ValueError(f"y={shown(y)}: must be labels, or the name of their column ({error})") from None
        if rows.width == 1:
            raise ValueError(f"y={shown(y)}: must not be the only column")
        return rows.select([j for j in range(rows.width) if j != at]).attach_labels(rows.select([at]))
    if rows.which != ALL and y is not None:  # the shape that an array must have would tell how many records there are
        raise ValueError(f"y: type {type_of(y)}: must be a column of the same {_noun(rows)} as X, or its name")
    if comes_from(X, "pandas", "DataFrame") and comes_from(y, "pandas", "Series") and not X.index.equals(y.index):
        raise ValueError("y: its index differs from that of X; y.to_numpy() matches them by position")
    return (rows, None) if y is None else rows.attach_labels(column_rows("y", y) if is_collection(y) else y)


def _noun(rows: Rows) -> str:
    return "part" if rows.which.part else "rows"


def names_column(y: Any) -> bool:
    """Whether this is the name or the position of the column of labels."""
    return isinstance(y, str) or plain_integer(y) is not None


class Labelled:
    """n records of d columns, each labelled 1 or not.

    may_be_empty    True where the number of records is private, so that no error may depend on it

    Raises    ValueError for what has the wrong shape or type, before a record is read; DomainError when labels are read
    """

    def __init__(self, X: Any, y: Any, outside: Outside = "raise", *, may_be_empty: bool = False) -> None:
        self.outside = outside
        self.rows, labels = with_labels(X, y)
        self.n, self.d, self.names = self.rows.n, self.rows.width, self.rows.names
        if not self.n and not may_be_empty:
            raise ValueError("X: n=0 records: must be at least one")
        if labels is None:
            raise ValueError("y=None: must be the labels of the records, or the name of their column")
        self.given = labels if isinstance(labels, Rows) else label_array(labels, self.n, _CLASSES, outside)

    def read_labels(self) -> tuple[PerRecord, int]:
        """Which records are labelled 1, as a function of a block, and how many."""
        labels = self.rows.label_reader(self.given, partial(positive_labels, outside=self.outside), np.bool_)
        return labels, int(self.rows.total(lambda block: [np.count_nonzero(labels(block))])[0])


def label_array(y: Any, n: int, classes: str, outside: Outside = "raise") -> Entries:
    """One number for each of n records, whose values are not read; `classes` is what errors ask for."""
    return _of_shape(y, _entries(y, classes, outside), n)


def _of_shape(y: Any, labels: Entries, n: int) -> Entries:
    if labels.values.shape != (n,):
        wrong = DomainError if are_nested(y, labels.values, 1) else ValueError
        raise wrong(f"y: shape {labels.values.shape}: must be ({n},), a label for each record")
    return labels


def _entries(y: Any, classes: str, outside: Outside) -> Entries:
    """Labels, in the memory of their library where types allow; to be clipped, as floats, with NaN for what is none."""
    column = None if isinstance(y, np.ndarray | list | tuple) else library_column("y", y)
    if (
        outside == "clip"
        and isinstance(y, list | tuple)
        and all(isinstance(each, list) and len(each) == 1 for each in y)
    ):
        y = [each[0] for each in y]  # a column: each of its entries is taken for itself
    if outside == "clip" and isinstance(y, list | tuple) and not all(isinstance(each, list | tuple) for each in y):
        column = NumpyColumn("y", y)
    if column is not None and outside == "clip":
        return Entries(numbers_or_nan(column.entries(0, len(column))), None, "y")
    plain = _plain(y) if column is None else column.values(0, len(column))
    if plain.dtype.kind == "O" and outside == "clip":
        plain = numbers_or_nan(Entries(plain.reshape(-1), None, "y")).reshape(plain.shape)
    if plain.dtype.kind not in "biuf" or plain.dtype.itemsize > 8:
        wrong = DomainError if is_due_to_entries(y, plain) else ValueError
        raise wrong(f"y: dtype {plain.dtype}: must be {classes}")
    array = plain if plain.dtype == np.bool_ else numbers_array("y", plain)
    return Entries(array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array, None, "y")


def _plain(y: Any) -> NDArray[Any]:
    """As an array."""
    try:
        return np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    except Exception:  # ragged lists, and classes that are not ours
        raise DomainError(f"y: type {type_of(y)}: must be an array, a label for each record") from None


def label_vector(y: Any, outside: Outside = "raise") -> Entries:
    """Labels without records, whose values are not read."""
    if y is None or isinstance(y, str):
        raise ValueError(f"y={shown(y)}: must be the labels of the records")
    if is_collection(y):
        raise ValueError("y: a Dask collection: must be an array here")
    given = _entries(y, _CLASSES, outside)
    return _of_shape(y, given, given.values.size)


def positive_labels(labels: Entries, outside: Outside = "raise") -> NDArray[np.bool_]:
    """Which labels are 1; DomainError unless the others are 0 or -1, or whatever they are if they are to be clipped."""
    if outside == "clip" and (labels.values.dtype != np.bool_ or labels.missing is not None):
        return np.asarray(numbers_or_nan(labels) == 1)
    return positives(labels.complete())


def positives(labels: NDArray[Any], name: str = "y") -> NDArray[np.bool_]:
    """Which labels are 1; DomainError unless the others are 0 or -1."""
    if labels.dtype == np.bool_:
        return labels
    ones = np.asarray(labels == 1)
    if not (ones | (labels == 0) | (labels == -1)).all():
        raise DomainError(f"{name}: must be 1, and 0 or -1 where it is not; there are other labels")
    return ones
