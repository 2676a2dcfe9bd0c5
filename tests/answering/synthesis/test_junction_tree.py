"""Junction trees (fastdp/answering/synthesis/junction_tree.py)."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest

from fastdp.answering.synthesis.junction_tree import JunctionTree


@pytest.mark.parametrize("seed", range(30))
def test_any_sets_of_columns_lie_within_cliques_that_hang_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 20))
    sizes = [int(size) for size in rng.integers(1, 9, d)]
    sets = [rng.choice(d, int(rng.integers(0, min(d, 4) + 1)), replace=False).tolist() for _ in range(rng.integers(30))]
    tree = JunctionTree(sizes, sets)
    seen: set[int] = set()
    for i, (clique, parent, separator) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        assert list(clique) == sorted(clique)
        assert set(separator) == set(clique) & seen, "the running intersection"
        assert -1 <= parent < max(i, 0) or i == 0
        assert parent < 0 or set(separator) <= set(tree.cliques[parent])
        assert all(not set(clique) <= set(other) for other in tree.cliques if other != clique)
        in_order = sorted(clique, key=tree.order.index)
        assert set(in_order[: len(separator)]) == set(separator)
        seen |= set(clique)
    assert seen == set(range(d))
    for columns in sets:
        assert tree.clique_of(columns) is not None
    assert tree.cells == sum(int(np.prod([sizes[p] for p in clique])) for clique in tree.cliques)
    assert JunctionTree(sizes, sets) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_what_is_chordal_gets_no_further_edge() -> None:
    path = JunctionTree([2] * 6, [(i, i + 1) for i in range(5)])
    assert sorted(path.cliques) == [(i, i + 1) for i in range(5)]
    cycle = JunctionTree([2] * 6, [(i, (i + 1) % 6) for i in range(6)])
    assert [len(clique) for clique in cycle.cliques] == [3] * 4


def test_ties_of_min_fill_go_to_the_clique_with_fewest_cells() -> None:
    # a square: one diagonal or the other
    tree = JunctionTree([2, 50, 2, 50], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert sorted(tree.cliques) == [(0, 1, 2), (0, 2, 3)]


def test_columns_without_sets_and_parts_hang_by_empty_separators() -> None:
    tree = JunctionTree([3, 2, 5], [])
    assert sorted(tree.cliques) == [(0,), (1,), (2,)]
    assert tree.separators == ((), (), ())
    assert tree.cliques[0] == (2,), "the clique with most cells comes first"


def test_all_pairs_are_one_clique() -> None:
    assert JunctionTree([2] * 30, combinations(range(30), 2)).cliques == (tuple(range(30)),)


def test_a_clique_is_found_by_its_columns() -> None:
    tree = JunctionTree([3, 2, 5, 2], [(0, 1), (1, 2), (1, 3)])
    assert tree.cliques[tree.clique_of([1]) or 0] == (1, 3)
    assert tree.clique_of([0, 2]) is None
    assert tree.clique_of([]) is not None


@pytest.mark.parametrize(("sizes", "columns"), [([], []), ([2, 0], []), ([2, 2], [(2,)])])
def test_bad_input(sizes: list[int], columns: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="must be"):
        JunctionTree(sizes, columns)
