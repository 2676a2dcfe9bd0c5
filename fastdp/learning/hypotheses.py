"""What a learner returns: a concept that predicts, and says what it is as a person would."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import Labelled, positives
from ..rows import Block, rows_of
from ..shown import Shown


class Hypothesis(Shown):
    """A concept over records of `width` columns. Dataclasses of it take repr=False and eq=False."""

    width: int
    names: tuple[str, ...] | None

    @abstractmethod
    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        """Which records of a block it holds for; columns[j] is where the block has column j."""

    @abstractmethod
    def _looks_at(self) -> Sequence[int]:
        """The columns that it depends on."""

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Which records it holds for: by the names of columns where there are names, otherwise by their positions."""
        rows = rows_of(X)
        used = list(self._looks_at())
        if rows.names is None or self.names is None:
            if rows.width != self.width:
                raise ValueError(f"X: {rows.width} columns: must have {self.width}, as the records learned from")
            at: list[str | int] = list(used)
        else:
            at = [self.names[j] for j in used]
        if not used:
            return self._holds(Block(0, rows.n, (), None, 0), ())
        chosen = rows.select(at)
        places = [0] * self.width
        for place, j in enumerate(used):
            places[j] = place
        parts: list[NDArray[np.bool_]] = chosen.merge(lambda block: [self._holds(block, places)], lambda a, b: a + b)
        return np.concatenate(parts)

    def error(self, X: Any, y: Any) -> float:
        """The share of records that it is wrong about. Not private: `error` of fresh or public records."""
        return error(self, X, y)


def error(h: Any, X: Any, y: Any) -> float:
    """The share of the records that a hypothesis is wrong about. Not private.

    h    has a method `predict`, or is a function, that takes records and says for each whether the concept holds

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.array([[0, 1], [1, 1], [1, 0]])
    >>> round(fastdp.error(lambda X: X[:, 0] == 1, X, [0, 1, 0]), 3)
    0.333
    """
    records = Labelled(X, y)
    labels = records.read_labels()
    if records.rows.width < rows_of(X).width:  # one of its columns is the label
        X = records.rows
    predicted = predictions_of(h, X)
    if predicted.shape != labels.shape:
        raise ValueError(f"h: {predicted.shape} predictions: must be {labels.shape}, one for each record")
    return float(np.mean(predicted != labels))


def predictions_of(h: Any, X: Any) -> NDArray[np.bool_]:
    """What a hypothesis, or a function, says of records."""
    predict = getattr(h, "predict", h)
    if not callable(predict):
        raise ValueError(f"h: type {type(h).__name__}: must be a function, or have a method predict")
    return positives(np.asarray(predict(X)))


def promised(error_bound: float | None, beta: float | None, concept: str) -> str:
    """The line about errors of a result."""
    if error_bound is None or beta is None:
        return "nothing promised"
    if error_bound >= 1:
        return "nothing promised: too few records for this method and epsilon"
    return f"at most {error_bound:.3g} with probability {1 - beta:g}, if some {concept} fits"
