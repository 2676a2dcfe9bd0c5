"""Profiles on a grid of losses, and their composition: connect-the-dots, exponential tilting, FFT, bounds of errors.

Everything here is given its grid and its tilt; loss_distributions.py chooses them. The bounds hold for any choice, and
loss_distributions.md proves them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, fsum, inf, log, log2, sqrt
from typing import Any

import numpy as np

from .profiles import Array, Profile

RANGE_MU = 0.6267  # sqrt(2 pi) / 4, up: eta-bounded range is (RANGE_MU eta)-Gaussian DP (connect/dp_accounting.md)
FFT_ERROR = 2.0**-48  # of a transform of N numbers, in L2: FFT_ERROR log2(N) of the input's norm
TINY = 1e-290  # what underflow may take from a mass
MOST_EXPONENT = 1500.0  # of a tilt, over one release
SPREAD = 6.5  # deviations of the tilted sum to either side that the window has
OUTSIDE = 1e-8  # mass that may be outside of it
FEW, MOST = 6, 21  # the window has from 2^FEW to 2^MOST cells


@dataclass(frozen=True)
class Rows:
    """Releases on the grid, one a row: masses at `first`, `first + 1`, ... steps, and how often each comes."""

    masses: Array
    excess: Array  # how much of each mass may be rounding
    first: int
    infinite: Array  # the mass of infinite loss
    cut: Array  # what mass may have been moved to the ends
    counts: Array

    @property
    def indices(self) -> Array:
        return np.arange(self.first, self.first + self.masses.shape[1], dtype=np.float64)


def _dot(a: Array, b: Array) -> float:
    """Their inner product, without BLAS: its threads wait for each other on a busy machine."""
    with np.errstate(under="ignore"):
        return float(np.multiply(a, b).sum())


def connect_dots(delta: Array, error: Array, step: Any) -> tuple[Array, Array, Array]:
    """Masses at the grid's losses whose profile joins the points `delta + error`, the excess, and the infinite mass.

    loss_distributions.md, theorem 2: the profile that joins the points of a convex one lies above it.
    """
    low, high = -np.expm1(-step), np.expm1(step)
    falls = delta[..., :-1] - delta[..., 1:]
    doubt = error[..., :-1] + error[..., 1:] + 2.0**-50 * (delta[..., :-1] + delta[..., 1:])
    masses = np.concatenate((1 - delta[..., :1], falls / low), axis=-1)
    masses[..., :-1] -= falls / high
    excess = np.concatenate((error[..., :1] + 2.0**-50, doubt / low), axis=-1)
    excess[..., :-1] += doubt / high
    masses = np.maximum(masses, 0.0) + excess
    return masses, 2 * excess + 2.0**-50 * masses, delta[..., -1] + error[..., -1]


def lattices_on_grid(parts: Sequence[tuple[Profile, int]], step: float) -> list[Rows]:
    """Releases whose losses are multiples of the step, as they are."""
    rows = []
    for profile, count in parts:
        atoms = profile.atoms()
        stride = round(profile.spacing / step)
        masses = np.zeros((1, stride * (len(atoms) - 1) + 1))
        masses[0, ::stride] = atoms * (1 + 2.0**-44)
        nothing = np.zeros(1)
        first = -stride * (len(atoms) // 2)
        rows.append(Rows(masses, 2.0**-42 * masses, first, nothing, nothing, np.array([float(count)])))
    return rows


def rows_on_grid(parts: Sequence[tuple[Profile, int]], step: float, tail: float) -> list[Rows]:
    """All releases on the grid, those of one kind and of about the same width together.

    The step has at most 32 digits in binary, so that all losses of the grid are floats.
    """
    together: dict[tuple[Hashable, int], list[tuple[Profile, int, int]]] = {}
    for number, (profile, count) in enumerate(parts):
        width = int(profile.width(tail) / step) + 2
        alone = number if inf in (profile.bound, profile.reversed().bound) else -width.bit_length()
        together.setdefault((profile.kind, alone), []).append((profile, count, width))
    rows = []
    for members in together.values():
        width = max(member[2] for member in members)
        first = members[0][0]
        profile = first if len(members) == 1 else first.stacked([member[0] for member in members])
        losses = np.arange(-width, width + 1) * step
        delta, error = profile.values(losses)
        delta, error = np.atleast_2d(delta), np.atleast_2d(error)
        masses, excess, infinite = connect_dots(delta, error, step)
        if first.bound < inf:
            infinite = np.zeros(len(members))  # the last point is beyond the bound
        cut = infinite
        if first.reversed().bound == inf:
            # losses below the grid have the mass e^-loss of those above it in the other direction
            turned = np.concatenate([one.reversed().values(losses[-2:-1])[0] for one, _, _ in members])
            cut = infinite + exp(-losses[-1]) * turned / -expm1(-step)
        counts = np.array([member[1] for member in members], dtype=np.float64)
        rows.append(Rows(masses, excess, -width, infinite, cut, counts))
    return rows


@dataclass(frozen=True)
class Tilted:
    """Rows whose masses are multiplied by e^(tilt loss) and scaled to 1; `logs` are of what they were divided by."""

    rows: Rows
    masses: Array
    logs: Array
    mean: float
    variance: float
    excess: float

    @staticmethod
    def of(rows: Rows, tilt: float, step: float) -> Tilted:
        losses = rows.indices * step
        with np.errstate(divide="ignore", under="ignore"):
            exponents = np.log(rows.masses) + tilt * losses
            top = exponents.max(axis=1, keepdims=True)
            masses = np.exp(exponents - top)
            sums = masses.sum(axis=1, keepdims=True)
            masses /= sums
            growth = np.exp(tilt * losses - top)
            grown = np.minimum(rows.excess, rows.masses) * np.where(rows.masses > 0, growth, 0.0) / sums
        means = (masses * losses).sum(axis=1)
        variances = np.maximum((masses * losses**2).sum(axis=1) - means**2, 0.0)
        counts = rows.counts
        return Tilted(
            rows,
            masses,
            (top + np.log(sums))[:, 0],
            _dot(counts, means),
            _dot(counts, variances),
            _dot(counts, grown.sum(axis=1)),
        )

    def growth(self, more: float, step: float) -> float:
        """ln E[e^(more loss)] of all of them together, under the tilt."""
        exponents = more * step * self.rows.indices
        top = exponents.max()
        with np.errstate(under="ignore"):
            sums = (self.masses * np.exp(exponents - top)).sum(axis=1)
        return _dot(self.rows.counts, np.log(np.maximum(sums, 1e-300)) + top)


def _folded(masses: Array, size: int) -> Array:
    """Rows wrapped around a circle of so many cells, where they are longer."""
    n, width = masses.shape
    if width <= size:
        return masses
    padded = np.zeros((n, -(-width // size) * size))
    padded[:, :width] = masses
    return padded.reshape(n, -1, size).sum(axis=1)


def _power(values: Array, count: int) -> Array:
    """By squaring: count - 1 multiplications' worth of rounding."""
    result = None
    while True:
        if count & 1:
            result = values if result is None else result * values
        count >>= 1
        if not count:
            return result
        values = values * values


def convolved(tilted: Iterable[Tilted], first: int, size: int) -> tuple[Array, float]:
    """All rows convolved around a circle of `size` cells, from the cell of `first`, and a bound of the error in L2."""
    product, releases, norms, least, start = np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 0.0, 1.0, 0
    some = max(1, 2**19 // size)
    with np.errstate(under="ignore"):
        for part in tilted:
            counts = part.rows.counts
            rows = _folded(part.masses, size)
            lengths = np.sqrt((rows * rows).sum(axis=1)) * (1 + 2.0**-30)
            norms += _dot(counts, lengths)
            least = min(least, float(lengths.min()))
            releases += float(counts.sum())
            start += part.rows.first * sum(map(int, counts))
            for begin in range(0, len(rows), some):
                spectra = np.fft.rfft(rows[begin : begin + some], size, axis=1)
                for spectrum, count in zip(spectra, counts[begin : begin + some], strict=True):
                    product *= spectrum if count == 1 else _power(spectrum, int(count))
        total = np.fft.irfft(product, size)[np.arange(first - start, first - start + size) % size]
    transform = FFT_ERROR * log2(size)
    factor = releases * (transform * sqrt(size) + 2.0**-40)  # by how much products of factors may exceed 1
    if factor > 0.5:
        return total, inf
    return total, exp(factor) * (transform * (norms + least) + releases * 2.0**-50 * least + TINY)


def _chernoff(tilted: Sequence[Tilted], sign: int, end: float, deviation: float, step: float) -> float:
    """A bound of the tilted mass of all sums beyond `end`, above or below: the least of a few exponents."""
    exponents = []
    for share in (1.0, 0.5, 0.25):
        more = sign * share * SPREAD / max(deviation, step)
        exponents.append(sum(part.growth(more, step) for part in tilted) - more * end + 1e-6)
    return exp(min(0.0, *exponents))


@dataclass(frozen=True)
class Composition:
    """The losses of all releases together, tilted, on a window of the grid; what it says of delta at an epsilon."""

    step: float
    tilt: float
    first: int
    masses: Array
    error: float  # of the masses, in L2
    log_scale: float  # ln of what the masses are to be multiplied with
    releases: float
    exponents: float  # the sum of all |logs| in log_scale
    infinite: float  # the mass of infinite loss
    cut: float  # what mass the ends of the grid may have moved
    excess: float  # how much tilted mass is rounding
    above: float  # tilted mass beyond the window
    outside: float  # on either side
    noise: float  # mu of what the grid added
    spread: float  # of the absolute value of what the grid added, over that of a normal law

    @staticmethod
    def of(rows: Sequence[Rows], *, tilt: float, step: float, off_grid: float) -> Composition | None:
        """None where it is out of range; `off_grid` releases have losses that are no multiples of the step."""
        if any(tilt * step * np.abs(each.indices).max() > MOST_EXPONENT for each in rows):
            return None
        tilted = [Tilted.of(each, tilt, step) for each in rows]
        mean = sum(part.mean for part in tilted)
        deviation = sqrt(sum(part.variance for part in tilted))
        cells = 2 * SPREAD * deviation / step + 8
        while True:
            if not cells < 2**MOST:
                return None
            size = 2 ** max(FEW, (int(cells) - 1).bit_length())
            first = round(mean / step) - size // 2
            above = _chernoff(tilted, 1, (first + size) * step, deviation, step)
            below = _chernoff(tilted, -1, (first - 1) * step, deviation, step)
            if above + below < OUTSIDE:
                break
            cells = 2 * size
        masses, error = convolved(tilted, first, size)
        counts = [each.counts for each in rows]
        logs = [count * part.logs for count, part in zip(counts, tilted, strict=True)]
        return Composition(
            step=step,
            tilt=tilt,
            first=first,
            masses=masses,
            error=error,
            log_scale=fsum(value for each in logs for value in each.tolist()),
            releases=float(sum(count.sum() for count in counts)),
            exponents=float(sum(np.abs(each).sum() for each in logs)),
            infinite=sum(_dot(each.infinite, each.counts) for each in rows) * (1 + 2.0**-40),
            cut=sum(_dot(each.cut, each.counts) for each in rows) * (1 + 2.0**-40),
            excess=sum(part.excess for part in tilted) * (1 + 2.0**-20),
            above=above,
            outside=above + below,
            noise=RANGE_MU * step * sqrt(off_grid),
            spread=sqrt(1 + off_grid * step * step / 16),
        )

    @cached_property
    def losses(self) -> Array:
        return np.arange(self.first, self.first + len(self.masses)) * self.step

    def _inexact(self, epsilon: float) -> float:
        """The relative error of everything but the convolution."""
        reach = self.tilt * (abs(epsilon) + abs(self.first * self.step) + len(self.masses) * self.step)
        return expm1(min(600.0, 2.0**-40 * (self.releases + 1) + 2.0**-48 * (self.exponents + reach)))

    def _scale(self, epsilon: float) -> float:
        exponent = self.log_scale - self.tilt * epsilon
        return exp(exponent) if exponent < 600 else inf

    def _weights(self, epsilon: float) -> tuple[Array, Array]:
        """e^(-tilt x) (1 - e^-x) at x = loss - epsilon > 0, and the first factor."""
        begin = min(max(int(epsilon / self.step) - self.first - 1, 0), len(self.masses))
        x = self.losses[begin:] - epsilon
        with np.errstate(under="ignore"):
            decay = np.exp(np.minimum(-self.tilt * x, 600.0))
            return self.masses[begin:], np.where(x > 0, decay * -np.expm1(-np.maximum(x, 0.0)), 0.0)

    @cached_property
    def _slack(self) -> float:
        """How far the losses of the window may be from multiples of the step, as floats."""
        return 2.0**-50 * (abs(self.first) + len(self.masses)) * self.step

    def at_most(self, epsilon: float) -> float:
        """An upper bound of delta."""
        epsilon -= self._slack
        masses, weights = self._weights(epsilon)
        high = (self.first + len(self.masses)) * self.step
        beyond = self.above * exp(min(0.0, -self.tilt * (high - epsilon)))
        total = _dot(np.maximum(masses, 0.0), weights) + self.error * sqrt(_dot(weights, weights)) + beyond + TINY
        return min(1.0, (self.infinite + self._scale(epsilon) * total * (1 + self._inexact(epsilon))) * (1 + 2.0**-40))

    def at_least(self, epsilon: float) -> float:
        """A lower bound of delta (loss_distributions.md, theorem 5); 0 where there is none."""
        epsilon += self._slack
        inexact = self._inexact(epsilon)
        if self.tilt * self.noise > 1 or inexact > 0.5 or self._scale(epsilon) == inf:
            return 0.0
        masses, weights = self._weights(epsilon)
        heaviest = exp(self.tilt * log(self.tilt) - (1 + self.tilt) * log(1 + self.tilt)) if self.tilt > 1e-9 else 1.0
        lost = self.error * sqrt(_dot(weights, weights)) + (self.excess + self.outside) * heaviest
        total = _dot(masses, weights) - lost * (1 + 2.0**-20)
        if self.noise:
            rate = 1.2534 / self.noise
            height = 0.39895 * self.noise * exp(0.6268 * self.noise + 1.0002 * self.spread)
            x = self.losses - epsilon
            with np.errstate(under="ignore"):
                bump = np.exp(np.minimum(-self.tilt * x - rate * np.abs(x), 600.0))
            total -= height * (_dot(np.maximum(self.masses, 0.0), bump) + self.error * sqrt(_dot(bump, bump)))
        return max(0.0, self._scale(epsilon) * total * (1 - inexact) - self.cut) * (1 - 2.0**-40)


__all__ = ["Composition", "Rows", "connect_dots", "lattices_on_grid", "rows_on_grid"]
