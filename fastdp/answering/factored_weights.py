"""Weights over domains of any size, as a product of dense blocks of attributes.

A product query factorises over blocks, and an update only ties together the attributes that it restricts. So the
distribution is exactly a product of dense blocks, at first one for each attribute; an update merges the blocks that it
touches. 2^100 cells are no trouble as long as no block outgrows the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain, listed
from .dense_weights import LARGEST, DenseWeights, Precision, weights_of
from .memory import check_cells_fit
from .queries.bound_query import BoundProduct, BoundQuery

Block = tuple[int, ...]  # positions of attributes, in the order of the domain


class FactoredWeights:
    """Weights of all cells of a domain, as a product of blocks: at first uniform, or with these shares of their cells.

    measures_span    as of DenseWeights
    """

    def __init__(
        self, domain: Domain, precision: Precision = "float64", *,
        blocks: Mapping[Block, NDArray[np.float64]] | None = None, measures_span: bool = False,
    ) -> None:  # fmt: skip
        self.domain, self.precision, self._measures_span = domain, precision, measures_span
        if blocks is None:
            self._blocks: dict[Block, DenseWeights] = {(p,): self._block((p,)) for p in range(len(domain))}
        else:
            self._blocks = {
                block: self._block(block, **weights_of(shares, precision)) for block, shares in blocks.items()
            }
        self._of: dict[int, Block] = {p: block for block in self._blocks for p in block}
        self._shared: set[Block] = set()  # blocks whose weights a copy has, too: copied before they change

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each block."""
        return tuple(tuple(self.domain.names[p] for p in block) for block in sorted(self._blocks))

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return sum(weights.bytes for weights in self._blocks.values())

    def copy(self) -> FactoredWeights:
        """The same weights, which later updates do not change: in the same memory until then."""
        twin = copy(self)
        twin._blocks, twin._of = {block: weights.view() for block, weights in self._blocks.items()}, dict(self._of)
        twin._shared, self._shared = set(self._blocks), set(self._blocks)
        return twin

    def evaluate(self, bound: BoundQuery) -> float:
        """The query's value on the distribution."""
        if isinstance(bound, BoundProduct):
            touched = sorted({self._of[p] for p in bound.attributes})
            return prod(self._blocks[block].evaluate(self._within(bound, block)) for block in touched)
        block = self._merged(bound.attributes)
        return self._blocks[block].evaluate(bound)

    def scale(self, bound: BoundQuery, rate: float) -> None:
        """Multiply every weight by e^(rate f), f the query's value in its cell."""
        if bound.attributes:
            block = self._merged(bound.attributes)
            part = self._within(bound, block) if isinstance(bound, BoundProduct) else bound
            self._own(block).scale(part, rate)

    def check(self, bound: BoundQuery) -> None:
        """ValueError if an update by this query would need more memory than there is."""
        self._check_merge(bound.attributes)

    def cells_of(self, bound: BoundQuery | None) -> int:
        """How many cells the block has that an update by this query would touch; None: by one of all attributes."""
        positions = range(len(self.domain)) if bound is None else bound.attributes
        return prod(self.domain.sizes[p] for block in {self._of[p] for p in positions} for p in block)

    def block_of(self, bound: BoundQuery) -> list[int]:
        """The positions of all attributes whose blocks the query reads."""
        return sorted({p for q in bound.attributes for p in self._of[q]})

    def parts(self) -> dict[Block, DenseWeights]:
        """The blocks, to be read only: positions of attributes, and the weights of their cells."""
        return dict(sorted(self._blocks.items()))

    def factors(self) -> list[tuple[Block, NDArray[np.float64]]]:
        """The blocks: positions of attributes, and the distribution over their cells."""
        return [(block, weights.probabilities()) for block, weights in sorted(self._blocks.items())]

    # --- blocks

    def _own(self, block: Block) -> DenseWeights:
        """The weights of a block, to be changed."""
        if block in self._shared:
            self._shared = self._shared - {block}
            self._blocks[block] = self._blocks[block].own()
        return self._blocks[block]

    def _block(self, positions: Block, **weights: Any) -> DenseWeights:
        names = [self.domain.names[p] for p in positions]
        part = self.domain.project(names)
        return DenseWeights(part, self.precision, measures_span=self._measures_span, **weights)

    def _within(self, bound: BoundProduct, block: Block) -> BoundProduct:
        """The query as it is on one block."""
        return bound.within(block, self._blocks[block].domain)

    def _merged(self, positions: Sequence[int]) -> Block:
        """The block of these attributes; the blocks that they lie in become one."""
        old = sorted({self._of[p] for p in positions})
        if len(old) == 1:
            return old[0]
        self._check_merge(positions)
        new = tuple(sorted(p for block in old for p in block))
        # the largest goes right into the result; what is copied are the others, which have far fewer cells
        old.sort(key=lambda block: (-self._blocks[block].domain.size, block))
        parts = [(self._blocks[b], [self.domain.sizes[p] if p in b else 1 for p in new]) for b in old]
        span, sizes = sum(part.span for part, _ in parts), [self.domain.sizes[p] for p in new]
        if span > LARGEST[self.precision]:  # the product of the weights could underflow
            logs = np.zeros(sizes)
            for part, shape in parts:
                logs += part.logarithms().reshape(shape)
            merged = self._block(new, logs=logs.reshape(-1))
        else:
            joint = np.empty(sizes, self.precision)
            for i, (part, shape) in enumerate(parts):
                mean = part.total / part.domain.size
                if i == 0:
                    np.divide(part.x.reshape(shape), mean, out=joint)
                else:
                    joint *= (part.x / mean).reshape(shape)
            merged = self._block(new, x=joint.reshape(-1), span=span)
        # in one step, since another thread may be reading: the distribution is the same before and after
        self._blocks = {block: part for block, part in self._blocks.items() if block not in old} | {new: merged}
        self._of.update(dict.fromkeys(new, new))
        return new

    def _check_merge(self, positions: Sequence[int]) -> None:
        """ValueError if the blocks of these attributes, as one, would not fit; it names those that come along."""
        blocks: dict[Block, list[str]] = {}
        for p in positions:
            blocks.setdefault(self._of[p], []).append(self.domain.names[p])
        if len(blocks) < 2:
            return
        parts = []
        for block, asked in blocks.items():
            others = [self.domain.names[p] for p in block if self.domain.names[p] not in asked]
            dragged = f" with {len(others)} more ({listed(others, 3)})" if others else ""
            parts.append(listed(asked) + dragged)
        listing = "; ".join(parts[:12]) + ("; ..." if len(parts) > 12 else "")
        cells = prod(self.domain.sizes[p] for block in blocks for p in block)
        beside = sum(weights.bytes for block, weights in self._blocks.items() if block not in blocks)
        check_cells_fit(
            cells, self.precision, f"an update by this query would merge the blocks of {listing}",
            in_logs=sum(self._blocks[block].span for block in blocks) > LARGEST[self.precision], beside=beside,
        )  # fmt: skip
