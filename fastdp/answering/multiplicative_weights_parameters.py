"""The parameters of `PrivateMultiplicativeWeights`, checked, and what follows from them and the number of records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from typing import Any, Literal

from ..mechanisms import bounds
from ..privacy.calibration import zcdp_rho
from ..privacy.guarantees import Neighbors
from ..records.domain import Domain, check_domain, display_count
from ..support import parameters
from ..support.checks import MAX_INT64, integer, large_integer, moderate, one_of, probability
from ..support.search import least_integer
from ..support.shown import shown
from .dense_weights import PRECISIONS, DenseWeights, Precision
from .factored_weights import FactoredWeights
from .measured_schedule import MeasuredNumbers, MeasuredSchedule
from .measurements import Weights
from .memory import DENSE_CELLS, check_memory
from .multiplicative_weights_plain import PlainSchedule
from .multiplicative_weights_price import Share, Total
from .multiplicative_weights_prior import Prior, TablesPrior, checked_prior, start_from
from .queries.bound_query import UNIT
from .synthetic_distribution import SyntheticDistribution
from .update_schedule import VARIANTS as LEARNED
from .update_schedule import UpdateSchedule

Form = Literal["auto", "dense", "factored"]
FORMS = ("auto", "dense", "factored")
Variant = Literal["auto", "measured", "plain", "sharp", "lecture"]
VARIANTS = ("auto", "measured", "plain", "sharp", "lecture")
OnExhausted = Literal["answer", "raise"]
ON_EXHAUSTED = ("answer", "raise")
Schedule = UpdateSchedule | MeasuredSchedule | PlainSchedule

_COUNT = Fraction(1, 64)  # of the total and of beta, for the number of records where that is private
_ROUNDED = Fraction(1, 1 << 48)  # of the total, for prices that are rounded up one by one: they stay within it
_EVEN, _MOST = Fraction(1, 2), Fraction(3, 4)  # of the total, for tables
_FEW_UPDATES = 16  # up to here tables get the most: their noise is then larger than what updates would find
_USUAL = 0.6  # of the error bound of measured answers: what most errors of a run stay below
_TABLES_MISS = 1 / 200  # of the records: what tables of pairs, without noise, are usually off by
_QUICK_CELLS = 1 << 20  # up to here "auto" buys two-way tables
_MOST_REPLAYS = 20


@dataclass(frozen=True)
class MultiplicativeWeightsParameters:
    """Checked parameters."""

    domain: Domain
    epsilon: float
    delta: float
    max_queries: int
    alpha: float | None
    beta: float
    variant: Variant
    form: Literal["dense", "factored"]
    precision: Precision
    prior: Prior = None
    threshold: float | None = None
    updates: int | None = None
    replay: int = 10
    on_exhausted: OnExhausted = "answer"
    neighbors: Neighbors = "replace-one"
    tables_part: Fraction = _EVEN  # of what there is, for the tables of a prior that is measured
    adds_epsilons: bool = True  # whether whoever pays does: to others Laplace noise would cost far more

    @classmethod
    def of(
        cls, domain: Any, *, epsilon: Any, delta: Any, max_queries: Any, alpha: Any = None, beta: Any, variant: Any,
        weights: Any = "factored", precision: Any = "float64", prior: Any = None, threshold: Any = None,
        updates: Any = None, replay: Any = 10, on_exhausted: Any = "answer", neighbors: Any = "replace-one",
    ) -> MultiplicativeWeightsParameters:  # fmt: skip
        """What the user gave, checked; ValueError names what is wrong."""
        check_domain(domain)
        one_of("variant", variant, VARIANTS)
        one_of("weights", weights, FORMS)
        one_of("precision", precision, PRECISIONS)
        one_of("on_exhausted", on_exhausted, ON_EXHAUSTED)
        if parameters.neighbors(neighbors) != "replace-one" and variant in LEARNED:
            raise ValueError(
                f"neighbors={neighbors!r}: must be 'replace-one' for variant={variant!r}: averages over a number of "
                "records that is private, too, are what 'measured' and 'plain' are for"
            )
        if weights == "auto":
            weights = "dense" if domain.size <= DENSE_CELLS else "factored"
        if weights == "dense":
            check_memory(domain, range(len(domain)), precision, "dense weights put")
        made = cls(
            domain,
            epsilon=parameters.epsilon(epsilon),
            delta=parameters.delta_or_none(delta),
            max_queries=large_integer("max_queries", max_queries, least=1, most=MAX_INT64),
            alpha=None if alpha is None else probability("alpha", alpha),
            beta=parameters.beta(beta),
            variant=variant,
            form=weights,
            precision=precision,
            prior=checked_prior(prior, domain),
            threshold=None if threshold is None else moderate("threshold", threshold, toward=0),
            updates=None if updates is None else large_integer("updates", updates, least=1, most=MAX_INT64),
            replay=integer("replay", replay, least=0, most=_MOST_REPLAYS),
            on_exhausted=on_exhausted,
            neighbors=neighbors,
        )
        made._check_together()
        return made

    def _check_together(self) -> None:
        given = {"prior": self.prior, "threshold": self.threshold, "updates": self.updates}
        if self.variant not in ("auto", "measured"):
            for name, value in given.items():
                if value is not None:
                    stated = "" if name == "prior" else f"={shown(value)}"
                    raise ValueError(f"{name}{stated}: must be None for variant={self.variant!r}: 'measured' has it")
        if self.alpha is not None and self.neighbors == "add-remove":
            raise ValueError(
                f"alpha={self.alpha!r}: must be None with neighbors='add-remove', where the number of records is "
                "private: updates= and threshold= are in records"
            )
        if self.alpha is not None and self.updates is not None:
            raise ValueError(f"updates={self.updates!r}: must be None where alpha is given, which states how many")

    # --- what the total is shared in

    @property
    def total(self) -> Total:
        """What is shared."""
        return Total(self.epsilon, self.delta, self.neighbors)

    @property
    def count_share(self) -> Share:
        """Of the total, for the number of records."""
        return self.total.whole * _COUNT if self.neighbors == "add-remove" else Fraction(0)

    @property
    def prior_share(self) -> Share:
        """Of the total, for the tables of a prior that is measured."""
        return (self.total.whole - self.count_share) * self.tables_part if self.prior == "marginals" else Fraction(0)

    @property
    def share(self) -> Share:
        """Of the total, for answers."""
        return self._left - self.prior_share

    @property
    def _left(self) -> Share:
        """Of the total, beside the number of records."""
        return self.total.whole * (1 - _ROUNDED) - self.count_share

    @property
    def _answer_beta(self) -> float:
        share = float(1 - _COUNT) if self.neighbors == "add-remove" else 1.0
        return float(self.beta * share)

    def count_scale(self) -> float:
        """Of the noise of the number of records, in units of 2^-16."""
        return self.total.noise_scale(UNIT, self.count_share)

    def count_error(self) -> float:
        """Within which the noisy number of records is, in records; 0 where it is public."""
        if self.neighbors == "replace-one":
            return 0.0
        return float(self.total.error(self.count_scale(), self.beta * float(_COUNT), 1) / UNIT)

    # --- schedules

    def numbers(self, n: int) -> dict[str, Any]:
        """What a schedule of "sharp" or "lecture" is made of."""
        return {
            "n": n, "log_cells": sum(map(log, self.domain.sizes)), "epsilon": self.epsilon, "delta": self.delta,
            "queries": self.max_queries, "beta": self.beta,
        }  # fmt: skip

    def resolved(self, n: int) -> MultiplicativeWeightsParameters:
        """The same with the variant and the prior that "auto" takes for so many records, and the noise of "plain"."""
        if self.variant not in ("auto", "measured"):
            return self.with_less_noise()
        measured = replace(self, variant="measured")
        if self.variant == "auto" and self.prior is None and self._affords_tables():
            measured = replace(measured, prior="marginals")
        few = measured.prior == "marginals" and measured._measured_numbers().updates(n) <= _FEW_UPDATES
        if few and self.updates is None:
            measured = replace(measured, tables_part=_MOST)
        if self.variant == "measured":
            return measured
        asked = (self.prior, self.threshold, self.updates)
        plain = replace(self, variant="plain") if asked == (None, None, None) else None
        if plain is not None and plain.supports(n) and (measured.plain_is_better(n) or not measured.supports(n)):
            return plain.with_less_noise()
        return measured

    def with_less_noise(self) -> MultiplicativeWeightsParameters:
        """The same; of "plain" answers without a delta, where Laplace noise for all of epsilon is less.

        In variance and in the error bound: multiplicative_weights_measured.md, theorem 3.
        """
        if self.variant != "plain" or not self.delta or not self.adds_epsilons:
            return self
        pure = replace(self, delta=0.0)
        gaussian, laplace = (each._plain_of(1, self.max_queries, capped=False) for each in (self, pure))
        if laplace is None or gaussian is None:
            return self
        less = laplace.deviation < gaussian.deviation and laplace.alpha < gaussian.alpha
        return pure if less else self

    def _affords_tables(self) -> bool:
        """Whether tables come first by default: Gaussian noise, and a domain where they are fitted at once."""
        return bool(self.delta) and (self.form == "factored" or self.domain.size <= _QUICK_CELLS)

    def schedule(self, n: int) -> Schedule:
        """The schedule for the alpha that was asked for, or the default; ValueError if so few records support none."""
        if self.variant == "auto":
            return self.resolved(n).schedule(n)
        if self.variant == "measured":
            return self._measured(n)
        if self.variant == "plain":
            return self.with_less_noise()._plain(n)
        numbers = self.numbers(n)
        best = UpdateSchedule.solve(self.variant, **numbers)
        if best is None:
            raise ValueError(
                f"data: n={n} records: must be more: no alpha below 1 can be guaranteed for {self.max_queries} queries "
                f"on {display_count(self.domain.size)} cells with epsilon={self.epsilon!r}, delta={self.delta!r}"
            )
        if self.alpha is None:
            return best
        asked = UpdateSchedule.of(self.variant, self.alpha, **numbers)
        if asked is None:
            raise ValueError(f"alpha={self.alpha!r}: must be at least {best.alpha:.4g}, what n={n} records support")
        return asked

    def _measured_numbers(self, queries: int | None = None) -> MeasuredNumbers:
        return MeasuredNumbers(
            self.total, self.share, self.max_queries if queries is None else queries, self._answer_beta,
            self.domain.size, self.prior is not None,
        )  # fmt: skip

    def _measured(self, n: int) -> MeasuredSchedule:
        numbers, updates, error = self._measured_numbers(), self.updates, self.count_error()
        if self.alpha is not None:
            updates = numbers.updates_for(n, self.alpha, self.threshold, error)
        return numbers.schedule(n, updates, self.threshold, error)

    def _plain(self, n: int) -> PlainSchedule:
        made = self._plain_of(n, self.max_queries)
        if made is None:
            raise ValueError(
                f"max_queries={self.max_queries!r}: must be fewer: noise on each answer is beyond 2^40 units"
            )
        if self.alpha is not None and made.alpha > self.alpha:
            raise ValueError(f"alpha={self.alpha!r}: must be at least {made.alpha:.4g}, what n={n} records support")
        return made

    def _plain_of(self, n: int, queries: int, *, capped: bool = True) -> PlainSchedule | None:
        made = PlainSchedule.of(n, self.total, self._left, queries, self._answer_beta, self.count_error())
        return replace(made, alpha=min(1.0, made.alpha)) if made is not None and capped else made

    def supports(self, n: int) -> bool:
        """Whether there is a schedule, for alpha if it was asked for."""
        if (self.variant == "sharp" or self.variant == "lecture") and self.alpha is not None:
            return UpdateSchedule.of(self.variant, self.alpha, **self.numbers(n)) is not None
        try:
            self.schedule(n)
        except ValueError:
            return False
        return True

    def plain_is_better(self, n: int) -> bool:
        """Whether plain noise on each answer stays, on all of them, below the error that measured ones usually have."""
        return self._plain_is_better(n, self.max_queries, self._tables_error())

    def _plain_is_better(self, n: int, queries: int, of_tables: float) -> bool:
        plain, numbers = self._plain_of(n, queries), self._measured_numbers(queries)
        if plain is None:
            return False
        usual = _USUAL * numbers.rough_error(numbers.updates(n))
        if of_tables:
            usual = max(of_tables, min(usual, _TABLES_MISS * n * UNIT))
        return self.total.error(plain.scale, self._answer_beta, queries) <= usual

    def _tables_error(self) -> float:
        """What the noise of the tables of all pairs does to an answer, at most; 0 if they are not bought."""
        if self.prior != "marginals" or self.form == "factored":
            return 0.0
        tables = self.tables()
        assert tables is not None
        return float(3 * tables.deviation * UNIT)

    def fewest_queries(self, n: int) -> int:
        """From how many queries on "measured" is the better choice, to a part in a hundred."""
        of_tables = self._tables_error()
        return least_integer(
            lambda queries: not self._plain_is_better(n, queries, of_tables),
            low=1,
            guess=1024,
            largest=MAX_INT64,
            within=0.01,
        )

    def plain_alpha(self, n: int) -> float:
        """Within which all answers would be if each had plain noise, for its share of the total: zCDP or epsilon."""
        k, beta = self.max_queries, self.beta
        if self.delta:
            error = bounds.gaussian(sensitivity=sqrt(k), rho=zcdp_rho(self.epsilon, self.delta), beta=beta, count=k)
        else:
            error = bounds.laplace(sensitivity=k, epsilon=self.epsilon, beta=beta, count=k)
        return error / n

    # --- weights

    @property
    def weight_bytes(self) -> int:
        """What the weights take; of factored ones at first."""
        cells = self.domain.size if self.form == "dense" else sum(self.domain.sizes)
        return cells * (8 if self.precision == "float64" else 4)

    @property
    def evaluation_bytes(self) -> int:
        """What evaluating them takes beside: a copy in float64, whatever their own precision."""
        return 8 * self.domain.size if self.form == "dense" else self.weight_bytes

    def tables(self) -> TablesPrior | None:
        """The tables that are bought first."""
        if self.prior != "marginals":
            return None
        return TablesPrior(self.domain, self.form, self.total, self.prior_share)

    def new_weights(self, prior: SyntheticDistribution | None = None) -> Weights:
        """Weights of the prior, or uniform ones."""
        if self.variant in LEARNED:
            kind = DenseWeights if self.form == "dense" else FactoredWeights
            return kind(self.domain, self.precision)
        made: Weights = start_from(prior, self.domain, self.form, self.precision)
        return made
