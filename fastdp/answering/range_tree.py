"""Counts of ranges by a tree over the bins: its shape, its shares of epsilon, and how noisy counts become one table.

A level of the tree is a table of counts; one record is in one node of each. Everything here is public numbers, or
post-processing of noisy counts, in floats. release_ranges.md derives the variances and the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[Any]
Floats = NDArray[np.float64]
Fans = tuple[tuple[int, ...], ...]  # for each level, from the top, into how many parts each attribute is split

SHARES = 256  # of epsilon, in whole numbers for each level
_BELOW = (4, 8, 16)  # parts of a node below the top, of one attribute
_EACH = (2, 3, 4, 6, 8, 12, 16)  # and of each of two
_MOST_TOP = 64  # parts at the top
_MOST_LEVELS = 6
_ROUNDS = 6  # of the search for shares
_LEAST_VARIANCE = 1e-12  # so that an epsilon without noise divides by no zero


@dataclass(frozen=True)
class RangeTree:
    """The shape of the tree, and its shares of epsilon.

    sizes    how many bins each attribute has
    fans     for each level from the top, into how many parts a node is split, by attribute
    shares   for each level, of 256
    known    whether the number of records is known
    variance the mean variance of the count of a range from the first bins, for levels of unit epsilon
    """

    sizes: tuple[int, ...]
    fans: Fans
    shares: tuple[int, ...]
    known: bool
    variance: float

    @property
    def children(self) -> tuple[int, ...]:
        """How many children a node of the level above has."""
        return tuple(map(prod, self.fans))

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Which leaves are bins: the others fill up the tree."""
        return self.leaves(np.ones(self.sizes, np.bool_))

    def leaves(self, cells: Cells) -> Cells:
        """An array of all bins in the order of the leaves, with zeros where there is no bin."""
        padded = [prod(fans) for fans in zip(*self.fans, strict=True)]
        out = np.zeros(padded, cells.dtype)
        out[tuple(slice(size) for size in self.sizes)] = cells
        return np.ascontiguousarray(out.reshape(self._split).transpose(self._order)).reshape(-1)

    def cells(self, leaves: Cells) -> Cells:
        """The same, back."""
        levels, attributes = len(self.fans), len(self.sizes)
        mixed = leaves.reshape([fan for fans in self.fans for fan in fans])
        back = [level * attributes + i for i in range(attributes) for level in range(levels)]
        padded = [prod(fans) for fans in zip(*self.fans, strict=True)]
        table = mixed.transpose(back).reshape(padded)
        return np.ascontiguousarray(table[tuple(slice(size) for size in self.sizes)])

    @property
    def _split(self) -> list[int]:
        return [fans[i] for i in range(len(self.sizes)) for fans in self.fans]

    @property
    def _order(self) -> list[int]:
        levels = len(self.fans)
        return [i * levels + level for level in range(levels) for i in range(len(self.sizes))]

    def levels(self, cells: Cells) -> list[Cells]:
        """The counts of all nodes, level by level from the top."""
        made = [self.leaves(cells)]
        for children in self.children[:0:-1]:
            made.append(made[-1].reshape(-1, children).sum(axis=1))
        return made[::-1]

    # --- how large the noise of the count of a range from the first bins is, before the fit

    def mean_variance(self, variances: Sequence[float]) -> float:
        """Over all ends of such ranges: lemma 2."""
        return _mean_variance(self.fans, list(map(_safe, variances)), self.known)

    def worst_variance(self, variances: Sequence[float]) -> float:
        """At most: lemma 3."""
        spread = _spread(self.fans, list(map(_safe, variances)))
        worst, cut, nodes = 0.0 if self.known else self.children[0] * spread[0], 1, [1] * len(self.sizes)
        for v, fans in zip(spread, self.fans, strict=True):
            worst += cut * v * prod(fans) / 4
            nodes = [count * fan for count, fan in zip(nodes, fans, strict=True)]
            cut = 1 if len(nodes) == 1 else sum(nodes)
        return worst

    # --- from noisy counts

    def estimates(self, noisy: Sequence[Cells], variances: Sequence[float]) -> list[Floats]:
        """For each node the best estimate from the noisy counts of itself and all below it."""
        spread = self.variances(variances)
        below = np.where(self.inside, noisy[-1], 0.0)
        made = [below]
        for level in range(len(noisy) - 2, -1, -1):
            sums = below.reshape(-1, self.children[level + 1]).sum(axis=1)
            apart = spread[level + 1].reshape(-1, self.children[level + 1]).sum(axis=1)
            own = _safe(variances[level])
            below = (noisy[level] * apart + sums * own) / (apart + own)
            made.append(below)
        return made[::-1]

    def variances(self, variances: Sequence[float]) -> list[Floats]:
        """The variances of these estimates; 0 where there is no bin."""
        below = np.where(self.inside, _safe(variances[-1]), 0.0)
        made = [below]
        for level in range(len(variances) - 2, -1, -1):
            sums, own = below.reshape(-1, self.children[level + 1]).sum(axis=1), _safe(variances[level])
            below = sums * own / (sums + own)
            made.append(below)
        return made[::-1]

    def fit(self, noisy: Sequence[Cells], variances: Sequence[float], n: float | None) -> Floats:
        """Counts >= 0 of all bins: from the top, the counts of a node's children nearest to their estimates that are
        >= 0 and sum to its own."""
        found = self.estimates(noisy, variances)
        present = [level > 0 for level in self.levels(np.ones(self.sizes, np.int64))]
        total = np.array([max(1.0, float(found[0].sum())) if n is None else n])
        for level, children in enumerate(self.children):
            estimates = np.where(present[level], found[level], -np.inf)
            total = nearest_shares(estimates.reshape(-1, children), total).reshape(-1)
        return np.asarray(self.cells(total), np.float64)

    def deviation(self, weights: Floats, variances: Sequence[float]) -> float:
        """The standard deviation of a weighted sum of all counts, before they are made >= 0: lemma 2."""
        shares, variance = self.leaves(weights), 0.0
        spread = self.variances(variances)
        for level in range(len(self.fans) - 1, -1, -1):
            children = self.children[level]
            of, apart = shares.reshape(-1, children), spread[level].reshape(-1, children)
            variance += float((of * of * apart).sum())
            if level or self.known:
                total = apart.sum(axis=1)
                shares = (of * apart).sum(axis=1) / np.where(total > 0, total, 1.0)
                variance -= float((shares * shares * total).sum())
        return float(np.sqrt(max(variance, 0.0)))


def nearest_shares(estimates: Floats, totals: Floats) -> Floats:
    """Row by row the numbers >= 0 with the given sum that are nearest to the estimates; -inf stays 0."""
    rows, children = estimates.shape
    with np.errstate(invalid="ignore"):  # of -inf less -inf
        ordered = -np.sort(-estimates, axis=1)
        over = np.cumsum(ordered, axis=1) - totals[:, None]
        above = ordered - over / np.arange(1, children + 1) > 0
    last = children - 1 - above[:, ::-1].argmax(axis=1)
    cut = np.where(above.any(axis=1), over[np.arange(rows), last] / (last + 1), np.inf)
    made: Floats = np.maximum(estimates - cut[:, None], 0.0)
    return made


def _safe(variance: float) -> float:
    return max(variance, _LEAST_VARIANCE)


# --- the shape, from public numbers alone


@lru_cache(64)
def tree_for(sizes: tuple[int, ...], *, known: bool) -> RangeTree:
    """The tree whose ranges have the least mean variance, of those that are tried."""
    tried = [_with_shares(sizes, fans, known) for fans in dict.fromkeys(_shapes(sizes))]
    return min(tried, key=lambda tree: (float(f"{tree.variance:.6g}"), len(tree.fans), tree.fans))


def _shapes(sizes: tuple[int, ...]) -> Iterator[Fans]:
    if len(sizes) == 1:
        for levels in range(_MOST_LEVELS):
            for below in combinations_with_replacement(_BELOW, levels):
                top = -(-sizes[0] // prod(below))
                if top >= 2 and (top <= _MOST_TOP or not levels):
                    yield ((top,), *((fan,) for fan in below))
        return
    for levels in range(1, _MOST_LEVELS + 1):
        for each in _EACH:
            columns = [_fans(size, each, levels) for size in sizes]
            if all(prod(fans) > 1 for fans in zip(*columns, strict=True)):
                yield tuple(zip(*columns, strict=True))


def _fans(size: int, each: int, levels: int) -> list[int]:
    fans = []
    for _ in range(levels - 1):
        fans.append(min(each, size))
        size = -(-size // fans[-1])
    return [size, *fans[::-1]]


def _with_shares(sizes: tuple[int, ...], fans: Fans, known: bool) -> RangeTree:
    """Shares of epsilon that nearly have the least variance: (change of the variance with that of a level)^(1/3)."""
    shares = np.full(len(fans), 1 / len(fans))
    for _ in range(_ROUNDS):
        before = _mean_variance(fans, (2 / shares**2).tolist(), known)
        moved = 2 / shares**2 * (1 + 1e-3 * np.eye(len(fans)))
        change = np.array([_mean_variance(fans, one, known) - before for one in moved.tolist()])
        shares = np.cbrt(np.maximum(change, 1e-12 * before) * shares**2)
        shares = shares / shares.sum()
    whole = np.maximum(1, np.floor(shares * SHARES)).astype(int)
    whole[-1] += SHARES - whole.sum()
    variances = 2 * (SHARES / whole) ** 2
    return RangeTree(sizes, fans, tuple(whole.tolist()), known, _mean_variance(fans, variances.tolist(), known))


def _mean_variance(fans: Fans, variances: Sequence[float], known: bool) -> float:
    """Of the counts of ranges from the first bins, over all their ends: release_ranges.md, lemma 2."""
    spread = _spread(fans, variances)
    top = prod(fans[0]) * spread[0]
    if len(fans[0]) == 1:
        return sum(v * (fan - 1) / 6 for v, (fan,) in zip(spread, fans, strict=True)) + (0.0 if known else top / 3)
    variance, rows, columns = 0.0 if known else top / 9, 1, 1
    for v, (down, across) in zip(spread, fans, strict=True):
        variance += v * (columns * across * (down - 1) + rows * down * (across - 1)) / 12
        rows, columns = rows * down, columns * across
    return variance


def _spread(fans: Fans, variances: Sequence[float]) -> list[float]:
    """The variance of the best estimate of a node from itself and all below it, level by level."""
    spread = [variances[-1]]
    for level in range(len(fans) - 2, -1, -1):
        below = prod(fans[level + 1]) * spread[-1]
        spread.append(below * variances[level] / (below + variances[level]))
    return spread[::-1]
