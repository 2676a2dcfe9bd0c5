"""A choice from a net by tangents: their sums, that no tangent is above a loss, the law that is drawn from, and that
more records make nothing worse."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.kernels import covering_nets, tangents
from fastdp.optimizing import convex_nets
from fastdp.optimizing import covering_nets as net_plans
from fastdp.optimizing.choice import ChoiceParameters
from fastdp.optimizing.problem import read_points
from tests import oracles
from tests.laws import check_cells

KERNELS = {  # of each loss: its tangents, its losses, its parameter
    "SQUARED": (tangents.add_tangents_of_squared_losses, covering_nets.add_squared_losses, 0.0),
    "LOGISTIC": (tangents.add_tangents_of_logistic_losses, covering_nets.add_logistic_losses, 0.0),
    "HINGE": (tangents.add_tangents_of_hinge_losses, covering_nets.add_hinge_losses, 0.0),
    "HUBER": (tangents.add_tangents_of_huber_losses, covering_nets.add_huber_losses, 0.75),
    "DISTANCE": (tangents.add_tangents_of_square_distances, covering_nets.add_square_distances, 2.0),
    "DEVIATION": (tangents.add_tangents_of_deviations, covering_nets.add_deviations, 1.0),
}
SETS = {
    "ball": (sets.Ball(2.0), 2), "l1 ball": (sets.Ball(1.5, norm=1), 3), "box": (sets.Box(-1, 0.5), 2),
    "far box": (sets.Box(40, 41), 1), "simplex": (sets.Simplex(), 4),
}  # fmt: skip
LOSSES = {
    "squared": losses.SquaredError(x_norm=1, y_bound=1), "logistic": losses.Logistic(x_norm=1),
    "hinge": losses.Hinge(x_norm=1), "huber": losses.Huber(0.3, x_norm=1),
    "distance": losses.SquaredDistance(x_norm=1), "deviation": losses.AbsoluteDeviation(),
}  # fmt: skip


def seeded(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def silent(done, total, what):
    pass


@pytest.fixture
def few_points(monkeypatch):
    """Every convex loss by tangents, and few of them: what is right must not depend on where they lie."""
    monkeypatch.setattr(net_plans, "_SCANNED", 0)
    monkeypatch.setattr(convex_nets, "_BATCH", 2)
    monkeypatch.setattr(convex_nets, "EVALUATED", 4)


def planned(X, y, loss, over, lam=0.0, epsilon=1.0, spacing=0.25, resolution=None, neighbors="replace-one"):
    points, problem = read_points(X, y, loss + losses.L2(lam), over, None, "clip")
    points.check()
    terms = ChoiceParameters(problem, points.d, points.n, epsilon, neighbors)
    return points, net_plans.GridPlan(terms, spacing, resolution)


def records(loss, d, n=60, seed=0):
    """Also equal ones, ones at corners of the loss, and ones that are brought back from far beyond."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)) / 2
    X[: n // 4] = X[0]
    X[-3:] *= [[1e3], [1e-3], [1e12]]
    if loss.labels is None:
        return X, None
    return X, draw.choice([-1.0, 1.0], n) if loss.labels == "sign" else draw.normal(size=n) * draw.choice([1, 1e9], n)


# --- the kernels


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_sums_of_tangents_are_those_of_losses_and_of_slopes(kind, d):
    draw = np.random.default_rng(d)
    X, net, y = draw.normal(size=(30, d)), draw.normal(size=(7, d)), draw.normal(size=30)
    if kind in ("LOGISTIC", "HINGE"):
        y = np.sign(y)
    if kind == "HINGE":
        X[:5] = net[0] / (net[0] @ net[0]) * y[:5, None]  # at the corner
    columns, points, lowest = np.zeros((4, 30)), np.zeros((4, 7)), draw.random(30) / 4
    columns[:d], points[:d] = X.T, net.T
    add, losses_of, parameter = KERNELS[kind]
    out, plain = np.ones((7, 10), np.int64), np.zeros(7, np.int64)  # what is there is added to
    add(columns, y, lowest, points, parameter, 0, 2.0**20, 2.0**22, 2.0**25, out)
    losses_of(columns, y, lowest, points, parameter, 0, 2.0**20, 2.0**22, plain)
    sums = [[(int(row[2 * j] - 1) << 31) + int(row[2 * j + 1] - 1) for j in range(5)] for row in out]
    assert [row[0] for row in sums] == plain.tolist()
    low, high = oracles.optimizing.slopes_of_net(kind, X, y, net, parameter, 2.0**25, 2.0**-44)
    slopes = np.array([row[1 : d + 1] for row in sums], object)
    assert (low <= slopes).all()
    assert (slopes <= high).all()
    assert not any(any(row[d + 1 :]) for row in sums), "a coordinate that is none"


def test_large_sums_of_tangents_fit():
    """Losses of 2^36 units and slopes of 2^50, added up 2^20 times: beyond int64."""
    columns, point, y = np.full((4, 2**20), 1.0), np.zeros((4, 1)), np.full(2**20, -1.0)
    columns[1:] = 0
    out = np.zeros((1, 10), np.int64)
    kernel, _, parameter = KERNELS["SQUARED"]
    kernel(columns, y, np.zeros(2**20), point, parameter, 0, 2.0**36, 2.0**36, 2.0**49, out)
    assert (int(out[0, 0]) << 31) + int(out[0, 1]) == 2**56
    assert (int(out[0, 2]) << 31) + int(out[0, 3]) == 2**70


def test_bounds_are_raised_to_the_largest_tangent():
    draw = np.random.default_rng(5)
    net, values, slopes, at = draw.normal(size=(4, 50)), draw.normal(size=3), draw.normal(size=(3, 4)), np.zeros((3, 4))
    at[:] = draw.normal(size=(3, 4))
    exact = oracles.optimizing.bound_of_tangents(net, values, slopes, at, 0.5)
    bounds = np.full(50, -np.inf)
    bounds[7] = 100.0
    tangents.raise_bounds(net, values, slopes, at, 0.5, 2.0**-48, bounds)
    assert bounds[7] == 100.0
    for i in set(range(50)) - {7}:
        assert exact[i] - Fraction(2.0**-44) <= Fraction(bounds[i]) <= exact[i]


# --- no tangent is above: what the law rests on


def excess_of_tangents(X, y, loss, over, **options):
    """By how many units the bounds are above F, at the worst point; and whether known losses are F itself."""
    points, plan = planned(X, y, loss, over, **options)
    assert plan._tangents
    envelope = plan.envelope(points, silent)
    F = [-int(score) for score in plan.scores(points, silent)]
    assert all(value == F[p] for p, value in envelope._values.items())
    return max(Fraction(bound) - (f - envelope._first) for bound, f in zip(envelope._bounds.tolist(), F, strict=True))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("region", SETS)
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_no_tangent_is_above_a_loss(name, region, neighbors, few_points):
    loss, (over, d) = LOSSES[name], SETS[region]
    for lam, resolution in ((0.0, None), (0.3, 2.0**-4)):  # a coarse grid: rounding down is much of every loss
        X, y = records(loss, d, seed=d)
        spacing = over.of_dimension(d).diameter / 8
        options = {"lam": lam, "resolution": resolution, "neighbors": neighbors, "spacing": spacing}
        assert excess_of_tangents(X, y, loss, over, **options) <= 0


def test_tangents_without_the_slack_are_above(few_points, monkeypatch):
    """The test above fails if what rounding down may do is forgotten."""
    X, y = records(LOSSES["logistic"], 2, n=400)
    options = {"loss": LOSSES["logistic"], "over": sets.Ball(2.0), "resolution": 2.0**-2}
    assert excess_of_tangents(X, y, **options) <= 0
    monkeypatch.setattr(convex_nets, "_SLACK", 0.0)
    assert excess_of_tangents(X, y, **options) > 0


def test_a_bound_above_a_loss_is_an_error_and_not_another_law(few_points):
    X, y = records(LOSSES["hinge"], 2)
    points, plan = planned(X, y, LOSSES["hinge"], sets.Ball(2.0))
    envelope = plan.envelope(points, silent)
    envelope._values = {next(iter(envelope._values)): 0}
    envelope._bounds += 2.0**40
    choose = envelope.chooser()
    with pytest.raises(AssertionError, match="never above"):
        [choose(np.full(8, word, np.uint32)) for word in range(64)]


class Bent(losses.Logistic):
    """Derived from a convex loss; what it would state of itself is no proof."""


class Region(sets.Ball):
    """Derived from a ball."""


def test_what_is_derived_from_a_convex_loss_or_a_set_is_evaluated_everywhere(few_points):
    logistic, ball = losses.Logistic(x_norm=1), sets.Ball(2.0)
    assert convex_nets.has_tangents(logistic, ball)
    custom = losses.Custom(lambda s, y: s, slope_bound=1)
    for loss, over in ((Bent(x_norm=1), ball), (logistic, Region(2.0)), (custom, ball)):
        assert not convex_nets.has_tangents(loss, over)
    X, y = records(logistic, 2)
    assert not planned(X, y, Bent(x_norm=1), ball)[1]._tangents


def test_floats_too_coarse_for_a_resolution_have_no_tangents(few_points):
    X, y = records(LOSSES["squared"], 1)
    loss = losses.SquaredError(x_norm=1e-9, y_bound=1e9)  # scores are lost beside labels
    assert not planned(X, y, loss, sets.Box(-1, 1))[1]._tangents
    assert planned(X, y, LOSSES["squared"], sets.Box(-1, 1))[1]._tangents


# --- the law


@pytest.mark.parametrize("name", ["logistic", "hinge", "distance"])
@pytest.mark.parametrize("lam", [0.0, 0.2])
def test_the_law_is_that_of_all_losses(name, lam, few_points):
    """False alarms at 1e-9; epsilon off by 3/2 and 2/3 is refuted."""
    loss = LOSSES[name]
    X, y = records(loss, 2, n=12)
    points, plan = planned(X, y, loss, sets.Ball(1.0), lam=lam, epsilon=8.0, spacing=0.5, resolution=2.0**-9)
    scores, eta = plan.scores(points, silent).tolist(), Fraction(plan.eta)
    draw = np.random.default_rng(7)
    place = {tuple(w): i for i, w in enumerate(plan.net.points.T[:, :2].tolist())}
    counts = np.zeros(plan.candidates, int)
    for _ in range(4):  # runs that have evaluated other points before
        choose = plan.read(points, silent)
        for _ in range(600):
            counts[place[tuple(choose(draw.integers(0, 2**32, 8, np.uint32)).tolist())]] += 1
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2, 3)):
        law = oracles.selection.exponential_law(oracles.selection.choice_weights(scores, eta * factor))
        assert bool(check_cells(counts, law)) is (factor == 1)


@pytest.mark.parametrize("container", ["blocks", "threads"])
def test_the_result_is_the_same_for_all_blocks_and_threads(container, monkeypatch):
    draw = np.random.default_rng(8)
    X = draw.normal(size=(5000, 3))
    options = {"loss": losses.Huber(0.5, x_norm=1), "over": sets.Ball(1), "epsilon": 1.0, "outside": "clip"}

    def result():
        return fastdp.exponential_erm(X, X[:, 0], rng=seeded(3), **options).w.tolist()

    expected, threads = result(), fastdp.get_num_threads()
    try:
        if container == "blocks":
            monkeypatch.setattr("fastdp.records.arrays.BLOCK_RECORDS", 512)
        for count in (1, 3):
            fastdp.set_num_threads(count)
            assert result() == expected
    finally:
        fastdp.set_num_threads(threads)


# --- more records make nothing worse


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ["logistic", "squared", "hinge"])
def test_bounds_fall_with_the_number_of_records(d, neighbors, name):
    sizes = [1000, 1500, 2048, 2049, 3000, 10_000, 10**5, 10**6, 10**7, 10**9]
    options = {"loss": LOSSES[name], "over": sets.Ball(4), "epsilon": 1.0, "neighbors": neighbors}
    bounds = [fastdp.bounds.exponential_erm(n, d, **options) for n in sizes]
    assert all(b <= a for a, b in itertools.pairwise(bounds)), bounds


def test_a_result_states_what_more_points_would_give():
    draw = np.random.default_rng(9)
    X = draw.normal(size=(20_000, 3)) / 4
    y = X[:, 0] > 0
    options = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(4), "epsilon": 1.0, "outside": "clip"}
    found = fastdp.exponential_erm(X, y, **options)
    assert found.uncapped < found.bound / 2
    assert "with as many points as the theorem takes" in repr(found)
    coarse = fastdp.exponential_erm(X[:500, :1], y[:500], **options)
    assert coarse.uncapped is None


def test_an_epsilon_beyond_the_grid_takes_no_tangents():
    """Proposals would be refused without end: the slack of the records alone is more than any coin accepts."""
    X, y = records(LOSSES["squared"], 2)
    for epsilon, taken in ((2.0**10, True), (2.0**70, False)):
        assert planned(X, y, LOSSES["squared"], sets.Box(-1, 1), epsilon=epsilon, spacing=None)[1]._tangents == taken
