"""Several choices of bounded range: against strategies that see results, in 60 digits; against the recursion by brute
force; and mutants of the bound."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fastdp import BoundedRange, PureDP, compose
from fastdp.privacy import choices, loss_distributions
from fastdp.privacy.choices import MOST_TOGETHER, Choices, TwoPoint, refuted
from fastdp.privacy.loss_distributions import epsilon_bounds
from fastdp.privacy.profiles import Exponential, Gaussian, Laplace, with_profile
from tests.oracles.loss_distributions import worst_choices

TAIL = 1e-14


def delta_of_strategy(strategy, count, eta, epsilon):
    """Delta of `count` choices, the t of each a function of (which, loss before), in 60 digits; losses by P."""
    with mpmath.workdps(60):
        eta, epsilon = mpf(eta), mpf(epsilon)
        outcomes = [(mpf(0), mpf(1))]  # loss, probability under Q
        for which in range(count):
            following = []
            for loss, mass in outcomes:
                t = mpf(strategy(which, float(loss))) * eta
                w = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
                following += [(loss + t, mass * w), (loss + t - eta, mass * (1 - w))]
            outcomes = following
        return mpmath.fsum(q * (mpmath.exp(loss) - mpmath.exp(epsilon)) for loss, q in outcomes if loss > epsilon)


def worst_of_two(eta, epsilon, points=4001):
    """The recursion for two choices: the last by its closed form, the first by trying every t."""
    t = np.linspace(0, eta, points)
    w = (np.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)

    def last(loss):  # the greatest of one choice, at g = e^loss
        delta = np.expm1((np.clip(loss, -eta, eta) - eta) / 2) ** 2 / -math.expm1(-eta)
        return np.where(loss <= -eta, -np.expm1(np.minimum(loss, 0.0)), np.where(loss >= eta, 0.0, delta))

    return float(np.max(w * np.exp(t) * last(epsilon - t) + (1 - w) * np.exp(t - eta) * last(epsilon - t + eta)))


@pytest.mark.parametrize("eta", [0.05, 1.0, 4.0])
def test_two_choices_against_every_first_range(eta):
    epsilons = np.linspace(-1.9 * eta, 1.95 * eta, 41)
    delta, error = Choices(eta, 2, TAIL).values(epsilons)
    for epsilon, found, doubt in zip(epsilons, delta, error, strict=True):
        truth = worst_of_two(eta, epsilon)
        assert found + doubt >= truth * (1 - 1e-12)
        assert found <= truth * (1 + 1e-3) + 1e-7 * eta


def test_the_published_example():
    """Two choices of range 1 at epsilon = .25: .2160 for the same pair twice, .2209 where the second sees the first."""
    assert Choices(1.0, 2, TAIL).delta(0.25) == pytest.approx(0.2209, abs=5e-5)
    same = max(delta_of_strategy(lambda *_, t=t: t, 2, 1.0, 0.25) for t in np.linspace(0, 1, 101))
    assert float(same) == pytest.approx(0.2160, abs=5e-5)


@pytest.mark.parametrize(("eta", "count"), [(0.1, 7), (1.0, 5), (3.0, 4), (0.7, 9)])
def test_no_strategy_is_above_the_bound_and_one_is_close(eta, count):
    draw = np.random.default_rng(5)
    profile = Choices(eta, count, TAIL)
    for epsilon in (0.1 * eta, 0.5 * eta * math.sqrt(count), 0.6 * count * eta):
        bound = profile.delta(epsilon)
        found = []
        for _ in range(6):
            start, slope = draw.uniform(0.2, 0.9), draw.uniform(-0.3, 0.3) / eta
            found.append(
                delta_of_strategy(
                    lambda which, loss, a=start, b=slope: min(1.0, max(0.0, a + b * loss)), count, eta, epsilon
                )
            )
        # what is left is spread over the rest: the last two losses end on either side of epsilon
        found.append(
            delta_of_strategy(
                lambda which, loss, e=epsilon: min(0.99, max(0.01, 0.5 + (e - loss) / (2 * eta * (count - which)))),
                count, eta, epsilon,
            )
        )  # fmt: skip
        assert max(found) <= bound
        assert float(max(found)) > 0.6 * bound


@pytest.mark.parametrize(("eta", "count"), [(1.0, 2), (0.1, 30), (0.5, 100), (3.0, 5), (0.02, 512)])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12])
def test_one_kind_is_within_a_part_in_a_thousand_of_what_some_strategy_exceeds(eta, count, delta):
    bounds = epsilon_bounds([(Exponential(eta), count)], delta=delta)
    assert bounds.at_least <= bounds.at_most <= bounds.at_least * 1.002


def test_the_lower_bound_is_that_of_a_strategy():
    """Read off the grid: the t of the recursion at every step, its delta in 60 digits."""
    eta, count, goal = 0.5, 6, 1e-3
    found = refuted(eta, count, goal, TAIL)
    assert found < epsilon_bounds([(Exponential(eta), count)], delta=goal).at_most
    cells = 64
    h = eta / cells
    t = np.arange(cells + 1)
    w = (np.exp(-t * h) - math.exp(-eta)) / -math.expm1(-eta)
    start = -round(found / h)
    indices = np.arange(-2 * count * cells - cells, 2 * count * cells + cells + 1)
    value, best = np.maximum(np.expm1(indices * h), 0.0), []
    inside = np.arange(cells, len(indices) - cells)
    for _ in range(count):
        tried = w[:, None] * value[inside + t[:, None]] + (1 - w[:, None]) * value[inside + t[:, None] - cells]
        best.append(dict(zip(indices[inside].tolist(), np.argmax(tried, axis=0).tolist(), strict=True)))
        value = value.copy()
        value[inside] = tried.max(axis=0)
        value[:cells] = 0.0
    best.reverse()
    delta = delta_of_strategy(lambda which, loss: best[which][round(loss / h) + start] / cells, count, eta, -start * h)
    assert float(delta) == pytest.approx(goal, rel=0.05)
    assert delta <= Choices(eta, count, TAIL).delta(-start * h)


@pytest.mark.parametrize(("count", "delta"), [(1100, 1e-6), (10_000, 1e-9)])
def test_thousands_are_close_to_pairs_that_depend_on_nothing(count, delta):
    bounds = epsilon_bounds([(Exponential(1 / math.sqrt(count)), count)], delta=delta)
    assert bounds.at_least <= bounds.at_most <= bounds.at_least * 1.002
    limit = epsilon_bounds([(Gaussian(0.5), 1)], delta=delta)
    assert bounds.at_most == pytest.approx(limit.at_most, rel=0.02)


def test_choices_beside_other_releases():
    for others in ([(Laplace(0.1), 50)], [(Gaussian(0.4), 3)], [(Exponential(0.3), 7), (Laplace(0.2), 5)]):
        parts = [(Exponential(0.1), 50), *others]
        bounds = epsilon_bounds(parts, delta=1e-6)
        fewer = epsilon_bounds([(Exponential(0.1), 49), *others], delta=1e-6)
        assert bounds.at_least <= bounds.at_most <= bounds.at_least * 1.02
        assert fewer.at_least < bounds.at_most
    mixed = epsilon_bounds([(Exponential(0.1), 50), (Laplace(0.1), 50)], delta=1e-6)
    assert mixed.at_most <= mixed.at_least * 1.0025


def test_two_choices_and_a_response_in_any_order_are_below_the_product():
    """Whoever chooses may see the response before, between or after: by trying every t, to the last."""
    eta, e, epsilon = 1.0, 0.7, 0.4
    right = 1 / (1 + math.exp(-e))
    response = [(e, 1 - right), (-e, right)]  # losses under Q
    t = np.linspace(0, eta, 1001)
    w = (np.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)

    def value(order, x):
        if not order:
            return np.maximum(np.expm1(x), 0.0)
        first, rest = order[0], order[1:]
        if first == "response":
            return sum(q * value(rest, x + loss) for loss, q in response)
        grid = np.linspace(-4, 4, 8001)
        known = np.array(value(rest, grid))
        up = np.interp(x[..., None] + t, grid, known)
        return np.max(w * up + (1 - w) * np.interp(x[..., None] + t - eta, grid, known), axis=-1)

    for order in set(itertools.permutations(["choice", "choice", "response"])):
        some = np.array([-epsilon])
        worst = math.exp(epsilon) * float(value(order, some)[0])
        apart = Choices(eta, 2, TAIL).values(epsilon - np.array([e, -e]))[0]
        pairs = float(right * apart[0] + (1 - right) * apart[1])
        assert worst <= pairs * (1 + 1e-4)


def test_the_table_s_profile_is_one():
    profile = Choices(0.3, 20, TAIL)
    losses = np.linspace(-7, 7, 801)
    delta, _ = profile.values(losses)
    assert np.all(np.diff(delta) <= 1e-15)
    assert np.all(delta >= -np.expm1(np.minimum(losses, 0.0)) - 1e-15)
    there = np.exp(losses)
    slopes = np.diff(delta) / np.diff(there)
    assert np.all(np.diff(slopes) >= -1e-6 * np.abs(slopes[1:]) - 1e-12)
    turned, _ = profile.values(-losses)
    assert np.allclose(turned, -np.expm1(-losses) + np.exp(-losses) * delta, atol=1e-12)


def test_a_pair_is_what_its_two_outcomes_have():
    for eta, t in [(1.0, 0.3), (0.2, 0.15), (5.0, 4.0)]:
        pair = TwoPoint(eta, t)
        for loss in np.linspace(-eta, t, 17):
            assert pair.values(np.array([loss]))[0][0] == pytest.approx(
                float(delta_of_strategy(lambda *_, t=t, eta=eta: t / eta, 1, eta, loss)), abs=1e-14
            )


def test_close_ranges_count_as_the_greatest_and_far_ones_apart():
    close = [(Exponential(0.1 + 1e-5 * i), 10) for i in range(5)]
    at_least = epsilon_bounds([(Exponential(0.1), 50)], delta=1e-6).at_least
    at_most = epsilon_bounds([(Exponential(0.10004), 50)], delta=1e-6).at_most
    assert at_least < epsilon_bounds(close, delta=1e-6).at_most <= at_most
    followed = choices.together([(Exponential(0.1), 30), (Exponential(0.4), 20)], TAIL)
    assert sorted((one.eta, one.count, k) for one, k in followed) == [(0.1, 30, 1), (0.4, 20, 1)]
    blocks = choices.together([(Exponential(0.01), 2 * MOST_TOGETHER + 1)], TAIL)
    assert sum(one.count * k for one, k in blocks) == 2 * MOST_TOGETHER + 1


def test_compose_and_to_approx_use_it():
    hundred = compose((BoundedRange(0.1), 100), delta=1e-6)
    assert hundred.theorem == "privacy loss distribution"
    assert hundred.at_least <= hundred.epsilon <= hundred.at_least * 1.002
    assert hundred.epsilon < 0.94 * compose((BoundedRange(0.1), 100), delta=1e-6, using="renyi").epsilon
    one = BoundedRange(1.0).to_approx(1e-3)
    assert one.epsilon == compose(BoundedRange(1.0), delta=1e-3).epsilon
    assert Exponential(1.0).delta(one.epsilon) <= 1e-3 < Exponential(1.0).delta(one.epsilon * (1 - 1e-9))
    known = with_profile(PureDP(1.0), Laplace(1.0))
    assert known.to_approx(1e-3).epsilon == compose(known, delta=1e-3).epsilon < PureDP(1.0).to_approx(1e-3).epsilon


# --- mutants


def test_a_bound_without_what_lies_between_grid_points_is_noticed(monkeypatch):
    """On a grid of three cells, t on the grid alone misses the worst one."""
    monkeypatch.setattr(choices, "_CELLS", ((MOST_TOGETHER, 3),))
    choices.table_of.cache_clear()
    truth = worst_of_two(1.0, 0.9)
    try:
        assert Choices(1.0, 2, TAIL).delta(0.9) >= truth
        monkeypatch.setattr(choices, "_bulge", lambda width, eta: 0.0)
        choices.table_of.cache_clear()
        assert Choices(1.0, 2, TAIL).values(np.array([2 / 3]))[0][0] < worst_of_two(1.0, 2 / 3)
    finally:
        choices.table_of.cache_clear()


def test_intervals_that_are_left_out_wrongly_are_noticed(monkeypatch):
    """A kernel that takes the ends of eighths for all there is."""
    eta, count, cells = 1.0, 3, 64
    kept = count * cells
    whole = worst_choices(eta, count, cells, kept)
    assert np.all(choices._worst_values(eta, count, cells, kept) >= whole * (1 - 1e-14))
    monkeypatch.setattr(choices, "_bulge", lambda width, eta: 0.0 if width > eta / 9 else math.tanh(width / 4))
    assert not np.all(choices._worst_values(eta, count, cells, kept) >= whole * (1 - 1e-14))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("eta", "count", "cells", "kept"),
    [(0.5, 2, 256, 10**6), (30.0, 4, 64, 10**6), (1e-8, 7, 64, 200), (0.1, 40, 32, 500), (2.0, 5, 24, 50)],
)
def test_the_kernel_against_every_interval(sign, eta, count, cells, kept):
    """Upper bounds within rounding of those that leave nothing out; lower ones the same."""
    found = choices._worst_values(eta, count, cells, kept, sign)
    expected = worst_choices(eta, count, cells, kept, sign)
    assert found.shape == expected.shape
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-290)


def test_a_window_that_is_too_small_says_so(monkeypatch):
    wide = epsilon_bounds([(Exponential(0.2), 60)], delta=1e-6)
    choices.table_of.cache_clear()
    monkeypatch.setattr(choices, "sqrt", lambda x: 0.35 * math.sqrt(x))
    try:
        narrow = epsilon_bounds([(Exponential(0.2), 60)], delta=1e-6)
        assert narrow.at_most >= wide.at_least
    finally:
        choices.table_of.cache_clear()


def test_choices_that_are_too_wide_or_too_narrow_fall_back():
    for eta, count in [(200.0, 5), (1e-12, 5), (1e-200, 3)]:
        found = loss_distributions.epsilon_bounds([(Exponential(eta), count)], delta=1e-6)
        assert found is None or found.at_least <= found.at_most <= eta * count * (1 + 1e-9)
