"""Chapter: two regressions on real records, and what privacy costs them: the excess risk against epsilon.

The excess risk is by how much the mean loss at the private point exceeds the least one. It is not private itself, like
all that is called true here: whoever releases the private point alone has the error bound instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fastdp

from .frame import NOISY, TRUE, Strip, say, show, table_of, tidy
from .records import census, clinic

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-6

Panel = Callable[[Any], None]  # draws on axes


def two_regressions(console: Console) -> Strip:
    """Who died, of clinical records, and how long mothers worked, of census records."""
    panels = [_deaths(console), _weeks(console)]

    def draw(part: SubFigure) -> None:
        for axes, panel in zip(part.subplots(1, len(panels)), panels, strict=True):
            panel(axes)

    return Strip(3.8, draw)


def _deaths(console: Console) -> Panel:
    """Logistic regression by noisy descent."""
    records = clinic()
    # Columns are scaled and cut by public constants, never by the least and largest value that the records hold: these
    # are private, and a bound that is read off them would give them away.
    columns = {
        "1": np.ones(len(records["age"])),
        "(age - 75) / 25": _scaled(records["age"], 75, 25),
        "woman": _scaled(records["sex"] == "F", 0, 1),
        "(kappa chains - 2) / 2": _scaled(records["kappa"], 2, 2),
        "(lambda chains - 2) / 2": _scaled(records["lambda"], 2, 2),
    }
    y = np.where(records["death"] == 1, 1.0, -1.0)
    # no coordinate exceeds 1, so no point of 5 is longer than sqrt(5)
    loss = fastdp.losses.Logistic(x_norm=sqrt(len(columns)))
    problem = _Problem(columns, y, loss, fastdp.sets.Ball(5.0))
    best, least = fastdp.nonprivate_minimum(problem.X, y, loss=loss, over=problem.over)

    def excess(w: Any) -> float:
        return float(loss.values(w, problem.X, y).mean()) - least

    def rightly(w: Any) -> float:
        return float(np.mean((problem.X @ w > 0) == (y > 0)))

    descent = _Curve.of("descent", NOISY, problem, fastdp.noisy_projected_gradient_descent, excess, runs=5)
    fit, seconds = problem.timed(fastdp.noisy_projected_gradient_descent)
    show(console, problem.table(best, fit.w))
    n, d = problem.X.shape
    say(
        console,
        f"{n:,} residents of a county, 50 years or older, whose blood was examined (survival/flchain). Who died in the "
        f"following years? Logistic regression, d = {d}, by fastdp.noisy_projected_gradient_descent, epsilon = 1, "
        f"delta = 1e-6: {fit.steps:,} steps in [bold]{seconds:.2f} s[/bold]. The mean loss exceeds its minimum, "
        f"{least:.3f}, by [bold]{excess(fit.w):.4f}[/bold]; error bound: {fit.bound:.3f} in expectation, whatever the "
        f"records are. It is right about [bold]{rightly(fit.w):.1%}[/bold] of them, the true coefficients about "
        f"{rightly(best):.1%}, and the answer that nobody died about {np.mean(y < 0):.1%}. What is true here, and how "
        "far the private point is from it, is not private: it is given for comparison.\n",
    )

    def panel(axes: Any) -> None:
        _frame(axes, [descent], f"Who died: logistic regression, n = {n:,}, d = {d}")

    return panel


def _weeks(console: Console) -> Panel:
    """Linear regression by the method of the least error bound, beside noisy descent."""
    records = census()
    columns = {
        "1": np.ones(len(records["work"])),
        "more than two children": _scaled(records["morekids"] == "yes", 0, 1),
        "first one a boy": _scaled(records["gender1"] == "male", 0, 1),
        "second one a boy": _scaled(records["gender2"] == "male", 0, 1),
        "(age - 21) / 14": _scaled(records["age"], 21, 14),  # the study asked for mothers from 21 to 35
        "Black": _scaled(records["afam"] == "yes", 0, 1),
        "Hispanic": _scaled(records["hispanic"] == "yes", 0, 1),
        "of another minority": _scaled(records["other"] == "yes", 0, 1),
    }
    y = _scaled(records["work"], 0, 52)  # a year has 52 weeks
    loss = fastdp.losses.SquaredError(x_norm=sqrt(len(columns)), y_bound=1.0)
    problem = _Problem(columns, y, loss, fastdp.sets.Ball(1.0))
    best = np.linalg.lstsq(problem.X, y, rcond=None)[0]
    assert problem.over.contains(best)  # so it is the minimum over the ball too, and the gradient there is 0

    def excess(w: Any) -> float:
        return float(np.mean((problem.X @ (w - best)) ** 2))

    def weeks_off(w: Any) -> float:
        return 52 * sqrt(np.mean((problem.X @ w - y) ** 2))

    descent = _Curve.of("descent", NOISY, problem, fastdp.noisy_projected_gradient_descent, excess, runs=1)
    moments = _Curve.of("moments", TRUE, problem, fastdp.noisy_least_squares, excess, runs=5)
    fit, seconds = problem.timed(fastdp.private_erm)
    show(console, problem.table(best, fit.w))
    n, d = problem.X.shape
    bounds = " and ".join(f"{bound:.4f} of {name}" for name, bound in fit.promises.items() if bound is not None)
    say(
        console,
        f"{n:,} mothers of the census: which part of the year did they work? Linear regression, d = {d}, by "
        f"fastdp.private_erm, epsilon = 1, delta = 1e-6. It compares the error bounds of its methods, "
        f"{bounds}, which costs no privacy, and takes {fit.method}: [bold]{seconds:.2f} s[/bold], an excess of "
        f"[bold]{excess(fit.w):.1e}[/bold]. The private line is off by {weeks_off(fit.w):.2f} weeks (root mean "
        f"square), the true one by {weeks_off(best):.2f}.",
    )

    def panel(axes: Any) -> None:
        _frame(axes, [descent, moments], f"Weeks worked: linear regression, n = {n:,}, d = {d}")

    return panel


def _scaled(column: Any, origin: float, unit: float) -> Any:
    """(column - origin) / unit, cut to [-1, 1]."""
    return np.clip((np.asarray(column, np.float64) - origin) / unit, -1.0, 1.0)


class _Problem:
    """Records, and what is minimised over them."""

    def __init__(self, columns: dict[str, Any], y: Any, loss: Any, over: Any) -> None:
        self.names, self.X, self.y = list(columns), np.column_stack(list(columns.values())), y
        self.loss, self.over = loss, over

    def solve(self, method: Callable[..., Any], epsilon: float) -> Any:
        return method(self.X, self.y, loss=self.loss, over=self.over, epsilon=epsilon, delta=DELTA)

    def timed(self, method: Callable[..., Any]) -> tuple[Any, float]:
        """What it gives for epsilon 1, and the seconds."""
        start = perf_counter()
        return self.solve(method, 1.0), perf_counter() - start

    def table(self, best: Any, private: Any) -> Table:
        table = table_of(("coefficient of", "true", "private at epsilon 1"))
        for name, true, noisy in zip(self.names, best, private, strict=True):
            table.add_row(name, f"{true:z.3f}", Text(f"{noisy:z.3f}", style="bold magenta"))
        return table


@dataclass(frozen=True)
class _Curve:
    """The excess risk of a method at each of EPSILONS, in the mean of its runs, and its error bound."""

    name: str
    color: str
    excess: list[float]
    bounds: list[float]

    @classmethod
    def of(
        cls, name: str, color: str, problem: _Problem, method: Callable[..., Any], excess: Callable[[Any], float],
        runs: int,
    ) -> _Curve:  # fmt: skip
        with warnings.catch_warnings():  # the picture has bounds beside outcomes, those that say nothing, too
            warnings.simplefilter("ignore", fastdp.AccuracyWarning)
            fits = [[problem.solve(method, epsilon) for _ in range(runs)] for epsilon in EPSILONS]
        means = [float(np.mean([excess(fit.w) for fit in row])) for row in fits]
        return cls(name, color, means, [row[0].bound for row in fits])


def _frame(axes: Any, curves: list[_Curve], title: str) -> None:
    """Both axes logarithmic; error bounds dashed."""
    for curve in curves:
        axes.plot(EPSILONS, curve.bounds, "--", color=curve.color, linewidth=1.2, label=f"{curve.name}, error bound")
        axes.plot(EPSILONS, curve.excess, "o-", color=curve.color, linewidth=1.6, markersize=4, label=curve.name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_xlabel("epsilon")
    axes.set_ylabel("excess risk")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    tidy(axes, title)
