"""Boxes: errors against their bounds, parameters against the theorems, and the choice of a method."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import boxes
from fastdp.learning.boxes_exponential import BoxExponentialParameters
from fastdp.learning.boxes_interior_point import prepare_interior_point
from fastdp.learning.boxes_peel import prepare_peel
from fastdp.learning.methods import choose_method
from fastdp.privacy import ApproxDP, BoundedRange, PureDP, compose
from fastdp.privacy.removal_lemma import Removal
from tests.laws import ALARM, log_at_least
from tests.learning.boxes_oracle import (
    RELATIONS,
    passes,
    problem_of,
    rectangle,
)
from tests.oracles.privacy import range_rho

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("method", "d", "bits", "delta"), [
    ("peel", 1, 20, 1e-6), ("peel", 2, 64, 1e-6), ("peel", 5, 10, 1e-6), ("peel", 2, 16, 0.0),
    ("interior-point", 1, 20, 0.0), ("interior-point", 2, 64, 0.0), ("interior-point", 5, 10, 1e-6),
    ("exponential", 1, 20, 0.0), ("exponential", 2, 4, 0.0),
])  # fmt: skip
def test_a_box_errs_within_its_bound(method, d, bits, delta, relation):
    """At the stated probability; records in few places (bits is 10 at most in the data) and in many."""
    beta, epsilon, runs = 0.3, 4.0, 20
    private = relation == "add-remove"
    n = 1000
    for _ in range(6):
        n = math.ceil(
            4
            * choose_method(
                boxes.PRIVATE, method, problem_of(n, (bits,) * d, epsilon, delta, beta, relation)
            ).plan.bound
        )
    failures, rng = 0, Randomness(seed=d)
    for run in range(runs):
        X, y = rectangle(n, d, min(bits, 10 if run % 2 else 30), run)
        h = fastdp.learn_box(
            X, y, domain_bits=bits, epsilon=epsilon, delta=delta, method=method, beta=beta, neighbors=relation,
            realizable=True, records=n if private else None, rng=rng,
        )  # fmt: skip
        assert h.method == method
        assert h.error_bound < 0.3
        failures += h.error(X, y) > h.error_bound
    assert log_at_least(failures, runs, beta) > math.log(ALARM)
    assert failures <= runs // 2


def test_records_in_one_place_lose_no_more_than_others():
    """Keys tell them apart: without, a cut would delete all or none."""
    n = 4000
    X, y = np.full((n, 2), 77), np.ones(n, bool)
    rng = Randomness(seed=2)
    for method in ("peel", "interior-point"):
        options = {"domain_bits": 16, "epsilon": 4.0, "delta": 1e-6, "realizable": True}
        h = fastdp.learn_box(X, y, method=method, rng=rng, **options)
        assert h.intervals == ((77, 77), (77, 77))
        assert h.error(X, y) == 0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.7, 100.0])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_parameters_use_all_of_epsilon_and_delta(d, epsilon, delta, relation):
    """Test and choices together, rounded the safe way; slices and bounds as the theorems say."""
    n, beta, bits = 10**6, 0.05, 16
    problem = problem_of(n, (bits,) * d, epsilon, delta, beta, relation)
    for make in (prepare_interior_point, prepare_peel):
        plan = make(problem)
        share = 1 / Fraction(plan.test.noise.scale)
        rest = Fraction(epsilon) - share
        assert Fraction(epsilon) / 1024 * (1 - Fraction(1, 2**50)) <= share <= Fraction(epsilon) / 8
        eta, sides = Fraction(plan.eta), 2 * d
        if plan.account == "removal lemma":
            assert make is prepare_peel
            assert Removal(plan.eta, False, neighbors=relation).delta(float(rest) * (1 - 1e-15)) <= delta * (1 + 1e-9)
        elif delta:
            whole = compose((BoundedRange(2 * plan.eta, neighbors=relation), sides), delta=delta)
            assert whole.to_approx(delta).epsilon <= float(rest) * (1 + 1e-9)
        else:
            assert 2 * eta * sides <= rest
        spent, concentrated = plan.guarantee.parts
        assert spent == (ApproxDP(epsilon, delta, neighbors=relation) if delta else PureDP(epsilon, neighbors=relation))
        one = float(share)
        added = sides * float(range_rho(2 * plan.eta)) + one * math.tanh(one / 2)
        assert concentrated.rho <= added * (1 + 1e-9)
        assert concentrated.rho >= min(added * (1 - 1e-9), 0.99 * epsilon)  # which follows from epsilon alone
        if make is prepare_peel:
            each = beta / 3
            s = math.ceil(math.ceil(math.log(sides * n / each)) / 2)
            need = s + math.log(sides * 2.0**bits * math.e**2 * n / (2 * s * each)) / plan.eta
            assert plan.slice % 2 == 0
            assert need - 1e-6 <= plan.slice / 2 <= need + 1 + 1e-6
        else:
            assert plan.slice == 2 * math.ceil(math.log(sides * 2.0**bits / (beta / 2)) / plan.eta) - 1
        slack = plan.test.threshold - sides * plan.slice
        q = math.exp(-1 / plan.test.noise.scale)
        assert q ** (slack + 1) / (1 + q) <= beta / 2
        assert plan.bound == sides * plan.slice + 2 * slack


def test_a_false_test_happens_as_seldom_as_is_said():
    """Theorem 1, by the exact law of the noise, at both ends of what the bound counts."""
    for epsilon, beta in itertools.product((0.01, 1.0, 50.0), (0.001, 0.05, 0.9)):
        plan = prepare_interior_point(problem_of(1000, (8, 8), epsilon, 0.0, beta, "replace-one"))
        few, scale = 4 * plan.slice - 1, plan.test.noise.scale
        assert passes(few, plan.test.threshold, scale) <= beta / 2
        assert 1 - passes(int(plan.bound) + 1, plan.test.threshold, scale) <= beta / 2 + 1e-12


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 20])
def test_auto_takes_the_least_error_bound(d, delta):
    for bits, epsilon, n in itertools.product((4, 64), (0.1, 3.0), (500, 10**7)):
        problem = problem_of(n, (bits,) * d, epsilon, delta, 0.05, "replace-one")
        taken, bounds = choose_method(boxes.PRIVATE, "auto", problem), {}
        for method in ("peel", "interior-point", "exponential"):
            try:
                bounds[method] = choose_method(boxes.PRIVATE, method, problem).plan.bound
            except ValueError:
                assert method == "exponential"
                assert d > 2 or n == 10**7
        assert taken.plan.bound == min(bounds.values())
        assert bounds[taken.method] == taken.plan.bound
        assert isinstance(taken.plan, BoxExponentialParameters) == (taken.method == "exponential")
    if d == 20 and delta:
        assert taken.method == "peel"


def test_peel_beats_composition_from_a_few_columns_on():
    """The removal lemma's eta does not fall with d: d = 4 under add-remove, 5 under replace-one."""
    for relation, first in (("add-remove", 4), ("replace-one", 5)):
        accounts = [
            prepare_peel(problem_of(10**6, (32,) * d, 1.0, 1e-6, 0.05, relation)).account
            for d in range(first - 2, first + 2)
        ]
        assert accounts == ["composition"] * 2 + ["removal lemma"] * 2


def test_how_many_records_auto_takes_is_the_least_of_all_methods():
    options = {"error": 0.04, "epsilon": 1.0, "realizable": True}  # a delta takes seconds, for the same comparison
    n = fastdp.bounds.learn_box_n(2, **options)
    assert n == fastdp.bounds.learn_box_n(2, method="exponential", **options)
    assert n < fastdp.bounds.learn_box_n(2, method="interior-point", **options)
    assert fastdp.bounds.learn_box(n, 2, epsilon=1.0, realizable=True) <= 0.04
    with pytest.raises(ValueError, match="d=3 columns: must be 1 or 2"):
        fastdp.bounds.learn_box_n(3, method="exponential", **options)
    assert fastdp.bounds.learn_box_n(3, **options) > n


def test_auto_says_that_it_has_no_error_bound_where_labels_may_be_wrong(monkeypatch):
    """By itself, of the method that it would take: the grid is not prepared, which takes seconds."""

    def prepare(problem):
        raise AssertionError("prepared")

    grid = replace(boxes.PRIVATE["grid"], prepare=prepare)
    monkeypatch.setitem(boxes.PRIVATE, "grid", grid)
    assert fastdp.bounds.learn_box(10_000, 3, epsilon=1.0, delta=1e-6) == 1.0
    with pytest.raises(ValueError, match=r"^error=0.25: is out of reach with an epsilon of at most 2\^20"):
        fastdp.bounds.learn_box_epsilon(10_000, 3, error=0.25, delta=1e-6)
    with pytest.raises(ValueError, match=r"^method='auto', d=3 columns: must be 1 or 2 \(no other method has"):
        fastdp.bounds.learn_box_n(3, error=0.25, epsilon=1.0)


def test_a_vacuous_error_bound_is_warned_of():
    X, y = rectangle(100, 3, 8, 0)
    with pytest.warns(
        fastdp.AccuracyWarning, match=r"^learn_box: 100 records are too few .*: bounds.learn_box_n computes"
    ):
        fastdp.learn_box(X, y, domain_bits=8, epsilon=1.0, method="peel", realizable=True)
