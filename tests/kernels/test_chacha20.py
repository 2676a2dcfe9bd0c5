"""Random words (kernels/chacha20_blocks.py) against the vectors of RFC 8439 and against tests/oracles/words.py."""

from __future__ import annotations

import hashlib
import itertools
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

from fastdp.kernels.layout import GROUP_HALVES
from fastdp.kernels.words import GROUP, fill_groups_into, word_one, words_into
from tests import oracles

GUARD = 0x5A5A5A5A
KEY = np.array([0x03020100 + i * 0x04040404 for i in range(8)], np.uint32)  # the bytes 0, 1, ..., 31
END = 2**63  # words_into may be asked for any word below it


def number(stream: int) -> Any:
    """numba takes a Python int for an int64: streams from 2^63 on are passed as uint64."""
    return stream if stream < 2**63 else np.uint64(stream)


def words(key: np.ndarray, stream: int, first: int, n: int, at: int = 1) -> np.ndarray:
    """words_into, written `at` words into an array whose other entries must stay as they are."""
    out = np.full(n + at + 3, GUARD, np.uint64)
    words_into(key, number(stream), first, out[at : at + n])
    assert (out[:at] == GUARD).all()
    assert (out[at + n :] == GUARD).all()
    return out[at : at + n]


def groups(key: np.ndarray, stream: int, group: int, n: int, at: int = 1) -> np.ndarray:
    """fill_groups_into, likewise."""
    out = np.full(n * GROUP_HALVES + at + 3, GUARD, np.uint32)
    fill_groups_into(key, number(stream), group, out[at : at + n * GROUP_HALVES])
    assert (out[:at] == GUARD).all()
    assert (out[at + n * GROUP_HALVES :] == GUARD).all()
    return out[at : at + n * GROUP_HALVES]


# ---------------------------------------------------------------------------------------------------------------------
# RFC 8439


def key_of(vector: oracles.words.Vector) -> np.ndarray:
    return np.array(struct.unpack("<8I", vector.key), np.uint32)


def stream_of(halves: np.ndarray, first_group: int, block: int, length: int) -> bytes:
    """The bytes of the RFC's key stream from `block` on, picked out of the 32-bit words of whole groups."""
    places = [
        oracles.words.half_word_index(b, r) - GROUP_HALVES * first_group
        for b in range(block, block - (-length // 64))
        for r in range(16)
    ]
    return halves[places].astype("<u4").tobytes()[:length]


def sections(vectors: Any) -> dict[str, Any]:
    return {"argvalues": vectors, "ids": [vector.section for vector in vectors]}


@pytest.mark.parametrize("vector", **sections(oracles.words.RFC_VECTORS))
def test_rfc_vectors(vector: oracles.words.Vector) -> None:
    stream, block = vector.position
    group, length = block // oracles.words.BLOCKS, len(vector.stream)
    n = (block - (-length // 64) - 1) // oracles.words.BLOCKS - group + 1
    halves = groups(key_of(vector), stream, group, n)
    assert stream_of(halves, group, block, length) == vector.stream
    whole = words(key_of(vector), stream, group * GROUP, n * GROUP)
    assert stream_of(whole.view(np.uint32), group, block, length) == vector.stream
    one = [word_one(key_of(vector), number(stream), group * GROUP + i) for i in range(n * GROUP)]
    assert stream_of(np.array(one, np.uint64).view(np.uint32), group, block, length) == vector.stream


def test_the_vectors_leave_32_bits() -> None:
    """A first nonce word stands for blocks beyond 2^32, the others for streams beyond 2^32: both occur."""
    positions = [vector.position for vector in oracles.words.RFC_VECTORS]
    assert any(block > 2**32 for _, block in positions)
    assert any(stream > 2**32 for stream, _ in positions)
    assert any(block % oracles.words.BLOCKS for _, block in positions)


@pytest.mark.parametrize("stream", [0, 3, 2**32 + 5, 2**64 - 1])
def test_the_counter_carries_into_the_nonce(stream: int) -> None:
    """Block 2^32 has counter 0 and first nonce word 1: it does not repeat block 0."""
    low, high = stream & 0xFFFFFFFF, stream >> 32
    group = 2**32 // oracles.words.BLOCKS - 1
    halves = groups(KEY, stream, group, 2)
    for block, counter, first in ((2**32 - 1, 2**32 - 1, 0), (2**32, 0, 1), (2**32 + 7, 7, 1)):
        expected = struct.pack("<16I", *oracles.words.chacha_block(KEY.tolist(), counter, (first, low, high)))
        assert stream_of(halves, group, block, 64) == expected
    assert stream_of(groups(KEY, stream, 0, 1), 0, 0, 64) != stream_of(halves, group, 2**32, 64)


# ---------------------------------------------------------------------------------------------------------------------
# words of a stream


def ranges() -> list[tuple[int, int, int]]:
    """(stream, first, n): both ends anywhere in a group, group borders, 2^32 blocks, the far end of a stream."""
    source = random.Random(5)
    cases = [
        (0, 0, 0),
        (0, 77, 0),
        (0, 0, 1),
        (0, GROUP - 1, 1),
        (0, GROUP - 1, 2),
        (0, GROUP, GROUP),
        (0, 1, GROUP - 1),
        (0, 1, GROUP),
        (0, 1, 3 * GROUP),
        (1, 2**35 - 1, 2),
        (1, 2**35 - 200, 400),
        (2**32, 2**60 - 5, 10),
        (2**63, 2**60 + GROUP - 1, GROUP + 2),
        (2**63 - 1, END - 300, 300),
        (2**64 - 1, END - 1, 1),
        (2**64 - 2, 0, 5),
    ]
    for _ in range(40):
        stream = source.choice([source.randrange(4), source.randrange(2**64), 2**64 - 1 - source.randrange(4)])
        first = source.choice([source.randrange(1000), source.randrange(2**40), source.randrange(END - 1000)])
        cases.append((stream, first, source.choice([1, 2, source.randrange(GROUP), source.randrange(600)])))
    return cases


def test_words_of_any_range() -> None:
    source = random.Random(6)
    for at, (stream, first, n) in enumerate(ranges()):
        key = np.array([source.getrandbits(32) for _ in range(8)], np.uint32)
        expected = oracles.words.stream_words(key.tolist(), stream, first, n)
        np.testing.assert_array_equal(words(key, stream, first, n, at % 9), expected)
        for i in {0, n // 2, n - 1} if n else ():
            assert word_one(key, number(stream), first + i) == expected[i]


def test_groups_of_half_words() -> None:
    for at, (stream, group, n) in enumerate([(0, 0, 3), (7, 2**28 - 1, 2), (2**64 - 1, 2**55, 1), (2, 5, 0)]):
        expected = oracles.words.stream_half_words(KEY.tolist(), stream, group * GROUP_HALVES, n * GROUP_HALVES)
        np.testing.assert_array_equal(groups(KEY, stream, group, n, at), expected)


def test_every_bit_of_the_key_matters() -> None:
    seen = set()
    for bit in range(256):
        key = KEY.copy()
        key[bit // 32] ^= np.uint32(1 << bit % 32)
        seen.add(word_one(key, 0, 0))
    assert len(seen) == 256


def test_a_word_does_not_depend_on_the_call_that_made_it() -> None:
    """A stretch of 5,000 words, cut at random places and made in random order, is the same stretch."""
    source = random.Random(7)
    for stream, first in ((0, 0), (3, 2**35 - 2500), (2**64 - 1, 2**60 + 13)):
        whole = words(KEY, stream, first, 5000)
        pieces = np.zeros(5000, np.uint64)
        cuts = sorted({0, 5000, *(source.randrange(5000) for _ in range(40))})
        chunks = list(itertools.pairwise(cuts))
        source.shuffle(chunks)
        for start, stop in chunks:
            words_into(KEY, number(stream), first + start, pieces[start:stop])
        np.testing.assert_array_equal(pieces, whole)


def test_far_places_are_other_places() -> None:
    """Streams and indexes that agree in their low or their high 32 bits share no word."""
    places = [
        (stream, first)
        for stream in (0, 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1)
        for first in (0, GROUP, 2**32, 2**35, 2**35 + GROUP, 2**36, 2**60, 2**62)
    ]
    drawn = np.concatenate([words(KEY, stream, first, GROUP) for stream, first in places])
    assert len(np.unique(drawn)) == drawn.size  # chance: 6,144 words coincide with probability 1e-12


@numba.njit
def in_a_caller_of_ones_own(key: Any, stream: Any, n: Any) -> Any:
    out = np.empty(n, np.uint64)
    words_into(key, stream, 40, out)
    return out, word_one(key, stream, 41)


def test_inside_compiled_code_of_others() -> None:
    for stream in (5, 2**64 - 3):
        out, one = in_a_caller_of_ones_own(KEY, number(stream), 300)
        np.testing.assert_array_equal(out, oracles.words.stream_words(KEY.tolist(), stream, 40, 300))
        assert one == out[1]


# ---------------------------------------------------------------------------------------------------------------------


def _everything() -> Iterator[np.ndarray]:
    for stream, first, n in ranges():
        yield words(KEY, stream, first, n)
    yield groups(KEY, 2**40, 2**30, 20)
    yield np.array([word_one(KEY, 9, 2**35 + i) for i in range(130)], np.uint64)


def fingerprint() -> str:
    digest = hashlib.sha256()
    for array in _everything():
        digest.update(array.tobytes())
    return digest.hexdigest()


def test_same_words_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    """16 lanes are one register with AVX-512, two with AVX2, four with SSE2, which has no rotation either."""
    assert fingerprint_elsewhere(__name__) == fingerprint()
