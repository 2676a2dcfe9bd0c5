"""The race and GumbelMax: any division into blocks has one winner, whatever float64 leaves open is settled, and what
would make the winner unknown is refused."""

from __future__ import annotations

import copy
import math
import pickle
import random
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest
import reference
from laws import check_cells

import fastdp
from fastdp import GumbelMax, race
from fastdp.kernels import selection as kernels
from fastdp.race import Race
from fastdp.scores import tops_of

INF = math.inf
KEY = np.arange(3, 11, dtype=np.uint32) * np.uint32(0x9E3779B9)
ONES = 2**64 - 1


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def gumbel(k=1, seed=7, **options):
    return GumbelMax(**({"sensitivity": 1, "epsilon": 1.0, "k": k, "rng": seeded(seed)} | options))


def at_once(array, k, seed=7, **options):
    options = {"sensitivity": 1, "epsilon": 1.0} | options
    if k == 1:
        return [fastdp.exponential_mechanism(array, method="gumbel", rng=seeded(seed), **options)]
    return fastdp.top_k(array, k, rng=seeded(seed), **options).tolist()


def arrays(n=6000):
    draw = np.random.default_rng(21)
    floats = draw.normal(size=n) * 5
    floats[draw.random(n) < 0.2] = -INF
    floats[2048:4096] = -INF
    return {
        "integers": draw.integers(-20, 20, n),
        "floats": floats,
        "equal": np.zeros(n, np.int64),
        "rising": np.arange(n) * 0.01,
        "far apart": np.where(np.arange(n) % 3 == 0, 1.7e308, -1.7e308),
    }


ARRAYS = arrays()
KINDS = pytest.mark.parametrize("kind", ARRAYS)


def random_cuts(n, draw, most=40):
    inner = sorted({draw.randrange(1, n) for _ in range(draw.randint(1, most))})
    return list(zip([0, *inner], [*inner, n], strict=True))


# --- any division, one result


@KINDS
@pytest.mark.parametrize("k", [1, 5])
def test_blocks_of_any_size_in_any_order(kind, k):
    array, draw = ARRAYS[kind], random.Random(kind)
    for seed in range(4):
        expected = at_once(array, k, seed)
        for _ in range(3):
            whole, cuts = gumbel(k, seed), random_cuts(array.size, draw)
            draw.shuffle(cuts)
            for start, stop in cuts:
                whole.offer(array[start:stop], start)
            assert whole.candidates == array.size
            assert whole.winners().tolist() == expected
            assert k > 1 or whole.winner() == expected[0]


@KINDS
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copied", "pickled"])
def test_shards_that_are_merged_in_any_order(kind, k, copied):
    array, draw = ARRAYS[kind], random.Random(kind)
    for seed in range(2):
        expected, first = at_once(array, k, seed), gumbel(k, seed)
        shards = [first, *(copied(first) for _ in range(5))]
        for start, stop in random_cuts(array.size, draw, 20):
            draw.choice(shards).offer(array[start:stop], start)
        shards = [copied(shard) for shard in shards]
        while len(shards) > 1:
            draw.shuffle(shards)
            other = shards.pop()
            assert shards[-1].merge(other) is shards[-1]
        assert shards[0].candidates == array.size
        assert shards[0].winners().tolist() == expected


@KINDS
def test_threads_that_offer_at_the_same_time(kind):
    array = ARRAYS[kind]
    for k in (1, 5):
        expected, whole = at_once(array, k), gumbel(k)
        cuts = random_cuts(array.size, random.Random(3), 100)

        def work(part, whole=whole):
            for start, stop in part:
                whole.offer(array[start:stop], start)

        threads = [threading.Thread(target=work, args=(cuts[i::6],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert whole.winners().tolist() == expected


def test_one_and_two_threads(monkeypatch):
    """Several chunks of a release, on one thread and on two, and chunks of other sizes."""
    n = 2 * kernels.CHUNK + 5000
    draw = np.random.default_rng(4)
    for array in (draw.integers(0, 12, n), draw.normal(size=n) * 3, np.arange(n) * 1e-4):
        for k in (1, 6):
            found = []
            for threads in (1, 2, 3):
                monkeypatch.setattr(fastdp.threads, "_count", threads)
                found.append(at_once(array, k))
            whole = gumbel(k)
            for start in range(0, n, 99_991):
                whole.offer(array[start : start + 99_991], start)
            assert [whole.winners().tolist(), *found[1:]] == [found[0]] * 3


def test_numbers_far_from_zero_and_gaps_between_blocks():
    array, eta = np.array([3.0, 1.0, 4.0]), 0.1  # five rounds, twice the sensitivity
    whole = gumbel(k=5)
    for first in (2**62 - 3, 0, 10**12):
        whole.offer(array, first)
    whole.offer([], 2**62)
    whole.offer(np.array([], float), 1)
    assert whole.candidates == 9
    key = seeded(7).key().tolist()
    word = reference.words_of(key)
    arrivals = {}
    for first in (2**62 - 3, 0, 10**12):
        for i, score in enumerate(array.tolist()):
            arrivals[first + i] = reference._log_arrival(word, first + i, -Fraction(eta) * Fraction(score), 60)[0]
    assert whole.winners().tolist() == sorted(arrivals, key=arrivals.__getitem__)[:5]


def test_the_winner_is_the_oracles():
    word = reference.words_of(seeded(7).key().tolist())
    for kind in ("integers", "floats"):
        array = ARRAYS[kind][:900]
        for k in (1, 8):
            assert at_once(array, k) == reference.race(word, array.tolist(), 0.5 / k, k)


# --- integers and floats


def test_blocks_of_integers_and_blocks_of_floats():
    """Integers up to 2^53 are floats: the same winners as of one array of floats."""
    whole_scores = np.array([2**53 - 3, 2**53, 5, 2**53 - 1, 0, 2**53 - 8], float)
    for k in (1, 3):
        for seed in range(6):
            expected = at_once(whole_scores, k, seed)
            for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
                mixed = gumbel(k, seed)
                for part in order:
                    block = whole_scores[2 * part : 2 * part + 2]
                    mixed.offer(block.astype(int) if part != 1 else block, 2 * part)
                assert mixed.winners().tolist() == expected
            left, right = gumbel(k, seed), gumbel(k, seed)
            left.offer(whole_scores[:3], 0)
            right.offer(whole_scores[3:].astype(int), 3)
            assert left.merge(right).winners().tolist() == expected


def test_integers_that_floats_would_round_do_not_mix_with_floats():
    for blocks in (([0.5, 1.5], [2**53 + 1, 3]), ([2**53 + 1, 2], [0.5, 1.5]), ([0.0], [-(2**53) - 2])):
        whole = gumbel()
        whole.offer(blocks[0], 0)
        with pytest.raises(ValueError, match=r"^scores: floats in one block and integers beyond 2\^53.*all integers$"):
            whole.offer(blocks[1], len(blocks[0]))


def test_large_integers_alone_are_exact():
    """One apart at 2^62: as far apart as 0 and 1."""
    for seed in range(20):
        assert at_once([2**62, 2**62 + 1], 1, seed, epsilon=2.0) == at_once([0, 1], 1, seed, epsilon=2.0)


# --- what is refused


def test_a_candidate_is_offered_once():
    whole = gumbel()
    whole.offer(np.zeros(10), 100)
    for first, n, twice in ((100, 1, 100), (109, 5, 109), (95, 6, 100), (90, 30, 100), (105, 2, 105)):
        with pytest.raises(ValueError, match=f"^first_index: candidate {twice} has been offered before$"):
            whole.offer(np.zeros(n), first)
    whole.offer(np.zeros(5), 110)
    whole.offer(np.zeros(5), 95)
    assert whole.candidates == 20
    with pytest.raises(ValueError, match=r"^first_index: candidate 95 has been"):
        whole.offer([1], 95)
    assert whole.winner() in range(95, 115)


def test_overlapping_shards_do_not_merge_and_stay_as_they_were():
    first = gumbel()
    second = copy.deepcopy(first)
    first.offer([1, 2, 3], 0)
    second.offer([100, 100], 2)
    with pytest.raises(ValueError, match=r"^first_index: candidate 2 has been offered before$"):
        first.merge(second)
    assert first.candidates == 3
    assert first.winner() in (0, 1, 2)


def test_nothing_is_offered_after_the_winner():
    whole = gumbel()
    shard = copy.deepcopy(whole)
    whole.offer([1, 2, 3], 0)
    shard.offer([5], 3)
    chosen = whole.winner()
    for late in (lambda: whole.offer([9], 7), lambda: whole.merge(shard)):
        with pytest.raises(ValueError, match=r"has announced its winner; make another"):
            late()
    with pytest.raises(ValueError, match=r"^other: has announced its winner, or"):
        shard.merge(whole)
    assert whole.winner() == chosen
    assert copy.deepcopy(whole).winner() == chosen
    whole.winners()[0] = 99
    assert whole.winner() == chosen


@pytest.mark.parametrize("options", [{"seed": 8}, {"k": 2}, {"epsilon": 0.9}, {"sensitivity": 2}, {"monotonic": True}])
def test_only_copies_merge(options):
    whole, other = gumbel(), gumbel(**options)
    with pytest.raises(ValueError, match=r"^other: must be another copy of this GumbelMax"):
        whole.merge(other)
    with pytest.raises(ValueError, match=r"^other: must be another copy of this GumbelMax"):
        whole.merge(whole)
    with pytest.raises(ValueError, match=r"^other: type int: must be a GumbelMax"):
        whole.merge(3)


def test_an_interrupted_offer_leaves_no_winner(monkeypatch):
    whole = gumbel()
    whole.offer([1.0, 2.0], 0)
    shard = copy.deepcopy(whole)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Race, "absorb", interrupt)
        with pytest.raises(KeyboardInterrupt):
            whole.offer([50.0], 2)
    for broken in (whole, copy.deepcopy(whole)):
        with pytest.raises(RuntimeError, match="interrupted, so its winner is not known"):
            broken.winner()
    with pytest.raises(ValueError, match=r"^other: .*an offer to it was interrupted"):
        shard.merge(whole)


def test_bad_scores_leave_it_as_it_was():
    whole = gumbel()
    whole.offer([1.0, 2.0], 0)
    for bad, error in (
        ([math.nan], fastdp.DomainError),
        ([3.0, INF], fastdp.DomainError),
        ([[1.0]], ValueError),
        (3.0, ValueError),
        ([1j], ValueError),
        (["a"], ValueError),
        (None, ValueError),
    ):
        with pytest.raises(error, match=r"^scores"):
            whole.offer(bad, 5)
    for first in (-1, 1.0, True, None, "0", 2**62 - 1):
        with pytest.raises(ValueError, match=r"^first_index="):
            whole.offer([1.0, 2.0], first)
    assert whole.candidates == 2
    assert whole.winner() in (0, 1)


def test_there_must_be_enough_candidates():
    whole = gumbel()
    with pytest.raises(ValueError, match=r"^k=1: only 0 candidates that are not -inf have been offered$"):
        whole.winner()
    whole.offer([-INF, -INF], 0)
    with pytest.raises(ValueError, match=r"^k=1: only 0 candidates"):
        whole.winner()
    whole.offer([-INF, 3.0], 2)
    assert whole.winner() == 3
    several = gumbel(k=3)
    several.offer([1.0, -INF, 2.0], 0)
    with pytest.raises(ValueError, match=r"^k=3: only 2 candidates that are not -inf have been offered$"):
        several.winners()
    several.offer([-5.0], 3)
    assert sorted(several.winners().tolist()) == [0, 2, 3]
    with pytest.raises(ValueError, match=r"^k=3: there are several winners; call winners\(\)$"):
        several.winner()


def test_more_wanted_than_any_block_has_and_gaps_beyond_float64():
    """Every one of them must be there in the end, however late."""
    for kind in (int, float):
        several = gumbel(k=60)
        scores_ = np.arange(60).astype(kind) * (1 if kind is int else 1e306)
        for i in range(60):
            several.offer(scores_[i : i + 1], i)
        assert sorted(several.winners().tolist()) == list(range(60))
    two = gumbel(k=2)
    two.offer([1e308], 0)
    two.offer([-1e308], 1)
    assert two.winners().tolist() == [0, 1]


# --- the budget


def test_it_is_charged_when_it_is_made_and_never_again():
    budget = fastdp.Budget(epsilon=3.0)
    whole = GumbelMax(sensitivity=1, epsilon=0.5, budget=budget)
    assert whole.guarantee == fastdp.BoundedRange(0.5)
    shard = copy.deepcopy(whole)
    whole.offer([1, 2], 0)
    shard.offer([1, 2], 2)
    whole.merge(pickle.loads(pickle.dumps(shard))).winner()
    several = GumbelMax(sensitivity=1, epsilon=0.5, k=2, budget=budget)
    assert several.guarantee.implies(fastdp.PureDP(0.5))
    assert budget.spent == fastdp.PureDP(1.0)
    first, second = budget.releases
    assert (first.mechanism, first.parameters) == ("GumbelMax", {"sensitivity": 1.0, "epsilon": 0.5, "k": 1})
    assert first.guarantee == fastdp.BoundedRange(0.5)
    assert second.guarantee == several.guarantee


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitivity": 0}, "^sensitivity=0: must be > 0"),
        ({"epsilon": -1.0}, r"^epsilon=-1\.0: must be > 0 and finite$"),
        ({"delta": 1.0}, r"^delta=1\.0: must be < 1$"),
        ({"delta": -0.1}, r"^delta=-0\.1: must be >= 0"),
        ({"k": 0}, "^k=0: must be a whole number >= 1$"),
        ({"k": 2.0}, r"^k=2\.0: must be a whole number"),
        ({"monotonic": 1}, "^monotonic=1: must be True or False$"),
        ({"rng": np.random.default_rng(1)}, "^rng="),
        ({"neighbors": "friends"}, "^neighbors='friends': must be one of"),
        ({"neighbors": "add-remove"}, "add-remove"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(options, message):
    budget = fastdp.Budget(epsilon=3.0)
    with pytest.raises(ValueError, match=message):
        GumbelMax(**({"sensitivity": 1, "epsilon": 0.5, "budget": budget} | options))
    assert budget.spent == fastdp.PureDP(0.0)
    assert len(budget.releases) == 0


def test_the_repr_shows_parameters_and_how_many_were_offered():
    whole = GumbelMax(sensitivity=1, epsilon=0.5, delta=1e-6)
    whole.offer(np.full(1234, 77.125), 5)
    assert repr(whole) == "GumbelMax(sensitivity=1.0, epsilon=0.5, delta=1e-06, k=1)  # 1,234 candidates offered"


# --- the law, in shards


def test_shards_have_the_law():
    """Two of three candidates in one shard, the other in another: 20,000 times, at false-alarm rate 1e-9."""
    values, counts, source = [0, 2, 1], [0, 0, 0], seeded(31)
    for _ in range(20_000):
        whole = GumbelMax(sensitivity=1, epsilon=2.0, rng=source)
        shard = copy.deepcopy(whole)
        shard.offer(values[1:], 1)
        whole.offer(values[:1], 0)
        counts[whole.merge(shard).winner()] += 1
    right = reference.exponential_law(reference.choice_weights(values, 1))
    verdict = check_cells(counts, right)
    assert verdict, str(verdict)
    for factor in (Fraction(3, 2), Fraction(2, 3)):
        wrong = reference.exponential_law(reference.choice_weights(values, factor))
        assert not check_cells(counts, wrong)


# --- what float64 leaves open


@pytest.fixture
def nothing_is_certain(monkeypatch):
    """Every bound is so wide that integers decide everything."""
    monkeypatch.setattr(kernels, "SLACK", 2.0**60)


@pytest.mark.parametrize("k", [1, 4, 40])
def test_the_race_decided_by_integers_alone_is_the_same_race(k, monkeypatch):
    draw = np.random.default_rng(5)
    floats = draw.normal(size=60) * 3
    floats[::7] = -INF
    cases = [floats, draw.integers(-9, 9, 60), np.array([1.7e308, -1.7e308, 0.0, 1.6e308] * 15)]
    expected = [at_once(array, k, epsilon=k) for array in cases]
    settled = []
    compare = race.exact.compare_arrivals
    monkeypatch.setattr(race.exact, "compare_arrivals", lambda *args: settled.append(1) or compare(*args))
    monkeypatch.setattr(kernels, "SLACK", 2.0**60)
    for array, right in zip(cases, expected, strict=True):
        assert at_once(array, k, epsilon=k) == right
        whole = gumbel(k, epsilon=k)
        whole.offer(array[25:], 25)
        whole.offer(array[:25], 0)
        assert whole.winners().tolist() == right
    assert len(settled) > 500


def test_more_candidates_are_open_than_there_is_room_for(nothing_is_certain):
    """400 are open at once: more room is made for them."""
    array = np.random.default_rng(6).integers(0, 3, 400)
    word = reference.words_of(KEY.tolist())
    undecided = Race(KEY, 1.0, 2)
    undecided.run(array, 0, *tops_of(array))
    assert undecided.indices.size == 400
    assert undecided.ranking().tolist() == reference.race(word, array.tolist(), 1.0, 2)


def test_logarithms_that_the_kernel_leaves_open_are_filled_in():
    """All of them: the race is the same, and its logarithms are the nearest floats."""
    array = np.random.default_rng(8).normal(size=50)
    expected, found = Race(KEY, 1.0, 9), Race(KEY, 1.0, 9)
    expected.run(array, 0, *tops_of(array))
    found.absorb(np.arange(50), array, np.full(50, math.nan))
    assert found.ranking().tolist() == expected.ranking().tolist()
    word = reference.words_of(KEY.tolist())
    for i, log in zip(found.indices.tolist(), found.logs.tolist(), strict=True):
        low, high = next(
            bounds
            for N, b in reference.candidate_prefixes(word, i)
            if b > 96 and (bounds := reference.log_exponential(N, b, 120))
        )
        assert float(low) == float(high) == log


def scripted(monkeypatch, words):
    """The words of candidates, instead of those of a key; beyond them all is about half way."""
    monkeypatch.setattr(race, "word_source", lambda key: lambda stream, i: words.get((stream, i), 2**63 + i))


@pytest.mark.parametrize("zeros", [1, 2, 5, 40])
def test_words_that_are_all_zero_or_all_one(zeros, monkeypatch):
    """Candidate 2's number is 0 in its first words: it comes first, though it starts far behind. Candidate 3's are all
    ones: it comes last, though it starts ahead of the others."""
    words = {(0, 1): 0xFFFFFFFF << 32, (0, 0): 2**63 | 2**30, (0, 2): 2**31}
    for n in range(zeros):
        words[2 * n + 1, 2] = 0
        words[2 * n + 1, 3] = ONES
    scripted(monkeypatch, words)
    behind = -zeros * 44.0 * 0.9 - 15
    ahead = math.log(zeros * 40)
    for kind in (float, int):
        values = np.array([0, 0, math.ceil(behind), math.floor(ahead), 0], float).astype(kind)
        found = Race(KEY, 1.0, 5)
        found.absorb(np.arange(5), values, np.full(5, math.nan))
        ranking = found.ranking().tolist()
        assert (ranking[0], ranking[-1]) == (2, 3)
        one = Race(KEY, 1.0, 1)
        for i in range(5):
            one.absorb(np.array([i]), values[i : i + 1], np.array([math.nan]))
        assert one.ranking().tolist() == [2]


def test_candidates_with_the_same_words_for_long_are_told_apart_in_the_end(monkeypatch):
    """Streams 0 to 19 agree, and the next one does not."""
    for later, order in ((2**62, [1, 0]), (2**63 + 1, [0, 1])):
        words = {(2 * n + 1, i): 12345 + n for n in range(10) for i in (0, 1)} | {(21, 1): later}
        words[0, 0] = 77 << 32 | 77
        scripted(monkeypatch, words)
        found = Race(KEY, 1.0, 2)
        found.absorb(np.arange(2), np.array([3, 3]), np.full(2, math.nan))
        assert found.ranking().tolist() == order
