"""`fastdp demo`: what the library does, in chapters for a newcomer, in the terminal and as one picture.

A chapter is a function that prints its part and returns how its strip of the picture is drawn. Every room of the
library adds one to `CHAPTERS`, under its title.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from .budget import a_budget
from .choice import a_choice
from .counts import a_table_of_counts
from .frame import Chapter, paint
from .hypotheses import two_hypotheses
from .noise import the_noise_and_its_law
from .queries import many_queries
from .regression import two_regressions
from .synthetic import a_synthetic_table

CHAPTERS: dict[str, Chapter] = {
    "A table of counts, released": a_table_of_counts,
    "A million draws, their law, and the clock": the_noise_and_its_law,
    "A choice among candidates": a_choice,
    "Many queries on census records": many_queries,
    "A synthetic table, and a classifier trained on it": a_synthetic_table,
    "Regression on census and clinical records": two_regressions,
    "Two hypotheses, learned and printed": two_hypotheses,
    "A budget, and what many releases cost": a_budget,
}


def demo(console: Console, png: Path | None) -> None:
    """Print every chapter; write the picture to `png` unless it is None."""
    strips = []
    for number, (title, chapter) in enumerate(CHAPTERS.items(), 1):
        console.print(Rule(f"[bold]{number}. {title}[/bold]", style="dim", align="left"))
        strips.append(chapter(console))
        console.print()
    if png is not None:
        paint(strips, png)
        console.print(f"The same as a picture: {png}", highlight=False)


__all__ = ["CHAPTERS", "demo"]
