"""The bounds of many quantiles: that they hold for what is released, and that their inverses are their inverses."""

from __future__ import annotations

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, bounds
from tests import oracles

QUARTILES, DECILES = [0.25, 0.5, 0.75], [k / 10 for k in range(1, 10)]


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("qs", [QUARTILES, DECILES, [0.01, 0.5]])
def test_the_bound_holds_for_what_is_released(qs, neighbors):
    """For few and many values, by halving and by counted parts, at a beta of a hundred-millionth."""
    draw = np.random.default_rng(0)
    for n in (500, 20_000, 300_000):
        for values in (draw.normal(size=n), draw.integers(0, 5_000, n)):
            for epsilon in (0.3, 3.0):
                found = fastdp.quantiles(values, qs, epsilon=epsilon, neighbors=neighbors, rng=Randomness(seed=n))
                bound = bounds.quantiles(qs, n, epsilon=epsilon, beta=1e-8, neighbors=neighbors)
                assert oracles.quantiles.rank_errors(values, found, qs).max() <= bound <= n


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_inverses(neighbors):
    options = {"neighbors": neighbors, "domain_bits": 32}
    n = bounds.quantiles_n(QUARTILES, error=0.01, epsilon=1.0, **options)
    assert bounds.quantiles(QUARTILES, n, epsilon=1.0, **options) <= 0.01 * n
    epsilon = bounds.quantiles_epsilon(QUARTILES, 10**7, error=2_000.0, **options)
    assert bounds.quantiles(QUARTILES, 10**7, epsilon=epsilon, **options) <= 2_000.0


def test_more_of_anything_helps():
    """Epsilon, bits, and a delta for small epsilons; no rank is off by more than all values."""
    assert bounds.quantiles(DECILES, 10**8, epsilon=2.0) < bounds.quantiles(DECILES, 10**8, epsilon=1.0)
    assert bounds.quantiles(DECILES, 10**8, epsilon=1.0, domain_bits=8) < bounds.quantiles(DECILES, 10**8, epsilon=1.0)
    assert bounds.quantiles(DECILES, 500, epsilon=1e-3) == 500
    assert bounds.quantiles(DECILES, 10**8, epsilon=1e-4, delta=1e-6) < bounds.quantiles(DECILES, 10**8, epsilon=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"n": 0}, "n=0"), ({"beta": 0}, "beta=0"), ({"qs": [2]}, r"^qs\[0\]: must be between 0 and 1")],
)
def test_bad_input(change, said):
    options = {"qs": QUARTILES, "n": 100, "epsilon": 1.0, **change}
    with pytest.raises(ValueError, match=said):
        bounds.quantiles(options.pop("qs"), options.pop("n"), **options)


@pytest.mark.parametrize("epsilon", [1e-320, 1e-160, 1e160, 1.79e308])
def test_the_ends_of_epsilon(epsilon):
    found = bounds.quantiles([i / 100 for i in range(1, 100)], 1000, epsilon=epsilon)
    assert found == 1000 if epsilon < 1 else 0 <= found < 1000
