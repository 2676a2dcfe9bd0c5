"""What the start, a public point, promises: it is right, it makes bounds smaller, and where it promises more, calls
warn."""

from __future__ import annotations

import warnings
from math import log
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.optimizing import private_erm as erm
from fastdp.optimizing import step_schedule
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_schedule import way_excess

LOGISTIC, ERROR = losses.Logistic(x_norm=1), losses.SquaredError(x_norm=1, y_bound=0.7)


@pytest.mark.parametrize("loss", [LOGISTIC, losses.Hinge(x_norm=1), ERROR, losses.Huber(0.4, x_norm=1)], ids=repr)
@pytest.mark.parametrize(("at", "largest"), [(0.0, 0.3), (0.0, 5.0), (0.5, 0.6), (2.0, 5.0)])
def test_no_record_loses_more_at_the_start(loss: Any, at: float, largest: float) -> None:
    labels = np.array([-1.0, 1.0]) if loss.labels == "sign" else np.linspace(-0.7, 0.7, 29)
    scores, starts = np.linspace(-largest, largest, 401), np.linspace(-at, at, 41)
    y = labels[:, None]
    worst = (loss.value(starts[None], y).max(axis=1) - loss.value(scores[None], y).min(axis=1)).max()
    bound = loss.score_excess(at, largest)
    assert worst <= bound + 1e-12
    if not isinstance(loss, losses.Huber):
        assert worst >= bound - 1e-4


@pytest.mark.parametrize("d", [1, 3])
def test_the_start_of_a_problem(d: int) -> None:
    assert Problem.of(LOGISTIC, sets.Ball(10), d).start_excess() == pytest.approx(log(2) - np.log1p(np.exp(-10)))
    near = Problem.of(LOGISTIC, sets.Ball(0.1), d)
    assert near.start_excess() <= 0.1 * LOGISTIC.lipschitz(near.over)
    moved = Problem.of(LOGISTIC + losses.L2(0.5), sets.Ball(2.0), d, [1.0] * 1 + [0.0] * (d - 1))
    assert moved.start_excess() == pytest.approx(np.log1p(np.exp(1)) - np.log1p(np.exp(-2)) + 0.25)
    assert Problem.of(losses.SquaredError(x_norm=1), sets.Ball(2.0), d).start_excess() == np.inf


def test_a_path_leaves_the_least_over_points_on_the_way() -> None:
    problem = Problem.of(LOGISTIC, sets.Ball(10), 2)
    start, square = problem.start_excess(), problem.radius**2
    for path in (1e-3, 1.0, 30.0, 144.0, 1e4):
        t = np.linspace(0, 1, 10_001)
        least = ((1 - t) * start + t**2 * square / (2 * path)).min()
        assert way_excess(problem, path) == pytest.approx(least, rel=1e-4)
        assert way_excess(problem, path) <= min(start, square / (2 * path)) * (1 + 1e-12)


def test_a_start_that_is_near_makes_bounds_smaller_and_none_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    def bounds() -> list[float]:
        at: dict[str, Any] = {"loss": LOGISTIC, "over": sets.Ball(10), "delta": 1e-6}
        return [
            fastdp.bounds.noisy_projected_gradient_descent(n, 5, epsilon=epsilon, **at)
            for n in (2000, 20_000)
            for epsilon in (0.03, 0.3, 3.0)
        ]

    now = bounds()
    monkeypatch.setattr(step_schedule, "way_excess", lambda problem, path: problem.radius**2 / (2 * path))
    before = bounds()
    assert all(new <= old for new, old in zip(now, before, strict=True))
    assert min(new / old for new, old in zip(now, before, strict=True)) < 0.99


def test_vacuous_bounds_warn_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) / 8
    y = np.clip(X[:, 0], -0.7, 0.7)
    price: dict[str, Any] = {"over": sets.Ball(10.0), "outside": "clip", "delta": 1e-6}
    calls = [
        lambda epsilon, n: fastdp.noisy_least_squares(X[:n], y[:n], loss=ERROR, epsilon=epsilon, **price),
        lambda epsilon, n: fastdp.private_erm(X[:n], y[:n], loss=ERROR, epsilon=epsilon, **price),
        lambda epsilon, n: fastdp.noisy_projected_gradient_descent(
            X[:n], y[:n] > 0, loss=LOGISTIC, epsilon=epsilon, **price
        ),
    ]
    for call in calls:
        with pytest.warns(fastdp.AccuracyWarning, match="the start, a public point, is within"):
            call(0.01, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastdp.noisy_projected_gradient_descent(X, y > 0, loss=LOGISTIC, over=sets.Ball(1.0), epsilon=1000.0)
        fastdp.exponential_erm(X, y > 0, loss=LOGISTIC, over=sets.Ball(1.0), epsilon=1000.0)


def test_bounds_beyond_the_start_count_as_alike() -> None:
    assert erm.best_of({"descent": 1.1, "moments": 50.0, "exponential": None}, 1.0) == "moments"
    assert erm.best_of({"descent": 0.2, "moments": 50.0, "exponential": None}, 1.0) == "descent"
    assert erm.best_of({"descent": 1.1, "moments": None, "exponential": 0.9}, 1.0) == "exponential"
