"""Queries that hold one value for each cell of a domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...records.domain import Domain
from ...support.checks import plain_array
from ...support.frozen import frozen
from ...support.public_paths import public_as
from ...support.shown import shown
from .bound_query import GRID_BITS, BoundCells, as_row
from .query import Query, own


@own
@public_as("fastdp")
class Mask(Query):
    """Records in the cells where `cells` is True.

    Parameters
    ----------
    cells : array_like of bool, or of 0 and 1
        One entry for each cell, as one row in C order or in the shape of the domain.

    Raises
    ------
    ValueError
        "cells: dtype float64: must be True and False, or 0 and 1; for other values use Linear".

    Examples
    --------
    >>> from fastdp import Mask
    >>> Mask([True, False, False, True])
    Mask(<2 of 4 cells>)
    """

    _cells: NDArray[np.uint8]

    def __init__(self, cells: ArrayLike) -> None:
        array = plain_array("cells", cells, "True and False, or 0 and 1, for each cell")
        if not array.ndim:
            raise ValueError(f"cells={shown(cells)}: must be an array, with an entry for each cell")
        if array.dtype != np.bool_ and not (array.dtype.kind in "iuf" and ((array == 0) | (array == 1)).all()):
            hint = "; for other values use Linear" if array.dtype.kind in "iuf" else ""
            raise ValueError(f"cells: dtype {array.dtype}: must be True and False, or 0 and 1{hint}")
        self._state(_cells=frozen(np.asarray(array, np.uint8)))

    @property
    def cells(self) -> NDArray[np.uint8]:
        """0 or 1 for each cell."""
        return self._cells

    def bind(self, domain: Domain) -> BoundCells:
        """Its cells, if they are as many as the domain has.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundCells
            0 or 1 for each cell.
        """
        return BoundCells(domain, as_row("cells", self._cells, domain))

    def __repr__(self) -> str:
        return f"Mask(<{int(self.cells.sum(dtype=np.int64)):,} of {self.cells.size:,} cells>)"

    def _key(self) -> Any:
        return self._cells.tobytes()


@own
@public_as("fastdp")
class Linear(Query):
    """A value in [0, 1] for each cell, rounded to a multiple of 2^-16.

    Parameters
    ----------
    values : array_like of float
        One value for each cell, as one row in C order or in the shape of the domain.

    Raises
    ------
    ValueError
        "values: must lie in [0, 1]; there is another one, or a NaN, among them".

    Examples
    --------
    >>> from fastdp import Linear
    >>> Linear([0.0, 0.5, 1.0]).values.tolist()
    [0.0, 0.5, 1.0]
    """

    _values: NDArray[np.float64]

    def __init__(self, values: ArrayLike) -> None:
        given = plain_array("values", values, "numbers in [0, 1], one for each cell")
        if not given.ndim:
            raise ValueError(f"values={shown(values)}: must be an array, with an entry for each cell")
        if given.dtype.kind not in "biuf":
            raise ValueError(f"values: dtype {given.dtype}: must be numbers in [0, 1]")
        array = np.array(given, np.float64, order="C")
        if not ((array >= 0) & (array <= 1)).all():
            raise ValueError("values: must lie in [0, 1]; there is another one, or a NaN, among them")
        self._state(_values=frozen(np.rint(array * 2.0**GRID_BITS) / 2.0**GRID_BITS))

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of each cell."""
        return self._values

    def bind(self, domain: Domain) -> BoundCells:
        """Its values, if they are as many as the domain has cells.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundCells
            The value for each cell.
        """
        return BoundCells(domain, as_row("values", self._values, domain))

    def __repr__(self) -> str:
        return f"Linear(<{self.values.size:,} cells>)"

    def _key(self) -> Any:
        return self._values.tobytes()
