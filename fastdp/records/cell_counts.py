"""How often each of many cells occurs, in a time that hardly depends on which ones do.

Counts are exact integers. Where they would leave the caches they are kept as bytes that carry over into int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.threads import run_chunks

_FEW_CELLS = 2**14  # up to here int64 counts stay in the nearest cache
_CHUNK = 2**20  # cells that one thread adds up at a time


def cells_below(cells: NDArray[Any], size: int) -> NDArray[np.uint32]:
    """Cells as `CellCounts` takes them; ValueError unless they are below `size`."""
    cells = np.require(cells, np.uint32, "C")
    if cells.size and int(cells.max()) >= size:
        raise ValueError(f"cells: must be below size={size}; there are others")
    return cells


def bytes_of_counts(size: int) -> int:
    """What `CellCounts` takes."""
    return 8 * size if size <= _FEW_CELLS else 9 * size


class CellCounts:
    """Counts of cells below `size`, to which blocks of cells are added one after the other."""

    def __init__(self, size: int) -> None:
        self._counts = np.zeros(size, np.int64)
        self._low = np.zeros(size if size > _FEW_CELLS else 0, np.uint8)

    def add(self, cells: NDArray[np.uint32]) -> None:
        """Count these, which `cells_below` has checked."""
        from ..kernels.histograms import count_cells_in_bytes, count_cells_into

        if self._low.size:
            count_cells_in_bytes(cells, self._low, self._counts)
        else:
            count_cells_into(cells, self._counts)

    def total(self) -> NDArray[np.int64]:
        """All counts: the last call. It writes to every one, used or not, whose memory the system then has to give."""
        counts, low = self._counts, self._low
        run_chunks(lambda i, j: np.add(counts[i:j], low[i:j], out=counts[i:j]), low.size, _CHUNK)
        return counts
