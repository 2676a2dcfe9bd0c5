"""Second moments of points that are rounded to integers first: their grid, and when rounding adds little to the noise.

Public numbers alone. moments.md, "Rounded points", has the proofs; kernels/rounded_moments.py the loops.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, nextafter, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Neighbors
from ..support.rounding import root_up, up

LONGEST = 8191  # no rounded point is longer: kernels/rounded_moments.py
FEWEST = 4096  # records: fewer take less time than what is around them
_OF_NOISE = 0.1  # of its size, that of what rounding adds
_ROOT_BITS = 30
_ROOT = 1518500249  # floor(2^30 sqrt(2))


class RoundedMoments(NamedTuple):
    """The moments of n points of d columns, in units of the grid.

    size         the length of a point of norm 1, before it is rounded
    sensitivity  the L2 sensitivity of the sums
    """

    n: int
    d: int
    size: int
    sensitivity: float

    @classmethod
    def of(cls, n: int, d: int, neighbors: Neighbors) -> RoundedMoments | None:
        """None where there are few records."""
        if n < FEWEST:
            return None
        norm = root_up(2) if neighbors == "add-remove" else root_up(up(Fraction(9, 2)))
        # what is above the diagonal is rounded down once it is summed: so many numbers of less than one
        sensitivity = nextafter(up(Fraction(norm) * LONGEST**2) + root_up(d * (d - 1) // 2), inf)
        return cls(n, d, LONGEST - 1 - ceil(sqrt(d)), sensitivity)

    @property
    def unit(self) -> float:
        """Of a moment of points in the unit ball."""
        return float(self.size**2)

    @property
    def _bias(self) -> float:
        """Of the norm of the mean matrix, of points in the unit ball: moments.md, lemma 4."""
        return (self.d / 4 + sqrt(self.d) / 8 + 0.125 + self.d / self.n) / self.unit

    @property
    def _deviation(self) -> float:
        return (self.size * sqrt(self.d) + self.d) / sqrt(self.n) / self.unit

    @property
    def error(self) -> float:
        """What rounding adds, in expectation at most, to the norm of the mean matrix, and to that of the vector."""
        return self._bias + self._deviation

    def fits(self, deviation: float) -> bool:
        """Whether that is little beside noise of this deviation in each sum, for points in the unit ball."""
        noise, d = deviation / self.n, self.d
        return (
            self._bias <= _OF_NOISE * sqrt(2 * d) * noise
            and self._deviation <= _OF_NOISE * sqrt(d * (d + 1) / 2) * noise
        )


def times_root_two(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """floor(c sums), c = floor(2^30 sqrt(2)) / 2^30, exactly; sums below 2^62 in magnitude."""
    low = sums & (2**_ROOT_BITS - 1)
    return np.asarray((sums >> _ROOT_BITS) * _ROOT + (low * _ROOT >> _ROOT_BITS), np.int64)


__all__ = ["RoundedMoments", "times_root_two"]
