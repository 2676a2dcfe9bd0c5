"""The error bounds of the room: beside the runs that they speak of, their formulas, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import bounds, losses, sets
from tests.laws import at_most

Array = np.ndarray[Any, Any]
PRICE = {"epsilon": 1.0, "delta": 1e-6}
BALL = sets.Ball(1.0)


def records(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, (X @ rng.normal(size=d) / math.sqrt(d)).clip(-1, 1)


# --- descent


@pytest.mark.parametrize("steps", [1, 10, 100, 1000])
def test_plain_descent_keeps_to_both_theorems(steps: int) -> None:
    X, y = records(300, 4)
    error = losses.SquaredError(x_norm=1, y_bound=1)
    options: dict[str, Any] = {"loss": error, "over": BALL}
    _, least = fastdp.nonprivate_minimum(X, y, **options)
    over = BALL.of_dimension(4)
    G, beta = error.lipschitz(over), error.curvature()
    by_slope = fastdp.projected_gradient_descent(X, y, steps=steps, **options)
    bound = bounds.projected_gradient_descent(steps, radius=1.0, lipschitz=G)
    assert bound == pytest.approx(G / math.sqrt(steps), rel=1e-12)
    assert by_slope.bound == pytest.approx(bound, rel=1e-12)
    by_smoothness = fastdp.projected_gradient_descent(X, y, steps=steps, step_size=1 / beta, average=False, **options)
    smooth = bounds.projected_gradient_descent(steps, radius=1.0, smoothness=beta)
    assert smooth == pytest.approx(beta / (2 * steps), rel=1e-12)
    for fit, most in ((by_slope, bound), (by_smoothness, smooth)):
        excess = fastdp.nonprivate_excess_risk(fit.w, X, y, least=least, **options)
        assert -1e-7 <= excess <= most


def test_the_smooth_bound_is_reached_within_a_small_factor() -> None:
    """A corner's worst case: |w| rounded off, one record, few steps; a bound ten times smaller would be wrong."""
    X, y = np.ones((1, 1)), np.zeros(1)
    huber = losses.Huber(threshold=0.05, x_norm=1.0)
    fit = fastdp.projected_gradient_descent(
        X, y, loss=huber, over=sets.Ball(1.0), steps=10, step_size=0.5, average=False, start=[1.0]
    )
    excess = fastdp.nonprivate_excess_risk(fit.w, X, y, loss=huber, over=sets.Ball(1.0))
    bound = bounds.projected_gradient_descent(10, radius=1.0, smoothness=2.0)
    assert bound / 10 < excess <= bound


def test_steps_solve_for_the_excess() -> None:
    for more in ({"lipschitz": 3.0}, {"smoothness": 0.7}):
        for excess in (1e-3, 0.02, 10.0, 1e9):
            steps = bounds.projected_gradient_descent_steps(excess=excess, radius=2.0, **more)
            assert bounds.projected_gradient_descent(steps, radius=2.0, **more) <= excess * (1 + 1e-12)
            assert steps == 1 or bounds.projected_gradient_descent(steps - 1, radius=2.0, **more) > excess
    for wrong in ({}, {"lipschitz": 1.0, "smoothness": 1.0}):
        with pytest.raises(ValueError, match=r"^lipschitz=.*, smoothness=.*: give one of them$"):
            bounds.projected_gradient_descent(1, radius=1.0, **wrong)
    with pytest.raises(ValueError, match=r"^excess=1e-300: is out of reach"):
        bounds.projected_gradient_descent_steps(excess=1e-300, radius=1.0, smoothness=1.0)


# --- what a run says of itself is what is said beforehand


def test_bounds_are_those_of_runs() -> None:
    X, y = records(2000, 3)
    sign = np.where(y > 0, 1.0, -1.0)
    error, logistic, hinge = losses.SquaredError(x_norm=1, y_bound=1), losses.Logistic(x_norm=1), losses.Hinge(x_norm=1)
    for loss, labels in ((error, y), (logistic, sign), (hinge, sign)):
        more: dict[str, Any] = {"loss": loss, "over": BALL, "curvature": "declared", **PRICE}
        fit: Any = fastdp.noisy_projected_gradient_descent(X, labels, **more)
        assert fit.bound == bounds.noisy_projected_gradient_descent(2000, 3, loss=loss, over=BALL, **PRICE)
    more = {"loss": hinge, "over": BALL, "noise": "laplace", "steps": 20, "average": True, **PRICE}
    fit = fastdp.noisy_projected_gradient_descent(X, sign, **more)
    assert fit.bound == bounds.noisy_projected_gradient_descent(2000, 3, **more)
    with pytest.raises(ValueError, match=r"^average=False: there is no bound for the last point of constant steps$"):
        bounds.noisy_projected_gradient_descent(2000, 3, **more | {"average": False})
    fit = fastdp.noisy_least_squares(X, y, loss=error, over=BALL, **PRICE)
    assert fit.bound == bounds.noisy_least_squares(2000, 3, loss=error, over=BALL, **PRICE)
    fit = fastdp.exponential_erm(X, sign, loss=hinge, over=BALL, epsilon=1.0, beta=0.1)
    assert fit.bound == bounds.exponential_erm(2000, 3, loss=hinge, over=BALL, epsilon=1.0, beta=0.1)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_sums_and_means_are_within_their_error(neighbors: Any, delta: float) -> None:
    n, d, clip, beta, runs = 200, 3, 0.5, 0.25, 120
    X, _ = records(n, d)
    X *= clip
    price: dict[str, Any] = {"clip": clip, "epsilon": 1.0, "delta": delta, "neighbors": neighbors}
    of_sum = bounds.vector_sum_error(n, d, beta=beta, **price)
    of_mean = bounds.vector_mean(n, d, beta=beta, **price)
    assert of_mean == pytest.approx(of_sum / n, rel=1e-14)
    more = {"records": n} if neighbors == "add-remove" else {}
    off_sum = [np.abs(fastdp.vector_sum(X, **price).value - X.sum(axis=0)).max() for _ in range(runs)]
    off_mean = [np.abs(fastdp.vector_mean(X, **price, **more).value - X.mean(axis=0)).max() for _ in range(runs)]
    for off, bound in ((off_sum, of_sum), (off_mean, of_mean)):
        failures = int((np.array(off) > bound).sum())
        assert beta <= at_most(failures, runs, 1e-9) or failures <= beta * runs
        assert (np.array(off) > bound / 3).sum() > 0, "and comes near to it"


def test_the_theorem_over_the_ball_is_that_of_one_dimension() -> None:
    """And the exact choice on a line, whose bound is the same but for the grid."""
    found = bounds.exponential_mechanism_over_ball(1000, 1, radius=0.5, lipschitz=1.0, epsilon=1.0, beta=0.1)
    assert found == pytest.approx(2 / 1000 * (1 + math.log(500) + math.log(10)), rel=1e-12)
    line = bounds.exponential_erm(1000, 1, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=1.0, beta=0.1)
    assert line == pytest.approx(found, rel=1e-6)
    few = bounds.exponential_mechanism_over_ball(5, 100, radius=1.0, lipschitz=1.0, epsilon=1.0)
    assert few >= 2.0, "with few records no better than the range of the loss"


# --- inverses

HINGE: dict[str, Any] = {"loss": losses.Hinge(x_norm=1), "over": BALL}
ERROR: dict[str, Any] = {"loss": losses.SquaredError(x_norm=1, y_bound=1), "over": BALL}
INVERTED: dict[str, tuple[Callable[..., float], dict[str, Any], str, float]] = {
    "noisy_projected_gradient_descent": (bounds.noisy_projected_gradient_descent, HINGE | PRICE, "excess", 0.1),
    "noisy_least_squares": (bounds.noisy_least_squares, ERROR | PRICE, "excess", 0.1),
    "exponential_erm": (bounds.exponential_erm, HINGE | {"epsilon": 1.0}, "excess", 0.1),
    "exponential_mechanism_over_ball": (
        bounds.exponential_mechanism_over_ball, {"radius": 1.0, "lipschitz": 2.0, "epsilon": 1.0}, "excess", 0.1,
    ),
    "vector_mean": (bounds.vector_mean, {"clip": 1.0} | PRICE, "error", 0.01),
}  # fmt: skip


@pytest.mark.parametrize("name", INVERTED)
def test_inverses_solve_for_n_and_epsilon(name: str) -> None:
    bound, options, wanted, most = INVERTED[name]
    n = getattr(bounds, f"{name}_n")(2, **{wanted: most}, **options)
    assert bound(n, 2, **options) <= most
    assert bound(int(n / 1.01) - 1, 2, **options) > most * 0.999
    without = {key: value for key, value in options.items() if key != "epsilon"}
    epsilon = getattr(bounds, f"{name}_epsilon")(n, 2, **{wanted: most}, **without)
    assert epsilon == pytest.approx(1.0, rel=0.02)
    assert bound(n, 2, epsilon=epsilon, **without) <= most
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=rf"^{wanted}=.*: must be > 0 and finite$"):
            getattr(bounds, f"{name}_n")(2, **{wanted: wrong}, **options)


def test_inverses_of_what_has_no_n() -> None:
    epsilon = bounds.vector_sum_error_epsilon(1000, 4, error=20.0, clip=0.5, delta=1e-6)
    assert bounds.vector_sum_error(1000, 4, clip=0.5, epsilon=epsilon, delta=1e-6) <= 20.0
    assert bounds.vector_sum_error(1000, 4, clip=0.5, epsilon=epsilon * 0.98, delta=1e-6) > 20.0
    error: dict[str, Any] = {"loss": losses.SquaredError(x_norm=1, y_bound=1), "over": BALL}
    epsilon = bounds.private_erm_epsilon(20_000, 3, excess=0.05, delta=1e-6, **error)
    found = bounds.private_erm(20_000, 3, epsilon=epsilon, delta=1e-6, **error).excess.values()
    assert min(each for each in found if each is not None) <= 0.05


def test_what_no_number_of_records_brings() -> None:
    with pytest.raises(ValueError, match=r"^excess=1e-30: is out of reach, with 1,099,511,627,776 records too$"):
        bounds.exponential_mechanism_over_ball_n(2, excess=1e-30, radius=1.0, lipschitz=1.0, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^excess=1e-30: is out of reach, with an epsilon of 1024$"):
        bounds.exponential_mechanism_over_ball_epsilon(100, 2, excess=1e-30, radius=1.0, lipschitz=1.0)
