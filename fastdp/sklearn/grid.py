"""Numbers between public bounds as cells of equal width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Floats, bounds_of, within


@dataclass(frozen=True)
class CellGrid:
    """`count` cells between the bounds of each column; cell c holds what is >= its edge and below the next one.

    The last cell holds the upper bound, too.
    """

    lower: Floats
    upper: Floats
    count: int

    @classmethod
    def of(cls, bounds: Any, count: int, d: int) -> CellGrid:
        return cls(*bounds_of("bounds", bounds, d), count)

    @property
    def width(self) -> Floats:
        """Of the cells of each column."""
        return (self.upper - self.lower) / self.count

    def edges(self, cells: NDArray[Any]) -> Floats:
        """Where cells begin, one for each column."""
        return self.lower + cells * self.width

    def centers(self, cells: NDArray[Any]) -> Floats:
        """The middle of cells, one for each column."""
        return self.lower + (cells + 0.5) * self.width

    def cells(self, X: Floats, outside: str) -> NDArray[np.int64]:
        """The cells of records; DomainError for those beyond the bounds, unless they are to be clipped."""
        X = within(X, self.lower, self.upper, outside)
        found = np.clip(np.floor((X - self.lower) / self.width), 0, self.count - 1).astype(np.int64)
        # rounding may be one off: edges decide, as they do for whoever reads them
        found -= (self.edges(found) > X) & (found > 0)
        found += (self.edges(found + 1) <= X) & (found < self.count - 1)
        return found
