"""MWEM with answers from the average of all iterates, which has an error bound: mwem.md, theorem 2."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import Any, ClassVar

import numpy as np

from ..mechanisms.selection import draw_one
from ..privacy.conversions import range_of_rho
from ..privacy.guarantees import BoundedRange, Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.progress import Report
from ..support.rounding import down, lower
from .dense_weights import DenseWeights
from .factored_weights import FactoredWeights
from .memory import DENSE_CELLS, check_memory
from .mwem_plan import MwemPlan, Variant
from .privacy_shares import share_of_each
from .queries.bound_query import UNIT


@dataclass(frozen=True)
class AverageRounds:
    """The numbers of one run."""

    alpha: float  # all answers are within alpha, with probability 1 - beta; inf where nothing is guaranteed
    count: int
    range: float  # the bounded range of one choice
    rate: float

    @classmethod
    def of(
        cls, count: int, *, n: int, log_cells: float, queries: int, epsilon: float, delta: float, beta: float
    ) -> AverageRounds:
        """So many rounds."""
        each = range_of_round(count, epsilon, delta)
        slack = 2 / each * log(2 * queries * count / beta) if each else inf
        alpha = sqrt(log_cells / (2 * count)) + slack / max(n, 1) + 1 / UNIT
        return cls(alpha, count, each, sqrt(8 * log_cells / count))

    @classmethod
    def best(cls, most: int, **numbers: Any) -> AverageRounds:
        """The number of rounds, up to `most`, with the least error bound."""
        counts = {min(most, ceil(1.05**i)) for i in range(200)}
        return min((cls.of(count, **numbers) for count in sorted(counts)), key=lambda rounds: rounds.alpha)


def range_of_round(count: int, epsilon: float, delta: float) -> float:
    """The largest bounded range of so many choices that keep within the total: by sums, or as zCDP."""
    return share_of_each(count, epsilon, delta, range_of_rho)


class AveragePlan(MwemPlan):
    """Every round chooses a signed query and updates by it; the distributions of all rounds are averaged."""

    variant: ClassVar[Variant] = "average"

    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        if rounds is None:
            self.schedule = AverageRounds.best(self.most_rounds, **self.numbers)
        else:
            self.schedule = AverageRounds.of(rounds, **self.numbers)
        self.alpha = self.schedule.alpha
        if not self.is_dense:
            self.check_blocks(self.schedule.count)
        choice = BoundedRange(self.schedule.range, neighbors=self.neighbors)
        return self.schedule.count, self.guarantee_of((choice, self.schedule.count))

    @property
    def is_dense(self) -> bool:
        """Whether weights are held one by one, and averaged as they come."""
        return self.domain.size <= DENSE_CELLS

    @property
    def weight_bytes(self) -> int:
        """Of dense weights those at hand and the average; of factored ones what they take at first, for every round."""
        return 16 * self.domain.size if self.is_dense else 8 * self.schedule.count * sum(self.domain.sizes)

    def warn_if_plain_noise_is_better(self) -> None:
        error = self.plain_error
        if error < self.alpha * self.n:
            name = "Gaussian" if self.delta else "Laplace"
            enough = f"{ceil(error / self.alpha):,} records are enough"
            few = f" ({enough} for plain answers to reach {self.alpha:.3g})" if self.alpha < 1 else ""
            warnings.warn(
                f"mwem guarantees an error of at most {self.alpha:.3g}, plain {name} answers to these "
                f"{len(self.workload):,} queries {error / self.n:.3g}{few}: see release_marginals, or "
                f"fastdp.{name.lower()}",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )

    def check_blocks(self, rounds: int) -> None:
        """ValueError if the blocks that updates may merge, once for every round, do not fit into the memory."""
        block_of = {p: {p} for p in range(len(self.domain))}
        for i in range(len(self.workload)):
            merged = set().union(*(block_of[p] for p in self.workload.bound(i).attributes))
            block_of.update(dict.fromkeys(merged, merged))
        largest = max(block_of.values(), key=lambda block: sum(log(self.domain.sizes[p]) for p in block))
        check_memory(self.domain, sorted(largest), "float64", f"{rounds} rounds with these queries may merge", rounds)

    def run(self, keys: ChargedKeys, report: Report) -> tuple[Any, list[Any]]:
        weights = DenseWeights(self.domain) if self.is_dense else FactoredWeights(self.domain)
        eta = down(lower(self.schedule.range) / (2 * UNIT))
        average, iterates, chosen = None, [], []
        for t in range(self.rounds):
            report(t, self.rounds, "choosing and updating")
            if isinstance(weights, DenseWeights):
                average = np.zeros(self.domain.size) if average is None else average
                weights.add_into(average, 1.0 / self.rounds)
            else:
                iterates.append(weights.copy())
            gaps = self.gaps(self.counts, self.workload.evaluate(weights))
            which = draw_one(np.concatenate((gaps, -gaps)), keys.take(), eta)
            sign, i = (1, which) if which < gaps.size else (-1, which - gaps.size)
            weights.scale(self.workload.bound(i), sign * self.schedule.rate)
            chosen.append(self.workload.queries[i])
        report(self.rounds, self.rounds, "")
        return iterates if average is None else average, chosen
