"""What several subjects of the noise room share: sizes, and how a scale stands in a name."""

from __future__ import annotations

import numpy as np

N = 1_000_000
PEER_N = 10_000  # numbers of the others that take more than 10 us for each


def in_words(value: float) -> str:
    power = int(np.log2(value)) if value >= 1 else 0
    return f"2^{power}" if value == 2**power and power > 9 else f"{value:g}"
