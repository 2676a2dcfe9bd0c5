"""Boxes on a grid of private quantiles: every choice by enumeration, with mutants that are refuted; and accuracy."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import box_ends, boxes_grid
from fastdp.learning.box_ends import ends_of, halving_points
from fastdp.learning.box_parameters import BoxProblem
from fastdp.learning.boxes_grid import BoxGridParameters, Costs, Grid, all_nets, prepare_grid
from fastdp.learning.extremes import Numbers
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.learning.unequal_shares import Step, UnequalShares
from fastdp.privacy.composition import compose
from fastdp.privacy.guarantees import BoundedRange, PureDP
from fastdp.records.number_line import NumberLine
from tests.laws import ALARM, log_at_least
from tests.learning.paths import NoKeys, Paths, law_of, multisets, neighbours, widest

RELATIONS = ("replace-one", "add-remove")
ETA = 0.5
NOTHING = 1e-12


def numbers_of(rows, bits):
    """Records as (.., label)."""
    d = len(bits)
    X = np.array([row[:d] for row in rows], np.int64).reshape(len(rows), d)
    numbers = Numbers(X, np.array([row[d] for row in rows], bool), bits, False, "raise", may_be_empty=True)
    numbers.read()
    return numbers


def plan_of(n=3, level=NOTHING, first=NOTHING, column=NOTHING, last=NOTHING):
    return BoxGridParameters(n, None, level, first, column, last, PureDP(1.0), 1.0)


def laws_of(plan, bits, most, levels=1):
    """Of what is returned, for all multisets of records."""
    kinds = list(product(*(range(1 << b) for b in bits), (0, 1)))
    laws = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_ends, "LEVELS", levels)
        for rows in multisets(kinds, most):
            paths, numbers = Paths(), numbers_of(rows, bits)
            patch.setattr(boxes_grid, "draw_one", paths.draw_one)
            patch.setattr(box_ends, "choose_by_rank", paths.choose_by_rank)
            laws[rows] = law_of(paths, lambda plan=plan, numbers=numbers: str(plan.learn(numbers, NoKeys(), nothing)))
    return kinds, laws


def nothing(*_):
    """No progress is shown."""


# --- the quantiles


@pytest.fixture(scope="module")
def halved():
    """The laws of the points of two levels, with all of them released, for all records on a line of three points."""
    laws = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_ends, "LEVELS", 2)
        for rows in multisets(range(3), 4):
            paths = Paths()
            patch.setattr(box_ends, "choose_by_rank", paths.choose_by_rank)
            positions = np.array(rows, np.uint64)
            laws[rows] = law_of(paths, lambda p=paths, x=positions: halved_path(p, x))
    return laws


def halved_path(paths, positions):
    """The points in the order in which they are drawn: the law of the choices, not of the sorted points alone."""
    drawn = []
    original = paths.choose_by_rank

    def recorded(*arguments):
        choice = original(*arguments)
        inner = choice.draw

        def draw(key, number=0):
            drawn.append(inner(key))
            return drawn[-1]

        choice.draw = draw
        return choice

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_ends, "choose_by_rank", recorded)
        halving_points(positions, 2, Fraction(ETA), None, 0)
    return tuple(drawn)


@pytest.mark.parametrize("relation", RELATIONS)
def test_levels_of_medians_cost_one_choice_each(halved, relation):
    """eta under add-remove and 2 eta under replace-one, for each of the two levels."""
    each = ETA * (2 if relation == "replace-one" else 1)
    _, largest = widest(halved, neighbours(range(3), 4, relation))
    assert 1.2 * each < largest <= 2 * each + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_parts_of_a_level_have_the_range_of_one_choice(halved, relation):
    """Given the first point, the other two together: range eta, or 2 eta under replace-one.

    A mutant that takes the sizes of the parts for public charges eta for a replaced record, too, and is refuted.
    """
    each = ETA * (2 if relation == "replace-one" else 1)
    for first in (0, 1):
        laws = {rows: given(first, law) for rows, law in halved.items()}
        spread, _ = widest(laws, neighbours(range(3), 4, relation))
        assert spread <= each + 1e-9
        assert spread > 1.2 * ETA or relation == "add-remove"


def given(first, law):
    """The law of the other points."""
    some = {points[1:]: p for points, p in law.items() if points[0] == first}
    total = math.log(sum(map(math.exp, some.values())))
    return {points: p - total for points, p in some.items()}


def test_halving_points_are_close_to_the_octiles_and_sorted():
    draw = np.random.default_rng(0)
    positions = np.sort(draw.integers(0, 2**20, 100_000).astype(np.uint64))
    points = halving_points(positions, 2**20 - 1, Fraction(1), Randomness(seed=0).key(), 0)
    assert points == sorted(points)
    ranks = np.searchsorted(positions, np.array(points, np.uint64)) / positions.size
    assert np.abs(ranks - np.arange(1, 8) / 8).max() < 0.002


@pytest.mark.parametrize("values", [
    np.zeros(0, np.uint64), np.full(1000, 7, np.uint64), np.repeat(np.array([0, 5, 15], np.uint64), (900, 50, 50)),
])  # fmt: skip
def test_points_and_ends_of_few_distinct_values(values):
    line = NumberLine(10, 0, 1023)
    points = halving_points(values, 1023, Fraction(4), Randomness(seed=1).key(), 0)
    assert points == sorted(points)
    assert len(points) == 7
    assert all(0 <= point <= 1023 for point in points)
    ends = ends_of(points, line)
    assert (np.diff(ends.ends.astype(np.int64)) > 0).all()
    assert ends.ends[-1] == 1023
    assert set(points) <= set(ends.ends[ends.quantiles].tolist())
    intervals = [ends.interval(k, k) for k in range(ends.ends.size)]
    assert intervals[0][0] == 0
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(intervals))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint64])
def test_ends_stay_on_the_line_at_its_extremes(dtype):
    line = NumberLine.of(np.dtype(dtype), 8 * np.dtype(dtype).itemsize, None, "x")
    for points in ([0] * 7, [line.last] * 7, [0, 1, 2, line.last // 2, line.last - 2, line.last - 1, line.last]):
        ends = ends_of(points, line).ends
        assert int(ends[-1]) == line.last
        assert (ends[1:] > ends[:-1]).all()


def test_all_positions_of_few_bits_are_ends():
    assert ends_of([3, 3, 3, 4, 5, 9, 9], NumberLine(4, 0, 15)).ends.tolist() == list(range(16))


# --- the choices


@pytest.mark.parametrize(("part", "levels"), [("first", 1), ("column", 1), ("last", 1), ("level", 2)])
def test_every_part_keeps_its_range(part, levels):
    """All neighbours with up to two records of one column of two positions; the other parts are free."""
    kinds, laws = laws_of(plan_of(**{part: ETA}), (1,), 2, levels)
    for relation in RELATIONS:
        each = levels * ETA * (2 if relation == "replace-one" else 1)
        spread, largest = widest(laws, neighbours(kinds, 2, relation))
        assert largest <= each + 1e-6
        assert levels > 1 or spread <= each + 1e-6  # of one choice alone: ranges do not add up


def test_errors_that_count_twice_and_an_unpaid_last_choice_are_refuted():
    """Twice the weight is beyond the range of the first choice, as is a last choice that is not charged."""
    for mutant in (plan_of(column=2 * ETA), plan_of(column=ETA, last=ETA)):
        kinds, laws = laws_of(mutant, (1,), 3)
        for relation in RELATIONS:
            spread, _ = widest(laws, neighbours(kinds, 3, relation))
            assert spread > 1.05 * ETA * (2 if relation == "replace-one" else 1)


@pytest.mark.parametrize("relation", RELATIONS)
def test_costs_that_spare_positives_keep_their_range(monkeypatch, relation):
    """Given the noisy count: costs of up to 64 a record, at a 64th of the weight."""
    plan = replace(plan_of(first=ETA / boxes_grid.LOST), count=object())
    kinds = list(product((0, 1), (0, 1)))
    laws = {}
    for rows in multisets(kinds, 3):
        paths, numbers = Paths(), numbers_of(rows, (1,))
        monkeypatch.setattr(boxes_grid, "draw_one", paths.draw_one)
        monkeypatch.setattr(box_ends, "choose_by_rank", paths.choose_by_rank)

        def run(numbers=numbers):
            return plan._grow(Grid(numbers, [ends_of([0] * 7, numbers.orders[0])]), 1, NoKeys()).box

        laws[rows] = law_of(paths, run)
    _, largest = widest(laws, neighbours(kinds, 3, relation))
    each = ETA * (2 if relation == "replace-one" else 1)
    assert 0.3 * each < largest <= each + 1e-9


def test_nets_are_errors_less_the_positives():
    """Of all boxes of a table, and of all intervals of a column: against counting records."""
    draw = np.random.default_rng(0)
    X, y = draw.integers(0, 4, (60, 2)), draw.random(60) < 0.4
    numbers = numbers_of([(*row, label) for row, label in zip(X.tolist(), y.tolist(), strict=True)], (2, 2))
    grid = Grid(numbers, [ends_of([0, 1, 2], line) for line in numbers.orders])
    nets = all_nets(grid._table([np.array([0, 1, 2])] * 2))
    starts, stops = np.triu_indices(4)
    for i, j in product(range(10), repeat=2):
        inside = (starts[i] <= X[:, 0]) & (X[:, 0] <= stops[i]) & (starts[j] <= X[:, 1]) & (X[:, 1] <= stops[j])
        assert nets[i, j] == np.count_nonzero(inside != y) - np.count_nonzero(y)
    line = grid._line(1, ((1, 2), (0, 3)), Costs(3, 64))
    inside = (X[:, 0] >= 1) & (X[:, 0] <= 2)
    for cell in range(4):
        here = inside & (X[:, 1] == cell)
        assert line[cell] == 3 * np.count_nonzero(here & ~y) - 64 * np.count_nonzero(here & y)


# --- parameters


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.1, 1e-6), (7.3, 1e-9)])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_parameters_use_all_of_epsilon_and_delta(d, epsilon, delta, relation):
    plan = prepare_grid(BoxProblem(10**5, (64,) * d, PrivacyParameters(epsilon, delta, 0.05, relation)))
    s = 2 if relation == "replace-one" else 1
    first, many = (plan.first_eta, 1) if d <= 4 else (64 * plan.first_eta, d)
    ranges = [(plan.level_eta, 3 * d), (first, many), (plan.column_eta, d), (plan.last_eta, 1)]
    parts = [(BoundedRange(s * eta), count) for eta, count in ranges]
    if d > 4:
        parts.append((PureDP(epsilon / 32), 1))
    used = compose(*parts, delta=delta).to_approx(delta).epsilon if delta else sum(s * e * c for e, c in ranges)
    used += 0.0 if delta or d <= 4 else epsilon / 32
    assert 0.999 * epsilon <= used <= epsilon * (1 + 1e-12)


def test_unequal_shares_are_in_proportion():
    shares = UnequalShares.of(PrivacyParameters(1.0, 0.0, 0.05), [Step(3, 2), Step(4)])
    assert shares.eta(Step(3)) == pytest.approx(3 / 20)
    assert shares.eta(Step(4)) == pytest.approx(4 / 20)
    with pytest.raises(ValueError, match="must be such that the factor of the scores"):
        UnequalShares.of(PrivacyParameters(1e-300, 0.0, 0.05), [Step(1)])


# --- accuracy, for labels of every kind


def box_of(n, d, share, seed):
    """Numbers of which a share is in a box."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d))
    side = share ** (1 / d)
    low = draw.uniform(0, 1 - side, d)
    lows, highs = (np.array([np.quantile(X[:, j], at) for j, at in enumerate(ends)]) for ends in (low, low + side))
    return X, ((lows <= X) & (highs >= X)).all(1)


@pytest.mark.parametrize("wrong", [0.0, 0.02, 0.1])
@pytest.mark.parametrize(("n", "d"), [(100_000, 2), (200_000, 5)])
def test_a_box_errs_by_little_more_than_the_labels(n, d, wrong):
    X, y = box_of(n, d, 0.3, d)
    labels = y ^ (np.random.default_rng(1).random(n) < wrong)
    h = fastdp.learn_box(X, labels, epsilon=1.0, rng=Randomness(seed=2))
    assert h.method == "grid"
    assert h.error(X, labels) <= wrong + 0.01
    assert h.compared_with == "found"
    assert h.excess_bound < 0.01
    assert h.error_bound == 1


@pytest.mark.parametrize("method", ["auto", "grid", "peel", "interior-point", "exponential"])
@pytest.mark.parametrize("kind", ["all wrong", "one class", "the other class", "coins", "adversarial"])
def test_no_labels_make_a_box_much_worse_than_a_constant(method, kind):
    """The excess that is stated holds over "true" and "false", for labels of every kind."""
    n = 4000
    draw = np.random.default_rng(3)
    X = draw.integers(0, 256, (n, 2))
    y = (X[:, 0] > 60) & (X[:, 1] < 150)
    labels = {
        "all wrong": ~y, "one class": np.zeros(n, bool), "the other class": np.ones(n, bool),
        "coins": draw.random(n) < 0.2, "adversarial": (X.max(1) == 255) | (X.min(1) == 0),
    }[kind]  # fmt: skip
    options = {"domain_bits": 8, "epsilon": 2.0, "delta": 1e-6}
    if method == "exponential":
        X, labels = X[:1000], labels[:1000]
    h = fastdp.learn_box(X, labels, method=method, rng=Randomness(seed=4), **options)
    constant = min(labels.mean(), 1 - labels.mean())
    assert h.excess_bound < 0.3
    assert h.error(X, labels) <= constant + h.excess_bound


def test_the_stated_excess_fails_as_seldom_as_it_says():
    """With the constants in the class; beta = 0.3."""
    draw, failures, runs = np.random.default_rng(5), 0, 60
    for seed in range(runs):
        X, labels = draw.integers(0, 16, (300, 1)), draw.random(300) < 0.45
        h = fastdp.learn_box(X, labels, domain_bits=4, method="grid", epsilon=4.0, beta=0.3, rng=Randomness(seed=seed))
        failures += h.error(X, labels) > min(labels.mean(), 1 - labels.mean()) + h.excess_bound
    assert log_at_least(failures, runs, 0.3) > np.log(ALARM)
    assert failures <= 0.3 * runs


def test_guarded_methods_are_guarded_unless_a_fit_is_asserted():
    X, y = box_of(20_000, 2, 0.3, 0)
    labels = y ^ (np.random.default_rng(1).random(len(y)) < 0.05)
    options = {"method": "peel", "epsilon": 1.0, "delta": 1e-6}
    asserted = fastdp.learn_box(X, labels, realizable=True, rng=Randomness(seed=3), **options)
    guarded = fastdp.learn_box(X, labels, rng=Randomness(seed=3), **options)
    assert asserted.excess_bound is None
    assert asserted.compared_with is None
    assert guarded.compared_with == "found"
    assert guarded.error(X, labels) <= min(labels.mean(), 1 - labels.mean()) + guarded.excess_bound
    assert fastdp.bounds.learn_box(20_000, 2, realizable=True, **options) < fastdp.bounds.learn_box(
        20_000, 2, **options
    )
