"""Messages of junction trees (kernels/junction_trees.py, tree_messages.py) against what is written out."""

from __future__ import annotations

import numpy as np
import pytest

import fastdp
from fastdp.answering.synthesis import tree_layout, tree_messages
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.tree_layout import TreeLayout
from fastdp.answering.synthesis.tree_messages import TreeWeights
from tests.oracles import junction_trees as oracle

from .random_trees import SEEDS, clique_tables, random_tables, random_tree, tables_of


def _compare(seed: int, impossible: float) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    layout = TreeLayout(tree, random_tables(tree, rng))
    logs = rng.normal(size=layout.cells) * 3
    logs[rng.random(layout.cells) < impossible] = -np.inf
    values = rng.normal(size=layout.starts[-1] - 1) * 2
    before = oracle.sum_of_tables(tree.sizes, clique_tables(layout, logs))
    gained = oracle.sum_of_tables(tree.sizes, tables_of(layout, values))
    if not np.isfinite(before).any():
        with pytest.raises(ValueError, match="zeros: exclude all cells"):
            TreeWeights(layout, logs.copy())
        return
    weights = TreeWeights(layout, logs.copy())
    for times in range(4):
        if times:
            fall = weights.update(weights.spread(values), -1.0)
            by = oracle.log_of_sum(before + times * gained) - oracle.log_of_sum(before + (times - 1) * gained)
            assert -fall == pytest.approx(by, abs=1e-11)
        joint = oracle.distribution_of(before + times * gained)
        for columns, table in [*tables_of(layout, weights.tables), *clique_tables(layout, weights.shares)]:
            assert np.abs(table - oracle.marginal(joint, columns)).max() < 1e-12
    assert (weights.shares[np.isneginf(logs)] == 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_messages_are_sums_over_all_cells(seed: int) -> None:
    _compare(seed, 0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_that_cannot_be_stay_so(seed: int) -> None:
    _compare(seed, 0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_large_cliques_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_layout, "LARGE", 6)
    monkeypatch.setattr(tree_messages, "LARGE", 6)
    monkeypatch.setattr(tree_layout, "PIECE", 3)
    monkeypatch.setattr(tree_messages, "CHUNK", 7)
    _compare(seed, 0.2)


def test_logarithms_that_go_apart_for_long_lose_nothing() -> None:
    # two cliques that pull their separator up and down by the same: nothing changes, however often
    tree = JunctionTree([3, 2, 3], [(0, 1), (1, 2)])
    layout = TreeLayout(tree, [(0, 1), (1, 2)])
    weights = TreeWeights(layout, np.zeros(layout.cells))
    up, down = np.zeros((3, 2)), np.zeros((2, 3))
    up[:, 0], down[0] = 1e5, -1e5
    values = np.concatenate([layout.turned(up, (0, 1)).reshape(-1), layout.turned(down, (1, 2)).reshape(-1)])
    for _ in range(50):
        weights.update(weights.spread(values), 1.0)
    assert np.abs(weights.shares - 1 / 6).max() < 1e-9


def test_the_same_bits_for_any_number_of_threads() -> None:
    tree = JunctionTree([1 << 10, 1 << 11, 3, 2], [(0, 1), (1, 2), (2, 3)])
    layout = TreeLayout(tree, [(0,), (0, 1), (1, 2), (3,)])
    rng = np.random.default_rng(1)
    logs, values = rng.normal(size=layout.cells), rng.normal(size=layout.starts[-1] - 1)
    found, before = [], fastdp.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fastdp.set_num_threads(threads)
            weights = TreeWeights(layout, logs.copy())
            fall = weights.update(weights.spread(values), 0.5)
            found.append((weights.shares.tobytes(), weights.tables.tobytes(), fall))
    finally:
        fastdp.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_a_table_outside_of_all_cliques_is_refused() -> None:
    with pytest.raises(ValueError, match="within a clique"):
        TreeLayout(JunctionTree([2, 2], []), [(0, 1)])
