"""The minimum that is not private: it satisfies the optimality condition, and is kept for the same records alone."""

from __future__ import annotations

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.optimizing import nonprivate


def table(n, d, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)) / (2 * np.sqrt(d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, np.where(draw.random(n) < 1 / (1 + np.exp(-4 * X @ draw.normal(size=d) * 3)), 1.0, -1.0)


@pytest.mark.parametrize("over", [sets.Ball(2.0), sets.Ball(1.5, norm=1), sets.Box(-1, 1), sets.Simplex()], ids=repr)
@pytest.mark.parametrize("loss", [losses.Logistic(x_norm=1), losses.Huber(0.5, x_norm=1)], ids=repr)
def test_nobody_nearby_is_better_and_the_gradient_points_outward(loss, over):
    X, y = table(800, 4)
    w, least = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)
    here = over.of_dimension(4)
    slope = loss.gradients(w, X, y).mean(axis=0)
    np.testing.assert_allclose(here.project(w - slope), w, atol=1e-7)
    draw = np.random.default_rng(1)
    for _ in range(200):
        other = here.project(w + draw.normal(size=4) * 10.0 ** draw.uniform(-4, 0))
        assert loss.values(other, X, y).mean() >= least - 1e-9


def test_newton_and_accelerated_gradients_agree_on_hinges(monkeypatch):
    X, y = table(300, 3)
    for over in (sets.Ball(3.0), sets.Box(-1, 1)):
        options = {"loss": losses.Hinge(x_norm=1), "over": over}
        _, least = fastdp.nonprivate_minimum(X, y, **options)
        with monkeypatch.context() as patch:
            patch.setattr(nonprivate, "MOST_COLUMNS", 0)
            patch.setattr(nonprivate, "_solved", {})
            _, other = fastdp.nonprivate_minimum(X, y, **options)
        assert least == pytest.approx(other, abs=2e-6)


def test_a_solution_is_kept_for_the_same_records_and_for_no_others(monkeypatch):
    calls = []
    find = nonprivate._find_minimum
    monkeypatch.setattr(nonprivate, "_find_minimum", lambda *given: calls.append(1) or find(*given))
    monkeypatch.setattr(nonprivate, "_solved", {})
    X, y = table(200, 2)
    options = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(1.0)}
    w, _ = fastdp.nonprivate_minimum(X, y, **options)
    first = w.copy()
    w[:] = 7.0  # what a caller does with the answer changes nothing that is kept
    np.testing.assert_array_equal(fastdp.nonprivate_minimum(X, y, **options)[0], first)
    excess = fastdp.nonprivate_excess_risk([0.0, 0.0], X.copy(), y.copy(), **options)
    assert len(calls) == 1
    X[0, 0] += 0.01  # in place
    assert fastdp.nonprivate_excess_risk([0.0, 0.0], X, y, **options) != excess
    y[5] *= -1
    fastdp.nonprivate_minimum(X, y, **options)
    fastdp.nonprivate_minimum(X, y, loss=options["loss"] + losses.L2(0.1), over=options["over"])
    fastdp.nonprivate_minimum(X, y, loss=options["loss"], over=sets.Ball(0.9))
    fastdp.nonprivate_minimum(X[::-1], y[::-1], **options)
    assert len(calls) == 6
    for more in range(nonprivate._MOST_SOLVED + 3):
        fastdp.nonprivate_minimum(X, y, loss=options["loss"], over=sets.Ball(1.0 + more))
    assert len(nonprivate._solved) == nonprivate._MOST_SOLVED


def test_losses_of_the_users_own_are_solved_anew(monkeypatch):
    monkeypatch.setattr(nonprivate, "_solved", {})
    X, y = table(50, 2)
    loss = losses.Custom(lambda s, y: s - y, lambda s, y: (s - y) ** 2 / 2, slope_bound=3.0, x_norm=1.0)
    fastdp.nonprivate_minimum(X, y, loss=loss, over=sets.Ball(1.0))
    assert not nonprivate._solved
