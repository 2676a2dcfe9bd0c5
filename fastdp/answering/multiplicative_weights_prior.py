"""What measured answers start from: uniform weights, a distribution that is public or paid for, or marginal tables that
part of the total buys first. multiplicative_weights_measured.md, theorem 1 and "Priors".
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..randomness.noise_draws import add_noise
from ..records.domain import Domain
from ..records.rows import Rows
from ..support.parameters import Outside
from ..support.progress import Report
from ..support.rounding import root_up
from .dense_weights import DenseWeights, Precision, weights_of
from .entropic_fit import bytes_of_fit, fit_entropic
from .factored_weights import FactoredWeights
from .least_squares_fit import LeastSquares
from .marginal_counts import count_tables
from .marginal_transform import as_tables, flat_of, marginal_tables
from .measurements import Measurement
from .memory import usable_memory
from .multiplicative_weights_price import Share, Total
from .product_distribution import are_weights
from .queries.bound_query import GRID_BITS
from .queries.marginals import Marginals
from .queries.product import Product
from .synthesis.weighted_tree import WeightedTree
from .synthetic_distribution import SyntheticDistribution, factors_of
from .true_answers import TrueAnswers

Prior = SyntheticDistribution | Literal["marginals"] | None
Form = Literal["dense", "factored"]

_MIXED = 2.0**-10  # of the uniform distribution, so that no prior holds a thing for impossible
_FIT_CELLS = 1 << 22  # up to here two-way tables are fitted: a minute at most


def checked_prior(prior: Any, domain: Domain) -> Prior:
    """What the parameter `prior` states; ValueError unless it is on this domain."""
    if prior is None:
        return None
    if isinstance(prior, str):
        if prior == "marginals":
            return "marginals"
        raise ValueError(f"prior={prior!r}: must be 'marginals', a SyntheticDistribution or weights of all cells")
    try:
        stated = (
            prior
            if isinstance(prior, SyntheticDistribution)
            else SyntheticDistribution(prior, _domain_of(prior, domain))
        )
    except ValueError as error:
        raise ValueError(f"prior: {error}") from None
    if stated.domain != domain:
        raise ValueError("prior: must be on the domain of the records, with the same attributes, sizes and labels")
    return stated


def _domain_of(prior: Any, domain: Domain) -> Domain | None:
    """The domain that an array is on; weights have one."""
    return None if are_weights([prior]) else domain


def tables_of(domain: Domain, form: Form) -> Marginals:
    """All one- and two-way tables, where a distribution can be fitted to them; otherwise the one-way tables."""
    names = domain.names
    if form == "dense" and len(domain) > 1 and _has_fit(domain):
        return Marginals(domain, list(combinations(names, 2)))  # the one-way tables are sums of these
    return Marginals(domain, [[name] for name in names])


def _has_fit(domain: Domain) -> bool:
    return domain.size <= _FIT_CELLS and bytes_of_fit(domain) <= usable_memory()


def start_from(prior: SyntheticDistribution | None, domain: Domain, form: Form, precision: Precision) -> Any:
    """Weights of a distribution, mixed with the uniform one; of no prior uniform weights."""
    if form == "dense":
        if prior is None:
            return DenseWeights(domain, precision, measures_span=True)
        made = weights_of(_mixed(prior.probabilities()), precision)
        return DenseWeights(domain, precision, measures_span=True, **made)
    if prior is None:
        return FactoredWeights(domain, precision, measures_span=True)
    blocks = factors_of(prior)
    if blocks is None and (on_tree := prior.on_tree) is not None:
        return WeightedTree(domain, on_tree, _MIXED)
    if blocks is None:
        raise ValueError("prior: a mixture of products: must be one product of blocks for factored weights")
    mixed = {positions: _mixed(shares) for positions, shares in blocks}
    return FactoredWeights(domain, precision, blocks=mixed, measures_span=True)


def _mixed(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of cells with a little of the uniform distribution; of blocks one by one, as a mixture of products is no
    product."""
    mixed: NDArray[np.float64] = shares * ((1 - _MIXED) / shares.sum()) + _MIXED / shares.size
    return mixed


class Start(NamedTuple):
    """What a run starts from."""

    prior: SyntheticDistribution | None  # None for the uniform distribution
    known: list[list[Measurement]]  # of each attribute, where tables are one-way: what they say of its values


class TablesPrior:
    """Tables with noise, and the distribution that is fitted to them."""

    def __init__(self, domain: Domain, form: Form, total: Total, share: Share) -> None:
        self.workload = tables_of(domain, form)
        # cells that one record changes, each by one
        changed = self.workload.tables * (1 if total.neighbors == "add-remove" else 2)
        sensitivity = root_up(changed << 2 * GRID_BITS) if total.delta else changed << GRID_BITS
        self._scale = total.noise_scale(sensitivity, share)
        self._total = total
        self.deviation = total.deviation(self._scale) * 2.0**-GRID_BITS  # in records

    def count(self, rows: Rows, true_answers: TrueAnswers, outside: Outside) -> NDArray[np.int64]:
        """How many records are in each cell of the tables."""
        histogram = true_answers.histogram
        if histogram is None:
            return count_tables(rows, self.workload, outside)
        return flat_of(marginal_tables(histogram, self.workload.domain, self.workload))

    def draw(self, counts: NDArray[np.int64], n: int, key: NDArray[np.uint32], report: Report) -> Start:
        """The tables with their noise, and the distribution fitted to them."""
        noisy = counts << GRID_BITS
        add_noise(self._total.noise(self._scale), None, key, noisy, noisy)
        counted = noisy * 2.0**-GRID_BITS
        known: list[list[Measurement]] = []
        if self._one_way:
            domain, deviation = self.workload.domain, self.deviation / n
            for name, table in zip(domain.names, as_tables(counted, self.workload), strict=True):
                cells = enumerate((table / n).tolist())
                known.append([Measurement.of(Product({name: [v]}), share, deviation, domain) for v, share in cells])
        return Start(self._fitted(counted, n, report), known)

    @property
    def _one_way(self) -> bool:
        return all(len(shape) == 1 for shape in self.workload.shapes)

    def _fitted(self, noisy: NDArray[Any], n: int, report: Report) -> SyntheticDistribution:
        domain = self.workload.domain
        tables = as_tables(noisy, self.workload)
        if self._one_way:
            least = min(1.0, self.deviation)
            blocks = [np.maximum(table, least) for table in tables]
            return SyntheticDistribution(_Product(domain, [block / block.sum() for block in blocks]))
        least_squares = LeastSquares(self.workload)
        components = least_squares.solve(tables)
        components[()][0] = n
        target = [table / n for table in least_squares.build(components)]
        found = fit_entropic(target, least_squares, self.deviation / n, report)
        return SyntheticDistribution(found.probabilities, domain)


class _Product:
    """Independent attributes."""

    def __init__(self, domain: Domain, shares: list[NDArray[np.float64]]) -> None:
        self.domain, self._shares = domain, shares

    def factors(self) -> list[tuple[tuple[int, ...], NDArray[np.float64]]]:
        return [((p,), shares) for p, shares in enumerate(self._shares)]
