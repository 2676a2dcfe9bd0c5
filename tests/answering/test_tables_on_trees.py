"""Tables of wide domains, to which a distribution on a junction tree is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastdp import Budget, Conjunction, Domain, Randomness, bounds, marginals, release_marginals
from fastdp.answering import marginal_fits
from fastdp.answering.marginal_fits import tree_for
from fastdp.answering.queries.marginals import Marginals

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
COLUMNS, SIZE, N = 12, 6, 20_000
DOMAIN = Domain({f"c{j}": SIZE for j in range(COLUMNS)})  # 2e9 cells
CHAIN = [[f"c{j}", f"c{j + 1}", f"c{j + 2}"] for j in range(COLUMNS - 2)]
RELATIONS = ("replace-one", "add-remove")


def chain(n: int = N) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, SIZE, n)]
    for _ in range(COLUMNS - 1):
        columns.append((columns[-1] + (rng.random(n) < 0.3) * rng.integers(1, SIZE, n)) % SIZE)
    return np.stack(columns, axis=1).astype(np.uint8)


def right_tables(codes: Any) -> list[Any]:
    found = []
    for j in range(codes.shape[1] - 2):
        table = np.zeros((SIZE,) * 3)
        np.add.at(table, tuple(codes[:, j : j + 3].T), 1 / len(codes))
        found.append(table)
    return found


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_tree_is_fitted_beyond_all_cells(relation: Any) -> None:
    codes = chain()
    right = right_tables(codes)
    off = {}
    for fit in ("least-squares", "auto"):
        made: Any = release_marginals(
            codes, DOMAIN, CHAIN, epsilon=1.0, delta=1e-6, fit=fit, neighbors=relation, rng=Randomness(seed=1)
        )
        off[fit] = np.mean([np.abs(one - other).sum() for one, other in zip(made.tables, right, strict=True)])
    assert off["auto"] < 0.85 * off["least-squares"]
    assert made.fit == "entropic"
    assert {frozenset(each) for each in made.synthetic.structure} == {frozenset(each) for each in CHAIN}
    for names, table in zip(CHAIN, made.tables, strict=True):
        np.testing.assert_allclose(table, made.synthetic.marginal(names), atol=1e-12)
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)
    assert made.synthetic.sample(5, codes=True).shape == (5, COLUMNS)
    far = made.answer(Conjunction({"c0": 1, "c11": 1}))  # no table has both
    assert abs(far - np.mean((codes[:, 0] == 1) & (codes[:, 11] == 1))) < 0.01
    # the deviation, which is measured by eight fits, is what the tables are off by
    found = np.sqrt(np.mean([((one - other) ** 2).mean() for one, other in zip(made.tables, right, strict=True)]))
    stated = np.sqrt(np.mean([(each**2).mean() for each in made.deviation]))
    assert 0.75 * found < stated < 1.33 * found
    value, deviation = made.answer(Conjunction({"c0": 1, "c1": 1}), deviation=True)
    assert 0 < deviation < value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.05, 20.0])
def test_dense_and_tree_agree_within_the_noise(relation: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Domain(a=4, b=3, c=5, d=1, e=2)
    codes = np.random.default_rng(3).integers(0, [4, 3, 5, 1, 2], (5000, 5))
    codes[:, 1] = np.minimum(codes[:, 0], 2)
    off = []
    for cells in (2**24, 16):
        for name in ("_DENSE_CELLS", "_FIT_CELLS"):
            monkeypatch.setattr(marginal_fits, name, cells)
        workload = Marginals(small, [["a", "b"], ["b", "c"], ["d"]])  # no table has e
        made = release_marginals(
            codes, small, workload, epsilon=epsilon, delta=1e-6, fit="entropic", neighbors=relation,
            rng=Randomness(seed=2),
        )  # fmt: skip
        assert (made.synthetic.on_tree is not None) == (cells == 16)
        assert made.synthetic.marginal(["e"]).tolist() == pytest.approx([0.5, 0.5])
        right = np.histogram2d(codes[:, 0], codes[:, 1], (4, 3))[0] / 5000
        off.append(np.abs(made.tables[0] - right).sum())
    assert off[1] < 1.5 * off[0] + 0.005


def test_a_tree_is_taken_where_it_has_far_fewer_cells() -> None:
    def tree_of(sizes: list[int], tables: list[list[int]]) -> Any:
        domain = Domain({f"c{j}": size for j, size in enumerate(sizes)})
        return tree_for(Marginals(domain, [[f"c{j}" for j in table] for table in tables]))

    pairs = [[j, j + 1] for j in range(9)]
    assert tree_of([4] * 10, pairs).cells == 144  # of 2^20
    assert tree_of([4] * 7, pairs[:6]) is None  # 2^14 cells take no time
    assert tree_of([64] * 3, pairs[:2]).cells == 8192  # of 2^18
    assert tree_of([8, 2**14, 8], pairs[:2]) is None  # a quarter of 2^20
    assert tree_of([2] * 20, [[i, j] for i in range(20) for j in range(i)]) is None
    codes = chain()[:, :6]
    small = Domain({f"c{j}": SIZE for j in range(6)})
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=1)}
    made = release_marginals(codes, small, CHAIN[:4], **how)
    assert made.synthetic.on_tree is not None
    assert made.synthetic.on_tree.tree.cells == 4 * SIZE**3
    right = right_tables(codes)
    assert np.mean([np.abs(one - other).sum() for one, other in zip(made.tables, right, strict=True)]) < 0.07


def test_what_no_tree_holds_is_least_squares() -> None:
    domain = Domain.binary(60)
    pairs = marginals(domain, 2)
    assert tree_for(pairs) is None
    made = release_marginals(np.zeros((9, 60), np.uint8), domain, pairs, epsilon=1.0, delta=1e-6)
    assert made.fit == "least-squares"
    with pytest.raises(ValueError, match=r"^domain: .* cells: the entropic fit .* or a junction tree of the tables"):
        release_marginals(np.zeros((9, 60), np.uint8), domain, pairs, epsilon=1.0, delta=1e-6, fit="entropic")
    # a grid: no column has many neighbours, and yet no tree is narrow
    grid = Domain({f"x{i}y{j}": 16 for i in range(7) for j in range(7)})
    edges = [[f"x{i}y{j}", f"x{i}y{j + 1}"] for i in range(7) for j in range(6)]
    edges += [[f"x{j}y{i}", f"x{j + 1}y{i}"] for i in range(7) for j in range(6)]
    assert tree_for(Marginals(grid, edges)) is None


def test_an_estimate_has_the_tree() -> None:
    least = bounds.release_marginals(N, DOMAIN, CHAIN, epsilon=1.0, delta=1e-6, fit="least-squares")
    fitted = bounds.release_marginals(N, DOMAIN, CHAIN, epsilon=1.0, delta=1e-6, fit="entropic")
    assert 0 < fitted.bytes - least.bytes < 1e6


@pytest.mark.parametrize("fit", ["auto", "least-squares", None])
def test_an_empty_table_is_the_total_and_a_table_twice_is_refused(fit: Any) -> None:
    codes = chain(50)
    for workload, shapes in (([[]], [()]), ([["c3"], []], [(SIZE,), ()])):
        made = release_marginals(codes, DOMAIN, workload, epsilon=5.0, delta=1e-6, fit=fit, neighbors="add-remove")
        assert [table.shape for table in made.tables] == shapes
        assert made.tables[-1] == pytest.approx(1.0, abs=0.5)
    for workload in ([["c0", "c1"], ["c1", "c0"]], [["c3"], ["c3"]]):
        with Budget(epsilon=1.0, delta=1e-6) as budget, pytest.raises(ValueError, match=r"^workload: must not repeat"):
            release_marginals(codes, DOMAIN, workload, epsilon=1.0, delta=1e-6, fit=fit)
        assert not len(budget.releases)
