"""The exponential mechanism over convex sets: what records add to scores, the laws that are drawn from, their privacy
by enumeration, the bound of the excess risk, and what is refused."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pandas
import pytest

import fastdp
from fastdp import Budget, DomainError, losses, sets
from fastdp.kernels import covering_nets
from fastdp.kernels import losses as formulas
from fastdp.mechanisms import weighted_intervals
from fastdp.optimizing import choice
from fastdp.optimizing import covering_nets as net_plans
from fastdp.optimizing import one_dimension as line
from fastdp.optimizing.losses import MissingBound
from fastdp.optimizing.problem import read_points
from fastdp.records import arrays
from tests import oracles
from tests.laws import at_most, check_cells

SLACK = 2.0**-48
KERNELS = {  # of each loss, and its parameter
    "SQUARED": (covering_nets.add_squared_losses, 0.0),
    "LOGISTIC": (covering_nets.add_logistic_losses, 0.0),
    "HINGE": (covering_nets.add_hinge_losses, 0.0),
    "HUBER": (covering_nets.add_huber_losses, 0.75),
    "DISTANCE": (covering_nets.add_square_distances, 2.0),
    "DEVIATION": (covering_nets.add_deviations, 1.0),
}
OF_LOSS = {
    losses.SquaredError: "SQUARED",
    losses.Logistic: "LOGISTIC",
    losses.Hinge: "HINGE",
    losses.Huber: "HUBER",
    losses.SquaredDistance: "DISTANCE",
    losses.AbsoluteDeviation: "DEVIATION",
}
KINDS = pytest.mark.parametrize("kind", KERNELS)


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def silent(done, total, what):
    pass


def planned(
    X, y=None, *, loss, over, epsilon=1.0, method="auto", spacing=None, resolution=None, beta=0.05, records=None,
    outside="raise",
):  # fmt: skip
    """The points and the plan of a call; add-remove neighbours if `records` is given."""
    points, problem = read_points(X, y, loss, over, None, outside)
    points.check()
    neighbors = "replace-one" if records is None else "add-remove"
    terms = choice.ChoiceParameters(problem, points.d, records or points.n, epsilon, neighbors)
    if method == "grid" or line.no_line(terms, spacing, resolution):
        return points, net_plans.GridPlan(terms, spacing, resolution)
    return points, line.LINES[type(problem.loss)](terms, spacing)


def scores_of(X, y=None, **options):
    """F at all points and eta, of either method, as fractions."""
    points, plan = planned(X, y, **options)
    if plan.method == "grid":
        return [-s for s in plan.scores(points, silent).tolist()], Fraction(plan.eta)
    choice = plan.choice(points)
    return [choice._function(k) for k in range(plan.candidates)], choice.eta


def law_of(F, eta):
    return oracles.selection.exponential_law(oracles.selection.choice_weights([-f for f in F], eta))


def column(*values):
    return np.array(values, float)[:, None]


# --- the kernels: every loss at every point, against fractions


def instance(kind, n, m, d, seed):
    draw = np.random.default_rng(seed)
    X, net = draw.normal(size=(n, d)), draw.normal(size=(m, d))
    y = np.sign(draw.normal(size=n)) if kind in ("LOGISTIC", "HINGE") else draw.normal(size=n)
    return X, y, draw.random(n) / 4, net


def summed(kind, X, y, lowest, net, unit, limit):
    columns, points = np.zeros((4, len(X))), np.zeros((4, len(net)))
    columns[: X.shape[1]], points[: X.shape[1]] = X.T, net.T
    out = np.arange(len(net))  # what is there is added to
    add, parameter = KERNELS[kind]
    add(columns, np.asarray(y, float), np.asarray(lowest, float), points, parameter, 0, float(unit), float(limit), out)
    return out - np.arange(len(net))


@KINDS
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_sums_of_losses_are_the_floors_of_fractions(kind, d):
    X, y, lowest, net = instance(kind, 40, 12, d, d)
    for unit, limit in ((2**20, 2**22), (2**10, 300), (1, 1)):
        low, high = oracles.optimizing.scores_of_net(kind, X, y, lowest, net, KERNELS[kind][1], unit, limit, SLACK)
        found = summed(kind, X, y, lowest, net, unit, limit)
        assert (low <= found).all()
        assert (found <= high).all()
        assert sum(high) - sum(low) <= 4, "the bounds say little"


@pytest.mark.parametrize("kind", ["SQUARED", "HINGE", "HUBER", "DISTANCE", "DEVIATION"])
def test_sums_of_losses_of_short_numbers_are_exact(kind):
    """Multiples of 1/8, whose losses floats hold: also where they are whole units, and just beside."""
    draw = np.random.default_rng(3)
    X, net = draw.integers(-16, 17, (600, 2)) / 8, draw.integers(-16, 17, (9, 2)) / 8
    y = draw.choice([-1.0, 1.0], 600) if kind == "HINGE" else draw.integers(-16, 17, 600) / 8
    lowest = draw.integers(0, 8, 600) / 8
    for unit, limit in ((1, 3), (4, 7), (64, 2**36)):
        low, high = oracles.optimizing.scores_of_net(kind, X, y, lowest, net, KERNELS[kind][1], unit, limit)
        assert low == high == summed(kind, X, y, lowest, net, unit, limit).tolist()


@KINDS
def test_a_record_adds_an_integer_between_0_and_the_limit_whatever_it_is(kind):
    """Also a NaN, which counts as the limit, an infinity, and what floats do not hold."""
    wild = np.array([0.0, -0.0, 1e-320, 1.0, -1e200, 1e308, np.inf, -np.inf, np.nan])
    X = np.array(list(itertools.product(wild, wild)))
    net = np.array(list(itertools.product(wild[:6], wild[:6])))
    for label, least in itertools.product((1.0, -1.0, 1e300), (0.0, 1e300, -1e300)):
        for x in X:
            found = summed(kind, x[None], [label], [least], net, 2.0**20, 1000)
            assert found.min() >= 0
            assert found.max() <= 1000
    nan = summed(kind, np.array([[np.nan, 1.0]]), [1.0], [0.0], np.array([[1.0, 1.0]]), 1.0, 1000)
    assert nan.tolist() == [1000]


@KINDS
def test_sums_do_not_depend_on_the_grouping(kind):
    X, y, lowest, net = instance(kind, 1500, 7, 3, 5)
    whole = summed(kind, X, y, lowest, net, 2**20, 2**22)
    parts = sum(
        summed(kind, X[i:j], y[i:j], lowest[i:j], net, 2**20, 2**22) for i, j in ((0, 1), (1, 700), (700, 1500))
    )
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(whole[2:5], summed(kind, X, y, lowest, net[2:5], 2**20, 2**22))
    np.testing.assert_array_equal(whole, summed(kind, X[::-1], y[::-1], lowest[::-1], net, 2**20, 2**22))


@pytest.mark.parametrize("kind", ["SQUARED", "LOGISTIC", "HINGE", "HUBER"])
def test_losses_of_scores_are_those_of_the_sums(kind):
    draw = np.random.default_rng(6)
    scores = np.concatenate((draw.normal(size=500) * 3, [0.0, 700.0, -700.0, 1e5, -1e5, 1e-9]))
    labels = np.where(draw.random(scores.size) < 0.5, -1.0, 1.0)
    out = np.empty(scores.size)
    formulas.losses_into(getattr(formulas, kind), KERNELS[kind][1], 0, scores, labels, out)
    for s, label, value in zip(scores.tolist(), labels.tolist(), out.tolist(), strict=True):
        low, high = oracles.optimizing.loss_of(kind, [s], [1.0], label, KERNELS[kind][1])
        off = Fraction(8 * 2.0**-53) * (1 + abs(Fraction(s)) + high)
        assert low - off <= Fraction(value) <= high + off


def fingerprint():
    """Of sums of all losses, for a CPU of another kind."""
    digest = hashlib.sha256()
    for kind in KERNELS:
        X, y, lowest, net = instance(kind, 700, 30, 3, 7)
        digest.update(summed(kind, X, y, lowest, net, 2.0**40, 2.0**36).tobytes())
    return digest.hexdigest()


def test_other_machines_add_up_the_same_bits(fingerprint_elsewhere):
    assert fingerprint_elsewhere(__name__) == fingerprint()


# --- nets


NETS = [
    (sets.Box(-1, 1), 2),
    (sets.Box([0, -3, 2], [1, 3, 2]), 3),
    (sets.Ball(1.5), 1),
    (sets.Ball(1.5, [1, -2]), 2),
    (sets.Ball(1), 4),
    (sets.Ball(2, norm=1), 3),
    (sets.Simplex(), 1),
    (sets.Simplex(3), 3),
    (sets.Simplex(), 4),
]


@pytest.mark.parametrize(("over", "d"), NETS, ids=str)
@pytest.mark.parametrize("spacing", [0.9, 0.25, 10.0])
def test_nets_lie_in_the_set_cover_it_and_are_counted(over, d, spacing):
    over = over.of_dimension(d)
    net = over.net(spacing)
    low, high = over.net_size(spacing)
    points = net.points.T[:, :d]
    assert low <= len(points) <= high
    assert len(np.unique(points, axis=0)) == len(points)
    assert not net.points[d:].any()
    assert all(over.contains(w) for w in points[:: max(1, len(points) // 300)])
    draw = np.random.default_rng(1)
    for w in draw.normal(size=(300, d)) * over.diameter + over.center:
        distances = np.linalg.norm(points - over.project(w), axis=1)
        assert distances.min() <= net.cover * (1 + 1e-9) + 1e-12


def test_nets_of_balls_are_all_grid_points():
    """Counted in one cube, for both norms."""
    for order, radius, spacing in ((2, 1.0, 0.2), (1, 1.0, 0.2), (2, 2.0, 0.3), (1, 0.95, 0.2)):
        for d in (1, 2, 3):
            reach = int(radius / spacing * (1 + 1e-12))
            cube = itertools.product(range(-reach, reach + 1), repeat=d)
            inside = sum(
                sum(abs(k) ** order for k in place) <= (radius / spacing * (1 + 1e-12)) ** order for place in cube
            )
            assert sets.Ball(radius, norm=order).of_dimension(d).net(spacing).points.shape[1] == inside


# --- the laws, at false-alarm rate 1e-9; epsilon off by 3/2 and 2/3 is refuted


def assert_cells(counts, right, *wrong):
    verdict = check_cells(counts, right)
    assert verdict, str(verdict)
    for law in wrong:
        assert not check_cells(counts, law), "a wrong law passes"


def drawn(X, y=None, n=20_000, **options):
    """How often each point is drawn by one plan, with keys of its own."""
    points, plan = planned(X, y, **options)
    rng = seeded(11)
    if plan.method == "exact":
        choice = plan.choice(points)
        return np.bincount([choice.draw(rng.key()) for _ in range(n)], minlength=plan.candidates)
    draw = plan.read(points, silent)
    place = {tuple(w): i for i, w in enumerate(plan.net.points.T[:, : points.d].tolist())}
    return np.bincount([place[tuple(draw(rng.key()).tolist())] for _ in range(n)], minlength=plan.candidates)


GRIDS = {
    "squared, box": (losses.SquaredError(x_norm=1, y_bound=1), sets.Box(-1, 1), 0.5, 1),
    "hinge, ball": (losses.Hinge(x_norm=1), sets.Ball(1), 0.5, 2),
    "huber, simplex": (losses.Huber(0.5, x_norm=1), sets.Simplex(), 0.5, 3),
    "logistic, l1 ball": (losses.Logistic(x_norm=1), sets.Ball(1, norm=1), 1.0, 2),
    "deviation, box": (losses.AbsoluteDeviation(), sets.Box(0, 1), 0.5, 2),
    "distance, ball": (losses.SquaredDistance(x_norm=1), sets.Ball(1), 1.0, 2),
}


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_the_grid_has_the_law_of_the_rounded_losses(name, lam):
    """Of 12 records with few bits, losses rounded to the grid one by one, and the regulariser after the sum."""
    loss, over, spacing, d = GRIDS[name]
    draw = np.random.default_rng(12)
    X = draw.integers(-4, 5, (12, d)) / 8
    y = None
    if loss.labels is not None:
        y = draw.choice([-1.0, 1.0], 12) if loss.labels == "sign" else draw.integers(-2, 3, 12) / 8
    options = {"loss": loss + losses.L2(lam), "over": over, "spacing": spacing, "epsilon": 6.0, "resolution": 2.0**-7}
    points, plan = planned(X, y, method="grid", **options)
    net = plan.net.points.T[:, :d]
    limit = math.ceil(loss.range(over.of_dimension(d)) * 2**7)
    labels = np.zeros(12) if y is None else y
    found = plan.scores(points, silent)
    # what is subtracted from a record's losses is the same for all points, up to one unit of rounding down
    lowest = plan._lowest(points, np.pad(X.T, ((0, 4 - d), (0, 0))), labels, np.linalg.norm(X, axis=1))
    parameter = KERNELS[OF_LOSS[type(loss)]][1] if OF_LOSS[type(loss)] != "HUBER" else 0.5
    low, high = oracles.optimizing.scores_of_net(
        OF_LOSS[type(loss)], X, labels, lowest, net, parameter, 2**7, limit, SLACK
    )
    ridge = [round(Fraction(12 * lam / 2 * 2**7) * sum(Fraction(c) ** 2 for c in w)) for w in net.tolist()]
    F = [-int(s) - r for s, r in zip(found, ridge, strict=True)]
    assert all(a <= f <= b for a, f, b in zip(low, F, high, strict=True))
    for x, y_, least in zip(X.tolist(), labels.tolist(), lowest.tolist(), strict=True):
        values = [oracles.optimizing.loss_of(OF_LOSS[type(loss)], x, w, y_, parameter) for w in net.tolist()]
        assert least <= min(above for _, above in values) + SLACK
        assert max(below for below, _ in values) - Fraction(least) <= Fraction(limit, 2**7) + SLACK, "the clamp binds"
    scores = [a + b for a, b in zip(F, ridge, strict=True)]
    counts = drawn(X, y, method="grid", **options)
    wrong = [law_of(scores, Fraction(6) / (2 * limit) * off) for off in (Fraction(3, 2), Fraction(2, 3))]
    assert_cells(counts, law_of(scores, Fraction(6) / (2 * limit)), *wrong)


LINES = {
    "median": (losses.AbsoluteDeviation(), 1, [0.1, 0.12, 0.9, 0.33, -7.0, 0.6, 4.0, 0.34]),
    "mean": (losses.SquaredDistance(x_norm=2), 2, [0.1, 0.12, 0.9, 0.33, -2.0, 0.6, 2.0, 0.34]),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("lam", [0.0, 0.3])
@pytest.mark.parametrize("records", [None, 5])
def test_the_line_has_its_law(name, lam, records):
    """Of 8 records, some beyond the set, on 0, 1/16, ..., 1; the sensitivity by going through all pairs of records."""
    loss, power, data = LINES[name]
    steps, low = 16, Fraction(0)
    ends = (0, 16) if power == 1 else (-32, 32)
    span = range(ends[0], ends[1] + 1)
    shapes = {t: [abs(k - t) ** power for k in range(steps + 1)] for t in span}
    if records is None:
        moves = ([a - b for a, b in zip(shapes[t], shapes[u], strict=True)] for t in span for u in span)
    else:
        moves = iter(shapes.values())
    r = max(max(move) - min(move) for move in moves)
    ridge = Fraction(lam) * (records or len(data)) / 2
    F = oracles.optimizing.line_scores(power, data, low, Fraction(1, 16), steps, ends, ridge)
    options = {"loss": loss + losses.L2(lam), "over": sets.Box(0, 1), "spacing": 2.0**-4, "records": records}
    epsilon = 60.0
    found, eta = scores_of(column(*data), epsilon=epsilon, **options)
    assert [eta * (f - found[0]) for f in found] == [Fraction(epsilon) / r * (f - F[0]) for f in F]
    counts = drawn(column(*data), epsilon=epsilon, n=8000, **options)
    right, *wrong = (law_of(F, Fraction(epsilon) / r * off) for off in (1, Fraction(3, 2), Fraction(2, 3)))
    assert_cells(counts, right, *wrong)


def test_the_law_holds_wherever_the_pieces_are_cut(monkeypatch):
    """Cuts at the first points, at random ones, or none at all."""

    def choice(eta):
        return line.ConvexChoice(lambda k: (k - 9) ** 2, 40, eta)

    def anywhere(gap, near, far, above, step):
        return min(near + 1 + (7 * near) % 5, far + 1)

    right = law_of([(k - 9) ** 2 for k in range(41)], Fraction(1, 30))
    cuts = [None, lambda gap, near, far, above, step: near + 1, lambda gap, near, far, above, step: far + 1, anywhere]
    for cut in cuts:
        if cut is not None:
            monkeypatch.setattr(line.ConvexChoice, "_crossing", staticmethod(cut))
        drawing, rng = choice(Fraction(1, 30)), seeded(13)
        assert sum(interval.size for interval in drawing.intervals) == 41
        counts = np.bincount([drawing.draw(rng.key()) for _ in range(10_000)], minlength=41)
        assert_cells(counts, right, law_of([(k - 9) ** 2 for k in range(41)], Fraction(1, 45)))


@pytest.mark.parametrize("eta", [Fraction(1, 3), Fraction(1, 10**6), Fraction(10**6), Fraction(1, 2**70)])
@pytest.mark.parametrize("top", [0, 1, 700, 2**20, 2**62])
def test_pieces_cover_every_point_once_at_a_safe_level(eta, top):
    for best in (0, top // 3, top):
        for power in (0, 1, 2):

            def function(k, best=best, power=power):
                return abs(k - best) ** power if power else 0

            choice = line.ConvexChoice(function, top, eta)
            assert function(choice.best) == 0
            at = {1: choice.best, -1: choice.best - 1}
            for interval in choice.intervals:
                assert interval.first == at[interval.side]
                assert interval.size > 0
                at[interval.side] += interval.side * interval.size
                assert oracles.numbers.ln_interval(2, 80)[1] * interval.level <= eta * function(interval.first)
                if interval.level < choice._open and function(interval.first):  # no point is far above its level
                    end = interval.first + interval.side * (interval.size - 1)
                    far = interval.level + max(1, interval.level // 4) + 1
                    assert eta * function(end) <= far * Fraction(7, 10) or interval.size <= 200
            assert at == {1: top + 1, -1: -1}
            assert len(choice.intervals) <= 50


def test_the_upper_logarithm_of_2_is_above_it():
    low, high = oracles.numbers.ln_interval(2, 90)
    assert high < weighted_intervals.LN2_UP < low + Fraction(1, 2**69)


@pytest.mark.parametrize("loss", [losses.AbsoluteDeviation(), losses.SquaredDistance(x_norm=1)], ids=repr)
def test_a_line_of_2_60_points_has_the_right_quantiles(loss):
    """Against the continuous law, by numerical integration: cells of the line between 32 of its quantiles."""
    data = np.random.default_rng(14).normal(size=2001).clip(-1, 1)[:, None]
    points, plan = planned(data, loss=loss, over=sets.Box(-1, 1), epsilon=1.0, spacing=2.0**-59)
    assert plan.steps == 2**60
    choice, rng = plan.choice(points), seeded(15)
    w = np.linspace(-1, 1, 400_001)
    if OF_LOSS[type(loss)] == "DISTANCE":
        values, r = 2001 * w**2 - 2 * w * data.sum(), 8.0
    else:
        ordered = np.sort(data[:, 0])
        m, sums = np.searchsorted(ordered, w), np.concatenate(([0.0], np.cumsum(ordered)))
        values, r = w * (2 * m - 2001) + sums[-1] - 2 * sums[m], 4.0
    density = np.exp(-(values - values.min()) / r)
    below = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    below /= below[-1]
    edges = w[np.searchsorted(below, np.arange(1, 32) / 32)]
    probabilities = np.diff(np.concatenate(([0.0], np.interp(edges, w, below), [1.0])))
    found = [choice.draw(rng.key()) * 2.0**-59 - 1 for _ in range(3000)]
    counts = np.bincount(np.searchsorted(edges, found), minlength=32)
    assert_cells(counts, [(p * (1 - 1e-4), p * (1 + 1e-4)) for p in probabilities])
    wide = np.exp(-(values - values.min()) / (1.5 * r))
    spread = np.interp(edges, w, np.cumsum(wide) / wide.sum())
    assert not check_cells(counts, np.diff(np.concatenate(([0.0], spread, [1.0]))).tolist())


# --- privacy by enumeration: all data sets of few records from a small domain, and all their neighbours


def extremes(F_of, domain, n, eta, add_remove=False):
    """Over all pairs of neighbours: the range of the exponent, and the largest ratio of probabilities."""
    widest, largest = Fraction(0), Fraction(0)
    tables = {}

    def at(data):
        key = tuple(sorted(data))
        if key not in tables:
            F = F_of(key)
            tables[key] = F, law_of(F, eta)
        return tables[key]

    for rest in itertools.combinations_with_replacement(domain, n - 1):
        for x in domain:
            F, p = at((*rest, x))
            for other in [rest] if add_remove else [(*rest, u) for u in domain]:
                G, q = at(other)
                moved = [a - b for a, b in zip(F, G, strict=True)]
                widest = max(widest, eta * (max(moved) - min(moved)))
                largest = max(largest, *(a / b for a, b in zip(p, q, strict=True)))
                largest = max(largest, *(b / a for a, b in zip(p, q, strict=True)))
    return widest, largest


EPSILON = 1.0
E_LOW, E_HIGH = oracles.numbers.exp_interval(Fraction(EPSILON), 60)


@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_the_line_is_private_for_all_neighbours(name, lam, add_remove):
    """Positions beyond the set included; the range of some pair is epsilon itself, and twice the eta is refuted."""
    loss, _, _ = LINES[name]
    records = 5 if add_remove else None
    options = {"loss": loss + losses.L2(lam), "over": sets.Box(0, 1), "spacing": 0.25, "records": records}

    def F_of(data):
        F, eta = scores_of(column(*data), epsilon=EPSILON, outside="clip", **options)
        return [eta * f for f in F]

    domain = (-5.0, -0.6, 0.0, 0.3, 0.75, 1.0, 5.0)
    widest, largest = extremes(F_of, domain, 5, 1, add_remove)
    assert widest == EPSILON
    assert largest <= E_LOW
    assert extremes(F_of, domain, 2, 2, add_remove)[0] > EPSILON
    if not add_remove and not lam:  # the sensitivity under replace-one counted once
        p, q = law_of(F_of((5.0,) * 5), 2), law_of(F_of((5.0,) * 4 + (-5.0,)), 2)
        assert max(b / a for a, b in zip(p, q, strict=True)) > E_HIGH


def test_the_mean_without_a_bound_of_the_records_is_refuted():
    """What a record beyond x_norm would do if its position were not brought within A .. B."""
    _, eta = scores_of(column(0.0, 0.0), loss=losses.SquaredDistance(x_norm=1), over=sets.Box(0, 1), spacing=0.25)
    F = oracles.optimizing.line_scores(2, [0.0, 0.0], 0, Fraction(1, 4), 4, (-99, 99))
    G = oracles.optimizing.line_scores(2, [0.0, 10.0], 0, Fraction(1, 4), 4, (-99, 99))
    moved = [a - b for a, b in zip(F, G, strict=True)]
    assert eta * (max(moved) - min(moved)) > 2 * EPSILON


@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
def test_the_grid_is_private_for_all_neighbours(add_remove):
    """Records (x, y) of regression on a line, labels beyond the bound and points beyond the norm included."""
    options = {
        "loss": losses.SquaredError(x_norm=1, y_bound=1) + losses.L2(0.5), "over": sets.Box(-1, 1), "spacing": 0.5,
        "resolution": 0.125, "records": 4 if add_remove else None, "outside": "clip", "epsilon": EPSILON,
    }  # fmt: skip
    _, plan = planned(column(0.0), [0.0], **options)
    assert plan._limit == 32, "(1 + 1)^2 in eighths"
    domain = [(x, y) for x in (-9.0, -1.0, 0.4, 1.0) for y in (-9.0, 0.1, 1.0)]
    eta = Fraction(plan.eta)

    def F_of(data):
        x, y = zip(*data, strict=True)
        F, found = scores_of(column(*x), list(y), **options)
        assert found == eta
        return F

    widest, largest = extremes(F_of, domain, 4, eta, add_remove)
    assert 0.6 * EPSILON < widest <= EPSILON
    assert largest <= E_LOW
    # r counted as K under replace-one: twice the eta
    if not add_remove:
        assert extremes(F_of, domain, 4, 2 * eta)[0] > EPSILON


def test_sensitivity_k_for_2k_is_refuted_by_probabilities():
    """Six records at one end of a box, one of which moves to the other: with eta = epsilon / K it passes e^epsilon."""
    options = {"loss": losses.AbsoluteDeviation(), "over": sets.Box(0, 1), "spacing": 0.125, "resolution": 2.0**-6}
    F, eta = scores_of(column(*[0.0] * 6), method="grid", **options)
    G, _ = scores_of(column(*[0.0] * 5, 1.0), method="grid", **options)
    for factor, breaks in ((1, False), (2, True)):
        p, q = law_of(F, factor * eta), law_of(G, factor * eta)
        ratio = max(max(a / b, b / a) for a, b in zip(p, q, strict=True))
        assert (ratio > E_HIGH) == breaks


def test_rounding_to_even_without_the_clamp_is_refuted_and_the_floor_is_not():
    """exponential_erm.md, lemma 1: losses of 1/2 and 3/2 units, K = 1, at the two ends, and the other way round."""
    even = [[round(v) for v in values] for values in ((0.5, 1.5), (1.5, 0.5))]
    assert even == [[0, 2], [2, 0]]
    moved = [a - b for a, b in zip(*even, strict=True)]
    assert max(moved) - min(moved) == 4 > 2 * 1
    others = 9  # records that lose 0 at the first point and 2 at the second
    eta = Fraction(1, 2)  # epsilon = 1 and K = 1
    p = law_of([0, 2 * others + 2], eta)
    q = law_of([2, 2 * others], eta)
    assert max(p[0] / q[0], q[1] / p[1]) > E_HIGH
    # as the kernel does it
    kernel = [
        summed("DEVIATION", np.array([[x]]), [0.0], [0.0], np.array([[0.0], [2.0]]), 1.0, 1)  # losses x and 2 - x
        for x in (0.5, 1.5)
    ]
    assert [k.tolist() for k in kernel] == [[0, 1], [1, 0]]


def test_n_in_the_regulariser_would_be_refuted_under_add_remove():
    """With the records themselves counted, one more moves scores by its loss and by the regulariser: more than K."""
    loss, over = losses.Hinge(x_norm=1) + losses.L2(8.0), sets.Box(-1, 1)
    options = {"loss": loss, "over": over, "spacing": 0.5, "resolution": 0.25, "epsilon": EPSILON}
    for kept, breaks in ((True, False), (False, True)):
        F, eta = scores_of(column(*[0.0] * 3), [1.0] * 3, records=3, **options)
        G, _ = scores_of(column(0.0, 0.0, 0.0, 1.0), [1.0] * 4, records=3 if kept else 4, **options)
        moved = [a - b for a, b in zip(F, G, strict=True)]
        assert (eta * (max(moved) - min(moved)) > EPSILON) == breaks


def test_a_wild_custom_value_moves_no_score_by_more_than_the_limit():
    """Infinite, NaN, huge, negative: by all pairs of records."""

    def value(score, label):
        return np.select(
            [label == 1, label == 2, label == 3, label == 4], [np.nan, np.inf, 1e300 * score, -np.inf], score
        )

    loss = losses.Custom(lambda s, y: 1.0, value, slope_bound=1.0, x_norm=1.0)
    options = {"loss": loss, "over": sets.Box(-1, 1), "spacing": 0.5, "resolution": 0.25}
    with np.errstate(all="ignore"):
        tables = [scores_of(column(x), [label], **options) for x in (-1.0, 0.2, 1.0) for label in range(5)]
    for (F, eta), (G, _) in itertools.product(tables, repeat=2):
        moved = [a - b for a, b in zip(F, G, strict=True)]
        assert eta * (max(moved) - min(moved)) <= 1


def test_a_custom_loss_is_scored_as_the_built_in_one():
    draw = np.random.default_rng(16)
    X, y = draw.normal(size=(300, 2)).clip(-0.7, 0.7), draw.normal(size=300).clip(-1, 1)
    custom = losses.Custom(lambda s, y: 2 * (s - y), lambda s, y: (s - y) ** 2, slope_bound=4.0, x_norm=1.0)
    options = {"over": sets.Ball(1), "spacing": 0.3, "resolution": 2.0**-20}
    F, _ = scores_of(X, y, loss=custom, **options)
    G, _ = scores_of(X, y, loss=losses.SquaredError(x_norm=1, y_bound=1), **options)
    # the one subtracts the least loss at the points, the other a bound of it
    gap = np.array(F) - np.array(G)
    assert np.ptp(gap) <= 2 * 300


# --- the error bound


def risk(loss, lam, w, X, y):
    return float(loss.values(np.asarray(w), X, y).mean() + lam / 2 * np.dot(w, w))


def best_of(loss, lam, over, X, y):
    """The least risk on a fine grid of the set, from below by the Lipschitz constant."""
    d = X.shape[1]
    fine = over.of_dimension(d).net(over.of_dimension(d).diameter / (60 if d > 1 else 2000))
    return min(risk(loss, lam, w, X, y) for w in fine.points.T[:, :d])


BOUNDED = {
    "mean": (losses.SquaredDistance(x_norm=1), 0.0, sets.Box(-1, 1), 1),
    "median": (losses.AbsoluteDeviation(), 0.4, sets.Box(-1, 1), 1),
    "regression": (losses.SquaredError(x_norm=1, y_bound=1), 0.0, sets.Ball(1), 1),
    "logistic": (losses.Logistic(x_norm=1), 0.1, sets.Ball(3), 2),
    "hinge": (losses.Hinge(x_norm=1), 0.0, sets.Ball(3, norm=1), 2),
    "huber": (losses.Huber(0.2, x_norm=1), 0.0, sets.Simplex(), 3),
    "medians": (losses.AbsoluteDeviation(), 0.0, sets.Box(-1, 1), 2),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("records", [None, 150])
def test_the_excess_risk_keeps_within_the_bound(name, records):
    """In 60 runs with beta = 1/4; more failures than that would have to be chance of less than 1e-9. And the bound is
    within the course's theorem for a net, or for a line."""
    loss, lam, over, d = BOUNDED[name]
    draw = np.random.default_rng(17)
    n, beta, epsilon = 150, 0.25, 2.0
    X = draw.normal(0.2, 0.4, size=(n, d)).clip(-1 / d, 1 / d)
    y = None
    if loss.labels is not None:
        y = np.sign(X[:, 0] + draw.normal(size=n) / 5) if loss.labels == "sign" else (X.sum(axis=1) / 2).clip(-1, 1)
    spacing = None if d == 1 else over.of_dimension(d).diameter / 24
    neighbors = "replace-one" if records is None else "add-remove"
    options = {
        "loss": loss + losses.L2(lam), "over": over, "epsilon": epsilon, "beta": beta, "spacing": spacing,
        "neighbors": neighbors, "records": records,
    }  # fmt: skip
    least, rng = best_of(loss, lam, over, X, y), seeded(18)
    failures = 0
    for _ in range(60):
        found = fastdp.exponential_erm(X, y, rng=rng, **options)
        assert over.of_dimension(d).contains(found.w)
        failures += risk(loss, lam, found.w, X, y) - least > found.bound
    assert beta <= at_most(failures, 60, 1e-9) or failures <= 15
    assert failures <= 45
    whole = over.of_dimension(d)
    delta = loss.range(whole) * (2 if records is None else 1)
    course = delta / (epsilon * n) * math.log(found.candidates / beta)
    lipschitz = loss.lipschitz(whole) + lam * whole.norm
    assert found.bound <= course + lipschitz * found.spacing * math.sqrt(d) + 1e-4


def test_the_bound_of_a_line_is_the_courses_without_the_grid():
    """(2 Delta/(epsilon n)) (1 + ln(epsilon n/2) + ln(1/beta)), however many points there are."""
    data = np.random.default_rng(19).random((1000, 1))
    for spacing in (2.0**-30, 2.0**-61):
        found = fastdp.exponential_erm(
            data, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=1.0, beta=0.1, spacing=spacing
        )
        assert found.bound == pytest.approx(2 / 1000 * (1 + math.log(500) + math.log(10)), rel=1e-6)


def test_the_default_spacing_is_about_the_best():
    draw = np.random.default_rng(20)
    X, y = draw.random((400, 2)) / 2, draw.random(400)
    options = {"loss": losses.SquaredError(x_norm=1, y_bound=1), "over": sets.Ball(1)}
    _, plan = planned(X, y, **options)
    for factor in (0.7, 0.9, 1.2, 1.5):
        _, other = planned(X, y, spacing=plan.spacing * factor, **options)
        assert other.bound(0.05) > plan.bound(0.05) * 0.995


# --- odd data


@pytest.mark.parametrize("method", ["auto", "grid"])
@pytest.mark.parametrize("data", [[0.3], [0.3] * 50, [-1.0] * 50, [1.0] * 50, [-1.0] * 25 + [1.0] * 25], ids=str)
@pytest.mark.parametrize("loss", [losses.AbsoluteDeviation(), losses.SquaredDistance(x_norm=1)], ids=repr)
def test_one_record_equal_records_and_records_at_the_ends(loss, data, method):
    for epsilon in (1e-3, 1.0, 1e4):
        found = fastdp.exponential_erm(
            column(*data), loss=loss, over=sets.Box(-1, 1), epsilon=epsilon, method=method, rng=seeded(1)
        )
        assert -1 <= found.w[0] <= 1
        if epsilon == 1e4 and len(set(data)) == 1:
            assert abs(found.w[0] - data[0]) < 0.25


def test_sets_far_from_0_and_records_of_every_size():
    data = np.array([1e9 + 0.25, 1e9 + 0.5, 1e9 + 0.75, -1e150, 1e150])[:, None]
    found = fastdp.exponential_erm(
        data, loss=losses.AbsoluteDeviation(), over=sets.Box(1e9, 1e9 + 1), epsilon=1e3, rng=seeded(2)
    )
    assert abs(found.w[0] - (1e9 + 0.5)) < 0.1
    tiny = fastdp.exponential_erm(
        data * 1e-120, loss=losses.AbsoluteDeviation(), over=sets.Ball(1e-100), epsilon=1.0, rng=seeded(2)
    )
    assert abs(tiny.w[0]) <= 1e-100
    wide = fastdp.exponential_erm(
        column(0.5, 0.7), loss=losses.SquaredDistance(x_norm=1e6), over=sets.Box(0, 1), epsilon=1.0, rng=seeded(2)
    )
    assert 0 <= wide.w[0] <= 1


def test_epsilons_of_every_size():
    for epsilon in (1e-300, 1e-9, 700.0, 1e300):
        for loss in (losses.AbsoluteDeviation(), losses.SquaredDistance(x_norm=1)):
            found = fastdp.exponential_erm(
                column(0.25, 0.5, 0.625), loss=loss, over=sets.Box(0, 1), epsilon=epsilon, rng=seeded(3)
            )
            assert 0 <= found.w[0] <= 1
            if epsilon == 1e300:
                best = 0.5 if OF_LOSS[type(loss)] == "DEVIATION" else 1.375 / 3
                assert found.w[0] == pytest.approx(best, abs=1e-9)


def test_sums_beyond_int64_are_right():
    """Positions of 2^61 and 100 of them: their sum has 68 bits."""
    data = column(*np.linspace(0.5, 1.0, 100))
    for loss in (losses.AbsoluteDeviation(), losses.SquaredDistance(x_norm=1)):
        points, plan = planned(data, loss=loss, over=sets.Box(0, 1), spacing=2.0**-61)
        choice = plan.choice(points)
        exact = [round(Fraction(x) * 2**61) for x in data[:, 0].tolist()]
        for k in (0, 1, 2**60 + 12345, 2**61):
            if plan.power == 1:
                assert choice._function(k) == sum(abs(k - t) for t in exact)
            else:
                assert choice._function(k) - choice._function(0) == sum((k - t) ** 2 - t * t for t in exact)


# --- the same result, wherever the records are and whoever counts


CASES = [
    ({"loss": losses.AbsoluteDeviation(), "over": sets.Box(-1, 1)}, 1),
    ({"loss": losses.SquaredDistance(x_norm=2), "over": sets.Box(-1, 1)}, 1),
    ({"loss": losses.Logistic(x_norm=2), "over": sets.Ball(2), "spacing": 0.1}, 2),
    ({"loss": losses.AbsoluteDeviation(), "over": sets.Simplex(), "spacing": 0.1}, 3),
    (
        {
            "loss": losses.Custom(lambda s, y: 0.0, lambda s, y: np.abs(s - y), slope_bound=1, x_norm=2),
            "over": sets.Ball(1),
            "spacing": 0.2,
        },
        2,
    ),
]


@pytest.mark.parametrize(("options", "d"), CASES, ids=[repr(case["loss"]) for case, _ in CASES])
def test_the_result_is_the_same_for_all_threads_blocks_and_containers(options, d, monkeypatch):
    draw = np.random.default_rng(21)
    X = (draw.integers(-64, 65, (5000, d)) / 64).astype(np.float64)
    y = None if options["loss"].labels is None else (X[:, 0] > 0).astype(float)

    def results(data):
        points, plan = planned(data, y, **options)
        if plan.method == "grid":
            table = plan.scores(points, silent).tolist()
        else:
            choice = plan.choice(points)
            table = [choice._function(k) for k in range(0, plan.steps, plan.steps // 50)]
        w = fastdp.exponential_erm(data, y, rng=seeded(4), epsilon=1.0, **options).w
        return table, w.tolist()

    expected = results(X)
    threads = fastdp.get_num_threads()
    try:
        for count in (1, 3):
            fastdp.set_num_threads(count)
            monkeypatch.setattr(arrays, "BLOCK_RECORDS", 1024)
            monkeypatch.setattr(net_plans, "_PART", 2**16)
            monkeypatch.setattr(net_plans, "_CHUNK", 2**12)
            for data in (X, np.asfortranarray(X), X.astype(np.float32), pandas.DataFrame(X)):
                assert results(data) == expected
    finally:
        fastdp.set_num_threads(threads)


def test_no_records_are_no_error_where_their_number_is_private():
    """Every point is as likely then."""
    options = {"over": sets.Box(0, 1), "epsilon": 1.0, "records": 100, "neighbors": "add-remove"}
    for loss in (losses.AbsoluteDeviation(), losses.SquaredDistance(x_norm=1)):
        for method in ("exact", "grid"):
            found = fastdp.exponential_erm(np.zeros((0, 1)), loss=loss, method=method, rng=seeded(7), **options)
            assert 0 <= found.w[0] <= 1


def test_seeds_decide_and_the_default_is_not_seeded():
    data = np.random.default_rng(22).random((100, 1))
    options = {"loss": losses.AbsoluteDeviation(), "over": sets.Box(0, 1), "epsilon": 1.0}
    assert len({fastdp.exponential_erm(data, **options).w[0] for _ in range(3)}) == 3
    assert len({fastdp.exponential_erm(data, rng=seeded(5), **options).w[0] for _ in range(3)}) == 1
    rng = seeded(5)
    assert len({fastdp.exponential_erm(data, rng=rng, **options).w[0] for _ in range(3)}) == 3


# --- budgets, results, errors


def test_a_call_is_charged_once_with_its_bounded_range():
    data = np.random.default_rng(23).random((100, 1))
    for method in ("exact", "grid"):
        with Budget(epsilon=1.0, delta=1e-6) as budget:
            found = fastdp.exponential_erm(
                data, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=0.5, method=method
            )
        (release,) = list(budget.releases)
        assert release.mechanism == "exponential_erm"
        assert release.guarantee == found.guarantee == fastdp.BoundedRange(0.5)
        assert release.parameters == {"epsilon": 0.5, "method": method, "spacing": found.spacing}
    with Budget(epsilon=0.1) as budget, pytest.raises(fastdp.BudgetExceeded):
        fastdp.exponential_erm(data, loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=0.5)
    assert not list(budget.releases)


def test_add_remove_is_part_of_the_guarantee():
    found = fastdp.exponential_erm(
        column(0.5, 0.6), loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=1.0, records=2,
        neighbors="add-remove",
    )  # fmt: skip
    assert found.guarantee == fastdp.BoundedRange(1.0, neighbors="add-remove")


def test_results_are_frozen_and_show_themselves():
    found = fastdp.exponential_erm(
        column(0.5, 0.6), loss=losses.AbsoluteDeviation(), over=sets.Box(0, 1), epsilon=1.0, method="grid"
    )
    with pytest.raises(AttributeError):
        found.w = np.zeros(1)
    for text in ("PrivateChoice", "grid: one of", "excess risk", "1-bounded range, replace-one"):
        assert text in repr(found)
        assert text in found._repr_html_()
    assert found.candidates > 1
    assert (found.resolution, found.beta) == (2.0**-21, 0.05)


def test_progress_is_told():
    told = []
    data = np.random.default_rng(24).random((2000, 2))
    options = {"loss": losses.Hinge(x_norm=2), "over": sets.Ball(1), "epsilon": 1.0, "spacing": 0.002}
    fastdp.exponential_erm(data, data[:, 0] > 0.5, progress=lambda *step: told.append(step), **options)
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == len(told) - 1 > 1
    assert told[-1][2] == ""


class Watched(fastdp.Randomness):
    """Nothing may be drawn."""

    def key(self):
        raise AssertionError("a key was asked for")


DEFAULTS = {"loss": losses.AbsoluteDeviation(), "over": sets.Box(0, 1), "epsilon": 1.0}
ONE = [[0.5], [0.6]]
REGRESSION = losses.SquaredError(x_norm=1, y_bound=1)
REFUSED = [
    (np.zeros((0, 1)), {}, ValueError, "n=0 records: must be at least one"),
    (np.zeros((3, 5)), {}, ValueError, "d=5 columns: must be at most 4.*noisy_projected_gradient_descent"),
    (ONE, {"epsilon": 0.0}, ValueError, "epsilon=0.0: must be > 0"),
    (ONE, {"beta": 1.0}, ValueError, "beta=1.0: must be between 0 and 1, both excluded"),
    (ONE, {"method": "mcmc"}, ValueError, "method='mcmc': must be one of"),
    (ONE, {"spacing": -1}, ValueError, "spacing=-1: must be > 0"),
    (ONE, {"spacing": 0.1, "method": "exact"}, ValueError, "method='exact': spacing=0.1: must be a power of two"),
    (ONE, {"resolution": 0.3}, ValueError, "resolution=0.3: must be a power of two"),
    (ONE, {"resolution": 0.25, "method": "exact"}, ValueError, "method='exact': resolution=0.25: must be None"),
    (ONE, {"spacing": 2.0**-63}, ValueError, r"spacing=.*: must be larger; .* over 2\^62 of it"),
    (ONE, {"spacing": 1e-9, "method": "grid"}, ValueError, "a net of 1,000,000,000 points.*noisy_projected"),
    (ONE, {"loss": losses.SquaredDistance()}, MissingBound, "needs x_norm="),
    (ONE, {"loss": REGRESSION}, ValueError, "y=None: must be the labels"),
    (ONE, {"loss": losses.Hinge(), "y": [1, -1]}, MissingBound, "needs x_norm="),
    (ONE, {"loss": losses.SquaredError(x_norm=1), "y": [1, 1]}, MissingBound, "needs y_bound="),
    (ONE, {"loss": REGRESSION, "y": [1, 2]}, DomainError, "must be at most y_bound=1"),
    (ONE, {"loss": REGRESSION, "y": [1, 1], "method": "exact"}, ValueError, "must be SquaredDistance or AbsoluteDev"),
    ([[0.5], [1.5]], {"loss": REGRESSION, "y": [1, 1]}, DomainError, "norms must be at most x_norm=1"),
    ([[0.5], [np.nan]], {}, DomainError, "X: must be finite"),
    (np.zeros((3, 2)), {"method": "exact"}, ValueError, "method='exact': d=2 columns: must be 1"),
    (ONE, {"over": sets.Simplex(), "method": "exact"}, ValueError, r"over=Simplex\(\): must be a Ball or a Box"),
    (np.zeros((3, 2)), {"over": "ball"}, ValueError, "over='ball': must be one of fastdp.sets"),
    (
        np.zeros((3, 2)),
        {"over": sets.Projected(lambda w: w.clip(0, 1), diameter=2, center=[0.5, 0.5])},
        ValueError,
        "must be a Ball, a Box or the Simplex",
    ),
    (ONE, {"records": 2}, ValueError, "records=2: must be None with neighbors='replace-one'"),
    (ONE, {"neighbors": "add-remove"}, ValueError, "records=None: must be given with neighbors='add-remove'"),
    (ONE, {"resolution": 2.0**-60}, ValueError, "resolution=.*: must be such that a loss has at most"),
    (ONE, {"loss": losses.AbsoluteDeviation() + losses.L2(1e30), "method": "grid"}, ValueError, "lam=1e"),
    (
        ONE,
        {"loss": losses.Custom(lambda s, y: 1.0, slope_bound=1, x_norm=1), "y": [0, 1]},
        ValueError,
        "Custom needs value=",
    ),
    (
        ONE,
        {"loss": losses.Custom(lambda s, y: 1.0, lambda s, y: 0.5, slope_bound=1, x_norm=1), "y": [0, 1]},
        ValueError,
        r"value\(scores, labels\) has shape",
    ),
]


@pytest.mark.parametrize(("X", "options", "error", "message"), REFUSED, ids=[str(case[3])[:40] for case in REFUSED])
def test_what_is_refused_before_anything_is_spent(X, options, error, message):
    options = dict(DEFAULTS) | options
    y = options.pop("y", None)
    with Budget(epsilon=5.0) as budget, pytest.raises(error) as raised:
        fastdp.exponential_erm(np.asarray(X), y, rng=Watched(), **options)
    assert re.search(message, str(raised.value), re.DOTALL), str(raised.value)
    assert budget.spent.epsilon == 0


def test_more_losses_than_the_limit_are_refused_with_the_size_of_the_net():
    X, loss = np.zeros((2**18, 1)), losses.Custom(lambda s, y: 1.0, lambda s, y: s, slope_bound=1, x_norm=1)
    with pytest.raises(ValueError, match=r"a net of 2,000,000 points for 262,144 records: must be at most 4,194,304"):
        fastdp.exponential_erm(X, X[:, 0], method="grid", spacing=5e-7, **dict(DEFAULTS) | {"loss": loss})


def test_records_outside_are_clipped_on_request():
    X = column(0.5, 30.0)
    for loss, y in ((losses.Hinge(x_norm=1), [1, -1]), (losses.SquaredDistance(x_norm=1), None)):
        options = {"loss": loss, "over": sets.Box(-1, 1), "epsilon": 1.0}
        with pytest.raises(DomainError):
            fastdp.exponential_erm(X, y, **options)
        clipped = [
            fastdp.exponential_erm(data, y, rng=seeded(6), outside="clip", **options).w
            for data in (X, np.minimum(X, 1.0))
        ]
        np.testing.assert_array_equal(*clipped)
