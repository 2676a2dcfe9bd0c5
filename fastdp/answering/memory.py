"""What arrays over cells take, and whether there is room for them: checked before anything is charged.

Sizes are integers throughout, since a domain may have more cells than a float can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..records.domain import Domain, display_count, listed
from ..support.machine import display_bytes, usable_memory
from .dense_weights import Precision

__all__ = ["DENSE_CELLS", "check_cells_fit", "check_memory", "check_room", "display_bytes", "usable_memory"]

DENSE_CELLS = 1 << 24  # cells up to which weights are held one by one, where the caller does not decide


def check_memory(domain: Domain, positions: Sequence[int], precision: Precision, doing: str, copies: int = 1) -> None:
    """ValueError if so many dense arrays over the cells of these attributes, and as many again, would not fit."""
    names = listed([domain.names[p] for p in positions])
    check_cells_fit(
        prod(domain.sizes[p] for p in positions), precision, f"{doing} {len(positions)} attributes ({names})", copies
    )


def check_cells_fit(
    cells: int, precision: Precision, doing: str, copies: int = 1, *, in_logs: bool = False, beside: int = 0
) -> None:
    """The same for so many cells, beside other weights.

    It is twice, and three times for float32, since weights whose logarithms are kept later take 8 bytes a cell more.

    in_logs    whether they are kept from the start
    """
    needed = copies * cells * ((8 if precision == "float64" else 4) + 8 * in_logs)
    times, word = (3, "three times") if precision == "float32" and not in_logs else (2, "twice")
    if times * needed + beside > usable_memory():
        more = f", and the {display_bytes(beside)} of other weights," if beside else ""
        raise ValueError(
            f"domain: {doing} into {display_count(cells)} cells, which take {display_bytes(needed)}: {word} "
            f"that{more} must fit into {display_bytes(usable_memory())}, half of the memory"
        )


def check_room(weights: int, copies: int, records: int) -> None:
    """ValueError if weights of so many bytes, copies of them that evaluating makes, and the records do not fit."""
    if weights + copies + records > usable_memory():
        raise ValueError(
            f"domain: weights take {display_bytes(weights)}, evaluating them {display_bytes(copies)} and the records "
            f"{display_bytes(records)}: together at most {display_bytes(usable_memory())}, half of the memory"
        )
