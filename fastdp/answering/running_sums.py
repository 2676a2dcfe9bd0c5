"""Noise for running sums, correlated as by the square root of their matrix: what it costs, how large it is, its draws.

All running sums of n numbers are n answers of which one record changes many; with independent noise they would be off
by sqrt(n). Here each answer is its exact sum plus L z, where z is independent discrete Gaussian noise and L a
lower-triangular Toeplitz matrix near the square root of the matrix of ones: the noise falls to a logarithm.
running_sums.md proves the price, kernels/square_root.py has the recursion; nothing here reads records or is charged.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import frexp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import GAUSSIAN_BLOCK, HISTORY_BITS
from ..privacy.calibration import gaussian_sigma, zcdp_sigma
from ..randomness.noise_draws import integer_noise_from
from ..randomness.noise_plans import GaussianPlan, gaussian_plan, scale_in_range
from ..support.rounding import down, lower, sixty_digits, up

if TYPE_CHECKING:
    from types import ModuleType

MOST_STEPS = 2**40

# The mixtures: for e = 1, 3, 5, ... what 1 - 2^-e counts for, in units of 2^-(11 + shift of e). The first reproduces
# the coefficients of the square root to 2 % each, and to 4 % at the end. The second gives later ones more,
# by ((e + 4.8) / 9.8)^.6 from e = 7 on, so that the columns of L^-1 A stay short for 2^40 steps: the root mean
# square error over all steps is then at most 1.25 times that for a length that is known, from 2^12 steps on.
_SQUARE_ROOT = (400, 305, 156, *[80] * 30)
_UNBOUNDED = (
    400, 305, 156, 89, 98, 107, 114, 122, 129, 136, 143, 150, 156, 162, 168, 174, 180, 185, 191, 196, 202, 207,
    212, 217,
)  # fmt: skip
_BEYOND = 9  # bits of e beyond those of the number of steps: what is slower would count for nothing
_BISECTIONS = 220  # of a pole, to 60 digits


class Mixture(NamedTuple):
    """L: coefficient 1 at 0, and at k >= 1 the sum of weights[i] 2^-(11 + shifts[i]) (1 - 2^-exponents[i])^(k - 1)."""

    exponents: tuple[int, ...]
    shifts: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def rounding(self) -> Fraction:
        """By how much the cut-off parts of two histories differ at most: running_sums.md, lemma 2."""
        cut = Fraction(sum(self.weights), 2**HISTORY_BITS)
        pairs = zip(self.weights, self.shifts, strict=True)
        carried = sum((Fraction(weight, 2 ** (HISTORY_BITS + shift)) for weight, shift in pairs), Fraction(0))
        return 2 * carried + cut + 1

    @property
    def amplitudes(self) -> list[Decimal]:
        """What each power counts for."""
        return [
            Decimal(weight) / 2 ** (HISTORY_BITS + shift)
            for weight, shift in zip(self.weights, self.shifts, strict=True)
        ]


@lru_cache(64)
def mixture_for(length: int | None) -> Mixture:
    """That of so many steps; None for a number that is not known, up to 2^40."""
    bits = (MOST_STEPS if length is None else length).bit_length() + _BEYOND
    table = _UNBOUNDED if length is None else _SQUARE_ROOT
    exponents = tuple(range(1, bits + 1, 2))[: len(table)]
    shifts = tuple(max(0, e // 2 - 3) for e in exponents)
    return Mixture(exponents, shifts, table[: len(exponents)])


class _Poles(NamedTuple):
    """L^-1 A has the coefficients rest + sum of sizes[j] (1 - gaps[j])^k: running_sums.md, lemma 3."""

    gaps: tuple[Decimal, ...]
    sizes: tuple[Decimal, ...]
    rest: Decimal


@lru_cache(64)
@sixty_digits
def _poles(mixture: Mixture) -> _Poles:
    gaps_of_l = [Decimal(2) ** -e for e in mixture.exponents]
    terms = list(zip(mixture.amplitudes, gaps_of_l, strict=True))
    gaps, sizes = [], []
    for low, high in zip(gaps_of_l, [Decimal(1), *gaps_of_l], strict=False):  # one pole between each two
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if 1 + sum(a / (gap - middle) for a, gap in terms) > 0:
                high = middle
            else:
                low = middle
        gap = (low + high) / 2
        gaps.append(gap)
        sizes.append(1 / sum((a / (other - gap) ** 2 for a, other in terms), Decimal(0)) / gap)
    rest = 1 / (1 + sum((a / gap for a, gap in terms), Decimal(0)))
    return _Poles(tuple(gaps), tuple(sizes), rest)


@lru_cache(1024)
@sixty_digits
def column_square(mixture: Mixture, steps: int) -> Decimal:
    """The square of the norm of the longest column of L^-1 A for so many steps."""
    gaps, sizes, rest = _poles(mixture)
    decays = [(1 - gap) ** steps for gap in gaps]
    total = steps * rest**2
    for gap, size, decay in zip(gaps, sizes, decays, strict=True):
        total += 2 * rest * size * (1 - decay) / gap
        for other_gap, other_size, other_decay in zip(gaps, sizes, decays, strict=True):
            total += size * other_size * (1 - decay * other_decay) / (gap + other_gap - gap * other_gap)
    return total


@lru_cache(1024)
@sixty_digits
def row_square(mixture: Mixture, step: int) -> Decimal:
    """The square of the norm of row `step` of L, from 1: the variance of an answer, in units of that of the noise."""
    gaps = [Decimal(2) ** -e for e in mixture.exponents]
    decays = [(1 - gap) ** (step - 1) for gap in gaps]
    terms = list(zip(mixture.amplitudes, gaps, decays, strict=True))
    total = Decimal(1)
    for a, gap, decay in terms:
        total += sum(a * b * (1 - decay * later) / (gap + other - gap * other) for b, other, later in terms)
    return total


@lru_cache(16)
def pair_square(mixture: Mixture, steps: int) -> Decimal:
    """The square of the largest distance of two columns of L^-1 A, rounded up: running_sums.md, lemma 4."""
    if steps == 1:
        return Decimal(0)
    gaps, sizes, rest = _poles(mixture)
    k = np.arange(steps, dtype=np.float64)
    column = np.full(steps, float(rest))
    for gap, size in zip(gaps, sizes, strict=True):
        column += float(size) * np.exp(k * np.log1p(-float(gap)))
    squares = np.concatenate(([0.0], np.cumsum(column * column)))
    room = 1 << (2 * steps - 1).bit_length()
    spectrum = np.fft.rfft(column, room)
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, room)[1:steps]
    largest = float((squares[steps] + squares[steps - 1 : 0 : -1] - 2 * products).max())
    return Decimal(largest) + Decimal("1e-9")


class SumsPlan(NamedTuple):
    """The noise of running sums: of which law, on which grid, and what it guarantees."""

    mixture: Mixture
    steps: int  # at most
    dimension: int
    bits: int  # the grid is 2^-bits
    distance: float  # of the independent noise that explains the answers on two neighbours, in units of the grid
    noise: GaussianPlan

    @property
    def grid(self) -> float:
        """One unit of the noise."""
        return 2.0**-self.bits

    @sixty_digits
    def deviation(self, step: int) -> float:
        """The standard deviation of the answer at this step, from 1."""
        return float(Decimal(self.noise.sigma) * row_square(self.mixture, step).sqrt()) * self.grid


def _sigma(distance: float, price: float, delta: float | None, numbers: int) -> float:
    price = down(lower(price))
    if delta is None:
        return zcdp_sigma(distance, rho=price)
    return gaussian_sigma(distance, epsilon=price, delta=down(lower(delta)), dimension=numbers, adaptive=True)


_SMALLEST_SHARE = (
    11  # bits: what the rounding of histories adds to the distance, where the scale of the noise allows it
)
_MOST_SIGMA = 2.0**36  # buffers of 2^40 steps then stay within int64, but for one in 10^50 draws


@lru_cache(256)
@sixty_digits
def plan_sums(
    length: int | None,
    *,
    rho: float,
    delta: float | None = None,
    stretch: Decimal,
    rounded: Decimal = Decimal(0),
    dimension: int = 1,
) -> SumsPlan:
    """The plan for rho-zCDP, or, where there is a delta, for (rho, delta)-DP: running_sums.md, theorem 1.

    stretch   at most |L^-1 A v|_2 for every difference v of two neighbours
    rounded   the same for what rounding to the grid adds to v, in units of the grid; 0 where numbers are on it
    dimension of each number, which is a vector
    """
    mixture, steps = mixture_for(length), MOST_STEPS if length is None else length
    histories = 2 * Decimal(mixture.rounding.numerator) / mixture.rounding.denominator
    histories *= Decimal(steps * dimension).sqrt()
    bits = frexp(float((histories + rounded) / stretch))[1] + _SMALLEST_SHARE
    while True:
        distance = up(stretch * Decimal(2) ** bits + histories + rounded)
        sigma = _sigma(distance, rho, delta, steps * dimension)
        if sigma <= _MOST_SIGMA:
            break
        bits -= max(1, frexp(sigma / _MOST_SIGMA)[1] - 1)
        if bits < -1000 or stretch * Decimal(2) ** bits < histories:
            name = "rho" if delta is None else "epsilon"
            raise ValueError(f"{name}={rho!r}: too small for {steps:,} steps: the rounding alone would take more noise")
    return SumsPlan(mixture, steps, dimension, bits, distance, gaussian_plan(scale_in_range(sigma, "sigma")))


# --- draws


@lru_cache(1)
def _kernels() -> ModuleType:
    from ..kernels import square_root

    return square_root


class CorrelatedNoise:
    """L z in blocks of steps: a sequence that its key decides, and that is computed once, from its begin to its end.

    It validates nothing, and charges nobody. Draw `step * dimension + coordinate` of a block is that of the key.
    """

    __slots__ = ("_arrays", "_drawn", "buffers", "dimension", "key", "plan", "remainders")

    def __init__(self, plan: SumsPlan, key: NDArray[np.uint32]) -> None:
        self.plan, self.key, self.dimension = plan, key, plan.dimension
        shape = plan.dimension, len(plan.mixture.exponents)
        self.buffers: NDArray[Any] = np.zeros(shape, np.int64)  # of Python's integers where they leave int64
        self.remainders: NDArray[Any] = np.zeros(shape, np.int64)
        self._arrays = [np.array(part, np.int64) for part in plan.mixture]
        self._drawn = 0  # of the key's blocks

    @property
    def steps(self) -> int:
        """Of a block."""
        return max(1, GAUSSIAN_BLOCK // self.dimension)

    def state(self) -> tuple[Any, ...]:
        """What `restore` brings back: all but the key."""
        return self.buffers.copy(), self.remainders.copy(), self._drawn

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on from where `state` was called."""
        buffers, remainders, self._drawn = state
        self.buffers, self.remainders = buffers.copy(), remainders.copy()

    def block(self, steps: int | None = None) -> NDArray[Any]:
        """The noise of the next steps, [steps, dimension] int64, in units of the grid: a whole block, or fewer of it.

        What is left out of a block is not drawn: the next one is another.
        """
        wanted = self.steps if steps is None else steps
        blocks = -(-self.steps * self.dimension // GAUSSIAN_BLOCK)
        fresh = integer_noise_from(self.plan.noise, self.key, self._drawn * GAUSSIAN_BLOCK, wanted * self.dimension)
        self._drawn += blocks
        noise = fresh.reshape(wanted, self.dimension)
        if self._fits(noise):
            _kernels().correlate_into(noise, *self._arrays, self.buffers, self.remainders, noise)
            return noise
        return self._correlate_exactly(noise)

    def take(self, steps: int) -> NDArray[np.int64]:
        """The noise of so many steps at once, [steps, dimension]."""
        out = np.empty((steps, self.dimension), np.int64)
        for first in range(0, steps, self.steps):
            part = out[first : first + self.steps]
            np.clip(self.block(len(part)), -(2**63), 2**63 - 1, out=part, casting="unsafe")
        return out

    def _fits(self, noise: NDArray[np.int64]) -> bool:
        """Whether no number on the way through this block leaves int64."""
        if self.buffers.dtype != np.int64:
            return False
        most = int(np.abs(noise).max()) * len(noise)
        peaks = [int(peak) + most for peak in np.abs(self.buffers).max(axis=0)]
        _, shifts, weights = self.plan.mixture
        total = sum(weight * ((peak >> shift) + 1) for weight, shift, peak in zip(weights, shifts, peaks, strict=True))
        return max(peaks) < 2**61 and total < 2**62

    def _correlate_exactly(self, noise: NDArray[np.int64]) -> NDArray[Any]:
        """The same in Python's integers, for draws that are improbable beyond all measure."""
        buffers, remainders = (
            [[int(x) for x in row] for row in part.tolist()] for part in (self.buffers, self.remainders)
        )
        out = [
            [correlate_one(fresh, self.plan.mixture, buffers[j], remainders[j]) for j, fresh in enumerate(step)]
            for step in noise.tolist()
        ]
        fits = max(abs(x) for row in buffers for x in row) < 2**61
        self.buffers = np.array(buffers, np.int64 if fits else object)
        self.remainders = np.array(remainders, np.int64)
        return np.array(out, object)


def correlate_one(fresh: int, mixture: Mixture, buffers: list[int], remainders: list[int]) -> int:
    """One step of one coordinate: what kernels/square_root.py does, in integers of any size."""
    total = 0
    for i, (exponent, shift, weight) in enumerate(zip(*mixture, strict=True)):
        total += weight * (buffers[i] >> shift)
        whole = buffers[i] + remainders[i]
        remainders[i] = whole & ((1 << exponent) - 1)
        buffers[i] += fresh - (whole >> exponent)
    return fresh + (total >> HISTORY_BITS)
