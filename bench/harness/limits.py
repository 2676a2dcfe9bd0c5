"""What this machine could do at most: how fast memory is read and copied, by size, and random words are made.

Each curve gets a line from it (`Limits.seconds`), measured in the same run on the same core. The loops are as plain as
loops can be; they owe nothing to the kernels but the generator, whose speed is a limit of everything that draws.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from time import perf_counter
from typing import Any

import numpy as np

from ...kernels.compile import jit
from ...kernels.lanes import U64Array, uint64
from ...kernels.words import words_into
from ...randomness.keys import Randomness
from ..cases.traffic import Traffic

SIZES = tuple(1 << power for power in range(12, 30))  # bytes: a page to half a gigabyte
WORD_BYTES = 1 << 15  # of a buffer that stays in the first cache
TRIES, TRY_BYTES = 5, 1 << 25  # bytes that one timed try touches, at least

Speeds = Sequence[tuple[int, float]]


@jit
def read_times(array: U64Array, times: int) -> Any:
    """So many sums: the call itself would take as long as a page from the first cache."""
    total = array[0]
    for _ in range(times):
        for i in range(array.size):
            total += array[i]
        total ^= array[0]
    return total


@jit
def copy_times(array: U64Array, out: U64Array, times: int) -> None:
    """So many copies, each a little other, or they would be one."""
    for t in range(times):
        for i in range(array.size):
            out[i] = array[i] ^ uint64(t)


@jit
def change_times(array: U64Array, times: int) -> None:
    """So many changes in place: memory that is overwritten was read anyway, which a copy has to do besides."""
    for t in range(times):
        for i in range(array.size):
            array[i] ^= uint64(t)


@dataclass(frozen=True)
class Limits:
    """Bytes a second by the bytes of the arrays, and random 64-bit words a second."""

    read: tuple[tuple[int, float], ...]
    copy: tuple[tuple[int, float], ...]  # what is read and what is written, both counted
    change: tuple[tuple[int, float], ...]
    words: float

    def seconds(self, traffic: Traffic, elements: float, held: float | None = None) -> float:
        """The least time for so many elements of the work; `held` bytes of arrays in all, if not what they say."""
        held = traffic.held * elements if held is None else held
        moving = traffic.read / at(self.read, held)
        moving += traffic.copied / at(self.copy, held)
        moving += traffic.changed / at(self.change, held)
        return elements * max(moving, traffic.words / self.words)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Limits:
        def speeds(pairs: Sequence[Sequence[float]]) -> tuple[tuple[int, float], ...]:
            return tuple((int(size), speed) for size, speed in pairs)

        return cls(speeds(written["read"]), speeds(written["copy"]), speeds(written["change"]), float(written["words"]))


def at(speeds: Speeds, size: float) -> float:
    """The speed at a size between two that were measured, straight on log-log paper; that of the end beyond."""
    sizes = [s for s, _ in speeds]
    i = bisect_left(sizes, size)
    if i == 0 or i == len(sizes):
        return speeds[min(i, len(sizes) - 1)][1]
    (low, slow), (high, fast) = speeds[i - 1], speeds[i]
    share = log(size / low) / log(high / low)
    return exp((1 - share) * log(slow) + share * log(fast))


def _fastest(work: Callable[[int], Any], size: int) -> float:
    """Bytes a second: the best of some tries of `work(times)`, each long enough for the clock."""
    times = max(1, TRY_BYTES // size)
    work(1)
    best = 0.0
    for _ in range(TRIES):
        start = perf_counter()
        work(times)
        best = max(best, times * size / (perf_counter() - start))
    return best


def _read(array: U64Array) -> float:
    return _fastest(lambda times: read_times(array, times), array.nbytes)


def _copy(array: U64Array, out: U64Array) -> float:
    """By a loop or by numpy, whichever is faster: in memory numpy does not read what it overwrites."""

    def by_numpy(times: int) -> None:
        for _ in range(times):
            np.copyto(out, array)

    size = array.nbytes + out.nbytes
    return max(_fastest(lambda times: copy_times(array, out, times), size), _fastest(by_numpy, size))


def _change(array: U64Array) -> float:
    return 2 * _fastest(lambda times: change_times(array, times), array.nbytes)


def _word_rate() -> float:
    words, key = np.empty(WORD_BYTES // 8, np.uint64), Randomness().key()  # of the cipher that releases use

    def make_words(times: int) -> None:
        for _ in range(times):
            words_into(key, 0, 0, words)

    return _fastest(make_words, WORD_BYTES) / 8


def measure(*, quick: bool = False) -> Limits:
    """Some three seconds; a quick run stops at a megabyte."""
    sizes = SIZES[:9] if quick else SIZES
    memory = np.arange(sizes[-1] // 8, dtype=np.uint64)  # filled: memory that was never written is one page of zeros
    other = memory[: memory.size // 2].copy()
    read = tuple((size, _read(memory[: size // 8])) for size in sizes)
    copy = tuple((size, _copy(memory[: size // 16], other[: size // 16])) for size in sizes)  # both as large as the one
    change = tuple((size, _change(memory[: size // 8])) for size in sizes)
    return Limits(read, copy, change, _word_rate())
