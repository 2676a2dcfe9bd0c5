"""Excess risk against n, d and epsilon, as docs/excess-risk.svg: what is measured, and its bound, dashed.

    python -m fastdp.bench.studies.risk

Three panels show least squares on the unit ball, on points that lean toward one direction more or less: of several
strengths the one that a method finds hardest is drawn, as theorems speak of the worst records. The fourth shows
logistic regression on real records. Needs matplotlib and scikit-learn. The peers' figures in the fourth panel are those
of the accuracy rows. It also prints the numbers as a table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness, losses, sets

from ..accuracy.datasets import breast_cancer
from ..accuracy.optimizing import AT, LOGISTIC_PEERS
from ..accuracy.optimizing import SEEDS as SEEDS_ON_REAL
from ..reports.table import Column, Line, Table, cell, to_markdown
from .style import COLOURS, INK, MARKS, finish, style
from .utility import EPSILONS

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "excess-risk.svg"
SEEDS = 3
DELTA = 1e-6
N, D, EPSILON = 20_000, 32, 1.0
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
DIMENSIONS = (1, 2, 3, 8, 32, 128)
STRENGTHS = (1.0, 0.2, 0.05, 0.01)
SQUARED, UNIT_BALL = losses.SquaredError(x_norm=1, y_bound=1), sets.Ball(1)
LOGISTIC, LARGE_BALL = losses.Logistic(x_norm=1), sets.Ball(10)

PEER_MARKS = ("x", "+")


@dataclass(frozen=True)
class Point:
    """A method somewhere: the median excess over seeds, and the bound that its result states."""

    at: float
    excess: float
    bound: float


Curves = dict[str, list[Point]]


@dataclass(frozen=True)
class Task:
    X: Any
    y: Any
    loss: Any
    over: Any
    least: float

    @classmethod
    def of(cls, X: Any, y: Any, loss: Any, over: Any) -> Task:
        return cls(X, y, loss, over, fastdp.nonprivate_minimum(X, y, loss=loss, over=over)[1])

    def excess(self, w: Any) -> float:
        return float(self.loss.values(w, self.X, self.y).mean()) - self.least


def _descent(noise: Any) -> Callable[..., Any]:
    def run(task: Task, epsilon: float, rng: Randomness) -> Any:
        return fastdp.noisy_projected_gradient_descent(
            task.X, task.y, loss=task.loss, over=task.over, epsilon=epsilon, delta=DELTA, noise=noise, rng=rng
        )

    return run


def _second_moments(task: Task, epsilon: float, rng: Randomness) -> Any:
    return fastdp.noisy_least_squares(
        task.X, task.y, loss=task.loss, over=task.over, epsilon=epsilon, delta=DELTA, rng=rng
    )


def _exponential(task: Task, epsilon: float, rng: Randomness) -> Any:
    """epsilon-DP: it needs no delta."""
    return fastdp.exponential_erm(task.X, task.y, loss=task.loss, over=task.over, epsilon=epsilon, rng=rng)


METHODS: dict[str, Callable[..., Any]] = {
    "descent, Gaussian noise": _descent("gaussian"),
    "descent, Laplace noise by the L2 norm": _descent("laplace"),
    "descent, Laplace noise by coordinate": _descent("laplace-per-coordinate"),
    "least squares from noisy moments": _second_moments,
    "exponential mechanism (d at most 3)": _exponential,
}
DESCENTS, EXPONENTIAL = list(METHODS)[:3], list(METHODS)[4]


@lru_cache(maxsize=len(STRENGTHS))
def leaning(n: int, d: int, strength: float) -> Task:
    """Directions at random, moved along the first axis, to which labels of 1 answer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X[:, 0] += 2 * strength
    X /= 1.0000001 * np.linalg.norm(X, axis=1)[:, None]
    return Task.of(X, rng.choice([-1.0, 1.0], n, p=[0.25, 0.75]), SQUARED, UNIT_BALL)


@cache
def real_records() -> Task:
    return Task.of(*breast_cancer(), LOGISTIC, LARGE_BALL)


def measure(method: Callable[..., Any], task: Task, epsilon: float, seeds: int = SEEDS) -> tuple[float, float]:
    """The median excess over seeds, and the bound."""
    found = [method(task, epsilon, Randomness(seed=seed)) for seed in range(seeds)]
    bound = found[0].bound
    return float(np.median([task.excess(fit.w) for fit in found])), nan if bound is None else bound


def sweep(name: str, places: tuple[float, ...], where: Callable[[Any], tuple[int, int, float]]) -> Curves:
    """All methods along one axis; of the strengths the hardest."""
    curves: Curves = {}
    for at in places:
        n, d, epsilon = where(at)
        for label, method in METHODS.items():
            if label == EXPONENTIAL and d > 3:
                continue
            found = [measure(method, leaning(n, d, strength), epsilon) for strength in STRENGTHS]
            point = Point(at, max(excess for excess, _ in found), found[0][1])
            curves.setdefault(label, []).append(point)
            print(f"{name}={at:<8g} {label:40} excess {point.excess:.2e}  bound {point.bound:.2e}", flush=True)
    return curves


def on_real_records() -> Curves:
    curves: Curves = {}
    for label in DESCENTS:
        for epsilon in EPSILONS:
            point = Point(epsilon, *measure(METHODS[label], real_records(), epsilon, SEEDS_ON_REAL))
            curves.setdefault(label, []).append(point)
            print(f"breast_cancer, epsilon={epsilon:<5g} {label:40} excess {point.excess:.2e}", flush=True)
    return curves


def panels() -> dict[str, tuple[str, Curves]]:
    """By title: what the axis is, and the curves."""
    return {
        f"records (d = {D}, epsilon = {EPSILON:g})": ("n", sweep("n", SIZES, lambda n: (n, D, EPSILON))),
        f"dimensions (n = {N:,}, epsilon = {EPSILON:g})": ("d", sweep("d", DIMENSIONS, lambda d: (N, d, EPSILON))),
        f"privacy (n = {N:,}, d = {D})": ("epsilon", sweep("epsilon", EPSILONS, lambda epsilon: (N, D, epsilon))),
        "breast_cancer (n = 569, d = 30), logistic": ("epsilon", on_real_records()),
    }


def table(drawn: dict[str, tuple[str, Curves]]) -> str:
    """The numbers as Markdown: excess, and the bound in brackets."""
    parts = []
    for title, (axis, curves) in drawn.items():
        places = [point.at for point in next(iter(curves.values()))]
        lines = []
        for label, points in curves.items():
            cells = [f"{p.excess:.1e} ({p.bound:.1e})" for p in points] + [""] * (len(places) - len(points))
            lines.append(Line((cell(label), *map(cell, cells))))
        columns = (Column(axis), *(Column(f"{place:g}") for place in places))
        parts.append(f"{title}: excess risk (bound)\n\n{to_markdown(Table(columns, tuple(lines)))}")
    return "\n".join(parts)


def draw(drawn: dict[str, tuple[str, Curves]], path: Path) -> None:
    """A panel for each axis."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with rc_context(style()):
        figure = Figure(figsize=(10, 8), layout="constrained")
        for axes, (title, (axis, curves)) in zip(figure.subplots(2, 2).flat, drawn.items(), strict=True):
            _draw_curves(axes, curves, bounds=not title.startswith("breast"))
            if title.startswith("breast"):
                _draw_peers(axes)
            if axis == "d":
                _label_growth(axes, curves)
            axes.set(title=title, xlabel=axis, ylabel="excess risk")
            finish(axes)
        handles, labels = figure.axes[1].get_legend_handles_labels()
        handles.append(Line2D([], [], color=INK, linestyle="--", linewidth=1))
        figure.legend(handles, [*labels, "bound"], loc="outside lower center", ncols=3, fontsize=8, frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _draw_curves(axes: Any, curves: Curves, *, bounds: bool) -> None:
    styles = dict(zip(METHODS, zip(COLOURS, MARKS, strict=True), strict=True))
    for label, points in curves.items():
        colour, mark = styles[label]
        at, excess = [p.at for p in points], [p.excess for p in points]
        axes.loglog(at, excess, mark + "-", color=colour, label=label, markersize=4, linewidth=1.6)
        if bounds:
            axes.loglog(at, [p.bound for p in points], "--", color=colour, linewidth=1)


def _draw_peers(axes: Any) -> None:
    for mark, (label, measured) in zip(PEER_MARKS, LOGISTIC_PEERS.items(), strict=True):
        axes.loglog(AT, measured, mark, color=INK, label=label, markersize=6)
    axes.legend(*_last(axes, len(LOGISTIC_PEERS)), fontsize=8, frameon=False, loc="lower left")


def _label_growth(axes: Any, curves: Curves) -> None:
    axes.set_xlim(right=2 * DIMENSIONS[-1])
    for label, power in ((DESCENTS[2], "d"), (DESCENTS[1], "√d")):
        last = curves[label][-1]
        axes.annotate(f"~ {power}", (last.at, last.bound), (4, 0), "data", "offset points", va="center")


def _last(axes: Any, count: int) -> tuple[Any, Any]:
    handles, labels = axes.get_legend_handles_labels()
    return handles[-count:], labels[-count:]


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = panels()
    print(table(drawn))
    draw(drawn, PICTURE)


if __name__ == "__main__":
    main()
