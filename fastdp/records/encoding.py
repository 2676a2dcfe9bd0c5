"""Records encoded in a domain: one array of codes for each attribute, or one count for each cell.

Columns with names are found by the names of the attributes, and others are ignored; columns without names are as many
as the attributes, in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import parameters
from ..support.parameters import Outside
from ..support.threads import run_chunks
from .domain import MOST_CELLS, Codes, Domain, code_type, display_count, encode_entries
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
    if domain.size > MOST_CELLS:
        raise ValueError(
            f"domain: {display_count(domain.size)} cells: must be at most 2^31 to count the records in each"
        )
    rows = of_domain(data, domain, outside)
    if len(domain) == 1 and (bins := domain.bins[0]) is not None:
        counted = counter_of(bins, rows.dtypes()[0], domain.names[0], outside)
        if counted is not None:
            return rows.total(counted)
    sizes = np.array(domain.sizes, np.int64)
    dtype = np.result_type(*(code_type(size) for size in domain.sizes))

    def cells(block: Block) -> NDArray[np.uint32]:
        from ..kernels.histograms import number_cells_into

        codes = np.empty((len(domain), block.n), dtype)
        for j in range(len(domain)):
            codes[j] = codes_of(domain, j, block, outside)
        out = np.empty(block.n, np.uint32)
        number_cells_into(codes, sizes, out)
        return out

    return rows.count(cells, domain.size)


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
    return encode_entries(domain, position, lambda: block.entries(column), lambda: block.coded(column), outside)
