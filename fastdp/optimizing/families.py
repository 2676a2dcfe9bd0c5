"""The families of losses: by what a record's gradient is made of, and which compiled loop sums it.

A row each. A new family is a file of kernels and a row here; `Summand.family` names it. All loops take the same
arguments: points, labels, norms, what stands for w, the rule, an address, and work space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .losses.base import CLASSES, DEVIATION, DISTANCE, GIVEN, MARGIN
from .sets import Vector

_LANES, _GROUP = 8, 32  # of the kernels


class Arguments(NamedTuple):
    """w, as a loop takes it, and the work space of a sum."""

    at: Any
    tail: Any
    sums: Vector


@dataclass(frozen=True)
class Family:
    """A row.

    module       of the kernels `sum_name` and `sum_plain_name`
    name         what they are called after
    arrange      w, the number of columns and the type of points, as its loops take them
    differences  whether a record's part is its difference from w: points are then float64, within their bound
    descends     whether there is a whole descent in one loop, `descend_name`
    """

    module: str
    name: str
    arrange: Callable[[Vector, int, Any], Arguments]
    differences: bool = False
    descends: bool = True

    def kernel(self, action: str) -> Any:
        """The loop that does this: "sum" or "sum_plain"."""
        return getattr(import_module(f"fastdp.kernels.{self.module}"), f"{action}_{self.name}")


def _wide(d: int) -> int:
    return -(-d // _LANES) * _LANES


def _one_row(w: Vector, columns: int, dtype: Any) -> Arguments:
    """w and ones, then zeros."""
    wide = _wide(columns)
    at = np.zeros((2, wide))
    at[0, :columns], at[1, :columns] = w, 1.0
    return Arguments(at, np.empty(_GROUP * columns + _LANES, dtype), np.empty(wide))


def _row_for_each_class(w: Vector, columns: int, dtype: Any) -> Arguments:
    """A row of w for each class, then zeros; and a table of scores."""
    classes, wide = len(w) // columns, _wide(columns)
    rows = np.zeros((classes, wide))
    rows[:, :columns] = w.reshape(classes, columns)
    at = rows.reshape(-1), np.empty(_GROUP * classes)
    return Arguments(at, np.empty(_GROUP * columns + _LANES, dtype), np.empty(classes * wide))


def _as_it_is(w: Vector, columns: int, dtype: Any) -> Arguments:
    """w itself, and room for a gradient, a point and a copy of w."""
    wide = _wide(len(w))
    return Arguments((np.array(w), np.empty(wide + columns + len(w))), np.empty(0, dtype), np.empty(wide))


FAMILIES = {
    MARGIN: Family("gradients", "margins", _one_row),
    DISTANCE: Family("gradients", "differences", _one_row, differences=True),
    DEVIATION: Family("gradients", "signs", _one_row, differences=True),
    CLASSES: Family("class_gradients", "classes", _row_for_each_class, descends=False),
    GIVEN: Family("given_gradients", "given", _as_it_is, descends=False),
}
