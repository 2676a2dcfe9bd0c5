"""What a learner would promise, from public numbers: nothing is read, nothing is spent. Public as `fastdp.bounds`.

Functions are named after the learners and take their parameters, with the number of records and of columns in place of
the data. A name with `_n` behind it solves for the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from ..mechanisms.interior_point import METHODS as POINT_METHODS
from ..mechanisms.prefix_method import PrefixPlan, check_prefix
from ..mechanisms.quantiles import RankSelection, rank_error
from ..privacy.guarantees import NEIGHBORS, Neighbors
from ..records.number_line import bits_of_each, check_bits
from ..support import rounding
from ..support.checks import integer, large_integer, one_of, positive, probability, small_delta
from ..support.rounding import decimal_value, down, lower, up
from . import box_parameters as box_plans
from . import conjunction_parameters as plans
from . import conjunctions, finite_class
from .privacy_parameters import checked

_MOST_RECORDS = 2**40
_METHODS = (*conjunctions.PLANS, "auto")


def learn_conjunction(
    n: int,
    d: int,
    *,
    k: int | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: str = "peel",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The share of n records of d columns that `learn_conjunction` is wrong about at most, but with probability beta.

    If some conjunction of at most k literals is right about all of them. 1.0 promises nothing.

    Examples
    >>> import fastdp
    >>> round(fastdp.bounds.learn_conjunction(1_000_000, 100, k=3, epsilon=1.0, delta=1e-6), 4)
    0.015
    """
    terms = _conjunction_terms(n, d, k, epsilon, delta, method, beta, neighbors)
    return min(1.0, conjunctions.choose_plan(method, terms)[1].bound / terms.n)


def learn_conjunction_n(
    d: int,
    *,
    k: int | None = None,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    method: str = "peel",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records `learn_conjunction` takes to promise so small an error, to a part in a thousand.

    Examples
    >>> import fastdp
    >>> n = fastdp.bounds.learn_conjunction_n(100, k=3, error=0.05, epsilon=1.0, delta=1e-6)
    >>> 100_000 < n < 500_000
    True
    """
    terms = _conjunction_terms(1, d, k, epsilon, delta, method, beta, neighbors)

    def least(name: str) -> int:
        if name == "exhaustive":
            n = _enough(plans.plan_exhaustive(terms).bound, error)
            conjunctions.choose_plan(name, replace(terms, n=n))  # ValueError if that is too much work
            return n
        return _least(lambda n: conjunctions.PLANS[name](replace(terms, n=n)).bound / n, error)

    return _least_of(conjunctions.PLANS, least) if method == "auto" else least(method)


def _conjunction_terms(
    n: Any, d: Any, k: Any, epsilon: Any, delta: Any, method: Any, beta: Any, neighbors: Any
) -> plans.Terms:
    one_of("method", method, _METHODS)
    n, d = large_integer("n", n, least=1), integer("d", d, least=1)
    k = d if k is None else integer("k", k, least=1, most=d)
    return plans.Terms(n, d, k, *checked(epsilon, delta, beta, neighbors))


def learn_box(
    n: int,
    d: int,
    *,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The share of n records of d columns that `learn_box` is wrong about at most, but with probability beta.

    If some box is right about all of them. 1.0 promises nothing.

    Examples
    >>> import fastdp
    >>> round(fastdp.bounds.learn_box(1_000_000, 5, epsilon=1.0, delta=1e-6), 4)
    0.014
    """
    terms = _box_terms(n, d, domain_bits, epsilon, delta, method, beta, neighbors)
    return min(1.0, box_plans.choose_plan(method, terms).plan.bound / terms.n)


def learn_box_n(
    d: int,
    *,
    error: float,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records `learn_box` takes to promise so small an error, to a part in a thousand.

    Examples
    >>> import fastdp
    >>> n = fastdp.bounds.learn_box_n(5, error=0.05, epsilon=1.0, delta=1e-6)
    >>> 200_000 < n < 400_000
    True
    """
    terms = _box_terms(1, d, domain_bits, epsilon, delta, method, beta, neighbors)

    def least(name: str) -> int:
        if name == "exponential":
            n = _enough(box_plans.plan_class(terms).bound, error)
            box_plans.choose_plan(name, replace(terms, n=n))  # ValueError if that is too much work
            return n
        return _least(lambda n: box_plans.choose_plan(name, replace(terms, n=n)).plan.bound / n, error)

    return _least_of(box_plans.METHODS[1:], least) if method == "auto" else least(method)


def _box_terms(
    n: Any, d: Any, domain_bits: Any, epsilon: Any, delta: Any, method: Any, beta: Any, neighbors: Any
) -> box_plans.Terms:
    one_of("method", method, box_plans.METHODS)
    n, d = large_integer("n", n, least=1), integer("d", d, least=1)
    return box_plans.Terms(n, bits_of_each(domain_bits, d), *checked(epsilon, delta, beta, neighbors))


def learn_from_class(
    n: int,
    candidates: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """By how much the share of errors exceeds the least of the class at most, but with probability beta.

    Examples
    >>> import fastdp
    >>> round(fastdp.bounds.learn_from_class(10_000, 101, epsilon=1.0), 5)
    0.00152
    """
    n, terms = large_integer("n", n, least=1), _class_errors(candidates, epsilon, delta, beta, neighbors)
    return min(1.0, terms / n)


def learn_from_class_n(
    candidates: int,
    *,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records `learn_from_class` takes to promise so small an excess.

    Examples
    >>> import fastdp
    >>> fastdp.bounds.learn_from_class_n(101, error=0.01, epsilon=1.0)
    1523
    """
    return _enough(_class_errors(candidates, epsilon, delta, beta, neighbors), error)


def _class_errors(candidates: Any, epsilon: Any, delta: Any, beta: Any, neighbors: Any) -> float:
    many = large_integer("candidates", candidates, least=1)
    return finite_class.Terms(*checked(epsilon, delta, beta, neighbors)).excess(many)


def quantile(
    q: float,
    *,
    domain_bits: int = 64,
    epsilon: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """By how many ranks `quantile` is off at most, but with probability beta, whatever the values.

    Examples
    >>> import fastdp
    >>> round(fastdp.bounds.quantile(0.5, epsilon=1.0), 1)
    94.7
    """
    selection = RankSelection.of(decimal_value(probability("q", q)), epsilon, neighbors)
    return rank_error(check_bits(domain_bits), selection.eta, probability("beta", beta))


def median(*, domain_bits: int = 64, epsilon: float, beta: float = 0.05, neighbors: Neighbors = "replace-one") -> float:
    """`quantile` at 1/2."""
    return quantile(0.5, domain_bits=domain_bits, epsilon=epsilon, beta=beta, neighbors=neighbors)


def interior_point_n(
    domain_bits: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: str = "exponential",
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records are enough for a point between the least and the greatest, but with probability beta.

    Theorem    "exponential", pure DP: 2 ceil(ln(2^bits / beta) / eta) - 1 records, eta = epsilon / 2 under replace-one,
               epsilon under add-remove: the median has a score of half the records, rounded up, a point outside them 0.
               "prefix", replace-one only, takes a delta: learning/prefix.md, theorem 2

    Examples
    >>> from fastdp.bounds import interior_point_n
    >>> interior_point_n(64, epsilon=1.0, beta=1e-3)
    205
    >>> interior_point_n(2**20, epsilon=1.0, delta=1e-6, beta=1e-3, method="prefix")
    942
    """
    bits = check_bits(domain_bits)
    epsilon, beta = positive("epsilon", epsilon, toward=0), probability("beta", beta)
    delta = small_delta("delta", delta)
    one_of("method", method, POINT_METHODS)
    one_of("neighbors", neighbors, NEIGHBORS)
    if method == "prefix":
        check_prefix(delta, neighbors)
        return PrefixPlan.of(0, bits, epsilon=epsilon, delta=delta, beta=beta).sufficient
    eta = down(RankSelection.of(Fraction(1, 2), epsilon, neighbors).eta)
    log = rounding.subtract(
        rounding.multiply(Decimal(bits), rounding.ln(Decimal(2))), rounding.ln(Decimal(down(lower(beta))))
    )
    return 2 * ceil(up(rounding.divide(log, Decimal(eta)))) - 1


def _enough(errors: float, error: Any) -> int:
    """Records of which so many errors are so small a share."""
    return ceil(errors / probability("error", error))


def _least_of(methods: Iterable[str], least: Callable[[str], int]) -> int:
    """Of the methods that apply; the last reason if none does."""
    found, reason = [], ""
    for method in methods:
        try:
            found.append(least(method))
        except ValueError as error:
            reason = str(error)
    if not found:
        raise ValueError(reason)
    return min(found)


def _least(bound: Callable[[int], float], error: Any) -> int:
    """The least n with bound(n) <= error, to a part in a thousand."""
    error = probability("error", error)
    low, high = 0, 1
    while bound(high) > error:
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise ValueError(f"error={error!r}: is out of reach, with {_MOST_RECORDS:,} records too")
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= error else (middle, high)
    return high
