"""Columns by name or by position: which one is meant, and what errors call it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..support.checks import plain_integer
from ..support.shown import shown

_MOST_LISTED = 12  # of the names in an error
Names = tuple[str, ...] | None  # None: the columns have positions only


def positions_of(columns: Sequence[str | int], names: Names, width: int) -> tuple[int, ...]:
    """Which columns these are; ValueError lists the names that are missing."""
    if isinstance(columns, str):
        columns = [columns]
    if names is None:
        return tuple(position_of(which, None, width) for which in columns)
    places = {name: j for j, name in enumerate(names)}
    if missing := [name for name in columns if isinstance(name, str) and name not in places]:
        raise ValueError(f"data: must have the columns {_listed(missing)}")
    return tuple(places[w] if isinstance(w, str) else position_of(w, names, width) for w in columns)


class called:
    """Errors about records speak of the parameter that holds them; as raised, they speak of `known`."""

    __slots__ = ("_known", "_parameter")

    def __init__(self, parameter: str, known: str = "data") -> None:
        self._parameter = parameter
        self._known = known

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        known = self._known
        if isinstance(error, ValueError) and str(error).startswith(f"{known}: "):
            text = re.sub(rf"^{known}(?=:)|\b{known}(?=\[)", lambda _: self._parameter, str(error))
            raise type(error)(text) from None


def called_column(name: str | int) -> called:
    """Errors about a column's values name the column."""
    return called(f"column {shown(name)}", known="values")


def position_of(which: str | int, names: Names, width: int, parameter: str = "column") -> int:
    """Which column has this name or position; errors name the parameter that says which."""
    if isinstance(which, str):
        if names is None:
            raise ValueError(f"{parameter}={shown(which)}: must be a position, as the columns have no names")
        if which not in names:
            raise ValueError(f"{parameter}={shown(which)}: must be one of {_listed(names)}")
        return names.index(which)
    position = plain_integer(which)
    if position is None or not 0 <= position < width:
        raise ValueError(f"{parameter}={shown(which)}: must be a name, or a position from 0 to {width - 1}")
    return position


def _listed(names: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join(map(repr, names[:_MOST_LISTED])) + (", ..." if len(names) > _MOST_LISTED else "")


def checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"data: column name {shown(name)}: must be a string")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"data: column name {shown(twice)}: must not repeat")
    return tuple(names)


def at_least_one(columns: Sequence[Any]) -> int:
    if not columns:
        raise ValueError("data: must have at least one column")
    return len(columns)


def names_at(at: tuple[int, ...], names: Names) -> Names:
    """The names of the columns at these positions."""
    return None if names is None else tuple(names[j] for j in at)


def label_of(position: int, names: Names) -> str:
    return f"column {position}" if names is None else f"column {names[position]!r}"
