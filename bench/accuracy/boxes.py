"""Boxes of numbers: their errors on the records that they were learned from, whatever share of labels is wrong.

Made records are normal numbers, of which three in ten are in a box whose sides are anywhere. The best box of a real
table is sought without privacy, column by column, from everything and from every column alone.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import fastdp
from fastdp import Randomness

from .conjunctions import logistic_error
from .datasets import Array, frame
from .registry import at_most, task

NOISE = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
MADE = ((2, 100_000), (5, 200_000))  # columns, records
INSIDE = 0.3
CONSTANT, BEST_BOX, LOGISTIC = "the constant", "column by column, not private", "fastdp, logistic regression"


@cache
def _made(d: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(d)
    X, side = rng.normal(size=(n, d)), INSIDE ** (1 / d)
    first = rng.uniform(0, 1 - side, d)
    low, high = (np.array([np.quantile(X[:, j], at[j]) for j in range(d)]) for at in (first, first + side))
    return X, np.asarray(((low <= X) & (high >= X)).all(axis=1))


def _noisy(seed: int, *, columns: int, n: int, noise: float) -> dict[str, float]:
    X, right = _made(columns, n)
    y = right ^ (np.random.default_rng(seed).random(n) < noise)
    h = fastdp.learn_box(X, y, epsilon=1.0, rng=Randomness(seed=seed))
    return {"fastdp": h.error(X, y), CONSTANT: min(y.mean(), 1 - y.mean())}


for _columns, _n in MADE:
    for _noise in NOISE:
        task(
            f"box-{_columns}-{100 * _noise:g}",
            f"a box of {_columns} columns, {_n:,} records, epsilon = 1, {_noise:.1%} of the labels wrong",
            table="normal numbers",
            figure="share of errors",
            target=at_most(_noise + 0.02),
            columns=_columns,
            n=_n,
            noise=_noise,
        )(_noisy)

# table: the columns, the column of labels, and the label or the number from which on a record is positive
TABLES: dict[str, tuple[tuple[str, ...], str, str | float]] = {
    "ggplot2/diamonds": (("carat", "depth", "table", "x", "y", "z"), "cut", "Ideal"),
    "stevedata/gss_wages": (("year", "age", "prestg10", "childs"), "realrinc", 15_000.0),
    "AER/Fertility": (("age", "work"), "morekids", "yes"),
}


@cache
def numbers_of_table(table: str) -> tuple[Array, Array]:
    """Records without missing entries."""
    columns, label, positive = TABLES[table]
    records = frame(*table.split("/"))[[*columns, label]].dropna()
    labels = records[label].to_numpy()
    y = labels >= positive if isinstance(positive, float) else labels.astype(str) == positive
    return records[list(columns)].to_numpy(np.float64), np.asarray(y)


@cache
def best_box(table: str) -> float:
    X, y = numbers_of_table(table)
    ranks = [np.unique(column, return_inverse=True)[1] for column in X.T]
    found = [min(float(np.mean(y)), float(np.mean(~y)))]
    for first in range(-1, X.shape[1]):
        intervals = [(0, int(rank.max())) for rank in ranks]
        order = [first] * (first >= 0) + 3 * list(range(X.shape[1]))
        for j in order:
            inside = np.ones(len(y), bool)
            for i, (low, high) in enumerate(intervals):
                if i != j:
                    inside &= (ranks[i] >= low) & (ranks[i] <= high)
            intervals[j] = _best_interval(ranks[j][inside], y[inside], int(ranks[j].max()) + 1)
        inside = np.logical_and.reduce(
            [(r >= low) & (r <= high) for r, (low, high) in zip(ranks, intervals, strict=True)]
        )
        found.append(float(np.mean(inside != y)))
    return min(found)


def _best_interval(ranks: Array, y: Array, size: int) -> tuple[int, int]:
    """With the most positives less negatives."""
    gains = np.bincount(ranks, 2.0 * y - 1, size)
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    starts = np.minimum.accumulate(sums[:-1])
    last = int(np.argmax(sums[1:] - starts))
    return int(np.argmin(sums[: last + 1])), last


def _on_table(seed: int, *, of: str) -> dict[str, float]:
    X, y = numbers_of_table(of)
    h = fastdp.learn_box(X, y, epsilon=1.0, rng=Randomness(seed=seed))
    return {
        "fastdp": h.error(X, y),
        CONSTANT: min(y.mean(), 1 - y.mean()),
        BEST_BOX: best_box(of),
        LOGISTIC: logistic_error(X, y, (X.min(axis=0), X.max(axis=0)), seed),
    }


for _table in TABLES:
    task(
        f"box-{_table.partition('/')[2].lower()}",
        f"a box of {len(TABLES[_table][0])} columns, epsilon = 1",
        table=_table,
        figure="share of errors",
        target=at_most(1.05, of=BEST_BOX),
        of=_table,
    )(_on_table)
