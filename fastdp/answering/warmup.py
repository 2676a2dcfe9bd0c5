"""What `fastdp.warmup` calls of this room: weights, counting, tables, fits and samples."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..kernels import fits
from ..records.domain import Domain
from ..records.encoding import histogram
from ..support.warmup import Steps
from .continual_counter import plan_of, values_of
from .dense_weights import PRECISIONS, DenseWeights, Precision
from .entropic_fit import fit_entropic
from .factored_weights import FactoredWeights
from .least_squares_fit import LeastSquares
from .marginal_transform import marginal_tables, spread_tables
from .nearest_tables import nearest_tables
from .queries import Conjunction, Linear, Mask, marginals
from .range_noise import SquareRoot
from .running_sums import CorrelatedNoise
from .synthesis.junction_tree import JunctionTree
from .synthesis.measured import Measured
from .synthesis.tree_fit import fit_tree
from .synthetic_distribution import SyntheticDistribution


def steps() -> Steps:
    """One step for each precision of the weights, one for tables, one for fits."""
    made: Steps = []
    for precision in PRECISIONS:
        made.append((f"weights, {precision}", partial(_weight, precision)))
    made += [("marginal tables", _tabulate), ("fits and samples", _fit)]
    made.append(("junction trees", _fit_on_tree))
    return [*made, ("running sums", _count), ("increasing sums", _increase)]


def _weight(precision: Precision) -> None:
    domain, counts = Domain.binary(12), np.zeros(2**12, np.int64)
    last = [f"v{i}" for i in range(7, 13)]  # six of the last attributes: cells that are taken one by one
    for names in (["v1"], ["v12"], last):  # long runs, a pattern
        product = Conjunction(dict.fromkeys(names, 1)).bind(domain)
        weights = DenseWeights(domain, precision)
        weights.evaluate(product)
        weights.scale(product, 0.1)
        product.count(counts)
    for query in (Mask(counts), Linear(counts)):
        bound = query.bind(domain)
        weights.evaluate(bound)
        weights.scale(bound, 0.1)
        bound.count(counts)
    weights.total = 1e99
    weights.scale(product, 0.1)
    weights.add_into(np.zeros(2**12), 1.0)


def _tabulate() -> None:
    for domain, k in ((Domain.binary(12), 3), (Domain(a=3, b=2, c=4), 2)):
        workload = marginals(domain, k)
        for dtype in (np.int64, np.float64):
            tables = marginal_tables(np.ones(domain.size, dtype), domain, workload)
        spread_tables(tables, domain, workload)
        nearest_tables(tables)


def _fit() -> None:
    domain = Domain(a=3, b=2, c=4)
    people = np.zeros((100, 3), np.uint8)
    # the constructor and the fit charge nobody here: a block of a budget may be open around this
    least_squares = LeastSquares(marginals(domain, 2))
    target = [table / 100.0 for table in marginal_tables(histogram(people, domain), domain, least_squares.workload)]
    fitted = fit_entropic(target, least_squares, 1e-3)
    logs, cells = np.zeros(1), np.zeros(1)  # of steps that a fit may do without
    fits.exponentiate_into(logs, fits.shift_logs(logs, cells, 0.0), cells)
    fits.mix(logs, cells, 0.5, 0.5)
    for weights in (DenseWeights(domain), FactoredWeights(domain), fitted.probabilities):
        SyntheticDistribution(weights, domain).sample(3)


def _fit_on_tree() -> None:
    tree = JunctionTree([2, 3, 2], [(0, 1), (1, 2)])
    measured = [Measured((0, 1), np.ones((2, 3)), 1.0), Measured((2,), np.ones(2), 1.0)]
    fitted = fit_tree(tree, measured, 6.0, steps=2).distribution
    for kind in (np.uint8, np.uint16):
        fitted.sample_into(np.zeros(8, np.uint32), np.empty((3, 4), kind))


def _count() -> None:
    plan = plan_of(100, (0.5, None), values_of(None, None, None, "replace-one"))
    CorrelatedNoise(plan, np.zeros(8, np.uint32)).block(3)


def _increase() -> None:
    SquareRoot.of(3, 1.0, 1e-6, "add-remove").fit(np.zeros(3), None)  # which charges nobody
