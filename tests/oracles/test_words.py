"""The oracle of the random words against published vectors and against OpenSSL."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess

import numpy as np
import pytest

from tests.oracles.words import RFC_VECTORS, chacha_block, half_word_index, stream_half_words, stream_word, stream_words


@pytest.mark.parametrize("vector", RFC_VECTORS, ids=lambda vector: vector.section)
def test_rfc_vectors(vector):
    words = []
    for i in range(-(-len(vector.stream) // 64)):
        words += chacha_block(vector.key, vector.counter + i, vector.nonce)
    stream = struct.pack(f"<{len(words)}I", *words)
    assert stream[: len(vector.stream)] == vector.stream


def openssl(key: bytes, counter: int, nonce: bytes, n: int) -> bytes:
    iv = struct.pack("<I", counter) + nonce
    command = ["openssl", "enc", "-chacha20", "-nosalt", "-K", key.hex(), "-iv", iv.hex()]
    done = subprocess.run(command, input=bytes(n), capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"openssl: {done.stderr.decode().strip()}")
    return done.stdout


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl command")
def test_openssl_agrees():
    for vector in RFC_VECTORS:
        assert openssl(vector.key, vector.counter, vector.nonce, len(vector.stream)) == vector.stream, vector.section
    source = random.Random(1)
    for _ in range(3):
        key, nonce, counter = source.randbytes(32), source.randbytes(12), source.getrandbits(32)
        block = chacha_block(key, counter, nonce)
        assert openssl(key, counter, nonce, 64) == struct.pack("<16I", *block)


@pytest.mark.parametrize("vector", RFC_VECTORS, ids=lambda vector: vector.section)
def test_rfc_vectors_in_the_stream_layout(vector):
    s, b = vector.position
    for i in range(len(vector.stream) // 64):
        words = struct.unpack("<16I", vector.stream[64 * i : 64 * i + 64])
        for r in (0, 1, 7, 15):
            j = half_word_index(b + i, r)
            assert stream_half_words(vector.key, s, j, 1)[0] == words[r]
            assert stream_word(vector.key, s, j // 2) >> 32 * (j % 2) & 0xFFFFFFFF == words[r]


def test_stream_layout_word_by_word():
    key, source = list(range(1, 9)), random.Random(2)
    for _ in range(12):
        s, i = source.getrandbits(64), source.getrandbits(source.choice([6, 20, 36, 44, 63]))
        halves = []
        for p in (2 * (i % 128), 2 * (i % 128) + 1):
            b = 16 * (i // 128) + p % 16
            halves.append(chacha_block(key, b % 2**32, [b // 2**32, s % 2**32, s // 2**32])[p // 16])
        assert stream_word(key, s, i) == halves[0] + 2**32 * halves[1]


def test_stream_does_not_depend_on_chunks_and_passes_block_2_to_the_32():
    key = bytes(range(32))
    start = 2**35 - 130  # 64-bit words; block 2^32 begins at word 2^35
    whole = stream_words(key, 5, start, 300)
    assert whole.dtype == np.uint64
    assert np.array_equal(np.concatenate([stream_words(key, 5, start + 100 * k, 100) for k in range(3)]), whole)
    assert np.array_equal(stream_half_words(key, 5, 2 * start, 600).view("<u8"), whole)
    assert len(set(whole.tolist())) == 300
    streams = [tuple(stream_words(key, s, 0, 4)) for s in (0, 1, 255, 256, 2**32, 2**63)]
    assert len(set(streams)) == len(streams)
