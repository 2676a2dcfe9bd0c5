"""What a piece of work cannot do without: bytes that are moved and random words; arithmetic does not count.

From it and from what the machine was measured to do (`harness/limits.py`) follows the least time that the work could
take, beside which a row or the point of a curve states its share.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """Of one element."""

    read: float = 0.0  # bytes
    copied: float = 0.0  # bytes read and bytes written to another place, both counted
    changed: float = 0.0  # bytes read and bytes written to their own place, both counted
    words: float = 0.0  # random, of 64 bits
    held: float = 0.0  # bytes of the arrays: decides from which cache they come


def read_once(size: float) -> Traffic:
    """So many bytes, once."""
    return Traffic(read=size, held=size)


def copied_once(size: float) -> Traffic:
    """So many bytes, counting what is read and what is written."""
    return Traffic(copied=size, held=size)


def records_of_bits(d: int, *, packed: bool = False) -> Traffic:
    """A record's d bits and its label: bytes, or packed."""
    return read_once((d + 1) / 8 if packed else d + 1)


def lines_of_cells(bits: tuple[int, ...]) -> float:
    """The share of the cache lines, of 8 cells each, that hold a cell in which these bits of its number are 1."""
    return 2.0 ** -sum(bit >= 3 for bit in bits)


NUMBERS = read_once(8)
NOISY = Traffic(copied=16, words=0.5, held=16)  # 32 random bits for a number, but for a few
NOISY_IN_PLACE = Traffic(changed=16, words=0.5, held=8)
GAUSSIAN = Traffic(copied=16, words=0.9, held=16)  # 32 bits and a coin of 16; 0.85 are accepted
