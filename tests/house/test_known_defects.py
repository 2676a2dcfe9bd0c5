"""Defects that others have reported, called as they were: docs/known-defects.md has the cause of each."""

import warnings
from fractions import Fraction
from math import log

import numpy as np
import pytest

import fastdp
from tests.laws import check_cells


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0])
def test_quantiles_of_many_equal_values(epsilon):
    """A run of equal values at the rank that is asked for: all weights but that of a point underflow in float64."""
    rng = np.random.default_rng(0)
    column = np.concatenate([np.full(80_000, 65_000), rng.integers(0, 500_000, 20_000)])
    assert fastdp.median(column, epsilon=epsilon, rng=seeded()) == 65_000
    assert list(fastdp.quantiles(column, [0.4, 0.5, 0.6], epsilon=epsilon, rng=seeded())) == [65_000] * 3
    for zeros in (1491, 1492, 100_000):
        assert fastdp.quantile(np.array([0] * zeros + [1]), 0.5, epsilon=epsilon, rng=seeded()) == 0


@pytest.mark.parametrize("method", ["gumbel", "buckets"])
@pytest.mark.parametrize(
    "scores",
    [
        [0.0, 1e308, -1e308],
        [-1e300, -1e300 + 1e290, -np.inf],
        [5e-324, 4000.0, 0.0],
        [-(2**63), 2**63 - 1, 0],
    ],
)
def test_scores_of_every_size_are_chosen_from(method, scores):
    for seed in range(5):
        assert fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1, method=method, rng=seeded(seed)) == 1


def test_a_choice_between_two_is_randomised_response():
    """Odds of 3, as e^(epsilon / 2) says; one lie in four that comes out as the truth would be odds of 7."""
    rng = seeded()
    options = {"sensitivity": 1, "epsilon": 2 * log(3), "rng": rng}
    counts = np.bincount([fastdp.exponential_mechanism([1, 0], **options) for _ in range(8_000)], minlength=2)
    assert check_cells(counts, [Fraction(3, 4), Fraction(1, 4)])
    assert not check_cells(counts, [Fraction(7, 8), Fraction(1, 8)])


@pytest.mark.parametrize("bounds", [(0, 100), (-100, 0), (0.0, 1e6), (5.0, 5.5)])
def test_bounds_that_begin_at_0_get_noise(bounds):
    """One record may move a sum by the whole range (a mean by that over n), wherever the range begins."""
    low, high = bounds
    column = np.full(1000, low)
    total = fastdp.statistics.sum(column, bounds=bounds, epsilon=1.0, rng=seeded())
    mean = fastdp.statistics.mean(column, bounds=bounds, epsilon=1.0, rng=seeded())
    least = (high - low) * 2**0.5
    assert least * 0.99 < total.deviation < least * 1.1
    assert least * 0.99 / 1000 < mean.deviation < least * 1.1 / 1000
