"""Choosing one of many candidates by their scores: by buckets, as a race of exponentials, by permute-and-flip.

A candidate of score s has weight e^(-eta (top - s)). No weight is ever summed or compared as a float: float64 finds the
few candidates that matter, with proven bounds, and whatever those leave open is reported to the caller, who settles it
exactly (fastdp/randomness/exact_draws.py). fastdp/mechanisms/selection.md has the laws and the bounds.

Kernels take int64 and float64 scores alike; -inf forbids a candidate. They work on blocks of 2,048 that stay in the L1
cache, and every loop that runs over all candidates is free of branches on their scores.
"""

from typing import Any

import numpy as np

from .chacha20 import GROUP, GROUP_HALVES, fill_groups_into, word_one, words_into
from .compile import jit
from .elementary import LN2, ROUNDER, ROUNDER_BITS, U, exp_one, exp_rough, from_uint52, from_uint64, ln_one
from .lanes import F64Array, I64Array, U32Array, U64Array, bits_of, fma, gap, int64, of_rank, rank_of, stack, uint64

BLOCK = 2048  # candidates that share the buffers, and a weight
PARTS = BLOCK // 64
CHUNK_BLOCKS = 128
CHUNK = CHUNK_BLOCKS * BLOCK  # candidates that one thread races at a time
OPEN_LEVEL = 64  # of a block: the weights of blocks further down than this are not told apart
SLACK = 8 * U  # a logarithm L below is off by at most SLACK (64 + |L|): fastdp/mechanisms/selection.md, lemmas 2 and 3

# Which words decide what: fastdp/mechanisms/selection.md, "Bits".
FIRST_STREAM, MORE_STREAM, PROPOSAL_STREAM, COIN_STREAM = 0, 1, 0, 1

_LOWEST = -0x8000000000000000
_MANY = 16  # words by themselves take as long as those of a whole block
_ROOM = BLOCK + 2 * GROUP_HALVES
_ALMOST_HALF = 0.5 - 2.0**-44
_ROUGH = 2.0**-30  # twice what exp_rough may be off
_NAN, _INF = float("nan"), float("inf")


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


@jit
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
        tops[b] = top_of(scores[b * BLOCK : (b + 1) * BLOCK])
        rank = max(rank, rank_of(tops[b]))
    return of_rank(rank, scores[0])


@jit
def count_allowed(scores: F64Array) -> int:
    """How many candidates are not forbidden.

    Shapes    scores float64[n]
    Cost      at memory speed
    Used by   fastdp.top_k
    Oracle    numpy
    """
    count = 0
    for i in range(scores.size):
        count += scores[i] != -_INF
    return count


# --- buckets: proposals of exact integer weight, accepted with what is left of theirs


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


@jit
def weigh_into(scores: Any, f: float, levels: float, tops: Any, weights: U64Array) -> None:
    """The largest score of every block, and the sum of the weights of its candidates below that.

    weights[b] = sum over the block of 2^(levels - l_i),   0 <= l_i <= levels, l_i ln 2 <= eta (tops[b] - s_i)

    Shapes    scores int64[n] or float64[n]; tops of the same type and weights uint64, one for each block
    Cost      O(n), one pass: 0.14 ns a candidate with AVX-512, 0.25 with AVX2, as a copy of the scores would take
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, lemma 1
    Requires  what `height_of` does; levels < 63 - log2(n)
    Used by   fastdp.exponential_mechanism
    Oracle    tests/reference.py::block_weights
    """
    for b in range(tops.size):
        block = scores[b * BLOCK : (b + 1) * BLOCK]
        top = top_of(block)
        tops[b] = top
        total = uint64(0)
        if not is_forbidden(top):
            for i in range(block.size):
                total += weight_of(gap(top, block[i]), f, levels)
        weights[b] = total


@jit
def sum_weights_into(tops: Any, weights: U64Array, top: Any, f: float, high: U64Array, low: U64Array) -> None:
    """Running sums of the blocks' weights below the top of all, as integers of 128 bits.

    (high, low)[b] = sum over blocks c <= b of weights[c] 2^(64 - l_c),   l_c ln 2 <= eta (top - tops[c])

    Shapes    tops, weights as `weigh_into` leaves them; high, low uint64 of the same length
    Cost      one pass over the blocks
    Requires  weights of weigh_into with the same f
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/reference.py::bucket_draws
    """
    h, m = uint64(0), uint64(0)
    for b in range(tops.size):
        shift = uint64(height_of(gap(top, tops[b]), f, float(OPEN_LEVEL)))
        w = weights[b]
        add_high, add_low = w, uint64(0)
        if shift < uint64(64):
            add_low = w << shift
            add_high = (w >> uint64(1)) >> (uint64(63) - shift)
        m += add_low
        h += add_high + uint64(m < add_low)
        high[b], low[b] = h, m


@jit(inline=True)
def is_below(high: int, low: int, other_high: int, other_low: int) -> bool:
    """Whether one integer of 128 bits is below another."""
    return high < other_high or (high == other_high and low < other_low)


@jit
def propose_into(
    key: U32Array,
    first: int,
    tops: Any,
    top: Any,
    f: float,
    high: U64Array,
    low: U64Array,
    blocks: I64Array,
    rests: U64Array,
    coins: U64Array,
    numbers: I64Array,
) -> int:
    """Proposals from number `first` on, until the arrays are full: the block, and the place inside its weight.

    Proposal t is the integer of the words 2t, 2t + 1 of stream 0, cut to as many bits as the total has, and is void if
    it is not below the total; its coin is word t of stream 1.

    Shapes    blocks, numbers int64[m], rests, coins uint64[m]
    Cost      three words and O(log blocks) a proposal
    Requires  high, low of sum_weights_into; fewer than 2^62 proposals under a key
    Returns   the number of the next proposal
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/reference.py::bucket_draws
    """
    last = high.size - 1
    mask = high[last]
    for step in (1, 2, 4, 8, 16, 32):
        mask |= mask >> uint64(step)
    words, flips = stack(np.uint64, GROUP), stack(np.uint64, GROUP)
    t = uint64(first)
    found = 0
    fresh = True
    while found < blocks.size:
        at = t % uint64(GROUP // 2)
        if fresh or at == uint64(0):
            fill_groups_into(key, uint64(PROPOSAL_STREAM), t // uint64(GROUP // 2), words.view(np.uint32))
            fill_groups_into(key, uint64(COIN_STREAM), t // uint64(GROUP), flips.view(np.uint32))
            fresh = False
        r_high, r_low = words[int(2 * at)] & mask, words[int(2 * at + uint64(1))]
        if is_below(r_high, r_low, high[last], low[last]):
            below, b = 0, last  # the first block whose running sum is above r
            while below < b:
                middle = (below + b) // 2
                if is_below(r_high, r_low, high[middle], low[middle]):
                    b = middle
                else:
                    below = middle + 1
            if b > 0:
                r_high -= high[b - 1] + uint64(r_low < low[b - 1])
                r_low -= low[b - 1]
            shift = uint64(height_of(gap(top, tops[b]), f, float(OPEN_LEVEL)))
            if shift < uint64(64):
                r_high = (r_high << uint64(1)) << (uint64(63) - shift) | r_low >> shift
            blocks[found], rests[found] = b, r_high
            coins[found], numbers[found] = flips[int(t % uint64(GROUP))], int64(t)
            found += 1
        t += uint64(1)
    return int64(t)


@jit
def resolve_into(
    scores: Any,
    eta: float,
    f: float,
    levels: float,
    tops: Any,
    top: Any,
    blocks: I64Array,
    rests: U64Array,
    coins: U64Array,
    sorted_: bool,
    slack: float,
    members: I64Array,
    doublings: I64Array,
    verdicts: I64Array,
) -> None:
    """Which candidate each proposal is, and whether it is accepted: coin < e^(-eta (top - s)) 2^doublings.

    Shapes    proposals as `propose_into` makes them; members, doublings, verdicts int64[m]
    Cost      about 0.3 us for each proposal, or, if they are sorted by block, for each block that occurs: a single draw
              leaves them as they are, so that the time does not tell how many blocks they fell into
    Source    proof in fastdp/mechanisms/selection.md, lemma 2
    Returns   verdicts: 1 accepted, 0 rejected, -1 for the caller to settle
    Used by   fastdp/mechanisms/buckets.py
    Oracle    tests/reference.py::bucket_draws
    """
    weights, parts = stack(np.uint64, BLOCK), stack(np.uint64, PARTS)
    current = -1
    for p in range(blocks.size):
        b = blocks[p]
        block = scores[b * BLOCK : (b + 1) * BLOCK]
        if b != current or not sorted_:
            current = b
            for i in range(block.size):
                weights[i] = weight_of(gap(tops[b], block[i]), f, levels)
            for q in range(PARTS):
                part = weights[64 * q : min(64 * (q + 1), block.size)]
                total = uint64(0)
                for i in range(part.size):
                    total += part[i]
                parts[q] = total
        rest = rests[p]
        q = 0
        last = block.size - 1  # scores that changed meanwhile may not lead beyond it
        while rest >= parts[q] and q < last // 64:
            rest -= parts[q]
            q += 1
        i = 64 * q
        while rest >= weights[i] and i < last:
            rest -= weights[i]
            i += 1
        level = levels - float(height_of(gap(tops[b], block[i]), f, levels))
        level += float(OPEN_LEVEL - height_of(gap(top, tops[b]), f, float(OPEN_LEVEL)))
        members[p] = b * BLOCK + i
        doublings[p] = int64(level)
        # both sides of the comparison with their error: of the exponent, and of a coin of 64 bits
        exponent = fma(-eta, gap(top, block[i]), level * LN2)
        probability = exp_one(exponent if exponent > -700.0 else -700.0)
        error = probability * (slack * (64.0 - exponent)) if exponent > -700.0 else probability
        coin = from_uint64(coins[p]) * 2.0**-64
        verdicts[p] = -1
        if coin + 2.0**-63 <= probability - error:
            verdicts[p] = 1
        elif coin >= probability + error + 2.0**-63 or is_forbidden(block[i]):
            verdicts[p] = 0


# --- the race: candidate i arrives at E_i e^(eta (top - s_i)), E_i exponential; the earliest are chosen


@jit
def log_exponential(half: int, word: int) -> float:
    """ln E, E = -ln(1 - x), x in [0, 1) of 32 and then 64 bits; within 50 U. NaN where the bits leave too much open.

    Shapes    half uint32, word uint64
    Cost      two logarithms
    Source    fastdp/mechanisms/selection.md, lemma 3
    Used by   selection
    Oracle    tests/reference.py::race
    """
    x = from_uint52(uint64(half)) * 2.0**-32 + from_uint64(word) * 2.0**-96
    if x < 0.25:
        if x < 2.0**-36:
            return _NAN
        z = x / (2.0 - x)  # E = 2 atanh z, by its series
        w = z * z
        w2 = w * w
        p = fma(w2, fma(w, 1 / 19, 1 / 17), fma(w, 1 / 15, 1 / 13))
        p = fma(w2, p, fma(w, 1 / 11, 1 / 9))
        p = fma(w2, p, fma(w, 1 / 7, 1 / 5))
        exponential = fma(2.0 * z * w, fma(w, p, 1 / 3), 2.0 * z)
    else:
        rest = from_uint52(uint64(half) ^ uint64(0xFFFFFFFF)) * 2.0**-32 + from_uint64(~uint64(word)) * 2.0**-96
        if rest < 2.0**-36:
            return _NAN
        exponential = -ln_one(rest)
    return ln_one(exponential)


@jit(inline=True)
def error_of(arrival: float, slack: float) -> float:
    """How far a logarithm of an arrival may be off."""
    return slack * (64.0 + abs(arrival))


@jit(inline=True)
def margin_of(half: int, cut: float, lead: float, slack: float) -> float:
    """Negative only if a candidate that starts so far behind the top arrives after `cut`, whatever its other bits.

    Source    fastdp/mechanisms/selection.md, lemma 3
    """
    a = (cut + slack * (64.0 + abs(cut))) - lead
    a = a if a < 1.0 else 1.0  # NaN, where both are infinite, passes
    a = a if a > -700.0 else -700.0
    return exp_rough(a) * (1.0 + _ROUGH) - from_uint52(uint64(half)) * 2.0**-32


@jit
def replace_worst(heap: F64Array, value: float) -> None:
    """Replace the largest entry of a max-heap by a smaller one.

    Shapes    heap float64[k], read and written
    Cost      O(log k)
    Requires  value at most the largest entry, heap[0]
    Used by   selection
    Oracle    heapq
    """
    i = 0
    while True:
        child = 2 * i + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = value


@jit
def drop_late(indices: I64Array, logs: F64Array, arrivals: F64Array, found: int, cut: float, slack: float) -> int:
    """Keep, among the first `found`, those that may arrive by `cut`; returns how many those are.

    Shapes    indices int64[m], logs, arrivals float64[m], read and written
    Cost      a pass over the first `found`
    Used by   selection
    Oracle    numpy
    """
    kept = 0
    for c in range(found):
        if not arrivals[c] - error_of(arrivals[c], slack) > cut:  # NaN stays
            indices[kept], logs[kept], arrivals[kept] = indices[c], logs[c], arrivals[c]
            kept += 1
    return kept


@jit(inline=True)
def sort_blocks_into(tops: Any, order: I64Array) -> None:
    """Blocks by falling tops: few candidates of the later ones then pass for early."""
    for b in range(tops.size):
        j = b
        while j > 0 and tops[order[j - 1]] < tops[b]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = b


@jit
def race_into(
    scores: Any,
    first: int,
    key: U32Array,
    eta: float,
    tops: Any,
    top: Any,
    cut: float,
    slack: float,
    heap: F64Array,
    indices: I64Array,
    logs: F64Array,
    arrivals: F64Array,
) -> int:
    """The k earliest of these candidates, and every other that float64 cannot tell from them, or that is above `top`.

    L_i = ln E_i + eta (top - s_i),   E_i = -ln(1 - x_i),   x_i the 32 bits of word first + i of stream 0 and 64 of
    stream 1

    A candidate passes for early if x_i <= e^(cut - eta (top - s_i)), where `cut` bounds the k-th arrival so far: one
    exponential of 2^-31, no logarithm. The few that pass are looked at closely.

    Shapes    scores int64[n] or float64[n], tops of their blocks, heap float64[k] (scratch); indices int64[m], logs,
              arrivals float64[m] for what is found: first + i, ln E_i, L_i
    Cost      O(n): about 0.8 ns a candidate with AVX-512, 1.6 with AVX2; a closer look takes 0.05 to 0.2 us, at about
              k (1 + ln(n/k)) of them if their order is random
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, theorem 2
    Requires  n <= CHUNK; the k earliest of all candidates arrive by `cut`, counted from `top`, which is the largest
              score of all, or where that is too far above the k-th for float64, the k-th largest
    Returns   how many were found, in no order, or -1: m is too small
    Used by   fastdp/mechanisms/gumbel_max.py
    Oracle    tests/reference.py::race
    """
    halves, more = stack(np.uint32, _ROOM), stack(np.uint64, BLOCK)
    margins = stack(np.float64, BLOCK)
    order = stack(np.int64, CHUNK_BLOCKS)
    sort_blocks_into(tops, order)
    heap[:] = _INF
    found = 0
    for b in range(tops.size):
        at = order[b] * BLOCK
        block = scores[at : at + BLOCK]
        skip = (first + at) % GROUP_HALVES
        used = -(-(skip + block.size) // GROUP_HALVES) * GROUP_HALVES
        fill_groups_into(key, uint64(FIRST_STREAM), uint64(first + at) // uint64(GROUP_HALVES), halves[:used])
        x = halves[skip : skip + block.size]
        start = 0
        if b == 0 and heap.size == 1:  # whatever the order, few then arrive before all that came earlier
            while block[start] != tops[order[0]] and start < block.size - 1:
                start += 1
            log = log_exponential(x[start], word_one(key, uint64(MORE_STREAM), uint64(first + at + start)))
            arrival = log + eta * gap(top, block[start])
            if not np.isnan(log):
                cut = min(cut, arrival + error_of(arrival, slack))
        passed = 0
        for i in range(block.size):
            score = block[i]
            margin = margin_of(x[i], cut, eta * gap(top, min(score, top)), slack)
            margins[i] = 1.0 if score > top else margin
            passed += margins[i] >= 0.0
        if passed == 0:
            continue
        many = passed > _MANY
        if many:
            words_into(key, uint64(MORE_STREAM), uint64(first + at), more[: block.size])
        for run in range(0, block.size, 64):
            stop = min(run + 64, block.size)
            here = 0
            for i in range(run, stop):
                here += margins[i] >= 0.0
            if here == 0:
                continue
            for i in range(run, stop):
                above = block[i] > top
                lead = eta * gap(top, min(block[i], top))
                late = margin_of(x[i], cut, lead, slack) < 0.0
                if margins[i] < 0.0 or (late and not above) or is_forbidden(block[i]):
                    continue
                number = first + at + i
                word = more[i] if many else word_one(key, uint64(MORE_STREAM), uint64(number))
                log = log_exponential(x[i], word)
                arrival = log + lead
                error = error_of(arrival, slack)
                if arrival - error > cut and not above:
                    continue
                bound = arrival + error
                if above:
                    arrival = -_INF
                if found == indices.size:
                    found = drop_late(indices, logs, arrivals, found, cut, slack)
                    if found == indices.size:
                        return -1
                indices[found], logs[found], arrivals[found] = number, log, arrival
                found += 1
                if bound < heap[0]:
                    replace_worst(heap, bound)
                    cut = min(cut, heap[0])
    return drop_late(indices, logs, arrivals, found, cut, slack)


# --- permute-and-flip: every candidate flips a coin of probability e^(-eta (top - s))


@jit
def flip_block_into(
    block: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, halves: U32Array, flags: F64Array
) -> int:
    """The coins of one block: flags[i] = 1 if x_i < e^(-eta (top - s_i)), else 0, NaN where 96 bits do not tell.

    Returns how many are NaN.

    Shapes    block int64[n] or float64[n], n <= 2,048; key uint32[8]; halves uint32[2560], work space; flags
              float64[2048]
    Cost      about 0.8 ns a candidate with AVX-512
    Source    fastdp/mechanisms/selection.md, theorem 3
    Requires  top the largest score of all
    Returns   how many are NaN
    Used by   selection
    Oracle    tests/reference.py::flips
    """
    skip = first % GROUP_HALVES
    used = -(-(skip + block.size) // GROUP_HALVES) * GROUP_HALVES
    fill_groups_into(key, uint64(FIRST_STREAM), uint64(first) // uint64(GROUP_HALVES), halves[:used])
    x = halves[skip : skip + block.size]
    near = 0
    for i in range(block.size):
        a = -eta * gap(top, block[i])
        probability = exp_rough(a if a > -700.0 else -700.0)
        coin = from_uint52(uint64(x[i])) * 2.0**-32
        flag = 1.0 if coin + 2.0**-32 <= probability * (1.0 - (_ROUGH + slack)) else _NAN
        flags[i] = 0.0 if coin >= probability * (1.0 + (_ROUGH + slack)) else flag
        near += np.isnan(flags[i])
    undecided = 0
    if near:
        for i in range(block.size):
            if np.isnan(flags[i]):
                a = -eta * gap(top, block[i])
                probability = exp_one(a if a > -700.0 else -700.0)
                error = probability * (slack * (64.0 - a)) if a > -700.0 else probability
                word = word_one(key, uint64(MORE_STREAM), uint64(first + i))
                coin = from_uint52(uint64(x[i])) * 2.0**-32 + from_uint64(word) * 2.0**-96
                if is_forbidden(block[i]) or coin >= probability + error + 2.0**-80:
                    flags[i] = 0.0
                elif coin + 2.0**-80 <= probability - error:
                    flags[i] = 1.0
                else:
                    undecided += 1
    return undecided


@jit
def count_flips_into(
    scores: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, counts: I64Array, undecided: I64Array
) -> int:
    """How many candidates of each block have flipped heads.

    Shapes    scores int64[n] or float64[n], counts int64, one for each block, undecided int64[m]
    Cost      O(n): about 0.8 ns a candidate with AVX-512, 1.5 with AVX2
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, theorem 3
    Requires  top the largest score of all, not -inf
    Returns   number of undecided coins, the first m of them listed in `undecided`; they are not counted
    Used by   fastdp.permute_and_flip
    Oracle    tests/reference.py::flips
    """
    halves, flags = stack(np.uint32, _ROOM), stack(np.float64, BLOCK)
    found = 0
    for b in range(counts.size):
        block = scores[b * BLOCK : (b + 1) * BLOCK]
        if flip_block_into(block, first + b * BLOCK, key, eta, top, slack, halves, flags):
            for i in range(block.size):
                if np.isnan(flags[i]):
                    if found < undecided.size:
                        undecided[found] = first + b * BLOCK + i
                    found += 1
        count = 0
        for i in range(block.size):
            count += flags[i] == 1.0
        counts[b] = count
    return found


@jit
def list_flips_into(block: Any, first: int, key: U32Array, eta: float, top: Any, slack: float, flags: F64Array) -> None:
    """The coins of one block, as `flip_block_into` leaves them.

    Like      flip_block_into, which is given its work space
    Shapes    block int64[n] or float64[n], n <= 2,048; key uint32[8]; flags float64[n]
    Cost      as there
    Used by   fastdp/mechanisms/permute_and_flip.py
    Oracle    tests/reference.py::flips
    """
    flip_block_into(block, first, key, eta, top, slack, stack(np.uint32, _ROOM), flags)
