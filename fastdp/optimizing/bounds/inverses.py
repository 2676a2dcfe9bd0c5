"""How bounds are solved for the number of records and for epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...support.checks import MAX_INT64, integer, positive
from ...support.search import MOST_RECORDS, in_reach, least_float, least_integer

_MOST_EPSILON = 2.0**10
_TOLERANCE = 1e-3


def least_n(excess: Any, bound: Callable[[int], float | None], name: str = "excess") -> int:
    """The fewest records with which the bound is at most `excess`."""
    wanted = positive(name, excess, toward=0)

    def enough(n: int) -> bool:
        found = bound(n)
        return found is not None and found <= wanted

    return in_reach(
        name, excess, lambda: least_integer(enough, low=1, largest=MOST_RECORDS, within=_TOLERANCE),
        f", with {MOST_RECORDS:,} records too",
    )  # fmt: skip


def least_epsilon(excess: Any, bound: Callable[[float], float | None], name: str = "excess") -> float:
    """The least epsilon with which the bound is at most `excess`."""
    wanted = positive(name, excess, toward=0)

    def enough(epsilon: float) -> bool:
        try:
            found = bound(epsilon)
        except ValueError:  # so little that the noise has no grid
            return False
        return found is not None and found <= wanted

    return in_reach(
        name, excess,
        lambda: least_float(enough, tolerance=_TOLERANCE, smallest=2.0**-40, largest=_MOST_EPSILON / 2),
        f", with an epsilon of {_MOST_EPSILON:g}",
    )  # fmt: skip


def sizes(n: Any, d: Any) -> tuple[int, int]:
    """The number of records and of columns, checked."""
    return integer("n", n, least=1, most=MAX_INT64), integer("d", d, least=1, most=2**20)
