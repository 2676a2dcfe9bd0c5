"""Cuts of ordered records (kernels/cuts.py) against Python's integers and the definition of a choice."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from fastdp import Randomness
from fastdp.kernels import cuts as kernels
from fastdp.kernels.compile import jit
from fastdp.mechanisms import quantile_draws
from fastdp.mechanisms.counted_quantiles import CountedPlan, Split
from fastdp.mechanisms.cut_line import LOWEST, cut_line
from fastdp.mechanisms.cut_records import CutRecords
from fastdp.mechanisms.quantile_draws import draw_quantiles
from fastdp.mechanisms.quantile_plan import QuantilePlan
from fastdp.records.number_line import NumberLine

LINES = [(np.int64, 64), (np.uint64, 64), (np.int64, 20), (np.int64, 7), (np.float64, 64), (np.float32, 32)]


def line_of(dtype, bits):
    return NumberLine.of(np.dtype(dtype), bits, None, "values")


def halves(x):
    return np.uint64(x >> 64), np.uint64(x & 2**64 - 1)


@jit
def _share(high, low, u, v):
    return kernels.share_of_wide(high, low, u, v)


@jit
def _shifts(value, shift, high, low):
    return kernels.shifted_left(value, shift), kernels.shifted_right(high, low, shift)


def test_wide_arithmetic_is_that_of_integers():
    """Products of 128 by 128 bits, shifts by 0 to 127, for numbers of all lengths."""
    draw = np.random.default_rng(1)
    for _ in range(3000):
        size = int.from_bytes(draw.bytes(16)) >> int(draw.integers(0, 128))
        part = int.from_bytes(draw.bytes(16)) if draw.random() < 0.8 else 2**128 - 1 - int(draw.integers(0, 3))
        high, low, open_ = _share(*halves(size), *halves(part))
        assert (int(high) << 64) + int(low) == size * part >> 128
        assert open_ == (size > 0 and size * part >> 128 != (size * (part + 1)) >> 128)
        value, shift = size & 2**64 - 1, int(draw.integers(0, 128))
        (high, low), right = _shifts(np.uint64(value), shift, *halves(part))
        assert (int(high) << 64) + int(low) == value << shift & 2**128 - 1
        assert int(right) == part >> shift & 2**64 - 1


@pytest.mark.parametrize(("dtype", "bits"), LINES)
def test_cuts_and_places_are_those_of_the_line(dtype, bits):
    line = line_of(dtype, bits)
    cuts, draw = cut_line(line), np.random.default_rng(2)
    for _ in range(500):
        position, low = int.from_bytes(draw.bytes(8)) % (line.last + 1), int(draw.integers(0, 2**32))
        found = tuple(map(np.uint64, kernels.cut_of_record(cuts.rows, np.uint64(position), np.uint64(low))))
        assert found == halves(cuts.cut(position, low))
        assert kernels.end_of_number(cuts.rows, np.uint64(position)) == halves(cuts.end(position))
        assert kernels.place_of_cut(cuts.rows, *found) == (position, low)
        assert kernels.place_of_cut(cuts.rows, *halves(cuts.cut(position, LOWEST))) == (position, 0)


def test_counts_are_those_of_sorted_pairs():
    draw = np.random.default_rng(3)
    pairs = sorted(zip(draw.integers(0, 20, 300).tolist(), draw.integers(0, 2**32, 300).tolist(), strict=True))
    values, lows = np.array([p for p, _ in pairs], np.uint64), np.array([low for _, low in pairs], np.uint32)
    for _ in range(500):
        first, stop = sorted(draw.integers(0, 301, 2).tolist())
        position, low = int(draw.integers(0, 21)), int(draw.integers(0, 2**32))
        if draw.random() < 0.5:
            position, low = pairs[int(draw.integers(0, 300))]
        inside = pairs[first:stop]
        up_to = kernels.count_up_to(values, lows, first, stop, np.uint64(position), np.uint64(low))
        assert up_to == bisect_right(inside, (position, low))
        assert kernels.count_below(values, first, stop, np.uint64(position)) == sum(p < position for p, _ in inside)


def test_arrays_of_records_are_what_is_asked_by_rank():
    draw = np.random.default_rng(4)
    for values in (np.arange(50), np.zeros(50, int), draw.integers(0, 9, 501), np.arange(1), draw.integers(0, 3, 1600)):
        records = CutRecords(values.astype(np.uint64), Randomness(seed=8).key())
        numbers, lows = records.arrays()
        assert list(zip(numbers.tolist(), lows.tolist(), strict=True)) == [
            records.at(rank) for rank in range(1, records.m + 1)
        ]


@pytest.mark.parametrize("depth", [1, 2])
def test_counted_parts_are_those_of_the_definition(depth, monkeypatch):
    """Whose choices have offsets, some of them beyond their parts."""
    for seed in range(4):
        values = np.random.default_rng(seed).integers(0, 400, 40 * 7**seed)
        line, shares = line_of(values.dtype, 64), tuple(Fraction(k, 14) for k in range(1, 14))
        split = Split(0.0, (1, 3)[seed % 2], depth, Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
        plan, found = CountedPlan(shares, split, Fraction(1, 2 + seed), "add-remove", None), []
        for off in (False, True):
            with monkeypatch.context() as patch:
                if off:
                    patch.setattr(quantile_draws.LevelDrawer, "of", lambda *where: None)
                positions = line.positions(values, "raise", "x")
                division = quantile_draws.Division(positions, line, Randomness(seed=seed).key())
                found.append(plan.draw(division, Randomness(seed=9).key()))
        assert found[0] == found[1]


CASES = {
    "normal": lambda draw, n: draw.normal(size=n),
    "ties": lambda draw, n: draw.integers(0, 30, n),
    "zeros": lambda draw, n: np.where(draw.random(n) < 0.9, 0, draw.normal(size=n)),
    "everywhere": lambda draw, n: draw.integers(-(2**63), 2**63 - 1, n),
    "narrow": lambda draw, n: draw.normal(size=n).astype(np.float32),
    "ends": lambda draw, n: draw.choice([-(2**63), 2**63 - 1], n),
}


@pytest.mark.parametrize("name", CASES)
def test_choices_are_those_of_the_definition(name, monkeypatch):
    """At exponents from 1e-3 to 1e3, for 0 to 3,000 records and any shares; hardly any is left to the definition."""
    draw, left = np.random.default_rng(5), []
    by_kernel = quantile_draws.LevelDrawer.draw

    def watched(self, nodes, parts, first):
        found = by_kernel(self, nodes, parts, first)
        left.extend(one is None for one in found)
        return found

    monkeypatch.setattr(quantile_draws.LevelDrawer, "draw", watched)
    for i in range(8):
        values = np.asarray(CASES[name](draw, int(draw.integers(0, 3000)) * (i > 0)))
        line = line_of(values.dtype, 8 * values.dtype.itemsize)
        shares = sorted({Fraction(int(q * 1000 + 1), 1002) for q in draw.random(int(draw.integers(1, 12)))})
        each, neighbors = float(10 ** draw.uniform(-3, 3)), ("add-remove", "replace-one")[i % 2]
        plan, key = QuantilePlan.at(shares, each, neighbors), Randomness(seed=i).key()
        found = draw_quantiles(line.positions(values, "raise", "x"), line, plan, key)
        with monkeypatch.context() as patch:
            patch.setattr(quantile_draws.LevelDrawer, "of", lambda *where: None)
            assert draw_quantiles(line.positions(values, "raise", "x"), line, plan, key) == found
    assert sum(left) <= 0.02 * len(left)
