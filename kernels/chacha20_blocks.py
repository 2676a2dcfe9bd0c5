"""Random words: ChaCha20 (RFC 8439), sixteen blocks side by side. words.py has the streams, and asks for them.

The key is 8 uint32 words, and a stream holds 2^67 words of 64 bits. Block b of stream s is the RFC's block with counter
b mod 2^32 and nonce words (b >> 32, s mod 2^32, s >> 32); blocks 16 g .. 16 g + 15 are made together as group g, state
word by state word: 32-bit word p of the group is state word p // 16 of block 16 g + p % 16. So the 64-bit words of a
stream are made of two neighbouring blocks each.
"""

from typing import Any

from .compile import jit
from .lanes import U32Array, high32, iota, low32, rotl, splat, store, uint32, uint64
from .layout import GROUP_HALVES

BLOCKS = 16  # blocks side by side: fills AVX-512 registers; two AVX2 registers each hide the latency of the other


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
def fill_chacha20_into(key: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write whole groups of 32-bit words, from group number `group` of the stream on.

    Shapes    key uint32[8], out uint32[256 k]
    Cost      1024 bytes in about 120 ns with AVX-512, twice that with AVX2
    Source    RFC 8439, section 2.3; docs/algorithms.md, random words
    Requires  len(out) a multiple of 256
    Used by   words
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
