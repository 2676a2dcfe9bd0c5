"""Conjunctions and boxes as classifiers, and the declared classes of all classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier

from fastdp import ApproxDP, Budget, DomainError, PrivacyWarning
from fastdp.sklearn import (
    ConjunctionClassifier,
    PrivateLogisticRegression,
)
from fastdp.sklearn.classifiers import cuts_of, rule_text
from fastdp.sklearn.grid import CellGrid
from tests.sklearn.cases import BOX, RNG, SQUARE, N, cases


def test_a_conjunction_reads_as_a_person_would_write_it() -> None:
    estimator, X, y = cases()[0]
    estimator.set_params(delta=1e-6, random_state=1).fit(X, y)
    assert estimator.rule_ == "x0 > 30 ∧ x1 ≤ 60"
    assert estimator.score(X, y) == 1.0
    assert estimator.predict(X).dtype == y.dtype


def test_columns_of_bits_need_no_thresholds() -> None:
    bits = np.random.default_rng(1).random((N, 6)) < 0.5
    y = bits[:, 1] & ~bits[:, 4]
    model = ConjunctionClassifier(delta=1e-6, max_literals=2, random_state=1)
    assert model.fit(bits, y).rule_ == "x1 ∧ ¬x4"
    assert model.fit(bits.astype(float), y).rule_ == "x1 ∧ ¬x4"
    with pytest.raises(DomainError, match="column 0: must hold 0 and 1 only"):
        model.fit(bits + 0.25, y)
    model.set_params(outside="clip").fit(bits + 0.25, y)
    assert model.rule_ == "x1 ∧ ¬x4"
    mixed = ConjunctionClassifier(delta=1e-6, thresholds=[None, [30, 50], 60], max_literals=2, random_state=1)
    X = np.column_stack([bits[:, 0], SQUARE[:, :2]])
    assert mixed.fit(X, bits[:, 0] & (SQUARE[:, 1] <= 60)).rule_ == "x0 ∧ x2 ≤ 60"
    assert mixed.cuts_ == [(0, None), (1, 30.0), (1, 50.0), (2, 60.0)]


def test_wrong_labels_are_allowed_for() -> None:
    draw = np.random.default_rng(2)
    bits = draw.random((50_000, 30)) < 0.5
    y = bits[:, :3].all(axis=1) ^ (draw.random(50_000) < 0.02)
    model = ConjunctionClassifier(max_literals=3, random_state=1).fit(bits, y)
    assert model.rule_ == "x0 ∧ x1 ∧ x2"
    assert model.concept_.excess_bound < 0.001
    peel = {"method": "peel", "delta": 1e-6}
    assert clone(model).set_params(**peel).fit(bits, y).score(bits, y) > 0.85, "guarded"
    assert clone(model).set_params(**peel, realizable=True).fit(bits, y).score(bits, y) < 0.5


def test_rules_leave_out_what_follows_from_the_rest() -> None:
    names = ["age", "smoker"]
    assert rule_text([], names) == "true"
    assert rule_text([((0, 30.0), True), ((0, 20.0), True), ((0, 50.0), False)], names) == "30 < age ≤ 50"
    assert rule_text([((1, None), False), ((0, 20.0), False), ((0, 30.0), False)], names) == "age ≤ 20 ∧ ¬smoker"
    assert rule_text([((0, 30.0), True), ((0, 30.0), False)], names) == "false"
    assert rule_text([((1, None), True), ((1, None), False)], names) == "false"


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [
        ([[1.0], [2.0], [3.0]], "3 entries: must be 2"),
        ({"height": 1}, "'height': must be the name of a column"),
        ("high", "must be finite numbers"),
        ([[], [1]], "must be finite numbers"),
        (np.nan, "must be finite numbers"),
        ([None, "high"], "must be finite numbers"),
        (object(), "must be finite numbers"),
    ],
)
def test_bad_thresholds(thresholds: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cuts_of(thresholds, ["age", "hours"])


def test_a_box_finds_its_sides() -> None:
    estimator, X, y = cases()[1]
    estimator.set_params(random_state=1).fit(X, y)
    assert estimator.score(X, y) > 0.95
    (low, _), (_, high), _ = estimator.intervals_
    assert abs(low - 30) < 3
    assert abs(high - 60) < 3
    assert estimator.intervals_[0, 1] > 99
    cells = CellGrid.of(BOX, 256, 3).cells(X, "raise")
    assert (estimator.concept_.predict(cells) == estimator.predict(X)).all()
    assert (estimator.predict([[1e9, -1e9, 50]]) == estimator.predict([[100, 0, 50]])).all()


@pytest.mark.parametrize(("lower", "upper", "count"), [(0, 1, 8), (-5.0, 5.0, 256), (0.1, 0.7, 10), (-1e300, 1e-3, 3)])
def test_cells_are_what_lies_between_their_edges(lower: float, upper: float, count: int) -> None:
    if abs(lower) > 2.0**400:
        with pytest.raises(ValueError, match="finite, lower < upper"):
            CellGrid.of((lower, upper), count, 1)
        return
    grid = CellGrid.of((lower, upper), count, 1)
    edges = np.array([float(grid.edges(np.array([c]))[0]) for c in range(count + 1)])
    X = np.concatenate([edges, np.nextafter(edges, -1e9), np.nextafter(edges, 1e9), RNG.uniform(lower, upper, 500)])
    X = X.clip(lower, upper)
    expected = np.minimum(np.searchsorted(edges, X, "right") - 1, count - 1)
    assert (grid.cells(X[:, None], "raise")[:, 0] == np.maximum(expected, 0)).all()


def test_classes_are_declared() -> None:
    estimator, X, y = cases()[2]
    words = np.array(["no", "yes"])[y]
    estimator.set_params(classes=("no", "yes"), delta=1e-6, random_state=0).fit(X, words)
    assert estimator.classes_.tolist() == ["no", "yes"]
    assert np.mean(estimator.predict(X) == words) > 0.97
    reverse = clone(estimator).set_params(classes=("yes", "no")).fit(X, words)
    assert np.mean(reverse.predict(X) == words) > 0.97
    budget = Budget(epsilon=1)
    for given in (words, y + 1, np.array(words, object), y + 0.5):
        with pytest.raises(DomainError, match=r"y: .*must be one of classes=\(0, 1\); there are other labels"):
            clone(estimator).set_params(classes=(0, 1), budget=budget).fit(X, given)
    assert not budget.releases
    assert clone(estimator).set_params(classes=(0, 1)).fit(X, y == 1).classes_.tolist() == [0, 1]


def test_one_label_alone_is_not_told_from_two() -> None:
    estimator, X, _ = cases()[2]
    model = estimator.set_params(delta=1e-6, random_state=0).fit(X, np.zeros(N, int))
    assert model.classes_.tolist() == [0, 1]
    assert model.predict(X).max() == 0


def test_observed_classes_say_that_they_were_read_off_the_data() -> None:
    estimator, X, y = cases()[2]
    estimator.set_params(classes="observed", delta=1e-6)
    with pytest.warns(PrivacyWarning, match="read off y"):
        estimator.fit(X, y + 4)
    assert estimator.classes_.tolist() == [4, 5]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        cases()[1][0].set_params(classes="observed").fit(X, np.arange(N) % 3)
    with pytest.raises(ValueError, match="holds one class"):
        clone(estimator).fit(X, np.zeros(N))


@pytest.mark.parametrize("classes", [(0,), (0, 1, 2), (1, 1), "seen", None, 7, (0, "1")])
def test_bad_classes(classes: Any) -> None:
    estimator, X, y = cases()[1]  # of two classes, and no more
    with pytest.raises(ValueError, match=r"classes=.*must be two different labels"):
        estimator.set_params(classes=classes).fit(X, y)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_missing_labels_are_refused_as_missing(missing: Any) -> None:
    estimator, X, y = cases()[2]
    model = clone(estimator)
    with pytest.raises(ValueError, match=r"^classes=.*: None and NaN are no labels: make missing ones a label"):
        model.set_params(classes=(missing, 1)).fit(X, y)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[3] = missing
    for classes in (("no", "yes"), "observed"):
        with pytest.raises(DomainError, match="Input y contains NaN or None: missing labels and targets are always"):
            model.set_params(classes=classes).fit(X, labels)


def test_more_classes_by_one_fit_for_each() -> None:
    _, X, _ = cases()[2]
    y = np.argmax(X, axis=1)
    with Budget(epsilon=3, delta=1e-5) as budget:
        each = PrivateLogisticRegression(1.0, 1e-6, bounds=BOX, random_state=0)
        model = OneVsRestClassifier(each).fit(X, y)
    assert model.score(X, y) > 0.9
    assert budget.spent == ApproxDP(3.0, 3e-6)
