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
        self._draws, self._used = np.empty(0, np.int64), 0

    @property
    def left(self) -> int:
        """How many draws have been made that nobody has seen."""
        return self._draws.size - self._used

    def draw(self, count: int) -> NDArray[np.int64]:
        """So many draws."""
        first, last = self._used, self._used + count
        if last > self._draws.size:
            more = noise_draws.integer_noise(self._plan, fresh_key(self._rng), max(count, DRAWS if count > 2 else 64))
            self._draws, first, last = np.concatenate((self._draws[first:], more)), 0, count
        self._used = last  # before they are given out
        return self._draws[first:last]

    def draw_one(self) -> int:
        """One draw, as a number."""
        used = self._used
        if used >= self._draws.size:
            return int(self.draw(1)[0])
        self._used = used + 1
        return self._draws.item(used)
