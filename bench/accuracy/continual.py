"""Counts that go on: the root mean square of the noise of all running sums, numbers between 0 and 1, rho = .5."""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np

import fastdp
from fastdp import Randomness

from .registry import OURS, at_most, task

STEPS = 2**20
COUNTERS = 16  # a seed: the noise of one is a single path, and varies by a twentieth
RHO = 0.5
MATRIX = "square root of the matrix, row by row"


@cache
def _of_the_matrix() -> float:
    """By its formula: row t costs t products, and the matrix 4 TB."""
    k = np.arange(1, STEPS)
    squares = np.cumsum(np.concatenate(([1.0], np.cumprod((2 * k - 1) / (2 * k)) ** 2)))
    return sqrt(float(squares[-1] * squares.mean()) / (2 * RHO))


@cache
def _binary_tree(seed: int, i: int) -> float:
    """A sum for each dyadic interval, as in the book; an answer adds up the intervals of its binary digits."""
    rng = np.random.default_rng([seed, i])
    levels = STEPS.bit_length()
    sigma = sqrt(levels / (2 * RHO))
    t = np.arange(1, STEPS + 1)
    noise = np.zeros(STEPS)
    for level in range(levels):
        node = rng.normal(0, sigma, (STEPS >> level) + 1)
        here = (t >> level) & 1 == 1
        noise[here] += node[(t[here] >> level) - 1]
    return float(np.mean(noise**2))


def _count(seed: int, *, length: int | None) -> dict[str, float]:
    came = np.random.default_rng(seed).random(STEPS) < 0.3
    right = np.cumsum(came)
    ours, tree = [], []
    for i in range(COUNTERS):
        counter = fastdp.ContinualCounter(rho=RHO, length=length, rng=Randomness(seed=1000 * seed + i))
        ours.append(float(np.mean((counter.add_many(came) - right) ** 2)))
        tree.append(_binary_tree(seed, i))
    return {OURS: sqrt(np.mean(ours)), MATRIX: _of_the_matrix(), "binary tree": sqrt(np.mean(tree))}


for _length, _limit, _word in ((STEPS, 1.02, "known"), (None, 1.25, "unknown")):
    task(
        f"continual-{_word}",
        f"count of 2^20 steps, length {_word}, rho = 0.5",
        table="made: 0 or 1",
        figure="root mean square error",
        target=at_most(_limit, of=MATRIX),
        length=_length,
    )(_count)
