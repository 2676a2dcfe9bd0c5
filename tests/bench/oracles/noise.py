"""What the noise room's cases must have produced."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import fastdp
from tests import laws, oracles


def _check_words(words: Any, parameters: Any) -> None:
    assert words.dtype == np.uint64
    ones = sum(int(word).bit_count() for word in words)
    assert abs(ones - 32 * words.size) < 6.2 * np.sqrt(16 * words.size)  # false alarm below 1e-9
    assert len(set(words.tolist())) == words.size


def _check_law(make: Any) -> Any:
    def check(noise: Any, parameters: Any) -> None:
        (scale,) = parameters.values()
        assert noise.dtype == np.int64
        laws.assert_law(noise, make(scale), laws.wrong_scales(make, scale))

    return check


def _check_float_law(make: Any) -> Any:
    """In steps of 1/256, noise on a fine grid is discrete noise up to 1e-3 of its CDF."""

    def check(noise: Any, parameters: Any) -> None:
        (scale,) = (256 * value for value in parameters.values())
        assert noise.dtype == np.float64
        assert np.any(noise != np.rint(noise))
        law, others = make(Fraction(scale)), laws.wrong_scales(make, scale)
        drawn = np.rint(256 * noise).astype(np.int64)
        assert laws.check_dkw(drawn, law.cdf)
        assert not any(laws.check_dkw(drawn, other.cdf) for other in others)

    return check


def _check_charged(drawn: Any, parameters: Any) -> None:
    noise, budget = drawn
    assert budget.spent == fastdp.PureDP(1 / parameters["scale"])
    assert [release.mechanism for release in budget.releases] == ["laplace"]
    _check_law(oracles.noise.laplace_law)(noise, parameters)


def _check_uniform(numbers: Any, parameters: Any) -> None:
    """Multiples of 2^-53 below 1, high and low bits alike."""
    whole = numbers * 2.0**53
    assert np.array_equal(whole, np.floor(whole))
    assert 0 <= whole.min() < whole.max() < 2.0**53
    for digits in (whole.astype(np.uint64) >> np.uint64(33), whole.astype(np.uint64) & np.uint64((1 << 20) - 1)):
        assert laws.check_dkw(digits.astype(np.int64), lambda z: np.clip((z + 1) / 2.0**20, 0, 1))


def _check_seconds(seconds: Any, parameters: Any) -> None:
    assert 0 < seconds < 60


def _check_counts(drawn: Any, parameters: Any) -> None:
    exact, noisy = drawn
    assert exact.shape == noisy.shape
    assert np.abs(noisy - exact).max() < 2 * (40 + 2 * np.log(exact.size))  # noise of scale 2: chance e^-40
    assert exact.size == 1 or np.any(noisy != exact)


def _check_mean(drawn: Any, parameters: Any) -> None:
    values, mean = drawn
    assert abs(mean - values.mean()) < 40 * 1000 / len(values)  # chance e^-40


def _check_rows(drawn: Any, parameters: Any) -> None:
    every, kept = drawn
    persons, rows = np.unique(every, return_counts=True)
    of_each, left = np.unique(kept, return_counts=True)
    assert np.array_equal(persons, of_each)
    assert np.array_equal(left, np.minimum(rows, int(parameters["at_most"])))


ORACLES: dict[str, Any] = {
    "uniform words": _check_words,
    "laplace_law": _check_law(oracles.noise.laplace_law),
    "gaussian_law": _check_law(oracles.noise.gaussian_law),
    "laplace_law, rounded": _check_float_law(oracles.noise.laplace_law),
    "gaussian_law, rounded": _check_float_law(oracles.noise.gaussian_law),
    "laplace_law, charged": _check_charged,
    "uniform numbers": _check_uniform,
    "a clock": _check_seconds,
    "a mean": _check_mean,
    "counts with noise": _check_counts,
    "rows of persons": _check_rows,
}
