"""Steps that grow on the way of a loss with corners: by released gradients alone, and what comes out."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fastdp
from fastdp import Randomness, bounds, losses, sets
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_noise import NoiseParameters
from fastdp.optimizing.step_schedule import DescentSchedule, GivenSteps
from fastdp.optimizing.stepwise import LongerSteps

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")

Array = NDArray[Any]
HINGE = losses.Hinge(x_norm=1)
OVER = sets.Ball(10)
CHECKS = (50, 100, 200, 400, 700)  # of 1,000 steps


def table(n: int = 5000, d: int = 4, seed: int = 1) -> tuple[Array, Array]:
    """Points that lie close together, so that a long way leads to the minimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 0.05
    X[:, -1] = 0.9
    return X / np.linalg.norm(X, axis=1).max(), np.where(X[:, 0] + 0.02 * rng.normal(size=n) > 0.01, 1.0, -1.0)


def fit_of(X: Any, y: Any, seed: int = 0, **more: Any) -> Any:
    given = {"loss": HINGE, "over": OVER, "epsilon": 10.0, "delta": 1e-6, "neighbors": "add-remove", **more}
    return fastdp.noisy_projected_gradient_descent(X, y, records=len(X), rng=Randomness(seed=seed), **given)


def risk(w: Array, X: Array, y: Array) -> float:
    return float(np.maximum(0, 1 - y * (X @ w)).mean())


def schedule_of(n: int, d: int, epsilon: float = 1.0, loss: Any = HINGE) -> tuple[Problem, DescentSchedule]:
    problem = Problem.of(loss, OVER, d)
    asked = NoiseParameters.of(epsilon, 1e-6, "auto", "add-remove")
    return problem, DescentSchedule.of(problem, n, d, asked, GivenSteps())


def test_the_excess_is_a_part_of_that_of_planned_steps_at_the_same_price() -> None:
    X, y = table()
    least = fastdp.nonprivate_minimum(X, y, loss=HINGE, over=OVER)[1]
    longer, planned = ([fit_of(X, y, seed, curvature=way) for seed in range(5)] for way in ("auto", "declared"))
    off = [np.median([risk(fit.w, X, y) - least for fit in fits]) for fits in (longer, planned)]
    assert off[0] < 0.2 * off[1]
    for one, other in zip(longer, planned, strict=True):
        assert str(one.guarantee) == str(other.guarantee)
        assert (one.steps, one.noise_scale, one.step_size) == (other.steps, other.noise_scale, other.step_size)
        assert risk(one.w, X, y) - least <= one.bound
    assert planned[0].bound == bounds.noisy_projected_gradient_descent(
        5000, 4, loss=HINGE, over=OVER, epsilon=10.0, delta=1e-6, neighbors="add-remove"
    )


def test_where_nothing_is_seen_the_run_is_that_of_planned_steps() -> None:
    """To the bit: so planned steps are never lost by looking."""
    X, y = table(300)
    one, other = (fit_of(X, y, epsilon=0.2, curvature=way) for way in ("auto", "declared"))
    assert one.w.tobytes() == other.w.tobytes()
    assert one.bound == other.bound
    assert one.uncapped == other.uncapped


@pytest.mark.parametrize("given", [{"noise": "gaussian"}, {"steps": 1000}, {"clip": 1.0}, {"resolution": 2.0**-20}])
def test_what_is_given_keeps_planned_steps(given: dict[str, Any]) -> None:
    X, y = table()
    fits = [fit_of(X, y, curvature=way, **given) for way in ("auto", "declared")]
    assert fits[0].w.tobytes() == fits[1].w.tobytes()
    assert fit_of(X, y).w.tobytes() != fit_of(X, y, curvature="declared").w.tobytes()


@pytest.mark.parametrize(
    "other",
    [losses.Logistic(x_norm=1), losses.SquaredError(x_norm=1, y_bound=1), losses.AbsoluteDeviation()],
    ids=repr,
)
def test_steps_of_smooth_and_of_distance_losses_do_not_grow(other: Any) -> None:
    assert not schedule_of(5000, 4, loss=other)[1].may_grow
    assert schedule_of(5000, 4)[1].may_grow


def test_noise_alone_makes_no_step_longer() -> None:
    """But in one look of some hundred: three deviations of its square."""
    problem, schedule = schedule_of(5000, 8)
    assert schedule.steps == 1000
    deviation = sqrt(schedule.grid.square(5000, 8) / 8)
    grown = 0
    for seed in range(40):
        rng, steps = np.random.default_rng(seed), LongerSteps(problem, schedule, 5000)
        rates = []
        for t in range(1000):
            rates.append(steps.rate(t, problem.start))
            steps.saw(rng.normal(size=8) * deviation)
        grown += rates != pytest.approx(list(schedule.rates))
        assert (steps.added > 0) == (rates != pytest.approx(list(schedule.rates)))
    assert grown <= 6


def test_steps_grow_as_the_theorem_says() -> None:
    """One way all along: at every look, the shorter of the two limits, falling to 0 at the last step."""
    n, d = 5000, 4
    problem, schedule = schedule_of(n, d, epsilon=10.0)
    noise, gradient = schedule.grid.square(n, d), np.array([0.03, 0.0, -0.04, 0.0])
    steps, planned, first, since, gone, added = LongerSteps(problem, schedule, n), schedule.rates[0], 0.0, 0, 0.0, 0.0
    first = planned
    window = 0
    for t in range(1000):
        if t in CHECKS:
            left, signal = 1000 - t, 0.05**2 - noise / window
            rough = 0.25 * (0.05**2 - noise) + noise
            wanted = min(10 / sqrt(left * rough), 2 * gone * (sqrt(signal * 1000 / noise) - 1) / left)
            if wanted > first * (1 - (t - since) / (1000 - since)):
                first, since = wanted, t
                added += 10**2 / (2 * first * left) + first * (left + 1) / (2 * left) * (1 + noise)
            window = 0
        rate = steps.rate(t, problem.start)
        assert rate == pytest.approx(first * (1 - (t - since) / (1000 - since)), rel=1e-9)
        gone += rate
        window += 1
        steps.saw(gradient)
    assert since > 0
    assert steps.added == pytest.approx(added, rel=1e-6)


def test_the_mean_excess_is_within_the_mean_bound() -> None:
    X, y = table(1500)
    least = fastdp.nonprivate_minimum(X, y, loss=HINGE, over=OVER)[1]
    for epsilon in (0.5, 3.0):
        fits = [fit_of(X, y, seed, epsilon=epsilon) for seed in range(10)]
        assert np.mean([risk(fit.w, X, y) - least for fit in fits]) <= np.mean([fit.bound for fit in fits])


def test_a_warning_is_by_what_was_known_beforehand(recwarn: pytest.WarningsRecorder) -> None:
    X, y = table()
    fit = fit_of(X, y)
    assert fit.bound > 1 > fit_of(X, y, curvature="declared").bound
    assert not [w for w in recwarn if issubclass(w.category, fastdp.AccuracyWarning)]


def test_private_erm_takes_them_too() -> None:
    X, y = table()
    options: dict[str, Any] = {"loss": HINGE, "over": OVER, "epsilon": 10.0, "delta": 1e-6}
    for curvature in ("auto", "declared"):
        whole = fastdp.private_erm(X, y, curvature=curvature, rng=Randomness(seed=3), **options)
        alone = fastdp.noisy_projected_gradient_descent(X, y, curvature=curvature, rng=Randomness(seed=3), **options)
        assert whole.method == "descent"
        assert whole.w.tobytes() == alone.w.tobytes()
        assert whole.bound == alone.bound


@pytest.mark.parametrize(
    "more",
    [{"loss": HINGE + losses.L2(0.01)}, {"loss": HINGE + losses.L1(0.001)}, {"over": sets.Box(-3, 3)}, {"delta": 0.0}],
    ids=str,
)
def test_regularisers_sets_and_laplace_noise(more: dict[str, Any]) -> None:
    X, y = table()
    fit = fit_of(X, y, **more)
    seen: list[int] = []
    again = fit_of(X, y, callback=lambda t, w: seen.append(t), progress=lambda *_: None, **more)
    assert fit.w.tobytes() == again.w.tobytes()
    assert seen == list(range(1, fit.steps + 1))
    assert more.get("over", OVER).of_dimension(4).contains(fit.w)
    assert risk(fit.w, X, y) < risk(fit_of(X, y, curvature="declared", **more).w, X, y)
