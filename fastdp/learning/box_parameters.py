"""How each learner of boxes spends its budget, and how many errors it then promises: from public numbers only.

boxes.md has the theorems. A bound counts records; it holds with probability 1 - beta if some box is right about all n
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log
from typing import NamedTuple

from ..mechanisms.noise import LaplacePlan, laplace_plan, scale_in_range
from ..privacy.guarantees import Guarantee, Neighbors
from ..privacy.removal import lemma_eta
from ..support.rounding import down, lower, up
from .all_boxes import MOST_EXPONENT, MOST_WORK, class_size, work_of
from .privacy_parameters import Spending

_LN2 = log(2.0)


@dataclass(frozen=True)
class Terms(Spending):
    """What is public: n is a number that stands for that of the records where that is private."""

    n: int
    bits: tuple[int, ...]  # of each axis
    epsilon: float
    delta: float
    beta: float
    neighbors: Neighbors

    @property
    def sides(self) -> int:
        return 2 * len(self.bits)


@dataclass(frozen=True)
class EnoughTest:
    """Whether there are enough positives: a noisy count of them, against a threshold."""

    noise: LaplacePlan
    threshold: int


@dataclass(frozen=True)
class SidesPlan:
    """One choice for each side, among the `slice` most extreme positives; "interior-point" and "peel"."""

    test: EnoughTest
    slice: int
    eta: float
    account: str
    guarantee: Guarantee
    bound: float


class Account(NamedTuple):
    """What a score counts in each choice, and the theorem that allows it."""

    eta: float
    theorem: str


@dataclass(frozen=True)
class ClassPlan:
    """One choice among all boxes."""

    eta: float
    guarantee: Guarantee
    bound: float


@lru_cache(256)
def plan_interior(terms: Terms) -> SidesPlan:
    """Theorem 2: an interior point of a slice for each side."""

    def size(eta: float, beta: float) -> int:
        points = max(terms.bits) * _LN2
        return 2 * ceil((points + log(terms.sides / beta)) / eta) - 1

    return _with_test(terms, _composed, size)


@lru_cache(256)
def plan_peel(terms: Terms) -> SidesPlan:
    """Theorems 3 and 4: a cut for each side, after which the records beyond it are gone."""

    def account(terms: Terms) -> Account:
        by_lemma = lemma_eta(terms.epsilon, terms.delta, one_signed=False, neighbors=terms.neighbors)
        return max(Account(by_lemma, "removal lemma"), _composed(terms))

    def size(eta: float, beta: float) -> int:
        each = 2 * beta / 3
        events = terms.sides * terms.n / each
        half = max(1, ceil(ceil(log(events)) / 2))
        points = max(terms.bits) * _LN2
        return 2 * ceil(half + (points + log(events / (2 * half)) + 2) / eta)

    return _with_test(terms, account, size)


def _composed(terms: Terms) -> Account:
    """Of as many choices as there are sides, of scores that a record moves by -1, 0 or 1."""
    return Account(terms.eta(terms.sides, reach=2), "composition")


def _with_test(
    terms: Terms, account: Callable[[Terms], Account], size: Callable[[float, float], int]
) -> SidesPlan:  # fmt: skip
    """A test and the choices after it, which share epsilon so that the bound is about the least: theorem 1.

    For that eta is taken as proportional to what the choices get: to account for each share takes 0.2 s.
    """
    beta = terms.beta / 2
    whole = account(terms).eta
    shares = [2.0**-k for k in range(3, 11)]
    share = min(shares, key=lambda part: _bound(terms, size(whole * (1 - part), beta), _noise(terms, part, beta)))
    rest = replace(terms, epsilon=down(lower(terms.epsilon) - Fraction(terms.epsilon * share)))
    eta, theorem = account(rest)
    noise, points = _noise(terms, share, beta), size(eta, beta)
    test = EnoughTest(laplace_plan(noise.scale), terms.sides * points + noise.slack)
    guarantee = terms.promise_of(terms.sides, eta, reach=2, test=terms.epsilon * share)
    return SidesPlan(test, points, eta, theorem, guarantee, _bound(terms, points, noise))


class _Noise(NamedTuple):
    """Of a test: its scale, and what it exceeds with probability beta at most."""

    scale: float
    slack: int


def _noise(terms: Terms, share: float, beta: float) -> _Noise:
    scale = scale_in_range(up(1 / Fraction(terms.epsilon * share)), "1 / epsilon")  # the share is a power of two: exact
    return _Noise(scale, max(0, ceil(scale * log(1 / ((1 + exp(-1 / scale)) * beta)))))


def _bound(terms: Terms, size: int, noise: _Noise) -> float:
    return float(terms.sides * size + 2 * noise.slack)


def plan_class(terms: Terms) -> ClassPlan:
    """all_boxes.md, theorems 2 and 3."""
    eta = terms.eta(1)
    bound = (log(class_size(terms.bits)) - log(terms.beta)) / eta
    return ClassPlan(eta, terms.promise_of(1, eta), bound)


def class_refusal(terms: Terms) -> str:
    """Why choosing among all boxes is too much work; empty if it is not."""
    d = len(terms.bits)
    if d > 2:
        return f"d={d} columns: must be 1 or 2"
    if max(terms.bits) > 64:
        return f"domain_bits={max(terms.bits)}: must be at most 64"
    if (work := work_of(terms.n, terms.bits)) > MOST_WORK:
        return (
            f"n={terms.n:,}, d={d}: would take about {10 * work / MOST_WORK:,.0f} s: must be at most 10 s; "
            "method='peel' takes milliseconds"
        )
    if plan_class(terms).eta * terms.n > MOST_EXPONENT:
        return f"epsilon={terms.epsilon!r}, n={terms.n:,}: must be such that epsilon n is at most 2^48"
    return ""


def side_refusal(terms: Terms) -> str:
    if max(terms.bits) > 64:
        return f"domain_bits={max(terms.bits)}: must be at most 64"
    return ""


class Found(NamedTuple):
    """The method that is taken, and its plan."""

    method: str
    plan: SidesPlan | ClassPlan


METHODS = ("auto", "peel", "interior-point", "exponential")


def choose_plan(method: str, terms: Terms) -> Found:
    """The plan of a method, or for "auto" of the one that promises the fewest errors; ValueError if it is too much."""
    refusals = {"exponential": class_refusal(terms), "peel": side_refusal(terms), "interior-point": side_refusal(terms)}
    plans: dict[str, Callable[[Terms], SidesPlan | ClassPlan]] = {
        "peel": plan_peel, "interior-point": plan_interior, "exponential": plan_class,
    }  # fmt: skip
    if method != "auto":
        if refusals[method]:
            raise ValueError(f"method={method!r}, {refusals[method]}")
        return Found(method, plans[method](terms))
    if not refusals["exponential"] and (best := plan_class(terms)).bound <= _least_of_sides(terms):
        return Found("exponential", best)  # without accounting for the others, which takes a second
    found = []
    for name, plan in plans.items():
        try:
            found += [Found(name, plan(terms))] if not refusals[name] else []
        except ValueError as error:  # an epsilon for which this method has no noise
            refusals[name] = str(error)
    if not found:
        raise ValueError(refusals["peel"])
    return min(found, key=lambda one: one.plan.bound)


def _least_of_sides(terms: Terms) -> float:
    """What a choice for each side promises at best: if each of them could spend everything."""
    return terms.sides * max(terms.bits) * _LN2 / terms.eta(1, reach=2)
