"""Private minimisation by the method with the least bound, and minima to compare with.

fastdp/optimizing/private_erm.py, bounds/erm.py, nonprivate.py.

Which method is taken, and that it is that method's own result; bounds before any record is seen; the mean by
`vector_mean`; minima against formulas, grids and long plain descents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness, bounds, losses, sets
from fastdp.optimizing import private_erm as erm
from fastdp.optimizing.descent import PrivateDescent
from fastdp.optimizing.exponential_erm import PrivateChoice
from fastdp.optimizing.losses import MissingBound
from fastdp.optimizing.moments import LeastSquares
from fastdp.optimizing.nonprivate import minimise_quadratic
from fastdp.optimizing.vector_sums import VectorRelease
from fastdp.privacy import BoundedRange
from tests import oracles

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

fit_of = fastdp.private_erm
PRICE: Options = {"epsilon": 1.0, "delta": 1e-6}


def pinball(s: float, y: float) -> float:
    return 0.5 if s > y else -0.5


def custom(**more: Any) -> Any:
    return losses.Custom(pinball, lambda s, y: np.abs(s - y) / 2, slope_bound=0.5, x_norm=1, y_bound=1, **more)


LOSSES: dict[str, Any] = {
    "squared": losses.SquaredError(x_norm=1, y_bound=1),
    "ridge": losses.SquaredError(x_norm=1, y_bound=1) + losses.L2(0.2),
    "logistic": losses.Logistic(x_norm=1),
    "hinge": losses.Hinge(x_norm=1),
    "huber": losses.Huber(threshold=0.3, x_norm=1),
    "distance": losses.SquaredDistance(x_norm=1),
    "deviation": losses.AbsoluteDeviation(x_norm=1),
}


def records(name: str, n: int, d: int, seed: int = 0) -> tuple[Array, Array | None]:
    """Points in the unit ball, and labels within 1 that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ np.linspace(1, -0.5, d) + 0.2 * rng.normal(size=n)
    if name in ("distance", "deviation"):
        return X * 0.7 + np.array([0.2, *[0.0] * (d - 1)]), None
    return X, np.where(scores > 0, 1.0, -1.0) if name in ("logistic", "hinge") else scores.clip(-1, 1)


def parts_of(loss: Any) -> tuple[Any, float]:
    return (loss.loss, loss.l2.lam) if isinstance(loss, losses.Regularised) else (loss, 0.0)


def risk(loss: Any, w: Array, X: Array, y: Array | None) -> float:
    of_record, lam = parts_of(loss)
    return float(of_record.values(w, X, y).mean()) + lam / 2 * float(w @ w)


# --- which method is taken


def test_the_least_bound_is_taken_and_moments_count_for_a_third() -> None:
    for excess, right in (
        ({"descent": 1.0, "moments": 2.9, "exponential": None}, "moments"),
        ({"descent": 1.0, "moments": 3.1, "exponential": None}, "descent"),
        ({"descent": 1.0, "moments": 3.1, "exponential": 0.9}, "exponential"),
        ({"descent": 1.0, "moments": 2.5, "exponential": 0.9}, "moments"),
        ({"descent": None, "moments": None, "exponential": 5.0}, "exponential"),
        ({"descent": 5.0, "moments": None, "exponential": None}, "descent"),
        ({"descent": None, "moments": 9.0, "exponential": None}, "moments"),
        ({"descent": None, "moments": None, "exponential": None}, "descent"),
    ):
        before = dict(excess)
        assert erm.best_of(excess, 100.0) == right
        assert excess == before, "what is displayed is not what is compared"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", LOSSES)
def test_auto_takes_the_least_bound_and_returns_those_of_bounds(name: str, neighbors: Any) -> None:
    methods = set()
    for n, d in ((60, 2), (2000, 1), (2000, 3), (2000, 6), (20_000, 6)):
        X, y = records(name, n, d)
        over = sets.Box(-0.5, 0.6) if name in ("distance", "deviation") else sets.Ball(1.0)
        common: Options = {"loss": LOSSES[name], "over": over, "neighbors": neighbors, **PRICE}
        more: Options = {"records": n if neighbors == "add-remove" else None, "rng": Randomness(seed=1)}
        fit = fit_of(X, y, curvature="declared", **more, **common)
        told = bounds.private_erm(n, d, **common)
        assert fit.promises == told.excess
        assert fit.refusals == told.refusals
        assert fit.method == told.method
        assert fit.bound == told.least == fit.promises[fit.method]
        compared = {m: p / (3 if m == "moments" else 1) for m, p in fit.promises.items() if p is not None}
        assert compared[fit.method] == min(compared.values())
        assert all((fit.promises[m] is None) for m in fit.refusals)
        assert list(fit.promises) == ["descent", "moments", "exponential"]
        assert over.of_dimension(d).contains(fit.w)
        assert fit.guarantee == fit.details.guarantee
        assert fit.guarantee.neighbors == neighbors
        assert (fit.promises["moments"] is None) == (name not in ("squared", "ridge", "distance"))
        assert (fit.promises["exponential"] is None) == (d > 4)
        methods.add(fit.method)
    assert methods == {"moments"} or name not in ("squared", "ridge")


@pytest.mark.parametrize("name", ["squared", "logistic", "deviation"])
def test_every_method_by_name_is_the_function_of_its_own(name: str) -> None:
    X, y = records(name, 500, 2)
    over: Any = sets.Box(-0.5, 0.6)
    common: Options = {"loss": LOSSES[name], "over": over, "epsilon": 1.0}
    own: dict[str, tuple[Any, type, Options]] = {
        "descent": (fastdp.noisy_projected_gradient_descent, PrivateDescent, {"delta": 1e-6}),
        "exponential": (fastdp.exponential_erm, PrivateChoice, {}),
    }
    if name == "squared":
        own["moments"] = fastdp.noisy_least_squares, LeastSquares, {"delta": 1e-6}
    for method, (function, kind, price) in own.items():
        fit = fit_of(X, y, method=method, delta=1e-6, rng=Randomness(seed=2), **common)  # type: ignore[arg-type]
        right = function(X, y, rng=Randomness(seed=2), **common, **price)
        assert isinstance(fit.details, kind)
        np.testing.assert_array_equal(fit.w, right.w)
        assert fit.guarantee == right.guarantee
        assert fit.method == method
        assert fit.bound == fit.promises[method]
        assert fit.bound is not None
        if method != "exponential":
            assert right.bound == pytest.approx(fit.bound, rel=1e-12)
    assert set(fit.promises) == {"descent", "moments", "exponential"}


@pytest.mark.parametrize("name", LOSSES)
def test_the_excess_is_within_the_bound_on_average(name: str) -> None:
    X, y = records(name, 3000, 2)
    over, rng = sets.Box(-0.7, 0.9), Randomness(seed=3)
    _, least = fastdp.nonprivate_minimum(X, y, loss=LOSSES[name], over=over)
    for method in ("auto", "descent"):
        fits = [fit_of(X, y, loss=LOSSES[name], over=over, method=method, rng=rng, **PRICE) for _ in range(6)]
        excess = [fastdp.nonprivate_excess_risk(fit.w, X, y, loss=LOSSES[name], over=over, least=least) for fit in fits]
        assert min(excess) > -1e-6
        assert fits[0].bound is not None
        assert np.mean(excess) <= fits[0].bound
        loss, lam = parts_of(LOSSES[name])
        varies = loss.range(over.of_dimension(2)) + lam / 2 * over.of_dimension(2).norm ** 2
        assert max(p for p in fits[0].promises.values() if p is not None) <= varies * (1 + 1e-12)


def test_a_label_that_is_a_column() -> None:
    X, y = records("squared", 400, 3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=y)
    for method in ("descent", "moments", "exponential"):
        common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0), "method": method, **PRICE}
        right = fit_of(X, y, rng=Randomness(seed=4), **common).w
        np.testing.assert_array_equal(fit_of(frame, "label", rng=Randomness(seed=4), **common).w, right)


# --- the mean


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_mean_goes_by_vector_mean(lam: float) -> None:
    X, _ = records("distance", 2000, 6)
    loss = LOSSES["distance"] + losses.L2(lam) if lam else LOSSES["distance"]
    box = sets.Box([-0.1] * 3 + [0.05] * 3, [0.1] * 3 + [0.2] * 3)
    for over in (sets.Box(-1, 1), box, sets.Ball(0.05), sets.Simplex()):
        fit = fit_of(X, loss=loss, over=over, rng=Randomness(seed=5), **PRICE)
        assert fit.method == "moments"
        assert isinstance(fit.details, VectorRelease)
        mean = fastdp.vector_mean(X, clip=1.0, rng=Randomness(seed=5), **PRICE)
        np.testing.assert_array_equal(fit.details.value, mean.value)
        np.testing.assert_array_equal(fit.w, over.project(mean.value / (1 + lam / 2)))
    boxed = fit_of(X, loss=loss, over=box, rng=Randomness(seed=5), **PRICE).w
    np.testing.assert_array_equal(boxed, np.clip(mean.value / (1 + lam / 2), box.lower, box.upper))


@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize(("neighbors", "delta"), [("replace-one", 1e-6), ("replace-one", 0.0), ("add-remove", 1e-6)])
def test_the_mean_is_within_its_bound(neighbors: Any, delta: float, lam: float) -> None:
    n, d = 1000, 5
    X, _ = records("distance", n, d)
    loss, rng = LOSSES["distance"] + losses.L2(lam) if lam else LOSSES["distance"], Randomness(seed=6)
    for over in (sets.Box(-1, 1), sets.Ball(0.1)):
        best = over.project(X.mean(axis=0) / (1 + lam / 2))
        fits = [
            fit_of(X, loss=loss, over=over, epsilon=1.0, delta=delta, method="moments", rng=rng, neighbors=neighbors,
                   records=n if neighbors == "add-remove" else None)
            for _ in range(40)
        ]  # fmt: skip
        excess = [risk(loss, fit.w, X, None) - risk(loss, best, X, None) for fit in fits]
        assert min(excess) > -1e-9
        assert fits[0].bound is not None
        assert np.mean(excess) <= fits[0].bound
        scale = fits[0].details.noise_scale
        variance = scale**2 * (1 if fits[0].details.noise.startswith("gaussian") else 2)
        assert fits[0].bound == pytest.approx(2 * d * variance, rel=1e-4), "theorem 3"


def test_no_records_under_add_remove() -> None:
    for name in ("squared", "distance", "logistic"):
        X, y = records(name, 4, 2)
        fit = fit_of(X[:0], None if y is None else y[:0], loss=LOSSES[name], over=sets.Box(-0.5, 0.5), records=100,
                     neighbors="add-remove", **PRICE)  # fmt: skip
        assert fit.w.shape == (2,)


# --- custom losses and missing bounds


def test_a_custom_loss_goes_by_the_exponential_mechanism_only_if_it_is_asked_for() -> None:
    X, y = records("squared", 300, 1)
    common: Options = {"loss": custom(), "over": sets.Ball(1.0), **PRICE}
    fit = fit_of(X, y, **common)
    assert fit.method == "descent"
    assert fit.promises["exponential"] is None
    assert fit.refusals["exponential"].startswith("a Custom loss is evaluated in Python at every point: only if")
    assert bounds.private_erm(300, 1, **common).method == "descent"
    asked = fit_of(X, y, method="exponential", **common)
    assert isinstance(asked.details, PrivateChoice)
    assert asked.bound is None
    assert asked.guarantee == BoundedRange(1.0)


def test_without_bounds_nothing_is_guaranteed_and_nothing_is_done() -> None:
    for name, loss, missing in (
        ("squared", losses.SquaredError(), "x_norm"), ("squared", losses.SquaredError(x_norm=1), "y_bound"),
        ("logistic", losses.Logistic(), "x_norm"), ("hinge", losses.Hinge(), "x_norm"),
        ("distance", losses.SquaredDistance(), "x_norm"), ("huber", losses.Huber(), "x_norm"),
        ("squared", losses.Custom(pinball, x_norm=1), "slope_bound"),
    ):  # fmt: skip
        X, y = records(name, 100, 5)
        budget = Budget(epsilon=10.0, delta=0.1)
        for method in ("auto", "descent"):
            with pytest.raises(MissingBound, match=missing):
                fit_of(X, y, loss=loss, over=sets.Ball(1.0), method=method, budget=budget, **PRICE)
        assert not budget.releases
        with pytest.raises(ValueError, match=rf"^no method has an error bound: .*{missing}"):
            bounds.private_erm(100, 5, loss=loss, over=sets.Ball(1.0), **PRICE)
        with pytest.raises(ValueError, match=r"^no method has an error bound: "):
            bounds.private_erm_n(5, excess=0.1, loss=loss, over=sets.Ball(1.0), **PRICE)
    X, y = records("deviation", 100, 5)
    assert fit_of(X, y, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), **PRICE).bound is not None


# --- how many records


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_number_of_records_is_the_inverse(name: str, neighbors: Any) -> None:
    for d, excess in ((2, 0.05), (8, 0.2)):
        common: Options = {"loss": LOSSES[name], "over": sets.Ball(1.0), "neighbors": neighbors, **PRICE}
        n = bounds.private_erm_n(d, excess=excess, **common)

        def best(n: int, d: int = d, common: Options = common) -> float:
            return min(p for p in bounds.private_erm(n, d, **common).excess.values() if p is not None)

        assert best(n) <= excess
        assert best(n - max(2, n // 900)) > excess
    assert bounds.private_erm_n(d, excess=1e6, **common) == 1


def test_bounds_that_are_refused() -> None:
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0), **PRICE}
    for n in (0, -1, 2.5, "3", True):
        with pytest.raises(ValueError, match=r"^n="):
            bounds.private_erm(n, 3, **common)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^d="):
            bounds.private_erm(3, n, **common)  # type: ignore[arg-type]
    for excess in (0, -1, math.nan, "1"):
        with pytest.raises(ValueError, match="excess"):
            bounds.private_erm_n(3, excess=excess, **common)  # type: ignore[arg-type]
    for more in ({"epsilon": 0}, {"delta": 1.0}, {"neighbors": "both"}, {"loss": 1}, {"over": 1}):
        with pytest.raises(ValueError, match=next(iter(more))):
            bounds.private_erm(100, 3, **common | more)


# --- budgets


@pytest.mark.parametrize(
    ("name", "method", "mechanism"),
    [
        ("squared", "descent", "noisy_projected_gradient_descent"), ("squared", "moments", "noisy_least_squares"),
        ("squared", "exponential", "exponential_erm"), ("distance", "moments", "vector_mean"),
        ("distance", "auto", "vector_mean"), ("logistic", "auto", None),
    ],
)  # fmt: skip
def test_nothing_is_charged_twice(name: str, method: Any, mechanism: str | None) -> None:
    X, y = records(name, 100, 2)
    budget = Budget(epsilon=1.0, delta=1e-6)
    common: Options = {"loss": LOSSES[name], "over": sets.Ball(1.0), "method": method, **PRICE}
    fit = fit_of(X, y, budget=budget, **common)
    (row,) = budget.releases
    assert row.guarantee == fit.guarantee
    assert mechanism in (None, row.mechanism)
    with pytest.raises(BudgetExceeded):
        fit_of(X, y, budget=budget, **common)
    assert len(budget.releases) == 1
    with Budget(epsilon=1.0, delta=1e-6) as ambient:
        fit_of(X, y, **common)
    assert len(ambient.releases) == 1


def test_bad_input_is_refused_before_anything_is_spent() -> None:
    X, y = records("squared", 60, 3)
    good: Options = {"X": X, "y": y, "loss": LOSSES["squared"], "over": sets.Ball(1.0), **PRICE}
    wild = X.copy()
    wild[7, 1] = math.nan
    for message, error, more in (
        (r"^X: must be finite", DomainError, {"X": wild}),
        (r"^X: norms must be at most x_norm=1", DomainError, {"X": 2 * X}),
        (r"^y: must be at most y_bound=1", DomainError, {"y": 9 * np.ones(60)}),
        (r"^y: shape", ValueError, {"y": np.ones(59)}),
        (r"^y=None: must be the labels", ValueError, {"y": None}),
        (r"^y: must be None: SquaredDistance has no labels$", ValueError, {"loss": LOSSES["distance"]}),
        (r"^X: n=0 records", ValueError, {"X": X[:0], "y": np.ones(0)}),
        (r"^method='best': must be ", ValueError, {"method": "best"}),
        (r"^outside=", ValueError, {"outside": "cut"}),
        (r"^neighbors=", ValueError, {"neighbors": "both"}),
        (r"^epsilon=", ValueError, {"epsilon": 0}),
        (r"^delta=", ValueError, {"delta": 1.0}),
        (r"^records=60: must be None with neighbors='replace-one'$", ValueError, {"records": 60}),
        (r"^records=None: must be given with neighbors='add-remove'$", ValueError, {"neighbors": "add-remove"}),
        (r"^records=0", ValueError, {"neighbors": "add-remove", "records": 0}),
        (r"^loss=1: must be one of fastdp\.losses", ValueError, {"loss": 1}),
        (r"^over=1: must be one of fastdp\.sets", ValueError, {"over": 1}),
        (r"^Ball\(1\): has dimension 2: must be 3", ValueError, {"over": sets.Ball(1, center=[0, 0])}),
        (r"must be fastdp\.losses\.SquaredError$", ValueError,
         {"loss": LOSSES["hinge"], "y": np.ones(60), "method": "moments"}),
        (r"^X: ", ValueError, {"X": np.zeros((60, 5)), "method": "exponential"}),
        (r"^progress=3", ValueError, {"progress": 3}),
    ):  # fmt: skip
        budget = Budget(epsilon=1000.0, delta=0.5)
        with pytest.raises(error, match=message):
            fit_of(budget=budget, **good | more)
        assert not budget.releases, more


# --- what is shown


def test_refusals_are_shown() -> None:
    X, y = records("logistic", 200, 6)
    fit = fit_of(X, y, loss=LOSSES["logistic"], over=sets.Ball(1.0), **PRICE)
    assert fit.method == "descent"
    shown, page = repr(fit), fit._repr_html_()
    assert shown.startswith("PrivateMinimum by descent\n  descent (taken)  excess at most ")
    assert "\nPrivateDescent\n" in shown
    assert page.startswith("<table><caption>PrivateMinimum</caption><tr><th>descent (taken)</th><td>excess at most ")
    assert page.count("<table>") == page.count("</table>") == 2
    assert set(fit.refusals) == {"moments", "exponential"}
    for name, why in fit.refusals.items():
        assert f"  {name:<15}  {why}\n" in shown
        assert f"<tr><th>{name}</th>" in page
    assert fit.refusals["moments"] == "loss=Logistic(x_norm=1): must be fastdp.losses.SquaredError"
    assert "Logistic(x_norm=1): must be" in page
    custom_fit = fit_of(X, y, loss=losses.Custom(pinball, slope_bound=0.5, x_norm=1), over=sets.Ball(1.0), **PRICE)
    assert "only if method=&#x27;exponential&#x27;" in custom_fit._repr_html_()
    with pytest.raises(AttributeError):
        fit.w = np.zeros(6)


# --- minima to compare with


OVERS: list[Any] = [sets.Ball(0.6), sets.Ball(50.0), sets.Box(-0.3, 0.4), sets.Box(-1000, 1000), sets.Simplex()]


def by_descent(loss: Any, X: Array, y: Array | None, over: Any, steps: int = 6000) -> float:
    """The least loss of a long plain descent of a smooth loss."""
    of_record, lam = parts_of(loss)
    curvature = of_record.score_smoothness() * np.linalg.eigvalsh(X.T @ X / len(X))[-1] + lam
    path = oracles.optimizing.descent(
        lambda w: of_record.gradients(w, X, y).mean(axis=0) + lam * w, over.project, over.center,
        [1 / curvature] * steps,
    )  # fmt: skip
    return risk(loss, path[-1], X, y)


@pytest.mark.parametrize("over", OVERS, ids=repr)
def test_the_least_squares(over: Any) -> None:
    X, y = records("squared", 300, 4)
    assert y is not None
    here = over.of_dimension(4)
    for lam in (0.0, 0.3):
        loss: Any = losses.SquaredError() + losses.L2(lam)
        w, least = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)
        assert here.contains(w)
        assert least == pytest.approx(risk(loss, w, X, y), abs=1e-12)
        solved = np.linalg.solve(X.T @ X / 300 + lam / 2 * np.eye(4), X.T @ y / 300)
        if here.contains(solved):
            np.testing.assert_allclose(w, solved, rtol=0, atol=1e-9)
        else:
            start = here.project(solved)
            assert least <= risk(loss, start, X, y) + 1e-9
        assert least == pytest.approx(by_descent(loss, X, y, here), abs=1e-6)
    assert here.contains(np.linalg.lstsq(X, y, rcond=None)[0]) == (over in (OVERS[1], OVERS[3]))


@pytest.mark.parametrize("over", OVERS, ids=repr)
def test_the_mean(over: Any) -> None:
    X, _ = records("distance", 300, 4)
    for lam in (0.0, 0.3):
        loss: Any = losses.SquaredDistance() + losses.L2(lam)
        w, least = fastdp.nonprivate_minimum(X, loss=loss, over=over)
        right = over.project(X.mean(axis=0) / (1 + lam / 2))
        np.testing.assert_allclose(w, right, rtol=0, atol=1e-4)
        assert least == pytest.approx(risk(loss, right, X, None), abs=1e-7)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.05, 0.1), (-1e9, 1e9), (-1e100, 1e-3)])
def test_the_median_of_every_coordinate(n: int, low: float, high: float) -> None:
    X, _ = records("deviation", n, 3)
    w, least = fastdp.nonprivate_minimum(X, loss=losses.AbsoluteDeviation(), over=sets.Box(low, high))
    right = np.median(X, axis=0).clip(low, high)
    np.testing.assert_array_equal(w, right)
    assert least == pytest.approx(np.abs(X - right).sum(axis=1).mean(), abs=1e-12)
    one, _ = fastdp.nonprivate_minimum(X[:, :1], loss=losses.AbsoluteDeviation(), over=sets.Ball(1.0, center=[0.5]))
    np.testing.assert_array_equal(one, np.median(X[:, :1], axis=0).clip(-0.5, 1.5))


def test_a_median_of_clipped_records() -> None:
    X, _ = records("deviation", 400, 3)
    clipped = 5 * X / np.maximum(1.0, 5 * np.linalg.norm(X, axis=1, keepdims=True))
    w, _ = fastdp.nonprivate_minimum(5 * X, loss=losses.AbsoluteDeviation(x_norm=1), over=sets.Box(-9, 9),
                                     outside="clip")  # fmt: skip
    np.testing.assert_allclose(w, np.median(clipped, axis=0), rtol=0, atol=1e-12)


def test_a_median_in_a_ball() -> None:
    """Within, it is that of every coordinate; else no point of a fine net of the set does better."""
    X, _ = records("deviation", 301, 2)
    loss = losses.AbsoluteDeviation()
    _, least = fastdp.nonprivate_minimum(X, loss=loss, over=sets.Ball(3.0))
    assert least == pytest.approx(risk(loss, np.median(X, axis=0), X, None), abs=1e-6)
    center = np.array([-0.5, 0.4])
    over = sets.Ball(0.2, center=center)
    w, least = fastdp.nonprivate_minimum(X, loss=loss, over=over)
    angles = np.linspace(0, 2 * math.pi, 4000)
    edge = center + 0.2 * np.column_stack([np.cos(angles), np.sin(angles)])
    best = min(risk(loss, at, X, None) for at in edge)
    assert over.contains(w)
    assert least == pytest.approx(best, abs=1e-5)
    assert least <= best + 1e-7


@pytest.mark.parametrize("over", [OVERS[0], OVERS[1], OVERS[2], OVERS[4]], ids=repr)
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Logistic() + losses.L2(0.05), losses.Huber(0.3)], ids=repr)
def test_smooth_losses_by_a_long_plain_descent(loss: Any, over: Any) -> None:
    X, y = records("huber" if isinstance(loss, losses.Huber) else "logistic", 200, 3)
    here = over.of_dimension(3)
    w, least = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)
    right = by_descent(loss, X, y, here, steps=4000)
    assert here.contains(w)
    assert least == pytest.approx(risk(loss, w, X, y), abs=1e-12)
    assert least <= right + 1e-8
    assert least >= right - 2e-5


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-20.0, 20.0), (-0.5, 0.2), (0.3, 0.7)])
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_the_hinge_in_one_dimension_by_its_corners(lam: float, low: float, high: float) -> None:
    """Between corners it is a parabola: its minimum is at a corner, at an end, or where the slope is 0."""
    X, y = records("hinge", 101, 1)
    assert y is not None
    loss: Any = losses.Hinge() + losses.L2(lam)
    corners = np.unique(np.clip(np.concatenate([1 / (y * X[:, 0]), [low, high, 0.0]]), low, high))
    grid = np.unique(np.concatenate([corners, np.linspace(low, high, 20_001)]))
    best = min(risk(loss, np.array([at]), X, y) for at in (grid if lam else corners))
    for over in (sets.Box(low, high), sets.Ball((high - low) / 2, center=[(high + low) / 2])):
        w, least = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)
        assert least == pytest.approx(best, abs=2e-6)
        assert least >= best - 1e-6
        assert low - 1e-9 <= w[0] <= high + 1e-9


# --- excess risk


@pytest.mark.parametrize("over", [OVERS[0], OVERS[2], OVERS[4]], ids=repr)
@pytest.mark.parametrize("name", LOSSES)
def test_no_point_of_the_set_has_less(name: str, over: Any) -> None:
    X, y = records(name, 150, 3)
    here, rng = over.of_dimension(3), np.random.default_rng(0)
    w, least = fastdp.nonprivate_minimum(X, y, loss=LOSSES[name], over=over)
    common: Options = {"loss": LOSSES[name], "over": over}
    assert fastdp.nonprivate_excess_risk(w, X, y, **common) == pytest.approx(0, abs=1e-12)
    for k in range(60):
        at = here.project(w + rng.normal(size=3) * 10.0 ** -(k % 7))
        excess = fastdp.nonprivate_excess_risk(at, X, y, least=least, **common)
        assert excess >= -1e-6
        assert excess == pytest.approx(risk(LOSSES[name], at, X, y) - least, abs=1e-12)
    assert fastdp.nonprivate_excess_risk(at, X, y, **common) == pytest.approx(excess, abs=1e-12)
    assert fastdp.nonprivate_excess_risk(at, X, y, least=least - 1, **common) == pytest.approx(excess + 1, abs=1e-12)


def test_excess_risks_that_are_refused() -> None:
    X, y = records("squared", 50, 3)
    common: Options = {"loss": LOSSES["squared"], "over": sets.Ball(1.0)}
    with pytest.raises(ValueError, match=r"^w: 2 coordinates: must be 3, as the records have columns$"):
        fastdp.nonprivate_excess_risk([0.0, 0.0], X, y, **common)
    with pytest.raises(ValueError, match=r"^w: must be finite"):
        fastdp.nonprivate_excess_risk([0.0, 0.0, math.nan], X, y, **common)
    with pytest.raises(DomainError, match=r"^X: norms must be at most x_norm=1"):
        fastdp.nonprivate_excess_risk([0.0] * 3, 3 * X, y, **common)
    with pytest.raises(DomainError, match=r"^X: norms must be at most x_norm=1"):
        fastdp.nonprivate_minimum(3 * X, y, **common)
    inside = fastdp.nonprivate_minimum(3 * X / np.maximum(1, 3 * np.linalg.norm(X, axis=1, keepdims=True)), y, **common)
    cut = fastdp.nonprivate_minimum(3 * X, y, outside="clip", **common)
    assert cut[1] == pytest.approx(inside[1], abs=1e-9)


# --- found by these tests


def test_a_singular_quadratic_is_minimised_where_it_falls() -> None:
    gram, cross = np.array([[0.0]]), np.array([0.3])
    assert minimise_quadratic(gram, cross, sets.Ball(1.0).of_dimension(1)) == pytest.approx([1.0])
    assert minimise_quadratic(gram, np.zeros(1), sets.Box(0.5, 1.0).of_dimension(1))[0] >= 0.5
    flat = minimise_quadratic(np.diag([1.0, 0.0]), np.array([0.1, 0.2]), sets.Box(-1.0, 1.0).of_dimension(2))
    assert flat == pytest.approx([0.1, 1.0], abs=1e-6)


def test_the_mean_refuses_what_the_other_methods_refuse() -> None:
    budget = fastdp.Budget(epsilon=2.0)
    options = {"loss": losses.SquaredDistance(x_norm=1.0), "over": sets.Ball(1.0), "epsilon": 1.0, "budget": budget}
    with pytest.raises(fastdp.DomainError, match="x_norm=1"):
        fastdp.private_erm(np.full((10, 1), 3.0), method="moments", **options)
    with pytest.raises(ValueError, match="progress=3"):
        fastdp.private_erm(np.full((10, 1), 0.5), method="moments", progress=3, **options)
    assert not budget.releases
    assert fastdp.private_erm(np.full((10, 1), 3.0), method="moments", outside="clip", **options).method == "moments"
    assert [row.mechanism for row in budget.releases] == ["vector_mean"]


def test_an_excess_out_of_reach_is_told() -> None:
    with pytest.raises(ValueError, match=r"^excess=1e-300: is out of reach"):
        fastdp.bounds.private_erm_n(
            8, excess=1e-300, loss=losses.SquaredError(1, 1), over=sets.Ball(1.0), epsilon=1.0, delta=1e-6
        )
