"""Chapter: a table of counts and its release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import fastdp

from .frame import LAW, NOISY, TRUE, Strip, table_of, tidy

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


def a_table_of_counts(console: Console) -> Strip:
    """True and released counts side by side, and the guarantee of the release."""
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    visits = np.array([412, 388, 405, 431, 502, 117, 64])
    released = fastdp.laplace(visits, sensitivity=2, epsilon=1)

    table = table_of(("", "true", "released", "off by"))
    for day, true, noisy in zip(days, visits, released, strict=True):
        table.add_row(day, str(true), Text(str(noisy), style="bold magenta"), Text(f"{noisy - true:+d}", style="dim"))
    text = Text.assemble(
        "Visitors of a clinic, each counted on one day.\n\n",
        ("fastdp.laplace(visits, sensitivity=2, epsilon=1)", "bold cyan"),
        "\n\nReplacing one visitor by another changes two of the counts by one each: "
        "sensitivity 2. Whoever reads the released column cannot tell which of the two came, "
        "up to a factor e^epsilon in any probability. 95 of 100 entries are off by 6 or less.",
    )
    grid = Table.grid(padding=(0, 4))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, max_width=64)
    grid.add_row(table, text)
    console.print(Padding(grid, (0, 0, 0, 2)))

    def draw(part: SubFigure) -> None:
        axes = part.subplots()
        place = np.arange(len(days))
        axes.bar(place - 0.2, visits, width=0.4, color=TRUE, label="true")
        axes.bar(place + 0.2, released, width=0.4, color=NOISY, label="released, epsilon = 1")
        for x, height in zip(place, released, strict=True):
            axes.annotate(str(height), (x + 0.2, height), ha="center", va="bottom", fontsize=8, color=NOISY)
        for x, height in zip(place, visits, strict=True):
            axes.annotate(str(height), (x - 0.2, height), ha="center", va="bottom", fontsize=8, color=LAW)
        axes.set_xticks(place, days)
        axes.set_ylabel("visitors")
        axes.legend(frameon=False, fontsize=9)
        tidy(axes, "A table of counts, released with fastdp.laplace(visits, sensitivity=2, epsilon=1)")

    return Strip(3.2, draw)
