"""The exponential mechanism over all boxes: every proposal and every acceptance of tiny domains, the law that is drawn
from, what lies far apart, what comes in piles, and what it costs."""

from __future__ import annotations

import hashlib
import itertools
import math
import warnings
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp.kernels import boxes as kernels
from fastdp.learning.all_boxes import MOST_WORK, Axis, BoxChoice, Wheel, class_size, work_of
from fastdp.randomness import exact_draws as exact
from tests import oracles
from tests.laws import check_cells

DECIMAL = Context(prec=60, Emin=-999999, Emax=999999)


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def records(n, bits, seed, positives=0.5):
    draw = np.random.default_rng(seed)
    keys = np.stack([draw.integers(0, (1 << b) - 1, n, dtype=np.uint64, endpoint=True) for b in bits], axis=1)
    return keys, draw.random(n) < positives


# --- the oracle


def all_boxes(bits):
    sides = [[(a, b) for a in range(1 << k) for b in range(a, 1 << k)] for k in bits]
    return [None, *itertools.product(*sides)]


def errors_of(box, keys, labels):
    """Positives outside and negatives inside."""
    wrong = 0
    for key, label in zip(keys.tolist(), labels.tolist(), strict=True):
        inside = box is not None and all(a <= x <= b for x, (a, b) in zip(key, box, strict=True))
        wrong += inside != label
    return wrong


def law_of(keys, labels, bits, eta):
    scores = [-errors_of(box, keys, labels) for box in all_boxes(bits)]
    return oracles.selection.exponential_law(oracles.selection.choice_weights(scores, eta, 200))


# --- every path of a draw


def decimal(x):
    return DECIMAL.divide(Decimal(x.numerator), Decimal(x.denominator))


def proposals_of(choice):
    """(probability, proposal) of all that can be proposed: every answer to every question that is asked."""
    paths = [((), Fraction(1))]
    while paths:
        answers, probability = paths.pop()
        asked = []

        def pick(k, wheel, answers=answers, asked=asked):
            if k < len(answers):
                return answers[k]
            if not asked:
                asked.append(wheel)
            return 0

        proposal = choice._propose(pick)
        if not asked:
            yield probability, proposal
            continue
        (wheel,) = asked
        shares = [wheel.weight(i) for i in range(len(wheel._sums))]
        assert sum(shares) == wheel.total
        assert min(shares) >= 1
        paths += [((*answers, i), probability * Fraction(share, wheel.total)) for i, share in enumerate(shares)]


def acceptance_of(choice, proposal, monkeypatch):
    """What the coin is compared with."""
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(exact, "is_below_product", lambda coin, *parts: asked.append(parts))
        choice._accepts(proposal, None)
    ((factor, doublings, exponent),) = asked
    power = DECIMAL.add(decimal(exponent), DECIMAL.multiply(Decimal(doublings), DECIMAL.ln(Decimal(2))))
    return DECIMAL.multiply(decimal(factor), DECIMAL.exp(power))


INSTANCES = [
    ((0,), 3, "1/3"), ((1,), 5, "1/2"), ((3,), 0, "1"), ((3,), 1, "1"), ((3,), 9, "1/3"), ((3,), 40, "7/5"),
    ((4,), 12, "1/1000000000000"), ((3,), 12, "40"), ((3,), 9, "100000/3"),
    ((0, 0), 2, "1"), ((0, 2), 4, "1"), ((2, 0), 4, "1"), ((1, 1), 3, "2"), ((2, 2), 0, "1"), ((2, 2), 1, "1/2"),
    ((2, 2), 6, "1/3"), ((2, 1), 12, "1"), ((1, 3), 12, "1/7"), ((2, 2), 30, "1"), ((3, 2), 8, "50"),
    ((2, 2), 9, "1/1000000000000"), ((2, 2), 9, "3000"),
]  # fmt: skip


@pytest.mark.parametrize(("bits", "n", "eta"), INSTANCES)
@pytest.mark.parametrize("positives", [0.0, 0.5, 1.0])
def test_a_proposal_times_its_acceptance_is_the_weight_for_every_box(bits, n, eta, positives, monkeypatch):
    """No acceptance is above 1, and every box of the class is had in one way, with its exact weight."""
    keys, labels = records(n, bits, 17 * n + len(bits), positives)
    eta = Fraction(eta)
    choice = BoxChoice(keys, labels, bits, eta)
    found, accepted = {}, Decimal(0)
    for probability, proposal in proposals_of(choice):
        acceptance = acceptance_of(choice, proposal, monkeypatch)
        assert 0 < acceptance <= 1
        chance = DECIMAL.multiply(decimal(probability), acceptance)
        accepted += chance
        for place in range(proposal.boxes):
            box = choice._box(proposal, place)
            assert box not in found
            found[box] = DECIMAL.divide(chance, Decimal(proposal.boxes))
    assert found.keys() == set(all_boxes(bits))
    assert len(found) == class_size(bits)
    assert accepted > Decimal("0.98")
    best = min(errors_of(box, keys, labels) for box in found)
    whole = max(found.values())
    for box, chance in found.items():
        weight = DECIMAL.exp(decimal(-eta * (errors_of(box, keys, labels) - best)))
        assert abs(DECIMAL.divide(chance, DECIMAL.multiply(whole, weight)) - 1) < Decimal("1e-40"), box


@pytest.mark.parametrize(("bits", "n", "eta"), [((64,), 6, "1"), ((64, 64), 4, "1/3"), ((64, 3), 5, "2")])
def test_positions_far_apart_are_counted_exactly(bits, n, eta, monkeypatch):
    """Keys at both ends of 64 bits, neighbours among them: the boxes of all proposals are those of the class."""
    keys, labels = records(n, bits, 5)
    keys[0], keys[1] = 0, [(1 << b) - 1 for b in bits]
    keys[2] = keys[1] - np.uint64(1)
    choice = BoxChoice(keys, labels, bits, Fraction(eta))
    positives, draw = int(labels.sum()), np.random.default_rng(0)
    unit, boxes = None, 0
    for probability, proposal in proposals_of(choice):
        boxes += proposal.boxes
        acceptance = acceptance_of(choice, proposal, monkeypatch)
        assert 0 < acceptance <= 1
        weight = DECIMAL.multiply(Decimal(proposal.boxes), DECIMAL.exp(decimal(-Fraction(eta) * proposal.net)))
        ratio = DECIMAL.divide(DECIMAL.multiply(decimal(probability), acceptance), weight)
        unit = unit or ratio
        assert abs(ratio / unit - 1) < Decimal("1e-40")
        some = {0, 1, proposal.boxes - 1, *(int(u * proposal.boxes) for u in map(Fraction, draw.random(4).tolist()))}
        found = {choice._box(proposal, place) for place in some if place < proposal.boxes}
        assert len(found) == len([place for place in some if place < proposal.boxes])
        for box in found:
            assert box is None or all(0 <= a <= b < 1 << k for (a, b), k in zip(box, bits, strict=True))
            assert errors_of(box, keys, labels) == positives + proposal.net
    assert boxes == class_size(bits)


# --- what is drawn


@pytest.mark.parametrize(
    ("bits", "n", "eta"), [((3,), 12, "1/3"), ((3,), 1, "2"), ((2, 1), 8, "1/2"), ((1, 2), 8, "1/2"), ((2,), 0, "1")]
)
def test_boxes_are_drawn_by_the_law(bits, n, eta):
    """At a false-alarm rate of 1e-9; eta off by 3/2 and 2/3 is refuted wherever there are records."""
    keys, labels = records(n, bits, 3)
    eta = Fraction(eta)
    choice, rng = BoxChoice(keys, labels, bits, eta), seeded(21)
    place = {box: i for i, box in enumerate(all_boxes(bits))}
    counts = np.bincount([place[choice.draw(rng.key())] for _ in range(8000)], minlength=len(place))
    # boxes with the same errors together: fewer cells, more power
    wrong = [errors_of(box, keys, labels) for box in place]
    groups = {e: i for i, e in enumerate(sorted(set(wrong)))}

    def by_errors(cells):
        sums = [Fraction(0)] * len(groups)
        for e, cell in zip(wrong, cells, strict=True):
            sums[groups[e]] += cell
        return sums

    verdict = check_cells(counts, law_of(keys, labels, bits, eta))
    assert verdict, str(verdict)
    grouped = [int(c) for c in by_errors(counts.tolist())]
    verdict = check_cells(grouped, by_errors(law_of(keys, labels, bits, eta)))
    assert verdict, str(verdict)
    if n >= 8:
        for off in (Fraction(3, 2), Fraction(2, 3)):
            assert not check_cells(grouped, by_errors(law_of(keys, labels, bits, eta * off))), "a wrong law passes"


def test_numbers_of_a_draw_are_apart():
    """Every question of every trial reads words of its own."""
    keys, labels = records(30, (16, 16), 1)
    choice = BoxChoice(keys, labels, (16, 16), Fraction(1, 2))
    seen = []
    trials = iter([False, False, True])

    class Watched(BoxChoice):
        def _accepts(self, proposal, coin):
            coin.to(200)
            return next(trials)

    choice.__class__ = Watched
    from fastdp.learning import all_boxes

    source = all_boxes.word_source

    def watched(key):
        words = source(key)

        def word(stream, index):
            seen.append((stream, index))
            return words(stream, index)

        return word

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_boxes, "word_source", watched)
        choice.draw(seeded(2).key())
    assert len(set(seen)) == len(seen)
    assert {index for _, index in seen} == {0, 1, 2}


def test_a_huge_eta_finds_a_best_box():
    for bits in ((5,), (3, 3)):
        keys, labels = records(40, bits, 8, 0.6)
        best = min(errors_of(box, keys, labels) for box in all_boxes(bits))
        choice = BoxChoice(keys, labels, bits, Fraction(2**40))
        for seed in range(5):
            assert errors_of(choice.draw(seeded(seed).key()), keys, labels) == best


def test_piles_of_records():
    """10^5 records in one place: their weights are out of any float's range."""
    for bits in ((64,), (64, 64)):
        keys = np.full((100_000, len(bits)), 12345, np.uint64)
        inside = BoxChoice(keys, np.ones(len(keys), bool), bits, Fraction(1)).draw(seeded().key())
        assert all(a <= 12345 <= b for a, b in inside)
        outside = BoxChoice(keys, np.zeros(len(keys), bool), bits, Fraction(1)).draw(seeded().key())
        assert outside is None or any(not a <= 12345 <= b for a, b in outside)
    keys = np.repeat(np.array([[5], [6], [7]], np.uint64), 50_000, axis=0)  # cut out the middle
    labels = np.repeat([True, False, True], [50_000, 50_000, 50_000])
    labels[:100] = False
    drawn = BoxChoice(keys, labels, (64,), Fraction(1)).draw(seeded().key())
    assert drawn[0][0] == 7
    assert drawn[0][1] >= 7


def test_a_rectangle_is_learned_from_a_few_thousand_records():
    """What theorem 3 guarantees at beta = 1e-9."""
    bits, n, eta = (16, 16), 2000, Fraction(1, 2)
    keys, _ = records(n, bits, 4)
    labels = ((keys > 10_000) & (keys < 40_000)).all(axis=1)
    drawn = BoxChoice(keys, labels, bits, eta).draw(seeded(1).key())
    wrong = errors_of(drawn, keys, labels)
    assert wrong <= (math.log(class_size(bits)) + math.log(1e9)) / eta
    assert wrong < 60


def test_results_depend_on_neither_threads_nor_the_order_of_records():
    bits = (20, 12)
    keys, labels = records(300, bits, 6)
    order = np.random.default_rng(0).permutation(300)
    threads, seen = fastdp.get_num_threads(), []
    try:
        drawn = set()
        for count, places in ((1, slice(None)), (3, order)):
            fastdp.set_num_threads(count)
            choice = BoxChoice(keys[places], labels[places], bits, Fraction(1, 9), lambda *now: seen.append(now))
            drawn.add(tuple(choice.draw(seeded(s).key()) for s in range(10)))
    finally:
        fastdp.set_num_threads(threads)
    assert len(drawn) == 1
    steps = [(done, 32, "boxes") for done in range(32)]  # whatever the number of values
    assert seen == 2 * [*steps, (32, 32, "")]


def fingerprint():
    """Of draws, for a CPU of another kind."""
    digest = hashlib.sha256()
    for bits in ((64,), (40, 64)):
        choice = BoxChoice(*records(200, bits, 9), bits, Fraction(1, 3))
        digest.update(repr([choice.draw(seeded(s).key()) for s in range(20)]).encode())
        digest.update(choice._starts._sums.tobytes())
    return digest.hexdigest()


def test_other_machines_draw_the_same_boxes(fingerprint_elsewhere):
    assert fingerprint_elsewhere(__name__) == fingerprint()


# --- privacy: by enumeration, with the errors as they are


@pytest.mark.parametrize(("bits", "n"), [((2,), 2), ((1, 1), 2)])
def test_neighbours_differ_by_no_more_than_is_claimed(bits, n):
    """e^eta under add-remove, e^(2 eta) under replace-one; and not by less, in the second case."""
    eta = Fraction(1, 2)
    people = [*itertools.product(itertools.product(*(range(1 << b) for b in bits)), (False, True))]

    def law(rows):
        keys = np.array([key for key, _ in rows], np.uint64).reshape(len(rows), len(bits))
        return np.array([float(p) for p in law_of(keys, np.array([label for _, label in rows], bool), bits, eta)])

    laws = {rows: law(rows) for rows in itertools.combinations_with_replacement(people, n)}
    fewer = {rows: law(rows) for rows in itertools.combinations_with_replacement(people, n - 1)}
    widest = 0.0
    for rest, less in fewer.items():
        near = [laws[tuple(sorted((*rest, who)))] for who in people]
        for more in near:
            assert np.abs(np.log(more / less)).max() <= float(eta) + 1e-9
        for one, other in itertools.permutations(near, 2):
            widest = max(widest, float(np.log(one / other).max()))
    assert float(eta) < widest <= 2 * float(eta) + 1e-9


# --- the parts


@pytest.mark.parametrize("seed", range(6))
def test_a_coin_is_compared_with_a_product(seed):
    """Just below and just above, with parts far out of any float's range."""
    draw = np.random.default_rng(seed)
    many = Context(prec=400, Emin=-999999, Emax=999999)
    for size in (1, 30, 10**4, 3 * 10**8):
        factor = Fraction(int(draw.integers(1, 2**62)), int(draw.integers(1, 2**62))) ** int(draw.integers(1, 9))
        doublings = int(draw.integers(-size, size + 1))
        target = Fraction(int(draw.integers(1, 2**60)), 2**60)  # about what the product shall be
        rest = DECIMAL.ln(DECIMAL.divide(decimal(target), decimal(factor)))
        exponent = Fraction(DECIMAL.subtract(rest, DECIMAL.multiply(Decimal(doublings), DECIMAL.ln(Decimal(2)))))
        power = many.add(
            many.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)),
            many.multiply(Decimal(doublings), many.ln(Decimal(2))),
        )
        product = many.multiply(many.divide(Decimal(factor.numerator), Decimal(factor.denominator)), many.exp(power))
        assert abs(product / decimal(target) - 1) < Decimal("1e-20")
        place = int(many.multiply(product, Decimal(2**200)))
        for off, below in ((-1, True), (-(2**100), True), (1, False), (2**100, False)):
            coin = exact.Uniform(place + off, 200, itertools.repeat(2**64 - 1 if off < 0 else 0))
            assert exact.is_below_product(coin, factor, doublings, exponent) is below
    assert exact.is_below_product(exact.Uniform((1 << 64) - 1, 64, iter([5])), Fraction(8), -3, Fraction(0))


@pytest.mark.parametrize("bits", [1, 40, 128, 500])
def test_bounds_of_ln_2(bits):
    low, high = exact.ln2_bounds(bits)
    below, above = oracles.numbers.exp_interval(low, bits + 20)[0], oracles.numbers.exp_interval(high, bits + 20)[1]
    assert below < 2 < above
    assert high - low < Fraction(1, 2**bits)


@pytest.mark.parametrize("eta", ["1/1000000000000000000000", "1/3", "1/2", "17", "123456789/10", "281474976710"])
def test_powers_are_as_exact_as_is_claimed(eta):
    n, eta = 300, Fraction(eta)
    choice = BoxChoice(np.zeros((n, 1), np.uint64), np.ones(n, bool), (1,), eta)
    values, levels = choice._powers.tolist(), choice._power_levels.tolist()
    assert all(0.5 <= value <= 1 for value in values)
    context = Context(prec=60, Emin=-999999, Emax=999999)
    for c in range(-n, n + 1):
        power = context.subtract(decimal(-eta * c), context.multiply(levels[n + c], context.ln(Decimal(2))))
        assert abs(Decimal(values[n + c]) / context.exp(power) - 1) <= Decimal(2.0**-52 * (abs(c) + 1))


def test_suffix_sums():
    draw = np.random.default_rng(2)
    for spread in (3, 100, 3000):
        values, levels = 2.0 ** draw.uniform(-1, 64, 50), draw.integers(-spread, spread, 50)
        out, out_levels = np.empty(50), np.empty(50, np.int64)
        kernels.sum_suffixes_into(values, levels, out, out_levels)
        pairs = [Fraction(v) * Fraction(2) ** k for v, k in zip(values.tolist(), levels.tolist(), strict=True)]
        for i in range(50):
            right = sum(pairs[i:])
            found = Fraction(float(out[i])) * Fraction(2) ** int(out_levels[i])
            assert abs(found / right - 1) <= Fraction(100, 2**53)


@pytest.mark.parametrize(("n", "bits", "eta"), [(25, (3, 4), "1/2"), (40, (6, 64), "7"), (12, (64, 64), "1000")])
def test_sweeps_sum_up_all_boxes(n, bits, eta):
    """Of every range of values of the first axis, in fractions."""
    keys, labels = records(n, bits, n)
    choice = BoxChoice(keys, labels, bits, Fraction(eta))
    first, second = Axis(keys[:, 0], bits[0]), Axis(keys[:, 1], bits[1])
    powers = {
        c: oracles.numbers.exp_interval(Fraction(eta) * (c - n), 200)[0] for c in range(-n, n + 1)
    }  # times e^(-eta n); c counts the positives less the negatives
    a1s = range(len(first))
    for a1 in a1s:
        sums, levels = choice._sweep(a1, choice._scratch())
        for b1 in range(a1, len(first)):
            net = [0] * len(second)
            for x, y, label in zip(first.ranks.tolist(), second.ranks.tolist(), labels.tolist(), strict=True):
                if a1 <= x <= b1:
                    net[y] += 1 if label else -1
            right = Fraction(0)
            for a2 in range(len(second)):
                inside = 0
                for b2 in range(a2, len(second)):
                    inside += net[b2]
                    right += first.count(a1, b1) * second.count(a2, b2) * powers[inside]
            found = DECIMAL.multiply(
                Decimal(float(sums[b1 - a1])),
                DECIMAL.exp(DECIMAL.subtract(
                    DECIMAL.multiply(int(levels[b1 - a1]), DECIMAL.ln(Decimal(2))), decimal(Fraction(eta) * n)
                )),
            )  # fmt: skip
            assert abs(DECIMAL.divide(found, decimal(right)) - 1) < Decimal("1e-12")


def test_a_wheel_rounds_up_to_whole_units():
    values, levels = np.array([1.0, 3.0, 0.5, 1.0, 2.0**60]), np.array([0, -1, -5000, 50, -40])
    wheel = Wheel(values, levels)
    ends = []
    for i, (value, level) in enumerate(zip(values.tolist(), levels.tolist(), strict=True)):
        exactly = Fraction(value) * Fraction(2) ** level / Fraction(2) ** wheel.unit
        assert wheel.weight(i) - 1 <= exactly < wheel.weight(i)
        ends.append(sum(wheel.weight(j) for j in range(i + 1)))
        assert wheel.at(ends[-1] - 1) == i
        assert wheel.at(ends[-1] - wheel.weight(i)) == i
    assert ends[-1] == wheel.total < 2**63


# --- what it costs


@pytest.mark.parametrize("bits", [(3, 3), (4, 9), (9, 4), (64, 64), (1, 12)])
@pytest.mark.parametrize("shape", ["even", "last", "sorted"])
def test_work_is_bounded_by_public_numbers(bits, shape):
    """Nodes that are made anew, counted: for records that lie evenly, or mostly in the last group."""
    n = 60
    keys, labels = records(n, bits, 1)
    if shape == "last":
        keys[n // 2 :, 0] = (1 << bits[0]) - 1
        keys[n // 2 :, 1] = [i % (1 << bits[1]) for i in range(n // 2)]
    elif shape == "sorted":
        keys = np.array([[min(i, (1 << b) - 1) for b in bits] for i in range(n)], np.uint64)
    choice = BoxChoice(keys, labels, bits, Fraction(1))
    size, nodes = len(choice._values) // 2, 0
    for a in range(len(choice._first)):
        for b in range(a, len(choice._first)):
            above = {size + int(p) for p in choice._cells[0, choice._offsets[b] : choice._offsets[b + 1]]}
            while above := {k >> 1 for k in above if k > 1}:
                nodes += len(above)
    assert nodes <= work_of(n, bits)


def test_limits_are_about_what_ten_seconds_take():
    assert work_of(10_000, (64, 64)) < MOST_WORK < work_of(12_000, (64, 64))
    assert work_of(100_000, (9, 9)) < MOST_WORK
    assert work_of(8 * 10**6, (64,)) < MOST_WORK
    assert work_of(0, (64, 64)) == 0
    assert class_size((64,)) == 2**127 + 2**63 + 1
    assert class_size((1, 1)) == 10


@pytest.mark.parametrize(("n", "bits"), [(100_000, (64,)), (1000, (64, 64))])
def test_many_records_take_a_fraction_of_that(n, bits):
    """By the bound of the work, which the nodes of a choice keep; and they are drawn from."""
    assert work_of(n, bits) < MOST_WORK / 20
    BoxChoice(*records(n, bits, 0), bits, Fraction(1, 2)).draw(seeded().key())
