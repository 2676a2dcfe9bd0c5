"""Oracles of private selection: what the bits choose, and the laws of the choices.

docs/algorithms.md 7.4 to 7.6; which bits decide what: fastdp/mechanisms/selection.md, "Bits". Scores are ints, or
floats of which -inf forbids its candidate; both stand for exact numbers. `word(stream, index)` is where the random
words come from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key, lru_cache

from tests.oracles.numbers import Interval, Real, exp_interval, ln_interval, nearest_float
from tests.oracles.words import Prefixes, Words, candidate_prefixes, prefixes

Score = int | float
SELECTION_BLOCK = 2048  # candidates whose weights are summed before anything is rounded
LAST_LEVEL = 64  # of a block's weight


def _is_forbidden(score: Score) -> bool:
    return score == -math.inf


# buckets


def level_height(distance: Fraction, f: float, levels: int) -> int:
    """levels - l of fastdp/mechanisms/selection.md, lemma 1, rounding for rounding."""
    rounded = nearest_float(distance)
    if math.isinf(rounded):
        return 0
    z = nearest_float(levels + Fraction(1, 2) - Fraction(1, 2**44) - Fraction(rounded) * Fraction(f))
    return round(Fraction(max(z, 0.0)))


def block_weights(scores: Sequence[Score], f: float, levels: int) -> list[tuple[Score, list[int]]]:
    """Of every block of 2,048 candidates: the largest score, and everybody's weight, 2^(levels - l)."""
    blocks = []
    for start in range(0, len(scores), SELECTION_BLOCK):
        block = scores[start : start + SELECTION_BLOCK]
        top = max(block)
        weights = [0] * len(block)
        if not _is_forbidden(top):
            for i, score in enumerate(block):
                height = 0 if _is_forbidden(score) else level_height(Fraction(top) - Fraction(score), f, levels)
                weights[i] = 2**height
        blocks.append((top, weights))
    return blocks


def bucket_draws(word: Words, scores: Sequence[Score], eta: float, f: float, count: int) -> list[int]:
    """The candidates of the first `count` accepted proposals.

    Proposal t: 128 bits, the upper half cut to the length of the total's; void if not below the total. It falls in the
    weight of a candidate, and is accepted with probability 2^l e^(-eta gap).
    """
    levels = 62 - (len(scores) - 1).bit_length()
    blocks = block_weights(scores, f, levels)
    top = max(scores)
    shifts = [0 if _is_forbidden(t) else level_height(Fraction(top) - Fraction(t), f, LAST_LEVEL) for t, _ in blocks]
    sums = [sum(weights) << shift for (_, weights), shift in zip(blocks, shifts, strict=True)]
    total = sum(sums)
    cut = (1 << (total >> 64).bit_length()) - 1
    found: list[int] = []
    t = -1
    while len(found) < count:
        t += 1
        rest = (word(0, 2 * t) & cut) << 64 | word(0, 2 * t + 1)
        if rest >= total:
            continue
        b = 0
        while rest >= sums[b]:
            rest -= sums[b]
            b += 1
        rest >>= shifts[b]
        weights, i = blocks[b][1], 0
        while rest >= weights[i]:
            rest -= weights[i]
            i += 1
        score = scores[b * SELECTION_BLOCK + i]
        level = levels + 1 - weights[i].bit_length() + LAST_LEVEL - shifts[b]
        if not _is_forbidden(score):
            exponent = -Fraction(eta) * (Fraction(top) - Fraction(score))
            if is_below_exp(prefixes(word, 1, t), exponent, level):
                found.append(b * SELECTION_BLOCK + i)
    return found


def is_below_exp(prefixes: Prefixes, exponent: Fraction, doublings: int = 0) -> bool:
    """Whether U <= 2^doublings e^exponent, which is at most 1."""
    if exponent == doublings == 0:
        return True
    for N, b in prefixes:
        if exponent < -(2**20):  # below 2^-(10^6), which no prefix here comes close to, unless all its bits are 0
            if N:
                return False
            continue
        lo, hi = exp_interval(exponent, b + 40)
        if Fraction(N + 1, 2**b) <= lo * 2**doublings:
            return True
        if Fraction(N, 2**b) >= hi * 2**doublings:
            return False
    raise AssertionError("there is always another prefix")


# Gumbel-max: every candidate arrives at a time of its own, the first one wins


def log_exponential(N: int, b: int, bits: int) -> Interval | None:
    """ln E, E = -ln(1 - U); None where an end is infinite."""
    if N == 0 or 2**b == N + 1:
        return None
    least = -ln_interval(1 - Fraction(N, 2**b), bits)[1]
    most = -ln_interval(1 - Fraction(N + 1, 2**b), bits)[0]
    return ln_interval(least, bits)[0], ln_interval(most, bits)[1]


def _log_arrival(word: Words, i: int, lead: Fraction, bits: int) -> Interval:
    """ln E + lead, to about so many bits."""
    for N, b in candidate_prefixes(word, i):
        if b > bits and (found := log_exponential(N, b, bits)) is not None:
            return found[0] + lead, found[1] + lead
    raise AssertionError("there is always another prefix")


def gumbel_max(word: Words, scores: Sequence[Score], eta: float, k: int, first: int = 0) -> list[int]:
    """The k candidates that arrive first, at E e^(-eta score), in their order; the first of them is number `first`."""
    top, rate = Fraction(max(scores)), Fraction(eta)
    leads = {first + i: rate * (top - Fraction(s)) for i, s in enumerate(scores) if not _is_forbidden(s)}
    # Logarithms of libm are not off by 1/4: the k first are among those that are at most 1 behind the k-th by these.
    rough = {}
    for i, lead in leads.items():
        N, b = next(itertools.islice(candidate_prefixes(word, i), 1, None))
        rough[i] = lead + Fraction(math.log(-math.log1p(-min((N + 0.5) / 2**b, 1 - 2.0**-53))))
    last = sorted(rough.values())[min(k, len(rough)) - 1]

    @lru_cache(None)
    def arrival(i: int, bits: int) -> Interval:
        return _log_arrival(word, i, leads[i], bits)

    def compare(i: int, j: int) -> int:
        bits = 60
        while i != j:
            (i_lo, i_hi), (j_lo, j_hi) = arrival(i, bits), arrival(j, bits)
            if i_hi < j_lo or j_hi < i_lo:
                return -1 if i_hi < j_lo else 1
            bits += 64
        return 0

    return sorted((i for i in rough if rough[i] <= last + 1), key=cmp_to_key(compare))[:k]


# permute-and-flip


def permute_and_flip_heads(word: Words, scores: Sequence[Score], eta: float, first: int = 0) -> list[int]:
    """The candidates whose coins, of probability e^(-eta (top - score)), show heads."""
    top, rate = Fraction(max(scores)), Fraction(eta)
    return [
        first + i
        for i, s in enumerate(scores)
        if not _is_forbidden(s) and is_below_exp(candidate_prefixes(word, first + i), -rate * (top - Fraction(s)))
    ]


def chosen_head(word: Words, heads: Sequence[int]) -> int:
    """Head number floor(U len(heads)); U is word 0 of streams 2, 4, 6, ..."""
    for N, b in prefixes(word, 2, 0):
        if len(heads) * N // 2**b == (len(heads) * (N + 1) - 1) // 2**b:
            return heads[len(heads) * N // 2**b]
    raise AssertionError("there is always another prefix")


# the laws, exact where weights are: w = e^(eta (score - top)), 0 if forbidden


def choice_weights(scores: Sequence[Score], eta: Real, bits: int = 128) -> list[Fraction]:
    """The weights, within a relative 2^-bits."""
    top = Fraction(max(scores))
    return [
        Fraction(0) if _is_forbidden(s) else exp_interval(Fraction(eta) * (Fraction(s) - top), bits)[0] for s in scores
    ]


def exponential_law(weights: Sequence[Fraction]) -> list[Fraction]:
    """Of the exponential mechanism: a softmax."""
    total = sum(weights)
    return [w / total for w in weights]


def ordered_law(weights: Sequence[Fraction], k: int) -> dict[tuple[int, ...], Fraction]:
    """Of k draws one after the other, none of which comes back."""
    law = {(): Fraction(1)}
    for _ in range(k):
        longer = {}
        for drawn, probability in law.items():
            left = {i: w for i, w in enumerate(weights) if w and i not in drawn}
            for i, w in left.items():
                longer[(*drawn, i)] = probability * w / sum(left.values())
        law = longer
    return law


def permute_and_flip_law(weights: Sequence[Fraction]) -> list[Fraction]:
    """As it is defined: in every order, the first whose coin shows heads; the largest weight is 1."""
    law = [Fraction(0)] * len(weights)
    for order in itertools.permutations(range(len(weights))):
        left = Fraction(1, math.factorial(len(weights)))
        for i in order:
            law[i] += left * weights[i]
            left *= 1 - weights[i]
    return law
