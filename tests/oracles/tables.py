"""Tables of counts: what is nearest to estimates of them, by sorting and in fractions."""

from fractions import Fraction
from itertools import accumulate, product

import numpy as np


def nearest_table(values: list[float], total: float) -> list[float]:
    """The point with entries >= 0 and this sum that is nearest: the largest k entries, less what they have too much.

    k is the largest number of entries that all stay above 0.
    """
    exact = sorted((Fraction(value) for value in values), reverse=True)
    cuts = [(above - Fraction(total)) / k for k, above in enumerate(accumulate(exact), 1)]
    cut = next(cuts[k - 1] for k in range(len(exact), 0, -1) if exact[k - 1] > cuts[k - 1])
    return [float(max(Fraction(value) - cut, Fraction(0))) for value in values]


def differences(table: np.ndarray) -> np.ndarray:
    """Differences from the last entry along every axis."""
    for axis in range(table.ndim):
        last = [slice(None)] * table.ndim
        last[axis] = slice(-1, None)
        table = table - table[tuple(last)]
    return table


def near_residual(shape: tuple[int, ...], cell: tuple[int, ...], bits: int) -> np.ndarray:
    """Near 2^bits times the residual of one record: inclusion and exclusion of marginals, each rounded to integers."""
    total: np.ndarray = np.zeros(shape, dtype=object)
    axes = range(len(shape))
    for kept in product((False, True), repeat=len(shape)):
        rest = 1
        for i in axes:
            rest *= 1 if kept[i] else shape[i]
        sign = (-1) ** (len(shape) - sum(kept))
        where = tuple(cell[i] if kept[i] else slice(None) for i in axes)
        total[where] += round(Fraction(sign * 2**bits, rest))
    return np.asarray(total)


def residual_law(table: np.ndarray, sigma: float, most: int) -> dict[tuple[int, ...], float]:
    """The law of the differences of a table with discrete Gaussian noise in every entry, by enumeration.

    Noise is enumerated as far as twice the largest entry, `most`, and nine sigma beyond.
    """
    reach = int(np.ceil(2 * most + 9 * sigma))
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    chosen = np.indices([steps.size] * table.size).reshape(table.size, -1).T
    noisy = table.reshape(-1) + steps[chosen]
    seen = np.stack([differences(noise.reshape(table.shape)).reshape(-1) for noise in np.eye(table.size, dtype=int)])
    keys, which = np.unique(noisy @ seen, axis=0, return_inverse=True)
    law = np.bincount(which.reshape(-1), weights[chosen].prod(axis=1))
    return dict(zip(map(tuple, keys.tolist()), law.tolist(), strict=True))
