"""Noise that is drawn many at a time, for what is asked one query at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..randomness import noise_draws
from ..randomness.keys import Randomness, fresh_key
from ..randomness.noise_plans import NoisePlan

DRAWS = 1024  # noises drawn at a time


class NoiseAhead:
    """Draws of one law, made many at a time; none is used twice."""

    def __init__(self, plan: NoisePlan, rng: Randomness | None) -> None:
        self._plan, self._rng = plan, rng
        self.renew()

    def renew(self) -> None:
        """Throw away what has been drawn ahead."""
        self._draws = np.empty(0, np.int64)

    def draw(self, count: int) -> NDArray[np.int64]:
        """So many draws."""
        if self._draws.size < count:
            more = noise_draws.integer_noise(self._plan, fresh_key(self._rng), max(count, DRAWS if count > 2 else 64))
            self._draws = np.concatenate((self._draws, more))
        drawn, self._draws = self._draws[:count], self._draws[count:]
        return drawn
