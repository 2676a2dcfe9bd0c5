"""The exponential mechanism by buckets: one pass over the scores, a few random words, any number of draws.

Every candidate gets a power of two that is at least its weight, from its score alone. Their sums are exact integers, so
a candidate is proposed with probability exactly proportional to its power of two; a coin then takes what the power has
too much. selection.md, theorem 1, proves the law.
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
from ..support.rounding import down
from ..support.threads import run_chunks
from .scores import CHUNK, blocks_of, changed, check_top

BATCH = 32  # proposals for one draw: each is accepted with probability 1/4 at least, about 1/2 mostly
MOST = 1 << 20  # proposals made at a time
MOST_IN_VAIN = 64  # batches without an accepted proposal, which scores that stay have once in 10^250 calls


class Buckets:
    """The scores of all candidates and their weights: all that a draw needs."""

    def __init__(self, scores: NDArray[Any], eta: float) -> None:
        self._scores, self._eta = scores, eta
        self._factor = _factor(eta)
        self._levels = 62.0 - (scores.size - 1).bit_length()
        blocks = -(-scores.size // layout.CANDIDATE_BLOCK)
        self.tops = np.empty(blocks, scores.dtype)
        self._weights = np.empty(blocks, np.uint64)
        run_chunks(self._weigh, scores.size, CHUNK)
        self.top = self.tops.max().item()
        check_top(self.top)

    def _weigh(self, start: int, stop: int) -> None:
        part = blocks_of(start, stop)
        _kernels().sum_blocks_into(
            self._scores[start:stop], self._factor, self._levels, self.tops[part], self._weights[part]
        )

    def draw(self, key: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
        """So many draws: the accepted ones among proposals 0, 1, 2, ..., in this order."""
        sums = np.empty((2, self._weights.size), np.uint64)
        _kernels().sum_weights_into(self.tops, self._weights, self.top, self._factor, sums)
        if not (sums[0, -1] or sums[1, -1]):  # of scores that changed while they were added up
            raise changed()
        found: list[NDArray[np.int64]] = []
        missing, first, in_vain = count, 0, 0
        while missing > 0:
            proposals = np.empty((4, min(3 * (missing - 1) + BATCH, MOST)), np.uint64)
            first = _kernels().propose_into(key, first, self.tops, self.top, self._factor, sums, proposals)
            accepted = self._accepted(key, proposals)[:missing]
            found.append(accepted)
            missing -= accepted.size
            in_vain = 0 if accepted.size else in_vain + 1
            if in_vain > MOST_IN_VAIN:
                raise changed()
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _accepted(self, key: NDArray[np.uint32], proposals: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The candidates of the accepted proposals, in order. All are resolved, whatever comes first."""
        count = proposals.shape[1]
        order = None
        if count > BATCH:  # a block is weighted once for all proposals in it
            order = np.argsort(proposals[layout.PROPOSED_BLOCK], kind="stable")
            proposals = proposals[:, order]
        outcomes = np.empty((3, count), np.int64)
        _kernels().resolve_into(
            self._scores, self._eta, self._factor, self._levels, self.tops, self.top, proposals, order is not None,
            layout.SLACK, outcomes,
        )  # fmt: skip
        members, doublings, verdicts = outcomes
        for p in np.flatnonzero(verdicts < 0).tolist():
            score = self._scores[members[p]].item()
            if not -inf < score <= self.top or doublings[p] < 0:
                raise changed()
            distance = Fraction(self.top) - Fraction(score)
            coin = exact.proposal_coin(word_source(key), int(proposals[layout.PROPOSED_NUMBER, p]))
            exponent = -Fraction(self._eta) * distance
            verdicts[p] = exact.is_below_exp(coin, exponent, int(doublings[p]))
        if order is not None:
            in_order = np.empty_like(outcomes)
            in_order[:, order] = outcomes
            members, _, verdicts = in_order
        accepted: NDArray[np.int64] = members[verdicts == 1]
        return accepted


@lru_cache(1024)
def _factor(eta: float) -> float:
    """eta / ln 2, less 2^-40 of it: selection.md, lemma 1."""
    return down(Fraction(eta) * (1 - Fraction(1, 2**40)) * Fraction(layout.LOG2_E))  # below 1 / ln 2


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import buckets

    return buckets
