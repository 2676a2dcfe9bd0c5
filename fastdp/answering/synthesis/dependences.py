"""How far tables are from what is expected of them: exact integers, one for each table, and what they are compared to.

The distance of a table from what has been released makes of it, in L1. What it is compared with is rounded
to the grid of the noise first, so a distance is a sum of integers, and one record moves it by 1 or 2: synthesize.md,
theorem 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..least_squares_fit import Table

Counts = NDArray[np.int64]


def nearest_shares(noisy: Table) -> Table:
    """The distribution nearest to a noisy table of counts, scaled to its total: in the sum of squares."""
    flat = noisy.reshape(-1)
    total = max(float(flat.sum()), 1.0)
    falling = np.sort(flat)[::-1]
    above = np.cumsum(falling) - total
    last = int(np.flatnonzero(falling * np.arange(1, flat.size + 1) > above)[-1])
    shares = np.maximum(flat - above[last] / (last + 1), 0.0)
    found: Table = (shares / shares.sum()).reshape(noisy.shape)
    return found


def independent_shares(shares: Sequence[Table]) -> Table:
    """The distribution of columns with these shares, if they were independent."""
    product: Table = np.array(1.0)
    for share in shares:
        product = np.multiply.outer(product, share)
    return product


def expected_table(shares: Table, total: float, bits: int) -> Counts:
    """What is expected of so many records with these shares: in units of 2^-bits records."""
    rounded: Counts = np.rint(total * 2.0**bits * shares).astype(np.int64)
    return rounded


def distance(counts: Counts, expected: Counts, bits: int) -> int:
    """The L1 distance of a table of counts from one in units of 2^-bits records, in these units."""
    return int(np.abs((counts << bits) - expected).sum())
