"""What a run would promise and need, from public numbers: nothing is read, nothing is spent. Public as `fastdp.bounds`.

Functions are named after the mechanisms and take their parameters, with the number of records in place of the data.
A name with `_n` behind it solves for that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from ..mechanisms import bounds
from ..mechanisms.noise import LaplacePlan
from ..privacy.guarantees import NEIGHBORS, Neighbors
from ..records.domain import Domain, check_domain, shown
from ..support.checks import MAX_INT64, large_integer, one_of, probability
from .dense_weights import Precision
from .memory import shown_bytes
from .multiplicative_weights import Form, Terms
from .mwem import Rounds, plan_of
from .mwem import Variant as MwemVariant
from .queries.marginals import Marginals
from .release_marginals import Fit, bytes_of_release, checked_workload, noise_of
from .true_answers import TrueAnswers
from .update_schedule import Schedule, Variant


@dataclass(frozen=True)
class Estimate:
    """What a run would promise and need.

    alpha          all answers are within alpha, with probability 1 - beta; None: nothing is promised
    beta           with which probability the accuracy may fail
    rounds         at most so many updates, or rounds
    cells          of the domain
    weight_bytes   what weights take in memory: at first, where they are factored
    record_bytes   what records take in memory
    plain_alpha    within which all answers would be if each had plain noise, for the same total; None for
                   release_marginals, which is plain noise. Where it is below alpha, plain noise is the better choice
    bytes          weights and records together
    """

    alpha: float | None
    beta: float
    rounds: int
    cells: int
    weight_bytes: int
    record_bytes: int
    plain_alpha: float | None = None

    @property
    def bytes(self) -> int:
        """What weights and records take in memory."""
        return self.weight_bytes + self.record_bytes

    def __str__(self) -> str:
        said = "no promise" if self.alpha is None else f"within {self.alpha:.4g} with probability {1 - self.beta:g}"
        if self.plain_alpha is not None and self.plain_alpha < (1 if self.alpha is None else self.alpha):
            said += f", plain noise on each answer within {self.plain_alpha:.4g}"
        return (
            f"{said}; at most {self.rounds:,} rounds; {shown(self.cells)} cells, weights of "
            f"{shown_bytes(self.weight_bytes)}, records of {shown_bytes(self.record_bytes)}"
        )


def private_multiplicative_weights(
    n: int,
    domain: Domain,
    *,
    epsilon: float,
    max_queries: int,
    delta: float = 0.0,
    alpha: float | None = None,
    beta: float = 0.05,
    variant: Variant = "sharp",
    weights: Form = "auto",
    precision: Precision = "float64",
) -> Estimate:
    """What `PrivateMultiplicativeWeights` would promise on n records: multiplicative_weights.md, theorems 2 and 3.

    Examples
    >>> import fastdp
    >>> domain, given = fastdp.Domain.binary(20), {"epsilon": 1.0, "delta": 1e-6}
    >>> print(fastdp.bounds.private_multiplicative_weights(200_000, domain, max_queries=10**7, **given))
    within 0.2095 with probability 0.95; at most 632 rounds; 1,048,576 cells, weights of 8 MiB, records of 103 MiB
    >>> few = fastdp.bounds.private_multiplicative_weights(200_000, domain, max_queries=1000, **given)
    >>> print(str(few)[:76])
    within 0.1774 with probability 0.95, plain noise on each answer within 0.003
    """
    terms = Terms.of(domain, epsilon, delta, max_queries, alpha, beta, variant, weights, precision)
    n = large_integer("n", n, least=1, most=MAX_INT64)
    schedule = terms.schedule(n)
    memory = terms.weight_bytes, TrueAnswers.bytes(n, domain)
    return Estimate(schedule.alpha, terms.beta, schedule.updates, domain.size, *memory, terms.plain_alpha(n))


def private_multiplicative_weights_n(
    domain: Domain, *, alpha: float, epsilon: float, max_queries: int, delta: float = 0.0, beta: float = 0.05,
    variant: Variant = "sharp",
) -> int:  # fmt: skip
    """How many records support this alpha."""
    terms = Terms.of(domain, epsilon, delta, max_queries, alpha, beta, variant, "factored", "float64")
    asked = probability("alpha", alpha)
    return _least_n(lambda n: Schedule.of(variant, asked, **terms.numbers(n)) is not None, asked)


def mwem(
    n: int,
    domain: Domain,
    queries: Iterable[Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    rounds: int | None = None,
    variant: MwemVariant | None = None,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> Estimate:
    """What `mwem` would promise on n records (on at least n under add-remove neighbours): mwem.md, theorem 2."""
    n = large_integer("n", n, least=1, most=MAX_INT64)
    records = n if neighbors == "add-remove" else None
    plan = plan_of(n, domain, queries, epsilon, delta, rounds, variant, beta, records, neighbors)
    alpha = plan.alpha if plan.alpha < 1 else None
    memory = plan.weight_bytes, TrueAnswers.bytes(n, domain)
    return Estimate(alpha, plan.beta, plan.rounds, domain.size, *memory, plan.plain_error / n)


def mwem_n(
    domain: Domain, queries: Iterable[Any], *, alpha: float, epsilon: float, delta: float = 0.0, beta: float = 0.05
) -> int:
    """How many records support this alpha, with as many rounds as are best for it."""
    plan = plan_of(1, domain, queries, epsilon, delta, None, "average", beta, None, "replace-one")
    asked = probability("alpha", alpha)
    return _least_n(lambda n: Rounds.best(plan.most_rounds, **plan.numbers | {"n": n}).alpha <= asked, asked)


def release_marginals(
    n: int,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    fit: Fit | None = "auto",
    neighbors: Neighbors = "replace-one",
) -> Estimate:
    """What `release_marginals` would promise on n records: of the tables as measured. Fits come closer
    (marginals.md)."""
    n, beta = large_integer("n", n, least=1, most=MAX_INT64), probability("beta", beta)
    check_domain(domain)
    one_of("neighbors", neighbors, NEIGHBORS)
    workload = checked_workload(domain, workload, fit)
    noise = noise_of(workload, epsilon, delta, neighbors)
    if isinstance(noise.plan, LaplacePlan):
        error = bounds.laplace(sensitivity=noise.plan.scale, epsilon=1.0, beta=beta, count=len(workload))
    else:
        error = noise.sigma * sqrt(2 * log(2 * len(workload) / beta))
    return Estimate(error / n, beta, 1, domain.size, *bytes_of_release(n, workload, fit))


def _least_n(enough: Callable[[int], bool], alpha: float) -> int:
    """The least number of records that is enough; more are never worse."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MAX_INT64:
            raise ValueError(f"alpha={alpha!r}: is out of reach")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
