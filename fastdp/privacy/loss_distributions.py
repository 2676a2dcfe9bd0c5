"""Loss distributions: what several releases, declared in advance, guarantee together, to a part in a thousand.

The numbers chosen here (the grid's step, the tilt) decide how close the bounds are and never whether they hold:
loss_grid.py bounds every error, and loss_distributions.md proves it. All of it is computed from public numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, frexp, fsum, inf, isfinite, ldexp, log, log1p, log2, log10, nextafter, sqrt

import numpy as np

from ..support.rounding import up
from .choices import Choices, is_followed, refuted, together, worst_pairs
from .loss_grid import Composition, connect_dots, lattices_on_grid, rows_on_grid
from .profiles import Array, Exponential, Gaussian, Profile

Parts = Sequence[tuple[Profile, int]]

SMALLEST_DELTA, SMALLEST_LOSS = 1e-150, 1e-130
CLOSE = 1e-3  # how far apart the bounds may be, relative; the upper one is some eight times closer to the truth
FINEST = 2.0**-18  # of the widest release, or of the whole
_ATTEMPTS = 3
_PASSES = 12  # of a delta, whose tails are to be far below it


@dataclass(frozen=True)
class Bounds:
    """No smaller epsilon than `at_least` holds at this delta, and `at_most` does."""

    at_most: float
    at_least: float
    is_close: bool = False  # to what is true, so that theorems that know less cannot give less


@dataclass(frozen=True)
class _Shape:
    """The cumulants of releases of one kind, nearly: from tables of a few cells each."""

    losses: Array
    masses: Array
    counts: Array

    @staticmethod
    def of(parts: Parts, tail: float) -> _Shape:
        first = parts[0][0]
        bounded = first.bound < inf
        cells = 16 if bounded else 512 if first.directions == 1 else 2048
        profile = first.stacked([part[0] for part in parts]) if len(parts) > 1 else first
        ends = np.array([[part.end(tail)] for part, _ in parts])
        losses = ends * (np.arange(-cells - 1, cells + 2) / cells)
        delta, error = profile.values(losses if len(parts) > 1 else losses[0])
        masses, _, _ = connect_dots(np.atleast_2d(delta), 0.0 * np.atleast_2d(error), losses[:, -1:] - losses[:, -2:-1])
        return _Shape(losses, masses, np.array([float(count) for _, count in parts]))

    def cumulants(self, tilt: float) -> Array:
        """K, K', K'' of all of them together."""
        exponents = tilt * self.losses
        top = exponents.max(axis=1, keepdims=True)
        with np.errstate(under="ignore"):
            masses = self.masses * np.exp(exponents - top)
        sums = masses.sum(axis=1)
        means = (masses * self.losses).sum(axis=1) / sums
        variances = np.maximum((masses * self.losses**2).sum(axis=1) / sums - means**2, 0.0)
        logs = np.log(sums) + top[:, 0]
        return (self.counts * np.array([logs, means, variances])).sum(axis=1)


@dataclass(frozen=True)
class _Gaussians:
    """The same of Gaussian noise, exactly."""

    square: float

    def cumulants(self, tilt: float) -> Array:
        return np.array([self.square * tilt * (tilt + 1) / 2, self.square * (tilt + 0.5), self.square])


def _shapes(parts: Parts, tail: float) -> list[_Shape | _Gaussians]:
    shapes: list[_Shape | _Gaussians] = []
    kinds: dict[Hashable, list[tuple[Profile, int]]] = {}
    for profile, count in parts:
        if isinstance(profile, Gaussian):
            shapes.append(_Gaussians(profile.mu**2 * count))
        elif isinstance(profile, Choices) and profile.eta < 0.5:
            shapes.append(_Gaussians(profile.eta**2 / 4 * profile.count * count))  # nearly, and without a table
        elif isfinite(profile.bound):
            kinds.setdefault(profile.kind, []).append((profile, count))
        else:
            shapes.append(_Shape.of([(profile, count)], tail))
    return shapes + [_Shape.of(members, tail) for members in kinds.values()]


def _tilt(shapes: Sequence[_Shape | _Gaussians], delta: float, most: float) -> tuple[float, float, float]:
    """A tilt under which losses near epsilon are the likely ones; that epsilon, nearly, and the deviation there."""
    goal = log(delta)
    scale = sqrt(max(sum(shape.cumulants(0.0)[2] for shape in shapes), 1e-300))
    low, high = min(1e-3 / scale, most / 2), most
    found = (low, 0.0, scale)
    for _ in range(60):
        tilt = sqrt(low * high)
        growth, mean, variance = sum(shape.cumulants(tilt) for shape in shapes)
        deviation = sqrt(max(variance, 0.0))
        found = tilt, float(mean), deviation
        reached = growth - tilt * mean - log(1 + 2.5 * tilt * deviation) - log(1 + tilt)
        low, high = (tilt, high) if reached > goal else (low, tilt)
        if high < 1.01 * low:
            break
    return found


def _common_step(parts: Parts) -> float:
    """The step of a grid on which all losses lie, where there is one that is not too fine; else 0."""
    spacings = [profile.spacing for profile, _ in parts]
    least = min(spacings)
    if not least or any(spacing % least for spacing in spacings):  # of floats, % is exact
        return 0.0
    return least if max(profile.bound for profile, _ in parts) <= least / FINEST else 0.0


def _short(step: float) -> float:
    """Not less, with 32 digits in binary."""
    fraction, exponent = frexp(step)
    return ldexp(ceil(fraction * 2**32), exponent - 32)


def _aligned(parts: Parts, step: float) -> float:
    """A step of about this size, such that the bound of the release that weighs most is a multiple."""
    bounds = [(profile.bound * count, profile.bound) for profile, count in parts if step < profile.bound < inf]
    if not bounds:
        return _short(step)
    widest = max(bounds)[1]
    return _short(widest) / 2.0 ** max(0, ceil(log2(widest / step)))


def chosen(parts: Sequence[tuple[tuple[Profile, ...], int]], delta: float) -> Parts:
    """One profile of each: that which adds least at about the losses that matter."""
    first = [(profiles[0], count) for profiles, count in parts]
    if all(len(profiles) == 1 for profiles, _ in parts):
        return first
    tail = max(1e-300, delta * 1e-6)
    finite = [part for part in first if part[0].bound]
    if not finite:
        return first
    tilt = _tilt(_shapes(finite, tail), delta, 500 / max(profile.width(tail) for profile, _ in finite))[0]

    def cost(profile: Profile) -> float:
        return float(_shapes([(profile, 1)], tail)[0].cumulants(tilt)[0]) if profile.bound else 0.0

    return [(profiles[0] if len(profiles) == 1 else min(profiles, key=cost), count) for profiles, count in parts]


def _merged(parts: Parts) -> list[tuple[Profile, int]]:
    """Each profile once, Gaussian noise as one, what costs nothing left out; in an order of their own."""
    square = sum((Fraction(profile.mu) ** 2 * k for profile, k in parts if isinstance(profile, Gaussian)), Fraction(0))
    counts: dict[Profile, int] = {}
    for profile, count in parts:
        if not isinstance(profile, Gaussian) and profile.bound > 0:
            counts[profile] = counts.get(profile, 0) + count
    merged = sorted(counts.items(), key=lambda item: (type(item[0]).__name__, repr(item[0])))
    if not square:
        return merged
    mu = sqrt(square)
    while Fraction(mu) ** 2 < square:
        mu = nextafter(mu, inf)
    return [*merged, (Gaussian(mu), 1)]


def _tail(delta: float, releases: int) -> float:
    """What each of them may leave out: a power of 10, as tables are kept."""
    return 10.0 ** max(-299, floor(log10(delta * 1e-6 / releases)))


@np.errstate(all="ignore")  # whatever the host has set: what overflows is out of range, and told so
def epsilon_bounds(parts: Parts, *, delta: float, leak: float = 0.0, both: bool = True) -> Bounds | None:
    """Epsilon at delta for all releases together, whose leaks add up to `leak`.

    None where the numbers are out of the range of float64. The lower bound may take as long as the upper one; it is 0
    where it does and not `both` are asked for.
    """
    if not delta - leak >= SMALLEST_DELTA or delta >= 1:
        return None
    # that some release leaks has probability from leak - leak^2/2 to leak
    goals = (delta - leak) / (1 - leak) * (1 - 2.0**-50), (delta - leak * (1 - leak / 2)) / (1 - leak) * (1 + 2.0**-50)
    merged = _merged(parts)
    if not merged:
        return Bounds(0.0, 0.0)
    tail = _tail(goals[0], sum(count for _, count in merged))
    directions = [together(merged, tail)]
    if any(profile.directions > 1 for profile, _ in merged):
        directions.append([(profile.reversed(), count) for profile, count in directions[0]])
    found = [_one_direction(direction, goals) for direction in directions]
    if any(bounds is None for bounds in found):
        return None
    at_most = max(bounds.at_most for bounds in found if bounds)
    if any(not (profile.attained or isinstance(profile, Exponential)) for profile, _ in merged):
        return Bounds(at_most, 0.0)
    if all(profile.attained for profile, _ in merged) or [count for _, count in merged] == [1]:
        at_least = max(bounds.at_least for bounds in found if bounds)
        return Bounds(at_most, at_least, at_least > 0)
    at_least = min(at_most, _exceeded(merged, goals, tail)) if both else 0.0
    one_kind = len(merged) == 1 and all(isinstance(profile, Choices) for profile, _ in directions[0])
    return Bounds(at_most, at_least, one_kind)


def _exceeded(parts: Parts, goals: tuple[float, float], tail: float) -> float:
    """An epsilon that some choices exceed: those of one kind may depend on results, others are pairs by themselves.

    loss_distributions.md, theorem 7.
    """
    first, count = parts[0]
    if len(parts) == 1 and isinstance(first, Exponential) and is_followed(first.eta, count):
        return refuted(first.eta, count, goals[1], tail)
    widest = max(profile.end(tail) for profile, _ in parts)
    if widest < SMALLEST_LOSS:
        return 0.0
    pairs = worst_pairs(parts, 1.0)
    for _ in range(2):
        tilt, _, _ = _tilt(_shapes(pairs, tail), goals[1], 500 / widest)
        pairs = worst_pairs(parts, tilt)
    found = _one_direction(_merged(pairs), goals, close=CLOSE / 16)
    return 0.0 if found is None else found.at_least


@np.errstate(all="ignore")
def delta_bound(parts: Parts, *, epsilon: float, leak: float = 0.0) -> float:
    """Delta at epsilon for all releases together, whose leaks add up to `leak`: rounded up, at most 1.

    Parameters
    ----------
    parts : sequence of tuple of Profile and int
        Each profile, and how often it comes.
    epsilon : float >= 0
        The bound of the privacy loss.
    leak : float >= 0
        The sum of what they leak.

    Returns
    -------
    float
        1 where the numbers are out of the range of float64.
    """
    merged = _merged(parts)
    directions = [merged]
    if any(profile.directions > 1 for profile, _ in merged):
        directions.append([(profile.reversed(), count) for profile, count in merged])
    found = max(_delta_of_direction(direction, epsilon) for direction in directions) if merged else 0.0
    return min(1.0, (leak + (1 - min(leak, 1.0)) * found) * (1 + 2.0**-50))


def _delta_of_direction(merged: Parts, epsilon: float) -> float:
    if len(merged) == 1 and merged[0][1] == 1:
        delta, error = merged[0][0].values(np.array([epsilon]))
        return float(delta[0] + error[0])
    bounded = all(isfinite(profile.bound) for profile, _ in merged)
    if bounded and epsilon >= sum(Fraction(profile.bound) * count for profile, count in merged):
        return 0.0
    total, best, before = sum(count for _, count in merged), 1e-9, inf
    found = 1.0
    for _ in range(_PASSES):
        if best > 0.9 * before:
            break
        before = best
        tail = _tail(best, total)
        parts = together(merged, tail)
        widest = max(profile.width(tail) for profile, _ in parts)
        shapes = _shapes(parts, tail)
        tilt, deviation = _tilt_to(shapes, epsilon, 500 / widest)
        step = sqrt(CLOSE * max(epsilon, 1e-3 * deviation) / (0.68 * total * (1 + tilt)))
        common = _common_step(parts)
        step = common or _aligned(parts, max(step, FINEST * max(widest, deviation)))
        rows = lattices_on_grid(parts, step) if common else rows_on_grid(parts, step, tail)
        made = Composition.of(rows, tilt=tilt, step=step, off_grid=0.0 if common else float(total))
        found = min(found, 1.0 if made is None else made.at_most(epsilon))
        best = min(best, found)
    return found


def _tilt_to(shapes: Sequence[_Shape | _Gaussians], epsilon: float, most: float) -> tuple[float, float]:
    """A tilt under which losses near epsilon are the likely ones, and the deviation there."""
    scale = sqrt(max(sum(shape.cumulants(0.0)[2] for shape in shapes), 1e-300))
    low, high = min(1e-3 / scale, most / 2), most
    for _ in range(40):
        tilt = sqrt(low * high)
        low, high = (tilt, high) if sum(shape.cumulants(tilt)[1] for shape in shapes) < epsilon else (low, tilt)
    return low, sqrt(max(0.0, sum(shape.cumulants(low)[2] for shape in shapes)))


def _one_direction(parts: Parts, goals: tuple[float, float], close: float = CLOSE) -> Bounds | None:
    """Epsilon at the first goal, and one that is refuted at the second."""
    if len(parts) == 1 and parts[0][1] == 1:
        return _one_release(parts[0][0], goals)
    bounded = all(isfinite(profile.bound) for profile, _ in parts)
    most = up(sum(Fraction(profile.bound) * count for profile, count in parts)) if bounded else inf
    best = Bounds(most, _all_at_bounds(parts, goals[1], most) if bounded else 0.0)
    if most < SMALLEST_LOSS or most <= goals[0]:  # at epsilon = 0 delta is at most that
        return Bounds(0.0 if most <= goals[0] else most, 0.0)
    if best.at_least > (1 - CLOSE / 16) * best.at_most:
        return best
    total = sum(count for _, count in parts)
    tail = max(1e-300, goals[0] * 1e-6 / total)
    widest = max(profile.width(tail) for profile, _ in parts)
    tilt, epsilon, deviation = _tilt(_shapes(parts, tail), goals[0], 500 / widest)
    common = _common_step(parts)
    goal = close
    for _ in range(_ATTEMPTS):
        step = sqrt(close * max(epsilon, 1e-3 * deviation) / (0.68 * total * (1 + tilt)))
        step = common or _aligned(parts, max(step, FINEST * max(widest, deviation)))
        rows = lattices_on_grid(parts, step) if common else rows_on_grid(parts, step, tail)
        made = Composition.of(rows, tilt=tilt, step=step, off_grid=0.0 if common else float(total))
        at_most = None if made is None else _least_epsilon(made, goals[0])
        if made is None or at_most is None:
            break
        at_least = _greatest_refuted(made, goals[1], at_most)
        best = Bounds(min(best.at_most, at_most), max(best.at_least, at_least))
        if common or best.at_most <= best.at_least * (1 + 2 * goal):
            break
        close /= 16
    return best if best.at_most < inf else None


def _one_release(profile: Profile, goals: tuple[float, float]) -> Bounds:
    """Of one release there is nothing to compose: its profile decides, at ever finer epsilons."""
    bounds = []
    for goal, sign in zip(goals, (1, -1), strict=True):
        low, high = 0.0, profile.end(goal / 2)
        for _ in range(9):
            epsilons = np.linspace(low, high, 64)
            delta, error = profile.values(epsilons)
            reached = delta + sign * error <= goal
            if reached[0]:
                low = high = epsilons[0]
                break
            i = int(np.argmax(reached)) if reached.any() else 63
            low, high = epsilons[i - 1], epsilons[i]
        bounds.append(float(high if sign > 0 else low))
    return Bounds(bounds[0], bounds[1])


def _all_at_bounds(parts: Parts, delta: float, most: float) -> float:
    """A refuted epsilon where delta is so small that all losses may be at their bounds at once; else 0."""
    logs = [(count, log(profile.mass_at_bound) if profile.mass_at_bound else -inf) for profile, count in parts]
    probability = exp(max(-700.0, fsum(count * value for count, value in logs)))
    if not probability > 2 * delta or probability < 1e-300:
        return 0.0
    return max(0.0, most + log1p(-delta / probability) * (1 + 2.0**-30) - 2.0**-40 * most)


def _least_epsilon(made: Composition, delta: float) -> float | None:
    """The least epsilon with at_most(epsilon) <= delta, nearly, and never less."""
    if made.at_most(0.0) <= delta:
        return 0.0
    losses, tilt = made.losses, made.tilt
    center = losses[len(losses) // 2]
    with np.errstate(under="ignore", over="ignore"):
        first = np.maximum(made.masses, 0.0) * np.exp(np.clip(-tilt * (losses - center), -600.0, 600.0))
        above = np.cumsum(first[::-1])[::-1]
        moved = np.cumsum((first * np.exp(np.clip(center - losses, -300.0, 300.0)))[::-1])[::-1]
        goal = log(max(delta - made.infinite, 1e-300)) - made.log_scale + tilt * center
        deltas = above - np.exp(np.clip(losses - center, -300.0, 300.0)) * moved  # at each loss
        reached = np.log(np.maximum(deltas, 1e-300)) > goal
    i = int(np.nonzero(reached)[0][-1]) + 1 if reached.any() else 0
    if not 0 < i < len(losses):
        return None
    share = (above[i] - exp(goal)) / moved[i] if moved[i] > 0 else 0.0
    guess = center + log(share) if share > 0 else losses[i]
    guess = max(min(guess, losses[i]), losses[i - 1], 0.0)
    margin = 1e-12 * max(abs(guess), made.step)
    for _ in range(80):
        if made.at_most(guess + margin) <= delta:
            return nextafter(guess + margin, inf)
        margin *= 2
    return None


def _greatest_refuted(made: Composition, delta: float, at_most: float) -> float:
    """An epsilon, close to the greatest, with at_least(epsilon) > delta; 0 if there is none."""
    low, high = 0.0, at_most
    for share in (2.0**-11, 2.0**-9, 2.0**-7, 2.0**-4, 0.5):
        if made.at_least(at_most * (1 - share)) > delta:
            low = at_most * (1 - share)
            break
        high = at_most * (1 - share)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if made.at_least(middle) > delta else (low, middle)
    return low


__all__ = ["Bounds", "epsilon_bounds"]
