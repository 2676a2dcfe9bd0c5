"""Permute-and-flip: every candidate flips a coin of probability e^(-eta (top - score)), one of the heads is drawn.

To go through the candidates in random order until one shows heads, which is how McKenna and Sheldon (2020) state it, is
the same as to flip all coins and draw among the heads; but the time of this does not depend on where the heads are.
selection.md, theorem 3, proves law and guarantee.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout
from ..randomness import exact_draws as exact
from ..randomness.keys import word_source
from ..support.threads import run_chunks
from .scores import blocks_of, changed, tops_of

_CHUNK = 1 << 18  # candidates that one thread flips coins for at a time: 0.2 ms
_ROOM = 64  # for coins that 96 bits do not decide: one in 2^45 of them


def draw_head(scores: NDArray[Any], top: Any, key: NDArray[np.uint32], eta: float) -> int:
    """The number of the chosen candidate; `top` is the largest score, not -inf."""
    if scores.size <= layout.CANDIDATE_BLOCK:
        return draw_head_of_few(scores, key, eta)
    return draw_head_of_many(scores, top, key, eta)


def draw_head_of_few(scores: NDArray[Any], key: NDArray[np.uint32], eta: float) -> int:
    """The same of at most one block, whose scores have been checked; the kernel finds the largest."""
    head: int = _kernels().choose_head(scores, key, eta, layout.SLACK)
    return head if head >= 0 else draw_head_of_many(scores, tops_of(scores)[1], key, eta)


def draw_head_of_many(scores: NDArray[Any], top: Any, key: NDArray[np.uint32], eta: float) -> int:
    """The same block by block, and where coins or the draw among heads have to be resolved exactly."""
    block, slack = layout.CANDIDATE_BLOCK, layout.SLACK
    counts = np.empty(-(-scores.size // block), np.int64)
    words = word_source(key)

    def count(start: int, stop: int) -> list[int]:
        """Count the heads of a chunk; returns those that had to be resolved exactly."""
        part = counts[blocks_of(start, stop)]
        room, found = _ROOM, _ROOM + 1
        for _ in range(3):  # twice at most for scores that stay, as the coins are the same
            room = max(room, found)
            undecided = np.empty(room, np.int64)
            found = _kernels().count_heads_into(scores[start:stop], start, key, eta, top, slack, part, undecided)
            if found <= room:
                break
        else:
            raise changed()
        heads = [i for i in undecided[:found].tolist() if is_head(i)]
        for i in heads:
            counts[i // block] += 1
        return heads

    def is_head(i: int) -> bool:
        score = scores[i].item()
        if not -inf < score <= top:
            raise changed()
        exponent = -Fraction(eta) * (Fraction(top) - Fraction(score))
        return exact.is_below_exp(exact.candidate_uniform(words, i), exponent)

    resolved = [i for heads in run_chunks(count, scores.size, _CHUNK) for i in heads]
    sums = np.cumsum(counts)
    if not sums[-1]:  # the best candidate's coin shows heads, unless it is the best no more
        raise changed()
    which = exact.uniform_below(int(sums[-1]), exact.choice_uniform(words))
    b = int(np.searchsorted(sums, which, side="right"))
    flags = np.empty(min(block, scores.size - b * block))
    _kernels().mark_heads_into(scores[b * block : (b + 1) * block], b * block, key, eta, top, slack, flags)
    flags[[i - b * block for i in resolved if i // block == b]] = 1.0
    here = np.flatnonzero(flags == 1.0)
    if not here.size:
        raise changed()
    return b * block + int(here[max(which - int(sums[b]), -here.size)])  # counted from the end


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import permute_and_flip

    return permute_and_flip
