"""Many quantiles of a column at once: the mean distance of their ranks from where they belong, as a share of n.

A rank is off by how far q n is from the ranks that the answer has among the values: any of #{x < v} .. #{x <= v} is
right where values are equal.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import ApproxDP, BoundedRange, Randomness
from fastdp.privacy import share

from .datasets import Array, frame
from .registry import OURS, at_most, task

DELTA = 1e-6
SEEDS = 15
BITS = 15  # of the prices' range, for those that need one
SHARE_OF_ZEROS = 0.9
ALONE = "each quantile by itself"


@cache
def _prices() -> Array:
    return np.sort(frame("ggplot2", "diamonds")["price"].to_numpy(np.int64))


@cache
def _mostly_zeros() -> Array:
    """The prices, nine tenths of them, at random places, replaced by 0."""
    prices = _prices().copy()
    prices[np.random.default_rng(0).random(prices.size) < SHARE_OF_ZEROS] = 0
    return np.sort(prices)


@cache
def _distinct() -> Array:
    """The prices and a different fraction of a dollar for each."""
    return _prices() + np.linspace(0.0, 1.0, _prices().size, endpoint=False)


def off(values: Array, answers: Array, qs: Array) -> float:
    """The mean rank error over n; values in order."""
    target = qs * values.size
    below, up_to = (np.searchsorted(values, answers, side) for side in ("left", "right"))
    return float(np.maximum(0, np.maximum(below - target, target - up_to)).mean() / values.size)


def _shares(count: int) -> Array:
    return np.round(np.arange(1, count + 1) / (count + 1), 4)


def _options(seed: int, neighbors: str) -> dict[str, Any]:
    return {"neighbors": neighbors, "rng": Randomness(seed=seed)}


def _one_by_one(seed: int, count: int, epsilon: float, delta: float, neighbors: str) -> Array:
    """Each quantile by itself, with its share of epsilon, on the range of the prices."""
    each = share(ApproxDP(epsilon, delta), count, BoundedRange) if delta else epsilon / count
    options = _options(seed, neighbors)
    return np.array(
        [fastdp.quantile(_prices(), float(q), domain_bits=BITS, epsilon=each, **options) for q in _shares(count)]
    )


def _prices_off(seed: int, *, count: int, epsilon: float, delta: float, neighbors: str) -> dict[str, float]:
    qs = _shares(count)
    ours = fastdp.quantiles(_prices(), qs, epsilon=epsilon, delta=delta, **_options(seed, neighbors))
    alone = _one_by_one(seed, count, epsilon, delta, neighbors)
    return {OURS: off(_prices(), ours, qs), ALONE: off(_prices(), alone, qs)}


def _ties_off(seed: int, *, count: int, epsilon: float, neighbors: str) -> dict[str, float]:
    qs = _shares(count)
    found = {
        side: off(values, fastdp.quantiles(values, qs, epsilon=epsilon, **_options(seed, neighbors)), qs)
        for side, values in ((OURS, _mostly_zeros()), ("the same without ties", _distinct()))
    }
    return found


ADD_REMOVE = ((99, 0.1, 0.0, 0.0022), (99, 1.0, 0.0, 1.4e-4), (99, 0.1, DELTA, 0.0016), (99, 1.0, DELTA, 8.5e-5),
              (9, 1.0, 0.0, 6.4e-5), (9, 1.0, DELTA, 2.7e-5))  # fmt: skip
for _count, _epsilon, _delta, _limit in ADD_REMOVE:
    for _neighbors in ("add-remove", "replace-one"):
        task(
            f"quantiles-{_count}-{_epsilon:g}{'-delta' * bool(_delta)}-{_neighbors}",
            f"{_count} quantiles of 53,940 prices, epsilon = {_epsilon:g}{f', delta = {_delta:g}' * bool(_delta)}, "
            f"{_neighbors}",
            table="ggplot2/diamonds",
            figure="mean rank error / n",
            target=at_most(_limit) if _neighbors == "add-remove" else at_most(0.5, of=ALONE),
            seeds=SEEDS,
            count=_count,
            epsilon=_epsilon,
            delta=_delta,
            neighbors=_neighbors,
        )(_prices_off)

task(
    "quantiles-99-zeros",
    "99 quantiles of a column with nine tenths zeros, beside the same without ties, epsilon = 1, add-remove",
    table="ggplot2/diamonds",
    figure="mean rank error / n",
    target=at_most(1.0, of="the same without ties"),
    seeds=SEEDS,
    count=99,
    epsilon=1.0,
    neighbors="add-remove",
)(_ties_off)
