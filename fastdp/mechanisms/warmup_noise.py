"""What `fastdp.warmup` calls for noise alone: `laplace` and `gaussian`, and the words by which doubts are settled."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..randomness import noise_plans
from ..randomness.keys import Randomness
from ..randomness.warmup import words
from ..support.warmup import Steps
from . import noise


def arrays() -> list[tuple[str, Any, float | None]]:
    """Name, array and grid: a read-only array is a type of its own to the compiler."""
    made = []
    for numbers, grid in ((np.arange(3), None), (np.arange(3.0), 1.0)):
        for suffix in ("", ", read-only"):
            array: Any = numbers.copy()
            array.flags.writeable = not suffix
            made.append((f"{array.dtype}{suffix}", array, grid))
    return made


def steps() -> Steps:
    """One step for each kernel and type of array."""
    made = words()
    key = Randomness().key
    for name, array, grid in arrays():
        made.append((f"laplace, {name}", partial(noise.release, array, grid, noise_plans.laplace_plan(1.0), key)))
        made.append((f"gaussian, {name}", partial(noise.release, array, grid, noise_plans.gaussian_plan(1.0), key)))
    return made
