"""Chapter: two hypotheses learned from real records, printed as a person would write them: a conjunction and a box."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

import fastdp

from .frame import NOISY, TRUE, Strip, say, show, table_of, tidy
from .records import diamonds, passengers

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

EPSILON = 1.0
CLASSES = ("1st", "2nd", "3rd")

Panel = Callable[[Any], None]  # draws on axes


def two_hypotheses(console: Console) -> Strip:
    """Who survived, of the passengers of the Titanic, and what makes the cut of a diamond ideal."""
    panels = [_survivors(console), _ideal(console)]

    def draw(part: SubFigure) -> None:
        for axes, panel in zip(part.subplots(1, len(panels)), panels, strict=True):
            panel(axes)

    return Strip(3.6, draw)


def _survivors(console: Console) -> Panel:
    """A conjunction of at most two literals: of all, the exponential mechanism chooses one."""
    records = passengers()
    of_class, woman = np.asarray(records["passengerClass"]), np.asarray(records["sex"]) == "female"
    survived = np.asarray(records["survived"]) == "yes"
    attributes = {"a woman": woman, **{f"in {name} class": of_class == name for name in CLASSES}}
    rule = fastdp.learn_conjunction(attributes, survived, k=2, epsilon=EPSILON, method="exhaustive")
    say(
        console,
        f"{len(survived):,} passengers of the Titanic, of whom sex and class are known: who survived? Of all "
        "conjunctions of at most two attributes, by fastdp.learn_conjunction(method='exhaustive'), epsilon = 1: "
        f"[bold magenta]{rule}[/bold magenta]. It is wrong about {rule.error(attributes, survived):.1%} of them "
        "(not private, and given for comparison), the answer that all drowned about "
        f"{survived.mean():.1%}.\n",
    )
    groups = {
        f"{'women' if sex else 'men'}, {name}": (woman == sex) & (of_class == name)
        for sex in (True, False)
        for name in CLASSES
    }
    chosen = rule.predict(attributes)

    def panel(axes: Any) -> None:
        shares = [100 * survived[group].mean() for group in groups.values()]
        colors = [NOISY if chosen[group].all() else TRUE for group in groups.values()]
        bars = axes.bar(list(groups), shares, color=colors, width=0.65)
        axes.bar_label(bars, fmt="%.0f %%", padding=2, fontsize=8)
        axes.set_ylim(0, 112)
        axes.set_yticks([])
        axes.tick_params(axis="x", labelrotation=20)
        axes.set_ylabel("survived")
        tidy(axes, f"Who survived? {rule} (red), ε = 1")

    return panel


def _ideal(console: Console) -> Panel:
    """A box in two measures: of all, the exponential mechanism chooses one."""
    records = diamonds()
    depth, table = (np.asarray(records[name], np.float64) for name in ("depth", "table"))
    # in thousandths, so that the domain, 0 to 1.023, has 10 bits a column
    measures = {"depth": np.rint(10 * depth).astype(int), "table": np.rint(10 * table).astype(int)}
    ideal = np.asarray(records["cut"]) == "Ideal"
    start = perf_counter()
    box = fastdp.learn_box(measures, ideal, domain_bits=10, epsilon=EPSILON, method="exponential")
    seconds = perf_counter() - start
    compared = table_of(("hypothesis", "wrong about"))
    compared.add_row(f"[bold magenta]{box}[/bold magenta]", f"{box.error(measures, ideal):.1%}")
    compared.add_row("no diamond is ideal", f"{ideal.mean():.1%}")
    show(console, compared)
    say(
        console,
        f"{len(ideal):,} diamonds: what makes a cut ideal? The depth of the stone and the width of its table, in "
        f"thousandths of its diameter. Of all 2.7 x 10^11 boxes, by the exponential mechanism, exactly: epsilon = 1, "
        f"[bold]{1e3 * seconds:.0f} ms[/bold]. For more records or columns, fastdp.learn_box takes a grid of private "
        "quantiles.",
    )

    def panel(axes: Any) -> None:
        from matplotlib.patches import Rectangle

        edges = np.arange(579.5, 660, 3), np.arange(505, 640, 10)
        x, y = measures.values()
        count, *_ = np.histogram2d(x, y, edges)
        good, *_ = np.histogram2d(x[ideal], y[ideal], edges)
        share = np.where(count >= 10, good / np.maximum(count, 1), np.nan)
        mesh = axes.pcolormesh(*edges, share.T, cmap="Blues", vmin=0, vmax=1)
        axes.figure.colorbar(mesh, ax=axes, label="called ideal", pad=0.02)
        if box.intervals is not None:
            (a, b), (c, e) = ((low - 0.5, high + 0.5) for low, high in box.intervals)
            axes.add_patch(Rectangle((a, c), b - a, e - c, fill=False, edgecolor=NOISY, linewidth=2.2))
        axes.set_xlim(580, 660)
        axes.set_ylim(510, 630)
        axes.set_xlabel("depth, ‰")
        axes.set_ylabel("table, ‰")
        tidy(axes, "Ideal diamonds, and the private box, ε = 1")

    return panel
