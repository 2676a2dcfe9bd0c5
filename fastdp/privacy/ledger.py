"""The ledger of a budget: what was charged, the exact sums of it, and the rows that a person reads.

Epsilons and deltas count by their decimal values, so that ten releases of 0.1 fit in 1. Nothing here decides whether a
release fits: that is the budget's part.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, overload

from ..support import extensions
from ..support.public_paths import public_as
from ..support.rounding import decimal_value, decimal_value_down, decimal_value_up, down, up
from .accounted import Accounted
from .guarantees import Guarantee


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class Release(Accounted):
    """One row of `Budget.releases`."""

    mechanism: str
    parameters: Mapping[str, Any]
    guarantee: Guarantee
    total: Guarantee  # of this release and all before it


@public_as("fastdp.privacy")
class Releases(Sequence[Release]):
    """The releases charged so far, as a table that prints well."""

    def __init__(self, rows: Sequence[Release]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        return Releases(self._rows[index]) if isinstance(index, slice) else self._rows[index]

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
            )
            for number, row in enumerate(self._rows, 1)
        ]

    def __repr__(self) -> str:
        rows = [_HEADINGS, *self._cells()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEADINGS = ("", "mechanism", "parameters", "guarantee", "total")


def short_form(guarantee: Guarantee) -> str:
    return str(guarantee).removesuffix(f", {guarantee.neighbors}")


class Charge:
    """One release on one budget; identity is what tells it from others."""

    def __init__(self, guarantee: Guarantee, mechanism: str = "", parameters: Mapping[str, Any] | None = None) -> None:
        self.guarantee, self.mechanism, self.parameters = guarantee, mechanism, parameters or {}
        self.final = False
        forms = guarantee.forms()
        clean = [form for form in forms if not form.leak]
        delta, epsilon = min(((form.leak, form.pure) for form in forms if form.pure < inf), default=(0.0, inf))
        self.amounts = {
            "epsilon": epsilon,  # of a pure form where there is one, of an approximate one elsewhere
            "delta": delta,
            "pure": min((form.pure for form in clean), default=inf),
            "rho": min((form.rho for form in clean), default=inf),
        }


def _exactly(name: str, amount: float) -> Fraction:
    """An epsilon or delta is what it is written as; a rho, often the result of a formula, what it is in binary."""
    return Fraction(amount) if name == "rho" else decimal_value(amount)


class Sums:
    """Exact sums of the amounts of some charges, as they are written; inf while one of them has none."""

    def __init__(self) -> None:
        self._finite = dict.fromkeys(("epsilon", "delta", "pure", "rho"), Fraction(0))
        self._missing = dict.fromkeys(self._finite, 0)

    def plus(self, charge: Charge, times: int = 1) -> Sums:
        sums = Sums()
        for name, amount in charge.amounts.items():
            there = amount < inf
            sums._finite[name] = self._finite[name] + (times * _exactly(name, amount) if there else 0)
            sums._missing[name] = self._missing[name] + (0 if there else times)
        return sums

    def total(self, name: str) -> float:
        if self._missing[name]:
            return inf
        return up(self._finite[name]) if name == "rho" else decimal_value_up(self._finite[name])

    def left(self, name: str, limit: float) -> float:
        """What may be added before the limit is passed."""
        if self._missing[name]:
            return 0.0
        rest = _exactly(name, limit) - self._finite[name]
        return max(0.0, down(rest) if name == "rho" else decimal_value_down(rest))

    def within(self, name: str, limit: float) -> bool:
        return not self._missing[name] and self._finite[name] <= _exactly(name, limit)
