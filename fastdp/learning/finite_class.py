"""Learning from any finite class of hypotheses: the exponential mechanism over the errors of each of them.

The class must be fixed without looking at the records. It may be an array of predictions, or a generator of hypotheses,
of which only the one that leads is kept. finite_class.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.gumbel_max import GumbelState
from ..mechanisms.scores import tops_of
from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..records.bit_words import all_bits, pack_flags
from ..records.column_names import called
from ..records.engines import is_collection
from ..records.labels import Labelled, label_vector, positive_labels
from ..records.rows import Block, PerRecord, Rows
from ..records.sources import rows_of
from ..records.subsets import held
from ..support import parameters
from ..support.boundary import boundary
from ..support.calls import ALL
from ..support.checks import are_nested, plain_array, public_count
from ..support.columns import Entries, has
from ..support.errors import DomainError
from ..support.parameters import Outside
from ..support.progress import Progress, Report, reporting
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.threads import run_chunks
from .hypotheses import predicted_bits, predictions_of
from .privacy_parameters import PrivacyParameters

Errors = NDArray[np.int64]
_STREAMED = 1024  # hypotheses that are drawn from together
_CHUNK = 2**22  # predictions that are worth a thread


@public_as("fastdp.learning")
@dataclass(frozen=True, eq=False, repr=False)
class Chosen(Displayed, Accounted):
    """Which hypothesis of a class was chosen.

    Parameters
    ----------
    index : int
        Its number, counted from 0.
    hypothesis : object or None
        Itself, where the class was given as hypotheses; otherwise None.
    candidates : int
        How many there were.
    guarantee : Guarantee
        The privacy guarantee of the choice.
    excess_bound : float
        With probability 1 - beta its share of errors exceeds the least of the class by at most this.
    beta : float
        The probability with which that may fail.
    """

    index: int
    hypothesis: Any
    candidates: int
    guarantee: Guarantee
    excess_bound: float
    beta: float

    @boundary
    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Predict with the chosen hypothesis; for classes that were given as hypotheses.

        Parameters
        ----------
        X : array_like
            Records, as the hypotheses take them.

        Returns
        -------
        numpy.ndarray of bool
            One entry for each record.

        Raises
        ------
        ValueError
            If the class was given as predictions.
        """
        if self.hypothesis is None:
            raise ValueError("predict: the class was given as predictions; `.index` is the number of the chosen one")
        return predictions_of(self.hypothesis, X, "hypothesis")

    def _display(self) -> DisplayLines:
        name = f"number {self.index} of {self.candidates:,}"
        return [
            ("hypothesis", name if self.hypothesis is None else f"{name}: {self.hypothesis}"),
            ("error", f"at most {self.excess_bound:.3g} above the least, with probability {1 - self.beta:g}"),
            ("guarantee", str(self.guarantee)),
        ]


@boundary
def learn_from_class(
    predictions: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    X: Any = None,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Chosen:
    """Choose a hypothesis of a finite class by how many records it is wrong about, privately.

    Parameters
    ----------
    predictions : array_like of {0, 1}, or iterable
        The prediction of each hypothesis for each record: an array of shape (hypotheses, records), or
        `fastdp.pack(predictions.T)`, ten times as fast, for several calls; or a Dask array of that shape, or a data
        frame with a column for each hypothesis. Or any iterable, which is streamed: of vectors of predictions, or with
        X of hypotheses, which have a method `predict` or are functions of X. The class must be fixed without looking at
        the records.
    y : array_like
        Labels of 0 and 1, or -1 and 1.
    epsilon : float > 0
        The privacy parameter of the choice.
    delta : float in [0, 1)
        0 for pure differential privacy.
    X : array_like, optional
        The records, for hypotheses that are yet to predict.
    beta : float in (0, 1)
        The probability with which the error bound of the result may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place in `.excess_bound`.
    outside : {"raise", "clip"}
        What becomes of predictions and labels other than 0 and 1: a DomainError, or the nearest of them, and 0 for what
        is missing or no number.
    progress : bool or callable, optional
        True for a bar; or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Chosen
        The number of the hypothesis, itself where it was given, the guarantee and the error bound.

    Raises
    ------
    ValueError
        For parameters, shapes and types that are not as above.
    DomainError
        For labels and predictions that are other numbers, unless they are clipped. Nothing is charged; of a stream, up
        to its first 1,024 hypotheses.

    Notes
    -----
    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP; with a delta (epsilon, delta)-DP
    Proof        finite_class.md
    Accuracy     `.excess_bound` of the result; `bounds.learn_from_class` and `bounds.learn_from_class_n` beforehand
    Cost         0.12 ns a prediction, 0.01 where they are packed; and what hypotheses take to predict
    Not covered  a class that depends on the records; a `predict` that reads other records too (one that standardises X,
                 say); what hypotheses can learn from the time or from how long they are kept

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> x = np.random.default_rng(0).random(50_000)
    >>> thresholds = np.linspace(0, 1, 101)
    >>> chosen = fastdp.learn_from_class(x > thresholds[:, None], x > 0.37, epsilon=1.0)
    >>> chosen.index
    37
    >>> class_ = ((lambda x, t=t: x > t) for t in thresholds)
    >>> fastdp.learn_from_class(class_, x > 0.37, X=x, epsilon=1.0).index
    37
    """
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    records = public_count(records, neighbors)
    parameters.outside(outside)
    class_ = _class_of(predictions, y, X, outside, may_be_empty=neighbors == "add-remove")
    n = records or class_.n
    eta = privacy.eta(1)
    guarantee = privacy.guarantee_of(1, eta)
    with ChargedKeys("learn_from_class", guarantee, privacy.row(), budget, rng) as keys:
        leader = _Leader(eta, keys)
        with reporting(progress, "learning") as report:
            if class_.errors is not None:
                report(0, 1, "hypotheses")
                errors = class_.errors()
                leader.offer(errors, [None] * errors.size)
                report(1, 1, "")
            else:
                assert class_.labels is not None
                labels = positive_labels(class_.labels, outside)
                _stream(predictions, labels, X, outside, leader, report)
        index, hypothesis = leader.winner()
    bound = min(1.0, excess(privacy, leader.seen) / n)
    return Chosen(index, hypothesis, leader.seen, keys.stating(guarantee), bound, privacy.beta)


def excess(privacy: PrivacyParameters, candidates: int) -> float:
    """How many errors more than the least, but with probability beta: finite_class.md, theorem 2."""
    return (log(candidates) - log(privacy.beta)) / privacy.eta(1)


class _Leader:
    """Gumbel-max over hypotheses that come in parts, which keeps the ones that may be chosen.

    The charge is final when the first part has been counted.
    """

    def __init__(self, eta: float, keys: ChargedKeys) -> None:
        self._state, self._keys, self.seen = GumbelState(keys.take_ahead(), eta, 1), keys, 0
        self._eta = eta
        self._held: dict[int, Any] = {}
        self._state.admit(np.dtype(np.int64))

    def offer(self, errors: Errors, hypotheses: list[Any]) -> None:
        scores = self._keys.reads(-errors, self._eta)
        self._keys.commit()
        self._state.add(scores, self.seen, *tops_of(scores))
        known = {**self._held, **dict(enumerate(hypotheses, self.seen))}
        self._held = {i: known[i] for i in self._state.held.indices.tolist()}
        self.seen += errors.size

    def winner(self) -> tuple[int, Any]:
        index = int(self._state.ranking()[0])
        return index, self._held[index]


def _is_stream(predictions: Any) -> bool:
    """Whether hypotheses come one by one; a list of vectors is an array."""
    if isinstance(predictions, Rows | np.ndarray) or has(predictions, "columns"):
        return False
    if isinstance(predictions, list | tuple):
        return any(callable(one) or has(one, "predict") for one in predictions)
    if isinstance(predictions, Mapping):
        return False
    if not isinstance(predictions, Iterable):
        raise ValueError(f"predictions: type {type(predictions).__name__}: must be an array or an iterable")
    return True


class _Class(NamedTuple):
    """How many records there are, their labels, and how many of them each hypothesis is wrong about.

    labels    None where they are not in this process
    errors    None where hypotheses come one by one
    """

    n: int
    labels: Entries | None
    errors: Callable[[], Errors] | None


def _class_of(predictions: Any, y: Any, X: Any, outside: Outside, *, may_be_empty: bool) -> _Class:
    predictions = held(predictions)
    are_rows = isinstance(predictions, Rows)
    if is_collection(predictions) or (are_rows and (predictions.which != ALL or not predictions.gathers)):
        _no_records(X)
        # an array has a hypothesis a row, as one of numpy's
        by_record = (
            predictions
            if isinstance(predictions, Rows) or has(predictions, "columns")
            else getattr(predictions, "T", predictions)
        )
        examples = Labelled(by_record, y, outside, may_be_empty=may_be_empty)
        return _Class(examples.n, None, lambda: _errors_of_rows(examples.rows, examples.read_labels()[0], outside))
    given = label_vector(y, outside)
    labels = given.values
    if not labels.size and not may_be_empty:
        raise ValueError("y: n=0 records: must be at least one")
    if _is_stream(predictions):
        return _Class(labels.size, given, None)
    table = _table(predictions, labels.size, X, outside)
    if isinstance(table, Rows):
        read = partial(positive_labels, outside=outside)
        return _Class(
            labels.size, given, lambda: _errors_of_rows(table, table.label_reader(given, read, np.bool_), outside)
        )
    return _Class(labels.size, given, lambda: _errors(table, positive_labels(given, outside), outside))


def _no_records(X: Any) -> None:
    if X is not None:
        raise ValueError("X: must be None for an array of predictions; it is for hypotheses that are yet to predict")


def _table(predictions: Any, n: int, X: Any, outside: Outside) -> Rows | NDArray[Any]:
    """Predictions as records of bits with a column for each hypothesis, or as an array of hypotheses."""
    _no_records(X)
    if not isinstance(predictions, Rows | np.ndarray | list | tuple):
        with called("predictions"):
            predictions = rows_of(predictions)
    if isinstance(predictions, Rows):
        if predictions.n != n:
            raise ValueError(f"predictions: of {predictions.n} records: must be of {n}, as y has labels")
        return predictions
    if outside == "clip" and _is_list_of_lists(predictions, n):  # numpy would make one type of all entries
        return np.array([predicted_bits(one, "predictions", outside) for one in predictions])
    array = plain_array("predictions", predictions, "an array, a hypothesis a row", error=DomainError)
    if array.ndim != 2 or not len(array) or array.shape[1] != n:
        wrong = DomainError if are_nested(predictions, array, 2) else ValueError
        raise wrong(
            f"predictions: shape {array.shape}: must be (hypotheses, {n}), as y has {n} labels, with at "
            "least one hypothesis"
        )
    return array


def _is_list_of_lists(predictions: Any, n: int) -> bool:
    if not isinstance(predictions, list | tuple) or not predictions:
        return False
    return all(isinstance(one, list | tuple) and len(one) == n for one in predictions)


def _errors(predictions: NDArray[Any], positive_: NDArray[np.bool_], outside: Outside) -> Errors:
    """Hypothesis by hypothesis: comparing bytes is as fast as packing them."""

    def some(start: int, stop: int) -> list[int]:
        return [_wrong(one, positive_, outside) for one in predictions[start:stop]]

    chunk = max(1, _CHUNK // max(1, positive_.size))
    return np.array([count for part in run_chunks(some, len(predictions), chunk) for count in part], np.int64)


def _wrong(predicted: Any, positive_: NDArray[np.bool_], outside: Outside) -> int:
    found = predicted_bits(predicted, "predictions", outside)
    if found.shape != positive_.shape:
        raise ValueError(f"predictions: shape {found.shape}: must be {positive_.shape}, one for each label")
    return int(np.count_nonzero(found != positive_))


def _errors_of_rows(table: Rows, positive_: PerRecord, outside: Outside) -> Errors:
    def statistic(block: Block) -> Errors:
        from ..kernels.literals import count_among_into

        some = positive_(block)
        labels = pack_flags(some)
        counts = np.zeros((2, block.width), np.int64)
        count_among_into(block.bits(outside), labels, all_bits(block.n) ^ labels, counts)
        return np.asarray(np.count_nonzero(some) - counts[0] + counts[1])

    return table.total(statistic)


def _stream(
    class_: Iterable[Any], positive_: NDArray[np.bool_], X: Any, outside: Outside, leader: _Leader, report: Report
) -> None:
    errors: list[int] = []
    hypotheses: list[Any] = []

    def flush() -> None:
        report(leader.seen, leader.seen + len(errors), f"hypothesis {leader.seen + len(errors):,}")
        leader.offer(np.array(errors, np.int64), hypotheses)
        errors.clear()
        hypotheses.clear()

    for one in class_:
        errors.append(
            _wrong(
                one if X is None else predictions_of(one, X, f"hypothesis {leader.seen + len(errors)}", outside),
                positive_,
                outside,
            )
        )
        hypotheses.append(None if X is None else one)
        if len(errors) == _STREAMED:
            flush()
    if errors:
        flush()
    if not leader.seen:
        raise ValueError("predictions: must hold at least one hypothesis")
    report(leader.seen, leader.seen, "")
