"""Count, mean and variance of a column in one release: statistics.md, theorem 7.

Where how many numbers there are is private, three sums that a record divides between them tell all three, for what one
of them costs. Where it is public, two sums do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, hypot, sqrt
from typing import NamedTuple

from ..mechanisms.noise import CalibratedNoise
from ..privacy.guarantees import Neighbors
from .clamped import ClampedColumn, Grid, Sums, noise_bits, within_int64
from .noise import deviation_of

_SQUARE_BITS = 26  # of the integers that are squared
_SHARE_BITS = 30  # of what one record adds to the sums


class Estimate(NamedTuple):
    """A number and the standard deviation of its noise, as the released numbers state it."""

    value: float
    deviation: float


@dataclass(frozen=True)
class MomentSums:
    """Sums of a column's integers, scaled so that noise can be drawn for them.

    grid    the integers; the last one is called w
    finer   a power of two: the units of the sums are squares of the grid's units, over this
    n       how many numbers there are, where that is public
    """

    grid: Grid
    finer: Fraction
    n: int | None

    @classmethod
    def of(cls, column: ClampedColumn, bounds: object, epsilon: float) -> MomentSums:
        """Of a column between bounds; about so large an epsilon is there, which says how fine sums can be."""
        grid = Grid.of(bounds, column.kind, column.bits(epsilon).at_most(_SQUARE_BITS))
        most = min(_SHARE_BITS, noise_bits(epsilon) - 3)
        finer = Fraction(2) ** (most - (grid.last**2).bit_length())
        return cls(grid, finer, column.n if column.knows_size else None)

    @property
    def whole(self) -> Fraction:
        """What one record adds to all sums together; w^2 in their units."""
        return self.grid.last**2 * self.finer

    @property
    def entries(self) -> int:
        """How many sums there are."""
        return 3 if self.n is None else 2

    def moved(self, neighbors: Neighbors) -> tuple[int, int]:
        """The L1 sensitivity of the sums, and the square of the L2 sensitivity."""
        if self.n is not None:
            return floor(self.whole * Fraction(9, 8)) + 2, (floor(self.whole) + 3) ** 2
        most = floor(self.whole) + 3
        return (most, most**2) if neighbors == "add-remove" else (2 * most, 2 * most**2)

    def exact(self, sums: Sums) -> list[int]:
        """The sums, rounded down: what meets the noise."""
        w, first, second = self.grid.last, sums.total, sums.squares
        mixed = 2 * (w * first - second)
        parts = [w * first, mixed] if self.n is not None else [w * w * sums.present - mixed - second, mixed, second]
        return [within_int64(floor(part * self.finer)) for part in parts]

    def estimates(self, noisy: list[int], noise: CalibratedNoise) -> tuple[Estimate, Estimate, Estimate]:
        """The count, the mean and the standard deviation that noisy sums tell."""
        wide, deviation = self.grid.last * self.grid.unit, deviation_of(noise)
        if self.n is not None:
            count, everything = Estimate(self.n, 0.0), float(self.n * self.whole)
            share = min(max(noisy[0] / everything, 0.0), 1.0)
            spread = share * (1 - share) - noisy[1] / everything / 2
            of_mean, of_spread = 1.0, hypot(1 - 2 * share, 0.5)
        else:
            number = sum(noisy)
            count = Estimate(float(number / self.whole), sqrt(3) * deviation / float(self.whole))
            everything = max(float(number), float(self.whole))  # at least one record
            share = min(max((noisy[2] + noisy[1] / 2) / everything, 0.0), 1.0)
            square = min(max(noisy[2] / everything, 0.0), 1.0)
            spread = square - share**2
            of_mean = hypot(1 - share, 0.5 - share, share)
            of_spread = hypot(
                1 - square - 2 * share * (1 - share), square + 2 * share * (0.5 - share), 2 * share**2 - square
            )
        one = deviation / everything
        spread = min(max(spread, 0.0), 0.25)
        of_spread *= one
        of_std = min(of_spread / (2 * sqrt(spread)), sqrt(of_spread)) if spread else sqrt(of_spread)
        mean = Estimate(self.grid.value(Fraction(share) * self.grid.last), one * of_mean * wide)
        return count, mean, Estimate(sqrt(spread) * wide, of_std * wide)
