"""The squared distance of tables in which every component counts by the inverse of its variance.

With equal noise on all entries it is the sum of squares over all tables; with noise that has been planned the entropic
fit weighs components so. Post-processing, in floats. release_marginals.md, "The entropic fit".
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from .least_squares_fit import Axes, LeastSquares, Table

_GENTLE = 16  # tables to a unit of the smoothness that a fit begins with; release_marginals.md, below lemma 2


class EqualMetric:
    """Equal noise: the sum of squares, in which tables with that noise are `unit` squared times the rank off."""

    gentle = _GENTLE

    def __init__(self, sigma: float) -> None:
        self.unit = sigma

    def apply(self, gap: Table) -> Table:
        """The differences of all tables, weighted."""
        return gap


class ComponentMetric:
    """Components with variances of their own. No weight is above 1, so what bounds the sum of squares bounds this.

    A component of a table is a signed sum of the means over its other axes, so weighing components is weighing means:
    one `_part` for each number of a subset of axes, with the mean that every entry takes part in, and its factor.
    """

    def __init__(self, least_squares: LeastSquares, variances: Mapping[Axes, Table]) -> None:
        ratios = {shape: variances[shape] * weight for shape, weight in least_squares.weight.items()}
        known = np.concatenate([ratio[ratio > 0] for ratio in ratios.values()])
        self.unit = float(known.min()) ** 0.5 if known.size else 1.0
        equal = not known.size or known.max() <= (1 + 1e-9) * known.min()
        self.gentle = _GENTLE if equal else 4 * _GENTLE
        workload = least_squares.workload
        most = max(map(len, workload.positions))
        starts = np.cumsum([0, *(prod(shape) for shape in workload.shapes)])
        self._of = np.zeros((1 << most, len(workload)), np.int64)  # which mean an entry is in; 0 for none
        self._factors = np.zeros(self._of.shape)
        self._rooms = [1] * (1 << most)
        for axes, which in least_squares.tables_by_shape().items():
            at = starts[which][:, None] + np.arange(prod(axes))
            codes = np.indices(axes).reshape(len(axes), prod(axes))
            weights = np.empty((1 << len(axes), len(which)))  # of the components, by the mask of their axes
            for indices, places in least_squares.places_of(axes, which):
                ratio = ratios[tuple(axes[i] for i in indices)][places]
                mask = sum(1 << i for i in indices)
                weights[mask] = np.divide(self.unit**2, ratio, out=np.ones(len(which)), where=ratio > 0)
            for i in range(len(axes)):  # of the means: signed sums over supersets
                halves = weights.reshape(-1, 2, 1 << i, len(which))
                halves[:, 0] -= halves[:, 1]
            for mask, factors in enumerate(weights):
                kept = [i for i in range(len(axes)) if mask >> i & 1]
                means = prod(axes[i] for i in kept)
                place = np.ravel_multi_index([codes[i] for i in kept], [axes[i] for i in kept]) if kept else 0
                places = self._rooms[mask] + means * np.arange(len(which))[:, None]
                self._of[mask][at] = places + place
                self._factors[mask][at] = factors[:, None] * (means / prod(axes))
                self._rooms[mask] += means * len(which)

    def apply(self, gap: Table) -> Table:
        """The differences of all tables, one after the other, with each component times its weight.

        They are those of consistent tables, so each table's own components are everybody's.
        """
        out, means = np.zeros(gap.size), np.empty(gap.size)
        for of, factors, room in zip(self._of, self._factors, self._rooms, strict=True):
            if room == gap.size + 1:  # every entry is a mean
                np.multiply(factors, gap, out=means)
            else:
                np.take(np.bincount(of, gap, room), of, out=means, mode="clip")  # places are in range
                means *= factors
            out += means
        return out


Metric = EqualMetric | ComponentMetric
