"""Random words: ChaCha20 (RFC 8439), sixteen blocks side by side.

A word is a function of (key, stream, index) and of nothing else, so any part of any stream can be made anywhere, in any
order, on any number of threads. The key is 8 uint32 words. A stream holds 2^67 words of 64 bits and never wraps.

Layout. Block b of stream s is the RFC's block with counter b mod 2^32 and nonce words (b >> 32, s mod 2^32, s >> 32);
blocks 16 g .. 16 g + 15 are made together as group g, state word by state word: 32-bit word p of the group is
state word p // 16 of block 16 g + p % 16. The 32-bit word j of the stream is word j % 256 of group j // 256; the 64-bit
word i is made of the 32-bit words 2 i (low half) and 2 i + 1 (high half), that is, of two neighbouring blocks.
"""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import U32Array, U64Array, high32, iota, low32, rotl, splat, stack, store, uint32, uint64

BLOCKS = 16  # blocks side by side: fills AVX-512 registers; two AVX2 registers each hide the latency of the other
GROUP_HALVES = 16 * BLOCKS  # 32-bit words in a group
GROUP = GROUP_HALVES // 2  # 64-bit words in a group


@jit(inline=True)
def quarter_round(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """RFC 8439, section 2.1, on lanes."""
    a = a + b
    d = rotl(d ^ a, 16)
    c = c + d
    b = rotl(b ^ c, 12)
    a = a + b
    d = rotl(d ^ a, 8)
    c = c + d
    b = rotl(b ^ c, 7)
    return a, b, c, d


@jit
def fill_groups_into(key: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write whole groups of 32-bit words, from group number `group` of the stream on.

    Shapes    key uint32[8], out uint32[256 k]
    Cost      1024 bytes in about 120 ns with AVX-512, twice that with AVX2
    Source    RFC 8439, section 2.3; docs/algorithms.md, random words
    Requires  len(out) a multiple of 256
    Used by   words_into, noise
    Oracle    tests/oracles/words.py::stream_half_words
    """
    c0 = splat(uint32(0x61707865), BLOCKS)
    c1 = splat(uint32(0x3320646E), BLOCKS)
    c2 = splat(uint32(0x79622D32), BLOCKS)
    c3 = splat(uint32(0x6B206574), BLOCKS)
    k0, k1, k2, k3 = splat(key[0], BLOCKS), splat(key[1], BLOCKS), splat(key[2], BLOCKS), splat(key[3], BLOCKS)
    k4, k5, k6, k7 = splat(key[4], BLOCKS), splat(key[5], BLOCKS), splat(key[6], BLOCKS), splat(key[7], BLOCKS)
    s0 = splat(uint32(uint64(stream)), BLOCKS)
    s1 = splat(uint32(uint64(stream) >> uint64(32)), BLOCKS)
    for g in range(out.size // GROUP_HALVES):
        block = splat((uint64(group) + uint64(g)) * uint64(BLOCKS), BLOCKS) + iota(BLOCKS)
        b0, b1 = low32(block), high32(block)
        x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
        x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, b0, b1, s0, s1
        for _ in range(10):
            x0, x4, x8, x12 = quarter_round(x0, x4, x8, x12)
            x1, x5, x9, x13 = quarter_round(x1, x5, x9, x13)
            x2, x6, x10, x14 = quarter_round(x2, x6, x10, x14)
            x3, x7, x11, x15 = quarter_round(x3, x7, x11, x15)
            x0, x5, x10, x15 = quarter_round(x0, x5, x10, x15)
            x1, x6, x11, x12 = quarter_round(x1, x6, x11, x12)
            x2, x7, x8, x13 = quarter_round(x2, x7, x8, x13)
            x3, x4, x9, x14 = quarter_round(x3, x4, x9, x14)
        at = g * GROUP_HALVES
        store(out, at, x0 + c0)
        store(out, at + 16, x1 + c1)
        store(out, at + 32, x2 + c2)
        store(out, at + 48, x3 + c3)
        store(out, at + 64, x4 + k0)
        store(out, at + 80, x5 + k1)
        store(out, at + 96, x6 + k2)
        store(out, at + 112, x7 + k3)
        store(out, at + 128, x8 + k4)
        store(out, at + 144, x9 + k5)
        store(out, at + 160, x10 + k6)
        store(out, at + 176, x11 + k7)
        store(out, at + 192, x12 + b0)
        store(out, at + 208, x13 + b1)
        store(out, at + 224, x14 + s0)
        store(out, at + 240, x15 + s1)


@jit
def words_into(key: U32Array, stream: int, first: int, out: U64Array) -> None:
    """Write the 64-bit words first, first + 1, ... of a stream.

    Shapes    key uint32[8], out uint64[n], contiguous
    Cost      O(n): about 0.9 ns a word with AVX-512, twice that with AVX2; up to 0.3 us more for the ends
    Source    docs/algorithms.md, random words
    Requires  0 <= stream < 2^64 (from 2^63 on as np.uint64), 0 <= first, first + n <= 2^63
    Used by   randomness, noise
    Oracle    tests/oracles/words.py::stream_words
    """
    buffer = stack(np.uint64, GROUP)
    n = out.size
    done = 0
    while done < n:
        index = uint64(first) + uint64(done)
        skip = int(index % uint64(GROUP))
        whole = 0 if skip else (n - done) // GROUP * GROUP
        target = out[done : done + whole] if whole else buffer
        fill_groups_into(key, stream, index // uint64(GROUP), target.view(np.uint32))
        take = whole or min(n - done, GROUP - skip)
        if not whole:
            out[done : done + take] = buffer[skip : skip + take]
        done += take


@jit
def word_one(key: U32Array, stream: int, index: int) -> int:
    """The 64-bit word `index` of a stream, by itself.

    Shapes    key uint32[8]; stream, index as in words_into
    Cost      0.15 us: a group of 128 words is made for it
    Requires  what words_into does
    Used by   noise, selection, fastdp/randomness/keys.py
    Oracle    tests/oracles/words.py::stream_words
    """
    group = stack(np.uint64, GROUP)
    fill_groups_into(key, stream, uint64(index) // uint64(GROUP), group.view(np.uint32))
    return group[int(uint64(index) % uint64(GROUP))]
