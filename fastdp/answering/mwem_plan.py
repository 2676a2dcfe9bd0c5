"""What both variants of MWEM have in common: checked parameters, the workload, and what a choice is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, log, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import bounds
from ..privacy.calibration import MAX_EPSILON, SMALLEST
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..support.progress import Report
from .entropic_fit import bytes_of_fit
from .memory import DENSE_CELLS
from .privacy_shares import guarantee_of_all
from .queries.bound_query import UNIT
from .queries.marginals import Marginals
from .true_answers import TrueAnswers
from .workload import Workload

Variant = Literal["average", "measured"]
VARIANTS = ("average", "measured")
MOST_ROUNDS = 10_000  # of "average", by default
_FACTORED_ROUNDS = 300  # of "average" by default, where every round's blocks are kept


class MwemPlan(ABC):
    """A run of MWEM: its rounds and its guarantee, which are public, and then the run itself."""

    variant: ClassVar[Variant]
    alpha: float = inf  # all answers are within it, with probability 1 - beta; inf where nothing is guaranteed

    def __init__(
        self, workload: Workload, n: int, neighbors: Neighbors, epsilon: float, delta: float,
        beta: float, rounds: int | None, *, may_be_pure: bool = False,
    ) -> None:  # fmt: skip
        self.workload, self.domain, self.n, self.neighbors = workload, workload.domain, n, neighbors
        self.epsilon, self.delta, self.beta = epsilon, delta, beta
        self.may_be_pure = may_be_pure  # whether measurements may take Laplace noise where a delta is given
        self.numbers: dict[str, Any] = {
            "n": n, "log_cells": sum(map(log, self.domain.sizes)), "queries": len(workload), "epsilon": epsilon,
            "delta": delta, "beta": beta,
        }  # fmt: skip
        self.rounds, self.guarantee = self.prepare(rounds)

    @abstractmethod
    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        """How many rounds there will be, and what they guarantee together; `rounds` as asked for."""

    @abstractmethod
    def run(self, keys: ChargedKeys, report: Report) -> tuple[Any, list[Any]]:
        """The weights that are fitted, and what every round chose."""

    @property
    def most_rounds(self) -> int:
        """Of "average", by default."""
        return MOST_ROUNDS if self.domain.size <= DENSE_CELLS else _FACTORED_ROUNDS

    @property
    def weight_bytes(self) -> int:
        """What distributions take."""
        return bytes_of_fit(self.domain)

    @property
    def plain_error(self) -> float:
        """The error of plain noise on all answers, in records."""
        queries = self.workload.queries
        changed = len(queries)  # how many answers one record changes, each by one record at most
        if isinstance(queries, Marginals):
            changed = queries.tables * (2 if self.neighbors == "replace-one" else 1)
        return plain_noise_error(len(queries), changed, self.epsilon, self.delta, self.beta)

    @abstractmethod
    def warn_if_plain_noise_is_better(self) -> None:
        """An AccuracyWarning if plain noise on all answers guarantees less error than this does."""

    def read(self, true_answers: TrueAnswers) -> None:
        """Count the queries on the records: the last thing that may fail before a key is taken."""
        self.records, self.counts = true_answers.n, self.workload.counts(true_answers)

    def guarantee_of(self, *parts: tuple[Guarantee, int]) -> Guarantee:
        """Of all rounds together, from their parts."""
        return guarantee_of_all(self.epsilon, self.delta, *parts, neighbors=self.neighbors)

    def gaps(self, counts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
        """By how much each query has more in the records than in the distribution, in units of 2^-16 records.

        A sum over the records of f(x) - v, v the value f(Xh) rounded down to a multiple of 2^-16: its sensitivity is
        one record, and that of the cells of a table together, in L1, two.
        """
        gaps: NDArray[np.int64] = counts - self.records * np.floor(np.clip(values, 0.0, 1.0) * UNIT).astype(np.int64)
        return gaps


def plain_noise_error(queries: int, changed: int, epsilon: float, delta: float, beta: float) -> float:
    """The error of plain noise on all answers, in records, where a record changes so many of them by one."""
    if not delta:
        return bounds.laplace(sensitivity=changed, epsilon=epsilon, beta=beta, count=queries)
    if min(epsilon, delta) < SMALLEST:
        return inf
    sensitivity, epsilon = sqrt(changed), min(epsilon, MAX_EPSILON)
    return bounds.gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta, beta=beta, count=queries)
