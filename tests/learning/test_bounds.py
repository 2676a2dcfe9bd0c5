"""The error bounds of the learners and their inverses."""

from __future__ import annotations

import pytest

from fastdp import bounds

EPSILONS = [
    ("learn_conjunction", {"n": 200_000, "d": 20, "k": 2, "method": "exhaustive"}),
    ("learn_conjunction", {"n": 500_000, "d": 20, "k": 2, "method": "peel", "delta": 1e-6}),
    ("learn_conjunction", {"n": 500_000, "d": 20, "k": 2, "method": "counts", "neighbors": "add-remove"}),
    ("learn_box", {"n": 100_000, "d": 1}),
    ("learn_box", {"n": 200_000, "d": 3, "method": "interior-point", "domain_bits": 16}),
    ("learn_from_class", {"n": 10_000, "candidates": 1000, "delta": 1e-6}),
    ("learn_decision_list", {"n": 100_000, "rules": 2}),
    ("learn_tree", {"n": 100_000, "depth": 2, "neighbors": "add-remove"}),
]


@pytest.mark.parametrize(("name", "options"), EPSILONS)
def test_the_least_epsilon_has_the_error_bound_and_a_lesser_one_has_not(name, options):
    bound, inverse = getattr(bounds, name), getattr(bounds, f"{name}_epsilon")
    epsilon = inverse(error=0.05, **options)
    assert bound(epsilon=epsilon, **options) <= 0.05
    assert bound(epsilon=0.99 * epsilon, **options) > 0.05


@pytest.mark.parametrize(("name", "options"), EPSILONS)
def test_the_least_number_of_records_has_the_error_bound_and_a_lesser_one_has_not(name, options):
    bound, inverse = getattr(bounds, name), getattr(bounds, f"{name}_n")
    rest = {each: value for each, value in options.items() if each != "n"}
    n = inverse(error=0.05, epsilon=1.0, **rest)
    assert bound(n, epsilon=1.0, **rest) <= 0.05
    assert bound(int(0.99 * n), epsilon=1.0, **rest) > 0.05


@pytest.mark.parametrize("error", [0.0, 1.0, -1, float("nan"), "1"])
def test_errors_of_learners_are_shares(error):
    for call in (
        lambda: bounds.learn_conjunction_epsilon(1000, 5, error=error),
        lambda: bounds.learn_box_n(2, error=error, epsilon=1.0),
        lambda: bounds.learn_from_class_epsilon(1000, 5, error=error),
    ):
        with pytest.raises(ValueError, match=r"^error="):
            call()


def test_what_is_out_of_reach():
    with pytest.raises(ValueError, match=r"^error=1e-15: is out of reach"):
        bounds.learn_conjunction_n(100, error=1e-15, epsilon=1e-3, method="counts")
    with pytest.raises(ValueError, match=r"^error=1e-09: is out of reach with an epsilon of at most 2\^20"):
        bounds.learn_from_class_epsilon(1, 100, error=1e-9)
