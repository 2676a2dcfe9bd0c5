"""Counts of entries and histograms: statistics.md, theorem 1."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.noise_draws import add_noise, integer_noise
from ..randomness.rehearsal import GIVEN
from ..records.bins import Bins
from ..records.domain import Domain
from ..records.encoding import histogram as count_cells
from ..records.number_column import one_column
from ..records.outside_domain import is_missing
from ..records.rows import Block, Rows
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer
from ..support.columns import objects
from ..support.parameters import MOST_BINS, Outside
from ..support.progress import Progress, one_pass
from .noise import deviation_of, integer_noise_for
from .results import Counts, Number


@boundary
def count(
    values: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Number:
    """Release how many entries of a column are not missing.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The column. None, NaN and what its library calls missing are not counted.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (where epsilon is large), or
        where the budget adds up rhos.
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
    Number
        The count, an int; noise is not cut off, so it may be below 0.

    Raises
    ------
    ValueError
        For parameters and types, before anything is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 1
    Accuracy     noise of scale 1 / epsilon under both relations
    Cost         one pass over the entries

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> answered = np.where(np.arange(1000) % 4, 1.0, np.nan)
    >>> abs(int(statistics.count(answered, epsilon=1.0)) - 750) < 30
    True
    """
    rows = one_column(objects(values) if isinstance(values, list | tuple) else values)
    payers = charged_here(budget)
    noise = integer_noise_for(1, 1, 1, epsilon, delta, neighbors, payers)
    with ChargedKeys("count", noise.guarantee, noise.parameters, payers, rng) as keys, one_pass(progress, "counting"):
        present = keys.reads(_present(keys.reads(rows, GIVEN)), noise.plan)
        noisy = present + int(integer_noise(noise.plan, keys.take(), 1)[0])
    return Number(noisy, deviation_of(noise), keys.stating(noise.guarantee), "count")


@boundary
def histogram(
    values: Any,
    bins: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Counts:
    """Release how many entries of a column lie in each bin, or records in each cell of two columns' bins.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The numbers of one column; or records with the columns that `bins` names.
    bins : array_like, Bins or mapping from str
        The edges of the bins, in increasing order: a bin has its lower edge and not its upper one, but for the last.
        `Bins(edges, missing=True)` counts missing entries, too. For one or two columns of records, a mapping from their
        names to edges. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (where epsilon is large), or
        where the budget adds up rhos.
    outside : {"raise", "clip"}
        Values beyond the edges: a DomainError, or the first or the last bin; NaN and missing entries the first, unless
        they have a bin of their own.
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
    Counts
        With `.counts`, `.edges`, `.deviation`, `.to_frame()`.

    Raises
    ------
    ValueError
        For parameters and edges, before anything is charged.
    DomainError
        For values beyond the edges and missing ones, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 1
    Accuracy     noise of scale 1 / epsilon in each count under add-remove, 2 / epsilon under replace-one. For sums over
                 many bins `fastdp.release_ranges` has far less.
    Cost         one pass over the entries, 3 ns each, and 2 ns a bin

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> ages = np.random.default_rng(0).integers(0, 100, size=10_000)
    >>> released = statistics.histogram(ages, bins=[0, 18, 65, 100], epsilon=1.0)
    >>> released.counts.shape, bool(abs(released.counts - [1800, 4700, 3500]).max() < 200)
    ((3,), True)
    """
    domain, rows = _binned(values, bins)
    return _release("histogram", rows, domain, epsilon, delta, outside, progress, rng, budget, neighbors)


@boundary
def bincount(
    values: Any,
    size: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Counts:
    """Release how often each of the integers 0 .. size - 1 occurs in a column.

    Parameters
    ----------
    values : array_like, Series, one-column frame, Parquet file or Dask collection
        The integers.
    size : int
        How many integers there are. Public: must not be read off the values.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less (where epsilon is large), or
        where the budget adds up rhos.
    outside : {"raise", "clip"}
        Other values: a DomainError, or the nearest integer; missing entries 0.
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
    Counts
        With `.counts`, `.deviation`, `.to_frame()`.

    Raises
    ------
    ValueError
        For parameters, before anything is charged.
    DomainError
        For other values and missing ones, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP where noise is Gaussian
    Proof        statistics.md, theorem 1
    Accuracy     as `histogram`
    Cost         one pass over the entries, and 2 ns for each integer

    Examples
    --------
    >>> from fastdp import statistics
    >>> released = statistics.bincount([0, 2, 2, 1] * 1000, 3, epsilon=1.0)
    >>> bool(abs(released.counts - [1000, 1000, 2000]).max() < 40)
    True
    """
    rows = one_column(values)
    domain = Domain({_name(rows): integer("size", size, least=1, most=MOST_BINS)})
    return _release("bincount", rows, domain, epsilon, delta, outside, progress, rng, budget, neighbors)


def _present(rows: Rows) -> int:
    """How many entries of the first column are not missing."""

    def statistic(block: Block) -> int:
        values, missing, _ = block.entries(0)
        there = np.ones(block.n, np.bool_) if missing is None else ~missing
        if values.dtype.kind == "f":
            there &= ~np.isnan(values)
        elif values.dtype.kind == "O":
            there &= np.fromiter((not is_missing(value) for value in values.tolist()), np.bool_, block.n)
        return int(there.sum())

    present: int = rows.merge(statistic, operator.add)
    return present


def _name(rows: Rows) -> str:
    return "values" if rows.names is None else rows.names[0]


def _binned(values: Any, bins: Any) -> tuple[Domain, Rows]:
    if not isinstance(bins, Mapping):
        rows = one_column(values)
        return Domain({_name(rows): _bins_of(bins)}), rows
    if not 1 <= len(bins) <= 2:
        raise ValueError(f"bins: {len(bins)} columns: must be one or two")
    domain = Domain({name: _bins_of(edges) for name, edges in bins.items()})
    if domain.size > MOST_BINS:
        raise ValueError(f"bins: {domain.size:,} cells: must be at most {MOST_BINS:,}, one column times the other")
    return domain, rows_of(values)


def _bins_of(edges: Any) -> Bins:
    return edges if isinstance(edges, Bins) else Bins(edges)


def _release(
    name: str, rows: Rows, domain: Domain, epsilon: Any, delta: Any, outside: Any, progress: Any, rng: Any, budget: Any,
    neighbors: Any,
) -> Counts:  # fmt: skip
    parameters.outside(outside)
    moved = 1 if parameters.neighbors(neighbors) == "add-remove" else 2  # one record leaves a cell, one comes
    if not rows.n and neighbors == "replace-one":
        raise ValueError("values: must hold at least one")
    payers = charged_here(budget)
    noise = integer_noise_for(domain.size, moved, moved, epsilon, delta, neighbors, payers)
    row = {**noise.parameters, "cells": domain.size}
    with ChargedKeys(name, noise.guarantee, row, payers, rng) as keys, one_pass(progress, "counting"):
        counts = keys.reads(count_cells(keys.reads(rows, GIVEN), domain, outside), noise.plan)
        add_noise(noise.plan, None, keys.take(), counts, counts)
    return Counts(counts.reshape(domain.sizes), domain, deviation_of(noise), keys.stating(noise.guarantee))
