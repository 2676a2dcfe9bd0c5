"""The plan of tables: chordal graphs, limits, shares of the budget, against slow ways to the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from math import prod

import numpy as np
import pytest

from fastdp import Domain
from fastdp.answering.synthesis import rounds
from fastdp.answering.synthesis.chordal_graph import ChordalGraph, Limits
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.known_tables import within
from fastdp.answering.synthesis.measured import Measured
from fastdp.answering.synthesis.structure import (
    MEAN_NOISE,
    Candidate,
    Noisiness,
    plan_tables,
    shares_of,
)

from .scripted import plan_of

ROOM = Limits(10**9, 10**9)


def _is_chordal(d: int, edges: set[tuple[int, int]]) -> bool:
    """Whether columns can be taken away one by one, each with neighbours that are all next to each other."""
    left = set(range(d))
    near = {p: {q for q in left if (min(p, q), max(p, q)) in edges} for p in left}
    while left:
        simple = [p for p in left if all(q in near[r] for q, r in combinations(near[p] & left, 2))]
        if not simple:
            return False
        left.remove(simple[0])
    return True


def _maximal_cliques(d: int, edges: set[tuple[int, int]]) -> list[tuple[int, ...]]:
    complete = [
        each
        for k in range(1, d + 1)
        for each in combinations(range(d), k)
        if all(e in edges for e in combinations(each, 2))
    ]
    return [each for each in complete if not any(set(each) < set(other) for other in complete)]


@pytest.mark.parametrize("seed", range(12))
def test_edges_are_added_where_the_graph_stays_chordal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 6
    sizes = rng.integers(1, 5, d).tolist()
    graph, edges = ChordalGraph.of(sizes, JunctionTree(sizes, []).cliques), set()
    pairs = list(combinations(range(d), 2))
    for _ in range(2):
        for i in rng.permutation(len(pairs)).tolist():
            pair = pairs[i]
            if graph.joined(pair):
                continue
            separator = graph.separator(pair)
            assert (separator is not None) == _is_chordal(d, edges | {pair})
            if separator is None:
                continue
            made, cells = graph.cells_with(pair, separator)
            edges.add(pair)
            cliques = _maximal_cliques(d, edges)
            assert made in [prod(sizes[p] for p in clique) for clique in cliques if set(pair) <= set(clique)]
            assert cells == sum(prod(sizes[p] for p in clique) for clique in cliques)
            graph.join(pair, cells)
            tree = JunctionTree(sizes, edges)
            assert sorted(tree.cliques) == sorted(cliques)
            assert tree.cells == graph.cells


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6])
def test_edges_that_would_leave_a_cycle_come_with_others_that_fill_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 7
    sizes = rng.integers(1, 5, d).tolist()
    graph = ChordalGraph.of(sizes, JunctionTree(sizes, []).cliques)
    filled = 0
    for i in rng.permutation(d * (d - 1) // 2).tolist():
        pair = list(combinations(range(d), 2))[i]
        before, fits = set(graph.edges), graph.copy().add(pair, ROOM)
        tight = Limits(graph.cells, graph.cells)
        if pair not in before and graph.copy().add(pair, tight, fill=True) is False:
            assert not graph.add(pair, tight, fill=True)
            assert set(graph.edges) == before  # nothing changed
        assert graph.add(pair, ROOM, fill=True)
        edges = set(graph.edges)
        assert before | {pair} <= edges
        assert _is_chordal(d, edges)
        assert graph.cells == sum(prod(sizes[p] for p in clique) for clique in _maximal_cliques(d, edges))
        new = edges - before - {pair}
        assert bool(new) == (fits is None)
        filled += bool(new)
        if len(edges) > 11:
            break
    assert filled


def test_a_cycle_of_columns_is_measured_whole() -> None:
    """Each edge alone leaves a cycle, when the others are there: the last one of a square needs a diagonal."""
    sizes = [4, 3, 5, 2]
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    every = [Candidate(each, 12, 1.0, 900.0 if each in pairs else 0.0) for each in combinations(range(4), 2)]
    graph = ChordalGraph.of(sizes, JunctionTree(sizes, []).cliques)
    plan = plan_tables(graph, every, Noisiness(sizes, every, 5.0), 1.0, ROOM)
    assert sorted(each.columns for each in plan.tables) == sorted(pairs)
    assert len(plan.edges) == 5
    assert (0, 2) not in plan.edges  # the diagonal that takes more cells


def test_a_table_that_others_leave_no_room_for_is_tried_first() -> None:
    """Two tables of three together bring more than the one that is farthest, which shuts them out."""
    sizes = [2] * 9
    first = Candidate((0, 1, 2), 8, 1.0, 1000.0)
    others = [Candidate(each, 8, 1.0, 900.0) for each in ((0, 3, 4), (1, 5, 6))]
    graph = ChordalGraph.of(sizes, JunctionTree(sizes, []).cliques)
    limits = Limits(8, graph.cells + 4)  # a table by itself adds 2, beside another one 4
    every = [first, *others]
    plan = plan_tables(graph, every, Noisiness(sizes, every, 50.0), 1e-9, limits)
    assert {each.columns for each in plan.tables} == {each.columns for each in others}


def _candidates(rng: np.random.Generator, sizes: list[int], scale: float = 1000.0) -> list[Candidate]:
    return [
        Candidate((p, q), sizes[p] * sizes[q], float(rng.random() + 0.5), float(rng.exponential() * scale))
        for p, q in combinations(range(len(sizes)), 2)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_the_tree_stays_within_its_limits_and_holds_all_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 9).tolist()
    graph = ChordalGraph.of(sizes, JunctionTree(sizes, [(0, 1, 2)]).cliques)
    limits = Limits(700, 2500)
    candidates = _candidates(rng, sizes)
    plan = plan_tables(graph, candidates, Noisiness(sizes, candidates, 0.5), 10.0, limits)
    tree = JunctionTree(sizes, plan.edges)
    assert tree.largest <= limits.clique
    assert tree.cells <= limits.tree
    assert all(tree.clique_of(table.columns) is not None for table in plan.tables)
    assert plan.tables
    assert tree.clique_of((0, 1, 2)) is not None
    assert len({table.columns for table in plan.tables}) == len(plan.tables)


@pytest.mark.parametrize("seed", range(6))
def test_the_plan_is_nearly_the_best_of_all(seed: int) -> None:
    """Of four columns: against every set of tables, whose graph is chordal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, 4).tolist()
    candidates = _candidates(rng, sizes, 300.0)
    mu = 0.1
    best = -np.inf
    for k in range(len(candidates) + 1):
        for some in combinations(candidates, k):
            if _is_chordal(4, {each.columns for each in some}):
                noise = Noisiness(sizes, candidates, mu)
                for each in some:
                    noise.add(each)
                best = max(best, sum(each.gain for each in some) - noise.error)
    graph = ChordalGraph.of(sizes, JunctionTree(sizes, []).cliques)
    plan = plan_tables(graph, candidates, Noisiness(sizes, candidates, mu), 1e-9, ROOM)
    scale = sum(each.gain for each in candidates)
    assert best - 0.05 * scale <= plan.value <= best + 1e-9 * scale


def test_distances_within_their_noise_are_not_measured() -> None:
    graph = ChordalGraph.of([2] * 10, JunctionTree([2] * 10, []).cliques)
    rng = np.random.default_rng(3)
    found = []
    for _ in range(50):
        made = [Candidate(pair, 4, 1.0, float(rng.normal() * 100)) for pair in combinations(range(10), 2)]
        found.append(len(plan_tables(graph.copy(), made, Noisiness([2] * 10, made, 100.0), 100.0, ROOM).tables))
    assert 0.3 < np.mean(found) < 2.5  # about one of all


def test_the_error_of_noise_is_that_of_its_shares() -> None:
    sizes, mu = [3, 4, 5, 2], 0.3
    rng = np.random.default_rng(1)
    candidates = _candidates(rng, sizes)
    noise = Noisiness(sizes, candidates, mu)
    for each in (candidates[0], candidates[4]):
        promised = noise.with_table(each)
        noise.add(each)
        assert noise.error == pytest.approx(promised)
    unmeasured = [each for each in candidates if each not in (candidates[0], candidates[4])]
    costs = [candidates[0].cost, candidates[4].cost] + [
        MEAN_NOISE * size * sum(each.weight for each in unmeasured if p in each.columns) for p, size in enumerate(sizes)
    ]
    shares = shares_of(costs, [0.0] * len(costs), mu**2)
    assert sum(shares) == pytest.approx(mu**2)
    assert noise.error == pytest.approx(sum(cost / share**0.5 for cost, share in zip(costs, shares, strict=True)))


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs, known, square = rng.exponential(size=6).tolist(), (rng.exponential(size=6) * 0.2).tolist(), 0.7
    shares = shares_of(costs, known, square)
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(square)

    def error(parts: list[float]) -> float:
        return sum(cost / (before + part) ** 0.5 for cost, before, part in zip(costs, known, parts, strict=True))

    least = error(shares)
    for p, q in permutations(range(6), 2):
        for step in (1e-4, 1e-2):
            moved = list(shares)
            moved[p], moved[q] = moved[p] + min(step, moved[q]), max(moved[q] - step, 0.0)
            assert error(moved) >= least * (1 - 1e-12)


def test_shares_of_nothing_that_counts_are_equal() -> None:
    assert shares_of([0.0, 0.0], [0.0, 0.0], 1.0) == pytest.approx([0.5, 0.5])
    assert shares_of([1.0, 0.0], [0.0, 0.0], 1.0) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("gain", [4000.0, 5.0])
def test_tables_of_rounds_make_room_for_those_that_bring_more(gain: float) -> None:
    plan = replace(plan_of(Domain(a=6, b=6, c=6), "add-remove"), limits=Limits(36, 42))  # of pairs one alone
    singles = [Measured((p,), np.full(6, 1000.0), 1.0) for p in range(3)]
    first, other = Candidate((0, 1), 36, 1.0, 500.0), Candidate((1, 2), 36, 1.0, gain)
    of = rounds.Rounds(plan, singles, 6000.0)
    of.pairs, of._chosen = (first, other, Candidate((0, 2), 36, 1.0, 0.0)), [first]
    assert of._graph.add((0, 1), plan.limits)
    found = of._planned([other], 1e-9)
    assert found.edges == (((1, 2),) if gain > 500 else ((0, 1),))
    tree = JunctionTree((6, 6, 6), found.edges)
    before = Measured((0, 1), np.full((6, 6), 1000 / 6), 1.0)
    assert [each.columns for each in within(tree, [before])] == ([(0,), (1,)] if gain > 500 else [(0, 1)])
