"""Bits of records: 64 to a word, the first one lowest, and 0 in the spare ones of the last word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def pack_flags(flags: NDArray[np.bool_]) -> Words:
    """One bit for each."""
    words = np.zeros(-(-flags.size // 64), "<u8")
    packed = np.packbits(flags, bitorder="little")
    words.view(np.uint8)[: packed.size] = packed
    return words.astype(np.uint64, copy=False)


def unpack_flags(words: Words, n: int) -> NDArray[np.bool_]:
    """The first n bits."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), count=n, bitorder="little").view(np.bool_)


def all_bits(n: int) -> Words:
    """n bits of 1."""
    words = np.full(-(-n // 64), ~np.uint64(0))
    if n % 64:
        words[-1] = np.uint64((1 << n % 64) - 1)
    return words
