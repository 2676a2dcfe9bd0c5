"""What is public about the learning of a box, and what the methods share that choose each side by itself.

boxes.md has the theorems. An error bound counts records; it holds with probability 1 - beta if some box is right about
all n of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, log
from typing import NamedTuple, TypeVar

from ..kernels.layout import LN2
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Key
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import LaplacePlan, laplace_plan, scale_in_range
from ..support.progress import Report
from ..support.rounding import down, lower, up
from .extremes import Numbers
from .privacy_parameters import PrivacyParameters

Sides = list[tuple[int, int]] | None  # the first and the last position in each column; None: nothing is in the box


@dataclass(frozen=True)
class BoxProblem:
    """n records of columns of so many bits; n stands for their number where that is private."""

    n: int
    bits: tuple[int, ...]
    privacy: PrivacyParameters

    @property
    def sides(self) -> int:
        return 2 * len(self.bits)


class BoxKeys(NamedTuple):
    """Of the choices, of the test for positives, and of the records, whose keys separate those at one position."""

    choices: Key
    test: Key
    records: Key

    @classmethod
    def take(cls, keys: ChargedKeys) -> BoxKeys:
        return cls(keys.take(), keys.take(), keys.take())


@dataclass(frozen=True)
class EnoughTest:
    """Whether there are enough positives: a noisy count of them, against a threshold."""

    noise: LaplacePlan
    threshold: int


@dataclass(frozen=True)
class SideParameters(ABC):
    """One choice for each side, among the `slice` most extreme positives, after a test for their number.

    candidates    of a guard: "false", and the sides of the first i columns, i = 0 .. d
    """

    test: EnoughTest
    slice: int
    eta: float
    account: str
    guarantee: Guarantee
    bound: float
    candidates: int

    def learn(self, numbers: Numbers, keys: ChargedKeys, report: Report) -> Sides:
        of_box = BoxKeys.take(keys)
        enough = numbers.positives + int(integer_noise(self.test.noise, of_box.test, 1)[0])
        if enough < self.test.threshold:
            return None
        sides = []
        for i in range(numbers.d):
            report(i, numbers.d, f"column {i + 1} of {numbers.d}")
            sides.append(self.choose_sides(numbers, i, of_box))
        report(numbers.d, numbers.d, "")
        return None if any(low > high for low, high in sides) else sides

    @abstractmethod
    def choose_sides(self, numbers: Numbers, i: int, keys: BoxKeys) -> tuple[int, int]:
        """The first and the last position in column i."""


class BoxAccount(NamedTuple):
    """The weight of a score in each choice, and the theorem that allows it."""

    eta: float
    theorem: str


Parameters = TypeVar("Parameters", bound=SideParameters)


def by_composition(problem: BoxProblem) -> BoxAccount:
    """Of as many choices as there are sides, of scores that a record changes by -1, 0 or 1."""
    return BoxAccount(problem.privacy.eta(problem.sides, score_range=2), "composition")


def with_test(
    kind: type[Parameters],
    problem: BoxProblem,
    account: Callable[[BoxProblem], BoxAccount],
    size: Callable[[float, float], int],
) -> Parameters:
    """A test and the choices after it, which share epsilon so that the bound is about the least: theorem 1.

    For that eta is taken as proportional to what the choices get: to account for each share takes 0.2 s.
    """
    privacy = problem.privacy
    beta = privacy.beta / 2
    undivided = account(problem).eta
    shares = [2.0**-k for k in range(3, 11)]

    def bound_at(part: float) -> float:
        return _bound(problem, size(undivided * (1 - part), beta), _TestNoise.of(privacy.epsilon, part, beta))

    share = min(shares, key=bound_at)
    rest = down(lower(privacy.epsilon) - Fraction(privacy.epsilon * share))
    eta, theorem = account(replace(problem, privacy=replace(privacy, epsilon=rest)))
    noise, points = _TestNoise.of(privacy.epsilon, share, beta), size(eta, beta)
    return kind(
        test=EnoughTest(laplace_plan(noise.scale), problem.sides * points + noise.slack),
        slice=points,
        eta=eta,
        account=theorem,
        guarantee=privacy.guarantee_of(problem.sides, eta, score_range=2, test=privacy.epsilon * share),
        bound=_bound(problem, points, noise),
        candidates=len(problem.bits) + 2,
    )


class _TestNoise(NamedTuple):
    """The noise of a test: its scale, and what it exceeds with probability beta at most."""

    scale: float
    slack: int

    @classmethod
    def of(cls, epsilon: float, share: float, beta: float) -> _TestNoise:
        scale = scale_in_range(up(1 / Fraction(epsilon * share)), "1 / epsilon")  # the share is a power of two: exact
        return cls(scale, max(0, ceil(scale * log(1 / ((1 + exp(-1 / scale)) * beta)))))


def _bound(problem: BoxProblem, size: int, noise: _TestNoise) -> float:
    return float(problem.sides * size + 2 * noise.slack)


def side_refusal(problem: BoxProblem) -> str:
    """Why positions cannot be chosen for each side; empty if they can."""
    if max(problem.bits) > 64:
        return f"domain_bits={max(problem.bits)}: must be at most 64"
    return ""


def least_of_sides(problem: BoxProblem) -> float:
    """The least error bound of a choice for each side: if each of them could use all of epsilon and delta."""
    return problem.sides * max(problem.bits) * LN2 / problem.privacy.eta(1, score_range=2)
