"""method="search" of `learn_conjunction`: a few literals at a time, and at last a choice among the parts of them.

For labels that may be wrong, where all conjunctions are too many. A move is a choice among all conjunctions of up to
so many literals, on the records that satisfy those found before; the larger the moves, the fewer of them pay. A
positive that is lost is lost for good, while a negative that is left may be excluded by a later move: so a lost one
costs more at first. Where few records support no more literals than one move has, that move is the only choice. A
literal has to pay for itself. conjunctions.md, theorem 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import ceil, comb, exp, log, sqrt
from typing import ClassVar

import numpy as np

from ..mechanisms.selection import draw_one
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import LaplacePlan, laplace_plan, scale_in_range
from ..records.bit_words import all_bits
from ..records.rows import Block
from ..support.errors import warn_of_accuracy
from ..support.progress import Report
from ..support.rounding import down, lower, up
from .conjunction_parameters import ConjunctionProblem
from .conjunctions_exhaustive import (
    Labels,
    Sets,
    conjunctions,
    count_sets,
    draw_conjunction,
    log_conjunctions,
    set_work,
)
from .examples import Counts, Examples, columns_and_values
from .methods import NO_BOUND

MOST_SUBSETS = 12  # literals whose 4,096 sets the last choice is among; of more, it is among the prefixes
UNASKED = 12  # literals that it goes for where the caller names no number
MOST_SIZE = 6  # literals of a move
MOVE_WORK = 2**30  # sets of columns, times words of 64 records, of a move: 0.3 s
MOVE_CONJUNCTIONS = 2**22
LARGEST_SLACK = 0.1  # of the records: what all choices together may lose
LARGEST_EXCESS = 0.2  # of the records: the bound of a move that is the only choice
LOST = 64  # what a lost positive costs in a move; a negative that is left costs as much or less
COUNT_SHARE = 2.0**-5  # of epsilon, for the number of positives
LITERAL = log(16)  # a literal more has a 16th of the weight: those that change nothing are left out


@dataclass(frozen=True)
class SearchParameters:
    """The most literals of each move, and the weights of an error.

    count       noise on the number of positives, which decides about costs; None where one move is the only choice
    sizes       the most literals of each move
    eta         the weight of an error in the last choice
    move_eta    the weight of a unit of cost in a move
    penalty     what each literal costs in the last choice, in 64ths of an error
    """

    n: int
    count: LaplacePlan | None
    sizes: tuple[int, ...]
    eta: float
    move_eta: float
    guarantee: Guarantee
    excess: float
    bound: float = NO_BOUND
    penalty: int = 0
    rereads: ClassVar[bool] = True

    @property
    def literals(self) -> int:
        return sum(self.sizes)

    def warn_if_fewer(self, k: int, n: int) -> None:
        """Where the caller has asked for more literals than it goes for."""
        if self.literals < k:
            warn_of_accuracy(
                f"learn_conjunction: k={k}: method='search' goes for {self.literals} literals at most: {n:,} records "
                "support no more at this epsilon"
            )

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        if self.count is None:
            report(0, 1, f"up to {self.literals} literals")
            only = Move([], self.literals, LOST, self.penalty).draw(examples, keys, self.move_eta)
            report(1, 1, "")
            return only
        positives = examples.positives + int(integer_noise(self.count, keys.take(), 1)[0])
        found: list[int] = []
        for done, size in enumerate(self.sizes):
            report(done, len(self.sizes), f"up to {size} literals after {len(found)}")
            move = Move(found, size, self.cost_of_negative(positives, done))
            found += move.draw(examples, keys, self.move_eta)
        parts, errors = _parts(examples, found)
        parts, errors = [*parts, [0, 1]], [*errors, examples.positives]
        costs = [LOST * wrong + self.penalty * len(part) for part, wrong in zip(parts, errors, strict=True)]
        costs[-1] -= 2 * self.penalty  # "false" is no longer than "true"
        chosen = draw_one(np.negative(costs), keys.take(), self.eta / LOST)
        report(len(self.sizes), len(self.sizes), "")
        return parts[chosen]

    def cost_of_negative(self, positives: int, done: int) -> int:
        """Of one that is left after a move: in the first all of them cost what all positives do, in the last one error
        costs what another does, in between geometrically."""
        share = min(max(positives, 1) / self.n, 0.5)
        moves = len(self.sizes)
        left = 1 - done / (moves - 1) if moves > 1 else 0.0
        return max(1, round(LOST * exp(left * log(share / (1 - share)))))


@lru_cache(256)
def prepare_search(problem: ConjunctionProblem) -> SearchParameters:
    """Theorem 8, for as many literals as the number of records supports."""
    privacy = problem.privacy
    part = privacy.epsilon * COUNT_SHARE
    rest = privacy.part(down(lower(privacy.epsilon) - Fraction(part)))
    largest = _largest_move(problem)
    first = rest.eta(1)

    def lost(literals: int) -> float:
        """About what all choices lose; to account for each number takes 0.2 s."""
        sizes = _sizes(literals, largest)
        logarithms = sum(log_conjunctions(problem.d, size) for size in sizes) + log(2) * literals
        rounds = len(sizes) + 1
        return logarithms * (sqrt(rounds) if privacy.delta else rounds) / first

    literals = 1
    most = problem.k if problem.k < problem.d else min(problem.d, UNASKED)
    while literals < most and lost(literals + 1) <= LARGEST_SLACK * problem.n:
        literals += 1
    only = _only_choice(problem, min(most, largest))
    if only.literals >= literals:
        return only
    sizes = _sizes(literals, largest)
    rounds = len(sizes) + 1
    eta = rest.eta(rounds)
    penalty = _penalty(eta, problem.n)
    counts = [comb(literals, s) for s in range(literals + 1)] if literals <= MOST_SUBSETS else [1] * (literals + 1)
    return SearchParameters(
        n=problem.n,
        count=laplace_plan(scale_in_range(up(1 / Fraction(part)), "1 / epsilon")),
        sizes=sizes,
        eta=eta,
        move_eta=rest.eta(rounds, unit=LOST),
        guarantee=privacy.guarantee_of(rounds, eta, test=part),
        excess=_excess(eta, penalty, counts, privacy.beta),
        penalty=penalty,
    )


def _only_choice(problem: ConjunctionProblem, most: int) -> SearchParameters:
    """One move by errors with all of epsilon, "false" among its candidates; of as many literals as records support."""
    privacy, d = problem.privacy, problem.d
    eta, literals = privacy.eta(1), 1
    penalty = _penalty(eta, problem.n)

    def excess(literals: int) -> float:
        return _excess(eta, penalty, [comb(d, s) << s for s in range(literals + 1)], privacy.beta)

    while literals < most and excess(literals + 1) <= LARGEST_EXCESS * problem.n:
        literals += 1
    return SearchParameters(
        n=problem.n,
        count=None,
        sizes=(literals,),
        eta=eta,
        move_eta=privacy.eta(1, unit=LOST),
        guarantee=privacy.guarantee_of(1, eta),
        excess=excess(literals),
        penalty=penalty,
    )


def _penalty(eta: float, n: int) -> int:
    """Of a literal, in 64ths of an error; more than all records are worth is of no use."""
    return ceil(min(LOST * LITERAL / eta, float(LOST * n)))


def _excess(eta: float, penalty: int, counts: Sequence[int], beta: float) -> float:
    """Over the longest candidates, of which there are `counts` of each size, and "false"."""
    each = eta * penalty / LOST
    weight = 1 + sum(count * exp(-each * size) for size, count in enumerate(counts))
    return (log(weight) - log(beta)) / eta + (len(counts) - 1) * penalty / LOST


def _largest_move(problem: ConjunctionProblem) -> int:
    """The most literals whose conjunctions are counted in a moment."""

    def in_a_moment(size: int) -> bool:
        few = conjunctions(problem.d, size) <= MOVE_CONJUNCTIONS
        return few and set_work(problem.n, problem.d, size) <= MOVE_WORK

    return next((size for size in range(min(problem.k, MOST_SIZE), 1, -1) if in_a_moment(size)), 1)


def _sizes(literals: int, largest: int) -> tuple[int, ...]:
    """As few moves as there can be, of sizes that differ by one at most, the larger first."""
    moves = -(-literals // largest)
    return tuple(literals // moves + (i < literals % moves) for i in range(moves))


class Move:
    """Up to `size` literals of other columns than those of `found`, by their cost on the records that satisfy these.

    With a penalty for each literal it is the only move: "false" is a candidate, too.
    """

    def __init__(self, found: Sequence[int], size: int, of_negative: int, penalty: int = 0) -> None:
        self.found, self.size, self.of_negative, self.penalty = found, size, of_negative, penalty

    def draw(self, examples: Examples, keys: ChargedKeys, eta: float) -> list[int]:
        taken = {literal // 2 for literal in self.found}
        others = np.array([j for j in range(examples.d) if j not in taken], np.int64)
        sets = Sets.of(others.size, self.size)
        wrong, holds, labels = self._count(examples, others, sets)
        rightly = (labels.positives - wrong + holds) // 2
        costs = LOST * (labels.positives - rightly) + self.of_negative * (holds - rightly)
        priced = Labels(self.of_negative * labels.negatives, LOST * labels.positives)
        constants: list[list[int]] = [[], [0, 1]] if self.penalty else [[]]
        chosen = draw_conjunction(costs, sets, priced, constants, eta, keys.take(), self.penalty)
        return [2 * int(others[literal // 2]) + literal % 2 for literal in chosen]

    def _count(self, examples: Examples, others: Counts, sets: Sets) -> tuple[Counts, Counts, Labels]:
        """For every set of other columns how many records it is wrong about, and for how many it holds; and the labels
        of those that satisfy what was found."""
        read, outside = examples.labels, examples.outside
        columns, values = columns_and_values(self.found)
        total = sets.total

        def statistic(block: Block) -> Counts:
            from ..kernels.literals import satisfying_into

            bits, left = block.bits(outside), all_bits(block.n)
            out = np.empty(2 * total + 2, np.int64)
            out[-2] = satisfying_into(bits, columns, values, left)
            positive = read(block) & left
            out[-1] = satisfying_into(bits, columns[:0], values[:0], positive)  # counts them
            bits = bits[others] & left
            out[:total] = count_sets(bits, positive, sets)
            out[total : 2 * total] = count_sets(bits, np.zeros_like(left), sets)
            return out

        found = examples.rows.total(statistic)
        everyone, positives = int(found[-2]), int(found[-1])
        return found[:total], found[total : 2 * total], Labels(everyone - positives, positives)


def _parts(examples: Examples, found: list[int]) -> tuple[list[list[int]], list[int]]:
    """The conjunctions of what was found, and how many records each is wrong about; "true" first."""
    if len(found) <= MOST_SUBSETS:
        return subset_errors(examples, found)
    return [found[:s] for s in range(len(found) + 1)], examples.prefix_errors(found).tolist()


def subset_errors(examples: Examples, literals: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """All sets of these literals, no two of one column, and how many records each is wrong about; "true" first."""
    k = len(literals)
    columns, values = columns_and_values(literals)
    sets = Sets.of(k, k)
    labels, outside = examples.labels, examples.outside

    def statistic(block: Block) -> Counts:
        holds = block.bits(outside)[columns]
        holds[values == 0] ^= all_bits(block.n)
        return count_sets(holds, labels(block), sets)

    counted = examples.rows.total(statistic).tolist() if k else []
    of_columns: list[tuple[int, ...]] = [()]
    for s in range(1, k + 1):  # in colexicographic order
        of_columns += sorted(combinations(range(k), s), key=lambda at: at[::-1])
    return [[literals[i] for i in at] for at in of_columns], [examples.n - examples.positives, *counted]
