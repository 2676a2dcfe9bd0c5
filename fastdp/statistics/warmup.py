"""What `fastdp.warmup` calls of this room: the sums of a column, for every type of array, and the counts of strings."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..kernels.clamped_sums import sum_clamped_floats, sum_clamped_integers, sum_clamped_squares
from ..support.arrow_strings import count_bytes
from ..support.warmup import Steps


def steps() -> Steps:
    """One step for each type of numbers, and one for strings."""
    made: Steps = [("sums of integers", partial(sum_clamped_integers, np.zeros(1, np.int64), 0, 1))]
    for kind in (np.float32, np.float64):
        made.append((f"sums of {np.dtype(kind)}", partial(_sum, np.zeros(1, kind))))
    return [*made, ("counts of strings", partial(count_bytes, np.zeros(8, np.uint8), np.arange(3)))]


def _sum(values: Any) -> None:
    sum_clamped_floats(values, 1.0, 0.0, 1.0)
    sum_clamped_squares(values, 1.0, 0.0, 1.0)
