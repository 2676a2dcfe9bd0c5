"""What all chapters share: the page of the picture and its strips, colours, tables, and the clock.

No global state is changed: matplotlib through Figure objects only, and threads are put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

import fastdp

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class Strip:
    """A chapter's part of the picture: full width, so many inches high."""

    height: float
    draw: Callable[[SubFigure], None]


Chapter = Callable[[Console], Strip]

TRUE, NOISY, LAW, MUTED = "#8aa4bf", "#d1495b", "#1f3b57", "#8c8c8c"
WIDTH_INCHES = 10.0


# --- the terminal


def table_of(headings: Sequence[str], texts: int = 1) -> Table:
    """An empty table; its first columns, `texts` of them, hold text and the others numbers."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i < texts else "right")
    return table


def show(console: Console, what: RenderableType) -> None:
    """A table or plot, indented, and an empty line."""
    console.print(Padding(what, (0, 0, 1, 2)))


def say(console: Console, text: str) -> None:
    """Prose, indented, in lines that can be read."""
    console.print(Padding(text, (0, 0, 0, 2)), highlight=False, width=min(console.width, 100))


# --- the picture


def paint(strips: Sequence[Strip], png: Path) -> None:
    """All strips, one below the other."""
    from matplotlib.figure import Figure

    heights = [strip.height for strip in strips]
    figure = Figure(figsize=(WIDTH_INCHES, sum(heights)), dpi=150, layout="constrained", facecolor="white")
    parts = figure.subfigures(len(strips), 1, height_ratios=heights, squeeze=False)
    for part, strip in zip(parts[:, 0], strips, strict=True):
        strip.draw(part)
    figure.savefig(png)


def tidy(axes: Any, title: str) -> None:
    """The style of every panel."""
    axes.set_title(title, fontsize=10, loc="left", color=LAW, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)


# --- the clock


@dataclass(frozen=True)
class Duel:
    """Seconds that we take, and numpy."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """How many times as long numpy takes."""
        return self.theirs / self.ours

    def draw(self, axes: Any, title: str) -> None:
        """Two bars."""
        bars = axes.barh(["numpy", "fastdp"], [self.theirs * 1e3, self.ours * 1e3], color=[MUTED, NOISY], height=0.5)
        axes.bar_label(bars, fmt="%.2f ms", padding=3, fontsize=9)
        axes.set_xlim(0, max(self.ours, self.theirs) * 1e3 * 1.45)
        axes.set_xlabel("milliseconds, one thread")
        tidy(axes, title)


def duel(ours: Callable[[], object], theirs: Callable[[], object]) -> Duel:
    """Least seconds of several rounds, in turn, one thread."""
    best = [float("inf")] * 2
    threads = fastdp.get_num_threads()
    fastdp.set_num_threads(1)
    try:
        for _ in range(12):
            for i, side in enumerate((ours, theirs)):
                start = perf_counter()
                side()
                best[i] = min(best[i], perf_counter() - start)
    finally:
        fastdp.set_num_threads(threads)
    return Duel(*best)
