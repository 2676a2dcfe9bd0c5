"""What a learner returns: a hypothesis that predicts, and that prints as a person would write it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..records.column_names import called
from ..records.labels import Labelled, label_vector, names_column, positive_labels, positives, with_labels
from ..records.outside_domain import bits_of
from ..records.rows import Block, PerRecord, Rows, column_entries
from ..records.sources import rows_of
from ..support.boundary import boundary
from ..support.checks import integer, plain_array
from ..support.columns import Entries, NumpyColumn, comes_from, has, objects
from ..support.errors import DomainError, warn_of_accuracy
from ..support.parameters import Outside
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.shown import shown


@public_as("fastdp.learning")
class Hypothesis(Displayed):
    """A hypothesis over records of `width` columns. Dataclasses of it take repr=False and eq=False."""

    width: int
    names: tuple[str, ...] | None

    @abstractmethod
    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        """Which records of a block it holds for; columns[j] is where the block has column j."""

    @abstractmethod
    def _columns_read(self) -> Sequence[int]:
        """The columns that it depends on."""

    def name_of(self, column: int) -> str:
        """The name of a column; v1, v2, ... where there are no names.

        Parameters
        ----------
        column : int
            Its position, counted from 0.

        Returns
        -------
        str
        """
        column = integer("column", column, least=0, most=self.width - 1)
        return f"v{column + 1}" if self.names is None else self.names[column]

    @boundary
    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Predict for each record whether the hypothesis holds.

        Parameters
        ----------
        X : array_like
            Records of the columns that it was learned from; found by their names where there are names, and by their
            positions otherwise.

        Returns
        -------
        numpy.ndarray of bool
            One entry for each record.

        Raises
        ------
        ValueError
            For another number of columns, and for a Dask collection.
        """
        with called("X"):
            rows = rows_of(X)
        if not rows.gathers:
            raise ValueError("X: a Dask collection: map_partitions(h.predict), or map_blocks, predicts where it is")
        used, holds = self._on(rows)
        parts: list[NDArray[np.bool_]] = used.merge(lambda block: [holds(block)], lambda a, b: a + b)
        return np.concatenate(parts)

    def _on(self, rows: Rows) -> tuple[Rows, PerRecord]:
        """The columns of these records that it reads, and its predictions for a block of them."""
        used = list(self._columns_read())
        if rows.names is None or self.names is None:
            if rows.width != self.width:
                raise ValueError(f"X: {rows.width} columns: must have {self.width}, as the records learned from")
            at: list[str | int] = list(used)
        else:
            at = [self.names[j] for j in used]
        if not used:
            return rows, lambda block: self._holds(Block(0, block.n, (), None, 0), ())
        places = [0] * self.width
        for place, j in enumerate(used):
            places[j] = place
        with called("X"):
            selected = rows.select(at)
        return selected, lambda block: self._holds(block, places)

    @boundary
    def error(self, X: Any, y: Any) -> float:
        """Compute the share of records that it is wrong about. Not private: for fresh or public records.

        Parameters
        ----------
        X : array_like
            Records, as for `predict`; a Dask collection too.
        y : array_like or str
            Labels of 0 and 1, or -1 and 1, or the name of a column of X.

        Returns
        -------
        float
        """
        return error(self, X, y)


@boundary
def error(h: Any, X: Any, y: Any) -> float:
    """Compute the share of the records that a hypothesis is wrong about. Not private.

    Parameters
    ----------
    h : object or callable
        A hypothesis: it has a method `predict`, or is a function, that takes records and predicts a label for each.
    X : array_like
        Records, as h takes them.
    y : array_like or str
        Labels of 0 and 1, or -1 and 1; or, for what fastdp has learned and for data frames, the name of a column of X.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        Where there are no records, or not a prediction for each label.
    DomainError
        For labels and predictions that are other numbers.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.array([[0, 1], [1, 1], [1, 0]])
    >>> round(fastdp.error(lambda X: X[:, 0] == 1, X, [0, 1, 0]), 3)
    0.333
    """
    if isinstance(h, Hypothesis):
        records = Labelled(X, y)
        right, _ = records.read_labels()
        used, holds = h._on(records.rows)
        return int(used.total(lambda block: [np.count_nonzero(holds(block) != right(block))])[0]) / records.n
    if names_column(y):
        _, given = with_labels(X, y)
        labels, X = positive_labels(column_entries(given)), _without(X, y)
    else:
        labels = positive_labels(label_vector(y))
        if not labels.size:
            raise ValueError("y: n=0 records: must be at least one")
    predicted = predictions_of(h, X, "h")
    if predicted.shape != labels.shape:
        raise ValueError(f"h: {predicted.shape} predictions: must be {labels.shape}, one for each record")
    return float(np.mean(predicted != labels))


def predictions_of(h: Any, X: Any, name: str, outside: Outside = "raise") -> NDArray[np.bool_]:
    """The predictions of a hypothesis, or of a function."""
    predict = h.predict if has(h, "predict") else h
    if not callable(predict):
        raise ValueError(f"{name}: type {type(h).__name__}: must be a function, or have a method predict")
    return predicted_bits(predict(X), f"{name}: predictions", outside)


def predicted_bits(predicted: Any, name: str, outside: Outside) -> NDArray[np.bool_]:
    """Predictions of 0 and 1."""
    if outside == "clip" and isinstance(predicted, list | tuple):
        return bits_of(_entries_of_list(name, predicted))
    found = plain_array(name, predicted, "an array, one for each record", error=DomainError)
    if outside == "clip" and found.dtype.kind in "biufO":
        return bits_of(Entries(found, None, name))
    return positives(found, name)


def _entries_of_list(name: str, predicted: Sequence[Any]) -> Entries:
    """One for each record, whatever it is."""
    if all(isinstance(each, list | tuple | np.ndarray) for each in predicted):
        return Entries(objects(predicted), None, name)
    return NumpyColumn(name, predicted).entries(0, len(predicted))


def _without(X: Any, column: Any) -> Any:
    """A data frame, or a mapping, without one of its columns, for functions that do not expect it."""
    if isinstance(X, Mapping):
        return {name: values for name, values in X.items() if name != column}
    if isinstance(column, str) and comes_from(X, "pandas", "DataFrame"):
        return X.drop(columns=column)
    if isinstance(column, str) and comes_from(X, "polars", "DataFrame"):
        return X.drop(column)
    raise ValueError(f"y={shown(column)}: must be labels, as h takes X without them")


def number_text(value: int | float) -> str:
    """Integers in full, others to six digits."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if abs(value) < 2**53 and value == int(value) else f"{value:.6g}"


def error_line(error_bound: float | None, beta: float | None, kind: str, agnostic: bool) -> str:
    """The line about errors of a result; `agnostic` where the bound holds also if no hypothesis fits."""
    if error_bound is None or beta is None:
        return "no error bound"
    if error_bound >= 1:
        return "no error bound: too few records for this method and epsilon"
    probability = f"with probability {1 - beta:g}"
    if agnostic:
        return f"at most {error_bound:.3g} above the least of any {kind}, {probability}"
    return f"at most {error_bound:.3g} {probability}, if some {kind} fits"


class Bounded(Protocol):
    """A result with error bounds: methods.py, ErrorBounds."""

    @property
    def error_bound(self) -> float | None: ...
    @property
    def excess_bound(self) -> float | None: ...
    @property
    def compared_with(self) -> str | None: ...
    @property
    def beta(self) -> float | None: ...


def error_lines(result: Bounded, kind: str) -> DisplayLines:
    """The lines about errors of a result: what holds for any labels, and what rests on a hypothesis that fits."""
    error, excess, compared, beta = result.error_bound, result.excess_bound, result.compared_with, result.beta
    if compared == "class":
        return [("error", error_line(error, beta, kind, True))]
    lines = (
        []
        if error is None or (error >= 1 and excess is not None)
        else [("error", error_line(error, beta, kind, False))]
    )
    if excess is not None and beta is not None:
        least = f"at most {excess:.3g} above the least of true, false and the parts of what was found"
        lines.append(("any labels", f"{least}, with probability {1 - beta:g}"))
    return lines


def warn_if_vacuous(name: str, bound: float, n: int, parameters: str) -> None:
    """An error bound of all records is no reason to pay for a release: warned of before anything is read."""
    if bound >= n:
        warn_of_accuracy(
            f"{name}: {n:,} records are too few for an error bound below 1 ({parameters}): bounds.{name}_n computes "
            "how many it takes"
        )
