"""What `fastdp.warmup` calls for noise alone: `laplace` and `gaussian`, and the words by which doubts are settled."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..randomness import noise_plans
from ..randomness.keys import Randomness, secure_bytes
from ..randomness.noise_draws import FewDraws
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
    laws: dict[str, noise_plans.NoisePlan] = {
        "laplace": noise_plans.laplace_plan(1.0),
        "gaussian": noise_plans.gaussian_plan(1.0),
    }
    for name, array, grid in arrays():
        for law, plan in laws.items():
            made.append((f"{law}, {name}", partial(noise.release, array, grid, plan, key)))
            if array.flags.writeable:  # few are copied
                made.append((f"{law}, few {name}", partial(FewDraws(plan, grid).release, array, secure_bytes)))
    return made
