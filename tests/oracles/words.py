"""Oracles of the random words: ChaCha20 with its vectors (AES: aes.py), the layout of the streams, prefixes of bits.

docs/algorithms.md 7.1. A number U of which the bits read so far are N, b of them, lies in [N/2^b, (N+1)/2^b]; whoever
decides by it reads on until that is enough.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.oracles.aes import group_half_words

MASK = 0xFFFFFFFF
BLOCKS = 16  # blocks in a group: block 16 g + l is lane l of group g
GROUP = 16 * BLOCKS  # 32-bit words in a group


def _half_words(data: bytes | Sequence[int]) -> list[int]:
    """Little-endian 32-bit words of a byte string; a sequence of words is returned as it is."""
    if isinstance(data, bytes):
        return list(struct.unpack(f"<{len(data) // 4}I", data))
    return [int(word) for word in data]


def _quarter_round(x: list[int], a: int, b: int, c: int, d: int) -> None:
    """RFC 8439, 2.1."""
    for into, plus, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[into] = (x[into] + x[plus]) & MASK
        y = x[mixed] ^ x[into]
        x[mixed] = (y << turn | y >> (32 - turn)) & MASK


def chacha_block(key: bytes | Sequence[int], counter: int, nonce: bytes | Sequence[int]) -> list[int]:
    """The block function of RFC 8439, 2.3: sixteen 32-bit words, in the order in which they are serialised."""
    state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *_half_words(key), counter & MASK, *_half_words(nonce)]
    assert len(state) == 16
    x = list(state)
    for _ in range(10):
        for column in range(4):
            _quarter_round(x, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            _quarter_round(x, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
    return [(after + before) & MASK for after, before in zip(x, state, strict=True)]


def half_word_index(b: int, r: int) -> int:
    """Where state word r of block b stands in its stream, counted in 32-bit words."""
    return GROUP * (b // BLOCKS) + BLOCKS * r + b % BLOCKS


@lru_cache(maxsize=512)
def _group(key: tuple[int, ...], s: int, g: int) -> list[int]:
    """The 256 32-bit words of group g of stream s; a key of 9 words is one of AES."""
    if len(key) == 9:
        return group_half_words(key, s, g)
    words = [0] * GROUP
    for lane in range(BLOCKS):
        b = BLOCKS * g + lane
        block = chacha_block(key, b & MASK, (b >> 32, s & MASK, s >> 32))
        for r in range(16):
            words[BLOCKS * r + lane] = block[r]
    return words


def stream_half_words(key: bytes | Sequence[int], s: int, start: int, n: int) -> NDArray[np.uint32]:
    """32-bit words start .. start + n - 1 of stream s: word j is word j % 256 of group j // 256."""
    words = tuple(_half_words(key))
    return np.array([_group(words, s, j // GROUP)[j % GROUP] for j in range(start, start + n)], dtype=np.uint32)


def stream_words(key: bytes | Sequence[int], s: int, start: int, n: int) -> NDArray[np.uint64]:
    """64-bit words start .. start + n - 1 of stream s: word i is 32-bit words 2 i (low half) and 2 i + 1 (high)."""
    halves = [int(half) for half in stream_half_words(key, s, 2 * start, 2 * n)]
    return np.array([halves[2 * i] | halves[2 * i + 1] << 32 for i in range(n)], dtype=np.uint64)


def stream_word(key: bytes | Sequence[int], s: int, i: int) -> int:
    """64-bit word i of stream s."""
    return int(stream_words(key, s, i, 1)[0])


class Vector(NamedTuple):
    """A test vector of RFC 8439: the key stream that (key, counter, nonce) starts."""

    section: str
    key: bytes
    nonce: bytes
    counter: int
    stream: bytes

    @property
    def position(self) -> tuple[int, int]:
        """(stream, block) of fastdp's layout at which this key stream starts."""
        first, low, high = _half_words(self.nonce)
        return low | high << 32, self.counter | first << 32


def _block_vector(section: str, key: str, nonce: str, counter: int, stream: str) -> Vector:
    return Vector(section, bytes.fromhex(key), bytes.fromhex(nonce), counter, bytes.fromhex(stream))


def _cipher_vector(section: str, key: str, nonce: str, counter: int, plain: bytes, cipher: str) -> Vector:
    stream = bytes(p ^ c for p, c in zip(plain, bytes.fromhex(cipher), strict=True))
    return Vector(section, bytes.fromhex(key), bytes.fromhex(nonce), counter, stream)


# Each vector was recomputed with OpenSSL's chacha20; the test repeats that where the openssl command exists.
RFC_VECTORS = (
    _block_vector(
        "2.3.2",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "000000090000004a00000000",
        1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    _block_vector(
        "A.1 #1",
        "00" * 32,
        "00" * 12,
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    _block_vector(
        "A.1 #2",
        "00" * 32,
        "00" * 12,
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    _block_vector(
        "A.1 #3",
        "00" * 31 + "01",
        "00" * 12,
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    _block_vector(
        "A.1 #4",
        "00ff" + "00" * 30,
        "00" * 12,
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    _block_vector(
        "A.1 #5",
        "00" * 32,
        "00" * 11 + "02",
        0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
    _cipher_vector(
        "2.4.2",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "000000000000004a00000000",
        1,
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it.",
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d",
    ),
    _cipher_vector(
        "A.2 #1",
        "00" * 32,
        "00" * 12,
        0,
        bytes(64),
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    _cipher_vector(
        "A.2 #2",
        "00" * 31 + "01",
        "00" * 11 + "02",
        1,
        b"Any submission to the IETF intended by the Contributor for publication as all or part of an IETF "
        b"Internet-Draft or RFC and any statement made within the context of an IETF activity is considered an "
        b'"IETF Contribution". Such statements include oral statements in IETF sessions, as well as written and '
        b"electronic communications made at any time or place, which are addressed to",
        "a3fbf07df3fa2fde4f376ca23e82737041605d9f4f4f57bd8cff2c1d4b7955ec"
        "2a97948bd3722915c8f3d337f7d370050e9e96d647b7c39f56e031ca5eb6250d"
        "4042e02785ececfa4b4bb5e8ead0440e20b6e8db09d881a7c6132f420e527950"
        "42bdfa7773d8a9051447b3291ce1411c680465552aa6c405b7764d5e87bea85a"
        "d00f8449ed8f72d0d662ab052691ca66424bc86d2df80ea41f43abf937d3259d"
        "c4b2d0dfb48a6c9139ddd7f76966e928e635553ba76c5c879d7b35d49eb2e62b"
        "0871cdac638939e25e8a1e0ef9d5280fa8ca328b351c3c765989cbcf3daa8b6c"
        "cc3aaf9f3979c92b3720fc88dc95ed84a1be059c6499b9fda236e7e818b04b0b"
        "c39c1e876b193bfe5569753f88128cc08aaa9b63d1a16f80ef2554d7189c411f"
        "5869ca52c5b83fa36ff216b9c1d30062bebcfd2dc5bce0911934fda79a86f6e6"
        "98ced759c3ff9b6477338f3da4f9cd8514ea9982ccafb341b2384dd902f3d1ab"
        "7ac61dd29c6f21ba5b862f3730e37cfdc4fd806c22f221",
    ),
    _cipher_vector(
        "A.2 #3",
        "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        "00" * 11 + "02",
        42,
        b"'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\n"
        b"All mimsy were the borogoves,\nAnd the mome raths outgrabe.",
        "62e6347f95ed87a45ffae7426f27a1df5fb69110044c0d73118effa95b01e5cf"
        "166d3df2d721caf9b21e5fb14c616871fd84c54f9d65b283196c7fe4f60553eb"
        "f39c6402c42234e32a356b3e764312a61a5532055716ead6962568f87d3f3f77"
        "04c6a8d1bcd1bf4d50d6154b6da731b187b58dfd728afa36757a797ac188d1",
    ),
)
Words = Callable[[int, int], int]
Prefixes = Iterator[tuple[int, int]]


def words_of(key: bytes | Sequence[int]) -> Words:
    """The words of a key, one by one."""
    words = tuple(_half_words(key))

    def word(stream: int, index: int) -> int:
        group, at = _group(words, stream, 2 * index // GROUP), 2 * index % GROUP
        return group[at] | group[at + 1] << 32

    return word


def prefixes(word: Words, stream: int, index: int, N: int = 0, b: int = 0) -> Prefixes:
    """(N, b), then with word `index` of this stream and of every second one after it."""
    while True:
        yield N, b
        N, b, stream = N << 64 | word(stream, index), b + 64, stream + 2


def candidate_prefixes(word: Words, i: int) -> Prefixes:
    """Candidate i: its 32 bits of stream 0, then 64 of streams 1, 3, 5, ..."""
    return prefixes(word, 1, i, word(0, i // 2) >> 32 * (i % 2) & MASK, 32)
