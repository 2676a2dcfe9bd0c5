"""Planned noise (fastdp/answering/residual_*.py): prices by enumeration, the worst pair, the guarantee, the law."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Domain, Randomness, marginals
from fastdp.answering import residual_prices as prices
from fastdp.answering.component_metric import ComponentMetric
from fastdp.answering.least_squares_fit import LeastSquares
from fastdp.answering.marginal_transform import as_tables
from fastdp.answering.queries.marginals import Marginals
from fastdp.answering.residual_measurement import residuals_of
from fastdp.answering.residual_plan import plan_residuals
from fastdp.answering.residual_prices import distance_square, worst_pair
from fastdp.answering.table_noise import EqualNoise, PlannedNoise, plan_noise
from fastdp.privacy.gaussian_curve import nearly_delta
from tests.conftest import Watched
from tests.oracles import tables as oracle

BINARY, MIXED = Domain.binary(4), Domain(a=3, b=2, c=4, d=1, e=2)
WORKLOADS = [
    marginals(BINARY, 2),
    marginals(BINARY, 3),
    marginals(MIXED, 2),
    Marginals(BINARY, [["v1", "v2"], ["v2", "v3"], ["v3", "v4"]]),
    Marginals(MIXED, [["a", "b", "c"], ["a", "e"], ["d"], []]),
    Marginals(Domain(a=5), [["a"]]),
]


def sets_of(workload: Marginals, *, known: bool) -> list[tuple[int, ...]]:
    sizes = workload.domain.sizes
    return [S for S in LeastSquares(workload).place if all(sizes[p] > 1 for p in S) and (S or not known)]


def records_of(domain: Domain) -> list[tuple[int, ...]]:
    return list(product(*map(range, domain.sizes)))


def pairs_of(domain: Domain, neighbors: str) -> list[Any]:
    """All pairs of neighbours, up to records that they share: (one,), or (one, another)."""
    records = records_of(domain)
    return [(x,) for x in records] if neighbors == "add-remove" else list(combinations(records, 2))


# --- theorem 1 and 2: what the residual of a noisy table costs


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2), (3, 2), (2, 2, 2), (3, 4, 2), (5, 2)])
@pytest.mark.parametrize("bits", [0, 1, 3, 9])
def test_the_distance_is_that_of_a_vector_that_differs_by_what_is_forgotten(shape: Any, bits: int) -> None:
    """Theorem 2: for all pairs of cells, of records more or less and of replaced ones."""
    cells = list(np.ndindex(*shape))
    vectors = {x: oracle.near_residual(shape, x, bits) for x in cells}
    for x, vector in vectors.items():
        forgotten = vector.copy()
        forgotten[x] -= 2**bits
        assert not oracle.differences(forgotten).any()  # so H cannot see it
        assert (vector**2).sum() == distance_square(shape, bits)
    for x, y in product(cells, cells):
        differ = sum(1 << i for i in range(len(shape)) if x[i] != y[i])
        assert ((vectors[x] - vectors[y]) ** 2).sum() == distance_square(shape, bits, differ)
    ideal = 4**bits * math.prod(1 - Fraction(1, size) for size in shape)
    assert distance_square(shape, bits) >= ideal
    if bits >= 9:
        assert distance_square(shape, bits) <= ideal * (1 + Fraction(1, 100))
    if set(shape) == {2} and bits >= len(shape):
        assert distance_square(shape, bits) == ideal  # parities: no rounding


def renyi_two(one: dict[Any, float], other: dict[Any, float]) -> float:
    return math.log(sum(p * p / other[y] for y, p in one.items() if y in other))


SMALL = [
    ((2,), 0, 0.7),
    ((2,), 1, 0.7),
    ((3,), 0, 0.6),
    ((3,), 1, 1.1),
    ((3,), 2, 1.0),
    ((2, 2), 0, 0.5),
    ((2, 2), 1, 0.7),
]


@pytest.mark.parametrize(("shape", "bits", "sigma"), SMALL)
def test_no_divergence_exceeds_its_price(shape: Any, bits: int, sigma: float) -> None:
    """Theorem 1, by the laws of residuals themselves: D_2 <= distance^2 / sigma^2 for all pairs of both relations."""
    cells = list(np.ndindex(*shape))
    nothing = np.zeros(shape, int)
    laws = {}
    for x in cells:
        table = nothing.copy()
        table[x] = 2**bits
        laws[x] = oracle.residual_law(table, sigma, 2**bits)
    before, largest = oracle.residual_law(nothing, sigma, 2**bits), 0.0
    for x in cells:
        price = distance_square(shape, bits) / sigma**2
        found = max(renyi_two(laws[x], before), renyi_two(before, laws[x]))
        assert found <= price * (1 + 1e-9)
        largest = max(largest, found / price)
        for y in cells:
            differ = sum(1 << i for i in range(len(shape)) if x[i] != y[i])
            if differ:
                assert renyi_two(laws[x], laws[y]) <= distance_square(shape, bits, differ) / sigma**2 * (1 + 1e-9)
    assert largest > (0.95 if bits == 2 else 0.25)


def test_a_price_without_its_rounding_is_too_low() -> None:
    """A mutant: on a coarse grid the residual of three values costs more than (1 - 1/3) of its table."""
    table = np.array([1, 0, 0])
    found = renyi_two(oracle.residual_law(table, 0.45, 1), oracle.residual_law(0 * table, 0.45, 1))
    assert found > (1 - 1 / 3) / 0.45**2 * 1.04
    assert found <= distance_square((3,), 0) / 0.45**2


# --- theorem 3: the worst pair


@lru_cache(None)
def near_residual(shape: tuple[int, ...], cell: tuple[int, ...], bits: int) -> np.ndarray:
    return oracle.near_residual(shape, cell, bits).reshape(-1).astype(float)


def brute_force(sets: Any, domain: Domain, bits: int, numbers: Any, neighbors: str) -> float:
    worst = 0.0
    for pair in pairs_of(domain, neighbors):
        total = 0.0
        for S, number in zip(sets, numbers, strict=True):
            shape = tuple(domain.sizes[p] for p in S)
            at = [tuple(x[p] for p in S) for x in pair]
            moved = near_residual(shape, at[0], bits)
            if len(at) == 2:
                moved = moved - near_residual(shape, at[1], bits)
            total += number * float(moved @ moved)
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_worst_pair_is_the_worst_of_all(workload: Marginals, neighbors: Any, monkeypatch: Any) -> None:
    known, domain = neighbors == "replace-one", workload.domain
    sets, rng = sets_of(workload, known=known), np.random.default_rng(1)
    by_size = {k: 0.5 + k for k in range(4)}
    for bits in (1, 6):
        for numbers in (np.array([by_size[len(S)] for S in sets]), rng.random(len(sets)) + 0.1):
            right = brute_force(sets, domain, bits, numbers, neighbors)
            pair = worst_pair(sets, domain.sizes, bits, known=known)
            assert right <= pair.bound(numbers) <= right * (1 + 1e-9)
            assert float(pair.prices(numbers) @ numbers) == pytest.approx(right, rel=1e-9)
            with monkeypatch.context() as beyond:  # where pairs are too many, every set at its largest
                beyond.setattr(prices, "_LARGEST_GRID", 0)
                bound = worst_pair(sets, domain.sizes, bits, known=known).bound(numbers)
                assert right <= bound <= right * (1 + 1e-9) * (2.1 if known else 1)


def test_classes_and_pairs_agree() -> None:
    """All three-way tables of two sizes of attributes: by how many of each differ, and by all sets of them."""
    domain = Domain(a=2, b=2, c=3, d=3)
    sets = sets_of(marginals(domain, 3), known=True)
    kinds = [tuple(sorted(domain.sizes[p] for p in S)) for S in sets]
    numbers = np.array([1 + 0.37 * sum(kind) + 0.1 * len(kind) for kind in kinds])
    by_class = worst_pair(sets, domain.sizes, 8, known=True)
    assert type(by_class).__name__ == "_OfClasses"
    assert by_class.bound(numbers) == pytest.approx(brute_force(sets, domain, 8, numbers, "replace-one"), rel=1e-9)
    uneven = numbers * np.linspace(1, 1.1, len(sets))
    assert by_class.bound(uneven) == pytest.approx(brute_force(sets, domain, 8, uneven, "replace-one"), rel=1e-9)


def test_replaced_records_cost_up_to_four_times() -> None:
    """A mutant: R1 priced as AR, or as twice of it, is too low for one binary attribute of a set."""
    assert distance_square((2, 2), 8, 1) == 4 * distance_square((2, 2), 8)
    assert distance_square((2, 2), 8, 3) == 0


# --- theorem 4: the guarantee


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_guarantee_is_that_of_the_worst_pair(workload: Marginals, neighbors: Any) -> None:
    for epsilon in (0.1, 1.0, 10.0):
        plan = plan_residuals(LeastSquares(workload), epsilon, 1e-6, neighbors)
        numbers = 1 / np.array(plan.sigmas) ** 2
        right = brute_force(plan.sets, workload.domain, plan.bits, numbers, neighbors) / 2
        rho = min(form.rho for form in plan.guarantee.forms())
        assert right <= rho <= right * (1 + 1e-9)
        mu = math.sqrt(2 * right)
        assert nearly_delta(1 / mu, epsilon) <= 1e-6  # the Gaussian curve at this mu
        assert nearly_delta(1 / (mu * (1 + 2e-4)), epsilon) > 1e-6  # and hardly less than it may be
        assert min(plan.sigmas) > 2000
        assert plan.guarantee.neighbors == neighbors


@pytest.mark.parametrize(
    ("domain", "k", "neighbors", "gain"),
    [
        (Domain.binary(16), 2, "add-remove", 1.32), (Domain.binary(20), 3, "add-remove", 1.56),
        (Domain.binary(20), 3, "replace-one", 1.52), (Domain.binary(100), 2, "add-remove", 1.66),
    ],
)  # fmt: skip
@pytest.mark.parametrize("objective", ["maximum", "total"])
def test_how_much_less_deviation_there_is(domain: Any, k: int, neighbors: Any, gain: float, objective: Any) -> None:
    least_squares = LeastSquares(marginals(domain, k))
    planned = plan_noise(least_squares, 1.0, 1e-6, neighbors, allocation="planned", objective=objective)
    equal = plan_noise(least_squares, 1.0, 1e-6, neighbors, allocation="equal", noise="gaussian")
    variances = dict(equal.variances)
    if neighbors == "replace-one":
        variances[()] = np.zeros(1)
    before = math.sqrt(least_squares.variance_of(least_squares.workload.positions[0], variances))
    assert before / planned.sigma >= gain


def test_objectives_make_small_what_they_say() -> None:
    workload = marginals(Domain(a=30, b=20, c=2, d=2, e=3), 2)
    least_squares = LeastSquares(workload)

    def variances(objective: Any) -> np.ndarray:
        plan = plan_residuals(least_squares, 1.0, 1e-6, "replace-one", objective)
        return np.array([least_squares.variance_of(A, plan.variances) for A in workload.positions])

    by_one = variances("total")
    plan = plan_residuals(least_squares, 1.0, 1e-6, "replace-one", "total")
    assert np.allclose(least_squares.variances_of_tables(plan.variances), by_one, rtol=1e-12)
    cells = np.array([math.prod(shape) for shape in workload.shapes])
    weights = np.ones(10)
    weights[3] = 50.0
    found = {"maximum": variances("maximum"), "total": variances("total"), "weights": variances(tuple(weights))}
    assert min(found, key=lambda name: found[name].max()) == "maximum"
    assert min(found, key=lambda name: cells @ found[name]) == "total"
    assert min(found, key=lambda name: (cells * weights) @ found[name]) == "weights"
    assert found["maximum"].max() < 1.05 * found["maximum"].min()


# --- which allocation


def test_auto_goes_by_public_numbers_alone() -> None:
    least_squares = LeastSquares(marginals(Domain.binary(12), 3))

    def chosen(epsilon: float, neighbors: Any = "replace-one", **options: Any) -> type:
        return type(plan_noise(least_squares, epsilon, 1e-6, neighbors, **options))

    assert chosen(1.0, n=100_000, fit="entropic") is PlannedNoise
    assert chosen(0.01, n=1000, fit="entropic") is EqualNoise
    assert chosen(0.01, n=1000, fit="least-squares") is PlannedNoise
    assert chosen(1.0, n=100_000, fit=None) is EqualNoise
    assert chosen(10.0, "add-remove", fit="entropic") is PlannedNoise  # as for 100,000 records
    assert chosen(0.01, "add-remove", fit="entropic") is EqualNoise
    assert chosen(1.0, n=100_000, noise="laplace") is EqualNoise
    few = LeastSquares(Marginals(Domain.binary(3), [["v1"], ["v2"]]))
    assert type(plan_noise(few, 1.0, 1e-6, "add-remove")) is EqualNoise  # Laplace noise is less
    wide = LeastSquares(Marginals(Domain.binary(8), [[f"v{i}" for i in range(1, 9)]]))
    assert type(plan_noise(wide, 1.0, 1e-6, "add-remove", noise="gaussian")) is EqualNoise


def test_the_plan_does_not_see_the_records() -> None:
    """A mutant would: the same noise, guarantee and deviation whatever the records are."""
    domain, made = Domain(a=4, b=3, c=2, d=5, e=2), []
    for codes in (np.zeros((5000, 5), np.uint8), np.random.default_rng(0).integers(0, domain.sizes, (5000, 5))):
        made.append(released(domain, codes, k=3))
    assert made[0].sigma == made[1].sigma
    assert made[0].guarantee == made[1].guarantee
    assert [float(one.flat[0]) for one in made[0].deviation] == [float(one.flat[0]) for one in made[1].deviation]


# --- the law, and what is released


def released(domain: Domain, codes: Any, k: int = 2, seed: int = 1, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "allocation": "planned", "fit": "least-squares"} | options
    return fastdp.release_marginals(codes, domain, marginals(domain, k), rng=Randomness(seed=seed), **given)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_unbiased_tables_have_the_deviation_that_is_stated(neighbors: Any) -> None:
    """200 releases: squares over their variance, within 5 standard deviations (false alarm below 1e-6 a table)."""
    domain = Domain(a=3, b=2, c=4, d=1)
    codes = np.random.default_rng(5).integers(0, domain.sizes, (20_000, 4))
    squares: dict[Any, list[float]] = {}
    seeds = 200
    for seed in range(seeds):
        made = released(domain, codes, seed=seed, neighbors=neighbors, epsilon=3.0)
        for names, deviation in zip(made.workload.subsets, made.deviation, strict=True):
            exact = np.zeros(deviation.shape)
            np.add.at(exact, tuple(codes[:, domain.names.index(name)] for name in names), 1.0)
            off = made.table(names, unbiased=True) * made.n - exact
            squares.setdefault(names, []).append(float((off[(0,) * off.ndim] / (deviation.flat[0] * made.n)) ** 2))
    for names, found in squares.items():
        ratio = np.mean(found)
        assert abs(ratio - 1) < 5 * math.sqrt(2 / seeds), names
        assert abs(1.5**2 * ratio - 1) > 5 * math.sqrt(2 / seeds), "a deviation of two thirds would be found"


def test_unbiased_tables_are_consistent_and_released_ones_are_tables() -> None:
    domain = Domain(a=6, b=2, c=4, d=1, e=3)
    codes = np.random.default_rng(6).integers(0, domain.sizes, (300, 5)) // 2
    for neighbors in ("add-remove", "replace-one"):
        made = released(domain, codes, k=3, neighbors=neighbors)
        one, other = made.table(["a", "b", "c"], unbiased=True), made.table(["a", "c", "e"], unbiased=True)
        assert np.allclose(one.sum(axis=1), other.sum(axis=2))
        assert one.sum() == pytest.approx(1)
        assert min(table.min() for table in made.tables) == 0
        assert all(table.sum() == pytest.approx(1) for table in made.tables)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_tables_of_one_cell_and_attributes_of_one_value(neighbors: Any) -> None:
    domain = Domain(a=1, b=1, c=2)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "neighbors": neighbors, "allocation": "planned"}
    made = fastdp.release_marginals(np.zeros((50, 3)), domain, [["a", "b"], [], ["a", "c"]], **given)
    assert made.tables[0].shape == (1, 1)
    assert made.tables[0].sum() == pytest.approx(1)
    assert float(made.tables[1]) == pytest.approx(1)
    assert made.deviation[0].max() == 0 or neighbors == "add-remove"
    with pytest.raises(ValueError, match=r"^allocation='planned': must come with tables of at most 6 attributes"):
        fastdp.release_marginals(np.zeros((50, 3)), domain, [["a", "b"]], rng=Watched(), **given)


def test_residuals_of_integers_that_wrap_around() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 2**20, (4, 3, 2, 5))
    added = rng.integers(-(2**62), 2**62, (4, 1, 2, 5)) + np.zeros_like(counts)  # constant along an axis
    assert np.allclose(residuals_of(counts + added), residuals_of(counts))
    for axis in (1, 2, 3):
        assert np.allclose(residuals_of(counts).sum(axis=axis), 0, atol=1e-6)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_metric_of_components(workload: Marginals) -> None:
    rng, least_squares = np.random.default_rng(4), LeastSquares(workload)
    variances = {shape: rng.random(len(group)) + 0.1 for shape, group in least_squares.subsets.items()}
    metric = ComponentMetric(least_squares, variances)
    components = least_squares.solve(as_tables(rng.normal(size=len(workload)), workload))
    gap = np.concatenate([table.reshape(-1) for table in least_squares.build(components)])
    for shape, component in components.items():
        ratio = metric.unit**2 / (variances[shape] * least_squares.weight[shape])
        assert (ratio <= 1 + 1e-12).all() or 1 in shape
        component *= ratio.reshape(-1, *[1] * len(shape))
    weighted = np.concatenate([table.reshape(-1) for table in least_squares.build(components)])
    assert np.allclose(metric.apply(gap), weighted, rtol=0, atol=1e-12)
    equal = ComponentMetric(least_squares, least_squares.variances(0.25))
    assert equal.unit == pytest.approx(0.5)
    assert np.allclose(equal.apply(gap), gap, rtol=0, atol=1e-12)


# --- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allocation": "best"}, r"^allocation='best': must be one of 'auto', 'equal', 'planned'"),
        ({"delta": 0.0}, r"^allocation='planned': must come with Gaussian noise"),
        ({"noise": "laplace"}, r"^allocation='planned': must come with Gaussian noise"),
        ({"fit": None}, r"^allocation='planned': must come with a fit"),
        ({"objective": "least"}, r"^objective='least': must be one of 'maximum', 'total'"),
        ({"objective": [1.0, 2.0]}, r"^objective: float64 of shape \(2,\): must be .* each of 3 tables"),
        ({"objective": [1.0, 2.0, 0.0]}, r"^objective: must be .* finite and at most"),
        ({"objective": [1.0, 2.0, math.nan]}, r"^objective: must be .* finite and at most"),
        ({"objective": 3}, r"^objective"),
        ({"epsilon": 1e-20, "delta": 1e-50}, r"noise scale must be between"),
        ({"epsilon": 1e4}, r"^epsilon=10000.0: must be at most 700"),
    ],
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    domain = Domain(a=3, b=2, c=4)
    with pytest.raises(ValueError, match=message):
        fastdp.release_marginals(
            np.zeros((5, 3), int), domain, marginals(domain, 2),
            **({"epsilon": 1.0, "delta": 1e-6, "allocation": "planned", "rng": Watched()} | options),
        )  # fmt: skip
