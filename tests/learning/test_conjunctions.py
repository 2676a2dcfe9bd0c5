"""Learning conjunctions: what is learned, refused, charged and returned, from records of all kinds."""

from __future__ import annotations

import html
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness, learn_conjunction
from fastdp.learning import conjunctions
from fastdp.learning.examples import Examples
from fastdp.learning.methods import choose_method
from fastdp.privacy import PureDP
from tests.conftest import Watched
from tests.learning.conjunctions_oracle import (
    PRIVATE,
    holds,
    problem,
    sample,
)
from tests.oracles.privacy import range_rho

pytestmark = pytest.mark.filterwarnings(
    "ignore::fastdp.support.errors.AccuracyWarning", "ignore:method=.elimination"
)  # tiny data


# --- the worked example


LECTURE = ("010101", "010110", "111101", "111111", "000000", "101101", "111101", "000101")


LABELS = [1, 0, 1, 0, 0, 1, 1, 1]


def test_the_worked_example():
    X = np.array([[int(bit) for bit in row] for row in LECTURE])
    h = learn_conjunction(X, LABELS, method="elimination")
    assert str(h) == "v4 ∧ ¬v5 ∧ v6"
    assert h.error(X, LABELS) == 0
    assert h.guarantee is None
    assert h.error_bound is None
    assert "elimination is not private" in repr(h)


@pytest.mark.parametrize("seed", range(20))
def test_elimination_is_right_wherever_a_conjunction_is(seed):
    draw = np.random.default_rng(seed)
    X = sample(int(draw.integers(1, 300)), 5, seed)
    target = [(int(c), bool(draw.integers(2))) for c in draw.permutation(5)[: draw.integers(0, 4)]]
    y = holds(target, X)
    h = learn_conjunction(X, y, method="elimination")
    assert h.error(X, y) == 0
    assert set(target) <= set(h.literals)


# --- what is refused, and what is charged


def test_parameters_are_checked_before_anything_is_drawn_or_charged():
    X = sample(50, 4)
    y = X[:, 0]
    good = {"epsilon": 1.0, "delta": 1e-6, "k": 2, "method": "peel", "realizable": True}
    for changes, message in (
        ({"k": 0}, r"k=0: must be an integer >= 1"),
        ({"k": 5}, r"k=5: must be at most 4"),
        ({"k": 1.5}, r"k=1.5: must be an integer"),
        ({"epsilon": None}, r"epsilon=None: must be a number > 0; only method='elimination'"),
        ({"epsilon": 0}, r"epsilon=0: must be > 0"),
        ({"epsilon": "1"}, r"epsilon='1': must be a number"),
        ({"delta": 1.0}, r"delta=1.0: must be between 0 and 1, 1 excluded"),
        ({"beta": 0.0}, r"beta=0.0: must be between 0 and 1, both excluded"),
        ({"method": "magic"}, r"method='magic': must be one of 'peel', 'greedy'"),
        ({"realizable": 1}, r"realizable=1: must be True or False"),
        ({"neighbors": "swap"}, r"neighbors='swap': must be one of"),
        ({"neighbors": "add-remove"}, r"records=None: must be given with neighbors='add-remove'"),
        ({"records": 50}, r"records=50: must be None with neighbors='replace-one'"),
        ({"neighbors": "add-remove", "records": 0}, r"records=0: must be an integer >= 1"),
        ({"rng": np.random.default_rng(0)}, r"rng=<Generator>"),
        ({"budget": 1.0}, r"budget=1.0: must be a fastdp.Budget"),
        ({"epsilon": 1e-20, "delta": 0}, r"epsilon=1e-20, n=50: the scores of method='peel' would be .*2\^62"),
        ({"epsilon": 1e-20, "delta": 0, "method": "counts"}, r"2d / epsilon="),
        ({"epsilon": 1e300, "method": "exhaustive"}, r"epsilon=1e\+300: must be such that the factor of the scores"),
        ({"epsilon": 1e-300, "delta": 0, "method": "greedy"}, r"epsilon=1e-300: must be such that the factor"),
        ({"neighbors": "add-remove", "records": 10**30}, r"epsilon=1.0, n=1e\+30: the scores of method='peel'"),
    ):  # fmt: skip
        budget = Budget(epsilon=2, delta=0.1, neighbors="add-remove" if "records" in changes else "replace-one")
        with pytest.raises(ValueError, match=f"^{message}"):
            learn_conjunction(X, y, **{"rng": Watched(), "budget": budget} | good | changes)
        assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_extremes_that_other_accounts_or_noises_allow(method):
    """A delta too small for the lemma, or for Gaussian noise, is no error: composition or Laplace noise does."""
    X = sample(500, 3)
    for epsilon, delta in ((1.0, 1e-200), (1000.0, 1e-6), (1.0, 0.9), (1e-6, 1e-60)):
        h = learn_conjunction(X, X[:, 0], k=1, epsilon=epsilon, delta=delta, method=method)
        assert h.guarantee.to_approx(delta).epsilon <= epsilon * (1 + 1e-9)


def test_elimination_takes_no_price():
    X = sample(50, 4)
    price = {
        "k": 2,
        "epsilon": 1.0,
        "delta": 1e-6,
        "budget": Budget(epsilon=1),
        "records": 9,
        "rng": Randomness(seed=1),
    }
    for name, value in price.items():
        with pytest.raises(ValueError, match=rf"^{name}=.*: must be left out for method='elimination', which is not"):
            learn_conjunction(X, X[:, 0], method="elimination", **{name: value})
    with Budget(epsilon=1) as budget:
        learn_conjunction(X, X[:, 0], method="elimination")
    assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_records_outside_of_0_and_1_cost_nothing(method):
    X, y = sample(200, 3).astype(float), sample(200, 1)[:, 0]
    budget = Budget(epsilon=1, delta=1e-3, refusals=20)
    for value in (np.nan, 2.0, 0.5, -1.0):
        bad = X.copy()
        bad[7, 1] = value
        with pytest.raises(DomainError, match=r"^column 1: must hold 0 and 1 only; there are others$"):
            learn_conjunction(bad, y, epsilon=1.0, delta=1e-6, k=1, method=method, rng=Watched(), budget=budget)
        labels = y.astype(float)
        labels[3] = value if value != -1 else 3
        with pytest.raises(DomainError, match=r"^y: must be 1, and 0 or -1 where it is not; there are other labels$"):
            learn_conjunction(X, labels, epsilon=1.0, delta=1e-6, k=1, method=method, rng=Watched(), budget=budget)
    for labels, message in (
        (None, "y=None: must be the labels"), (y[:-1], r"y: shape \(199,\): must be \(200,\)"),
        (y.astype(str), "y: dtype <U5: must be 0 and 1, or -1 and 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{message}"):
            learn_conjunction(X, labels, epsilon=1.0, delta=1e-6, method=method, rng=Watched(), budget=budget)
    assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_a_budget_pays_once_and_one_that_cannot_reads_nothing(method, monkeypatch):
    X = sample(300, 3)
    budget = Budget(epsilon=1.5, delta=1e-5)
    h = learn_conjunction(X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget)
    assert len(budget.releases) == 1
    assert h.guarantee.implies(fastdp.ApproxDP(1.0, 1e-6))

    def unread(self, *, keep):
        raise AssertionError("records are read")

    monkeypatch.setattr(Examples, "read", unread)
    with pytest.raises(BudgetExceeded):
        learn_conjunction(X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget, rng=Watched())
    assert len(budget.releases) == 1


@pytest.mark.parametrize("method", PRIVATE)
def test_a_charge_is_final_from_the_first_draw_on(method):
    """What fails before gives it back, what fails after does not."""
    X = sample(300, 3)

    class Failing(Randomness):
        def __init__(self, after):
            super().__init__(seed=1)
            self.after = after

        def key(self):
            self.after -= 1
            if self.after < 0:
                raise OSError("no randomness")
            return super().key()

    several = {"peel": [0, 1], "greedy": [0, 1, 2]}.get(method, [0])
    for after in several:
        budget = Budget(epsilon=1, delta=1e-3)
        try:
            learn_conjunction(
                X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget, rng=Failing(after)
            )
        except OSError:
            assert len(budget.releases) == (after > 0)
        else:
            assert method == "peel", "which may stop after one draw"
            assert len(budget.releases) == 1


def test_guarantees_of_the_methods():
    """Rounds of the exponential mechanism add up in concentrated privacy, too: that of its range each."""
    X = sample(300, 3)
    for method, delta, text in (
        ("peel", 1e-6, "(1, 1e-06)-DP"), ("peel", 0.0, "1-DP"), ("greedy", 1e-6, "(1, 1e-06)-DP"),
        ("greedy", 0.0, "1-DP"), ("exhaustive", 1e-6, "(1, 1e-06)-DP"),
    ):  # fmt: skip
        plan = choose_method(conjunctions.PRIVATE, method, problem(300, 3, 2, 1.0, delta))[1]
        h = learn_conjunction(X, X[:, 0], epsilon=1.0, delta=delta, k=2, method=method, realizable=True)
        rounds, unit = getattr(plan, "rounds", 1), 2 if method == "greedy" else 1
        spent, concentrated = h.guarantee.parts
        assert str(spent) == f"{text}, replace-one"
        assert concentrated.rho == pytest.approx(rounds * float(range_rho(2 * unit * plan.eta)), rel=1e-9)
    h = learn_conjunction(X, X[:, 0], epsilon=1.0, method="counts", realizable=True)
    assert str(h.guarantee) == "1-DP, replace-one"
    h = learn_conjunction(X, X[:, 0], epsilon=1.0, k=2, method="exhaustive", neighbors="add-remove", records=300)
    assert h.guarantee == fastdp.BoundedRange(1.0, neighbors="add-remove")


@pytest.mark.parametrize("method", PRIVATE)
def test_no_more_of_epsilon_is_used_than_is_written(method):
    """0.1 is a little above one tenth in binary; budgets charge one tenth."""
    for epsilon, delta in ((0.1, 0.0), (0.3, 1e-6)):
        t = problem(1000, 4, 2, epsilon, delta)
        used, leak = (Fraction(x) for x in t.privacy.allowance)
        assert used <= Fraction(str(epsilon)) <= used + Fraction(1, 2**50)
        assert leak <= Fraction(str(delta))
        plan = choose_method(conjunctions.PRIVATE, method, t)[1]
        if method == "counts" and not delta:
            assert Fraction(plan.noise.scale) * Fraction(str(epsilon)) >= 8
        elif not delta:
            rounds = {"peel": getattr(plan, "rounds", 1), "greedy": getattr(plan, "rounds", 1) * t.k}.get(method, 1)
            assert Fraction(plan.eta) * 2 * rounds <= Fraction(str(epsilon))


# --- what records may be


def forms(X, y, tmp_path):
    names = [f"a{j}" for j in range(X.shape[1])]
    table = {name: X[:, j] for j, name in enumerate(names)}
    labelled = pa.table({"label": y, **table})
    path = tmp_path / "rows.parquet"
    pq.write_table(labelled, path, row_group_size=777)
    return {
        "bool": (X, y),
        "uint8": (X.astype(np.uint8), y.astype(int)),
        "int8": (X.astype(np.int8), np.where(y, 1, -1)),
        "int64": (X.astype(np.int64), y.astype(float)),
        "float": (X.astype(float), y[:, None]),
        "Fortran": (np.asfortranarray(X), y.tolist()),
        "packed": (fastdp.pack(X), y),
        "mapping": (table, y),
        "pandas": (pd.DataFrame(table), pd.Series(y)),
        "pandas with labels": (labelled.to_pandas(), "label"),
        "polars": (pl.DataFrame(table), pl.Series(y)),
        "polars with labels": (pl.DataFrame({"label": y.astype(int), **table}), "label"),
        "arrow": (labelled, "label"),
        "parquet": (path, "label"),
        "array with labels": (np.column_stack((y, X)).astype(np.int64), 0),
    }


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
def test_results_depend_on_neither_the_form_of_records_nor_threads(method, tmp_path):
    X = sample(70_001, 5)
    y = X[:, 1] & ~X[:, 3]
    y[:500] = ~y[:500]
    found = set()
    threads = fastdp.get_num_threads()
    try:
        for i, (rows, labels) in enumerate(forms(X, y, tmp_path).values()):
            fastdp.set_num_threads(1 + i % 2)
            price = (
                {} if method == "elimination" else {"k": 2, "epsilon": 0.05, "delta": 1e-6, "rng": Randomness(seed=6)}
            )
            h = learn_conjunction(rows, labels, method=method, **price)
            assert h.width == 5
            assert h.names in (None, ("a0", "a1", "a2", "a3", "a4"))
            found.add((h.literals, h.error(rows, labels)))
    finally:
        fastdp.set_num_threads(threads)
    assert len(found) == 1


def test_blocks_of_every_length_are_counted(tmp_path):
    """Parquet blocks start anywhere in a word, packed ones at words, arrays at 1024s."""
    X = sample(3000, 70)
    y = sample(3000, 1, 5)[:, 0]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{j}": X[:, j] for j in range(70)}), path, row_group_size=391)
    drawn = [0, 7, 40]
    left = np.ones(3000, bool)
    for literal in drawn:
        left &= X[:, literal // 2] == (literal % 2 == 0)
    for rows in (X, path, fastdp.pack(X), fastdp.pack(path)):
        for keep in (True, False):
            examples = Examples(rows, y)
            examples.read(keep=keep)
            found = examples.falsified(drawn)
            assert (found.negatives, found.positives) == (np.sum(left & ~y), np.sum(left & y))
            for j in range(70):
                assert found.of_positives[2 * j] == np.sum(left & y & ~X[:, j])
                assert found.of_negatives[2 * j] == np.sum(left & ~y & ~X[:, j])
                assert found.of_positives[2 * j + 1] == np.sum(left & y & X[:, j])
                assert found.of_negatives[2 * j + 1] == np.sum(left & ~y & X[:, j])


# --- what is returned


def learned(literals, names=None, width=4):
    return conjunctions.LearnedConjunction(literals, "peel", PureDP(1.0), 0.25, None, None, 0.05, width, names)


def test_results_read_as_a_person_would_write_them():
    h = learned(((0, True), (2, False)))
    assert str(h) == "v1 ∧ ¬v3"
    assert repr(h) == (
        "LearnedConjunction\n"
        "  hypothesis  v1 ∧ ¬v3\n"
        "  method      peel\n"
        "  error       at most 0.25 with probability 0.95, if some conjunction fits\n"
        "  guarantee   1-DP, replace-one"
    )
    agnostic = replace(h, method="exhaustive", excess_bound=0.25, compared_with="class")
    assert "error       at most 0.25 above the least of any conjunction, with probability 0.95\n" in repr(agnostic)
    guarded = repr(replace(h, excess_bound=0.01, compared_with="found"))
    assert "error       at most 0.25 with probability 0.95, if some conjunction fits\n" in guarded
    above = "at most 0.01 above the least of true, false and the parts of what was found, with probability 0.95\n"
    assert f"any labels  {above}" in guarded
    searched = repr(replace(h, error_bound=1.0, excess_bound=0.01, compared_with="found"))
    assert f"any labels  {above}" in searched
    assert "error" not in searched
    assert str(learned(())) == "true"
    assert str(learned(((1, False), (1, True)))) == "false"
    named = learned(((0, True), (2, False)), ("smokes", "b", "<old>", "d"))
    assert str(named) == "smokes ∧ ¬<old>"
    assert html.escape("¬<old>") in named._repr_html_()
    assert "<old>" not in named._repr_html_()
    assert "no error bound" in repr(replace(h, error_bound=1.0))


def test_predictions_go_by_names_where_there_are_names():
    X = sample(100, 4)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    h = learned(((0, True), (2, False)), ("a", "b", "c", "d"))
    right = X[:, 0] & ~X[:, 2]
    for rows in (X, frame, frame[["d", "c", "b", "a"]], frame[["c", "a"]], pl.DataFrame(frame), fastdp.pack(X)):
        np.testing.assert_array_equal(h.predict(rows), right)
    with pytest.raises(ValueError, match=r"^X: must have the columns 'a'$"):
        h.predict(frame[["b", "c"]])
    with pytest.raises(ValueError, match=r"^X: 3 columns: must have 4, as the records learned from$"):
        h.predict(X[:, :3])
    for literals, value in (((), True), (((1, True), (1, False)), False)):
        np.testing.assert_array_equal(learned(literals).predict(X), np.full(100, value))
        assert learned(literals).predict(X[:0]).shape == (0,)
    assert h.error(frame, right) == 0
    assert fastdp.error(h, X, ~right) == 1
    assert h.error(frame, "b") == np.mean(right != X[:, 1]), (
        "the label is no column of the records, and none is asked for"
    )


def test_results_pickle():
    X = sample(500, 4)
    h = learn_conjunction(X, X[:, 0], k=2, epsilon=4.0, delta=1e-6, rng=Randomness(seed=1))
    copy = pickle.loads(pickle.dumps(h))
    assert (copy.literals, copy.guarantee, str(copy), repr(copy)) == (h.literals, h.guarantee, str(h), repr(h))
    np.testing.assert_array_equal(copy.predict(X), h.predict(X))
    with pytest.raises(AttributeError):
        h.method = "other"  # type: ignore[misc]


@pytest.mark.parametrize("method", PRIVATE)
def test_progress_is_reported_from_0_to_the_end(method):
    X, seen = sample(500, 4), []
    learn_conjunction(X, X[:, 0], k=2, epsilon=4.0, delta=1e-6, method=method, progress=lambda *now: seen.append(now))
    done = [now[0] for now in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert seen[-1][0] == seen[-1][1]


def test_seeds_warn_nobody_here():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_conjunction(sample(9000, 2), sample(9000, 1)[:, 0], k=1, epsilon=1.0, rng=Randomness(seed=1))
