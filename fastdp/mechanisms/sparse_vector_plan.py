"""What several positives cost: scales of the noises and guarantees, from public numbers alone.

The prices are proved and the splits derived in sparse_vector.md. Mechanisms and error bounds read the same plan.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Literal, NamedTuple

from ..privacy.calibration import zcdp_rho, zcdp_sigma
from ..privacy.conversions import pure_of_rho
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness import noise_plans
from ..support.rounding import decimal_value, decimal_value_down, down, lower, up
from ..support.search import greatest_integer
from .sparse_vector_rho import positive_rho, scale_for

Paid = Literal["at once", "one by one"]
PAID = ("at once", "one by one")
MOST_POSITIVES = 2**24

_ROOT_BITS = 30  # of the fraction of a weight


class SparseVectorPlan(NamedTuple):
    """The noise scales of SparseVector or NumericSparse, in units of the grid, and what they guarantee."""

    of_threshold: float  # b1
    of_query: float  # b2
    of_answer: float  # b3, or sigma; 0 where no answers are given
    gaussian: bool  # the noise of answers
    refreshed: bool  # whether each positive is followed by a new noise of the threshold
    first: Guarantee  # up to the first positive, where each is paid when its turn comes
    each: Guarantee  # from one positive to the next
    whole: Guarantee  # of all of them

    def plans(self) -> tuple[noise_plans.LaplacePlan, noise_plans.LaplacePlan, noise_plans.NoisePlan | None]:
        """Of the noise of the threshold, of a query and of an answer."""
        return _plans(self.of_threshold, self.of_query, self.of_answer, self.gaussian)


@lru_cache(1024)
def _plans(
    of_threshold: float, of_query: float, of_answer: float, gaussian: bool
) -> tuple[noise_plans.LaplacePlan, noise_plans.LaplacePlan, noise_plans.NoisePlan | None]:
    def checked(scale: float, name: str) -> float:
        return noise_plans.scale_in_range(scale, f"noise scale of the {name}, in grid units")

    make: Callable[[float], noise_plans.NoisePlan] = noise_plans.gaussian_plan if gaussian else noise_plans.laplace_plan
    return (
        noise_plans.laplace_plan(checked(of_threshold, "threshold")),
        noise_plans.laplace_plan(checked(of_query, "queries")),
        make(checked(of_answer, "answers")) if of_answer else None,
    )


@lru_cache(1024)
def sparse_vector_plan(
    moved: Fraction,
    epsilon: float,
    delta: float,
    positives: int,
    *,
    monotonic: bool,
    answers: bool,
    paid: Paid,
    neighbors: Neighbors = "replace-one",
) -> SparseVectorPlan:
    """The plan with the least noise that the parameters allow, for values that a record moves by `moved` grid units."""
    if delta:
        concentrated = _concentrated(moved, epsilon, delta, positives, monotonic, answers, neighbors)
        if paid == "one by one":
            return concentrated
        pure = _pure(moved, epsilon, positives, monotonic, answers, neighbors)
        return pure if _size(pure) <= _size(concentrated) else concentrated
    if paid == "at once":
        return _pure(moved, epsilon, positives, monotonic, answers, neighbors)
    return _refreshed(moved, epsilon, positives, monotonic, answers, neighbors)


def _size(plan: SparseVectorPlan) -> float:
    """The variance of a comparison, and of an answer, in units of Laplace noise: what the splits make least."""
    answer = plan.of_answer**2 / (2 if plan.gaussian else 1)
    return plan.of_threshold**2 + plan.of_query**2 + answer


def _pure(
    moved: Fraction, epsilon: float, positives: int, monotonic: bool, answers: bool, neighbors: Neighbors
) -> SparseVectorPlan:
    """Theorem 1: one noise of the threshold over all positives, epsilons."""
    whole = PureDP(epsilon, neighbors=neighbors)
    noise = scales(moved, lower(epsilon), positives, monotonic, answers)
    return SparseVectorPlan(*noise, False, False, whole, whole, whole)


def _refreshed(
    moved: Fraction, epsilon: float, positives: int, monotonic: bool, answers: bool, neighbors: Neighbors
) -> SparseVectorPlan:
    """Theorem 2: each positive ends an epoch that is a release of its own, so any budget takes them one by one."""
    price = decimal_value_down(decimal_value(epsilon) / positives)
    each, whole = PureDP(price, neighbors=neighbors), PureDP(epsilon, neighbors=neighbors)
    noise = scales(moved, lower(price), 1, monotonic, answers)
    return SparseVectorPlan(*noise, False, True, each, each, whole)


def _concentrated(
    moved: Fraction,
    epsilon: float,
    delta: float,
    positives: int,
    monotonic: bool,
    answers: bool,
    neighbors: Neighbors,
) -> SparseVectorPlan:
    """Theorem 3: one noise of the threshold over all positives, rhos; its split makes the sum of variances least."""
    step, factor = max(1, int(moved)), 1 if monotonic else 2
    whole = zcdp_rho(down(lower(epsilon)), down(lower(delta)))
    weights = [_root(Fraction(1, 2)), _root(Fraction(factor**2 * positives))]
    weights += [_root(Fraction(positives, 4))] if answers else [Fraction(0)]
    of_threshold, of_query, of_answer = (down(Fraction(whole) * each / sum(weights)) for each in weights)
    tests = positive_rho(factor * step, query := scale_for(factor * step, of_query / positives * (1 - 2.0**-40)))
    answer = down(Fraction(of_answer) / positives)
    threshold = up(step / Fraction(pure_of_rho(of_threshold)))
    each = ZCDP(up(Fraction(tests) + Fraction(answer)), neighbors=neighbors)
    first = ZCDP(up(Fraction(of_threshold) + Fraction(each.rho)), neighbors=neighbors)
    together = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(whole, neighbors=neighbors))
    sigma = zcdp_sigma(float(step), rho=answer) if answers else 0.0
    return SparseVectorPlan(threshold, query, sigma, answers, False, first, each, together)


def _root(x: Fraction) -> Fraction:
    """sqrt(x), rounded down to 30 bits behind the point."""
    return Fraction(isqrt(int(x * (1 << 2 * _ROOT_BITS))), 1 << _ROOT_BITS)


def scales(
    moved: Fraction, epsilon: Fraction, positives: int, monotonic: bool, answers: bool
) -> tuple[float, float, float]:
    """b1, b2, b3 with moved / b1 + m c moved / b2 + c moved / b3 <= epsilon and the least sum of squares.

    m is 1 for monotonic values and 2 for others; b3 is 0, and its term is left out, where no answers are given.
    """
    shifts = (1 if monotonic else 2) * positives
    of_queries = _two_thirds(shifts)
    of_answers = _two_thirds(positives) if answers else Fraction(0)
    unit = moved * (1 + of_queries + of_answers) / epsilon
    return up(unit), up(unit * shifts / of_queries), up(unit * positives / of_answers) if answers else 0.0


def _two_thirds(x: int) -> Fraction:
    """x^(2/3), rounded down to 30 bits behind the point: any weight is sound, and this one the same on all machines."""
    cube = x * x << 3 * _ROOT_BITS
    root = greatest_integer(lambda r: r**3 <= cube, low=1, high=1 << -(-cube.bit_length() // 3))
    return Fraction(root, 1 << _ROOT_BITS)
