"""Counts, sums, means, variances and histograms: exact integers, their sensitivities by enumeration, their noise."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.kernels.clamped_sums import SHIFT, sum_clamped_floats, sum_clamped_integers, sum_clamped_squares
from fastdp.mechanisms.noise import laplace_noise
from fastdp.statistics import means
from fastdp.statistics.clamped import Bits, ClampedColumn, Grid
from fastdp.statistics.noise import deviation_of, integer_noise_for

RELATIONS = ("replace-one", "add-remove")
WILD = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, 2**52 + 0.0, 3.0000000001]


def integer_of(x, unit, first, last):
    """q(x), in rationals."""
    if x in (np.inf, -np.inf):
        return last if x > 0 else 0
    place = min(max(Fraction(float(x)) / Fraction(unit), Fraction(first)), Fraction(first + last))
    return round(place) - first


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("unit", "first", "last"), [(1.0, -3, 7), (2.0**-20, 5, 2**26), (2.0**30, -(2**20), 2**21)])
def test_kernels_against_rationals(dtype, unit, first, last):
    rng = np.random.default_rng(4)
    low, high = first * unit, (first + last) * unit
    with np.errstate(over="ignore"):
        values = np.array([*WILD, *rng.uniform(low - 1, high + 1, 500), *(low + np.arange(9) * unit / 4)], dtype)
    wanted = [integer_of(x, unit, first, last) for x in values]
    assert sum_clamped_floats(values, unit, float(first), float(first + last)) == (sum(wanted), 0)
    total, below, above, missing = sum_clamped_squares(values, unit, float(first), float(first + last))
    assert (total, (above << SHIFT) + below, missing) == (sum(wanted), sum(q * q for q in wanted), 0)
    values[::7] = np.nan
    wanted = [integer_of(x, unit, first, last) for x in values if x == x]
    assert sum_clamped_floats(values, unit, float(first), float(first + last)) == (
        sum(wanted),
        len(values) - len(wanted),
    )


def test_integers_at_their_ends():
    values = np.array([-(2**63), 2**63 - 1, 0, 5, -5])
    assert sum_clamped_integers(values, -10, 10) == 0 + 20 + 10 + 15 + 5


def parts_of(monkeypatch, call):
    """The integers that a mean or a variance adds noise to, and the noise."""
    seen = []

    def watch(self, parts, keys, most=None):
        seen.append((tuple(parts), self.noise))
        return draw(self, parts, keys) if most is None else draw(self, parts, keys, most)

    draw = means._Share.draw
    monkeypatch.setattr(means._Share, "draw", watch)
    call()
    monkeypatch.setattr(means._Share, "draw", draw)
    return seen[0]


def data_sets(values, sizes):
    return [list(each) for n in sizes for each in combinations_with_replacement(values, n)]


def neighbors_of(records, values, relation):
    for i in range(len(records)):
        rest = records[:i] + records[i + 1 :]
        yield from ([*rest, other] for other in values) if relation == "replace-one" else [rest]


@pytest.mark.parametrize("function", [statistics.mean, statistics.variance])
@pytest.mark.parametrize(("relation", "missing"), list(product(RELATIONS, ("raise", "skip"))))
@pytest.mark.parametrize("bounds", [(0, 3), (-1.0, 1.5)])
def test_no_record_moves_the_integers_further_than_the_noise_pays_for(monkeypatch, function, relation, missing, bounds):
    """All data sets of up to four records: the worst distance is at most what is paid for, and nearly all of it."""
    values = [bounds[0] - 1, bounds[0], 0.5, bounds[1], *([np.nan] if missing == "skip" else [])]
    found = {}

    def parts(records):
        key = tuple(sorted(map(repr, records)))
        if key not in found:
            column = np.array(records, np.float64)
            found[key] = parts_of(
                monkeypatch,
                lambda: function(column, bounds=bounds, epsilon=1.0, missing=missing, neighbors=relation),
            )
        return found[key]

    worst, price = 0, None
    for records in data_sets(values, range(2, 5)):
        here, noise = parts(records)
        price = noise.plan.scale
        for other in neighbors_of(records, values, relation):
            if len(other) >= (1 if relation == "replace-one" else 0):
                there, _ = parts(other)
                worst = max(worst, sum(abs(a - b) for a, b in zip(here, there, strict=True)))
    assert worst <= price  # epsilon is 1
    assert worst >= 0.5 * price  # variances of four records reach 3/4 of w^2, and those of two 1/2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("missing", ["raise", "skip"])
def test_no_record_moves_a_sum_further(monkeypatch, relation, missing):
    bounds = (-2, 5)
    values = [-3.0, -2.0, 0.25, 5.0, *([np.nan] if missing == "skip" else [])]
    seen = {}

    def exact(records):
        plans = []
        monkeypatch.setattr(means, "integer_noise", lambda plan, key, n: plans.append(plan) or np.zeros(n, np.int64))
        value = statistics.sum(np.array(records), bounds=bounds, epsilon=1.0, missing=missing, neighbors=relation)
        return float(value), plans[0].scale, value.deviation

    worst = 0.0
    for records in data_sets(values, (1, 2, 3)):
        for other in neighbors_of(records, values, relation):
            if other or relation == "add-remove":
                a, b = (seen.setdefault(tuple(map(repr, r)), exact(r)) for r in (records, other))
                unit = a[2] / deviation_of(laplace_noise(True, 1, a[1], 1.0, None))
                worst = max(worst, abs(a[0] - b[0]) / (unit * a[1]))
    assert 1 - 1e-6 < worst <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_pay_for_two_cells_under_replacement(relation):
    noise = statistics.histogram([1.0, 2.0], [0, 2, 4], epsilon=0.5, neighbors=relation, rng=Randomness(1))
    assert noise.deviation == deviation_of(laplace_noise(True, 2, 2.0 if relation == "replace-one" else 1.0, 0.5, None))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["sum", "mean", "variance"])
def test_results_spread_as_their_deviation_says(name, relation):
    """400 releases; the sample deviation leaves 25 % on either side with a chance below 1e-6."""
    values = np.random.default_rng(8).uniform(0, 10, 2_000)
    wanted = {"sum": values.sum(), "mean": values.mean(), "variance": values.var()}[name]
    run = getattr(statistics, name)
    found = [run(values, bounds=(0, 10), epsilon=0.5, neighbors=relation, rng=Randomness(seed)) for seed in range(400)]
    errors = np.array([float(each) for each in found]) - wanted
    assert 0.75 < errors.std() / found[0].deviation < 1.25
    assert abs(errors.mean()) < 6 * found[0].deviation / 20


@pytest.mark.parametrize("relation", RELATIONS)
def test_integers_are_exact(monkeypatch, relation):
    monkeypatch.setattr(means, "integer_noise", lambda plan, key, n: np.zeros(n, np.int64))
    values = np.random.default_rng(2).integers(-(2**30), 2**30, 70_001)
    found = statistics.sum(values, bounds=(-(2**31), 2**31), epsilon=1.0, neighbors=relation)
    assert found.value == values.sum()
    assert type(found.value) is int
    mean = statistics.mean(values, bounds=(-(2**31), 2**31), epsilon=1.0, neighbors=relation)
    assert float(mean) == pytest.approx(values.mean(), rel=1e-12)
    variance = statistics.variance(values, bounds=(-(2**31), 2**31), epsilon=1.0, neighbors=relation)
    assert float(variance) == pytest.approx(values.var(), rel=1e-6)


def test_what_numbers_are_read_from(tmp_path):
    """The same bits from every library and layout."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    values = np.random.default_rng(3).normal(size=1_000)
    frame = pandas.DataFrame({"x": values})
    path = tmp_path / "x.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"x": values}), path)
    given = [values, frame["x"], frame, pyarrow.array(values), path, values[::-1][::-1], list(values)]
    for name in ("sum", "mean", "variance"):
        run = getattr(statistics, name)
        found = {float(run(each, bounds=(-3, 3), epsilon=1.0, rng=Randomness(5))) for each in given}
        assert len(found) == 1
    assert len({int(statistics.count(each, epsilon=1.0, rng=Randomness(5))) for each in given}) == 1


def test_missing_entries():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1, None, 3, 5], dtype="Int64")
    with pytest.raises(fastdp.DomainError, match="missing='skip'"):
        statistics.mean(column, bounds=(0, 6), epsilon=1.0)
    kept = statistics.mean(column, bounds=(0, 6), epsilon=1e4, missing="skip")
    assert float(kept) == pytest.approx(3, abs=0.01)
    assert int(statistics.count(column, epsilon=100.0)) == 3
    for words in (["a", None, "b", float("nan")], pandas.Series(["a", None, "b"]), np.array(["a", "b"])):
        assert int(statistics.count(words, epsilon=100.0)) == 2
    assert statistics.sum(column, bounds=(0, 6), epsilon=100.0, missing="skip").value == 9


def test_histograms_are_those_of_numpy():
    values = np.random.default_rng(6).normal(size=3_000)
    edges = np.linspace(-5, 5, 33)
    found = statistics.histogram(values, edges, epsilon=200.0)
    assert np.array_equal(found, np.histogram(values, edges)[0])
    assert np.array_equal(found.edges, edges)
    both = np.column_stack([values, values[::-1]])
    frame = {"a": both[:, 0], "b": both[:, 1]}
    found = statistics.histogram(frame, {"a": edges, "b": [-5, 0, 5]}, epsilon=200.0)
    assert np.array_equal(found.counts, np.histogram2d(*both.T, [edges, [-5, 0, 5]])[0])
    codes = (np.abs(values) * 3).astype(int)
    assert np.array_equal(statistics.bincount(codes, 20, epsilon=200.0), np.bincount(codes, minlength=20))


def test_counts_as_a_frame():
    pytest.importorskip("pandas")
    found = statistics.histogram([1.0, 3.0, 3.5], fastdp.Bins([0, 2, 4], missing=True), epsilon=200.0).to_frame()
    assert found["count"].tolist() == [1, 2, 0]
    assert str(found["values"][0]) in ("[0, 2)", "[0.0, 2.0)")
    assert found["values"].isna().tolist() == [
        False,
        False,
        True,
    ]


def test_gaussian_noise_where_it_is_less():
    small, large = (integer_noise_for(100, 100, 100, e, 1e-6, "add-remove") for e in (1e-3, 20.0))
    assert type(small.plan).__name__ == type(large.plan).__name__ == "GaussianPlan"
    assert type(integer_noise_for(1, 1, 1, 1.0, 1e-6, "add-remove").plan).__name__ == "LaplacePlan"


@pytest.mark.parametrize("given", [{"rho": 0.5}, {"mu": 1.0}, {"epsilon": 2.0, "delta": 1e-5, "theorem": "zcdp"}])
def test_no_laplace_noise_where_a_budget_adds_up_rhos(given):
    """What is charged is a rho that Gaussian noise has: epsilon^2 / 2 of Laplace noise is some ten times as much."""
    runs = [
        lambda **options: statistics.count(np.ones(9), **options),
        lambda **options: statistics.histogram(np.ones(9), [0, 2], **options),
        *(
            lambda run=run, **options: run(np.ones(9), bounds=(0, 1), **options)
            for run in (statistics.sum, statistics.mean, statistics.variance)
        ),
    ]
    for run in runs:
        with fastdp.Budget(**given) as budget:
            run(epsilon=0.5, delta=1e-6)
        (row,) = budget.releases
        assert row.guarantee.to_zcdp().rho < 0.5**2 / 2 / 4
        assert row.guarantee.to_approx(1e-6).epsilon <= 0.5
        assert min(form.mu for form in row.guarantee.forms()) < 1


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 1), r"^bounds=\(1, 1\): must be in increasing order$"),
        ([2, 1], r"^bounds=\(2, 1\): must be in increasing order$"),
        ((1,), "two numbers"),
        ("ab", "two numbers"),
        ((0, np.inf), r"^bounds=\(0, inf\): must be finite"),
        ((np.float32("nan"), 0), r"^bounds=\(.*nan.*, 0\): must be finite"),
        ((0, 10**400), r"^bounds=\(0, <int of .* bits>\): must be finite"),
        ((-1e-200, 0), r"must be finite, and each 0 or from 2\^-400"),
        ((1e300, 1e300 * (1 + 1e-16)), "bounds="),
        ((True, 2), "two numbers"),
    ],
)
def test_bounds_that_are_none(bounds, message):
    with pytest.raises(ValueError, match=message):
        statistics.mean([1.0, 2.0], bounds=bounds, epsilon=1.0)


def test_strings_are_not_called_missing_entries():
    words = np.array(["1", "2"], object)
    with pytest.raises(fastdp.DomainError, match="or what is no number, such as strings"):
        statistics.mean(words, bounds=(0, 3), epsilon=1.0)


def test_one_record_and_none():
    assert 0 <= float(statistics.mean([1.0], bounds=(0, 2), epsilon=1.0)) <= 2
    assert statistics.variance([1.0], bounds=(0, 2), epsilon=1.0).value >= 0
    with pytest.raises(ValueError, match="at least one"):
        statistics.mean(np.zeros(0), bounds=(0, 2), epsilon=1.0)
    for run in (statistics.sum, statistics.mean, statistics.variance):
        run(np.zeros(0), bounds=(0, 2), epsilon=1.0, neighbors="add-remove")
    assert int(statistics.count(np.zeros(0), epsilon=100.0, neighbors="add-remove")) == 0


def test_charges():
    with fastdp.Budget(epsilon=3.0) as budget:
        statistics.mean([1.0, 2.0], bounds=(0, 2), epsilon=1.0)
        with pytest.raises(fastdp.DomainError):
            statistics.sum([1.0, np.nan], bounds=(0, 2), epsilon=1.0)
        statistics.histogram([1.0], [0, 1, 2], epsilon=1.0)
    assert [row.mechanism for row in budget.releases] == ["mean", "histogram"]


@pytest.mark.parametrize("bits", [8, 30, 45])
def test_grids_hold_their_bounds(bits):
    for bounds in ((0.1, 0.7), (-1e9, 1e9 + 0.5), (1e9, 1e9 + 1), (-3e-200 * 1e150, 2e-50)):
        grid = Grid.of(bounds, "f", Bits(bits, bits))
        assert max(abs(grid.first), abs(grid.first + grid.last)) <= 2**50
        assert grid.last <= 2**bits
        assert abs(grid.value(0) - bounds[0]) <= grid.unit
        assert abs(grid.value(grid.last) - bounds[1]) <= grid.unit


def test_how_fine_a_grid_is_goes_by_public_numbers():
    for n in (1, 100, 10**5):
        column = ClampedColumn(np.zeros(n), "raise", "add-remove")
        assert column.bits(1.0) == (30, 32) == ClampedColumn(np.zeros(n), "skip", "replace-one").bits(1.0)
