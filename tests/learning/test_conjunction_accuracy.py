"""Conjunctions: errors against their bounds, parameters against the theorems, and the choice of a method."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Budget, DomainError, Randomness, learn_conjunction, removal
from fastdp.learning import conjunctions
from fastdp.learning import conjunctions_exhaustive as exhaustive
from fastdp.learning.conjunctions_greedy import prepare_greedy
from fastdp.learning.conjunctions_peel import prepare_peel
from fastdp.learning.methods import choose_method
from tests.laws import ALARM, log_at_least
from tests.learning.conjunctions_oracle import (
    PRIVATE,
    RELATIONS,
    all_conjunctions,
    holds,
    problem,
    sample,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::fastdp.support.errors.AccuracyWarning", "ignore:method=.elimination"
)  # tiny data


# --- accuracy


TARGETS = {
    "true": [], "one literal": [(2, False)], "two literals": [(0, True), (4, False)],
    "false": [(1, True), (1, False)],
}  # fmt: skip


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("target", TARGETS)
def test_errors_stay_within_their_bound(target, method, neighbors):
    """With probability 1 - beta each time: more failures than 1e-9 allows are refuted. The smallest `n` for which
    there is an error bound, or nearly."""
    n, runs, beta = {"peel": 1500, "greedy": 600, "counts": 400, "exhaustive": 60}[method], 40, 0.2
    X = sample(n, 6, 3)
    y = holds(TARGETS[target], X)
    records = None if neighbors == "replace-one" else n
    rng, wrong = Randomness(seed=2), 0
    for _ in range(runs):
        h = learn_conjunction(
            X, y, k=2, epsilon=2.0, delta=1e-5, method=method, beta=beta, records=records, neighbors=neighbors, rng=rng
        )
        assert h.error_bound < 1, "there is no error bound"
        wrong += h.error(X, y) > h.error_bound
    assert log_at_least(wrong, runs, beta) > math.log(ALARM), f"{wrong} of {runs}"


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_hypotheses_are_found(method, delta, neighbors):
    """beta = 1e-9, so that a false alarm has that probability; records are random, so what is nearly right is right."""
    n = 60_000
    X = sample(n, 8)
    target = [(1, True), (4, False), (7, True)]
    y = holds(target, X)
    records = None if neighbors == "replace-one" else n
    h = learn_conjunction(
        X, y, k=3, epsilon=2.0, delta=delta, beta=1e-9, method=method, realizable=True, neighbors=neighbors,
        records=records, rng=Randomness(seed=3),
    )  # fmt: skip
    assert h.error(X, y) <= h.error_bound < 0.75
    assert sorted(h.literals) == sorted(target), str(h)
    assert str(h) == "v2 ∧ ¬v5 ∧ v8"
    np.testing.assert_array_equal(h.predict(X), y)


@pytest.mark.parametrize("method", PRIVATE)
def test_a_literal_per_column_at_most_and_columns_may_repeat(method):
    """A duplicated column: either of the two will do."""
    X = sample(20_000, 3)
    X = np.hstack((X, X))
    y = X[:, 0] & ~X[:, 2]
    h = learn_conjunction(X, y, k=2, epsilon=4.0, delta=1e-6, method=method, rng=Randomness(seed=4))
    assert h.error(X, y) == 0


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_records_that_no_conjunction_fits(method, noise):
    X = sample(5000, 4)
    y = (X[:, 0] & X[:, 1]) ^ (np.random.default_rng(1).random(5000) < noise)
    price = {} if method == "elimination" else {"k": 2, "epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=4)}
    h = learn_conjunction(X, y, method=method, **price)
    assert 0 <= h.error(X, y) <= 1
    if method == "exhaustive":  # within theorem 4 of the best, at beta = 1e-9
        best = min(np.count_nonzero(holds(c, X) != y) for c in all_conjunctions(4, 2))
        slack = (math.log(exhaustive.conjunctions(4, 2)) + math.log(1e9)) / 0.5
        assert h.error(X, y) * 5000 <= best + slack


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
@pytest.mark.parametrize("label", [True, False])
def test_labels_that_are_all_alike(method, label):
    X = sample(4000, 4)
    price = {} if method == "elimination" else {"k": 2, "epsilon": 2.0, "delta": 1e-6, "rng": Randomness(seed=4)}
    h = learn_conjunction(X, np.full(4000, label), method=method, **price)
    assert str(h) == ("true" if label else "false")
    np.testing.assert_array_equal(h.predict(X), np.full(4000, label))


@pytest.mark.parametrize(("n", "d", "k"), [(1000, 5, 2), (10**6, 100, 10), (10**9, 30, 30), (1, 1, 1), (50, 4, 4)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_parameters_of_peel_are_as_theorem_7_has_them(n, d, k, delta):
    for neighbors in RELATIONS:
        plan = prepare_peel(problem(n, d, k, 1.0, delta, neighbors=neighbors))
        gamma, p = plan.dummy, len(plan.phases)
        assert plan.eta * gamma >= math.log((2 * d + 1) * plan.rounds / 0.05)
        assert plan.phases[0][0] * 2 * k >= n
        assert p == max(1, math.ceil(math.log2(n / (2 * k * gamma))))
        for j, (threshold, rounds) in enumerate(reversed(plan.phases)):
            assert threshold == 2 ** (j + 1) * gamma
            assert rounds == math.ceil(k / (1 - 2.0 ** -(j + 1)))
        assert plan.rounds <= k * (p + 1.61) + p
        assert plan.bound == 2 * gamma * (k + plan.rounds)
        assert plan.account == "composition" or removal(plan.eta, one_signed=True, neighbors=neighbors).implies(
            fastdp.ApproxDP(1.0, delta, neighbors=neighbors)
        )
        assert plan.account == "removal lemma" or plan.eta <= problem(
            n, d, k, 1.0, delta, neighbors=neighbors
        ).privacy.eta(plan.rounds)


def test_records_that_peel_needs_grow_linearly_in_k():
    def needed(k):
        return prepare_peel(problem(10**7, 200, k, 1.0, 1e-6)).bound

    assert needed(80) / needed(10) < 8.5
    assert (
        prepare_greedy(problem(10**7, 200, 80, 1.0, 1e-6)).bound
        / prepare_greedy(problem(10**7, 200, 10, 1.0, 1e-6)).bound
        > 12
    )


@pytest.mark.parametrize("method", PRIVATE)
def test_parameters_depend_on_public_numbers_only(method):
    """Under add-remove the true number of records stands nowhere."""
    plans = set()
    for n in (1, 50, 3000):
        X = sample(n, 4)
        seen = []

        def watched(*given, seen=seen, **assumed):
            seen.append(choose_method(*given, **assumed).plan)
            return choose_method(*given, **assumed)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conjunctions, "choose_method", watched)
            learn_conjunction(
                X, X[:, 0], k=2, epsilon=1.0, delta=1e-6, method=method, neighbors="add-remove", records=1000
            )
        plan = seen[0]
        plans.add((repr(replace(plan, noise=None)) + str(plan.noise[:2])) if method == "counts" else plan)
    assert len(plans) == 1


def test_no_records_at_all():
    X = np.zeros((0, 3), bool)
    for method in PRIVATE:
        h = learn_conjunction(
            X, X[:, 0], k=2, epsilon=1.0, method=method, neighbors="add-remove", records=100, rng=Randomness(seed=1)
        )
        assert h.predict(X).shape == (0,)
        with pytest.raises(ValueError, match=r"^X: n=0 records: must be at least one$"):
            learn_conjunction(X, X[:, 0], k=2, epsilon=1.0, method=method)


# --- the least error bound, and who is warned


def test_auto_takes_the_method_with_the_least_error_bound():
    for n, d, k, delta in (
        (10**5, 20, 2, 0.0),
        (10**6, 100, 10, 1e-6),
        (10**6, 100, 100, 1e-6),
        (10**7, 1000, 40, 1e-6),
    ):
        name, plan, *_ = choose_method(conjunctions.PRIVATE, "auto", problem(n, d, k, 1.0, delta))
        others = {
            other: conjunctions.PRIVATE[other].prepare(problem(n, d, k, 1.0, delta)).bound
            for other in ("peel", "greedy", "counts")
        }
        assert plan.bound <= min(others.values())
        assert name == "exhaustive" or plan.bound == others[name]
        options = {"k": k, "epsilon": 1.0, "delta": delta, "realizable": True}
        assert fastdp.bounds.learn_conjunction(n, d, method="auto", **options) == pytest.approx(min(1, plan.bound / n))
    X = sample(20_000, 6)
    h = learn_conjunction(X, X[:, 0] & ~X[:, 3], k=2, epsilon=1.0, method="auto")
    assert (h.method, str(h)) == ("exhaustive", "v1 ∧ ¬v4")
    found = {
        m: fastdp.bounds.learn_conjunction_n(100, k=3, error=0.01, epsilon=1.0, method=m) for m in METHODS_OF_BOUNDS
    }
    assert found["auto"] == min(found.values()) == found["exhaustive"]


METHODS_OF_BOUNDS = ("peel", "greedy", "counts", "exhaustive", "auto")


def test_a_vacuous_error_bound_is_warned_of_before_anything_is_charged():
    X = sample(60, 3)
    budget = Budget(epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fastdp.AccuracyWarning, match=r"^learn_conjunction: 60 records are too few .*conjunction_n"):
            learn_conjunction(X, X[:, 0], epsilon=1.0, k=2, method="peel", realizable=True, budget=budget)
        with pytest.raises(fastdp.AccuracyWarning, match=r"^learn_conjunction: 10 records are too few .* than a coin"):
            learn_conjunction(X[:10], X[:10, 0], epsilon=1.0, k=2, budget=budget)
        assert not budget.releases
        with pytest.raises(fastdp.PrivacyWarning, match="not private"):
            learn_conjunction(X, X[:, 0], method="elimination")
        learn_conjunction(sample(9000, 3), sample(9000, 3)[:, 0], epsilon=1.0, k=1, method="exhaustive")


def test_noisy_labels_are_what_exhaustive_is_for():
    X = sample(20_000, 8)
    y = (X[:, 1] & ~X[:, 4]) ^ (np.random.default_rng(5).random(20_000) < 0.2)
    h = learn_conjunction(X, y, k=2, epsilon=1.0, method="exhaustive", rng=Randomness(seed=9))
    assert str(h) == "v2 ∧ ¬v5"


def test_errors_of_other_models_get_the_records_that_they_know():
    frame = pd.DataFrame({"a": [0, 1, 2, 3], "t": [0, 0, 1, 1]})
    assert fastdp.error(lambda X: X["a"] > 1, frame, "t") == 0.0
    assert fastdp.error(lambda X: X["a"] > 1, {"a": np.arange(4), "t": np.array([0, 0, 1, 0])}, "t") == 0.25
    with pytest.raises(ValueError, match=r"^y=1: must be labels, as h takes X without them$"):
        fastdp.error(lambda X: X, frame.to_numpy(), 1)
    with pytest.raises(DomainError, match=r"^h: predictions: must be 1, and 0 or -1"):
        fastdp.error(lambda X: X["a"], frame, "t")
    with pytest.raises(ValueError, match=r"^h: type int: must be a function"):
        fastdp.error(3, frame, "t")
