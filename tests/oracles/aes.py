"""An oracle of AES-256 (FIPS 197): bytes, tables computed from the field, one block at a time; with published vectors.

Counters as fastdp lays them out: block b of stream s is the encryption of s and b, each as 8 bytes, highest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def _times(a: int, b: int) -> int:
    """The product in the field of 2^8 elements, 4.2."""
    product = 0
    while b:
        product ^= a * (b & 1)
        a, b = a << 1 ^ 0x11B * (a >> 7), b >> 1
    return product


def _substituted(byte: int) -> int:
    """5.1.1: the inverse, 0 for 0, and the affine map."""
    inverse = next((i for i in range(256) if _times(byte, i) == 1), 0)
    bits = inverse * 0x101
    return (bits ^ bits >> 4 ^ bits >> 5 ^ bits >> 6 ^ bits >> 7 ^ 0x63) & 0xFF


S_BOX = [_substituted(byte) for byte in range(256)]
_TWICE = [_times(2, byte) for byte in range(256)]


@lru_cache(64)
def expanded_key(key: bytes) -> tuple[bytes, ...]:
    """The fifteen round keys, 5.2."""
    words = [key[4 * i : 4 * i + 4] for i in range(8)]
    constant = 1
    for i in range(8, 60):
        last = words[-1]
        if i % 8 == 0:
            last = bytes(S_BOX[byte] for byte in last[1:] + last[:1])
            last = bytes((last[0] ^ constant, *last[1:]))
            constant = _times(2, constant)
        elif i % 8 == 4:
            last = bytes(S_BOX[byte] for byte in last)
        words.append(bytes(a ^ b for a, b in zip(words[i - 8], last, strict=True)))
    return tuple(b"".join(words[4 * i : 4 * i + 4]) for i in range(15))


def encrypted(key: bytes, block: bytes) -> bytes:
    """One block, 5.1."""
    first, *rounds = expanded_key(key)
    state = [a ^ b for a, b in zip(block, first, strict=True)]
    for number, round_key in enumerate(rounds, 1):
        state = [S_BOX[state[(4 * (i // 4 + i % 4) + i % 4) % 16]] for i in range(16)]
        if number < len(rounds):
            for c in range(0, 16, 4):
                column = state[c : c + 4]
                whole = column[0] ^ column[1] ^ column[2] ^ column[3]
                state[c : c + 4] = [column[r] ^ whole ^ _TWICE[column[r] ^ column[(r + 1) % 4]] for r in range(4)]
        state = [a ^ b for a, b in zip(state, round_key, strict=True)]
    return bytes(state)


def group_half_words(key: Sequence[int], s: int, g: int) -> list[int]:
    """The 256 32-bit words of group g of stream s: blocks 64 g to 64 g + 63."""
    plain = np.array(key[:8], "<u4").tobytes()
    blocks = [encrypted(plain, s.to_bytes(8, "big") + b.to_bytes(8, "big")) for b in range(64 * g, 64 * g + 64)]
    halves: NDArray[np.uint32] = np.frombuffer(b"".join(blocks), "<u4")
    return [int(half) for half in halves]


class Vector(NamedTuple):
    """A published encryption of one block."""

    source: str
    key: bytes
    block: bytes
    result: bytes


def _vectors() -> list[Vector]:
    """FIPS 197, C.3; SP 800-38A, F.1.5 (ECB) and F.5.5 (CTR, whose key stream is plain text and result together)."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    ecb = bytes.fromhex(
        "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870"
        "b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7"
    )
    ctr = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    counter = int.from_bytes(bytes(range(0xF0, 0x100)), "big")
    found = [
        Vector(
            "FIPS 197, C.3", bytes(range(32)), bytes.fromhex("00112233445566778899aabbccddeeff"),
            bytes.fromhex("8ea2b7ca516745bfeafc49904b496089"),
        )
    ]  # fmt: skip
    for i in range(4):
        part = slice(16 * i, 16 * i + 16)
        found.append(Vector(f"SP 800-38A, F.1.5, block {i + 1}", key, plain[part], ecb[part]))
        stream = bytes(a ^ b for a, b in zip(plain[part], ctr[part], strict=True))
        found.append(Vector(f"SP 800-38A, F.5.5, block {i + 1}", key, (counter + i).to_bytes(16, "big"), stream))
    return found


VECTORS = _vectors()
