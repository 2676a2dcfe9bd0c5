"""method="exhaustive" of `learn_conjunction`: the exponential mechanism over all conjunctions of at most k literals.

A conjunction with a 0 among its literals is a difference of two with fewer of them, so counting the errors of the sets
of columns, an eighth of all conjunctions for k = 3, is enough: conjunctions.md, lemma 2 and theorem 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import comb, log
from typing import ClassVar

import numpy as np

from ..mechanisms.gumbel_max import GumbelState
from ..mechanisms.scores import tops_of
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Key
from ..records.rows import Block
from ..support.progress import Report
from .conjunction_parameters import ConjunctionProblem
from .examples import Counts, Examples

MOST_WORK = 2**37  # sets of columns, times words of 64 records: some 20 s on one core
MOST_SETS, MOST_CONJUNCTIONS = 2**24, 2**31
_SECONDS = 1.4e-10  # a word of a set takes
_MOST_LITERALS = 1000  # up to here conjunctions are counted exactly
_BLOCK = 2**20  # conjunctions that are scored together


def conjunctions(d: int, k: int) -> int:
    """How many conjunctions of at most k literals there are: with no column twice, and "false", for k >= 2."""
    return sum(comb(d, s) << s for s in range(k + 1)) + (k >= 2)


def _log_conjunctions(d: int, k: int) -> float:
    """The logarithm of that number; for many literals a bound of it, as sets of at most k are at most (e d / k)^k."""
    return log(conjunctions(d, k)) if k <= _MOST_LITERALS else k * (1 + log(2 * d / k))


def refusal(n: int, d: int, k: int) -> str:
    """Why scoring all conjunctions is too much work; empty if it is not."""
    counted = min(k, _MOST_LITERALS)  # more are refused as well, and need not be counted
    sets, many = sum(comb(d, s) for s in range(1, counted + 1)), conjunctions(d, counted)
    work = sets * -(-n // 64)
    if work <= MOST_WORK and sets <= MOST_SETS and many <= MOST_CONJUNCTIONS:
        return ""
    work, many = min(work, 2**900), min(many, 2**900)  # floats hold these
    seconds = work * _SECONDS + many * 4e-9
    count = f"{many:,}" if many < 10**15 else f"{many:.2g}"
    return (
        f"k={k}, d={d}, n={n:,}: {count} conjunctions would take about {_duration(seconds)}: must be at most "
        f"{MOST_WORK * _SECONDS:.0f} s, 2^24 sets of columns and 2^31 conjunctions; method='peel' takes milliseconds"
    )


def _duration(seconds: float) -> str:
    for unit, size in (("years", 3.2e7), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}" if seconds < 1e15 else f"{seconds / size:.1g} {unit}"
    return f"{max(seconds, 1):.0f} s"


@dataclass(frozen=True)
class ExhaustiveParameters:
    """One draw among all conjunctions of at most k literals."""

    k: int
    eta: float
    guarantee: Guarantee
    bound: float
    rereads: ClassVar[bool] = True

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        return choose_conjunction(examples, self.k, self.eta, keys.take, report)


def prepare_exhaustive(problem: ConjunctionProblem) -> ExhaustiveParameters:
    """Theorem 4."""
    eta = problem.privacy.eta(1)
    bound = (_log_conjunctions(problem.d, problem.k) - log(problem.privacy.beta)) / eta
    return ExhaustiveParameters(problem.k, eta, problem.privacy.guarantee_of(1, eta), bound)


def choose_conjunction(
    examples: Examples, k: int, eta: float, take_key: Callable[[], Key], report: Report
) -> list[int]:  # fmt: skip
    """The literals of one conjunction, with probability proportional to exp(-eta errors).

    The key is taken when all records have been read, which may be here for the first time.
    """
    from ..kernels.literals import sign_counts_into, unrank_into

    d = examples.d
    sizes = [comb(d, s) for s in range(1, k + 1)]
    starts = np.array([0, *accumulate(sizes, initial=0)][: k + 1], np.int64)
    report(0, 2, "sets of columns")
    counts = _set_errors(examples, k, starts, sum(sizes))
    positives, negatives = examples.positives, examples.n - examples.positives
    state, first = GumbelState(take_key(), eta, 1), 0
    state.admit(np.dtype(np.int64))

    def offer(errors: Counts) -> None:
        scores = -errors
        state.add(scores, first, *tops_of(scores))

    constants: list[list[int]] = [[], [0, 1]][:k]  # "true" and, from two literals on, "false"
    offer(np.array([negatives, positives][:k]))
    first += len(constants)
    report(1, 2, "conjunctions")
    chosen = np.empty(k, np.int64)
    for s in range(1, k + 1):
        step = max(_BLOCK >> s, 1)
        for begin in range(0, sizes[s - 1], step):
            errors = np.empty(min(step, sizes[s - 1] - begin) << s, np.int64)
            sign_counts_into(counts, starts, chosen, s, negatives, positives, begin, errors)
            offer(errors)
            first += errors.size
    report(2, 2, "")
    place = int(state.ranking()[0])
    if place < len(constants):
        return constants[place]
    place -= len(constants)
    for s in range(1, k + 1):
        if place < sizes[s - 1] << s:
            break
        place -= sizes[s - 1] << s
    unrank_into(place >> s, chosen, s)
    return [2 * int(chosen[i]) + 1 - (place >> i & 1) for i in range(s)]


def _set_errors(examples: Examples, k: int, starts: Counts, total: int) -> Counts:
    """The errors of every conjunction of ones."""
    labels, outside = examples.labels, examples.outside

    def statistic(block: Block) -> Counts:
        from ..kernels.literals import WIDE, count_subsets_into

        out = np.zeros(total, np.int64)
        prefixes = np.empty((k, WIDE), np.uint64)
        count_subsets_into(block.bits(outside), labels(block), k, starts, prefixes, out)
        return out

    return examples.rows.total(statistic)
