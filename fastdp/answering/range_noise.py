"""What ranges are released with: noise on every node of a tree over the bins, or on the running sums of all bins.

release_ranges.md, theorems 1 and 2, has the prices; range_tree.py the shape of the tree and its fit, running_sums.py
the noise of running sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import log, log1p, sqrt
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..privacy.calibration import MAX_EPSILON, gaussian_mu, gaussian_ratio, gaussian_sigma
from ..privacy.conversions import rho_of_pure
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.ledger import Charge
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import add_noise
from ..randomness.noise_plans import LaplacePlan, laplace_plan, laplace_variance, scale_in_range
from ..support import rounding
from ..support.rounding import down, lower, sixty_digits, up
from ..support.shown import shown
from .range_tree import SHARES, RangeTree, tree_for
from .running_sums import CorrelatedNoise, SumsPlan, column_square, mixture_for, pair_square, plan_sums

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class RangeNoise(Protocol):
    """How the counts of all bins are measured: what is drawn, what it guarantees, and how large it is."""

    @property
    def method(self) -> str:
        """What the release calls this."""

    @property
    def guarantee(self) -> Guarantee:
        """What a measurement guarantees."""

    @property
    def typical(self) -> float:
        """The root of the mean variance of the counts of ranges from the first bins, before the fit, in records."""

    def measure(self, counts: Counts, keys: ChargedKeys) -> Any:
        """The counts with noise."""

    def fit(self, noisy: Any, n: int | None) -> Floats:
        """Counts >= 0 of all bins; n the number of records where it is public."""

    def deviation(self, weights: Floats) -> float:
        """The standard deviation of a weighted sum of all counts, before the fit."""

    def largest(self, beta: float) -> float:
        """What no range from the first bins is off by before the fit, but with probability beta: theorem 3."""


@dataclass(frozen=True)
class Digits:
    """Discrete Laplace noise on the counts of all nodes of a tree, level by level."""

    tree: RangeTree
    plans: tuple[LaplacePlan, ...]
    guarantee: Guarantee

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: float, neighbors: Neighbors) -> Digits:
        """The plan with this epsilon, which has been checked."""
        known = neighbors == "replace-one"
        tree = tree_for(sizes, known=known)
        changed = 2 if known else 1  # nodes of a level whose counts one record changes, each by 1
        scales = [up(Fraction(changed * SHARES, share) / lower(epsilon)) for share in tree.shares]
        plans = tuple(laplace_plan(scale_in_range(scale, "levels / epsilon")) for scale in scales)
        rho = up(sum(changed * Fraction(rho_of_pure(up(1 / Fraction(plan.scale)))) for plan in plans))
        both = AllOf(PureDP(epsilon, neighbors=neighbors), ZCDP(rho, neighbors=neighbors))
        return cls(tree, plans, both)

    @property
    def method(self) -> str:
        return "digits"

    @property
    def typical(self) -> float:
        return sqrt(self.tree.mean_variance(self._variances))

    def measure(self, counts: Counts, keys: ChargedKeys) -> list[Counts]:
        levels = self.tree.levels(counts)
        levels = [keys.reads(level, plan) for level, plan in zip(levels, self.plans, strict=True)]
        for level, plan in zip(levels, self.plans, strict=True):
            add_noise(plan, None, keys.take(), level, level)
        return levels

    def fit(self, noisy: list[Counts], n: int | None) -> Floats:
        return self.tree.fit(noisy, self._variances, n)

    def deviation(self, weights: Floats) -> float:
        return self.tree.deviation(weights, self._variances)

    def largest(self, beta: float) -> float:
        ends = log(2 * self.tree.inside.size / beta)
        variance = self.tree.worst_variance([2 * plan.scale**2 for plan in self.plans])
        return sqrt(2 * variance * ends) + max(plan.scale for plan in self.plans) * ends

    @property
    def _variances(self) -> list[float]:
        return [laplace_variance(plan.scale) for plan in self.plans]


@dataclass(frozen=True)
class SquareRoot:
    """Discrete Gaussian noise on the running sums of all bins of one attribute, correlated by the square root of their
    matrix."""

    plan: SumsPlan
    known: bool
    guarantee: Guarantee

    @classmethod
    @sixty_digits
    def of(cls, bins: int, epsilon: float, delta: float, neighbors: Neighbors) -> SquareRoot:
        """The least noise with this guarantee: theorem 2."""
        if epsilon > MAX_EPSILON:
            raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g} for Gaussian noise")
        known, mixture = neighbors == "replace-one", mixture_for(bins)
        square = pair_square(mixture, bins) if known else column_square(mixture, bins)
        stretch = rounding.sqrt(square) * (1 + Decimal("1e-40"))
        asked = down(lower(epsilon)), down(lower(delta))
        rho = 1 / (2 * gaussian_ratio(*asked) ** 2)
        while True:
            try:
                plan = plan_sums(bins, rho=rho, stretch=stretch)
            except ValueError:
                raise ValueError(f"epsilon={shown(epsilon)}: too small for {bins:,} bins and Gaussian noise") from None
            least = gaussian_sigma(plan.distance, epsilon=asked[0], delta=asked[1], dimension=bins, adaptive=True)
            if plan.noise.sigma >= least:
                break
            rho *= (plan.noise.sigma / least) ** 2 * (1 - 1e-9)
        if plan.bits < 0:
            raise ValueError(f"epsilon={shown(epsilon)}: too small for {bins:,} bins and Gaussian noise")
        paid = up(Fraction(plan.distance) ** 2 / Fraction(plan.noise.sigma) ** 2 / 2)
        mu = gaussian_mu(plan.distance, plan.noise.sigma, bins)
        both = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(paid, mu=mu, neighbors=neighbors))
        return cls(plan, known, both)

    @property
    def method(self) -> str:
        return "square-root"

    @property
    def typical(self) -> float:
        return float(np.sqrt(np.mean(self._rows)))

    def measure(self, counts: Counts, keys: ChargedKeys) -> Floats:
        counts = keys.reads(counts)
        noise = CorrelatedNoise(self.plan, keys.take()).take(counts.size)[:, 0]
        sums = np.cumsum(counts)
        if int(sums[-1]).bit_length() + self.plan.bits > 61:  # more than 2^37 records
            whole = (sums.astype(object) << self.plan.bits) + noise.astype(object)
            return np.array([total / 2**self.plan.bits for total in whole.tolist()])
        return np.asarray(((sums << self.plan.bits) + noise) * self.plan.grid, np.float64)

    def fit(self, noisy: Floats, n: int | None) -> Floats:
        from ..kernels.isotonic import fit_increasing_into

        sums = noisy.copy()
        if n is not None:
            np.minimum(sums, n, out=sums)
            sums[-1] = n
        fit_increasing_into(sums, np.empty(sums.size, np.int64), sums)
        np.maximum(sums, 0.0, out=sums)
        sums[-1] = max(sums[-1], 1.0)
        return np.diff(sums, prepend=0.0)

    def deviation(self, weights: Floats) -> float:
        steps = weights - np.append(weights[1:], 0.0)
        if self.known:
            steps[-1] = 0.0
        total = np.zeros(weights.size)
        for place in np.flatnonzero(steps).tolist():  # two for an interval
            total[: place + 1] += steps[place] * self._row[place::-1]
        return float(np.sqrt(total @ total)) * self._unit

    def largest(self, beta: float) -> float:
        rounding = float(self.plan.mixture.rounding) * self.plan.grid
        return sqrt(2 * float(self._rows.max()) * log(2 * self._row.size / beta)) + rounding

    @property
    def _unit(self) -> float:
        return self.plan.noise.sigma * self.plan.grid

    @cached_property
    def _row(self) -> Floats:
        """The last row of L, from its end."""
        row, k = np.zeros(self.plan.steps), np.arange(self.plan.steps - 1, dtype=np.float64)
        for size, exponent in zip(self.plan.mixture.amplitudes, self.plan.mixture.exponents, strict=True):
            row[1:] += float(size) * np.exp(k * log1p(-(2.0**-exponent)))
        row[0] = 1.0
        return row

    @property
    def _rows(self) -> Floats:
        """The variance of each running sum, in records."""
        return np.cumsum(self._row**2) * self._unit**2


DIGITS_GAIN = 1.1
"""How much more the fit takes off the noise of digits than off that of running sums: release_ranges.md has figures."""


Sum = Literal["epsilon", "rho", "mu"]
"""What the budgets that pay add up."""


def auto_noise(
    sizes: tuple[int, ...], epsilon: float, delta: float, neighbors: Neighbors, paid_in: Sum = "epsilon"
) -> RangeNoise:
    """What has less noise after its fit, for the same price where budgets add up rho or mu; by public numbers alone."""
    digits = Digits.of(sizes, epsilon, neighbors)
    if not delta or len(sizes) > 1 or epsilon > MAX_EPSILON:
        return digits
    try:
        root = SquareRoot.of(sizes[0], epsilon, delta, neighbors)
    except ValueError:  # so little epsilon or delta that there is no such plan
        return digits
    one, other = (noise.typical * _price(noise.guarantee, paid_in) for noise in (digits, root))
    return digits if one <= DIGITS_GAIN * other else root


def _price(guarantee: Guarantee, paid_in: Sum) -> float:
    """What noise shrinks in proportion to: the root of rho, or mu; 1 where the price is the epsilon that was asked."""
    if paid_in == "epsilon":
        return 1.0
    charge = Charge(guarantee)
    return charge.mu if paid_in == "mu" else sqrt(charge.amounts["rho"])
