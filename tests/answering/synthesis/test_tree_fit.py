"""The fit on junction trees (tree_fit.py) against nonnegative least squares over all cells."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Domain, marginals
from fastdp.answering.least_squares_fit import least_squares_of
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.measured import Measured, Residuals, Zeros
from fastdp.answering.synthesis.tree_fit import fit_residuals, fit_tree
from fastdp.answering.synthesis.whole_workload import _join
from tests.oracles import junction_trees as oracle


def _noisy(tree: JunctionTree, rng: np.random.Generator, n: float, sigma: float) -> list[Measured]:
    joint = rng.dirichlet(np.full(int(np.prod(tree.sizes)), 0.3)).reshape(tree.sizes) * n
    tables = sorted({pair for clique in tree.cliques for k in (1, 2, 3) for pair in combinations(clique, k)})
    found = []
    for i, table in enumerate(tables):
        scale = sigma * (1 + i % 3)
        exact = oracle.marginal(joint, table)
        found.append(Measured(table, exact + scale * rng.normal(size=exact.shape), scale))
    return found


def _square(tree: JunctionTree, measured: list[Measured], fit: Any, total: float) -> float:
    gaps = [(total * fit.distribution.marginal(m.columns) - m.values) / m.sigma for m in measured]
    return float(sum((gap**2).sum() for gap in gaps))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sigma", [3.0, 100.0])
def test_no_distribution_is_closer(seed: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    tree = JunctionTree([3, 4, 2, 3, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)])
    measured, n = _noisy(tree, rng, 1000.0, sigma), 1000.0
    least = oracle.nearest(tree.sizes, [((m.columns, m.values), m.sigma) for m in measured], n)
    cells = sum(m.values.size for m in measured)
    fit = fit_tree(tree, measured, n, tolerance=1e-4, steps=20_000, converged=True)
    # some tables repeat others: the residual counts them all
    square = _square(tree, measured, fit, n)
    assert fit.residual * cells == pytest.approx(square, rel=1e-9)
    assert least * (1 - 1e-9) <= square <= least + 1e-3 * cells
    assert fit.left <= 1e-4


def test_a_fit_that_stops_early_is_seen() -> None:
    tree = JunctionTree([3, 4, 2], [(0, 1), (1, 2)])
    measured = _noisy(tree, np.random.default_rng(0), 1000.0, 1.0)
    short = fit_tree(tree, measured, 1000.0, steps=3, converged=True)
    assert short.steps == 3
    assert short.residual > 2 * fit_tree(tree, measured, 1000.0, converged=True).residual


def _risk(measured: list[Measured], joint: Any, fit: Any, total: float) -> float:
    """The mean square distance from the tables without noise, in units of the variance of the noise."""
    gaps = [
        total * (fit.distribution.marginal(m.columns) - oracle.marginal(joint, m.columns)) / m.sigma for m in measured
    ]
    return float(np.mean(np.concatenate([gap.reshape(-1) for gap in gaps]) ** 2))


@pytest.mark.parametrize("sigma", [5.0, 30.0])
def test_the_descent_ends_where_tables_are_nearest_to_those_without_noise(sigma: float) -> None:
    rng = np.random.default_rng(7)
    tree, n = JunctionTree([20, 15, 12], [(0, 1), (1, 2)]), 3000.0
    joint = (rng.dirichlet(np.full(300, 0.2)).reshape(20, 15, 1) + 0.01) * (rng.random((1, 15, 12)) ** 3)
    joint /= joint.sum()
    measured = [
        Measured(c, n * oracle.marginal(joint, c) + sigma * rng.normal(size=[tree.sizes[p] for p in c]), sigma)
        for c in ((0, 1), (1, 2), (0,), (1,))
    ]
    fit = fit_tree(tree, measured, n)
    risk = _risk(measured, joint, fit, n)
    cells = sum(m.values.size for m in measured)
    assert fit.risk == pytest.approx(risk, abs=4 * np.sqrt(2 / cells)), "unbiased, with the deviation of a square"
    least = min(
        _risk(measured, joint, fit_tree(tree, measured, n, steps=k, converged=True), n) for k in (4, 8, 16, 32, 64, 128)
    )
    assert risk < 1.15 * least
    assert risk < _risk(measured, joint, fit_tree(tree, measured, n, tolerance=1e-3, converged=True), n)


def test_a_descent_that_overshoots_goes_on() -> None:
    # counts a thousand times the noise: momentum leads past the target and back, long before any noise is followed
    rng = np.random.default_rng(0)
    d, n, sigma = 100, 200_000.0, 50.0
    pairs = [(int(rng.integers(max(0, j - 5), j)), j) for j in range(1, d)]
    tree = JunctionTree([2] * d, pairs)
    ones, measured = [0.4], []
    for a, b in pairs:
        given = np.array([0.15, 0.85]) if b % 3 else np.array([0.1, 0.82])  # that b is 1, for each value of a
        table = n * np.array([(1 - ones[a]), ones[a]])[:, None] * np.stack([1 - given, given], axis=1)
        ones.append(float(table[:, 1].sum()) / n)
        measured.append(Measured((a, b), table + sigma * rng.normal(size=(2, 2)), sigma))
    fit = fit_tree(tree, measured, n)
    assert fit.residual < 1.5
    assert fit.risk is not None
    assert fit.risk < 1.0
    assert fit_tree(tree, measured, n, converged=True).residual < fit.residual + 0.02


def test_tables_that_follow_all_noise_have_all_freedom() -> None:
    # one column, no value near 0: the fit takes off what the known total excludes, one dimension of 40
    rng = np.random.default_rng(0)
    values = rng.uniform(900.0, 1100.0, 40)
    fit = fit_tree(JunctionTree([40], []), [Measured((0,), values, 1.0)], values.sum(), tolerance=1e-12)
    assert fit.risk == pytest.approx(fit.residual + 2 * 39 / 40 - 1, abs=0.01)


def test_exact_tables_of_a_distribution_on_the_tree_give_it_back() -> None:
    tree = JunctionTree([3, 4, 2], [(0, 1), (1, 2)])
    rng = np.random.default_rng(3)
    joint = rng.random((3, 4, 1)) * rng.random((1, 4, 2))
    joint /= joint.sum()
    measured = [Measured(c, 1e4 * oracle.marginal(joint, c), 1.0) for c in ((0, 1), (1, 2))]
    fit = fit_tree(tree, measured, 1e4, tolerance=1e-10, steps=20_000, converged=True)
    assert np.abs(fit.distribution.marginal((0, 1, 2)) - joint).max() < 1e-6


def test_several_measurements_of_one_table_count_by_their_precision() -> None:
    tree = JunctionTree([2], [])
    measured = [Measured((0,), np.array([70.0, 30.0]), 1.0), Measured((0,), np.array([40, 60]), 2.0)]
    fit = fit_tree(tree, measured, 100.0, tolerance=1e-9, converged=True)
    found = fit.distribution.marginal((0,))
    assert found == pytest.approx([0.64, 0.36], abs=1e-4)


def test_columns_that_nobody_measured_are_uniform() -> None:
    fit = fit_tree(JunctionTree([4, 1, 2], [(0, 2)]), [], 10.0)
    assert fit.steps == 0
    assert np.abs(fit.distribution.marginal((0, 1, 2)) - 1 / 8).max() < 1e-15


def test_as_many_values_as_records() -> None:
    n = 5000
    tree = JunctionTree([n, 1, 2], [(0, 2), (1,)])
    rng = np.random.default_rng(5)
    measured = [
        Measured((0,), rng.integers(0, 3, n), 1.0), Measured((2,), np.array([n / 4, 3 * n / 4]), 1.0),
        Measured((1,), np.array([n]), 1.0), Measured((0, 2), rng.normal(0.5, 5.0, (n, 2)), 5.0),
    ]  # fmt: skip
    fit = fit_tree(tree, measured, n)
    assert fit.distribution.marginal((2,)) == pytest.approx([0.25, 0.75], abs=0.01)
    assert fit.distribution.marginal((0, 1)).shape == (n, 1)


@pytest.mark.parametrize("columns", [(0, 1), (1, 2), (2,)])
def test_zeros_hold_no_record(columns: tuple[int, ...]) -> None:
    tree = JunctionTree([3, 4, 2], [(0, 1), (1, 2)])
    rng = np.random.default_rng(1)
    cells = rng.random([tree.sizes[p] for p in columns]) < 0.4
    cells.flat[0], cells.flat[-1] = True, False
    fit = fit_tree(tree, _noisy(tree, rng, 100.0, 5.0), 100.0, zeros=[Zeros(columns, cells)])
    found = fit.distribution.marginal(columns)
    assert (found[cells] == 0).all()
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_zeros_that_exclude_everything_are_an_error() -> None:
    tree = JunctionTree([2, 2, 2], [(0, 1), (1, 2)])
    left = Zeros((0, 1), np.array([[True, False], [True, False]]))
    right = Zeros((1, 2), np.array([[False, False], [True, True]]))
    fit_tree(tree, [], 1.0, zeros=[left])
    with pytest.raises(ValueError, match="zeros: exclude all cells: must leave at least one"):
        fit_tree(tree, [], 1.0, zeros=[left, right])


def test_a_fit_goes_on_from_another_one_on_another_tree() -> None:
    rng = np.random.default_rng(2)
    tree, wider = JunctionTree([3, 4, 2, 2], [(0, 1), (1, 2)]), JunctionTree([3, 4, 2, 2], [(0, 1, 2), (2, 3)])
    measured = _noisy(tree, rng, 1000.0, 5.0)
    first = fit_tree(tree, measured, 1000.0, tolerance=1e-5, steps=20_000, converged=True)
    again = fit_tree(wider, measured, 1000.0, start=first.distribution, tolerance=1e-3, converged=True)
    assert again.steps <= 64
    assert again.residual <= first.residual + 1e-3
    assert np.abs(again.distribution.marginal((0, 2)) - first.distribution.marginal((0, 2))).max() < 0.01


def test_progress_and_the_same_bits_for_any_number_of_threads() -> None:
    tree = JunctionTree([1 << 10, 1 << 11, 2], [(0, 1), (1, 2)])
    rng = np.random.default_rng(4)
    measured = [Measured((0,), rng.random(1 << 10), 0.1), Measured((1, 2), rng.random((1 << 11, 2)), 0.1)]
    before, found, seen = fastdp.get_num_threads(), [], []
    try:
        for threads in (1, 2):
            fastdp.set_num_threads(threads)
            fit = fit_tree(tree, measured, 1000.0, steps=2, report=lambda *each: seen.append(each))
            found.append(fit.distribution.marginal((1, 2)).tobytes())
    finally:
        fastdp.set_num_threads(before)
    assert found[0] == found[1]
    assert [each[:2] for each in seen] == [(2, 2), (2, 2)] * 2


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (Measured((1, 0), np.zeros((2, 2)), 1.0), r"columns=\(1, 0\): must be positions below 3, ascending"),
        (Measured((0, 1), np.zeros((2, 3)), 1.0), r"shape \(2, 3\): must be \(2, 2\)"),
        (Measured((0, 1), np.zeros((2, 2)), 0.0), r"sigma=0\.0: must be > 0 and finite"),
        (Measured((0, 2), np.zeros((2, 2)), 1.0), r"columns=\(0, 2\): must lie within a clique"),
        (Measured((0, 1), np.full((2, 2), np.nan), 1.0), "values: must be finite"),
    ],
)
def test_bad_measurements(measured: Measured, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_tree(JunctionTree([2, 2, 2], [(0, 1), (1, 2)]), [measured], 10.0)


def test_bad_sizes() -> None:
    with pytest.raises(ValueError, match=r"a clique of 8,388,608 cells: must be at most 2\^22"):
        fit_tree(JunctionTree([2] * 23, [range(23)]), [], 1.0)
    with pytest.raises(ValueError, match=r"total=0\.0: must be > 0"):
        fit_tree(JunctionTree([2], []), [], 0.0)


# --- tables whose components have noise of their own


def _residuals(scale: float, seed: int, sizes: tuple[int, ...] = (3, 2, 4)) -> tuple[Residuals, list[Any], Any]:
    """Components of all pairs of a small distribution, with noise that differs from component to component."""
    rng = np.random.default_rng(seed)
    domain = Domain(dict(zip("abc", sizes, strict=True)))
    counts = rng.integers(20, 400, sizes).astype(float)
    least_squares = least_squares_of(marginals(domain, 2))
    exact = [counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=0)]
    components = least_squares.solve(exact)
    variances = {shape: scale**2 * rng.uniform(0.5, 4, len(values)) for shape, values in components.items()}
    for shape, values in components.items():
        noise = rng.normal(size=values.shape) * np.sqrt(variances[shape]).reshape(-1, *[1] * len(shape))
        for axis in range(1, noise.ndim):
            noise -= noise.mean(axis=axis, keepdims=True)
        components[shape] = values + noise
    return Residuals(least_squares, components, variances), exact, counts


def test_residuals_without_noise_give_their_tables() -> None:
    residuals, exact, counts = _residuals(1e-3, 1)
    fit = fit_residuals(JunctionTree((3, 2, 4), [(0, 1, 2)]), residuals, counts.sum())
    for columns, table in zip([(0, 1), (0, 2), (1, 2)], exact, strict=True):
        assert np.allclose(fit.distribution.marginal(columns) * counts.sum(), table, atol=1.0)


def test_the_risk_of_residuals_is_estimated() -> None:
    risks, errors = [], []
    for seed in range(12):
        residuals, exact, counts = _residuals(300.0, seed, (8, 6, 9))
        residuals.components[()][0] = counts.sum()  # known
        fit = fit_residuals(JunctionTree((8, 6, 9), [(0, 1, 2)]), residuals, counts.sum())
        found = [fit.distribution.marginal(columns) * counts.sum() for columns in [(0, 1), (0, 2), (1, 2)]]
        gap = residuals.least_squares.solve([a - b for a, b in zip(found, exact, strict=True)])
        square = sum(
            float((values**2 / residuals.variances[shape].reshape(-1, *[1] * len(shape))).sum())
            for shape, values in gap.items()
        )
        errors.append(square / residuals.least_squares.rank)
        risks.append(fit.risk)
    assert 0.1 < np.mean(errors) < 0.9  # stopping early is better than following the noise
    assert abs(np.mean(risks) - np.mean(errors)) < 0.15


def test_zeros_hold_for_residuals() -> None:
    residuals, _, counts = _residuals(10.0, 3)
    cells = np.zeros((3, 2), bool)
    cells[1, 1] = True
    fit = fit_residuals(
        JunctionTree((3, 2, 4), [(0, 1, 2)]), residuals, counts.sum(), zeros=[Zeros((0, 1), cells)]
    )  # fmt: skip
    assert fit.distribution.marginal((0, 1))[1, 1] == 0.0


def test_what_was_measured_twice_is_joined() -> None:
    residuals, _, counts = _residuals(10.0, 3)
    least_squares, sigma = residuals.least_squares, 5.0
    components = {shape: values.copy() for shape, values in residuals.components.items()}
    variances = {shape: values.copy() for shape, values in residuals.variances.items()}
    place, before = least_squares.place[(0,)], variances[(3,)][0]
    assert place == 0
    one = counts.sum(axis=(1, 2))
    _join((3,), place, one - one.mean(), sigma**-2, components, variances)
    share = before / (before + sigma**2)
    wanted = share * (one - one.mean()) + (1 - share) * residuals.components[(3,)][0]
    assert np.allclose(components[(3,)][0], wanted)
    assert variances[(3,)][0] == pytest.approx(before * sigma**2 / (before + sigma**2))
