"""A search that is paid for: one charge for fits, scores and the choice."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from fastdp import Budget, BudgetExceeded, DomainError, PureDP
from fastdp.sklearn import BoxClassifier, ConjunctionClassifier, PrivateMean, PrivateSearch
from tests.sklearn.cases import INSIDE, SQUARE

X, Y = SQUARE[:4000], INSIDE[:4000]
BOX = BoxClassifier(bounds=(0, 100))
GRID = {"bits": [1, 6]}


def test_a_search_is_charged_once() -> None:
    budget = Budget(epsilon=30.0)
    search = PrivateSearch(BOX, GRID, k=20, epsilon=20.0, budget=budget, random_state=6).fit(X, Y)
    assert budget.spent == PureDP(20.0) == search.guarantee_
    assert [row.mechanism for row in budget.releases] == ["best_of"]
    assert search.best_params_ == {"bits": 6}  # of 1 bit, boxes end at 50
    assert abs(search.best_score_ - (search.predict(X) == Y).sum()) < 60
    assert search.guarantee_.seeded
    with Budget(epsilon=20.0) as around:
        found = PrivateSearch(BOX, GRID, k=3, epsilon=20.0).fit(X, Y)
        with pytest.raises(BudgetExceeded):
            PrivateSearch(BOX, GRID, k=3, epsilon=0.1).fit(X, Y)
    assert around.spent == PureDP(20.0)
    assert not found.guarantee_.seeded
    assert pickle.loads(pickle.dumps(found)).predict(X[:5]).shape == (5,)
    assert clone(found).get_params()["k"] == 3


def test_each_run_has_half_and_the_score_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    fit = BoxClassifier.fit

    def watched(self: Any, X: Any, y: Any) -> Any:
        fitted = fit(self, X, y)
        seen.append((self.epsilon, self.budget.total, self.budget.spent))
        return fitted

    monkeypatch.setattr(BoxClassifier, "fit", watched)
    PrivateSearch(BOX, GRID, k=3, epsilon=8.0, score_share=0.25).fit(X, Y)
    assert set(seen) == {(3.0, PureDP(4.0), PureDP(3.0))}


def test_records_outside_are_counted_once() -> None:
    budget = Budget(epsilon=9.0)
    with pytest.raises(DomainError):
        PrivateSearch(BOX, GRID, k=3, epsilon=4.0, budget=budget).fit(X + 60, Y)
    assert (budget.refused, budget.spent) == (1, PureDP(4.0))


@pytest.mark.parametrize(
    ("estimator", "options", "match"),
    [
        (None, {}, r"^estimator=None: must be a classifier of fastdp\.sklearn"),
        (PrivateMean(bounds=(0, 100)), {}, "must be a classifier"),
        (BOX, {"param_grid": 3}, "^param_grid: "),
        (BOX, {"param_grid": {"epsilon": [1.0, 2.0]}}, "^param_grid: 'epsilon': must be a parameter .* no price"),
        (BOX, {"param_grid": {"depth": [1]}}, "^param_grid: 'depth': must be a parameter"),
        (BOX, {"k": 0}, "^k=0: must be"),
        (BOX, {"epsilon": 0.0}, "^epsilon=0.0: must be"),
        (BOX, {"score_share": 1.0}, "^score_share=1.0: must be"),
        (ConjunctionClassifier(), {"random_state": "x"}, "^random_state: "),
    ],
)
def test_bad_searches(estimator: Any, options: dict[str, Any], match: str) -> None:
    budget = Budget(epsilon=9.0)
    given = {"param_grid": {"beta": [0.05, 0.1]}, "budget": budget, **options}
    with pytest.raises(ValueError, match=match):
        PrivateSearch(estimator, **given).fit(X, np.asarray(Y))
    assert budget.spent == PureDP(0.0)
