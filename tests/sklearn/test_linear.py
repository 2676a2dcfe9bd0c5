"""Linear and logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression

from fastdp import DomainError
from fastdp.sklearn import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
)
from tests.sklearn.cases import BOX, EXACT, RNG, N, cases


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data_norm", [None, 0.9])
def test_linear_regression_is_least_squares_when_epsilon_is_large(fit_intercept: bool, data_norm: Any) -> None:
    X = RNG.uniform(-3, 3, size=(5_000, 2)) * [1.0, 0.1] + [1.0, 0.0]
    y = X @ [0.5, -2.0] + (3.0 if fit_intercept else 0.0)
    bounds = None if data_norm else ([-2, -0.3], [4, 0.3])
    model = PrivateLinearRegression(
        1e6, bounds=bounds, data_norm=data_norm and 4.1, y_bounds=(-8, 12), radius=20.0, fit_intercept=fit_intercept,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    exact = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert np.abs(model.coef_ - exact.coef_).max() < 0.02
    assert abs(model.intercept_ - exact.intercept_) < 0.02
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.05
    assert model.n_iter_ == 1


def test_logistic_regression_separates_as_the_exact_one_does() -> None:
    _, X, y = cases()[2]
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=BOX, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    exact = LogisticRegression(solver="newton-cholesky").fit(X, y).coef_[0]
    assert model.coef_[0] @ exact / np.linalg.norm(model.coef_) / np.linalg.norm(exact) > 0.98
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert 1 < model.n_iter_ <= 1000
    z = np.column_stack([(X - 50) / 50 / np.sqrt(3), np.ones(N)])  # what was fitted, as `bounds` scale it
    assert np.allclose(model.decision_function(X), z @ model.result_.w)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.allclose(np.exp(model.predict_log_proba(X)), probabilities)


WORDS = ("low", "middle", "high")


def test_logistic_regression_of_three_classes() -> None:
    """Against scikit-learn's own, and one by one against what the loss says."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 100, (20_000, 3))
    codes = (X[:, 0] + X[:, 1] > 70).astype(int) + (X[:, 0] + X[:, 1] > 130)
    y = np.array(WORDS)[codes]
    how: dict[str, Any] = {"delta": 1e-6, "bounds": BOX, "classes": WORDS, "random_state": 0, "radius": 40.0}
    model = PrivateLogisticRegression(1.0, **how).fit(X, y)
    assert model.classes_.tolist() == list(WORDS)
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (20_000, 3)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()
    assert np.allclose(np.exp(model.predict_log_proba(X)), probabilities)
    z = np.column_stack([(X - 50) / 50 / np.sqrt(3), np.ones(len(X))])
    assert np.allclose(model.decision_function(X), z @ model.result_.w.reshape(3, 4).T)
    assert model.result_.method == "descent"
    turned = PrivateLogisticRegression(1.0, **{**how, "classes": WORDS[::-1]}).fit(X, y)
    assert turned.classes_.tolist() == list(WORDS[::-1])
    assert (turned.predict(X) == model.predict(X)).mean() > 0.95
    two = PrivateLogisticRegression(1.0, **{**how, "classes": WORDS[:2]})
    with pytest.raises(DomainError, match=r"must be one of classes=\('low', 'middle'\); there are other labels$"):
        two.fit(X, y)
    absent = PrivateLogisticRegression(1.0, **{**how, "classes": (*WORDS, "never")}).fit(X, y)
    assert "never" not in absent.predict(X), "a class that does not occur is no error"


@pytest.mark.parametrize("classes", [(0,), (), (0, 1, 1), (0, "a", 1), (0, 1, True), 7, ([0], [1], [2]), "all"])
def test_classes_that_are_no_labels(classes: Any) -> None:
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=BOX, classes=classes)
    with pytest.raises(ValueError, match=r"^classes=.*: must be two different labels or more"):
        model.fit(np.full((9, 3), 50.0), np.zeros(9, int))


def test_logistic_regression_on_real_records() -> None:
    X, y = load_breast_cancer(return_X_y=True)  # 569 records of 30 columns: few
    bounds = np.zeros(30), 1.1 * X.max(axis=0)
    scores = []
    for seed in range(5):
        model = PrivateLogisticRegression(
            2.0, 1e-5, bounds=bounds, data_norm=3.0, outside="clip", random_state=seed
        ).fit(X, y)
        scores.append(model.score(X, y))
    assert np.mean(scores) > 0.8  # 0.63 is the share of the larger class


def test_rows_beyond_the_norm_are_refused_or_brought_back() -> None:
    X = np.array([[3.0, 4.0], [0.3, 0.4]] * 50)
    y = [0, 1] * 50
    model = PrivateLogisticRegression(1.0, 1e-6, data_norm=1.0, random_state=0)
    with pytest.raises(DomainError, match="norm at most data_norm=1"):
        model.fit(X, y)
    clipped = model.set_params(outside="clip").fit(X, y).coef_
    assert (clipped == model.fit(np.array([[0.6, 0.8], [0.3, 0.4]] * 50), y).coef_).all()


@pytest.mark.parametrize("norm", [2.0**-400, 1.0, 2.0**400])
def test_no_warning_tells_of_a_record_far_away(norm: float) -> None:
    """Warnings are errors here: numpy has some for squares that overflow, which one record would bring about."""
    wild = np.array([[0.0, norm], [1e308, -1e308], [1.5e200, 0.0]])
    mean = PrivateMean(EXACT, data_norm=norm, outside="clip", random_state=0)
    unit = np.array([[0.0, norm], [norm / 2**0.5, -norm / 2**0.5], [norm, 0.0]])
    np.testing.assert_allclose(mean.fit(wild).center_ / norm, mean.fit(unit).center_ / norm, rtol=1e-12)
    with pytest.raises(DomainError, match="norm at most data_norm"):
        mean.set_params(outside="raise").fit(wild)
