"""Noisy tables of the same records that were released before: what a synthesis takes in without paying for it again.

Post-processing: it reads what has been released alone. synthesize.md, "What was released before".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from ...records.domain import Domain
from ...support.checks import items_of
from ...support.parameters import MOST_TABLES
from ..marginals_release import MarginalsRelease
from .measured import Measured
from .synthesis_report import MeasuredTable, SynthesisReport

_LEAST, _MOST = 2.0**-60, 2.0**60  # of sigmas, and of entries
_MOST_RECORDS = 2.0**45  # so that distances on a grid of 2^-16 fit into int64: synthesize.md, theorem 1
_RULE = "results of release_marginals or of synthesize, or measured tables of a report"


def released_tables(released: Any, domain: Domain) -> tuple[Measured, ...]:
    """The tables, in records; ValueError unless they are of this domain."""
    if released is None:
        return ()
    found = []
    for i, each in enumerate(items_of("released", released, _RULE, most=MOST_TABLES)):
        name = f"released[{i}]"
        for given in _tables_of(name, each, domain):
            table = _checked(name, given, domain)
            if table.sigma or table.values.size > 1:  # one cell that is known states a public number of records
                found.append(_in_range(name, table, domain))
    return tuple(found)


def _tables_of(name: str, given: Any, domain: Domain) -> Iterator[MeasuredTable | Measured]:
    if isinstance(given, MarginalsRelease):
        if given.domain != domain:
            raise ValueError(f"{name}: must be of `domain`")
        # of equal noise the least-squares tables say all that the noisy ones did, each cell with the noise's sigma
        for positions in given.workload.positions:
            table = given.table([domain.names[p] for p in positions], unbiased=True)
            yield Measured(positions, given.n * table, given.sigma)
        return
    report = getattr(given, "report", given)
    if isinstance(report, SynthesisReport):
        yield from filter(None, (_without(table, report.merged) for table in report.tables))
    elif isinstance(given, MeasuredTable):
        yield given
    else:
        raise ValueError(f"{name}: type {type(given).__name__}: must be {_RULE}")


def _without(table: MeasuredTable, merged: Mapping[str, Any]) -> MeasuredTable | None:
    """The sums of a table over attributes whose rare values are one in it; None if it has no others."""
    axes = tuple(axis for axis, name in enumerate(table.columns) if name in merged)
    if len(axes) == len(table.columns):
        return None
    summed = prod(table.noisy.shape[axis] for axis in axes)
    columns = tuple(name for name in table.columns if name not in merged)
    return MeasuredTable(columns, table.sigma * summed**0.5, table.noisy.sum(axes), table.fitted.sum(axes))


def _checked(name: str, table: MeasuredTable | Measured, domain: Domain) -> Measured:
    if isinstance(table, Measured):
        return table
    positions = domain.positions(table.columns)
    order = sorted(range(len(positions)), key=lambda axis: positions[axis])
    columns = tuple(positions[axis] for axis in order)
    shape = tuple(domain.sizes[p] for p in columns)
    values = np.transpose(table.noisy, order)
    if values.shape != shape:
        raise ValueError(f"{name}: a table of shape {table.noisy.shape}: must have the values of {table.columns}")
    return Measured(columns, values, table.sigma)


def _in_range(name: str, table: Measured, domain: Domain) -> Measured:
    """The same; ValueError for what no release has, before anything is spent."""
    if not _LEAST <= table.sigma <= _MOST:
        raise ValueError(f"{name}: sigma={table.sigma!r}: must be > 0 and finite, and near a number of records")
    with np.errstate(all="ignore"):
        if not ((np.abs(table.values) <= _MOST).all() and abs(float(table.values.sum())) <= _MOST_RECORDS):
            columns = tuple(domain.names[p] for p in table.columns)
            raise ValueError(f"{name}: the table of {columns}: must be finite, and of at most 2^45 records")
    return table
