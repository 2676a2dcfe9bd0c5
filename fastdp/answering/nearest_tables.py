"""The nearest tables: estimates of tables become tables, entries not negative and the right total.

Post-processing, in floats: it sees noisy tables alone. release_marginals.md, "Nearest tables".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..support.threads import run_chunks
from .least_squares_fit import LeastSquares, Table
from .marginal_transform import CHUNK

_ROUNDS = 4  # of making tables consistent, and then tables again


def nearest_consistent_tables(estimates: Sequence[Table], least_squares: LeastSquares) -> list[Table]:
    """Tables near consistent estimates, as fractions: the nearest ones, made consistent and nearest again, a few times.

    Where no entry is below 0 they are the estimates.
    """
    tables = nearest_tables(estimates)
    if min(float(table.min()) for table in estimates) < 0:
        for _ in range(_ROUNDS):
            tables = nearest_tables(least_squares.build(least_squares.solve(tables)))
    return tables


def nearest_tables(tables: Sequence[Table], total: float = 1.0) -> list[Table]:
    """For each table the one nearest to it, in the sum of squares, with entries >= 0 that add up to the total."""
    from ..kernels.fits import project_tables

    starts = np.cumsum([0, *(table.size for table in tables)])
    flat = np.concatenate([np.asarray(table, np.float64).reshape(-1) for table in tables])
    at_a_time = max(1, CHUNK * len(tables) // max(1, flat.size))
    run_chunks(lambda i, j: project_tables(flat, starts[i : j + 1], total), len(tables), at_a_time)
    return [_part(flat, starts, k, table.shape) for k, table in enumerate(tables)]


def _part(flat: NDArray[np.float64], starts: NDArray[np.int64], k: int, shape: tuple[int, ...]) -> Table:
    return flat[starts[k] : starts[k + 1]].reshape(shape)
