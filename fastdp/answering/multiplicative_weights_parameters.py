"""The parameters of `PrivateMultiplicativeWeights`, checked, and what follows from them and the number of records."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Literal

from ..mechanisms import bounds
from ..privacy.calibration import zcdp_rho
from ..records.domain import Domain, check_domain, display_count
from ..support import parameters
from ..support.checks import MAX_INT64, large_integer, one_of, probability
from .dense_weights import PRECISIONS, DenseWeights, Precision
from .factored_weights import FactoredWeights
from .memory import DENSE_CELLS, check_memory
from .update_schedule import VARIANTS, UpdateSchedule, Variant

Form = Literal["auto", "dense", "factored"]
FORMS = ("auto", "dense", "factored")


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

    @classmethod
    def of(
        cls, domain: Any, *, epsilon: Any, delta: Any, max_queries: Any, alpha: Any = None, beta: Any, variant: Any,
        weights: Any = "factored", precision: Any = "float64",
    ) -> MultiplicativeWeightsParameters:  # fmt: skip
        """What the user gave, checked; ValueError names what is wrong."""
        check_domain(domain)
        one_of("variant", variant, VARIANTS)
        one_of("weights", weights, FORMS)
        one_of("precision", precision, PRECISIONS)
        if weights == "auto":
            weights = "dense" if domain.size <= DENSE_CELLS else "factored"
        if weights == "dense":
            check_memory(domain, range(len(domain)), precision, "dense weights put")
        return cls(
            domain,
            parameters.epsilon(epsilon),
            parameters.delta_or_none(delta),
            large_integer("max_queries", max_queries, least=1, most=MAX_INT64),
            None if alpha is None else probability("alpha", alpha),
            parameters.beta(beta),
            variant,
            weights,
            precision,
        )

    def numbers(self, n: int) -> dict[str, Any]:
        """What a schedule is made of."""
        return {
            "n": n, "log_cells": sum(map(log, self.domain.sizes)), "epsilon": self.epsilon, "delta": self.delta,
            "queries": self.max_queries, "beta": self.beta,
        }  # fmt: skip

    def schedule(self, n: int) -> UpdateSchedule:
        """The schedule for the alpha that was asked for, or the least; ValueError if so few records support none."""
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

    def plain_alpha(self, n: int) -> float:
        """Within which all answers would be if each had plain noise, for its share of the total: zCDP or epsilon."""
        k, beta = self.max_queries, self.beta
        if self.delta:
            error = bounds.gaussian(sensitivity=sqrt(k), rho=zcdp_rho(self.epsilon, self.delta), beta=beta, count=k)
        else:
            error = bounds.laplace(sensitivity=k, epsilon=self.epsilon, beta=beta, count=k)
        return error / n

    @property
    def weight_bytes(self) -> int:
        """What the weights take; of factored ones at first."""
        cells = self.domain.size if self.form == "dense" else sum(self.domain.sizes)
        return cells * (8 if self.precision == "float64" else 4)

    @property
    def evaluation_bytes(self) -> int:
        """What evaluating them takes beside: a copy in float64, whatever their own precision."""
        return 8 * self.domain.size if self.form == "dense" else self.weight_bytes

    def new_weights(self) -> DenseWeights | FactoredWeights:
        """Uniform weights."""
        kind = DenseWeights if self.form == "dense" else FactoredWeights
        return kind(self.domain, self.precision)
