"""The error bounds of whole runs and what they take in memory, from public numbers: nothing is read or charged. Public
as `fastdp.bounds`.

Functions are named after the mechanisms and take their parameters, with the number of records in place of the data.
A name with `_n` or `_epsilon` behind it solves for the least number of records, or the least epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..privacy.guarantees import Neighbors
from ..records.domain import Domain
from ..support import parameters
from ..support.checks import MAX_INT64, large_integer, probability
from ..support.search import in_reach, least_float, least_integer
from .dense_weights import Precision
from .estimate import Estimate
from .multiplicative_weights_parameters import Form, MultiplicativeWeightsParameters, Variant
from .mwem import plan_of
from .mwem_average import AverageRounds
from .mwem_plan import Variant as MwemVariant
from .true_answers import TrueAnswers

# --- private multiplicative weights: multiplicative_weights.md, theorems 2 and 3; multiplicative_weights_measured.md


def private_multiplicative_weights(
    n: int,
    domain: Domain,
    *,
    epsilon: float,
    max_queries: int,
    delta: float = 0.0,
    alpha: float | None = None,
    beta: float = 0.05,
    variant: Variant = "auto",
    prior: Any = None,
    updates: int | None = None,
    threshold: float | None = None,
    weights: Form = "auto",
    precision: Precision = "float64",
) -> Estimate:
    """The error bound of `PrivateMultiplicativeWeights` on n records, and what it takes.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    epsilon : float > 0
        The epsilon of all answers together.
    max_queries : int
        How many queries may be asked in all.
    delta : float in [0, 1)
        The delta of all answers together.
    alpha : float in (0, 1), optional
        The accuracy asked for; by default the least that n records support.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    variant : {"auto", "measured", "plain", "sharp", "lecture"}
        As of `PrivateMultiplicativeWeights`.
    prior : SyntheticDistribution, array_like or "marginals", optional
        As of `PrivateMultiplicativeWeights`.
    updates : int, optional
        As of `PrivateMultiplicativeWeights`.
    threshold : float > 0, optional
        As of `PrivateMultiplicativeWeights`.
    weights : {"auto", "dense", "factored"}
        As of `PrivateMultiplicativeWeights`.
    precision : {"float64", "float32"}
        As of `PrivateMultiplicativeWeights`.

    Returns
    -------
    Estimate
        With `.alpha`, `.rounds`, `.bytes` and what plain noise would guarantee.

    Raises
    ------
    ValueError
        If so few records support no alpha below 1, or not the alpha asked for.

    Examples
    --------
    >>> import fastdp
    >>> domain, given = fastdp.Domain.binary(20), {"epsilon": 1.0, "delta": 1e-6, "variant": "sharp"}
    >>> print(fastdp.bounds.private_multiplicative_weights(200_000, domain, max_queries=10**7, **given))
    within 0.2095 with probability 0.95; at most 632 rounds; 1,048,576 cells, weights of 8 MiB, records of 103 MiB
    >>> few = fastdp.bounds.private_multiplicative_weights(200_000, domain, max_queries=1000, **given)
    >>> print(str(few)[:76])
    within 0.1774 with probability 0.95, plain noise on each answer within 0.003
    """
    given = MultiplicativeWeightsParameters.of(
        domain, epsilon=epsilon, delta=delta, max_queries=max_queries, alpha=alpha, beta=beta, variant=variant,
        weights=weights, precision=precision, prior=prior, updates=updates, threshold=threshold,
    )  # fmt: skip
    n = large_integer("n", n, least=1, most=MAX_INT64)
    schedule = given.schedule(n)
    memory = given.weight_bytes, TrueAnswers.bytes(n, domain)
    return Estimate(schedule.alpha, given.beta, schedule.updates, domain.size, *memory, given.plain_alpha(n))


def private_multiplicative_weights_n(
    domain: Domain, *, alpha: float, epsilon: float, max_queries: int, delta: float = 0.0, beta: float = 0.05,
    variant: Variant = "auto",
) -> int:  # fmt: skip
    """The least number of records with which `PrivateMultiplicativeWeights` supports this alpha.

    Parameters
    ----------
    domain : Domain
        The values that records may have.
    alpha : float in (0, 1)
        The accuracy asked for.
    epsilon : float > 0
        The epsilon of all answers together.
    max_queries : int
        How many queries may be asked in all.
    delta : float in [0, 1)
        The delta of all answers together.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    variant : {"auto", "measured", "plain", "sharp", "lecture"}
        As of `PrivateMultiplicativeWeights`.

    Returns
    -------
    int
        The number of records.

    Raises
    ------
    ValueError
        "alpha=1e-300: is out of reach".
    """
    given = MultiplicativeWeightsParameters.of(
        domain, epsilon=epsilon, delta=delta, max_queries=max_queries, alpha=alpha, beta=beta, variant=variant
    )
    asked = probability("alpha", alpha)

    def enough(n: int) -> bool:
        return given.supports(n)

    return in_reach("alpha", asked, lambda: _least_n(enough))


def private_multiplicative_weights_epsilon(
    n: int, domain: Domain, *, alpha: float, max_queries: int, delta: float = 0.0, beta: float = 0.05,
    variant: Variant = "auto",
) -> float:  # fmt: skip
    """The least epsilon (to 10 digits) with which `PrivateMultiplicativeWeights` supports this alpha.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    alpha : float in (0, 1)
        The accuracy asked for.
    max_queries : int
        How many queries may be asked in all.
    delta : float in [0, 1)
        The delta of all answers together.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    variant : {"auto", "measured", "plain", "sharp", "lecture"}
        As of `PrivateMultiplicativeWeights`.

    Returns
    -------
    float
        The epsilon.

    Raises
    ------
    ValueError
        "alpha=1e-300: is out of reach".
    """
    given = MultiplicativeWeightsParameters.of(
        domain, epsilon=1.0, delta=delta, max_queries=max_queries, alpha=alpha, beta=beta, variant=variant
    )
    asked, n = probability("alpha", alpha), large_integer("n", n, least=1, most=MAX_INT64)

    def enough(epsilon: float) -> bool:
        return replace(given, epsilon=epsilon).supports(n)

    return in_reach("alpha", asked, lambda: least_float(enough, largest=_MOST_EPSILON))


# --- MWEM: mwem.md, theorem 2


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
    """The error bound of `mwem` on n records (on at least n under add-remove neighbours), and what it takes.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    queries : iterable of Query
        The workload.
    epsilon : float > 0
        The epsilon of the fit.
    delta : float in [0, 1)
        The delta of the fit.
    rounds : int, optional
        As of `mwem`.
    variant : {"average", "measured"}, optional
        As of `mwem`.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Estimate
        With `.alpha`, None where nothing is guaranteed, `.rounds`, `.bytes` and what plain noise would guarantee.
    """
    n = large_integer("n", n, least=1, most=MAX_INT64)
    parameters.neighbors(neighbors)
    records = n if neighbors == "add-remove" else None
    plan = plan_of(n, domain, queries, epsilon, delta, rounds, variant, beta, records, neighbors)
    alpha = plan.alpha if plan.alpha < 1 else None
    memory = plan.weight_bytes, TrueAnswers.bytes(n, domain)
    return Estimate(alpha, plan.beta, plan.rounds, domain.size, *memory, plan.plain_error / n)


def mwem_n(
    domain: Domain, queries: Iterable[Any], *, alpha: float, epsilon: float, delta: float = 0.0, beta: float = 0.05
) -> int:
    """The least number of records with which `mwem` (variant "average") supports this alpha.

    For the best number of rounds.

    Parameters
    ----------
    domain : Domain
        The values that records may have.
    queries : iterable of Query
        The workload.
    alpha : float in (0, 1)
        The accuracy asked for.
    epsilon : float > 0
        The epsilon of the fit.
    delta : float in [0, 1)
        The delta of the fit.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.

    Returns
    -------
    int
        The number of records.

    Raises
    ------
    ValueError
        "alpha=1e-300: is out of reach".
    """
    plan = plan_of(1, domain, queries, epsilon, delta, None, "average", beta, None, "replace-one")
    asked = probability("alpha", alpha)
    enough = lambda n: AverageRounds.best(plan.most_rounds, **plan.numbers | {"n": n}).alpha <= asked  # noqa: E731
    return in_reach("alpha", asked, lambda: _least_n(enough))


def mwem_epsilon(
    n: int, domain: Domain, queries: Iterable[Any], *, alpha: float, delta: float = 0.0, beta: float = 0.05
) -> float:
    """The least epsilon (to 10 digits) with which `mwem` (variant "average") supports this alpha.

    For the best number of rounds.

    Parameters
    ----------
    n : int
        The number of records.
    domain : Domain
        The values that records may have.
    queries : iterable of Query
        The workload.
    alpha : float in (0, 1)
        The accuracy asked for.
    delta : float in [0, 1)
        The delta of the fit.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.

    Returns
    -------
    float
        The epsilon.

    Raises
    ------
    ValueError
        "alpha=1e-300: is out of reach".
    """
    n = large_integer("n", n, least=1, most=MAX_INT64)
    plan = plan_of(n, domain, queries, 1.0, delta, None, "average", beta, None, "replace-one")
    asked = probability("alpha", alpha)

    def enough(epsilon: float) -> bool:
        return AverageRounds.best(plan.most_rounds, **plan.numbers | {"epsilon": epsilon}).alpha <= asked

    return in_reach("alpha", asked, lambda: least_float(enough, largest=_MOST_EPSILON))


# --- inverses

_MOST_EPSILON = 2.0**9


def _least_n(enough: Callable[[int], bool]) -> int:
    return least_integer(enough, low=1, largest=MAX_INT64)
