"""From errors on the records to the population: formulas, coverage in experiments, inverses, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from fastdp import bounds
from fastdp.learning.population import binomial_bound, divergence
from tests.laws import ALARM, log_at_least


@pytest.mark.parametrize("n", [10, 1000, 10**6])
@pytest.mark.parametrize("candidates", [1, 34_282, 10**400], ids=["1", "34282", "10^400"])
def test_without_errors_it_is_the_exact_chance_of_none(n, candidates):
    with mp.workdps(60):
        exact = 1 - (mpf("0.05") / candidates) ** (mpf(1) / n)
    found = bounds.population_error(n, candidates=candidates)
    assert exact * (1 - 1e-9) <= found <= min(1, exact * (1 + 1e-9))


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("t", [1e-6, 0.01, 1.0])
def test_the_divergence_is_inverted(q, t):
    p = binomial_bound(q, t)
    assert q < p <= 1
    if p < 1:
        assert divergence(q, p) == pytest.approx(t, rel=1e-6)
        assert p <= q + t + math.sqrt(2 * q * t + t * t) + 1e-9
        for g in (0.1, 1.0):
            assert p <= (1 + g) * q + (2 + 1 / (2 * g)) * t + 1e-9


def test_an_oracle_of_the_bound_by_vc_dimension():
    n, v, q, beta = 10_000, 4, 0.1, 0.05
    grown = v * math.log(2 * math.e * n / v)
    eta = math.sqrt(4 * (grown + math.log(4 / beta)) / n)
    found = bounds.population_error(n, on_records=q, vc_dimension=v)
    assert found - q == pytest.approx(eta * math.sqrt(found))
    assert bounds.population_error(3, vc_dimension=100) == 1.0


def test_thresholds_stay_within_their_bounds():
    """The threshold of the least errors, whose error on the population is known, from noisy labels. A bound of half the
    excess fails often, so that one which is far too small would be seen."""
    rng, n, noise, beta, runs = np.random.default_rng(0), 200, 0.1, 0.3, 400
    wrong = dict.fromkeys(("finite", "dimension", "too small"), 0)
    cuts = np.linspace(0, 1, 401)
    for _ in range(runs):
        x = np.sort(rng.random(n))
        y = (x > 0.5) ^ (rng.random(n) < noise)
        below = np.concatenate(([0], np.cumsum(y)))[np.searchsorted(x, cuts)]  # positives up to each cut
        errors = below + (~y).sum() - (np.searchsorted(x, cuts) - below)
        cut, on_records = cuts[errors.argmin()], errors.min() / n
        true = noise + (1 - 2 * noise) * abs(cut - 0.5)
        finite = bounds.population_error(n, on_records=on_records, candidates=401, beta=beta)
        wrong["finite"] += true > finite
        wrong["dimension"] += true > bounds.population_error(n, on_records=on_records, vc_dimension=1, beta=beta)
        wrong["too small"] += true > on_records + (finite - on_records) / 8
    assert log_at_least(wrong["finite"], runs, beta) > math.log(ALARM)
    assert log_at_least(wrong["dimension"], runs, beta) > math.log(ALARM)
    assert wrong["too small"] > runs / 10


@pytest.mark.parametrize("class_", [{"candidates": 1000}, {"vc_dimension": 6}])
@pytest.mark.parametrize(("on_records", "error"), [(0.0, 0.01), (0.1, 0.12)])
def test_the_inverse(class_, on_records, error):
    n = bounds.population_error_n(error=error, on_records=on_records, **class_)
    assert bounds.population_error(n, on_records=on_records, **class_) <= error
    assert bounds.population_error(int(0.99 * n), on_records=on_records, **class_) > error


def test_what_is_refused():
    for options, message in (
        ({}, r"^candidates=None, vc_dimension=None: must be one of them"),
        ({"candidates": 3, "vc_dimension": 3}, r"^candidates=3, vc_dimension=3: must be one of them"),
        ({"candidates": 0}, r"^candidates=0: must be"),
        ({"candidates": 2**4096}, r"^candidates=<int of 4,097 bits>: must have at most 4,096 bits$"),
        ({"vc_dimension": 0}, r"^vc_dimension=0: must be"),
        ({"candidates": 3, "on_records": 1.5}, r"^on_records=1.5: must be between 0 and 1"),
        ({"candidates": 3, "beta": 1.0}, r"^beta=1.0: must be"),
    ):
        with pytest.raises(ValueError, match=message):
            bounds.population_error(100, **options)
    with pytest.raises(ValueError, match=r"^error=0.1: is out of reach"):
        bounds.population_error_n(error=0.1, on_records=0.1, candidates=2)


def test_neither_numbers_nor_data_in_their_place_are_printed():
    with pytest.raises(ValueError, match=r"^candidates=10, vc_dimension=<list of length 2>: must be one of them"):
        bounds.population_error(100, candidates=10, vc_dimension=[771177, 2])
    with pytest.raises(ValueError, match=r"^candidates=<int of .* bits>, vc_dimension=3: must be one of them"):
        bounds.population_error(100, candidates=10**5000, vc_dimension=3)
