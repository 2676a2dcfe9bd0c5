"""L1 and elastic nets by proximal steps, and starts that are given: the step is the minimiser, compiled and plain
descents agree, no guarantee changes, and bounds hold."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.optimizing import measured_descent
from fastdp.optimizing.metric import Metric
from fastdp.optimizing.nonprivate import minimise_quadratic
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.sets import nearest

REGIONS = {
    "ball": sets.Ball(1.0), "l1 ball": sets.Ball(1.0, norm=1), "box": sets.Box(-0.5, 1.0),
    "box beside 0": sets.Box([0.2, -1.0, -1.0], [1.0, -0.1, 1.0]),
}  # fmt: skip


def seeded(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def records(n=2000, d=6, seed=0):
    """Labels that two of the columns decide."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, size=(n, d)) / np.sqrt(d)
    return X, X[:, 0] - 0.7 * X[:, 1] + draw.normal(size=n) / 10


# --- the step


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.7, 5.0])
def test_a_proximal_step_is_the_minimiser(region, threshold):
    """No point of the set, near or far, has less."""
    over, draw = REGIONS[region].of_dimension(3), np.random.default_rng(1)
    others = [over.project(draw.normal(size=3) * 2) for _ in range(300)]

    def value(u, v):
        return ((u - v) ** 2).sum() / 2 + threshold * np.abs(u).sum()

    for v in draw.normal(size=(40, 3)) * 1.5:
        found = nearest(v, over, threshold)
        assert over.contains(found)
        near = [over.project(found + draw.normal(size=3) * 1e-3) for _ in range(60)]
        assert value(found, v) <= min(value(u, v) for u in itertools.chain(others, near)) + 1e-12


def test_projecting_before_shortening_is_refuted():
    v, over = np.array([3.0, 0.6, 0.0]), sets.Ball(1.0).of_dimension(3)
    projected = over.project(v)
    wrong = np.sign(projected) * np.maximum(np.abs(projected) - 0.5, 0)
    right = nearest(v, over, 0.5)
    assert np.abs(wrong - right).max() > 0.1


def test_a_step_in_a_metric_is_the_minimiser():
    draw, over = np.random.default_rng(2), sets.Ball(1.0).of_dimension(3)
    vectors = np.linalg.qr(draw.normal(size=(3, 3)))[0]
    metric = Metric(np.array([0.1, 1.0, 4.0]), vectors)
    H = vectors @ np.diag(metric.values) @ vectors.T
    for v in draw.normal(size=(10, 3)):
        found = metric.nearest(v, over, 0.2)
        values = [
            (u - v) @ H @ (u - v) / 2 + 0.2 * np.abs(u).sum()
            for u in (
                found,
                *(over.project(found + draw.normal(size=3) * s) for s in (1e-3, 0.1, 1) for _ in range(80)),
            )
        ]
        assert values[0] <= min(values) + 1e-8


@pytest.mark.parametrize("over", [sets.Ball(2.0, center=[1.0, 0.0]), sets.Simplex(), sets.Projected(
    lambda w: w.clip(-1, 1), diameter=3, center=[0.0, 0.0])], ids=repr)  # fmt: skip
def test_other_sets_are_refused(over):
    with pytest.raises(ValueError, match="must be over a Box, or a Ball around 0"):
        Problem.of(losses.Logistic(x_norm=1) + losses.L1(0.1), over, 2)
    assert Problem.of(losses.Logistic(x_norm=1) + losses.L1(0.0), over, 2).l1 == 0


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, 2.0**301, "much"])
def test_weights_are_checked(weight):
    with pytest.raises(ValueError, match="lam="):
        losses.L1(weight)


def test_regularisers_add_up():
    both = losses.Hinge(x_norm=1) + losses.L1(0.1) + losses.L2(0.5) + losses.L1(0.2)
    assert both == losses.Hinge(x_norm=1) + losses.L2(0.5) + losses.L1(0.1 + 0.2)
    assert repr(both) == "Hinge(x_norm=1) + L2(0.5) + L1(0.3)"
    assert repr(losses.Hinge() + losses.L2(0)) == "Hinge() + L2(0)"
    with pytest.raises(TypeError):
        both + 1


# --- the minimum


def test_the_minimum_is_that_of_the_conditions_of_optimality():
    """The gradient is lam times the sign where w is not 0, and at most lam where it is."""
    X, y = records()
    for loss, labels in ((losses.SquaredError(), y), (losses.Logistic(), y > 0)):
        w, least = fastdp.nonprivate_minimum(X, labels, loss=loss + losses.L1(0.02), over=sets.Ball(50))
        signs = labels if labels is y else np.where(labels, 1.0, -1.0)
        slope = loss.gradients(w, X, signs).mean(axis=0)
        assert np.abs(slope[w == 0]).max(initial=0) <= 0.02 + 1e-6
        assert slope[w != 0] == pytest.approx(-0.02 * np.sign(w[w != 0]), abs=1e-6)
        assert 0 < (w == 0).sum() < 6
        assert least == pytest.approx(loss.values(w, X, signs).mean() + 0.02 * np.abs(w).sum())


def test_one_dimension_has_its_closed_form():
    assert minimise_quadratic(np.eye(1), np.array([0.9]), sets.Box(-5, 5).of_dimension(1), 0.4) == pytest.approx(0.7)
    assert minimise_quadratic(np.eye(1), np.array([0.1]), sets.Box(-5, 5).of_dimension(1), 0.4) == 0
    assert minimise_quadratic(np.eye(1), np.array([0.9]), sets.Box(-5, 0.3).of_dimension(1), 0.4) == pytest.approx(0.3)


# --- descents and the other methods


def plain_steps(**options):
    return fastdp.noisy_projected_gradient_descent(callback=lambda t, w: None, **options)


@pytest.mark.parametrize("region", ["ball", "l1 ball", "box"])
@pytest.mark.parametrize("n", [300, 5000])
def test_compiled_descents_have_the_bits_of_plain_ones(region, n):
    X, y = records(n)
    for resolution in (None, 2.0**-20):
        options = {
            "X": X, "y": y > 0, "loss": losses.Logistic(x_norm=1) + losses.L1(0.05), "over": REGIONS[region],
            "epsilon": 1.0, "delta": 1e-6, "curvature": "declared", "steps": 20, "resolution": resolution,
        }  # fmt: skip
        compiled = fastdp.noisy_projected_gradient_descent(rng=seeded(1), history=True, **options)
        plain = plain_steps(rng=seeded(1), history=True, **options)
        assert compiled.history.tolist() == plain.history.tolist()
        # each point is the proximal step of some point: shortened ones are 0
        assert (compiled.history[1:] == 0).any()


def test_a_weight_that_outweighs_every_slope_leaves_nothing():
    """Without noise to speak of: and the same call without L1 leaves much."""
    X, y = records(20_000)
    for method in ("descent", "moments", "exponential"):
        data, d = (X[:, :2], 2) if method == "exponential" else (X, 6)
        options = {"over": sets.Ball(1), "epsilon": 50.0, "delta": 1e-6, "method": method, "outside": "clip"}
        loss = losses.SquaredError(x_norm=1, y_bound=1)
        sparse = fastdp.private_erm(data, y, loss=loss + losses.L1(2.5), rng=seeded(2), **options)
        full = fastdp.private_erm(data, y, loss=loss, rng=seeded(2), **options)
        assert np.abs(sparse.w).max() <= (0.02 if method == "exponential" else 0.0), method
        assert np.abs(full.w).max() > 0.3
        assert len(sparse.w) == d


def test_no_guarantee_changes():
    X, y = records()
    options = {"over": sets.Ball(1), "epsilon": 1.0, "delta": 1e-6, "curvature": "declared", "steps": 10}
    logistic = losses.Logistic(x_norm=1)
    one = fastdp.noisy_projected_gradient_descent(X, y > 0, loss=logistic, **options)
    other = fastdp.noisy_projected_gradient_descent(X, y > 0, loss=logistic + losses.L1(0.1), **options)
    assert (one.guarantee, one.noise_scale, one.clip) == (other.guarantee, other.noise_scale, other.clip)


METHODS = [
    ("descent", losses.Logistic(x_norm=1), 6), ("descent", losses.Hinge(x_norm=1), 6),
    ("descent", losses.AbsoluteDeviation(), 3), ("moments", losses.SquaredError(x_norm=1, y_bound=2), 6),
    ("moments", losses.SquaredDistance(x_norm=1), 4), ("exponential", losses.Logistic(x_norm=1), 2),
]  # fmt: skip


@pytest.mark.parametrize(("method", "loss", "d"), METHODS, ids=[f"{name} {loss!r}" for name, loss, _ in METHODS])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_bounds_hold_for_the_elastic_net(method, loss, d, neighbors):
    X, y = records(1500, d)
    labels = None if loss.labels is None else y > 0 if loss.labels == "sign" else y
    whole, over = loss + losses.L1(0.03) + losses.L2(0.01), sets.Ball(1)
    _, least = fastdp.nonprivate_minimum(X, labels, loss=whole, over=over)
    excess, rng = [], seeded(3)
    for _ in range(6):
        found = fastdp.private_erm(
            X, labels, loss=whole, over=over, epsilon=1.0, delta=1e-6, method=method, rng=rng, neighbors=neighbors,
            records=1500 if neighbors == "add-remove" else None,
        )  # fmt: skip
        excess.append(fastdp.nonprivate_excess_risk(found.w, X, labels, loss=whole, over=over, least=least))
    assert -1e-6 <= np.mean(excess) <= found.bound


def test_bought_moments_keep_zeros(monkeypatch):
    """In the metric of the moments, too; and the outcome is far below that of doing nothing."""
    monkeypatch.setattr(measured_descent, "_FAR_BETTER", np.inf)
    X, y = records(100_000, 8)
    loss = losses.Logistic(x_norm=1) + losses.L1(0.01)
    found = fastdp.noisy_projected_gradient_descent(
        X, y > 0, loss=loss, over=sets.Ball(20), epsilon=2.0, delta=1e-6, rng=seeded(4)
    )
    assert found.metric == "moments"
    assert (found.w == 0).sum() >= 4
    assert (found.w[:2] != 0).all()
    excess = fastdp.nonprivate_excess_risk(found.w, X, y > 0, loss=loss, over=sets.Ball(20))
    assert excess <= 2e-4


# --- starts


def test_a_start_that_is_given_is_the_first_point_and_moves_the_bound():
    X, y = records()
    options = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(2), "epsilon": 2.0, "delta": 1e-6}
    first = fastdp.private_erm(X[:200], y[:200] > 0, method="descent", curvature="declared", rng=seeded(5), **options)
    options |= {"method": "descent", "curvature": "declared", "rng": seeded(5)}
    bounds = [
        fastdp.private_erm(X, y > 0, start=start, **options).bound for start in (None, [0.5] + 5 * [0], [2] + 5 * [0])
    ]
    assert bounds == sorted(set(bounds)), "the set reaches further from there"
    del options["method"]
    path = fastdp.noisy_projected_gradient_descent(X, y > 0, start=first.w, history=True, **options).history
    assert path[0].tolist() == first.w.tolist()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([1.5, 0.0], "start: must lie in the set that is minimised over, Ball"),
        ([np.nan, 0.0], "start: must be finite"),
        ([np.inf, 0.0], "start: must be finite"),
        ([0.5], "start: 1 coordinates: must be 2, as the records have columns"),
        ([[0.1, 0.2]], "start: shape"),
        ("here", "start: "),
    ],
)
def test_starts_that_are_none(start, message):
    with fastdp.Budget(epsilon=1.0) as budget, pytest.raises(ValueError, match=message):
        fastdp.private_erm(
            np.zeros((5, 2)), loss=losses.SquaredDistance(x_norm=1), over=sets.Ball(1), epsilon=1.0, start=start
        )
    assert budget.spent.epsilon == 0


def test_a_start_on_a_line():
    x = np.linspace(0, 1, 500)[:, None]
    options = {"loss": losses.AbsoluteDeviation(), "over": sets.Box(0, 1), "epsilon": 1.0, "method": "descent"}
    found = fastdp.private_erm(x, start=[0.25], rng=seeded(6), **options)
    assert 0 <= found.w[0] <= 1
