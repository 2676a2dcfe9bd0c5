"""Discrete Gaussian noise on integers: the least sigma by the law that is drawn, where the grid is coarse.

Two integer vectors that differ by few units differ in few ways, and their privacy curve is a sum. Floats search;
decimal arithmetic adds up what decides, rounded toward more noise. discrete_gaussian.md has the proofs.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, exp, expm1, inf, isqrt, log, pi, sqrt
from typing import NamedTuple

from ..support.rounding import context_of, sixty_digits
from ..support.search import least_float
from .gaussian_curve import nearly_delta

SCALAR_SIGMA, VECTOR_SIGMA = 30.0, 9.0  # beyond them calibration.md, theorem 3 is within .1 and 1 % of the least
MOST = 1000  # shifts that are tried
_ROUNDED = 1 + 2.0**-40  # of a squared sensitivity: a float below sqrt(2) that is meant to be sqrt(2) counts as that
_CLEAR = 0.99  # of delta: what floats find below it is below delta, as their errors are far less than a hundredth
_CONTEXT = context_of(50)
_ROOT_TWO_PI = Decimal("2.506628274631000502415765284811045253006986740609")  # rounded down


class Shift(NamedTuple):
    """All differences of two vectors that are `step` times a primitive integer vector of squared length `square`."""

    square: int
    step: int

    def smoothness(self, sigma: float, dimension: int) -> float:
        """The theta of theorem 2, rounded up."""
        most = min(dimension, self.square) - 1
        if most < 1:
            return 0.0
        q = exp(-2 * pi**2 * sigma * sigma / self.square)
        root = sqrt(q)
        several = _theta(root)
        if most * log(several) > 700:  # beyond float64, and of no use
            return inf
        found = _theta(q) - 1
        for n in range(2, most + 1):
            found = max(found, root**n * (several**n - 1))
            if root * several < 0.5:  # from here on they fall
                break
        return found * (1 + 1e-9) + 1e-60


def _theta(x: float) -> float:
    """1 + 2 (x + x^4 + x^9 + ...)."""
    total, k = 1.0, 1
    while (term := 2 * x ** (k * k)) > 1e-17 * total:
        total += term
        k += 1
    return total


def greatest_square(sensitivity: float) -> int:
    """The greatest squared length of an integer vector that a sensitivity in L2 allows."""
    return int(Fraction(sensitivity) ** 2 * Fraction(_ROUNDED))


def discrete_sigma(sensitivity: float, *, epsilon: float, delta: float, dimension: int, near: float) -> float:
    """The least sigma found for which discrete Gaussian noise on integer vectors is (epsilon, delta)-DP.

    `near` is where the search begins: the sigma of continuous noise. inf where the grid is too fine for the sum.
    """
    greatest = greatest_square(sensitivity)
    limit = SCALAR_SIGMA if dimension <= 1 or greatest < 2 else VECTOR_SIGMA
    hopeless = min(dimension, greatest) > 8 and near * near < 0.06 * greatest  # theta would be large
    if not 1 <= greatest <= MOST or near > limit or hopeless:
        return inf
    shifts = [Shift(1, isqrt(greatest))]
    if dimension > 1:
        shifts += [Shift(square, isqrt(greatest // square)) for square in range(2, greatest + 1)]
    shifts.sort(key=lambda shift: -shift.square * shift.step**2)

    def fits(sigma: float) -> bool:
        return all(
            _nearly_at_most(sigma, epsilon, shift, dimension) <= delta
            or _nearly(sigma, epsilon, shift, dimension) <= delta
            for shift in shifts
        )

    sigma = least_float(fits, bracket=(near / 2, near), tolerance=1e-11)
    margin = 1e-12
    while not _proven(sigma * (1 + margin), epsilon, delta, dimension, shifts):
        margin *= 4
    return sigma * (1 + margin)


@sixty_digits
def _proven(sigma: float, epsilon: float, delta: float, dimension: int, shifts: list[Shift]) -> bool:
    for shift in shifts:
        if _nearly_at_most(sigma, epsilon, shift, dimension) <= _CLEAR * delta:
            continue
        if _nearly(sigma, epsilon, shift, dimension) <= _CLEAR * delta:
            continue
        if delta_above(sigma, epsilon, shift, dimension) > Decimal(delta):
            return False
    return True


def _nearly_at_most(sigma: float, epsilon: float, shift: Shift, dimension: int) -> float:
    """What `_nearly` is at most: the integral, and a step of the grid times the highest value of what is summed."""
    r = sigma / (sqrt(shift.square) * shift.step)
    begins = max(epsilon * r - 0.5 / r, 0.0)
    step = 1 / (sigma * sqrt(shift.square))
    rough = nearly_delta(r, epsilon) + step * exp(-begins * begins / 2) / sqrt(2 * pi)
    return rough * (1 + shift.smoothness(sigma, dimension))


def _nearly(sigma: float, epsilon: float, shift: Shift, dimension: int) -> float:
    """`delta_above` in floats."""
    square, step = shift
    variance, length = sigma * sigma, square * step
    first = ceil(epsilon * variance / step - length / 2)
    total, y = 0.0, first
    while True:
        weight = exp(-y * y / (2 * variance * square))
        total -= weight * expm1(min(0.0, epsilon - step * (length + 2 * y) / (2 * variance)))
        if y > 0 and weight <= 1e-16 * total:
            break
        y += 1
    if square == 1:
        z, norm = 1, 1.0
        while (term := 2 * exp(-z * z / (2 * variance))) > 1e-17:
            norm += term
            z += 1
        return total / norm
    return total / (sigma * sqrt(2 * pi * square)) * (1 + shift.smoothness(sigma, dimension))


@sixty_digits
def delta_above(sigma: float, epsilon: float, shift: Shift, dimension: int) -> Decimal:
    """An upper bound of delta at this epsilon for all differences of a shift: theorems 1 and 2, in 50 digits."""
    c = _CONTEXT
    square, step = shift
    variance = c.multiply(Decimal(sigma), Decimal(sigma))
    length = square * step
    half = c.divide(Decimal(1), c.multiply(Decimal(2 * square), variance))  # weights are e^(-half y^2)
    # one below where the loss passes epsilon: a term that is too many is negative, and left out
    y = ceil(Fraction(epsilon) * Fraction(sigma) ** 2 / step - Fraction(length, 2)) - 1
    weight = c.exp(c.multiply(-half, Decimal(y * y)))
    ratio = c.exp(c.multiply(-half, Decimal(2 * y + 1)))  # of the next weight to this one, and how it shrinks
    shrink = c.exp(c.multiply(Decimal(-2), half))
    loss = c.divide(Decimal(step * (length + 2 * y)), c.multiply(Decimal(2), variance))
    beyond = c.exp(c.subtract(Decimal(epsilon), loss))
    grows = c.exp(c.divide(Decimal(-step), variance))
    total = greatest = Decimal(0)
    while True:
        greatest = max(greatest, weight)
        if beyond < 1:
            total = c.add(total, c.multiply(weight, c.subtract(Decimal(1), beyond)))
        weight, ratio, beyond, y = (
            c.multiply(weight, ratio),
            c.multiply(ratio, shrink),
            c.multiply(beyond, grows),
            y + 1,
        )
        if y > 0 and weight < c.multiply(total, Decimal("1e-25")):
            break
    total = c.add(total, c.divide(weight, c.subtract(Decimal(1), ratio)))  # the rest: ratios fall
    total = c.add(c.multiply(total, Decimal(1) + Decimal("1e-20")), c.multiply(greatest, Decimal("1e-40")))
    if square > 1:
        norm = c.multiply(c.multiply(_ROOT_TWO_PI, Decimal(sigma)), c.sqrt(Decimal(square)))
        total = c.multiply(total, Decimal(1 + shift.smoothness(sigma, dimension)))
    else:
        norm = _sum_of_weights(half)
    return c.multiply(c.divide(total, norm), Decimal(1) + Decimal("1e-20"))


@sixty_digits
def _sum_of_weights(half: Decimal) -> Decimal:
    """A lower bound of sum e^(-half z^2) over all integers: those of weight above 10^-30."""
    c = _CONTEXT
    term, shrink = c.exp(-half), c.exp(c.multiply(Decimal(-2), half))
    ratio = c.multiply(term, shrink)
    total = Decimal(1)
    while term > Decimal("1e-30"):
        total = c.add(total, c.multiply(Decimal(2), term))
        term, ratio = c.multiply(term, ratio), c.multiply(ratio, shrink)
    return total
