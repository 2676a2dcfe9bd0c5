"""How far fits are off, measured in public: the released distribution takes the records' place, and is fitted again.

Post-processing: what is released, public numbers and fixed seeds. release_marginals.md, "Deviations".
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from ..records.domain import display_count
from .entropic_fit import fit_entropic
from .least_squares_fit import Axes, LeastSquares, Table
from .memory import display_bytes, usable_memory
from .synthesis.measured import Residuals
from .synthesis.tree_fit import fit_residuals
from .synthetic_distribution import SyntheticDistribution

SIMULATIONS = 8  # a deviation measured by so many is right within a quarter of it


def simulate_fits(
    released: SyntheticDistribution, least_squares: LeastSquares, variances: Mapping[Axes, Table]
) -> list[SyntheticDistribution]:
    """What the entropic fit makes of tables of this distribution with noise of these variances, several times."""
    on_tree, domain = released.on_tree, released.domain
    check_simulation(released)
    exact = least_squares.solve(released.marginal_tables(least_squares.workload))
    found = []
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        noisy = {shape: component + _noise(rng, component, variances[shape]) for shape, component in exact.items()}
        noisy[()] = exact[()]
        made: Any
        if on_tree is None:
            target = least_squares.build(noisy)
            made = fit_entropic(target, least_squares, 0.0, variances=variances).probabilities
        else:
            residuals = Residuals(least_squares, noisy, dict(variances))
            made = fit_residuals(on_tree.tree, residuals, 1.0).distribution
        found.append(SyntheticDistribution(made, domain))
    return found


def _noise(rng: np.random.Generator, like: Table, variances: Table) -> Table:
    """Gaussian noise whose sums along every axis are 0."""
    noise = rng.normal(size=like.shape)
    for axis in range(1, like.ndim):
        noise -= noise.mean(axis=axis, keepdims=True)
    return noise * np.sqrt(variances).reshape(-1, *[1] * (like.ndim - 1))


def root_mean_square(differences: list[Table]) -> Table:
    """Entry by entry."""
    made: Table = np.sqrt(np.mean(np.square(differences), axis=0))
    return made


def deviation_of_values(values: list[float], right: float) -> float:
    """The root of their mean squared difference from what is right."""
    return sqrt(sum((value - right) ** 2 for value in values) / len(values))


def check_simulation(released: SyntheticDistribution) -> None:
    """ValueError if so many distributions would not fit into memory."""
    cells = released.domain.size if released.on_tree is None else released.on_tree.tree.cells
    needed = 8 * cells * SIMULATIONS
    if needed > usable_memory():
        raise ValueError(
            f"deviation: {SIMULATIONS} fits of {display_count(cells)} cells need {display_bytes(needed)}: must "
            f"be at most {display_bytes(usable_memory())}, half of the memory; fit='least-squares' has it exactly"
        )
