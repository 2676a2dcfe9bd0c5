"""The cipher is part of the key: it goes with it to other processes, and into shards; the laws are those of any words.

Statistical tests have fixed keys, so they never flake; the stated alarm is the chance that a right law fails them.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import GumbelMax, Randomness
from fastdp.kernels import chacha20, layout, words
from tests import oracles
from tests.laws import assert_law, check_cells, wrong_scales

CIPHERS = {"ChaCha20": [], "AES-256-CTR": [layout.AES_MARK]}  # what follows the 256 bits
PRICE: Any = {"sensitivity": 1, "epsilon": 0.25}
SCORES = np.arange(300) % 41
both = pytest.mark.parametrize("cipher", CIPHERS)


class Source(Randomness):
    """Keys of one cipher, the same ones in every process; each names how often it was asked."""

    def __init__(self, cipher: str) -> None:
        super().__init__()
        self.cipher, self.asked = cipher, 0

    def key(self) -> Any:
        bits = hashlib.sha256(f"tests of ciphers {self.asked}".encode()).digest()
        self.asked += 1
        return np.append(np.frombuffer(bits, np.uint32), np.array(CIPHERS[self.cipher], np.uint32))

    def __getstate__(self) -> Any:
        return self.cipher, self.asked

    def __setstate__(self, state: Any) -> None:
        self.__init__(state[0])  # type: ignore[misc]
        self.asked = state[1]


def drawn(key: Any, rng: Randomness) -> list[Any]:
    """Words of a key, and releases of a source."""
    out = np.zeros(1000, np.uint64)
    words.words_into(key, 5, 70, out)
    return [
        out.tolist(),
        rng.words(300).tolist(),
        fastdp.laplace(np.zeros(500, int), rng=rng, **PRICE).tolist(),
        fastdp.gaussian(np.zeros(500), sensitivity=1, rho=0.1, rng=rng).tolist(),
        int(fastdp.exponential_mechanism(SCORES, rng=rng, **PRICE)),
        rng.bit_generator().random_raw(50).tolist(),
    ]


# --- other processes


def answer(pipe: Any) -> None:
    pipe.send(drawn(*pipe.recv()))


@pytest.mark.parametrize(
    "start", [each for each in ("spawn", "fork") if each in multiprocessing.get_all_start_methods()]
)
def test_a_worker_draws_what_it_is_sent_a_key_for(start: str) -> None:
    """Keys and sources of either cipher, pickled: the worker's words and noise are those of here."""
    context = multiprocessing.get_context(start)
    for cipher in CIPHERS:
        here, there = context.Pipe()
        worker = context.Process(target=answer, args=(there,))
        worker.start()
        there.close()
        here.send((Source(cipher).key(), Source(cipher)))
        found = here.recv()  # an error of the worker closes the pipe
        worker.join()
        assert worker.exitcode == 0
        assert found == drawn(Source(cipher).key(), Source(cipher))


def test_the_ciphers_draw_nothing_alike() -> None:
    """Else the tests above could not tell whether the cipher went along."""
    one, other = (drawn(Source(cipher).key(), Source(cipher)) for cipher in CIPHERS)
    assert [x == y for x, y in zip(one, other, strict=True)] == [False] * 4 + [one[4] == other[4], False]
    assert not set(one[0]) & set(other[0])
    assert not set(one[-1]) & set(other[-1])


# --- accumulators


@both
def test_a_shard_keeps_the_cipher_wherever_it_is_sent(cipher: str) -> None:
    """The winners of offers to pickled shards are those of one object that is offered all."""
    price = {"sensitivity": 1, "epsilon": 0.2, "k": 20}
    scores = np.arange(4000) * 7919 % 23
    alone = GumbelMax(rng=Source(cipher), **price)
    alone.offer(scores, first_index=0)
    whole = GumbelMax(rng=Source(cipher), **price)
    for first in range(0, 4000, 1000):
        shard = pickle.loads(pickle.dumps(whole.shard()))
        assert shard._state.key[8:].tolist() == CIPHERS[cipher]
        shard.offer(scores[first : first + 1000], first_index=first)
        whole.merge(pickle.loads(pickle.dumps(shard)))
    found = whole.winners().tolist()
    assert found == alone.winners().tolist()
    assert set(found) != set(np.argsort(scores)[-20:].tolist())


@both
def test_a_saved_state_of_the_bit_generator_keeps_the_cipher(cipher: str) -> None:
    """Put into a generator of either cipher it goes on with the words of its own key."""
    bits = Source(cipher).bit_generator()
    bits.random_raw(5)
    saved = pickle.loads(pickle.dumps(bits.state))
    wanted = bits.random_raw(3000).tolist()
    key = Source(cipher).key().tolist()
    assert wanted == oracles.words.stream_words(key, 0, 5, 3000).tolist()
    for each in CIPHERS:
        other = Source(each).bit_generator()
        other.state = saved
        assert other.random_raw(3000).tolist() == wanted


# --- laws


def test_laplace_and_gaussian_have_their_laws_under_either_cipher() -> None:
    """Alarm 1e-9 each; scales half as large again, or smaller, are refuted by the same draws."""
    for cipher in CIPHERS:
        rng = Source(cipher)
        found = fastdp.laplace(np.zeros(40_000, int), sensitivity=1, epsilon=0.125, rng=rng)
        assert_law(found, oracles.noise.laplace_law(8), wrong_scales(oracles.noise.laplace_law, 8))
        found = fastdp.gaussian(np.zeros(40_000, int), sensitivity=1, rho=1 / 32, rng=rng)
        assert_law(found, oracles.noise.gaussian_law(Fraction(4)), wrong_scales(oracles.noise.gaussian_law, 4))


@pytest.mark.parametrize("size", [None, 20_000])
def test_the_exponential_mechanism_has_its_law_under_aes(size: int | None) -> None:
    """One choice at a time by Gumbel-max, a key each, and many by buckets: alarm 1e-9, and epsilon / 2 is refuted."""
    scores, rng = np.array([0, 4, 1, 3, 2]), Source("AES-256-CTR")
    price: Any = {"sensitivity": 1, "epsilon": 2.0}
    if size is None:
        found = [fastdp.exponential_mechanism(scores, rng=rng, **price) for _ in range(4000)]
    else:
        found = fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=2.0 * size, size=size, rng=rng).tolist()
    counts = np.bincount(found, minlength=5)

    def law(epsilon: float) -> list[Any]:
        weights = [math.exp(epsilon * score / 2) for score in scores.tolist()]
        return [(w / sum(weights) * (1 - 1e-12), w / sum(weights) * (1 + 1e-12)) for w in weights]

    assert check_cells(counts, law(2.0))
    assert not check_cells(counts, law(1.0))


# --- seeds


def digest(*parts: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


def test_seeds_draw_what_they_drew_before_there_was_aes() -> None:
    """ChaCha20, whatever the processor can do: digests that were made before any other cipher was there."""
    keys = Randomness(seed=20)
    assert [keys.key().size for _ in range(3)] == [8] * 3
    rng = Randomness(seed=20)
    large = np.arange(100_000)
    found = {
        "words": digest(rng.words(1000)),
        "bit generator": digest(rng.bit_generator().random_raw(3000)),
        "laplace": digest(*(fastdp.laplace(large, sensitivity=1, epsilon=e, rng=rng) for e in (1.0, 1e-6, 1e-9))),
        "gaussian": digest(*(fastdp.gaussian(large, sensitivity=1, rho=r, rng=rng) for r in (0.5, 1e-12, 1e-18))),
        "gumbel": digest(fastdp.top_k(large % 41, 30, sensitivity=1, epsilon=3.0, rng=rng)),
        "buckets": digest(fastdp.exponential_mechanism(large % 41, sensitivity=1, epsilon=9.0, size=40, rng=rng)),
        "permute-and-flip": digest(fastdp.permute_and_flip(large % 41, sensitivity=1, epsilon=0.5, rng=rng)),
    }
    assert found == SEEDED


SEEDED = {
    "words": "1a950d98813acf25",
    "bit generator": "9c3bc8d1dcfb727b",
    "laplace": "b3073d3507085b7d",
    "gaussian": "ea2f3e8d3f0666f2",
    "gumbel": "760a66a66a7450fa",
    "buckets": "edacb9e3ed42a875",
    "permute-and-flip": "81d5848cab39d038",
}


# --- where the words lie


def test_words_are_had_from_the_module_of_the_cipher_as_from_that_of_words() -> None:
    """`fastdp.kernels.chacha20.words_into` and its like are public: with a key of 8 words they are ChaCha20's."""
    for name in ("fill_groups_into", "word_one", "words_into"):
        assert getattr(chacha20, name) is getattr(words, name)
    key, out = np.arange(8, dtype=np.uint32), np.zeros(300, np.uint64)
    chacha20.words_into(key, 5, 70, out)
    assert out.tolist() == oracles.words.stream_words(key.tolist(), 5, 70, 300).tolist()
