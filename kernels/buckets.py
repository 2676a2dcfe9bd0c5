"""Choosing by buckets: proposals of exact integer weight, accepted with what is left of theirs.

Every candidate gets a power of two that is at least its weight, and a proposal is a random integer below their sum.
Proof in fastdp/mechanisms/selection.md, theorem 1; scores.py says what candidates are.
"""

from typing import Any, NamedTuple

import numpy as np

from . import layout
from .arrays import seen_as
from .compile import jit
from .elementary import ROUNDER, ROUNDER_BITS, exp_one, from_uint64
from .int_or_float import gap
from .lanes import U32Array, U64Array, bits_of, fma, int64, stack, uint64
from .layout import CANDIDATE_BLOCK, HIGH, LN2, LOW, OPEN_LEVEL, SCHEDULE
from .scores import is_forbidden, top_of
from .words import GROUP, expanded, fill_groups_into

PARTS = CANDIDATE_BLOCK // 64

_ALMOST_HALF = 0.5 - 2.0**-44

U64Rows = np.ndarray[Any, np.dtype[np.uint64]]
I64Rows = np.ndarray[Any, np.dtype[np.int64]]


@jit(inline=True)
def height_of(distance: float, f: float, levels: float) -> int:
    """levels - l, where 0 <= l <= levels and l ln 2 <= eta distance: how many times a weight may be doubled.

    Source    fastdp/mechanisms/selection.md, lemma 1
    Requires  f <= (1 - 2^-40) eta / ln 2; levels an integer, at most 64
    """
    z = fma(-distance, f, levels + _ALMOST_HALF)
    return bits_of((z if z > 0.0 else 0.0) + ROUNDER) - int64(ROUNDER_BITS)


@jit(inline=True)
def weight_of(distance: float, f: float, levels: float) -> int:
    """2^(levels - l), at least e^(-eta distance) 2^levels."""
    return uint64(1) << (uint64(height_of(distance, f, levels)) & uint64(63))


@jit(reads=("scores",))
def sum_blocks_into(scores: Any, f: float, levels: float, tops: Any, weights: U64Array) -> None:
    """The largest score of every block, and the sum of the weights of its candidates below that.

    weights[b] = sum over the block of 2^(levels - l_i),   0 <= l_i <= levels, l_i ln 2 <= eta (tops[b] - s_i)

    Shapes    scores int64[n] or float64[n]; tops of the same type and weights uint64, one for each block
    Cost      O(n), one pass: 0.14 ns a candidate with AVX-512, 0.25 with AVX2, as a copy of the scores would take
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, lemma 1
    Requires  what `height_of` does; levels < 63 - log2(n)
    Used by   fastdp.exponential_mechanism
    Oracle    tests/oracles/selection.py::block_weights
    """
    for b in range(tops.size):
        block = scores[b * CANDIDATE_BLOCK : (b + 1) * CANDIDATE_BLOCK]
        top = top_of(block)
        tops[b] = top
        total = uint64(0)
        if not is_forbidden(top):
            for i in range(block.size):
                total += weight_of(gap(top, block[i]), f, levels)
        weights[b] = total


@jit(inline=True)
def shift_of(top: Any, block_top: Any, f: float) -> int:
    """By how much the weight of a block is shifted in the total: 64 less its level below the top of all."""
    return uint64(height_of(gap(top, block_top), f, float(OPEN_LEVEL)))


@jit
def sum_weights_into(tops: Any, weights: U64Array, top: Any, f: float, sums: U64Rows) -> None:
    """Running sums of the blocks' weights below the top of all, as integers of 128 bits.

    sums[:, b] = sum over blocks c <= b of weights[c] 2^(64 - l_c),   l_c ln 2 <= eta (top - tops[c])

    Shapes    tops, weights as `sum_blocks_into` leaves them; sums uint64[2, blocks]: high halves, low halves
    Cost      one pass over the blocks
    Requires  weights of sum_blocks_into with the same f
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/oracles/selection.py::bucket_draws
    """
    high, low = uint64(0), uint64(0)
    for b in range(tops.size):
        shift = shift_of(top, tops[b], f)
        w = weights[b]
        add_high, add_low = w, uint64(0)
        if shift < uint64(64):
            add_low = w << shift
            add_high = (w >> uint64(1)) >> (uint64(63) - shift)
        low += add_low
        high += add_high + uint64(low < add_low)
        sums[HIGH, b], sums[LOW, b] = high, low


@jit(inline=True)
def is_below(high: int, low: int, sums: U64Rows, b: int) -> bool:
    """Whether an integer of 128 bits is below the running sum of block b."""
    return high < sums[HIGH, b] or (high == sums[HIGH, b] and low < sums[LOW, b])


@jit(inline=True)
def block_at(high: int, low: int, sums: U64Rows) -> int:
    """The first block whose running sum is above this integer."""
    below, b = 0, sums.shape[1] - 1
    while below < b:
        middle = (below + b) // 2
        if is_below(high, low, sums, middle):
            b = middle
        else:
            below = middle + 1
    return b


@jit
def propose_into(key: U32Array, first: int, tops: Any, top: Any, f: float, sums: U64Rows, proposals: U64Rows) -> int:
    """Proposals from number `first` on, until the array is full: the block, and the place inside its weight.

    Proposal t is the integer of the words 2t, 2t + 1 of stream 0, cut to as many bits as the total has, and is void if
    it is not below the total; its coin is word t of stream 1.

    Shapes    proposals uint64[4, m]: rows for block, place, coin and number
    Cost      three words and O(log blocks) a proposal
    Requires  sums of sum_weights_into; fewer than 2^62 proposals under a key
    Returns   the number of the next proposal
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/oracles/selection.py::bucket_draws
    """
    last = sums.shape[1] - 1
    mask = sums[HIGH, last]
    for step in (1, 2, 4, 8, 16, 32):
        mask |= mask >> uint64(step)
    words, coins = stack(np.uint64, GROUP), stack(np.uint64, GROUP)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    t = uint64(first)
    found = 0
    fresh = True
    while found < proposals.shape[1]:
        at = t % uint64(GROUP // 2)
        if fresh or at == uint64(0):
            fill_groups_into(source, uint64(layout.PROPOSAL_STREAM), t // uint64(GROUP // 2), seen_as(words, np.uint32))
            fill_groups_into(source, uint64(layout.PROPOSAL_COIN_STREAM), t // uint64(GROUP), seen_as(coins, np.uint32))
            fresh = False
        high, low = words[int(2 * at)] & mask, words[int(2 * at + uint64(1))]
        if is_below(high, low, sums, last):
            b = block_at(high, low, sums)
            if b > 0:
                high -= sums[HIGH, b - 1] + uint64(low < sums[LOW, b - 1])
                low -= sums[LOW, b - 1]
            shift = shift_of(top, tops[b], f)
            if shift < uint64(64):
                high = (high << uint64(1)) << (uint64(63) - shift) | low >> shift
            proposals[layout.PROPOSED_BLOCK, found], proposals[layout.PROPOSED_REST, found] = uint64(b), high
            proposals[layout.PROPOSED_COIN, found] = coins[int(t % uint64(GROUP))]
            proposals[layout.PROPOSED_NUMBER, found] = t
            found += 1
        t += uint64(1)
    return int64(t)


class BlockWeights(NamedTuple):
    """The weights of a block's candidates, and their sums by 64."""

    each: U64Array
    parts: U64Array


@jit
def fill_block(block: Any, top: Any, f: float, levels: float, into: BlockWeights) -> None:
    """The weights of a block's candidates below its top, and their sums by 64.

    Shapes    block int64[n] or float64[n]; into: uint64[2048], of which n are written, and uint64[32]
    Cost      about 0.3 us
    Requires  n <= 2,048
    Used by   resolve_into
    Oracle    tests/oracles/selection.py::block_weights
    """
    for i in range(block.size):
        into.each[i] = weight_of(gap(top, block[i]), f, levels)
    for q in range(PARTS):
        part = into.each[64 * q : min(64 * (q + 1), block.size)]
        total = uint64(0)
        for i in range(part.size):
            total += part[i]
        into.parts[q] = total


@jit(inline=True)
def member_at(rest: int, weights: BlockWeights, size: int) -> int:
    """The candidate of a block in whose weight this place is."""
    q = 0
    last = size - 1  # scores that changed meanwhile may not lead beyond it
    while rest >= weights.parts[q] and q < last // 64:
        rest -= weights.parts[q]
        q += 1
    i = 64 * q
    while rest >= weights.each[i] and i < last:
        rest -= weights.each[i]
        i += 1
    return i


@jit(inline=True)
def verdict_of(coin: int, exponent: float, forbidden: bool, slack: float) -> int:
    """Whether a coin of 64 bits is below e^exponent: 1, 0, or -1 where the error of the exponent leaves it open."""
    probability = exp_one(exponent if exponent > -700.0 else -700.0)
    error = probability * (slack * (64.0 - exponent)) if exponent > -700.0 else probability
    share = from_uint64(coin) * 2.0**-64
    if share + 2.0**-63 <= probability - error:
        return 1
    return 0 if share >= probability + error + 2.0**-63 or forbidden else -1


@jit(reads=("scores",))
def resolve_into(
    scores: Any, eta: float, f: float, levels: float, tops: Any, top: Any, proposals: U64Rows, grouped: bool,
    slack: float, outcomes: I64Rows,
) -> None:  # fmt: skip
    """Which candidate each proposal is, and whether it is accepted: coin < e^(-eta (top - s)) 2^doublings.

    Shapes    proposals as `propose_into` makes them; outcomes int64[3, m]: rows for member, doublings and verdict
    Cost      about 0.3 us for each proposal, or, if they are grouped by block, for each block that occurs: a single
              draw leaves them as they are, so that the time does not show how many blocks they fell into
    Source    proof in fastdp/mechanisms/selection.md, lemma 2
    Returns   verdicts: 1 accepted, 0 rejected, -1 for the caller to resolve
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/oracles/selection.py::bucket_draws
    """
    weights = BlockWeights(stack(np.uint64, CANDIDATE_BLOCK), stack(np.uint64, PARTS))
    current = int64(-1)
    for p in range(proposals.shape[1]):
        b = int64(proposals[layout.PROPOSED_BLOCK, p])
        block = scores[b * CANDIDATE_BLOCK : (b + 1) * CANDIDATE_BLOCK]
        if b != current or not grouped:
            current = b
            fill_block(block, tops[b], f, levels, weights)
        i = member_at(proposals[layout.PROPOSED_REST, p], weights, block.size)
        level = levels - float(height_of(gap(tops[b], block[i]), f, levels))
        level += float(OPEN_LEVEL - height_of(gap(top, tops[b]), f, float(OPEN_LEVEL)))
        outcomes[layout.MEMBER, p] = b * CANDIDATE_BLOCK + i
        outcomes[layout.DOUBLINGS, p] = int64(level)
        exponent = fma(-eta, gap(top, block[i]), level * LN2)
        coin = proposals[layout.PROPOSED_COIN, p]
        outcomes[layout.VERDICT, p] = verdict_of(coin, exponent, is_forbidden(block[i]), slack)
