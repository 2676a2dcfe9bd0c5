"""Error bounds of SparseVector and NumericSparse: by how much a test may err, and a value that is measured."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ...support import parameters, rounding
from ...support.checks import integer, one_of
from ...support.rounding import up
from ..scores import pair_factor
from ..sparse_vector_plan import MOST_POSITIVES, PAID, Paid, SparseVectorPlan, sparse_vector_plan
from .tails import gaussian_tail, laplace_tail, least_parameter


def sparse_vector(
    queries: int,
    *,
    positives: int,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    paid: Paid = "at once",
) -> float:
    """The margin of `SparseVector` over so many queries, except with probability beta.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    positives : int >= 1
        How many positive answers there are at most.
    sensitivity : float > 0
        Of the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all values in one direction only.
    paid : {"at once", "one by one"}
        When the positives are charged.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    every query that was answered False has a value below threshold + margin, every one that was answered
               True a value of at least threshold - margin: margin = t1 + t2, where none of the noises of thresholds
               (t1, beta/2; one, or one for each positive) nor any of the queries' (t2, beta/2, union) is larger

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.sparse_vector(1000, positives=10, sensitivity=1, epsilon=1.0), 1)
    272.5
    """
    queries = integer("queries", queries, least=1)
    plan = _plan(positives, sensitivity, epsilon, delta, monotonic, paid, answers=False)
    return up(_margin(plan, queries, positives, parameters.beta(beta), parts=2))


def sparse_vector_epsilon(
    queries: int,
    *,
    error: float,
    positives: int,
    sensitivity: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    paid: Paid = "at once",
) -> float:
    """The least epsilon with which `SparseVector` keeps within this margin.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    error : float > 0
        The error that is asked for.
    positives : int >= 1
        How many positive answers there are at most.
    sensitivity : float > 0
        Of the values.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all values in one direction only.
    paid : {"at once", "one by one"}
        When the positives are charged.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    options: dict[str, Any] = {"positives": positives, "sensitivity": sensitivity, "delta": delta, "beta": beta}
    options |= {"monotonic": monotonic, "paid": paid}
    return _least_epsilon(lambda e: sparse_vector(queries, epsilon=e, **options), error)


def numeric_sparse(
    queries: int,
    *,
    positives: int,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    paid: Paid = "at once",
) -> float:
    """The error of `NumericSparse` over so many queries, of tests and of values, except with probability beta.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    positives : int >= 1
        How many positive answers there are at most.
    sensitivity : float > 0
        Of the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all values in one direction only.
    paid : {"at once", "one by one"}
        When the positives are charged.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    every value that was given is within the error of the true one, and the tests are as in `sparse_vector`:
               the larger of t1 + t2 and t3, each exceeded with probability at most beta/3

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.numeric_sparse(1000, positives=10, sensitivity=1, epsilon=1.0), 1)
    442.8
    """
    queries = integer("queries", queries, least=1)
    plan = _plan(positives, sensitivity, epsilon, delta, monotonic, paid, answers=True)
    beta = parameters.beta(beta)
    if plan.gaussian:
        value = gaussian_tail(plan.of_answer, 6 * positives, beta)
    else:
        value = laplace_tail(plan.of_answer, beta, 3 * positives)
    return up(max(_margin(plan, queries, positives, beta, parts=3), value))


def numeric_sparse_epsilon(
    queries: int,
    *,
    error: float,
    positives: int,
    sensitivity: float,
    delta: float = 0.0,
    beta: float = 0.05,
    monotonic: bool = False,
    paid: Paid = "at once",
) -> float:
    """The least epsilon with which `NumericSparse` keeps within this error.

    Parameters
    ----------
    queries : int >= 1
        How many queries are asked at most.
    error : float > 0
        The error that is asked for.
    positives : int >= 1
        How many positive answers there are at most.
    sensitivity : float > 0
        Of the values.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    monotonic : bool
        Whether a record changes all values in one direction only.
    paid : {"at once", "one by one"}
        When the positives are charged.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    options: dict[str, Any] = {"positives": positives, "sensitivity": sensitivity, "delta": delta, "beta": beta}
    options |= {"monotonic": monotonic, "paid": paid}
    return _least_epsilon(lambda e: numeric_sparse(queries, epsilon=e, **options), error)


def _plan(
    positives: Any, sensitivity: Any, epsilon: Any, delta: Any, monotonic: Any, paid: Any, *, answers: bool
) -> SparseVectorPlan:
    return sparse_vector_plan(
        Fraction(parameters.sensitivity(sensitivity)),
        parameters.epsilon(epsilon),
        parameters.delta_or_none(delta),
        integer("positives", positives, least=1, most=MOST_POSITIVES),
        monotonic=pair_factor(monotonic) == 1,
        answers=answers,
        paid=one_of("paid", paid, PAID),
    )


@rounding.sixty_digits
def _margin(plan: SparseVectorPlan, queries: int, positives: int, beta: float, *, parts: int) -> Decimal:
    """t1 + t2, where either is exceeded with probability at most beta / parts."""
    thresholds = min(positives, queries) if plan.refreshed else 1
    first = laplace_tail(plan.of_threshold, beta, parts * thresholds)
    return rounding.add(first, laplace_tail(plan.of_query, beta, parts * queries))


def _least_epsilon(bound: Callable[[float], float], error: Any) -> float:
    error = parameters.error(error)
    bound(1.0)  # which refuses wrong parameters
    return least_parameter(lambda e: bound(e) <= error, "error", error)
