"""What the variants of private multiplicative weights share: the state of a run, and tests of one query after another.

A variant is one file with a run of its own: how a query is tested, and what happens when a test fires.
multiplicative_weights.md, "What is run", has them side by side.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee
from ..randomness.keys import Randomness
from ..randomness.noise_plans import NoisePlan
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.progress import Report
from ..support.public_paths import public_as
from ..support.turns import new_turn, refuse_again
from .dense_weights import DenseWeights
from .measurements import Measurement, Weights
from .multiplicative_weights_noise import DRAWS, NoiseAhead
from .queries.bound_query import UNIT, BoundQuery
from .synthetic_distribution import SyntheticDistribution
from .true_answers import TrueAnswers
from .workload import FEW, Workload

_FIRST_WINDOW = 4  # queries that are evaluated ahead after an update; 8 times as many each time that none fires


@public_as("fastdp.answering")
class Answer(NamedTuple):
    """One line of the transcript."""

    query: Any
    value: float
    updated: bool  # whether a test fired for it
    bound: float | None = None  # within which it is, if the accuracy does not fail; None where nothing is guaranteed


@dataclass(frozen=True)
class RunSource:
    """What a run answers from."""

    weights: Weights
    true_answers: TrueAnswers
    n: int  # public: what counts are divided by
    rng: Randomness | None
    known: Sequence[Sequence[Measurement]] = ()  # of each attribute, what tables say of its values


def _silent(done: int, total: int, what: str) -> None:
    """Nobody is told."""


class OnlineRun(ABC):
    """Answers to queries as they come, and what was answered."""

    def __init__(self, source: RunSource) -> None:
        self.weights, self.true_answers, self.n = source.weights, source.true_answers, source.n
        self.transcript: list[Answer] = []
        self.updates = 0
        self.changing = new_turn()  # while the weights are between two states

    @property
    def asked(self) -> int:
        """How many queries have been answered."""
        return len(self.transcript)

    @property
    @abstractmethod
    def updates_left(self) -> int:
        """How many more times a test may fire."""

    @property
    def exhausted(self) -> bool:
        """Whether answers have no error bound any more."""
        return False

    @abstractmethod
    def answer_all(self, workload: Workload, values: NDArray[np.float64], report: Report) -> None:
        """Answer the queries in their order, into `values` and the transcript."""

    def answer_one(self, query: Any, bound: BoundQuery) -> float:
        """The same for one query, which is bound already."""
        values = np.empty(1)
        self.answer_all(Workload([query], self.weights.domain), values, _silent)
        return values.item()

    def synthetic(self, guarantee: Guarantee) -> SyntheticDistribution:
        """The distribution as it is now, which later updates do not change."""
        refuse_again(self.changing)
        with self.changing:
            return SyntheticDistribution(self.weights, guarantee=guarantee, n=self.n)

    def record(self, answers: list[Answer]) -> None:
        """Write down these answers."""
        self.transcript += answers


class Crossing(NamedTuple):
    """The test that fired: of which query of its window, and to which side."""

    place: int
    sign: int
    value: float | None = None  # what the distribution has for the query, where one alone was asked


class ThresholdRun(OnlineRun):
    """AboveThreshold again and again: a query whose test fires ends the epoch, and changes the distribution."""

    sides: ClassVar[int]  # tests of one query

    def __init__(self, schedule: Any, source: RunSource, query_noise: NoisePlan) -> None:
        super().__init__(source)
        self.schedule = schedule
        self.query_noise = NoiseAhead(query_noise, source.rng)
        self._noisy_threshold: int | None = None  # of the epoch that runs; None before its first test

    @property
    def updates_left(self) -> int:
        updates: int = self.schedule.updates
        return updates - self.updates

    # --- what a variant decides

    @abstractmethod
    def threshold_noise(self) -> int:
        """The noise of the threshold of an epoch that begins: whoever pays for epochs pays here."""

    @abstractmethod
    def tests(self, gaps: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is compared with the threshold, `sides` values for each gap, one query after the other."""

    @abstractmethod
    def first_over(self, gap: int, limit: int) -> int | None:
        """The same for one query, each test with noise of its own: which is the first to reach the limit, if any."""

    @abstractmethod
    def update(
        self, workload: Workload, at: int, crossed: Crossing, counts: NDArray[np.int64], values: NDArray[np.float64]
    ) -> int:
        """Change the distribution for query `at`; returns how many queries that has answered."""

    @abstractmethod
    def spent(self) -> str:
        """What the warning says of answers after the last update."""

    # --- the interaction: multiplicative_weights.md, "What is run"

    def answer_one(self, query: Any, bound: BoundQuery) -> float:
        """The same bits as `answer_all` of one query, without its arrays: an update alone takes that way."""
        # 12 us on 2^20 cells and three literals in a row, of which 8 read 1 MiB of weights and 1 counts. Left out: to
        # prefetch (a twentieth of the sum, nothing of the call); sums of blocks of cells, made after some queries
        # (a sixty-fourth is read, but the last bits would depend on what was asked before); values that are remembered
        # (of use for the same query alone).
        weights = self.weights
        if not isinstance(weights, DenseWeights):
            return super().answer_one(query, bound)
        count = self.true_answers.count(bound) if self.updates_left else 0
        value = weights.evaluate(bound)
        if not 0.0 <= value <= 1.0:
            value = min(max(value, 0.0), 1.0)
        tested = self.epoch_runs()
        if tested:
            assert self._noisy_threshold is not None
            side = self.first_over(count - round(value * (self.n * UNIT)), self._noisy_threshold)
            if side is not None:
                values, counts = np.empty(1), np.array([count])
                workload = Workload([query], weights.domain, [bound])
                self._answer_rest(workload, counts, values, _silent, self._fired(0, side)._replace(value=value))
                return values.item()
        self.transcript.append(Answer(query, value, False, self.bound_of(tested)))
        return value

    def answer_all(self, workload: Workload, values: NDArray[np.float64], report: Report) -> None:
        counts = workload.counts(self.true_answers) if self.updates_left else np.zeros(len(workload), np.int64)
        self._answer_rest(workload, counts, values, report, None)

    def _answer_rest(
        self, workload: Workload, counts: NDArray[np.int64], values: NDArray[np.float64], report: Report,
        crossed: Crossing | None,
    ) -> None:  # fmt: skip
        """All of it, or what follows after a test of the first query has fired."""
        at, window, changed = 0, _FIRST_WINDOW, -1  # the query that the last update was for
        every: NDArray[np.float64] | None = None  # all queries on the distribution as it is
        if crossed is not None:
            changed, at = 0, self.update(workload, 0, crossed, counts, values)
        while at < len(workload):
            report(at, len(workload), f"{self.updates} updates")
            if every is None and window > FEW:
                every = workload.evaluate(self.weights)
            stop = len(workload) if every is not None else min(at + window, len(workload))
            stop = self._testable(workload, at, stop)
            part = every[at:stop] if every is not None else workload.evaluate(self.weights, at, stop)
            estimates = np.clip(part, 0.0, 1.0)
            tested = self.epoch_runs()
            crossed = self._first_crossing(counts[at:stop], estimates) if tested else None
            reached = stop if crossed is None else at + crossed.place
            values[at:reached] = estimates[: reached - at]
            bound = self.bound_of(tested)
            self.record(
                [Answer(workload.queries[i], float(values[i]), i == changed, bound) for i in range(at, reached)]
            )
            at, window = reached, 8 * window
            if crossed is not None:
                changed = at
                at += self.update(workload, at, crossed, counts, values)
                window, every = _FIRST_WINDOW, None
        report(len(workload), len(workload), "")

    def bound_of(self, tested: bool) -> float | None:
        """The error bound of an answer that was tested, or was not since all updates are spent."""
        alpha: float = self.schedule.alpha
        return alpha

    def epoch_runs(self) -> bool:
        """Whether answers are tested; an epoch begins here where none runs."""
        if not self.updates_left:
            return False
        if self._noisy_threshold is None:
            self._noisy_threshold = self.schedule.threshold + self.threshold_noise()
        return True

    def _testable(self, workload: Workload, at: int, stop: int) -> int:
        """Up to which query an update would have room; ValueError if query `at` has none. Known before its test."""
        if not isinstance(self.weights, DenseWeights):
            for i in range(at, stop):
                try:
                    self.weights.check(workload.bound(i))
                except ValueError:
                    if i == at:
                        raise
                    return i
        return stop

    def _first_crossing(self, counts: NDArray[np.int64], estimates: NDArray[np.float64]) -> Crossing | None:
        """The first test that fires, which ends the epoch: it is used up here, before anything else can fail.

        The noise of the tests after it has been seen by nobody and is thrown away.
        """
        return self._crossing_of(counts - np.rint(estimates * (self.n * UNIT)).astype(np.int64))

    def _crossing_of(self, gaps: NDArray[np.int64]) -> Crossing | None:
        """The same for what is between the counts and the estimates."""
        assert self._noisy_threshold is not None
        for start in range(0, gaps.size, DRAWS // 2):
            tests = self.tests(gaps[start : start + DRAWS // 2])
            over = tests + self.query_noise.draw(tests.size) >= self._noisy_threshold
            if (fired := int(over.argmax())) or over[0]:
                place, side = divmod(fired, self.sides)
                return self._fired(start + place, side)
        return None

    def _fired(self, place: int, side: int) -> Crossing:
        """The end of an epoch, by this test of the query at this place."""
        self.updates += 1
        self._noisy_threshold = None
        self.end_epoch()
        return Crossing(place, 1 - 2 * side)

    def end_epoch(self) -> None:
        """Epochs are releases of their own, and so is their noise."""
        self.query_noise.renew()

    def record_measured(self, query: Any, value: float, bound: float) -> float:
        """Write down the answer that a noisy count gives, within 0 and 1."""
        clipped = min(max(value, 0.0), 1.0)
        self.record([Answer(query, clipped, True, bound)])
        return clipped

    def warn_if_spent(self) -> None:
        if not self.updates_left:
            warnings.warn(
                f"all {self.schedule.updates:,} updates are spent: answers come from the distribution as it is, and "
                + self.spent(),
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )


class OneTest(ThresholdRun):
    """One test of each query, of how far the distribution is off to either side."""

    sides: ClassVar[int] = 1

    def tests(self, gaps: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.abs(gaps)

    def first_over(self, gap: int, limit: int) -> int | None:
        return 0 if abs(gap) + self.query_noise.draw_one() >= limit else None
