"""Counts and sums by labels that nobody listed: statistics.md, theorems 5 and 6."""

from __future__ import annotations

from functools import partial
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.noise import CalibratedNoise, laplace_noise
from ..privacy.budget import Budget
from ..privacy.guarantees import ApproxDP, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import LaplacePlan
from ..randomness.rehearsal import RECORDS
from ..records.column_names import called_column
from ..records.rows import Rows
from ..support import parameters
from ..support.boundary import boundary
from ..support.columns import Array
from ..support.parameters import Missing
from ..support.progress import Progress, one_pass
from ..support.shown import shown
from .clamped import ClampedColumn, Grid
from .label_results import LabelCounts, LabelSums
from .label_tallies import Tally, label_rows, tally_labels
from .noise import deviation_of
from .thresholds import group_threshold, label_threshold


@boundary
def count_by(
    data: Any,
    by: Any = None,
    *,
    epsilon: float,
    delta: float,
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LabelCounts:
    """Release how often labels occur that nobody listed: of each that occurs often enough.

    Parameters
    ----------
    data : array_like, Series, mapping, frame, Parquet file or Dask collection
        The labels; or records with the columns that `by` names. Labels are numbers, strings, bytes and dates. Records
        whose label is missing, or another object, are not counted.
    by : str, int or list of them, optional
        The column of labels, or several: labels are tuples then. None where `data` is one column.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in (0, 1)
        The delta of the release: the chance that a label of one record is released.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    LabelCounts
        Labels and noisy counts, the largest first; with `.to_frame()`, `.to_dict()`, `.threshold`.

    Raises
    ------
    ValueError
        For parameters and columns, before anything is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP
    Proof        statistics.md, theorem 5
    Accuracy     noise of scale 1 / epsilon in each count under add-remove, 2 / epsilon under replace-one; labels of
                 fewer records than the threshold, about 1 + ln(1 / (2 delta)) times that scale, are mostly left out.
                 Where labels are known, `histogram` and `bincount` have all of them, and no delta
    Cost         10 ns an entry for integers of a narrow range, 30 ns for others, 50 ns for strings; categories by codes
    Not covered  the time and the memory that a call takes, which depend on how many labels there are

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> words = np.array(["yes", "no", "no", "perhaps"]).repeat([500, 300, 300, 1])
    >>> released = statistics.count_by(words, epsilon=1.0, delta=1e-6)
    >>> released.labels
    ['no', 'yes']
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta(delta)
    noise = _noise(1, epsilon, neighbors)
    rows, columns = label_rows(data, by)
    least = label_threshold(_scale(noise), delta)
    guarantee = ApproxDP(epsilon, delta, neighbors=neighbors)
    with (
        ChargedKeys("count_by", guarantee, _row(noise, delta, least), budget, rng) as keys,
        one_pass(progress, "counting"),
    ):
        tally = tally_labels(keys.reads(rows, RECORDS), columns)
        noisy = tally.totals[0] + integer_noise(noise.plan, keys.take(), len(tally))
    kept = _largest_first(noisy, least)
    released = _columns_at(rows, tally, kept)
    return LabelCounts(released, noisy[kept], deviation_of(noise), least, keys.stating(guarantee))


@boundary
def sum_by(
    data: Any,
    column: str | int,
    by: Any,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float,
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LabelSums:
    """Release sums, means and counts of a column by labels that nobody listed: of each that occurs often enough.

    Parameters
    ----------
    data : mapping, frame, two-dimensional array, Parquet file or Dask collection
        The records.
    column : str or int
        The column of numbers.
    by : str, int or list of them
        The column of labels, or several: labels are tuples then. Labels are numbers, strings, bytes and dates. Records
        whose label is missing, or another object, are not counted.
    bounds : pair of numbers
        The lower and the upper bound; numbers beyond them count as them. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in (0, 1)
        The delta of the release: the chance that a label of one record is released.
    missing : {"raise", "skip"}
        What becomes of records whose number is missing, NaN, or an object that is none: a DomainError, or they are left
        out.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    LabelSums
        With `.sums`, `.means`, `.counts`, `.to_frame()`, the label with the most records first.

    Raises
    ------
    ValueError
        For parameters and columns, before anything is charged.
    DomainError
        On missing numbers, unless they are skipped; nothing is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP
    Proof        statistics.md, theorem 6
    Accuracy     noise of scale hypot(low, high) / epsilon in each sum under add-remove, twice that under replace-one:
                 of numbers from 0 the same as of a sum alone, and counts and means come with it
    Cost         some 100 ns a record
    Not covered  the time and the memory that a call takes, which depend on how many labels there are

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> sales = {"shop": np.arange(3).repeat(1000), "price": np.linspace(0, 10, 3000)}
    >>> released = statistics.sum_by(sales, "price", by="shop", bounds=(0, 10), epsilon=1.0, delta=1e-6)
    >>> sorted(released.labels), bool(abs(released.means - 5).max() < 4)
    ([0, 1, 2], True)
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta(delta)
    if by is None:
        raise ValueError("by=None: must be the name of a column, or a list of different ones")
    rows, columns = label_rows(data, by, column)
    with called_column(column):
        label = f"column {shown(column)}"
        numbers = ClampedColumn(rows, missing, "add-remove", columns, label)  # of a label's records none is public
    grid = Grid.of(bounds, numbers.kind, numbers.bits(epsilon))
    noise = _noise(grid.last, epsilon, neighbors)
    least = group_threshold(_scale(noise), delta, grid.last)
    guarantee = ApproxDP(epsilon, delta, neighbors=neighbors)
    row = _row(noise, delta, least / grid.last)
    with (
        called_column(column),
        ChargedKeys("sum_by", guarantee, row, budget, rng) as keys,
        one_pass(progress, "adding"),
    ):
        tally = tally_labels(keys.reads(rows, RECORDS), columns, partial(numbers.integers, grid=grid))
        above = tally.totals[1]
        below = tally.totals[0] * grid.last - above
        draws = integer_noise(noise.plan, keys.take(), 2 * len(tally)).reshape(2, -1)
        above, below = above + draws[0], below + draws[1]
    kept = _largest_first(above + below, least)
    above, everything = above[kept].astype(np.float64), (above + below)[kept].astype(np.float64)
    shares, counts = (above / everything).clip(0, 1), everything / grid.last
    low, wide = float(grid.value(0)), grid.last * grid.unit
    sums, means = low * counts + above * grid.unit, low + wide * shares
    deviation = deviation_of(noise) * grid.unit * hypot(grid.first, grid.first + grid.last) / grid.last
    return LabelSums(
        _columns_at(rows, tally, kept), counts, deviation, least / grid.last, keys.stating(guarantee), sums, means
    )  # fmt: skip


def _noise(most: int, epsilon: float, neighbors: Neighbors) -> CalibratedNoise:
    """Laplace noise for entries of which a record that comes or goes moves those of one label, by `most` together."""
    moved = most if parameters.neighbors(neighbors) == "add-remove" else 2 * most
    return laplace_noise(True, 1, float(moved), epsilon, None, neighbors)


def _scale(noise: CalibratedNoise) -> float:
    assert isinstance(noise.plan, LaplacePlan)
    return noise.plan.scale


def _row(noise: CalibratedNoise, delta: float, least: float) -> dict[str, Any]:
    return {**noise.parameters, "delta": delta, "threshold": least}


def _largest_first(noisy: NDArray[np.int64], least: int) -> NDArray[np.intp]:
    """The places of what reaches the threshold, the largest first; among equals in the order of the labels."""
    kept = np.flatnonzero(noisy >= least)
    return kept[np.argsort(-noisy[kept], kind="stable")]


def _columns_at(rows: Rows, tally: Tally, kept: NDArray[np.intp]) -> dict[str, Array]:
    single = len(tally.labels) == 1
    names = rows.names or (["label"] if single else [f"label {j}" for j in range(len(tally.labels))])
    return {name: labels[kept] for name, labels in zip(names, tally.labels, strict=False)}
