"""method="counts" of `learn_conjunction`: a noisy count for each literal of the positives that falsify it.

conjunctions.md, theorems 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log, sqrt
from typing import ClassVar

import numpy as np

from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_sigma
from ..privacy.guarantees import Guarantee, PureDP
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import NoisePlan as NoisePlan
from ..randomness.noise_plans import gaussian_plan, laplace_plan, scale_in_range
from ..support.progress import Report
from ..support.rounding import lower, root_up, up
from .conjunction_parameters import ConjunctionProblem
from .examples import Examples


@dataclass(frozen=True)
class CountsParameters:
    """Noise on how many positives falsify each literal; those at most `threshold` stay."""

    noise: NoisePlan
    threshold: int
    guarantee: Guarantee
    bound: float
    candidates: int  # "false", and from "true" on a prefix for each literal that may stay
    rereads: ClassVar[bool] = False

    def learn(self, examples: Examples, keys: ChargedKeys, report: Report) -> list[int]:
        """The literals that stay, those of the least noisy counts first."""
        report(0, 1, "counts")
        counts = examples.falsified().of_positives
        noisy = counts + integer_noise(self.noise, keys.take(), counts.size)
        report(1, 1, "")
        order: list[int] = np.argsort(noisy, kind="stable").tolist()
        return [literal for literal in order if noisy[literal] <= self.threshold]


@lru_cache(256)
def prepare_counts(problem: ConjunctionProblem) -> CountsParameters:
    """Theorem 2: Laplace noise, or Gaussian noise where a delta makes that the better."""
    privacy = problem.privacy
    sensitivity = problem.d if privacy.neighbors == "add-remove" else 2 * problem.d
    scale = scale_in_range(up(sensitivity / lower(privacy.epsilon)), "2d / epsilon")

    def laplace_tail(events: int) -> float:
        return scale * log(2 * events / ((1 + exp(-1 / scale)) * privacy.beta))

    pure = PureDP(privacy.epsilon, neighbors=privacy.neighbors)
    by_laplace = _counts(problem, laplace_plan(scale), laplace_tail, pure)
    epsilon, delta = privacy.allowance
    if delta < SMALLEST or not SMALLEST <= epsilon <= MAX_EPSILON:
        return by_laplace
    norm = root_up(sensitivity)
    sigma = gaussian_sigma(norm, epsilon=epsilon, delta=delta, dimension=2 * problem.d)

    def gaussian_tail(events: int) -> float:
        return sigma * sqrt(2 * log(2 * events / privacy.beta))

    noise = gaussian_plan(scale_in_range(sigma, "sigma"))
    by_gaussian = _counts(problem, noise, gaussian_tail, privacy.guarantee)
    return min(by_laplace, by_gaussian, key=lambda plan: plan.bound)


def _counts(
    problem: ConjunctionProblem, noise: NoisePlan, tail: Callable[[int], float], guarantee: Guarantee
) -> CountsParameters:
    """`tail(m)`: none of m draws reaches it, but with probability beta / 2."""
    threshold = max(0, ceil(tail(problem.k)) - 1)
    kept = threshold + max(0, ceil(tail(2 * problem.d)) - 1)  # what stays was falsified by no more
    return CountsParameters(noise, threshold, guarantee, float(max(problem.d, 2) * kept), 2 * problem.d + 2)
