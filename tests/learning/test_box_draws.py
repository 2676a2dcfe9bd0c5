"""Boxes: the implementation has the enumerated law."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import boxes, boxes_peel, extremes
from fastdp.learning.box_parameters import BoxKeys
from fastdp.learning.boxes_interior_point import BoxInteriorPointParameters
from fastdp.learning.boxes_peel import BoxPeelParameters
from fastdp.learning.extremes import Numbers
from fastdp.learning.methods import MethodChoice
from tests import oracles
from tests.laws import check_cells
from tests.learning.boxes_oracle import (
    boxes_law,
    plan_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data


def test_cuts_are_chosen_by_their_weights():
    """Every point of a choice, in fractions; many, few or no records; losses so large that none seems possible."""
    draw = np.random.default_rng(5)
    for size, n, M, eta in itertools.product((1, 2, 7, 40), (0, 1, 3, 6), (2, 6, 10), (0.5, 3.0, 1000.0)):
        greatest = sorted(draw.integers(0, size, min(n, M)).tolist())
        choice = plan_of(M, eta).cut(greatest, size)
        levels = {p.first + j: p.level for p in choice.intervals for j in range(p.size)}
        assert sorted(levels) == list(range(size))
        assert sum(p.size for p in choice.intervals) == size
        losses = [Fraction(eta) * min(abs(sum(y > c for y in greatest) - M // 2), M // 2) for c in range(size)]
        full = size.bit_length() + 64
        for c, level in levels.items():
            assert choice._loss(c) == losses[c] - min(losses)
            assert level == full or 0 <= choice._loss(c) - level * Fraction(math.log(2)) < Fraction(7, 10)
        assert min(levels.values()) == 0, "some proposals are accepted"


class ChosenCut:
    """Stands in for a choice: cuts at the place of a record, just below it or just above."""

    def __init__(self, seen, greatest, size):
        self._seen, self._greatest, self._size = seen, greatest, size

    def draw(self, key, number):
        places = self._greatest or [self._size // 2]
        cut = places[len(places) * (number % 5) // 5] + number % 3 - 1
        self._seen.append((number, self._greatest, min(max(cut, 0), self._size - 1)))
        return self._seen[-1][2]


@pytest.mark.parametrize("key_bits", [1, 32])
@pytest.mark.parametrize("n", [0, 1, 8, 40, 300])
def test_every_cut_sees_who_is_left(n, key_bits, monkeypatch):
    """The M outermost of those that no cut before has deleted, or all, on every side of four columns: theorem 3."""
    d, M, bits = 4, 12, 4
    for module in (boxes_peel, extremes):
        monkeypatch.setattr(module, "KEY_BITS", key_bits)
    draw = np.random.default_rng(n)
    X, y = draw.integers(0, 1 << bits, (2 * n + 1, d)), draw.permutation(2 * n + 1) < n
    numbers, seen, plan = Numbers(X, y, bits, None, "raise"), [], plan_of(M, 1.0)
    numbers.read()
    monkeypatch.setattr(BoxPeelParameters, "cut", lambda self, greatest, size: ChosenCut(seen, greatest, size))
    keys = BoxKeys(Randomness(seed=n).key(), Randomness(seed=n).key(), Randomness(seed=n + 1).key())
    sides = [plan.choose_sides(numbers, i, keys) for i in range(d)]

    u = [word >> np.uint64(64 - key_bits) for word in oracles.words.stream_words(keys.records.tolist(), 0, 0, len(X))]
    places = [[(int(x) << key_bits) + int(k) for x in row] for row, k in zip(X, u, strict=True)]
    left, size = [j for j in range(len(X)) if y[j]], 1 << bits + key_bits
    for i in range(d):
        for side in (0, 1):
            number, greatest, cut = seen[2 * i + side]
            assert number == 2 * i + side
            assert sides[i][side] == (cut if side else size - 1 - cut) >> key_bits
            at = {j: places[j][i] if side else size - 1 - places[j][i] for j in left}
            assert greatest == sorted(at.values())[-M:]
            left = [j for j in left if at[j] <= cut]


INSTANCES = [
    ("peel", 1, 3, [(0,), (1,), (1,)], plan_of(2, 0.8)),
    ("peel", 1, 4, [(1,)], plan_of(4, 1.0, threshold=1)),
    ("peel", 2, 2, [(0, 1), (1, 1), (1, 0)], plan_of(2, 0.9)),
    ("peel", 1, 2, [], plan_of(2, 1.0)),
    ("interior-point", 1, 4, [(0,), (1,), (1,), (2,), (3,)], plan_of(3, 0.8, threshold=4)),
    ("interior-point", 1, 4, [(2,)], plan_of(3, 0.8)),
    ("interior-point", 2, 3, [(0, 1), (1, 2), (1, 0), (2, 2)], plan_of(2, 0.9)),
]


@pytest.mark.parametrize(("method", "d", "size", "people", "plan"), INSTANCES)
def test_boxes_are_learned_by_the_law(method, d, size, people, plan, monkeypatch):
    """By `learn_box`, with keys of one bit, at a false-alarm rate of 1e-9; a wrong eta and a wrong test are refuted."""
    for module in (boxes_peel, extremes):
        monkeypatch.setattr(module, "KEY_BITS", 1)
    if method == "interior-point":
        plan = BoxInteriorPointParameters(**vars(plan))
    choice = MethodChoice(method, plan, guarantee=plan.guarantee)
    monkeypatch.setattr(boxes, "choose_method", lambda methods, method, problem, realizable: choice)
    if size == 3:  # lines have a power of two of positions, or are lines of floats
        monkeypatch.setattr(extremes.NumberLine, "of", classmethod(lambda cls, *rest, **named: cls(2, 0, 2)))
    bits = 1 if size == 2 else 2
    X = np.array([*people, *[(0,) * d] * 3], np.int64).reshape(-1, d)
    y = np.arange(len(X)) < len(people)
    order = np.random.default_rng(1).permutation(len(X))
    X, y, rng = X[order], y[order], Randomness(seed=len(people))
    drawn = defaultdict(int)
    for _ in range(4000):
        drawn[fastdp.learn_box(X, y, domain_bits=bits, epsilon=1.0, method=method, rng=rng).intervals] += 1

    def verdict(plan):
        law = boxes_law(method, people, d, size, plan, 1 if method == "peel" else 0)
        assert set(drawn) <= set(law)
        return check_cells([drawn[box] for box in law], list(law.values()))

    assert verdict(plan), str(verdict(plan))
    far = len(people) + 4
    assert not verdict(plan_of(plan.slice, plan.eta, far)), "a wrong test passes"
    if people:
        assert not verdict(plan_of(plan.slice, 3 * plan.eta, plan.test.threshold)), "a wrong law passes"


def test_the_most_extreme_of_many_blocks():
    """With ties in one place, for 1 and 2 threads; then those beyond two cuts are deleted."""
    draw = np.random.default_rng(0)
    X = np.column_stack([draw.integers(0, 50, 200_000), draw.integers(0, 2**40, 200_000)])
    y = draw.random(200_000) < 0.3
    key = Randomness(seed=3).key()
    u = np.array(oracles.words.stream_words(key.tolist(), 0, 0, 200), np.uint64) >> np.uint64(32)
    threads = fastdp.get_num_threads()
    found = []
    try:
        for count in (1, 2):
            fastdp.set_num_threads(count)
            numbers = Numbers(X, y, 64, None, "raise")
            numbers.read()
            for i in (0, 1):
                places = sorted(zip(*extremes_of_all(numbers, i, key), strict=True))
                assert [k for _, k in extremes_of_first(numbers, i, key, 200)] == u[y[:200]].tolist()
                for m in (1, 100, 70_000):
                    least, greatest = numbers.extremes(i, m, key)
                    assert sorted(zip(*map(np.ndarray.tolist, least), strict=True)) == places[:m]
                    assert sorted(zip(*map(np.ndarray.tolist, greatest), strict=True)) == places[-m:]
                    assert least.fine() == [x << 32 | k for x, k in places[:m]]
            low, high = places[1000], places[-1000]
            numbers.delete_beyond(1, low[0] << 32 | low[1], high[0] << 32 | high[1], key)
            rest = sorted(zip(*extremes_of_all(numbers, 1, key), strict=True))
            assert rest == places[1000:-999]
            found.append(places)
    finally:
        fastdp.set_num_threads(threads)
    assert found[0] == found[1]


def extremes_of_all(numbers, i, key):
    return map(np.ndarray.tolist, numbers.extremes(i, numbers.n, key).least)


def extremes_of_first(numbers, i, key, n):
    """(position, key) of the positives among the first n records, in their order."""
    block = numbers.rows._block(0, n)
    part = numbers.lines.places(block, i, np.flatnonzero(numbers.labels(block)), key)
    return zip(*map(np.ndarray.tolist, part), strict=True)
