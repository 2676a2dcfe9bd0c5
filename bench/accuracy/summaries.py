"""Means, variances and whole summaries of the diamonds' prices: root mean square errors of many releases.

Others' methods are what their sources state, with continuous noise of their scales; ours are calls with defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from fastdp import Randomness, statistics
from fastdp.privacy.guarantees import Neighbors

from ..cases.registry import beside
from .datasets import Array, frame
from .others import Run, made_by, names
from .quantiles import off
from .registry import BEST, OURS, Missing, at_most, task

EPSILON = 0.1
RELEASES = 100
BOUNDS = (0.0, 20_000.0)
WIDE = BOUNDS[1] - BOUNDS[0]
QUARTERS = (0.25, 0.5, 0.75)
EDGES = tuple(float(edge) for edge in np.linspace(*BOUNDS, 41))
CLIPPED = "noise for the clipped mean (diffprivlib, OpenDP)"
BY_BIN = "Laplace noise in each bin (diffprivlib, OpenDP, tmlt)"
SPLIT = "a sum and a count, half of epsilon each (OpenDP, tmlt)"
MOMENTS = "sums of squares and of numbers, and a count, a third of epsilon each (tmlt)"
DIFFPRIVLIB = "noise for the largest change of the variance (diffprivlib)"
ONE_BY_ONE = "fastdp.statistics one by one, equal shares"


@cache
def _prices() -> Array:
    return np.asarray(frame("ggplot2", "diamonds")["price"].to_numpy(np.float64))


def _rms(seed: int, truth: float, release: Callable[[Randomness, np.random.Generator], float]) -> float:
    keys, rng = Randomness(seed=seed), np.random.default_rng(seed)
    return sqrt(float(np.mean([(release(keys, rng) - truth) ** 2 for _ in range(RELEASES)])))


@task(
    "mean-add-remove", "the mean price, n private", table="ggplot2/diamonds", figure="RMS error / range",
    target=at_most(0.75, of=BEST), epsilon=EPSILON,
)  # fmt: skip
def mean_with_private_n(seed: int, *, epsilon: float) -> dict[str, float]:
    values = _prices()
    middle = (BOUNDS[0] + BOUNDS[1]) / 2
    total = float((values - middle).sum())

    def ours(keys: Randomness, _: np.random.Generator) -> float:
        return float(statistics.mean(values, bounds=BOUNDS, epsilon=epsilon, neighbors="add-remove", rng=keys))

    def split(_: Randomness, rng: np.random.Generator) -> float:
        """The sum of distances from the middle, whose sensitivity is half of the range: as well as it is done."""
        noisy = total + rng.laplace(scale=WIDE / 2 / (epsilon / 2))
        return float(middle + noisy / (values.size + rng.laplace(scale=2 / epsilon)))

    truth = float(values.mean())
    return {OURS: _rms(seed, truth, ours) / WIDE, SPLIT: _rms(seed, truth, split) / WIDE}


@task(
    "mean-replace-one", "the mean price, n public", table="ggplot2/diamonds", figure="RMS error / range",
    target=at_most(1.1, of=BEST), seeds=15, epsilon=EPSILON,
)  # fmt: skip
def mean_with_public_n(seed: int, *, epsilon: float) -> dict[str, float]:
    """All have noise of the range over epsilon n; what is compared is that rounding costs nothing."""
    values = _prices()
    truth = float(values.mean())

    def ours(keys: Randomness, _: np.random.Generator) -> float:
        return float(statistics.mean(values, bounds=BOUNDS, epsilon=epsilon, rng=keys))

    def clipped(_: Randomness, rng: np.random.Generator) -> float:
        return float(truth + rng.laplace(scale=WIDE / values.size / epsilon))

    return {OURS: _rms(seed, truth, ours) / WIDE, CLIPPED: _rms(seed, truth, clipped) / WIDE}


def _histogram_off(seed: int, *, neighbors: Neighbors, epsilon: float, delta: float) -> dict[str, float]:
    """The error of a bin's count, in records."""
    values, keys, rng = _prices(), Randomness(seed=seed), np.random.default_rng(seed)
    truth = np.histogram(values, EDGES)[0]
    moved = 1 if neighbors == "add-remove" else 2
    ours = [
        statistics.histogram(values, EDGES, epsilon=epsilon, delta=delta, neighbors=neighbors, rng=keys).counts - truth
        for _ in range(RELEASES)
    ]
    others = rng.laplace(scale=moved / epsilon, size=(RELEASES, truth.size))
    return {OURS: float(np.sqrt(np.mean(np.square(ours)))), BY_BIN: float(np.sqrt(np.mean(np.square(others))))}


for _neighbors in ("add-remove", "replace-one"):
    task(
        f"histogram-{_neighbors}",
        f"prices in 40 bins, {_neighbors}",
        table="ggplot2/diamonds",
        figure="RMS error of a count",
        target=at_most(1.05, of=BEST),
        seeds=15,
        neighbors=_neighbors,
        epsilon=EPSILON,
        delta=0.0,
    )(_histogram_off)


@task(
    "std-add-remove", "the standard deviation of the prices, n private", table="ggplot2/diamonds",
    figure="RMS error / range", target=at_most(0.75, of=BEST), epsilon=EPSILON,
)  # fmt: skip
def std_with_private_n(seed: int, *, epsilon: float) -> dict[str, float]:
    """Of `describe` without quantiles, which has the count and the mean, too."""
    values = _prices()
    far = values - (BOUNDS[0] + BOUNDS[1]) / 2
    total, squares = float(far.sum()), float((far**2).sum())

    def ours(keys: Randomness, _: np.random.Generator) -> float:
        found = statistics.describe(
            {"price": values}, {"price": BOUNDS}, qs=(), epsilon=epsilon, neighbors="add-remove", rng=keys
        )
        return float(found.numbers["price"].values["std"])

    def moments(_: Randomness, rng: np.random.Generator) -> float:
        each = 3 / epsilon
        count = values.size + rng.laplace(scale=each)
        square = (squares + rng.laplace(scale=WIDE**2 / 4 * each)) / count
        return sqrt(max(square - ((total + rng.laplace(scale=WIDE / 2 * each)) / count) ** 2, 0.0))

    def split(keys: Randomness, _: np.random.Generator) -> float:
        return sqrt(float(statistics.variance(
            values, bounds=BOUNDS, epsilon=epsilon, neighbors="add-remove", rng=keys
        )))  # fmt: skip

    truth = float(values.std())
    sides = {OURS: ours, MOMENTS: moments, "statistics.variance": split}
    return {side: _rms(seed, truth, release) / WIDE for side, release in sides.items()}


@task(
    "std-replace-one", "the standard deviation of the prices, n public", table="ggplot2/diamonds",
    figure="RMS error / range", target=at_most(1.0, of=BEST), epsilon=EPSILON,
)  # fmt: skip
def std_with_public_n(seed: int, *, epsilon: float) -> dict[str, float]:
    """Of `describe` without quantiles, which has the mean, too, beside what has all of epsilon for the variance."""
    values = _prices()
    spread, n = float(values.var()), values.size

    def ours(keys: Randomness, _: np.random.Generator) -> float:
        found = statistics.describe({"price": values}, {"price": BOUNDS}, qs=(), epsilon=epsilon, rng=keys)
        return float(found.numbers["price"].values["std"])

    def alone(_: Randomness, rng: np.random.Generator) -> float:
        return sqrt(max(spread + rng.laplace(scale=WIDE**2 * (n - 1) / n**2 / epsilon), 0.0))

    truth = float(values.std())
    return {OURS: _rms(seed, truth, ours) / WIDE, DIFFPRIVLIB: _rms(seed, truth, alone) / WIDE}


@task(
    "describe-diamonds", "count, mean, std and quartiles of seven columns, n private", table="ggplot2/diamonds",
    figure="mean error / range", target=at_most(0.75, of=BEST), epsilon=1.0,
)  # fmt: skip
def describe_diamonds(seed: int, *, epsilon: float) -> dict[str, float]:
    """Errors of means, stds and quartiles over the range, on average."""
    table = frame("ggplot2", "diamonds")
    bounds = {
        "carat": (0.0, 6.0), "depth": (40.0, 80.0), "table": (40.0, 100.0), "price": BOUNDS, "x": (0.0, 12.0),
        "y": (0.0, 60.0), "z": (0.0, 32.0),
    }  # fmt: skip
    columns = {name: table[name].to_numpy(np.float64).clip(*ends) for name, ends in bounds.items()}
    found = statistics.describe(columns, bounds, epsilon=epsilon, neighbors="add-remove", rng=Randomness(seed))
    keys, each = Randomness(seed), epsilon / len(bounds) / 3
    ours, others = [], []
    for name, (low, high) in bounds.items():
        values = columns[name]
        truth = np.array([values.mean(), values.std(), *np.quantile(values, QUARTERS)])
        shown = found.numbers[name].values
        ours.append(np.abs(np.array([shown[row] for row in ("mean", "std", "25%", "50%", "75%")]) - truth))
        options: dict[str, Any] = {"epsilon": each, "neighbors": "add-remove", "rng": keys}
        mean = float(statistics.mean(values, bounds=(low, high), **options))
        spread = float(statistics.variance(values, bounds=(low, high), **options))
        alone = [mean, sqrt(spread), *statistics.quantiles(values, QUARTERS, **options)]
        others.append(np.abs(np.array(alone) - truth))
        ours[-1], others[-1] = ours[-1] / (high - low), others[-1] / (high - low)
    return {OURS: float(np.mean(ours)), ONE_BY_ONE: float(np.mean(others))}


# --- the same beside other libraries, in one run

OTHERS = (beside("diffprivlib", "statistics"), beside("opendp", "statistics"))
_TIMES = {"mean": 500, "variance": 500, "histogram": 100, "quantiles": 200}


@cache
def _by_others() -> dict[str, Run | Missing]:
    """Of each library, a release a row of each statistic."""
    public = {
        "bounds": [*BOUNDS], "edges": [*EDGES], "shares": [*QUARTERS], "epsilon": EPSILON, "releases": _TIMES,
    }  # fmt: skip
    return {side.name: made_by(side, _prices(), call_seconds=600.0, **public) for side in OTHERS}


def _beside_others(seed: int, *, which: str) -> dict[str, float | Missing]:
    """The others' figures are of one run of many releases, with the first seed."""
    values, keys = _prices(), Randomness(seed=seed)
    price: dict[str, Any] = {"epsilon": EPSILON, "rng": keys}
    release: dict[str, Callable[[], Any]] = {
        "mean": lambda: statistics.mean(values, bounds=BOUNDS, **price),
        "variance": lambda: statistics.variance(values, bounds=BOUNDS, **price),
        "histogram": lambda: statistics.histogram(values, EDGES, neighbors="add-remove", **price).counts,
        "quantiles": lambda: statistics.quantiles(
            values.astype(np.int64), QUARTERS, domain_bits=15, neighbors="add-remove", **price
        ),  # 0 to 32,767: the others are told bounds
    }
    ours = np.array([np.asarray(release[which](), float) for _ in range(_TIMES[which])])
    found: dict[str, float | Missing] = {OURS: _error(which, ours)}
    if not seed:
        for name, run in _by_others().items():
            found[name] = run if isinstance(run, Missing) else _error(which, run.arrays[which])
    return found


def _error(which: str, rows: Array) -> float:
    """Of many releases, a release a row."""
    values = _prices()
    if which == "quantiles":
        ordered, shares = np.sort(values), np.array(QUARTERS)
        return float(np.mean([off(ordered, row, shares) for row in rows]))
    truth = {"mean": values.mean(), "variance": values.var(), "histogram": np.histogram(values, EDGES)[0]}[which]
    unit = {"mean": WIDE, "variance": WIDE**2, "histogram": 1.0}[which]
    return float(np.sqrt(np.mean(np.square(rows - truth)))) / unit


for _which, _figure, _limit in (
    ("mean", "RMS error / range", 1.1), ("variance", "RMS error / range^2", 1.1),
    ("histogram", "RMS error of a count", 1.05), ("quantiles", "mean rank error / n", 1.0),
):  # fmt: skip
    task(
        f"{_which}-beside-others",
        {
            "mean": "the mean price, n public", "variance": "the variance of the prices, n public",
            "histogram": "prices in 40 bins, add-remove", "quantiles": "the quartiles of the prices, add-remove",
        }[_which] + ", beside other libraries in the same run",
        table="ggplot2/diamonds",
        figure=_figure,
        target=at_most(_limit, of=BEST),
        full=True,
        peers=names(OTHERS),
        which=_which,
    )(_beside_others)  # fmt: skip
