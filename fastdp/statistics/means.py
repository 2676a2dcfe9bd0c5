"""Sums, means and variances of a column between declared bounds: statistics.md, theorems 2 to 4."""

from __future__ import annotations

from fractions import Fraction
from math import floor, hypot
from typing import Any

from ..mechanisms.noise import CalibratedNoise
from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..privacy.reservations import Payers
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.rehearsal import GIVEN
from ..support import parameters
from ..support.boundary import boundary
from ..support.parameters import Missing
from ..support.progress import Progress, one_pass
from .clamped import ClampedColumn, Grid, Sums, noise_bits, within_int64
from .noise import deviation_of, integer_noise_for
from .results import Number

_SQUARE_BITS = 26  # of the integers that are squared
_SHARE_BITS = 30  # of what one record adds to a sum of squared deviations


@boundary
def sum(
    values: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Number:
    """Release the sum of a column of numbers, each clamped to the bounds.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The numbers.
    bounds : pair of numbers
        The lower and the upper bound; numbers beyond them count as them. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (for one number, where epsilon is
        large), or where the budget adds up rhos.
    missing : {"raise", "skip"}
        What becomes of missing entries, NaN, and objects that are no numbers: a DomainError, or they are left out.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Number
        The sum: an int of integers between integer bounds, which are summed exactly.

    Raises
    ------
    ValueError
        For parameters and types, before anything is charged.
    DomainError
        On missing entries, unless they are skipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 2
    Accuracy     noise of scale (high - low) / epsilon under replace-one, max(|low|, |high|) / epsilon under add-remove
    Cost         one pass over the numbers at the memory's speed

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> hours = np.random.default_rng(0).integers(10, 60, size=10_000)
    >>> total = statistics.sum(hours, bounds=(0, 80), epsilon=1.0)
    >>> bool(abs(int(total) - hours.sum()) < 2000)
    True
    """
    column = ClampedColumn(values, missing, parameters.neighbors(neighbors))
    epsilon = parameters.epsilon(epsilon)
    grid = Grid.of(bounds, column.kind, column.bits(epsilon), from_zero=not column.knows_size)
    ends = abs(grid.first), abs(grid.first + grid.last)
    moved = grid.last if column.knows_size else max(*ends, grid.last if neighbors == "replace-one" else 0)
    payers = charged_here(budget)
    noise = integer_noise_for(1, moved, moved**2, epsilon, delta, neighbors, payers)
    with ChargedKeys("sum", noise.guarantee, _row(noise, bounds), payers, rng) as keys, one_pass(progress, "adding"):
        sums = keys.reads(column, GIVEN).sums(grid)
        exact = sums.total if column.knows_size else within_int64(grid.first * sums.present + sums.total)
        exact = keys.reads(exact, noise.plan)
        noisy = exact + int(integer_noise(noise.plan, keys.take(), 1)[0])
    units = noisy + (grid.first * column.n if column.knows_size else 0)
    value = units if grid.integers else float(units * Fraction(grid.unit))
    return Number(value, deviation_of(noise) * grid.unit, keys.stating(noise.guarantee), "sum")


@boundary
def mean(
    values: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Number:
    """Release the mean of a column of numbers, each clamped to the bounds.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The numbers.
    bounds : pair of numbers
        The lower and the upper bound; numbers beyond them count as them. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (for one number, where epsilon is
        large), or where the budget adds up rhos.
    missing : {"raise", "skip"}
        What becomes of missing entries, NaN, and objects that are no numbers: a DomainError, or they are left out; how
        many numbers there are is private then.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Number
        The mean, between the bounds.

    Raises
    ------
    ValueError
        For parameters and types, before anything is charged.
    DomainError
        On missing entries, unless they are skipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 3
    Accuracy     noise of scale (high - low) / (epsilon n); where n is private, of about that, as the distances from
                 either bound are summed and both sums together cost what one of them does
    Cost         one pass over the numbers at the memory's speed

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> incomes = np.random.default_rng(0).lognormal(10, 0.5, size=10_000)
    >>> mean = statistics.mean(incomes, bounds=(0, 100_000), epsilon=1.0)
    >>> bool(abs(float(mean) - incomes.mean()) < 200), mean.deviation < 20
    (True, True)
    """
    column = ClampedColumn(values, missing, parameters.neighbors(neighbors))
    epsilon = parameters.epsilon(epsilon)
    grid = Grid.of(bounds, column.kind, column.bits(epsilon))
    payers = charged_here(budget)
    released = _Share(column, grid.last, epsilon, delta, neighbors, payers)
    row = _row(released.noise, bounds)
    with ChargedKeys("mean", released.noise.guarantee, row, payers, rng) as keys, one_pass(progress, "adding"):
        sums = keys.reads(column, GIVEN).sums(grid)
        share, deviation = released.draw(released.parts(sums.total, sums.present), keys)
    value = grid.value(share * grid.last)
    return Number(value, deviation * grid.last * grid.unit, keys.stating(released.noise.guarantee), "mean")


@boundary
def variance(
    values: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Number:
    """Release the variance of a column of numbers, each clamped to the bounds: the mean squared deviation from their
    mean, as `numpy.var` has it.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The numbers.
    bounds : pair of numbers
        The lower and the upper bound; numbers beyond them count as them. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (for one number, where epsilon is
        large), or where the budget adds up rhos.
    missing : {"raise", "skip"}
        What becomes of missing entries, NaN, and objects that are no numbers: a DomainError, or they are left out; how
        many numbers there are is private then.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Number
        The variance, from 0 to a quarter of (high - low)^2.

    Raises
    ------
    ValueError
        For parameters and types, before anything is charged.
    DomainError
        On missing entries, unless they are skipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 4
    Accuracy     noise of scale (high - low)^2 / (epsilon n), and about that where n is private
    Cost         one pass over the numbers at the memory's speed

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> heights = np.random.default_rng(0).normal(170, 10, size=10_000)
    >>> variance = statistics.variance(heights, bounds=(100, 250), epsilon=1.0)
    >>> abs(float(variance) - 100) < 20
    True
    """
    column = ClampedColumn(values, missing, parameters.neighbors(neighbors))
    epsilon = parameters.epsilon(epsilon)
    grid = Grid.of(bounds, column.kind, column.bits(epsilon).at_most(_SQUARE_BITS))
    square, most = Fraction(grid.last) ** 2, min(_SHARE_BITS, noise_bits(epsilon) - 1)
    finer = Fraction(2) ** (most - square.numerator.bit_length())  # so that one record adds at most about 2^most
    if column.knows_size:
        square = square * (column.n - 1) / column.n
    payers = charged_here(budget)
    released = _Share(column, int(square * finer) + 1, epsilon, delta, neighbors, payers)
    row = _row(released.noise, bounds)
    with ChargedKeys("variance", released.noise.guarantee, row, payers, rng) as keys, one_pass(progress, "adding"):
        sums = keys.reads(column, GIVEN).squares(grid)
        parts = released.parts(_squared_deviations(sums, finer), sums.present)
        share, deviation = released.draw(parts, keys, most=Fraction(1, 4))
    unit = Fraction(grid.unit) ** 2 * released.last / finer
    return Number(float(share * unit), deviation * float(unit), keys.stating(released.noise.guarantee), "variance")


def _squared_deviations(sums: Sums, finer: Fraction) -> int:
    """The sum of squared deviations from the mean, in units that are so much finer, rounded down."""
    if not sums.present:
        return 0
    return floor((sums.present * sums.squares - sums.total**2) * finer / sums.present)


class _Share:
    """A sum to which no record adds more than `last`, as a share of the most that it could be: n times `last`.

    Where n is private, what is missing to the most is released as well: one record moves both by `last` together.
    """

    def __init__(
        self, column: ClampedColumn, last: int, epsilon: float, delta: Any, neighbors: Neighbors, payers: Payers
    ) -> None:
        self.last = last
        self._n = column.n if column.knows_size else None
        entries = 1 if column.knows_size else 2
        twice = 2 if neighbors == "replace-one" and not column.knows_size else 1
        self.noise = integer_noise_for(entries, twice * last, twice * last**2, epsilon, delta, neighbors, payers)

    def parts(self, total: int, present: int) -> list[int]:
        """What meets the noise: the sum, and where n is private what is missing to the most."""
        if self._n is not None:
            return [total]
        return [within_int64(total), within_int64(present * self.last - total)]

    def draw(self, parts: list[int], keys: ChargedKeys, most: Fraction = Fraction(1)) -> tuple[Fraction, float]:
        """The share with noise, from 0 to `most`, and its standard deviation."""
        parts = keys.reads(parts, self.noise.plan)
        drawn = integer_noise(self.noise.plan, keys.take(), len(parts)).tolist()
        noisy = [part + draw for part, draw in zip(parts, drawn, strict=True)]
        everything = noisy[0] + noisy[1] if self._n is None else self._n * self.last
        everything = max(everything, self.last)  # at least one record
        share = min(Fraction(max(noisy[0], 0), everything), most)
        spread = hypot(1 - float(share), float(share)) if self._n is None else 1.0
        return share, deviation_of(self.noise) * spread / everything


def _row(noise: CalibratedNoise, bounds: Any) -> dict[str, Any]:
    low, high = bounds
    return {**noise.parameters, "low": float(low), "high": float(high)}
