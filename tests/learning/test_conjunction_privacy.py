"""Conjunctions: privacy by enumeration of every method's law over all neighbours of small domains, and mutants that
must fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastdp import removal
from fastdp.learning import conjunctions
from fastdp.learning.conjunctions_counts import prepare_counts
from fastdp.learning.conjunctions_greedy import prepare_greedy
from fastdp.learning.conjunctions_peel import prepare_peel
from fastdp.learning.methods import choose_method
from fastdp.privacy import PureDP
from tests import oracles
from tests.learning.conjunctions_oracle import (
    RELATIONS,
    SLACK,
    Counts,
    counts_law,
    excess,
    exhaustive_law,
    greedy_law,
    loss,
    neighbourhood,
    own_plan,
    peel_law,
    peel_scores,
    problem,
    range_of,
    scores_by_those_left,
    softmax,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::fastdp.support.errors.AccuracyWarning", "ignore:method=.elimination"
)  # tiny data


# --- privacy


PEELS = [  # d, n, (threshold, rounds) of each phase, Gamma, eta
    (1, 4, ((3, 3), (1, 3)), 1, 0.4),
    (1, 3, ((2, 2), (1, 5)), 3, 0.15),
    (1, 6, ((4, 5),), 4, 1.0),
    (2, 3, ((2, 2), (1, 2)), 2, 0.3),
    (2, 2, ((2, 5),), 3, 0.1),
]


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "phases", "dummy", "eta"), PEELS)
def test_peel_keeps_the_removal_lemma(d, n, phases, dummy, eta, neighbors):
    """Thresholds so low that literals are drawn often."""
    databases, pairs = neighbourhood(d, n, neighbors)
    law, _ = peel_law(Counts(databases, d), len(databases), own_plan(phases, dummy, eta))
    np.testing.assert_allclose(law.sum(axis=0), 1, atol=1e-12)
    claim, half = (removal(paid, one_signed=True, neighbors=neighbors) for paid in (eta, eta / 2))
    broken = False
    for epsilon in (0.0, eta / 2, eta, 1.2 * eta, 2 * eta, 2.5 * eta, 3 * eta, 5 * eta, 1.0, 2.0):
        found = excess(law, pairs, epsilon)
        assert found <= claim.delta(epsilon) + SLACK, epsilon
        broken |= found > half.delta(epsilon) + SLACK
    assert broken, "draws at twice the eta that is paid pass"


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k", "epsilon", "delta"), [
    (2, 3, 2, 0.5, 0.2), (2, 3, 1, 1.0, 1e-6), (1, 5, 1, 0.3, 0.1), (2, 3, 2, 1.0, 0.0), (1, 5, 1, 4.0, 0.0),
])  # fmt: skip
def test_peel_keeps_its_guarantee_with_its_own_parameters(d, n, k, epsilon, delta, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    plan = prepare_peel(problem(n, d, k, epsilon, delta, 0.9, neighbors))
    law, _ = peel_law(Counts(databases, d), len(databases), plan)
    if delta:
        assert excess(law, pairs, epsilon) <= delta + SLACK
    else:
        assert plan.account == "composition"
        assert loss(law, pairs) <= epsilon + SLACK
    if plan.account == "removal lemma":
        claim = removal(plan.eta, one_signed=True, neighbors=neighbors)
        for grown in (0.0, plan.eta, 2 * plan.eta, 0.3, 1.0):
            assert excess(law, pairs, grown) <= claim.delta(grown) + SLACK


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k", "epsilon"), [(1, 5, 1, 2.0), (2, 3, 2, 1.0), (2, 3, 1, 3.0)])
def test_greedy_keeps_its_guarantee(d, n, k, epsilon, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    counts = Counts(databases, d)
    plan = prepare_greedy(problem(n, d, k, epsilon, neighbors=neighbors))
    law, _ = greedy_law(counts, len(databases), k, plan.rounds, plan.eta)
    assert loss(law, pairs) <= epsilon + SLACK
    delta = 0.05
    plan = prepare_greedy(problem(n, d, k, 0.5, delta, 0.05, neighbors))
    law, _ = greedy_law(counts, len(databases), k, plan.rounds, plan.eta)
    assert excess(law, pairs, 0.5) <= delta + SLACK


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k"), [(1, 4, 1), (2, 3, 1), (2, 3, 2)])
def test_exhaustive_keeps_its_guarantee_and_a_range_of_1_would_not(d, n, k, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    plan = choose_method(conjunctions.PRIVATE, "exhaustive", problem(n, d, k, 1.0, neighbors=neighbors))[1]
    law = exhaustive_law(databases, d, k, plan.eta)
    assert range_of(law, pairs) <= 1 + SLACK
    assert plan.guarantee.eta == 1.0
    if neighbors == "replace-one":
        assert range_of(exhaustive_law(databases, d, k, 1.0), pairs) > 1.5, "the mutant goes unseen"
    else:
        assert range_of(law, pairs) > 0.99


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n"), [(1, 3), (2, 2)])
def test_counts_keep_their_guarantee_and_half_the_sensitivity_would_not(d, n, neighbors):
    """A threshold of 0 has the whole loss: noise that is one too high, or one too low, for all literals."""
    databases, pairs = neighbourhood(d, n, neighbors)
    counts = Counts(databases, d)
    plan = prepare_counts(problem(n, d, 1, 1.0, neighbors=neighbors))
    assert plan.guarantee == PureDP(1.0, neighbors=neighbors)
    for threshold in (0, 1, plan.threshold):
        assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale).cdf, threshold), pairs) <= 1 + 1e-9
    assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale).cdf, 0), pairs) > 0.99
    assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale / 2).cdf, 0), pairs) > 1.5


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_counts_keep_their_guarantee_with_gaussian_noise(neighbors):
    """Where a delta so large, or so many columns, make it the better; many columns cannot be enumerated."""
    databases, pairs = neighbourhood(2, 2, neighbors)
    plan = prepare_counts(problem(2, 2, 2, 0.5, 0.1, neighbors=neighbors))
    assert hasattr(plan.noise, "sigma")
    for threshold in (0, 1, plan.threshold):
        law = counts_law(Counts(databases, 2), oracles.noise.gaussian_law(plan.noise.sigma).cdf, threshold)
        assert excess(law, pairs, 0.5) <= 0.1 + SLACK
    assert (
        excess(counts_law(Counts(databases, 2), oracles.noise.gaussian_law(plan.noise.sigma / 3).cdf, 0), pairs, 0.5)
        > 0.1
    )


# --- mutants


def test_a_score_that_counts_the_negatives_left_is_rejected():
    """One column, records all equal, as many negatives as Gamma and many positives: 50 rounds of a coin that tells how
    many negatives there are. Nothing is ever deleted, so it is no case for the lemma, and its delta is exceeded."""
    eta, rounds, gamma = 0.5, 50, 6
    few = (((0,), False),) * gamma + (((0,), True),) * 200
    more = (((0,), False), *few)
    counts = Counts([few, more], 1)

    def heads(scores):
        chances = softmax(scores, eta)
        assert chances[:, 0].max() < 1e-30, "what would delete records is never drawn"
        coin = chances[:, 1]  # the literal that no record falsifies
        return np.array([math.comb(rounds, h) * coin**h * (1 - coin) ** (rounds - h) for h in range(rounds + 1)])

    claim = removal(eta, one_signed=True, neighbors="add-remove")
    nothing = frozenset()
    for epsilon in (0.5, 1.0, 2.0):
        both = ((0, 1), (1, 0))
        assert excess(heads(scores_by_those_left(counts, nothing, 1, gamma)), both, epsilon) > 1.5 * claim.delta(
            epsilon
        )
        assert excess(heads(peel_scores(counts, nothing, gamma, gamma)), both, epsilon) <= claim.delta(epsilon)
    scores = scores_by_those_left(counts, frozenset({1}), 1, gamma)
    np.testing.assert_array_equal(scores[:, 1], -counts.negatives[nothing], "and drawing it changes nothing")


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_unpaid_round_is_rejected(rounds):
    """All records falsify one literal, of which one too many or not is told by each draw of the other."""
    few = (((0,), False),) * 40
    counts, pairs = Counts([few, (((0,), False), *few)], 1), ((0, 1), (1, 0))
    eta = problem(40, 1, 1, neighbors="add-remove").privacy.eta(rounds)
    paid, _ = greedy_law(counts, 2, 1, rounds, eta)
    assert 0.99 < loss(paid, pairs) <= 1 + SLACK
    unpaid, _ = greedy_law(counts, 2, 1, rounds + 1, eta)
    assert loss(unpaid, pairs) > 1.2
    paid, _ = peel_law(counts, 2, own_plan(((100, rounds),), 150, eta))
    assert 0.99 < loss(paid, pairs) <= 1 + SLACK
    unpaid, _ = peel_law(counts, 2, own_plan(((100, rounds + 1),), 150, eta))
    assert loss(unpaid, pairs) > 1.2


def test_a_range_of_1_under_replace_one_is_rejected():
    databases, pairs = neighbourhood(1, 5, "replace-one")
    counts = Counts(databases, 1)
    for eta, keeps in ((0.5, True), (1.0, False)):
        for law, _ in (
            peel_law(counts, len(databases), own_plan(((2, 1),), 8, eta)),
            greedy_law(counts, len(databases), 1, 1, eta),
        ):
            assert (loss(law, pairs) <= 1 + SLACK) is keeps
    for rounds in (1, 4):
        assert problem(5, 1, 1, 1.0).privacy.eta(rounds) == 1 / (2 * rounds)
        assert problem(5, 1, 1, 1.0, neighbors="add-remove").privacy.eta(rounds) == 1 / rounds
