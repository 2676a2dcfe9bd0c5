"""All 4,096 prefixes of a column of numbers: how far the counts of ranges from the first bin are off, at epsilon 1."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Domain, Randomness

from .datasets import Array, frame
from .registry import BEST, OURS, at_most, task

BINS, BASE, DIGITS = 4096, 16, 3
DELTA = 1e-6
SEEDS = 45
COLUMNS = {
    "price": ("ggplot2", "diamonds", 0, 20_480),
    "dep_delay": ("nycflights13", "flights", -48, 1360),
    "distance": ("nycflights13", "flights", 0, 5000),
}


@cache
def _column(name: str) -> tuple[Array, Array, Array]:
    """The values, the edges, and the true shares of all prefixes."""
    package, item, low, high = COLUMNS[name]
    values = frame(package, item)[name].dropna().to_numpy(np.float64)
    edges = np.linspace(low, high, BINS + 1)
    return values, edges, np.cumsum(np.histogram(values, edges)[0]) / len(values)


def _digits(values: Array, edges: Array, **options: Any) -> Array:
    """Tables of the first 1, 2 and 3 digits with Laplace noise, and the entropic fit of the three."""
    codes = np.searchsorted(edges[1:-1], values, side="right")
    records = np.stack([codes // BASE**place % BASE for place in reversed(range(DIGITS))], axis=1)
    domain = Domain(first=BASE, second=BASE, third=BASE)
    chain = [domain.names[: i + 1] for i in range(DIGITS)]
    made = fastdp.release_marginals(records, domain, chain, delta=0.0, fit="entropic", **options)
    return np.asarray(made.synthetic.marginal(domain.names)).reshape(-1) * made.n


@cache
def _apart(seed: int, column: str, neighbors: str) -> dict[str, Array]:
    """How far the shares of all prefixes are off, by method: the largest and the mean row look at the same releases."""
    values, edges, true = _column(column)

    def options() -> dict[str, Any]:
        return {"epsilon": 1.0, "neighbors": neighbors, "rng": Randomness(seed=seed)}

    def off(counts: Array) -> Array:
        return np.abs(np.cumsum(counts) / len(values) - true)

    root = fastdp.release_ranges(values, edges, delta=DELTA, method="square-root", **options())
    return {
        OURS: off(fastdp.release_ranges(values, edges, delta=DELTA, **options()).counts),
        "fastdp, delta = 0": off(fastdp.release_ranges(values, edges, **options()).counts),
        "base-16 digits, entropic fit": off(_digits(values, edges, **options())),
        "square root, isotonic fit": off(root.counts),
    }


def _errors(seed: int, *, column: str, neighbors: str, worst: bool) -> dict[str, float]:
    apart = _apart(seed, column, neighbors)
    return {name: float(each.max() if worst else each.mean()) for name, each in apart.items()}


for _column_name, (_package, _item, _, _) in COLUMNS.items():
    for _neighbors in ("add-remove", "replace-one"):
        for _worst in (True, False):
            task(
                f"prefixes-{_column_name}-{_neighbors}-{'max' if _worst else 'mean'}",
                f"4,096 prefixes of {_column_name}, epsilon = 1, delta = 1e-6, {_neighbors}",
                table=f"{_package}/{_item}",
                figure=f"{'largest' if _worst else 'mean'} error / n",
                target=at_most(1.1, of=BEST),
                seeds=SEEDS,
                column=_column_name,
                neighbors=_neighbors,
                worst=_worst,
            )(_errors)
