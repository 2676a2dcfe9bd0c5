"""Convex sets and the nearest points in them: fastdp/optimizing/sets/, kernels/projections.py.

A point w* of a set is the nearest one to w exactly if <w - w*, c - w*> <= 0 for all c of the set: that is what is
tested, at random points and at the worst one (tests/oracles/optimizing.py::furthest_along).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastdp import sets
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.sets import ConvexSet
from tests import oracles

Array = np.ndarray[Any, Any]
Make = Callable[[np.random.Generator, int], ConvexSet]

DIMENSIONS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100, 128, 199, 200]
MAKERS: dict[str, Make] = {
    "ball": lambda rng, d: sets.Ball(float(rng.choice([1.0, 0.3, 1e6, 1e-6]))).of_dimension(d),
    "ball, moved": lambda rng, d: sets.Ball(float(rng.uniform(0.1, 3)), center=rng.normal(size=d)),
    "ball_l1": lambda rng, d: sets.Ball(float(rng.choice([1.0, 0.3, 1e6, 1e-6])), norm=1).of_dimension(d),
    "ball_l1, moved": lambda rng, d: sets.Ball(float(rng.uniform(0.1, 3)), center=rng.normal(size=d), norm=1),
    "box": lambda rng, d: sets.Box(-1.0, 2.0).of_dimension(d),
    "box, moved": lambda rng, d: sets.Box(low := rng.normal(size=d), low + rng.exponential(size=d)),
    "simplex": lambda rng, d: sets.Simplex(float(rng.choice([1.0, 0.3, 1e6, 1e-6])), d),
}


def parts(over: Any) -> tuple[str, Any, Any]:
    """As tests/oracles/optimizing.py::furthest_along takes a set."""
    if isinstance(over, sets.Ball):
        return ("ball" if over.order == 2 else "ball_l1"), over.center, over.radius
    if isinstance(over, sets.Box):
        return "box", np.array(over.lower), np.array(over.upper)
    return "simplex", None, over.total


def size_of(over: ConvexSet) -> float:
    """What rounding is relative to: the set and where it lies."""
    return over.diameter + float(np.abs(over.center).max())


def outside_by(over: Any, w: Array) -> float:
    """How far a point is outside: a bound that shares no code with the projections."""
    if isinstance(over, sets.Ball):
        away = (w - over.center).tolist()
        return max(0.0, (math.hypot(*away) if over.order == 2 else math.fsum(map(abs, away))) - over.radius)
    if isinstance(over, sets.Box):
        return float(max(0.0, (np.array(over.lower) - w).max(), (w - np.array(over.upper)).max()))
    return max(0.0, float(-w.min()), abs(math.fsum(w.tolist()) - over.total))


def some_points(rng: np.random.Generator, over: ConvexSet, d: int) -> list[Array]:
    """Inside, outside, far, tiny, on the border, in the middle, along axes, with ties."""
    near = [over.center + size_of(over) * rng.normal(size=d) * s / math.sqrt(d) for s in (0.1, 0.5, 1.0, 3.0, 1e3)]
    axis = np.zeros(d)
    axis[int(rng.integers(d))] = rng.choice([-1.0, 1.0]) * 5 * size_of(over)
    return [
        *near,
        over.center,
        np.zeros(d),
        np.full(d, 5e-324),
        -np.zeros(d),
        5e-324 * rng.integers(-2, 3, d),
        np.full(d, 3.0 * size_of(over)),
        np.where(rng.random(d) < 0.5, -2.0, 2.0) * size_of(over),
        rng.choice([0.0, 1.0, -3.0], d) * size_of(over),
        axis,
        over.center + axis,
        *(over.project(w) for w in near),
    ]


def members(rng: np.random.Generator, over: Any, d: int) -> list[Array]:
    """Points of the set: vertices, points of the border, points inside."""
    eye = np.eye(d)[rng.permutation(d)[:10]]
    if isinstance(over, sets.Ball):
        out = rng.normal(size=(10, d))
        out /= np.abs(out).sum(axis=1, keepdims=True) if over.order == 1 else np.linalg.norm(out, axis=1, keepdims=True)
        ends = np.concatenate([eye, -eye, out, 0.4 * out]) * over.radius + over.center
    elif isinstance(over, sets.Box):
        low, high = np.array(over.lower), np.array(over.upper)
        ends = np.concatenate([np.where(rng.random((10, d)) < 0.5, low, high), rng.uniform(low, high, (10, d))])
    else:
        ends = over.total * np.concatenate([eye, rng.dirichlet(np.ones(d), 10)])
    return [over.center, *ends]


# --- nearest points


@pytest.mark.parametrize("name", MAKERS)
def test_projections_are_the_nearest_points(name: str) -> None:
    rng = np.random.default_rng(1)
    for d in DIMENSIONS:
        over = MAKERS[name](rng, d)
        kind, a, b = parts(over)
        for w in some_points(rng, over, d):
            kept = w.copy()
            nearest = over.project(w)
            assert (w == kept).all()
            assert nearest.dtype == np.float64
            scale = size_of(over) + float(np.abs(w).max())
            # the worst direction in which the set could be better; in units of lengths
            direction = w - nearest
            length = math.hypot(*direction.tolist())
            assert outside_by(over, nearest) <= 1e-14 * d * scale, (d, w)
            slack = 1e-13 * d * scale
            best = oracles.optimizing.furthest_along(direction, kind, a, b)
            assert best - direction @ nearest <= slack * (length + scale), (d, w)
            for c in members(rng, over, d):
                assert direction @ (c - nearest) <= slack * (length + scale)
                assert np.linalg.norm(w - c) >= length - slack
            np.testing.assert_allclose(over.project(nearest), nearest, rtol=0, atol=1e-14 * d * scale)
            assert over.contains(nearest)


@pytest.mark.parametrize("name", MAKERS)
def test_points_of_the_set_stay_where_they_are(name: str) -> None:
    rng = np.random.default_rng(2)
    for d in DIMENSIONS:
        over = MAKERS[name](rng, d)
        for c in members(rng, over, d):
            np.testing.assert_allclose(over.project(c), c, rtol=0, atol=1e-14 * d * size_of(over))
            assert over.contains(c)
            if "simplex" not in name:
                inner = over.center + 0.9 * (c - over.center)
                np.testing.assert_array_equal(over.project(inner), inner)


@pytest.mark.parametrize("name", MAKERS)
def test_projections_bring_points_no_further_apart(name: str) -> None:
    rng = np.random.default_rng(3)
    for d in (1, 2, 5, 20, 100):
        over = MAKERS[name](rng, d)
        for _ in range(20):
            v, w = size_of(over) * rng.normal(size=(2, d))
            before, after = np.linalg.norm(v - w), np.linalg.norm(over.project(v) - over.project(w))
            assert after <= before + 1e-12 * size_of(over)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("far", [1e10, 1e16, 1e20, 1e150, 1e300])
def test_points_far_away_are_projected_to_the_border(name: str, far: float) -> None:
    """To the precision of the set, not of the point: noise and a long step may throw a descent anywhere."""
    rng = np.random.default_rng(4)
    for d in (1, 2, 3, 10, 100):
        over = MAKERS[name](rng, d)
        for w in (far * rng.normal(size=d), np.full(d, far), far * rng.choice([0.0, -1.0, 1.0], d)):
            nearest = over.project(w)
            assert outside_by(over, nearest) <= 1e-13 * d * size_of(over), (d, w)
            unit = w / np.abs(w).max() if w.any() else w
            kind, a, b = parts(over)
            gain = oracles.optimizing.furthest_along(unit, kind, a, b) - unit @ nearest  # the border is where w pulls
            assert gain <= (1e-13 * d + 10 * d * size_of(over) / far) * size_of(over), (d, w)


def test_known_nearest_points() -> None:
    for over, w, right in (
        (sets.Ball(2.0), [3.0, 4.0], [1.2, 1.6]),
        (sets.Ball(1.0, center=[1.0, 1.0]), [1.0, 5.0], [1.0, 2.0]),
        (sets.Ball(5.0), [3.0, 4.0], [3.0, 4.0]),
        (sets.Ball(1.0, norm=1), [3.0, 1.0], [1.0, 0.0]),
        (sets.Ball(1.0, norm=1), [-1.0, 1.0], [-0.5, 0.5]),
        (sets.Ball(2.0, norm=1), [2.0, -1.0, 0.5], [1.5, -0.5, 0.0]),
        (sets.Ball(1.0, center=[1.0, 0.0], norm=1), [3.0, 1.0], [2.0, 0.0]),
        (sets.Box(-1, 1), [0.5, 3.0, -7.0], [0.5, 1.0, -1.0]),
        (sets.Box([0, 0], [1, 2]), [5.0, 5.0], [1.0, 2.0]),
        (sets.Simplex(), [0.5, 0.9], [0.3, 0.7]),
        (sets.Simplex(), [0.0, 0.0, 0.0, 0.0], [0.25] * 4),
        (sets.Simplex(2.0), [5.0, -1.0], [2.0, 0.0]),
        (sets.Simplex(), [7.0], [1.0]),
        (sets.Simplex(1.0, 2), [-5.0, -5.0], [0.5, 0.5]),
    ):
        np.testing.assert_allclose(over.project(w), right, rtol=0, atol=1e-15)


def test_projections_by_exhaustion() -> None:
    """The L1 ball and the simplex against every way of choosing which coordinates are not zero."""
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 4):
        for _ in range(50):
            w = rng.normal(size=d) * 2
            best, nearest = math.inf, w
            for chosen in itertools.chain.from_iterable(itertools.combinations(range(d), k) for k in range(1, d + 1)):
                some = list(chosen)
                v = np.zeros(d)
                v[some] = w[some] - (w[some].sum() - 1) / len(some)
                if v.min() >= 0 and np.linalg.norm(v - w) < best:
                    best, nearest = float(np.linalg.norm(v - w)), v
            np.testing.assert_allclose(sets.Simplex().project(w), nearest, rtol=0, atol=1e-14)
            if np.abs(w).sum() > 1:
                right = np.sign(w) * sets.Simplex().project(np.abs(w))
                np.testing.assert_allclose(sets.Ball(1.0, norm=1).project(w), right, rtol=0, atol=1e-14)


# --- sizes


@pytest.mark.parametrize("name", MAKERS)
def test_sizes_are_bounds(name: str) -> None:
    rng = np.random.default_rng(6)
    for d in DIMENSIONS:
        over = MAKERS[name](rng, d)
        some = np.array(members(rng, over, d))
        apart = np.linalg.norm(some[:, None] - some[None], axis=2).max()
        assert apart <= over.diameter * (1 + 1e-12)
        assert np.linalg.norm(some, axis=1).max() <= over.norm * (1 + 1e-12)
        for point in (over.center, np.zeros(d), rng.normal(size=d), some[3]):
            assert np.linalg.norm(some - point, axis=1).max() <= over.reach(point) * (1 + 1e-12) + 1e-15


def test_sizes_are_attained() -> None:
    rng = np.random.default_rng(7)
    for d in (1, 2, 5, 40):
        point = rng.normal(size=d)
        ball = sets.Ball(1.5, center=rng.normal(size=d))
        away = ball.center - point
        furthest = ball.center + 1.5 * away / np.linalg.norm(away)
        assert np.linalg.norm(furthest - point) == pytest.approx(ball.reach(point), rel=1e-12)
        assert ball.diameter == 3.0
        low, high = -rng.random(d), rng.random(d)
        box = sets.Box(low, high)
        corner = np.where(np.abs(high - point) > np.abs(low - point), high, low)
        assert np.linalg.norm(corner - point) == pytest.approx(box.reach(point), rel=1e-12)
        assert np.linalg.norm(high - low) == pytest.approx(box.diameter, rel=1e-12)
        simplex = sets.Simplex(2.0, d)
        corners = 2 * np.eye(d)
        assert np.linalg.norm(corners - point, axis=1).max() == pytest.approx(simplex.reach(point), rel=1e-12)
        assert simplex.norm == pytest.approx(2.0, rel=1e-12)
        if d > 1:
            assert np.linalg.norm(corners[0] - corners[1]) == pytest.approx(simplex.diameter, rel=1e-12)
    cross = sets.Ball(1.5, norm=1).of_dimension(3)
    assert cross.diameter == 3.0
    assert cross.norm == 1.5
    assert cross.reach(cross.center) == 1.5
    assert cross.reach(np.array([2.0, 0.0, 0.0])) == 3.5


@pytest.mark.parametrize("name", MAKERS)
def test_contains_is_membership_up_to_rounding(name: str) -> None:
    rng = np.random.default_rng(8)
    for d in (1, 2, 9, 50):
        over = MAKERS[name](rng, d)
        for w in some_points(rng, over, d):
            beyond = outside_by(over, w)
            if beyond <= 1e-13 * size_of(over):
                assert over.contains(w)
            if beyond > 1e-7 * (size_of(over) + np.abs(w).max()) * math.sqrt(d):
                assert not over.contains(w)


def test_centres_lie_in_their_sets() -> None:
    rng = np.random.default_rng(9)
    for make in MAKERS.values():
        for d in (1, 2, 30):
            over = make(rng, d)
            assert over.center.shape == (d,)
            assert over.contains(over.center)
            over.center[:] = 7.0
            assert not (over.center == 7.0).all(), "a copy every time"


# --- dimensions


def test_sets_take_the_dimension_of_the_records() -> None:
    for over in (sets.Ball(1.0), sets.Ball(1.0, norm=1), sets.Box(-1, 1), sets.Simplex()):
        assert over.dimension is None
        assert over.of_dimension(4).dimension == 4
        for what in (lambda over=over: over.center, lambda over=over: over.norm, lambda over=over: over.projection):
            with pytest.raises(ValueError, match=r"^.*: its dimension is not known: must be given by \.of_dimension"):
                what()
    fixed = (
        sets.Ball(1.0, center=[0.0, 0.0]), sets.Ball(1, center=np.zeros(2), norm=1), sets.Box([0, 0], [1, 1]),
        sets.Box(0, [1, 1]), sets.Box([0, 0], 1), sets.Simplex(1.0, 2),
        sets.Projected(lambda w: w.clip(0, 1), diameter=2, center=[0, 0]),
    )  # fmt: skip
    for each in fixed:
        assert each.dimension == 2
        assert each.of_dimension(2).dimension == 2
        for what in (lambda each=each: each.of_dimension(3), lambda each=each: each.project([0.0] * 3)):
            with pytest.raises(ValueError, match=r"^.*: has dimension 2: must be 3, as the records have columns$"):
                what()


def test_sets_print_as_they_are_made() -> None:
    for over, shown in (
        (sets.Ball(2.0), "Ball(2)"),
        (sets.Ball(0.5, norm=1), "Ball(0.5, norm=1)"),
        (sets.Ball(2.0, center=3.0), "Ball(2, center=3)"),
        (sets.Ball(2.0, center=[1.0, 2.5]), "Ball(2, center=[1, 2.5])"),
        (sets.Box(-1, 1), "Box(-1, 1)"),
        (sets.Box([0, 0, 0, 0, 0], [1, 2, 3, 4, 5]), "Box(0, [1, 2, 3, 4, ...])"),
        (sets.Simplex(), "Simplex()"),
        (sets.Simplex(2.5), "Simplex(2.5)"),
        (sets.Projected(np.zeros_like, diameter=1, center=[0]), "Projected(zeros_like, diameter=1)"),
    ):
        assert repr(over) == shown


# --- sets of the user's own


def test_a_set_by_its_projection() -> None:
    def increasing(w: Array) -> Array:
        middle = w.mean()
        return np.clip(w if w[0] <= w[1] else np.array([middle, middle]), 0, 1)

    over = sets.Projected(increasing, diameter=math.sqrt(2), center=[0.5, 0.5])
    np.testing.assert_array_equal(over.project([2.0, 0.5]), [1.0, 1.0])
    assert over.contains([0.2, 0.3])
    assert not over.contains([0.3, 0.2])
    with pytest.raises(ValueError, match=r"must give the nearest point of a convex set"):  # of a and b it sorts
        sets.Projected(lambda w: np.sort(w).clip(0, 1), diameter=math.sqrt(2), center=[0.5, 0.5])
    assert over.projection is None
    assert over.diameter == math.sqrt(2)
    np.testing.assert_array_equal(over.center, [0.5, 0.5])
    assert over.reach(over.center) == over.diameter
    assert over.reach(np.array([0.0, 3.0])) == pytest.approx(2 + over.diameter)
    seen = []

    def selfish(w: Array) -> Array:
        seen.append(w)
        w[:] = 0.0
        return w

    mine = np.ones(2)
    np.testing.assert_array_equal(sets.Projected(selfish, diameter=1, center=[0, 0]).project(mine), [0, 0])
    np.testing.assert_array_equal(mine, [1, 1])
    lists = sets.Projected(lambda w: [0, 1], diameter=1, center=[0, 1])
    assert lists.project([5, 5]).dtype == np.float64


def test_a_projection_that_is_none() -> None:
    for result, message in (
        ([1.0], r"^function\(w\): shape \(1,\): must be \(2,\), as w has$"),
        ([1.0, math.nan], r"^function\(w\): must be finite"),
        ([[1.0, 2.0]], r"^function\(w\): shape \(1, 2\): must have one dimension"),
        ("ab", r"^function\(w\): dtype .*: must be integers"),
        (None, r"^function\(w\): type NoneType: must be a number or an array of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            sets.Projected(lambda w, result=result: result, diameter=1, center=[0, 0])
    with pytest.raises(ValueError, match=r"^center: must be a point of the set: `function` moves it$"):
        sets.Projected(lambda w: w.clip(0, 1), diameter=1, center=[2, 0])
    for function in (None, 3, "f"):
        with pytest.raises(ValueError, match=r"^function=.*: must be callable$"):
            sets.Projected(function, diameter=1, center=[0])  # type: ignore[arg-type]
    for diameter in (0, -1.0, math.inf, math.nan, "1", None):
        with pytest.raises(ValueError, match=r"^diameter=.*: must be "):
            sets.Projected(lambda w: w, diameter=diameter, center=[0])  # type: ignore[arg-type]


# --- bad input


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True, [1.0]])
def test_sizes_must_be_positive_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^radius=.*: must be (a number|> 0 and finite)$"):
        sets.Ball(value)
    with pytest.raises(ValueError, match=r"^total=.*: must be (a number|> 0 and finite)$"):
        sets.Simplex(value)


def test_parameters_of_sets_are_checked() -> None:
    for norm in (0, 3, math.inf, "2", None, 1.5):
        with pytest.raises(ValueError, match=r"^norm=.*: must be 1 or 2$"):
            sets.Ball(1.0, norm=norm)  # type: ignore[arg-type]
    for center in ([math.nan], math.inf, [0.0, -math.inf]):
        with pytest.raises(ValueError, match=r"^center: must be finite, and at most 2\^400 in magnitude$"):
            sets.Ball(1.0, center=center)
    for center in ([[0.0]], []):
        with pytest.raises(ValueError, match=r"^center: shape .*: must be a number or a vector$"):
            sets.Ball(1.0, center=center)
    with pytest.raises(ValueError, match=r"^center: dtype .*: must be integers"):
        sets.Ball(1.0, center="x")
    for dimension in (0, -1, 2.0, "2", True):
        with pytest.raises(ValueError, match=r"^dimension=.*: must be an integer >= 1$"):
            sets.Simplex(1.0, dimension)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^lower=1\.0: must be at most upper=0\.0 \(coordinate 0"):
        sets.Box(1, 0)
    with pytest.raises(ValueError, match=r"^lower=3\.0: must be at most upper=2\.0 \(coordinate 1\)$"):
        sets.Box([0, 3], [1, 2])
    with pytest.raises(ValueError, match=r"^lower: must be finite, and at most 2\^400 in magnitude$"):
        sets.Box(-1e308, 1e308)
    with pytest.raises(ValueError, match=r"^lower: 2 coordinates: must be as many as upper has, 3$"):
        sets.Box([0, 0], [1, 1, 1])
    for low, high in ((1, 1), ([0, 2], [0, 2])):
        with pytest.raises(ValueError, match=r"^lower=.*: must be below upper in at least one coordinate$"):
            sets.Box(low, high)
    assert sets.Box([0, 2], [1, 2]).project([5, 5]).tolist() == [1, 2]
    for low, high in ((math.nan, 1), (0, math.inf)):
        with pytest.raises(ValueError, match=r"^(lower|upper): must be finite, and at most 2\^400 in magnitude$"):
            sets.Box(low, high)


@pytest.mark.parametrize("over", [sets.Ball(1.0), sets.Ball(1.0, norm=1), sets.Box(0, 1), sets.Simplex()])
def test_points_that_are_none(over: ConvexSet) -> None:
    for ask in (over.project, over.contains):
        for w, message in (
            ([math.nan, 0.0], r"^w: must be finite; there is a NaN or an infinity in it$"),
            ([math.inf], r"^w: must be finite"),
            ([], r"^w: shape \(0,\): must have one dimension and at least one coordinate$"),
            (1.0, r"^w: shape \(\): must have one dimension"),
            ([[1.0]], r"^w: shape \(1, 1\): must have one dimension"),
            ("ab", r"^w: dtype .*: must be integers"),
        ):
            with pytest.raises(ValueError, match=message):
                ask(w)


def test_a_start_must_lie_in_the_set() -> None:
    from fastdp import losses

    loss = losses.SquaredDistance(x_norm=1)
    for over, start in (
        (sets.Ball(1.0), [1.0, 0.1]), (sets.Ball(1.0, norm=1), [0.6, 0.6]), (sets.Box(0, 1), [0.5, -0.1]),
        (sets.Simplex(), [0.5, 0.6]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^start: must lie in the set that is minimised over, .*\)$"):
            Problem.of(loss, over, 2, start)
        with pytest.raises(ValueError, match=r"^start: 3 coordinates: must be 2, as the records have columns$"):
            Problem.of(loss, over, 2, [0.0, 0.0, 1.0])
    problem = Problem.of(loss, sets.Simplex(), 2, [0.25, 0.75])
    assert problem.radius == pytest.approx(math.hypot(0.75, 0.75))


def test_l1_ball_far_away() -> None:
    over = sets.Ball(1.0, norm=1)
    for far in (1e10, 1e16, 1e300):
        assert np.abs(over.project([far + 0.5 * (far < 1e15), far / 2, -3.0])).sum() <= 1 + 1e-12
    np.testing.assert_allclose(sets.Ball(1e-6, norm=1).project([6.6e9, -1.6e10]), [0, -1e-6], rtol=1e-12)


def test_l2_ball_at_the_end_of_float64() -> None:
    np.testing.assert_allclose(sets.Ball(1.0).project([1.7e308, 1.7e308]), [math.sqrt(0.5)] * 2, rtol=1e-12)


def test_contains_does_not_lose_the_set_in_the_distance() -> None:
    assert not sets.Ball(1e-3, center=[1e9]).contains([1e9 + 0.5])
