"""A loss is one class and one row, a set is one class: new ones work wherever the others do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.kernels import losses as formulas
from fastdp.kernels import projections
from fastdp.kernels.covering_nets import ADDERS
from fastdp.optimizing.losses import row as loss_row
from fastdp.optimizing.losses.base import SIGN, MarginLoss
from fastdp.optimizing.losses.registry import ROWS
from fastdp.optimizing.sets import NAMES, Net, Projection, Vector, number_of, point_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class SquaredHinge(MarginLoss):
    """max(0, 1 - y <w, x>)^2: all that a loss has to say of itself."""

    x_norm: float | None = None
    labels: ClassVar[str | None] = SIGN

    def score_lipschitz(self, largest: float) -> float:
        return 2 * (1 + largest)

    def score_range(self, largest: float) -> float:
        return (1 + largest) ** 2

    def score_smoothness(self) -> float:
        return 2.0


def value(score: float, label: float) -> float:
    return max(0.0, 1.0 - label * score) ** 2


def derivative(score: float, label: float) -> float:
    return -2.0 * label * max(0.0, 1.0 - label * score)


@pytest.fixture(autouse=True)
def _rows_as_before() -> Iterator[None]:
    before = dict(loss_row._rows)
    yield
    loss_row._rows.clear()
    loss_row._rows.update(before)


def records(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(X @ [1.0, -0.5] + 0.1 * rng.normal(size=n) > 0, 1.0, -1.0)


def risk(w: Array, X: Array, y: Array) -> float:
    return float((np.maximum(0.0, 1 - y * (X @ w)) ** 2).mean())


def test_a_new_loss_is_minimised_by_every_method() -> None:
    loss_row.register(loss_row.LossRow(SquaredHinge, "squared hinge", derivative=derivative, value=value))
    X, y = records(20_000)
    problem: dict[str, Any] = {"loss": SquaredHinge(x_norm=1.0), "over": sets.Ball(2.0)}
    _, least = fastdp.nonprivate_minimum(X, y, **problem)
    ring = (2 * np.array([np.cos(angle), np.sin(angle)]) for angle in np.linspace(0, 2 * np.pi, 200))
    assert least == pytest.approx(min(risk(w, X, y) for w in ring), rel=0.01), "the best one is on the rim"
    plain = fastdp.projected_gradient_descent(X, y, steps=300, step_size=0.5, **problem)
    noisy = fastdp.noisy_projected_gradient_descent(X, y, epsilon=2.0, delta=1e-6, **problem)
    chosen = fastdp.exponential_erm(X, y, epsilon=2.0, method="grid", spacing=0.1, **problem)
    for fit in (plain, noisy, chosen):
        assert fit.bound is not None
        assert -1e-6 <= risk(fit.w, X, y) - least <= min(fit.bound, 0.05)
        assert fastdp.nonprivate_excess_risk(fit.w, X, y, **problem) == pytest.approx(
            risk(fit.w, X, y) - least, abs=1e-6
        )
    best = fastdp.private_erm(X, y, epsilon=2.0, delta=1e-6, **problem)
    assert best.method in ("descent", "exponential")


def test_what_is_called_has_the_bits_of_what_is_compiled_in() -> None:
    """The squared error once more, by functions of its own."""

    class Again(losses.SquaredError):
        pass

    row = loss_row.LossRow(Again, "again", derivative=lambda s, y: 2.0 * (s - y), value=lambda s, y: (s - y) * (s - y))
    loss_row.register(row)
    X, y = records(500)
    options: dict[str, Any] = {"over": sets.Ball(2.0), "epsilon": 1.0, "rng": None}
    fits = []
    for loss in (losses.SquaredError(x_norm=1, y_bound=1), Again(x_norm=1, y_bound=1)):
        options["rng"] = fastdp.Randomness(seed=1)
        descent = fastdp.noisy_projected_gradient_descent(X, y, loss=loss, delta=1e-6, **options)
        options["rng"] = fastdp.Randomness(seed=2)
        chosen = fastdp.exponential_erm(X, y, loss=loss, method="grid", spacing=0.5, **options)
        fits.append((descent.w.tobytes(), chosen.w.tobytes(), loss.values(chosen.w, X, y).tobytes()))
    assert fits[0] == fits[1]


def test_a_loss_without_a_compiled_value_is_refused_by_name() -> None:
    loss_row.register(loss_row.LossRow(SquaredHinge, "squared hinge", derivative=derivative))
    X, y = records(100)
    problem: dict[str, Any] = {"loss": SquaredHinge(x_norm=1.0), "over": sets.Ball(1.0), "epsilon": 1.0}
    rule = r"^loss=SquaredHinge\(x_norm=1\): has no compiled value: must have one in its row, to be evaluated$"
    with fastdp.Budget(epsilon=10.0, delta=1e-5) as budget:
        with pytest.raises(ValueError, match=rule):
            fastdp.exponential_erm(X, y, **problem)
        assert not budget.releases
    with pytest.raises(ValueError, match=rule):
        SquaredHinge(x_norm=1.0).values(np.zeros(2), X, y)
    fastdp.noisy_projected_gradient_descent(X, y, delta=1e-6, **problem)
    fit = fastdp.private_erm(X, y, delta=1e-6, **problem)
    assert fit.method == "descent"
    assert "has no compiled value" in fit.refusals["exponential"]


def test_a_loss_without_a_row_is_refused_by_name() -> None:
    X, y = records(100)
    rule = r"^loss=<SquaredHinge>: SquaredHinge is not registered: must have a row, as losses/registry.py has$"
    for call, more in (
        (fastdp.noisy_projected_gradient_descent, {"delta": 1e-6, "epsilon": 1.0}),
        (fastdp.exponential_erm, {"epsilon": 1.0}),
        (fastdp.projected_gradient_descent, {"steps": 3}),
    ):
        with pytest.raises(ValueError, match=rule):
            call(X, y, loss=SquaredHinge(x_norm=1.0), over=sets.Ball(1.0), **more)


def test_rows_have_the_numbers_of_the_header() -> None:
    names = ["SQUARED", "LOGISTIC", "HINGE", "HUBER", "CUSTOM", "SQUARED_DISTANCE", "ABSOLUTE_DEVIATION"]
    assert {row.name: row.number for row in ROWS} == {name: i for i, name in enumerate(names)}
    assert [type(row.for_c(1.0, 4096)) for row in ROWS] == [row.loss for row in ROWS]
    assert sorted(ADDERS) == sorted(row.number for row in ROWS), "each can be evaluated at the points of a net"
    assert {f.number for f in formulas.FORMULAS} >= {row.number for row in ROWS if row.loss.family == "margin"}
    assert {name: number_of(name) for name in NAMES} == {"BALL": 1, "BALL_L1": 2, "BOX": 3, "SIMPLEX": 4}
    assert projections.EVERYWHERE == 0


class Halfspace(sets.ConvexSet):
    """The unit ball's part with a non-negative first coordinate: all that a set has to say of itself."""

    dimension = None

    def __init__(self, d: int | None = None) -> None:
        self.dimension = d

    def of_dimension(self, d: int) -> Halfspace:
        return Halfspace(d)

    @property
    def center(self) -> Vector:
        return 0.5 * np.eye(self.known_dimension())[0]

    @property
    def diameter(self) -> float:
        return 2.0

    def reach(self, point: Vector) -> float:
        return float(np.linalg.norm(point)) + 1.0

    @property
    def projection(self) -> None:
        return None

    def project(self, w: Any) -> Vector:
        w = point_of("w", w)
        w[0] = max(w[0], 0.0)
        return np.asarray(w / max(1.0, float(np.linalg.norm(w))))


WRONG: dict[str, Any] = {
    "one coordinate": np.zeros(1),
    "a row": np.zeros((1, 2)),
    "none": np.empty(0),
    "NaN": np.array([0.0, np.nan]),
    "too far": np.array([0.0, 1e300]),
    "nothing": None,
    "text": "ab",
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("where", ["center", "project", "projection"])
def test_points_of_a_new_set_are_checked(where: str, kind: str) -> None:
    """Kernels read and write as many coordinates as the records have: a short vector would be left behind."""

    class Wrong(Halfspace):
        def of_dimension(self, d: int) -> Wrong:
            return Wrong(d)

        @property
        def center(self) -> Vector:
            return WRONG[kind] if where == "center" else super().center  # type: ignore[no-any-return]

        @property
        def projection(self) -> Any:
            return Projection(0, WRONG[kind], np.zeros(2), 1.0) if where == "projection" else None

        def project(self, w: Any) -> Vector:
            return WRONG[kind] if where == "project" else super().project(w)  # type: ignore[no-any-return]

    if where == "projection" and kind in ("NaN", "too far"):
        return  # which are numbers
    X, y = records(500)
    problem: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "over": Wrong()}
    for fit in (
        lambda: fastdp.projected_gradient_descent(X, y, steps=3, step_size=1.0, **problem),
        lambda: fastdp.noisy_projected_gradient_descent(X, y, epsilon=4.0, delta=1e-6, **problem),
    ):
        with pytest.raises(ValueError, match=rf"^over: {where}.* of Wrong: "):
            fit()


def test_a_point_of_a_new_set_is_copied() -> None:
    """The set may go on with the vector that it gave."""
    held = np.zeros(2)

    class Same(Halfspace):
        def of_dimension(self, d: int) -> Same:
            return Same(d)

        def project(self, w: Any) -> Vector:
            held[:] = super().project(w)
            return held

    X, y = records(500)
    problem: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "steps": 5, "step_size": 1.0, "history": True}
    path = fastdp.projected_gradient_descent(X, y, over=Same(), **problem).history
    assert path.tolist() == fastdp.projected_gradient_descent(X, y, over=Halfspace(), **problem).history.tolist()


def test_a_new_set_is_minimised_over() -> None:
    X, y = records(5000)
    problem: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "over": Halfspace()}
    plain = fastdp.projected_gradient_descent(X, -y, steps=200, average=False, step_size=1.0, **problem)
    assert plain.w == pytest.approx([0.0, 1.0], abs=0.05), "the constraint binds"
    noisy = fastdp.noisy_projected_gradient_descent(X, -y, epsilon=4.0, delta=1e-6, **problem)
    assert noisy.w[0] >= 0
    assert noisy.w == pytest.approx(plain.w, abs=0.3)
    with pytest.raises(ValueError, match=r"^over=.*: must be a Ball, a Box or the Simplex, which have nets"):
        fastdp.exponential_erm(X, y, epsilon=1.0, **problem)


class HalfBall(Halfspace):
    """The same with nets, and the rest of what the exponential mechanism asks of a set."""

    def of_dimension(self, d: int) -> HalfBall:
        return HalfBall(d)

    @property
    def net_dimension(self) -> int:
        return self.known_dimension()

    def net_size(self, spacing: float) -> tuple[float, float]:
        return 1.0, (2 / spacing + 1) ** self.known_dimension()

    def net(self, spacing: float) -> Net:
        whole = sets.Ball(1.0).of_dimension(self.known_dimension()).net(spacing)
        half = whole.points[: self.dimension, whole.points[0] >= 0]  # where rounding toward 0 leads
        return Net.of(list(half), whole.cover)

    def l1_distances(self, columns: Array) -> Vector:
        return sets.Ball(1.0).of_dimension(self.known_dimension()).l1_distances(columns)

    @property
    def ends(self) -> tuple[float, float] | None:
        return (0.0, 1.0) if self.dimension == 1 else None


class WithoutDistances(HalfBall):
    def of_dimension(self, d: int) -> WithoutDistances:
        return WithoutDistances(d)

    def l1_distances(self, columns: Array) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    "points", [np.zeros((2, 9)), np.zeros((4, 0)), np.zeros(4), np.full((4, 9), np.nan), np.full((4, 9), 1e300)]
)
def test_nets_of_a_new_set_are_checked(points: Array) -> None:
    """Kernels read four coordinates of every point."""

    class Wrong(HalfBall):
        def of_dimension(self, d: int) -> Wrong:
            return Wrong(d)

        def net(self, spacing: float) -> Net:
            return Net(points, 0.1)

    X, y = records(500)
    with pytest.raises(ValueError, match=r"^over: net of Wrong: must have points of 4 rows"):
        fastdp.exponential_erm(X, y, loss=losses.Logistic(x_norm=1.0), over=Wrong(), epsilon=1.0)


def test_a_new_set_with_nets_is_chosen_from() -> None:
    X, y = records(5000)
    problem: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "over": HalfBall()}
    over = HalfBall(2)
    for spacing in (0.3, 0.07):
        net, (least, most) = over.net(spacing), over.net_size(spacing)
        assert least <= net.points.shape[1] <= most
        assert all(over.contains(w) for w in net.points[:2].T)
    _, lowest = fastdp.nonprivate_minimum(X, -y, **problem)
    chosen = fastdp.exponential_erm(X, -y, epsilon=4.0, **problem)
    assert chosen.method == "grid"
    assert over.contains(chosen.w)
    risk = float(problem["loss"].values(chosen.w, X, -y).mean())
    assert -1e-6 <= risk - lowest <= chosen.bound < 0.1
    assert fastdp.private_erm(X, -y, epsilon=4.0, delta=1e-6, **problem).method in ("descent", "exponential")


def test_medians_over_a_new_set_need_its_distances_or_its_ends() -> None:
    X, _ = records(2000)
    loss = losses.AbsoluteDeviation()
    chosen = fastdp.exponential_erm(X - [0.5, 0.0], loss=loss, over=HalfBall(), epsilon=4.0)
    assert chosen.w == pytest.approx([0.0, 0.0], abs=0.15), "the median lies outside, its nearest point on the edge"
    with fastdp.Budget(epsilon=10.0) as budget:
        with pytest.raises(ValueError, match=r"^over=.*: must have l1_distances, for AbsoluteDeviation\(\)"):
            fastdp.exponential_erm(X, loss=loss, over=WithoutDistances(), epsilon=1.0)
        assert not budget.releases
    line = fastdp.exponential_erm(X[:, :1] + 0.25, loss=loss, over=HalfBall(), epsilon=4.0)
    assert line.method == "exact"
    assert line.w[0] == pytest.approx(float(np.median(X[:, 0])) + 0.25, abs=0.05)
