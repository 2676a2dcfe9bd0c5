"""Oracles of gradients of several classes, and of vectors that are clipped: record by record, bounds of integers.

fastdp/optimizing/softmax.md, lemma 1; given_gradients.md, lemma 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
SLACK = 2.0**-40


def factors_of(scores: list[float], label: int) -> list[float]:
    """p_c - [c is the label], each sum by math.fsum."""
    most = max(scores)
    parts = [math.exp(max(score - most, -700.0)) for score in scores]
    total = math.fsum(parts)
    return [
        -math.fsum(other for b, other in enumerate(parts) if b != c) / total if c == label else part / total
        for c, part in enumerate(parts)
    ]


def clipped_gradients(
    X: Floats, labels: Iterable[int], W: Floats, *, unit: float, limit: float, bound: float = math.inf
) -> Bounds:
    """Bounds of the sum of clipped gradients in units of the grid, a row for each class.

    They meet unless an entry is next to an integer.
    """
    low, high = np.zeros(W.shape, np.int64), np.zeros(W.shape, np.int64)
    for x, y in zip(X.astype(np.float64), labels, strict=True):
        norm = math.hypot(*x.tolist())
        shrink = min(1.0, bound / norm) if norm else 1.0
        terms = [[a * b for a, b in zip(row, x.tolist(), strict=True)] for row in W.tolist()]
        f = np.array(factors_of([math.fsum(each) * shrink for each in terms], int(y))) * shrink
        size = math.hypot(*f.tolist()) * norm * unit
        v = np.outer(f, x) * unit * (limit / size if size > limit else 1.0)
        wrong = max(math.fsum(map(abs, each)) for each in terms) + 1.0
        error = SLACK * wrong * min(unit, limit / norm / 0.5 if norm else unit) * np.abs(x)[None, :]
        low += np.trunc(v - error).astype(np.int64)
        high += np.trunc(v + error).astype(np.int64)
    return low, high


def clipped_vectors(G: Floats, *, unit: float, limit: float) -> Bounds:
    """Bounds of the sum of vectors in units of the grid, each clipped to `limit`; what is not finite counts as 0."""
    low, high = np.zeros(G.shape[1], np.int64), np.zeros(G.shape[1], np.int64)
    for g in G:
        largest = float(np.abs(g).max())
        if not largest < math.inf or not largest:
            continue
        norm = math.hypot(*(g / largest).tolist())  # of the vector itself it might overflow
        v = g / largest * (limit / norm) if largest * unit > limit / norm else g * unit
        ends = v * (1 - SLACK), v * (1 + SLACK)
        low += np.trunc(np.minimum(*ends)).astype(np.int64)
        high += np.trunc(np.maximum(*ends)).astype(np.int64)
    return low, high
