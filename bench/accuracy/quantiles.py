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


# --- one median, of values that are far apart

CAUCHY, RELEASES = 10_000, 40
WITHIN = 1e9  # the bounds that others need
INTERVALS = "intervals within +-1e9, any neighbours (diffprivlib)"
OF_HALF = "intervals within +-1e9, add-remove (tmlt)"


def _of_intervals(values: Array, eta: float, rng: np.random.Generator) -> float:
    """A number of an interval between neighbouring values, drawn by the exponential mechanism; values in order."""
    ends = np.concatenate([[-WITHIN], values.clip(-WITHIN, WITHIN), [WITHIN]])
    off = np.abs(np.arange(values.size + 1) - values.size / 2)
    with np.errstate(divide="ignore"):
        weights = np.log(np.diff(ends)) - eta * off
    k = int((weights + rng.gumbel(size=weights.size)).argmax())
    return float(rng.uniform(ends[k], ends[k + 1]))


def _median_off(seed: int, *, epsilon: float) -> dict[str, float]:
    """A rank moves by 1 for any neighbours, and half a rank less half of n by 1/2 where a record comes or goes."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.standard_cauchy(CAUCHY))
    sides: dict[str, list[float]] = {OURS: [], INTERVALS: [], OF_HALF: []}
    options = _options(seed, "add-remove")
    for _ in range(RELEASES):
        sides[OURS].append(float(fastdp.median(values, epsilon=epsilon, **options)))
        sides[INTERVALS].append(_of_intervals(values, epsilon / 2, rng))
        sides[OF_HALF].append(_of_intervals(values, epsilon, rng))
    half = np.full(RELEASES, 0.5)
    return {side: off(values, np.array(answers), half) * CAUCHY for side, answers in sides.items()}


for _epsilon in (0.01, 0.1, 1.0):
    task(
        f"median-cauchy-{_epsilon:g}",
        f"the median of 10,000 Cauchy values, without bounds, epsilon = {_epsilon:g}, add-remove",
        table="made: Cauchy",
        figure="mean rank error",
        target=at_most(0.6, of=INTERVALS),
        seeds=SEEDS,
        epsilon=_epsilon,
    )(_median_off)

FEW = 300


@cache
def _columns() -> dict[str, Array]:
    """Columns of integers of 64 bits, and of floats of several sizes, as tables have them."""
    held = (("ggplot2", "diamonds", "price"), ("AER", "Fertility", "age"), ("datasets", "quakes", "depth"),
            ("ISLR", "Wage", "age"), ("ISLR", "Weekly", "Lag1"), ("MASS", "Boston", "crim"),
            ("ggplot2", "seals", "delta_lat"))  # fmt: skip
    return {f"{table} {column}": frame(package, table)[column].to_numpy() for package, table, column in held}


@task(
    "median-few",
    "the medians of 300 rows of seven columns of any size, without bounds, epsilon = 0.2, add-remove",
    table="ggplot2, AER, datasets, ISLR, MASS",
    figure="mean rank error",
    target=at_most(0.6, of=INTERVALS),
    epsilon=0.2,
)
def few_medians_off(seed: int, *, epsilon: float) -> dict[str, float]:
    rng, options = np.random.default_rng(seed), _options(seed, "add-remove")
    sides: dict[str, list[float]] = {OURS: [], INTERVALS: [], OF_HALF: []}
    for column in _columns().values():
        values = np.sort(rng.choice(column, FEW, replace=False))
        found = {
            OURS: float(fastdp.median(values, epsilon=epsilon, **options)),
            INTERVALS: _of_intervals(values.astype(float), epsilon / 2, rng),
            OF_HALF: _of_intervals(values.astype(float), epsilon, rng),
        }
        for side, answer in found.items():
            sides[side].append(off(values, np.array([answer]), np.array([0.5])) * FEW)
    return {side: float(np.mean(errors)) for side, errors in sides.items()}


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
