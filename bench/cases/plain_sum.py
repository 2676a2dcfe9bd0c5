"""A rival of cases that read memory and do little else: the plainest loop over it."""

from __future__ import annotations

from typing import Any

from ...kernels.compile import SUMS, jit


@jit(fastmath=SUMS)  # or it would wait for every addition to end
def plain_sum(array: Any) -> Any:
    """The sum: as fast as memory is read."""
    total = array[0]
    for i in range(1, array.size):
        total += array[i]
    return total
