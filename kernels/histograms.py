"""How many records fall in each cell: codes become cell numbers, cell numbers become counts.

It owes fastdp/records/encoding.py two plain loops. It knows no attribute names and no data frames, and checks nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compile import jit


@jit
def number_cells_into(codes: Any, sizes: NDArray[np.int64], out: NDArray[np.uint32]) -> None:
    """The number of every record's cell, in C order: the last attribute fastest.

    out[i] = (...(codes[0, i] sizes[1] + codes[1, i]) sizes[2] + ...) + codes[d-1, i]

    Shapes    codes uint8, uint16 or uint32 [d, n], rows contiguous; sizes int64[d]; out uint32[n]
    Cost      0.03 ns a code of uint8, a pass over `out` for each attribute; it stays in L2 for blocks of 2^16 records
    Requires  codes[j] < sizes[j], product of sizes <= 2^32; checked by fastdp/records/encoding.py
    Used by   fastdp/records/encoding.py
    Oracle    numpy.ravel_multi_index
    """
    n = out.size
    for i in range(n):
        out[i] = codes[0, i]
    for j in range(1, codes.shape[0]):
        size = np.uint32(sizes[j])
        for i in range(n):
            out[i] = out[i] * size + np.uint32(codes[j, i])


@jit
def count_cells_into(cells: NDArray[np.uint32], out: NDArray[np.int64]) -> None:
    """Add one to the count of each cell listed, as often as it is listed.

    out[c] += #{i : cells[i] = c}

    Shapes    cells uint32[n]; out int64[D]
    Cost      0.3 ns a record for D = 2^16, 3 ns for 2^24; np.bincount would pass over all D counts for each block
    Requires  cells < D; checked by fastdp/records/rows.py
    Used by   fastdp/records/rows.py
    Oracle    numpy.bincount
    """
    for i in range(cells.size):
        out[cells[i]] += 1
