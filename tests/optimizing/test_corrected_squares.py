"""Least squares in two stages: what is paid, what a record may move, what decides, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fastdp
from fastdp import Randomness, losses, sets
from fastdp.optimizing import corrected_squares
from fastdp.optimizing.corrected_squares import STEPS, CorrectionPlan
from fastdp.optimizing.metric import Metric, MetricPoints
from fastdp.optimizing.moments import MomentsPlan
from fastdp.optimizing.points import Points
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.shared_price import Share
from fastdp.optimizing.step_noise import NoiseParameters

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")

Array = NDArray[Any]
ERROR = losses.SquaredError(x_norm=1, y_bound=1)
RELATIONS = ["replace-one", "add-remove"]


def plan_of(n: int = 2000, d: int = 4, epsilon: float = 1.0, neighbors: Any = "add-remove", **more: Any) -> MomentsPlan:
    problem = Problem.of(more.get("loss", ERROR), more.get("over", sets.Ball(10)), d)
    asked = NoiseParameters.of(epsilon, more.get("delta", 1e-6), more.get("noise", "auto"), neighbors)
    return MomentsPlan.of(problem, n, d, asked)


def correction_of(**more: Any) -> CorrectionPlan:
    found = plan_of(**more).correction
    assert found is not None
    return found


def table(n: int, d: int, seed: int = 1, noise: float = 0.02) -> tuple[Array, Array]:
    """Columns of different scales, the last one constant, with a solution of norm 4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 0.1, d)
    X[:, -1] = 0.7
    X /= np.linalg.norm(X, axis=1).max()
    w = rng.normal(size=d)
    return X, np.clip(X @ (4 * w / np.linalg.norm(w)) + noise * rng.normal(size=n), -1, 1)


def fit_of(X: Any, y: Any, **more: Any) -> Any:
    given = {"loss": ERROR, "over": sets.Ball(10), "epsilon": 1.0, "delta": 1e-6, "neighbors": "add-remove",
             "records": max(len(X), 1), **more}  # fmt: skip
    return fastdp.noisy_least_squares(X, y, **given)


def spent(plan: CorrectionPlan, shares: list[tuple[Share, int]]) -> Fraction:
    return sum(
        (
            Fraction(count)
            * Fraction(share.sensitivity) ** 2
            / (Fraction(share.sigma) ** 2 - Fraction(plan.price.extra))
            for share, count in shares
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_both_ways_cost_the_price(neighbors: Any) -> None:
    """One that does not pay for the norms, or for the second moments, is 2 % above it or more."""
    for epsilon in (0.1, 1.0, 10.0):
        plan = correction_of(epsilon=epsilon, neighbors=neighbors)
        price = 1 / Fraction(plan.price.ratio) ** 2
        for clip in (0.3, 1.0, 77.7):
            step = plan.price.vector(clip, plan.n, corrected_squares.REST, STEPS, STEPS)
            assert step.sensitivity >= clip * step.unit * (2 if neighbors == "replace-one" else 1)
            for last in ((step, STEPS), (plan.again, 1)):
                found = spent(plan, [(plan.first, 1), (plan.norms, 1), last])
                assert price * Fraction(999, 1000) < found <= price


def records(d: int) -> list[tuple[Array, float]]:
    """Adversarial ones: long, short, with labels that do not fit, with wild coordinates."""
    rng = np.random.default_rng(2)
    points = [*np.eye(d), -np.eye(d)[0], np.full(d, 1e300), np.full(d, 1e-300), np.zeros(d), *rng.normal(size=(6, d))]
    return [(x, y) for x in points for y in (-1.0, 1.0, 1e9)]


@pytest.mark.parametrize(("n", "epsilon"), [(800, 1.0), (30, 0.5)])
def test_a_record_moves_no_transcript_by_more_than_is_paid(n: int, epsilon: float, monkeypatch: Any) -> None:
    """An audit: on the way that a run takes, what one record more would add to every release, over its noise."""
    d, moved, released = 3, [], []
    extras = [(x[None], np.array([y])) for x, y in records(d)]

    def watch(owner: Any, name: str, adds: Callable[..., list[float]]) -> None:
        real = getattr(owner, name)

        def patched(self: Any, *given: Any) -> Any:
            monkeypatch.setattr(owner, name, real)
            moved.append(adds(real, self, *given))
            monkeypatch.setattr(owner, name, patched)
            return real(self, *given)

        monkeypatch.setattr(owner, name, patched)

    def alone(metric: Metric | None, i: int) -> Points:
        points = Points(*extras[i], ERROR, "clip")
        points.check()
        return points if metric is None else MetricPoints.of(points, metric)

    def of_moments(real: Any, points: Any, *given: Any) -> list[float]:
        found = [real(alone(None, i), *given).astype(float) for i in range(len(extras))]
        return [float((np.triu(s[:d], 1) ** 2).sum() + (s[d:] ** 2).sum()) for s in found]

    def in_metric(real: Any, points: Any, *given: Any) -> list[float]:
        found = [real(alone(points.metric, i), *given).astype(float) for i in range(len(extras))]
        return [float(s @ s) for s in found]

    drawn = corrected_squares.integer_noise
    for module in (corrected_squares, fastdp.optimizing.moments):
        monkeypatch.setattr(module, "integer_noise", lambda law, *given: released.append(law) or drawn(law, *given))
    watch(Points, "moments", of_moments)
    watch(MetricPoints, "count_gradients", in_metric)
    watch(MetricPoints, "gradients", in_metric)
    X, y = table(n, d)
    plan = correction_of(n=n, d=d, epsilon=epsilon)
    for seed in range(2):
        moved.clear(), released.clear()
        fit = fit_of(X, y, epsilon=epsilon, outside="clip", rng=Randomness(seed=seed))
        # the same sums serve both releases of moments; all gradients have one sigma
        sums = [moved[0], moved[1], *(moved[2:] or [moved[0]])]
        sigmas = [released[0].sigma, released[1].sigma, *[released[2].sigma] * (fit.gradients or 1)]
        assert len(sums) == len(sigmas) == (2 + STEPS if fit.gradients else 3)
        total = [
            sum(s[i] / (sigma**2 - plan.price.extra) for s, sigma in zip(sums, sigmas, strict=True))
            for i in range(len(extras))
        ]
        assert 0.6 < max(total) * plan.price.ratio**2 <= 1


def test_a_record_counts_in_one_cell_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(3)
    n, d = 61, 19
    X = rng.normal(size=(n, d)) * np.geomspace(1, 1e-4, d)
    X /= np.linalg.norm(X, axis=1)[:, None] * rng.choice([0.3, 1.0, 5.0], n)[:, None]
    metric = Metric(np.geomspace(1e-5, 1, d), np.linalg.qr(rng.normal(size=(d, d)))[0])
    y, z, edges = rng.uniform(-1, 1, n), rng.normal(size=d), np.geomspace(0.01, 1e3, 24)

    def counts(rows: Any) -> Array:
        points = Points(X[rows], y[rows], ERROR, "clip")
        points.check()
        return MetricPoints.of(points, metric).count_gradients(z, edges)

    alone = [counts([i]) for i in range(n)]
    assert all(each.sum() == 1 for each in alone)
    np.testing.assert_array_equal(counts(range(n)), sum(alone))
    np.testing.assert_array_equal(counts(range(n)[7:]), sum(alone[7:]))
    inside = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    norms = 2 * np.abs(inside @ metric.point(z) - y) * np.linalg.norm(inside @ metric.to_points, axis=1)
    expected = np.bincount(np.minimum(np.searchsorted(edges, norms), 23), minlength=24)
    assert np.abs(counts(range(n)) - expected).sum() <= 2  # one may lie at an edge


def test_the_answer_is_a_function_of_what_was_released(monkeypatch: Any) -> None:
    """Other records with the same sums give the same answer: what is believed, and which way is taken, is public."""
    given = table(500, 4)
    sums: dict[str, Any] = {}

    def kept(name: str, real: Any) -> Any:
        return lambda self, *args: sums.setdefault((name, len(sums)), real(self, *args))

    def replayed(name: str, left: list[Any]) -> Any:
        return lambda self, *args: left.pop(0)

    places = [(Points, "moments"), (MetricPoints, "count_gradients"), (MetricPoints, "gradients")]
    seen = set()
    for epsilon in (0.05, 3.0):
        sums.clear()
        with monkeypatch.context() as patch:
            for owner, name in places:
                patch.setattr(owner, name, kept(name, getattr(owner, name)))
            first = fit_of(*given, epsilon=epsilon, rng=Randomness(seed=4))
        seen.add(first.gradients)
        for other in (table(500, 4, seed=9), (np.zeros((500, 4)), np.ones(500))):
            left = list(sums.values())
            with monkeypatch.context() as patch:
                for owner, name in places:
                    patch.setattr(owner, name, replayed(name, left))
                again = fit_of(*other, epsilon=epsilon, rng=Randomness(seed=4))
            assert not left
            np.testing.assert_array_equal(again.w, first.w)
            np.testing.assert_array_equal(again.gram, first.gram)
    assert seen == {0, STEPS}


def test_moments_that_are_bought_twice_have_the_noise_that_is_stated() -> None:
    n, d = 50, 8
    found = [fit_of(np.zeros((n, d)), np.zeros(n), epsilon=0.1, rng=Randomness(seed=s)) for s in range(30)]
    both = [fit for fit in found if not fit.gradients]
    assert len(both) >= 20
    scale = both[0].noise_scale
    plan = correction_of(n=n, d=d, epsilon=0.1)
    assert scale == pytest.approx(np.sqrt(2) * plan.price.ratio / np.sqrt(0.98) / n, rel=1e-3)
    diagonal = np.array([np.diag(fit.gram) for fit in both])
    assert np.std(diagonal) == pytest.approx(scale, rel=0.25)  # at least 160 draws: 4.5 deviations
    assert all(fit.noise_scale == scale for fit in both)


def test_where_moments_have_the_whole_budget() -> None:
    assert plan_of().correction is not None
    assert plan_of(over=sets.Box(-5, 5)).correction is not None
    assert plan_of(over=sets.Ball(3.0)).correction is None
    assert plan_of(delta=0.0).correction is None
    assert plan_of(noise="gaussian").correction is None
    assert plan_of(d=600).correction is None
    assert plan_of(loss=ERROR + losses.L1(0.1), over=sets.Ball(10)).correction is None


@pytest.mark.parametrize(("n", "epsilon", "at_most"), [(5000, 3.0, 0.4), (20_000, 0.3, 0.4), (20_000, 3.0, 0.1)])
def test_far_better_than_moments_alone(n: int, epsilon: float, at_most: float) -> None:
    X, y = table(n, 6)
    least = fastdp.nonprivate_minimum(X, y, loss=ERROR, over=sets.Ball(10))[1]
    found: dict[str, list[float]] = {"auto": [], "gaussian": []}
    for noise, excesses in found.items():
        for seed in range(7):
            fit = fit_of(X, y, epsilon=epsilon, noise=noise, rng=Randomness(seed=seed))
            excesses.append(float(((X @ fit.w - y) ** 2).mean()) - least)
            assert excesses[-1] <= fit.bound
    assert np.median(found["auto"]) < at_most * np.median(found["gaussian"])


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_one_charge_of_the_whole_price(neighbors: Any) -> None:
    X, y = table(600, 3)
    more = {"neighbors": neighbors, "records": 600 if neighbors == "add-remove" else None}
    with fastdp.Budget(epsilon=1.0, delta=1e-6, neighbors=neighbors) as budget:
        fit = fit_of(X, y, **more)
    assert [release.mechanism for release in budget.releases] == ["noisy_least_squares"]
    assert "(1, 1e-06)-DP" in str(fit.guarantee)
    with pytest.raises(fastdp.BudgetExceeded):
        fit_of(X, y, **more, epsilon=1.01, budget=fastdp.Budget(epsilon=1.0, delta=1e-6, neighbors=neighbors))


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_few_records_and_odd_ones(epsilon: float) -> None:
    tables = [(np.zeros((0, 3)), np.zeros(0)), (np.ones((1, 3)) / 2, np.ones(1)), (np.ones((40, 1)) / 2, np.ones(40))]
    collinear = np.outer(np.linspace(-1, 1, 300), [0.5, 0.5, -0.1, 0.0])
    tables += [(collinear, collinear[:, 0]), (np.full((30, 4), 1e300), np.full(30, -1e300))]
    for X, y in tables:
        for over in (sets.Ball(10.0), sets.Box(-5.0, 5.0), sets.Ball(6.0, norm=1)):
            fit = fit_of(X, y, over=over, epsilon=epsilon, outside="clip", rng=Randomness(seed=5))
            assert np.isfinite(fit.w).all()
            assert over.of_dimension(X.shape[1]).contains(fit.w)


def test_a_regulariser() -> None:
    X, y = table(20_000, 4)
    loss = ERROR + losses.L2(0.02)
    fit = fit_of(X, y, loss=loss, epsilon=3.0, rng=Randomness(seed=6))
    assert fit.gradients == STEPS
    assert fastdp.nonprivate_excess_risk(fit.w, X, y, loss=loss, over=sets.Ball(10)) < 1e-5
    assert "corrected" in repr(fit)
