"""Synthetic distributions on junction trees: what the object that users see makes of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fastdp import Conjunction, Domain, Linear, Product, Randomness, Range, SyntheticDistribution
from fastdp.answering.queries import marginals
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.tree_distribution import TreeDistribution
from fastdp.answering.synthesis.tree_layout import TreeLayout
from fastdp.answering.synthesis.tree_messages import TreeWeights

DOMAIN = Domain(age=5, sex=["f", "m"], region=3, income=4, smokes=[True, False, None])
TREE = JunctionTree(DOMAIN.sizes, [(0, 1), (1, 2), (1, 3)])


def tree_of(seed: int = 0) -> TreeDistribution:
    layout = TreeLayout(TREE, ())
    logs = np.random.default_rng(seed).normal(size=layout.cells)
    return TreeDistribution(TREE, TreeWeights(layout, logs).shares, 1000.0)


def dense_of(on_tree: SyntheticDistribution) -> SyntheticDistribution:
    return SyntheticDistribution(on_tree.probabilities(), DOMAIN)


def test_queries_and_tables_are_those_of_the_same_dense_distribution() -> None:
    made = SyntheticDistribution(tree_of(), DOMAIN, n=1000)
    dense = dense_of(made)
    assert dense.probabilities().sum() == pytest.approx(1.0, abs=1e-12)
    values = np.rint(np.random.default_rng(1).random(DOMAIN.size) * 2**16) / 2**16
    queries = [
        Conjunction({"age": 2, "income": 1, "smokes": None}), Product({"sex": "f", "region": [0, 2]}),
        Range("age", 1, 3), Linear(values), Conjunction({}),
    ]  # fmt: skip
    for query in queries:
        assert made.answer(query) == pytest.approx(dense.answer(query), abs=1e-12)
    assert np.abs(made.answer_many(queries) - dense.answer_many(queries)).max() < 1e-12
    for names in (["income", "age"], ["region"], ["smokes", "region", "age"]):
        assert np.abs(made.marginal(names) - dense.marginal(names)).max() < 1e-12
    workload = marginals(DOMAIN, 2)
    assert np.abs(made.answer_many(workload) - dense.answer_many(workload)).max() < 1e-12


def test_records_and_data_frames() -> None:
    made = SyntheticDistribution(tree_of(), DOMAIN, n=3000)
    codes = made.sample(3000, Randomness(seed=1), codes=True)
    assert codes.shape == (3000, 5)
    found = np.bincount(codes[:, 1], minlength=2) / 3000
    assert np.abs(found - made.marginal(["sex"])).max() < 0.01
    frame = made.to_frame(rng=Randomness(seed=1))
    assert len(frame) == 3000
    assert (frame["sex"].cat.codes.to_numpy() == codes[:, 1]).all()
    assert frame["smokes"].isna().sum() == (codes[:, 4] == 2).sum() > 0


def test_what_it_displays() -> None:
    made = SyntheticDistribution(tree_of(), DOMAIN, n=1000)
    assert made.structure == (("age", "sex"), ("sex", "region"), ("sex", "income"), ("smokes",))
    assert made.blocks == (("age", "sex", "region", "income"), ("smokes",))
    assert repr(made) == "SyntheticDistribution(5 attributes, 360 cells, 2 blocks, n=1,000)"
    assert "income" in made._repr_html_()
    assert dense_of(made).structure == (DOMAIN.names,)


def test_it_pickles_and_keeps_its_records() -> None:
    made = SyntheticDistribution(tree_of(), DOMAIN)
    again = pickle.loads(pickle.dumps(made))
    assert (again.sample(50, Randomness(seed=3), codes=True) == made.sample(50, Randomness(seed=3), codes=True)).all()


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="domain: must be given with a distribution on a tree"):
        SyntheticDistribution(tree_of())
    with pytest.raises(ValueError, match=r"domain: sizes \(5, 2\): must be those of the tree"):
        SyntheticDistribution(tree_of(), Domain(age=5, sex=2))
    with pytest.raises(ValueError, match="weights"):
        SyntheticDistribution([tree_of(), tree_of()], DOMAIN)  # type: ignore[list-item]
    wide = JunctionTree([2] * 100, [(i, i + 1) for i in range(99)])
    layout = TreeLayout(wide, ())
    made = SyntheticDistribution(
        TreeDistribution(wide, TreeWeights(layout, np.zeros(layout.cells)).shares, 1.0), Domain.binary(100)
    )
    assert made.answer(Conjunction({"v1": 1, "v50": 0, "v100": 1})) == pytest.approx(1 / 8, abs=1e-12)
    with pytest.raises(ValueError, match="listing all cells"):
        made.probabilities()
