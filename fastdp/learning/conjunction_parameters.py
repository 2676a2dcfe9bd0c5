"""How each learner of conjunctions spends its budget, and how many errors it then promises: from public numbers only.

conjunctions.md has the theorems. A bound counts records; it holds with probability 1 - beta if some conjunction of at
most k literals is right about all n of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, log, nextafter, sqrt

from ..mechanisms.noise import Plan as Noise
from ..mechanisms.noise import gaussian_plan, laplace_plan, scale_in_range
from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_sigma
from ..privacy.guarantees import Guarantee, Neighbors, PureDP
from ..privacy.removal import lemma_eta
from ..support.rounding import lower, up
from .exhaustive import conjunctions
from .privacy_parameters import Spending


@dataclass(frozen=True)
class Terms(Spending):
    """What is public: n is a number that stands for that of the records where that is private."""

    n: int
    d: int
    k: int
    epsilon: float
    delta: float
    beta: float
    neighbors: Neighbors


@dataclass(frozen=True)
class CountsPlan:
    """Noise on how many positives falsify each literal; those at most `threshold` stay."""

    noise: Noise
    threshold: int
    guarantee: Guarantee
    bound: float


@dataclass(frozen=True)
class ExhaustivePlan:
    """One draw among all conjunctions."""

    eta: float
    guarantee: Guarantee
    bound: float


@dataclass(frozen=True)
class GreedyPlan:
    """So many draws of a literal or of none; eta is that of scores times k."""

    rounds: int
    eta: float
    guarantee: Guarantee
    bound: float


@dataclass(frozen=True)
class PeelPlan:
    """Phases of (threshold, at most so many rounds), the score of stopping a phase, and eta."""

    phases: tuple[tuple[int, int], ...]
    dummy: int
    eta: float
    account: str
    guarantee: Guarantee
    bound: float

    @property
    def rounds(self) -> int:
        return sum(rounds for _, rounds in self.phases)


@lru_cache(256)
def plan_counts(terms: Terms) -> CountsPlan:
    """Theorem 2: Laplace noise, or Gaussian noise where a delta makes that the better."""
    changed = terms.d if terms.neighbors == "add-remove" else 2 * terms.d
    scale = scale_in_range(up(changed / lower(terms.epsilon)), "2d / epsilon")

    def laplace_tail(events: int) -> float:
        return scale * log(2 * events / ((1 + exp(-1 / scale)) * terms.beta))

    pure = PureDP(terms.epsilon, neighbors=terms.neighbors)
    by_laplace = _counts(terms, laplace_plan(scale), laplace_tail, pure)
    epsilon, delta = terms.allowance
    if delta < SMALLEST or not SMALLEST <= epsilon <= MAX_EPSILON:
        return by_laplace
    norm = nextafter(sqrt(changed), inf)
    sigma = gaussian_sigma(norm, epsilon=epsilon, delta=delta, dimension=2 * terms.d)

    def gaussian_tail(events: int) -> float:
        return sigma * sqrt(2 * log(2 * events / terms.beta))

    by_gaussian = _counts(terms, gaussian_plan(scale_in_range(sigma, "sigma")), gaussian_tail, terms.promise)
    return min(by_laplace, by_gaussian, key=lambda plan: plan.bound)


def _counts(terms: Terms, noise: Noise, tail: Callable[[int], float], guarantee: Guarantee) -> CountsPlan:
    """`tail(m)`: none of m draws reaches it, but with probability beta / 2."""
    threshold = max(0, ceil(tail(terms.k)) - 1)
    kept = threshold + max(0, ceil(tail(2 * terms.d)) - 1)  # what stays was falsified by no more
    return CountsPlan(noise, threshold, guarantee, float(max(terms.d, 2) * kept))


def plan_exhaustive(terms: Terms) -> ExhaustivePlan:
    """Theorem 4."""
    eta = terms.eta(1)
    bound = (log(conjunctions(terms.d, terms.k)) - log(terms.beta)) / eta
    return ExhaustivePlan(eta, terms.promise_of(1, eta), bound)


@lru_cache(256)
def plan_greedy(terms: Terms) -> GreedyPlan:
    """Theorem 5, with the number of rounds that promises about the most.

    For that eta is taken as proportional to 1 / sqrt(rounds), or 1 / rounds without a delta: to account for each of
    these numbers of rounds takes 0.2 s.
    """
    first, power = terms.eta(1), 0.5 if terms.delta else 1.0
    rounds = min(_round_numbers(terms), key=lambda rounds: _greedy_bound(terms, rounds, first / rounds**power))
    eta = terms.eta(rounds)
    return GreedyPlan(
        rounds, terms.eta(rounds, unit=terms.k), terms.promise_of(rounds, eta), _greedy_bound(terms, rounds, eta)
    )


def _round_numbers(terms: Terms) -> list[int]:
    all_but_one = max(1.0, terms.k * log(max(terms.n, 2)))  # rounds that leave one negative
    return sorted({max(terms.k, ceil(share * all_but_one)) for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)})


def _greedy_bound(terms: Terms, rounds: int, eta: float) -> float:
    slack = log((2 * terms.d + 1) * rounds / terms.beta) / eta
    return (rounds + terms.k) * slack + terms.n * exp(-rounds / terms.k)


@lru_cache(256)
def plan_peel(terms: Terms) -> PeelPlan:
    """Theorems 6 and 7. The account that allows the largest eta depends on the rounds, and they on eta: upwards."""
    by_lemma = lemma_eta(terms.epsilon, terms.delta, one_signed=True, neighbors=terms.neighbors)
    most = 1
    while True:
        composed = terms.eta(most)
        eta, account = max((by_lemma, "removal lemma"), (composed, "composition"))
        dummy, phases = _schedule(terms, eta)
        if phases[0][0] > 2**62:
            raise ValueError(
                f"epsilon={terms.epsilon!r}, n={terms.n:.3g}: the scores of method='peel' would be {phases[0][0]:.3g}: "
                "must be at most 2^62"
            )
        rounds = sum(of_phase for _, of_phase in phases)
        if rounds <= most:
            bound = float(2 * dummy * (terms.k + rounds))
            return PeelPlan(phases, dummy, eta, account, terms.promise_of(rounds, eta), bound)
        most = rounds


def _schedule(terms: Terms, eta: float) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The least Gamma that is large enough for the rounds that it asks for, and the phases."""

    def enough(dummy: int) -> bool:
        rounds = sum(of_phase for _, of_phase in _phases(terms, dummy))
        return eta * dummy >= log((2 * terms.d + 1) * rounds / terms.beta)

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, _phases(terms, high)


def _phases(terms: Terms, dummy: int) -> tuple[tuple[int, int], ...]:
    """(threshold, at most so many rounds), from the first threshold that is at least n / 2k down to 2 Gamma."""
    count = 1
    while (dummy << count) * 2 * terms.k < terms.n:
        count += 1
    return tuple((dummy << j + 1, -(-terms.k * 2 ** (j + 1) // (2 ** (j + 1) - 1))) for j in range(count - 1, -1, -1))
