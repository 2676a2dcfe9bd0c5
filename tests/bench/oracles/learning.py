"""What the learning room's cases must have produced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _check_sums_of_bits(drawn: Any, parameters: Any) -> None:
    X, y, found = drawn
    assert 0.4 < y.mean() < 0.6
    assert (found.positives, found.negatives) == (y.sum(), len(y) - y.sum())
    for counts, of in ((found.of_positives, X[y]), (found.of_negatives, X[~y])):
        assert np.array_equal(counts[1::2], of.sum(axis=0))  # those who ask for a 0
        assert np.array_equal(counts[0::2], len(of) - of.sum(axis=0))


def _check_conjunction(drawn: Any, parameters: Any) -> None:
    """At most so many errors as the bound says, and that is fewer than the best constant makes."""
    X, y, h = drawn
    holds = np.ones(len(X), bool)
    for column, value in h.literals:
        holds &= X[:, column] == value
    assert (holds != y).mean() <= h.error_bound < min(y.mean(), 1 - y.mean())
    assert np.array_equal(holds, h.predict(X))
    if h.method == "exhaustive":
        assert len(h.literals) <= parameters["k"]


def _check_found(drawn: Any, parameters: Any) -> None:
    """No bound is known: the conjunction that fits, or errors on a hundredth of the records."""
    X, y, h = drawn
    assert (h.predict(X) != y).mean() <= 0.01 < h.error_bound
    assert h.excess_bound < 0.01
    assert len(h.literals) <= parameters["k"]


def _check_excess(drawn: Any, parameters: Any) -> None:
    """Whatever it is compared with, it is better than a constant, and errs on few of the records that it fits."""
    X, y, found = drawn
    assert found.error(X, y) < 0.05 < min(y.mean(), 1 - y.mean())
    assert found.excess_bound < 0.05


def _check_box(drawn: Any, parameters: Any) -> None:
    X, y, h = drawn
    low, high = (np.array(ends) for ends in zip(*h.intervals, strict=True))
    inside = np.all((low <= X) & (high >= X), axis=1)
    assert (inside != y).mean() <= h.error_bound < min(y.mean(), 1 - y.mean())


def _check_middle_rank(drawn: Any, parameters: Any) -> None:
    """Off by at most ln(2^64 / beta) / eta ranks, with beta = 1e-9 and eta = epsilon / 2."""
    values, point = drawn
    assert abs((values < point).sum() - len(values) / 2) <= (64 * math.log(2) + math.log(1e9)) * 2


def _check_rank(drawn: Any, parameters: Any) -> None:
    values, q, point = drawn
    assert abs((values < point).sum() - q * len(values)) <= (64 * math.log(2) + math.log(1e9)) * 2


def _check_many_ranks(drawn: Any, parameters: Any) -> None:
    """In order, and none off by more than seven levels of choices in a line of 2^104 cuts, which n bounds as well."""
    values, qs, points = drawn
    assert (np.diff(points) >= 0).all()
    levels, logarithm = 7, 104 * math.log(2) + math.log(1e9)
    for q, point in zip(qs, points, strict=True):
        assert abs((values < point).sum() - q * len(values)) <= min(len(values), 4 * levels**2 * logarithm)


def _check_in_between(drawn: Any, parameters: Any) -> None:
    """Of a line of which the values take a thousandth."""
    values, point = drawn
    assert int(values.max()) - int(values.min()) < 2**55
    assert values.min() <= point <= values.max()


def _check_packed(drawn: Any, parameters: Any) -> None:
    X, words = drawn
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").T
    assert np.array_equal(bits[: len(X)], X)
    assert not bits[len(X) :].any()


def _check_elimination(drawn: Any, parameters: Any) -> None:
    """A literal stays if and only if it holds for every positive record."""
    X, y, h = drawn
    kept = {(j, value) for j in range(X.shape[1]) for value in (0, 1) if (X[y, j] == value).all()}
    assert {(j, 0) for j in range(10)} & kept == set()
    assert set(h.literals) == kept >= {(j, 1) for j in range(10)}


def _check_share_of_errors(drawn: Any, parameters: Any) -> None:
    X, y, share = drawn
    wrong = sum(all(row[:10]) != label for row, label in zip(X.tolist(), y.tolist(), strict=True))
    assert share == wrong / len(X)
    assert 0.05 < share < 0.15


def _check_good_hypothesis(drawn: Any, parameters: Any) -> None:
    """Thresholds: those near to number 370 err about as little as it does."""
    predictions, y, chosen = drawn
    errors = np.array([np.mean(predictions.column(i) != y) for i in range(0, 1000, 10)])
    own = np.mean(predictions.column(chosen.index) != y)
    assert own - errors.min() <= chosen.excess_bound < np.median(errors) - errors.min()
    assert abs(chosen.index - 370) < 40


ORACLES: dict[str, Any] = {
    "a rank": _check_rank,
    "many ranks": _check_many_ranks,
    "a point in between": _check_in_between,
    "packed bits": _check_packed,
    "what no positive record falsifies": _check_elimination,
    "a share of errors": _check_share_of_errors,
    "sums of bits": _check_sums_of_bits,
    "a conjunction": _check_conjunction,
    "a conjunction that was searched for": _check_found,
    "a box": _check_box,
    "a box by errors": _check_excess,
    "a tree": _check_excess,
    "a decision list": _check_excess,
    "a middle rank": _check_middle_rank,
    "a good hypothesis": _check_good_hypothesis,
}
