"""Bits, 64 to a word: the first one lowest, and 0 in the spare ones of the last word."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.columns import Array, as_compiled
from ..support.errors import DomainError

Words = NDArray[np.uint64]
_ALL = 2**64 - 1


def pack_flags(flags: NDArray[np.bool_]) -> Words:
    """One bit for each of the flags."""
    words = np.zeros(-(-flags.size // 64), "<u8")
    packed = np.packbits(flags, bitorder="little")
    words.view(np.uint8)[: packed.size] = packed
    return words.astype(np.uint64, copy=False)


def unpack_flags(words: Words, n: int) -> NDArray[np.bool_]:
    """The first n bits."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), count=n, bitorder="little").view(np.bool_)


def all_bits(n: int) -> Words:
    """n bits of 1."""
    words = np.empty(-(-n // 64), np.uint64)
    words.fill(_ALL)
    if n % 64:
        words[-1] = (1 << n % 64) - 1
    return words


def pack_bytes(matrix: Array) -> NDArray[np.uint64]:
    """Columns of a matrix of bytes 0 and 1, in C order, packed; DomainError if there are other values."""
    kernels = _kernels()
    n, d = matrix.shape
    words = np.empty((d, -(-n // 64)), np.uint64)
    tile = kernels.TILE
    tail, buffer = np.empty(tile * (d + 1), np.uint8), np.empty(kernels.GROUP * tile * -(-d // tile), np.uint64)
    if kernels.pack_rows_into(as_compiled(matrix.view(np.uint8).reshape(-1)), d, tail, buffer, words) > 1:
        wrong = next(j for j in range(d) if (matrix[:, j].view(np.uint8) > 1).any())
        raise DomainError(f"column {wrong}: must hold 0 and 1 only; there are others")
    return words


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import literals

    return literals


def as_bits(values: Array, label: str) -> NDArray[np.bool_]:
    """A column of 0 and 1 as bools."""
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{label}: dtype {values.dtype}: must be 0 and 1")
    if values.dtype == np.bool_:
        return np.asarray(values)
    try:
        ones = np.asarray(values == 1, np.bool_)
        allowed = bool((ones | np.asarray(values == 0, np.bool_)).all())
    except (TypeError, ValueError):  # of objects that do not compare
        allowed = False
    if not allowed:
        raise DomainError(f"{label}: must hold 0 and 1 only; there are others")
    return ones
