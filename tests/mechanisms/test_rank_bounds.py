"""The error bounds of quantiles and interior points and their inverses."""

from __future__ import annotations

import math

import pytest

from fastdp import bounds
from tests.oracles.quantiles import weight_of_float, weight_of_integer


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.99])
def test_ranks_of_a_quantile_and_their_inverses(q, neighbors):
    options = {"domain_bits": 32, "beta": 0.01, "neighbors": neighbors}
    ranks = bounds.quantile(q, epsilon=0.7, **options)
    moved = 2 * max(q, 1 - q) if neighbors == "add-remove" else 2
    floats = [weight_of_float(2.0**e, 23, -126) for e in range(-127, 128)]
    everything = (2 * sum(floats) * 2**23 + weight_of_float(0.0, 23, -126)) / min(floats)
    assert everything > 2**42
    assert ranks == pytest.approx(math.log(everything / 0.01) * moved / 0.7)
    assert bounds.quantile_epsilon(q, error=ranks, **options) == pytest.approx(0.7)
    n = bounds.quantile_n(q, error=0.02, epsilon=0.7, **options)
    assert ranks / n <= 0.02 < ranks / (n - 1)


def test_the_worst_case_is_that_of_all_numbers_against_the_lightest():
    """Of integers, where no float has so many bits: weighed one by one; few bits, and more than 64, weigh alike."""
    ranks = bounds.quantile(0.5, domain_bits=17, epsilon=1.0, beta=0.01)
    everything = sum(weight_of_integer(z, 17) for z in range(-(2**16), 2**16))
    assert ranks == pytest.approx(2 * math.log(everything / 0.01))
    for bits in (1, 7, 15, 65, 1000):
        ranks = bounds.quantile(0.5, domain_bits=bits, epsilon=1.0, beta=0.01)
        assert ranks == pytest.approx(2 * (bits * math.log(2) - math.log(0.01)))


def test_a_median_is_the_quantile_at_one_half():
    assert bounds.median(epsilon=2.0) == bounds.quantile(0.5, epsilon=2.0)
    assert bounds.median_n(error=0.1, epsilon=2.0) == bounds.quantile_n(0.5, error=0.1, epsilon=2.0)
    assert bounds.median_epsilon(error=40) == bounds.quantile_epsilon(0.5, error=40)


@pytest.mark.parametrize(("method", "delta"), [("exponential", 0.0), ("prefix", 1e-6)])
def test_interior_points_and_their_inverses(method, delta):
    options = {"delta": delta, "method": method}
    n = bounds.interior_point_n(64, epsilon=1.0, beta=1e-3, **options)
    beta = bounds.interior_point(n, 64, epsilon=1.0, **options)
    assert beta <= 1e-3 * (1 + 1e-5)
    assert bounds.interior_point_n(64, epsilon=1.0, beta=beta, **options) <= n
    epsilon = bounds.interior_point_epsilon(n, 64, beta=1e-3, **options)
    assert epsilon <= 1 + 1e-5
    assert bounds.interior_point_n(64, epsilon=epsilon, beta=1e-3, **options) <= n
    assert bounds.interior_point(1, 64, epsilon=0.1, **options) == 1.0


def test_what_is_out_of_reach():
    with pytest.raises(ValueError, match=r"^error=0.0: must be > 0"):
        bounds.median_epsilon(error=0.0)
    with pytest.raises(ValueError, match=r"^error=1.0: must be between 0 and 1, both excluded"):
        bounds.median_n(error=1.0, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^neighbors='add-remove': must be 'replace-one' for method='prefix'"):
        bounds.interior_point(10, 64, epsilon=1.0, delta=1e-6, method="prefix", neighbors="add-remove")
