"""Which object each entry of an array of objects is, by its address: columns of strings often hold a few, many times.

Equal objects may be several: columns.py compares those that differ, which are few, instead of every entry.
"""

from __future__ import annotations

import ctypes
import secrets
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEW = 2**12  # entries, for which a table is not worth its making
_STEP = 2**16  # entries that are looked up at a time
_PLACES = 2**16  # of the table: half of them for objects, in the L2 cache


class SharedObjects(NamedTuple):
    """The different objects of an array in the order in which they first occur, and which of them each entry is."""

    codes: NDArray[np.int32]
    distinct: NDArray[Any]


def shared_objects(array: NDArray[Any]) -> SharedObjects | None:
    """None for a few entries, and where there are so many objects that comparing them all takes as long."""
    n = array.size
    if array.dtype != object or n < _FEW or not array.flags.c_contiguous:
        return None
    from ..kernels.persons import number_keys_into

    buffer: Any = (ctypes.c_uint64 * n).from_address(array.ctypes.data)
    addresses: NDArray[np.uint64] = np.frombuffer(buffer, np.uint64)
    seed = np.uint64(secrets.randbits(64))  # whom the order of probes depends on, and nothing else does
    table, seen = np.full(_PLACES, -1, np.int32), np.empty(_PLACES // 2, np.uint64)
    codes, firsts, known = np.empty(n, np.int32), [], 0
    for start in range(0, n, _STEP):
        some = codes[start : start + _STEP]
        done, more = number_keys_into(addresses[start : start + _STEP], seed, 0, known, table, seen, some)
        if done < some.size:
            return None
        if more > known:
            new = np.flatnonzero(some >= known)
            firsts.append(start + new[np.unique(some[new], return_index=True)[1]])
            known = more
    return SharedObjects(codes, array[np.concatenate(firsts)])  # not by address: another thread may have let it go
