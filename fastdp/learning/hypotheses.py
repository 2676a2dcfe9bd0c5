"""What a learner returns: a concept that predicts, and says what it is as a person would."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.labels import Labelled, label_vector, names_column, positives, with_labels
from ..records.rows import Block, PerRecord, Rows, column_values
from ..records.sources import rows_of
from ..support.columns import comes_from
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.results import Displayed


class Hypothesis(Displayed):
    """A concept over records of `width` columns. Dataclasses of it take repr=False and eq=False."""

    width: int
    names: tuple[str, ...] | None

    @abstractmethod
    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        """Which records of a block it holds for; columns[j] is where the block has column j."""

    @abstractmethod
    def _looks_at(self) -> Sequence[int]:
        """The columns that it depends on."""

    def name_of(self, column: int) -> str:
        """What a column is called: v1, v2, ... where there are no names."""
        return f"v{column + 1}" if self.names is None else self.names[column]

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Which records it holds for: by the names of columns where there are names, otherwise by their positions."""
        rows = rows_of(X)
        if not rows.gathers:
            raise ValueError("X: a Dask collection: map_partitions(h.predict), or map_blocks, predicts where it is")
        used, says = self._on(rows)
        parts: list[NDArray[np.bool_]] = used.merge(lambda block: [says(block)], lambda a, b: a + b)
        return np.concatenate(parts)

    def _on(self, rows: Rows) -> tuple[Rows, PerRecord]:
        """The columns of these records that it looks at, and what it says of a block of them."""
        used = list(self._looks_at())
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
        return rows.select(at), lambda block: self._holds(block, places)

    def error(self, X: Any, y: Any) -> float:
        """The share of records that it is wrong about. Not private: `error` of fresh or public records."""
        return error(self, X, y)


def error(h: Any, X: Any, y: Any) -> float:
    """The share of the records that a hypothesis is wrong about. Not private.

    h    has a method `predict`, or is a function, that takes records and says for each whether the concept holds
    y    labels of 0 and 1, or -1 and 1; or, for what fastdp has learned and for data frames, the name of a column of X

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.array([[0, 1], [1, 1], [1, 0]])
    >>> round(fastdp.error(lambda X: X[:, 0] == 1, X, [0, 1, 0]), 3)
    0.333
    """
    if isinstance(h, Hypothesis):
        records = Labelled(X, y)
        right, _ = records.read_labels()
        used, says = h._on(records.rows)
        return int(used.total(lambda block: [np.count_nonzero(says(block) != right(block))])[0]) / records.n
    if names_column(y):
        _, given = with_labels(X, y)
        labels, X = positives(column_values(given)), _without(X, y)
    else:
        labels = positives(label_vector(y))
        if not labels.size:
            raise ValueError("y: n=0 records: must be at least one")
    predicted = predictions_of(h, X, "h")
    if predicted.shape != labels.shape:
        raise ValueError(f"h: {predicted.shape} predictions: must be {labels.shape}, one for each record")
    return float(np.mean(predicted != labels))


def predictions_of(h: Any, X: Any, name: str) -> NDArray[np.bool_]:
    """What a hypothesis, or a function, says of records."""
    predict = getattr(h, "predict", h)
    if not callable(predict):
        raise ValueError(f"{name}: type {type(h).__name__}: must be a function, or have a method predict")
    return positives(np.asarray(predict(X)), f"{name}: predictions")


def _without(X: Any, column: Any) -> Any:
    """A data frame, or a mapping, without one of its columns, for functions that know these."""
    if isinstance(X, Mapping):
        return {name: values for name, values in X.items() if name != column}
    if isinstance(column, str) and comes_from(X, "pandas", "DataFrame"):
        return X.drop(columns=column)
    if isinstance(column, str) and comes_from(X, "polars", "DataFrame"):
        return X.drop(column)
    raise ValueError(f"y={column!r}: must be labels, as h takes X without them")


def promised(error_bound: float | None, beta: float | None, concept: str) -> str:
    """The line about errors of a result."""
    if error_bound is None or beta is None:
        return "nothing promised"
    if error_bound >= 1:
        return "nothing promised: too few records for this method and epsilon"
    return f"at most {error_bound:.3g} with probability {1 - beta:g}, if some {concept} fits"


def warn_if_vacuous(name: str, bound: float, n: int, of_what: str) -> None:
    """A promise of no more than that errors are at most all is no reason to spend: told before anything is read."""
    if bound >= n:
        warnings.warn(
            f"{name}: {n:,} records are too few for it to promise anything ({of_what}): bounds.{name}_n tells how many "
            "it takes",
            AccuracyWarning,
            stacklevel=levels_to_caller(),
        )
