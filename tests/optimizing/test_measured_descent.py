"""Descent in the metric of bought moments: what is paid, what a record may move, and what comes out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fastdp
from fastdp import Randomness, losses, sets
from fastdp.optimizing import measured_descent as public
from fastdp.optimizing.measured_descent import MeasuredPlan
from fastdp.optimizing.metric import Metric, MetricPoints, in_coordinates
from fastdp.optimizing.points import Points
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_noise import NoiseParameters, limit_of
from fastdp.optimizing.step_schedule import DescentSchedule, GivenSteps

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")

Array = NDArray[Any]
LOGISTIC = losses.Logistic(x_norm=1)
RELATIONS = ["replace-one", "add-remove"]


def plan_of(n: int = 5000, d: int = 4, epsilon: float = 1.0, neighbors: Any = "add-remove", **more: Any) -> Any:
    problem = Problem.of(more.get("loss", LOGISTIC), more.get("over", sets.Ball(10)), d)
    return MeasuredPlan.of(problem, n, d, NoiseParameters.of(epsilon, more.get("delta", 1e-6), "auto", neighbors))


def table(n: int, d: int, seed: int = 1) -> tuple[Array, Array]:
    """Columns of very different scales; the last is constant, the second the sum of two others if there are four."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 0.05, d)
    if d >= 4:
        X[:, -1], X[:, 1] = 0.7, X[:, 0] + X[:, 2]
    X /= np.linalg.norm(X, axis=1).max()
    return X, rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=d) * 4))


def fit_of(X: Any, y: Any, **more: Any) -> Any:
    given = {"loss": LOGISTIC, "over": sets.Ball(10), "epsilon": 1.0, "delta": 1e-6, **more}
    return fastdp.noisy_projected_gradient_descent(X, y, **given)


def test_what_is_bought_adds_up_to_the_price() -> None:
    """A mutant that does not pay for the moments, or for the norms, is 1 % above it."""
    for neighbors in RELATIONS:
        for epsilon in (0.5, 1.0, 10.0):
            plan = plan_of(epsilon=epsilon, neighbors=neighbors)
            for clip in (0.3, 1.0, 7.7):
                for steps in (10, 100, 1000):
                    step = plan.gradients(clip, steps)
                    parts = [(plan.moments, 1), (plan.norms, 1), (step, steps)]
                    spent = sum(
                        Fraction(count) * Fraction(share.sensitivity) ** 2
                        / (Fraction(share.sigma) ** 2 - Fraction(plan.price.extra))
                        for share, count in parts
                    )  # fmt: skip
                    price = 1 / Fraction(plan.price.ratio) ** 2
                    assert price * Fraction(999, 1000) < spent <= price
                    assert step.sensitivity >= clip * step.unit * (2 if neighbors == "replace-one" else 1)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_neighbours_move_the_moments_and_the_counts_by_no_more_than_is_paid(neighbors: Any) -> None:
    plan, rng, d = plan_of(neighbors=neighbors, d=3), np.random.default_rng(2), 3
    unit = 2.0**8
    allowed = public.gram_sensitivity(unit, 6, plan.price.asked)
    records = [*np.eye(3), *-np.eye(3), *(v / np.linalg.norm(v) for v in rng.normal(size=(20, 3))), np.zeros(3)]
    metric = Metric(np.array([0.01, 0.3, 2.0]), np.linalg.qr(rng.normal(size=(3, 3)))[0])
    edges = np.geomspace(0.1, 10, 32)

    def summed(x: Array) -> tuple[Array, Array]:
        points = Points(x[None], np.ones(1), LOGISTIC, "clip")
        points.check()
        sums = points.moments(1.0, 1.0, unit)
        rows, columns = np.triu_indices(d, 1)
        stored = np.append(sums[rows, columns], sums[d + 1])
        return stored.astype(float), MetricPoints.of(points, metric).count_norms(edges).astype(float)

    found = [summed(x) for x in records]
    nothing = (np.zeros(6), np.zeros(32))
    pairs = [(a, b) for a in found for b in found] if neighbors == "replace-one" else [(a, nothing) for a in found]
    moved = max(float(np.linalg.norm(a[0] - b[0])) for a, b in pairs)
    assert 0.99 * allowed - 3 < moved <= allowed
    assert max(float(np.linalg.norm(a[1] - b[1])) for a, b in pairs) <= plan.norms.sensitivity


def test_a_record_adds_the_same_whatever_stands_beside_it_and_no_more_than_the_clip() -> None:
    """Sums are those of the records one by one, bit for bit; a product of float matrices would not be so."""
    rng = np.random.default_rng(3)
    n, d = 37, 19
    X = rng.normal(size=(n, d)) * np.geomspace(1, 1e-4, d)
    X /= np.linalg.norm(X, axis=1)[:, None] * rng.choice([0.3, 1.0, 5.0], n)[:, None]
    metric = Metric(np.geomspace(1e-5, 1, d), np.linalg.qr(rng.normal(size=(d, d)))[0])
    y, z, clip, unit = rng.random(n) < 0.5, rng.normal(size=d), 1.7, 2.0**20

    def sums(rows: Any) -> Array:
        points = Points(X[rows], y[rows], LOGISTIC, "clip")
        points.check()
        found: Array = MetricPoints.of(points, metric).gradients(z, unit, limit_of(clip * unit, d))
        return found

    alone = [sums([i]) for i in range(n)]
    np.testing.assert_array_equal(sums(range(n)), sum(alone))
    np.testing.assert_array_equal(sums(range(5, n)), sum(alone[5:]))
    norms = [np.linalg.norm(each.astype(float)) for each in alone]
    assert 0.999 * clip * unit < max(norms) <= clip * unit


def test_coordinates_of_the_metric() -> None:
    rng, d = np.random.default_rng(4), 6
    values, vectors = np.geomspace(1e-4, 1, d), np.linalg.qr(rng.normal(size=(d, d)))[0]
    metric = Metric(values, vectors)
    H = vectors @ np.diag(values) @ vectors.T
    X, w = rng.normal(size=(50, d)) / 5, rng.normal(size=d)
    X[0] *= 100
    z = metric.coordinates(w)
    assert z @ z == pytest.approx(w @ H @ w, rel=1e-4)
    inside = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    new = in_coordinates(X, 1.0, metric)
    np.testing.assert_allclose(new @ z, inside @ w, atol=1e-4)
    for i in (0, 17, 49):
        np.testing.assert_array_equal(in_coordinates(X[i : i + 1], 1.0, metric)[0], new[i])


@pytest.mark.parametrize(
    "over", [sets.Ball(1.0), sets.Ball(0.7, center=[0.5] * 4), sets.Box(-0.5, 0.25), sets.Simplex(1.0)], ids=repr
)
def test_the_nearest_point_in_the_metric(over: Any) -> None:
    """No point of the set lies in the half-space beyond it."""
    rng, here = np.random.default_rng(5), over.of_dimension(4)
    values, vectors = np.array([0.02, 0.1, 0.5, 1.0]), np.linalg.qr(rng.normal(size=(4, 4)))[0]
    metric = Metric(values, vectors)
    others = [metric.coordinates(here.project(3 * rng.normal(size=4))) for _ in range(200)]
    for _ in range(20):
        z = metric.coordinates(2 * rng.normal(size=4))
        nearest = metric.project(z, here)
        assert np.abs(here.project(metric.point(nearest)) - metric.point(nearest)).max() < 1e-5
        off = z - nearest
        for other in others:
            assert off @ (other - nearest) <= 2e-4 * (1 + np.linalg.norm(off))
        np.testing.assert_allclose(metric.project(nearest * 1.0, here), nearest, atol=1e-4)


def test_the_noise_of_the_moments_is_what_is_paid_for() -> None:
    n, d, rng = 3000, 12, Randomness(seed=6)
    X, plan = np.zeros((n, d)), plan_of(n, d, neighbors="replace-one")
    found = [fit_of(X, np.zeros(n), rng=rng).moments for _ in range(15)]
    deviation = plan.moments.deviation / n
    diagonal = np.array([np.diag(gram) for gram in found])
    above = np.array([gram[np.triu_indices(d, 1)] for gram in found])
    assert np.std(diagonal) == pytest.approx(deviation, rel=0.25)  # 180 draws: 5 deviations
    assert np.std(above) == pytest.approx(deviation / 2**0.5, rel=0.12)  # 990 draws
    assert np.abs(np.mean(above)) < 5 * deviation / 990**0.5


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_one_charge_of_the_whole_price(neighbors: Any) -> None:
    X, y = table(4000, 5)
    records = len(X) if neighbors == "add-remove" else None
    with fastdp.Budget(epsilon=1.0, delta=1e-6, neighbors=neighbors) as budget:
        fit = fit_of(X, y, neighbors=neighbors, records=records)
    assert fit.moments is not None
    assert [release.mechanism for release in budget.releases] == ["noisy_projected_gradient_descent"]
    assert "(1, 1e-06)-DP" in str(fit.guarantee)
    with pytest.raises(fastdp.BudgetExceeded):
        fit_of(
            X,
            y,
            neighbors=neighbors,
            records=records,
            epsilon=1.01,
            budget=fastdp.Budget(epsilon=1.0, delta=1e-6, neighbors=neighbors),
        )


def test_where_nothing_is_bought() -> None:
    assert plan_of() is not None
    assert plan_of(delta=0.0) is None
    assert plan_of(n=50, d=40, epsilon=0.1) is None
    assert plan_of(over=sets.Ball(1.0)) is None
    assert plan_of(d=2000, n=10**7) is None
    assert plan_of(d=2) is None
    assert plan_of(d=3) is not None
    assert plan_of(loss=losses.Hinge(x_norm=1)) is None
    assert plan_of(loss=losses.Huber(0.5)) is None
    assert plan_of(loss=losses.Huber(0.5, x_norm=1)) is not None
    X, y = table(4000, 5)
    for more in ({"steps": 50}, {"step_size": 1.0}, {"clip": 1.0}, {"average": True}, {"curvature": "declared"},
                 {"noise": "gaussian"}, {"resolution": 2.0**-20}):  # fmt: skip
        assert fit_of(X, y, **more).moments is None
    with pytest.raises(ValueError, match="curvature='none'"):
        fit_of(X, y, curvature="none")


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_far_better_on_columns_of_different_scales(epsilon: float) -> None:
    X, y = table(40_000, 6)
    sign = np.where(y, 1.0, -1.0)
    _, least = fastdp.nonprivate_minimum(X, y, loss=LOGISTIC, over=sets.Ball(10))
    found: dict[str, list[float]] = {"auto": [], "declared": []}
    for curvature, excess in found.items():
        for seed in range(5):
            fit = fit_of(X, y, epsilon=epsilon, curvature=curvature, neighbors="add-remove", records=len(X),
                         rng=Randomness(seed=seed))  # fmt: skip
            excess.append(float(np.logaddexp(0, -sign * (X @ fit.w)).mean()) - least)
    assert np.median(found["auto"]) < 0.3 * np.median(found["declared"])
    assert max(found["auto"]) <= fit.bound


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize(
    "over", [sets.Ball(10), sets.Box(-5, 5), sets.Ball(8, norm=1), sets.Ball(6, center=[1.0, 2.0, 3.0, 0.0])], ids=repr
)
def test_every_point_lies_in_the_set(over: Any, scale: float) -> None:
    X, y = table(3000, 4)
    seen: list[Array] = []
    fit = fit_of(scale * X, y, over=over, history=True, callback=lambda t, w: seen.append(w))
    assert fit.moments is not None
    assert len(seen) == fit.steps == len(fit.history) - 1
    assert all(over.of_dimension(4).contains(w) for w in fit.history)
    np.testing.assert_array_equal(fit.history[-1], fit.w)


def test_a_regulariser_and_other_losses() -> None:
    X, _ = table(20_000, 4)
    w = np.array([2.0, -1.0, 1.0, 0.5])
    for loss in (losses.Huber(0.5, x_norm=1) + losses.L2(0.05), losses.SquaredError(x_norm=1, y_bound=1)):
        labels = np.clip(X @ w, -1, 1)
        fit = fit_of(X, labels, loss=loss, over=sets.Ball(5), epsilon=10.0)
        assert fit.moments is not None
        assert fastdp.nonprivate_excess_risk(fit.w, X, labels, loss=loss, over=sets.Ball(5)) < 2e-3


def test_few_records_and_none() -> None:
    plain = {"neighbors": "add-remove", "records": 5000, "rng": Randomness(seed=7)}
    for n, d in ((0, 3), (1, 3), (50, 3), *[(0, 3)] * 6):  # noise below 0 in some of them
        fit = fit_of(np.ones((n, d)) / d, np.ones(n), **plain)
        assert fit.moments is not None
        assert np.isfinite(fit.w).all()
    with pytest.raises(fastdp.DomainError):
        fit_of(np.full((100, 3), np.nan), np.ones(100), **plain)
    fit = fit_of(np.full((100, 3), 1e300), np.ones(100), outside="clip", **plain)
    assert np.isfinite(fit.w).all()


def test_a_clip_does_not_cut_what_all_records_have() -> None:
    """Records on a sphere, few of which are at the wrong side: a clip below their norm moves the minimum."""
    for n, d in ((1200, 4), (1000, 3)):
        plan, sphere = plan_of(n=n, d=d, epsilon=10.0), np.eye(d) / d
        metric = Metric(np.ones(d), np.eye(d))
        edges = public.edges_of(plan, metric)
        counts = np.append(np.zeros(len(edges) - 1), n)
        assert public.least_clip(plan, sphere, metric, counts, edges) == plan.slope * edges[-1]
        few = np.append(np.full(len(edges) - 1, n / (len(edges) - 1)), 0.0)
        assert public.least_clip(plan, sphere, metric, few, edges) < plan.slope * edges[-1]


def test_a_path_is_no_shorter_than_the_declared_one() -> None:
    """On a sphere of three dimensions the prediction takes a path a third as long, and ends far from the minimum."""
    d = 3
    plan, gram = plan_of(n=2000, d=d, epsilon=10.0), np.eye(d) / d
    declared = DescentSchedule.of(plan.problem, 2000, d, plan.price.asked, GivenSteps()).rates
    assert plan.declared_path(d) == pytest.approx(len(declared) * declared[0], rel=0.01)
    euclidean = public.Choice(Metric(np.ones(d), np.eye(d)), 0.25 / d)
    path, _ = public.best_path(plan, gram, euclidean, plan.slope, public.MOST_STEPS)
    assert path >= 0.99 * len(declared) * declared[0]


def test_a_bound_is_that_of_the_way_that_was_taken() -> None:
    X, y = table(4000, 5)
    common: dict[str, Any] = {"loss": LOGISTIC, "over": sets.Ball(10), "epsilon": 1.0, "delta": 1e-6}
    known = fastdp.bounds.noisy_projected_gradient_descent(4000, 5, **common)
    assert fit_of(X, y, curvature="declared").bound == known
    assert fit_of(X, y).bound != known
    bought = fastdp.private_erm(X, y, method="descent", **common)
    assert bought.details.moments is not None
    assert bought.bound == bought.details.bound != bought.promises["descent"]
    told = fastdp.bounds.private_erm(4000, 5, **common).excess["descent"]
    declared = fastdp.private_erm(X, y, method="descent", curvature="declared", **common)
    assert declared.details.moments is None
    assert declared.bound == declared.details.bound == declared.promises["descent"] == told
    with pytest.raises(ValueError, match=r"^curvature='none': must be"):
        fastdp.private_erm(X, y, curvature="none", **common)  # type: ignore[arg-type]


def test_private_erm_and_the_estimator_take_it() -> None:
    X, y = table(4000, 5)
    fit = fastdp.private_erm(X, y, loss=LOGISTIC, over=sets.Ball(10), epsilon=1.0, delta=1e-6, method="descent")
    assert fit.details.moments is not None
    assert "second moments were bought" in repr(fit)
