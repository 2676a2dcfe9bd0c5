"""Positions in order: what numpy sorts and partitions, in the way that is fast for the numbers at hand.

The result is that of `sort` whatever way is taken; ways are chosen by the numbers, and by time alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.uint64]

_MANY = 2**14  # from which a pass is worth its call
_HALF = 32
_SAMPLED = 256
_TIED = 48  # of those: with more of one number numpy's partition takes longer than its sort, up to thirty times


def sort_positions(values: Positions) -> None:
    """Sort in place: as numbers of 32 bits where the range or the spacing of the values allows it.

    Tried for a million values, which numpy sorts in 4.3 ms: halves by a partition and two threads 4.8, quarters 5.1.
    Buckets that are sorted when they are asked for: choices ask for a rank in nearly every bucket.
    """
    if values.size < _MANY:
        values.sort()
        return
    from ..kernels.ordering import find_span, narrow_into, widen_into

    least, greatest, differing = map(int, find_span(values))
    shift = max((differing & -differing).bit_length() - 1, 0)  # all are least plus a multiple of 2^shift
    if (greatest - least) >> shift >> _HALF:
        values.sort()
        return
    narrow, by = np.empty(values.size, np.uint32), (np.uint64(least), np.uint64(shift))
    narrow_into(values, *by, narrow)
    narrow.sort()
    widen_into(narrow, *by, values)


def has_many_ties(values: Positions) -> bool:
    """Whether so many values are likely equal that they are sorted faster than partitioned."""
    if values.size < _MANY:
        return False
    sample = np.sort(values[:: values.size // _SAMPLED])
    return bool((sample[_TIED:] == sample[:-_TIED]).any())
