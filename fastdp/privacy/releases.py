"""Rows of a budget: what a person reads of its releases, and what goes to JSON and to data frames."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, overload

from ..support import extensions
from ..support.public_paths import public_as
from .accounted import Accounted
from .guarantees import Guarantee
from .origin import short_form
from .stored_forms import as_json, plain


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class Release(Accounted):
    """One row of `Budget.releases`."""

    mechanism: str
    parameters: Mapping[str, Any]
    guarantee: Guarantee
    total: Guarantee  # of this release and all before it
    declared: Guarantee | None = None  # which declared release it was
    state: str = "final"  # or "reserved": of a stored budget, begun by a process that has not said how it ended
    made: str = ""  # when, of a stored budget


@public_as("fastdp.privacy")
class Releases(Sequence[Release]):
    """The releases charged so far, as a table that prints well."""

    def __init__(self, rows: Sequence[Release], *, still_open: str | None = None) -> None:
        self._rows = tuple(rows)
        self._open = still_open  # what was declared and has not come; None where nothing was declared

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        return Releases(self._rows[index], still_open=self._open) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def dp_event(self, accountant: Any = None) -> Any:
        """All of them as one composed event of the library dp-accounting: connect/dp_accounting.py."""
        events = extensions.load("dp_event", "dp-accounting")
        return events.composed([row.guarantee for row in self._rows], accountant)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                row.mechanism,
                ", ".join(f"{name}={value!r}" for name, value in row.parameters.items()),
                short_form(row.guarantee),
                short_form(row.total),
                *([] if self._open is None else ["no" if row.declared is None else short_form(row.declared)]),
                *([row.state] if self._in_doubt else []),
            )
            for number, row in enumerate(self._rows, 1)
        ]

    @property
    def _headings(self) -> tuple[str, ...]:
        declared, state = ("declared",) * (self._open is not None), ("state",) * self._in_doubt
        return (*_HEADINGS, *declared, *state)

    @property
    def _in_doubt(self) -> bool:
        """Whether there are releases of which it is not known that they have drawn."""
        return any(row.state != "final" for row in self._rows)

    def to_json(self) -> str:
        """All rows as JSON.

        Returns
        -------
        str
            A list of objects. Guarantees stand there with all that is known of them, each number with all its digits;
            `privacy.from_json` reads them. Numbers that are not finite are texts.

        Examples
        --------
        >>> import fastdp, json
        >>> budget = fastdp.Budget(epsilon=1.0)
        >>> noisy = fastdp.laplace([3, 5], sensitivity=2, epsilon=0.25, budget=budget)
        >>> json.loads(budget.releases.to_json())[0]["total"]
        {'kind': 'PureDP', 'neighbors': 'replace-one', 'epsilon': 0.25}
        """
        return json.dumps([_as_json(row) for row in self._rows], indent=2, allow_nan=False)

    def to_frame(self) -> Any:
        """All rows as a data frame of pandas, a row for each release.

        Returns
        -------
        pandas.DataFrame
            Guarantees are texts; epsilon, delta and rho of each are columns, NaN where there is none.
        """
        import pandas as pd

        rows = []
        for row in self._rows:
            facts = _as_json(row) | {"guarantee": str(row.guarantee), "total": str(row.total)}
            facts["declared"] = None if row.declared is None else str(row.declared)
            forms = row.guarantee.forms()
            leak, epsilon = min(((form.leak, form.pure) for form in forms if form.pure < inf), default=(nan, nan))
            rho = min((form.rho for form in forms if form.rho < inf and not form.leak), default=nan)
            rows.append({**facts, "epsilon": epsilon, "delta": leak, "rho": rho})
        return pd.DataFrame(rows, columns=[*_COLUMNS, "epsilon", "delta", "rho"])

    def __repr__(self) -> str:
        rows = [self._headings, *self._cells()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self._headings))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, f"declared and still open: {self._open}"] if self._open else lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self._headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells()
        )
        still_open = f"<p>declared and still open: {html.escape(self._open)}</p>" if self._open else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{still_open}"


_HEADINGS = ("", "mechanism", "parameters", "guarantee", "total")
_COLUMNS = ("mechanism", "parameters", "guarantee", "total", "declared", "state", "made", "words", "version")


def _as_json(row: Release) -> dict[str, Any]:
    origin = row.guarantee.origin
    return {
        "mechanism": row.mechanism,
        "parameters": plain(row.parameters),
        "guarantee": as_json(row.guarantee),
        "total": as_json(row.total),
        "declared": None if row.declared is None else as_json(row.declared),
        "state": row.state,
        "made": row.made or None,
        "words": None if origin is None else origin.words,
        "version": None if origin is None else origin.version,
    }


class RowParameters(Mapping[str, Any]):
    """What a row says of its release: a mapping that nobody changes, lists in it included."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = {name: tuple(value) if isinstance(value, list) else value for name, value in items.items()}

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[type[RowParameters], tuple[dict[str, Any]]]:
        return RowParameters, (self._items,)
