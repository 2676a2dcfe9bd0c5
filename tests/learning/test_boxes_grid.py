"""Boxes on a grid of private quantiles: every choice by enumeration, with mutants that are refuted; and accuracy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import boxes_grid
from fastdp.learning.box_ends import ends_of
from fastdp.learning.box_parameters import BoxProblem
from fastdp.learning.boxes_grid import SHARES, BoxGridParameters, Costs, Grid, all_nets, prepare_grid
from fastdp.learning.extremes import Numbers
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.learning.unequal_shares import Step, UnequalShares
from fastdp.mechanisms.quantile_plan import QuantilePlan
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


def plan_of(n=3, first=NOTHING, column=NOTHING, last=NOTHING):
    return BoxGridParameters(n, None, QuantilePlan.at(SHARES, 1.0), first, column, last, PureDP(1.0), 1.0)


def laws_of(plan, bits, most):
    """Of what is returned, for all multisets of records, given the quantiles."""
    kinds = list(product(*(range(1 << b) for b in bits), (0, 1)))
    laws = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes_grid, "draw_quantiles", lambda *_: [0] * 7)
        for rows in multisets(kinds, most):
            paths, numbers = Paths(), numbers_of(rows, bits)
            patch.setattr(boxes_grid, "draw_one", paths.draw_one)
            laws[rows] = law_of(paths, lambda plan=plan, numbers=numbers: str(plan.learn(numbers, NoKeys(), nothing)))
    return kinds, laws


def nothing(*_):
    """No progress is shown."""


# --- the ends


@pytest.mark.parametrize("points", [[7] * 7, [0] * 7, [1023] * 7, [0, 0, 0, 5, 5, 15, 15], [1, 2, 3, 4, 5, 6, 7]])
def test_cells_cover_the_line_and_begin_and_end_at_the_points(points):
    ends = ends_of(points, NumberLine(10, 0, 1023))
    assert set(points) == set(ends.ends[ends.quantiles].tolist())
    intervals = [ends.interval(k, k) for k in range(ends.ends.size)]
    assert intervals[0][0] == 0
    assert intervals[-1][1] == 1023
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(intervals))
    assert set(points) <= {low for low, _ in intervals}


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


@pytest.mark.parametrize("part", ["first", "column", "last"])
def test_every_part_keeps_its_range(part):
    """All neighbours with up to three records of one column of two positions; the other parts are free."""
    kinds, laws = laws_of(plan_of(**{part: ETA}), (1,), 3)
    for relation in RELATIONS:
        each = ETA * (2 if relation == "replace-one" else 1)
        spread, _ = widest(laws, neighbours(kinds, 3, relation))
        assert 0.4 * each < spread <= each + 1e-6


def test_errors_that_count_twice_and_an_unpaid_last_choice_are_refuted():
    """Twice the weight is beyond the range of one choice, as is a last choice that is not charged."""
    for mutant in (plan_of(last=2 * ETA), plan_of(column=ETA, last=ETA)):
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
    ranges = [(plan.quantiles.each / s, 3 * d), (first, many), (plan.column_eta, d), (plan.last_eta, 1)]
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


@pytest.mark.parametrize(("n", "ones"), [(426, 0.58), (150, 0.7)])
def test_few_records_of_many_columns_give_a_constant(n, ones):
    """Boxes that hold hardly a record, one for each column, do not outvote "true"."""
    for seed in range(6):
        draw = np.random.default_rng(seed)
        X, y = draw.normal(size=(n, 30)), np.arange(n) < ones * n
        h = fastdp.learn_box(X, y, epsilon=1.0, rng=Randomness(seed=seed))
        assert h.method == "grid"
        assert h.error(X, y) <= 1 - ones + 0.03


@pytest.mark.parametrize("d", [2, 3, 30])
def test_the_last_choice_uses_more_where_it_would_lose_more(d):
    copies = (d + 2) // 2
    for n in (100, 1000, 10_000, 10**5):
        problem = BoxProblem(n, (16,) * d, PrivacyParameters(1.0, 0.0, 0.05))
        plan = prepare_grid(problem)
        assert plan.excess == pytest.approx(np.log((2 * copies + d) / 0.05) / plan.last_eta)
        assert plan.excess <= max(n / 20, np.log(2 * (d + 1) / 0.05) / 0.2)
        few = 2 * d / (38 if d > 4 else 29) / d
        assert n < 10_000 or plan.last_eta == pytest.approx(few * (31 / 32 if d > 4 else 1) / 2)


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
