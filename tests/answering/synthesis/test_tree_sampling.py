"""Records of distributions on junction trees (tree_sampling.py): counts, and the law of one record."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp import Randomness
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.tree_distribution import TreeDistribution
from fastdp.answering.synthesis.tree_layout import TreeLayout
from fastdp.answering.synthesis.tree_messages import TreeWeights
from tests import laws

ALARM = 1e-9  # of each test of a law
TREE = JunctionTree([3, 4, 2, 2], [(0, 1), (1, 2), (3,)])


def distribution(seed: int = 0, tree: JunctionTree = TREE, impossible: float = 0.2) -> TreeDistribution:
    rng = np.random.default_rng(seed)
    layout = TreeLayout(tree, ())
    logs = rng.normal(size=layout.cells)
    logs[rng.random(layout.cells) < impossible] = -np.inf
    return TreeDistribution(tree, TreeWeights(layout, logs).shares, 1.0)


def sample(of: TreeDistribution, n: int, key: int, kind: type = np.uint8) -> np.ndarray:
    out = np.full((len(of.tree.sizes), n), 99, kind)
    of.sample_into(Randomness(seed=key).key(), out)
    return out


def counts(records: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    found = np.zeros([TREE.sizes[p] for p in columns], int)
    np.add.at(found, tuple(records[list(columns)]), 1)
    return found


@pytest.mark.parametrize("n", [1, 2, 17, 1000, 100_003])
def test_counts_are_what_is_expected_rounded(n: int) -> None:
    of = distribution()
    records = sample(of, n, n)
    first = TREE.cliques[0]
    assert np.abs(counts(records, first) - n * of.marginal(first)).max() < 1 + 1e-9
    for clique, separator in zip(TREE.cliques[1:], TREE.separators[1:], strict=True):
        columns = (*separator, *(p for p in clique if p not in separator))
        table = of.marginal(columns)
        given = table.sum(axis=tuple(range(len(separator), len(columns))), keepdims=True)
        rows = counts(records, separator).reshape(given.shape) if separator else n
        expected = rows * np.divide(table, given, out=np.zeros_like(table), where=given > 0)
        assert np.abs(counts(records, columns) - expected).max() < 1 + 1e-9
    assert (counts(records, first)[of.marginal(first) == 0] == 0).all()


def test_one_record_has_the_law_of_the_distribution() -> None:
    # counts that are rounded at random, and dealt out at random, leave each single record its law
    of = distribution(1)
    right = of.marginal((0, 1, 2, 3)).reshape(-1)
    firsts, lasts = np.zeros(right.size, int), np.zeros(right.size, int)
    for key in range(20_000):
        records = sample(of, 3, key)
        codes = np.ravel_multi_index(tuple(records.astype(int)), TREE.sizes)
        firsts[codes[0]] += 1
        lasts[codes[2]] += 1
    for found in (firsts, lasts):
        verdict = laws.check_cells(found, right.tolist(), ALARM)
        assert verdict, str(verdict)
        assert not laws.check_cells(found, np.roll(right, 1).tolist(), ALARM)
        independent = np.multiply.outer(of.marginal((0, 1)).sum(axis=1), of.marginal((1, 2, 3))).reshape(-1)
        assert not laws.check_cells(found, independent.tolist(), ALARM), "columns 0 and 1 depend on each other"


def test_two_records_are_dealt_in_any_order() -> None:
    # of 2 records with cells a and b, each comes first equally often
    of = distribution(1)
    earlier = sum(bool(a < b) - bool(a > b) for a, b in (sample(of, 2, key)[1].tolist() for key in range(4000)))
    unequal = sum(bool(a != b) for a, b in (sample(of, 2, key)[1].tolist() for key in range(4000)))
    assert laws.check_cells([(unequal + earlier) // 2, (unequal - earlier) // 2], [0.5, 0.5], ALARM)


def test_the_same_key_gives_the_same_records() -> None:
    of = distribution(2)
    assert (sample(of, 1000, 7) == sample(of, 1000, 7)).all()
    assert (sample(of, 1000, 7) != sample(of, 1000, 8)).any()
    assert (sample(of, 1000, 7) == sample(of, 1000, 7, np.uint16)).all()


def test_no_record_and_columns_of_one_value_and_of_many() -> None:
    assert sample(distribution(), 0, 1).shape == (4, 0)
    tree = JunctionTree([1, 70_000, 2], [(0, 1), (1, 2)])
    of = distribution(3, tree, 0.0)
    records = sample(of, 100_000, 1, np.uint32)
    assert (records[0] == 0).all()
    found = np.bincount(records[1], minlength=70_000)
    assert np.abs(found - 100_000 * of.marginal((1,))).max() < 2 + 1e-9
