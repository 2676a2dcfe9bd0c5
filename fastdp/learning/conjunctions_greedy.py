"""method="greedy" of `learn_conjunction`: a literal a round by the exponential mechanism, each round paid for.

conjunctions.md, theorem 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log
from typing import ClassVar

import numpy as np

from ..mechanisms.selection import draw_one
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..support.progress import Report
from .conjunction_parameters import ConjunctionProblem
from .examples import Examples


@dataclass(frozen=True)
class GreedyParameters:
    """So many draws of a literal or of none; eta is that of scores times k."""

    k: int
    rounds: int
    eta: float
    guarantee: Guarantee
    bound: float
    rereads: ClassVar[bool] = True

    @property
    def candidates(self) -> int:
        return self.rounds + 2  # "false", and from "true" on a prefix for each round

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        found: dict[int, None] = {}
        left = examples.falsified()
        nothing = 2 * examples.d  # a literal that no record falsifies: without it "true" could not be learned
        scores = np.empty(nothing + 1, np.int64)
        for done in range(self.rounds):
            report(done, self.rounds, f"literal {done + 1}")
            gains, losses = self.k * left.of_negatives - left.negatives, -self.k * left.of_positives
            np.minimum(gains, losses, out=scores[:nothing])
            scores[nothing] = -left.negatives
            literal = draw_one(scores, keys.take(), self.eta)
            if literal != nothing and literal not in found:  # deleting is done once
                found[literal] = None
                left = examples.falsified(list(found))
        report(self.rounds, self.rounds, "")
        return list(found)


@lru_cache(256)
def prepare_greedy(problem: ConjunctionProblem) -> GreedyParameters:
    """Theorem 5, with the number of rounds whose error bound is about the least.

    For that eta is taken as proportional to 1 / sqrt(rounds), or 1 / rounds without a delta: to account for each of
    these numbers of rounds takes 0.2 s.
    """
    privacy, k = problem.privacy, problem.k
    first, power = privacy.eta(1), 0.5 if privacy.delta else 1.0
    rounds = min(_round_numbers(problem), key=lambda rounds: _bound(problem, rounds, first / rounds**power))
    eta = privacy.eta(rounds)
    guarantee = privacy.guarantee_of(rounds, eta)
    return GreedyParameters(k, rounds, privacy.eta(rounds, unit=k), guarantee, _bound(problem, rounds, eta))


def _round_numbers(problem: ConjunctionProblem) -> list[int]:
    all_but_one = max(1.0, problem.k * log(max(problem.n, 2)))  # rounds that leave one negative
    return sorted({max(problem.k, ceil(share * all_but_one)) for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)})


def _bound(problem: ConjunctionProblem, rounds: int, eta: float) -> float:
    slack = log((2 * problem.d + 1) * rounds / problem.privacy.beta) / eta
    return (rounds + problem.k) * slack + problem.n * exp(-rounds / problem.k)
