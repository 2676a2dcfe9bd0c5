"""Projected gradient descent, plain and noisy: fastdp/optimizing/descent.py, step_noise.py, step_schedule.py.

What theorems prove on instances with a known optimum, the law of the noise, its calibrations, an audit with a mutant,
budgets, and the errors before any of them is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness, losses, sets
from fastdp.optimizing import descent
from fastdp.optimizing import step_noise as scales
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_noise import NoiseParameters, laplace_options
from fastdp.optimizing.step_noise import noise_options as options
from fastdp.optimizing.step_schedule import DescentSchedule, GivenSteps
from fastdp.privacy import ZCDP, AllOf, ApproxDP, PureDP
from tests import oracles
from tests.laws import assert_law, audit, wrong_scales

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

plain = fastdp.projected_gradient_descent
noisy = fastdp.noisy_projected_gradient_descent
NOISES = ["auto", "gaussian", "laplace", "laplace-per-coordinate"]


def pinball(s: float, y: float) -> float:
    return 0.5 if s > y else -0.5


LOSSES: dict[str, Any] = {
    "squared": losses.SquaredError(x_norm=1, y_bound=1),
    "logistic": losses.Logistic(x_norm=1),
    "hinge": losses.Hinge(x_norm=1),
    "huber": losses.Huber(threshold=0.3, x_norm=1),
    "custom": losses.Custom(
        pinball, lambda s, y: np.abs(s - y) / 2, slope_bound=0.5, x_norm=1, y_bound=1
    ),
    "distance": losses.SquaredDistance(x_norm=1),
    "deviation": losses.AbsoluteDeviation(x_norm=1),
    "ridge": losses.SquaredError(x_norm=1, y_bound=1) + losses.L2(0.2),
}  # fmt: skip


def records(name: str, n: int, d: int, seed: int = 0) -> tuple[Array, Array | None]:
    """Points in the unit ball, and labels within 1 that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ np.linspace(1, -1, d) + 0.2 * rng.normal(size=n)
    if name in ("distance", "deviation"):
        return X + np.array([0.2, *[0.0] * (d - 1)]) * (1 - np.linalg.norm(X, axis=1, keepdims=True)), None
    return X, np.where(scores > 0, 1.0, -1.0) if name in ("logistic", "hinge") else scores.clip(-1, 1)


def risk(loss: Any, w: Array, X: Array, y: Array | None) -> float:
    of_record, lam = losses_parts(loss)
    return float(of_record.values(w, X, y).mean()) + lam / 2 * float(w @ w)


def losses_parts(loss: Any) -> tuple[Any, float]:
    return (loss.loss, loss.l2.lam) if isinstance(loss, losses.Regularised) else (loss, 0.0)


def gradient_of(loss: Any, X: Array, y: Array | None) -> Callable[[Array], Array]:
    of_record, lam = losses_parts(loss)
    return lambda w: of_record.gradients(w, X, y).mean(axis=0) + lam * w


def least_risk(name: str, X: Array, y: Array | None, over: Any) -> float:
    """By a formula where there is one, else by a long run of plain numpy: at most a little too high."""
    loss, d = LOSSES[name], X.shape[1]
    over = over.of_dimension(d)
    if name == "distance" and over.contains(X.mean(axis=0)):
        return risk(loss, X.mean(axis=0), X, y)
    if name == "deviation" and over.contains(np.median(X, axis=0)):
        return risk(loss, np.median(X, axis=0), X, y)
    if name == "squared" and over.contains(solved := np.linalg.lstsq(X, y, rcond=None)[0]):
        return risk(loss, solved, X, y)
    rates = 2.0 / np.sqrt(np.arange(1, 1501))
    path = oracles.optimizing.descent(gradient_of(loss, X, y), over.project, over.center, rates.tolist())
    return min(risk(loss, w, X, y) for w in path[::10])


# --- plain descent


@pytest.mark.parametrize("over", [sets.Ball(1.0), sets.Box(-0.5, 0.7)], ids=repr)
@pytest.mark.parametrize("name", LOSSES)
def test_the_average_is_as_good_as_the_theorem_says(name: str, over: Any) -> None:
    X, y = records(name, 300, 4)
    loss, least = LOSSES[name], least_risk(name, X, y, over)
    here = over.of_dimension(4)
    of_record, lam = losses_parts(loss)
    G, R = of_record.lipschitz(here) + lam * here.norm, here.reach(here.center)
    for steps in (1, 10, 100, 1000):
        fit = plain(X, y, loss=loss, over=over, steps=steps)
        assert fit.step_size == pytest.approx(R / (G * math.sqrt(steps)), rel=1e-12)
        assert fit.bound == pytest.approx(R * G / math.sqrt(steps), rel=1e-12)
        assert fit.steps == steps
        excess = risk(loss, fit.w, X, y) - least
        assert excess >= -1e-4
        assert excess <= R * G / math.sqrt(steps)
        assert here.contains(fit.w)
    assert excess < 0.05, "and close to the optimum"


@pytest.mark.parametrize("name", LOSSES)
def test_all_steps_are_those_of_numpy(name: str) -> None:
    X, y = records(name, 130, 5)
    over = sets.Ball(0.4)
    fit = plain(X, y, loss=LOSSES[name], over=over, steps=40, step_size=0.3, history=True)
    assert fit.history is not None
    right = oracles.optimizing.descent(gradient_of(LOSSES[name], X, y), over.project, np.zeros(5), [0.3] * 40)
    np.testing.assert_allclose(fit.history, right, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fit.w, fit.history[:-1].mean(axis=0), rtol=0, atol=1e-15)
    last = plain(X, y, loss=LOSSES[name], over=over, steps=40, step_size=0.3, average=False)
    np.testing.assert_array_equal(last.w, fit.history[-1])
    assert last.history is None
    assert last.bound is None
    np.testing.assert_array_equal(fit.history[0], np.zeros(5))


def test_a_given_step_has_a_bound_of_its_own() -> None:
    X, y = records("squared", 100, 3)
    loss, over = LOSSES["squared"], sets.Ball(1.0)
    fit = plain(X, y, loss=loss, over=over, steps=50, step_size=0.1)
    G = loss.lipschitz(over.of_dimension(3))
    assert fit.bound == pytest.approx(1 / (2 * 0.1 * 50) + 0.1 * G**2 / 2)
    unknown = plain(X, y, loss=losses.SquaredError(), over=over, steps=50, step_size=0.1)
    assert unknown.bound is None
    np.testing.assert_array_equal(unknown.w, fit.w)


def test_a_warm_start() -> None:
    X, y = records("squared", 200, 3)
    loss, over = LOSSES["squared"], sets.Ball(1.0)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    best /= max(1.0, np.linalg.norm(best))
    fit = plain(X, y, loss=loss, over=over, steps=3, start=best, history=True)
    assert fit.history is not None
    np.testing.assert_array_equal(fit.history[0], best)
    reach = float(np.linalg.norm(best)) + 1.0
    assert fit.bound == pytest.approx(reach * loss.lipschitz(over.of_dimension(3)) / math.sqrt(3))
    start = [0, 0, 0]
    np.testing.assert_array_equal(plain(X, y, loss=loss, over=over, steps=3, start=start).w,
                                  plain(X, y, loss=loss, over=over, steps=3).w)  # fmt: skip
    best[:] = 7.0
    assert (fit.history[0] != 7.0).all(), "the start is copied"


@pytest.mark.parametrize("private", [False, True])
def test_callbacks_come_after_every_step(private: bool) -> None:
    X, y = records("logistic", 100, 3)
    seen: list[tuple[int, Array]] = []

    def callback(t: int, w: Array) -> None:
        seen.append((t, w.copy()))
        w[:] = math.nan

    common: Options = {"loss": LOSSES["logistic"], "over": sets.Ball(1.0), "steps": 7, "history": True}
    if private:
        common |= {"epsilon": 1.0, "delta": 1e-6}
    runs = []
    for called in (callback, None):
        some = common | ({"rng": Randomness(seed=3)} if private else {})
        runs.append((noisy if private else plain)(X, y, callback=called, **some))
    assert [t for t, _ in seen] == list(range(1, 8))
    assert runs[0].history is not None
    np.testing.assert_array_equal(np.array([w for _, w in seen]), runs[0].history[1:])
    np.testing.assert_array_equal(runs[0].history, runs[1].history)
    np.testing.assert_array_equal(runs[0].w, runs[1].w)


@pytest.mark.parametrize("name", ["squared", "ridge", "deviation"])
def test_a_set_of_the_users_own_is_as_good(name: str) -> None:
    X, y = records(name, 100, 4)
    own = sets.Projected(sets.Ball(0.5).project, diameter=1.0, center=[0.0] * 4)
    for run, more in ((plain, {}), (noisy, {"epsilon": 1.0, "delta": 1e-6, "clip": 2.0})):
        found = [
            run(X, y, loss=LOSSES[name], over=over, steps=20, step_size=0.2, history=True,
                **more | ({"rng": Randomness(seed=5)} if more else {})).history  # type: ignore[operator]
            for over in (own, sets.Ball(0.5))
        ]  # fmt: skip
        np.testing.assert_array_equal(found[0], found[1])


# --- noisy descent: without noise it is the plain one


@pytest.fixture
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "integer_noise", lambda law, key, n: np.zeros(n, np.int64))


@pytest.mark.usefixtures("_no_noise")
@pytest.mark.parametrize("average", [True, False, None])
@pytest.mark.parametrize("name", LOSSES)
def test_without_noise_it_is_the_plain_one(name: str, average: bool | None) -> None:
    """But for the grid, to which gradients are rounded; steps fall to 0 by default."""
    X, y = records(name, 150, 5)
    over = sets.Ball(0.8)
    resolution = None if name in ("distance", "deviation") else 2.0**-28  # with which points are as they are
    fit = noisy(
        X, y, loss=LOSSES[name], over=over, epsilon=1, delta=1e-6, steps=30, average=average, history=True,
        resolution=resolution,
    )  # fmt: skip
    assert fit.coordinates == "float64"
    assert fit.history is not None
    falling = 1 - np.arange(30) / 30 if average is None else np.ones(30)
    right = oracles.optimizing.descent(
        gradient_of(LOSSES[name], X, y), over.project, np.zeros(5), (fit.step_size * falling).tolist()
    )
    np.testing.assert_allclose(fit.history, right, rtol=0, atol=30 * fit.step_size * fit.resolution * math.sqrt(5) * 2)
    expected = fit.history[:-1].mean(axis=0) if average else fit.history[-1]
    np.testing.assert_allclose(fit.w, expected, rtol=0, atol=1e-15)
    if name == "squared":
        same = plain(X, y, loss=LOSSES[name], over=over, steps=30, step_size=fit.step_size)
        if average:
            np.testing.assert_allclose(fit.w, same.w, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("_no_noise")
@pytest.mark.parametrize("name", ["squared", "logistic", "huber", "ridge"])
def test_without_noise_points_of_16_bits_are_nearly_the_same(name: str) -> None:
    """Points and scores are off by a few parts in 16,383, factors by one of 1,024; the mean of them by far less."""
    X, y = records(name, 1500, 17)
    over = sets.Ball(0.8)
    fit = noisy(X, y, loss=LOSSES[name], over=over, epsilon=1, delta=1e-6, steps=30, history=True)
    assert fit.coordinates == "int16"
    rates = fit.step_size * (1 - np.arange(30) / 30)
    right = oracles.optimizing.descent(gradient_of(LOSSES[name], X, y), over.project, np.zeros(17), rates.tolist())
    part = fit.clip * (2 * math.sqrt(17) / 16383 + 2.0**-10 / math.sqrt(1500))
    np.testing.assert_allclose(fit.history, right, rtol=0, atol=rates.sum() * part)


@pytest.mark.usefixtures("_no_noise")
def test_gradients_are_clipped_at_the_clip() -> None:
    X = np.array([[3.0, 4.0], [0.03, 0.04]])
    fit = noisy(X, loss=losses.SquaredDistance(), over=sets.Box(-1e6, 1e6), epsilon=1, delta=1e-6, clip=0.5, steps=1,
                step_size=1.0, average=False)  # fmt: skip
    assert fit.clip == 0.5
    assert fit.bound is None
    # gradients (-6, -8), clipped to (-.3, -.4), and (-.06, -.08)
    np.testing.assert_allclose(fit.w, [0.18, 0.24], rtol=0, atol=2e-9)
    assert (fit.w <= [0.18, 0.24]).all(), "rounded toward zero"


@pytest.mark.usefixtures("_no_noise")
def test_a_coarse_grid() -> None:
    X = np.array([[0.3, -0.3]])
    fit = noisy(X, loss=losses.SquaredDistance(), over=sets.Box(-1e6, 1e6), epsilon=1, delta=1e-6, clip=1.0, steps=1,
                step_size=1.0, average=False, resolution=0.5)  # fmt: skip
    np.testing.assert_array_equal(fit.w, [0.5, -0.5])
    assert fit.resolution == 0.5


# --- the law of the noise


def one_step(X: Array, noise: str = "gaussian", **more: Any) -> Any:
    """One long step from 0 in a box that is never reached: minus the noisy gradient, over n."""
    common: Options = {"loss": losses.SquaredDistance(), "over": sets.Box(-1e9, 1e9), "clip": 1.0, "steps": 1}
    return noisy(X, noise=noise, **common | {"step_size": 1.0, "average": False, "epsilon": 1.0} | more)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "laplace-per-coordinate"])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_noise_has_the_law_that_is_stated(noise: str, neighbors: str) -> None:
    """Integers of the grid, by their exact law; scales of 3/2 and 2/3 are refuted by the same draws."""
    more: Options = {"neighbors": neighbors, "records": 1 if neighbors == "add-remove" else None}
    fit = one_step(np.zeros((1, 30_000)), noise, delta=1e-6, rng=Randomness(seed=6), resolution=2.0**-18, **more)
    assert fit.noise.startswith(noise[:7])
    draws = np.rint(-fit.w / fit.resolution).astype(np.int64)
    np.testing.assert_array_equal(draws * fit.resolution, -fit.w)
    make = oracles.noise.gaussian_law if noise == "gaussian" else oracles.noise.laplace_law
    scale = fit.noise_scale / fit.resolution
    assert_law(draws, make(scale), wrong_scales(make, scale))


def test_noises_of_all_steps_are_independent_draws_of_one_law() -> None:
    X = np.zeros((2, 1000))
    fit = one_step(X, delta=1e-6, steps=20, rng=Randomness(seed=7), history=True, clip=2.0**-40, resolution=2.0**-60,
                   loss=losses.Custom(lambda s, y: 0.0), y=np.zeros(2))  # fmt: skip
    assert fit.history is not None
    moves = -np.diff(fit.history, axis=0) * 2 / fit.resolution
    draws = np.rint(moves).astype(np.int64)
    assert_law(draws.ravel()[::1], oracles.noise.gaussian_law(fit.noise_scale / fit.resolution))
    assert len(np.unique(draws)) > 0.9 * draws.size, "no step repeats another"


def test_noise_is_drawn_anew_unless_a_seed_is_given() -> None:
    X, y = records("squared", 50, 3)
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    first, second = (noisy(X, y, rng=Randomness(seed=8), **common) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert (noisy(X, y, **common).w != noisy(X, y, **common).w).any()
    rng = Randomness(seed=8)
    assert (noisy(X, y, rng=rng, **common).w != noisy(X, y, rng=rng, **common).w).any()


@pytest.mark.parametrize("noise", NOISES)
def test_one_seed_one_result_whatever_holds_the_records(noise: str) -> None:
    X, y = records("logistic", 400, 6)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    common: Options = {
        "loss": LOSSES["logistic"],
        "over": sets.Ball(2.0),
        "epsilon": 1.0,
        "delta": 1e-6,
        "noise": noise,
    }
    right = noisy(X, y, rng=Randomness(seed=9), **common).w
    for points, labels in ((np.asfortranarray(X), y), (frame, "label"), (X, (y > 0) if y is not None else None)):
        np.testing.assert_array_equal(noisy(points, labels, rng=Randomness(seed=9), **common).w, right)


# --- calibrations: docs/algorithms.md 5.3, 5.4

FINE = 2.0**31  # the sensitivity in grid units, as 2^30 units a clip have it


def test_scales_of_one_step_at_epsilon_1_and_delta_1e6() -> None:
    found = laplace_options(FINE / 8, 64, 1.0, 1e-6)
    assert found["pure"] / FINE == pytest.approx(8.0, rel=1e-12)
    assert found["simple"] / FINE == pytest.approx(5.350, abs=5e-4)
    assert found["tight"] / FINE == pytest.approx(4.531, abs=5e-4)
    assert options(FINE, 64, 1, 1.0, 1e-6)["gaussian"].value / FINE == pytest.approx(4.225, abs=5e-4)
    for d, right in ((1, 1.0), (2, 1.414), (4, 2.0), (16, 3.837), (64, 4.373)):
        scale = options(FINE, d, 1, 1.0, 1e-6)["laplace"]
        assert scale.value / FINE == pytest.approx(right, abs=6e-4)
        assert scale.calibration == ("pure" if d <= 4 else "exact")
    assert "gaussian" not in options(FINE, 4, 1, 1.0, 0.0)
    assert set(laplace_options(FINE, 4, 1.0, 0.0)) == {"pure"}


def test_scales_are_what_simple_formulas_say() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9)):
        L = math.log(1 / delta)
        rho = (math.sqrt(L + epsilon) - math.sqrt(L)) ** 2
        for d, steps in ((3, 10), (20, 100)):
            found = laplace_options(FINE / math.sqrt(d), d * steps, epsilon, delta)
            assert found["pure"] == pytest.approx(FINE * math.sqrt(d) * steps / epsilon, rel=1e-9)
            assert found["simple"] == pytest.approx(FINE * math.sqrt(steps / (2 * rho)), rel=1e-9)
            assert found["exact"] <= found["tight"] <= found["simple"]
            every = options(FINE, d, steps, epsilon, delta)
            assert every["laplace"].value == pytest.approx(min(found.values()), rel=1e-5)
            assert every["laplace-basic"].value == pytest.approx(FINE * d * steps / epsilon, rel=1e-9)
            assert every["laplace"].value <= every["laplace-per-coordinate"].value * (1 + 1e-9)


def delta_of_laplace(b: float, coordinates: int, epsilon: float) -> float:
    """The true delta of Laplace noise of scale b on coordinates that each move by 1 / sqrt(coordinates).

    The privacy loss of a coordinate is s with probability 1/2, -s with e^-s / 2, and in between of density
    e^(-(s - l) / 2) / 4 (s the shift over b); they are added up by a Fourier transform, on a grid of s / 16.
    """
    s = 1 / (b * math.sqrt(coordinates))
    cells = 16
    ends = np.linspace(-s, s, 2 * cells + 1)
    law = np.zeros(2 * cells + 1)
    mass = (np.exp(-(s - ends[1:]) / 2) - np.exp(-(s - ends[:-1]) / 2)) / 2
    law[1:] += mass / 2
    law[:-1] += mass / 2
    law[-1] += 0.5
    law[0] += math.exp(-s) / 2
    assert law.sum() == pytest.approx(1, abs=1e-12)
    size = 2 * cells * coordinates + 1
    total = np.fft.irfft(np.fft.rfft(law, 2 * size) ** coordinates, 2 * size)[:size]
    loss = np.linspace(-s * coordinates, s * coordinates, size)
    over = loss > epsilon
    return float((total[over] * -np.expm1(epsilon - loss[over])).sum())


def test_the_constant_of_the_notes_is_not_valid() -> None:
    """sqrt(ln(1/delta)) / epsilon per unit of sensitivity: ever closer to a Gaussian, of delta 1.06e-5."""
    b = math.sqrt(math.log(1e6))
    limit = math.erfc((b - 0.5 / b) / math.sqrt(2)) / 2 - math.e * math.erfc((b + 0.5 / b) / math.sqrt(2)) / 2
    assert limit == pytest.approx(1.06e-5, rel=5e-3)
    found = [delta_of_laplace(b, d, 1.0) for d in (16, 64, 256, 1024)]
    assert found == sorted(found)
    assert found[1] > 5e-6
    assert found[-1] == pytest.approx(limit, rel=0.05)
    for d in (16, 64, 256):
        valid = options(FINE, d, 1, 1.0, 1e-6)["laplace"].value / FINE
        assert delta_of_laplace(valid, d, 1.0) <= 1e-6
        assert valid > b


def test_every_calibration_is_of_the_sensitivity_of_its_neighbours() -> None:
    X, y = records("squared", 100, 4)
    loss, over = LOSSES["squared"], sets.Ball(1.0)
    common: Options = {"loss": loss, "over": over, "epsilon": 1.0, "delta": 1e-6, "steps": 10}
    for noise in NOISES:
        replace = noisy(X, y, noise=noise, **common)
        remove = noisy(X, y, noise=noise, neighbors="add-remove", records=100, **common)
        assert replace.clip == remove.clip == loss.lipschitz(over.of_dimension(4))
        assert replace.noise_scale == pytest.approx(2 * remove.noise_scale, rel=1e-4)
        assert replace.noise_scale == replace.scales[noise] if noise != "auto" else min(replace.scales.values())
        assert replace.guarantee.neighbors == "replace-one"
        assert remove.guarantee.neighbors == "add-remove"
    assert set(replace.scales) >= {"gaussian", "laplace", "laplace-per-coordinate"}


def test_gaussian_noise_wins_as_the_dimension_grows() -> None:
    """By variance: sigma^2 against 2 b^2, and the noise of each coordinate by itself falls behind as sqrt(d) does."""
    behind = []
    for d in (1, 4, 16, 64, 256):
        found = options(FINE, d, 20, 1.0, 1e-6)
        gaussian, laplace, each = (found[n].variance for n in ("gaussian", "laplace", "laplace-per-coordinate"))
        assert laplace <= each * (1 + 1e-9)
        behind.append(each / laplace)
        if d >= 4:
            assert gaussian < laplace
    assert behind == sorted(behind)
    assert behind[-1] == pytest.approx(256, rel=0.1)
    assert options(FINE, 1, 1, 1.0, 1e-6)["laplace"].variance < options(FINE, 1, 1, 1.0, 1e-6)["gaussian"].variance


# --- utility


@pytest.mark.parametrize(("noise", "average"), [*((noise, None) for noise in NOISES[1:]), ("gaussian", True)])
@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_excess_is_within_the_bound(name: str, noise: str, average: bool | None) -> None:
    X, y, least = solved(name)
    rng, found = Randomness(seed=10), []
    common: Options = {"loss": LOSSES[name], "over": sets.Ball(1.0), "epsilon": 0.1, "delta": 1e-6}
    for _ in range(6):
        fit = noisy(X, y, noise=noise, average=average, rng=rng, **common)
        found.append(risk(LOSSES[name], fit.w, X, y) - least)
        assert fit.bound is not None
        assert fit.uncapped is not None
        assert fit.uncapped <= fit.bound
        assert fit.steps <= 1000
    assert np.mean(found) <= fit.bound
    assert min(found) >= -1e-4


@lru_cache
def solved(name: str) -> tuple[Array, Array | None, float]:
    X, y = records(name, 4000, 3)
    return X, y, least_risk(name, X, y, sets.Ball(1.0))


def test_the_way_of_classes_is_longer_where_noise_is_strong() -> None:
    """That of numbers is what the theorem asks for; both are, where there is no noise to speak of."""
    asked = NoiseParameters.of(0.1, 1e-6, "auto", "add-remove")
    for loss in (losses.Logistic(x_norm=1), losses.Huber(0.1, x_norm=1)):
        lengths = []
        for n in (100, 10_000_000):
            schedule = DescentSchedule.of(Problem.of(loss, sets.Ball(10), 5), n, 5, asked, GivenSteps())
            noise = math.sqrt(schedule.grid.square(n, 5) / schedule.steps)
            longest = 0.9 * schedule.steps / loss.curvature()
            lengths.append(schedule.rates[0] * schedule.steps / min(0.85 * 10 / noise, longest))
        assert lengths[1] == pytest.approx(1, rel=0.01)
        if isinstance(loss, losses.Huber):
            assert lengths[0] == pytest.approx(1, rel=0.01)
        else:
            assert lengths[0] > 3


@pytest.mark.parametrize("name", ["squared", "hinge"])
def test_bounds_fall_with_records_and_with_epsilon(name: str) -> None:
    def bound(n: int, epsilon: float) -> float:
        X, y = records(name, n, 8)
        options: Options = {"over": sets.Ball(1.0), "epsilon": epsilon, "delta": 1e-6, "curvature": "declared"}
        found = noisy(X, y, loss=LOSSES[name], **options).bound
        assert found is not None
        return found

    by_n, by_epsilon = (
        [bound(n, 0.1) for n in (500, 2000, 8000)],
        [bound(2000, epsilon) for epsilon in (0.05, 0.1, 0.2)],
    )
    assert by_n == sorted(by_n, reverse=True)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_n[-1] < 0.3 * by_n[0]


def test_the_noises_are_in_the_order_that_theory_says() -> None:
    """The excess of a mean in 64 dimensions is the noise in it: 1 to 2.3, and then as d."""
    n, d = 2000, 64
    X, y = records("distance", n, d)
    X = 0.5 * X + 0.4 * np.eye(d)[0]
    loss, over, rng = LOSSES["distance"], sets.Ball(1.0), Randomness(seed=11)
    least = risk(loss, X.mean(axis=0), X, y)
    common: Options = {"loss": loss, "over": over, "epsilon": 1.0, "delta": 1e-6, "steps": 50, "step_size": 0.25}
    excess = {
        noise: float(np.mean([
            risk(loss, noisy(X, y, noise=noise, average=True, rng=rng, **common).w, X, y) - least for _ in range(8)
        ]))
        for noise in NOISES
    }  # fmt: skip
    assert excess["auto"] == pytest.approx(excess["gaussian"], rel=0.2)
    assert 1.7 * excess["gaussian"] < excess["laplace"] < 3 * excess["gaussian"]
    assert 5 * excess["laplace"] < excess["laplace-per-coordinate"]


def test_the_schedule_sees_no_record() -> None:
    """Under add-remove neighbours not even how many there are."""
    X, y = records("logistic", 500, 4)
    assert y is not None

    def public(fit: Any) -> tuple[Any, ...]:
        return fit.steps, fit.step_size, fit.noise_scale, fit.bound, fit.uncapped, fit.clip, fit.resolution, fit.scales

    common: Options = {"loss": LOSSES["logistic"], "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    one, other = noisy(X, y, **common), noisy(-X / 3, -y, **common)
    assert public(one) == public(other)
    common |= {"neighbors": "add-remove", "records": 450}
    some = [noisy(X[:n], y[:n], **common) for n in (1, 499, 500)]
    assert public(some[0]) == public(some[1]) == public(some[2])
    none = noisy(X[:0], y[:0], **common)
    assert public(none) == public(some[0])


def test_what_is_given_is_taken() -> None:
    X, y = records("squared", 100, 3)
    fit = noisy(X, y, loss=losses.SquaredError(), over=sets.Ball(1.0), epsilon=1, delta=1e-6, clip=0.7, steps=13,
                step_size=0.03, resolution=2.0**-12, history=True)  # fmt: skip
    assert (fit.clip, fit.steps, fit.step_size, fit.resolution) == (0.7, 13, 0.03, 2.0**-12)
    assert fit.history is not None
    assert fit.history.shape == (14, 3)
    assert fit.bound is None
    assert (
        noisy(X, y, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=1).steps <= 1000
        if y is None
        else True
    )


# --- audits


def released(x: float, noise: str, runs: int, seed: int, **more: Any) -> Array:
    rng, X = Randomness(seed=seed), np.array([[x]])
    return np.rint([one_step(X, noise, rng=rng, **more).w[0] for _ in range(runs)])  # few outcomes, for a sharp audit


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0.0), ("gaussian", 0.1)])
def test_an_audit_of_one_step(noise: str, delta: float) -> None:
    """Neighbours {x} and {-x}, whose gradients are as far apart as clipped ones can be; a mutant is refuted that takes
    the clip, not twice the clip, for their distance."""
    price: Options = {"delta": delta}
    here, there = (released(x, noise, 2500, seed, **price) for seed, x in enumerate((3.0, -3.0), 12))
    for p, q in ((here, there), (there, here)):
        verdict = audit(p, q, 1.0, delta)
        assert not verdict.refuted, str(verdict)
    mutant: Options = price | {"neighbors": "add-remove", "records": 1}
    here, there = (released(x, noise, 2500, seed, **mutant) for seed, x in enumerate((3.0, -3.0), 14))
    assert audit(here, there, 1.0, delta).refuted
    assert audit(there, here, 1.0, delta).refuted


# --- guarantees and budgets


def test_guarantees() -> None:
    X, y = records("squared", 100, 17)
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0), "steps": 10}
    pure = noisy(X, y, epsilon=0.5, **common)
    assert pure.guarantee == PureDP(0.5)
    assert pure.noise == "laplace (pure)"
    both = noisy(X, y, epsilon=0.5, delta=1e-6, noise="gaussian", **common)
    assert isinstance(both.guarantee, AllOf)
    assert both.guarantee.parts[0] == ApproxDP(0.5, 1e-6)
    rho = both.guarantee.parts[1]
    assert isinstance(rho, ZCDP)
    found = scales.point_grid(
        scales.NoiseParameters(0.5, 1e-6, "gaussian", "replace-one"), clip=4.0, n=100, d=17, steps=10
    )
    assert found is not None
    assert both.clip == 4.0
    longest = found[0].longest * both.resolution  # the clip, and what rounding a factor may add
    assert 4.0 < longest < 4.01
    assert rho.rho == pytest.approx(10 * (2 * longest / both.noise_scale) ** 2 / 2, rel=1e-9)
    L = math.log(1e6)
    assert (math.sqrt(L + 0.5) - math.sqrt(L)) ** 2 < rho.rho < 2 * (math.sqrt(L + 0.5) - math.sqrt(L)) ** 2


@pytest.mark.parametrize("noise", NOISES)
def test_a_descent_is_one_charge(noise: str) -> None:
    X, y = records("squared", 60, 3)
    budget = Budget(epsilon=2.0, delta=1e-5)
    fit = noisy(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=0.5, delta=1e-6, steps=5, noise=noise,
                budget=budget)  # fmt: skip
    (row,) = budget.releases
    assert row.mechanism == "noisy_projected_gradient_descent"
    assert dict(row.parameters) == {"epsilon": 0.5, "delta": 1e-6, "steps": 5, "clip": fit.clip}
    assert row.guarantee == fit.guarantee
    assert "0.5" in str(budget.spent)
    with budget:
        noisy(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=0.5, delta=1e-6, steps=5)
    assert len(budget.releases) == 2


def test_a_descent_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = records("squared", 60, 3)
    drawn: list[int] = []
    monkeypatch.setattr(descent, "integer_noise", lambda *args: drawn.append(1))
    budget = Budget(epsilon=0.4, delta=1e-5)
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0)}
    with pytest.raises(BudgetExceeded):
        noisy(X, y, epsilon=0.5, delta=1e-6, budget=budget, **common)
    with pytest.raises(BudgetExceeded):
        noisy(X, y, epsilon=0.3, delta=1e-4, budget=budget, **common)
    with pytest.raises(ValueError, match="neighbors"):
        noisy(X, y, epsilon=0.3, budget=budget, neighbors="add-remove", records=60, **common)
    assert not drawn
    assert not budget.releases
    assert budget.left == PureDP(0.4)


def test_a_callback_that_fails_has_been_paid_for() -> None:
    X, y = records("squared", 60, 3)
    budget = Budget(epsilon=1.0)

    def callback(t: int, w: Array) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        noisy(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=0.5, callback=callback, budget=budget)
    assert len(budget.releases) == 1


# --- bad input


def refused(message: str, error: type[Exception] = ValueError, X: Any = None, y: Any = None, **more: Any) -> None:
    """A call of the noisy descent fails with this message, and nothing is spent; of the plain one, if it takes that."""
    points, labels = records("squared", 60, 3)
    budget = Budget(epsilon=1000.0, delta=0.5)
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    X, y = points if X is None else X, labels if isinstance(y, type(None)) else y
    with pytest.raises(error, match=message):
        noisy(X, y, budget=budget, **common | more)
    assert not budget.releases
    assert budget.left == PureDP(1000.0)
    if more.keys() <= {"loss", "over", "steps", "step_size", "start", "outside"}:
        with pytest.raises(error, match=message):
            plain(X, y, **{"loss": LOSSES["squared"], "over": sets.Ball(1.0), "steps": 5} | more)


def spoiled(value: float) -> Array:
    X = records("squared", 60, 3)[0].copy()
    X[31, 1] = value
    return X


def test_records_that_are_refused() -> None:
    for value in (math.nan, math.inf, -math.inf, 1e300):
        refused(
            r"^X: must be finite, with norms below 2\^511; there are records that are not$", DomainError, spoiled(value)
        )
    refused(r"^X: norms must be at most x_norm=1; there are records beyond: .*clip", DomainError, spoiled(1.1))
    refused(r"^X: n=0 records: must be at least one$", X=np.ones((0, 3)), y=np.ones(0))
    refused(r"^X: must have at least one column$", X=np.ones((5, 0)), y=np.ones(5))
    refused(
        r"^X: shape \(5,\): must have two dimensions, records and columns; of one column, X\[:, None\]$",
        X=np.ones(5),
        y=np.ones(5),
    )
    refused(r"^X: type object: must be a 2-D numpy array", X=object())
    for y in (np.ones(59), np.ones(61), np.ones((60, 2)), 1.0):
        refused(r"^y: shape .*: must be \(60,\), a label for each record$", y=y)
    refused(r"^y: must be at most y_bound=1 in magnitude; there are others: .*clip", DomainError, y=np.full(60, 1.5))
    refused(r"^y: must be finite; there is a NaN", DomainError, y=np.full(60, math.nan))
    refused(r"^y: must be 1, and 0 or -1 where it is not; there are other labels$", DomainError, loss=LOSSES["hinge"])
    refused(r"^y: must be None: SquaredDistance has no labels$", loss=LOSSES["distance"])
    X, _ = records("squared", 60, 3)
    with pytest.raises(ValueError, match=r"^y=None: must be the labels of the records: SquaredError has some$"):
        noisy(X, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=1.0)


def test_parameters_that_are_refused() -> None:
    for value in (0, -1, 2.5, "3", True):
        refused(r"^steps=.*: must be an integer >= 1$", steps=value)
    refused(r"^start: must lie in the set that is minimised over, Ball\(1\)$", start=[1.0, 1.0, 0.0])
    refused(r"^start: 2 coordinates: must be 3, as the records have columns$", start=[0.0, 0.0])
    refused(r"^start: must be finite; there is a NaN or an infinity in it$", start=[0.0, math.nan, 0.0])
    refused(r"^over=.*: must be one of fastdp\.sets", over="ball")
    refused(r"has dimension 2: must be 3, as the records have columns$", over=sets.Ball(1.0, center=[0.0, 0.0]))
    refused(r"^loss='squared': must be one of fastdp\.losses", loss="squared")
    refused(r"^outside='ignore': must be one of 'raise', 'clip'$", outside="ignore")
    for name in ("clip", "step_size", "epsilon"):
        for value in (0, -1.0, math.nan, math.inf, "1", True):
            refused(rf"^{name}=.*: must be (a number|> 0 and finite)$", **{name: value})
    for value in (1.0, 1.5, -1e-9, math.nan, "x"):
        refused(r"^delta=.*: must be ", delta=value)
    for value in (0.3, 0, -1.0, "1", math.inf):
        refused(r"^resolution=.*: must be ", resolution=value)
    refused(
        r"^noise='uniform': must be one of 'auto', 'gaussian', 'laplace', 'laplace-per-coordinate'$", noise="uniform"
    )
    refused(r"^neighbors='both': must be one of ", neighbors="both")
    refused(r"^records=60: must be None with neighbors='replace-one'$", records=60)
    refused(r"^records=None: must be given with neighbors='add-remove'$", neighbors="add-remove")
    for value in (0, -3, 2.5, "9"):
        refused(r"^records=.*: must be an integer >= 1$", neighbors="add-remove", records=value)


def test_bounds_that_are_missing() -> None:
    refused(r"^loss: SquaredError\(\) needs x_norm=, the bound that the records keep; or give clip=$",
            loss=losses.SquaredError(), epsilon=1.0)  # fmt: skip
    refused(r"^loss: SquaredError\(x_norm=1\) needs y_bound=, .*; or give clip=$", loss=losses.SquaredError(x_norm=1),
            epsilon=1.0)  # fmt: skip
    X, y = records("squared", 60, 3)
    with pytest.raises(ValueError, match=r"^loss: SquaredError\(\) needs x_norm=, .*; or give step_size=$"):
        plain(X, y, loss=losses.SquaredError(), over=sets.Ball(1.0), steps=3)
    assert noisy(X, y, loss=losses.SquaredError(), over=sets.Ball(1.0), epsilon=1.0, clip=1.0).bound is None


def test_grids_that_overflow() -> None:
    refused(r"^resolution=.*: must be larger: sums of 60 records leave int64 on this grid$", resolution=2.0**-60)
    refused(r"^resolution=.*: noise of .* grid units: must be between 2\^-20 and 2\^40 of them$", resolution=2.0**40)
    refused(r"^n=\d+, epsilon=1\.0: the grid would have fewer than 64 units in a record$", neighbors="add-remove",
            records=10**18)  # fmt: skip
    refused(r"^epsilon=701\.0: must be at most 700", epsilon=701.0)
    for name in ("epsilon", "delta"):
        refused(rf"^{name}=.*: must be at least 1e-100", **{name: 1e-101})


# --- what is shown


def test_results_print() -> None:
    X, y = records("squared", 100, 3)
    fit = plain(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), steps=100)
    shown = repr(fit)
    assert shown.startswith("Descent\n  w            [")
    assert f"steps        100 of size {fit.step_size:.3g}" in shown
    assert "excess risk  at most 0.4 in expectation" in shown
    last = plain(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), steps=100, average=False)
    assert "excess risk  no bound" in repr(last)
    private = noisy(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=1.0, delta=1e-6, noise="gaussian")
    shown = repr(private)
    for text in ("PrivateDescent\n", "excess risk  at most", "clip         4, on a grid of",
                 "noise        gaussian, scale", "guarantee    (1, 1e-06)-DP and"):  # fmt: skip
        assert text in shown
    page = private._repr_html_()
    assert page.startswith("<table><caption>PrivateDescent</caption><tr><th>w</th><td>[")
    assert page.endswith("</td></tr></table>")
    assert page.count("<tr>") == 6
    wide = plain(*records("squared", 100, 50), loss=LOSSES["squared"], over=sets.Ball(1.0), steps=2)
    assert len(repr(wide)) < 300
    assert "..." in repr(wide)


def test_the_price_of_the_limit_to_the_steps_is_shown() -> None:
    X, y = records("hinge", 60_000, 2)
    options: Options = {"over": sets.Ball(1.0), "epsilon": 8.0, "delta": 1e-3, "curvature": "declared"}
    fit = noisy(X, y, loss=LOSSES["hinge"], **options)
    assert fit.steps == 1000
    assert fit.bound is not None
    assert fit.uncapped is not None
    assert fit.uncapped < 0.95 * fit.bound
    assert f"; {fit.uncapped:.3g} with as many steps as the theorem takes" in repr(fit)


def test_results_are_not_changed_by_hand() -> None:
    X, y = records("squared", 100, 3)
    fit = noisy(X, y, loss=LOSSES["squared"], over=sets.Ball(1.0), epsilon=1.0)
    with pytest.raises(AttributeError):
        fit.w = np.zeros(3)
    assert scales.FINEST == 2.0**30


def attempt(budget: Any = None, **more: Any) -> Any:
    common = {"loss": losses.SquaredDistance(x_norm=1), "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    return fastdp.noisy_projected_gradient_descent(np.full((50, 1), 0.5), budget=budget, **common | more)


def test_a_simplex_of_one_point() -> None:
    assert attempt(over=sets.Simplex()).w.tolist() == [1.0]
    assert fastdp.projected_gradient_descent(
        np.ones((5, 1)), loss=losses.SquaredDistance(x_norm=1), over=sets.Simplex(), steps=3
    ).w.tolist() == [1.0]


@pytest.mark.parametrize(("epsilon", "delta"), [(1e300, 0.0), (1e-300, 0.0), (750.0, 1e-6)])  # 1e5, 1e-6 hangs
def test_extreme_prices(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match=r"^(n=50, )?epsilon="):
        attempt(epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("clip", [5e-324, 1e-300, 1e250, 1e308])
def test_extreme_clips(clip: float) -> None:
    with pytest.raises(ValueError, match=r"^clip=.*: must be between 2\^-400 and 2\^400$"):
        attempt(clip=clip)


def test_gaussian_without_delta() -> None:
    with pytest.raises(ValueError, match=r"^noise='gaussian': needs delta > 0; 'laplace' does not$"):
        attempt(noise="gaussian", delta=0.0)


def test_a_callback_is_checked_before_it_is_paid_for() -> None:
    budget = Budget(epsilon=5.0)
    with pytest.raises(ValueError, match=r"^callback=3: must be "):
        attempt(budget, callback=3, delta=0.0)
    assert not budget.releases


def test_a_grid_that_only_a_public_number_would_allow_is_refused() -> None:
    """Under add-remove, an overflow would tell how many records there are: the grid must do for 2^31 of them."""
    with pytest.raises(ValueError, match=r"^resolution=9.09\S+: must be larger: sums of 2147483648 records"):
        fastdp.noisy_projected_gradient_descent(
            np.ones((9, 1)), loss=losses.AbsoluteDeviation(), over=sets.Box(0.0, 0.5), epsilon=1.0,
            neighbors="add-remove", records=1, resolution=2.0**-40, steps=1,
        )  # fmt: skip
