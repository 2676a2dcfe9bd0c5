"""Cases of the answering room: evaluate a query on weights over all cells, update them by it, and what is made of that.

An element is a table, a query or a record where the row says so, else a cell. numpy sums each table and each slice by
itself, and is given fewer of them. Masks are laid out beforehand; a conjunction is bound, and its walk planned, in
every call. Updates go up and down in turn, so that the weights stay where they are.
"""

from ..registry import Case
from . import continual, mwem, online, planned, ranges, synthetic, tables, trees, weights

CASES: tuple[Case, ...] = (
    *weights.CASES,
    *tables.CASES,
    *planned.CASES,
    *online.CASES,
    *continual.CASES,
    *ranges.CASES,
    *mwem.CASES,
    *synthetic.CASES,
    *trees.CASES,
)
