"""How much of noisy moments is believed: post-processing alone, within the allowance, and better where it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fastdp
from fastdp import Randomness, losses, sets
from fastdp.optimizing.moments import MomentsPlan
from fastdp.optimizing.noisy_quadratics import ALLOWED, MomentNoise, NoisyQuadratic
from fastdp.optimizing.nonprivate import minimise_quadratic
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_noise import NoiseParameters

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")

Array = NDArray[Any]
ERROR = losses.SquaredError(x_norm=1, y_bound=1)


def noisy(gram: Array, cross: Array, over: Any, scale: float, lam: float = 0.0) -> NoisyQuadratic:
    return NoisyQuadratic(gram, cross, lam, over.of_dimension(len(cross)), MomentNoise(scale, scale), 1.0, 1.0)


def table(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Columns of very different scales, one of them constant, one the sum of two others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 0.03, d)
    X[:, -1], X[:, 1] = 0.5, X[:, 0] + X[:, 2]
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.clip(X @ rng.normal(size=d) + 0.05 * rng.normal(size=n), -1, 1)


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("over", [sets.Ball(10.0), sets.Box(-4.0, 4.0), sets.Simplex(5.0), sets.Ball(8.0, norm=1)])
def test_the_noisy_quadratic_rises_by_no_more_than_is_allowed(over: Any, lam: float) -> None:
    rng, moved = np.random.default_rng(1), 0
    for d in (1, 2, 7):
        for scale in (1e-4, 0.02, 0.5):
            for allowed in (0.0, 1e-3, 10.0):
                A = rng.normal(size=(d, d))
                gram = A @ A.T / d**2 + scale * (A + A.T)
                quadratic = noisy(gram, rng.normal(size=d), over, scale, lam)
                w, ridge = quadratic.minimise(allowed)
                assert ridge == pytest.approx(max(0.0, -np.linalg.eigvalsh(gram)[0]), rel=1e-12)
                convex = gram + (ridge + lam / 2) * np.eye(d)
                best = minimise_quadratic(convex, quadratic.cross, quadratic.over)

                def value(w: Array, convex: Array = convex, cross: Array = quadratic.cross) -> float:
                    return float(w @ convex @ w - 2 * cross @ w)

                assert value(w) <= value(best) + allowed + 1e-6 * (1 + abs(value(best)))
                assert quadratic.over.contains(w)
                moved += bool(np.linalg.norm(w - best) > 1e-6)
    assert moved


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("over", [sets.Ball(10.0), sets.Box(-4.0, 4.0), sets.Simplex(5.0), sets.Ball(8.0, norm=1)])
def test_gradients_without_noise_lead_to_the_minimum_over_the_set(over: Any, lam: float) -> None:
    """Whether that is within the set or on its border, where a projection would be another point."""
    rng, projected = np.random.default_rng(2), 0
    for d in (1, 3, 6):
        for far in (0.5, 30.0):
            A = rng.normal(size=(2 * d, d))
            gram, cross = A.T @ A / (2 * d) + 0.1 * np.eye(d), far * rng.normal(size=d)
            quadratic = noisy(gram, cross, over, 1e-9, lam)
            at = quadratic.over.project(rng.normal(size=d))
            gradient = quadratic.eigen[1].T @ (cross - gram @ at)
            found = quadratic.corrected(at, gradient, np.full(d, 1e-9), 1e9)
            best = minimise_quadratic(gram + lam / 2 * np.eye(d), cross, quadratic.over)
            np.testing.assert_allclose(found, best, atol=1e-4)
            free = np.linalg.solve(gram + lam / 2 * np.eye(d), cross)
            projected += bool(np.linalg.norm(quadratic.over.project(free) - best) > 1e-2)
    assert projected


def test_a_small_set_and_a_set_that_holds_the_minimiser_keep_the_minimum() -> None:
    gram, cross = np.diag([0.3, 0.1]), np.array([0.4, 0.3])
    for over, scale in ((sets.Ball(3.0), 0.1), (sets.Ball(3.2), 1e-4)):  # the minimum without a set is at 3.3
        w, _ = noisy(gram, cross, over, scale).minimise(1.0)
        np.testing.assert_array_equal(w, minimise_quadratic(gram, cross, over.of_dimension(2)))


def test_without_noise_everything_is_believed_and_with_much_nothing() -> None:
    gram, cross = np.diag([0.3, 0.1, 0.2]), np.array([0.2, -0.1, 0.1])
    exact = cross / np.diag(gram)
    w, _ = noisy(gram, cross, sets.Ball(10.0), 1e-6).minimise(1.0)
    np.testing.assert_allclose(w, exact, rtol=1e-6)
    w, _ = noisy(gram, cross, sets.Ball(10.0), 10.0).minimise(1e9)
    assert np.linalg.norm(w) < 0.1
    w, _ = noisy(gram, np.zeros(3), sets.Ball(10.0), 0.1).minimise(1e9)
    np.testing.assert_allclose(w, 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [0.05, 0.5, 5.0, 500.0])
def test_where_nothing_is_seen_the_answer_is_a_step_that_is_right_for_any_matrix(scale: float) -> None:
    """Also where noise has made the trace negative; and what it adds to the loss is a sixteenth at most."""
    rng, d, cross = np.random.default_rng(4), 30, np.zeros(30)
    cross[0] = 0.2
    true, added = np.diag(np.r_[0.5, np.full(d - 1, 0.5 / (d - 1))]), []
    for trial in range(40):
        E = rng.normal(size=(d, d)) * scale / 2
        seen = cross + rng.normal(size=d) * scale
        quadratic = noisy((E + E.T) * 0.5 - (trial % 2) * scale * np.eye(d), seen, sets.Ball(50.0), scale)
        w, _ = quadratic.minimise(1e9)
        step = seen / (1 + 4 * scale**2)
        if np.allclose(w, sets.Ball(50.0).of_dimension(d).project(step), rtol=1e-12):
            added.append(w @ true @ w - 2 * cross @ w)
    assert len(added) > 20
    assert np.mean(added) <= 1 / 16
    if scale == 0.05:
        assert np.mean(added) < -0.03, "and downhill where the vector tells the way"


@pytest.mark.parametrize(("n", "d"), [(400, 6), (4000, 12), (1, 3), (50, 1)])
def test_the_answer_is_a_function_of_what_was_released(n: int, d: int) -> None:
    """The same from the noisy moments alone: a shrinkage by the true ones would differ."""
    X, y = table(n, max(d, 3), 3)
    X = X[:, :d]
    for seed in range(3):
        fit = fastdp.noisy_least_squares(X, y, loss=ERROR, over=sets.Ball(10.0), epsilon=1.0, delta=1e-6,
                                         noise="gaussian", rng=Randomness(seed=seed))  # fmt: skip
        problem = Problem.of(ERROR, sets.Ball(10.0), d)
        plan = MomentsPlan.of(problem, n, d, NoiseParameters.of(1.0, 1e-6, "gaussian", "replace-one"))
        again = noisy(fit.gram, fit.cross, problem.over, plan.deviation).minimise(ALLOWED * plan._noise_bound)
        np.testing.assert_array_equal(fit.w, again[0])
        assert fit.bound == plan.bound


@pytest.mark.parametrize(("n", "d", "epsilon"), [(400, 8, 1.0), (400, 8, 10.0), (5000, 12, 1.0), (5000, 12, 10.0)])
def test_better_than_the_noisy_minimum_on_collinear_and_badly_scaled_columns(n: int, d: int, epsilon: float) -> None:
    X, y = table(n, d, 4)
    gram, cross = X.T @ X / n, X.T @ y / n
    best = np.linalg.lstsq(gram, cross, rcond=1e-12)[0]
    found: dict[str, list[float]] = {"ours": [], "plain": []}
    for seed in range(15):
        fit = fastdp.noisy_least_squares(X, y, loss=ERROR, over=sets.Ball(10.0), epsilon=epsilon, delta=1e-6,
                                         neighbors="add-remove", records=n, rng=Randomness(seed=seed))  # fmt: skip
        plain = minimise_quadratic(fit.gram + fit.ridge * np.eye(d), fit.cross, sets.Ball(10.0).of_dimension(d))
        for name, w in (("ours", fit.w), ("plain", plain)):
            found[name].append(float((w - best) @ gram @ (w - best)))
    assert np.median(found["ours"]) < 0.5 * np.median(found["plain"])
