"""Distributions on junction trees: their fit to noisy tables, and records of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fastdp import Domain, SyntheticDistribution
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.measured import Measured
from fastdp.answering.synthesis.tree_fit import fit_tree

from ...peers.inputs import TREE_COLUMNS, tree_tables
from ..registry import Call, Side, beside, faster, make_case, within_seconds
from ..traffic import copied_once
from .inputs import SAMPLED

_case = partial(make_case, "answering")

CELLS = 10 * 24**3  # of ten cliques of three columns
WIDE = 10 * 64**3
STEPS = 200
RECORDS = 1e5


def _fit(n: int, steps: int = STEPS) -> Any:
    size, sigma, tables = tree_tables(n)
    tree = JunctionTree([size] * TREE_COLUMNS, [(j, j + 1, j + 2) for j in range(TREE_COLUMNS - 2)])
    measured = [Measured(columns, table, sigma) for columns, table in tables]
    return lambda: fit_tree(tree, measured, RECORDS, tolerance=0.0, steps=steps, converged=True)


def _fitted(n: int, steps: int = STEPS) -> Call:
    fit, pairs = _fit(n, steps), [columns for columns, _ in tree_tables(n)[2]]
    return lambda: [fit().distribution.marginal(pair) for pair in pairs[:1]]


def _synthetic(cells: int) -> SyntheticDistribution:
    made = _fit(cells, 10)().distribution
    return SyntheticDistribution(made, Domain(**{f"v{j}": size for j, size in enumerate(made.tree.sizes)}))


def _sample(n: int) -> Call:
    synthetic = _synthetic(CELLS)
    return lambda: synthetic.sample(n)


def _numpy_sample(n: int) -> Call:
    """Column by column: the first value at which a row of sums exceeds a uniform number."""
    synthetic, rng = _synthetic(CELLS), np.random.default_rng()
    names = synthetic.domain.names
    size = synthetic.domain.sizes[0]
    first = np.cumsum(synthetic.marginal(names[:2]).ravel())
    rows = []
    for j in range(2, TREE_COLUMNS):
        table = synthetic.marginal(names[j - 2 : j + 1]).reshape(size * size, size)
        shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
        rows.append((np.cumsum(shares, axis=1).clip(0, 1) + np.arange(size * size)[:, None]).ravel())

    def call() -> Any:
        out = np.empty((TREE_COLUMNS, n), np.uint8)
        cells = np.searchsorted(first, rng.random(n) * first[-1], side="right").clip(0, size * size - 1)
        out[0], out[1] = cells // size, cells % size
        for j, sums in enumerate(rows, 2):
            row = out[j - 2].astype(np.int64) * size + out[j - 1]
            found = np.searchsorted(sums, row + rng.random(n), side="right")
            out[j] = (found - row * size).clip(0, size - 1)
        return out.T

    return call


CASES = (
    _case(
        "tree-fit",
        f"fit a distribution on a junction tree of {CELLS:,} cells to 21 noisy tables, {STEPS} steps; beside as many "
        "of mirror descent",
        CELLS,
        _fitted,
        (beside("mbi", "fit_tree", steps=STEPS), None),
        (None, within_seconds(2.0)),
        oracle="tables of a tree",
        drawn=lambda n: (tree_tables(n), _fitted(n)()),
    ),
    _case(
        "tree-fit-wide",
        f"the same with {WIDE:,} cells, 5 steps",
        WIDE,
        partial(_fitted, steps=5),
        (beside("mbi", "fit_tree", steps=5), None),
        oracle="tables of a tree",
        drawn=lambda n: (tree_tables(min(n, CELLS)), _fitted(min(n, CELLS))()),
    ),
    _case(
        "tree-sample",
        f"sample 10^6 records of {TREE_COLUMNS} columns from a junction tree of {CELLS:,} cells",
        SAMPLED,
        _sample,
        (Side("numpy", _numpy_sample), faster("numpy", avx512=1.5, avx2=1.5)),
        (beside("mbi", "sample_tree", cells=CELLS), None),
        (None, within_seconds(1.0)),
        traffic=copied_once(TREE_COLUMNS),
        oracle="records of a tree",
        drawn=lambda n: (_synthetic(CELLS).marginal(["v0", "v2"]), _sample(n)()),
    ),
)
