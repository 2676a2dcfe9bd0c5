"""Scores of candidates, int64 and float64 alike, block by block; -inf forbids a candidate.

What buckets.py, gumbel_max.py and permute_and_flip.py share. A candidate of score s has weight e^(-eta (top - s)). No
weight is ever summed or compared as a float: float64 finds the few candidates that matter, with proven bounds, and
whatever those leave open is reported to the caller, who resolves it exactly (fastdp/randomness/exact_draws.py).
fastdp/mechanisms/selection.md has the laws and the bounds.

Loops work on blocks of 2,048 that stay in the L1 cache, and every loop that runs over all candidates is free of
branches on their scores.
"""

from typing import Any

import numpy as np

from .compile import jit
from .int_or_float import gap, of_rank, rank_of
from .lanes import F64Array, U32Array, int64, uint64
from .layout import CANDIDATE_BLOCK, CANDIDATE_STREAM, GROUP_HALVES
from .words import fill_groups_into

WORDS_ROOM = CANDIDATE_BLOCK + 2 * GROUP_HALVES  # 32-bit words for a block that may start within a group
ROUGH = 2.0**-30  # twice what exp_rough may be off

_LOWEST = -0x8000000000000000


@jit(inline=True)
def is_forbidden(score: Any) -> bool:
    """Whether a score is -inf (NaN and +inf have been refused)."""
    return gap(score, score) != 0.0


@jit(inline=True)
def top_of(block: Any) -> Any:
    """The largest of these scores; NaN or +inf if there is a NaN or +inf among them."""
    rank = int64(_LOWEST)
    for i in range(block.size):
        rank = max(rank, rank_of(block[i]))
    return of_rank(rank, block[0])


@jit(reads=("scores",))
def find_tops_into(scores: Any, tops: Any) -> Any:
    """The largest score of every block of 2,048.

    Shapes    scores int64[n] or float64[n], tops of the same type, one for each block
    Cost      O(n): about 0.07 ns a candidate with AVX-512
    Returns   the largest of all; NaN or +inf if there is a NaN or +inf
    Used by   fastdp/mechanisms/scores.py
    Oracle    numpy's max
    """
    rank = int64(_LOWEST)
    for b in range(tops.size):
        tops[b] = top_of(scores[b * CANDIDATE_BLOCK : (b + 1) * CANDIDATE_BLOCK])
        rank = max(rank, rank_of(tops[b]))
    return of_rank(rank, scores[0])


@jit(reads=("scores",))
def find_top(scores: F64Array) -> float:
    """The largest score of all; NaN or +inf if there is a NaN or +inf.

    Shapes    scores float64[n], n >= 1
    Cost      O(n): about 0.07 ns a candidate with AVX-512
    Used by   fastdp/mechanisms/scores.py
    Oracle    numpy's max
    """
    return top_of(scores)


@jit(reads=("scores",))
def count_allowed(scores: F64Array) -> int:
    """How many candidates are not forbidden.

    Shapes    scores float64[n]
    Cost      at memory speed
    Used by   fastdp.top_k
    Oracle    numpy
    """
    count = 0
    for i in range(scores.size):
        count += scores[i] != -np.inf
    return count


@jit(inline=True)
def first_words(key: U32Array, first: int, n: int, room: U32Array) -> U32Array:
    """The 32-bit words of candidates first, ..., first + n - 1, in `room`, which has WORDS_ROOM entries."""
    skip = first % GROUP_HALVES
    used = -(-(skip + n) // GROUP_HALVES) * GROUP_HALVES
    fill_groups_into(key, uint64(CANDIDATE_STREAM), uint64(first) // uint64(GROUP_HALVES), room[:used])
    return room[skip : skip + n]
