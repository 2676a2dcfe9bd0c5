"""The Gumbel-max trick as arrival times: candidate i arrives at E_i e^(eta (top - s_i)), E_i exponential.

The earliest are chosen, which is to add Gumbel noise to every score and take the largest. Candidate i draws its time
from its own words, so blocks may come in any order. Proof in fastdp/mechanisms/selection.md, theorem 2; scores.py says
what candidates are.
"""

from typing import Any, NamedTuple

import numpy as np

from .compile import jit
from .elementary import exp_rough, from_uint52, from_uint64, ln_one
from .int_or_float import gap
from .lanes import F64Array, I64Array, U32Array, fma, stack, uint64
from .layout import ARRIVAL, CANDIDATE_BLOCK, CANDIDATE_MORE_STREAM, CHUNK_BLOCKS, LOG, SCHEDULE, UNDECIDED
from .scores import ROUGH, WORDS_ROOM, find_tops_into, first_words, is_forbidden
from .words import expanded, word_one, words_into

_MANY = 16  # words by themselves take as long as those of a whole block
_ROOM = 64  # candidates that `choose_gumbel` may find
LEFT_OPEN = -1

F64Rows = np.ndarray[Any, np.dtype[np.float64]]


@jit
def log_exponential(half: int, word: int) -> float:
    """ln E, E = -ln(1 - x), x in [0, 1) of 32 and then 64 bits; within 50 U. NaN where the bits leave too much open.

    Shapes    half uint32, word uint64
    Cost      two logarithms
    Source    fastdp/mechanisms/selection.md, lemma 3
    Used by   gumbel_max
    Oracle    tests/oracles/selection.py::log_exponential
    """
    x = from_uint52(uint64(half)) * 2.0**-32 + from_uint64(word) * 2.0**-96
    if x < 0.25:
        if x < 2.0**-36:
            return UNDECIDED
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
            return UNDECIDED
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
    return exp_rough(a) * (1.0 + ROUGH) - from_uint52(uint64(half)) * 2.0**-32


@jit
def replace_worst(heap: F64Array, value: float) -> None:
    """Replace the largest entry of a max-heap by a smaller one.

    Shapes    heap float64[k], read and written
    Cost      O(log k)
    Requires  value at most the largest entry, heap[0]
    Used by   gumbel_max
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
def drop_late(indices: I64Array, times: F64Rows, found: int, cut: float, slack: float) -> int:
    """Keep, among the first `found`, those that may arrive by `cut`; returns how many those are.

    Shapes    indices int64[m], times float64[2, m], read and written
    Cost      a pass over the first `found`
    Used by   gumbel_max
    Oracle    numpy
    """
    kept = 0
    for c in range(found):
        arrival = times[ARRIVAL, c]
        if not arrival - error_of(arrival, slack) > cut:  # NaN stays
            indices[kept], times[LOG, kept], times[ARRIVAL, kept] = indices[c], times[LOG, c], arrival
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


class ArrivalLaw(NamedTuple):
    """How candidates arrive: from which words, by which factor of their scores, counted from which score; and the error
    of a logarithm."""

    key: U32Array
    eta: float
    top: Any
    slack: float


class Block(NamedTuple):
    """Candidates that share the buffers: their scores, the number of the first, their 32-bit words, and how early
    each may be, as `fill_margins` finds."""

    scores: Any
    first: int
    halves: U32Array
    margins: F64Array


class Found(NamedTuple):
    """The bounds of the k earliest arrivals, the largest first, and who may be among the k."""

    heap: F64Array
    indices: I64Array
    times: F64Rows


@jit(inline=True)
def bound_first(block: Block, block_top: Any, law: ArrivalLaw, heap: F64Array) -> None:
    """Bound the first arrival by that of the best candidate: whatever the order, few then arrive before."""
    start = 0
    while block.scores[start] != block_top and start < block.scores.size - 1:
        start += 1
    word = word_one(law.key, uint64(CANDIDATE_MORE_STREAM), uint64(block.first + start))
    log = log_exponential(block.halves[start], word)
    arrival = log + law.eta * gap(law.top, block.scores[start])
    if not np.isnan(log):
        heap[0] = min(heap[0], arrival + error_of(arrival, law.slack))


@jit(inline=True)
def fill_margins(block: Block, cut: float, law: ArrivalLaw) -> int:
    """How early each candidate of a block may be, by its first 32 bits; returns how many may arrive by `cut`."""
    passed = 0
    for i in range(block.scores.size):
        score = block.scores[i]
        margin = margin_of(block.halves[i], cut, law.eta * gap(law.top, min(score, law.top)), law.slack)
        block.margins[i] = 1.0 if score > law.top else margin
        passed += block.margins[i] >= 0.0
    return passed


@jit
def admit_early(block: Block, passed: int, law: ArrivalLaw, into: Found, found: int) -> int:
    """Resolve the candidates of a block that pass for early, by 64 bits more, and take in whoever still does.

    Shapes    block of at most 2,048 candidates; into: heap float64[k], indices int64[m], times float64[2, m]
    Cost      0.05 to 0.2 us for each that passes
    Source    fastdp/mechanisms/selection.md, lemma 3
    Requires  margins of fill_margins, `passed` of which are not negative
    Returns   how many are found now, or -1: m is too small
    Used by   select_gumbel_into
    Oracle    tests/oracles/selection.py::gumbel_max
    """
    size = block.scores.size
    more = stack(np.uint64, CANDIDATE_BLOCK)
    many = passed > _MANY
    if many:
        words_into(law.key, uint64(CANDIDATE_MORE_STREAM), uint64(block.first), more[:size])
    for run in range(0, size, 64):
        stop = min(run + 64, size)
        here = 0
        for i in range(run, stop):
            here += block.margins[i] >= 0.0
        if here == 0:
            continue
        for i in range(run, stop):
            score, cut = block.scores[i], into.heap[0]
            above = score > law.top
            lead = law.eta * gap(law.top, min(score, law.top))
            late = margin_of(block.halves[i], cut, lead, law.slack) < 0.0
            if block.margins[i] < 0.0 or (late and not above) or is_forbidden(score):
                continue
            number = block.first + i
            word = more[i] if many else word_one(law.key, uint64(CANDIDATE_MORE_STREAM), uint64(number))
            log = log_exponential(block.halves[i], word)
            arrival = log + lead
            error = error_of(arrival, law.slack)
            if arrival - error > cut and not above:
                continue
            if found == into.indices.size:
                found = drop_late(into.indices, into.times, found, cut, law.slack)
                if found == into.indices.size:
                    return -1
            into.indices[found], into.times[LOG, found] = number, log
            into.times[ARRIVAL, found] = -np.inf if above else arrival
            found += 1
            if arrival + error < cut:
                replace_worst(into.heap, arrival + error)
    return found


@jit(reads=("scores",))
def select_gumbel_into(
    scores: Any, first: int, key: U32Array, eta: float, tops: Any, top: Any, slack: float, heap: F64Array,
    indices: I64Array, times: F64Rows,
) -> int:  # fmt: skip
    """The k earliest of these candidates, and every other that float64 cannot tell from them, or that is above `top`.

    L_i = ln E_i + eta (top - s_i),   E_i = -ln(1 - x_i),   x_i the 32 bits of word first + i of stream 0 and 64 of
    stream 1

    A candidate passes for early if x_i <= e^(cut - eta (top - s_i)), where `cut` bounds the k-th arrival so far: one
    exponential of 2^-31, no logarithm. The few that pass are resolved closely.

    Shapes    scores int64[n] or float64[n], tops of their blocks; heap float64[k], read and written: k times the bound
              of the k-th arrival so far; indices int64[m], times float64[2, m] for what is found: first + i, and
              ln E_i, L_i
    Cost      O(n): about 0.8 ns a candidate with AVX-512, 1.6 with AVX2; to resolve one takes 0.05 to 0.2 us, and about
              k (1 + ln(n/k)) of them pass if their order is random
    Source    docs/algorithms.md, selection; proof in fastdp/mechanisms/selection.md, theorem 2
    Requires  n <= CANDIDATE_CHUNK; the k earliest of all candidates arrive by the bound in `heap`, counted from `top`,
              which is the largest score of all, or where that is too far above the k-th for float64, the k-th largest
    Returns   how many were found, in no order, or -1: m is too small
    Used by   fastdp/mechanisms/gumbel_max.py
    Oracle    tests/oracles/selection.py::gumbel_max
    """
    room, margins = stack(np.uint32, WORDS_ROOM), stack(np.float64, CANDIDATE_BLOCK)
    order = stack(np.int64, CHUNK_BLOCKS)
    sort_blocks_into(tops, order)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    law, into = ArrivalLaw(source, eta, top, slack), Found(heap, indices, times)
    found = 0
    for b in range(tops.size):
        at = order[b] * CANDIDATE_BLOCK
        part = scores[at : at + CANDIDATE_BLOCK]
        block = Block(part, first + at, first_words(source, first + at, part.size, room), margins)
        if b == 0 and heap.size == 1:
            bound_first(block, tops[order[0]], law, heap)
        passed = fill_margins(block, heap[0], law)
        if passed > 0:
            found = admit_early(block, passed, law, into, found)
            if found < 0:
                return -1
    return drop_late(indices, times, found, heap[0], slack)


@jit(reads=("scores",))
def choose_gumbel(scores: Any, key: U32Array, eta: float, slack: float) -> int:
    """The first of these candidates to arrive, where float64 tells it from all others: one call for a whole choice.

    Like      select_gumbel_into, with k = 1 and tops of its own
    Shapes    scores int64[n] or float64[n], key uint32[8]
    Cost      0.5 us, and what select_gumbel_into takes
    Requires  n <= CANDIDATE_CHUNK
    Returns   its number, or LEFT_OPEN: several may be first, a score is NaN or +inf, or all are -inf
    Used by   fastdp/mechanisms/selection.py
    Oracle    tests/oracles/selection.py::gumbel_max
    """
    tops = stack(scores.dtype, CHUNK_BLOCKS)[: -(-scores.size // CANDIDATE_BLOCK)]
    top = find_tops_into(scores, tops)
    if not top < np.inf:
        return LEFT_OPEN
    heap, indices, times = stack(np.float64, 1), stack(np.int64, _ROOM), np.empty((2, _ROOM))
    heap[0] = np.inf
    found = select_gumbel_into(scores, 0, key, eta, tops, top, slack, heap, indices, times)
    if found != 1:
        return LEFT_OPEN
    score = scores[indices[0]]
    return indices[0] if score <= top and not is_forbidden(score) else LEFT_OPEN
