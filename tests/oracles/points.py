"""Oracles of points as integers: rounded points, exact scores, and sums of gradients, record by record.

fastdp/optimizing/points.md. Python's integers, and floats only where the definition has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.oracles import words
from tests.oracles.optimizing import SLACK, SLOPES

LARGEST = 32766


class RoundedPoint(NamedTuple):
    """Integer coordinates, the exponent, and the norm rounded up."""

    whole: list[int]
    exponent: int
    norm: int


def word(key: Sequence[int], stream: int, record: int) -> int:
    """The 16 bits of a record."""
    return int(words.stream_half_words(key, stream, record // 2, 1)[0]) >> 16 * (record % 2) & 0xFFFF


def ceil_root(square: int) -> int:
    """The square root of an integer, rounded up."""
    root = math.isqrt(square)
    return root if root * root == square else root + 1


def rounded_point(x: Sequence[float], word: int) -> RoundedPoint:
    """A point on its own grid, to 2^-16 of it and then up or down by its word; a point of zeros has any exponent."""
    square, exponent = sum(Fraction(v) ** 2 for v in x), 0
    if square:
        exponent = 14 - math.frexp(math.hypot(*x))[1] + 2
        while square * Fraction(4) ** exponent > LARGEST**2:
            exponent -= 1
    unit = Fraction(2) ** (exponent + 16)
    whole = [round(Fraction(v) * unit + (word ^ (0x9E37 * j & 0xFFFF))) >> 16 for j, v in enumerate(x)]
    return RoundedPoint(whole, exponent, ceil_root(sum(v * v for v in whole)))


def rounded_weights(w: Sequence[float], bits: int) -> tuple[list[int], int]:
    """w as integers with an exponent: its norm has between bits - 1 and bits."""
    norm = math.sqrt(sum(v * v for v in w))
    exponent = 0
    while norm and norm * 2.0**exponent > LARGEST / 32768 * 2**bits:
        exponent -= 1
    while norm and norm * 2.0 ** (exponent + 1) <= LARGEST / 32768 * 2**bits:
        exponent += 1
    return [round(Fraction(v) * Fraction(2) ** exponent) for v in w], exponent


def summed_gradients(
    points: Sequence[RoundedPoint], labels: Sequence[float], w: Sequence[float], kind: str, *, unit: float, most: int,
    bits: int, of_step: Sequence[int], parameter: float = 0.0,
    slope: Callable[[float, float, float], float] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Bounds of the sum of the gradients; they meet unless phi' is within a relative SLACK of where it jumps."""
    at, exponent = rounded_weights(w, bits)
    totals = [np.zeros(len(w), np.int64), np.zeros(len(w), np.int64)]
    for point, label, word in zip(points, labels, of_step, strict=True):
        score = float(sum(v * a for v, a in zip(point.whole, at, strict=True))) * 2.0**-point.exponent * 2.0**-exponent
        limit = most // point.norm if point.norm else 0
        found = (slope or SLOPES[kind])(score, label, parameter) * 2.0**-point.exponent * unit
        cut = [Fraction(min(max(found * (1 + e), -limit), limit)) for e in (-SLACK, SLACK)]
        ends = [(round(c * 2**16 + word) >> 16) * np.array(point.whole) for c in cut]
        totals[0] += np.minimum(*ends)
        totals[1] += np.maximum(*ends)
    return totals[0], totals[1]


def rounded_record(x: Sequence[float], label: float, scale: float, size: int, word: int) -> list[int]:
    """A record of moments, its label last: to 2^-16, half to even, and up or down by 16 bits of its own."""
    exact = [Fraction(v) * Fraction(scale) for v in x]
    exact.append(Fraction(min(max(label, -1.0), 1.0)) * size * 2**16)
    return [(round(v) + (word ^ (0x9E37 * j & 0xFFFF))) >> 16 for j, v in enumerate(exact)]


def rounded_moments(
    X: NDArray[np.floating], labels: NDArray[np.float64], x_norm: float, size: int, key: Sequence[int], first: int
) -> NDArray[np.int64]:
    """Their sums: rows 0 .. d - 1 the matrix above its diagonal, row d the products with the label, then the diagonal.

    Labels in units of their bound.
    """
    n, d = X.shape
    total = np.zeros((d + 2, d), np.int64)
    halves = words.stream_half_words(key, 0, first // 2, (n + first % 2 + 1) // 2 + 1)
    for i, (x, label) in enumerate(zip(X.tolist(), labels.tolist(), strict=True)):
        place = i + first % 2
        word = int(halves[place // 2]) >> 16 * (place % 2) & 0xFFFF
        q = np.array(rounded_record(x, label, size * 2.0**16 / max(x_norm, math.hypot(*x)), size, word))
        total[:d] += np.triu(np.outer(q[:d], q[:d]), 1)
        total[d] += q[:d] * q[d]
        total[d + 1] += q[:d] ** 2
    return total
