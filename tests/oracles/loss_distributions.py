"""Compositions of privacy losses computed plainly: sums over all outcomes, losses rounded up or down on a fine grid.

Nothing is shared with the library: no connected dots, no bounds of errors, another way to the tilt.
"""

import math

import mpmath
import numpy as np
from mpmath import mpf


def response_losses(epsilon):
    """Randomised response: its two losses and their probabilities."""
    return np.array([-epsilon, epsilon]), np.array([1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))])


def laplace_losses(epsilon, step):
    """Laplace noise in small pieces: the upper end of each and its probability."""
    ends = np.linspace(-epsilon, epsilon, max(2, round(2 / step)))
    beyond = 1 - np.exp((ends - epsilon) / 2) / 2
    beyond[-1] = 0.0
    return ends, np.concatenate(([1 - beyond[0]], -np.diff(beyond)))


def _tilted_sum(indices, masses, count, tilt, step):
    """All masses of the sum of `count` losses, times e^(tilt loss) and scaled; and ln of the scale."""
    first = int(indices.min())
    width = int(indices.max()) - first + 1
    row = np.zeros(width)
    np.add.at(row, indices - first, masses)
    exponents = tilt * step * (first + np.arange(width))
    row *= np.exp(exponents - exponents.max())
    log_scale = math.log(row.sum()) + exponents.max()
    row /= row.sum()
    size = 2 ** math.ceil(math.log2(count * (width - 1) + 1))
    total = np.fft.irfft(np.fft.rfft(row, size) ** count, size)
    return np.maximum(total, 0.0), (count * first + np.arange(size)) * step, count * log_scale


def epsilon_of_rounded(losses, masses, count, delta, step, rounding):
    """The epsilon of `count` releases whose losses are rounded to multiples of the step: np.ceil or np.floor."""
    indices = rounding(np.round(losses / step, 9)).astype(int)
    values = indices * step

    def log_moment(t):
        return count * math.log(np.sum(masses * np.exp(t * (values - values.max())))) + count * t * values.max()

    low, high = 0.0, float(count * values.max())
    for _ in range(20):  # to about the right epsilon: by Chernoff's bound
        middle = (low + high) / 2
        tilts = np.geomspace(1e-3, 30 / values.max(), 80)
        bound = min(log_moment(t) - t * middle for t in tilts)
        low, high = (middle, high) if bound > math.log(delta) else (low, middle)
    tilt = min(tilts, key=lambda t: log_moment(t) - t * high)
    total, sums, log_scale = _tilted_sum(indices, masses, count, tilt, step)
    low, high = 0.0, float(count * values.max())
    for _ in range(55):
        middle = (low + high) / 2
        above = slice(*np.searchsorted(sums, (middle, middle + 100 / tilt)))  # what follows weighs below e^-100
        weights = np.exp(-tilt * (sums[above] - middle)) * -np.expm1(middle - sums[above])
        reached = math.exp(min(700.0, log_scale - tilt * middle)) * np.sum(total[above] * weights)
        low, high = (middle, high) if reached > delta else (low, middle)
    return high


def epsilon_of_rounded_up(losses, masses, count, delta, step):
    return epsilon_of_rounded(losses, masses, count, delta, step, np.ceil)


def epsilon_of_rounded_down(losses, masses, count, delta, step):
    return epsilon_of_rounded(losses, masses, count, delta, step, np.floor)


def exact_delta(kinds, epsilon):
    """Delta of randomised responses at epsilon, in 60 digits: kinds are (epsilon of one, count)."""
    with mpmath.workdps(60):
        outcomes = {mpf(0): mpf(1)}
        for one, count in kinds:
            e = mpf(one)
            right = 1 / (1 + mpmath.exp(-e))
            each = {
                e * (2 * j - count): mpmath.binomial(count, j) * right**j * (1 - right) ** (count - j)
                for j in range(count + 1)
            }
            together = {}
            for loss, mass in outcomes.items():
                for more, share in each.items():
                    together[loss + more] = together.get(loss + more, mpf(0)) + mass * share
            outcomes = together
        return mpmath.fsum(
            mass * (1 - mpmath.exp(mpf(epsilon) - loss)) for loss, mass in outcomes.items() if loss > mpf(epsilon)
        )


def worst_choices(eta, count, cells, kept, sign=1):
    """What `count` choices of this range reach at x = ..., -h, 0, every interval of t at every point: an upper bound,
    or with sign=-1 a lower one, without what rounding may hide.

    Points below -kept h are not followed: the last one's value falls as e^x there at least, and counts as 0 below.
    """
    h = eta / cells
    t = np.arange(cells + 1) * h
    share = np.exp(-t) * np.expm1(t - eta) / math.expm1(-eta)
    bulge = math.tanh(h / 4) / -math.expm1(-eta)
    known = {0: 0.0}  # by -x / h
    cut = False
    for _ in range(count):
        lowest, last = max(known), min(max(known) + cells, kept)
        values = {-i: known[i] for i in known}
        for i in range(lowest + 1, last + cells + 1):
            values[-i] = known[lowest] * math.exp(-h * (i - lowest)) if cut and sign > 0 else 0.0
        for i in range(1, cells + 1):
            values[i] = math.expm1(i * h) + math.exp(i * h) * values[-i]
        line = np.array([values[i] for i in range(-last - cells, cells + 1)])
        high = np.lib.stride_tricks.sliding_window_view(line[cells:], cells + 1)  # x + t, row by row
        low = np.lib.stride_tricks.sliding_window_view(line, cells + 1)[: len(high)]
        ends = share * high + (1 - share) * low
        best = ends.max(axis=1)
        if sign > 0:
            slopes = (high - low) * np.exp(-t)
            between = np.maximum(ends[:, 1:], ends[:, :-1]) + bulge * np.maximum(np.diff(slopes, axis=1), 0.0)
            best = between.max(axis=1)
        cut = cut or last < lowest + cells
        known = {i: float(best[last - i]) for i in range(last + 1)}
    return np.array([known[i] for i in range(max(known), -1, -1)])
