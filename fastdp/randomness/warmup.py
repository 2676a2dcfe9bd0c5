"""What `fastdp.warmup` calls of this room: words, one word, numpy's bit generator."""

from __future__ import annotations

import numpy as np

from ..kernels.words import word_one
from ..support.warmup import Steps
from .keys import Randomness


def steps() -> Steps:
    """One step for each kernel."""
    return [*words(), ("numpy generator", _draw)]


def words() -> Steps:
    """What all that draws may need."""
    return [
        ("random words", lambda: Randomness().words(3)),
        ("one random word", lambda: word_one(Randomness().key(), 0, 0)),
    ]


def _draw() -> None:
    draw = Randomness().generator()
    draw.integers(0, 2**64, dtype=np.uint64, size=3)
    draw.standard_normal(3)
