"""Distributions on junction trees (tree_distribution.py) against what is written out."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest

from fastdp.answering.synthesis import tree_distribution
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.tree_distribution import TreeDistribution
from fastdp.answering.synthesis.tree_layout import TreeLayout
from fastdp.answering.synthesis.tree_messages import TreeWeights
from tests.oracles import junction_trees as oracle

from .random_trees import SEEDS, clique_tables, random_tree


def made(seed: int, impossible: float = 0.2) -> tuple[TreeDistribution, np.ndarray]:
    rng = np.random.default_rng(seed)
    while True:
        tree = random_tree(rng)
        layout = TreeLayout(tree, ())
        logs = rng.normal(size=layout.cells) * 2
        logs[rng.random(layout.cells) < impossible] = -np.inf
        joint = oracle.sum_of_tables(tree.sizes, clique_tables(layout, logs))
        if np.isfinite(joint).any():
            return TreeDistribution(tree, TreeWeights(layout, logs).shares, 100.0), oracle.distribution_of(joint)


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_of_any_columns(seed: int) -> None:
    distribution, joint = made(seed)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        columns = tuple(rng.permutation(joint.ndim)[: rng.integers(joint.ndim + 1)].tolist())
        found = distribution.marginal(columns)
        assert found.shape == tuple(joint.shape[p] for p in columns)
        assert np.abs(found - oracle.marginal(joint, columns)).max() < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_of_many_tables_are_those_of_each(seed: int) -> None:
    distribution, joint = made(seed)
    columns = range(joint.ndim)
    tables = [each for k in range(4) for each in combinations(columns, k)] + list(combinations(reversed(columns), 2))
    found = list(distribution.marginals(tables))
    assert len(found) == len(tables)
    for these, table in zip(tables, found, strict=True):
        assert table.shape == tuple(joint.shape[p] for p in these)
        assert np.abs(table - oracle.marginal(joint, these)).max() < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_products_of_values(seed: int) -> None:
    distribution, joint = made(seed)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        columns = rng.permutation(joint.ndim)[: rng.integers(joint.ndim + 1)].tolist()
        values = {p: rng.random(joint.shape[p]) < 0.6 for p in columns}
        mean = joint
        for p, each in values.items():
            mean = mean * each.reshape([-1 if q == p else 1 for q in range(joint.ndim)])
        assert distribution.expectation(values) == pytest.approx(mean.sum(), abs=1e-12)


def test_columns_far_apart_on_a_long_path() -> None:
    rng = np.random.default_rng(0)
    d = 100
    tree = JunctionTree([2] * d, [(i, i + 1) for i in range(d - 1)])
    layout = TreeLayout(tree, ())
    distribution = TreeDistribution(tree, TreeWeights(layout, rng.normal(size=layout.cells)).shares, 1.0)
    step = [distribution.marginal((i, i + 1)) for i in range(d - 1)]
    want = step[0]
    for table in step[1:]:
        want = want @ (table / table.sum(axis=1, keepdims=True))
    assert np.abs(distribution.marginal((0, d - 1)) - want).max() < 1e-12
    allowed = {0: np.array([True, False]), d - 1: np.array([False, True])}
    assert distribution.expectation(allowed) == pytest.approx(want[0, 1], abs=1e-12)


def test_a_marginal_that_does_not_fit_into_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = JunctionTree([2] * 40, [(i, i + 1) for i in range(39)])
    layout = TreeLayout(tree, ())
    distribution = TreeDistribution(tree, TreeWeights(layout, np.zeros(layout.cells)).shares, 1.0)
    monkeypatch.setattr(tree_distribution, "usable_memory", lambda: 1 << 20)
    with pytest.raises(ValueError, match=r"a sum on the way has \d+ columns and [\d,]+ cells"):
        distribution.marginal(range(0, 40, 2))


def test_it_does_not_change_and_pickles() -> None:
    distribution, joint = made(3)
    with pytest.raises(AttributeError, match="does not change"):
        distribution.total = 5.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        distribution.clique(0)[1][...] = 0.0
    again = pickle.loads(pickle.dumps(distribution))
    columns = tuple(range(joint.ndim))
    assert (again.marginal(columns) == distribution.marginal(columns)).all()
