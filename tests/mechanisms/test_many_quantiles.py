"""fastdp.quantiles: the law of a choice, privacy enumerated over all neighbours, ranks with ties, errors."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import ApproxDP, Budget, BudgetExceeded, DomainError, PureDP, Randomness
from fastdp.mechanisms.counted_quantiles import CountedPlan, Split, choose_method, splits
from fastdp.mechanisms.cut_choice import CutChoice, Part
from fastdp.mechanisms.cut_line import HIGHEST, LOWEST, cut_line
from fastdp.mechanisms.cut_records import CutRecords
from fastdp.mechanisms.many_quantiles import ManyQuantiles
from fastdp.mechanisms.quantile_draws import draw_quantiles
from fastdp.mechanisms.quantile_plan import Prices, QuantilePlan, levels_of
from fastdp.mechanisms.weighted_intervals import LN2_UP
from fastdp.privacy.conversions import rho_of_range
from fastdp.privacy.curves import ORDERS, range_curve
from fastdp.randomness import exact_draws as exact
from fastdp.records.number_line import NumberLine
from tests import oracles
from tests.conftest import Watched
from tests.laws import check_cells

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data

DECILES = np.arange(1, 10) / 10
THIRDS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
UNEVEN = (Fraction(1, 10), Fraction(1, 5), Fraction(9, 10))


class TinyLine:
    """Cuts 0 .. size - 1, `step` of them to a number; low bits are the cut within it."""

    def __init__(self, size, step):
        self.size, self.step = size, step

    def cut(self, position, low):
        return position * self.step + max(low, 0)

    def end(self, position):
        return position * self.step + self.step - 1

    def place(self, cut):
        return divmod(cut, self.step)


class TinyRecords:
    def __init__(self, cuts, step):
        self.cuts, self.step, self.m = sorted(cuts), step, len(cuts)

    def at(self, rank):
        return divmod(self.cuts[rank - 1], self.step)

    def value_at(self, rank):
        return self.cuts[rank - 1] // self.step

    def up_to(self, position, low):
        last = {LOWEST: position * self.step - 1, HIGHEST: (position + 1) * self.step - 1}
        return sum(x <= last.get(low, position * self.step + low) for x in self.cuts)


# --- the law of a choice


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("eta", ["1/1000", "1/3", "2", "70"])
def test_intervals_are_the_law(divides, eta):
    """Parts of random records with ties, some of them empty; all cuts are covered once, at levels that are bounds."""
    draw, ln2_up = np.random.default_rng(11), exact.ln2_bounds(100)[1]
    for _ in range(60):
        step, size = int(draw.integers(1, 4)), int(draw.integers(1, 60))
        line = TinyLine(size, step)
        everything = TinyRecords(draw.integers(0, size, draw.integers(0, 30)).tolist(), step)
        low = int(draw.integers(0, size)) if draw.random() < 0.5 else -1
        high = int(draw.integers(max(low, 0), size))
        first, stop = sum(x <= low for x in everything.cuts), sum(x <= high for x in everything.cuts)
        part, tau = Part(max(low, 0), high, first, stop), Fraction(int(draw.integers(1, 20)), 20)
        offset = int(draw.integers(-30, 30)) if draw.random() < 0.5 else 0
        choice = CutChoice(everything, line, part, tau, Fraction(eta), divides=divides, offset=offset)
        inside = everything.cuts[first:stop]
        losses = {}
        for z in range(part.low, high + 1):
            v = z // step
            below, up_to = sum(x // step < v for x in inside), sum(x // step <= v for x in inside)
            t = tau * len(inside) + Fraction(offset, tau.denominator)
            losses[z] = abs(sum(x <= z for x in inside) - t) if divides else max(below - t, t - up_to)
        least, found = min(losses.values()), {}
        for interval in choice.intervals:
            for z in range(interval.first, interval.first + interval.size):
                assert z not in found
                found[z] = interval.level
        assert found.keys() == losses.keys()
        for z, level in found.items():
            assert choice.loss(z) == losses[z] * choice.b
            excess = Fraction(eta) * (losses[z] - least)
            assert excess >= level * ln2_up, "a coin is a probability"
            assert level == max(found.values()) or excess < (level + 1) * LN2_UP


@pytest.mark.parametrize("divides", [True, False])
def test_cuts_are_drawn_by_the_law(divides):
    """At a false-alarm rate of 1e-9; eta off by 3/2 and 2/3 is refuted on the same draws."""
    step, records, low, high = 2, [3, 4, 4, 5, 9, 12, 12, 13], 2, 15
    tau, eta = Fraction(2, 5), Fraction(2, 3)
    everything = TinyRecords([0, 1, *records], step)
    choice = CutChoice(everything, TinyLine(20, step), Part(low, high, 2, 10), tau, eta, divides=divides)
    rng = np.random.default_rng(5)
    table: dict[tuple[int, int], int] = {}

    def words(stream, index):
        return table.setdefault((stream, index), int(rng.integers(0, 2**64, dtype=np.uint64)))

    counts = np.bincount([choice.draw(words, k) - low for k in range(6000)], minlength=high - low + 1)
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2, 3)):
        weights = oracles.quantiles.weights_of_part(records, low, high, tau, eta * factor, divides=divides, step=step)
        total = sum(weights.values())
        verdict = check_cells(counts, [(p / total * (1 - 1e-12), p / total * (1 + 1e-12)) for p in weights.values()])
        assert bool(verdict) == (factor == 1), str(verdict)


# --- privacy: all neighbours of tiny lines


def pairs_of_neighbours(size, most, neighbors):
    """All pairs of multisets of up to so many records."""
    for m in range(most):
        for rest in itertools.combinations_with_replacement(range(size), m):
            near = [tuple(sorted((*rest, x))) for x in range(size)]
            if neighbors == "add-remove":
                yield from ((rest, more) for more in near)
            else:
                yield from itertools.combinations(near, 2)


def worst(laws, size, most, neighbors, orders=(1.01, 2.0, 8.0, 32.0)):
    """The largest absolute log ratio over all pairs of neighbours, and the largest divergence of each order."""
    epsilon, divergences = 0.0, dict.fromkeys(orders, 0.0)
    for one, other in pairs_of_neighbours(size, most, neighbors):
        p, q = laws[one], laws[other]
        ratios = np.log(p / q)
        epsilon = max(epsilon, float(np.abs(ratios).max()))
        for a in orders:
            for base, sign in ((q, 1), (p, -1)):
                moment = float((base * np.exp(a * sign * ratios)).sum())
                divergences[a] = max(divergences[a], math.log(moment) / (a - 1))
    return epsilon, divergences


def laws_of(plan, size, most, step=1, public_sizes=None):
    nodes, laws = [node for level in plan.nodes for node in level], {}
    for m in range(most + 1):
        for records in itertools.combinations_with_replacement(range(size), m):
            law = oracles.quantiles.law_of_all(
                records, size, nodes, len(plan.shares), step=step, public_sizes=public_sizes
            )
            laws[records] = np.array(list(law.values()))
    return laws


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("shares", [THIRDS, UNEVEN])
def test_neighbours_stay_within_what_is_claimed(shares, neighbors):
    """Pure, by moments at four orders, and by the rho that is charged; and the prices are nearly attained."""
    size, most, each = 4, 4, 0.75
    plan = QuantilePlan.at(shares, each, neighbors)
    assert plan.levels == 2
    epsilon, divergences = worst(laws_of(plan, size, most, step=2), size, most, neighbors)
    assert epsilon <= 2 * each + 1e-9
    assert epsilon > 0.5 * each
    for order, divergence in divergences.items():
        assert divergence <= order * 2 * rho_of_range(each) + 1e-9
        at = min(range(len(ORDERS)), key=lambda i: abs(ORDERS[i] - order) if ORDERS[i] >= order else math.inf)
        assert divergence <= 2 * range_curve(each)[at] + 1e-9


def test_a_short_path_pays_for_two_levels_at_once():
    """Of four quantiles one is found a level before the last, with twice the exponent."""
    shares = tuple(Fraction(k, 5) for k in range(1, 5))
    plan = QuantilePlan.of(shares, epsilon=1.5, neighbors="add-remove")
    prices = {node.middle: node.eta * 2 * max(node.tau, 1 - node.tau) for level in plan.nodes for node in level}
    assert sorted(prices.values()) == [Fraction(1, 2)] * 3 + [Fraction(1)]
    epsilon, divergences = worst(laws_of(plan, 3, 3), 3, 3, "add-remove")
    assert 0.5 < epsilon <= 1.5 + 1e-9
    assert all(divergence <= order * plan.guarantee.to_zcdp().rho + 1e-9 for order, divergence in divergences.items())


def test_mutants_are_refuted():
    """A level unpaid, replacements priced as removals, sizes of parts that are taken to be public."""
    size, most, each = 6, 3, 0.75
    plan = QuantilePlan.at(THIRDS, each, "replace-one")
    assert worst(laws_of(plan, size, most), size, most, "replace-one")[0] <= 2 * each + 1e-9
    unpaid = QuantilePlan.at(THIRDS, 2 * each, "replace-one")
    assert worst(laws_of(unpaid, size, most), size, most, "replace-one")[0] > 2 * each
    as_removals = QuantilePlan.at(THIRDS, each, "add-remove")
    assert worst(laws_of(as_removals, size, most), size, most, "replace-one")[0] > 2 * each
    public = laws_of(as_removals, size, most, public_sizes=lambda node: Fraction(2) if node.first == 0 else Fraction(1))
    assert worst(public, size, most, "add-remove")[0] > 2 * each


def test_the_exact_prices_of_two_levels():
    """At small exponents two levels cost nearly 2 eta^2 / 8 under add-remove, and at most four times that otherwise."""
    eta, size = 0.05, 5
    plan = QuantilePlan.at(THIRDS, eta, "add-remove")
    _, removals = worst(laws_of(plan, size, 4), size, 4, "add-remove", orders=(2.0,))
    assert 1.0 < removals[2.0] / 2 / (eta * eta / 8) <= 2.0


# --- counted parts


def chance_of_count(noisy, count, scale):
    """Of a count with discrete Laplace noise, brought to -1 .. 4."""
    q, end = math.exp(-1 / scale), noisy in (-1, 4)
    return q ** abs(noisy - count) * (1 if end else 1 - q) / (1 + q)


def law_of_counted(records, size, plan, cut_prices, answer_prices, scale, chance=None):
    """Every result of cuts, noisy counts (from -1 to most + 1, tails cut off) and answers of two quantiles."""
    chance = chance or (lambda noisy, count, scale: math.exp(-abs(noisy - count) / scale))
    shares = plan.shares
    between = ((shares[0] + shares[1]) / 2,)
    law = {}
    nodes = [
        node for level in levels_of(between, (Fraction(0), Fraction(1)), cut_prices, divide=True) for node in level
    ]
    for (cut,), p in oracles.quantiles.law_of_all(records, size, nodes, 1).items():
        counts = [sum(x <= cut for x in records), sum(x > cut for x in records)]
        for noisy in itertools.product(range(-1, 5), repeat=2):
            weight = math.prod(chance(c, m, scale) for c, m in zip(noisy, counts, strict=True))
            middle = Fraction(min(max(noisy[0], 1), 3), 4)  # any function of the noisy counts
            answers = [1.0]
            for i, (low, high) in enumerate(((-1, cut), (cut, size - 1))):
                ends = (Fraction(0), middle) if i == 0 else (middle, Fraction(1))
                tau, offset = Fraction(1, 2), (shares[i] - (ends[0] + ends[1]) / 2) * sum(noisy)
                eta = answer_prices.eta(tau, 1, everything=False)
                inside = [x for x in records if low < x <= high]
                found = oracles.quantiles.weights_of_part(
                    inside, max(low, 0), high, tau, eta, divides=False, offset=offset
                )
                weights = list(found.values())
                answers = [a * w / sum(weights) for a in answers for w in weights]
            for j, answer in enumerate(answers):
                law[cut, noisy, j] = p * weight * answer
    return np.array(list(law.values()))


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_counted_parts_stay_within_what_is_claimed(neighbors):
    """Cuts, counts and answers together; counts priced as removals, and answers that both pay in full, are refuted."""
    size, most, shares = 4, 3, (Fraction(1, 4), Fraction(3, 4))
    plan = QuantilePlan.at(shares, 0.5, neighbors)
    moved = 1 if neighbors == "add-remove" else 2

    def found(factor, relation, scale):
        prices = Prices(0.5 * factor, relation, 2)
        laws = {
            records: law_of_counted(records, size, plan, Prices(0.5, neighbors, 2), prices, scale)
            for m in range(most + 1)
            for records in itertools.combinations_with_replacement(range(size), m)
        }
        return worst(laws, size, most, neighbors, orders=())[0]

    assert found(1, neighbors, moved / 0.5) <= 1.5 + 1e-9  # the tails that are cut off scale all of a law alike
    assert found(4, "add-remove", moved / 2.0) > 1.5


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_counted_parts_stay_within_the_rho_that_is_charged(neighbors):
    """By moments; what is charged without the counts is refuted."""
    size, most, shares, third = 4, 3, (Fraction(1, 4), Fraction(3, 4)), Fraction(1, 3)
    plan = CountedPlan(shares, Split(0.0, 1, 1, third, third, third), Fraction(3, 2), neighbors, None)
    halves, moved = QuantilePlan.at(shares, 0.5, neighbors), 1 if neighbors == "add-remove" else 2
    assert plan.scale == moved / 0.5
    assert (plan.cut_prices.each, plan.answer_prices.each) == (0.5, 0.5)
    laws = {
        records: law_of_counted(records, size, halves, plan.cut_prices, plan.answer_prices, plan.scale, chance_of_count)
        for m in range(most + 1)
        for records in itertools.combinations_with_replacement(range(size), m)
    }
    assert all(law.sum() == pytest.approx(1) for law in laws.values())
    _, divergences = worst(laws, size, most, neighbors)
    assert all(divergence <= order * plan.rho for order, divergence in divergences.items())
    counts = Fraction(1, 2) ** 2 / 2 / moved
    assert plan.rho == 2 * Fraction(1, 2) ** 2 / 8 + counts
    assert divergences[1.01] > 1.01 * (plan.rho - counts)


@pytest.mark.parametrize("shares", [THIRDS, UNEVEN])
def test_replacements_pay_for_records_that_go_missing(shares):
    """With prices of replacements a record may also come or go: how many there are is private then."""
    size, most, each = 4, 4, 0.75
    plan = QuantilePlan.at(shares, each, "replace-one")
    epsilon, divergences = worst(laws_of(plan, size, most, step=2), size, most, "add-remove")
    assert 0.5 * each < epsilon <= 2 * each + 1e-9
    assert all(divergence <= order * 2 * rho_of_range(each) + 1e-9 for order, divergence in divergences.items())


def test_a_private_size_is_not_used_under_replace_one():
    deciles = [Fraction(k, 10) for k in range(1, 10)]
    public, private = (ManyQuantiles.of(deciles, 1.0, 0.0, "replace-one", private_size=each) for each in (False, True))
    assert public.guarantee(50) != public.guarantee(10**6)
    assert private.guarantee(50) == private.guarantee(10**6)
    rho = [each.guarantee(n).to_zcdp().rho for each in (private, public) for n in (50, 10**6)]
    assert rho[0] > 0.99 * max(rho)  # of either method; a 256th of epsilon buys the size
    of_removals = ManyQuantiles.of(deciles, 1.0, 0.0, "add-remove").guarantee(1)
    assert of_removals.to_zcdp().rho < 0.35 * PureDP(1.0, neighbors="add-remove").to_zcdp().rho


def test_the_method_follows_public_numbers():
    deciles = tuple(Fraction(k, 10) for k in range(1, 10))
    assert isinstance(choose_method(deciles, Fraction(1), 0.0, "add-remove", 1e5, None), CountedPlan)
    assert isinstance(choose_method(deciles, Fraction(1), 0.0, "add-remove", 100, None), QuantilePlan)
    assert isinstance(choose_method(deciles[:1], Fraction(1), 0.0, "add-remove", 1e9, None), QuantilePlan)
    assert isinstance(choose_method(deciles, Fraction(1, 10**13), 0.0, "add-remove", 1e40, None), QuantilePlan)
    for epsilon in ("1/100", "1/3", "1", "20"):
        for k in (2, 9, 99, 1000):
            shares = tuple(Fraction(i, k + 1) for i in range(1, k + 1))
            few, many = (list(splits(shares, float(Fraction(epsilon)), n)) for n in (1e4, 1e6))
            assert [split[1:] for split in few] == [split[1:] for split in many]
            assert all(one.error >= other.error for one, other in zip(few, many, strict=True))
            for split in few:
                assert split.cuts + split.counts + split.answers == 1
                assert min(split.cuts, split.counts, split.answers) > 0


def test_counts_are_made_to_fit():
    """Levels of counts with next to no noise are the counts; with noise, parts add up to what is above them."""
    counts = np.random.default_rng(1).integers(0, 1000, 50)
    shares = tuple(Fraction(k, 51) for k in range(1, 51))
    for depth in (1, 2, 3):
        split = Split(0.0, 1, depth, Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
        exact = CountedPlan(shares, split, Fraction(500), "add-remove", None)
        assert np.abs(exact._estimated(counts, Randomness(seed=1).key()) - counts).max() < 1e-9
        rough = CountedPlan(shares, split, Fraction(1), "replace-one", int(counts.sum()))
        assert rough._estimated(counts, Randomness(seed=1).key()).sum() == pytest.approx(counts.sum())


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_counting_beats_halving_where_it_is_chosen(neighbors):
    """Nine deciles of 100,000 values at epsilon 1, on average of six draws: less than two thirds of the error."""
    values = np.random.default_rng(0).lognormal(10, 1, 100_000)
    line = NumberLine.of(values.dtype, 64, None, "values")
    positions, errors = line.positions(values, "raise", "values"), {}
    plan = QuantilePlan.of([Fraction(k, 10) for k in range(1, 10)], epsilon=1.0, neighbors=neighbors)
    for seed in range(6):
        halved = [line.value(p) for p in draw_quantiles(positions, line, plan, Randomness(seed=seed).key())]
        counted = fastdp.quantiles(values, DECILES, epsilon=1.0, neighbors=neighbors, rng=Randomness(seed=seed))
        for name, found in (("halved", halved), ("counted", counted)):
            errors.setdefault(name, []).append(oracles.quantiles.rank_errors(values, found, DECILES).mean())
    assert np.mean(errors["counted"]) < 0.67 * np.mean(errors["halved"])


# --- the line of cuts


@pytest.mark.parametrize(
    ("dtype", "bits", "signed"),
    [
        (np.int64, 64, None), (np.uint64, 64, None), (np.int64, 20, True), (np.int64, 17, None), (np.int64, 7, None),
        (np.float64, 64, None), (np.float32, 32, None), (np.float16, 16, None), (object, 100, None),
    ],
)  # fmt: skip
def test_cuts_follow_the_numbers(dtype, bits, signed):
    """Every record has its cut, cuts are in the order of numbers and low bits, and none is left out."""
    line = NumberLine.of(np.dtype(dtype), bits, signed, "values")
    cuts, draw = cut_line(line), np.random.default_rng(3)
    middle = line.last // 2 if line.least is None else -line.least
    near = [min(max(middle + int(k), 0), line.last) for k in draw.integers(-1000, 1000, 200)]
    far = [int.from_bytes(draw.bytes(16)) % (line.last + 1) for _ in range(200)]
    for p in (0, line.last, middle, *near, *far):
        low = int(draw.integers(0, 2**32))
        assert cuts.place(cuts.cut(p, low)) == (p, low)
        assert cuts.place(cuts.end(p)) == (p, HIGHEST)
        assert cuts.place(cuts.cut(p, LOWEST)) == (p, 0)
        assert p == 0 or cuts.end(p - 1) + 1 == cuts.cut(p, LOWEST)
    assert cuts.cut(0, LOWEST) == 0
    assert cuts.end(line.last) == cuts.size - 1


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.int64, 64), (np.int64, 40), (np.int64, 17), (np.float64, 64), (np.float32, 32), (np.float16, 16)],
)
def test_numbers_weigh_by_their_size(dtype, bits):
    """Next to each power of two of either sign, at 0 and at the ends: as the oracle says, in units of the least."""
    line, draw = NumberLine.of(np.dtype(dtype), bits, None, "values"), np.random.default_rng(5)
    cuts, zero = cut_line(line), (line.last + 1) // 2
    points = {0, line.last, zero, *(min(max(zero + s * 2**e + k, 0), line.last) for e in range(bits) for s in (-1, 1)
              for k in (-2, -1, 0, 1))}  # fmt: skip
    points |= {int(draw.integers(0, line.last, endpoint=True, dtype=np.uint64)) for _ in range(200)}
    normal = {np.float64: (52, -1022), np.float32: (23, -126), np.float16: (10, -14)}.get(dtype)
    for p in points:
        found, z = cuts.end(p) + 1 - cuts.cut(p, LOWEST), line.value(p)
        if normal is None:
            assert found == oracles.quantiles.weight_of_integer(z, bits) << 32
        else:
            lightest = oracles.quantiles.weight_of_float(line.value(line.last), *normal)
            if dtype is np.float16:  # whose largest number is of ordinary size
                lightest = oracles.quantiles.weight_of_float(6e-8, *normal)
            assert found == 2**32 * oracles.quantiles.weight_of_float(z, *normal) / lightest


def test_low_bits_belong_to_ranks_and_are_in_order():
    """Whatever the order of the records; ranks and cuts agree with what they are defined by."""
    values, key = np.random.default_rng(2).integers(0, 9, 500).astype(np.uint64), Randomness(seed=8).key()
    one, other = CutRecords(values, key), CutRecords(values[::-1].copy(), key)
    found = [one.at(rank) for rank in range(1, 501)]
    assert found == [other.at(rank) for rank in range(1, 501)] == sorted(found)
    assert [position for position, _ in found] == np.sort(values).tolist()
    assert len({low for _, low in found}) == 500
    for position, low in found[::7]:
        assert one.up_to(position, low) == sum(each <= (position, low) for each in found)
        assert one.up_to(position, LOWEST) == int((values < position).sum())
        assert one.up_to(position, HIGHEST) == int((values <= position).sum())


# --- what users see


def worst_rank_error(values, answers, qs):
    return oracles.quantiles.rank_errors(values, answers, qs).max()


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("name", "dtype"), [("normal", np.float64), ("normal", np.float32), ("whole", np.int64), ("zeros", np.float64)]
)
def test_answers_are_sorted_and_have_their_ranks(name, dtype, neighbors):
    """Continuous values, few distinct ones, and nine tenths zeros."""
    draw = np.random.default_rng(4)
    values = draw.normal(40, 20, 60_000).astype(dtype)
    if name == "zeros":
        values[draw.random(60_000) < 0.9] = 0
    for delta in (0.0, 1e-6):
        found = fastdp.quantiles(values, DECILES, epsilon=1.0, delta=delta, neighbors=neighbors, rng=Randomness(seed=1))
        assert (np.diff(found) >= 0).all()
        assert worst_rank_error(values, found, DECILES) < 400
    if name == "zeros":
        assert (found[2:8] == 0).all()


def test_orders_repetitions_and_types():
    values, rng = np.random.default_rng(0).integers(0, 1000, 20_000), lambda: Randomness(seed=3)
    once = fastdp.quantiles(values, [0.1, 0.5, 0.9], epsilon=1.0, rng=rng())
    mixed = fastdp.quantiles(values, [0.9, 0.1, 0.9, 0.5, 0.1], epsilon=1.0, rng=rng())
    assert once[[2, 0, 2, 1, 0]].tolist() == mixed.tolist()
    assert once.dtype == np.int64
    assert fastdp.quantiles(values.astype(np.uint64), [0.5], epsilon=1.0).dtype == np.uint64
    assert fastdp.quantiles(values.astype(np.float32), [0.5], epsilon=1.0).dtype == np.float64
    assert fastdp.quantiles([2**90, 3], [0.5], epsilon=1.0, domain_bits=100).dtype == object
    assert fastdp.quantile(values, [0.1, 0.5, 0.9], epsilon=1.0, rng=rng()).tolist() == once.tolist()
    assert fastdp.quantile(pd.Series(values), np.array([0.5, 0.1, 0.9]), epsilon=1.0, rng=rng())[0] == once[1]
    assert isinstance(fastdp.quantile(values, 0.5, epsilon=1.0), int)


def test_one_column_of_anything_gives_the_same_bits(tmp_path):
    values = np.random.default_rng(1).integers(0, 300, 70_000)
    frame = pd.DataFrame({"age": values})
    frame.to_parquet(tmp_path / "ages.parquet")
    given = [values, values[::-1], frame, frame["age"], tmp_path / "ages.parquet"]
    found = [fastdp.quantiles(each, DECILES, epsilon=1.0, rng=Randomness(seed=5)).tolist() for each in given]
    assert all(each == found[0] for each in found)


def test_values_that_are_searched_by_rank_give_the_same_bits(monkeypatch):
    """As those of Dask are, and those that do not fit into memory."""
    from fastdp.records import number_column

    values = np.random.default_rng(1).normal(size=3_000).round(2)
    for delta in (0.0, 1e-6):
        options = {"epsilon": 2.0, "delta": delta, "neighbors": "add-remove"}
        near = fastdp.quantiles(values, DECILES, **options, rng=Randomness(seed=5)).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(number_column, "may_gather", lambda rows: False)
            assert fastdp.quantiles(values, DECILES, **options, rng=Randomness(seed=5)).tolist() == near


def test_empty_and_tiny_columns():
    assert fastdp.quantiles([], DECILES, domain_bits=8, epsilon=1.0, neighbors="add-remove").size == 9
    assert fastdp.quantiles([7] * 1000, DECILES, domain_bits=8, epsilon=50.0).tolist() == [7] * 9
    ends = np.array([-(2**63), 2**63 - 1] * 500)
    assert fastdp.quantiles(ends, [0.25, 0.75], epsilon=50.0).tolist() == [-(2**63), 2**63 - 1]


def test_what_is_charged():
    budget = Budget(epsilon=3.0, delta=1e-6)
    values = np.arange(100)
    fastdp.quantiles(values, DECILES, epsilon=1.0, budget=budget, rng=Randomness())
    fastdp.quantiles(values, DECILES, epsilon=0.5, delta=1e-6, budget=budget)
    pure, approximate = budget.releases
    assert (pure.mechanism, approximate.mechanism) == ("quantiles", "quantiles")
    assert pure.guarantee.implies(PureDP(1.0))
    assert approximate.guarantee.implies(ApproxDP(0.5, 1e-6))
    with pytest.raises(BudgetExceeded):
        fastdp.quantiles(values, DECILES, epsilon=2.0, budget=budget, rng=Watched())


def test_progress_is_told_and_its_errors_cost_nothing():
    seen, budget = [], Budget(epsilon=1.0)
    values = np.arange(1000)
    fastdp.quantiles(values, DECILES, epsilon=1.0, progress=lambda *step: seen.append(step))
    assert seen[0] == (0, 9, "quantiles")
    assert seen[-1] == (9, 9, "")
    for name, more in (("quantiles", {"qs": DECILES}), ("quantile", {"q": 0.5}), ("median", {})):
        with pytest.raises(ZeroDivisionError):
            getattr(fastdp, name)(values, **more, epsilon=1.0, progress=lambda *step: 1 // 0, budget=budget)
    assert not budget.releases


BAD = [
    ({"qs": []}, ValueError, "qs: must hold at least one"),
    ({"qs": 0.5}, ValueError, "qs: type float"),
    ({"qs": [0.5, 1.5]}, ValueError, r"^qs\[1\]: must be between 0 and 1, both excluded$"),
    ({"qs": [0.0]}, ValueError, r"^qs\[0\]: must be between"),
    ({"qs": [1]}, ValueError, r"^qs\[0\]: must be between"),
    ({"qs": [float("nan")]}, ValueError, r"^qs\[0\]: must be between"),
    ({"qs": [[0.5]]}, ValueError, "qs"),
    ({"qs": ["a"]}, ValueError, r"^qs\[0\]: must be between"),
    ({"qs": np.full(2**17 + 1, 0.5)}, ValueError, "at most 131,072"),
    ({"values": []}, ValueError, "at least one"),
    ({"values": [1.0, float("nan")], "domain_bits": None}, DomainError, "NaN"),
    ({"values": [1.0, float("inf")], "domain_bits": None}, DomainError, "finite floats"),
    ({"values": [256]}, DomainError, "from 0 to 255"),
    ({"epsilon": 0}, ValueError, "epsilon=0"),
    ({"delta": 1}, ValueError, "delta=1"),
    ({"delta": -0.1}, ValueError, "delta=-0.1"),
    ({"neighbors": "swap"}, ValueError, "neighbors='swap'"),
    ({"progress": 3}, ValueError, "progress=3"),
]


@pytest.mark.parametrize(("change", "kind", "said"), BAD)
def test_errors_cost_nothing(change, kind, said):
    options = {"values": [1, 2, 3], "qs": [0.5], "domain_bits": 8, "epsilon": 1.0, "rng": Watched(), **change}
    budget = Budget(epsilon=1.0)
    with pytest.raises(kind, match=said):
        fastdp.quantiles(options.pop("values"), options.pop("qs"), budget=budget, **options)
    assert not budget.releases


def test_several_columns_are_one_release():
    """Two columns of a plan cost what a plan of twice the levels does."""
    shares = [Fraction(k, 10) for k in range(1, 10)]
    two = QuantilePlan.of(shares, epsilon=1.0, neighbors="add-remove", columns=2)
    assert two.each == pytest.approx(1 / 8)
    assert two.guarantee.implies(PureDP(1.0, neighbors="add-remove"))
    line = NumberLine.of(np.dtype(np.int64), 64, None, "values")
    positions = line.positions(np.arange(10_000), "raise", "values")
    found = [line.value(p) for p in draw_quantiles(positions, line, two, Randomness(seed=1).key())]
    assert worst_rank_error(np.arange(10_000), found, [float(share) for share in shares]) < 200
    assert QuantilePlan.of(shares, epsilon=0.1, delta=1e-6, columns=2).guarantee.implies(ApproxDP(0.1, 1e-6))


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastdp.quantiles(np.arange(1000), [0.5], epsilon=1.0)
