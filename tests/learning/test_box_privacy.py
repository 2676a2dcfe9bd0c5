"""Boxes: privacy by enumeration over all neighbours of tiny lines, keys included, with mutants that are refuted."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from fastdp.privacy.removal_lemma import Removal
from tests.learning.boxes_oracle import (
    EPSILONS,
    RELATIONS,
    boxes_law,
    cuts_law,
    delta_of,
    neighbours,
    plan_of,
    side_law,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data


# --- privacy of "peel"


@pytest.fixture(scope="module")
def peeled():
    """The laws of all multisets of up to so many positives, for some instances (d, size, M, eta, key bits)."""
    laws = {}
    for d, size, M, eta, key_bits, most in [
        (1, 3, 2, 0.5, 1, 3), (1, 2, 4, 1.0, 2, 3), (1, 4, 2, 0.25, 0, 4), (2, 2, 2, 0.5, 0, 3), (2, 2, 2, 1.0, 1, 2),
    ]:  # fmt: skip
        everybody = list(itertools.product(range(size), repeat=d))
        laws[d, size, M, eta, key_bits, most] = {
            people: dict(cuts_law(people, d, size, M, eta, key_bits))
            for m in range(most + 1)
            for people in itertools.combinations_with_replacement(everybody, m)
        }
    return laws


@pytest.mark.parametrize("relation", RELATIONS)
def test_peeling_keeps_within_the_removal_lemma_and_composition(peeled, relation):
    """At every epsilon, for all neighbours, flips of labels among them."""
    closest = 0.0
    for (d, size, _, eta, _, most), laws in peeled.items():
        everybody = list(itertools.product(range(size), repeat=d))
        lemma = [Removal(eta, False, neighbors=relation).delta(epsilon) for epsilon in EPSILONS]
        widest = 0.0
        for one, other in neighbours(everybody, most, relation):
            p, q = laws[one], laws[other]
            for epsilon, allowed in zip(EPSILONS, lemma, strict=True):
                delta = delta_of(p, q, epsilon)
                assert delta <= allowed + 1e-12, (one, other, epsilon)
                closest = max(closest, delta / allowed)
            widest = max(widest, *(abs(math.log(p[cuts] / q[cuts])) for cuts in p))
        assert widest <= 2 * d * 2 * eta + 1e-9
    assert closest > 0.3, "the instances come near the bound"


def test_a_cut_needs_the_2_of_scores_that_move_both_ways(peeled):
    """Sensitivity 1 for 2: composition of rounds of range eta is refuted, in both relations."""
    d, size, M, eta, most = 1, 5, 4, 1.0, 4
    people = list(itertools.product(range(size)))

    def first_cut(rows):
        law = defaultdict(float)
        for cuts, p in cuts_law(rows, d, size, M, eta, 0).items():
            law[cuts[0]] += p
        return law

    laws = {r: first_cut(r) for m in range(most + 1) for r in itertools.combinations_with_replacement(people, m)}
    for relation in RELATIONS:
        widest = 0.0
        for one, other in neighbours(people, most, relation):
            ratios = [math.log(laws[one][c] / laws[other][c]) for c in range(size)]
            widest = max(widest, max(ratios) - min(ratios))
        assert eta * 1.2 < widest <= 2 * eta + 1e-9


def test_a_schedule_that_ends_when_nobody_is_left_is_refuted():
    """Of one positive against none: to stop tells that none is left, and the claim fails by far."""
    eta, epsilon = 0.1, 1.0
    laws = [cuts_law(people, 1, 4, 2, eta, 1, ends_when_empty=True) for people in ((), ((1,),))]
    allowed = Removal(eta, False, neighbors="add-remove").delta(epsilon)
    assert max(delta_of(*laws, epsilon), delta_of(*laws[::-1], epsilon)) > 1000 * allowed
    laws = [cuts_law(people, 1, 4, 2, eta, 1) for people in ((), ((1,),))]
    assert max(delta_of(*laws, epsilon), delta_of(*laws[::-1], epsilon)) <= allowed


def test_records_that_stand_elsewhere_among_the_others_have_the_same_law():
    """Keys go by the number of a record; which records have which numbers changes nothing."""
    people = ((0,), (1,), (1,))
    first = cuts_law(people, 1, 2, 2, 0.7, 1)
    for order in itertools.permutations(people):
        other = cuts_law(order, 1, 2, 2, 0.7, 1)
        assert all(abs(first[cuts] - other[cuts]) < 1e-14 for cuts in first)


# --- privacy of "interior-point", and of the test before both


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_slice_changes_by_at_most_one_replacement(relation, m):
    """Range 2 eta in both relations; range eta, which is sensitivity 1 for 2, is refuted."""
    last, most, eta = 4, 5, 1.0
    widest = 0.0
    for greatest in (False, True):
        laws = {
            values: np.array(side_law(values, m, last, eta, greatest=greatest))
            for n in range(most + 1)
            for values in itertools.combinations_with_replacement(range(last + 1), n)
        }
        for one, other in neighbours(range(last + 1), most, relation):
            ratios = np.log(laws[one] / laws[other])
            widest = max(widest, float(np.ptp(ratios)), float(np.abs(ratios).max()))
    assert widest <= 2 * eta + 1e-9
    assert widest > 1.2 * eta or m == 1
    if m == 1:
        assert widest == pytest.approx(2 * eta)


@pytest.mark.parametrize("method", ["peel", "interior-point"])
def test_the_test_and_the_choices_together_and_a_test_that_is_not_paid(method):
    """What is released, a box or none, within the sum; the choices alone do not pay for the test."""
    size, eta = 3, 0.25
    total = 2 * 2 * eta
    everybody = [(x,) for x in range(size)]
    for scale, claim, keeps in ((2.0, 1 / 2.0 + total, True), (1 / total, total, False)):
        plan = plan_of(2, eta, threshold=5, scale=scale)
        laws = {
            people: boxes_law(method, people, 1, size, plan, 1 if method == "peel" else 0)
            for m in range(5)
            for people in itertools.combinations_with_replacement(everybody, m)
        }
        widest = max(
            abs(math.log(laws[one][box] / laws[other][box]))
            for one, other in neighbours(everybody, 4, "replace-one")
            for box in laws[one]
        )
        assert (widest <= claim + 1e-9) is keeps
