"""Records encoded in a domain: one array of codes for each attribute, or one count for each cell.

Columns with names are found by the names of the attributes, and others are ignored; columns without names are as many
as the attributes, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import parameters
from ..support.parameters import Outside
from ..support.threads import run_chunks
from .domain import MOST_CELLS, Codes, Domain, code_type, display_count, encode_entries, holds_numbers
from .even_bins import counter_of
from .rows import Block, Rows
from .sources import rows_of


def encode(data: Any, domain: Domain, outside: Outside = "raise") -> list[Codes]:
    """The codes of every attribute for all records; views of columns that are small unsigned integers already.

    Raises    DomainError that names the column and the rule, for records outside the domain and missing entries
    """
    rows = of_domain(data, domain, outside)
    if block := rows.one_block():
        return run_chunks(lambda j, _: codes_of(domain, j, block, outside), len(domain), 1)

    def statistic(block: Block) -> list[list[Codes]]:
        return [[codes_of(domain, j, block, outside)] for j in range(len(domain))]

    def combine(before: list[list[Codes]], after: list[list[Codes]]) -> list[list[Codes]]:
        for parts, more in zip(before, after, strict=True):
            parts.extend(more)
        return before

    parts = rows.merge(statistic, combine)
    return [np.concatenate(parts.pop(0)) for _ in range(len(domain))]


def histogram(data: Any, domain: Domain, outside: Outside = "raise") -> NDArray[np.int64]:
    """How many records are in each cell, in C order; only the codes of a few blocks are ever in memory."""
    if len(domain) == 1 and (bins := domain.bins[0]) is not None:
        rows = of_domain(data, domain, outside)
        if (count := counter_of(bins, rows.dtypes()[0], domain.names[0], outside)) is not None:
            return rows.total(count)
    return histograms(data, domain, [range(len(domain))], outside)[0]


def histograms(
    data: Any, domain: Domain, groups: Sequence[Sequence[int]], outside: Outside = "raise"
) -> list[NDArray[np.int64]]:
    """The same for the tables of some groups of attributes, in one pass over the records; all attributes are read."""
    rows = of_domain(data, domain, outside)
    attributes = [np.array(group, np.int64) for group in groups]
    sizes = [np.array([domain.sizes[p] for p in group], np.int64) for group in groups]
    ends = list(accumulate((prod(domain.sizes[p] for p in group) for group in groups), initial=0))
    if ends[-1] > MOST_CELLS:
        raise ValueError(f"domain: {display_count(ends[-1])} cells: must be at most 2^31 to count the records in each")
    dtype = np.result_type(*(code_type(size) for size in domain.sizes))

    def cells(block: Block) -> NDArray[np.uint32]:
        from ..kernels.histograms import number_cells_into

        codes = np.empty((len(domain), block.n), dtype)
        for j in range(len(domain)):
            codes[j] = codes_of(domain, j, block, outside)
        out = np.empty((len(groups), block.n), np.uint32)
        for k, of_group in enumerate(out):
            number_cells_into(codes, attributes[k], sizes[k], of_group)
            of_group += np.uint32(ends[k])
        return out.reshape(-1)

    return np.split(rows.count(cells, ends[-1]), ends[1:-1])


def check_codes(rows: Rows, domain: Domain, outside: Outside = "raise") -> None:
    """DomainError if a record is not in the domain; `rows` have its attributes as columns."""

    def statistic(block: Block) -> list[int]:
        for j in range(len(domain)):
            codes_of(domain, j, block, outside)
        return [0]

    rows.total(statistic)


def of_domain(data: Any, domain: Domain, outside: Outside) -> Rows:
    """The records, with the attributes of the domain as columns."""
    parameters.outside(outside)
    rows = rows_of(data)
    if rows.names is not None:
        return rows.select(domain.names)
    if rows.width != len(domain):
        raise ValueError(f"data: {rows.width} columns without names: must be {len(domain)}, as the domain has")
    return rows


def codes_of(domain: Domain, position: int, block: Block, outside: Outside, column: int | None = None) -> Codes:
    """The codes of an attribute, from the column at its own position or at another one."""
    column = position if column is None else column
    read = block.numbers if holds_numbers(domain, position) else block.entries
    return encode_entries(domain, position, lambda: read(column), lambda: block.coded(column), outside)
