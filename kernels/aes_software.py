"""AES-256 in counter mode without AES instructions: bit by bit on 64 blocks at once, in constant time.

Nothing is looked up and nothing branches by what is secret. Bit i of all bytes is one value of 16 lanes, a lane for
each byte of a block as FIPS 197 numbers them; bit j of a lane is of block j of the 64. So ShiftRows and the turns of
MixColumns move lanes, a round key is lanes of zeros and ones, and the S-box is the circuit of Boyar and Peralta (A
depth-16 circuit for the AES S-box, 2011).
"""

from typing import Any

import numpy as np

from .aes_lanes import shift_rows, turn_columns
from .arrays import seen_as
from .compile import jit
from .lanes import U32Array, U64Array, load, splat, stack, store, uint32, uint64

_ROUNDS = 14
_BYTES = 16
_PLANES = 8 * _BYTES  # of a block
_ALL = 0xFFFFFFFFFFFFFFFF
_NUMBERS = (  # bit i of the numbers 0 to 63 of the blocks
    0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0, 0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000,
    0xFFFFFFFF00000000,
)  # fmt: skip


@jit(inline=True)
def enter_field(x0: Any, x1: Any, x2: Any, x3: Any, x4: Any, x5: Any, x6: Any, x7: Any) -> Any:
    """The first linear layer of the S-box; x0 is the highest bit."""
    y14, y13, y9, y8 = x3 ^ x5, x0 ^ x6, x0 ^ x3, x0 ^ x5
    t0 = x1 ^ x2
    y1 = t0 ^ x7
    y4, y12, y2, y5 = y1 ^ x3, y13 ^ y14, y1 ^ x0, y1 ^ x6
    y3 = y5 ^ y8
    t1 = x4 ^ y12
    y15, y20 = t1 ^ x5, t1 ^ x1
    y6, y10, y11 = y15 ^ x7, y15 ^ t0, y20 ^ y9
    y7, y17, y19, y16 = x7 ^ y11, y10 ^ y11, y10 ^ y8, t0 ^ y11
    y21, y18 = y13 ^ y16, x0 ^ y16
    return y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18, y19, y20, y21


@jit(inline=True)
def invert_in_field(y: Any, x7: Any) -> Any:
    """The inverse in the field of 2^4 elements, of what enter_field gives."""
    y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18, y19, y20, y21 = y
    t2, t7, t12 = y12 & y15, y13 & y16, y9 & y11
    t4, t6 = (y3 & y6) ^ t2, (y4 & x7) ^ t2
    t9, t11 = (y5 & y1) ^ t7, (y2 & y7) ^ t7
    t14, t16 = (y14 & y17) ^ t12, (y8 & y10) ^ t12
    t21, t22, t23, t24 = t4 ^ t14 ^ y20, t6 ^ t16 ^ y19, t9 ^ t14 ^ y21, t11 ^ t16 ^ y18
    t25, t26, t30 = t21 ^ t22, t21 & t23, t23 ^ t24
    t27, t31 = t24 ^ t26, t22 ^ t26
    t29, t33 = (t25 & t27) ^ t22, (t31 & t30) ^ t24
    t36 = t24 & (t27 ^ t33)
    t37, t38 = t36 ^ t23 ^ t33, t27 ^ t36
    return t29, t33, t37, t25 ^ (t29 & t38)


@jit(inline=True)
def leave_field(y: Any, x7: Any, inverse: Any, ones: Any) -> Any:
    """The products with the inverse, and the last linear layer; the highest bit first."""
    y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, _, _, _, _ = y
    t29, t33, t37, t40 = inverse
    t41, t42, t43, t44 = t40 ^ t37, t29 ^ t33, t29 ^ t40, t33 ^ t37
    t45 = t42 ^ t41
    z0, z1, z2, z3, z4, z5 = t44 & y15, t37 & y6, t33 & x7, t43 & y16, t40 & y1, t29 & y7
    z6, z7, z8, z9, z10, z11 = t42 & y11, t45 & y17, t41 & y10, t44 & y12, t37 & y3, t33 & y4
    z12, z13, z14, z15, z16, z17 = t43 & y13, t40 & y5, t29 & y2, t42 & y9, t45 & y14, t41 & y8
    t46, t47, t48, t49, t50 = z15 ^ z16, z10 ^ z11, z5 ^ z13, z9 ^ z10, z2 ^ z12
    t51, t52, t53, t54, t55 = z2 ^ z5, z7 ^ z8, z0 ^ z3, z6 ^ z7, z16 ^ z17
    t56, t57, t58, t59 = z12 ^ t48, t50 ^ t53, z4 ^ t46, z3 ^ t54
    t60, t61, t62, t63, t64 = t46 ^ t57, z14 ^ t57, t52 ^ t58, t49 ^ t58, z4 ^ t59
    t65, t66 = t61 ^ t62, z1 ^ t63
    s3 = t53 ^ t66
    return (
        t59 ^ t63, t64 ^ s3 ^ ones, t55 ^ t64 ^ t65 ^ ones, s3, t51 ^ t66, t47 ^ t65, t56 ^ t62 ^ ones,
        t48 ^ t60 ^ ones,
    )  # fmt: skip


@jit(inline=True)
def substitute(x7: Any, x6: Any, x5: Any, x4: Any, x3: Any, x2: Any, x1: Any, x0: Any, ones: Any) -> Any:
    """The S-box on bits 7 to 0 of many bytes."""
    y = enter_field(x7, x6, x5, x4, x3, x2, x1, x0)
    return leave_field(y, x0, invert_in_field(y, x0), ones)


@jit
def substitute_software(word: int) -> int:
    """The S-box on the four bytes of a 32-bit word.

    Shapes    word uint32
    Cost      some 200 operations
    Source    FIPS 197, section 5.1.1
    Used by   aes
    Oracle    tests/oracles/aes.py::S_BOX
    """
    low = uint32(0x01010101)
    w = uint32(word)
    s = substitute(
        w >> uint32(7) & low, w >> uint32(6) & low, w >> uint32(5) & low, w >> uint32(4) & low, w >> uint32(3) & low,
        w >> uint32(2) & low, w >> uint32(1) & low, w & low, low,
    )  # fmt: skip
    s7, s6, s5, s4, s3, s2, s1, s0 = s
    high = s7 << uint32(7) | s6 << uint32(6) | s5 << uint32(5) | s4 << uint32(4)
    return uint32(high | s3 << uint32(3) | s2 << uint32(2) | s1 << uint32(1) | s0)


@jit(inline=True)
def mix_bit(x: Any, carried: Any) -> Any:
    """One bit of MixColumns: x and the next lower bit of the bytes, each of which is 2 (a + b) + b + c + d."""
    turned = turn_columns(x, 1)
    doubled = carried ^ turn_columns(carried, 1)
    return doubled ^ turned ^ turn_columns(x ^ turned, 2)


@jit
def expand_planes_into(schedule: U32Array, planes: U64Array) -> None:
    """The bits of all round keys, each 64 times: number 16 i + p of a round is bit i of its byte p.

    Shapes    schedule uint32[60], planes uint64[1920]
    Cost      a microsecond
    Used by   fill_software_into
    Oracle    tests/oracles/aes.py::expanded_key
    """
    data = seen_as(schedule, np.uint8)
    for number in range(_ROUNDS + 1):
        for i in range(8):
            for p in range(_BYTES):
                bit = uint64(data[_BYTES * number + p]) >> uint64(i) & uint64(1)
                planes[_PLANES * number + _BYTES * i + p] = uint64(0) - bit


@jit
def count_blocks_into(stream: int, block: int, planes: U64Array) -> None:
    """The bits of 64 counters from block number `block` on, a multiple of 64: number 16 i + p is bit i of byte p.

    Shapes    planes uint64[128]
    Cost      0.1 us
    Used by   fill_software_into
    Oracle    tests/oracles/aes.py::stream_words
    """
    for p in range(_BYTES):
        source = uint64(stream) if p < 8 else uint64(block)
        shift = uint64(8 * (7 - p % 8))
        for i in range(8):
            planes[_BYTES * i + p] = uint64(0) - (source >> (shift + uint64(i)) & uint64(1))
    for i in range(6):
        planes[_BYTES * i + 15] = uint64(_NUMBERS[i])


@jit
def transpose_into(planes: U64Array, words: U64Array) -> None:
    """64 blocks as 128 words, from the bits of their bytes.

    Shapes    planes uint64[128] as count_blocks_into leaves them (overwritten), words uint64[128]
    Cost      O(1): seven passes
    Used by   fill_software_into
    Oracle    numpy's unpackbits
    """
    for half in range(2):
        rows = words[64 * half : 64 * half + 64]  # row r is bit r of this half of each block
        for r in range(64):
            rows[r] = planes[_BYTES * (r % 8) + 8 * half + r // 8]
        apart, mask = 32, uint64(0xFFFFFFFF)
        while apart:
            for r in range(64):
                if not r & apart:
                    swapped = (rows[r] >> uint64(apart) ^ rows[r + apart]) & mask
                    rows[r + apart] ^= swapped
                    rows[r] ^= swapped << uint64(apart)
            apart >>= 1
            mask ^= mask << uint64(apart)
    for r in range(64):
        planes[2 * r], planes[2 * r + 1] = words[r], words[64 + r]
    for i in range(_PLANES):
        words[i] = planes[i]


@jit(inline=True)
def load_bits(planes: Any, at: int) -> Any:
    """Bits 7 to 0 of the 16 bytes from planes[at] on."""
    return (
        load(planes, at + 112, 16), load(planes, at + 96, 16), load(planes, at + 80, 16), load(planes, at + 64, 16),
        load(planes, at + 48, 16), load(planes, at + 32, 16), load(planes, at + 16, 16), load(planes, at, 16),
    )  # fmt: skip


@jit
def encrypt_planes(keys: U64Array, planes: U64Array) -> None:
    """AES-256 of 64 blocks, in place.

    Shapes    keys uint64[1920] of expand_planes_into; planes uint64[128]
    Cost      about 2 us with AVX2
    Source    FIPS 197, section 5.1
    Used by   fill_software_into
    Oracle    tests/oracles/aes.py::encrypted
    """
    ones = splat(uint64(_ALL), 16)
    for i in range(_PLANES):
        planes[i] ^= keys[i]
    for number in range(1, _ROUNDS + 1):
        x7, x6, x5, x4, x3, x2, x1, x0 = load_bits(planes, 0)
        x7, x6, x5, x4, x3, x2, x1, x0 = substitute(x7, x6, x5, x4, x3, x2, x1, x0, ones)
        x7, x6, x5, x4 = shift_rows(x7, 1), shift_rows(x6, 1), shift_rows(x5, 1), shift_rows(x4, 1)
        x3, x2, x1, x0 = shift_rows(x3, 1), shift_rows(x2, 1), shift_rows(x1, 1), shift_rows(x0, 1)
        if number < _ROUNDS:  # times x in the field: bit 7 goes to bits 0, 1, 3 and 4
            y7, y6, y5, y4 = mix_bit(x7, x6), mix_bit(x6, x5), mix_bit(x5, x4), mix_bit(x4, x3 ^ x7)
            y3, y2, y1, y0 = mix_bit(x3, x2 ^ x7), mix_bit(x2, x1), mix_bit(x1, x0 ^ x7), mix_bit(x0, x7)
            x7, x6, x5, x4, x3, x2, x1, x0 = y7, y6, y5, y4, y3, y2, y1, y0
        k7, k6, k5, k4, k3, k2, k1, k0 = load_bits(keys, _PLANES * number)
        store(planes, 112, x7 ^ k7)
        store(planes, 96, x6 ^ k6)
        store(planes, 80, x5 ^ k5)
        store(planes, 64, x4 ^ k4)
        store(planes, 48, x3 ^ k3)
        store(planes, 32, x2 ^ k2)
        store(planes, 16, x1 ^ k1)
        store(planes, 0, x0 ^ k0)


@jit
def fill_software_into(schedule: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write whole groups of 32-bit words, from group number `group` of the stream on, without AES instructions.

    Shapes    schedule uint32[60], out uint32[256 k]
    Cost      1024 bytes in about 3 us
    Source    SP 800-38A, section 6.5; docs/algorithms.md, random words
    Requires  len(out) a multiple of 256
    Used by   aes
    Oracle    tests/oracles/aes.py::stream_words
    """
    keys, planes = stack(np.uint64, 1920), stack(np.uint64, 128)
    expand_planes_into(schedule, keys)
    words = seen_as(out, np.uint64)
    for at in range(0, words.size, 128):
        count_blocks_into(stream, uint64(group) * uint64(64) + uint64(at // 2), planes)
        encrypt_planes(keys, planes)
        transpose_into(planes, words[at : at + 128])
