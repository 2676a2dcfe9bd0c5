"""Minimising a loss: the excess of the private minimiser's loss on the records above the least loss."""

from __future__ import annotations

from functools import cache

import numpy as np

import fastdp
from fastdp import Randomness, losses, sets

from .datasets import Array, breast_cancer, mothers
from .registry import Reported, at_most, task

DELTA = 1e-6
SEEDS = 15
SOURCE = "measured once, on the same records"
AT = (0.1, 1.0, 10.0)
LOGISTIC_PEERS = {"opacus": (0.44, 0.080, 0.013), "diffprivlib": (0.61, 0.19, 0.027)}
SQUARED_PEERS = {"diffprivlib": (0.41, 6.6e-4, 6.9e-6)}
LOGISTIC_LIMITS = (0.40, 0.085, 0.012)
SQUARED_LIMITS = (8e-5, 1.2e-6, 1.8e-8)


@cache
def _least_logistic() -> float:
    X, y = breast_cancer()
    return fastdp.nonprivate_minimum(X, y, loss=losses.Logistic(x_norm=1), over=sets.Ball(10))[1]


def _logistic(seed: int, *, epsilon: float) -> float:
    X, y = breast_cancer()
    fit = fastdp.noisy_projected_gradient_descent(
        X,
        y,
        loss=losses.Logistic(x_norm=1),
        over=sets.Ball(10),
        epsilon=epsilon,
        delta=DELTA,
        rng=Randomness(seed=seed),
    )
    return float(np.logaddexp(0, -y * (X @ fit.w)).mean()) - _least_logistic()


@cache
def _moments() -> tuple[Array, Array]:
    X, y = mothers()
    gram = X.T @ X / len(X)
    return gram, np.linalg.solve(gram, X.T @ y / len(X))


def _squared(seed: int, *, epsilon: float) -> float:
    X, y = mothers()
    loss = losses.SquaredError(x_norm=float(np.sqrt(X.shape[1])), y_bound=1)
    gram, best = _moments()
    off = -best + fastdp.noisy_least_squares(
        X, y, loss=loss, over=sets.Ball(2), epsilon=epsilon, delta=DELTA, neighbors="add-remove", records=len(X),
        rng=Randomness(seed=seed),
    ).w  # fmt: skip
    return float(off @ gram @ off)


for _i, _epsilon in enumerate(AT):
    task(
        f"logistic-breast-cancer-{_epsilon:g}",
        f"logistic regression by descent, epsilon = {_epsilon:g}, delta = 1e-6",
        table="sklearn/breast_cancer",
        figure="excess loss",
        target=at_most(LOGISTIC_LIMITS[_i]),
        reported=tuple(Reported(name, figures[_i], SOURCE) for name, figures in LOGISTIC_PEERS.items()),
        seeds=SEEDS,
        epsilon=_epsilon,
    )(_logistic)

for _i, _epsilon in enumerate(AT):
    task(
        f"least-squares-census-{_epsilon:g}",
        f"least squares, epsilon = {_epsilon:g}, delta = 1e-6, add-remove",
        table="AER/Fertility",
        figure="excess mean squared error",
        target=at_most(SQUARED_LIMITS[_i]),
        reported=tuple(Reported(name, figures[_i], SOURCE) for name, figures in SQUARED_PEERS.items()),
        seeds=SEEDS,
        epsilon=_epsilon,
    )(_squared)
