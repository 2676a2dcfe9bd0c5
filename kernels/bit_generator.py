"""Single random numbers for hosts that ask for one at a time: the four functions of numpy's BitGenerator interface.

State, as uint64 words: key (4), number of the next group, position in the buffer, spare 32 bits, whether there is a
spare, the ninth word of the key (0 for ChaCha20), then the buffer. A used word is wiped, so that the past cannot be
read from a captured state's buffer. A key of AES gives 2^32 blocks, and then stream 1 gives the next key: no host can
draw so much that blocks which never repeat would tell (fastdp/randomness/keys.md).
"""

from typing import Any

import numpy as np
from numba import carray, types

from .arrays import seen_as
from .compile import compile_callback, jit
from .lanes import U64Array, float64, stack, uint32, uint64
from .layout import AES_KEY
from .words import GROUP, fill_groups_into, words_into

BUFFER = 8 * GROUP
NEXT_GROUP, POSITION, SPARE, HAS_SPARE, CIPHER, HEADER = range(4, 10)
STATE_WORDS = HEADER + BUFFER
RENEWED = 1 << 26  # groups of stream 0 under one key of AES
_NEXT_KEY_STREAM = 1
_STATE = types.CPointer(types.uint64)


@jit
def refill_state(state: U64Array) -> None:
    """Fill the buffer with the next words of stream 0; of AES, take another key first where it is time.

    Shapes    state uint64[STATE_WORDS]
    Cost      about 1 us
    Used by   the callbacks below
    Oracle    tests/oracles/words.py::stream_words
    """
    key = seen_as(state[:4], np.uint32)
    if state[CIPHER]:
        longer = stack(np.uint32, AES_KEY)
        for i in range(AES_KEY - 1):
            longer[i] = key[i]
        longer[AES_KEY - 1] = uint32(state[CIPHER])
        if state[NEXT_GROUP] >= uint64(RENEWED):
            words_into(longer, uint64(_NEXT_KEY_STREAM), 0, state[:4])
            state[NEXT_GROUP] = uint64(0)
            for i in range(AES_KEY - 1):
                longer[i] = key[i]
        fill_groups_into(longer, uint64(0), state[NEXT_GROUP], seen_as(state[HEADER:], np.uint32))
    else:
        fill_groups_into(key, uint64(0), state[NEXT_GROUP], seen_as(state[HEADER:], np.uint32))
    state[NEXT_GROUP] += uint64(BUFFER // GROUP)
    state[POSITION] = uint64(0)


@jit(inline=True)
def take_word(p: Any) -> int:
    """The next word of the state at pointer p."""
    if p[POSITION] == uint64(BUFFER):
        refill_state(carray(p, (STATE_WORDS,)))
    at = p[POSITION]
    p[POSITION] = at + uint64(1)
    word = p[uint64(HEADER) + at]
    p[uint64(HEADER) + at] = uint64(0)
    return word


@compile_callback(types.uint64(_STATE))
def next_uint64(p: Any) -> int:
    """A 64-bit word."""
    return take_word(p)


@compile_callback(types.uint32(_STATE))
def next_uint32(p: Any) -> int:
    """Half a word; the other half is kept for the next call."""
    if p[HAS_SPARE]:
        p[HAS_SPARE] = uint64(0)
        half = p[SPARE]
        p[SPARE] = uint64(0)
        return uint32(half)
    word = take_word(p)
    p[HAS_SPARE] = uint64(1)
    p[SPARE] = word >> uint64(32)
    return uint32(word)


@compile_callback(types.float64(_STATE))
def next_double(p: Any) -> float:
    """A multiple of 2^-53 in [0, 1)."""
    return float64(take_word(p) >> uint64(11)) * 2.0**-53
