"""Several choices of bounded range together: the profile of the worst of all that may depend on results before.

No pair of distributions is the worst of every choice, so profiles of single choices compose too high. Here the worst
range of each result, given those before, is followed step by step on a grid, and what lies between grid points is
bounded. loss_distributions.md, theorem 7, has the recursion and the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, expm1, floor, frexp, inf, ldexp, log, log1p, sqrt, tanh
from typing import Any, ClassVar

import numpy as np

from .profiles import Array, Exponential, Gaussian, Profile, U

MOST_TOGETHER = 2048  # choices that are followed step by step
MOST_KINDS = 12  # blocks of different ranges that are worth their time
_CELLS = ((4, 1024), (16, 256), (64, 128), (400, 64), (MOST_TOGETHER, 32))  # powers of 2: steps are exact
_GROUPS = 8  # of intervals of t, which are left out where the worst t cannot be in them
_FEW = 1e-3  # of what others add to the variance is not worth a table
_LARGEST = 500.0  # exponents beyond are left to other theorems
_TINY = 1e-300


@dataclass(frozen=True)
class TwoPoint(Profile):
    """A choice with losses t and t - eta: one pair of this range, so what it refutes is refuted for the range.

    Its profile is that of one direction alone, which is all that a lower bound needs.
    """

    eta: float
    t: float

    @property
    def bound(self) -> Any:
        return max(self.t, self.eta - self.t)  # of the losses below as well: the grid must reach them

    def values(self, losses: Array) -> tuple[Array, Array]:
        above = np.expm1(self.t - self.eta) / np.expm1(-self.eta)  # the probability of loss t: e^t w
        delta = above * -np.expm1(np.minimum(losses - self.t, 0.0))
        delta = delta + (1 - above) * -np.expm1(np.minimum(losses - (self.t - self.eta), 0.0))
        return delta, U * delta  # the rounding of t - eta is less than that


@dataclass(frozen=True)
class Choices(Profile):
    """The upper bound of the profile of `count` choices of range eta together, from a table at multiples of `step`."""

    attained: ClassVar[bool] = False
    eta: float
    count: int
    tail: float

    @property
    def _table(self) -> tuple[float, Array]:
        return table_of(self.eta, self.count, self.tail)

    def end(self, tail: float) -> float:
        step, deltas = self._table
        return step * (len(deltas) - 1)

    def values(self, losses: Array) -> tuple[Array, Array]:
        step, deltas = self._table
        size = np.abs(losses)
        cell = np.minimum((size / step).astype(np.int64), len(deltas) - 2)
        share = np.clip(np.expm1(np.minimum(size - cell * step, step)) / expm1(step), 0.0, 1.0)
        first, second = deltas[cell], deltas[cell + 1]
        delta = first + share * (second - first)
        error = (U + 2.0**-50 * (cell + 2)) * first
        turned = np.exp(np.minimum(losses, 0.0))  # H_g(P, Q) = 1 - g + g H_(1/g)(Q, P)
        negative = losses < 0
        return (
            np.where(negative, -np.expm1(np.minimum(losses, 0.0)) + turned * delta, delta),
            np.where(negative, turned * error + U, error),
        )


def _short(eta: float, round_it: Callable[[float], int] = ceil) -> float:
    """Not less, with 42 digits in binary: equal tables for what is nearly equal, and steps of the grid are floats."""
    fraction, exponent = frexp(eta)
    return ldexp(round_it(ldexp(fraction, 42)), exponent - 42)


def _cells(count: int) -> int:
    """Steps of the grid to one range: the bound's variance is too large by a part in their square, at most."""
    return next(cells for most, cells in _CELLS if count <= most)


@lru_cache(64)
def table_of(eta: float, count: int, tail: float) -> tuple[float, Array]:
    """The step, and delta at its multiples, from 0 on; the last is at most about `tail`, or the greatest loss's."""
    cells = _cells(count)
    step = _short(eta) / cells
    reach = sqrt(-2 * log(tail)) + 1
    width = reach * sqrt(count) / 2 + count * eta / 8 + 1  # in etas
    while True:
        kept = min(count, ceil(width)) * cells
        deltas = _deltas(_worst_values(_short(eta), count, cells, kept), step) * (1 + 2.0**-40)
        if kept == count * cells:
            deltas[-1] = 0.0  # no loss is larger
        if deltas[-1] <= tail:
            return step, np.minimum(deltas, 1.0)
        width *= 1.25


def _deltas(values: Array, step: float) -> Array:
    """delta = e^epsilon U(-epsilon) at epsilon = 0, step, 2 step and so on."""
    return values[::-1] * np.exp(step * np.arange(len(values)))


def refuted(eta: float, count: int, delta: float, tail: float) -> float:
    """An epsilon, nearly the greatest, that choices which depend on results before exceed at this delta.

    Parameters
    ----------
    eta : float > 0
        The range of each.
    count : int
        How many, from 2 to MOST_TOGETHER.
    delta : float in (0, 1)
        What is exceeded.
    tail : float
        As in Choices.

    Returns
    -------
    float
        0 where none is found.
    """
    upper, cells = Choices(eta, count, tail), _cells(count)
    shorter = _short(eta, floor)
    step = shorter / cells
    kept = min(count * cells, int(upper.end(tail) / step))
    least = _deltas(_worst_values(shorter, count, cells, kept, sign=-1), step) * (1 - 2.0**-40)
    above = np.nonzero(least > delta)[0]
    if not above.size:
        return 0.0
    j = int(above[-1])
    found = j * step
    if 0 < j < len(least) - 2:  # chords of the profile, which is convex in e^epsilon, lie below it when they go on
        delta_there, error = upper.values(np.array([j - 1, j + 2]) * step)
        most = delta_there + error
        for at, fall in ((j, (most[0] - least[j]) / -expm1(-step)), (j + 1, (least[j + 1] - most[1]) / expm1(step))):
            if fall > 0:  # delta_at - fall (e^(epsilon - at) - 1) = delta
                grown = (least[at] - delta) / fall
                found = max(found, at * step + log1p(grown)) if grown > -1 else found
    return float(min(found, (j + 1) * step) * (1 - 2.0**-36))


def _worst_values(eta: float, count: int, cells: int, kept: int, sign: int = 1) -> Array:
    """U_count at x = -kept h, ..., -h, 0 (or from -count eta, where that is less): upper bounds, or with -1 lower."""
    from ..kernels.adaptive_choices import TILE, follow_choices_into  # which imports numba

    h = eta / cells
    rising = np.arange(cells + 1) * h
    of_greater = np.exp(-rising) * np.expm1(rising - eta) / expm1(-eta)  # the share of the greater ratio, by t
    of_lesser = np.expm1(-rising) / expm1(-eta)
    groups = _GROUPS if cells % _GROUPS == 0 else 1
    bulges = np.array([_bulge(h, eta) if sign > 0 else 0.0, _bulge(eta / groups, eta)])
    out = np.empty(min(count * cells, kept) + 1)
    work, tile = np.empty((3, len(out) + 2 * cells)), np.empty((groups + 3, TILE))
    fall = np.exp(-h * np.arange(2 * cells + 1))
    shares = np.stack((of_greater, of_lesser))
    written = follow_choices_into(count, sign > 0, shares, fall, np.expm1(rising), bulges, work, tile, out)
    return out[:written]


def _bulge(width: float, eta: float) -> float:
    """How far chords may rise between the ends of an interval of t, over how much steeper they get."""
    return tanh(width / 4) / -expm1(-eta)


# --- which are followed together


def together(parts: Sequence[tuple[Profile, int]], tail: float) -> list[tuple[Profile, int]]:
    """The same releases with choices in blocks, where there are few kinds of them and they matter."""
    choices = sorted(((part[0].eta, part[1]) for part in parts if isinstance(part[0], Exponential)), reverse=True)
    if not choices:
        return list(parts)
    clusters = _clusters(choices)
    rest = [part for part in parts if not isinstance(part[0], Exponential)]
    squares = sum(eta * eta * count for eta, count in choices)
    others = sum(_width(one) ** 2 * count for one, count in rest)
    if len(clusters) > MOST_KINDS or squares < _FEW * others:
        return list(parts)
    made: list[tuple[Profile, int]] = []
    for eta, count in clusters:
        blocks = -(-count // MOST_TOGETHER)
        size, more = divmod(count, blocks)
        for members, times in ((size, blocks - more), (size + 1, more)):
            if times and is_followed(eta, members):
                made.append((Choices(eta, members, tail / blocks), times))
            elif times:
                made.append((Exponential(eta), times * members))
    return rest + made


def _added_by_block(count: Any) -> Any:
    """About what a block of so many choices adds to the variance, in units of one choice's."""
    return 0.34 + 0.085 * np.log2(count)


def _width(one: Profile) -> float:
    """About the deviation of its loss."""
    return float(one.mu) if isinstance(one, Gaussian) else float(one.bound) if one.bound < inf else 1.0


def is_followed(eta: float, count: int) -> bool:
    """Whether so many choices of this range have a table."""
    return 2 <= count <= MOST_TOGETHER and eta > 1e-9 and eta * count < _LARGEST


def _clusters(choices: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Neighbouring ranges as the greatest of them, where what that adds is less than what another block does.

    A block of b costs about (.34 + .085 log2 b) eta^2/4 beyond the variances, and the least sum of all is taken.
    """
    if len(choices) > 400:
        return list(choices)
    etas = np.array([eta for eta, _ in choices])
    counts = np.array([float(count) for _, count in choices])
    below, squares = np.concatenate(([0.0], counts.cumsum())), np.concatenate(([0.0], (counts * etas**2).cumsum()))
    least, first = np.zeros(len(etas) + 1), np.zeros(len(etas) + 1, dtype=np.int64)
    for end in range(1, len(etas) + 1):
        members = below[end] - below[:end]
        costs = etas[:end] ** 2 * (members + _added_by_block(members)) - (squares[end] - squares[:end])
        first[end] = np.argmin(least[:end] + costs)
        least[end] = least[first[end]] + costs[first[end]]
    clusters, end = [], len(etas)
    while end:
        begin = int(first[end])
        clusters.append((float(etas[begin]), sum(count for _, count in choices[begin:end])))
        end = begin
    return clusters


def worst_pairs(parts: Sequence[tuple[Profile, int]], tilt: float) -> list[tuple[Profile, int]]:
    """Every choice as the two-point pair whose loss, under this tilt, grows most: one that is not adaptive."""
    return [(_two_point(one, tilt) if isinstance(one, Exponential) else one, count) for one, count in parts]


def _two_point(one: Exponential, tilt: float) -> TwoPoint:
    eta = one.eta
    rising = eta * np.arange(1, 64) / 64
    above = np.expm1(rising - eta) / np.expm1(-eta)
    moments = above * np.exp(tilt * (rising - eta)) + (1 - above) * np.exp(tilt * (rising - 2 * eta))
    return TwoPoint(eta, float(rising[int(np.argmax(moments))]))


__all__ = ["Choices", "TwoPoint", "is_followed", "refuted", "together", "worst_pairs"]
