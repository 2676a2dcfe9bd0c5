"""Means and medians of columns."""

from __future__ import annotations

import numpy as np
import pytest

import fastdp
from fastdp import Budget, Randomness
from fastdp.sklearn import (
    PrivateMean,
    PrivateMedian,
)
from tests.sklearn.cases import RNG, N


def test_means_and_medians_of_columns() -> None:
    X = RNG.lognormal([0, 1], 0.5, size=(N, 2))
    mean = PrivateMean(1.0, 1e-6, bounds=(0, 20), outside="clip", random_state=0).fit(X)
    assert np.abs(mean.center_ - X.mean(axis=0)).max() < 0.05
    median = PrivateMedian(1.0, bounds=(0, 1000), outside="clip", random_state=0).fit(X)
    assert np.abs(median.center_ - np.median(X, axis=0)).max() < 0.1
    for estimator in (mean, median):
        assert np.array_equal(estimator.transform(X), X - estimator.center_)
        assert np.allclose(estimator.inverse_transform(estimator.transform(X)), X)
        assert estimator.get_feature_names_out().tolist() == ["x0", "x1"]


@pytest.mark.parametrize("parameters", [(5.0, 0.0), (1.0, 0.01)], ids=["laplace", "gaussian"])
def test_the_noise_of_a_mean_is_as_said(parameters: tuple[float, float]) -> None:
    X = np.tile([[10.0, -1.0]], (100, 1))
    model = PrivateMean(*parameters, bounds=([-100, -12], [120, 10]))
    found = np.array([model.set_params(random_state=seed).fit(X).center_ for seed in range(600)])
    assert np.abs(found.std(axis=0) / model.noise_scale_ - 1).max() < 0.15
    assert np.abs((found.mean(axis=0) - [10, -1]) / model.noise_scale_).max() < 0.25


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("d", [1, 3])
def test_a_median_is_that_of_fastdp_with_its_share_of_epsilon(d: int) -> None:
    X = RNG.uniform(0, 1, size=(50, d))
    for seed in range(20):
        model = PrivateMedian(0.75, bounds=(0, 1), bits=10, random_state=seed).fit(X)
        cells = np.floor(X[:, 0] * 1024).astype(int)
        expected = fastdp.median(cells, domain_bits=10, epsilon=0.75 / d, rng=Randomness(seed=seed))
        assert model.center_[0] == (expected + 0.5) / 1024


def test_few_records_are_told_before_a_median_is_released() -> None:
    with Budget(epsilon=1) as budget, pytest.raises(fastdp.AccuracyWarning, match="too few for medians"):
        PrivateMedian(0.1, bounds=(0, 1)).fit([[0.5], [0.25]])
    assert not budget.releases
