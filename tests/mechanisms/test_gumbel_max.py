"""Gumbel-max and GumbelMax: any division into blocks has one winner, whatever float64 leaves open is settled, and what
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

import fastdp
from fastdp import GumbelMax
from fastdp.kernels import layout
from fastdp.mechanisms import gumbel_max as module
from fastdp.mechanisms.gumbel_max import GumbelState, _Held
from fastdp.mechanisms.scores import tops_of
from tests import oracles
from tests.laws import check_cells

INF = math.inf
KEY = np.arange(3, 11, dtype=np.uint32) * np.uint32(0x9E3779B9)
ONES = 2**64 - 1


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def gumbel(k=1, seed=7, **options):
    return GumbelMax(**({"sensitivity": 1, "epsilon": 1.0, "k": k, "rng": seeded(seed)} | options))


def race_of(k, eta=1.0, dtype=float):
    made = GumbelState(KEY, eta, k)
    made.admit(np.dtype(dtype))
    return made


def take(race_, numbers, values, logs=None):
    """These candidates take part, with logarithms that the kernel left open."""
    logs = np.full(len(numbers), math.nan) if logs is None else logs
    race_.absorb(_Held(np.array(numbers), np.asarray(values), logs))


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
        "one far above": np.concatenate(([1e18], np.arange(n - 1) % 5.0)),
        "one far above, integers": np.concatenate((np.arange(n - 1) % 5, [2**62])),
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
        expected, whole = at_once(array, k, seed), gumbel(k, seed)
        shards = [copied(whole.shard()) for _ in range(3)]
        shards += [copied(shards[0]), shards[1].shard()]
        for start, stop in random_cuts(array.size, draw, 20):
            draw.choice([whole, *shards]).offer(array[start:stop], start)
        shards = [copied(shard) for shard in shards]
        while len(shards) > 1:
            draw.shuffle(shards)
            other = shards.pop()
            assert shards[-1].merge(other) is shards[-1]
        assert whole.merge(copied(shards[0])) is whole
        assert whole.candidates == array.size
        assert whole.winners().tolist() == expected


def test_shards_and_their_copies_are_apart():
    """What one is offered, the others have not been."""
    whole = gumbel()
    whole.offer([1, 2], 7)
    first = whole.shard()
    for shard in (first, first.shard(), copy.deepcopy(first), pickle.loads(pickle.dumps(first)), copy.copy(first)):
        before = shard.candidates
        shard.offer([1, 2, 3], 0)
        assert (before, shard.candidates, whole.candidates) == (before, before + 3, 2)
        first = whole.shard()


ANNOUNCERS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda whole: copy.deepcopy([whole])[0],
    "pickle": lambda whole: pickle.loads(pickle.dumps(whole)),
}


@pytest.mark.parametrize("duplicate", [*ANNOUNCERS.values(), GumbelMax.shard], ids=[*ANNOUNCERS, "shard"])
def test_one_object_alone_announces_a_winner(duplicate):
    """Whoever could ask copies, each with other public scores, would read a private score by bisection."""
    whole = GumbelMax(sensitivity=1, epsilon=0.01)
    whole.offer([739.0], 0)  # what is private

    def twin_wins(level):
        twin = duplicate(whole)
        twin.offer([level], 1)
        return twin.winner() == 1

    with pytest.raises((TypeError, ValueError), match=r"could announce a winner|must be the whole, and is a shard"):
        twin_wins(0.0)
    for twin in (whole.shard(), copy.deepcopy(whole.shard()), whole.shard().merge(whole.shard())):
        twin.offer([1e9], 1)
        for ask in (twin.winner, twin.winners):
            with pytest.raises(ValueError, match=r"^this GumbelMax: must be the whole, and is a shard: merge it"):
                ask()
    assert whole.merge(twin).winner() == 1
    with pytest.raises(ValueError, match="must be open, but it has announced its winner"):
        whole.shard()


def test_what_was_charged_cannot_be_set():
    whole = gumbel(k=2)
    for name, value in (("k", 5), ("guarantee", fastdp.PureDP(0.1))):
        with pytest.raises(AttributeError):
            setattr(whole, name, value)
    assert not hasattr(whole, "parameters")


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
    n = 2 * layout.CANDIDATE_CHUNK + 5000
    draw = np.random.default_rng(4)
    far = np.where(np.arange(n) == 300_000, 1e18, np.arange(n) % 3.0)
    for array in (draw.integers(0, 12, n), draw.normal(size=n) * 3, np.arange(n) * 1e-4, far):
        for k in (1, 6):
            found = []
            for threads in (1, 2, 3):
                monkeypatch.setattr(fastdp.support.threads, "_count", threads)
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
    word = oracles.words.words_of(key)
    arrivals = {}
    for first in (2**62 - 3, 0, 10**12):
        for i, score in enumerate(array.tolist()):
            arrivals[first + i] = oracles.selection._log_arrival(word, first + i, -Fraction(eta) * Fraction(score), 60)[
                0
            ]
    assert whole.winners().tolist() == sorted(arrivals, key=arrivals.__getitem__)[:5]


def test_the_winner_is_the_oracles():
    word = oracles.words.words_of(seeded(7).key().tolist())
    for kind in ("integers", "floats"):
        array = ARRAYS[kind][:900]
        for k in (1, 8):
            assert at_once(array, k) == oracles.selection.gumbel_max(word, array.tolist(), 0.5 / k, k)


# --- integers and floats


def test_integers_and_floats_do_not_mix():
    """Refused whatever their values are, so that no error tells anything about scores; and nothing has happened."""
    for first, second in (([0, 1], [0.5, 1.5]), ([0.5, 1.5], [0, 1]), ([2**60], [0.0]), ([-INF], [3])):
        whole = gumbel()
        shard = whole.shard()
        whole.offer(first, 0)
        shard.offer(second, 5)
        message = r"^scores: dtype (int|float)64: must be (int|float)64, as in the other blocks; make all floats$"
        with pytest.raises(ValueError, match=message):
            whole.offer(second, 9)
        with pytest.raises(ValueError, match=message):
            whole.merge(shard)
        assert (whole.candidates, shard.candidates) == (len(first), len(second))
        other = gumbel()
        assert other.merge(shard).winner() >= 5
        if first != [-INF]:
            assert whole.winner() < 2


def test_an_empty_block_has_no_type():
    for values in ([1, 2], [1.0, 2.0]):
        whole = gumbel()
        whole.offer([], 0)
        whole.offer(np.array([], int), 0)
        whole.offer(values, 0)
        whole.offer([], 0)
        assert whole.candidates == 2


def test_large_integers_alone_are_exact():
    """One apart at 2^62: as far apart as 0 and 1."""
    for seed in range(20):
        assert at_once([2**62, 2**62 + 1], 1, seed, epsilon=2.0) == at_once([0, 1], 1, seed, epsilon=2.0)


# --- what is refused


def test_a_candidate_is_offered_once():
    whole = gumbel()
    whole.offer(np.zeros(10), 100)
    for first, n, twice in ((100, 1, 100), (109, 5, 109), (95, 6, 100), (90, 30, 100), (105, 2, 105)):
        with pytest.raises(ValueError, match=f"^first_index: candidate {twice}: must be offered once"):
            whole.offer(np.zeros(n), first)
    whole.offer(np.zeros(5), 110)
    whole.offer(np.zeros(5), 95)
    assert whole.candidates == 20
    with pytest.raises(ValueError, match=r"^first_index: candidate 95: must be offered once"):
        whole.offer([1], 95)
    assert whole.winner() in range(95, 115)


def test_overlapping_shards_do_not_merge_and_stay_as_they_were():
    first = gumbel()
    second = first.shard()
    first.offer([1, 2, 3], 0)
    second.offer([100, 100], 2)
    with pytest.raises(ValueError, match=r"^first_index: candidate 2: must be offered once"):
        first.merge(second)
    assert first.candidates == 3
    assert first.winner() in (0, 1, 2)


def test_nothing_is_offered_after_the_winner():
    whole = gumbel()
    shard = whole.shard()
    whole.offer([1, 2, 3], 0)
    shard.offer([5], 3)
    chosen = whole.winner()
    for late in (lambda: whole.offer([9], 7), lambda: whole.offer([], 7), lambda: whole.merge(shard)):
        with pytest.raises(ValueError, match=r"^this GumbelMax: must be open, but it has announced its winner"):
            late()
    with pytest.raises(ValueError, match=r"^other: must be another shard of this GumbelMax"):
        shard.merge(whole)
    assert whole.winner() == chosen
    whole.winners()[0] = 99
    assert whole.winner() == chosen


@pytest.mark.parametrize("options", [{"seed": 8}, {"k": 2}, {"epsilon": 0.9}, {"sensitivity": 2}, {"monotonic": True}])
def test_only_shards_merge(options):
    whole, other = gumbel(), gumbel(**options)
    for stranger in (other, other.shard(), whole, gumbel()):
        with pytest.raises(ValueError, match=r"^other: must be another shard of this GumbelMax, made by its shard"):
            whole.merge(stranger)
    with pytest.raises(ValueError, match=r"^other: type int: must be a GumbelMax"):
        whole.merge(3)


def test_an_interrupted_offer_leaves_no_winner(monkeypatch):
    whole = gumbel()
    shard = whole.shard()
    whole.offer([1.0, 2.0], 0)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GumbelState, "absorb", interrupt)
        with pytest.raises(KeyboardInterrupt):
            whole.offer([50.0], 2)
    with monkeypatch.context() as patch:
        patch.setattr(GumbelState, "absorb", interrupt)
        with pytest.raises(KeyboardInterrupt):
            shard.offer([50.0], 3)
    copied = copy.deepcopy(shard)
    for refused in (whole.winner, whole.winners, whole.shard, lambda: whole.offer([1.0], 9)):
        with pytest.raises(ValueError, match="must be open, but an offer or a merge was interrupted"):
            refused()
    for broken in (shard, copied):
        for refused in (broken.winner, broken.winners, broken.shard, lambda broken=broken: broken.offer([1.0], 9)):
            with pytest.raises(ValueError, match="must be open, but an offer or a merge was interrupted"):
                refused()
        with pytest.raises(ValueError, match=r"^other: must be open, but an offer or a merge was interrupted"):
            gumbel().merge(broken)


def test_no_winner_and_no_copy_while_a_thread_offers(monkeypatch):
    """A winner of a part of the block would depend on which part that is."""
    whole = gumbel()
    shard = whole.shard()
    other = shard.shard()
    inside, go_on = threading.Event(), threading.Event()
    run = GumbelState.add

    def slow(*args):
        inside.set()
        assert go_on.wait(1800)
        run(*args)

    monkeypatch.setattr(GumbelState, "add", slow)
    threads = [
        threading.Thread(target=whole.offer, args=([1.0, 2.0], 0)),
        threading.Thread(target=shard.offer, args=([1.0, 2.0], 2)),
    ]
    for thread in threads:
        thread.start()
        assert inside.wait(1800)
        inside.clear()
    refused = (whole.winner, lambda: copy.deepcopy(shard), lambda: pickle.dumps(shard), lambda: other.merge(shard))
    for call in refused:
        with pytest.raises(RuntimeError, match="must have no offer in progress; wait for the threads that offer"):
            call()
    go_on.set()
    for thread in threads:
        thread.join()
    assert gumbel().merge(copy.deepcopy(shard)).winner() in (2, 3)
    assert whole.merge(shard).winner() in (0, 1, 2, 3)


def test_a_shard_is_merged_once_and_closed():
    """Nothing that it might be offered afterwards would take part."""
    whole = gumbel()
    shard = whole.shard()
    shard.offer([1.0, 2.0], 0)
    whole.merge(shard)
    for refused in (shard.winner, lambda: shard.offer([1.0], 5), lambda: whole.merge(shard)):
        with pytest.raises(ValueError, match=r"must be open, but it was merged into another"):
            refused()
    assert whole.winner() in (0, 1)


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
    with pytest.raises(ValueError, match=r"^candidates=0: must be at least one that is not -inf$"):
        whole.winner()
    whole.offer([-INF, -INF], 0)
    with pytest.raises(ValueError, match=r"^candidates=2: must be at least one that is not -inf$"):
        whole.winner()
    whole.offer([-INF, 3.0], 2)
    assert whole.winner() == 3
    several = gumbel(k=3)
    several.offer([1.0, -INF, 2.0], 0)
    with pytest.raises(ValueError, match=r"^k=3: must be at most the number of candidates that are not -inf, 2$"):
        several.winners()
    several.offer([-5.0], 3)
    assert sorted(several.winners().tolist()) == [0, 2, 3]
    with pytest.raises(ValueError, match=r"^k=3: must be 1 for one winner; call winners\(\)$"):
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
    shard = whole.shard()
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
        ({"delta": 1.0}, r"^delta=1\.0: must be between 0 and 1, 1 excluded$"),
        ({"delta": -0.1}, r"^delta=-0\.1: must be between 0 and 1, 1 excluded"),
        ({"k": 0}, "^k=0: must be an integer >= 1$"),
        ({"k": 2.0}, r"^k=2\.0: must be an integer"),
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
        shard = whole.shard()
        shard.offer(values[1:], 1)
        whole.offer(values[:1], 0)
        counts[whole.merge(shard).winner()] += 1
    right = oracles.selection.exponential_law(oracles.selection.choice_weights(values, 1))
    verdict = check_cells(counts, right)
    assert verdict, str(verdict)
    for factor in (Fraction(3, 2), Fraction(2, 3)):
        wrong = oracles.selection.exponential_law(oracles.selection.choice_weights(values, factor))
        assert not check_cells(counts, wrong)


# --- what float64 leaves open


@pytest.fixture
def nothing_is_certain(monkeypatch):
    """Every bound is so wide that integers decide everything."""
    monkeypatch.setattr(layout, "SLACK", 2.0**60)


@pytest.mark.parametrize("k", [1, 4, 40])
def test_the_race_decided_by_integers_alone_is_the_same_race(k, monkeypatch):
    draw = np.random.default_rng(5)
    floats = draw.normal(size=60) * 3
    floats[::7] = -INF
    cases = [floats, draw.integers(-9, 9, 60), np.array([1.7e308, -1.7e308, 0.0, 1.6e308] * 15)]
    expected = [at_once(array, k, epsilon=k) for array in cases]
    settled = []
    compare = module.exact.compare_arrivals
    monkeypatch.setattr(module.exact, "compare_arrivals", lambda *args: settled.append(1) or compare(*args))
    monkeypatch.setattr(layout, "SLACK", 2.0**60)
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
    word = oracles.words.words_of(KEY.tolist())
    undecided = race_of(2, dtype=int)
    undecided.add(array, 0, *tops_of(array))
    assert undecided.held.indices.size == 400
    assert undecided.ranking().tolist() == oracles.selection.gumbel_max(word, array.tolist(), 1.0, 2)


def test_logarithms_that_the_kernel_leaves_open_are_filled_in():
    """All of them: the choice is the same, and its logarithms are the nearest floats."""
    array = np.random.default_rng(8).normal(size=50)
    expected, found = race_of(9), race_of(9)
    expected.add(array, 0, *tops_of(array))
    take(found, range(50), array)
    assert found.ranking().tolist() == expected.ranking().tolist()
    word = oracles.words.words_of(KEY.tolist())
    for i, log in zip(found.held.indices.tolist(), found.held.logs.tolist(), strict=True):
        low, high = next(
            bounds
            for N, b in oracles.words.candidate_prefixes(word, i)
            if b > 96 and (bounds := oracles.selection.log_exponential(N, b, 120))
        )
        assert float(low) == float(high) == log


def scripted(monkeypatch, words):
    """The words of candidates, instead of those of a key; beyond them all is about half way."""
    monkeypatch.setattr(module, "word_source", lambda key: lambda stream, i: words.get((stream, i), 2**63 + i))


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
        found = race_of(5, dtype=kind)
        take(found, range(5), values)
        ranking = found.ranking().tolist()
        assert (ranking[0], ranking[-1]) == (2, 3)
        one = race_of(1, dtype=kind)
        for i in range(5):
            take(one, [i], values[i : i + 1])
        assert one.ranking().tolist() == [2]


def test_candidates_with_the_same_words_for_long_are_told_apart_in_the_end(monkeypatch):
    """Streams 0 to 19 agree, and the next one does not."""
    for later, order in ((2**62, [1, 0]), (2**63 + 1, [0, 1])):
        words = {(2 * n + 1, i): 12345 + n for n in range(10) for i in (0, 1)} | {(21, 1): later}
        words[0, 0] = 77 << 32 | 77
        scripted(monkeypatch, words)
        found = race_of(2, dtype=int)
        take(found, [0, 1], [3, 3])
        assert found.ranking().tolist() == order


def test_an_interrupted_merge_leaves_no_winner_and_does_not_hang(monkeypatch):
    """The candidates may or may not be in: neither object goes on."""
    one = fastdp.GumbelMax(sensitivity=1, epsilon=1.0)
    other = one.shard()
    one.offer([1, 2], 0)
    other.offer([3, 4], 2)
    absorb = GumbelState.absorb

    def interrupted(self, more):
        absorb(self, more)
        raise KeyboardInterrupt

    monkeypatch.setattr(GumbelState, "absorb", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.merge(other)
    monkeypatch.undo()
    for each in (one, other):
        with pytest.raises(ValueError, match="interrupted"):
            each.winner()
    with pytest.raises(ValueError, match="interrupted"):
        one.merge(other)
