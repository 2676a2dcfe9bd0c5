"""Ranges: the tree against dense least squares, prices by enumeration, the laws of the noise, results and errors."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from math import exp, inf, log, nan, prod
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Bins, Domain, DomainError, Randomness
from fastdp.answering.range_noise import Digits, SquareRoot, auto_noise
from fastdp.answering.range_tree import SHARES, RangeTree, nearest_shares, tree_for
from fastdp.answering.release_ranges import plan_ranges
from fastdp.kernels.isotonic import fit_increasing_into
from fastdp.privacy.conversions import rho_of_pure
from fastdp.randomness.charged_keys import ChargedKeys

RELATIONS = ("replace-one", "add-remove")


def tree_of(sizes: tuple[int, ...], fans: Any, *, known: bool) -> RangeTree:
    shares = [SHARES // len(fans)] * len(fans)
    shares[-1] += SHARES - sum(shares)
    return RangeTree(sizes, fans, tuple(shares), known, 0.0)


TREES = [
    ((11,), ((3,), (4,))), ((8,), ((2,), (2,), (2,))), ((5,), ((5,),)), ((3, 5), ((2, 3), (2, 2))),
    ((4, 4), ((2, 2), (2, 2))), ((7, 2), ((4, 1), (2, 2))),
]  # fmt: skip


def rows_of(tree: RangeTree) -> tuple[np.ndarray, np.ndarray]:
    """Which bins each node that has some counts, and on which level it is."""
    size = prod(tree.sizes)
    units = [tree.levels(np.eye(size, dtype=np.int64)[i].reshape(tree.sizes)) for i in range(size)]
    rows = np.stack([np.concatenate(levels) for levels in units], axis=1)
    level = np.concatenate([np.full(each.size, i) for i, each in enumerate(units[0])])
    some = rows.any(axis=1)
    return rows[some], level[some]


# --- the tree


@pytest.mark.parametrize(("sizes", "fans"), TREES)
def test_levels_are_sums_of_blocks(sizes: Any, fans: Any) -> None:
    tree = tree_of(sizes, fans, known=True)
    cells = np.random.default_rng(1).integers(0, 9, sizes)
    levels = tree.levels(cells)
    assert [level.size for level in levels] == np.cumprod(tree.children).tolist()
    assert (tree.cells(levels[-1]) == cells).all()
    assert all(level.sum() == cells.sum() for level in levels)
    rows, level = rows_of(tree)
    for i in range(len(fans)):
        assert (rows[level == i].sum(axis=0) == 1).all()  # each bin is in one node of a level
    widths = [np.prod([f[i] for f in fans[1:]], dtype=int) for i in range(len(sizes))]
    top = tree.leaves(cells).reshape(tree.children[0], -1)
    for node, places in zip(top, product(*[range(fan) for fan in fans[0]]), strict=True):
        block = cells[tuple(slice(p * w, (p + 1) * w) for p, w in zip(places, widths, strict=True))]
        assert sorted(node[node > 0].tolist()) == sorted(block[block > 0].tolist())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("sizes", "fans"), TREES)
def test_deviations_are_those_of_dense_least_squares(sizes: Any, fans: Any, known: bool) -> None:
    tree = tree_of(sizes, fans, known=known)
    variances = [3.0, 1.0, 0.5][: len(fans)]
    rows, level = rows_of(tree)
    weights = np.array([1 / variances[i] for i in level])
    if known:  # the sum of all is exact
        rows, weights = np.vstack([rows, np.ones(rows.shape[1])]), np.append(weights, 1e9)
    covariance = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    generator = np.random.default_rng(2)
    asked = [np.ones(sizes), generator.random(sizes)]
    prefixes = []
    for end in product(*[range(1, size + 1) for size in sizes]):
        asked.append(np.zeros(sizes))
        asked[-1][tuple(slice(e) for e in end)] = 1.0
        prefixes.append(asked[-1].reshape(-1))
    for q in asked:
        expected = q.reshape(-1) @ covariance @ q.reshape(-1)
        assert tree.deviation(q, variances) ** 2 == pytest.approx(expected, rel=1e-6, abs=1e-6)
    most = max(q @ covariance @ q for q in prefixes)
    assert most <= tree.worst_variance(variances) * (1 + 1e-6)
    estimator = covariance @ rows.T * weights  # lemma 3: no noise counts for more than 1
    noisy = estimator[:, :-1] if known else estimator
    assert max(np.abs(q @ noisy).max() for q in prefixes) <= 1 + 1e-6


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("fans", [((16,), (16,)), ((4,), (8,), (8,)), ((4, 4), (4, 4)), ((2, 8), (4, 4))])
def test_the_mean_variance_is_near_that_over_all_prefixes(fans: Any, known: bool) -> None:
    sizes = tuple(prod(each) for each in zip(*fans, strict=True))
    tree = tree_of(sizes, fans, known=known)
    variances = [3.0, 1.0, 2.0][: len(fans)]
    found = []
    for end in product(*[range(1, size + 1, 1 if len(sizes) == 1 else 3) for size in sizes]):
        q = np.zeros(sizes)
        q[tuple(slice(e) for e in end)] = 1.0
        found.append(tree.deviation(q, variances) ** 2)
    assert tree.mean_variance(variances) == pytest.approx(np.mean(found), rel=0.2)


@pytest.mark.parametrize("sizes", [(2,), (3,), (17,), (256,), (4096,), (2**20,), (5, 3), (100, 1000), (2, 2**19)])
def test_trees_hold_all_bins_and_pay_for_all_levels(sizes: Any) -> None:
    for known in (True, False):
        tree = tree_for(sizes, known=known)
        assert sum(tree.shares) == SHARES
        assert min(tree.shares) >= 1
        assert len(tree.shares) == len(tree.fans)
        for size, fans in zip(sizes, zip(*tree.fans, strict=True), strict=True):
            assert size <= prod(fans) <= 1.5 * size + 256
        if sizes == (4096,):  # twelve times less than a noisy count for each bin
            flat = tree_of(sizes, ((4096,),), known=known).mean_variance([2.0])
            assert tree.variance < flat / (3 if known else 7)


def test_nearest_shares_are_the_projection() -> None:
    generator = np.random.default_rng(3)
    estimates = generator.normal(0, 3, (400, 6))
    estimates[::7, 4] = -inf
    totals = np.where(generator.random(400) < 0.1, 0.0, generator.exponential(5, 400))
    found = nearest_shares(estimates, totals)
    assert (found >= 0).all()
    assert np.allclose(found.sum(axis=1), totals)
    assert (found[::7, 4] == 0).all()
    for row, total, made in zip(estimates, totals, found, strict=True):
        if total > 0:  # of the form max(e - cut, 0), which the conditions of Kuhn and Tucker ask for
            cuts = (row - made)[made > 0]
            assert np.ptp(cuts) < 1e-9
            assert (row[made == 0] <= cuts[0] + 1e-9).all()


def test_the_fit_of_exact_counts_is_exact() -> None:
    for sizes, fans in TREES:
        for known in (True, False):
            tree = tree_of(sizes, fans, known=known)
            cells = np.random.default_rng(4).integers(0, 4, sizes)
            found = tree.fit(tree.levels(cells), [1.0] * len(fans), int(cells.sum()) if known else None)
            assert np.allclose(found, cells)


def test_the_increasing_fit_is_its_formula() -> None:
    values = np.random.default_rng(5).normal(0, 2, 60) + np.arange(60) / 10
    found = np.empty(60)
    fit_increasing_into(values, np.empty(60, np.int64), found)
    for i in range(60):
        assert found[i] == pytest.approx(max(min(values[a : b + 1].mean() for b in range(i, 60)) for a in range(i + 1)))
    fit_increasing_into(found, np.empty(60, np.int64), found)
    assert (np.diff(found) >= 0).all()


# --- the price


def tables(bins: int, n: int) -> list[tuple[int, ...]]:
    return [x for x in product(range(n + 1), repeat=bins) if sum(x) <= n]


def neighbours(x: tuple[int, ...], relation: str) -> list[tuple[int, ...]]:
    found = []
    for i in range(len(x)):
        more = tuple(c + (j == i) for j, c in enumerate(x))
        if relation == "add-remove":
            found.append(more)
            continue
        found += [tuple(c - (j == k) for j, c in enumerate(more)) for k in range(len(x)) if more[k] > 0]
    return found


def loss(noise: Digits, sizes: tuple[int, ...], relation: str) -> Fraction:
    """The largest privacy loss over all neighbours: each level's noise is Laplace, so it is the L1 distance over it."""
    worst = Fraction(0)
    for x in tables(prod(sizes), 2):
        for y in neighbours(x, relation):
            levels = (noise.tree.levels(np.array(each).reshape(sizes)) for each in (x, y))
            lost = sum(
                Fraction(int(np.abs(a - b).sum())) / Fraction(plan.scale)
                for a, b, plan in zip(*levels, noise.plans, strict=True)
            )
            worst = max(worst, lost)
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sizes", [(5,), (2, 3)])
def test_digits_cost_epsilon_over_all_neighbours(sizes: Any, relation: Any) -> None:
    noise = Digits.of(sizes, 0.7, relation)
    deep = tree_of(sizes, (((3,), (2,)) if len(sizes) == 1 else ((2, 2), (1, 2))), known=True)
    assert 0.999 * 0.7 < loss(noise, sizes, relation) <= Fraction(7, 10)
    for tree in (noise.tree, deep):
        changed = 2 if relation == "replace-one" else 1
        scales = [Fraction(changed * SHARES, share) / Fraction(7, 10) for share in tree.shares]
        paid = [_Scale(float(scale)) for scale in scales]
        assert float(loss(Digits(tree, tuple(paid), noise.guarantee), sizes, relation)) == pytest.approx(0.7)  # type: ignore[arg-type]


class _Scale:
    """A plan of noise, as far as its price goes."""

    def __init__(self, scale: float) -> None:
        self.scale = scale


def test_variants_that_do_not_pay_are_noticed() -> None:
    cheap = Digits.of((5,), 0.7, "add-remove")
    assert loss(cheap, (5,), "replace-one") > Fraction(7, 10)  # replace-one priced as add-remove
    tree = tree_of((6,), ((3,), (2,)), known=False)
    unpaid = Digits(tree, (_Scale(1 / 0.7), _Scale(1 / 0.7)), cheap.guarantee)  # type: ignore[arg-type]
    assert loss(unpaid, (6,), "add-remove") > Fraction(7, 10)  # a level for nothing


@pytest.mark.parametrize("relation", RELATIONS)
def test_running_sums_cost_what_all_pairs_of_columns_ask_for(relation: Any) -> None:
    noise = SquareRoot.of(40, 1.0, 1e-6, relation)
    row = noise._row
    lower = np.array([[row[i - j] if i >= j else 0.0 for j in range(40)] for i in range(40)])
    columns = np.linalg.solve(lower, np.tril(np.ones((40, 40))))
    if relation == "add-remove":
        most = np.linalg.norm(columns, axis=0).max()
    else:
        most = max(np.linalg.norm(columns[:, i] - columns[:, j]) for i in range(40) for j in range(i))
    assert most <= noise.plan.distance * noise.plan.grid <= most * 1.002
    sigma = noise.plan.noise.sigma * noise.plan.grid
    assert sigma / most == pytest.approx(4.2247, rel=2e-3)  # as for one vector of continuous noise
    assert str(noise.guarantee).startswith("(1, 1e-06)-DP")
    short = SquareRoot.of(20, 1.0, 1e-6, relation)
    assert short.plan.distance * short.plan.grid < most  # columns of fewer steps are shorter: a price too low


def test_deviations_of_running_sums_are_those_of_the_matrix() -> None:
    for relation in RELATIONS:
        noise = SquareRoot.of(30, 1.0, 1e-6, relation)
        lower = np.array([[noise._row[i - j] if i >= j else 0.0 for j in range(30)] for i in range(30)])
        covariance = lower @ lower.T * noise._unit**2
        for low, high in ((0, 10), (5, 6), (12, 29), (0, 29)):
            weights = np.zeros(30)
            weights[low : high + 1] = 1.0
            steps = weights - np.append(weights[1:], 0.0)
            if relation == "replace-one":
                steps[-1] = 0.0
            assert noise.deviation(weights) ** 2 == pytest.approx(steps @ covariance @ steps, abs=1e-9)
        assert noise.typical**2 == pytest.approx(np.diag(covariance).mean())


# --- the law


def keys_of(seed: int) -> ChargedKeys:
    return ChargedKeys("release_ranges", fastdp.PureDP(1.0), {}, None, Randomness(seed))


def distance(draws: np.ndarray, scale: float) -> float:
    """The largest difference of the distribution functions of draws and of discrete Laplace noise."""
    ends = np.arange(-60, 61)
    q = exp(-1 / scale)
    law = np.where(ends < 0, q ** (-ends) / (1 + q), 1 - q ** (ends + 1) / (1 + q))
    found = np.searchsorted(np.sort(draws), ends, side="right") / draws.size
    return float(np.abs(found - law).max())


def test_every_level_has_noise_of_its_own_law() -> None:
    noise = Digits.of((4096,), 1.0, "add-remove")
    with keys_of(3) as keys:
        levels = noise.measure(np.zeros(4096, np.int64), keys)
    assert len({level[:4].tobytes() for level in levels}) == len(levels)
    for level, plan in zip(levels, noise.plans, strict=True):
        allowed = np.sqrt(np.log(2e7) / (2 * level.size))  # Dvoretzky, Kiefer, Wolfowitz: fails once in 10^7
        assert distance(level, plan.scale) < allowed
    allowed = np.sqrt(np.log(2e7) / (2 * 4096))
    assert distance(levels[-1], noise.plans[-1].scale * 1.5) > allowed  # and another law is noticed
    assert distance(levels[-1], noise.plans[-1].scale / 1.5) > allowed


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["digits", "square-root"])
def test_ranges_are_as_far_off_as_stated(method: Any, relation: Any) -> None:
    """Before the fit; counts are so large that it changes next to nothing."""
    counts = np.full(64, 10**6)
    noise = plan_ranges((64,), 1.0, 1e-6, relation, method)
    off = []
    for seed in range(60):
        with keys_of(seed) as keys:
            noisy = noise.measure(counts, keys)
        off.append(np.cumsum(noise.fit(noisy, 64 * 10**6 if relation == "replace-one" else None) - counts))
    squares = np.mean(np.square(off), axis=0)
    expected = [noise.deviation(np.where(np.arange(64) <= end, 1.0, 0.0)) ** 2 for end in range(64)]
    assert np.mean(squares) == pytest.approx(np.mean(expected), rel=0.35)
    assert np.mean(expected) == pytest.approx(noise.typical**2, rel=0.12)
    assert np.abs(off).max() <= noise.largest(1e-6)


# --- the release

VALUES = np.random.default_rng(6).beta(2, 5, 50_000) * 100
EDGES = np.linspace(0, 100, 1001)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", ["auto", "digits", "square-root"])
def test_a_release_is_a_distribution_near_the_true_one(method: Any, delta: float, relation: Any) -> None:
    if method == "square-root" and not delta:
        pytest.skip("needs a delta")
    made = fastdp.release_ranges(
        VALUES, EDGES, epsilon=1.0, delta=delta, method=method, neighbors=relation, rng=Randomness(5)
    )
    assert made.counts.shape == (1000,)
    assert (made.counts >= 0).all()
    assert made.counts.sum() == pytest.approx(made.n)
    assert made.n == 50_000 if relation == "replace-one" else abs(made.n - 50_000) < 100
    true = np.cumsum(np.histogram(VALUES, EDGES)[0])
    assert np.abs(np.cumsum(made.counts) - true).max() < 12 * made.sigma
    assert made.range() == pytest.approx(made.n)
    assert abs(made.range(20, 39.95) - np.sum((VALUES >= 20) & (VALUES < 40))) < 10 * made.deviation(20, 39.95)
    assert abs(made.quantile(0.5) - np.median(VALUES)) < 0.5
    assert made.method in ("digits", "square-root")
    assert made.guarantee.neighbors == relation
    assert pickle.loads(pickle.dumps(made)).counts.tolist() == made.counts.tolist()
    assert "guarantee" in repr(made)
    with pytest.raises(ValueError, match="read-only"):
        made.counts[0] = 1


def test_the_distribution_function_counts_the_bin_that_holds_x() -> None:
    ages = np.repeat([20, 30, 31], [500, 300, 200])
    made = fastdp.release_ranges(ages, range(20, 41), epsilon=1e6)
    assert made.counts[[0, 10, 11]].tolist() == pytest.approx([500, 300, 200])
    assert [made.cdf(x) for x in (19, 19.99, 20, 29, 30, 31, 40, 99)] == pytest.approx([0, 0, 0.5, 0.5, 0.8, 1, 1, 1])
    assert made.cdf([20, 30]).tolist() == pytest.approx([0.5, 0.8])
    assert made.range(30, 31) == pytest.approx(500)
    assert made.range(high=29) == pytest.approx(500)
    assert made.quantile([0.0, 0.25, 0.49, 0.6, 0.9]).tolist() == [20, 20, 20, 30, 31]
    with pytest.raises(ValueError, match=r"q=1.5: must be in \[0, 1\]"):
        made.quantile(1.5)
    with pytest.raises(ValueError, match="must be a number from 20 to 40"):
        made.cdf("x")
    for ends, message in (((None, 30), "^low=None: must be"), ((30, None), "^high=None: must be")):
        with pytest.raises(ValueError, match=message):
            made.range(*ends)
        with pytest.raises(ValueError, match=message.replace("^", "^a: ")):
            fastdp.Range("a", *ends).bind(fastdp.Domain(a=Bins(range(20, 41))))


def test_two_attributes() -> None:
    generator = np.random.default_rng(8)
    people = {"age": generator.integers(18, 90, 30_000), "income": generator.lognormal(10, 1, 30_000)}
    edges = {"age": range(18, 91), "income": [*np.linspace(0, 1e5, 51), inf]}
    made = fastdp.release_ranges(people, edges, epsilon=1.0, rng=Randomness(1))
    assert made.counts.shape == (72, 51)
    assert made.counts.sum() == pytest.approx(30_000)
    true = np.sum((people["age"] >= 30) & (people["age"] <= 49) & (people["income"] < 4e4))
    assert abs(made.range((30, 0), (49, 39_999)) - true) < 6 * made.deviation((30, 0), (49, 39_999))
    assert made.cdf((90, 1e9)) == pytest.approx(1)
    assert made.cdf((17, 1e9)) == 0
    share = np.mean((people["age"] <= 40) & (people["income"] < 2e4))
    assert abs(made.cdf((40, 19_999)) - share) < 0.02
    with pytest.raises(ValueError, match="two attributes have no order"):
        made.quantile(0.5)
    with pytest.raises(ValueError, match=r"low=30: must be a number for each of age, income"):
        made.range(30, 49)
    pairs = r"of two attributes low=\(low of age, low of income\), high=\(high of age, high of income\)$"
    with pytest.raises(ValueError, match=pairs):
        made.range(30, 49)
    with pytest.raises(ValueError, match=r"^age: low=30: must not come after high=0: " + pairs):
        made.range((30, 49), (0, 40_000))
    with pytest.raises(ValueError, match=r"^income: high=None: must be a number from 0.0 to inf: " + pairs):
        made.deviation((30, 0), (49, None))
    with pytest.raises(ValueError, match="'digits' for two attributes"):
        fastdp.release_ranges(people, edges, epsilon=1.0, delta=1e-6, method="square-root")


def test_the_same_bits_wherever_records_are(tmp_path: Any) -> None:
    pandas, polars, dask = (pytest.importorskip(name) for name in ("pandas", "polars", "dask.array"))
    values = VALUES[:20_000]
    frame = pandas.DataFrame({"x": values})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=3000)
    given = {"epsilon": 1.0, "delta": 1e-6, "method": "square-root"}
    one = fastdp.release_ranges(values, EDGES, rng=Randomness(3), **given).counts
    kinds = (
        values.tolist(), frame, frame["x"], polars.Series(values), str(tmp_path / "x.parquet"),
        dask.from_array(values, chunks=3000), Bins(EDGES),
    )  # fmt: skip
    for kind in kinds:
        data, edges = (values, kind) if isinstance(kind, Bins) else (kind, EDGES)
        assert (fastdp.release_ranges(data, edges, rng=Randomness(3), **given).counts == one).all()
    named = fastdp.release_ranges(frame, {"x": EDGES}, rng=Randomness(3), **given)
    assert (named.counts == one).all()
    before = fastdp.get_num_threads()
    try:
        fastdp.set_num_threads(1)
        assert (fastdp.release_ranges(values, EDGES, rng=Randomness(3), **given).counts == one).all()
    finally:
        fastdp.set_num_threads(before)


def test_a_private_number_of_records_is_displayed_as_one() -> None:
    for seed in range(4):
        for n in (0, 20):
            made = fastdp.release_ranges([1.0] * n, EDGES, epsilon=1.0, neighbors="add-remove", rng=Randomness(seed))
            assert f"n           about {made.n:,.0f}\n" in repr(made)
    assert "n           20\n" in repr(fastdp.release_ranges([1.0] * 20, EDGES, epsilon=1.0))


def test_no_records() -> None:
    made = fastdp.release_ranges(np.empty(0), EDGES, epsilon=1.0, neighbors="add-remove", rng=Randomness(1))
    assert made.n >= 1
    with pytest.raises(ValueError, match="n=0 records"):
        fastdp.release_ranges(np.empty(0), EDGES, epsilon=1.0)


def test_what_is_outside_is_refused_for_nothing_or_clipped() -> None:
    budget = fastdp.Budget(epsilon=2.0)
    for wrong in ([5.0, 101.0], [nan, 1.0], [None, 1.0]):
        with pytest.raises(DomainError):
            fastdp.release_ranges(wrong, EDGES, epsilon=1.0, budget=budget)
    assert not budget.releases
    made = fastdp.release_ranges([101.0] * 900 + [nan] * 100, EDGES, epsilon=1e6, outside="clip")
    assert made.counts[[0, -1]].tolist() == pytest.approx([100, 900])
    fastdp.release_ranges(VALUES, EDGES, epsilon=1.0, budget=budget)
    assert budget.releases[0].mechanism == "release_ranges"
    assert budget.releases[0].parameters["bins"] == 1000


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([0.0, 100.0], {}, "one bin: must be at least 2 bins"),
        ([0.0, 100.0, 50.0], {}, "edges are in increasing order"),
        (range(2**20 + 2), {}, "edges: 1,048,578"),
        (Bins([0.0, 100.0], missing=True), {}, "one bin: must be at least 2 bins"),
        (Bins(range(2**20 + 1), missing=True), {}, "1,048,577 bins: must be at most 1,048,576, that of missing"),
        ({}, {}, "0 attributes: must be one or two"),
        (dict.fromkeys("abc", EDGES), {}, "3 attributes: must be one or two"),
        ({"a": range(2**11 + 1), "b": range(2**10 + 1)}, {}, "2,097,152 bins: must be at most 1,048,576"),
        (EDGES, {"method": "square-root"}, "must be > 0 for method='square-root'"),
        (EDGES, {"method": "tree"}, "method='tree'"),
        (EDGES, {"epsilon": 0}, "epsilon=0"),
        (EDGES, {"delta": 1.0}, "delta=1.0"),
        (EDGES, {"neighbors": "both"}, "neighbors='both'"),
        (EDGES, {"outside": "drop"}, "outside='drop'"),
        (EDGES, {"epsilon": 1e-15}, "noise scale must be"),
        (EDGES, {"epsilon": 1e-9, "delta": 1e-9, "method": "square-root"}, "epsilon=1e-09: too small for 1,000 bins"),
    ],
)  # fmt: skip
def test_bad_parameters(edges: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fastdp.release_ranges(VALUES, edges, **{"epsilon": 1.0} | options)


# --- missing entries


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["digits", "square-root"])
def test_missing_entries_are_in_a_bin_that_no_range_has(method: Any, relation: Any) -> None:
    values = np.where(np.arange(20_000) % 4 == 0, np.nan, np.arange(20_000) % 100)
    bins = Bins(range(101), missing=True)
    made = fastdp.release_ranges(
        values, bins, epsilon=2.0, delta=1e-6, method=method, neighbors=relation, rng=Randomness(1)
    )
    assert made.counts.shape == (101,)
    assert abs(made.counts[-1] - 5_000) < 60
    assert abs(made.range() - 15_000) < 60
    assert made.range() == pytest.approx(made.counts[:-1].sum())
    assert made.n == pytest.approx(made.counts.sum())
    if relation == "replace-one":
        assert made.n == 20_000
    assert abs(made.cdf(49) - np.mean(np.arange(20_000)[np.arange(20_000) % 4 != 0] % 100 <= 49)) < 0.01
    assert made.cdf(100) == pytest.approx(1.0)
    assert abs(made.quantile(0.5) - 50) <= 2
    assert made.quantile(1.0) == 99
    assert made.deviation(0, 100) < 60
    with pytest.raises(ValueError, match=r"values=None: must be a number from 0 to 100$"):
        made.cdf(None)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_bin_of_missing_entries_is_paid_for_as_any_other(relation: Any) -> None:
    """A record that goes missing, and one that is replaced: no pair of neighbours costs more than epsilon."""
    sizes = Domain(x=Bins([0, 1, 2, 3], missing=True)).sizes
    assert sizes == (4,)
    noise = plan_ranges(sizes, 0.7, 0.0, relation, "auto")
    assert 0.999 * 0.7 < loss(noise, sizes, relation) <= Fraction(7, 10)
    if relation == "replace-one":  # were it left out, n would not be public: whoever goes missing would be seen
        assert noise.tree.sizes == (4,)  # type: ignore[attr-defined]


def test_two_attributes_with_missing_entries() -> None:
    draw = np.random.default_rng(3)
    people = pd.DataFrame({"age": draw.integers(0, 10, 30_000).astype(float), "children": draw.integers(0, 4, 30_000)})
    people.loc[::3, "age"] = np.nan
    edges = {"age": Bins(range(11), missing=True), "children": range(5)}
    made = fastdp.release_ranges(people, edges, epsilon=4.0, rng=Randomness(2))
    assert made.counts.shape == (11, 4)
    assert abs(made.counts[-1].sum() - 10_000) < 200
    assert abs(made.range() - 20_000) < 200
    assert abs(made.range((0, 1), (4, 2)) - 5_000) < 200
    assert made.cdf((10, 4)) == pytest.approx(1.0)
    assert abs(made.cdf((4, 1)) - 0.25) < 0.02


# --- who pays


def test_budgets_that_add_up_rho_or_mu_are_not_charged_for_laplace_noise() -> None:
    def method(**budget: Any) -> str:
        budgets = fastdp.Budget(epsilon=2.0, neighbors="add-remove", **budget)
        made = fastdp.release_ranges(
            VALUES, EDGES, epsilon=1.0, delta=1e-6, budget=budgets, neighbors="add-remove", rng=Randomness(1)
        )
        return made.method

    assert plan_ranges((1000,), 1.0, 1e-6, "add-remove", "auto").method == "digits"
    assert method(delta=1e-5) == "digits"
    assert method() == "digits"  # which alone a budget without a delta can pay
    assert [method(delta=1e-5, theorem=theorem) for theorem in ("zcdp", "gaussian", "best")] == ["square-root"] * 3


def test_the_choice_is_the_better_one_at_the_same_price() -> None:
    """Whatever is chosen for a budget in rho has, scaled to one rho, no more noise than 1.1 times the other."""
    for bins, epsilon, relation in product((8, 300, 5_000), (0.1, 8.0), RELATIONS):
        made = {name: plan_ranges((bins,), epsilon, 1e-6, relation, name) for name in ("digits", "square-root")}
        at_one = {
            name: each.typical * next(form.rho for form in each.guarantee.forms() if not form.leak) ** 0.5
            for name, each in made.items()
        }
        chosen = auto_noise((bins,), epsilon, 1e-6, relation, "rho").method
        assert at_one[chosen] <= 1.1 * min(at_one.values())


@pytest.mark.parametrize("relation", RELATIONS)
def test_levels_of_digits_add_up_in_rho(relation: Any) -> None:
    """By the Renyi divergences of all neighbours' counts: the rho is reached by two records far apart."""
    noise = Digits.of((5,), 0.7, relation)
    rho = next(form.rho for form in noise.guarantee.forms())
    changed = 2 if relation == "replace-one" else 1
    for order in (1.01, 2.0, 8.0, 100.0):
        spent = 0.0
        for plan in noise.plans:
            q, k = exp(-1 / plan.scale), np.arange(-400, 401)
            p = (1 - q) / (1 + q) * q ** np.abs(k)
            other = (1 - q) / (1 + q) * q ** np.abs(k - 1)
            spent += changed * log(np.sum(p * (p / other) ** (order - 1))) / (order - 1)
        assert spent <= rho * order
        if order < 1.1:
            assert spent > 0.9 * rho * order
    assert rho <= 1.04 * rho_of_pure(0.7) / changed


# --- bounds


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["digits", "square-root"])
def test_bounds_are_solved_for_n_and_epsilon(method: Any, relation: Any) -> None:
    given: dict[str, Any] = {"delta": 1e-6, "method": method, "neighbors": relation}
    alpha = fastdp.bounds.release_ranges(50_000, EDGES, epsilon=1.0, **given)
    n = fastdp.bounds.release_ranges_n(EDGES, alpha=alpha, epsilon=1.0, **given)
    assert n == 50_000
    epsilon = fastdp.bounds.release_ranges_epsilon(50_000, EDGES, alpha=alpha, **given)
    assert epsilon == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(ValueError, match="alpha=1e-300: is out of reach"):
        fastdp.bounds.release_ranges_epsilon(50_000, EDGES, alpha=1e-300, **given)


def test_the_choice_is_by_public_numbers() -> None:
    chosen = {
        (m, epsilon, relation): plan_ranges((m,), epsilon, 1e-6, relation, "auto").method
        for m in (64, 4096, 2**16) for epsilon in (0.1, 1.0, 10.0) for relation in RELATIONS
    }  # fmt: skip
    assert chosen[4096, 1.0, "add-remove"] == "digits"
    assert chosen[2**16, 0.1, "replace-one"] == "square-root"
    assert chosen[64, 10.0, "replace-one"] == "digits"
    assert plan_ranges((2**16,), 0.1, 0.0, "replace-one", "auto").method == "digits"
