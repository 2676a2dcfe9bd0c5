"""Neighbouring relations: which two inputs a guarantee compares.

Two inputs differ in a record, or in a person: in all rows that have one value in a column. A relation of persons is
another text, so that nothing takes it for one of records, or for one of other persons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, cast

from ..support import parameters
from ..support.parameters import NEIGHBORS as NEIGHBORS
from ..support.shown import shown

Neighbors = Literal["replace-one", "add-remove"]

_OF_PERSONS = re.compile(r"(replace-one|add-remove) of a person \((.+)\)", re.DOTALL)
_LONGEST = 200  # characters of a unit


def checked_unit(unit: Any) -> str:
    """What tells persons apart: the name of a column, or its position as text."""
    if isinstance(unit, str) and 0 < len(unit) <= _LONGEST and unit.isprintable():
        return str(unit)
    raise ValueError(f"unit={shown(unit)}: must be a text of at most {_LONGEST} characters on one line")


def of_persons(neighbors: Neighbors, unit: Any) -> Neighbors:
    """The relation of persons, of one of records; None for `unit` leaves it as it is."""
    if unit is None:
        return neighbors
    return cast("Neighbors", f"{parameters.neighbors(neighbors)} of a person ({checked_unit(unit)})")


def kind_of(neighbors: Neighbors) -> Neighbors:
    """The relation of records that one of persons is made of; any other as it is."""
    found = _OF_PERSONS.fullmatch(neighbors) if isinstance(neighbors, str) and neighbors.endswith(")") else None
    return neighbors if found is None else cast("Neighbors", found[1])


def unit_of(neighbors: str) -> str | None:
    """What tells its persons apart; None where it is of records."""
    found = _OF_PERSONS.fullmatch(neighbors)
    return None if found is None else found[2]


def replacing(neighbors: Neighbors) -> Neighbors:
    """The same where one is replaced."""
    return of_persons("replace-one", unit_of(neighbors))


def check_relation(neighbors: Any) -> Any:
    """A relation of records or of persons; ValueError for anything else."""
    parameters.neighbors(kind_of(neighbors))
    return neighbors


def one_relation(all_relations: Iterable[Neighbors]) -> Neighbors:
    """The relation of all of them; ValueError if they differ."""
    relations = sorted(set(all_relations))
    if len({unit_of(each) for each in relations}) > 1:
        raise ValueError(
            f"neighbors: guarantees for {relations[0]!r} and for {relations[1]!r} neighbours do not mix; of the same "
            "persons they do: privacy.for_persons"
        )
    if len(relations) > 1:
        raise ValueError(
            "neighbors: guarantees for 'add-remove' and for 'replace-one' neighbours do not mix; "
            "change the former with .to_replace_one()"
        )
    return relations[0]


def mismatch(ours: Neighbors, released: Neighbors) -> str:
    """Why a budget for one relation does not take a release under another one."""
    unit, of_release = unit_of(ours), unit_of(released)
    if unit == of_release:
        return (
            f"neighbors={released!r}: this budget is for {ours!r} neighbours; state the "
            "release's sensitivity under that relation, or use another budget"
        )
    if of_release is None:
        return (
            f"budget: is for persons, unit={unit!r}, and this release is for records: make it of "
            f"fastdp.limit_rows(data, unit={unit!r}, at_most=...)"
        )
    return (
        f"budget: is for {'records' if unit is None else f'persons, unit={unit!r}'}, and this release is for persons: "
        f"must be a Budget(unit={of_release!r})"
    )
