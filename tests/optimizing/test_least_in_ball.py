"""The least value of a quadratic on a ball: it satisfies the conditions for one, and nobody on the ball is better."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp.optimizing.least_in_ball import least_in_ball


def _problem(draw, d):
    values = np.sort(10.0 ** draw.uniform(-8, 8, size=d)) * (draw.random(d) < 0.8)
    slopes = draw.normal(size=d) * 10.0 ** draw.uniform(-6, 6, size=d) * (draw.random(d) < 0.9)
    return values, slopes, 10.0 ** draw.uniform(-3, 3)


def test_the_conditions_for_a_least_value_hold():
    draw = np.random.default_rng(0)
    bound = 0
    for _ in range(2000):
        values, slopes, radius = _problem(draw, int(draw.integers(1, 12)))
        u = least_in_ball(values, slopes, radius)
        length = np.linalg.norm(u)
        assert length <= radius * (1 + 1e-14)
        gradient = values * u - slopes
        scale = np.abs(values * u).max() + np.abs(slopes).max() + 1e-300
        if length < radius * (1 - 1e-12):
            assert np.abs(gradient).max() <= 1e-12 * scale
            continue
        bound += 1
        multiplier = -float(gradient @ u) / float(u @ u)  # gradient = -multiplier u, multiplier >= 0
        assert multiplier >= -1e-9 * scale / radius
        assert np.abs(gradient + multiplier * u).max() <= 1e-9 * scale
    assert 500 < bound < 1950


@pytest.mark.parametrize("d", [1, 2, 40])
def test_nobody_on_the_ball_is_better(d):
    draw = np.random.default_rng(d)
    values, slopes = draw.random(d), draw.normal(size=d) * 3
    u = least_in_ball(values, slopes, 1.0)
    others = draw.normal(size=(5000, d))
    others /= np.maximum(np.linalg.norm(others, axis=1), 1.0)[:, None]

    def risk(w):
        return (w * w) @ values - 2 * w @ slopes

    assert risk(u) <= risk(others).min() + 1e-12


def test_flat_quadratics_and_no_slope():
    np.testing.assert_array_equal(least_in_ball(np.zeros(3), np.zeros(3), 2.0), np.zeros(3))
    np.testing.assert_allclose(least_in_ball(np.zeros(2), np.array([3.0, 4.0]), 1.0), [0.6, 0.8], rtol=1e-14)
    np.testing.assert_array_equal(least_in_ball(np.array([0.0, 2.0]), np.array([0.0, 2.0]), 5.0), [0.0, 1.0])
    # a direction without curvature is filled as far as the ball goes
    np.testing.assert_allclose(least_in_ball(np.array([0.0, 1e9]), np.array([1e-9, 0.0]), 5.0), [5.0, 0.0], rtol=1e-12)
