"""What fits cost, and that errors cost nothing and show no record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fastdp import ApproxDP, Budget, BudgetExceeded, PureDP
from fastdp.sklearn import (
    PrivateLogisticRegression,
    PrivateMean,
)
from tests.sklearn.cases import BOX, N, cases, named


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("case", cases(), ids=named)
def test_a_fit_charges_what_it_says(case: Any, delta: float) -> None:
    estimator, X, y = case
    pure = named(case) in ("PrivateMean", "MWEMSynthesizer")  # of which Laplace noise is less
    whole = ApproxDP(0.7, delta) if delta and not pure else PureDP(0.7)
    given = Budget(epsilon=0.7, delta=delta)
    estimator = clone(estimator).set_params(epsilon=0.7, delta=delta, budget=given, random_state=0).fit(X, y)
    assert given.spent == whole
    assert len(given.releases) == 1
    assert estimator.guarantee_ == given.releases[0].guarantee
    assert estimator.guarantee_.implies(whole)
    with pytest.raises(BudgetExceeded):
        estimator.fit(X, y)
    with Budget(epsilon=0.7, delta=delta) as around:
        clone(estimator).set_params(budget=None).fit(X, y)
    assert around.spent == whole


@pytest.mark.parametrize("case", cases(), ids=named)
def test_bad_input_costs_nothing(case: Any) -> None:
    estimator, X, y = case
    budget = Budget(epsilon=9)
    estimator = clone(estimator).set_params(budget=budget)
    holes = X.copy()
    holes[5, 1] = np.nan
    bad: list[tuple[Any, Any, dict[str, Any]]] = [
        (holes, y, {}), (X[:0], None if y is None else y[:0], {}), (X, y, {"epsilon": -1.0}), (X, y, {"delta": 2.0}),
        (X, y, {"random_state": np.random.RandomState(0)}), (X, y, {"random_state": True}),
    ]  # fmt: skip
    if y is not None:
        bad += [(X, y[:-1], {}), (X, None, {}), (X, np.where(np.arange(N) == 3, np.nan, y), {})]
    for records, labels, parameters in bad:
        with pytest.raises(ValueError):  # noqa: PT011
            clone(estimator).set_params(**parameters).fit(records, labels)
    with pytest.raises(ValueError, match=r"must be a fastdp\.Budget"):
        clone(estimator).set_params(budget=1.0).fit(X, y)
    with pytest.raises(ValueError, match="this budget is for 'add-remove'"):
        clone(estimator).set_params(budget=Budget(epsilon=9, neighbors="add-remove")).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        estimator.fit(X, y, sample_weight=np.ones(N))
    assert not budget.releases
    with pytest.raises(NotFittedError):
        getattr(estimator, "predict", getattr(estimator, "transform", None))(X)


@pytest.mark.parametrize("case", cases(), ids=named)
def test_errors_do_not_quote_records(case: Any) -> None:
    estimator, X, y = case
    words = X[:10].astype(object)
    words[3, 1] = "SECRET"
    secret = np.full(10, 31337.25)
    labels = None if y is None else y[:10]
    tries = [
        (words, labels), (words.astype(str), labels), (secret, labels), (X[:10] + 31337.25j, labels),
        (np.full((10, 3), 31337.25), labels),
    ]  # fmt: skip
    if y is not None:
        tries += [(X[:10], secret * 1j), (X[:10], np.where(np.arange(10) < 5, "SECRET", "0")), (X[:10], secret)]
        tries += [(X[:10], np.array(["SECRET"] * 10, object)), (X[:10], np.stack([secret, secret], 1))]
    refused = 0
    for records, targets in tries:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clone(estimator).fit(records, targets)
        except ValueError as error:
            refused += 1
            shown: BaseException | None = error
            while shown is not None:
                assert "SECRET" not in str(shown)
                assert "31337" not in str(shown)
                shown = shown.__cause__ or shown.__context__
    assert refused >= len(tries) - 2  # a conjunction takes any number


def test_what_is_left_of_messages() -> None:
    model = PrivateMean(bounds=BOX)
    for records, said in [
        ([1.0, 2.0], r"Expected 2D array, got 1D array instead:\s+Reshape your data"),
        ([["a", "b"]], "must hold numbers only"),
        (np.ones((2, 2)) * 1j, "^X: Complex data not supported$"),
        ([[1.0, np.nan, 2.0]], r"^X: Input X contains NaN: outside='clip' takes missing values at the lower bound$"),
    ]:
        with pytest.raises(ValueError, match=said):
            model.fit(records)


def test_a_word_in_place_of_labels() -> None:
    """scikit-learn has a word for "check none"."""
    model = PrivateLogisticRegression(bounds=BOX, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^X, y: y should be a 1d array, got a word instead$"):
        model.fit(np.zeros((4, 3)), "no_validation")
