"""Single random numbers for hosts that ask for one at a time: the four functions of numpy's BitGenerator interface.

State, as uint64 words: key (4), number of the next group, position in the buffer, spare 32 bits, whether there is a
spare, then the buffer. A used word is wiped, so that the past cannot be read from a captured state's buffer.
"""

from typing import Any

import numpy as np
from numba import carray, types

from .chacha20 import GROUP, fill_groups_into
from .compile import compile_callback, jit
from .lanes import U64Array, float64, uint32, uint64

BUFFER = 8 * GROUP
STATE_WORDS = 8 + BUFFER
_STATE = types.CPointer(types.uint64)


@jit
def refill_state(state: U64Array) -> None:
    """Fill the buffer with the next words of stream 0.

    Shapes    state uint64[STATE_WORDS]
    Cost      about 1 us
    Used by   the callbacks below
    Oracle    tests/oracles/words.py::stream_words
    """
    fill_groups_into(state[:4].view(np.uint32), uint64(0), state[4], state[8:].view(np.uint32))
    state[4] += uint64(BUFFER // GROUP)
    state[5] = uint64(0)


@jit(inline=True)
def take_word(p: Any) -> int:
    """The next word of the state at pointer p."""
    if p[5] == uint64(BUFFER):
        refill_state(carray(p, (STATE_WORDS,)))
    at = p[5]
    p[5] = at + uint64(1)
    word = p[uint64(8) + at]
    p[uint64(8) + at] = uint64(0)
    return word


@compile_callback(types.uint64(_STATE))
def next_uint64(p: Any) -> int:
    """A 64-bit word."""
    return take_word(p)


@compile_callback(types.uint32(_STATE))
def next_uint32(p: Any) -> int:
    """Half a word; the other half is kept for the next call."""
    if p[7]:
        p[7] = uint64(0)
        half = p[6]
        p[6] = uint64(0)
        return uint32(half)
    word = take_word(p)
    p[7] = uint64(1)
    p[6] = word >> uint64(32)
    return uint32(word)


@compile_callback(types.float64(_STATE))
def next_double(p: Any) -> float:
    """A multiple of 2^-53 in [0, 1)."""
    return float64(take_word(p) >> uint64(11)) * 2.0**-53
