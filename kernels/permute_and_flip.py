"""Permute-and-flip: every candidate flips a coin of probability e^(-eta (top - s)).

Proof in fastdp/mechanisms/selection.md, theorem 3; scores.py says what candidates are.
"""

from typing import Any

import numpy as np

from .compile import jit
from .elementary import exp_one, exp_rough, from_uint52, from_uint64
from .int_or_float import gap
from .lanes import F64Array, I64Array, U32Array, stack, uint64
from .layout import CANDIDATE_BLOCK, CANDIDATE_MORE_STREAM, SCHEDULE, UNDECIDED
from .scores import ROUGH, WORDS_ROOM, first_words, is_forbidden
from .words import expanded, word_one


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


@jit
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


@jit
def mark_heads_into(block: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, flags: F64Array) -> None:
    """The coins of one block, as `flip_coins_into` leaves them.

    Like      flip_coins_into, which is given its work space
    Shapes    block int64[n] or float64[n], n <= 2,048; key uint32[8]; flags float64[n]
    Cost      as there
    Used by   fastdp/mechanisms/permute_and_flip.py
    Oracle    tests/oracles/selection.py::permute_and_flip_heads
    """
    flip_coins_into(block, first, key, eta, top, slack, stack(np.uint32, WORDS_ROOM), flags)
