"""Losses of one record: fastdp/optimizing/losses/*.py. Derivatives by finite differences, constants on random points.

A constant (Lipschitz, curvature, range) must be an upper bound for all records within the declared bounds, and one that
records come near to: what is too large is paid for in noise.
"""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from fastdp import losses, sets
from fastdp.optimizing.losses import Loss, MissingBound, parts_of
from fastdp.optimizing.problem import Problem

Array = np.ndarray[Any, Any]


def pinball(s: float, y: float) -> float:
    return 0.3 if s > y else -0.7


MARGINS: dict[str, Loss] = {
    "squared": losses.SquaredError(x_norm=1.5, y_bound=0.7),
    "squared, far labels": losses.SquaredError(x_norm=0.2, y_bound=3.0),
    "logistic": losses.Logistic(x_norm=1.5),
    "hinge": losses.Hinge(x_norm=1.5),
    "hinge, small": losses.Hinge(x_norm=0.2),
    "huber": losses.Huber(threshold=0.4, x_norm=1.5),
    "custom": losses.Custom(
        pinball, lambda s, y: np.where(s > y, 0.3 * (s - y), 0.7 * (y - s)), slope_bound=0.7, x_norm=1.5
    ),
}
DISTANCES: dict[str, Loss] = {
    "distance": losses.SquaredDistance(x_norm=1.5),
    "deviation": losses.AbsoluteDeviation(x_norm=1.5),
}
EVERY = MARGINS | DISTANCES
SETS = [sets.Ball(0.8), sets.Ball(0.8, norm=1), sets.Box(-0.3, 0.6), sets.Ball(0.5, center=0.4), sets.Simplex(0.9)]


def some_labels(loss: Loss, rng: np.random.Generator, n: int) -> Array:
    if loss.labels == "sign":
        return rng.choice([-1.0, 1.0], n)
    return rng.uniform(-1, 1, n) * (loss.label_bound if loss.label_bound < math.inf else 3.0)


def worst_records(loss: Loss, w: Array, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Records within the bounds, most of them on the border, many along w, where losses are steepest."""
    X = rng.normal(size=(n, len(w)))
    X[: n // 2] = np.outer(rng.choice([-1.0, 1.0], n // 2), w) + 1e-6 * X[: n // 2]
    X *= (loss.x_norm or 1.0) / np.linalg.norm(X, axis=1, keepdims=True)
    X[::5] *= rng.random((len(X[::5]), 1))
    y = some_labels(loss, rng, n)
    if loss.label_bound < math.inf:
        y[1::2] = np.sign(y[1::2]) * loss.label_bound
    return X, y


def some_member(over: Any, rng: np.random.Generator) -> Array:
    return over.project(over.center + rng.normal(size=over.dimension) * rng.choice([0.3, 1.0, 10.0]))


# --- values, derivatives, gradients


@pytest.mark.parametrize("name", MARGINS)
def test_derivatives_are_those_of_the_values(name: str) -> None:
    loss: Any = MARGINS[name]
    rng = np.random.default_rng(1)
    s, y = rng.uniform(-4, 4, 2000), some_labels(loss, rng, 2000)
    h = 1e-6
    corner = np.abs(loss.derivative(s + h, y) - loss.derivative(s - h, y)) > 0.1
    assert corner.mean() < 0.01
    rise = (loss.value(s + h, y) - loss.value(s - h, y)) / (2 * h)
    np.testing.assert_allclose(rise[~corner], loss.derivative(s, y)[~corner], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_those_of_the_values(name: str) -> None:
    loss = EVERY[name]
    rng = np.random.default_rng(2)
    for d in (1, 3, 8):
        w = rng.normal(size=d)
        X, y = worst_records(loss, w, rng, 60)
        found = loss.gradients(w, X, y)
        assert found.shape == (60, d)
        h = 1e-6
        for j in range(d):
            step = h * np.eye(d)[j]
            rise = (loss.values(w + step, X, y) - loss.values(w - step, X, y)) / (2 * h)
            smooth = np.abs(loss.gradients(w + step, X, y) - loss.gradients(w - step, X, y)).max(axis=1) < 0.1
            assert smooth.mean() > 0.9
            np.testing.assert_allclose(rise[smooth], found[smooth, j], rtol=0, atol=1e-5)


def test_known_values() -> None:
    w, X = np.array([1.0, -2.0]), np.array([[0.5, 0.5], [-1.0, 0.0], [0.0, 0.0]])  # scores -0.5, -1, 0
    y = np.array([1.0, -1.0, 1.0])
    for loss, right in (
        (losses.SquaredError(), [2.25, 0.0, 1.0]),
        (losses.Logistic(), [math.log1p(math.exp(0.5)), math.log1p(math.exp(-1)), math.log(2)]),
        (losses.Hinge(), [1.5, 0.0, 1.0]),
        (losses.Huber(threshold=1.25), [1.25 * (3 - 1.25), 0.0, 1.0]),
        (losses.SquaredDistance(), [0.25 + 6.25, 4 + 4, 1 + 4]),
        (losses.AbsoluteDeviation(), [0.5 + 2.5, 2 + 2, 1 + 2]),
    ):
        np.testing.assert_allclose(loss.values(w, X, y), right, rtol=1e-14)


def test_logistic_keeps_its_digits_far_out() -> None:
    loss = losses.Logistic()
    s, one = np.array([-1e4, -800.0, -40.0, 40.0, 800.0, 1e4]), np.ones(6)
    right = [1e4, 800.0, 40.0 + math.exp(-40), math.exp(-40), 0.0, 0.0]
    np.testing.assert_allclose(loss.value(s, one), right, rtol=1e-14)
    np.testing.assert_allclose(loss.derivative(s, one), [-1, -1, -1, -math.exp(-40), 0, 0], rtol=1e-14)
    np.testing.assert_allclose(loss.derivative(-s, -one), [1, 1, 1, math.exp(-40), 0, 0], rtol=1e-14)


# --- constants


@pytest.mark.parametrize("over", SETS, ids=repr)
@pytest.mark.parametrize("name", EVERY)
def test_constants_bound_all_records_within_the_bounds(name: str, over: Any) -> None:
    loss = EVERY[name]
    rng = np.random.default_rng(3)
    for d in (1, 2, 5, 20):
        here = over.of_dimension(d)
        lipschitz, spread, smoothness = loss.lipschitz(here), loss.range(here), loss.curvature()
        for _ in range(15):
            v, w = some_member(here, rng), some_member(here, rng)
            X, y = worst_records(loss, w, rng, 100)
            at_v, at_w = loss.gradients(v, X, y), loss.gradients(w, X, y)
            assert np.linalg.norm(at_w, axis=1).max() <= lipschitz * (1 + 1e-9)
            assert np.abs(loss.values(v, X, y) - loss.values(w, X, y)).max() <= spread * (1 + 1e-9)
            if smoothness < math.inf:
                most = np.linalg.norm(at_v - at_w, axis=1).max()
                assert most <= smoothness * float(np.linalg.norm(v - w)) * (1 + 1e-9) + 1e-12


def steepest(loss: Any, over: Any) -> float:
    """The longest gradient in one dimension, by a grid over the set and the records."""
    low, high = over.project([-1e9])[0], over.project([1e9])[0]
    norm = loss.x_norm if loss.x_norm is not None else 1.0
    labels = [-1.0, 1.0] if loss.labels == "sign" else [-min(loss.label_bound, 50.0), min(loss.label_bound, 50.0)]
    longest = 0.0
    for w in np.linspace(low, high, 51):
        for x in (-norm, norm):
            for y in labels:
                longest = max(
                    longest, float(np.abs(loss.gradients(np.array([w]), np.array([[x]]), np.array([y])))[0, 0])
                )
    return longest


@pytest.mark.parametrize("over", [sets.Ball(0.8), sets.Box(-0.3, 0.6), sets.Ball(0.5, center=0.4)], ids=repr)
@pytest.mark.parametrize("name", EVERY)
def test_lipschitz_constants_are_attained(name: str, over: Any) -> None:
    here = over.of_dimension(1)
    assert steepest(EVERY[name], here) == pytest.approx(EVERY[name].lipschitz(here), rel=1e-9)


def widest(loss: Any, over: Any) -> float:
    """The largest range in one dimension, by a grid over the set and the records."""
    low, high = over.project([-1e9])[0], over.project([1e9])[0]
    most = 0.0
    scores = np.linspace(low, high, 1001)
    norm = loss.x_norm if loss.x_norm is not None else 1.0
    labels = [-1.0, 1.0] if loss.labels == "sign" else np.linspace(-1, 1, 21) * min(loss.label_bound, 50.0)
    for x in (-norm, norm):
        for y in labels:
            values = np.array([loss.values(np.array([w]), np.array([[x]]), np.array([y]))[0] for w in scores])
            most = max(most, float(values.max() - values.min()))
    return most


@pytest.mark.parametrize("name", [name for name in EVERY if name != "distance"])
def test_ranges_are_attained(name: str) -> None:
    """On a set around 0; but not that of the distance, whose records lie beyond the set here."""
    here = sets.Ball(0.8).of_dimension(1)
    found, stated = widest(EVERY[name], here), EVERY[name].range(here)
    assert found <= stated * (1 + 1e-9)
    assert (
        found >= (0.49 if name == "custom" else 0.999) * stated
    )  # a custom loss: its Lipschitz constant is all that is known
    inside = losses.SquaredDistance(x_norm=0.8)
    assert widest(inside, here) == pytest.approx(inside.range(here), rel=1e-3)


def test_curvatures_are_attained() -> None:
    for loss, s, y in (
        (losses.SquaredError(x_norm=2.0), 0.3, 1.0),
        (losses.Logistic(x_norm=2.0), 0.0, 1.0),
        (losses.Huber(1.0, x_norm=2.0), 0.3, 0.0),
    ):
        h = 1e-4
        rise = loss.derivative(np.array([s + h]), np.array([y])) - loss.derivative(np.array([s - h]), np.array([y]))
        assert 4 * rise[0] / (2 * h) == pytest.approx(loss.curvature(), rel=1e-6)
    assert losses.SquaredDistance().curvature() == 2.0
    assert losses.Hinge(x_norm=1).curvature() == losses.AbsoluteDeviation().curvature() == math.inf
    assert losses.Custom(pinball, slope_bound=1, x_norm=2).curvature() == math.inf
    assert losses.Custom(pinball, slope_bound=1, x_norm=2, curvature=0.5).curvature() == 2.0


def test_known_constants() -> None:
    ball = sets.Ball(1.0).of_dimension(3)
    squared = losses.SquaredError(x_norm=1.0, y_bound=2.0)
    assert (squared.lipschitz(ball), squared.curvature(), squared.range(ball)) == (6.0, 2.0, 8.0)
    assert losses.SquaredError(x_norm=1.0, y_bound=1.0).range(ball) == 4.0
    logistic = losses.Logistic(x_norm=2.0)
    assert logistic.lipschitz(ball) == pytest.approx(2 / (1 + math.exp(-2)), rel=1e-15)
    assert (logistic.curvature(), logistic.range(ball)) == (1.0, 2.0)
    assert losses.Logistic(x_norm=1e5).lipschitz(ball) == 1e5
    hinge = losses.Hinge(x_norm=2.0)
    assert (hinge.lipschitz(ball), hinge.range(ball)) == (2.0, 3.0)
    assert losses.Hinge(x_norm=0.5).range(ball) == 1.0
    huber = losses.Huber(threshold=0.5, x_norm=2.0)
    assert (huber.lipschitz(ball), huber.range(ball), huber.curvature()) == (2.0, 4.0, 8.0)
    assert losses.SquaredDistance(x_norm=2.0).lipschitz(ball) == 6.0
    deviation = losses.AbsoluteDeviation()
    assert deviation.lipschitz(ball) == pytest.approx(math.sqrt(3), rel=1e-15)
    assert deviation.range(ball) == pytest.approx(2 * math.sqrt(3), rel=1e-15)


# --- bounds that are missing


def test_a_missing_bound_is_an_error_that_names_it() -> None:
    ball = sets.Ball(1.0).of_dimension(3)
    for loss, name in (
        (losses.SquaredError(), "x_norm"),
        (losses.SquaredError(x_norm=1.0), "y_bound"),
        (losses.SquaredError(y_bound=1.0), "x_norm"),
        (losses.Logistic(), "x_norm"),
        (losses.Hinge(), "x_norm"),
        (losses.Huber(), "x_norm"),
        (losses.SquaredDistance(), "x_norm"),
        (losses.Custom(pinball), "x_norm"),
        (losses.Custom(pinball, x_norm=1.0), "slope_bound"),
    ):
        for ask in (loss.lipschitz, loss.range):
            with pytest.raises(MissingBound, match=rf"^loss: .* needs {name}=, the bound that the records keep$"):
                ask(ball)
        problem = Problem.of(loss, ball, 3)
        assert problem.lipschitz() is None
        with pytest.raises(ValueError, match=rf"^loss: .* needs {name}=, .*; or give clip=$"):
            problem.lipschitz_or_error("clip")
    for loss in (losses.SquaredError(), losses.Logistic(), losses.Huber()):
        with pytest.raises(MissingBound, match=r"needs x_norm="):
            loss.curvature()
        assert Problem.of(loss, ball, 3).curvature() == math.inf
    for loss in (losses.SquaredDistance(), losses.AbsoluteDeviation()):
        loss.curvature()
    assert losses.AbsoluteDeviation().lipschitz(ball) > 0


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", True, [1.0]])
def test_bounds_must_be_positive_numbers(value: Any) -> None:
    rule = r"=.*: must be (a number|> 0 and finite)$"
    for kind in (
        losses.SquaredError, losses.Logistic, losses.Hinge, losses.Huber, losses.SquaredDistance,
        losses.AbsoluteDeviation,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="^x_norm" + rule):
            kind(x_norm=value)  # type: ignore[operator]
    with pytest.raises(ValueError, match="^y_bound" + rule):
        losses.SquaredError(y_bound=value)
    with pytest.raises(ValueError, match="^threshold" + rule):
        losses.Huber(threshold=value)
    for name in ("slope_bound", "x_norm", "y_bound"):
        with pytest.raises(ValueError, match=f"^{name}{rule}"):
            losses.Custom(pinball, **{name: value})
    if value != 0:
        with pytest.raises(ValueError, match=r"^lam=.*: must be (a number|>= 0 and finite)$"):
            losses.L2(value)
        with pytest.raises(ValueError, match=r"^curvature=.*: must be (a number|>= 0 and finite)$"):
            losses.Custom(pinball, curvature=value)


def test_integers_beyond_floats_are_rounded_up() -> None:
    """A bound may only grow."""
    assert losses.Logistic(x_norm=2**53 + 1).x_norm == 2.0**53 + 2


# --- the regulariser, labels, what is shown


def test_the_regulariser_adds_to_any_loss() -> None:
    for loss in EVERY.values():
        of_record, lam, l1 = parts_of(loss + losses.L1(0.5) + losses.L2(0.25))
        assert l1 == 0.5
        assert of_record is loss
        assert lam == 0.25
        assert parts_of(loss) == (loss, 0.0, 0.0)
        assert repr(loss + losses.L2(0.25)) == f"{loss!r} + L2(0.25)"
    problem = Problem.of(losses.SquaredDistance(x_norm=1) + losses.L2(0.5), sets.Ball(2.0), 3)
    assert (problem.lam, problem.ridge, problem.curvature()) == (0.5, 1.0, 2.5)
    assert Problem.of(losses.Hinge(x_norm=1) + losses.L2(0.5), sets.Ball(2.0), 3).curvature() == math.inf
    for wrong in (3, None, losses.Hinge()):
        with pytest.raises(TypeError, match="unsupported operand"):
            losses.Logistic() + wrong  # type: ignore[operator]


def test_what_is_no_loss_is_refused() -> None:
    for wrong in (None, "squared", losses.Logistic, losses.L2(1.0), lambda s, y: s):
        with pytest.raises(ValueError, match=r"^loss=.*: must be one of fastdp\.losses, such as fastdp\.losses\.Logis"):
            parts_of(wrong)
    for wrong in (None, "ball", sets.Ball, 1.0):
        with pytest.raises(
            ValueError, match=r"^over=.*: must be one of fastdp\.sets, such as fastdp\.sets\.Ball\(1\.0"
        ):
            Problem.of(losses.Logistic(), wrong, 2)


def test_losses_say_what_labels_they_have() -> None:
    for loss in EVERY.values():
        X = np.ones((2, 2))
        if loss.labels is None:
            assert loss.values(np.zeros(2), X, None).shape == (2,)
        else:
            with pytest.raises(ValueError, match=r"^y=None: must be the labels, which this loss has$"):
                loss.values(np.zeros(2), X, None)
            with pytest.raises(ValueError, match=r"^y=None: must be the labels"):
                loss.gradients(np.zeros(2), X, None)
    assert losses.SquaredError().label_bound == losses.Logistic().label_bound == math.inf
    assert losses.SquaredError(y_bound=2).label_bound == losses.Custom(pinball, y_bound=2).label_bound == 2.0


def test_a_custom_loss_without_values() -> None:
    with pytest.raises(
        ValueError, match=r"^loss: Custom needs value=, a function of \(scores, labels\), to be evaluated"
    ):
        losses.Custom(pinball).values(np.zeros(1), np.ones((1, 1)), np.ones(1))
    with pytest.raises(ValueError, match=r"^value=3: must be a function of arrays \(scores, labels\)$"):
        losses.Custom(pinball, 3)  # type: ignore[arg-type]


def test_losses_print_as_they_are_made() -> None:
    for loss, shown in (
        (losses.SquaredError(), "SquaredError()"),
        (losses.SquaredError(x_norm=1, y_bound=2.5), "SquaredError(x_norm=1, y_bound=2.5)"),
        (losses.Logistic(x_norm=3), "Logistic(x_norm=3)"),
        (losses.Hinge(), "Hinge()"),
        (losses.Huber(), "Huber(threshold=1)"),
        (losses.SquaredDistance(x_norm=0.5), "SquaredDistance(x_norm=0.5)"),
        (losses.AbsoluteDeviation(), "AbsoluteDeviation()"),
        (losses.Custom(pinball, x_norm=2), "Custom(pinball)"),
    ):
        assert repr(loss) == shown


def test_losses_are_values() -> None:
    for name, loss in EVERY.items():
        if name != "custom":
            assert pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss) == loss
            assert hash(copy.copy(loss)) == hash(loss)
        with pytest.raises(AttributeError):
            loss.x_norm = 7.0
