"""The kernels of private selection against the oracles of tests/oracles, bit for bit, and the bounds they decide on.

Cases are small and of several blocks, integers and floats, and go to the ends of both types; `test_certification`'s
method serves for what random words hardly ever bring about: scores and coins are put where float64 cannot decide.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import fastdp
from fastdp.kernels import buckets as bucket_kernels
from fastdp.kernels import gumbel_max as gumbel_kernels
from fastdp.kernels import layout
from fastdp.kernels import permute_and_flip as coin_kernels
from fastdp.kernels import scores as score_kernels
from fastdp.kernels.compile import jit
from fastdp.kernels.layout import LN2
from fastdp.mechanisms import buckets, scores, selection
from fastdp.mechanisms import permute_and_flip as flips
from fastdp.mechanisms.gumbel_max import GumbelState
from tests import oracles

MP = mpmath.mp.clone()
MP.prec = 300
U = 2.0**-53
INF = math.inf
ONES = 2**64 - 1
KEYS = [np.arange(3, 11, dtype=np.uint32) * np.uint32(m) for m in (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35)]
KEY = KEYS[0]
WORD = oracles.words.words_of(KEY.tolist())


def rng(seed):
    return np.random.default_rng(seed)


def with_forbidden(values, share, seed=1):
    values = values.astype(float)
    values[rng(seed).random(values.size) < share] = -INF
    return values


def blocks_forbidden():
    values = rng(2).normal(size=5000) * 3
    values[2048:4096] = -INF
    return values


def last_block_best():
    values = rng(3).integers(-3, 3, 5000)
    values[4990] = 9
    return values


MAX, MIN = 2**63 - 1, -(2**63)
TINY = 5e-324
CASES = {
    "few integers": (np.array([3, 0, 7, 7, 5, -2]), 0.5),
    "few floats": (np.array([0.25, -0.0, 0.0, 1.75, 1.75, -3.3]), 1.0),
    "some forbidden": (np.array([-INF, 0.5, -INF, 1.0, 1.5, -INF]), 1.0),
    "one integer": (np.array([-7]), 2.0),
    "one float": (np.array([1e300]), 0.1),
    "one allowed": (np.array([-INF, -INF, 2.5, -INF]), 3.0),
    "integers": (rng(4).integers(-40, 40, 5000), 0.13),
    "integers that stand close": (rng(5).integers(0, 4, 5000), 0.01),
    "floats": (rng(6).normal(size=5000) * 10, 0.7),
    "floats, many forbidden": (with_forbidden(rng(7).normal(size=4500), 0.6), 1.0),
    "a block of -inf": (blocks_forbidden(), 1.0),
    "the best at the end": (last_block_best(), 0.8),
    "rising": (np.arange(4500), 0.01),
    "falling": (np.arange(4500) * -1.0, 0.003),
    "int64's ends": (np.array([MAX, MIN, 0, MAX - 1, MIN + 1, MAX - 2**62, MAX - 40]), 0.25),
    "int64's ends, small eta": (np.array([MAX, MIN, 0, MAX - 1, 2**62, -(2**62), MIN + 2**33]), 2.0**-62),
    "gaps of 2^62": (np.array([2**62, 0, 2**62 - 1, 2**62 + 1, 1, 2]), 2.0**-61),
    "float64's ends": (np.array([1.7e308, -1.7e308, 0.0, 1.79e308, -1.79e308, 1e292]), 1.0),
    "float64's ends, small eta": (np.array([1.7e308, -1.7e308, 0.0, 1.79e308, 1.2e308, -INF]), 2.0**-899),
    "scores around 2^899, eta 2^-899": (rng(8).normal(size=300) * 2.0**900, 2.0**-899),
    "scores around 2^-899, eta 2^899": (rng(9).normal(size=300) * 2.0**-899, 2.0**899),
    "integers, eta 2^899": (np.array([5, 4, 5, 5, -3, 5]), 2.0**899),
    "integers, eta 2^-899": (rng(10).integers(-(2**62), 2**62, 40), 2.0**-899),
    "subnormals": (np.array([TINY, 0.0, -TINY, 3 * TINY, -7 * TINY, 1e-310, -0.0]), 1.0),
    "subnormals, eta 2^899": (np.array([TINY, 0.0, -TINY, 3 * TINY, 2.0**-1030, 1e-310]), 2.0**899),
    "720 behind at epsilon 1": (np.array([720, 0, 0, 719, 1, 0]), 0.5),
    "gaps above 750": (np.array([0.0, -760.5, -1400.0, -745.2, -1e4, -0.5]), 1.0),
    "around the end of exp": (np.array([0.0, -699.5, -700.0, -700.5, -708.0, -745.1]), 1.0),
    "all the same": (np.full(4100, 12), 1.0),
    "one far above, integers": (np.concatenate(([2**62], rng(16).integers(-9, 9, 4000))), 1.0),
    "one far above, floats": (np.concatenate((rng(17).normal(size=4000), [1e300])), 1.0),
    "three far apart": (np.concatenate((rng(18).normal(size=300), [1e300, 1e17, -1e17])), 1.0),
    "levels of a block": (np.concatenate([np.full(2048, v) for v in (0, -30, -44, -45, -60)]), 1.0),
}
IDS = pytest.mark.parametrize("case", CASES)


def listed(array):
    return array.tolist()


# --- buckets


@IDS
def test_weights_of_blocks(case):
    array, eta = CASES[case]
    levels = 62 - (array.size - 1).bit_length()
    f = buckets._factor(eta)
    expected = oracles.selection.block_weights(listed(array), f, levels)
    tops, weights = np.empty(len(expected), array.dtype), np.empty(len(expected), np.uint64)
    bucket_kernels.sum_blocks_into(array, f, float(levels), tops, weights)
    assert tops.tolist() == [top for top, _ in expected]
    assert weights.tolist() == [sum(each) for _, each in expected]


@pytest.mark.parametrize("key", KEYS, ids=["a", "b", "c"])
@IDS
def test_draws_by_buckets(case, key):
    array, eta = CASES[case]
    count = 40 if array.size < 1000 else 15
    drawn = buckets.Buckets(array, eta).draw(key, count)
    word = oracles.words.words_of(key.tolist())
    assert drawn.tolist() == oracles.selection.bucket_draws(word, listed(array), eta, buckets._factor(eta), count)


def test_more_draws_than_one_batch_and_a_sorted_batch(monkeypatch):
    """Batches are cut anywhere: the accepted proposals are the same, in the same order."""
    array, eta = CASES["floats"]
    expected = buckets.Buckets(array, eta).draw(KEY, 300).tolist()
    assert expected[:100] == oracles.selection.bucket_draws(WORD, listed(array), eta, buckets._factor(eta), 100)
    for batch, most in ((1, 7), (2, 3), (40, 64), (5, 301), (1000, 2000)):
        monkeypatch.setattr(buckets, "BATCH", batch)
        monkeypatch.setattr(buckets, "MOST", most)
        assert buckets.Buckets(array, eta).draw(KEY, 300).tolist() == expected


def test_sums_of_weights_are_those_of_128_bits():
    """Blocks further down than the last level, weights as large as they get, carries from the lower half."""
    draw = random.Random(5)
    for f, n in ((1.44, 60), (0.3, 60), (1e-3, 40)):
        tops = np.array([draw.randint(-100, 0) for _ in range(n - 1)] + [0])
        weights = np.array([draw.choice([0, 1, 2**56, draw.randint(0, 2**56)]) for _ in range(n)], np.uint64)
        sums = np.empty((2, n), np.uint64)
        bucket_kernels.sum_weights_into(tops, weights, 0, f, sums)
        high, low = sums
        total = 0
        for b in range(n):
            total += int(weights[b]) << oracles.selection.level_height(Fraction(-int(tops[b])), f, 64)
            assert int(high[b]) << 64 | int(low[b]) == total


def test_the_factor_is_below_what_lemma_1_allows():
    draw = random.Random(6)
    for eta in [2.0**-900, 2.0**900, 1.0, 0.1, *(2.0 ** draw.uniform(-900, 900) for _ in range(300))]:
        most = (1 - Fraction(1, 2**40)) * Fraction(eta) / oracles.numbers.ln_interval(2, 120)[1]
        assert most * (1 - Fraction(1, 2**51)) < Fraction(buckets._factor(eta)) <= most


@jit
def heights_into(distances, f, levels, out):
    for i in range(distances.size):
        out[i] = kernels_height(distances[i], f, levels)


kernels_height = bucket_kernels.height_of


@pytest.mark.parametrize("levels", [0, 1, 30, 49, 62, 64])
def test_lemma_1(levels):
    """0 <= l <= levels and l ln 2 <= eta d for the exact distance d, of which the kernel sees a float; and l is not
    more than one below what it may be: no bound is more than four times what it bounds."""
    draw = random.Random(levels)
    ln2_low, ln2_high = oracles.numbers.ln_interval(2, 160)
    distances, etas = [], []
    for _ in range(400):
        eta = 2.0 ** draw.choice([draw.uniform(-900, 900), draw.uniform(-2, 2)])
        step = draw.choice([draw.randint(0, 70), draw.randint(0, 70) + draw.choice([0.5, 0.25, 2.0**-42])])
        near = Fraction(step) * ln2_low / Fraction(eta)
        near *= 1 + Fraction(draw.choice([0, 1, -1, draw.uniform(-1, 1)])) / 2 ** draw.choice([38, 40, 44, 53])
        distances.append(max(near, Fraction(0)))
        etas.append(eta)
    for d, eta in zip(distances, etas, strict=True):
        rounded = oracles.numbers.nearest_float(d)
        out = np.empty(1, np.int64)
        heights_into(np.array([rounded]), buckets._factor(eta), float(levels), out)
        level = levels - int(out[0])
        assert 0 <= level <= levels
        assert level * ln2_high <= Fraction(eta) * d or level == 0
        assert level == levels or (level + 1.5) * ln2_high > Fraction(eta) * d * (1 - Fraction(1, 2**38))
    heights_into(np.array([INF]), 2.0**-899, float(levels), out)
    assert out[0] == 0


def proposed(rests, coins):
    """Proposals in the first block."""
    zeros = [0] * len(coins)
    return np.array([zeros, rests, coins, zeros], np.uint64)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_coins_next_to_their_probability(kind, in_order):
    """Coins of 64 bits around 2^l e^(-eta gap): never a wrong verdict, none without the bits for it, and a verdict
    where the error of lemma 2 leaves room for one."""
    values = np.array([0, -1, -3, -7, -20, -43, -80, -110], kind)
    if kind is np.float64:
        values[1:] -= rng(11).random(7)
    eta, levels, n = 0.8371, 59, values.size
    f, top = buckets._factor(eta), values[0].item()
    tops = np.array([top], kind)
    weights = oracles.selection.block_weights(values.tolist(), f, levels)[0][1]
    rests, coins, expected, sure = [], [], [], []
    draw = random.Random(7)
    for i in range(n):
        level = levels + 1 - weights[i].bit_length()
        exponent = -MP.mpf(eta) * (MP.mpf(top) - MP.mpf(values[i].item()))
        p = MP.exp(exponent) * MP.mpf(2) ** level * MP.mpf(2) ** 64
        reach = float(p) * layout.SLACK * (64 + abs(float(exponent) + level * LN2))
        steps = [0, 1, -1, 2, -2] + [int(draw.uniform(-1.5, 1.5) * reach) for _ in range(60)] + [int(3 * reach) + 9]
        for step in [*steps, -int(3 * reach) - 9]:
            coin = int(p) + step
            if 0 <= coin < 2**64:
                rests.append(sum(weights[:i]) + draw.randint(0, weights[i] - 1))
                coins.append(coin)
                expected.append(1 if coin + 1 <= p else 0 if coin >= p else -1)
                sure.append(abs(step) > 2 * reach + 4)
    count = len(coins)
    proposals, outcomes = proposed(rests, coins), np.empty((3, count), np.int64)
    bucket_kernels.resolve_into(
        values, eta, f, float(levels), tops, top, proposals, in_order, layout.SLACK, outcomes
    )  # fmt: skip
    members, _, verdicts = outcomes
    expected, sure = np.array(expected), np.array(sure)
    decided = verdicts >= 0
    assert set(members.tolist()) == set(range(n))
    np.testing.assert_array_equal(verdicts[decided], expected[decided])
    assert decided[sure].all()
    assert not decided[expected == -1].any()
    assert sure.sum() > n
    assert (~decided).sum() > 100


def test_a_forbidden_candidate_is_rejected_whatever_its_coin_is():
    """And a candidate whose probability is below e^-700 is left to integers, if its coin is among the least."""
    values, coins = np.array([0.0, -INF, -5000.0]), [0, 1, 2, 3, 2**40, ONES]
    weights = oracles.selection.block_weights(values.tolist(), 1.4, 60)[0][1]
    for i, expected in ((1, [0] * 6), (2, [-1, -1, 0, 0, 0, 0])):
        count = len(coins)
        proposals, outcomes = proposed([sum(weights[:i])] * count, coins), np.empty((3, count), np.int64)
        bucket_kernels.resolve_into(
            values, 1.0, 1.4, 60.0, np.zeros(1), 0.0, proposals, True, layout.SLACK, outcomes
        )  # fmt: skip
        members, _, verdicts = outcomes
        assert members.tolist() == [i] * count
        assert verdicts.tolist() == expected


def test_proposals_fall_in_blocks_as_integers_of_128_bits_do():
    """With running sums that have bits in both halves, and borrows between them."""
    draw, borrows = random.Random(8), 0
    for n, f in ((2, 0.5), (7, 0.3), (40, 0.05), (300, 0.2)):
        tops = np.array([draw.randint(-40, 0) for _ in range(n - 1)] + [0])
        weights = [draw.choice([0, 1, draw.randint(0, 2**54)]) for _ in range(n)]
        weights[-1] = draw.randint(1, 2**54)
        running = np.empty((2, n), np.uint64)
        bucket_kernels.sum_weights_into(tops, np.array(weights, np.uint64), 0, f, running)
        low = running[1]
        shifts = [oracles.selection.level_height(Fraction(-int(t)), f, 64) for t in tops]
        sums = [w << shift for w, shift in zip(weights, shifts, strict=True)]
        cut = (1 << (sum(sums) >> 64).bit_length()) - 1
        expected = []
        for t in range(5, 400):
            rest = (WORD(0, 2 * t) & cut) << 64 | WORD(0, 2 * t + 1)
            if rest < sum(sums):
                b, below = 0, rest
                while rest >= sums[b]:
                    rest -= sums[b]
                    b += 1
                borrows += b > 0 and (below & ONES) < int(low[b - 1])
                expected.append((b, rest >> shifts[b], WORD(1, t), t))
        count = len(expected)
        found = np.empty((4, count), np.uint64)
        after = bucket_kernels.propose_into(KEY, 5, tops, 0, f, running, found)
        assert after == expected[-1][3] + 1
        assert list(zip(*found.tolist(), strict=True)) == expected
    assert borrows > 100


# --- Gumbel-max


def by_gumbel(array, eta, k, key=KEY, first=0):
    state = GumbelState(key, eta, k)
    state.add(array, first, *scores.tops_of(array))
    return state.ranking().tolist()


@pytest.mark.parametrize("key", KEYS, ids=["a", "b", "c"])
@IDS
def test_winners_by_gumbel(case, key):
    array, eta = CASES[case]
    word, values = oracles.words.words_of(key.tolist()), listed(array)
    allowed = array.size - int((array == -INF).sum())
    expected = oracles.selection.gumbel_max(word, values, eta, min(50, allowed))
    for k in {1, 2, 7, 50, allowed}:
        if k <= min(50, allowed):
            assert by_gumbel(array, eta, k, key) == expected[:k]
    assert selection._first_of_few(array, key, eta) == expected[0]


@pytest.mark.parametrize("first", [1, 7, 255, 2047, 2**33 - 3, 2**62 - 5000])
def test_candidates_may_start_anywhere(first):
    for case in ("few floats", "integers that stand close"):
        array, eta = CASES[case]
        array = array[:300]
        assert by_gumbel(array, eta, 4, first=first) == oracles.selection.gumbel_max(WORD, listed(array), eta, 4, first)


def test_fewer_allowed_than_wanted():
    array, eta = CASES["some forbidden"]
    assert by_gumbel(array, eta, 6) == oracles.selection.gumbel_max(WORD, listed(array), eta, 3)
    assert len(by_gumbel(array, eta, 6)) == 3
    assert by_gumbel(np.full(2100, -INF), 1.0, 2) == []


def test_a_candidate_whose_gap_is_beyond_float64_takes_part():
    """The last of two of two, however late: it is not forbidden."""
    for array, eta in ((np.array([1e308, -1e308]), 1.0), (np.array([0.0, -1e300]), 2.0**800)):
        assert by_gumbel(array, eta, 2) == [0, 1]
        state = GumbelState(KEY, eta, 2)
        for i in (0, 1):
            state.add(array[i : i + 1], i, *scores.tops_of(array[i : i + 1]))
        assert state.ranking().tolist() == [0, 1]
    for array in (np.array([-1.79e308, -1.7e308, 1.79e308]), np.array([-1.79e308, -1.7e308, 1.79e308, 1e308])):
        assert by_gumbel(array, 1.0, array.size) == np.argsort(-array).tolist()


def test_a_hundred_thousand_equal_scores():
    """The order is that of the uniform numbers: 32 bits of stream 0, then 64 of stream 1 where those agree."""
    n = 100_000
    halves = oracles.words.stream_half_words(KEY.tolist(), 0, 0, n)
    near = np.argsort(halves, kind="stable")[:60].tolist()
    near.sort(key=lambda i: (int(halves[i]), WORD(1, i)))
    for array in (np.full(n, -5), np.full(n, 3e-310)):
        assert by_gumbel(array, 1.0, 40) == near[:40]
        assert by_gumbel(array, 1.0, 1) == near[:1]
    assert len(set(by_gumbel(np.full(3000, 7), 1.0, 3000))) == 3000


def exact_logs(word, numbers):
    """ln E of candidates, from their first 96 bits and then some."""
    found = []
    for i in numbers:
        n = int(word(0, i // 2) >> 32 * (i % 2) & 0xFFFFFFFF) << 128 | word(1, i) << 64 | word(3, i)
        found.append(MP.log(-MP.log(1 - MP.mpf(n) / MP.mpf(2) ** 160)))
    return found


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_arrivals_that_float64_cannot_tell_apart(kind):
    """Scores that make up for everybody's exponential: all arrive at the same time, but for the rounding of scores."""
    n = 120
    logs = exact_logs(WORD, range(n))
    for eta in (1.0, 0.37, 1e-17):
        if kind is np.int64:
            if eta > 1e-10:
                continue
            array = np.array([int(log / MP.mpf(eta)) for log in logs])
        else:
            array = np.array([float(log / MP.mpf(eta)) for log in logs])
        for k in (1, 20):
            assert by_gumbel(array, eta, k) == oracles.selection.gumbel_max(WORD, listed(array), eta, k)
        assert gumbel_kernels.choose_gumbel(array, KEY, eta, layout.SLACK) == gumbel_kernels.LEFT_OPEN
        assert selection._first_of_few(array, KEY, eta) == oracles.selection.gumbel_max(WORD, listed(array), eta, 1)[0]
        gaps = eta * (array.max() - array).astype(float)
        arrivals = np.array([float(log) for log in logs]) + gaps
        assert np.ptp(arrivals) < 1e-13, "close enough that errors matter"


@pytest.mark.parametrize("case", ["floats", "integers", "int64's ends, small eta", "float64's ends, small eta"])
def test_the_error_of_arrivals_is_within_lemma_3(case):
    """|L~ - L| <= SLACK (64 + |L~|), for every candidate that the kernel reports."""
    array, eta = CASES[case]
    array = array[:1500]
    n = array.size
    tops, top = scores.tops_of(array)
    heap, indices, times = np.full(n, INF), np.empty(n, np.int64), np.empty((2, n))
    found = gumbel_kernels.select_gumbel_into(
        array, 0, KEY, eta, tops, top, layout.SLACK, heap, indices, times
    )  # all are wanted
    assert found == np.count_nonzero(array != -INF)
    indices, (logs, arrivals) = indices[:found], times[:, :found]
    exact = exact_logs(WORD, indices.tolist())
    for i, log, arrival, true in zip(indices.tolist(), logs.tolist(), arrivals.tolist(), exact, strict=True):
        lead = Fraction(eta) * (Fraction(top) - Fraction(array[i].item()))
        assert abs(MP.mpf(log) - true) <= 50 * U
        error = abs(MP.mpf(arrival) - true - MP.mpf(lead.numerator) / lead.denominator)
        assert error <= layout.SLACK * (64 + abs(arrival))


@pytest.mark.parametrize("bad", [[1.0, INF], [INF], [math.nan, 1.0], [1.0, math.nan], [-INF, -INF], [INF, INF, 3.0]])
def test_scores_that_are_none_are_left_open_and_refused(bad):
    """For mechanisms that do not ask first, and for scores that change after they were asked."""
    array = np.array(bad)
    for key in KEYS:
        assert gumbel_kernels.choose_gumbel(array, key, 0.5, layout.SLACK) == gumbel_kernels.LEFT_OPEN
        assert coin_kernels.choose_head(array, key, 0.5, layout.SLACK) == coin_kernels.LEFT_OPEN
        with pytest.raises(fastdp.DomainError):
            selection.draw_one(array, key, 0.5)


def test_too_little_room_is_reported_and_more_is_enough():
    array, eta = CASES["all the same"]
    tops, top = scores.tops_of(array)
    for room, expected in ((5, -1), (9, -1), (array.size, 10)):
        heap, indices, times = np.full(10, INF), np.empty(room, np.int64), np.empty((2, room))
        found = gumbel_kernels.select_gumbel_into(array, 0, KEY, eta, tops, top, layout.SLACK, heap, indices, times)
        assert found == expected


# --- logarithms of exponentials


def log_both_ends(half, word):
    """ln E at both ends of the cell of 96 bits."""
    n = half << 64 | word
    return [MP.log(-MP.log(1 - MP.mpf(n + step) / MP.mpf(2) ** 96)) for step in (0, 1)]


def halves_and_words():
    draw = random.Random(12)
    quarter, point = 2**30, int((1 - MP.exp(-1)) * 2**32)  # where the formula changes; where ln E is 0
    pairs = [(draw.getrandbits(32), draw.getrandbits(64)) for _ in range(1500)]
    pairs += [(draw.getrandbits(b), draw.getrandbits(64)) for b in range(1, 33) for _ in range(20)]
    pairs += [(2**32 - 1 - draw.getrandbits(b), draw.getrandbits(64)) for b in range(1, 33) for _ in range(20)]
    pairs += [(quarter + i, w) for i in (-2, -1, 0, 1) for w in (0, 1, 2**63, ONES)]
    pairs += [(point + i, draw.getrandbits(64)) for i in (-1, 0, 0, 0, 0, 1) for _ in range(20)]
    pairs += [(0, 2**60), (0, 2**60 + 2**30), (0, 2**63), (0, ONES), (1, 0), (2**32 - 1, 2**60), (2**32 - 1, 0)]
    pairs += [(2**32 - 1, ONES - 2**60 - 2**20), (2**32 - 2, ONES)]
    return [(half, word) for half, word in pairs if 2**60 <= half << 64 | word < 2**96 - 2**60]


def test_log_exponential_is_within_50_units():
    worst = 0.0
    for half, word in halves_and_words():
        found = gumbel_kernels.log_exponential(half, np.uint64(word))
        assert not math.isnan(found)
        errors = [abs(MP.mpf(found) - true) / U for true in log_both_ends(half, word)]
        worst = max(worst, *map(float, errors))
    assert 1 < worst < 50


@pytest.mark.parametrize("words", [[0, 1, 2**40, 2**59, 2**60 - 2**12], [2**60 + 2**12, 2**61, ONES]])
def test_log_exponential_leaves_open_what_96_bits_leave_open(words):
    """U or 1 - U below 2^-36, and nothing else."""
    is_open = words[0] == 0
    for word in words:
        assert math.isnan(gumbel_kernels.log_exponential(0, np.uint64(word))) == is_open
        assert math.isnan(gumbel_kernels.log_exponential(0xFFFFFFFF, np.uint64(ONES - word))) == is_open


@jit
def margins_into(halves, cuts, leads, slack, out):
    for i in range(halves.size):
        out[i] = margin_of(halves[i], cuts[i], leads[i], slack)


margin_of = gumbel_kernels.margin_of


def test_who_is_turned_down_arrives_after_the_cut():
    """E >= x >= half 2^-32, so ln(half 2^-32) + lead > cut must hold; cuts are put next to that, and not far from it
    nobody who could be turned down is looked at more closely. `lead` may be off by what lemma 3 allows."""
    draw = random.Random(13)
    halves, cuts, leads, distance = [], [], [], []
    for _ in range(4000):
        half = draw.getrandbits(draw.randint(1, 32))
        lead = draw.choice([0.0, draw.uniform(0, 40), draw.uniform(0, 690), 2.0 ** draw.uniform(0, 300)])
        off = draw.choice([0.0, draw.uniform(-1, 1) * 2.0**-29, draw.uniform(-1, 1) * 1e-12, draw.uniform(-30, 30)])
        if half:
            halves.append(half)
            leads.append(lead)
            cuts.append(math.log(half / 2**32) + lead + off)
            distance.append(off)
    out = np.empty(len(halves))
    margins_into(np.array(halves, np.uint32), np.array(cuts), np.array(leads), layout.SLACK, out)
    down = 0
    for half, cut, lead, off, margin in zip(halves, cuts, leads, distance, out.tolist(), strict=True):
        true = MP.log(MP.mpf(half) / 2**32) + MP.mpf(lead)
        if margin < 0:
            down += 1
            assert true > MP.mpf(cut)
        elif lead < 600 and off < -(2.0**-28) and cut - lead < 0:
            raise AssertionError((half, cut, lead, off, margin))
    assert down > 400
    cuts, leads = np.array([5.0, -1e9, INF, INF, INF]), np.array([1.0, 0.0, INF, 0.0, 1e308])
    halves = np.array([0, 0, 2**32 - 1, 2**32 - 1, 5], np.uint32)
    out = np.empty(5)
    margins_into(halves, cuts, leads, layout.SLACK, out)
    assert (out >= 0).all(), "x = 0 may be anything, and while there is no cut nobody is late"


# --- permute-and-flip


@pytest.mark.parametrize("key", KEYS, ids=["a", "b", "c"])
@IDS
def test_heads_and_the_head_that_is_drawn(case, key):
    array, eta = CASES[case]
    word = oracles.words.words_of(key.tolist())
    heads = oracles.selection.permute_and_flip_heads(word, listed(array), eta)
    top = array.max().item()
    counts, undecided = np.empty(-(-array.size // 2048), np.int64), np.empty(9, np.int64)
    found = coin_kernels.count_heads_into(array, 0, key, eta, top, layout.SLACK, counts, undecided)
    assert found == 0
    assert counts.tolist() == [sum(2048 * b <= i < 2048 * (b + 1) for i in heads) for b in range(counts.size)]
    for b in range(counts.size):
        block = array[2048 * b : 2048 * (b + 1)]
        flags = np.empty(block.size)
        coin_kernels.mark_heads_into(block, 2048 * b, key, eta, top, layout.SLACK, flags)
        assert (np.flatnonzero(flags) + 2048 * b).tolist() == [i for i in heads if i // 2048 == b]
    assert flips.draw_head(array, top, key, eta) == oracles.selection.chosen_head(word, heads)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_coins_that_float64_cannot_decide(kind):
    """Scores that put everybody's probability next to their uniform number, at most 150 floats from it: some stay
    open, and no coin is decided wrongly, by the kernel or by what settles the rest."""
    draw = random.Random(14)
    for n, eta in ((1200, 1.0), (2500, 0.61), (300, 1e-17)):
        if kind is np.int64 and eta > 1e-10:
            continue
        values = []
        for i in range(n):
            u = MP.mpf(int(WORD(0, i // 2) >> 32 * (i % 2) & 0xFFFFFFFF) << 64 | WORD(1, i)) / MP.mpf(2) ** 96
            exact = MP.log(u) / MP.mpf(eta)
            if kind is np.int64:
                values.append(int(exact) + draw.choice([0, 1, -1, draw.randint(-500, 500)]))
            else:
                step = draw.choice([0, 1, -1, draw.randint(-150, 150)])
                values.append(float(exact) * (1 + step * 2.0**-52))
        values[n // 2] = 0
        array = np.minimum(np.array(values, kind), 0)
        heads = oracles.selection.permute_and_flip_heads(WORD, listed(array), eta)
        undecided = np.empty(n, np.int64)
        counts = np.empty(-(-n // 2048), np.int64)
        found = coin_kernels.count_heads_into(array, 0, KEY, eta, array.max(), layout.SLACK, counts, undecided)
        assert found > n / 10
        assert counts.sum() <= len(heads) <= counts.sum() + found
        assert set(undecided[:found].tolist()) >= set(heads) - set(np.flatnonzero(array).tolist()) - {n // 2}
        assert flips.draw_head(array, array.max().item(), KEY, eta) == oracles.selection.chosen_head(WORD, heads)
        few = np.empty(3, np.int64)
        assert coin_kernels.count_heads_into(array, 0, KEY, eta, array.max(), layout.SLACK, counts, few) == found
        assert few.tolist() == undecided[:3].tolist()


# --- the largest score


@pytest.mark.parametrize("n", [1, 5, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_tops_are_numpys(n, kind):
    array = (rng(n).normal(size=n) * 1e6).astype(kind)
    tops = np.empty(-(-n // 2048), kind)
    assert score_kernels.find_tops_into(array, tops) == array.max()
    assert tops.tolist() == [array[s : s + 2048].max() for s in range(0, n, 2048)]


def test_a_nan_of_either_sign_is_the_largest():
    for bits in (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF, 0xFFF0000000000001):
        for place in (0, 2047, 2048, 4999):
            array = rng(3).normal(size=5000)
            array[17] = INF
            array.view(np.uint64)[place] = bits
            tops = np.empty(3)
            assert math.isnan(score_kernels.find_tops_into(array, tops))
            assert math.isnan(tops[place // 2048])


def test_how_many_are_allowed():
    array = CASES["floats, many forbidden"][0]
    assert score_kernels.count_allowed(array) == np.isfinite(array).sum()
    assert score_kernels.count_allowed(np.array([-INF])) == 0
