"""Records in order, equal ones told apart by random low bits: what is asked for by rank, and for the rank of a cut.

The low bits of a run of equal records are the words of a stream whose indices are the ranks of the run, in order: a
function of the key and of the records as a multiset, wherever they are and in whatever order they came.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key
from ..records.number_line import Positions
from ..records.ordering import sort_positions
from ..records.rank_search import RankSearch
from .cut_line import HIGHEST, LOWEST

TIES_STREAM = 2**32  # beyond the streams that choices read
_RUNS = 2**10  # of equal records whose low bits are kept
_LONG = 2**9  # the mean length from which runs of equal records are sorted one by one


def tie_words(key: Key, first: int, count: int) -> NDArray[np.uint32]:
    """The low bits that belong to so many ranks from `first` on, counted from 0; not in order."""
    from ..kernels.words import words_into

    words = np.empty((first + count + 1 >> 1) - (first >> 1), np.uint64)
    words_into(key, TIES_STREAM, first >> 1, words)
    return words.view(np.uint32)[first & 1 : (first & 1) + count]


def _order_ties(values: NDArray[np.uint64], lows: NDArray[np.uint32]) -> None:
    """Put the low bits of each run of equal numbers in order."""
    from ..kernels.ordering import count_equal_runs, key_runs_into

    runs = count_equal_runs(values)
    if runs == values.size:
        return
    if runs <= values.size // _LONG:
        firsts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), values.size]
        for first, stop in pairwise(firsts):
            lows[first:stop].sort()
        return
    keys = np.empty(values.size, np.uint64)
    key_runs_into(values, lows, keys)
    keys.sort()  # by runs, and then by low bits
    lows[:] = keys.astype(np.uint32)  # their low halves


class CutRecords:
    """The records of a column, in order; a rank is counted from 1. An array of positions is taken over and sorted."""

    def __init__(self, positions: Positions | RankSearch, key: Key) -> None:
        self._searched = positions if isinstance(positions, RankSearch) else None
        self._ordered: list[int] | NDArray[np.uint64] = []
        if isinstance(positions, RankSearch):
            self.m = positions.m
        else:
            if positions.dtype == object:
                self._ordered = sorted(positions.tolist())
            else:
                sort_positions(positions)
                self._ordered = positions
            self.m = len(self._ordered)
        self._key = key
        self._runs: dict[int, tuple[int, NDArray[np.uint32]]] = {}

    def _run(self, position: int) -> tuple[int, NDArray[np.uint32]]:
        """How many records are below a number, and the low bits of those that are equal to it, in order."""
        found = self._runs.get(position)
        if found is None:
            first = self._up_to(position - 1) if position else 0
            words = tie_words(self._key, first, self._up_to(position) - first).copy()
            words.sort()
            if len(self._runs) >= _RUNS:
                self._runs.clear()
            found = self._runs[position] = first, words
        return found

    def at(self, rank: int) -> tuple[int, int]:
        """The record at a rank: its number and its low bits."""
        position = self.value_at(rank)
        first, words = self._run(position)
        return position, int(words[rank - 1 - first])

    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]] | None:
        """All records in order, numbers and low bits, where they are in memory and have 64 bits at most."""
        values = self._ordered
        if self._searched is not None or isinstance(values, list):
            return None
        lows = tie_words(self._key, 0, self.m)
        _order_ties(values, lows)
        return values, lows

    def value_at(self, rank: int) -> int:
        """The number alone."""
        return int(self._ordered[rank - 1]) if self._searched is None else self._searched.at(rank)

    def _up_to(self, position: int) -> int:
        """How many records are at most a number."""
        if self._searched is not None:
            return self._searched.up_to(position)[0]
        if isinstance(self._ordered, list):
            return bisect_right(self._ordered, position)
        return int(np.searchsorted(self._ordered, np.uint64(position), "right"))

    def up_to(self, position: int, low: int) -> int:
        """How many records are at most that: those below a number for LOWEST, up to it for HIGHEST."""
        if low == HIGHEST:
            return self._up_to(position)
        if low == LOWEST:
            return self._up_to(position - 1) if position else 0
        first, words = self._run(position)
        return first + int(np.searchsorted(words, np.uint32(low), "right"))
