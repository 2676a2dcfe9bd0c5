"""Neighbouring relations: which two inputs a guarantee compares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..support.parameters import NEIGHBORS as NEIGHBORS

Neighbors = Literal["replace-one", "add-remove"]


def one_relation(all_relations: Iterable[Neighbors]) -> Neighbors:
    """The relation of all of them; ValueError if they differ."""
    relations = sorted(set(all_relations))
    if len(relations) > 1:
        raise ValueError(
            "neighbors: guarantees for 'add-remove' and for 'replace-one' neighbours do not mix; "
            "change the former with .to_replace_one()"
        )
    return relations[0]
