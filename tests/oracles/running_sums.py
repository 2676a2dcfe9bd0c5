"""What kernels/square_root.py and fastdp/answering/running_sums.py are held to: plain sums of fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Powers = Sequence[tuple[int, Fraction]]  # e of 1 - 2^-e, and what it counts for


def coefficients(powers: Powers, n: int) -> list[Fraction]:
    """The first n coefficients of L."""
    found = [Fraction(1)]
    for k in range(1, n):
        found.append(sum((a * (1 - Fraction(1, 2**e)) ** (k - 1) for e, a in powers), Fraction(0)))
    return found


def product(row: Sequence[Fraction], z: Sequence[int]) -> list[Fraction]:
    """L z."""
    return [sum((row[t - s] * z[s] for s in range(t + 1)), Fraction(0)) for t in range(len(z))]


def solved(row: Sequence[Fraction], right: Sequence[Fraction | int]) -> list[Fraction]:
    """x with L x = right, by forward substitution."""
    x: list[Fraction] = []
    for t, value in enumerate(right):
        x.append(Fraction(value) - sum((row[t - s] * x[s] for s in range(t)), Fraction(0)))
    return x


def square_root(n: int) -> list[Fraction]:
    """The coefficients of the square root of the matrix of ones."""
    f = [Fraction(1)]
    for k in range(1, n):
        f.append(f[-1] * Fraction(2 * k - 1, 2 * k))
    return f
