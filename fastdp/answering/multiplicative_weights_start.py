"""How a run begins: what is charged, read and drawn when a `PrivateMultiplicativeWeights` is made.

multiplicative_weights_measured.md, theorem 1: the number of records first where it is private, then the tables of a
prior, then epochs one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors, PureDP
from ..privacy.reservations import Payers
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.rehearsal import RECORDS
from ..records.rows import Rows
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.parameters import Outside
from ..support.progress import Report
from .measured_schedule import MeasuredSchedule
from .memory import check_room
from .multiplicative_weights_lecture import LectureRun
from .multiplicative_weights_measured import MeasuredRun
from .multiplicative_weights_parameters import MultiplicativeWeightsParameters, Schedule
from .multiplicative_weights_payments import NAME, Payments, pay_in_steps
from .multiplicative_weights_plain import PlainRun, PlainSchedule
from .multiplicative_weights_prior import Start
from .multiplicative_weights_run import OnlineRun, RunSource
from .multiplicative_weights_sharp import SharpRun
from .privacy_shares import guarantee_of_all
from .queries.bound_query import UNIT
from .synthetic_distribution import SyntheticDistribution
from .true_answers import TrueAnswers
from .update_schedule import UpdateSchedule

Parameters = MultiplicativeWeightsParameters
Make = Callable[[Parameters, Any, RunSource, Payments], OnlineRun]

RUNS: dict[str, Make] = {  # a new variant is a file of its own, and a row here
    "sharp": lambda given, schedule, source, payments: SharpRun(schedule, source, given.beta),
    "lecture": lambda given, schedule, source, payments: LectureRun(schedule, source, given.beta),
    "measured": lambda given, schedule, source, payments: MeasuredRun(
        schedule, source, given.total, payments, given.on_exhausted, given.replay, source.known
    ),
    "plain": lambda given, schedule, source, payments: PlainRun(schedule, source, given.total, payments),
}


@dataclass(frozen=True)
class Started:
    """A run, and what is public of it."""

    given: Parameters  # with the variant and the prior that "auto" took
    schedule: Schedule
    run: OnlineRun
    guarantee: Guarantee
    n: int  # of the records; noisy where that is private


def start(
    given: Parameters, rows: Rows, outside: Outside, budget: Budget | None, rng: Randomness | None, report: Report
) -> Started:
    """Charge what is due, read the records, draw what comes first."""
    beginning = _Beginning(given, rows, outside, budget, rng)
    return beginning.with_public_count(report) if given.neighbors == "replace-one" else beginning.with_count(report)


class _Beginning:
    """The parts of a start, in either order."""

    def __init__(
        self, given: Parameters, rows: Rows, outside: Outside, budget: Budget | None, rng: Randomness | None
    ) -> None:
        self.rows, self.outside, self.rng = rows, outside, rng
        self.payers = charged_here(budget)
        self.given = replace(given, adds_epsilons=all(each.theorem == "basic" for each in self.payers))
        self.listed: dict[str, Any] = {
            "epsilon": given.epsilon, "delta": given.delta, "max_queries": given.max_queries,
        }  # fmt: skip

    @property
    def in_steps(self) -> bool:
        """Whether what has not begun is not paid for."""
        return self.given.variant in ("auto", "measured", "plain") and pay_in_steps(self.payers, self.given.delta)

    def with_public_count(self, report: Report) -> Started:
        """Replace-one neighbours: all that is charged follows from public numbers."""
        n = self.rows.n
        given = self.given = self.given.resolved(n)
        schedule = given.schedule(n)
        check_room(given.weight_bytes, given.evaluation_bytes, TrueAnswers.bytes(n, given.domain, self.rows.gathers))
        _warn_if_plain_noise_is_better(given, schedule, n)
        self.listed |= {"delta": given.delta, "alpha": schedule.alpha, "variant": schedule.variant}
        guarantee = _guarantee(given, schedule)
        price = given.total.price(given.prior_share + sum(_steps(schedule))) if self.in_steps else guarantee
        with ChargedKeys(NAME, price, self.listed, self.payers, self.rng) as keys:
            report(0, 1, "reading the records")
            self.rows = keys.reads(self.rows, RECORDS)
            true_answers = TrueAnswers(self.rows, given.domain, self.outside)
            start, tables = self._stated_prior(given), given.tables()
            if tables is None:
                weights = given.new_weights(start.prior)
                keys.take_ahead()  # an rng that gives none raises before anything is charged
            else:
                counts = tables.count(self.rows, true_answers, self.outside)
                start = tables.draw(counts, n, keys.take(), report)
                weights = given.new_weights(start.prior)
            report(1, 1, "")
            keys.commit()
        payments = self._payments(given, schedule, 1)
        source = RunSource(weights, true_answers, n, self.rng, start.known)
        run = RUNS[schedule.variant](given, schedule, source, payments)
        return Started(given, schedule, run, keys.stating(guarantee), n)

    def with_count(self, report: Report) -> Started:
        """Add-remove neighbours: what is charged after the number of records depends on it as it was drawn."""
        # what is bought here, and all that follows, is from one total: noise is not chosen again
        self.given = replace(self.given.with_less_noise(), adds_epsilons=False)
        total, scale = self.given.total, self.given.count_scale()
        self.given.resolved(1).schedule(1)  # an error of parameters, none of which depends on the number of records
        check_room(
            self.given.weight_bytes, self.given.evaluation_bytes,
            TrueAnswers.bytes(0, self.given.domain, self.rows.gathers),
        )  # fmt: skip
        guarantee = total.guarantee()
        price = total.price(self.given.count_share) if self.in_steps else guarantee
        with ChargedKeys(NAME, price, self.listed, self.payers, self.rng) as keys:
            report(0, 1, "reading the records")
            self.rows = keys.reads(self.rows, RECORDS)
            true_answers = TrueAnswers(self.rows, self.given.domain, self.outside, n=0)
            noise = int(integer_noise(total.noise(scale), keys.take(), 1)[0])
            n = max(1, round(Fraction(true_answers.n * UNIT + noise, UNIT)))
        given = self.given.resolved(n)
        schedule = given.schedule(n)
        self.listed |= {"alpha": schedule.alpha, "variant": schedule.variant}
        start, tables = self._stated_prior(given), given.tables()
        if tables is not None:
            with ChargedKeys(
                NAME, total.price(given.prior_share), self.listed, self.payers if self.in_steps else Payers(), self.rng
            ) as more:
                counts = tables.count(self.rows, true_answers, self.outside)
                start = tables.draw(counts, n, more.take(), report)
        report(1, 1, "")
        source = RunSource(given.new_weights(start.prior), true_answers, n, self.rng, start.known)
        run = RUNS[schedule.variant](given, schedule, source, self._payments(given, schedule, 0))
        return Started(given, schedule, run, keys.stating(guarantee), n)

    def _stated_prior(self, given: Parameters) -> Start:
        return Start(given.prior if isinstance(given.prior, SyntheticDistribution) else None, [])

    def _payments(self, given: Parameters, schedule: Schedule, paid: int) -> Payments:
        steps = given.max_queries if isinstance(schedule, PlainSchedule) else schedule.updates
        return Payments(
            given.total, *_steps(schedule), paid if self.in_steps else steps, self.payers, self.listed, self.rng
        )


def _steps(schedule: Schedule) -> tuple[Fraction, Fraction]:
    """Of the total: what is due once, before the first step, and for each epoch or answer."""
    if isinstance(schedule, MeasuredSchedule):
        return schedule.once, schedule.share
    return Fraction(0), schedule.share if isinstance(schedule, PlainSchedule) else Fraction(0)


def _guarantee(given: Parameters, schedule: Schedule) -> Guarantee:
    if isinstance(schedule, UpdateSchedule):
        return _of_epochs(given.epsilon, given.delta, schedule.epoch, schedule.updates, given.neighbors)
    return given.total.guarantee()


@lru_cache(256)
def _of_epochs(epsilon: float, delta: float, epoch: float, updates: int, neighbors: Neighbors) -> Guarantee:
    """multiplicative_weights.md, theorem 1."""
    return guarantee_of_all(epsilon, delta, (PureDP(epoch), updates), neighbors=neighbors)


def _warn_if_plain_noise_is_better(given: Parameters, schedule: Schedule, n: int) -> None:
    """An AccuracyWarning if plain noise on as many answers, as adaptive, is the better choice."""
    name, plain = "Gaussian" if given.delta else "Laplace", given.plain_alpha(n)
    if isinstance(schedule, MeasuredSchedule):
        if isinstance(given.prior, SyntheticDistribution) or not given.plain_is_better(n):
            return
        message = (
            f"plain {name} noise on each of max_queries={given.max_queries:,} answers is within {plain:.3g}: less than "
            f"what a test would notice here. variant='measured' is for about {given.fewest_queries(n):,} queries and "
            "more; 'auto' takes plain noise for fewer"
        )
    elif isinstance(schedule, UpdateSchedule) and plain < schedule.alpha:
        message = (
            f"PrivateMultiplicativeWeights guarantees an error of at most {schedule.alpha:.3g}, plain {name} noise on "
            f"each of max_queries={given.max_queries:,} answers {plain:.3g}: see fastdp.{name.lower()}, in a Budget"
        )
    else:
        return
    warnings.warn(message, AccuracyWarning, stacklevel=levels_to_caller())
