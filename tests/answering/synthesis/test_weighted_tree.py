"""Weights on junction trees that queries update (weighted_tree.py), and online answers with such a prior."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp import Conjunction, Domain, Linear, PrivateMultiplicativeWeights, Randomness, Range, SyntheticDistribution
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.queries.query import bind
from fastdp.answering.synthesis import weighted_tree
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.measured import Measured
from fastdp.answering.synthesis.tree_distribution import TreeDistribution
from fastdp.answering.synthesis.tree_fit import fit_tree
from fastdp.answering.synthesis.tree_layout import TreeLayout
from fastdp.answering.synthesis.tree_messages import TreeWeights
from fastdp.answering.synthesis.weighted_tree import WeightedTree

DOMAIN = Domain(a=3, b=2, c=4, d=2, e=3)


def prior() -> TreeDistribution:
    tree = JunctionTree(DOMAIN.sizes, [(0, 1), (1, 2), (2, 3)])
    layout = TreeLayout(tree, ())
    return TreeDistribution(tree, TreeWeights(layout, np.random.default_rng(0).normal(size=layout.cells)).shares, 1.0)


def test_updates_are_those_of_weights_of_all_cells() -> None:
    on_tree = WeightedTree(DOMAIN, prior(), 0.0)
    dense = DenseWeights(DOMAIN, x=SyntheticDistribution(prior(), DOMAIN).probabilities())
    rng = np.random.default_rng(1)
    values = np.rint(rng.random(DOMAIN.size) * 2**16) / 2**16
    queries = [
        Conjunction({"a": 1, "b": 0}), Conjunction({"b": 1}), Range("c", 1, 2), Conjunction({"a": 2, "d": 1}),
        Conjunction({"a": 0, "c": 3, "e": 2}), Conjunction({}), Conjunction({"a": 1, "b": 0}), Linear(values),
    ]  # fmt: skip
    for i, query in enumerate(queries):
        bound = bind(query, DOMAIN)
        on_tree.scale(bound, 0.7 * (-1) ** i)
        dense.scale(bound, 0.7 * (-1) ** i)
        made = SyntheticDistribution(on_tree)
        assert np.abs(made.probabilities() - dense.probabilities()).max() < 1e-12
        for other in queries:
            assert on_tree.evaluate(bind(other, DOMAIN)) == pytest.approx(
                dense.evaluate(bind(other, DOMAIN)), abs=1e-12
            )
    assert len(on_tree.tree.cliques) == 1


def test_an_update_without_room_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_tree, "MOST_CELLS", 40)
    on_tree = WeightedTree(DOMAIN, prior(), 0.0)
    far, near = bind(Conjunction({"a": 0, "c": 3, "e": 2}), DOMAIN), bind(Conjunction({"a": 0, "b": 1}), DOMAIN)
    before = on_tree.evaluate(far)
    on_tree.scale(far, 1.0)
    assert on_tree.evaluate(far) == before
    before = on_tree.evaluate(near)
    on_tree.scale(near, 1.0)
    assert on_tree.evaluate(near) > before


def test_what_is_mixed_in_leaves_nothing_impossible() -> None:
    tree = JunctionTree((2, 2), [(0, 1)])
    sure = TreeDistribution(tree, np.array([1.0, 0.0, 0.0, 0.0]), 1.0)
    domain = Domain(a=2, b=2)
    mixed = WeightedTree(domain, sure, 0.01)
    assert mixed.evaluate(bind(Conjunction({"a": 1, "b": 1}), domain)) == pytest.approx(0.0025, abs=1e-12)


def test_a_snapshot_does_not_change() -> None:
    on_tree = WeightedTree(DOMAIN, prior(), 0.0)
    query = Conjunction({"a": 0, "b": 1})
    snapshot = SyntheticDistribution(on_tree)
    before = snapshot.answer(query)
    on_tree.scale(bind(query, DOMAIN), 2.0)
    assert snapshot.answer(query) == before != SyntheticDistribution(on_tree).answer(query)


def test_online_answers_start_from_a_distribution_on_a_tree() -> None:
    # a chain of 40 binary columns; the prior knows all of it but one pair, which answers must learn
    rng = np.random.default_rng(5)
    d, n = 40, 20_000
    records = np.empty((n, d), np.uint8)
    records[:, 0] = rng.random(n) < 0.5
    for j in range(1, d):
        records[:, j] = records[:, j - 1] ^ (rng.random(n) < 0.15)
    domain = Domain.binary(d)
    pairs = [(j, j + 1) for j in range(d - 1) if j != 20]
    tables = []
    for pair in pairs:
        table = np.zeros((2, 2))
        np.add.at(table, (records[:, pair[0]], records[:, pair[1]]), 1)
        tables.append(Measured(pair, table, 1.0))
    synthetic = SyntheticDistribution(fit_tree(JunctionTree(domain.sizes, pairs), tables, n).distribution, domain, n=n)
    queries = [
        Conjunction({f"v{a + 1}": int(rng.integers(2)), f"v{b + 1}": int(rng.integers(2)), "v22": 1, "v21": 1})
        for a, b in (sorted(rng.choice(20, 2, replace=False)) for _ in range(60))
    ]
    wanted = np.array(
        [np.mean(np.all([records[:, int(k[1:]) - 1] == v for k, v in q.allowed.items()], axis=0)) for q in queries]
    )
    mechanism = PrivateMultiplicativeWeights(
        records, domain, epsilon=1.0, delta=1e-6, max_queries=100, prior=synthetic, variant="measured",
        rng=Randomness(seed=3),
    )  # fmt: skip
    answers = np.array([mechanism.answer(query) for query in queries])
    alone = synthetic.answer_many(queries)
    assert np.abs(answers - wanted).mean() < 0.4 * np.abs(alone - wanted).mean()
    assert mechanism.synthetic.on_tree is not None
    assert np.abs(mechanism.synthetic.answer_many(queries) - wanted).mean() < 0.4 * np.abs(alone - wanted).mean()


def test_a_copy_does_not_change() -> None:
    on_tree = WeightedTree(DOMAIN, prior(), 0.0)
    query = bind(Conjunction({"a": 0, "b": 1}), DOMAIN)
    twin = on_tree.copy()
    before = twin.evaluate(query)
    on_tree.scale(query, 2.0)
    assert twin.evaluate(query) == before
    twin.scale(query, 2.0)
    assert twin.evaluate(query) == on_tree.evaluate(query)
