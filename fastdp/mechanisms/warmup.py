"""What `fastdp.warmup` calls of this room: noise and choices, for both types of numbers, writable and read-only."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.composition import compose
from ..privacy.guarantees import BoundedRange
from ..randomness.keys import Randomness
from ..records.number_line import NumberLine
from ..records.ordering import sort_positions
from ..support.warmup import Steps
from . import scores, warmup_noise
from .buckets import Buckets
from .gumbel_max import GumbelState
from .permute_and_flip import draw_head, draw_head_of_many
from .quantile_draws import draw_quantiles
from .quantile_plan import QuantilePlan
from .rank_selection import RankLaw, draw_by_rank
from .selection import draw_one


def steps() -> Steps:
    """Those of noise, and one step for each kernel and type of array."""
    made = warmup_noise.steps()
    for name, array, _ in warmup_noise.arrays():
        made.append((f"selection, {name}", partial(_choose, array)))
    made.append(("quantiles", partial(_divide, np.array([0, 1, 1]))))
    made.append(("many numbers in order", partial(sort_positions, np.zeros(2**14, np.uint64))))
    made.append(("choices that share a total", _share))
    return made


def _divide(numbers: NDArray[Any]) -> None:
    draw_by_rank(numbers.astype(np.uint64), RankLaw(Fraction(1, 2), 1, Fraction(1)), Randomness().key)
    line = NumberLine.of(numbers.dtype, 64, None, "values")
    plan = QuantilePlan.of([Fraction(1, 4), Fraction(1, 2)], epsilon=1.0)
    draw_quantiles(line.positions(numbers, "raise", "values"), line, plan, Randomness().key())


def _share() -> None:
    compose((BoundedRange(0.1), 3), delta=1e-6)


def _choose(array: NDArray[Any]) -> None:
    key = Randomness().key()
    tops, top = scores.tops_of(array)
    GumbelState(key, 1.0, 2).add(array, 0, tops, top)
    scores.allowed(array)
    Buckets(array, 1.0).draw(key, 1)
    scores.check_scores(array)
    draw_one(array, key, 1.0)
    draw_head(array, top, key, 1.0)
    draw_head_of_many(array, top, key, 1.0)
