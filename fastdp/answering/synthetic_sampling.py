"""Sampling records from a synthetic distribution: alias tables of its blocks, as kernels/sampling.py takes them.

Blocks of more than 2^24 cells are searched instead. The same key gives the same records for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from ..support.threads import run_chunks
from .product_distribution import ProductDistribution

RECORDS = 1 << 14  # that one thread draws at a time: half a millisecond, and its words stay in L2
SEARCHED = 1 << 24  # cells of a block above which no alias table is made: it takes twice the memory of the weights


class SearchedBlock(NamedTuple):
    """A block that is too large for an alias table."""

    part: int
    stream: int
    x: NDArray[Any]
    ends: NDArray[np.float64]
    attributes: NDArray[np.int64]  # the last first
    sizes: NDArray[np.int64]


class AliasTables:
    """Alias tables of all blocks but those of more than 2^24 cells, which are searched.

    Which way is taken depends on the size of the block alone, so a shorter sample is the beginning of a longer one.
    """

    def __init__(self, domain: Domain, parts: Sequence[ProductDistribution]) -> None:
        from ..kernels.sampling import GROUP, build_aliases_into, sum_groups_into

        every = [block.domain.size for part in parts for block in part.blocks.values()]
        self.table = np.empty((sum(size if size <= SEARCHED else 1 for size in every), 2), np.uint64)
        self.searched: list[SearchedBlock] = []
        starts: list[int] = [0]
        blocks: list[tuple[int, int, int, int]] = []
        attributes: list[int] = []
        at = 0
        for i, part in enumerate(parts):
            for stream, (positions, block) in enumerate(part.blocks.items(), 1):
                size, backward = block.domain.size, positions[::-1]
                if size <= SEARCHED:
                    scaled = block.probabilities()
                    scaled *= size / scaled.sum()
                else:
                    ends = np.empty(-(-size // GROUP))
                    sum_groups_into(block.x, ends)
                    steps = np.array(backward, np.int64), np.array([domain.sizes[p] for p in backward], np.int64)
                    self.searched.append(SearchedBlock(i, stream, block.x, ends, *steps))
                    size, backward, scaled = 1, (), np.ones(1)  # in the loop over all blocks it counts for nothing
                build_aliases_into(scaled, self.table[at : at + size])
                blocks.append((at, size, len(attributes), len(attributes) + len(backward)))
                attributes += backward
                at += size
            starts.append(len(blocks))
        self.parts = np.array(starts, np.int64)
        self.blocks = np.array(blocks, np.int64)
        self.attributes = np.array(attributes, np.int64)
        self.sizes = np.array([domain.sizes[p] for p in attributes], np.int64)
        self.streams = 1 + int(np.diff(self.parts).max())

    def sample_into(self, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
        from ..kernels.sampling import sample_records_into, search_records_into

        count = self.parts.size - 1

        def run(first: int, stop: int) -> None:
            n = stop - first
            words, cells = np.empty((self.streams + 1, n), np.uint64), np.empty(n, np.int32)
            law = (self.table, self.parts, self.blocks, self.attributes, self.sizes)
            sample_records_into(key, first, *law, words, cells, out[:, first:stop])
            for each in self.searched:
                mine = np.arange(n) if count == 1 else np.flatnonzero((words[0] >> 32) * count >> 32 == each.part)
                block = words[each.stream], mine, each.x, each.ends, each.attributes, each.sizes
                search_records_into(*block, out[:, first:stop])

        run_chunks(run, out.shape[1], max(1 << 10, RECORDS // self.streams))
