"""Interior points, medians, quantiles, choices by rank and from weighted intervals, of fastdp/mechanisms.

The law is compared with a sum over all points, in fractions; privacy is enumerated over all neighbours of tiny lines,
with mutants that are refuted; then accuracy, lines of all kinds, and the errors before anything is spent.
"""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness
from fastdp.mechanisms.line_weights import LineWeights
from fastdp.mechanisms.quantiles import RankSelection
from fastdp.mechanisms.rank_selection import RankLaw, Ranks, choose_by_rank
from fastdp.mechanisms.weighted_intervals import LN2_UP, TRIALS, IntervalChoice, WeightedInterval
from fastdp.privacy import BoundedRange
from fastdp.randomness import exact_draws as exact
from fastdp.records.sources import rows_of
from tests import oracles
from tests.conftest import Watched
from tests.laws import ALARM, check_cells, log_at_most

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data

TAUS = [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000)]


def loss_of(values, tau, z):
    """In ranks."""
    below, up_to = sum(x < z for x in values), sum(x <= z for x in values)
    return max(below - tau * len(values), tau * len(values) - up_to)


def law_of(values, tau, last, eta, shifts=()):
    """`shifts`: the logarithm of what each point weighs before it loses anything."""
    weights = oracles.selection.choice_weights([-loss_of(values, tau, z) for z in range(last + 1)], eta, 200)
    return oracles.selection.exponential_law(
        [w * 2**shift for w, shift in zip(weights, shifts or [0] * len(weights), strict=True)]
    )


def positions_of(values, *, objects=False):
    return np.array(values, object if objects else np.uint64)


def check_pieces(choice, last, losses, shifts=None):
    """That a choice has the law with weights 2^shift exp(-loss) on 0 .. last: interior_point.md, theorem 2."""
    found, shifts = {}, shifts or [0] * (last + 1)
    for interval, finer in zip(itertools.starmap(WeightedInterval, choice.intervals), choice._finer, strict=True):
        assert interval.size > 0
        for j in range(interval.size):
            z = interval.first + interval.side * j
            assert z not in found
            found[z] = interval.level
            assert finer == choice._open - interval.level + shifts[z]
    assert found.keys() == set(range(last + 1))
    least = min(losses)
    highest = max(found.values())
    ln2_up = exact.ln2_bounds(100)[1]
    for z, level in found.items():
        assert choice._loss(z) == losses[z] - least
        assert choice._loss(z) >= level * ln2_up, "a coin is a probability"
        assert level == highest or choice._loss(z) < (level + 1) * LN2_UP, "half of the proposals are accepted"
    sums = [0]
    for interval, finer in zip(itertools.starmap(WeightedInterval, choice.intervals), choice._finer, strict=True):
        sums.append(sums[-1] + interval.size * 2**finer)
    assert sums[1:] == choice._sums


# --- the law, in fractions


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("eta", ["1/1000", "1/3", "2", "70"])
def test_pieces_are_the_law(tau, eta):
    """Random values with ties, at the ends, in one place; lines of 1 to 64 points that need not be a power of two."""
    draw = np.random.default_rng(7)
    for m, last in itertools.product((0, 1, 2, 3, 8, 31), (0, 1, 6, 63)):
        for kind in range(4):
            values = [
                lambda m=m, last=last: draw.integers(0, last + 1, m),
                lambda m=m, last=last: np.full(m, draw.integers(0, last + 1)),
                lambda m=m, last=last: draw.choice([0, last], m),
                lambda m=m, last=last: np.minimum(draw.geometric(0.3, m) - 1, last),
            ][kind]().tolist()
            losses = [Fraction(eta) * loss_of(values, tau, z) for z in range(last + 1)]
            for objects in (False, True):
                choice = choose_by_rank(positions_of(values, objects=objects), RankLaw(tau, last, Fraction(eta)))
                check_pieces(choice, last, losses)


@pytest.mark.parametrize("tau", TAUS[:3])
def test_pieces_are_the_law_where_points_weigh_by_their_size(tau):
    """Pieces of one point and of many, in which the values are, or are not, in any order of weights."""
    draw = np.random.default_rng(13)
    for eta, m, last in itertools.product(("1/1000", "2"), (0, 3, 31), (0, 6, 63)):
        for _ in range(4):
            firsts = (
                0,
                *sorted(draw.choice(np.arange(1, last + 1), min(last, int(draw.integers(0, 6))), False).tolist()),
            )
            weights = LineWeights(firsts, (0, *draw.integers(0, 40, len(firsts) - 1).tolist()), last)
            shifts = [weights.shifts[sum(first <= z for first in firsts) - 1] for z in range(last + 1)]
            assert weights.total == sum(2**shift for shift in shifts)
            values = np.minimum(draw.geometric(0.1, m) - 1, last).tolist()
            losses = [Fraction(eta) * loss_of(values, tau, z) for z in range(last + 1)]
            for objects in (False, True):
                given = positions_of(values, objects=objects)
                check_pieces(choose_by_rank(given, RankLaw(tau, last, Fraction(eta), weights)), last, losses, shifts)


@pytest.mark.parametrize("tau", TAUS[:4])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97, 1.0])
def test_a_partial_sort_is_enough_for_the_law(tau, share):
    """10^4 values, many in one place or all: so few are sorted that ranks far from the quantile are not known."""
    draw = np.random.default_rng(3)
    values = np.sort(np.where(draw.random(10_000) < share, 77, draw.integers(0, 256, 10_000)))
    eta = Fraction(3)
    below, up_to = (np.searchsorted(values, np.arange(256), side).tolist() for side in ("left", "right"))
    middle = tau * len(values)
    losses = [eta * max(lo - middle, middle - hi) for lo, hi in zip(below, up_to, strict=True)]
    given = positions_of(values[draw.permutation(len(values))])
    check_pieces(choose_by_rank(given, RankLaw(tau, 255, eta)), 255, losses)
    assert sorted(given.tolist()) == values.tolist()


def test_ranks_of_points_inside_and_outside_of_what_is_sorted():
    draw = np.random.default_rng(0)
    values = draw.integers(0, 500, 5000)
    in_order = np.sort(values)
    for low, high in ((-3, 5), (2400, 2600), (4990, 5100), (1, 5000), (2500, 2500)):
        ranks = Ranks(positions_of(values))
        ranks.sort_between(low, high)
        for rank in range(max(low, 1), min(high, 5000) + 1):
            assert ranks.at(rank) == in_order[rank - 1]
        for z in (0, 1, 200, 240, 250, 260, 499, 500, 2**63, 2**64 - 1):
            assert ranks.of(z) == ((values < z).sum(), (values <= z).sum())


def test_a_place_is_a_point_of_its_piece(monkeypatch):
    """Every point of a interval has as many places as the level says."""
    intervals = [WeightedInterval(10, 1, 3, 0), WeightedInterval(9, -1, 2, 1), WeightedInterval(13, 1, 4, 3)]
    monkeypatch.setattr(exact, "is_below_exp", lambda coin, exponent, doublings: True)

    def drawn(choice):
        places = iter(range(1000))
        monkeypatch.setattr(exact, "uniform_below", lambda total, uniform: next(places))
        return [choice.draw(np.zeros(8, np.uint32)) for _ in range(choice._sums[-1])]

    found = drawn(IntervalChoice(intervals, lambda k: Fraction(0)))
    assert found == [10] * 8 + [11] * 8 + [12] * 8 + [9] * 4 + [8] * 4 + [13, 14, 15, 16]
    found = drawn(IntervalChoice(intervals, lambda k: Fraction(0), [0, 2, 1]))
    weighted = [10] * 8 + [11] * 8 + [12] * 8 + [9] * 16 + [8] * 16 + [13] * 2 + [14] * 2 + [15] * 2 + [16] * 2
    assert found == weighted


def test_no_word_is_read_twice(monkeypatch):
    """By proposals, coins, trials and choices."""
    from fastdp.mechanisms import weighted_intervals

    seen = []
    trials = itertools.cycle([False, False, True])

    def source(key):
        return lambda stream, index: seen.append((stream, index)) or 12345

    def coin(coin, *rest):
        coin.to(200)
        return next(trials)

    monkeypatch.setattr(weighted_intervals, "word_source", source)
    monkeypatch.setattr(exact, "is_below_exp", coin)
    choice = choose_by_rank(positions_of([3, 5]), RankLaw(Fraction(1, 2), 2**64 - 1, Fraction(1)))
    for number in range(3):
        choice.draw(np.zeros(8, np.uint32), number)
    assert len(set(seen)) == len(seen)
    assert {index for _, index in seen} == {c * TRIALS + t for c in range(3) for t in range(3)}


@pytest.mark.parametrize("tau", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_points_are_drawn_by_the_law(tau, neighbors):
    """By the public function, at a false-alarm rate of 1e-9; eta off by 3/2 and 2/3 is refuted on the same draws."""
    values, last, epsilon, rng = [2, 2, 3, 9, 9, 9, 10, 13], 15, 1.0, Randomness(seed=4)
    options = {"domain_bits": 4, "epsilon": epsilon, "neighbors": neighbors, "rng": rng}
    given = np.array(values)
    counts = np.bincount([fastdp.quantile(given, float(tau), **options) for _ in range(6000)], minlength=16)
    eta = RankSelection(tau, epsilon, neighbors).eta
    verdict = check_cells(counts, law_of(values, tau, last, eta))
    assert verdict, str(verdict)
    for off in (Fraction(3, 2), Fraction(2, 3)):
        assert not check_cells(counts, law_of(values, tau, last, eta * off)), "a wrong law passes"


def test_floats_are_drawn_by_the_law():
    """Of 16 bits, which are few enough for a sum over all of them; equal weights are refuted by the same draws."""
    values = np.array([-3.0, 0.25, 0.25, 1.5, 40.0, 41.0], np.float16)
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = np.unique(numbers[np.isfinite(numbers)].astype(float))
    edges = np.array([-100.0, -3.0, -0.01, -1e-5, 0.0, 1e-5, 0.1, 0.25, 0.3, 1.5, 40.0, 42.0])
    counts = np.zeros(2 * edges.size + 1, np.int64)  # at edges, and between them
    cells = 2 * np.searchsorted(edges, numbers) + np.isin(numbers, edges)
    rng = Randomness(seed=6)
    for _ in range(3000):
        z = fastdp.median(values, epsilon=0.8, neighbors="add-remove", rng=rng)
        counts[2 * np.searchsorted(edges, z) + (z in edges)] += 1
    below, up_to = (np.searchsorted(values, numbers, side) for side in ("left", "right"))
    losses = np.exp(-0.8 * np.maximum(below - 3.0, 3.0 - up_to))
    weights = losses * [oracles.quantiles.weight_of_float(z, 10, -14) for z in numbers]
    verdict = check_cells(counts, np.bincount(cells, weights / weights.sum(), counts.size) * (1 - 1e-12))
    assert verdict, str(verdict)
    assert not check_cells(counts, np.bincount(cells, losses / losses.sum(), counts.size)), "a wrong law passes"


@pytest.mark.parametrize(("bits", "signed"), [(17, True), (20, False)])
def test_integers_are_drawn_by_the_law(bits, signed):
    """As above, of all integers of so many bits."""
    values, least = (
        np.array([-700, -3, 0, 0, 5, 90]) * signed + np.array([0, 3, 4, 9, 9, 4000]),
        -signed * 2 ** (bits - 1),
    )
    numbers = np.arange(least, least + 2**bits)
    edges = np.array([-1000, -60, 0, 1, 5, 9, 10, 100, 2000, 20_000, 60_000])
    counts, rng = np.zeros(edges.size + 1, np.int64), Randomness(seed=7)
    for _ in range(3000):
        z = fastdp.median(values, domain_bits=bits, signed=signed, epsilon=0.8, neighbors="add-remove", rng=rng)
        counts[np.searchsorted(edges, z, "right")] += 1
    below, up_to = (np.searchsorted(np.sort(values), numbers, side) for side in ("left", "right"))
    losses = np.exp(-0.8 * np.maximum(below - 3.0, 3.0 - up_to))
    weights = losses * [oracles.quantiles.weight_of_integer(z, bits) for z in numbers.tolist()]
    cells = np.searchsorted(edges, numbers, "right")
    verdict = check_cells(counts, np.bincount(cells, weights / weights.sum(), counts.size) * (1 - 1e-12))
    assert verdict, str(verdict)
    assert not check_cells(counts, np.bincount(cells, losses / losses.sum(), counts.size)), "a wrong law passes"


# --- privacy: all neighbours of tiny lines


def laws_of(tau, last, eta, most, shifts=()):
    """Of all multisets of up to so many values."""
    return {
        rows: np.array([float(p) for p in law_of(rows, tau, last, eta, shifts)])
        for m in range(most + 1)
        for rows in itertools.combinations_with_replacement(range(last + 1), m)
    }


def widest_range(laws, last, most, neighbors):
    """The largest spread of log ratios, over all pairs of neighbours: the least bounded range that holds."""
    widest = 0.0
    for rest in laws:
        near = [laws[tuple(sorted((*rest, x)))] for x in range(last + 1) if len(rest) < most]
        if neighbors == "add-remove":
            pairs = [(laws[rest], more) for more in near]
        else:
            pairs = list(itertools.combinations(near, 2))
        for one, other in pairs:
            ratios = np.log(one / other)
            widest = max(widest, float(ratios.max() - ratios.min()), float(np.abs(ratios).max()))
    return widest


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_neighbours_stay_within_the_range_that_is_claimed(q, neighbors):
    """And twice that eta, which is sensitivity 1 for an interval of length 2, is refuted: theorem 1 is tight."""
    epsilon, last, most = 1.0, 4, 4
    tau = Fraction(repr(q))
    eta = RankSelection(tau, epsilon, neighbors).eta
    right = widest_range(laws_of(tau, last, eta, most), last, most, neighbors)
    assert right <= epsilon + 1e-9
    assert right > 0.6 * epsilon
    mutant = widest_range(laws_of(tau, last, 2 * eta, most), last, most, neighbors)
    assert mutant > 1.2 * epsilon, "the mutant is not refuted"
    by_size = [0, 9, 2, 5, 0]  # weights of points are no more than numbers that do not depend on the values
    assert widest_range(laws_of(tau, last, eta, most, by_size), last, most, neighbors) == pytest.approx(right)
    by_values = {
        rows: np.array([float(p) for p in law_of(rows, tau, last, eta, [3 * (z in rows) for z in range(last + 1)])])
        for rows in laws_of(tau, last, eta, most)
    }
    assert widest_range(by_values, last, most, neighbors) > 1.2 * epsilon, "the mutant is not refuted"


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_record_may_lose_its_value_where_missing_entries_are_left_out(q):
    """Under replace-one: with the eta of that relation, whoever comes or goes is paid for; that of removals is not."""
    epsilon, last, most = 1.0, 4, 4
    tau = Fraction(repr(q))
    laws = laws_of(tau, last, RankSelection(tau, epsilon, "replace-one").eta, most)
    assert max(widest_range(laws, last, most, each) for each in ("replace-one", "add-remove")) <= epsilon + 1e-9
    if q == 0.5:
        of_removals = laws_of(tau, last, RankSelection(tau, epsilon, "add-remove").eta, most)
        assert widest_range(of_removals, last, most, "replace-one") > 1.2 * epsilon, "the mutant is not refuted"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_missing_entries_are_left_out(neighbors):
    options = {"epsilon": 1.0, "neighbors": neighbors}
    there = np.random.default_rng(1).normal(size=300)
    gaps = np.insert(there, [0, 7, 300], np.nan)
    calls = (
        lambda x, **more: fastdp.quantile(x, 0.7, rng=Randomness(1), **options, **more),
        lambda x, **more: fastdp.median(x, rng=Randomness(2), **options, **more),
        lambda x, **more: fastdp.quantile(x, [0.7, 0.2], rng=Randomness(3), **options, **more).tolist(),
    )
    for call in calls:
        wanted = call(there)
        assert call(gaps, missing="skip") == call([*there, None], missing="skip") == wanted
        assert call(gaps, missing="skip", outside="clip") == wanted
        with pytest.raises(fastdp.DomainError):
            call(gaps)
    with pytest.raises(ValueError, match="missing='drop': must be"):
        fastdp.median(there, missing="drop", **options)
    nobody = fastdp.median(np.full(3, np.nan), epsilon=1.0, missing="skip", neighbors=neighbors)
    assert np.isfinite(nobody)


def test_eta_is_what_theorem_1_says():
    assert RankSelection(Fraction(9, 10), 1.0, "replace-one").eta == Fraction(1, 2)
    assert RankSelection(Fraction(9, 10), 1.0, "add-remove").eta == Fraction(5, 9)
    assert RankSelection(Fraction(1, 10), 1.0, "add-remove").eta == Fraction(5, 9)
    assert RankSelection(Fraction(1, 2), 1.0, "add-remove").eta == 1
    assert RankSelection(Fraction(1, 2), 0.1, "add-remove").eta <= min(Fraction(0.1), Fraction(1, 10))


# --- accuracy


@pytest.mark.parametrize(
    ("epsilon", "around_0", "elsewhere"), [(0.01, 105, 105), (0.1, 24, 11), (1.0, 1, 1)]
)  # ln 2 / epsilon is what the best line of all would have: 69, 7 and 1
def test_the_median_of_cauchy_values_is_off_by_a_few_ranks(epsilon, around_0, elsewhere):
    """10^4 of them on the line of all float64; far from 0; and in fixed point."""
    rng = Randomness(seed=1)
    errors = {"floats": [], "shifted": [], "fixed": []}
    for seed in range(41):
        values = np.random.default_rng(seed).standard_cauchy(10_000)
        fixed = np.rint(np.clip(values, -1e9, 1e9) * 2**30).astype(np.int64)
        for name, given in (("floats", values), ("shifted", values + 1000.0), ("fixed", fixed)):
            found = fastdp.median(given, epsilon=epsilon, neighbors="add-remove", rng=rng)
            errors[name].append(abs(int((given < found).sum()) - 5000))
    assert np.median(errors["floats"]) <= around_0
    assert np.median(errors["shifted"]) <= elsewhere
    assert np.median(errors["fixed"]) <= around_0 + 5
    bound = fastdp.bounds.median(epsilon=epsilon, beta=1e-9 / (3 * 41), neighbors="add-remove")  # for all of them
    assert max(map(max, errors.values())) <= bound


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1e-3, 1.0, 50.0, 1e5, 1e9, 1e12])
def test_few_numbers_of_any_ordinary_size_have_a_median(scale):
    """40 at epsilon 1 under add-remove: a quarter of them is e^10 against all numbers of other sizes."""
    draw, rng, outside = np.random.default_rng(3), Randomness(seed=4), 0
    for _ in range(20):
        values = scale * draw.lognormal(0, 0.5, 60)
        low, high = np.quantile(values, [0.25, 0.75])
        outside += not low <= fastdp.median(values, epsilon=1.0, neighbors="add-remove", rng=rng) <= high
        if scale >= 50.0:
            found = fastdp.median(np.rint(values).astype(np.int64), epsilon=1.0, neighbors="add-remove", rng=rng)
            outside += not low - 1 <= found <= high + 1
    assert outside <= 1


@pytest.mark.parametrize(("bits", "neighbors"), [(16, "replace-one"), (64, "replace-one"), (64, "add-remove")])
def test_interior_points_at_the_stated_size(bits, neighbors):
    """m = 2 ceil(ln(|D|/beta)/eta) - 1 values: equal ones, which is the hardest, and spread ones."""
    beta, epsilon, runs, rng = 0.3, 2.0, 200, Randomness(seed=8)
    eta = float(RankSelection(Fraction(1, 2), epsilon, neighbors).eta)
    m = 2 * math.ceil(math.log(2**bits / beta) / eta) - 1
    assert m < 100
    draw = np.random.default_rng(0)
    for values in (np.full(m, 12345, np.uint64), draw.integers(1000, 1010, m, np.uint64)):
        options = {"domain_bits": bits, "epsilon": epsilon, "neighbors": neighbors, "rng": rng}
        found = [fastdp.interior_point(values, **options) for _ in range(runs)]
        inside = sum(values.min() <= z <= values.max() for z in found)
        assert log_at_most(inside, runs, 1 - beta) > math.log(ALARM)
    few = np.full(max(1, m // 5), 12345, np.uint64)
    found = [fastdp.interior_point(few, **options) for _ in range(50)]
    assert sum(z == 12345 for z in found) < 25, "a fifth of it is not enough"


# --- lines of all kinds


@pytest.mark.parametrize(
    ("values", "options", "low", "high"),
    [
        (np.full(200, 7, np.int8), {"domain_bits": 64}, 7, 7),
        (np.full(400, -7, np.int8), {"domain_bits": 64}, -7, -7),
        (np.full(400, 2**64 - 1, np.uint64), {"domain_bits": 64}, 2**64 - 1, 2**64 - 1),
        (np.full(400, 5, np.uint64), {"domain_bits": 64, "signed": True}, 5, 5),
        (np.arange(400, dtype=np.int16), {"domain_bits": 16, "signed": False}, 150, 250),
        (np.ones(100, bool), {"domain_bits": 1}, 1, 1),
        (np.ones(400, bool), {"domain_bits": 100}, 1, 1),
        ([2**99 + 5] * 400, {"domain_bits": 100}, 2**99 + 5, 2**99 + 5),
        ([-(2**99)] * 400, {"domain_bits": 100, "signed": True}, -(2**99), -(2**99)),
        (np.full(300, 1.5, np.float16), {"domain_bits": 16}, 1.5, 1.5),
        (np.full(300, 0.1, np.float32), {"domain_bits": 32}, float(np.float32(0.1)), float(np.float32(0.1))),
        (np.full(300, 0.1), {"domain_bits": 32}, float(np.float32(0.1)), float(np.float32(0.1))),
        (np.full(400, 0.1), {}, 0.1, 0.1),
        (np.full(400, 5e-324), {}, 5e-324, 5e-324),
        (np.full(400, -0.0), {}, 0.0, 0.0),
        (np.full(400, np.inf), {"outside": "clip"}, np.finfo(float).max, np.finfo(float).max),
        (np.full(400, 300), {"domain_bits": 8, "outside": "clip"}, 255, 255),
        ([2**63 + 1] * 400, {"domain_bits": 64}, 2**63 + 1, 2**63 + 1),
        ([3] * 400, {}, 3.0, 3.0),
        (np.full(30, 3, np.int8), {}, 3, 3),
        (pd.Series([3] * 100), {"domain_bits": 8}, 3, 3),
        (rows_of({"a": [3] * 100}), {"domain_bits": 8}, 3, 3),
    ],
)
def test_every_kind_of_line(values, options, low, high):
    """With so many values that another answer has a chance below 1e-9."""
    found = fastdp.median(values, epsilon=1.0, **options)
    assert low <= found <= high
    assert type(found) in (int, float)


@pytest.mark.parametrize("m", [1, 10, 1000, 100_000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0, 1e6])
def test_equal_values(m, epsilon):
    """However few of them the partial sort puts in order."""
    found = fastdp.median(np.full(m, 200), domain_bits=8, epsilon=epsilon)
    assert 0 <= found <= 255
    assert found == 200 or m * epsilon < 100


@pytest.mark.parametrize("q", [1e-300, 1e-9, 0.001, 0.999, 1 - 2.0**-53])
def test_quantiles_near_the_ends(q):
    values = np.arange(100, 156)
    found = fastdp.quantile(values, q, domain_bits=8, epsilon=20.0)
    assert 0 <= found <= 106 if q < 0.5 else 149 <= found <= 255


def test_an_empty_column_under_add_remove_is_any_point():
    found = [
        fastdp.median(np.empty(0, np.int64), domain_bits=2, epsilon=1.0, neighbors="add-remove", rng=rng)
        for rng in map(Randomness, range(400))
    ]
    verdict = check_cells(np.bincount(found, minlength=4), [Fraction(1, 4)] * 4)
    assert verdict, str(verdict)
    assert isinstance(fastdp.interior_point(np.empty(0), epsilon=1.0, neighbors="add-remove"), float)


def test_threads_and_parts_do_not_change_a_draw():
    values = np.random.default_rng(1).normal(size=200_000)
    threads, found = fastdp.get_num_threads(), set()
    try:
        for count, given in ((1, values), (2, values), (2, rows_of({"a": values})), (2, pd.Series(values))):
            fastdp.set_num_threads(count)
            found.add(fastdp.median(given, epsilon=1.0, rng=Randomness(seed=5)))
    finally:
        fastdp.set_num_threads(threads)
    assert len(found) == 1


def test_the_values_stay_as_they_are():
    values = np.random.default_rng(1).integers(0, 2**63, 1000).astype(np.uint64)
    before = values.copy()
    fastdp.median(values, epsilon=1.0)
    assert (values == before).all()


# --- what is charged, and what is not


def test_a_release_is_charged_as_a_bounded_range():
    budget = Budget(epsilon=3.0)
    fastdp.quantile([1, 2, 3], 0.25, domain_bits=4, epsilon=1.0, budget=budget)
    fastdp.median([1, 2, 3], domain_bits=4, epsilon=1.0, budget=budget)
    fastdp.interior_point([1, 2, 3], domain_bits=4, epsilon=1.0, budget=budget)
    assert [release.mechanism for release in budget.releases] == ["quantile", "median", "interior_point"]
    assert all(release.guarantee == BoundedRange(1.0) for release in budget.releases)
    with pytest.raises(BudgetExceeded):
        fastdp.median([1], domain_bits=4, epsilon=0.1, budget=budget, rng=Watched())


BAD = [
    ({"values": []}, ValueError, "at least one"),
    ({"values": np.empty(0)}, ValueError, "at least one"),
    ({"values": [[1, 2], [3, 4]]}, ValueError, "taken as integers"),
    ({"values": [[1], [1, 2]], "domain_bits": None}, ValueError, "must hold numbers"),
    ({"values": np.zeros((3, 2))}, ValueError, "2 columns: must be one"),
    ({"values": np.zeros((3, 2, 2))}, ValueError, "one dimension"),
    ({"values": rows_of(np.zeros((3, 2)))}, ValueError, "must be one"),
    ({"values": 3}, ValueError, "values: type int"),
    ({"values": ["a"]}, ValueError, "values"),
    ({"values": [1.0, float("nan")], "domain_bits": None}, DomainError, "NaN"),
    ({"values": [1.0, float("inf")], "domain_bits": None}, DomainError, "finite floats"),
    ({"values": [256]}, DomainError, "from 0 to 255"),
    ({"values": [-1]}, DomainError, "from 0 to 255"),
    ({"values": np.ones(1)}, ValueError, "domain_bits=8"),
    ({"values": [1.0]}, ValueError, "a list is taken as integers where domain_bits is given"),
    ({"domain_bits": 0}, ValueError, "domain_bits=0"),
    ({"domain_bits": 8.0}, ValueError, "domain_bits=8.0"),
    ({"domain_bits": True}, ValueError, "domain_bits=True"),
    ({"domain_bits": [8]}, ValueError, "domain_bits="),
    ({"signed": 1}, ValueError, "signed=1"),
    ({"epsilon": 0}, ValueError, "epsilon=0"),
    ({"epsilon": float("inf")}, ValueError, "epsilon=inf"),
    ({"epsilon": "1"}, ValueError, "epsilon='1'"),
    ({"outside": "drop"}, ValueError, "outside='drop'"),
    ({"neighbors": "swap"}, ValueError, "neighbors='swap'"),
    ({"rng": np.random.default_rng(0)}, ValueError, "rng="),
]


@pytest.mark.parametrize(("change", "kind", "said"), BAD)
@pytest.mark.parametrize("name", ["quantile", "median", "interior_point"])
def test_errors_cost_nothing(name, change, kind, said):
    options = {"values": [1, 2, 3], "domain_bits": 8, "epsilon": 1.0, "rng": Watched(), **change}
    if name == "quantile":
        options["q"] = 0.5
    budget = Budget(epsilon=1.0)
    with pytest.raises(kind, match=said):
        getattr(fastdp, name)(options.pop("values"), budget=budget, **options)
    assert not budget.releases


def test_the_widest_domain():
    """One draw among 2^(2^20) integers takes as many random bits."""
    for bits in (2**16 + 4464, 10**5, 2**20):
        found = fastdp.median([1, 2] * 200, domain_bits=bits, epsilon=1.0, rng=Randomness(seed=3))
        assert 0 <= found < 1 << bits


@pytest.mark.parametrize("q", [0, 1, -0.5, 1.5, float("nan"), "0.5", None])
def test_a_quantile_lies_between_0_and_1(q):
    with pytest.raises(ValueError, match=r"^q="):
        fastdp.quantile([1, 2, 3], q, epsilon=1.0, rng=Watched())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delta": 1e-6}, "delta=1e-06"),
        ({"beta": 0}, "beta=0"),
        ({"beta": 1}, "beta=1"),
        ({"method": "x"}, "method='x'"),
    ],
)
def test_what_interior_point_refuses(change, said):
    with pytest.raises(ValueError, match=said):
        fastdp.interior_point([1, 2, 3], epsilon=1.0, rng=Watched(), **change)


def test_a_list_says_nothing_of_what_it_holds_by_the_line_it_is_put_on():
    """numpy would make floats of all because of one, or unsigned integers, and so tell that it is there."""
    neighbours = ([1, 2, 3], [1, 2, 3.5], [1, 2, -1], [1, 2, 2**63], [1, 2], [])
    for values in neighbours:
        assert isinstance(fastdp.median(values, epsilon=1.0, neighbors="add-remove"), float)
    for values in ([1, 2, 3], [1, 2, 200], []):
        assert isinstance(fastdp.median(values, domain_bits=8, epsilon=1.0, neighbors="add-remove"), int)
    for values in ([1, 2, 3.5], [1, 2, -1]):
        with pytest.raises(ValueError, match=r"^values: "):
            fastdp.median(values, domain_bits=8, epsilon=1.0, neighbors="add-remove", rng=Watched())


def test_too_few_values_for_the_line_are_told_where_their_number_is_public():
    ages = np.arange(100) % 70 + 18
    with pytest.warns(fastdp.AccuracyWarning, match=r"^100 values are too few for 64 bits and epsilon=1, .* off by 96"):
        fastdp.median(ages, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 18 <= fastdp.median(ages, domain_bits=7, epsilon=1.0) <= 90
        fastdp.median(ages, epsilon=1.0, neighbors="add-remove")  # their number is not
        fastdp.median(ages.astype(np.int8), epsilon=1.0)


def test_one_column_of_anything(tmp_path):
    values = np.arange(3000.0)
    path = tmp_path / "x.parquet"
    pd.DataFrame({"x": values}).to_parquet(path)
    forms = (values, pd.DataFrame({"x": values}), values[:, None], path, str(path), pd.Series(values), range(3000))
    found = {fastdp.median(form, epsilon=1.0, rng=Randomness(seed=2)) for form in forms}
    assert len(found) == 1
