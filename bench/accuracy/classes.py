"""Several classes: how often a linear model, or a small network, tells a record right that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness, losses, sets

from .datasets import Array, points
from .registry import BEST, at_least, task

DELTA = 1e-6
RADIUS = 20.0
ONE_EACH = "a fastdp model for each class"
MOST_FREQUENT = "the most frequent class"


@cache
def _table(name: str) -> tuple[Array, Array]:
    """Columns between -1 and 1 and a column of ones, divided by the largest norm of the table."""
    X, y = points(name)
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.column_stack([2 * (X - low) / np.where(high > low, high - low, 1) - 1, np.ones(len(X))])
    return X / np.linalg.norm(X, axis=1).max(), y.astype(int)


def _split(name: str, seed: int) -> tuple[Array, Array, Array, Array]:
    """Four fifths of the records to learn from, the others to be told right."""
    X, y = _table(name)
    order = np.random.default_rng(seed).permutation(len(X))
    learnt = order[: len(X) * 4 // 5], order[len(X) * 4 // 5 :]
    return X[learnt[0]], y[learnt[0]], X[learnt[1]], y[learnt[1]]


def _told_right(seed: int, *, records_of: str, epsilon: float) -> Mapping[str, float]:
    """One descent of softmax; and one of logistic regression for each class, which share epsilon and delta."""
    X, y, unseen, right = _split(records_of, seed)
    classes = int(y.max()) + 1
    how: dict[str, Any] = {"over": sets.Ball(RADIUS), "neighbors": "add-remove", "records": len(X)}
    loss = losses.Softmax(classes, x_norm=1.0)
    ours = fastdp.private_erm(X, y, loss=loss, epsilon=epsilon, delta=DELTA, rng=Randomness(seed=seed), **how).w
    each = [
        fastdp.private_erm(
            X, y == c, loss=losses.Logistic(x_norm=1.0), epsilon=epsilon / classes, delta=DELTA / classes,
            rng=Randomness(seed=classes * seed + c), **how,
        ).w
        for c in range(classes)
    ]  # fmt: skip
    return {
        "fastdp": float((loss.probabilities(ours, unseen).argmax(axis=1) == right).mean()),
        ONE_EACH: float(((unseen @ np.array(each).T).argmax(axis=1) == right).mean()),
        MOST_FREQUENT: float((right == np.bincount(y).argmax()).mean()),
    }


for _table_name in ("digits", "iris", "wine"):
    for _epsilon in (1.0, 10.0):
        task(
            f"classes-{_table_name}-{_epsilon:g}",
            f"softmax of {'ten' if _table_name == 'digits' else 'three'} classes, epsilon = {_epsilon:g}, "
            "delta = 1e-6, add-remove",
            table=f"sklearn/{_table_name}",
            figure="told right",
            target=at_least(1.0, of=BEST),
            records_of=_table_name,
            epsilon=_epsilon,
        )(_told_right)
