"""A new method for a class of hypotheses is one class and one row: learner, "auto" and bounds take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import fastdp
from fastdp import PureDP, bounds
from fastdp.learning import conjunctions
from fastdp.learning.conjunction_parameters import ConjunctionProblem
from fastdp.learning.examples import Examples
from fastdp.learning.methods import Method
from fastdp.privacy import Guarantee
from fastdp.randomness.charged_keys import ChargedKeys
from fastdp.support.progress import Report


@dataclass(frozen=True)
class Coin:
    """Learns "true" or "false" by a coin that has never seen a record; wrong about all of them at worst."""

    guarantee: Guarantee
    bound: float
    rereads: ClassVar[bool] = False

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        return [0, 1] if keys.take()[0] % 2 else []


def prepare(problem: ConjunctionProblem) -> Coin:
    return Coin(PureDP(problem.privacy.epsilon, neighbors=problem.privacy.neighbors), float(problem.n) / 2)


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setitem(conjunctions.PRIVATE, "coin", Method(prepare))


def test_the_learner_takes_it():
    X = np.zeros((100, 5), bool)
    with fastdp.Budget(epsilon=1.0) as budget:
        found = {str(fastdp.learn_conjunction(X, X[:, 0], epsilon=0.01, method="coin")) for _ in range(60)}
    assert found == {"true", "false"}
    assert {release.parameters["method"] for release in budget.releases} == {"coin"}


def test_auto_takes_it_where_its_error_bound_is_the_least():
    X = np.zeros((100, 30), bool)
    assert fastdp.learn_conjunction(X, X[:, 0], epsilon=0.1, method="auto").method == "coin"


def test_bounds_know_it():
    assert bounds.learn_conjunction(100, 5, epsilon=1.0, method="coin") == 0.5
    assert bounds.learn_conjunction_n(5, error=0.5, epsilon=1.0, method="coin") == 1
    with pytest.raises(ValueError, match=r"^error=0.4: is out of reach"):
        bounds.learn_conjunction_n(5, error=0.4, epsilon=1.0, method="coin")
