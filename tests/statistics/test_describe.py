"""Summaries of frames: what a record moves, how the budget is shared out, what is told of the noise, how it prints."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import inf, isqrt

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.mechanisms.noise import gaussian_noise, laplace_noise
from fastdp.randomness.noise_draws import integer_noise
from fastdp.statistics import described_columns
from fastdp.statistics.clamped import ClampedColumn, Grid, Sums
from fastdp.statistics.moments import MomentSums
from fastdp.statistics.shares import Errors, prices_of

RELATIONS = ("replace-one", "add-remove")
WIDE = 8  # a multiple of 4: the worst replacement is by three quarters of it


def frame(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(17, 90, n),
        "hours": rng.normal(40, 12, n),
        "answer": rng.choice(["yes", "no", "perhaps"], n, p=[0.5, 0.3, 0.2]),
    }


BOUNDS = {"age": (0, 120), "hours": (0, 100)}
ANSWERS = {"answer": ["yes", "no", "perhaps"]}


# --- what a record moves


def exact(moments, records):
    there = [q for q in records if q is not None]
    return moments.exact(Sums(sum(there), sum(q * q for q in there), len(there)))


def neighbors_of(records, values, relation):
    for i in range(len(records)):
        rest = records[:i] + records[i + 1 :]
        yield from ([*rest, other] for other in values) if relation == "replace-one" else [rest]


@pytest.mark.parametrize("finer", [Fraction(1), Fraction(2**10), Fraction(1, 4)])
@pytest.mark.parametrize(("relation", "private"), [("replace-one", False), ("replace-one", True), ("add-remove", True)])
def test_no_record_moves_the_sums_further_than_the_noise_pays_for(relation, private, finer):
    """All data sets of up to three records. Prices of another relation, or of a public size, would be too low."""
    grid = Grid(1.0, 0, WIDE, integers=True)
    values = [*range(WIDE + 1), *([None] if private else [])]
    worst, square = 0, 0
    for n in (1, 2, 3):
        moments = MomentSums(grid, finer, None if private else n)
        for records in combinations_with_replacement(values, n):
            here = exact(moments, records)
            for other in neighbors_of(list(records), values, relation):
                steps = [a - b for a, b in zip(here, exact(moments, other), strict=True)]
                worst, square = max(worst, sum(map(abs, steps))), max(square, sum(step * step for step in steps))
    l1, squared_l2 = moments.moved(relation)
    assert worst <= l1
    assert square <= squared_l2
    if finer > 1:
        assert worst > 0.99 * l1
        assert square > 0.99 * squared_l2
        if private and relation == "replace-one":
            assert worst > 1.9 * moments.moved("add-remove")[0]
            assert worst > MomentSums(grid, finer, 3).moved(relation)[0]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("missing", ["raise", "skip"])
def test_sums_of_a_column_are_those_of_its_integers(relation, missing):
    rng = np.random.default_rng(3)
    values = rng.normal(0, 2, 500)
    if missing == "skip":
        values[::9] = np.nan
    column = ClampedColumn(values, missing, relation)
    moments = MomentSums.of(column, (-3, 5), 1.0)
    found = moments.exact(column.squares(moments.grid))
    whole = [int(q) for q in column.integers(column.rows.one_block(), moments.grid)[0]]
    kept = [q for q, x in zip(whole, values, strict=True) if x == x]
    w = moments.grid.last
    each = [(w * q, 2 * q * (w - q)) for q in kept]
    if moments.n is None:
        each = [((w - q) ** 2, 2 * q * (w - q), q * q) for q in kept]
    assert found == [int(sum(column) * moments.finer // 1) for column in zip(*each, strict=True)]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("n", "relation"), [(2_000, "replace-one"), (None, "replace-one"), (None, "add-remove")])
@pytest.mark.parametrize("low", [-60.0, 0.0])
def test_results_spread_as_their_deviations_say(kind, n, relation, low):
    """500 draws; the sample deviation leaves 20 % on either side with a chance below 1e-6 (Laplace: kurtosis 6)."""
    values = np.random.default_rng(8).normal(30, 10, 2_000).clip(low, 100)
    column = ClampedColumn(values, "raise" if n else "skip", relation)
    moments = MomentSums.of(column, (low, 100.0), 0.5)
    l1, squared = moments.moved(relation)
    noise = (
        laplace_noise(True, moments.entries, float(l1), 0.5, None, relation)
        if kind == "laplace"
        else gaussian_noise(True, moments.entries, float(isqrt(squared) + 1), 0.1, None, None, None, relation)
    )
    sums = moments.exact(column.squares(moments.grid))
    draws = integer_noise(noise.plan, Randomness(1).key(), 500 * len(sums)).reshape(500, -1)
    found = [moments.estimates([int(x) for x in np.array(sums) + each], noise) for each in draws]
    wanted = (len(values), values.mean(), values.std())
    for place, truth in enumerate(wanted):
        errors = np.array([each[place].value for each in found]) - truth
        deviation = float(np.median([each[place].deviation for each in found]))
        if not place and n:
            assert not errors.any()
            continue
        assert 0.8 < errors.std() / deviation < 1.2
        assert abs(errors.mean()) < 6 * deviation / 500**0.5 + deviation / 20  # a square root is not linear


def test_moments_cost_what_a_mean_costs():
    values = np.random.default_rng(8).normal(50, 15, 5_000)
    for relation, missing in (("replace-one", "raise"), ("replace-one", "skip"), ("add-remove", "raise")):
        options = {"epsilon": 0.5, "missing": missing, "neighbors": relation}
        mean = statistics.mean(values, bounds=(0, 100), **options)
        spread = statistics.variance(values, bounds=(0, 100), **options)
        (column,) = statistics.describe({"x": values}, {"x": (0, 100)}, qs=[], **options).numbers.values()
        assert column.deviations["mean"] < 1.13 * mean.deviation
        assert 2 * column.values["std"] * column.deviations["std"] < 0.65 * spread.deviation


# --- how the budget is shared out


def test_no_other_shares_have_a_smaller_sum_of_errors():
    rng = np.random.default_rng(5)
    errors = [Errors(1.4, 0.7), Errors(6.5, 1.6), Errors(2.8, 1.0), Errors(0.2, 5.0)]
    for delta, attribute, power in ((0.0, "epsilon", 1.0), (1e-6, "rho", 0.5)):
        prices = [getattr(each, attribute) for each in prices_of(errors, 1.0, delta, concentrated=True)]
        of_each = [each.pure if attribute == "epsilon" else each.concentrated for each in errors]

        def total(paid, of_each=of_each, power=power):
            return sum(error / price**power for error, price in zip(of_each, paid, strict=True))

        for _ in range(200):
            other = np.array(prices) * rng.uniform(0.5, 2, 4)
            assert total(prices) <= total(other * (sum(prices) / other.sum())) * (1 + 1e-9)
        assert sum(map(Fraction, prices)) <= Fraction(1.0) if attribute == "epsilon" else 1


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_shares_are_all_of_the_budget_and_no_more(count):
    rng = np.random.default_rng(count)
    errors = [Errors(*pair) for pair in rng.uniform(0.1, 9, (count, 2)).tolist()]
    epsilons = [each.epsilon for each in prices_of(errors, 0.3, 0.0, concentrated=False)]
    assert 0.3 * (1 - count * 1e-11) <= float(sum(map(Fraction, epsilons)))
    assert sum(map(Fraction, epsilons)) <= Fraction(3, 10)


def test_rhos_where_errors_are_smaller_with_them():
    many, one = [Errors(2.8, 1.0)] * 50, [Errors(2.8, 1.0)]
    assert prices_of(many, 1.0, 1e-6, concentrated=False)[0].rho is not None
    assert prices_of(one, 1.0, 1e-6, concentrated=False)[0].epsilon == 1.0
    assert prices_of(one, 1.0, 1e-6, concentrated=True)[0].rho is not None
    assert prices_of(one, 1.0, 0.0, concentrated=True)[0].epsilon == 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("missing", ["raise", "skip"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("qs", [(0.25, 0.5, 0.75), (0.5,), (), tuple(np.arange(1, 20) / 20)])
def test_what_is_charged_covers_every_column(relation, missing, delta, qs):
    with fastdp.Budget(epsilon=1.0, delta=delta, neighbors=relation) as budget:
        found = statistics.describe(
            frame(), BOUNDS, ANSWERS, qs=qs, epsilon=1.0, delta=delta, missing=missing, neighbors=relation
        )
    (row,) = budget.releases
    assert (row.mechanism, row.parameters["columns"]) == ("describe", 3)
    parts = [each.guarantee for each in (*found.numbers.values(), *found.categories.values())]
    together = fastdp.compose(*parts)
    stated = fastdp.ApproxDP(1.0, delta, neighbors=relation) if delta else fastdp.PureDP(1.0, neighbors=relation)
    assert together.implies(stated)
    assert found.guarantee.implies(stated)
    spent = min(form.pure for form in together.forms())
    # of many quantiles whose method goes by a noisy number, the largest price of any method is what counts
    assert (spent if spent < inf else together.to_approx(delta).epsilon) > (0.999 if len(qs) < 4 else 0.99)


@pytest.mark.parametrize("given", [{"rho": 1.0}, {"mu": 2.0}])
def test_gaussian_noise_where_a_budget_adds_up_rhos(given):
    with fastdp.Budget(**given) as budget:
        found = statistics.describe({"x": np.arange(99)}, {"x": (0, 99)}, qs=[], epsilon=1.0, delta=1e-6)
    assert found.guarantee.to_zcdp().rho < 0.05
    assert min(form.pure for form in found["x"].guarantee.forms()) == inf
    assert len(budget.releases) == 1


# --- what is released


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("missing", ["raise", "skip"])
def test_without_noise_it_is_what_numpy_says(monkeypatch, relation, missing):
    monkeypatch.setattr(described_columns, "integer_noise", lambda plan, key, n: np.zeros(n, np.int64))
    monkeypatch.setattr(described_columns, "add_noise", lambda plan, grid, key, values, out: None)
    data = frame(20_000)
    found = statistics.describe(data, BOUNDS, ANSWERS, epsilon=5000.0, missing=missing, neighbors=relation)
    for name, (low, high) in BOUNDS.items():
        values, shown = np.clip(data[name], low, high), found[name].values
        assert shown["count"] == pytest.approx(20_000)
        assert shown["mean"] == pytest.approx(values.mean(), rel=1e-6)
        assert shown["std"] == pytest.approx(values.std(), rel=1e-5)
        for q in (25, 50, 75):
            assert shown[f"{q}%"] == pytest.approx(np.percentile(values, q), abs=0.05)
    labels, counts = np.unique(data["answer"], return_counts=True)
    released = found["answer"].to_frame()
    assert dict(zip(released["answer"], released["count"], strict=True)) == dict(zip(labels, counts, strict=True))


def test_missing_entries_and_other_labels():
    data = {"x": [1.0, None, 3.0, float("nan"), 5] * 200, "y": ["a", "b", None, "c", "a"] * 200}
    with fastdp.Budget(epsilon=1.0) as budget:
        for of_numbers, of_labels in (({"x": (0, 6)}, None), (None, {"y": ["a", "b"]})):
            with pytest.raises(fastdp.DomainError, match=r"column '[xy]': must .*pass missing='skip'"):
                statistics.describe(data, of_numbers, of_labels, epsilon=1.0)
        assert not budget.releases
    found = statistics.describe(data, {"x": (0, 6)}, {"y": ["a", None]}, epsilon=500.0, missing="skip")
    assert found["x"].values["count"] == pytest.approx(600, abs=1)
    assert found["x"].values["mean"] == pytest.approx(3, abs=0.05)
    assert np.abs(found["y"].counts - [400, 200]).max() <= 1


def test_it_prints_and_converts():
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame(frame())
    found = statistics.describe(data, BOUNDS, ANSWERS, epsilon=20.0, rng=Randomness(1))
    table = found.to_frame()
    assert list(table.index) == list(data.describe().drop(["min", "max"]).index)
    assert list(table.columns) == ["age", "hours"]
    assert found.deviations_to_frame().shape == table.shape
    text = repr(found)
    for word in ("age", "hours", "count", "std", "75%", "±", "records", "yes", "perhaps", "20-DP"):
        assert word in text
        assert word in found._repr_html_()
    assert "mean" in repr(found["age"])
    assert (len(found), list(found)) == (3, ["age", "hours", "answer"])
    for unknown in ("salary", [], memoryview(bytearray(b"age"))):
        with pytest.raises(KeyError, match="one that was described"):
            found[unknown]
    escaped = statistics.describe({"<b>": ["<i>"] * 9}, categories={"<b>": ["<i>"]}, epsilon=1.0)._repr_html_()
    assert "<b>" not in escaped
    assert "<i>" not in escaped


def test_the_same_bits_from_everything(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    data = frame()
    path = tmp_path / "people.parquet"
    table = pyarrow.table({name: pyarrow.array(column) for name, column in data.items()})
    pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=300)
    codes = pandas.DataFrame(data).astype({"answer": "category"})
    found = {
        repr(statistics.describe(each, BOUNDS, ANSWERS, epsilon=1.0, missing="skip", rng=Randomness(7)))
        for each in (data, pandas.DataFrame(data), codes, table, path)
    }
    assert len(found) == 1
    lists = {name: column.tolist() for name, column in data.items()}
    again = statistics.describe(lists, BOUNDS, ANSWERS, epsilon=1.0, missing="skip", rng=Randomness(7))
    assert again["answer"].counts.shape == (3,)  # ages of a list are floats, on another grid


def test_parts_of_a_partition():
    parts = fastdp.partition(frame(), by="answer", keys=["yes"])
    with pytest.raises(ValueError, match="add-remove"):
        statistics.describe(parts["yes"], BOUNDS, epsilon=1.0)
    found = statistics.describe(parts["yes"], BOUNDS, epsilon=1.0, neighbors="add-remove")
    assert found["age"].deviations["count"] > 0


def test_an_empty_collection():
    found = statistics.describe(
        {"x": np.zeros(0), "y": np.zeros(0, object)}, {"x": (0, 1)}, {"y": ["a"]}, epsilon=1.0, neighbors="add-remove"
    )
    assert 0 <= found["x"].values["mean"] <= 1
    with pytest.raises(ValueError, match="at least one"):
        statistics.describe({"x": np.zeros(0)}, {"x": (0, 1)}, epsilon=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "bounds=None: must have at least one column"),
        ({"bounds": (0, 1)}, "bounds: .*: must be a mapping"),
        ({"categories": ["yes"]}, "categories: .*: must be a mapping"),
        ({"bounds": {"age": (0, 1)}, "categories": {"age": [1]}}, "column 'age': must have bounds or categories"),
        ({"bounds": {"wage": (0, 1)}}, "must have the columns 'wage'"),
        ({"bounds": {"age": (1, 0)}}, "in increasing order"),
        ({"bounds": {"answer": (0, 1)}}, "column 'answer': dtype .*: must be numbers"),
        ({"categories": {"answer": 3}}, "column 'answer': must have a list of labels"),
        ({"bounds": BOUNDS, "qs": [0.5, 1.5]}, "qs"),
        ({"bounds": BOUNDS, "qs": 0.5}, "qs"),
        ({"bounds": BOUNDS, "missing": "drop"}, "missing="),
        ({"bounds": BOUNDS, "neighbors": "none"}, "neighbors="),
        ({"bounds": BOUNDS, "epsilon": 0.0}, "epsilon="),
    ],
)
def test_bad_calls(options, message):
    with pytest.raises(ValueError, match=message):
        statistics.describe(frame(), **{"epsilon": 1.0, **options})
