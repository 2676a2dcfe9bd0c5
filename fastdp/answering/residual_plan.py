"""Which residual of the tables gets how much noise: the plan, from public numbers alone, and what it guarantees.

residual_prices.py states what a residual costs; here the noise is shared out so that the tables' variance is small, and
scaled to the guarantee. residual_planning.md has the proofs and how the shares are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import ceil, floor, inf, log2, prod, sqrt
from typing import Any

import numpy as np

from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_ratio
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors
from ..randomness.noise_plans import scale_in_range
from ..support.rounding import down, lower
from ..support.shown import shown
from .least_squares_fit import Axes, LeastSquares
from .residual_prices import Floats, WorstPair, worst_pair

MOST_ATTRIBUTES = 6  # of a table: its residual's price is looked at for all subsets of them
MOST_RESIDUALS = 1 << 17

_FINE = 4096.0  # grid units that the least noise should measure
_FINEST = 18  # bits of the grid below 1: counts of 2^43 records stay within int64
_STEPS = 64  # to a factor of two: shares are rounded to so many, so that laws of noise are few
_SMOOTHING = 2.5  # of calibration.md, theorem 4: the variance s^2 in grid units
_THETA = 1e-21  # more than 2.001 exp(-2 pi^2 s^2)
_PAIRS, _FEW_PAIRS = 24, 6  # of neighbours that shares are found for, where the worst is found fast, and where not
_ROUNDS = 60  # for the least largest variance
_UP = 1 + 2.0**-40  # more than the roundings of a few operations


@dataclass(frozen=True, eq=False)
class ResidualPlan:
    """The noise of every residual, and its guarantee."""

    sets: tuple[Axes, ...]  # whose residuals are released
    sigmas: tuple[float, ...]  # on the grid, of every cell of the noisy table whose residual it is; they do not fall
    bits: int  # the grid is 2^-bits
    mu: float  # what all of them cost, in Gaussian DP
    guarantee: Guarantee
    variances: dict[Axes, Floats]  # in records squared, of the components of `LeastSquares`, by shape


def can_plan(least_squares: LeastSquares) -> bool:
    """Whether the tables are small and few enough to plan their residuals, and there are any."""
    widest, sizes = max(map(len, least_squares.workload.positions)), least_squares.sizes
    some = any(sizes[p] > 1 for A in least_squares.workload.positions for p in A)
    return some and widest <= MOST_ATTRIBUTES and len(least_squares.place) <= MOST_RESIDUALS


@lru_cache(16)
def plan_residuals(
    least_squares: LeastSquares, epsilon: float, delta: float, neighbors: Neighbors, objective: Any = "total"
) -> ResidualPlan:
    """The plan with this guarantee, checked parameters; objective "total", "maximum" or a weight for each table."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST:
            raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g} for Gaussian noise")
    if epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g}")
    mu = down(1 / lower(gaussian_ratio(down(lower(epsilon)), down(lower(delta)))))
    plan = residuals_within(least_squares, mu, neighbors, objective)
    return replace(plan, guarantee=AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), plan.guarantee))


def residuals_within(
    least_squares: LeastSquares, mu: float, neighbors: Neighbors, objective: Any = "total"
) -> ResidualPlan:
    """The plan that is mu-Gaussian DP: what `plan_residuals` makes of what epsilon and delta allow."""
    sizes, known = least_squares.sizes, neighbors == "replace-one"
    sets, shares = _sets(least_squares, known), _shares(least_squares, known, objective)
    room = mu - 4 * _THETA * sum(prod(sizes[p] for p in S) for S in sets)
    price = _worst(least_squares, known, _FINEST).bound(1 / shares) * shares.min() * 4.0**-_FINEST
    smallest = sqrt(price) / room  # about, in records
    bits = _bits(smallest, smallest * sqrt(shares.max() / shares.min()), max(prod(sizes[p] for p in S) for S in sets))
    worst = _worst(least_squares, known, bits)
    scale = sqrt(worst.bound(1 / shares)) / room * (1 + 1e-12)
    sigmas = np.sqrt(shares * scale**2 + _SMOOTHING)
    for sigma in (sigmas.min(), sigmas.max()):
        scale_in_range(float(sigma), "sigma")
    paid = sqrt(worst.bound(1 / (sigmas**2 - _SMOOTHING))) * _UP + (mu - room)
    if not paid <= mu:
        raise AssertionError("the noise has been rounded the wrong way")
    rho = worst.bound(1 / sigmas**2) / 2 * _UP
    made = ZCDP(rho, mu=paid, neighbors=neighbors)
    variances = _by_shape(least_squares, dict(zip(sets, (sigmas**2 * 4.0**-bits).tolist(), strict=True)))
    order = np.argsort(sigmas, kind="stable").tolist()  # residuals with the same noise one after the other
    return ResidualPlan(tuple(sets[i] for i in order), tuple(sigmas[order].tolist()), bits, paid, made, variances)


def _sets(least_squares: LeastSquares, known: bool) -> list[Axes]:
    """The residuals that are released."""
    sizes = least_squares.sizes
    return [S for S in least_squares.place if all(sizes[p] > 1 for p in S) and (S or not known)]


@lru_cache(8)
def _worst(least_squares: LeastSquares, known: bool, bits: int) -> WorstPair:
    """Their prices on a grid: for searches over epsilon, which does not change them."""
    return worst_pair(_sets(least_squares, known), least_squares.sizes, bits, known=known)


@lru_cache(8)
def _shares(least_squares: LeastSquares, known: bool, objective: Any) -> Floats:
    """Their shares of the noise, which no epsilon changes either."""
    worst = _worst(least_squares, known, _FINEST)
    return _Shares(least_squares, _sets(least_squares, known), worst).best(objective)


def _bits(smallest: float, largest: float, cells: int) -> int:
    """The grid: fine beside the noise, and so fine that rounding a residual's price to it costs little."""
    wanted = max(ceil(log2(_FINE / smallest)), ceil(log2(cells) / 2) + 7)
    return max(0, min(wanted, _FINEST, floor(39 - log2(largest))))


def _by_shape(least_squares: LeastSquares, variances: Mapping[Axes, float]) -> dict[Axes, Floats]:
    """Of all components, by shape; 0 where nothing is drawn."""
    return {shape: np.array([variances.get(S, 0.0) for S in group]) for shape, group in least_squares.subsets.items()}


class _Shares:
    """How the noise is shared out: variances of the residuals, up to a factor, for which the objective is small.

    The variance of a cell of table A is a sum of `part` times the variance of S, over the S in A. For fixed weights of
    tables and a fixed price of each S, shares sqrt(price / weight) are the best (Cauchy-Schwarz). The worst pair of
    neighbours depends on the shares: prices are averages over pairs, each the worst for the average before it (Frank
    and Wolfe's method). Weights for the least largest variance are found by multiplicative weights. What comes out is
    judged by its own worst pair.
    """

    def __init__(self, least_squares: LeastSquares, sets: Sequence[Axes], worst: WorstPair) -> None:
        self.worst, sizes = worst, least_squares.sizes
        self.cells = np.array([float(prod(shape)) for shape in least_squares.workload.shapes])
        self.free = np.array([prod(1 - 1 / sizes[p] for p in S) for S in sets])
        place = {S: i for i, S in enumerate(sets)}
        found: list[tuple[int, int, float]] = []
        for i, A in enumerate(least_squares.workload.positions):
            for k in range(len(A) + 1):
                for S in combinations(A, k):
                    if (at := place.get(S)) is not None:
                        found.append((i, at, prod(sizes[p] for p in A if p not in S)))
        table, residual, rest = map(np.array, zip(*found, strict=True))
        self.table, self.residual, self.part = table, residual, self.free[residual] / rest.astype(np.float64) ** 2

    def best(self, objective: Any) -> Floats:
        """Shares for "total", "maximum" or positive weights of the tables."""
        largest = isinstance(objective, str) and objective == "maximum"
        weights = self.cells if isinstance(objective, str) else self.cells * np.asarray(objective, np.float64)
        prices, found, least = self.worst.prices(self.free) if self.worst.fixed else self.free, self.free, inf
        for i in range(1 if self.worst.fixed else _PAIRS if self.worst.quick else _FEW_PAIRS):
            shares = self._least_largest(prices) if largest else self._least_total(weights, prices)
            variances = self.variances(shares)
            value = float(variances.max() if largest else weights @ variances) * self.worst.bound(1 / shares)
            if value < least:
                found, least = shares, value
            pair = self.worst.prices(1 / shares)
            scale = float(np.sum(pair / shares) / np.sum(prices / shares)) if i == 0 else 1.0
            prices = (prices * scale * (i + 1) + pair) / (i + 2)
        rounded: Floats = np.exp2(np.rint(np.log2(found) * _STEPS) / _STEPS)
        return rounded

    def variances(self, shares: Floats) -> Floats:
        """Of a cell of each table."""
        of_tables = np.bincount(self.table, self.part * shares[self.residual], self.cells.size)
        return np.asarray(of_tables, np.float64)

    def _least_total(self, weights: Floats, prices: Floats) -> Floats:
        asked = np.bincount(self.residual, self.part * weights[self.table], self.free.size)
        return np.sqrt(prices / asked)

    def _least_largest(self, prices: Floats) -> Floats:
        weights, found, least = np.ones(self.cells.size), None, inf
        for _ in range(_ROUNDS):
            shares = self._least_total(weights, prices)
            variances = self.variances(shares)
            value = float(variances.max() * (prices / shares).sum())
            if value < least:
                found, least = shares, value
            weights = weights * (variances / variances.max()) ** 0.5
            weights /= weights.max()
        assert found is not None
        return found
