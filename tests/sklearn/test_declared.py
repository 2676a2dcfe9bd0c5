"""What is not declared is not read off the data: bounds, and records beyond them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from fastdp import Budget, DomainError, PureDP
from fastdp.sklearn import (
    BoxClassifier,
    ConjunctionClassifier,
    MWEMSynthesizer,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateMedian,
)
from tests.sklearn.cases import ABOVE, BOX, SQUARE, N, cases, named


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (ConjunctionClassifier(), "must hold 0 and 1 only, as it has no thresholds"),
        (BoxClassifier(), "bounds=None: must be .* never read off the data"),
        (PrivateLogisticRegression(), "bounds=None: must be .* or data_norm= .* never read off the data"),
        (PrivateLinearRegression(bounds=BOX), "y_bounds=None: must be .* never read off the data"),
        (PrivateLinearRegression(y_bounds=(0, 1)), "bounds=None: must be"),
        (PrivateMean(), "bounds=None: must be"),
        (PrivateMedian(), "bounds=None: must be"),
        (MWEMSynthesizer(), "bounds=None: must be .* or domain="),
        (MWEMSynthesizer(bounds=BOX, domain={"a": 2}), "must be None with a domain"),
    ],
    ids=named,
)
def test_missing_bounds_are_refused(estimator: Any, said: str) -> None:
    budget = Budget(epsilon=1)
    with pytest.raises(ValueError, match=said):
        estimator.set_params(budget=budget).fit(SQUARE, ABOVE)
    assert not budget.releases
    assert budget.spent == PureDP(0.0)


@pytest.mark.parametrize(
    "bounds",
    [3, (1, 0), (0, np.inf), (np.nan, 1), ([0, 0], [1, 1]), ([0], [1]), ([0, 0, 0], [1, 1, 0]), "ab", (0, 1, 2)],
)
@pytest.mark.parametrize("index", [1, 2, 3, 4, 5, 6])
def test_bad_bounds(bounds: Any, index: int) -> None:
    estimator, X, y = cases()[index]
    with pytest.raises(ValueError, match=r"^bounds=.*must be \(lower, upper\)") as refused:
        estimator.set_params(bounds=bounds).fit(X, y)
    assert "pairs" not in str(refused.value)


def test_errors_say_how_it_is_done() -> None:
    pairs = [(0, 100)] * 3
    with pytest.raises(ValueError, match=r"tuple\(zip\(\*pairs\)\) makes that of a pair for each column"):
        BoxClassifier(bounds=pairs).fit(np.ones((4, 3)), [0, 1, 0, 1])
    assert tuple(zip(*pairs, strict=True)) == ((0, 0, 0), (100, 100, 100))
    with pytest.raises(ValueError, match="or data_norm= of the rows, from public knowledge: "):
        PrivateLogisticRegression().fit(SQUARE, ABOVE)
    with pytest.raises(ValueError, match=r"strings: OneHotEncoder\(categories=") as refused:
        BoxClassifier(bounds=(0, 1)).fit([["SECRET"]] * 4, [0, 1, 0, 1])
    assert "SECRET" not in str(refused.value)
    frame = pytest.importorskip("pandas").DataFrame({"smokes": [0, 1], "age": [20, 30]})
    with pytest.raises(DomainError, match="X: column 'age': must hold 0 and 1 only"):
        ConjunctionClassifier().fit(frame, [0, 1])


@pytest.mark.parametrize("index", [1, 2, 3, 4, 5, 6])
def test_records_beyond_the_bounds_are_refused_or_clipped(index: int) -> None:
    estimator, X, y = cases()[index]
    wild = X.copy()
    wild[17, 1] = 31337.25
    budget = Budget(epsilon=5)
    estimator.set_params(budget=budget, random_state=3)
    with pytest.raises(DomainError, match="must be within bounds") as refused:
        estimator.fit(wild, y)
    assert "31337" not in str(refused.value)
    assert not budget.releases
    estimator.set_params(outside="clip").fit(wild, y)
    clipped = clone(estimator).fit(np.clip(wild, 0, 100), y)
    for name in ("coef_", "center_", "intervals_"):
        assert np.array_equal(getattr(estimator, name, 0), getattr(clipped, name, 0))
    with pytest.raises(ValueError, match="outside='drop': must be one of 'raise', 'clip'"):
        estimator.set_params(outside="drop").fit(wild, y)


def test_every_estimator_takes_records_whatever_is_in_them() -> None:
    """As its error advises."""
    for estimator, X, y in cases():
        wild = X.astype(object)
        wild[17, 1], wild[18, 0], wild[19, 2], wild[20, 2] = None, np.nan, np.inf, "none"
        estimator.set_params(random_state=3)
        with pytest.raises(DomainError):
            estimator.fit(wild, y)
        model = clone(estimator).set_params(outside="clip").fit(wild, y)
        assert model.guarantee_
        if hasattr(model, "predict"):
            assert len(model.predict(wild)) == len(X)


def test_a_tree_takes_missing_entries_at_the_lower_bound() -> None:
    estimator, X, y = cases()[7]
    wild, low = X.copy(), X.copy()
    wild[:200, 0], wild[200:300, 1] = np.nan, np.inf
    least, greatest = np.finfo(np.float64).min, np.finfo(np.float64).max
    low[:200, 0], low[200:300, 1] = least, greatest
    estimator.set_params(random_state=3)
    with pytest.raises(DomainError, match=r"outside='clip' takes missing values at the lower bound$"):
        estimator.fit(np.where(np.isinf(wild), 0, wild), y)
    model = estimator.set_params(outside="clip").fit(wild, y)
    assert model.rule_ == clone(estimator).fit(low, y).rule_
    assert np.array_equal(model.predict(wild), model.predict(low))
    with pytest.raises(ValueError, match="outside='drop': must be one of 'raise', 'clip'"):
        estimator.set_params(outside="drop").fit(wild, y)


def test_targets_beyond_their_bounds() -> None:
    estimator, X, y = cases()[3]
    wild = np.where(np.arange(N) == 5, 31337.25, y)
    with pytest.raises(DomainError, match="must be within y_bounds") as refused:
        estimator.fit(X, wild)
    assert "31337" not in str(refused.value)
    estimator.set_params(outside="clip", random_state=0).fit(X, wild)
    assert np.array_equal(estimator.coef_, clone(estimator).fit(X, np.clip(wild, -100, 300)).coef_)
