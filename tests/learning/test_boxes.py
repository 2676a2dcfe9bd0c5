"""Learning boxes: records of all kinds, what is learned, refused, charged and returned."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Budget, DomainError, Randomness
from fastdp.learning import boxes, extremes
from fastdp.learning.boxes_exponential import on_lines
from fastdp.privacy import ApproxDP, BoundedRange, PureDP
from tests.conftest import Watched
from tests.learning.boxes_oracle import (
    rectangle,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data


# --- records of all kinds


def test_a_seed_learns_one_box_from_all_kinds_of_records(tmp_path):
    n = 70_000
    X, y = rectangle(n, 2, 20, 0)
    columns = {"a": X[:, 0], "b": X[:, 1]}
    frame = pd.DataFrame(columns)
    path, with_labels = tmp_path / "x.parquet", tmp_path / "xy.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=9_000)
    pq.write_table(pa.table({**columns, "y": y.astype(np.int8)}), with_labels, row_group_size=20_000)
    kinds = [
        (X, y), (np.asfortranarray(X), y.astype(int)), (frame, pd.Series(y)), (pl.DataFrame(columns), 2.0 * y - 1),
        (pa.table(columns), y), (columns, y), (path, y), (str(with_labels), "y"), (frame.assign(y=y), "y"),
    ]  # fmt: skip
    threads = fastdp.get_num_threads()
    try:
        for method in ("peel", "interior-point"):
            found = set()
            for count, (records, labels) in itertools.product((1, 2), kinds):
                fastdp.set_num_threads(count)
                h = fastdp.learn_box(
                    records, labels, domain_bits=20, epsilon=1.0, delta=1e-6, method=method, rng=Randomness(seed=1)
                )
                found.add(h.intervals)
                if not isinstance(labels, str):
                    assert h.error(records, labels) < 0.1
            assert len(found) == 1
            assert None not in found
    finally:
        fastdp.set_num_threads(threads)


def test_columns_of_several_types_and_lines():
    n, draw = 30_000, np.random.default_rng(0)
    X = {
        "age": draw.integers(0, 120, n).astype(np.int8), "income": draw.lognormal(10, 1, n).astype(np.float32),
        "id": draw.integers(2**63, 2**64 - 1, n, np.uint64), "member": draw.random(n) < 0.9,
    }  # fmt: skip
    y = (X["age"] >= 18) & (X["income"] > 5000) & X["member"]
    h = fastdp.learn_box(X, y, domain_bits=[7, 32, 64, 1], epsilon=4.0, delta=1e-6, rng=Randomness(seed=0))
    assert h.error(X, y) < 0.2
    assert [type(low) for low, _ in h.intervals] == [int, float, int, int]
    assert h.intervals[3][1] == 1
    text = str(h)
    assert "age" in text
    assert "≤" in text
    assert h.predict({"member": X["member"], **X}).tolist() == h.predict(X).tolist()
    for shown in (repr(h), h._repr_html_()):
        assert "method" in shown
        assert "age" in shown
        assert "replace-one" in shown
    again = pickle.loads(pickle.dumps(h))
    assert str(again) == text
    assert again.intervals == h.intervals
    assert (again.predict(X) == h.predict(X)).all()
    assert h.predict(pd.DataFrame(X)).sum() == h.predict(X).sum()


def test_floats_end_at_the_ends_of_their_line():
    """The class of all boxes has sides beyond the last float: no side is a NaN, and none turns round."""
    X, y = np.repeat(np.array([1.0, 2.0, 3.0], np.float16), 200)[:, None], np.ones(600, bool)
    rng, largest = Randomness(seed=1), float(np.finfo(np.float16).max)
    ends = [
        fastdp.learn_box(X, y, domain_bits=16, epsilon=5.0, method="exponential", rng=rng).intervals[0]
        for _ in range(100)
    ]
    assert all(-largest <= low <= 1 and 3 <= high <= largest for low, high in ends)
    assert max(high for _, high in ends) == largest
    nothing = on_lines([(2**16 - 1, 2**16 - 1)], [extremes.NumberLine.of(X.dtype, 16, None, "x")])
    assert nothing is None


@pytest.mark.parametrize("method", ["peel", "interior-point", "exponential"])
def test_labels_of_any_kind(method):
    """No positives, no negatives, labels by chance, few records: a box or none, and never a crash."""
    draw = np.random.default_rng(0)
    for n, d in itertools.product((1, 2, 500, 5000), (1, 2)):
        X = draw.integers(0, 16, (n, d))
        options = {"domain_bits": 4, "epsilon": 50.0, "method": method}
        nobody = fastdp.learn_box(X, np.zeros(n, bool), **options)
        assert nobody.error(X, np.zeros(n)) == 0 or n < 10
        everybody = fastdp.learn_box(X, np.ones(n, bool), **options)
        assert everybody.error(X, np.ones(n)) <= everybody.error_bound
        chance = fastdp.learn_box(X, draw.random(n) < 0.5, **options)
        assert chance.predict(X).shape == (n,)
        constant = fastdp.learn_box(np.full((n, d), 3), np.ones(n), **options)
        assert constant.error(np.full((n, d), 3), np.ones(n)) <= constant.error_bound


def test_a_box_reads_as_a_person_would_write_it():
    X, y = rectangle(5000, 2, 6, 0)
    frame = pd.DataFrame(X, columns=["age", "hours <b>"])
    h = fastdp.learn_box(frame, y, domain_bits=6, epsilon=50.0)
    (a, b), (c, e) = h.intervals
    assert str(h) == f"{a} ≤ age ≤ {b} and {c} ≤ hours <b> ≤ {e}"
    assert "<b>" not in h._repr_html_()
    assert repr(h).startswith("LearnedBox\n  hypothesis")
    none = fastdp.learn_box(frame, np.zeros(5000), domain_bits=6, epsilon=50.0, method="peel")
    assert str(none) == "false"
    assert not none.predict(frame).any()
    order = h.orders[0]
    for interval, text in [
        ((3, 3), "x = 3"),
        ((0, 5), "x ≤ 5"),
        ((5, 63), "5 ≤ x"),
        ((0, 63), ""),
        ((2, 5), "2 ≤ x ≤ 5"),
    ]:
        assert boxes._interval("x", interval, order) == text


def test_the_number_of_records_stands_in_for_a_private_one():
    X, y = rectangle(20_000, 1, 8, 0)
    options = {"domain_bits": 8, "epsilon": 1.0, "delta": 1e-6, "neighbors": "add-remove"}
    h = fastdp.learn_box(X, y, records=10_000, **options)
    assert h.guarantee.neighbors == "add-remove"
    for method in ("peel", "interior-point", "exponential"):
        bounds = {
            fastdp.learn_box(X[:n], y[:n], records=10_000, method=method, **options).error_bound
            for n in (0, 1, 100, 20_000)
        }
        assert len(bounds) == 1, "it tells nothing of how many there are"
    for records in (None, 0, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"^records="):
            fastdp.learn_box(X, y, records=records, rng=Watched(), **options)
    with pytest.raises(ValueError, match=r"^records=5: must be None"):
        fastdp.learn_box(X, y, records=5, domain_bits=8, epsilon=1.0, rng=Watched())


def test_what_is_out_of_the_domain_is_clipped_if_asked():
    X, y = rectangle(5000, 1, 8, 0)
    X = np.where(X > 200, 10_000, X)
    h = fastdp.learn_box(X, y | (X[:, 0] > 190), domain_bits=8, epsilon=20.0, outside="clip")
    assert h.intervals[0][1] > 200
    floats = np.where(X > 200, np.inf, X.astype(float))
    h = fastdp.learn_box(floats, y, epsilon=20.0, outside="clip", method="peel")
    assert h.error(floats, y) < 0.2


def test_progress_is_told_by_columns():
    X, y = rectangle(20_000, 3, 8, 0)
    told = []
    fastdp.learn_box(X, y, domain_bits=8, epsilon=50.0, method="peel", progress=lambda *now: told.append(now))
    assert told == [(0, 3, "column 1 of 3"), (1, 3, "column 2 of 3"), (2, 3, "column 3 of 3"), (3, 3, "")]


# --- what is charged, and what is not


def test_a_box_is_charged_once():
    X, y = rectangle(500, 2, 8, 0)
    for method, delta in (("peel", 1e-6), ("interior-point", 0.0), ("exponential", 0.0)):
        budget = Budget(epsilon=1.0, delta=1e-5)
        fastdp.learn_box(X, y, domain_bits=8, epsilon=0.5, delta=delta, method=method, budget=budget)
        (release,) = budget.releases
        assert release.mechanism == "learn_box"
        assert release.parameters["method"] == method
        if method == "exponential":
            assert release.guarantee == BoundedRange(0.5)
        else:
            assert release.guarantee.parts[0] == (ApproxDP(0.5, delta) if delta else PureDP(0.5))


SMALL = np.array([[1, 2], [3, 4], [5, 6]])


BAD = [
    ({"y": [0, 1, 2]}, DomainError, "there are other labels"),
    ({"y": [0.5, 1, 0]}, DomainError, "there are other labels"),
    ({"y": [0, 1, float("nan")]}, DomainError, "there are other labels"),
    ({"y": ["a", "b", "a"]}, ValueError, "y: dtype"),
    ({"y": [0, 1]}, ValueError, r"y: shape \(2,\)"),
    ({"y": None}, ValueError, "y=None"),
    ({"y": "label"}, ValueError, "label"),
    ({"X": np.array([1, 2, 3])}, ValueError, "two dimensions"),
    ({"X": np.zeros((0, 2)), "y": []}, ValueError, "n=0 records"),
    ({"X": np.zeros((3, 0))}, ValueError, "at least one column"),
    ({"X": "nowhere.parquet"}, FileNotFoundError, "nowhere"),
    ({"X": np.array([[0.5, float("nan")]] * 3), "domain_bits": 64}, DomainError, "column 1: must not be NaN"),
    ({"X": np.array([[0.5, float("inf")]] * 3), "domain_bits": 64}, DomainError, "column 1: must be finite floats"),
    ({"X": np.array([[0.5, 1.0]] * 3)}, ValueError, "domain_bits=8"),
    ({"X": SMALL + 1000}, DomainError, "column 0: must be from 0 to 255"),
    ({"X": {"a": SMALL[:, 0], "b": SMALL[:, 1] * 999}}, DomainError, "column 'b': must be from 0 to 255"),
    ({"X": {"a": SMALL[:, 0], "b": [1, 2, 3]}}, ValueError, "column 'b': must be an array, whose type is declared"),
    ({"X": SMALL - 3}, DomainError, "column 0"),
    ({"X": np.array([["a", "b"]] * 3)}, ValueError, "must be integers or floats"),
    ({"domain_bits": [8]}, ValueError, "1 numbers: must be one, or 2"),
    ({"domain_bits": [8, 0]}, ValueError, "domain_bits=0"),
    ({"domain_bits": 65}, ValueError, "domain_bits=65: must be at most 64"),
    ({"domain_bits": 65, "method": "peel"}, ValueError, "domain_bits=65: must be at most 64"),
    ({"signed": "no"}, ValueError, "signed='no'"),
    ({"epsilon": 0}, ValueError, "epsilon=0"),
    ({"epsilon": 1e-12, "method": "peel"}, ValueError, "epsilon"),
    ({"epsilon": float("nan")}, ValueError, "epsilon=nan"),
    ({"delta": 1}, ValueError, "delta=1"),
    ({"beta": 0}, ValueError, "beta=0"),
    ({"method": "greedy"}, ValueError, "method='greedy'"),
    ({"outside": "drop"}, ValueError, "outside='drop'"),
    ({"neighbors": "swap"}, ValueError, "neighbors='swap'"),
    ({"progress": 3}, ValueError, "progress=3"),
    ({"X": np.zeros((3, 3), int), "method": "exponential"}, ValueError, "d=3 columns: must be 1 or 2"),
    ({"budget": 1.0}, ValueError, "budget=1.0"),
]


@pytest.mark.parametrize(("change", "kind", "said"), BAD)
def test_errors_cost_nothing(change, kind, said):
    budget = Budget(epsilon=1.0)
    options = {
        "X": SMALL,
        "y": [0, 1, 1],
        "domain_bits": 8,
        "epsilon": 1.0,
        "budget": budget,
        "rng": Watched(),
        **change,
    }
    with pytest.raises(kind, match=said):
        fastdp.learn_box(options.pop("X"), options.pop("y"), **options)
    assert not budget.releases


def test_too_much_work_is_refused_with_an_estimate():
    X = np.zeros((1_000_000, 2), np.int64)
    with pytest.raises(ValueError, match=r"would take about [0-9,]+ s: must be at most 10 s; method='grid' takes"):
        fastdp.learn_box(X, np.ones(len(X)), epsilon=1.0, method="exponential", rng=Watched())


def test_records_to_predict_are_checked():
    X, y = rectangle(500, 2, 8, 0)
    h = fastdp.learn_box(X, y, domain_bits=8, epsilon=1.0)
    with pytest.raises(ValueError, match="3 columns: must have 2"):
        h.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="y=None"):
        h.error(X, None)


# --- what a newcomer tried


def test_a_side_that_is_the_end_of_the_domain_is_no_side():
    """Then what is clipped to the end is in the box as it was when it was learned, and the text says so, too."""
    X = np.column_stack([np.arange(5000) % 128, np.arange(5000) % 97]) * 10
    y = (X[:, 0] >= 50) & (X[:, 1] <= 100)
    h = fastdp.learn_box(X, y, domain_bits=7, epsilon=5.0, outside="clip", rng=Randomness(seed=1))
    assert "≤ v1 and v2 ≤" in str(h)
    assert h.error(X, y) == h.error(np.clip(X, 0, 127), y) <= h.error_bound
    assert h.predict(np.array([[500, 5], [500, 500], [-5, 5]])).tolist() == [True, False, False]
    floats = np.where(X > 600, np.inf, X.astype(float))
    h = fastdp.learn_box(floats, X[:, 0] > 300, epsilon=5.0, outside="clip", method="peel")
    assert h.predict(np.array([[np.inf, 500.0], [np.nan, 500.0], [0.0, 500.0]])).tolist() == [True, False, False]


def test_columns_have_as_many_bits_as_their_types():
    n = 4000
    frame = pd.DataFrame(
        {"flag": np.arange(n) % 2 == 0, "small": (np.arange(n) % 50 - 25).astype(np.int8), "x": np.arange(n) / n}
    )
    h = fastdp.learn_box(frame, frame["small"] > 0, epsilon=5.0, method="interior-point")
    assert [order.bits for order in h.orders] == [1, 8, 64]
    assert [order.least for order in h.orders] == [0, -128, None]
    mixed = pd.DataFrame({"a": np.arange(n) % 100 - 50, "f": np.arange(n) / n})
    h = fastdp.learn_box(mixed, mixed["a"] > 0, domain_bits=[8, 64], signed=True, epsilon=5.0, method="interior-point")
    assert h.orders[0].least == -128
