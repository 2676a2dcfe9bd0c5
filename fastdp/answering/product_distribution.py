"""A distribution over a domain as a product of dense blocks of attributes: what a synthetic distribution mixes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain, check_domain
from ..support.checks import plain_array
from ..support.columns import has
from .dense_weights import DenseWeights
from .factored_weights import FactoredWeights
from .marginal_transform import marginal_tables
from .memory import check_memory
from .queries.bound_query import BoundCells, BoundProduct, BoundQuery, as_row
from .queries.marginals import Marginals

Factor = tuple[tuple[int, ...], NDArray[np.float64]]  # positions of attributes, and the distribution over their cells


class HasProbabilities(Protocol):
    """Weights over all cells, such as DenseWeights."""

    @property
    def domain(self) -> Domain: ...
    def probabilities(self) -> NDArray[np.float64]: ...


class HasFactors(Protocol):
    """Weights as a product of blocks, such as FactoredWeights."""

    @property
    def domain(self) -> Domain: ...
    def factors(self) -> Sequence[Factor]: ...


Weights = HasProbabilities | HasFactors


class ProductDistribution:
    """A product of independent blocks; a dense distribution has one. Never updated."""

    def __init__(self, weights: Any, domain: Domain | None) -> None:
        made: dict[tuple[int, ...], DenseWeights]
        if isinstance(weights, FactoredWeights):
            self.domain, made = weights.domain, weights.copy().parts()  # in the same memory, until they change
        elif offers_factors(weights):
            self.domain, made = weights.domain, _blocks_of(weights)
        else:
            if isinstance(weights, DenseWeights):
                block = weights.own().view()
            elif offers_probabilities(weights):
                check_domain(weights.domain)
                block = DenseWeights(weights.domain, x=_checked(weights.probabilities(), weights.domain))
            elif domain is None:
                raise ValueError("domain: must be given with an array of weights")
            else:
                block = DenseWeights(domain, x=_shares_of(weights, domain))
            self.domain, made = block.domain, {tuple(range(len(block.domain))): block}
        if domain is not None and domain != self.domain:
            raise ValueError("domain: must be that of the weights")
        self.blocks = made  # never updated
        self.of = {p: positions for positions in made for p in positions}

    @property
    def independent(self) -> tuple[tuple[int, ...], ...]:
        """Sets of attributes that are independent of all others: the blocks."""
        return tuple(self.blocks)

    @property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The attributes whose joint distribution is held: the blocks."""
        return tuple(self.blocks)

    def factors(self) -> list[Factor]:
        """The blocks, and shares of their cells."""
        return [(positions, block.probabilities()) for positions, block in self.blocks.items()]

    @property
    def is_dense(self) -> bool:
        """Whether there is one block alone."""
        return len(self.blocks) == 1

    def evaluate(self, bound: BoundQuery) -> float:
        """The query's value, up to rounding errors in [0, 1]."""
        if self.is_dense:
            (block,) = self.blocks.values()
            return block.evaluate(bound)  # the plan of the query is kept with it
        if isinstance(bound, BoundCells):
            return float(self.joint() @ bound.values)
        assert isinstance(bound, BoundProduct)
        value = 1.0
        for positions in dict.fromkeys(self.of[p] for p in bound.attributes):
            block = self.blocks[positions]
            value *= block.evaluate(bound.within(positions, block.domain))
        return value

    def tables(self, workload: Marginals) -> list[NDArray[np.float64]]:
        """The tables of a workload: of one block at once, of several as products."""
        if self.is_dense:
            (block,) = self.blocks.values()
            # sums of floats through parities may end just below 0
            tables = marginal_tables(block.weights, self.domain, workload)
            return [np.maximum(table, 0.0) / block.total for table in tables]
        made: dict[tuple[int, ...], NDArray[np.float64]] = {}
        return [self._table(positions, made) for positions in workload.positions]

    def _table(self, positions: tuple[int, ...], made: dict[Any, Any]) -> NDArray[np.float64]:
        table = np.ones((1,) * len(positions))
        for at in dict.fromkeys(self.of[p] for p in positions):
            wanted = tuple(p for p in at if p in positions)
            if wanted not in made:
                block = self.blocks[at]
                outside = tuple(i for i, p in enumerate(at) if p not in positions)
                made[wanted] = block.weights.reshape(block.domain.sizes).sum(axis=outside) / block.total
            table = table * made[wanted].reshape([self.domain.sizes[p] if p in wanted else 1 for p in positions])
        return table

    def joint(self) -> NDArray[np.float64]:
        """The probability of every cell."""
        if not self.is_dense:
            check_memory(self.domain, range(len(self.domain)), "float64", "listing all cells would merge")
        everything = tuple(range(len(self.domain)))
        if self.is_dense:
            return self.blocks[everything].probabilities()
        joint: NDArray[np.float64] = self._table(everything, {}).reshape(-1)
        return joint


def are_weights(values: Sequence[Any]) -> bool:
    return bool(values) and all(offers_factors(value) or offers_probabilities(value) for value in values)


def offers_factors(weights: Any) -> bool:
    return has(weights, "domain") and has(weights, "factors")


def offers_probabilities(weights: Any) -> bool:
    return has(weights, "domain") and has(weights, "probabilities")


def average_of(parts: Sequence[ProductDistribution]) -> ProductDistribution:
    total = np.zeros(parts[0].domain.size)
    for part in parts:
        (block,) = part.blocks.values()
        block.add_into(total, 1.0)
    return ProductDistribution(total, parts[0].domain)


def _blocks_of(weights: HasFactors) -> dict[tuple[int, ...], DenseWeights]:
    """The blocks of an object of anybody's: of all attributes, each once, as kernels and products read them."""
    on, made = weights.domain, {}
    check_domain(on)
    for given, shares in weights.factors():
        positions = tuple(map(operator.index, given))
        block = on.project([on.names[p] for p in positions])
        made[positions] = DenseWeights(block, x=_checked(shares, block))
    of = [p for positions in made for p in positions]
    if sorted(of) != list(range(len(on))) or any(list(positions) != sorted(positions) for positions in made):
        raise ValueError("weights: factors() must have each attribute in one block, in the order of the domain")
    return made


def _checked(shares: Any, domain: Domain) -> NDArray[np.float64]:
    """Weights of cells, in a copy; ValueError unless there is one for each, >= 0 and finite, not all 0."""
    own = as_row("weights", np.array(shares, np.float64, order="C"), domain)
    if not (own >= 0).all() or not 0 < own.sum() < np.inf:
        raise ValueError("weights: must be >= 0 and finite, not all 0")
    return own


def _shares_of(weights: Any, domain: Domain) -> NDArray[np.float64]:
    rule = "numbers >= 0, one for each cell, not all 0"
    array = plain_array("weights", weights, rule)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"weights: dtype {array.dtype}: must be {rule}")
    with np.errstate(all="ignore"):  # of longer floats
        array = np.asarray(array, np.float64)
    flat = as_row("weights", array, domain)
    total = flat.sum()
    if not (flat >= 0).all() or not 0 < total < np.inf:
        raise ValueError("weights: must be >= 0 and finite, not all 0")
    return np.asarray(flat / float(total))
