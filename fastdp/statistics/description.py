"""All columns of a frame at a glance, as pandas' describe prints them, with the deviations of their noise."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy.accounted import Accounted
from ..privacy.guarantees import Guarantee
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from .results import Counts, pandas_library

_SHOWN = 6  # categories of a column


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class ColumnSummary(Accounted, Displayed):
    """A column of numbers at a glance.

    Attributes
    ----------
    name : str or int
        The column.
    values : dict from str to float
        "count", "mean", "std", and the quantiles, such as "50%".
    deviations : dict from str to float
        The standard deviation of the noise of the count, the mean and the std, as the released numbers state it. Of
        quantiles in records: by how many the share of the numbers below is off.
    guarantee : Guarantee
        Of this column's part of the release.
    """

    name: str | int
    values: dict[str, float]
    deviations: dict[str, float]
    guarantee: Guarantee

    def _display(self) -> DisplayLines:
        rows = [(row, cell) for row, cell in _cells(self).items()]
        return [("column", str(self.name)), *rows, ("guarantee", str(self.guarantee))]


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class Description(Accounted, Displayed):
    """All columns of a frame at a glance: a mapping from each column to its summary, or to its counts.

    Attributes
    ----------
    numbers : dict from str to ColumnSummary
        The columns of numbers.
    categories : dict from str to Counts
        The columns of categories: the noisy count of each.
    guarantee : Guarantee
        Of everything together.
    """

    numbers: dict[str | int, ColumnSummary]
    categories: dict[str | int, Counts]
    guarantee: Guarantee

    def __getitem__(self, column: str | int) -> Any:
        try:
            return self._all[column]
        except (KeyError, TypeError, ValueError):  # the last two of what has no hash
            raise KeyError("column: must be one that was described") from None

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self.numbers) + len(self.categories)

    @property
    def _all(self) -> Mapping[str | int, ColumnSummary | Counts]:
        return {**self.numbers, **self.categories}

    def to_frame(self) -> Any:
        """The numbers as a pandas DataFrame, shaped as `DataFrame.describe` has it: a column for each, and a row for
        the count, the mean, the std and each quantile. Counts of categories have a frame of their own."""
        return self._frame({name: column.values for name, column in self.numbers.items()})

    def deviations_to_frame(self) -> Any:
        """The deviations of `to_frame()`, in the same shape; those of quantiles in records."""
        return self._frame({name: column.deviations for name, column in self.numbers.items()})

    def _frame(self, columns: dict[str | int, dict[str, float]]) -> Any:
        return pandas_library().DataFrame(columns)

    def _display(self) -> DisplayLines:
        lines = [("numbers", _table([_cells(column) for column in self.numbers.values()], [*self.numbers]))]
        lines = lines if self.numbers else []
        lines += [(str(name), _counted(counts)) for name, counts in self.categories.items()]
        return [*lines, ("guarantee", str(self.guarantee))]

    def _repr_html_(self) -> str:
        rows = [_cells(column) for column in self.numbers.values()]
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in self.numbers)
        body = "".join(
            f"<tr><th>{row}</th>{''.join(f'<td>{html.escape(each[row])}</td>' for each in rows)}</tr>"
            for row in (rows[0] if rows else ())
        )
        counts = "".join(
            f"<tr><th>{html.escape(str(name))}</th><td><pre>{html.escape(_counted(each))}</pre></td></tr>"
            for name, each in self.categories.items()
        )
        numbers = f"<table><caption>Description</caption><tr><th></th>{head}</tr>{body}</table>" if rows else ""
        return f"{numbers}<table>{counts}</table><p>{html.escape(str(self.guarantee))}</p>"


def _cells(column: ColumnSummary) -> dict[str, str]:
    """Each row as it prints: a number and its deviation."""
    cells = {}
    for row, value in column.values.items():
        off = column.deviations[row]
        shown = f"{value:,.0f}" if row == "count" else f"{value:,.6g}"
        cells[row] = shown if not off else f"{shown} ± {off:.2g}" + (" records" if row.endswith("%") else "")
    return cells


def _table(columns: list[dict[str, str]], names: list[str | int]) -> str:
    rows = ["", *(columns[0] if columns else ())]
    listed = [rows, *([str(name), *cells.values()] for name, cells in zip(names, columns, strict=True))]
    widths = [max(map(len, column)) for column in listed]
    lines = []
    for i in range(len(rows)):
        first, *others = (column[i] for column in listed)
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _counted(counts: Counts) -> str:
    """The largest counts of a column of categories."""
    labels = counts.domain.decode_column(0, np.arange(len(counts))).tolist()
    largest = np.argsort(-counts.counts, kind="stable")[:_SHOWN].tolist()
    lines = [f"{counts.counts[place]:>12,} ± {counts.deviation:.2g}  {labels[place]}" for place in largest]
    return "\n".join(lines) + (f"\nand {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else "")
