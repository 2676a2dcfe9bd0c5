"""Privacy losses that are chosen on the way cost more than any that are fixed in advance: the counterexample of
gaussian_curve.md, enumerated."""

import math

import pytest

from fastdp import BoundedRange, compose

ETA, EPSILON = 1.0, 0.25


def pair(t):
    """(P, Q) of the two outcomes of the pair whose log-likelihood ratios are t and t - ETA."""
    q = (math.exp(-t) - math.exp(-ETA)) / (1 - math.exp(-ETA))
    return (q * math.exp(t), q), (1 - q * math.exp(t), 1 - q)


def delta(outcomes, epsilon=EPSILON):
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in outcomes)


PLACES = [ETA * i / 1000 for i in range(1001)]


def fixed(first, second):
    return delta([(p * a, q * b) for p, q in pair(first) for a, b in pair(second)])


def best_after(likelihood):
    """The most that a second pair adds when the first result has this likelihood ratio, per unit of Q."""
    return max(math.fsum(max(0.0, likelihood * p - math.exp(EPSILON) * q) for p, q in pair(t)) for t in PLACES)


def test_a_second_pair_that_goes_by_the_first_result_costs_more():
    same = max(fixed(t, t) for t in PLACES)
    adaptive = max(math.fsum(q * best_after(p / q) for p, q in pair(t) if q > 0) for t in PLACES[1:-1])
    assert same == pytest.approx(0.21605, abs=1e-5)
    assert adaptive == pytest.approx(0.22093, abs=1e-5)
    coarse = PLACES[::20]
    assert max(fixed(s, t) for s in coarse for t in coarse) < adaptive - 1e-3, "nor do two different ones, if fixed"


def test_what_compose_says_of_two_choices_holds_for_the_adaptive_pair():
    adaptive = max(math.fsum(q * best_after(p / q) for p, q in pair(t) if q > 0) for t in PLACES[1:-1])
    assert compose((BoundedRange(ETA), 2), delta=adaptive).epsilon >= EPSILON
    assert compose((BoundedRange(ETA), 2), delta=0.2160).epsilon > EPSILON
