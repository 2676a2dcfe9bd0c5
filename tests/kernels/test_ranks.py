"""A choice by rank (kernels/ranks.py) against Python's integers and the definition of a choice."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from fastdp import Randomness
from fastdp.kernels import ranks as kernels
from fastdp.mechanisms import rank_selection
from fastdp.mechanisms.line_weights import LineWeights, line_weights
from fastdp.mechanisms.rank_selection import RankLaw, choose_by_rank, draw_by_rank, sort_ranks
from fastdp.mechanisms.weighted_intervals import WeightedInterval
from fastdp.records.number_line import NumberLine

LAST = 2**64 - 1


def limbs(x):
    return [x >> 64 * i & LAST for i in range(kernels.LIMBS)]


def integer(array):
    return sum(int(limb) << 64 * i for i, limb in enumerate(array.tolist()))


def test_sums_of_weights_are_those_of_integers():
    draw = np.random.default_rng(1)
    sums, wanted = np.zeros((61, kernels.LIMBS), np.uint64), [0]
    for i in range(60):
        size, shift = int.from_bytes(draw.bytes(8)) >> int(draw.integers(0, 64)), int(draw.integers(0, 129))
        size = 2**64 if i % 7 == 0 else size
        kernels.add_weight(sums, i, np.uint64(size >> 64), np.uint64(size & LAST), shift)
        wanted.append(wanted[-1] + (size << shift))
        assert integer(sums[i + 1]) == wanted[-1]
    for _ in range(500):
        place = int.from_bytes(draw.bytes(32)) % wanted[-1]
        if draw.random() < 0.3:
            place = wanted[int(draw.integers(0, 60))] - int(draw.random() < 0.5)
        if place >= 0:
            found = kernels.interval_at(sums, 60, np.array(limbs(place), np.uint64))
            assert wanted[found] <= place < wanted[found + 1]


def test_places_are_those_of_integers():
    """And more bits are asked for exactly where they could matter, which is next to multiples of 1 / total."""
    draw, seen = np.random.default_rng(2), set()
    for _ in range(3000):
        total = 1 + (int.from_bytes(draw.bytes(32)) >> int(draw.integers(1, 256)))
        count = 1 + -(-total.bit_length() // 64)
        bits = 64 * count
        u = int.from_bytes(draw.bytes(8 * count))
        if draw.random() < 0.5:
            u = max(0, (int(draw.integers(1, 9)) << bits) // total - int(draw.integers(0, 2))) % 2**bits
        words = np.array([u >> 64 * (count - 1 - i) & LAST for i in range(count)], np.uint64)
        place = np.zeros(kernels.LIMBS, np.uint64)
        is_decided = kernels.share_into(np.array(limbs(total), np.uint64), words, place)
        assert integer(place) == total * u >> bits
        assert is_decided == (total * u >> bits == total * (u + 1) - 1 >> bits)
        seen.add(bool(is_decided))
    assert seen == {False, True}


CASES = {
    "everywhere": lambda draw, m, last: draw.integers(0, last, m, np.uint64, endpoint=True),
    "narrow": lambda draw, m, last: np.minimum(draw.integers(0, 40, m, np.uint64), np.uint64(last)),
    "one place": lambda draw, m, last: np.full(m, draw.integers(0, last, dtype=np.uint64, endpoint=True)),
    "ends": lambda draw, m, last: draw.choice(np.array([0, last], np.uint64), m),
    "the last ones": lambda draw, m, last: (
        np.uint64(last) - np.minimum(draw.integers(0, 9, m, np.uint64), np.uint64(last))
    ),
}
LASTS = (0, 1, 6, 255, 2**32 - 1, 2**63 + 5, LAST)


def problems(name):
    """Values, and a law of a choice among the points of a line."""
    draw = np.random.default_rng(3)
    for i in range(80):
        last, most = LASTS[i % len(LASTS)], (0, 1, 2, 9, 60, 3000)[int(draw.integers(0, 6))]
        tau = Fraction(1, 2) if i % 3 else Fraction(int(draw.integers(1, 1000)), 1000)
        eta = Fraction(float(10 ** draw.uniform(-4, 3)))
        weights = (None, *map(line_weights, LINES), few_pieces(draw, last))[i % 5]
        last = last if weights is None else weights.last
        yield CASES[name](draw, int(draw.integers(0, most + 1)), last), RankLaw(tau, last, eta, weights)


LINES = [NumberLine.of(np.dtype(kind), 64, None, "values") for kind in (np.int64, np.uint64, np.float64)]


def few_pieces(draw, last):
    firsts = sorted({0, *(int.from_bytes(draw.bytes(8)) % (last + 1) for _ in range(4))})
    return LineWeights(tuple(firsts), (0, *draw.integers(0, 50, len(firsts) - 1).tolist()), last)


@pytest.mark.parametrize("name", CASES)
def test_intervals_are_those_of_the_definition(name):
    for values, law in problems(name):
        given = law.for_kernel
        intervals = np.zeros((2 * kernels.MOST_STEPS + given.line.shape[0] - 1, kernels.COLUMNS), np.uint64)
        made = choose_by_rank(values.copy(), law)
        ends = sort_ranks(values, *law.ranks_read(values.size))
        count, least = kernels.find_intervals_into(values, *ends, given.a, given.b, given.steps, given.line, intervals)
        rows = intervals[:count].tolist()
        found = [(first, 1 if side else -1, (high << 64) + low, level) for first, side, high, low, level, _ in rows]
        assert [WeightedInterval(*each) for each in found] == [WeightedInterval(*each) for each in made.intervals]
        assert [made._open - level + weight for *_, level, weight in rows] == made._finer
        for z, *_ in found:
            z_loss = kernels.loss_of_point(values, *ends, given.a, given.b, np.uint64(z))
            assert law.rate * (z_loss - least) == made._loss(z)


@pytest.mark.parametrize("name", CASES)
def test_choices_are_those_of_the_definition(name, monkeypatch):
    """At exponents from 1e-4 to 1e3; none of these is left to the definition."""
    asked = []
    monkeypatch.setattr(rank_selection, "choose_by_rank", lambda *given: asked.append(given))
    for i, (values, law) in enumerate(problems(name)):
        key = Randomness(seed=i).key()
        made = choose_by_rank(values.copy(), law)
        for choice in (0, 1, 2**20):
            assert draw_by_rank(values.copy(), law, lambda key=key: key, choice) == made.draw(key, choice)
    assert not asked


def test_what_the_kernel_leaves_open_is_left_to_the_definition(monkeypatch):
    values, law, key = (
        np.arange(20, dtype=np.uint64),
        RankLaw(Fraction(1, 2), 255, Fraction(1)),
        Randomness(seed=1).key(),
    )
    wanted = draw_by_rank(values.copy(), law, lambda: key)
    module = type("kernels", (), {"choose_point": staticmethod(lambda *given: (False, 0))})
    monkeypatch.setattr(rank_selection, "_kernels", lambda: module)
    assert draw_by_rank(values, law, lambda: key) == wanted


@pytest.mark.parametrize(
    ("values", "law"),
    [
        (np.arange(4).astype(object), RankLaw(Fraction(1, 2), 2**70, Fraction(1))),  # a long line
        (np.arange(4).astype(object), RankLaw(Fraction(1, 2), 255, Fraction(1))),
        (np.arange(4, dtype=np.uint64), RankLaw(Fraction(1, 2), 255, Fraction(1, 2**70))),  # wide gaps
        (np.arange(4, dtype=np.uint64), RankLaw(Fraction(2**60 - 1, 2**60), 255, Fraction(1))),  # large losses
    ],
)
def test_what_the_kernel_does_not_hold_is_left_to_the_definition(values, law, monkeypatch):
    monkeypatch.setattr(rank_selection, "_kernels", None)
    key = Randomness(seed=5).key()
    assert draw_by_rank(values.copy(), law, lambda: key) == choose_by_rank(values, law).draw(key)


def test_intervals_hold_places_as_bisect_has_them():
    """An end belongs to the interval that follows."""
    sums = np.zeros((4, kernels.LIMBS), np.uint64)
    sums[:, 0] = 0, 3, 5, 9
    for place in range(9):
        found = kernels.interval_at(sums, 3, np.array(limbs(place), np.uint64))
        assert found == bisect_right([3, 5, 9], place)
