"""Random words: AES-256 in counter mode (FIPS 197, SP 800-38A), by the instructions that processors have for it.

Block b of stream s is AES-256 of the 16 bytes that s and then b are, each as 8 bytes, the highest first: so the words
of a stream are the key stream of CTR mode from the counter s 2^64. Block b is the 64-bit words 2 b and 2 b + 1 of its
stream, the first byte of a word lowest. A stream holds 2^65 words and never wraps.

Where the machine code has no such instructions (`BLOCK_LANES` is 0) aes_software.py computes the same words. Neither
looks anything up by what is secret.
"""

from typing import Any

import numpy as np

from .aes_lanes import BLOCK_LANES, aes_last_round, aes_round, load_turns, swap_bytes, turns
from .aes_software import fill_software_into, substitute_software
from .arrays import seen_as
from .compile import jit
from .lanes import U32Array, load, splat, stack, store, uint32, uint64
from .layout import SCHEDULE

ROUNDS = 14
_GROUP = 128  # 64-bit words in a group, and twice as many of 32 bits
_BLOCKS = 64
_LANES = BLOCK_LANES or 2
_STEP = 8 * _LANES  # 64-bit words that are made side by side: as many registers as hide the latency of a round


@jit(inline=True)
def substitute_one(word: int) -> int:
    """The S-box on the four bytes of a word: the last round of a block of four such columns, which ShiftRows keeps."""
    pair = uint64(word) | uint64(word) << uint64(32)
    out = stack(np.uint64, _LANES)
    store(out, 0, aes_last_round(splat(pair, _LANES), splat(uint64(0), _LANES)))
    return uint32(out[0])


_substitute = substitute_one if BLOCK_LANES else substitute_software


@jit
def expand_key_into(key: U32Array, schedule: U32Array) -> None:
    """The round keys of a key.

    Shapes    key uint32[8 or more], of which the first 8 are the key; schedule uint32[60]
    Cost      60 ns; without AES instructions a microsecond
    Source    FIPS 197, section 5.2
    Used by   words
    Oracle    tests/oracles/aes.py::expanded_key
    """
    for i in range(8):
        schedule[i] = key[i]
    constant = uint32(1)
    for i in range(8, SCHEDULE):
        last = schedule[i - 1]
        if i % 8 == 0:
            last = _substitute(last)
            last = (last >> uint32(8) | last << uint32(24)) ^ constant
            constant = uint32(constant << uint32(1))
        elif i % 8 == 4:
            last = _substitute(last)
        schedule[i] = schedule[i - 8] ^ last


@jit(inline=True)
def round_key(keys: Any, number: int) -> Any:
    """One round key, for each of the blocks that lie side by side."""
    return load_turns(keys, 2 * number, _LANES)


@jit
def fill_hardware_into(schedule: U32Array, stream: int, group: int, out: U32Array) -> None:
    """Write groups of 32-bit words, from group number `group` of the stream on, by AES instructions.

    Shapes    schedule uint32[60] of expand_key_into, out uint32[256 k], or uint32[128] for half a group
    Cost      1024 bytes in about 30 ns with 512 bits, 110 ns with 128
    Source    SP 800-38A, section 6.5; docs/algorithms.md, random words
    Requires  BLOCK_LANES not 0
    Used by   words
    Oracle    tests/oracles/aes.py::stream_words
    """
    keys, words = seen_as(schedule, np.uint64), seen_as(out, np.uint64)
    numbers = stack(np.uint64, _STEP)  # of the blocks side by side, as they stand in a counter
    for i in range(_STEP):
        numbers[i] = uint64(i // 2) << uint64(56) if i % 2 else uint64(0)
    high = swap_bytes(uint64(stream))
    for at in range(0, words.size, _STEP):
        block = (uint64(group) * uint64(_BLOCKS)) + uint64(at // 2)  # a multiple of what stands side by side
        k = round_key(keys, 0) ^ turns(high, swap_bytes(block), _LANES)
        x0, x1 = k ^ load(numbers, 0, _LANES), k ^ load(numbers, _LANES, _LANES)
        x2, x3 = k ^ load(numbers, 2 * _LANES, _LANES), k ^ load(numbers, 3 * _LANES, _LANES)
        x4, x5 = k ^ load(numbers, 4 * _LANES, _LANES), k ^ load(numbers, 5 * _LANES, _LANES)
        x6, x7 = k ^ load(numbers, 6 * _LANES, _LANES), k ^ load(numbers, 7 * _LANES, _LANES)
        for number in range(1, ROUNDS):
            k = round_key(keys, number)
            x0, x1, x2, x3 = aes_round(x0, k), aes_round(x1, k), aes_round(x2, k), aes_round(x3, k)
            x4, x5, x6, x7 = aes_round(x4, k), aes_round(x5, k), aes_round(x6, k), aes_round(x7, k)
        k = round_key(keys, ROUNDS)
        store(words, at, aes_last_round(x0, k))
        store(words, at + _LANES, aes_last_round(x1, k))
        store(words, at + 2 * _LANES, aes_last_round(x2, k))
        store(words, at + 3 * _LANES, aes_last_round(x3, k))
        store(words, at + 4 * _LANES, aes_last_round(x4, k))
        store(words, at + 5 * _LANES, aes_last_round(x5, k))
        store(words, at + 6 * _LANES, aes_last_round(x6, k))
        store(words, at + 7 * _LANES, aes_last_round(x7, k))


fill_aes_into = fill_hardware_into if BLOCK_LANES else fill_software_into
