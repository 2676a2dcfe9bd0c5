"""Random words: the one seam between what draws and what makes them. The key says how they are made.

A word is a function of (key, stream, index) and of nothing else, so any part of any stream can be made anywhere, in any
order, on any number of threads. Streams are numbered by 64 bits, and each has 2^63 words of 64 bits and more.

A key of 8 words of 32 bits is one of ChaCha20 (chacha20_blocks.py): that of a seed, and of whoever hands out keys of
their own. A key of 9 is one of AES-256 in counter mode (aes.py), the ninth being AES_MARK: that of the operating
system, where the processor has instructions for it. Both mean the same words on every machine. Kernels that draw often
expand the key of AES once, to the 60 words of its round keys; `fill_groups_into` takes all three.

Words come in groups of 128: the 32-bit word j of a stream is word j % 256 of group j // 256, and the 64-bit word i is
made of the 32-bit words 2 i (low half) and 2 i + 1 (high half).
"""

import numpy as np

from .aes import expand_key_into, fill_aes_into
from .aes_lanes import BLOCK_LANES
from .arrays import copy_into, seen_as
from .chacha20_blocks import fill_chacha20_into
from .compile import jit
from .lanes import U32Array, U64Array, stack, uint64
from .layout import AES_KEY, CHACHA20_KEY, GROUP_HALVES, SCHEDULE

GROUP = GROUP_HALVES // 2  # 64-bit words in a group
AES_HERE = BLOCK_LANES > 0  # whether keys of the operating system are those of AES


@jit(inline=True)
def expanded(key: U32Array, room: U32Array) -> U32Array:
    """What fill_groups_into takes in place of a key, many times: round keys of AES, in `room` of SCHEDULE words."""
    if key.size != AES_KEY:
        return key
    expand_key_into(key, room)
    return room


@jit
def fill_groups_into(key: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write whole groups of 32-bit words, from group number `group` of the stream on.

    Shapes    key uint32[8 or 9], or uint32[60] of `expanded`; out uint32[256 k]
    Cost      1024 bytes in 60 ns by AES with AVX-512, in 120 by ChaCha20, twice that with AVX2
    Source    docs/algorithms.md, random words
    Requires  len(out) a multiple of 256
    Used by   all that draws
    Oracle    tests/oracles/words.py::stream_half_words
    """
    if key.size == CHACHA20_KEY:
        fill_chacha20_into(key, stream, group, out)
    else:
        fill_aes_into(expanded(key, stack(np.uint32, SCHEDULE)), stream, group, out)


@jit
def fill_half_into(key: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write the first half of a group of 32-bit words: for few draws.

    Shapes    key as fill_groups_into takes it; out uint32[128]
    Cost      by AES half of what a group takes, otherwise as much
    Source    docs/algorithms.md, random words
    Used by   discrete_laplace
    Oracle    tests/oracles/words.py::stream_half_words
    """
    if AES_HERE and key.size != CHACHA20_KEY:
        fill_aes_into(expanded(key, stack(np.uint32, SCHEDULE)), stream, group, out)
    else:
        whole = stack(np.uint32, GROUP_HALVES)
        fill_groups_into(key, stream, group, whole)
        copy_into(whole[: out.size], out)


@jit
def words_into(key: U32Array, stream: int, first: int, out: U64Array) -> None:
    """Write the 64-bit words first, first + 1, ... of a stream.

    Shapes    key uint32[8 or 9], out uint64[n], contiguous
    Cost      O(n): by AES 0.5 ns a word with AVX-512 and 0.9 with AVX2, by ChaCha20 0.9 and 1.8; up to 0.3 us more
    Source    docs/algorithms.md, random words
    Requires  0 <= stream < 2^64 (from 2^63 on as np.uint64), 0 <= first, first + n <= 2^63
    Used by   randomness, noise
    Oracle    tests/oracles/words.py::stream_words
    """
    buffer = stack(np.uint64, GROUP)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    n = out.size
    done = 0
    while done < n:
        index = uint64(first) + uint64(done)
        skip = int(index % uint64(GROUP))
        whole = 0 if skip else (n - done) // GROUP * GROUP
        target = out[done : done + whole] if whole else buffer
        fill_groups_into(source, uint64(stream), index // uint64(GROUP), seen_as(target, np.uint32))
        take = whole or min(n - done, GROUP - skip)
        if not whole:
            copy_into(buffer[skip : skip + take], out[done : done + take])
        done += take


@jit
def word_one(key: U32Array, stream: int, index: int) -> int:
    """The 64-bit word `index` of a stream, by itself.

    Shapes    key uint32[8 or 9]; stream, index as in words_into
    Cost      0.1 us: a group of 128 words is made for it
    Requires  what words_into does
    Used by   noise, selection, fastdp/randomness/keys.py
    Oracle    tests/oracles/words.py::stream_words
    """
    group = stack(np.uint64, GROUP)
    fill_groups_into(key, uint64(stream), uint64(index) // uint64(GROUP), seen_as(group, np.uint32))
    return group[int(uint64(index) % uint64(GROUP))]
