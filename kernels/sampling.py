"""Draws from a public distribution over many cells by the alias method: one word and one line of memory a draw.
Where the table of that, twice as large as the weights, would fill the memory, by search among sums of the weights.

Everything here is post-processing of what has been released, so probabilities are floats. It owes
fastdp/answering/synthetic_sampling.py two plain loops.
"""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import F64Array, I64Array, U32Array, int64, uint64
from .words import words_into

FULL = np.uint64(2**64 - 1)


@jit
def build_aliases_into(scaled: F64Array, table: Any) -> None:
    """The alias table of a distribution: every cell keeps part of a share 1 / D and gives the rest to another cell.

    A uniform cell c and a uniform word u draw c if u < table[c, 0], else table[c, 1] (Walker 1977; Vose 1991, with two
    pointers that only move forward in place of his stacks).

    Shapes    scaled float64[D], the probabilities times D (overwritten); table uint64[D, 2]
    Cost      one pass: 6 ns a cell
    Requires  scaled >= 0, with sum D up to rounding; a cell of probability 0 keeps nothing
    Used by   fastdp/answering/synthetic_sampling.py
    Oracle    the law that the table implies is the distribution: tests/answering/test_synthetic_distribution.py
    """
    size = scaled.size
    large = 0
    giver = 0  # a cell of positive probability, which takes what rounding leaves over
    for i in range(size):
        table[i, 0] = FULL
        table[i, 1] = uint64(i)
        if scaled[i] > scaled[giver]:
            giver = i
    for i in range(size):
        small = i
        while scaled[small] < 1.0:
            while large < size and scaled[large] < 1.0:
                large += 1
            kept = scaled[small]
            table[small, 0] = uint64(kept * 2.0**64)
            if large == size:
                table[small, 1] = uint64(giver)
                break
            table[small, 1] = uint64(large)
            scaled[large] -= 1.0 - kept
            if scaled[large] >= 1.0 or large > i:
                break
            small = large


@jit
def sample_records_into(
    key: U32Array, first: int, table: Any, parts: I64Array, blocks: Any, attributes: I64Array, sizes: I64Array,
    words: Any, cells: Any, out: Any,
) -> None:  # fmt: skip
    """Records number first, first + 1, ... of a sample: the codes of each, drawn block by block.

    Record i takes word i of stream 0 to choose its part, and word i of stream 1 + b for block b of that part: w D =
    c 2^64 + f gives the uniform cell c and the word f that `build_aliases_into` speaks of, from one word.

    Shapes    table uint64[cells of all blocks, 2]; parts int64[k + 1], where the blocks of each part begin; blocks
              int64[all blocks, 4]: where in `table`, how many cells, where in `attributes` from and to; attributes
              int64: columns of `out`, last attribute first; sizes int64, alike; out unsigned [d, n]. Space: words
              uint64[2 + most blocks, n], of which the last row is not words, cells int32[n]
    Cost      a word and a line of memory a block (in a loop of its own, so that many are under way), 0.3 ns a code
    Requires  blocks of at most 2^31 cells
    Used by   fastdp/answering/synthetic_sampling.py
    Oracle    tests/answering/test_synthetic_distribution.py::slowly
    """
    n = out.shape[1]
    count = parts.size - 1
    streams = words.shape[0] - 1
    order = words[streams].view(np.int64)  # the records, part by part
    for stream in range(streams):
        if stream > 0 or count > 1:
            words_into(key, stream, first, words[stream])
    start = 0
    for part in range(count):
        stop = start
        for i in range(n):
            if count == 1 or int64(((words[0, i] >> uint64(32)) * uint64(count)) >> uint64(32)) == part:
                order[stop] = i
                stop += 1
        mine = order[start:stop]
        for b in range(parts[part], parts[part + 1]):
            _draw_cells_into(words[1 + b - parts[part]], table[blocks[b, 0] : blocks[b, 0] + blocks[b, 1]], mine, cells)
            for a in range(blocks[b, 2], blocks[b, 3]):
                if count == 1:
                    _split_off_into(cells, sizes[a], out[attributes[a]])
                else:
                    _split_off_at(cells, sizes[a], mine, out[attributes[a]])
        start = stop


GROUP = 512  # cells that `search_records_into` adds up at most: a quarter of a microsecond


@jit
def sum_groups_into(x: Any, ends: F64Array) -> None:
    """The weights of the first 512 cells, of the first 1,024, ...: what `search_records_into` searches.

    Shapes    x float64[D] or float32[D], ends float64[ceil(D / 512)]
    Cost      one pass: 1 ns a cell
    Used by   fastdp/answering/synthetic_sampling.py
    Oracle    numpy.cumsum
    """
    total = 0.0
    for g in range(ends.size):
        part = 0.0
        for i in range(g * GROUP, min((g + 1) * GROUP, x.size)):
            part += x[i]
        total += part
        ends[g] = total


@jit
def search_records_into(
    words: Any, mine: I64Array, x: Any, ends: F64Array, attributes: I64Array, sizes: I64Array, out: Any
) -> None:
    """The codes of one block for some records: word w draws the first cell up to which the weights exceed their share
    w / 2^64 of the total, from the 53 highest bits of w.

    Shapes    words uint64[n], mine int64: which records; x float64[D] or float32[D], ends float64[ceil(D / 512)];
              attributes int64: columns of `out`, last attribute first; sizes int64, alike; out unsigned [d, n]
    Cost      half a microsecond a record, no memory
    Requires  weights >= 0, not all 0
    Used by   fastdp/answering/synthetic_sampling.py
    Oracle    tests/answering/test_synthetic_distribution.py::slowly
    """
    last = ends.size - 1
    most = ends[last] * (1.0 - 2.0**-53)  # rounding must not lead beyond the last cell
    for k in range(mine.size):
        share = min(float(words[mine[k]] >> uint64(11)) * 2.0**-53 * ends[last], most)
        group = np.searchsorted(ends, share, side="right")
        rest = share - ends[group - 1] if group > 0 else share
        cell = group * GROUP
        for i in range(group * GROUP, min((group + 1) * GROUP, x.size)):
            if x[i] > 0.0:  # where rounding leaves something over, the last of them
                cell = i
                rest -= x[i]
                if rest < 0.0:
                    break
        for a in range(attributes.size):
            out[attributes[a], mine[k]] = cell % sizes[a]
            cell //= sizes[a]


@jit
def _draw_cells_into(words: Any, table: Any, mine: I64Array, cells: Any) -> None:
    low_half = uint64(0xFFFFFFFF)
    size = uint64(table.shape[0])
    for k in range(mine.size):
        word = words[mine[k]]
        low = (word & low_half) * size
        high = (word >> uint64(32)) * size + (low >> uint64(32))
        cell = int64(high >> uint64(32))
        rest = (high << uint64(32)) | (low & low_half)
        cells[k] = cell if rest < table[cell, 0] else int64(table[cell, 1])


@jit
def _split_off_into(cells: Any, size: int, out: Any) -> None:
    """out = cells mod size, cells = cells div size; exact: the product is off by less than 1 / (2 size)."""
    inverse = 1.0 / size
    for k in range(out.size):
        quotient = np.int32((cells[k] + 0.5) * inverse)
        out[k] = cells[k] - quotient * np.int32(size)
        cells[k] = quotient


@jit
def _split_off_at(cells: Any, size: int, mine: I64Array, out: Any) -> None:
    """The same for the records of one part."""
    inverse = 1.0 / size
    for k in range(mine.size):
        quotient = np.int32((cells[k] + 0.5) * inverse)
        out[mine[k]] = cells[k] - quotient * np.int32(size)
        cells[k] = quotient
