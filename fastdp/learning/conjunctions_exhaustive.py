"""method="exhaustive" of `learn_conjunction`: the exponential mechanism over all conjunctions of at most k literals.

A conjunction with a 0 among its literals is a difference of two with fewer of them, so counting the errors of the sets
of columns, an eighth of all conjunctions for k = 3, is enough: conjunctions.md, lemma 2 and theorem 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import comb, log
from typing import ClassVar, NamedTuple

import numpy as np

from ..mechanisms.gumbel_max import GumbelState
from ..mechanisms.scores import tops_of
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Key
from ..records.bit_words import Words
from ..records.rows import Block
from ..support.progress import Report
from .conjunction_parameters import ConjunctionProblem
from .examples import Counts, Examples

MOST_WORK = 2**37  # sets of columns, times words of 64 records: some 20 s on one core
LENGTHY, MANY = 2**34, 2**24  # some 2 s
MOST_SETS, MOST_CONJUNCTIONS = 2**24, 2**31
_SECONDS = 1.4e-10  # a word of a set takes
_MOST_LITERALS = 1000  # up to here conjunctions are counted exactly
_BLOCK = 2**20  # conjunctions that are scored together


def lengthy(n: int, d: int, k: int) -> bool:
    """Whether it takes seconds."""
    many = conjunctions(d, min(k, _MOST_LITERALS))
    return set_work(n, d, k) > LENGTHY or many > MANY


def set_work(n: int, d: int, k: int) -> int:
    """Sets of at most k columns, times words of 64 records."""
    return sum(comb(d, s) for s in range(1, min(k, _MOST_LITERALS) + 1)) * -(-n // 64)


def conjunctions(d: int, k: int) -> int:
    """How many conjunctions of at most k literals there are: with no column twice, and "false", for k >= 2."""
    return sum(comb(d, s) << s for s in range(k + 1)) + (k >= 2)


def log_conjunctions(d: int, k: int) -> float:
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
    bound = (log_conjunctions(problem.d, problem.k) - log(problem.privacy.beta)) / eta
    return ExhaustiveParameters(problem.k, eta, problem.privacy.guarantee_of(1, eta), bound)


def choose_conjunction(
    examples: Examples, k: int, eta: float, take_key: Callable[[], Key], report: Report
) -> list[int]:  # fmt: skip
    """The literals of one conjunction, with probability proportional to exp(-eta errors).

    The key is taken when all records have been read, which may be here for the first time.
    """
    report(0, 2, "sets of columns")
    counts = _set_errors(examples, k)
    report(1, 2, "conjunctions")
    labels = Labels(examples.n - examples.positives, examples.positives)
    constants: list[list[int]] = [[], [0, 1]][:k]  # "true" and, from two literals on, "false"
    chosen = draw_conjunction(counts, Sets.of(examples.d, k), labels, constants, eta, take_key())
    report(2, 2, "")
    return chosen


class Sets(NamedTuple):
    """The sets of at most k columns: how many of each size from 1 on, and where those of each size start."""

    sizes: list[int]
    starts: Counts

    @classmethod
    def of(cls, d: int, k: int) -> Sets:
        sizes = [comb(d, s) for s in range(1, k + 1)]
        return cls(sizes, np.array([0, *accumulate(sizes, initial=0)][: k + 1], np.int64))

    @property
    def total(self) -> int:
        return sum(self.sizes)


class Labels(NamedTuple):
    """How many records are negative, how many positive; or what being wrong about all of them costs."""

    negatives: int
    positives: int


def draw_conjunction(
    counts: Counts, sets: Sets, labels: Labels, constants: list[list[int]], eta: float, key: Key, penalty: int = 0
) -> list[int]:  # fmt: skip
    """One of all conjunctions, with probability proportional to exp(-eta errors), from the errors of those of ones.

    Errors may have costs, as lemma 2 is linear. `constants` are "true" and perhaps "false"; of the others each literal
    costs `penalty` more.
    """
    from ..kernels.literals import unrank_into

    state, first = GumbelState(key, eta, 1), 0
    state.admit(np.dtype(np.int64))
    for errors in all_errors(counts, sets, labels, constants, penalty):
        scores = -errors
        state.add(scores, first, *tops_of(scores))
        first += errors.size
    sizes, chosen = sets.sizes, np.empty(len(sets.sizes), np.int64)
    place = int(state.ranking()[0])
    if place < len(constants):
        return constants[place]
    place -= len(constants)
    for s, size in enumerate(sizes, 1):
        if place < size << s:
            break
        place -= size << s
    unrank_into(place >> s, chosen, s)
    return [2 * int(chosen[i]) + 1 - (place >> i & 1) for i in range(s)]


def all_errors(
    counts: Counts, sets: Sets, labels: Labels, constants: list[list[int]], penalty: int = 0
) -> Iterator[Counts]:
    """The errors of all conjunctions, block by block: of the constants, then of sets of one column, of two, ..."""
    from ..kernels.literals import sign_counts_into

    sizes, starts = sets
    chosen = np.empty(len(sizes), np.int64)
    yield np.array(labels[: len(constants)], np.int64)
    for s, size in enumerate(sizes, 1):
        step = max(_BLOCK >> s, 1)
        for begin in range(0, size, step):
            errors = np.empty(min(step, size - begin) << s, np.int64)
            sign_counts_into(counts, starts, chosen, s, *labels, begin, errors)
            yield errors + penalty * s if penalty else errors


def _set_errors(examples: Examples, k: int) -> Counts:
    """The errors of every conjunction of ones."""
    labels, outside = examples.labels, examples.outside
    sets = Sets.of(examples.d, k)

    def statistic(block: Block) -> Counts:
        return count_sets(block.bits(outside), labels(block), sets)

    return examples.rows.total(statistic)


def count_sets(columns: Words, labels: Words, sets: Sets) -> Counts:
    """For every set of columns, how many records are 1 in all of them and not in `labels`, or the reverse."""
    from ..kernels.literals import WIDE, count_subsets_into

    out = np.zeros(sets.total, np.int64)
    k = len(sets.sizes)
    count_subsets_into(columns, labels, k, sets.starts, np.empty((k, WIDE), np.uint64), out)
    return out
