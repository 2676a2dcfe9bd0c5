"""method="peel" of `learn_conjunction`: draw a literal, delete the records that falsify it, go on with the rest.

A record pays until it is deleted, whatever the number of rounds: the removal lemma. conjunctions.md, theorems 6 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import ClassVar

import numpy as np

from ..mechanisms.selection import draw_one
from ..privacy.guarantees import Guarantee
from ..privacy.removal_lemma import lemma_eta
from ..randomness.charged_keys import ChargedKeys
from ..support.progress import Report
from ..support.search import least_integer
from .conjunction_parameters import ConjunctionProblem
from .examples import Examples

Phases = tuple[tuple[int, int], ...]  # (threshold, at most so many rounds)


@dataclass(frozen=True)
class PeelParameters:
    """Phases of (threshold, at most so many rounds), the score of stopping a phase, and eta."""

    phases: Phases
    dummy: int
    eta: float
    account: str
    guarantee: Guarantee
    bound: float
    rereads: ClassVar[bool] = True

    @property
    def rounds(self) -> int:
        return sum(rounds for _, rounds in self.phases)

    @property
    def candidates(self) -> int:
        return self.rounds + 2  # "false", and from "true" on a prefix for each round

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        found: dict[int, None] = {}
        left = examples.falsified()
        dummy = 2 * examples.d
        scores = np.empty(dummy + 1, np.int64)
        scores[dummy] = -self.dummy
        for phase, (threshold, rounds) in enumerate(self.phases):
            report(phase, len(self.phases), f"literals of {threshold:,} negatives")
            for _ in range(rounds):
                np.minimum(left.of_negatives - threshold, -left.of_positives, out=scores[:dummy])
                literal = draw_one(scores, keys.take(), self.eta)
                if literal == dummy:
                    break
                if literal not in found:
                    found[literal] = None
                    left = examples.falsified(list(found))
        report(len(self.phases), len(self.phases), "")
        return list(found)


@lru_cache(256)
def prepare_peel(problem: ConjunctionProblem) -> PeelParameters:
    """Theorems 6 and 7. The account that allows the largest eta depends on the rounds, and they on eta: upwards."""
    privacy = problem.privacy
    by_lemma = lemma_eta(privacy.epsilon, privacy.delta, one_signed=True, neighbors=privacy.neighbors)
    most = 1
    while True:
        eta, account = max((by_lemma, "removal lemma"), (privacy.eta(most), "composition"))
        dummy, phases = _schedule(problem, eta)
        if phases[0][0] > 2**62:
            raise ValueError(
                f"epsilon={privacy.asked!r}, n={problem.n:.3g}: the scores of method='peel' would be "
                f"{phases[0][0]:.3g}: must be at most 2^62"
            )
        rounds = sum(of_phase for _, of_phase in phases)
        if rounds <= most:
            bound = float(2 * dummy * (problem.k + rounds))
            return PeelParameters(phases, dummy, eta, account, privacy.guarantee_of(rounds, eta), bound)
        most = rounds


def _schedule(problem: ConjunctionProblem, eta: float) -> tuple[int, Phases]:
    """The least Gamma that is large enough for the rounds that it asks for, and the phases."""

    def enough(dummy: int) -> bool:
        rounds = sum(of_phase for _, of_phase in _phases(problem, dummy))
        return eta * dummy >= log((2 * problem.d + 1) * rounds / problem.privacy.beta)

    dummy = least_integer(enough, low=1, largest=2**2000)
    return dummy, _phases(problem, dummy)


def _phases(problem: ConjunctionProblem, dummy: int) -> Phases:
    """(threshold, at most so many rounds), from the first threshold that is at least n / 2k down to 2 Gamma."""
    count = 1
    while (dummy << count) * 2 * problem.k < problem.n:
        count += 1
    return tuple((dummy << j + 1, -(-problem.k * 2 ** (j + 1) // (2 ** (j + 1) - 1))) for j in range(count - 1, -1, -1))
