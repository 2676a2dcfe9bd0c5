"""Synthetic tables as users make them: what they hold, where the edges are, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Bins, Budget, Conjunction, Domain, Product, Randomness, Range, SyntheticDistribution, synthesize
from fastdp.answering import MeasuredTable, SynthesisReport, SynthesizedDistribution

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
DOMAIN = Domain(
    job=["none", "nurse", "driver", "cook"], sex=["f", "m"], pay=Bins([0, 100, 200, 300, 400], missing=True), code=3
)
CHOOSING: dict[str, Any] = {"max_seconds": 0.0009}  # no tree of 90 cells holds all of its 120: tables are chosen


def people(n: int = 20_000, seed: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    job = np.where(sex == 1, rng.choice([0, 2, 3], n), rng.choice([0, 1, 3], n))
    pay = np.clip(rng.normal(80 + 90 * job, 40), 0, 400)
    pay[rng.random(n) < 0.1] = np.nan
    return {
        "job": np.array(["none", "nurse", "driver", "cook"])[job], "sex": np.array(["f", "m"])[sex], "pay": pay,
        "code": rng.integers(0, 3, n),
    }  # fmt: skip


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_dependences_are_found_and_kept(relation: Any) -> None:
    table = people()
    made = synthesize(table, DOMAIN, **PRICE, **CHOOSING, neighbors=relation, rng=Randomness(seed=1))
    assert isinstance(made, SynthesizedDistribution)
    assert isinstance(made, SyntheticDistribution)
    codes = [DOMAIN.encode_column(i, table[name]) for i, name in enumerate(DOMAIN.names)]
    for i, one in enumerate(DOMAIN.names):
        for j, other in enumerate(DOMAIN.names[:i]):
            true = np.zeros((DOMAIN.sizes[j], DOMAIN.sizes[i]))
            np.add.at(true, (codes[j], codes[i]), 1 / 20_000)
            assert np.abs(made.marginal([other, one]) - true).sum() < 0.05
    assert {("job", "sex"), ("job", "pay")} <= {each.columns for each in made.report.tables}
    frame = made.to_frame()
    assert abs(len(frame) - 20_000) < (1 if relation == "replace-one" else 200)
    assert frame["pay"].isna().mean() == pytest.approx(0.1, abs=0.02)
    assert ((frame["job"] == "nurse") & (frame["sex"] == "m")).mean() < 0.01


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_tables_of_three_columns_are_measured_where_a_tree_holds_them(relation: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (2, 20_000))
    records = {"a": a, "b": b, "c": a ^ b, "d": rng.integers(0, 3, 20_000)}  # pairs are independent
    made = synthesize(records, Domain(a=2, b=2, c=2, d=3), **PRICE, neighbors=relation, rng=Randomness(seed=1))
    assert made.answer(Conjunction({"a": 1, "b": 1, "c": 1})) < 0.01
    assert not made.report.distances
    assert sum(len(each.columns) == 3 for each in made.report.tables) == 4
    few = {name: column[:20] for name, column in records.items()}
    chosen = synthesize(few, Domain(a=2, b=2, c=2, d=3), **PRICE, neighbors=relation, rng=Randomness(seed=1))
    assert chosen.report.distances  # with so few records only noise would be seen


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_rounds_find_what_pairs_do_not_show(relation: Any) -> None:
    rng = np.random.default_rng(4)
    chain = [rng.integers(0, 4, 30_000)]
    for _ in range(7):
        chain.append((chain[-1] + (rng.random(30_000) < 0.2)) % 4)
    noisy = np.where(chain[0] < 1, 1, chain[0] != chain[1])  # given the first two: more than pairs show
    records = {f"c{i}": column for i, column in enumerate([*chain, noisy])}
    domain = Domain(dict.fromkeys(records, 4) | {"c8": 2})
    made = synthesize(
        records, domain, epsilon=2.0, delta=1e-6, max_seconds=0.02, neighbors=relation, rng=Randomness(seed=1)
    )
    assert made.report.rounds > 1
    several = {each.columns for each in made.report.tables if len(each.columns) > 1}
    neighbours = {(f"c{i}", f"c{i + 1}") for i in range(7)}
    assert all(any({*pair} <= {*columns} for columns in several) for pair in neighbours)
    assert any({"c0", "c1", "c8"} <= {*columns} for columns in several)
    odd = Product({"c0": [1], "c1": [1], "c8": [1]})
    true = float(np.mean((chain[0] == 1) & (chain[1] == 1) & (noisy == 1)))
    assert abs(made.answer(odd) - true) < 0.01


def test_the_report_of_a_whole_workload_lists_its_tables() -> None:
    report = synthesize(people(), DOMAIN, **PRICE, rng=Randomness(seed=1)).report
    assert report.rounds == 0
    text = repr(report)
    assert "job x sex x pay: 40 cells" in text
    assert "one tree holds all tables" in text


def test_the_report_states_what_was_measured() -> None:
    made = synthesize(people(), DOMAIN, **PRICE, **CHOOSING, neighbors="add-remove", rng=Randomness(seed=1))
    report = made.report
    assert isinstance(report, SynthesisReport)
    table = report.table(["sex", "job"])
    assert isinstance(table, MeasuredTable)
    assert table.columns == ("job", "sex")
    assert table.noisy.shape == table.fitted.shape == (4, 2)
    assert table.fitted.sum() == pytest.approx(report.n)
    assert 0 < table.residual < 5
    assert len(report.distances) == 6
    assert report.distances["job", "sex"] > 0.3 > 0.05 > abs(report.distances["sex", "code"])
    assert 0.99 * fastdp.GaussianDP.of(made.guarantee).mu < report.mu <= fastdp.GaussianDP.of(made.guarantee).mu
    assert set(map(frozenset, report.cliques)) == set(map(frozenset, made.structure))
    text, page = repr(report), made._repr_html_()
    for word in ("job x sex", "sigma", "residual", "cliques", "Gaussian DP"):
        assert word in text
    assert "<svg" in page
    assert page.count("fitted</text>") == len(report.tables)  # four columns, and the pairs
    picture = table.picture()
    assert picture.count("<rect") == 2 * table.noisy.size
    assert "job x sex: noisy" in picture
    assert picture in page
    assert 'fill="rgb(0,0,255)"' in picture  # the largest entry
    assert page.count("<rect") >= 6
    pairs = report.picture()
    assert pairs in page
    assert "framed: measured" in pairs
    assert pairs.count("stroke=") == sum(len(each.columns) == 2 for each in report.tables)
    assert pairs.count(">sex</text>") == 2  # its row, and its column
    assert 'fill="#7a7a7a"' in pairs  # which is seen on white and on black
    with pytest.raises(ValueError, match=r"^names=.*: must be those of a table that was measured"):
        report.table(["sex", "code", "pay"])


def test_it_is_charged_once_and_before_anything_is_drawn() -> None:
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        synthesize(people(500), DOMAIN, **PRICE)
    (row,) = budget.releases
    assert row.mechanism == "synthesize"
    with Budget(epsilon=0.5, delta=1e-6) as small, pytest.raises(fastdp.BudgetExceeded):
        synthesize(people(500), DOMAIN, **PRICE)
    wrong = {**people(500), "code": np.full(500, 7)}
    with Budget(epsilon=1.0, delta=1e-6) as whole, pytest.raises(fastdp.DomainError):
        synthesize(wrong, DOMAIN, **PRICE)
    assert not len(small.releases)
    assert not len(whole.releases)
    with Budget(mu=0.25) as gaussians:
        synthesize(people(500), DOMAIN, **PRICE)
    assert len(gaussians.releases) == 1


@pytest.mark.parametrize("method", ["auto", "network"])
def test_the_same_seed_gives_the_same_bits_from_any_container(method: Any, tmp_path: Any) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(people(4000))
    arrow = pyarrow.Table.from_pandas(frame)
    pyarrow.parquet = __import__("pyarrow.parquet").parquet
    pyarrow.parquet.write_table(arrow, tmp_path / "people.parquet", row_group_size=700)
    found = [
        synthesize(data, DOMAIN, **PRICE, method=method, rng=Randomness(seed=3)).marginal(["job", "pay"]).tolist()
        for data in (people(4000), frame, arrow, str(tmp_path / "people.parquet"))
    ]
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_few_records(n: int) -> None:
    made = synthesize(people(n), DOMAIN, **PRICE, neighbors="add-remove", rng=Randomness(seed=2))
    assert made.marginal(["job", "sex"]).sum() == pytest.approx(1)
    assert made.sample(5).shape == (5, 4)
    if n:
        assert synthesize(people(n), DOMAIN, **PRICE).n == n
    else:
        with pytest.raises(ValueError, match=r"^data: n=0 records: must be at least one"):
            synthesize(people(0), DOMAIN, **PRICE)


@pytest.mark.parametrize(
    "sizes", [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 3}, {"a": 2}, {"a": 300, "b": 2}, {"a": 300, "b": 300}]
)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_one_value_and_as_many_values_as_records(sizes: dict[str, int], relation: Any) -> None:
    records = {name: np.arange(300) % size for name, size in sizes.items()}
    made = synthesize(records, Domain(sizes), **PRICE, neighbors=relation, rng=Randomness(seed=2))
    assert made.marginal(list(sizes)).sum() == pytest.approx(1)
    assert made.sample(9).shape == (9, len(sizes))


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13, 700.0])
@pytest.mark.parametrize("names", [["job", "sex", "code"], ["code"]])
def test_any_epsilon_is_refused_beforehand_or_gives_a_table(epsilon: float, names: list[str]) -> None:
    with Budget(epsilon=1000.0, delta=0.5) as budget:
        try:
            made = synthesize(people(200), DOMAIN.project(names), epsilon=epsilon, delta=1e-9, rng=Randomness(seed=1))
        except ValueError:  # sigma beyond 2^40
            assert not len(budget.releases)
        else:
            assert made.marginal(names).sum() == pytest.approx(1)


def test_impossible_cells_have_no_record() -> None:
    never = [Conjunction({"sex": "m", "job": "nurse"}), Product({"sex": ["f"], "job": ["driver"], "code": [1, 2]})]
    made = synthesize(people(1000), DOMAIN, epsilon=0.1, delta=1e-6, impossible=never, rng=Randomness(seed=2))
    assert [made.answer(each) for each in never] == [0.0, 0.0]
    codes = made.sample(5000, codes=True)
    assert not ((codes[:, 0] == 1) & (codes[:, 1] == 1)).any()
    assert made.report.cells >= 24


def test_limits_hold_and_are_no_clock() -> None:
    rng = np.random.default_rng(1)
    base = rng.integers(0, 12, 5000)
    records = {f"c{i}": (base + rng.integers(0, 2, 5000)) % 12 for i in range(8)}
    domain = Domain(dict.fromkeys(records, 12))
    cells = [
        synthesize(records, domain, epsilon=5.0, delta=1e-6, max_seconds=seconds, rng=Randomness(seed=1)).report.cells
        for seconds in (0.005, 0.01, 0.1)
    ]
    assert cells[0] <= 500
    assert cells[0] < cells[1] <= 1000 < cells[2] <= 10_000
    small = synthesize(records, domain, epsilon=5.0, delta=1e-6, max_bytes=64 * 2000, rng=Randomness(seed=1))
    assert small.report.cells <= 2000


@pytest.mark.parametrize("limits", [{}, CHOOSING])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_an_estimate_before_anything_is_spent(limits: dict[str, Any], relation: Any) -> None:
    with Budget(epsilon=1e-9) as budget:
        estimate = fastdp.plan_synthesis(20_000, DOMAIN, **PRICE, **limits, neighbors=relation)
    assert not len(budget.releases)
    made = synthesize(people(), DOMAIN, **PRICE, **limits, neighbors=relation, rng=Randomness(seed=1))
    report = made.report
    assert estimate.whole == (not report.distances) == (not limits)
    assert estimate.distance_sigma == pytest.approx(report.distance_sigma, rel=0.02)
    assert estimate.cells >= report.cells
    several = [each for each in report.tables if len(each.columns) > 1]
    found = np.mean([0.8 * each.sigma * each.noisy.size / report.n for each in several])
    assert estimate.table_error / 3 < found < 3 * estimate.table_error
    assert estimate.tables == (4 if estimate.whole else 6)
    assert "noise" in repr(estimate)


def test_a_workload_says_what_matters() -> None:
    made = synthesize(people(), DOMAIN, **PRICE, workload=[["sex", "pay"], ["code"]], rng=Randomness(seed=1))
    assert [each.columns for each in made.report.tables if len(each.columns) == 2] == [("sex", "pay")]
    by_weight = [
        synthesize(
            people(), DOMAIN, **PRICE, workload=[["sex", "pay"], ["job", "sex"]], importance=weights,
            rng=Randomness(seed=1),
        ).report.table(["job", "sex"]).sigma
        for weights in ([1.0, 1.0], [1.0, 50.0])
    ]  # fmt: skip
    assert by_weight[1] < 0.8 * by_weight[0]


def test_it_is_a_prior_for_answers() -> None:
    made = synthesize(people(), DOMAIN, epsilon=0.5, delta=5e-7, rng=Randomness(seed=1))
    pmw = fastdp.PrivateMultiplicativeWeights(
        people(), DOMAIN, epsilon=0.5, delta=5e-7, max_queries=100_000, prior=made, rng=Randomness(seed=2)
    )
    assert abs(pmw.answer(Conjunction({"sex": "f", "job": "nurse"})) - 1 / 6) < 0.03


REFUSED: list[tuple[Callable[[], dict[str, Any]], str]] = [
    (lambda: {"epsilon": -1.0}, r"^epsilon=-1\.0: must be > 0"),
    (lambda: {"epsilon": 1000.0}, r"^epsilon=1000\.0: must be at most 700"),
    (lambda: {"delta": 0.0}, r"^delta=0\.0: must be"),
    (lambda: {"delta": 1e-200}, r"^delta=1e-200: must be at least 1e-100"),
    (lambda: {"max_seconds": 1e-9}, r"^max_seconds=1e-09: must be at least .*: the columns alone have 14 values"),
    (lambda: {"max_seconds": 0}, r"^max_seconds=0: must be > 0"),
    (lambda: {"max_bytes": 10}, r"^max_bytes=10: must be at least"),
    (lambda: {"workload": [["sex", "nothing"]]}, r"^attribute='nothing': must be one of"),
    (lambda: {"workload": []}, r"^workload: must be at least one"),
    (lambda: {"importance": [1.0]}, r"^importance: 1 numbers: must be 6, one for each"),
    (lambda: {"workload": [["sex"]], "importance": [0.0]}, r"^importance\[0\]=0\.0: must be > 0"),
    (lambda: {"impossible": [Range("code", 0, 2)]}, r"^impossible\[0\]: has every cell of the domain"),
    (
        lambda: {"impossible": [Conjunction({"sex": "f"}), Conjunction({"sex": "m"})]},
        r"^impossible: excludes all cells of the domain: must leave some",
    ),
    (
        lambda: {"impossible": [Conjunction({"sex": "f"}), Conjunction({"sex": "m", "code": 1}),
                                Product({"code": [0, 2], "job": ["none", "nurse", "driver", "cook"]})]},
        r"^impossible: excludes all cells of the domain: must leave some",
    ),
    (lambda: {"impossible": [fastdp.Linear(np.ones(120))]}, r"^impossible\[0\]: must be a product"),
    (lambda: {"impossible": 3}, r"^impossible: type int: must be products"),
    (lambda: {"neighbors": "both"}, r"^neighbors='both': must be one of"),
    (lambda: {"outside": "drop"}, r"^outside='drop': must be one of"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_before_it_is_paid_for(options: Callable[[], dict[str, Any]], message: str) -> None:
    with Budget(epsilon=2000.0, delta=0.5) as budget, pytest.raises(ValueError, match=message):
        synthesize(people(50), DOMAIN, **{**PRICE, **options()})
    assert not len(budget.releases)


def test_wide_limits_of_a_clique_name_the_columns() -> None:
    wide = Domain(a=2000, b=2000, c=2000)
    with pytest.raises(ValueError, match=r"^impossible\[0\]: its columns have 8,000,000,000 cells"):
        synthesize(np.zeros((9, 3), int), wide, **PRICE, impossible=[Conjunction({"a": 1, "b": 1, "c": 1})])
    with pytest.raises(ValueError, match=r"^impossible: its columns hang together"):
        synthesize(
            np.zeros((9, 3), int), wide, **PRICE, impossible=[Conjunction({"a": 1, "b": 1})], max_seconds=0.5
        )  # fmt: skip


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int, str]] = []
    synthesize(people(300), DOMAIN, **PRICE, progress=lambda *step: seen.append(step))
    assert seen[0] == (0, 2, "measuring")
    assert seen[-1] == (2, 2, "")
