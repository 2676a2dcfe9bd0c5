"""Where random bits come from (fastdp/randomness/keys.py), and the numpy bit generator over them
(fastdp/randomness/bit_generator.py).

Statistical tests have fixed seeds, so they never flake; the stated alarm is the chance that a right law fails them.
"""

from __future__ import annotations

import copy
import json
import math
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import fastdp.randomness.keys
from fastdp import Randomness, gaussian, get_num_threads, laplace, set_num_threads
from fastdp.kernels import layout
from fastdp.kernels.bit_generator import RENEWED
from fastdp.kernels.words import AES_HERE
from fastdp.randomness.keys import MOST_DRAWS, check_draws, fresh_key
from fastdp.randomness.noise_draws import add_noise
from fastdp.randomness.noise_plans import laplace_plan
from tests import oracles
from tests.laws import ALARM, check_cells, check_dkw

CANNOT_FORK = not hasattr(os, "fork")
CHUNK = 1 << 17  # words that one thread takes at a time
HERE = [layout.AES_MARK] if AES_HERE else []  # what follows the 256 bits of a key of the operating system


@pytest.fixture(autouse=True)
def fixed_keys() -> None:
    """Here they are the operating system's own."""


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Set the number of threads for one test."""
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


# ---------------------------------------------------------------------------------------------------------------------
# keys


def test_key_is_an_array_of_ones_own() -> None:
    """Of eight words for a seed; a ninth names AES where the machine code has its instructions."""
    for rng, cipher in ((Randomness(), HERE), (Randomness(seed=1), [])):
        key = rng.key()
        assert (key.dtype, key.dtype.isnative, key[8:].tolist()) == (np.uint32, True, cipher)
        assert key.flags.writeable  # kernels are compiled for writeable arrays alone
        assert key.flags.c_contiguous
        again = rng.key()
        assert not np.shares_memory(key, again)
        assert (key != again).any()


def test_every_release_takes_256_bits_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is released, with the default source: one call, 32 bytes, used as the key; no seed of anybody's."""
    taken: list[bytes] = []

    def urandom(n: int) -> bytes:
        taken.append(os_urandom(n))
        return taken[-1]

    os_urandom = os.urandom
    monkeypatch.setattr(fastdp.randomness.keys.os, "urandom", urandom)
    releases: list[Callable[[], Any]] = [
        lambda: Randomness().key(),
        lambda: Randomness().words(3),
        lambda: Randomness().bit_generator(),
        lambda: Randomness().generator(),
        lambda: fresh_key(None),
        lambda: laplace(5, sensitivity=1, epsilon=1.0),
        lambda: laplace(np.zeros(5), sensitivity=1, epsilon=1.0, rng=Randomness()),
        lambda: gaussian(5, sensitivity=1, rho=0.5),
    ]
    for number, release in enumerate(releases, 1):
        release()
        assert [len(bits) for bits in taken] == [32] * number, release
    assert len(set(taken)) == len(releases)
    assert fresh_key(None)[:8].tobytes() == taken[-1]
    assert Randomness().bit_generator().state["words"][:4].tobytes() == taken[-1]
    words = Randomness().words(40).tolist()
    key = [*np.frombuffer(taken[-1], np.uint32).tolist(), *HERE]
    assert words == oracles.words.stream_words(key, 0, 0, 40).tolist()


def test_5000_generators_have_distinct_first_words() -> None:
    """A source that seeded itself from fewer bits would repeat itself here. Chance that 10,000 words do: 3e-12."""
    first = [int(Randomness().words(1)[0]) for _ in range(5000)]
    first += [int(Randomness().bit_generator().random_raw()) for _ in range(5000)]
    assert len(set(first)) == 10000


def test_seeds_of_the_host_change_nothing() -> None:
    """A host that seeds numpy's global state, however often, gets other words all the same."""

    def draw() -> list[int]:
        np.random.seed(0)  # noqa: NPY002
        return Randomness().words(4).tolist()

    assert draw() != draw()


# ---------------------------------------------------------------------------------------------------------------------
# seeds


def test_seeded_is_reproducible() -> None:
    one, other = Randomness(seed=7), Randomness(seed=7)
    for _ in range(3):
        assert one.key().tolist() == other.key().tolist()
        assert one.words(5).tolist() == other.words(5).tolist()
        ask = {"sensitivity": 1, "epsilon": 2.0**-20}
        assert laplace(np.zeros(9), rng=one, **ask).tolist() == laplace(np.zeros(9), rng=other, **ask).tolist()
        assert one.generator().random(5).tolist() == other.generator().random(5).tolist()
    assert Randomness(seed=np.int64(7)).key().tolist() == Randomness(seed=7).key().tolist()


def test_two_releases_of_a_seed_differ_and_so_do_seeds() -> None:
    """Seeds alike in their low bits, in their digits, in sign: 256-bit keys, all distinct."""
    keys = set()
    seeds = [0, 1, -1, 7, 71, 2**32, 2**32 + 7, 2**64, 2**64 + 7, 2**300]
    for seed in seeds:
        rng = Randomness(seed=seed)
        keys |= {rng.key().tobytes() for _ in range(120)}  # release 1 of seed 71 and 11 of 7 among them
    assert len(keys) == 120 * len(seeds)


def test_repr_says_so() -> None:
    assert repr(Randomness()) == "Randomness()"
    assert Randomness().secure
    assert repr(Randomness(seed=-3)) == "Randomness(seed=-3)  # for tests: not private"
    assert not Randomness(seed=0).secure
    assert "not private" in repr(Randomness(seed=3).bit_generator())


@pytest.mark.parametrize("seed", [True, np.True_, 1.0, np.float64(2), "7", b"7", [1], 1j], ids=repr)
def test_bad_seed(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"^seed=.*: must be an integer, or None"):
        Randomness(seed=seed)


def test_seed_warns_once(run_python: Callable[..., str]) -> None:
    """Once a process, as a PrivacyWarning at the line that did it; never without a seed."""
    code = """
import json, warnings
import fastdp
from fastdp import Randomness
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Randomness(), Randomness(seed=None), fastdp.laplace(1, sensitivity=1, epsilon=1.0)
    before = len(caught)
    Randomness(seed=1)
    Randomness(seed=1)
    Randomness(seed=2).generator()
print(json.dumps([before, [(w.category.__name__, w.filename, w.lineno, str(w.message)) for w in caught]]))
"""
    before, caught = json.loads(run_python(code))
    assert before == 0
    ((category, file, line, message),) = caught
    assert (category, file, line) == ("PrivacyWarning", "<string>", 9)
    assert "for tests" in message


def test_an_error_of_the_warning_is_an_error_once(run_python: Callable[..., str]) -> None:
    """Hosts turn warnings into errors: the first seeded source raises, and later ones work."""
    code = """
from fastdp import PrivacyWarning, Randomness
try:
    Randomness(seed=1)
except PrivacyWarning:
    print(Randomness(seed=1).secure)
"""
    assert run_python(code).split() == ["False"]


def test_threads_that_share_a_seeded_source_get_distinct_keys() -> None:
    """64 threads at once take 30 keys each: none twice, and together the keys that one thread would get."""
    rng, barrier = Randomness(seed=11), threading.Barrier(64)
    keys: list[bytes] = []

    def take() -> None:
        barrier.wait()
        for _ in range(30):
            keys.append(rng.key().tobytes())

    run_threads([take] * 64)
    alone = Randomness(seed=11)
    assert sorted(keys) == sorted(alone.key().tobytes() for _ in range(64 * 30))
    assert len(set(keys)) == 64 * 30


def run_threads(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---------------------------------------------------------------------------------------------------------------------
# words


def test_words_are_the_first_of_stream_0() -> None:
    for n in (0, 1, 127, 128, 129, 1000):
        words = Randomness(seed=5).words(n)
        assert (words.dtype, words.shape) == (np.uint64, (n,))
        assert words.tolist() == oracles.words.stream_words(Randomness(seed=5).key().tolist(), 0, 0, n).tolist()
    assert Randomness().words(np.int32(3)).size == 3


@pytest.mark.parametrize("n", [-1, True, 1.0, "3", None, np.float64(2), np.int64(-5)], ids=repr)
def test_bad_number_of_words(n: Any) -> None:
    with pytest.raises(ValueError, match=r"^n=.*: must be an integer >= 0"):
        Randomness().words(n)


def test_words_do_not_depend_on_threads(threads: Callable[[int], None]) -> None:
    drawn = []
    for count in (1, 2, 7):
        threads(count)
        drawn.append(Randomness(seed=6).words(3 * CHUNK + 12345))
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()
    assert len(np.unique(drawn[0])) == drawn[0].size  # no chunk repeats another; chance 4e-9 that words do, seed fixed
    for start in (CHUNK - 3, 2 * CHUNK - 3, 3 * CHUNK - 3):
        expected = oracles.words.stream_words(Randomness(seed=6).key().tolist(), 0, start, 6)
        assert drawn[0][start : start + 6].tolist() == expected.tolist()


# ---------------------------------------------------------------------------------------------------------------------
# copies and other sources


def through_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, through_pickle])
def test_copies(duplicate: Callable[[Randomness], Randomness]) -> None:
    """A copy of a secure source draws keys of its own; one of a seeded source goes on where the original was."""
    rng = Randomness()
    other = duplicate(rng)
    assert other.secure
    assert (rng.key() != other.key()).any()
    rng = Randomness(seed=3)
    rng.key()
    other = duplicate(rng)
    assert repr(other) == repr(rng)
    assert other.key().tolist() == rng.key().tolist()
    other.key()
    fresh = Randomness(seed=3)
    assert rng.key().tolist() == [fresh.key().tolist() for _ in range(3)][2]  # the copy counts by itself


@pytest.mark.parametrize(
    "make", [np.random.default_rng, lambda: np.random.PCG64(1), lambda: 7, lambda: Randomness, lambda: "secure"]
)
def test_other_sources_are_refused(make: Callable[[], Any]) -> None:
    other = make()
    with pytest.raises(ValueError, match=r"^rng=.*: must be a fastdp\.Randomness or None; .* not secure"):
        fresh_key(other)
    with pytest.raises(ValueError, match=r"^rng="):
        laplace(1, sensitivity=1, epsilon=1.0, rng=other)


# ---------------------------------------------------------------------------------------------------------------------
# processes

DRAWN = """
def drawn():
    return {
        "words": Randomness().words(64).tolist(),
        "kept source": kept.words(64).tolist(),
        "kept bit generator": bits.random_raw(64).tolist(),
        "kept generator": [float(x).hex() for x in generator.random(64)],
        "new generator": [float(x).hex() for x in Randomness().generator().random(64)],
        "laplace": fastdp.laplace(np.zeros(64, np.int64), sensitivity=1, epsilon=2.0**-38).tolist(),
        "gaussian": fastdp.gaussian(np.zeros(64, np.int64), sensitivity=1, rho=2.0**-70).tolist(),
        "seeded": seeded.words(64).tolist(),
        "seeded bit generator": seeded_bits.random_raw(64).tolist(),
    }
"""

FORKS = (
    """
import json, os, warnings
import numpy as np
import fastdp
from fastdp import Randomness
warnings.simplefilter("ignore", fastdp.PrivacyWarning)
kept, seeded = Randomness(), Randomness(seed=4)
bits, generator, seeded_bits = kept.bit_generator(), kept.generator(), seeded.bit_generator()
"""
    + DRAWN
    + """
def forked(work):
    end, start = os.pipe()
    if os.fork() == 0:
        with os.fdopen(start, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as pipe:
        return json.load(pipe)

before = drawn()
children = [forked(drawn), forked(drawn), forked(lambda: forked(drawn))]
print(json.dumps([before, drawn(), *children]))
"""
)


@pytest.mark.skipif(CANNOT_FORK, reason="no fork")
def test_forked_children_repeat_nobody(run_python: Callable[..., str]) -> None:
    """A parent before and after, two children and a grandchild: no word in common, whatever drew it.

    The noise has scales of 2^38 and 2^34.5, where equal draws have a chance of 1e-8 in all. Seeded sources go on as
    they were: all children alike.
    """
    processes = json.loads(run_python(FORKS))
    secure = ["words", "kept source", "kept bit generator", "kept generator", "new generator"]
    everything = [word for process in processes for name in secure for word in process[name]]
    assert len(set(everything)) == len(everything) == 5 * 5 * 64
    for name in ("laplace", "gaussian"):
        releases = [process[name] for process in processes]
        for i, one in enumerate(releases):
            for other in releases[:i]:
                assert all(x != y for x, y in zip(one, other, strict=True))
    before, *later = processes
    for name in ("seeded", "seeded bit generator"):
        assert all(process[name] == later[0][name] for process in later)
        assert later[0][name] != before[name]


def _draw_in_child(rng: Randomness, answer: Any) -> None:
    answer.send([rng.words(64).tolist(), Randomness().words(64).tolist(), rng.bit_generator().random_raw(64).tolist()])


def test_spawned_children_repeat_nobody() -> None:
    """The same source is sent to two new processes, and used here as well."""
    context = multiprocessing.get_context("spawn")
    rng = Randomness()
    ends = []
    for _ in range(2):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_draw_in_child, args=(rng, there))
        process.start()
        ends.append((here, process))
    words = [word for row in (rng.words(64), rng.words(64)) for word in row.tolist()]
    for here, process in ends:
        assert here.poll(1800)
        words += [word for row in here.recv() for word in row]
        process.join()
        assert process.exitcode == 0
    assert len(set(words)) == len(words) == 2 * 64 + 2 * 3 * 64


# ---------------------------------------------------------------------------------------------------------------------
# the numpy bit generator

BUFFER = 1024  # words that are made at once


def oracle(bits: Any, n: int) -> list[int]:
    """The first n words of stream 0 of a bit generator's key."""
    return oracles.words.stream_words(key_in(bits), 0, 0, n).tolist()


def key_in(bits: Any) -> list[int]:
    words = bits.state["words"]
    return [*words[:4].view(np.uint32).tolist(), *words[8:9].tolist()][: 9 if words[8] else 8]


def seeded_bits() -> Any:
    return Randomness(seed=21).bit_generator()


def test_raw_words_are_those_of_the_stream() -> None:
    """In order, one by one or many, across the borders of the buffer."""
    bits = Randomness().bit_generator()
    expected = oracle(bits, 2 * BUFFER + 300)
    drawn = [bits.random_raw() for _ in range(5)] + bits.random_raw(BUFFER - 6).tolist() + [bits.random_raw()]
    drawn += bits.random_raw(BUFFER + 300).tolist()
    assert drawn == expected


def test_64_bit_integers_are_the_words() -> None:
    bits = seeded_bits()
    expected = oracle(bits, 50)
    assert np.random.Generator(bits).integers(0, 2**64, 50, np.uint64).tolist() == expected


def test_32_bit_integers_are_halves_low_first() -> None:
    bits = seeded_bits()
    expected = np.array(oracle(bits, 600), "<u8").view("<u4").tolist()
    assert np.random.Generator(bits).integers(0, 2**32, 1200, np.uint32).tolist() == expected


def test_a_spare_half_waits_while_whole_words_are_drawn() -> None:
    bits = seeded_bits()
    first, second, third = oracle(bits, 3)
    interface = bits.ctypes
    assert interface.next_uint32(interface.state) == first & 0xFFFFFFFF
    assert interface.next_uint64(interface.state) == second
    assert interface.next_uint32(interface.state) == first >> 32
    assert interface.next_uint32(interface.state) == third & 0xFFFFFFFF


def test_doubles_are_multiples_of_2_to_minus_53() -> None:
    bits = seeded_bits()
    expected = oracle(bits, 1500)
    drawn = np.random.Generator(bits).random(1500)
    assert drawn.tolist() == [(word >> 11) * 2.0**-53 for word in expected]
    assert ((drawn >= 0) & (drawn < 1)).all()


def test_the_extreme_doubles() -> None:
    """0 and 1 - 2^-53, from a buffer that holds the extreme words: never 1."""
    bits = seeded_bits()
    bits.random_raw()
    state = bits.state
    state["words"][10:13] = [0, 2**64 - 1, 2**11 - 1]
    bits.state = state
    assert np.random.Generator(bits).random(3).tolist() == [0.0, 1 - 2.0**-53, 0.0]


def test_numpy_distributions_over_the_words() -> None:
    """Normals, bounded integers, shuffles. The false-alarm rate of each check is 1e-9."""
    generator = Randomness(seed=22).generator()
    normal = generator.normal(3.0, 2.0, 20000)
    erf = np.vectorize(math.erf)
    verdict = check_dkw(normal, lambda x: 0.5 + 0.5 * erf((x - 3.0) / 2.0 / math.sqrt(2)), ALARM)
    assert verdict, verdict
    wrong = check_dkw(normal, lambda x: 0.5 + 0.5 * erf((x - 3.0) / 3.0 / math.sqrt(2)), ALARM)
    assert not wrong, wrong
    assert abs(normal.mean() - 3.0) <= 6.2 * 2.0 / math.sqrt(20000)  # the mean is normal: Pr[|Z| > 6.2] < 1e-9
    assert 0.9 <= normal.var() / 4.0 <= 1.1  # chi squared with 20,000 degrees of freedom: 1e-22
    counts = np.bincount(generator.integers(0, 7, 50000, np.int64), minlength=7)
    verdict = check_cells(counts, [1 / 7] * 7)
    assert verdict, verdict
    orders = np.array([generator.permutation(4) for _ in range(5000)]) @ [64, 16, 4, 1]
    _, counts = np.unique(orders, return_counts=True)
    verdict = check_cells(counts, [1 / 24] * 24)
    assert verdict, verdict


def test_words_of_aes_are_those_of_its_key_and_then_of_the_next() -> None:
    """After 2^32 blocks stream 1 gives another key: blocks of one never repeat, and of too many this would show."""
    bits = seeded_bits()
    words = bits.state["words"]
    words[8] = layout.AES_MARK
    bits.state = bits.state | {"words": words}
    key = key_in(bits)
    assert len(key) == 9
    assert bits.random_raw(300).tolist() == oracle(bits, 300)
    words = bits.state["words"]
    words[4], words[5] = RENEWED - 8, BUFFER
    bits.state = bits.state | {"words": words}
    assert bits.random_raw(3).tolist() == oracles.words.stream_words(key, 0, 128 * (RENEWED - 8), 3).tolist()
    assert key_in(bits) == key
    bits.random_raw(BUFFER - 3)
    following = oracles.words.stream_half_words(key, 1, 0, 8).tolist()
    first = bits.random_raw(2000).tolist()
    assert key_in(bits) == [*following, layout.AES_MARK]
    assert first == oracle(bits, 2000)


def test_there_is_a_largest_number_of_draws() -> None:
    check_draws(MOST_DRAWS)
    with pytest.raises(ValueError, match=r"^n=1099511627777: must be at most 2\^40 random numbers in one release$"):
        check_draws(MOST_DRAWS + 1)
    endless = np.broadcast_to(np.zeros(1, np.int64), (MOST_DRAWS + 1,))
    with pytest.raises(ValueError, match=r"^n=1099511627777: must be"):
        add_noise(laplace_plan(3.0), None, fresh_key(None), endless, endless)


def test_used_words_are_wiped() -> None:
    """The state holds the words to come and none that were drawn, halves included."""
    bits = seeded_bits()
    expected = oracle(bits, BUFFER)
    assert not bits.state["words"][6:].any()
    bits.random_raw(100)
    np.random.Generator(bits).integers(0, 2**32, 3, np.uint32)
    words = bits.state["words"]
    assert not words[9 : 9 + 102].any()
    assert words[9 + 102 :].tolist() == expected[102:]
    assert words[6] == expected[101] >> 32  # the spare half is still to come
    np.random.Generator(bits).integers(0, 2**32, 1, np.uint32)
    assert bits.state["words"][6] == 0
    bits.random_raw(BUFFER - 102)
    assert not bits.state["words"][6:].any()


def test_state_is_saved_and_put_back() -> None:
    """At the start, within the buffer, at its end, with a spare half: into the same generator and into another."""
    for drawn in (0, 5, BUFFER, BUFFER + 1):
        bits, other = seeded_bits(), Randomness().bit_generator()
        generator = np.random.Generator(bits)
        bits.random_raw(drawn)
        generator.integers(0, 2**32, drawn % 2, np.uint32)
        saved = bits.state
        ahead = bits.random_raw(2000).tolist(), generator.integers(0, 2**32, 3, np.uint32).tolist()
        for target in (bits, other):
            target.state = saved
            generator = np.random.Generator(target)
            assert (target.random_raw(2000).tolist(), generator.integers(0, 2**32, 3, np.uint32).tolist()) == ahead
        assert saved["words"] is not bits.state["words"]


def wrong_states() -> dict[str, Any]:
    right = seeded_bits().state

    def changed(place: int, value: int) -> dict[str, Any]:
        words = right["words"].copy()
        words[place] = value
        return {**right, "words": words}

    return {
        "of PCG64": np.random.PCG64(1).state,
        "no name": {"words": right["words"]},
        "short": {**right, "words": right["words"][:-1]},
        "long": {**right, "words": np.append(right["words"], np.uint64(0))},
        "two axes": {**right, "words": right["words"][None]},
        "empty": {},
        "no words": {"bit_generator": right["bit_generator"]},
        "no mapping": 5,
        "negative words": {**right, "words": [-1] * right["words"].size},
        "floats": {**right, "words": right["words"].astype(np.float64)},
        "position beyond the buffer": changed(5, BUFFER + 1),
        "position far beyond the buffer": changed(5, 2**40),
        "another cipher": changed(8, 1),
    }


@pytest.mark.parametrize("name", wrong_states())
def test_wrong_state_is_rejected(name: str) -> None:
    """With a clear error, and nothing is changed. A position beyond the buffer would read and write foreign memory."""
    bits = seeded_bits()
    bits.random_raw(10)
    before = bits.state["words"].tolist()
    with pytest.raises(ValueError, match=r"^state: must be the state of a fastdp RandomWords"):
        bits.state = wrong_states()[name]
    assert bits.state["words"].tolist() == before


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, through_pickle])
@pytest.mark.parametrize("secure", [True, False], ids=["secure", "seeded"])
def test_bit_generators_are_not_copied(duplicate: Callable[[Any], Any], secure: bool) -> None:
    bits = Randomness().bit_generator() if secure else seeded_bits()
    with pytest.raises(TypeError, match="does not pickle or copy: two copies would repeat each other's words"):
        duplicate(bits)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])
def test_generators_are_not_copied(duplicate: Callable[[Any], Any]) -> None:
    """copy.copy of a numpy Generator shares its bit generator, which repeats nothing."""
    with pytest.raises(TypeError, match="does not pickle or copy: two copies would repeat each other's words"):
        duplicate(Randomness().generator())


def test_no_predictable_seed_sequence() -> None:
    """numpy hands out a bit generator's seed sequence, and libraries seed workers from it: not with a known seed."""
    seen = []
    for _ in range(2):
        sequence: Any = Randomness().bit_generator().seed_seq
        with suppress(TypeError):  # refused: as good
            seen.append(sequence.generate_state(8).tolist())
        with pytest.raises(TypeError, match="has no seed sequence"):
            sequence.spawn(2)
    assert len(seen) < 2 or seen[0] != seen[1]


def test_spawned_generators_repeat_nobody() -> None:
    """`Generator.spawn` gives generators with keys of their own: fresh ones, or the seeded source's next."""
    parent = Randomness().generator()
    drawn = [g.integers(0, 2**64, 100, np.uint64) for g in (parent, *parent.spawn(2), *parent.spawn(1))]
    assert len(np.unique(drawn)) == 400
    one, other = (Randomness(seed=24).generator().spawn(2) for _ in range(2))
    assert one[0].random() == other[0].random()
    assert one[1].random() == other[1].random() != other[0].random()


def test_threads_share_a_bit_generator() -> None:
    """numpy holds the generator's lock: 8 threads together draw each word once, and none that is not there."""
    bits = seeded_bits()
    expected = sorted(oracle(bits, 16000))
    barrier = threading.Barrier(8)
    drawn: list[int] = []

    def draw() -> None:
        barrier.wait()
        for _ in range(20):
            drawn.extend(bits.random_raw(100).tolist())

    run_threads([draw] * 8)
    assert sorted(drawn) == expected


def test_a_generator_outlives_its_source_and_its_maker() -> None:
    """The state that numpy's C code points at is kept alive by the bit generator alone."""
    generator = Randomness(seed=23).generator()
    expected = Randomness(seed=23).words(4000).tolist()
    junk = [np.zeros(1100, np.uint64) for _ in range(200)]
    assert generator.integers(0, 2**64, 4000, np.uint64).tolist() == expected
    assert len(junk) == 200


METHODS: dict[str, tuple[Any, ...]] = {
    "beta": (2.0, 3.0), "binomial": (10, 0.3), "bytes": (40,), "chisquare": (3.0,), "choice": (50,),
    "dirichlet": ([1.0, 2.0, 3.0],), "exponential": (2.0,), "f": (2.0, 3.0), "gamma": (2.0,), "geometric": (0.3,),
    "gumbel": (), "hypergeometric": (5, 6, 7), "integers": (100,), "laplace": (), "logistic": (), "lognormal": (),
    "logseries": (0.5,), "multinomial": (10, [0.2, 0.8]), "multivariate_hypergeometric": ([3, 4], 5),
    "multivariate_normal": ([0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]), "negative_binomial": (3, 0.4),
    "noncentral_chisquare": (3.0, 1.0), "noncentral_f": (3.0, 4.0, 1.0), "normal": (), "pareto": (3.0,),
    "permutation": (20,), "permuted": ([1, 2, 3],), "poisson": (4.0,), "power": (2.0,), "random": (), "rayleigh": (),
    "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (2.0,), "standard_normal": (),
    "standard_t": (3.0,), "triangular": (0.0, 0.5, 1.0), "uniform": (), "vonmises": (0.0, 1.0), "wald": (1.0, 2.0),
    "weibull": (2.0,), "zipf": (3.0,),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_a_generator_draws(method: str) -> None:
    """From the words, in the same way every time; other words give something else."""
    first, again, other = (getattr(Randomness(seed=s).generator(), method) for s in (31, 31, 32))
    sized = method not in ("bytes", "permutation", "permuted", "choice")
    draw = (lambda f: f(*METHODS[method], size=64)) if sized else (lambda f: f(*METHODS[method]))
    drawn, repeated, different = draw(first), draw(again), draw(other)
    assert np.array_equal(drawn, repeated)
    if method not in ("choice", "permuted"):  # of so few that they may be alike
        assert not np.array_equal(drawn, different)
    if isinstance(drawn, np.ndarray):
        assert np.isfinite(drawn).all()


def test_every_public_method_is_in_the_list() -> None:
    public = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert set(METHODS) | {"bit_generator", "spawn", "shuffle"} >= public
    deck = list(range(60))
    Randomness().generator().shuffle(deck)
    assert sorted(deck) == list(range(60)) != deck


BAD_KEYS = {
    "one word": np.zeros(1, np.uint32),
    "seven words": np.zeros(7, np.uint32),
    "none": np.empty(0, np.uint32),
    "long words": np.zeros(8, np.uint64),
    "signed": np.zeros(8, np.int32),
    "the other byte order": np.zeros(8, np.dtype(np.uint32).newbyteorder()),
    "a row of them": np.zeros((1, 8), np.uint32),
    "bytes": bytes(32),
    "a list": [0] * 8,
    "another cipher": np.arange(9, dtype=np.uint32),
    "round keys": np.zeros(60, np.uint32),
    "nothing": None,
}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_keys_of_a_source_of_the_callers_own_are_checked(kind):
    """Kernels read eight words wherever it points: one word would be followed by whatever lies behind it."""

    class Own(Randomness):
        def key(self):
            return BAD_KEYS[kind]

    with pytest.raises(ValueError, match=r"^rng: key\(\) of Own: must return a numpy array of 8 words, uint32, or"):
        fastdp.laplace(3, sensitivity=1, epsilon=1.0, rng=Own())
    for draw in (lambda: Own().words(3), Own().generator, Own().bit_generator):
        with pytest.raises(ValueError, match=r"^rng: key\(\) of Own: must return"):
            draw()


def test_keys_of_a_source_of_the_callers_own_are_copied():
    """In eight words one after the other, which it cannot change any more."""
    wide = np.arange(32, dtype=np.uint32)

    class Own(Randomness):
        def key(self):
            return wide[::4]

    key = fresh_key(Own())
    assert key.tolist() == list(range(0, 32, 4))
    assert key.flags.c_contiguous
    assert not np.shares_memory(key, wide)


def test_what_gives_keys_cannot_be_set():
    for rng in (Randomness(), fastdp.Randomness(seed=3)):
        for name in ("key", "secure", "words", "seed"):
            with pytest.raises(AttributeError):
                setattr(rng, name, lambda: np.zeros(8, np.uint32))
