"""How many records fall in each cell: codes become cell numbers, cell numbers become counts.

It owes fastdp/records plain loops. It knows no attribute names and no data frames, and checks nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compile import jit


@jit
def number_cells_into(
    codes: Any, attributes: NDArray[np.int64], sizes: NDArray[np.int64], out: NDArray[np.uint32]
) -> None:
    """The number of every record's cell in the table of k attributes, in C order: the last one fastest; 0 where k = 0.

    out[i] = (...(c_0 sizes[1] + c_1) sizes[2] + ...) + c_(k-1), c_j = codes[attributes[j], i]

    Shapes    codes uint8, uint16 or uint32 [d, n], rows contiguous; attributes, sizes int64[k]; out uint32[n]
    Cost      0.03 ns a code of uint8, a pass over `out` for each attribute; it stays in L2 for blocks of 2^16 records
    Requires  c_j < sizes[j], product of sizes <= 2^32; checked by fastdp/records/encoding.py
    Used by   fastdp/records/encoding.py
    Oracle    numpy.ravel_multi_index
    """
    n = out.size
    for i in range(n):
        out[i] = 0
    for j in range(attributes.size):
        attribute, size = attributes[j], np.uint32(sizes[j])
        for i in range(n):
            out[i] = out[i] * size + np.uint32(codes[attribute, i])


@jit
def count_cells_into(cells: NDArray[np.uint32], out: NDArray[np.int64]) -> None:
    """Add one to the count of each cell listed, as often as it is listed.

    out[c] += #{i : cells[i] = c}

    Shapes    cells uint32[n]; out int64[D]
    Cost      0.3 ns a record for D = 2^16; np.bincount would pass over all D counts for each block
    Requires  cells < D; checked by fastdp/records/cell_counts.py
    Used by   fastdp/records/cell_counts.py, fastdp/statistics/label_tallies.py
    Oracle    numpy.bincount
    """
    for i in range(cells.size):
        out[cells[i]] += 1


@jit
def count_cells_in_bytes(cells: NDArray[np.uint32], low: NDArray[np.uint8], high: NDArray[np.int64]) -> None:
    """The same for many cells, an eighth of the memory: low[c] counts modulo 256, and high[c] what it has lost.

    low[c] + high[c] += #{i : cells[i] = c}

    Shapes    cells uint32[n]; low uint8[D]; high int64[D]
    Cost      0.2 to 0.9 ns a record for D up to 2^22, 5 ns for scattered ones and 2^24; in int64 alone scattered ones
              take 7 ns at 2^22 and 11 at 2^24. Sorting each block by the high bits of its cells took longer, and uint16
              is as fast
    Requires  cells < D; checked by fastdp/records/cell_counts.py
    Used by   fastdp/records/cell_counts.py
    Oracle    numpy.bincount
    """
    for i in range(cells.size):
        c = cells[i]
        count = np.uint8(low[c] + np.uint8(1))
        low[c] = count
        if count == 0:
            high[c] += 256


@jit
def look_up_codes_into(
    values: NDArray[np.int64], low: int, table: NDArray[np.int32], nowhere: int, out: NDArray[np.int32]
) -> None:
    """The code of every integer, from a table over a range of them; others are nowhere.

    out[i] = table[values[i] - low] if low <= values[i] < low + m else nowhere

    Shapes    values int64[n]; table int32[m]; out int32[n]
    Cost      1 ns a value, of a table in cache
    Requires  m > 0; -2^63 <= low < 2^63
    Used by   fastdp/records/partition.py
    Oracle    tests/kernels/test_histograms.py
    """
    m = np.uint64(table.size)
    for i in range(values.size):
        place = np.uint64(values[i]) - np.uint64(low)
        out[i] = table[place] if place < m else np.int32(nowhere)


@jit
def group_places_into(codes: NDArray[np.int32], starts: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """Where the entries with each code are: those of a code in a row, in their order.

    out[starts[c] + j] = the place of the j-th entry with code c

    Shapes    codes int32[n]; starts int64[k], which is moved to the ends; out int64[m]
    Cost      3 ns an entry for some thousand codes
    Requires  codes < k; starts[c] = #{i : 0 <= codes[i] < c}; m = #{i : codes[i] >= 0}
    Used by   fastdp/records/partition.py
    Oracle    numpy.argsort, stable
    """
    for i in range(codes.size):
        code = codes[i]
        if code >= 0:
            out[starts[code]] = i
            starts[code] += 1
