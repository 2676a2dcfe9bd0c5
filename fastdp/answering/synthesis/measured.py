"""What a fit to noisy tables is told: the tables, and the cells that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..least_squares_fit import Axes, LeastSquares, Table


class Measured(NamedTuple):
    """A table with its noise: numbers of records, not shares.

    columns  positions, ascending
    values   float64 or int64, with an axis for each column in this order, or flat in C order
    sigma    the standard deviation of the noise of each cell
    """

    columns: tuple[int, ...]
    values: NDArray[Any]
    sigma: float


class Residuals(NamedTuple):
    """What was measured of all tables of a workload.

    components  of the tables, by shape, in records
    variances   of these
    """

    least_squares: LeastSquares
    components: dict[Axes, Table]
    variances: dict[Axes, Table]

    @property
    def tables(self) -> list[Measured]:
        """The tables that have these components, with the deviation of a cell."""
        workload = self.least_squares.workload
        deviations = np.sqrt(self.least_squares.variances_of_tables(self.variances)).tolist()
        made = self.least_squares.build(self.components)
        return [Measured(*each) for each in zip(workload.positions, made, deviations, strict=True)]


class Zeros(NamedTuple):
    """Cells that are known, in public, to hold no record.

    columns  positions, ascending
    cells    True where no record can be, with an axis for each column in this order
    """

    columns: tuple[int, ...]
    cells: NDArray[np.bool_]


def check_measured(sizes: Sequence[int], measured: Measured) -> NDArray[np.float64]:
    """The values in the shape of their columns; ValueError unless they are a table of these columns."""
    shape = _shape_of(sizes, measured.columns)
    values = np.asarray(measured.values, np.float64)
    if values.shape not in (shape, (int(np.prod(shape)),)):
        raise ValueError(f"measurements: shape {values.shape}: must be {shape}, as the columns {measured.columns}")
    if not 0 < measured.sigma < np.inf:
        raise ValueError(f"measurements: sigma={measured.sigma}: must be > 0 and finite")
    if not np.isfinite(values).all():
        raise ValueError("measurements: values: must be finite")
    return values.reshape(shape)


def check_zeros(sizes: Sequence[int], zeros: Zeros) -> NDArray[np.bool_]:
    """The cells; ValueError unless they are a table of these columns."""
    shape = _shape_of(sizes, zeros.columns)
    cells = np.asarray(zeros.cells)
    if cells.shape != shape or cells.dtype != np.bool_:
        raise ValueError(f"zeros: {cells.dtype} of shape {cells.shape}: must be bool of shape {shape}")
    return cells


def _shape_of(sizes: Sequence[int], columns: tuple[int, ...]) -> tuple[int, ...]:
    if list(columns) != sorted(set(columns)) or not all(0 <= p < len(sizes) for p in columns):
        raise ValueError(f"columns={columns}: must be positions below {len(sizes)}, ascending")
    return tuple(sizes[p] for p in columns)
