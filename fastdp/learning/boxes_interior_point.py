"""method="interior-point" of `learn_box`: an interior point of the outermost positives, for each side.

boxes.md, theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log

import numpy as np

from ..kernels.layout import LN2
from ..mechanisms.quantiles import HALF
from ..mechanisms.rank_selection import draw_by_rank, rank_law
from .box_parameters import BoxKeys, BoxProblem, SideParameters, by_composition, with_test
from .extremes import Numbers


@dataclass(frozen=True)
class BoxInteriorPointParameters(SideParameters):
    """An interior point of the least positives, and one of the greatest, in each column."""

    def choose_sides(self, numbers: Numbers, i: int, keys: BoxKeys) -> tuple[int, int]:
        last, eta = numbers.orders[i].last, Fraction(self.eta)
        least, greatest = numbers.extremes(i, self.slice, keys.records)
        law, key = rank_law(HALF, last, eta), keys.choices
        low = draw_by_rank(least.positions, law, lambda: key, 2 * i)
        high = draw_by_rank(np.uint64(last) - greatest.positions, law, lambda: key, 2 * i + 1)
        return low, last - high


@lru_cache(256)
def prepare_interior_point(problem: BoxProblem) -> BoxInteriorPointParameters:
    """Theorem 2."""

    def size(eta: float, beta: float) -> int:
        points = max(problem.bits) * LN2
        return 2 * ceil((points + log(problem.sides / beta)) / eta) - 1

    return with_test(BoxInteriorPointParameters, problem, by_composition, size)
