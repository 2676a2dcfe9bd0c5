"""Permute-and-flip: every candidate flips a coin of probability e^(-eta (top - s)).

Proof in fastdp/mechanisms/selection.md, theorem 3; scores.py says what candidates are.
"""

from typing import Any

import numpy as np

from .compile import jit
from .cuts import share_of_wide
from .elementary import exp_one, exp_rough, from_uint52, from_uint64
from .int_or_float import gap
from .lanes import F64Array, I64Array, U32Array, stack, uint64
from .layout import CANDIDATE_BLOCK, CANDIDATE_MORE_STREAM, SCHEDULE, UNDECIDED
from .scores import ROUGH, WORDS_ROOM, first_words, is_forbidden, top_of
from .words import expanded, word_one

LEFT_OPEN = -1
_HEAD_STREAM = 2  # and every second one from there: of the number that draws among the heads


@jit
def flip_coins_into(
    block: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, room: U32Array, flags: F64Array
) -> int:
    """The coins of one block: flags[i] = 1 if x_i < e^(-eta (top - s_i)), else 0, NaN where 96 bits do not decide.

    Shapes    block int64[n] or float64[n], n <= 2,048; key uint32[8]; room uint32[2560], work space; flags
              float64[2048]
    Cost      about 0.8 ns a candidate with AVX-512
    Source    fastdp/mechanisms/selection.md, theorem 3
    Requires  top the largest score of all
    Returns   how many are NaN
    Used by   permute_and_flip
    Oracle    tests/oracles/selection.py::permute_and_flip_heads
    """
    x = first_words(key, first, block.size, room)
    near = 0
    for i in range(block.size):
        a = -eta * gap(top, block[i])
        probability = exp_rough(a if a > -700.0 else -700.0)
        coin = from_uint52(uint64(x[i])) * 2.0**-32
        flag = 1.0 if coin + 2.0**-32 <= probability * (1.0 - (ROUGH + slack)) else UNDECIDED
        flags[i] = 0.0 if coin >= probability * (1.0 + (ROUGH + slack)) else flag
        near += np.isnan(flags[i])
    undecided = 0
    if near:
        for i in range(block.size):
            if np.isnan(flags[i]):
                a = -eta * gap(top, block[i])
                probability = exp_one(a if a > -700.0 else -700.0)
                error = probability * (slack * (64.0 - a)) if a > -700.0 else probability
                word = word_one(key, uint64(CANDIDATE_MORE_STREAM), uint64(first + i))
                coin = from_uint52(uint64(x[i])) * 2.0**-32 + from_uint64(word) * 2.0**-96
                if is_forbidden(block[i]) or coin >= probability + error + 2.0**-80:
                    flags[i] = 0.0
                elif coin + 2.0**-80 <= probability - error:
                    flags[i] = 1.0
                else:
                    undecided += 1
    return undecided


@jit(reads=("scores",))
def count_heads_into(
    scores: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, counts: I64Array, undecided: I64Array
) -> int:
    """How many candidates of each block have flipped heads.

    Shapes    scores int64[n] or float64[n], counts int64, one for each block, undecided int64[m]
    Cost      O(n): about 0.8 ns a candidate with AVX-512, 1.5 with AVX2
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, theorem 3
    Requires  top the largest score of all, not -inf
    Returns   number of undecided coins, the first m of them listed in `undecided`; they are not counted
    Used by   fastdp.permute_and_flip
    Oracle    tests/oracles/selection.py::permute_and_flip_heads
    """
    room, flags = stack(np.uint32, WORDS_ROOM), stack(np.float64, CANDIDATE_BLOCK)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    found = 0
    for b in range(counts.size):
        block = scores[b * CANDIDATE_BLOCK : (b + 1) * CANDIDATE_BLOCK]
        if flip_coins_into(block, first + b * CANDIDATE_BLOCK, source, eta, top, slack, room, flags):
            for i in range(block.size):
                if np.isnan(flags[i]):
                    if found < undecided.size:
                        undecided[found] = first + b * CANDIDATE_BLOCK + i
                    found += 1
        count = 0
        for i in range(block.size):
            count += flags[i] == 1.0
        counts[b] = count
    return found


@jit(reads=("block",))
def mark_heads_into(block: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, flags: F64Array) -> None:
    """The coins of one block, as `flip_coins_into` leaves them.

    Like      flip_coins_into, which is given its work space
    Shapes    block int64[n] or float64[n], n <= 2,048; key uint32[8]; flags float64[n]
    Cost      as there
    Used by   fastdp/mechanisms/permute_and_flip.py
    Oracle    tests/oracles/selection.py::permute_and_flip_heads
    """
    flip_coins_into(block, first, key, eta, top, slack, stack(np.uint32, WORDS_ROOM), flags)


@jit(reads=("block",))
def choose_head(block: Any, key: U32Array, eta: float, slack: float) -> int:
    """One of the heads of so few candidates, each alike: one call for a whole choice.

    Like      flip_coins_into, which is given its work space and the largest score
    Shapes    block int64[n] or float64[n], 1 <= n <= 2,048; key uint32[8]
    Cost      0.5 us, and 0.8 ns a candidate
    Requires  no score NaN or +inf, and not all -inf
    Returns   its number, or LEFT_OPEN: a coin or the draw is not decided, or scores have changed since they were read
    Used by   fastdp/mechanisms/permute_and_flip.py
    Oracle    tests/oracles/selection.py::permute_and_flip
    """
    room, flags = stack(np.uint32, WORDS_ROOM), stack(np.float64, CANDIDATE_BLOCK)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    if flip_coins_into(block, 0, source, eta, top_of(block), slack, room, flags):
        return LEFT_OPEN
    heads = 0
    for i in range(block.size):
        heads += flags[i] == 1.0
    u, v = word_one(source, uint64(_HEAD_STREAM), uint64(0)), word_one(source, uint64(_HEAD_STREAM + 2), uint64(0))
    _, which, is_open = share_of_wide(uint64(0), uint64(heads), u, v)
    if is_open:
        return LEFT_OPEN
    for i in range(block.size):
        if flags[i] == 1.0:
            if which == uint64(0):
                return i
            which -= uint64(1)
    return LEFT_OPEN
