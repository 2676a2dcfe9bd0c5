"""Memory for many arrays of a few megabytes that live together: pieces of one large array, on cache lines.

numpy asks for huge pages from 4 MiB on. Sixteen arrays of 2.6 MB are ten thousand pages that the system finds and
clears one by one, 54 ms on a virtual machine; as pieces of one array they take 4 ms. Its arrays begin 16 bytes after
a cache line, so that each load of 64 bytes touches two.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HUGE = 2**22  # bytes from which numpy asks by itself
_MOST = 2**33
_LINE = 64
_NONE = np.empty(0, np.uint8)


class Slots:
    """`number` pieces of `size` bytes, each given away once; then, and for what is larger, arrays of their own.

    A copy that is sent to another process has no pieces. No lock is held, and pieces are the same for any threads.
    """

    def __init__(self, number: int, size: int) -> None:
        self._size = -(-size // _LINE) * _LINE
        several = number > 1 and size < _HUGE and number * self._size <= _MOST
        self._memory = _aligned(number * self._size) if several else _NONE
        self._next = itertools.count().__next__

    def __reduce__(self) -> Any:
        return Slots, (0, 0)

    def zeros(self, count: int, dtype: Any) -> NDArray[Any]:
        """So many zeros."""
        size = count * np.dtype(dtype).itemsize
        first = self._next() * self._size if size <= self._size else self._memory.size
        if first + size > self._memory.size:
            return _aligned(size).view(dtype)
        return self._memory[first : first + size].view(dtype)


def _aligned(size: int) -> NDArray[np.uint8]:
    """Bytes of 0, the first of them on a cache line."""
    memory = np.zeros(size + _LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % _LINE  # in half the time of memory.ctypes
    return memory[first : first + size]
